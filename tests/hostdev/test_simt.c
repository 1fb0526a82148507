/* SPDX-License-Identifier: BSD-3-Clause */
/* How the threads of a block meet: in the fixed order of the scheduler and,
 * for assumptions about it, in random orders. */
#include "tests/hostdev/test.h"

#define DEFAULT NULL

/* Runs once in order and then under a few seeds. */
#ifdef GDRI_HD_TSAN
#define SEEDS 2 /* it takes a while to make each fiber a thread */
#define LARGEST 256u
#else
#define SEEDS 4
#define LARGEST GDR_MAX_BLOCK
#endif
static void for_seeds(void (*body)(void))
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		gdri_hd_shake(seed);
		body();
	}
	gdri_hd_shake(0);
}

static void reduce_all_sizes(void)
{
	static const unsigned sizes[] = {1, 2, 3, 31, 32, 33, 63, 64, 100, 256, 1000, GDR_MAX_BLOCK};
	struct results r;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned n = sizes[i] < LARGEST ? sizes[i] : LARGEST;
		struct kernel_args a = args_for(&r, 0);

		assert_int_equal(run_reduce(3, n, 32 * sizeof(uint64_t), DEFAULT, &a), 0);
		assert_int_equal(gdr_stream_sync(DEFAULT), 0);
		for (unsigned b = 0; b < 3; b++)
			assert_int_equal(r.sum[b], (uint64_t)n * (n + 1) / 2);
	}
}

static void test_reduce(void **state)
{
	(void)state;
	for_seeds(reduce_all_sizes);
}

static void barriers_all_sizes(void)
{
	static const unsigned sizes[] = {1, 2, 7, 32, 65, GDR_MAX_BLOCK};
	struct results r;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct kernel_args a = args_for(&r, 20);
		unsigned n = sizes[i] < LARGEST ? sizes[i] : LARGEST;

		assert_int_equal(run_barriers(2, n, 4096, DEFAULT, &a), 0);
		assert_int_equal(gdr_stream_sync(DEFAULT), 0);
		assert_int_equal(r.errors, 0);
	}
}

static void test_barriers(void **state)
{
	(void)state;
	for_seeds(barriers_all_sizes);
}

static void branches(void)
{
	struct results r;
	struct kernel_args a = args_for(&r, 50);

	assert_int_equal(run_branches(2, 128, 512, DEFAULT, &a), 0);
	assert_int_equal(gdr_stream_sync(DEFAULT), 0);
	assert_int_equal(r.errors, 0);
}

static void test_branches(void **state)
{
	(void)state;
	for_seeds(branches);
}

static void groups(void)
{
	static const unsigned sizes[] = {1, 32, 77};
	struct results r;

	for (unsigned i = 0; i < 3; i++) {
		struct kernel_args a = args_for(&r, 100);
		uint64_t calls = 0;

		for (unsigned t = 0; t < sizes[i]; t++)
			calls += a.n + t % 32 % 5;
		assert_int_equal(run_groups(2, sizes[i], 0, DEFAULT, &a), 0);
		assert_int_equal(gdr_stream_sync(DEFAULT), 0);
		assert_int_equal(r.errors, 0);
		assert_int_equal(r.sum[0], 2 * calls);
	}
}

static void test_groups(void **state)
{
	(void)state;
	for_seeds(groups);
}

static void ballots(void)
{
	struct results r;
	struct kernel_args a = args_for(&r, 30);

	assert_int_equal(run_ballots(1, 64, 0, DEFAULT, &a), 0);
	assert_int_equal(gdr_stream_sync(DEFAULT), 0);
	assert_int_equal(r.errors, 0);
}

static void test_ballots(void **state)
{
	(void)state;
	for_seeds(ballots);
}

static void early(void)
{
	struct results r;
	struct kernel_args a = args_for(&r, 0);

	for (unsigned t = 0; t < 96; t++)
		a.n += t % 32 % 3 != 0 && t % 32 != 5;
	assert_int_equal(run_early(1, 96, 0, DEFAULT, &a), 0);
	assert_int_equal(gdr_stream_sync(DEFAULT), 0);
	assert_int_equal(r.errors, 0);
	assert_int_equal(r.out[0], a.n);
}

static void test_early_return(void **state)
{
	(void)state;
	for_seeds(early);
}

static void test_ping_pong(void **state)
{
	static const unsigned sizes[] = {2, 33, 256};
	struct results r;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct kernel_args a = args_for(&r, 500);

		assert_int_equal(run_ping_pong(1, sizes[i], 0, DEFAULT, &a), 0);
		assert_int_equal(gdr_stream_sync(DEFAULT), 0);
		assert_int_equal(r.out[0], 1000);
	}
}

static void test_shared_memory(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, GDR_MAX_SHARED);

	(void)state;
	assert_int_equal(run_shared_memory(4, 64, GDR_MAX_SHARED, DEFAULT, &a), 0);
	assert_int_equal(gdr_stream_sync(DEFAULT), 0);
	assert_int_equal(r.errors, 0);
}

static void test_deep_stack(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 0);

	(void)state;
	assert_int_equal(run_deep_stack(2, 100, 0, DEFAULT, &a), 0);
	assert_int_equal(gdr_stream_sync(DEFAULT), 0);
	assert_int_equal(r.errors, 0);
}

/* A host thread is thread 0 of a block of one. */
static void test_outside(void **state)
{
	uint64_t before = gdr_clock_ns();

	(void)state;
	assert_int_equal(gdr_thread_id(), 0);
	assert_int_equal(gdr_lane_id(), 0);
	assert_int_equal(gdr_block_size(), 1);
	assert_int_equal(gdr_block_id(), 0);
	assert_int_equal(gdr_grid_size(), 1);
	assert_null(gdr_shared());
	gdr_sync_block();
	gdr_sync_warp(1);
	assert_int_equal(gdr_shfl_u64(1, 0x123456789abcull, 0), 0x123456789abcull);
	assert_int_equal(gdr_ballot(1, 1), 1);
	assert_int_equal(gdr_ballot(1, 0), 0);
	assert_int_equal(gdri_group(42), 1);
	for (unsigned round = 0; round < 100; round++)
		gdr_pause(round);
	assert_true(gdr_clock_ns() > before);
}

static int end(void **state)
{
	(void)state;
	return gdri_hd_shutdown(10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outside),	    cmocka_unit_test(test_reduce),
		cmocka_unit_test(test_barriers),    cmocka_unit_test(test_branches),
		cmocka_unit_test(test_groups),	    cmocka_unit_test(test_ballots),
		cmocka_unit_test(test_early_return), cmocka_unit_test(test_ping_pong),
		cmocka_unit_test(test_shared_memory), cmocka_unit_test(test_deep_stack),
	};

	return cmocka_run_group_tests_name("hostdev.simt", tests, NULL, end);
}
