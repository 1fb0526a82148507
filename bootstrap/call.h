/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that may outlive their caller's patience. A struct gdri_call heads an
 * object that holds every argument and result of one call into another
 * library; free() gets its address with the last reference. The caller and the
 * other side (a callback or a helper thread) each own one: when the time limit
 * expires the caller marks the call abandoned and drops its reference, and
 * whatever comes late finds its arguments alive and writes to nobody's memory. */
#ifndef GDRI_BOOTSTRAP_CALL_H
#define GDRI_BOOTSTRAP_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct gdri_call {
	pthread_mutex_t lock; /* guards done, abandoned and the results of the outer object */
	pthread_cond_t changed;
	int refs;
	bool done;
	bool abandoned; /* set once, by the waiter; results must not be delivered any more */
	int status;	/* valid once done */
	int (*run)(struct gdri_call *);	     /* helper thread: the blocking call */
	void (*late)(struct gdri_call *);    /* helper thread: undo a call that came too late */
};

void gdri_deadline_in(struct timespec *deadline, int timeout_ms);
/* The earlier of the two. */
void gdri_deadline_min(struct timespec *deadline, const struct timespec *other);
bool gdri_deadline_passed(const struct timespec *deadline);
/* The time limit for a call that has to end by the deadline: milliseconds, at least 1, also when it has passed. */
int gdri_limit_ms(const struct timespec *deadline);

/* An object of `size` bytes, zeroes, that begins with its call; one reference, the caller's. NULL, logged. */
void *gdri_call_new(size_t size);
void gdri_call_get(struct gdri_call *c);
void gdri_call_put(struct gdri_call *c);

/* Publishes the result and wakes the waiter; the first result counts. */
void gdri_call_complete(struct gdri_call *c, int status);
/* By the other side: that, and its reference goes. A callback of PMIx's. */
void gdri_call_finish(int status, void *call);

/* Waits until done; then 0. At the deadline the call becomes abandoned and
 * -GDR_ETIMEOUT is returned. `interrupted`, when given, is asked now and then;
 * nonzero ends the wait, abandons the call and is returned. */
int gdri_call_wait(struct gdri_call *c, const struct timespec *deadline, int (*interrupted)(void));

/* Runs c->run(c) in a helper thread and waits for it: 0 with c->status set,
 * -GDR_ETIMEOUT (the thread is abandoned), or -GDR_ESYSTEM (not started). */
int gdri_call_run(struct gdri_call *c, const struct timespec *deadline);

#endif
