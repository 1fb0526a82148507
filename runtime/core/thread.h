/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library's own, and what they wait by. The program's signals are for its threads: here its handlers
 * do not run. */
#ifndef GDRI_THREAD_H
#define GDRI_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <time.h>

/* 0, or what pthread_create returns. */
static inline int gdri_thread_start(pthread_t *t, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(t, NULL, run, arg);
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
