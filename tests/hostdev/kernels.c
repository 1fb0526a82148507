/* SPDX-License-Identifier: BSD-3-Clause */
/* See kernels.h. Wrong values are counted and not asserted: a kernel cannot
 * leave its test. */
#include "tests/hostdev/kernels.h"

#include <gdr/impl/arch/arch.h>

#define FULL 0xffffffffu

GDR_DEVICE void check(const struct kernel_args *a, int good)
{
	if (!good)
		gdri_add_u32(a->errors, 1);
}

GDR_DEVICE uint32_t warp_size_here(void)
{
	uint32_t first = gdr_thread_id() & ~31u, left = gdr_block_size() - first;

	return left < 32 ? left : 32;
}

GDR_DEVICE uint64_t warp_sum(uint64_t v)
{
	uint32_t width = warp_size_here(), mask = width == 32 ? FULL : (1u << width) - 1;

	for (uint32_t step = 16; step; step /= 2) {
		uint32_t from = gdr_lane_id() + step;
		uint64_t other = gdr_shfl_u64(mask, v, from & 31);

		if (from < width)
			v += other;
	}
	return v;
}

GDR_KERNEL(reduce, struct kernel_args, a)
{
	uint64_t *parts = (uint64_t *)gdr_shared();
	uint32_t id = gdr_thread_id();
	uint64_t sum = warp_sum(id + 1);

	if (gdr_lane_id() == 0)
		parts[id / 32] = sum;
	gdr_sync_block();
	if (id == 0) {
		sum = 0;
		for (uint32_t i = 0; i < (gdr_block_size() + 31) / 32; i++)
			sum += parts[i];
		a.sum[gdr_block_id()] = sum;
	}
}

GDR_KERNEL(barriers, struct kernel_args, a)
{
	uint32_t *slots = (uint32_t *)gdr_shared();
	uint32_t id = gdr_thread_id(), n = gdr_block_size();

	for (uint32_t round = 0; round < a.n; round++) {
		slots[id] = id + round;
		gdr_sync_block();
		check(&a, slots[(id + 1) % n] == (id + 1) % n + round);
		gdr_sync_block();
	}
}

/* The lanes of `mask` agree on a value of its first lane, and order memory among them. */
GDR_DEVICE void meet(const struct kernel_args *a, uint32_t mask, uint32_t round, uint32_t *slots)
{
	uint32_t first = gdri_ffs_u32(mask), lane = gdr_lane_id();
	uint32_t v = gdr_shfl_u32(mask, lane * 1000 + round, first);

	check(a, v == first * 1000 + round);
	if (lane == first)
		slots[first] = round;
	gdr_sync_warp(mask);
	check(a, slots[first] == round);
	gdr_sync_warp(mask);
}

GDR_KERNEL(branches, struct kernel_args, a)
{
	uint32_t *slots = (uint32_t *)gdr_shared() + gdr_thread_id() / 32 * 32;
	uint32_t i;

	if (gdr_lane_id() < 16) {
		for (i = 0; i < a.n; i++)
			meet(&a, 0x0000ffff, i, slots);
	} else if (gdr_lane_id() < 24) {
		for (i = 0; i < 2 * a.n; i++)
			meet(&a, 0x00ff0000, i, slots);
	}
	gdr_sync_block();
	meet(&a, FULL, a.n, slots);
}

GDR_KERNEL(groups, struct kernel_args, a)
{
	uint32_t lane = gdr_lane_id();

	for (uint32_t i = 0; i < a.n + lane % 5; i++) {
		uint64_t key = (lane + i) % 3;
		uint32_t mask = gdri_group(key);
		uint32_t leader = gdri_ffs_u32(mask);

		check(&a, mask >> lane & 1);
		check(&a, gdr_shfl_u64(mask, key, leader) == key);
		check(&a, gdr_shfl_u32(mask, mask, leader) == mask);
		if (lane == leader)
			gdri_add_u64(a.sum, gdri_popc(mask));
		gdr_sync_warp(mask);
		if (lane % 7 == i % 7)
			gdr_pause(0);
	}
}

GDR_KERNEL(ballots, struct kernel_args, a)
{
	uint32_t lane = gdr_lane_id(), odd = lane & 1;
	uint32_t mask = odd ? 0xaaaaaaaau : 0x55555555u;

	for (uint32_t i = 0; i < a.n; i++) {
		uint32_t votes = gdr_ballot(mask, (lane / 2 + i) % 2);
		uint32_t want = 0;

		for (uint32_t l = odd; l < 32; l += 2)
			want |= (l / 2 + i) % 2 << l;
		check(&a, votes == want);
	}
	check(&a, gdr_ballot(FULL, 1) == FULL);
	check(&a, gdr_ballot(FULL, 0) == 0);
}

GDR_DEVICE void wait_for(const uint32_t *p, uint32_t v)
{
	for (unsigned round = 0; gdri_ld_acquire_gpu_u32(p) != v; round++)
		gdr_pause(round);
}

GDR_KERNEL(ping_pong, struct kernel_args, a)
{
	uint32_t id = gdr_thread_id(), i;

	for (i = 0; i < a.n && id == 0; i++) {
		wait_for(a.out, 2 * i);
		gdri_st_release_gpu_u32(a.out, 2 * i + 1);
	}
	for (i = 0; i < a.n && id == gdr_block_size() - 1; i++) {
		wait_for(a.out, 2 * i + 1);
		gdri_st_release_gpu_u32(a.out, 2 * i + 2);
	}
	gdr_sync_block();
}

GDR_KERNEL(crowd, struct kernel_args, a)
{
	if (gdr_thread_id() == 0) {
		uint32_t now = gdri_add_u32(&a.out[0], 1) + 1;
		uint32_t most = gdri_ld_relaxed_gpu_u32(&a.out[1]);

		while (now > most && !gdri_cas_u32(&a.out[1], &most, now))
			;
		for (unsigned round = 0; round < 60; round++)
			gdr_pause(round);
		gdri_add_u32(&a.out[2], 1);
		gdri_add_u32(&a.out[0], (uint32_t)-1);
	}
	gdr_sync_block();
}

GDR_KERNEL(early, struct kernel_args, a)
{
	uint32_t id = gdr_thread_id(), lane = gdr_lane_id();

	if (lane == 5)
		return;
	/* lanes that have returned count as arrived */
	check(&a, gdr_shfl_u32(FULL, id, 7) == (id & ~31u) + 7);
	if (lane % 3 == 0)
		return;
	gdr_sync_block();
	gdri_add_u32(a.out, 1);
	gdr_sync_block();
	check(&a, gdri_ld_relaxed_gpu_u32(a.out) == a.n);
}

GDR_KERNEL(shared_memory, struct kernel_args, a)
{
	uint8_t *p = (uint8_t *)gdr_shared();
	uint32_t id = gdr_thread_id(), n = gdr_block_size(), i;

	check(&a, ((uintptr_t)p & 15) == 0);
	for (i = id; i < a.n; i += n)
		p[i] = (uint8_t)(i * 7 + gdr_block_id());
	gdr_sync_block();
	for (i = (id + 1) % n; i < a.n; i += n)
		check(&a, p[i] == (uint8_t)(i * 7 + gdr_block_id()));
}

GDR_KERNEL(deep_stack, struct kernel_args, a)
{
	volatile uint32_t words[8192]; /* volatile: must really be on the stack */
	uint32_t id = gdr_thread_id(), i;

	for (i = 0; i < 8192; i++)
		words[i] = id ^ i;
	gdr_sync_block();
	for (i = 0; i < 8192; i++)
		check(&a, words[i] == (id ^ i));
}

GDR_KERNEL(append, struct kernel_args, a)
{
	for (unsigned round = 0; round < a.n; round++)
		gdr_pause(round);
	if (gdr_thread_id() == 0)
		a.sum[0] = a.sum[0] * 10 + a.id;
}

GDR_KERNEL(wait_flag, struct kernel_args, a)
{
	wait_for(a.out, a.n);
}

GDR_KERNEL(hogs, struct kernel_args, a)
{
	if (gdr_thread_id() == gdr_block_size() / 2)
		while (gdri_ld_acquire_gpu_u32(a.out) != a.n)
			;
	gdr_sync_block();
}

GDR_KERNEL(set_flag, struct kernel_args, a)
{
	gdri_st_release_gpu_u32(a.out, a.n);
}

GDR_KERNEL(grid_barrier, struct kernel_args, a)
{
	for (uint32_t i = 1; i <= a.n; i++) {
		if (gdr_thread_id() == 0) {
			uint32_t all = i * gdr_grid_size();

			gdri_add_u32(a.out, 1);
			for (unsigned round = 0; gdri_ld_acquire_gpu_u32(a.out) < all; round++)
				gdr_pause(round);
		}
		gdr_sync_block();
	}
}

GDR_KERNEL(lost_barrier, struct kernel_args, a)
{
	(void)a;
	if (gdr_thread_id() == 0)
		gdr_sync_warp(FULL);
	else
		gdr_sync_block();
}

GDR_KERNEL(lost_lane, struct kernel_args, a)
{
	if (gdr_thread_id() == 0)
		gdr_shfl_u32(3, 0, 1);
	gdr_sync_block();
	gdri_add_u32(a.out, 1);
}

GDR_KERNEL(own_lane, struct kernel_args, a)
{
	(void)a;
	gdr_sync_warp(FULL & ~(1u << gdr_lane_id()));
}

GDR_KERNEL(one_fails, struct kernel_args, a)
{
	if (gdr_block_id() == 1 && gdr_thread_id() == 0)
		gdr_sync_warp(2);
	wait_for(a.out, a.n);
}

#define LAUNCHER(name)                                                                             \
	int run_##name(unsigned grid, unsigned block, size_t shared, gdr_stream_t stream,          \
		       const struct kernel_args *a)                                                \
	{                                                                                          \
		return gdr_launch(name, grid, block, shared, stream, a);                           \
	}
HD_KERNELS(LAUNCHER)
