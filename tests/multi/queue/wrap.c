/* SPDX-License-Identifier: BSD-3-Clause */
/* More operations on one queue than its 16-bit counters hold: what a queue pair
 * reports modulo 2^16 must not be taken for an earlier or later operation. The last
 * puts, behind a fence, are what is found; atomics count exactly, reads see what was put before. */
#include "tests/multi/multi.h"

enum { THREADS = 64, DEPTH = 8, ROUNDS = 1200 }; /* puts: 64 * 1200 = 76800 > 2^16 */

struct wrap {
	uint64_t *data;	 /* [THREADS][DEPTH], of the previous PE */
	uint64_t *seen;	 /* [THREADS], read back: put once a quiet, or which put stays would be open */
	uint64_t *count; /* 0: fetch_add of one thread, 1: add of all */
	uint64_t *back;	 /* local: [THREADS] */
	int pe;
	struct multi_report *report;
};

GDRI_INLINE uint64_t value_of(int pe, unsigned t, uint64_t k)
{
	return (uint64_t)pe << 48 | (uint64_t)t << 32 | k;
}

/* One block: all of it goes through one queue. */
GDR_KERNEL(post, struct wrap, a)
{
	unsigned t = gdr_thread_id();
	uint64_t *mine = a.data + t * DEPTH;

	for (uint64_t k = 0; k < ROUNDS; k++) {
		uint64_t v = value_of(gdr_my_pe(), t, k);

		if (k == ROUNDS - DEPTH) /* what is looked at in the end is behind what it overwrites */
			EXPECT_OK(a.report, gdr_fence());
		EXPECT_OK(a.report, gdr_put_nbi(mine + k % DEPTH, &v, 8, a.pe));
		if (k % 16 == t % 16)
			EXPECT_OK(a.report, gdr_uint64_atomic_add(a.count + 1, k + 1, a.pe));
		if (t == 0) /* answers belong to their own question, all the way round */
			EXPECT_EQ(a.report, gdr_uint64_atomic_fetch_add(a.count, 1, a.pe), k);
		if (k % 64 == t) {
			EXPECT_OK(a.report, gdr_put_nbi(a.seen + t, &v, 8, a.pe));
			EXPECT_OK(a.report, gdr_quiet_pe(a.pe));
			EXPECT_OK(a.report, gdr_get(a.back + t, a.seen + t, 8, a.pe));
			EXPECT_EQ(a.report, a.back[t], v);
		}
	}
	gdr_sync_block();
	if (t == 0)
		EXPECT_OK(a.report, gdr_quiet());
}

static void verify(const struct wrap *a)
{
	int from = (multi_pe + multi_n - 1) % multi_n;
	uint64_t sum = 0;

	for (unsigned t = 0; t < THREADS; t++)
		for (uint64_t k = 0; k < ROUNDS; k++) {
			if (k >= ROUNDS - DEPTH)
				CHECK_EQ(multi_u64(a->data + t * DEPTH + k % DEPTH), value_of(from, t, k));
			if (k % 16 == t % 16)
				sum += k + 1;
		}
	CHECK_EQ(multi_u64(a->count), ROUNDS);
	CHECK_EQ(multi_u64(a->count + 1), sum);
}

int main(void)
{
	struct wrap a = {0};
	struct gdr_job_info info;

	CHECK(!setenv("GDR_CTX_QUEUES", "0", 1)); /* which would count below */
	multi_begin();
	CHECK_OK(gdr_query(&info));
	CHECK(info.n_nic == multi_n && (int)info.n_queues <= multi_n); /* one to each PE */
	a.report = multi_report_new();
	a.data = (uint64_t *)gdr_calloc(THREADS * DEPTH, 8);
	a.seen = (uint64_t *)gdr_calloc(THREADS, 8);
	a.count = (uint64_t *)gdr_calloc(2, 8);
	a.back = (uint64_t *)gdr_calloc(THREADS, 8);
	CHECK(a.data && a.seen && a.count && a.back);
	a.pe = (multi_pe + 1) % multi_n;
	RUN(post, 1, THREADS, &a);
	CHECK_OK(gdr_barrier_all());
	verify(&a);
	multi_shared_free(a.report);
	return multi_end("wrap");
}
