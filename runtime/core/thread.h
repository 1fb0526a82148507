/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library's own, and what they wait by. The program's signals are for its threads: here its handlers
 * do not run. */
#ifndef GDRI_THREAD_H
#define GDRI_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#define GDRI_THREAD_STACK (256u << 10) /* at least: ulimit -s is the program's choice, and may be 16 KiB */

/* With the signals of the thread that calls. 0, or what pthread_create returns. */
static inline int gdri_thread_create(pthread_t *t, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	size_t size;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_getstacksize(&attr, &size);
	if (size < GDRI_THREAD_STACK)
		pthread_attr_setstacksize(&attr, GDRI_THREAD_STACK);
	rc = pthread_create(t, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return rc;
}

/* With all signals blocked. */
static inline int gdri_thread_start(pthread_t *t, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = gdri_thread_create(t, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/* A thread that nobody joins. */
static inline int gdri_thread_start_detached(void *(*run)(void *), void *arg)
{
	pthread_t t;
	int rc = gdri_thread_start(&t, run, arg);

	return rc ? rc : pthread_detach(t);
}

/* Limits of its waits are on the monotonic clock (gdri_deadline_at). 0, or what pthread_cond_init returns. */
static inline int gdri_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int rc;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	rc = pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return rc;
}

#endif
