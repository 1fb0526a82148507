/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of gdr/simt.h on the host device. A thread of a kernel is a fiber;
 * all fibers of a block share one CPU thread. Who is running stands in a
 * structure that one thread-local pointer names; outside kernels it names a
 * constant one (thread 0 of a block of one), so that no caller tests for NULL.
 *
 * A block of one never enters the library for a collective. Fibers never move
 * to another CPU thread, so the address of the pointer may be kept; its value
 * changes at every call that can switch. */
#ifndef GDRI_SIMT_HOST_H
#define GDRI_SIMT_HOST_H

#include <gdr/simt.h>

GDR_EXTERN_C_BEGIN

struct gdri_hd_extents {
	struct gdr_dim3 grid, block;
};

struct gdri_hd_thread {
	uint32_t thread, block_size;
	uint32_t block, grid_size;
	void *shared;
	uint32_t in_kernel; /* 0: a host thread outside kernels */
	uint32_t rsvd;
	const struct gdri_hd_extents *of; /* the launch's, as long as it runs */
};

/* Initial-exec: two instructions from any program or library, no call. */
extern GDR_API __thread const struct gdri_hd_thread *gdri_hd_self
	__attribute__((tls_model("initial-exec")));

/* Blocks of more than one thread only. A mask that lacks the caller, or a
 * collective that can never complete, ends the kernel with -GDR_EINVAL. */
GDR_API void gdri_hd_sync_block(void);
GDR_API void gdri_hd_sync_warp(uint32_t mask);
GDR_API uint64_t gdri_hd_shfl(uint32_t mask, uint64_t v, unsigned lane);
GDR_API uint32_t gdri_hd_ballot(uint32_t mask, int pred);
GDR_API uint32_t gdri_hd_group(uint64_t key);
/* Of a barrier of the running kernel's grid, 0 at first; NULL: not a collective launch. */
GDR_API uint32_t *gdri_hd_grid_word(void);
/* All threads of the block are to make this call, which meets as gdri_hd_sync_block does and orders no memory: how many
 * bring the `call` of the first of them. *first: 1 for that one. */
GDR_API unsigned gdri_hd_callers(uint64_t call, int *first);
/* Any thread. */
GDR_API void gdri_hd_pause(unsigned round);
GDR_API uint64_t gdri_hd_clock_ns(void);
/* Error records that are complete and that nobody has said yet: the program may end before the library looks. */
GDR_API void gdri_hd_say_errors(void);
/* Does [offset, offset + len) of the heap lie within one object? 0: no, and *begin and *end are the offsets of the last
 * one that begins there or before; 0: there is none. */
GDR_API int gdri_hd_object(uint64_t offset, uint64_t len, uint64_t *begin, uint64_t *end);
/* `call` found no library, before gdr_init or behind gdr_finalize: says so. -GDR_ESTATE. */
GDR_API int gdri_hd_no_library(const char *call) __attribute__((cold));

/* For tests: from now on blocks that start run their threads in random order
 * and gdri_group returns random subsets of what it may; 0 ends that. */
GDR_API void gdri_hd_shake(uint64_t seed);

GDR_EXTERN_C_END

GDR_DEVICE unsigned gdr_thread_id(void)
{
	return gdri_hd_self->thread;
}

GDR_DEVICE unsigned gdr_block_size(void)
{
	return gdri_hd_self->block_size;
}

GDR_DEVICE unsigned gdr_block_id(void)
{
	return gdri_hd_self->block;
}

GDR_DEVICE unsigned gdr_grid_size(void)
{
	return gdri_hd_self->grid_size;
}

/* Number i of so many, x fastest. */
GDR_DEVICE struct gdr_dim3 gdri_dim3_at(uint32_t i, struct gdr_dim3 of)
{
	return gdr_make_dim3(i % of.x, i / of.x % of.y, i / of.x / of.y);
}

GDR_DEVICE struct gdr_dim3 gdr_thread_id_3d(void)
{
	return gdri_dim3_at(gdri_hd_self->thread, gdri_hd_self->of->block);
}

GDR_DEVICE struct gdr_dim3 gdr_block_size_3d(void)
{
	return gdri_hd_self->of->block;
}

GDR_DEVICE struct gdr_dim3 gdr_block_id_3d(void)
{
	return gdri_dim3_at(gdri_hd_self->block, gdri_hd_self->of->grid);
}

GDR_DEVICE struct gdr_dim3 gdr_grid_size_3d(void)
{
	return gdri_hd_self->of->grid;
}

GDR_DEVICE unsigned gdr_lane_id(void)
{
	return gdri_hd_self->thread & 31u;
}

/* NULL outside kernels and where the launch asked for none. */
GDR_DEVICE void *gdr_shared(void)
{
	return gdri_hd_self->shared;
}

GDR_DEVICE void gdr_sync_block(void)
{
	if (gdri_hd_self->block_size != 1)
		gdri_hd_sync_block();
}

GDR_DEVICE uint32_t *gdri_grid_word(void)
{
	return gdri_hd_grid_word();
}

GDR_DEVICE void gdr_sync_warp(uint32_t mask)
{
	if (gdri_hd_self->block_size != 1)
		gdri_hd_sync_warp(mask);
}

GDR_DEVICE uint64_t gdr_shfl_u64(uint32_t mask, uint64_t v, unsigned lane)
{
	return gdri_hd_self->block_size == 1 ? v : gdri_hd_shfl(mask, v, lane);
}

GDR_DEVICE uint32_t gdr_shfl_u32(uint32_t mask, uint32_t v, unsigned lane)
{
	return (uint32_t)gdr_shfl_u64(mask, v, lane);
}

GDR_DEVICE uint32_t gdr_ballot(uint32_t mask, int pred)
{
	if (gdri_hd_self->block_size == 1)
		return pred ? 1 : 0;
	return gdri_hd_ballot(mask, pred);
}

/* Mask of lanes of the caller's warp that are here with the same key: those that arrive
 * before every other lane of the warp is blocked, in a pause, or finished. Callers may rely
 * on nothing but: it contains the caller, and all its lanes got the same mask. */
GDR_DEVICE uint32_t gdri_group(uint64_t key)
{
	return gdri_hd_self->block_size == 1 ? 1 : gdri_hd_group(key);
}

/* The lanes below the caller's. */
GDR_DEVICE uint32_t gdri_lanes_below(void)
{
	return (1u << gdr_lane_id()) - 1u;
}

GDR_DEVICE void gdr_pause(unsigned round)
{
	gdri_hd_pause(round);
}

GDR_DEVICE uint64_t gdr_clock_ns(void)
{
	return gdri_hd_clock_ns();
}

#endif
