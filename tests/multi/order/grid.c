/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of a grid: what every thread stored, and what one block has from another PE, all threads see behind it;
 * launches that do not have the blocks run at once are refused; a block that stays away costs no more than the limit,
 * and the next launch nothing. Each block has its own shared memory, as much as a launch without the barrier may
 * have. */
#include "tests/multi/multi.h"

enum { BLOCKS = 3, THREADS = 40, ALL = BLOCKS * THREADS, ROUNDS = 50, SHARED = 64 * 1024 };

struct grid {
	uint32_t *stored; /* [ALL], plain */
	uint64_t *message, *arrived; /* from the PE before */
	int *status; /* [ALL] */
	int away; /* this block returns at once */
	struct multi_report *report;
};

GDR_DEVICE unsigned thread_of_all(void)
{
	return gdr_block_id() * gdr_block_size() + gdr_thread_id();
}

/* By one thread: a word to the next PE, and that of the one before. */
GDR_DEVICE void exchange(const struct grid *a, uint64_t round)
{
	int me = gdr_my_pe(), n = gdr_n_pes();
	uint64_t value = round * 100 + (uint64_t)me;

	EXPECT_OK(a->report, gdr_put_signal(a->message, &value, 8, a->arrived, round, GDR_SIGNAL_SET, (me + 1) % n));
	EXPECT_OK(a->report, gdr_signal_wait_until_from(a->arrived, GDR_CMP_GE, round, (me + n - 1) % n));
}

GDR_KERNEL(rounds, struct grid, a)
{
	uint32_t t = thread_of_all(), prev = (uint32_t)((gdr_my_pe() + gdr_n_pes() - 1) % gdr_n_pes());

	for (uint32_t k = 1; k <= ROUNDS; k++) {
		uint32_t other = (t + k * 17) % ALL;

		a.stored[t] = k * 1000 + t;
		if (gdr_block_id() == k % BLOCKS && gdr_thread_id() == k % THREADS)
			exchange(&a, k);
		EXPECT_OK(a.report, gdr_grid_sync());
		EXPECT_EQ(a.report, a.stored[other], k * 1000 + other);
		EXPECT_EQ(a.report, *a.message, k * 100 + prev);
		EXPECT_OK(a.report, gdr_grid_sync());
		if (t == 0) /* the neighbour may put the next one */
			EXPECT_OK(a.report, gdr_sync_all());
		EXPECT_OK(a.report, gdr_grid_sync());
	}
	if (t == 0)
		EXPECT_OK(a.report, gdr_quiet());
}

/* A GPU has to be asked for more than 48 KiB. */
GDR_KERNEL(shares, struct grid, a)
{
	uint32_t *last = (uint32_t *)gdr_shared() + SHARED / sizeof(uint32_t) - THREADS, own = gdr_thread_id();
	uint32_t other = (own + 1) % THREADS;

	last[own] = thread_of_all();
	EXPECT_OK(a.report, gdr_grid_sync());
	EXPECT_EQ(a.report, last[other], gdr_block_id() * THREADS + other);
}

GDR_KERNEL(once, struct grid, a)
{
	if (a.away == (int)gdr_block_id())
		return;
	a.status[thread_of_all()] = gdr_grid_sync();
}

/* Block `away` comes when the others have given up: for the next barrier, which finds none of the first one. */
GDR_KERNEL(late, struct grid, a)
{
	uint32_t *gone = a.stored;
	uint64_t start = gdr_clock_ns();

	if (a.away != (int)gdr_block_id())
		EXPECT_EQ(a.report, gdr_grid_sync(), -GDR_ETIMEOUT);
	if (gdr_thread_id() == 0 && a.away != (int)gdr_block_id())
		gdri_add_u32(gone, 1); /* alone: pairs with nothing */
	for (unsigned round = 0; gdri_ld_relaxed_gpu_u32(gone) < BLOCKS - 1; round++) {
		gdr_pause(round);
		if (gdr_clock_ns() - start > 60000000000ull)
			return;
	}
	EXPECT_OK(a.report, gdr_grid_sync());
}

/* Not by all threads of block 1: the checked build of the host device sees it. */
GDR_KERNEL(some, struct grid, a)
{
	if (gdr_block_id() == 1 && gdr_thread_id() < 2)
		return;
	a.status[thread_of_all()] = gdr_grid_sync();
}

static void check_collective(struct grid *a)
{
	CHECK_OK(gdr_stream_sync(NULL));
	if (a->report->line)
		multi_fail(__FILE__, a->report->line, "in kernel: %lld, not %lld", a->report->got, a->report->want);
}

/* A collective launch of `once`; all threads but those of block `away` have `status`. */
static void expect_once(struct grid *a, int away, int status)
{
	int *got;

	a->away = away;
	multi_fill(a->status, 0x11, ALL * sizeof(int));
	CHECK_OK(gdr_collective_launch(once, BLOCKS, THREADS, 0, NULL, a));
	CHECK_OK(gdr_stream_sync(NULL));
	got = (int *)multi_copy(a->status, ALL * sizeof(int));
	for (int t = 0; t < ALL; t++)
		CHECK_EQ(got[t], t / THREADS == away ? 0x11111111 : status);
	free(got);
}

static int refused(struct grid *a)
{
	struct gdr_error e;
	int *got;

	a->away = -1;
	RUN(once, 1, THREADS, a); /* one block meets itself */
	CHECK_EQ(gdr_errors(NULL, 0), 0);
	RUN(once, BLOCKS, THREADS, a);
	got = (int *)multi_copy(a->status, ALL * sizeof(int));
	for (int t = 0; t < ALL; t++)
		CHECK_EQ(got[t], -GDR_EINVAL);
	free(got);
	CHECK_EQ(gdr_errors(&e, 1), 1);
	CHECK(strstr(e.text, "gdr_grid_sync refused") && strstr(e.text, "3 blocks") &&
	      strstr(e.text, "gdr_collective_launch"));
#ifdef GDR_CHECKED
	CHECK(strstr(e.text, "grid.c:"));
#endif
	expect_once(a, -1, 0);
	return gdr_finalize();
}

static void few_threads(struct grid *a)
{
#if defined(GDR_CHECKED) && !defined(__CUDACC__)
	static struct gdr_error e[64];
	int n = gdr_errors(NULL, 0), *got;

	multi_fill(a->status, 0x11, ALL * sizeof(int));
	CHECK_OK(gdr_collective_launch(some, BLOCKS, THREADS, 0, NULL, a));
	CHECK_OK(gdr_stream_sync(NULL));
	got = (int *)multi_copy(a->status, ALL * sizeof(int));
	for (int t = 0; t < ALL; t++)
		CHECK_EQ(got[t], t == THREADS || t == THREADS + 1 ? 0x11111111
				 : t / THREADS == 1 ? -GDR_EINVAL : -GDR_ETIMEOUT);
	free(got);
	CHECK(gdr_errors(e, 64) > n && n < 64);
	CHECK(strstr(e[n].text, "gdr_grid_sync refused") && strstr(e[n].text, "38 of the 40 threads of block 1"));
	CHECK(strstr(e[n].text, "grid.c:"));
	expect_once(a, -1, 0); /* and the next one is not the worse for it */
#else
	(void)a;
#endif
}

/* The first block counts otherwise than the others. */
static int away(struct grid *a)
{
	struct gdr_error e;

	for (int block = 0; block < BLOCKS; block += BLOCKS - 1) {
		expect_once(a, block, -GDR_ETIMEOUT);
		expect_once(a, -1, 0);
		a->away = block;
		multi_fill(a->stored, 0, sizeof(uint32_t));
		CHECK_OK(gdr_collective_launch(late, BLOCKS, THREADS, 0, NULL, a));
		check_collective(a);
	}
	CHECK(gdr_errors(&e, 1) > 1);
	CHECK(strstr(e.text, "gdr_grid_sync") && strstr(e.text, "do all threads of all blocks make this call?"));
	CHECK(strstr(e.text, "1 block of this PE's grid did not come: block 0") && !strstr(e.text, "that PE"));
	few_threads(a);
	CHECK_EQ(gdr_finalize(), -GDR_ETIMEOUT);
	return 0;
}

int main(int argc, char **argv)
{
	struct grid a;
	int most = 0;

	multi_begin();
	memset(&a, 0, sizeof(a));
	a.report = multi_report_new();
	a.stored = (uint32_t *)gdr_calloc(ALL, sizeof(uint32_t));
	a.message = (uint64_t *)gdr_calloc(2, 8);
	a.status = (int *)gdr_calloc(ALL, sizeof(int));
	CHECK(a.stored && a.message && a.status);
	a.arrived = a.message + 1;
	if (argc == 2)
		return strcmp(argv[1], "refused") == 0 ? refused(&a) : away(&a);
	CHECK_OK(gdr_collective_launch(rounds, BLOCKS, THREADS, 0, NULL, &a));
	check_collective(&a);
	CHECK_OK(gdr_collective_launch_query_gridsize(shares, THREADS, SHARED, &most));
	CHECK(most >= BLOCKS);
	CHECK_OK(gdr_collective_launch(shares, BLOCKS, THREADS, SHARED, NULL, &a));
	check_collective(&a);
	expect_once(&a, -1, 0);
	CHECK_OK(gdr_barrier_all());
	multi_shared_free(a.report);
	return multi_end("grid");
}
