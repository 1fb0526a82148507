/* SPDX-License-Identifier: BSD-3-Clause */
/* What fence and quiet promise, as litmus tests that run many times: data
 * before flag through fence to one PE; data complete everywhere through quiet
 * before a third PE is told; quiet of one PE; wait_until and test.
 * usage: order [ROUNDS] */
#include "tests/multi/multi.h"

struct order {
	uint64_t *data; /* [WORDS] */
	uint64_t *flag, *ack, *third;
	int rounds;
	struct multi_report *report;
};

#define WORDS 64

/* The ring neighbour sees all data of round k when it sees flag k. */
GDR_KERNEL(fenced, struct order, a)
{
	int n = gdr_n_pes(), me = gdr_my_pe(), next = (me + 1) % n, prev = (me + n - 1) % n;

	for (uint64_t k = 1; k <= (uint64_t)a.rounds; k++) {
		for (int i = 0; i < WORDS; i += 7)
			EXPECT_OK(a.report, gdr_uint64_p(a.data + i, k * 100 + (uint64_t)i, next));
		EXPECT_OK(a.report, gdr_fence());
		EXPECT_OK(a.report, gdr_uint64_p(a.flag, k, next));
		EXPECT_OK(a.report, gdr_uint64_wait_until(a.flag, GDR_CMP_GE, k));
		EXPECT_EQ(a.report, gdr_uint64_test(a.flag, GDR_CMP_LT, k), 0);
		for (int i = 0; i < WORDS; i += 7)
			EXPECT_EQ(a.report, gdri_ld_relaxed_sys_u64(a.data + i),
				  k * 100 + (uint64_t)i);
		EXPECT_OK(a.report, gdr_uint64_atomic_set(a.ack, k, prev));
		EXPECT_OK(a.report, gdr_uint64_wait_until(a.ack, GDR_CMP_GE, k));
	}
	EXPECT_OK(a.report, gdr_quiet());
}

/* PE 0 writes to PE 1, quiets, tells PE 2, which reads PE 1. */
GDR_KERNEL(third_party, struct order, a)
{
	int n = gdr_n_pes(), me = gdr_my_pe(), keeper = 1 % n, reader = 2 % n;

	for (uint64_t k = 1; k <= (uint64_t)a.rounds; k++) {
		if (me == 0) {
			uint64_t v[3] = {k, k + 1, k + 2}; /* goes inline */

			EXPECT_OK(a.report, gdr_put_nbi(a.third, v, sizeof(v), keeper));
			EXPECT_OK(a.report, k & 1 ? gdr_quiet() : gdr_quiet_pe(keeper));
			EXPECT_OK(a.report, gdr_uint64_p(a.flag, k, reader));
		}
		if (me == reader) {
			EXPECT_OK(a.report, gdr_uint64_wait_until(a.flag, GDR_CMP_EQ, k));
			for (uint64_t i = 0; i < 3; i++)
				EXPECT_EQ(a.report, gdr_uint64_g(a.third + i, keeper), k + i);
			EXPECT_OK(a.report, gdr_uint64_p(a.ack, k, 0));
		}
		if (me == 0)
			EXPECT_OK(a.report, gdr_uint64_wait_until(a.ack, GDR_CMP_EQ, k));
	}
	EXPECT_OK(a.report, gdr_quiet());
}

/* More non-blocking puts than the queues hold, then one quiet. */
GDR_KERNEL(flood, struct order, a)
{
	int n = gdr_n_pes(), next = (gdr_my_pe() + 1) % n;
	unsigned t = gdr_block_id() * gdr_block_size() + gdr_thread_id();

	for (int i = 0; i < a.rounds; i++) {
		uint64_t v = (uint64_t)i << 32 | t;

		if (i == a.rounds - 1) /* puts to one word have no order without it */
			EXPECT_OK(a.report, gdr_fence());
		EXPECT_OK(a.report, gdr_put_nbi(a.data + t, &v, 8, next));
	}
	gdr_sync_block();
	if (gdr_thread_id() == 0)
		EXPECT_OK(a.report, gdr_quiet());
	gdr_sync_block();
	EXPECT_EQ(a.report, gdr_uint64_g(a.data + t, next), (uint64_t)(a.rounds - 1) << 32 | t);
}

static void reset(struct order *a)
{
	CHECK_OK(gdr_barrier_all());
	multi_set_u64(a->flag, 0);
	multi_set_u64(a->ack, 0);
	CHECK_OK(gdr_barrier_all());
}

int main(int argc, char **argv)
{
	struct order a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.data = (uint64_t *)gdr_calloc(512, 8);
	a.flag = (uint64_t *)gdr_calloc(1, 8);
	a.ack = (uint64_t *)gdr_calloc(1, 8);
	a.third = (uint64_t *)gdr_calloc(4, 8);
	CHECK(a.data && a.flag && a.ack && a.third);
	a.rounds = argc > 1 ? atoi(argv[1]) : 200;
	CHECK(a.rounds > 0);
	reset(&a);
	RUN(fenced, 1, 1, &a);
	reset(&a);
	RUN(third_party, 1, 1, &a);
	reset(&a);
	a.rounds = 100;
	RUN(flood, 2, 128, &a);
	CHECK_OK(gdr_barrier_all());
	multi_shared_free(a.report);
	return multi_end("order");
}
