// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Written at init, read by any thread: plain ints that are only ever replaced
 * whole, accessed relaxed; no other data is published through them. */
static int log_level = GDRI_LOG_WARN;
static int log_pe = -1;
static _Thread_local char last_error[256];

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

static int prefix(char *buf, size_t room, enum gdri_log_level level)
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
	char line[1024];
	size_t n, room = sizeof(line) - 1; /* one byte for the newline */
	va_list ap;
	int r;

	if (!gdri_log_enabled(level)) /* errors always are */
		return;
	n = (size_t)prefix(line, room, level);
	va_start(ap, fmt);
	errno = saved;
	r = vsnprintf(line + n, room - n, fmt, ap);
	va_end(ap);
	if (level == GDRI_LOG_ERROR)
		snprintf(last_error, sizeof(last_error), "%s", line + n);
	if (r > 0)
		n += (size_t)r < room - n ? (size_t)r : room - n - 1;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0) {
		/* Nowhere left to say it. */
	}
	errno = saved;
}

const char *gdri_errno_text(int err)
{
	static _Thread_local char text[200];
	struct rlimit r;

	if (err == EMFILE && !getrlimit(RLIMIT_NOFILE, &r))
		snprintf(text, sizeof(text), "%s: this process may have %llu (raise it: ulimit -n)", strerror(err),
			 (unsigned long long)r.rlim_cur);
	else if (err == EFBIG && !getrlimit(RLIMIT_FSIZE, &r) && r.rlim_cur != RLIM_INFINITY)
		snprintf(text, sizeof(text), "%s: this process may make files, which memory that PEs share counts as, "
			 "of %llu bytes (raise it: ulimit -f)", strerror(err), (unsigned long long)r.rlim_cur);
	else
		snprintf(text, sizeof(text), "%s", strerror(err));
	return text;
}
