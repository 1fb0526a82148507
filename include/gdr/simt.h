/* SPDX-License-Identifier: BSD-3-Clause */
/* Who a thread of a kernel is and how the threads of a block meet, in words
 * that both worlds have. Under CUDA these are the built-ins of the same
 * meaning; on the host device a block's threads are fibers of one CPU thread,
 * and outside kernels the caller is thread 0 of a block of one.
 *
 *	unsigned gdr_thread_id(void);	linear index in the block, x fastest: 32 in a row are a warp
 *	unsigned gdr_block_size(void);
 *	unsigned gdr_block_id(void);	linear index in the grid, x fastest
 *	unsigned gdr_grid_size(void);
 *	struct gdr_dim3 gdr_thread_id_3d(void);	the coordinates of that index
 *	struct gdr_dim3 gdr_block_size_3d(void);	the extents: gdr_launch_3d's, or (gdr_block_size(), 1, 1)
 *	struct gdr_dim3 gdr_block_id_3d(void);
 *	struct gdr_dim3 gdr_grid_size_3d(void);
 *	unsigned gdr_lane_id(void);	0..31
 *	void *gdr_shared(void);		the block's dynamic shared memory
 *	void gdr_sync_block(void);	all threads of the block; orders their memory accesses
 *	void gdr_sync_warp(uint32_t mask);	the lanes named, each calls with the same mask
 *	uint32_t gdr_shfl_u32(uint32_t mask, uint32_t v, unsigned lane);
 *	uint64_t gdr_shfl_u64(uint32_t mask, uint64_t v, unsigned lane);
 *	uint32_t gdr_ballot(uint32_t mask, int pred);
 *	uint64_t gdr_clock_ns(void);	monotonic
 *	void gdr_pause(unsigned round);	inside a spin; round counts up from 0: backs off
 *
 * A thread of the host device that spins without gdr_pause starves its block; in a job the log names it
 * (GDR_HOST_DEVICE_STALL). */
#ifndef GDR_SIMT_H
#define GDR_SIMT_H

#include <gdr/macros.h>

/* Coordinates or extents of up to three dimensions, as CUDA's dim3, to which nvcc converts it. A dimension that is not
 * there has the extent 1. */
struct gdr_dim3 {
	uint32_t x, y, z;
	GDRI_TO_DIM3
};

/* For the arguments of a macro, where the commas of a compound literal would part them. */
GDR_BOTH struct gdr_dim3 gdr_make_dim3(uint32_t x, uint32_t y, uint32_t z)
{
	struct gdr_dim3 d = {x, y, z};

	return d;
}

#ifdef __CUDACC__
#include <gdr/impl/arch/simt_cuda.h>
#else
#include <gdr/impl/arch/simt_host.h>
#endif

#endif
