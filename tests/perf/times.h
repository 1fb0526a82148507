/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs that take times share. */
#ifndef TESTS_PERF_TIMES_H
#define TESTS_PERF_TIMES_H

#include <time.h>

static inline double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* For qsort. */
static inline int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

#endif
