/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that add to one word by compare-and-swap, through the queue of a slow NIC: one wins each time, so the last
 * one's call takes as many rounds as there are threads, longer than GDR_TIMEOUT. While one wins no wait ends. */
#include "tests/multi/multi.h"

enum { THREADS = 64 };

struct turns {
	double *sum;
	struct multi_report *report;
};

GDR_KERNEL(add, struct turns, a)
{
	EXPECT_OK(a.report, gdr_double_atomic_add(a.sum, 1, gdr_my_pe()));
}

int main(void)
{
	struct turns a;
	uint64_t ns;
	double sum;

	multi_begin();
	a.report = multi_report_new();
	a.sum = (double *)gdr_calloc(1, 8);
	CHECK(a.sum);
	ns = multi_clock_ns();
	RUN(add, 1, THREADS, &a);
	printf("%d sums in %.1f s\n", THREADS, (double)(multi_clock_ns() - ns) / 1e9);
	CHECK_OK(gdr_memcpy(&sum, a.sum, 8));
	CHECK_EQ((int)sum, THREADS);
	multi_shared_free(a.report);
	return multi_end("amo_turns");
}
