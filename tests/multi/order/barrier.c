/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers hold back: PEs arrive at random times, nobody leaves before the last
 * has entered, and what was put before is there after. Device forms and host. */
#include "tests/multi/multi.h"

struct barrier {
	uint64_t *entered; /* [n_pes]: round that PE i has entered */
	uint64_t *turn;    /* of this PE's blocks */
	int form, rounds;
	struct multi_report *report;
};

enum { THREAD, WARP, BLOCK, SYNC, SYNC_WARP, SYNC_BLOCK, FORMS };

GDR_DEVICE int enter(int form)
{
	switch (form) {
	case THREAD:
		return gdr_barrier_all();
	case WARP:
		return gdr_barrier_all_warp();
	case BLOCK:
		return gdr_barrier_all_block();
	case SYNC:
		return gdr_sync_all();
	case SYNC_WARP:
		return gdr_sync_all_warp();
	default:
		return gdr_sync_all_block();
	}
}

GDR_KERNEL(skewed, struct barrier, a)
{
	unsigned t = gdr_thread_id();
	int me = gdr_my_pe(), n = gdr_n_pes();
	unsigned callers = a.form % 3 == THREAD ? 1 : a.form % 3 == WARP ? 32 : gdr_block_size();

	for (uint64_t k = 1; k <= (uint64_t)a.rounds; k++) {
		uint64_t late = multi_hash(k * 64 + (uint64_t)me) % 300000;

		if (t == 0 && (multi_hash(k) % (uint64_t)n) == (uint64_t)me) {
			uint64_t until = gdr_clock_ns() + late;

			for (unsigned i = 0; gdr_clock_ns() < until; i++)
				gdr_pause(i);
		}
		if (t == 0) {
			for (int pe = 0; pe < n; pe++)
				EXPECT_OK(a.report, gdr_uint64_p(a.entered + me, k, pe));
			if (a.form >= SYNC) /* sync does not complete the own operations */
				EXPECT_OK(a.report, gdr_quiet());
		}
		gdr_sync_block();
		if (t < callers)
			EXPECT_OK(a.report, enter(a.form));
		gdr_sync_block();
		for (int pe = (int)t; pe < n; pe += (int)gdr_block_size())
			EXPECT_EQ(a.report,
				  gdri_ld_relaxed_sys_u64(a.entered + pe) >= k, 1);
		gdr_sync_block();
	}
}

/* The blocks of a PE in turn, each of which posts to queues of its own: what one told is not
 * overtaken by what the next one tells. */
GDR_KERNEL(in_turn, struct barrier, a)
{
	unsigned n = gdr_grid_size();
	uint64_t k;

	for (k = gdr_block_id(); k < (uint64_t)a.rounds; k += n) {
		/* acquire; pairs with the release of the block before */
		for (unsigned i = 0; gdri_ld_acquire_gpu_u64(a.turn) != k; i++)
			gdr_pause(i);
		EXPECT_OK(a.report, gdr_sync_all());
		gdri_st_release_gpu_u64(a.turn, k + 1);
	}
}

/* The host's barrier completes puts of host and device. */
static void host_barrier(struct barrier *a)
{
	for (uint64_t k = 1; k <= 50; k++) {
		uint64_t v = 1000 + k;

		multi_sleep_us((unsigned)(multi_hash(k * 64 + (uint64_t)multi_pe) % 2000));
		for (int pe = 0; pe < multi_n; pe++)
			CHECK_OK(gdr_host_put_nbi(a->entered + multi_pe, &v, 8, pe));
		CHECK_OK(gdr_barrier_all());
		for (int pe = 0; pe < multi_n; pe++)
			CHECK(multi_u64(a->entered + pe) == v);
		CHECK_OK(gdr_barrier_all()); /* nobody puts the next value before all have looked */
	}
}

int main(void)
{
	struct barrier a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.entered = (uint64_t *)gdr_calloc((size_t)multi_n, 8);
	CHECK(a.entered);
	a.rounds = 30;
	for (a.form = 0; a.form < FORMS; a.form++) {
		multi_fill(a.entered, 0, (size_t)multi_n * 8);
		CHECK_OK(gdr_barrier_all());
		RUN(skewed, 1, 64, &a);
		CHECK_OK(gdr_barrier_all());
	}
	a.rounds = 200;
	a.turn = a.entered;
	multi_fill(a.turn, 0, 8);
	CHECK_OK(gdr_barrier_all());
	RUN(in_turn, 4, 1, &a);
	CHECK_OK(gdr_barrier_all()); /* who is ahead writes where the turn stood */
	host_barrier(&a);
	multi_shared_free(a.report);
	return multi_end("barrier");
}
