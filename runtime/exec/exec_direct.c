// SPDX-License-Identifier: BSD-3-Clause
/* Kernels of the library for GPUs of which all PEs are mapped: small, without code for queues, so that they are loaded
 * and begin sooner. An image of their own (exec_image.c), to which only what they need belongs. */
#ifdef __CUDACC__
#include <gdr/impl/request/exec.h>
#include <gdr/launch.h>
#endif

#include "runtime/exec/exec_begin.h"

#ifdef __CUDACC__
/* Collectives by many blocks, where all PEs are mapped: kernels of their own are small, and begin sooner. */
#define MANY_BLOCKS(name, threads, body)                            \
	extern "C" __global__ void __launch_bounds__(threads)       \
		name(const __grid_constant__ struct gdri_request q) \
	{                                                           \
		uint64_t none[2] = {0, 0};                          \
		int ret;                                            \
                                                                    \
		exec_begin();                                       \
		if (!gdri_constants_here.direct)                    \
			return;                                     \
		ret = body(&q);                                     \
		if (!gdr_thread_id() && (ret || !gdr_block_id()))   \
			gdri_exec_end(&q, ret, none);               \
	}
#ifndef GDR_ANY_ADDRESS /* it touches own memory and the library's alone: one is enough (cuda_exec.c) */
MANY_BLOCKS(gdri_kernel_ctas, 256, gdri_exec_ll)
#endif
MANY_BLOCKS(gdri_kernel_grid, 512, gdri_exec_aligned)

#ifndef GDR_ANY_ADDRESS
/* Barrier or sync of all PEs, which are mapped and few: one thread, no stack, so that it begins soon. */
extern "C" __global__ void __launch_bounds__(1) gdri_kernel_flat(int quiet)
{
	int ret;

	exec_begin();
	if (!gdri_constants_here.direct)
		return;
	ret = gdri_barrier_flat(gdri_dev(), quiet);
	if (gdri_unlikely(ret))
		gdri_latch(gdri_dev(), ret);
}

/* Barrier (1) or sync (0) of a team, 2 * team more: one thread. */
extern "C" __global__ void __launch_bounds__(1) gdri_kernel_team(int how)
{
	int ret;

	exec_begin();
	if (!gdri_constants_here.direct)
		return;
	ret = gdri_team_barrier(GDRI_THREAD, how >> 1, how & 1);
	if (gdri_unlikely(ret))
		gdri_latch(gdri_dev(), ret);
}
#endif
#endif
