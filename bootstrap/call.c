// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"

#define POLL_MS	 50 /* how often a wait asks whether it was interrupted */

static uint64_t call_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

void gdri_deadline_in(struct timespec *deadline, int timeout_ms)
{
	*deadline = gdri_deadline_at(timeout_ms < 0 ? 0 : timeout_ms);
}

void gdri_deadline_min(struct timespec *deadline, const struct timespec *other)
{
	if (call_ns(other) < call_ns(deadline))
		*deadline = *other;
}

bool gdri_deadline_passed(const struct timespec *deadline)
{
	return gdri_now_ns() >= call_ns(deadline);
}

int gdri_limit_ms(const struct timespec *deadline)
{
	int ms = gdri_left_ms(call_ns(deadline));

	return ms < 1 ? 1 : ms;
}

void *gdri_call_new(size_t size)
{
	struct gdri_call *c = calloc(1, size);
	int rc = c ? pthread_mutex_init(&c->lock, NULL) : ENOMEM;

	if (!rc) {
		rc = gdri_cond_init(&c->changed);
		if (rc)
			pthread_mutex_destroy(&c->lock);
	}
	if (rc) {
		free(c);
		return gdri_fail(NULL, "bootstrap: no memory for a call of %zu bytes: %s", size, strerror(rc));
	}
	c->refs = 1;
	return c;
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

void gdri_call_finish(int status, void *call)
{
	gdri_call_complete(call, status);
	gdri_call_put(call);
}

/* Sleeps until a change, the slice's end or the deadline; true at the deadline. */
static bool sleep_slice(struct gdri_call *c, const struct timespec *deadline, bool sliced)
{
	struct timespec until = *deadline, slice;

	if (sliced) {
		gdri_deadline_in(&slice, POLL_MS);
		gdri_deadline_min(&until, &slice);
	}
	return pthread_cond_timedwait(&c->changed, &c->lock, &until) == ETIMEDOUT && gdri_deadline_passed(deadline);
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

int gdri_call_run(struct gdri_call *c, const struct timespec *deadline)
{
	int rc;

	gdri_call_get(c); /* the helper's */
	rc = gdri_thread_start_detached(helper_main, c);
	if (rc) {
		gdri_call_put(c);
		return gdri_fail(-GDR_ESYSTEM, "bootstrap: cannot start a helper thread: %s", gdri_thread_text(rc));
	}
	return gdri_call_wait(c, deadline, NULL);
}
