/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of gdr/simt.h under CUDA. */
#ifndef GDRI_SIMT_CUDA_H
#define GDRI_SIMT_CUDA_H

#include <gdr/impl/arch/arch.h>
#include <gdr/simt.h>

GDR_DEVICE unsigned gdr_thread_id(void)
{
	return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

GDR_DEVICE unsigned gdr_block_size(void)
{
	return blockDim.x * blockDim.y * blockDim.z;
}

GDR_DEVICE unsigned gdr_block_id(void)
{
	return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

GDR_DEVICE unsigned gdr_grid_size(void)
{
	return gridDim.x * gridDim.y * gridDim.z;
}

GDR_DEVICE struct gdr_dim3 gdr_thread_id_3d(void)
{
	return gdr_make_dim3(threadIdx.x, threadIdx.y, threadIdx.z);
}

GDR_DEVICE struct gdr_dim3 gdr_block_size_3d(void)
{
	return gdr_make_dim3(blockDim.x, blockDim.y, blockDim.z);
}

GDR_DEVICE struct gdr_dim3 gdr_block_id_3d(void)
{
	return gdr_make_dim3(blockIdx.x, blockIdx.y, blockIdx.z);
}

GDR_DEVICE struct gdr_dim3 gdr_grid_size_3d(void)
{
	return gdr_make_dim3(gridDim.x, gridDim.y, gridDim.z);
}

GDR_DEVICE unsigned gdr_lane_id(void)
{
	return gdr_thread_id() & 31u;
}

GDR_DEVICE void *gdr_shared(void)
{
	extern __shared__ __align__(16) unsigned char gdri_shared[];

	return gdri_shared;
}

GDR_DEVICE void gdr_sync_block(void)
{
	__syncthreads();
}

/* Of a barrier of the grid: the driver gives a cooperative launch a word, behind its size, where these registers point
 * to. CUDA's cooperative groups read the same ones. NULL: another launch. */
GDR_DEVICE uint32_t *gdri_grid_word(void)
{
	uint32_t low, high;
	uint64_t at;

	asm("mov.u32 %0, %%envreg1;" : "=r"(high));
	asm("mov.u32 %0, %%envreg2;" : "=r"(low));
	at = (uint64_t)high << 32 | low;
	return at ? (uint32_t *)at + 1 : 0;
}

GDR_DEVICE void gdr_sync_warp(uint32_t mask)
{
	__syncwarp(mask);
}

GDR_DEVICE uint32_t gdr_shfl_u32(uint32_t mask, uint32_t v, unsigned lane)
{
	return __shfl_sync(mask, v, (int)lane);
}

GDR_DEVICE uint64_t gdr_shfl_u64(uint32_t mask, uint64_t v, unsigned lane)
{
	return __shfl_sync(mask, (unsigned long long)v, (int)lane);
}

GDR_DEVICE uint32_t gdr_ballot(uint32_t mask, int pred)
{
	return __ballot_sync(mask, pred);
}

/* The lanes below the caller's. */
GDR_DEVICE uint32_t gdri_lanes_below(void)
{
	uint32_t mask;

	asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
	return mask;
}

/* The active mask is a hint: any subset that holds the caller is a correct group. A lone thread asks nobody. */
GDR_DEVICE uint32_t gdri_group(uint64_t key)
{
	uint32_t active = __activemask();

	return active & (active - 1) ? __match_any_sync(active, (unsigned long long)key) : active;
}

GDR_DEVICE uint64_t gdr_clock_ns(void)
{
	return gdri_globaltimer();
}

GDR_DEVICE void gdr_pause(unsigned round)
{
	if (round >= 8)
		__nanosleep(round < 64 ? 32 : 256);
}

#endif
