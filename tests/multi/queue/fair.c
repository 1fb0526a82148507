/* SPDX-License-Identifier: BSD-3-Clause */
/* Many threads post beside each other into one queue that is full, since the NIC is slow: by one lane, and the
 * first block as a warp. Nobody's wait ends at its limit, and all get on alike. Judged by counts, not by time: how
 * often each one posted when the first one is through, and how many posts of all came before one that waited.
 * usage: fair BLOCKS */
#include "tests/multi/multi.h"

/* By the gate one that waits is passed twice by each other one; and in a turn so many are out of turn as a quarter of
 * the queue has blocks. */
enum { LANES = 32, GOAL = 20, MOST = 4 };

struct fair {
	uint64_t *words;      /* of the next PE */
	uint32_t *posts;      /* [blocks * LANES] since all were there */
	uint64_t *longest;    /* [blocks * LANES] posts of all while one of its own waited */
	uint32_t *there;      /* threads that have begun */
	uint64_t *all;	      /* posts of all threads */
	uint32_t *first;      /* somebody is through */
	int pe;
	struct multi_report *report;
};

/* Counts for the checks, in no order to anything. */
GDRI_INLINE int fair_go_on(const struct fair *a)
{
	return !gdri_ld_relaxed_gpu_u32(a->first) && !gdri_ld_relaxed_gpu_u32((const uint32_t *)&a->report->line);
}

GDR_KERNEL(post, struct fair, a)
{
	unsigned t = gdr_block_id() * gdr_block_size() + gdr_thread_id();
	uint32_t n = gdr_grid_size() * gdr_block_size();
	uint64_t v = t, before, since;
	int counts;

	gdri_add_u32(a.there, 1);
	while (fair_go_on(&a)) {
		counts = gdri_ld_relaxed_gpu_u32(a.there) == n;
		if (!gdr_block_id())
			gdr_sync_warp(0xffffffffu);
		before = gdri_ld_relaxed_gpu_u64(a.all);
		EXPECT_OK(a.report, gdr_put_nbi(a.words + t, &v, 8, a.pe));
		since = gdri_add_u64(a.all, 1) - before;
		if (counts && since > a.longest[t])
			a.longest[t] = since;
		if (counts && ++a.posts[t] == GOAL)
			gdri_st_relaxed_gpu_u32(a.first, 1);
	}
}

static void check(const struct fair *a, unsigned n)
{
	uint32_t least = GOAL;
	uint64_t longest = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (a->posts[i] < least)
			least = a->posts[i];
		if (a->longest[i] > longest)
			longest = a->longest[i];
	}
	printf("PE %d: %u threads: least %u of %d posts; one waited for %.1f posts of each\n", multi_pe, n, least, GOAL,
	       (double)longest / n);
	CHECK(least * MOST >= GOAL);
	CHECK(longest <= (uint64_t)MOST * n);
}

int main(int argc, char **argv)
{
	unsigned blocks = argc > 1 ? (unsigned)atoi(argv[1]) : 8, n = blocks * LANES;
	struct fair a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.words = (uint64_t *)gdr_calloc(n, 8);
	a.posts = (uint32_t *)multi_shared_new(n * sizeof(*a.posts));
	a.longest = (uint64_t *)multi_shared_new(n * sizeof(*a.longest));
	a.there = (uint32_t *)multi_shared_new(64);
	a.all = (uint64_t *)multi_shared_new(64);
	a.first = (uint32_t *)multi_shared_new(64);
	CHECK(a.words && a.posts && a.longest && a.there && a.all && a.first);
	a.pe = (multi_pe + 1) % multi_n;
	RUN(post, blocks, LANES, &a);
	CHECK_OK(gdr_barrier_all());
	check(&a, n);
	multi_shared_free(a.first);
	multi_shared_free(a.all);
	multi_shared_free(a.there);
	multi_shared_free(a.longest);
	multi_shared_free(a.posts);
	gdr_free(a.words);
	multi_shared_free(a.report);
	return multi_end("fair");
}
