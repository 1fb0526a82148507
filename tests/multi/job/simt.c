/* SPDX-License-Identifier: BSD-3-Clause */
/* Who a thread of a kernel is, and how the threads of a block and of a warp meet. */
#include "tests/multi/multi.h"

#define THREADS 64u
#define BLOCKS 3u
#define WARP 0xffffffffu
#define LIMIT_NS 2000000000u

struct simt {
	uint32_t *seen; /* [BLOCKS] */
	struct multi_report *report;
};

GDR_DEVICE void shuffles(struct multi_report *r)
{
	uint32_t lane = gdr_thread_id() % 32, from = (lane + 5) % 32;
	uint64_t wide = (uint64_t)(lane + 1) << 40 | lane;

	EXPECT_EQ(r, gdr_lane_id(), lane);
	EXPECT_EQ(r, gdr_shfl_u32(WARP, lane * 3 + 1, from), from * 3 + 1);
	EXPECT_EQ(r, gdr_shfl_u64(WARP, wide, from), (uint64_t)(from + 1) << 40 | from);
	EXPECT_EQ(r, gdr_ballot(WARP, (lane & 3) == 1), 0x22222222u);
}

GDR_DEVICE void meetings(struct multi_report *r)
{
	uint32_t *mine = (uint32_t *)gdr_shared(), t = gdr_thread_id();
	uint32_t in_warp = t / 32 * 32 + (t + 1) % 32, other = (t + 33) % THREADS;

	EXPECT_EQ(r, mine != NULL, 1);
	if (!mine)
		return;
	mine[t] = 1000 + t;
	gdr_sync_warp(WARP);
	EXPECT_EQ(r, mine[in_warp], 1000 + in_warp);
	gdr_sync_block();
	mine[t] = 2000 + t;
	gdr_sync_block();
	EXPECT_EQ(r, mine[other], 2000 + other);
	gdr_sync_block();
}

/* One thread waits for another of its block: a pause lets that run. */
GDR_DEVICE void waiting(struct multi_report *r)
{
	uint32_t *flag = (uint32_t *)gdr_shared();
	uint64_t start = gdr_clock_ns();
	unsigned t = gdr_thread_id(), round = 0;

	EXPECT_EQ(r, start != 0, 1);
	if (!flag)
		return;
	if (t == 0)
		gdri_st_relaxed_gpu_u32(flag, 0);
	gdr_sync_block();
	if (t == 0)
		while (!gdri_ld_relaxed_gpu_u32(flag) && gdr_clock_ns() - start < LIMIT_NS)
			gdr_pause(round++);
	else if (t == THREADS - 1)
		gdri_st_relaxed_gpu_u32(flag, 1);
	if (t == 0)
		EXPECT_EQ(r, gdri_ld_relaxed_gpu_u32(flag), 1);
}

GDR_KERNEL(simt_kernel, struct simt, a)
{
	EXPECT_EQ(a.report, gdr_block_size(), THREADS);
	EXPECT_EQ(a.report, gdr_grid_size(), BLOCKS);
	shuffles(a.report);
	meetings(a.report);
	waiting(a.report);
	if (gdr_thread_id() == THREADS - 1)
		a.seen[gdr_block_id()] = gdr_block_id() + 1;
}

int main(void)
{
	struct simt a;

	multi_begin();
	a.report = multi_report_new();
	a.seen = (uint32_t *)multi_shared_new(BLOCKS * sizeof(*a.seen));
	RUN(simt_kernel, BLOCKS, THREADS, &a);
	for (unsigned b = 0; b < BLOCKS; b++)
		CHECK_EQ(a.seen[b], b + 1);
	multi_shared_free(a.seen);
	multi_shared_free(a.report);
	return multi_end("simt");
}
