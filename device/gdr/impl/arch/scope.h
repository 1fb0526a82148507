/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that call an operation together: one alone, a warp, or a block. */
#ifndef GDRI_SCOPE_H
#define GDRI_SCOPE_H

#include <gdr/impl/arch/arch.h>
#include <gdr/simt.h>

enum gdri_scope { GDRI_THREAD = 0, GDRI_WARP = 1, GDRI_BLOCK = 2 };

/* The last warp of a block may have fewer than 32 lanes. */
GDR_DEVICE uint32_t gdri_warp_lanes(void)
{
	unsigned first = gdr_thread_id() & ~31u, left = gdr_block_size() - first;

	return left < 32 ? left : 32;
}

GDR_DEVICE uint32_t gdri_warp_mask(void)
{
	return 0xffffffffu >> (32 - gdri_warp_lanes());
}

GDR_DEVICE uint32_t gdri_scope_rank(int scope)
{
	return scope == GDRI_THREAD ? 0 : scope == GDRI_WARP ? gdr_lane_id() : gdr_thread_id();
}

GDR_DEVICE uint32_t gdri_scope_size(int scope)
{
	return scope == GDRI_THREAD ? 1 : scope == GDRI_WARP ? gdri_warp_lanes() : gdr_block_size();
}

/* For a mask that the compiler does not know the hardware first looks which threads bring an equal mask. */
GDR_DEVICE void gdri_warp_sync(void)
{
	uint32_t mask = gdri_warp_mask();

	if (gdri_likely(mask == 0xffffffffu))
		gdr_sync_warp(0xffffffffu);
	else
		gdr_sync_warp(mask);
}

/* Also orders the memory accesses of the threads that meet. */
GDR_DEVICE void gdri_scope_sync(int scope)
{
	if (scope == GDRI_WARP)
		gdri_warp_sync();
	else if (scope == GDRI_BLOCK)
		gdr_sync_block();
}

/* What thread 0 passed, for all; orders like gdri_scope_sync. */
#ifdef __CUDACC__
GDR_DEVICE int gdri_block_bcast(int v)
{
	__shared__ int all;
	int r;

	if (!gdr_thread_id())
		all = v;
	__syncthreads();
	r = all;
	__syncthreads(); /* before the next call writes it */
	return r;
}
/* Is it true for any thread? For all; orders like gdri_scope_sync. */
GDR_DEVICE int gdri_block_any(int pred)
{
	return __syncthreads_or(pred);
}
#else
GDR_DEVICE int gdri_block_bcast(int v)
{
	static __thread int all; /* a block's fibers share one CPU thread */
	int r;

	if (!gdr_thread_id())
		all = v;
	gdr_sync_block();
	r = all;
	gdr_sync_block();
	return r;
}

GDR_DEVICE int gdri_block_any(int pred)
{
	static __thread int any; /* a block's fibers share one CPU thread */
	int r;

	if (!gdr_thread_id())
		any = 0;
	gdr_sync_block();
	any |= pred;
	gdr_sync_block();
	r = any;
	gdr_sync_block();
	return r;
}
#endif

GDR_DEVICE int gdri_scope_bcast(int scope, int v)
{
	if (scope == GDRI_WARP) {
		v = (int)gdr_shfl_u32(gdri_warp_mask(), (uint32_t)v, 0);
		gdri_warp_sync(); /* a shuffle orders no memory */
		return v;
	}
	if (scope == GDRI_BLOCK)
		return gdri_block_bcast(v);
	return v;
}

/* A call of a block that has too little to do for more than a warp: expr, with GDRI_WARP as its scope, by the first
 * one. The others would only hold it up. */
#define GDRI_BY_WARP(scope, few, expr)                                                             \
	do {                                                                                       \
		if ((scope) == GDRI_BLOCK && (few)) {                                              \
			int by_warp_ = 0;                                                          \
			gdr_sync_block(); /* what the others stored */                             \
			if (gdr_thread_id() < 32)                                                  \
				by_warp_ = (expr);                                                 \
			return gdri_block_bcast(by_warp_);                                         \
		}                                                                                  \
	} while (0)

/* Is it true for any thread of the scope? Orders like gdri_scope_sync. */
GDR_DEVICE int gdri_scope_any(int scope, int pred)
{
	if (scope == GDRI_WARP) {
		uint32_t mask = gdri_warp_mask();

		pred = (gdri_likely(mask == 0xffffffffu) ? gdr_ballot(0xffffffffu, pred) : gdr_ballot(mask, pred)) != 0;
		gdri_warp_sync(); /* a vote orders no memory */
		return pred;
	}
	return scope == GDRI_BLOCK ? gdri_block_any(pred) : pred;
}

#endif
