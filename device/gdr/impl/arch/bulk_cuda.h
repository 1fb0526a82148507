/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the bulk copy engine takes a copy of a thread, a warp or a block, and what is left to threads (bulk.h). */
#ifndef GDRI_BULK_CUDA_H
#define GDRI_BULK_CUDA_H

#include <gdr/impl/path/bulk.h>
#include <gdr/impl/arch/copy_cuda.h>
#include <gdr/impl/arch/scope.h>

#if GDRI_HAS_BULK
/* One thread, source and destination alike modulo 16, and long enough for both ends (gdri_bulk_pays). */
GDRI_NOINLINE void gdri_bulk_copy(uint8_t *d, const uint8_t *s, size_t len, const void *stage, size_t bytes)
{
	uint32_t head = (uint32_t)-(uint64_t)d & 15;

	if (((uint32_t)(uint64_t)d | (uint32_t)len) & 15) {
		gdri_copy_thread_ends(d, s, len);
		d += head;
		s += head;
		len = (len - head) & ~(size_t)15;
	}
	if (!gdri_is_shared(s)) {
		gdri_bulk_through(d, s, len, gdri_shared_at(stage), (uint32_t)bytes);
		return;
	}
	gdri_fence_engine(); /* what this thread stored there */
	gdri_bulk_store(d, gdri_shared_at(s), (uint32_t)len);
	gdri_bulk_wait();
}

/* A source in shared memory needs no stage. */
GDR_DEVICE int gdri_bulk_can(const void *d, const void *s, const void *stage, size_t bytes)
{
	if ((((uint64_t)d ^ (uint64_t)s) & 15) || !gdri_is_global(d))
		return 0;
	if (gdri_is_shared(s))
		return 1;
	return gdri_is_global(s) && gdri_is_shared(stage) && bytes >= GDRI_BULK_STAGE_MIN &&
	       bytes < GDRI_BULK_STAGE_MAX;
}
#endif

/* All threads of the scope, and a length that pays; done for all of them when it returns 1. 0: it is not for the
 * engine, nothing was done. */
GDR_DEVICE int gdri_bulk(int scope, int get, void *dst, const void *src, size_t len, void *stage, size_t bytes)
{
#if GDRI_HAS_BULK
	if (!gdri_bulk_can(dst, src, stage, bytes))
		return 0;
	if (scope != GDRI_THREAD) {
		gdri_fence_engine(); /* each thread's accesses before, by way of the meeting */
		gdri_scope_sync(scope);
	}
	if (!gdri_scope_rank(scope))
		gdri_bulk_copy((uint8_t *)dst, (const uint8_t *)src, len, stage, bytes);
	gdri_scope_sync(scope);
	return 1;
#else
	(void)scope, (void)get, (void)dst, (void)src, (void)len, (void)stage, (void)bytes;
	return 0;
#endif
}

#endif
