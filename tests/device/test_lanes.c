/* SPDX-License-Identifier: BSD-3-Clause */
/* Warps and blocks: kernels of the host device post to the NIC in memory. All
 * lanes to one PE, to different PEs, from both sides of a branch, with two-block
 * WQEs that outgrow depth / 4, with slow lanes, and the collective scopes. The
 * host device also runs its threads in random order (gdri_hd_shake). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

struct gdri_dev *gdri_dev_state;

int gdr_barrier_all(void)
{
	return gdri_thread_barrier_all();
}

struct args {
	struct fake *f;
	uint64_t *words; /* symmetric: one for each thread of the grid */
	uint64_t *count;
	int *bad; /* calls that did not return 0 */
	int rounds;
};

/* Of the library, which is not linked. */
void gdri_hd_say_errors(void)
{
}

int gdri_hd_no_library(const char *call)
{
	(void)call;
	return -GDR_ESTATE;
}

static unsigned self(void)
{
	return gdr_block_id() * gdr_block_size() + gdr_thread_id();
}

static void note(const struct args *a, int ret)
{
	if (ret)
		__atomic_fetch_add(a->bad, 1, __ATOMIC_RELAXED);
}

GDR_KERNEL(same_pe, struct args, a)
{
	int i;

	for (i = 0; i < a.rounds; i++)
		note(&a, gdr_uint64_p(&a.words[self()], self() + (uint64_t)i, 1));
	note(&a, gdr_quiet());
}

/* Whoever rang for the lane, its quiet covers what it put. */
GDR_KERNEL(own_quiet, struct args, a)
{
	uint64_t *there = fake_at(a.f, 1, 4096 + 8ull * self()), v;
	int i;

	for (i = 0; i < a.rounds; i++) {
		v = self() + (uint64_t)i;
		note(&a, gdr_uint64_p(&a.words[self()], v, 1));
		note(&a, gdr_quiet());
		note(&a, gdri_ld_relaxed_sys_u64(there) != v);
	}
}

GDR_KERNEL(different_pes, struct args, a)
{
	int i, pe = (int)(self() % 3);

	for (i = 0; i < a.rounds; i++)
		note(&a, gdr_uint64_p(&a.words[self()], self() + (uint64_t)i, pe));
	note(&a, gdr_quiet());
}

GDR_KERNEL(branches, struct args, a)
{
	int i;

	for (i = 0; i < a.rounds; i++) {
		if (self() % 3 == 0)
			note(&a, gdr_uint64_p(&a.words[self()], self() + (uint64_t)i, 1));
		else if (self() % 3 == 1)
			note(&a, gdr_uint64_atomic_set(&a.words[self()], self() + (uint64_t)i, 1));
		else
			note(&a, gdr_put_signal_nbi(&a.words[self()], &a.words[self()], 0,
						    &a.words[self()], self() + (uint64_t)i,
						    GDR_SIGNAL_SET, 1));
		if (self() % 7 == (unsigned)i % 7)
			gdr_pause(0);
		note(&a, gdr_uint64_atomic_fetch(a.count, 1) != 0);
	}
	note(&a, gdr_quiet());
}

GDR_KERNEL(fetch_adds, struct args, a)
{
	int i;

	for (i = 0; i < a.rounds; i++) {
		gdr_uint64_atomic_fetch_add(a.count, 1, 1);
		note(&a, gdr_uint64_atomic_set(&a.words[self()], self() + (uint64_t)i, 1));
	}
	note(&a, gdr_quiet());
	note(&a, gdr_status());
}

/* Atomic, fence, flag: who sees the flag sees the atomic. */
GDR_KERNEL(fenced, struct args, a)
{
	uint64_t *data = a.words + self(), *flag = data + 4096;
	uint64_t *there = fake_at(a.f, 1, 4096 + 8ull * self()), k;
	unsigned round;

	for (k = 1; k <= (uint64_t)a.rounds; k++) {
		note(&a, gdr_uint64_atomic_add(data, 1, 1));
		if (self() % 3 == (unsigned)k % 3)
			gdr_pause(0);
		note(&a, gdr_fence());
		note(&a, gdr_uint64_p(flag, k, 1));
		for (round = 0; gdri_ld_acquire_sys_u64(there + 4096) != k; round++)
			gdr_pause(round);
		note(&a, gdri_ld_relaxed_sys_u64(there) != k);
	}
	note(&a, gdr_uint64_p(data, self() + (uint64_t)a.rounds - 1, 1));
	note(&a, gdr_quiet());
}

static void run(const struct fake_options *opt, struct args *(*kernel)(const struct args *), unsigned grid,
		unsigned block, int rounds, int check_pe)
{
	struct fake *f = fake_start(opt);
	struct args a;
	int bad = 0;
	unsigned i, pe;

	a.f = f;
	a.words = fake_sym(f, 4096);
	a.count = fake_sym(f, 0);
	a.bad = &bad;
	a.rounds = rounds;
	assert_int_equal(gdr_launch(kernel, grid, block, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(bad, 0);
	for (i = 0; i < grid * block; i++) {
		pe = check_pe < 0 ? i % 3 : (unsigned)check_pe;
		assert_int_equal(*(uint64_t *)fake_at(f, (int)pe, 4096 + 8ull * i),
				 i + (unsigned)rounds - 1);
	}
	if (kernel == fetch_adds)
		assert_int_equal(*(uint64_t *)fake_at(f, 1, 0),
				 (uint64_t)grid * block * (unsigned)rounds);
	assert_int_equal(f->n_bad, 0);
	assert_int_equal(f->dev->n_errors, 0);
	fake_stop(f);
}

static void all(const struct fake_options *opt)
{
	run(opt, same_pe, 2, 64, 50, 1);
	run(opt, same_pe, 1, 45, 50, 1);
	run(opt, own_quiet, 2, 64, 50, 1);
	run(opt, different_pes, 2, 64, 50, -1);
	run(opt, branches, 2, 64, 10, 1);
	run(opt, fetch_adds, 2, 64, 10, 1);
}

static void test_lanes(void **state)
{
	struct fake_options opt = {.n_pes = 3, .n_slots = 2, .depth = 128};

	(void)state;
	all(&opt);
	opt.ring = 1;
	opt.n_slots = 1;
	all(&opt);
}

static void test_shaken(void **state)
{
	struct fake_options opt = {.n_pes = 3, .n_slots = 1, .depth = 128, .slow_us = 20};
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 3; seed++) {
		gdri_hd_shake(seed);
		all(&opt);
	}
	gdri_hd_shake(0);
}

static void test_fenced(void **state)
{
	const struct fake_options opt = {.n_pes = 3, .n_slots = 1, .depth = 128, .ring = 1,
					 .late_atomics = 1};

	(void)state;
	run(&opt, fenced, 2, 40, 20, 1);
	gdri_hd_shake(7);
	run(&opt, fenced, 2, 40, 20, 1);
	gdri_hd_shake(0);
}

/* A warp whose lanes arrive together rings once. */
static void test_one_doorbell(void **state)
{
	const struct fake_options opt = {.n_pes = 3, .n_slots = 1, .depth = 128};
	struct fake *f = fake_start(&opt);
	struct args a;
	int bad = 0;

	(void)state;
	a.f = f;
	a.words = fake_sym(f, 4096);
	a.count = fake_sym(f, 0);
	a.bad = &bad;
	a.rounds = 1;
	assert_int_equal(gdr_launch(same_pe, 1, 32, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(bad, 0);
	assert_int_equal(f->n_rings, 1);
	assert_int_equal(f->dev->qps[1].rsvd, 32);
	fake_stop(f);
}

/* ---- collective scopes ---- */

GDR_KERNEL(scopes, struct args, a)
{
	uint8_t *src = (uint8_t *)a.words, *dst = src + 65536;
	unsigned warp = gdr_thread_id() / 32;

	note(&a, gdr_put_block(dst, src, 10000, 1));
	note(&a, gdr_put_nbi_warp(dst + 20000 + warp * 1000, src, 999, 1));
	note(&a, gdr_put_signal_block(dst + 40000, src, 5000, a.count, 1, GDR_SIGNAL_ADD, 1));
	note(&a, gdr_quiet());
	gdr_sync_block();
	note(&a, gdr_get_block(dst + 50000, src, 3000, 2));
	note(&a, gdr_get_warp(dst + 60000 + warp * 1000, src, 999, 2));
	/* an error is everybody's */
	note(&a, gdr_put_signal_block(dst, src, 64, a.count, 1, 99, 1) != -GDR_EINVAL);
}

static void check_scopes(int mapped)
{
	struct fake_options opt = {.n_pes = 3, .n_slots = 1, .depth = 128};
	struct fake *f;
	struct args a;
	int bad = 0;
	uint8_t *src;
	unsigned i;

	opt.mapped = mapped;
	f = fake_start(&opt);
	a.f = f;
	a.words = fake_sym(f, 4096);
	a.count = fake_sym(f, 0);
	a.bad = &bad;
	a.rounds = 1;
	src = (uint8_t *)a.words;
	for (i = 0; i < 10000; i++) {
		src[i] = (uint8_t)(i * 7);
		((uint8_t *)fake_at(f, 2, 4096))[i] = (uint8_t)(i * 11);
	}
	assert_int_equal(gdr_launch(scopes, 1, 80, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(bad, 0);
	assert_memory_equal(fake_at(f, 1, 4096 + 65536), src, 10000);
	assert_memory_equal(fake_at(f, 1, 4096 + 65536 + 40000), src, 5000);
	assert_memory_equal(src + 65536 + 50000, fake_at(f, 2, 4096), 3000);
	for (i = 0; i < 3; i++) {
		assert_memory_equal(fake_at(f, 1, 4096 + 65536 + 20000 + i * 1000), src, 999);
		assert_memory_equal(src + 65536 + 60000 + i * 1000, fake_at(f, 2, 4096), 999);
	}
	assert_int_equal(*(uint64_t *)fake_at(f, 1, 0), 1);
	fake_stop(f);
}

static void test_scopes(void **state)
{
	(void)state;
	check_scopes(0);
	check_scopes(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_one_doorbell),
		cmocka_unit_test(test_fenced),
		cmocka_unit_test(test_shaken),
		cmocka_unit_test(test_scopes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
