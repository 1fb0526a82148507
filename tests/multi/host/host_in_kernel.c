/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the host in a kernel of the host device, by many threads of a block at a time: those that wait for another
 * PE under a lock let the other threads of their block run, and are not kept by these. */
#include "tests/multi/multi.h"

#define THREADS 32u
#define BLOCKS 2u
#define WORDS 64u

struct args {
	uint64_t *from, *to; /* in the heap: [WORDS], and [BLOCKS * THREADS][WORDS] */
	void *objects[THREADS];
	gdr_team_t teams[THREADS];
	struct multi_report *report;
};

static unsigned place(void)
{
	return gdr_block_id() * THREADS + gdr_thread_id();
}

/* The stack is memory that no queue knows. */
GDR_KERNEL(transfers, struct args, a)
{
	int pe = (gdr_my_pe() + 1) % gdr_n_pes();
	uint64_t words[WORDS];

	EXPECT_OK(a.report, gdr_host_get(words, a.from, sizeof(words), pe));
	for (unsigned i = 0; i < WORDS; i++) {
		EXPECT_EQ(a.report, words[i], (uint64_t)pe << 32 | i);
		words[i] += place() << 16;
	}
	EXPECT_OK(a.report, gdr_host_put(a.to + place() * WORDS, words, sizeof(words), pe));
	EXPECT_OK(a.report, gdr_host_quiet());
}

/* All PEs make as many equal calls, in whichever order their threads do. */
GDR_KERNEL(makes, struct args *, a)
{
	gdr_ctx_t ctx;

	a->objects[gdr_thread_id()] = gdr_calloc(1, 64);
	EXPECT_EQ(a->report, a->objects[gdr_thread_id()] != NULL, 1);
	EXPECT_OK(a->report, gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, gdr_n_pes(), NULL, 0,
						    &a->teams[gdr_thread_id()]));
	EXPECT_OK(a->report, gdr_ctx_create(0, &ctx));
	EXPECT_OK(a->report, gdr_ctx_destroy(ctx));
}

static void check_words(const struct args *a, unsigned threads)
{
	for (unsigned b = 0; b < BLOCKS; b++)
		for (unsigned t = 0; t < threads; t++)
			for (unsigned i = 0; i < WORDS; i++)
				CHECK_EQ(a->to[(b * THREADS + t) * WORDS + i],
					 (uint64_t)multi_pe << 32 | (b * THREADS + t) << 16 | i);
}

static int by_address(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)*(void *const *)a, y = (uintptr_t)*(void *const *)b;

	return (x > y) - (x < y);
}

static int by_number(const void *a, const void *b)
{
	return *(const gdr_team_t *)a - *(const gdr_team_t *)b;
}

static void run(struct args *a, unsigned threads)
{
	struct args *p = a;

	memset(a->to, 0, BLOCKS * THREADS * WORDS * sizeof(*a->to));
	CHECK_OK(gdr_barrier_all());
	RUN(transfers, BLOCKS, threads, a);
	CHECK_OK(gdr_barrier_all());
	check_words(a, threads);

	CHECK_OK(gdr_launch(makes, 1, threads, 0, NULL, &p));
	CHECK_OK(gdr_stream_sync(NULL));
	if (a->report->line)
		multi_fail(__FILE__, a->report->line, "in kernel: %lld, not %lld", a->report->got, a->report->want);
	qsort(a->objects, threads, sizeof(a->objects[0]), by_address);
	qsort(a->teams, threads, sizeof(a->teams[0]), by_number);
	for (unsigned i = 0; i < threads; i++) {
		CHECK_OK(gdr_free(a->objects[i]));
		CHECK_OK(gdr_team_destroy(a->teams[i]));
	}
}

int main(void)
{
	static struct args a;

	multi_begin();
	a.from = gdr_malloc(WORDS * sizeof(*a.from));
	a.to = gdr_malloc(BLOCKS * THREADS * WORDS * sizeof(*a.to));
	a.report = multi_report_new();
	CHECK(a.from && a.to);
	for (unsigned i = 0; i < WORDS; i++)
		a.from[i] = (uint64_t)multi_pe << 32 | i;
	run(&a, 2);
	run(&a, THREADS);
	multi_shared_free(a.report);
	CHECK_OK(gdr_free(a.to));
	CHECK_OK(gdr_free(a.from));
	return multi_end("host_in_kernel");
}
