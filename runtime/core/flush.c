// SPDX-License-Identifier: BSD-3-Clause
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_clockjoin_np */
#endif
#include "runtime/core/flush.h"

#include <stdio.h>
#include <time.h>

#include "runtime/core/thread.h"

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
