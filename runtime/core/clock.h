/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines on the monotonic clock. */
#ifndef GDRI_CLOCK_H
#define GDRI_CLOCK_H

#include <limits.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t gdri_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t gdri_deadline_ns(int timeout_ms)
{
	return gdri_now_ns() + (uint64_t)timeout_ms * 1000000u;
}

static inline struct timespec gdri_deadline_at(int timeout_ms)
{
	uint64_t ns = gdri_deadline_ns(timeout_ms);

	return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* Milliseconds until the deadline, rounded up; 0 when it has passed. */
static inline int gdri_left_ms(uint64_t deadline_ns)
{
	uint64_t now = gdri_now_ns(), ms;

	if (now >= deadline_ns)
		return 0;
	ms = (deadline_ns - now + 999999u) / 1000000u;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

#endif
