// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/call.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/core/log.h"

#define NS_PER_S 1000000000L
#define POLL_MS	 50 /* how often a wait asks whether it was interrupted */

static bool call_is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

uint64_t gdri_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void gdri_deadline_in(struct timespec *deadline, int timeout_ms)
{
	if (timeout_ms < 0)
		timeout_ms = 0;
	clock_gettime(CLOCK_MONOTONIC, deadline);
	deadline->tv_sec += timeout_ms / 1000;
	deadline->tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
	if (deadline->tv_nsec >= NS_PER_S) {
		deadline->tv_nsec -= NS_PER_S;
		deadline->tv_sec++;
	}
}

void gdri_deadline_min(struct timespec *deadline, const struct timespec *other)
{
	if (call_is_before(other, deadline))
		*deadline = *other;
}

int gdri_limit_ms(const struct timespec *deadline)
{
	struct timespec now;
	long long ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (long long)(deadline->tv_sec - now.tv_sec) * 1000 +
	     (deadline->tv_nsec - now.tv_nsec) / 1000000L;
	if (ms < 1)
		return 1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static int init_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int rc = pthread_condattr_init(&attr);

	if (rc)
		return rc;
	rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (!rc)
		rc = pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return rc;
}

int gdri_call_init(struct gdri_call *c)
{
	int rc;

	memset(c, 0, sizeof(*c));
	c->refs = 1;
	rc = pthread_mutex_init(&c->lock, NULL);
	if (!rc) {
		rc = init_cond(&c->changed);
		if (rc)
			pthread_mutex_destroy(&c->lock);
	}
	if (!rc)
		return 0;
	return gdri_fail(-GDR_ESYSTEM, "bootstrap: cannot make a mutex or condition variable: %s", strerror(rc));
}

void gdri_call_get(struct gdri_call *c)
{
	pthread_mutex_lock(&c->lock);
	c->refs++;
	pthread_mutex_unlock(&c->lock);
}

void gdri_call_put(struct gdri_call *c)
{
	bool last;

	pthread_mutex_lock(&c->lock);
	last = !--c->refs;
	pthread_mutex_unlock(&c->lock);
	if (!last)
		return;
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void gdri_call_complete(struct gdri_call *c, int status)
{
	pthread_mutex_lock(&c->lock);
	if (!c->done) {
		c->done = true;
		c->status = status;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
}

/* Sleeps until a change, the slice's end or the deadline; true at the latter. */
static bool sleep_slice(struct gdri_call *c, const struct timespec *deadline, bool sliced)
{
	struct timespec until = *deadline, slice, now;

	if (sliced) {
		gdri_deadline_in(&slice, POLL_MS);
		gdri_deadline_min(&until, &slice);
	}
	if (pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return !call_is_before(&now, deadline);
}

static int wait_locked(struct gdri_call *c, const struct timespec *deadline,
		       int (*interrupted)(void))
{
	int rc;

	while (!c->done) {
		rc = interrupted ? interrupted() : 0;
		if (rc)
			return rc;
		if (sleep_slice(c, deadline, interrupted != NULL) && !c->done)
			return -GDR_ETIMEOUT;
	}
	return 0;
}

int gdri_call_wait(struct gdri_call *c, const struct timespec *deadline, int (*interrupted)(void))
{
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = wait_locked(c, deadline, interrupted);
	if (rc)
		c->abandoned = true;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static void *helper_main(void *arg)
{
	struct gdri_call *c = arg;
	int status = c->run(c);
	bool late;

	/* One look under the lock that the waiter gives up under: either it
	 * gets the result, or `late` runs. */
	pthread_mutex_lock(&c->lock);
	late = c->abandoned;
	c->done = true;
	c->status = status;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (late && c->late)
		c->late(c);
	gdri_call_put(c);
	return NULL;
}

/* Signals of the program are for its own threads. */
static int start_helper(struct gdri_call *c)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	rc = pthread_attr_init(&attr);
	if (rc)
		return rc;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, &attr, helper_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

int gdri_call_run(struct gdri_call *c, const struct timespec *deadline)
{
	int rc;

	gdri_call_get(c); /* the helper's */
	rc = start_helper(c);
	if (rc) {
		gdri_call_put(c);
		return gdri_fail(-GDR_ESYSTEM,
				 "bootstrap: cannot start a helper thread: %s; check the limit on processes (ulimit "
				 "-u)",
				 strerror(rc));
	}
	return gdri_call_wait(c, deadline, NULL);
}
