// SPDX-License-Identifier: BSD-3-Clause
/* The kernel of the library, which performs what host threads ask for: compiled as C for the host device,
 * and by nvcc into an image that is part of the library (perform_image.c). It is one for all requests, and few
 * others are beside it: the compiler makes a copy of all that any kernel calls by its address for each. */
#include <gdr/impl/perform.h>
#include <gdr/launch.h>

#ifndef __CUDACC__
#include "runtime/perform.h"
#endif

/* Launched while what stands before it on the stream still runs (cuda_perform.c): from here on that has ended, and is
 * seen. What is launched so behind this one may be loaded then, and waits in the same way: were it let in before the
 * wait, all that stands on a stream behind a long one could fill the GPU. Both are nothing for kernels launched
 * as usual. */
#ifdef __CUDACC__
GDR_DEVICE void begin(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#else
#define begin() ((void)0)
#endif

GDR_KERNEL(gdri_kernel_request, struct gdri_request, q)
{
	uint64_t value[2] = {0, 0};
	int ret;

	begin();
	if (q.by == GDRI_BY_THREAD)
		ret = gdri_perform_thread(&q, value);
	else if (q.by == GDRI_BY_BLOCK)
		ret = gdri_perform_block(&q, GDRI_BLOCK);
	else if (q.by == GDRI_BY_GRID)
		ret = gdri_perform_grid(&q);
	else
		ret = gdri_perform_push(&q);
	/* any of the blocks may fail: the team keeps the status */
	if (!gdr_thread_id() && (ret || !gdr_block_id()))
		gdri_perform_end(&q, ret, value);
}

#ifdef __CUDACC__
/* Collectives by many blocks, where all PEs are mapped: kernels of their own are small, and begin sooner. */
#define MANY_BLOCKS(name, threads, perform)                                                        \
	extern "C" __global__ void __launch_bounds__(threads)                           \
		name(const __grid_constant__ struct gdri_request q)                                \
	{                                                                                          \
		uint64_t none[2] = {0, 0};                                                         \
		int ret;                                                                           \
                                                                                                   \
		begin();                                                                           \
		if (!gdri_constants_here.direct)                                                   \
			return;                                                                    \
		ret = perform(&q);                                                                 \
		if (!gdr_thread_id() && (ret || !gdr_block_id()))                                  \
			gdri_perform_end(&q, ret, none);                                           \
	}
MANY_BLOCKS(gdri_kernel_push, 256, gdri_perform_push)
MANY_BLOCKS(gdri_kernel_grid, 512, gdri_perform_near)

/* Barrier or sync of all PEs, which are mapped and few: one thread, no stack, so that it begins soon. */
extern "C" __global__ void __launch_bounds__(1) gdri_kernel_flat(int quiet)
{
	int ret;

	begin();
	if (!gdri_constants_here.direct)
		return;
	ret = gdri_barrier_flat(gdri_dev(), quiet);
	if (gdri_unlikely(ret))
		gdri_latch(gdri_dev(), ret);
}
#else
int gdri_perform_here(const struct gdri_request *q, uint64_t value[2])
{
	return q->what < GDRI_RQ_BY_BLOCK ? gdri_perform_thread(q, value)
					  : gdri_perform_block(q, GDRI_THREAD);
}

gdri_perform_fn *const gdri_perform_kernel = gdri_kernel_request;
#endif
