// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* pthread_setname_np */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gdr/device.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/core/thread.h"
#include "runtime/diag/errors.h"
#include "runtime/diag/fault.h"
#include "runtime/hostdev/hostdev.h"
#include "runtime/net/net.h"
#include "runtime/path/devstate.h"

#define EXIT_S 1
#define COUNTS_MS 5000 /* how late the log may say that an error came again */
#define PERIOD_MS 100 /* how late an error may be logged; costs ten wake-ups a second */

struct gdri_monitor {
	struct gdri_state *st;
	pthread_t thread;
	pid_t owner; /* a forked child has no such thread */
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wake;
	bool stop;
	uint32_t seen, host_seen; /* error records logged: device code's, the host's */
};

static void sleep_a_while(struct gdri_monitor *m)
{
	const struct timespec ts = gdri_deadline_at(PERIOD_MS);

	while (!m->stop && pthread_cond_timedwait(&m->wake, &m->lock, &ts) != ETIMEDOUT)
		;
}

static void log_errors(struct gdri_monitor *m)
{
	gdri_errors_log(m->st->dev, &m->seen);
	if (m->st->host_view)
		gdri_errors_log(m->st->host_view, &m->host_seen);
}

static void look_at_errors(struct gdri_monitor *m)
{
	log_errors(m);
	gdri_fault_tell(m->st);
	gdri_absent_look(m->st);
	gdri_devstate_look(m->st);
	if (m->st->net && m->st->net->ops->watch) /* relaxed: a hint, pairs with nothing */
		m->st->net->ops->watch(m->st->net, __atomic_load_n(&m->st->dev->lost, __ATOMIC_RELAXED));
	if (!m->st->cuda) /* half: before waits for such a thread end, and blame who waits for it */
		gdri_hd_watch((unsigned)(m->st->opt.host_device_stall_ms ? m->st->opt.host_device_stall_ms
									 : m->st->opt.timeout_ms / 2));
	gdri_log_counts(COUNTS_MS, 0);
}

static _Thread_local bool monitor_is_here; /* the thread is a monitor */

static void *monitor_main(void *arg)
{
	struct gdri_monitor *m = arg;

	monitor_is_here = true;
	pthread_setname_np(pthread_self(), "gdr-monitor");
	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		look_at_errors(m);
		/* Kernels may never end: the job does, from here. */
		if (m->st->opt.nvshmem_errors == GDRI_UNSEEN_ABORT && gdri_errors_unseen(m->st->dev)) {
			pthread_mutex_unlock(&m->lock); /* which gdr_global_exit takes */
			gdr_global_exit(1);
		}
		sleep_a_while(m);
	}
	look_at_errors(m);
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

/* Another thread may be in gdr_finalize while this one ends the process. */
static pthread_mutex_t current_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gdri_monitor *current; /* under current_lock */

static void set_current(struct gdri_monitor *m)
{
	pthread_mutex_lock(&current_lock);
	current = m;
	pthread_mutex_unlock(&current_lock);
}

void gdri_monitor_say(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end); /* TSan does not know pthread_mutex_clocklock */
	end.tv_sec += EXIT_S;
	if (pthread_mutex_timedlock(&current_lock, &end))
		return;
	if (current && current->owner == getpid() &&
	    !pthread_mutex_timedlock(&current->lock, &end)) {
		log_errors(current);
		pthread_mutex_unlock(&current->lock);
	}
	pthread_mutex_unlock(&current_lock);
}

/* The monitor itself may be in device code, with its lock: it says at its next look what that found. */
void gdri_hd_say_errors(void)
{
	if (!monitor_is_here)
		gdri_monitor_say();
}

/* Behind the driver's own handlers, so before them at exit: records of a GPU are in memory of the driver. */
static void hook_exit(void)
{
	atexit(gdri_monitor_say);
}

/* From a thread of the bootstrap. The launcher knows it sooner than any time limit:
 * every wait that needs this PE ends (gdri_timeout_lost). */
static void on_lost(void *arg, int pe)
{
	struct gdri_monitor *m = arg;

	if (pe < 0) {
		gdri_error("%s is lost: this job cannot go on",
			   strcmp(m->st->boot->name, "pmix") ? "the hub by which the PEs of the job know of each other"
							     : "the launcher");
		/* release: pairs with the acquire in every wait of device code */
		__atomic_store_n(m->st->abort_word, 1, __ATOMIC_RELEASE);
		return;
	}
	gdri_lost_note(m->st, pe);
}

int gdri_up_monitor(struct gdri_state *st)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct gdri_monitor *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	m->st = st;
	m->owner = getpid();
	pthread_once(&once, hook_exit);
	pthread_mutex_init(&m->lock, NULL);
	gdri_cond_init(&m->wake);
	rc = gdri_thread_start(&m->thread, monitor_main, m);
	if (rc) {
		gdri_error("cannot start the monitor thread: %s", gdri_thread_text(rc));
		pthread_cond_destroy(&m->wake);
		pthread_mutex_destroy(&m->lock);
		free(m);
		return -GDR_ESYSTEM;
	}
	st->monitor = m;
	set_current(m);
	if (st->boot->on_peer_lost)
		st->boot->on_peer_lost(st->boot, on_lost, m);
	return 0;
}

void gdri_down_monitor(struct gdri_state *st)
{
	struct gdri_monitor *m = st->monitor;

	if (!m)
		return;
	set_current(NULL);
	if (st->boot->on_peer_lost)
		st->boot->on_peer_lost(st->boot, NULL, NULL);
	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_signal(&m->wake);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	pthread_cond_destroy(&m->wake);
	pthread_mutex_destroy(&m->lock);
	free(m);
	st->monitor = NULL;
}
