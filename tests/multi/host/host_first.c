/* SPDX-License-Identifier: BSD-3-Clause */
/* The first calls of host threads, and the first operations on a stream, beside a kernel that waits for their end:
 * no launch of theirs waits for it. The calls come in the order in which a program that knows nothing of this has
 * them; what needs a kernel of the library comes first. */
#include "tests/multi/multi.h"

#include <gdr/coll.h>
#include <gdr/host_ops.h>
#include <gdr/stream.h>

enum { N = 100000 };

struct wait_args {
	uint64_t *sig;
	struct multi_report *report;
};

GDR_KERNEL(waits, struct wait_args, a)
{
	EXPECT_OK(a.report, gdr_signal_wait_until(a.sig, GDR_CMP_EQ, 1));
}

static void calls(gdr_stream_t stream, uint64_t *count, long *lock, int *to, const int *from)
{
	const int next = (multi_pe + 1) % multi_n;

	CHECK_OK(gdr_host_set_lock(lock));
	CHECK_OK(gdr_host_clear_lock(lock));
	CHECK_OK(gdr_host_uint64_atomic_add(count, 1, next));
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(gdr_host_uint64_g(count, multi_pe), 1);
	CHECK_OK(gdr_barrier_all_on_stream(stream));
	CHECK_OK(gdr_team_sync_on_stream(GDR_TEAM_WORLD, stream));
	CHECK_OK(gdr_int_sum_reduce_on_stream(GDR_TEAM_WORLD, to, from, 1, stream));
	CHECK_OK(gdr_int_sum_reduce_on_stream(GDR_TEAM_WORLD, to, from, N, stream));
	CHECK_OK(gdr_stream_sync(stream));
	CHECK_OK(gdr_host_int_sum_reduce(GDR_TEAM_WORLD, to, from, 4));
	CHECK_OK(gdr_host_status());
}

int main(void)
{
	struct wait_args a;
	gdr_stream_t own, stream;
	long *lock;
	uint64_t *count;
	int *to, *from;

	multi_begin();
	a.sig = (uint64_t *)gdr_calloc(1, 8);
	a.report = multi_report_new();
	lock = (long *)gdr_calloc(1, sizeof(long));
	count = (uint64_t *)gdr_calloc(1, 8);
	to = (int *)gdr_calloc(N, sizeof(int));
	from = (int *)gdr_calloc(N, sizeof(int));
	CHECK(a.sig && lock && count && to && from);
	CHECK_OK(gdr_stream_create(&own));
	CHECK_OK(gdr_stream_create(&stream));
	CHECK_OK(gdr_launch(waits, 1, 1, 0, own, &a));
	calls(stream, count, lock, to, from);
	CHECK_OK(gdr_host_signal_op(a.sig, 1, GDR_SIGNAL_SET, multi_pe));
	CHECK_OK(gdr_stream_sync(own));
	CHECK_EQ(a.report->line, 0);
	multi_shared_free(a.report);
	CHECK_OK(gdr_stream_destroy(own));
	CHECK_OK(gdr_stream_destroy(stream));
	CHECK_OK(gdr_free(from));
	CHECK_OK(gdr_free(to));
	CHECK_OK(gdr_free(count));
	CHECK_OK(gdr_free(lock));
	CHECK_OK(gdr_free(a.sig));
	return multi_end("host_first");
}
