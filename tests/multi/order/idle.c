/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that does nothing leaves its core alone: neither the host device, nor the
 * library's threads, nor (over softhca) the device below spin while nothing is under way. */
#include "tests/multi/multi.h"

#include <sys/resource.h>

struct idle {
	uint64_t *word;
	int pe;
	struct multi_report *report;
};

GDR_KERNEL(work, struct idle, a)
{
	EXPECT_OK(a.report, gdr_uint64_p(a.word, 1, a.pe));
	EXPECT_OK(a.report, gdr_quiet());
}

/* CPU time of the process so far: other load on the machine does not count. */
static long used_ms(void)
{
	struct rusage u;

	CHECK_EQ(getrusage(RUSAGE_SELF, &u), 0);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

int main(void)
{
	struct idle a = {0};
	long before, after;

	multi_begin();
	a.report = multi_report_new();
	a.word = gdr_calloc(1, 8);
	CHECK(a.word);
	a.pe = (multi_pe + 1) % multi_n;
	RUN(work, 2, 32, &a); /* all that starts on first use is there now */
	CHECK_OK(gdr_barrier_all());
	multi_sleep_us(300000);
	before = used_ms();
	multi_sleep_us(1000000);
	after = used_ms();
	printf("PE %d: %ld ms of CPU time in a second of rest\n", multi_pe, after - before);
	CHECK(after - before < 250);
	free(a.report);
	return multi_end("idle");
}
