// SPDX-License-Identifier: BSD-3-Clause
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_clockjoin_np */
#endif
#include "runtime/core/log.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/text.h"
#include "runtime/core/thread.h"

/* Written at init, read by any thread: plain ints that are only ever replaced
 * whole, accessed relaxed; no other data is published through them. */
static int log_level = GDRI_LOG_WARN;
static int log_pe = -1;
static _Thread_local char last_error[512];

void gdri_log_set_level(enum gdri_log_level level)
{
	__atomic_store_n(&log_level, (int)level, __ATOMIC_RELAXED);
}

void gdri_log_set_pe(int pe)
{
	__atomic_store_n(&log_pe, pe, __ATOMIC_RELAXED);
}

int gdri_log_enabled(enum gdri_log_level level)
{
	return (int)level <= __atomic_load_n(&log_level, __ATOMIC_RELAXED);
}

const char *gdri_log_last_error(void)
{
	return last_error;
}

void gdri_log_clear_error(void)
{
	last_error[0] = 0;
}

/* ---- what comes again ---- */

#define REPEATS 8
struct repeat {
	char line[1024]; /* as printed, without its end; empty: free */
	unsigned int more; /* how often it came since that was told */
	uint64_t told_ns;
};

/* Of this process: a child of fork begins anew, whatever its parent's threads were doing. */
static struct {
	int busy; /* acquired and released by exchange and store: the lock of all here */
	pid_t pid;
	unsigned int next;
	struct repeat list[REPEATS];
} repeats;

/* False: somebody has had it for long, or a signal's handler interrupted who has it. */
static bool log_lock(void)
{
	if (__atomic_load_n(&repeats.pid, __ATOMIC_RELAXED) != getpid()) { /* first call, or a child */
		memset(repeats.list, 0, sizeof(repeats.list));
		__atomic_store_n(&repeats.pid, getpid(), __ATOMIC_RELAXED);
		__atomic_store_n(&repeats.busy, 0, __ATOMIC_RELEASE); /* pairs with the acquire of who locks */
	}
	for (int tries = 0; tries < 1000; tries++) {
		/* acquire: pairs with the release in unlock */
		if (!__atomic_exchange_n(&repeats.busy, 1, __ATOMIC_ACQUIRE))
			return true;
		sched_yield();
	}
	return false;
}

static void log_unlock(void)
{
	__atomic_store_n(&repeats.busy, 0, __ATOMIC_RELEASE); /* pairs with the acquire in lock */
}

static void put_line(const char *line, const char *end)
{
	char out[1100];
	int n = snprintf(out, sizeof(out), "%s%s\n", line, end);

	if (write(STDERR_FILENO, out, (size_t)n) < 0) {
		/* Nowhere left to say it. */
	}
}

static void log_tell_repeats(struct repeat *r, uint64_t now)
{
	char end[48];

	snprintf(end, sizeof(end), " (%u more time%s)", r->more, r->more == 1 ? "" : "s");
	put_line(r->line, end);
	r->more = 0;
	r->told_ns = now;
}

static void tell_older(uint64_t age_ns)
{
	uint64_t now = gdri_now_ns();

	for (unsigned int i = 0; i < REPEATS; i++)
		if (repeats.list[i].more && now - repeats.list[i].told_ns >= age_ns)
			log_tell_repeats(&repeats.list[i], now);
}

/* One error has one text but for how long it was waited for. */
static bool is_same(const char *a, const char *b)
{
	for (;; a++, b++) {
		if (!strncmp(a, " after ", 7) && !strncmp(b, " after ", 7)) {
			a += 7 + strspn(a + 7, "0123456789.");
			b += 7 + strspn(b + 7, "0123456789.");
		}
		if (*a != *b)
			return false;
		if (!*a)
			return true;
	}
}

static bool log_count(const char *line)
{
	for (unsigned int i = 0; i < REPEATS; i++) {
		if (!is_same(repeats.list[i].line, line))
			continue;
		repeats.list[i].more++;
		return true;
	}
	return false;
}

/* The line is printed, or it is one that was: then it is counted. */
static void log_print(const char *line)
{
	struct repeat *r;

	if (!log_lock()) {
		put_line(line, "");
		return;
	}
	if (!log_count(line)) {
		tell_older(0);
		put_line(line, "");
		r = &repeats.list[repeats.next++ % REPEATS];
		snprintf(r->line, sizeof(r->line), "%s", line);
		r->told_ns = gdri_now_ns();
	}
	log_unlock();
}

void gdri_log_counts(int min_age_ms, int forget)
{
	if (!log_lock())
		return;
	tell_older((uint64_t)min_age_ms * 1000000u);
	if (forget)
		memset(repeats.list, 0, sizeof(repeats.list));
	log_unlock();
}

static int log_prefix(char *buf, size_t room, enum gdri_log_level level)
{
	static const char *const names[] = {"error", "warning", "info", "debug", "trace"};
	int pe = __atomic_load_n(&log_pe, __ATOMIC_RELAXED);

	if (pe < 0)
		return snprintf(buf, room, "gdr[?] %s: ", names[level]);
	return snprintf(buf, room, "gdr[%d] %s: ", pe, names[level]);
}

void gdri_log(enum gdri_log_level level, const char *fmt, ...)
{
	int saved = errno; /* %m in the caller's text, and the caller's own use */
	char line[1000];
	size_t n, room = sizeof(line);
	va_list ap;
	int r;

	if (!gdri_log_enabled(level)) /* errors always are */
		return;
	n = (size_t)log_prefix(line, room, level);
	va_start(ap, fmt);
	errno = saved;
	r = vsnprintf(line + n, room - n, fmt, ap);
	va_end(ap);
	if (level == GDRI_LOG_ERROR)
		snprintf(last_error, sizeof(last_error), "%s", line + n);
	if (r > 0)
		n += (size_t)r < room - n ? (size_t)r : room - n - 1;
	line[n] = 0;
	if (level <= GDRI_LOG_WARN)
		log_print(line);
	else
		put_line(line, "");
	errno = saved;
}

const char *gdri_thread_text(int err)
{
	static _Thread_local char buf[320];

	snprintf(buf, sizeof(buf), "%s%s", gdri_errno_text(err),
		 err == EAGAIN ? "; see ulimit -u and the pids limit of the control group" : "");
	return buf;
}

const char *gdri_errno_text(int err)
{
	static _Thread_local char buf[240];
	struct text t = {buf, sizeof(buf), 0};
	struct rlimit r;
	bool addresses = err == ENOMEM || err == EAGAIN /* a thread */ || err == EOPNOTSUPP /* libmlx5, of a mapping */;

	text_add(&t, "%s", strerror(err));
	if (err == EMFILE && !getrlimit(RLIMIT_NOFILE, &r))
		text_add(&t, ": this process may have %llu (raise it: ulimit -n)", (unsigned long long)r.rlim_cur);
	else if (err == EFBIG && !getrlimit(RLIMIT_FSIZE, &r) && r.rlim_cur != RLIM_INFINITY)
		text_add(&t, ": this process may make files, which memory that PEs share counts as, of %llu bytes "
			 "(raise it: ulimit -f)", (unsigned long long)r.rlim_cur);
	else if (addresses && !getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY)
		text_add(&t, ": this process may have %llu KiB of addresses (raise it: ulimit -v)",
			 (unsigned long long)r.rlim_cur / 1024);
	if (err == EPERM)
		text_add(&t, "; see the filter of system calls (seccomp) of the container, or a firewall's rules");
	return buf;
}

#define FLUSH_S 2

static void *flush_all(void *unused)
{
	fflush(NULL);
	return unused;
}

void gdri_flush_streams(void)
{
	struct timespec end;
	pthread_t thread;

	if (gdri_thread_start(&thread, flush_all, NULL))
		return;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += FLUSH_S;
	pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &end);
}
