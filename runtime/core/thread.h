/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library's own. The program's signals are for its threads: here its handlers do not run. */
#ifndef GDRI_THREAD_H
#define GDRI_THREAD_H

#include <pthread.h>
#include <signal.h>

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

#endif
