/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts a known number of operations: count N. What the device executed is then
 * compared from outside (tests/multi/queue/wqe_count). */
#include "tests/multi/multi.h"

struct count {
	uint8_t *dst;
	int n, pe;
	struct multi_report *report;
};

/* Each is one work queue entry; quiet posts none. */
GDR_KERNEL(post, struct count, a)
{
	uint64_t v = 1;

	for (int i = 0; i < a.n; i++)
		EXPECT_OK(a.report, gdr_put_nbi(a.dst, &v, 8, a.pe));
	EXPECT_OK(a.report, gdr_quiet());
}

int main(int argc, char **argv)
{
	struct count a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.dst = gdr_calloc(1, 64);
	CHECK(a.dst && argc == 2);
	a.n = atoi(argv[1]);
	a.pe = (multi_pe + 1) % multi_n;
	RUN(post, 1, 1, &a);
	CHECK_OK(gdr_barrier_all());
	multi_shared_free(a.report);
	return multi_end("count");
}
