/* SPDX-License-Identifier: BSD-3-Clause */
/* The path to peers whose heap is mapped here: loads, stores and native
 * atomics. `p` is always the mapped address. */
#ifndef GDRI_P2P_H
#define GDRI_P2P_H

#include <gdr/impl/arch/dev.h>
#include <gdr/impl/arch/ops.h>
#include <gdr/impl/arch/scope.h>
#if !GDRI_LINKED
#include <gdr/impl/path/bulk.h>
#endif
#if defined(__CUDACC__) && !GDRI_LINKED
#include <gdr/impl/arch/bulk_cuda.h>
#include <gdr/impl/arch/copy_cuda.h> /* gdri_copy of arch.h; it reads the unit's constants */
#endif

#if !GDRI_LINKED
/* A warp or a block. */
GDR_DEVICE void gdri_p2p_copy_group(int scope, void *dst, const void *src, size_t len, int get)
{
	gdri_scope_sync(scope); /* what other threads wrote to src */
	gdri_copy_group(dst, src, len, gdri_scope_rank(scope), gdri_scope_size(scope), get);
	gdri_scope_sync(scope); /* src may be reused, dst may be signalled */
}

/* dst is the peer's. All threads of the scope; done for all of them when it returns. */
GDR_DEVICE void gdri_p2p_copy(int scope, void *dst, const void *src, size_t len)
{
	if (scope == GDRI_THREAD)
		gdri_copy_word_first(dst, src, len);
	else
		gdri_p2p_copy_group(scope, dst, src, len, 0);
}

/* A word by a warp or block, which its first thread moves: nothing stands in the others' way to the meetings. */
GDR_DEVICE void gdri_p2p_put_word(int scope, void *dst, const void *src, int pe)
{
	gdri_scope_sync(scope); /* what other threads wrote to src */
	if (!gdri_scope_rank(scope))
		*(uint64_t *)gdri_direct_at(dst, pe) = *(const uint64_t *)src;
	gdri_scope_sync(scope); /* src may be reused, dst may be signalled */
}

/* A whole warp is 32, known to the compiler. */
GDR_DEVICE void gdri_copy_scope(int scope, void *dst, const void *src, size_t len)
{
	uint32_t n = gdri_scope_size(scope), rank = gdri_scope_rank(scope);

	if (scope != GDRI_WARP)
		gdri_copy(dst, src, len, rank, n);
	else if (gdri_likely(n == 32))
		gdri_copy(dst, src, len, rank, 32);
	else
		gdri_copy_lean(dst, src, len, rank, n);
}

/* As gdri_p2p_copy, in a collective. */
GDR_DEVICE void gdri_p2p_copy_coll(int scope, void *dst, const void *src, size_t len)
{
	if (scope == GDRI_THREAD) {
		gdri_copy_thread_coll(dst, src, len);
		return;
	}
	gdri_scope_sync(scope); /* what other threads wrote to src */
	gdri_copy_scope(scope, dst, src, len);
	gdri_scope_sync(scope); /* src may be reused, dst may be signalled */
}

/* As gdri_p2p_copy where src is the peer's. */
GDR_DEVICE void gdri_p2p_fetch(int scope, void *dst, const void *src, size_t len)
{
	if (scope == GDRI_THREAD)
		gdri_copy_thread(dst, src, len);
	else
		gdri_p2p_copy_group(scope, dst, src, len, 1);
}

/* Out of line: what the engine takes takes longer than the call, and where src is a parameter of the kernel
 * (__grid_constant__) nvcc 13.0 breaks off at the question whether it is shared memory. */
GDRI_NOINLINE int gdri_p2p_engine(int scope, int get, void *dst, const void *src, size_t len, void *stage, size_t bytes)
{
	GDRI_BY_ABI(gdri_p2p_engine);
#ifdef __CUDACC__
	return gdri_bulk(scope, get, dst, src, len, stage, bytes);
#else
	(void)scope, (void)get, (void)dst, (void)src, (void)len, (void)stage, (void)bytes;
	return 0;
#endif
}

/* By the bulk copy engine, by way of `stage`, shared memory of the scope: src is the peer's (get), or dst. 0: it is not
 * for the engine, nothing was done. */
GDR_DEVICE int gdri_p2p_by_engine(int scope, int get, void *dst, const void *src, size_t len, void *stage, size_t bytes)
{
	return gdri_bulk_pays(gdri_scope_size(scope), get, len) &&
	       gdri_p2p_engine(scope, get, dst, src, len, stage, bytes);
}

/* By the engine, or by the threads of the scope. */
GDR_DEVICE void gdri_p2p_bulk(int scope, int get, void *dst, const void *src, size_t len, void *stage, size_t bytes)
{
	if (gdri_p2p_by_engine(scope, get, dst, src, len, stage, bytes))
		return;
	if (get)
		gdri_p2p_fetch(scope, dst, src, len);
	else
		gdri_p2p_copy(scope, dst, src, len);
}

/* gdri_p2p_copy on the slow path. */
GDRI_SLOW void gdri_p2p_copy_alone(void *dst, const void *src, size_t len)
{
	gdri_copy_thread_lean(dst, src, len);
}

GDRI_SLOW void gdri_p2p_copy_any(int scope, void *dst, const void *src, size_t len)
{
	if (scope == GDRI_THREAD) {
		gdri_p2p_copy_alone(dst, src, len);
		return;
	}
	gdri_scope_sync(scope); /* what other threads wrote to src */
	gdri_copy_lean(dst, src, len, gdri_scope_rank(scope), gdri_scope_size(scope));
	gdri_scope_sync(scope);
}
#endif

/* One store of the value's width: a flag never appears in halves. */
GDR_DEVICE void gdri_p2p_store(void *p, uint64_t value, size_t size)
{
	if (size == 8)
		gdri_st_relaxed_sys_u64((uint64_t *)p, value);
	else if (size == 4)
		gdri_st_relaxed_sys_u32((uint32_t *)p, (uint32_t)value);
	else if (size == 2)
		gdri_st_relaxed_sys_u16((uint16_t *)p, (uint16_t)value);
	else
		*(volatile uint8_t *)p = (uint8_t)value;
}

/* volatile (a byte): one access, as the relaxed ones; what it pairs with is the caller's matter. */
GDR_DEVICE uint64_t gdri_p2p_load(const void *p, size_t size)
{
	if (size == 8)
		return gdri_ld_relaxed_sys_u64((const uint64_t *)p);
	if (size == 4)
		return gdri_ld_relaxed_sys_u32((const uint32_t *)p);
	return size == 2 ? gdri_ld_relaxed_sys_u16((const uint16_t *)p) : *(const volatile uint8_t *)p;
}

/* kind and size are constants of the call. Returns the old value (SET: none). */
#define GDRI_P2P_ATOMIC(bits)                                                                      \
	GDR_DEVICE uint64_t gdri_p2p_atomic_u##bits(int kind, uint##bits##_t *p, uint##bits##_t a, \
						    uint##bits##_t b)                              \
	{                                                                                          \
		switch (kind) {                                                                    \
		case GDRI_AMO_SET:                                                                 \
			gdri_st_relaxed_sys_u##bits(p, a);                                         \
			return 0;                                                                  \
		case GDRI_AMO_FETCH:                                                               \
			return gdri_ld_relaxed_sys_u##bits(p);                                     \
		case GDRI_AMO_ADD:                                                                 \
			return gdri_amo_add_u##bits(p, a);                                         \
		case GDRI_AMO_SWAP:                                                                \
			return gdri_amo_exch_u##bits(p, a);                                        \
		case GDRI_AMO_CSWAP:                                                               \
			return gdri_amo_cas_u##bits(p, b, a);                                      \
		case GDRI_AMO_AND:                                                                 \
			return gdri_amo_and_u##bits(p, a);                                         \
		case GDRI_AMO_OR:                                                                  \
			return gdri_amo_or_u##bits(p, a);                                          \
		default:                                                                           \
			return gdri_amo_xor_u##bits(p, a);                                         \
		}                                                                                  \
	}
GDRI_P2P_ATOMIC(32)
GDRI_P2P_ATOMIC(64)

/* Without result. */
#define GDRI_P2P_RED(bits)                                                                         \
	GDR_DEVICE void gdri_p2p_red_u##bits(int kind, uint##bits##_t *p, uint##bits##_t a)        \
	{                                                                                          \
		switch (kind) {                                                                    \
		case GDRI_AMO_SET:                                                                 \
			gdri_st_relaxed_sys_u##bits(p, a);                                         \
			break;                                                                     \
		case GDRI_AMO_ADD:                                                                 \
			gdri_red_add_u##bits(p, a);                                                \
			break;                                                                     \
		case GDRI_AMO_AND:                                                                 \
			gdri_red_and_u##bits(p, a);                                                \
			break;                                                                     \
		case GDRI_AMO_OR:                                                                  \
			gdri_red_or_u##bits(p, a);                                                 \
			break;                                                                     \
		default:                                                                           \
			gdri_red_xor_u##bits(p, a);                                                \
			break;                                                                     \
		}                                                                                  \
	}
GDRI_P2P_RED(32)
GDRI_P2P_RED(64)

/* Ordered behind nothing but by a fence of the caller's, with which it pairs with the acquire of
 * who waits. */
GDR_DEVICE void gdri_p2p_signal_op(uint64_t *p, uint64_t value, int add)
{
	if (add)
		gdri_red_add_u64(p, value);
	else
		gdri_st_fenced_u64(p, value);
}

/* Behind everything the thread, or the scope it speaks for, stored before; pairs
 * with the acquire of who waits for the signal. */
GDR_DEVICE void gdri_p2p_signal(uint64_t *p, uint64_t value, int add)
{
	gdri_fence_release_sys();
	gdri_p2p_signal_op(p, value, add);
}

GDR_DEVICE void gdri_p2p_red(int kind, uint32_t size, uint8_t *p, uint64_t a)
{
	if (size == 4)
		gdri_p2p_red_u32(kind, (uint32_t *)p, (uint32_t)a);
	else
		gdri_p2p_red_u64(kind, (uint64_t *)p, a);
}

/* kind and size are constants of the call. */
GDR_DEVICE uint64_t gdri_p2p_atomic(int kind, uint32_t size, uint8_t *p, uint64_t a, uint64_t b)
{
	if (size == 4)
		return gdri_p2p_atomic_u32(kind, (uint32_t *)p, (uint32_t)a, (uint32_t)b);
	return gdri_p2p_atomic_u64(kind, (uint64_t *)p, a, b);
}

#endif
