/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics: bodies and rows (define.h). Values travel as the low bits of 64. */
#ifndef GDRI_AMO_H
#define GDRI_AMO_H

#include <gdr/impl/api/define.h>
#include <gdr/impl/path/slow.h>
#include <gdr/impl/request/amo_kind.h>
#if !GDRI_LINKED
#include <gdr/impl/api/amo_cas.h>
#endif

/* kind and size are constants of the call, here and below. */
GDR_DEVICE int gdri_atomic(int kind, uint32_t size, void *dst, uint64_t a, int pe, uint32_t q)
{
	uint64_t old;

	if (gdri_amo_combines(kind))
		return gdri_amo_fetch_combine(gdri_amo_code(kind), dst, a, pe, q, &old);
	return GDRI_DIRECT_OR((gdri_p2p_red(kind, size, gdri_direct_at(dst, pe), a), 0),
			      gdri_slow_atomic(GDRI_FORM(GDRI_AMO, size, kind), dst, a, pe, q));
}

GDR_DEVICE uint64_t gdri_fetch_combine(uint32_t code, void *dst, uint64_t a, int pe, uint32_t q)
{
	uint64_t old = 0;
	int ret = gdri_amo_fetch_combine(code, dst, a, pe, q, &old);

	if (gdri_unlikely(ret) && gdri_dev())
		gdri_latch(gdri_dev(), ret);
	return ret ? 0 : old;
}

/* Old value; 0 on failure, with the status latched. b: what a compare-and-swap compares with. */
GDR_DEVICE uint64_t gdri_fetch_atomic(int kind, uint32_t size, void *dst, uint64_t a, uint64_t b,
				      int pe, uint32_t q)
{
	uint64_t old = 0;

	if (gdri_amo_combines(kind))
		return gdri_fetch_combine(gdri_amo_code(kind), dst, a, pe, q);
	(void)GDRI_DIRECT_OR((old = gdri_p2p_atomic(kind, size, gdri_direct_at(dst, pe), a, b), 0),
			     (old = gdri_slow_value(GDRI_FORM(GDRI_FETCH_AMO, size, kind), dst, a, b, pe, q), 0));
	return old;
}

/* As gdri_fetch_atomic, with the status. */
GDR_DEVICE int gdri_atomic_of(int kind, uint32_t size, void *dst, uint64_t a, uint64_t b, int pe, uint32_t q,
			      uint64_t *old)
{
	if (gdri_amo_combines(kind))
		return gdri_amo_fetch_combine(gdri_amo_code(kind), dst, a, pe, q, old);
	return GDRI_DIRECT_OR((*old = gdri_p2p_atomic(kind, size, gdri_direct_at(dst, pe), a, b), 0),
			      gdri_slow_fetch(GDRI_FORM(GDRI_FETCH_AMO, size, kind), dst, a, b, pe, q, old));
}

GDR_DEVICE int gdri_fetch_combine_nbi(uint32_t code, uint32_t size, void *fetch, void *dst, uint64_t a, int pe,
				      uint32_t q)
{
	uint64_t old = 0;
	int ret = gdri_amo_fetch_combine(code, dst, a, pe, q, &old);

	if (!ret)
		gdri_unbits(fetch, old, size);
	return ret;
}

/* The old value is in `fetch` by the next quiet. What no NIC has is waited for. */
GDR_DEVICE int gdri_fetch_nbi(int kind, uint32_t size, void *fetch, void *dst, uint64_t a,
			      uint64_t b, int pe, uint32_t q)
{
	if (gdri_amo_combines(kind))
		return gdri_fetch_combine_nbi(gdri_amo_code(kind), size, fetch, dst, a, pe, q);
	return GDRI_DIRECT_OR((gdri_unbits(fetch, gdri_p2p_atomic(kind, size, gdri_direct_at(dst, pe), a, b), size), 0),
			      gdri_slow_fetch_nbi(GDRI_FORM(GDRI_FETCH_AMO, size, kind), fetch, dst, a, b, pe, q));
}

/* ---- rows ---- */

/* kind, a, b: of the request of a host thread. */
#define GDRI_AMO_FN(pre, op, T, params, result, kind, a)                                           \
	GDRI_FN_CTX(GDRI_THREAD, int, GDRI_NAMES(pre, atomic_##op, , ), params,                    \
		     (GDRI_AMO, GDRI_THREAD), gdri_check_sym(&at, GDRI_DEST, dst, sizeof(T), sizeof(T), pe),  \
		     result, gdri_submit_amo(GDRI_RQ_AMO, kind, sizeof(T), dst, a, 0, pe))
#define GDRI_AMO_FETCH_FN(pre, op, T, params, bits, kind, a, b)                                    \
	GDRI_FN_VALUE_CTX(T, GDRI_NAMES(pre, atomic_##op, , ), params,                             \
			   (GDRI_FETCH_AMO, GDRI_THREAD),                                          \
			   gdri_check_sym(&at, GDRI_DEST, dst, sizeof(T), sizeof(T), pe),                     \
			   gdri_unbits(&out, bits, sizeof(T)),                                     \
			   gdri_unbits(&out, gdri_submit_fetch(GDRI_RQ_FETCH_AMO, kind, sizeof(T), dst, a, b, \
							    pe), sizeof(T)))
/* Host threads wait: the value is there when it returns. */
#define GDRI_AMO_NBI_FN(pre, op, T, params, result, kind, a, b)                                    \
	GDRI_FN_CTX(GDRI_THREAD, int, GDRI_NAMES(pre, atomic_##op, , _nbi), params,                \
		    (GDRI_FETCH_AMO, GDRI_THREAD), gdri_check_fetch(&at, fetch, dst, sizeof(T), pe),  \
		    result, gdri_submit_fetch_to(GDRI_RQ_FETCH_AMO, kind, sizeof(T), fetch, dst, a, b, pe))

#define GDRI_AMO_VALUE gdri_bits(&value, sizeof(value))

/* One without result, and one that brings the old value, in both forms. */
#define GDRI_AMO_ONLY(pre, op, T, params, kind, a)                                                 \
	GDRI_AMO_FN(pre, op, T, params, gdri_atomic(kind, sizeof(T), dst, a, pe, q), kind, a)
#define GDRI_AMO_PAIR(pre, op, T, params, nbi_params, kind, a, b)                                  \
	GDRI_AMO_FETCH_FN(pre, op, T, params, gdri_fetch_atomic(kind, sizeof(T), dst, a, b, pe, q), kind, a, b) \
	GDRI_AMO_NBI_FN(pre, op, T, nbi_params, gdri_fetch_nbi(kind, sizeof(T), fetch, dst, a, b, pe, q), kind, a, b)

#define GDRI_AMO_OP(op, kind, reduction, pre, T)                                                   \
	GDRI_AMO_ONLY(pre, op, T, (T * dst, T value, int pe), GDRI_AMO_KIND(kind, reduction, T), GDRI_AMO_VALUE) \
	GDRI_AMO_PAIR(pre, fetch_##op, T, (T * dst, T value, int pe), (T * fetch, T * dst, T value, int pe), \
		      GDRI_AMO_KIND(kind, reduction, T), GDRI_AMO_VALUE, 0)

/* What every type has. */
#define GDRI_AMO_NUMBER_ROWS(pre, T, E, z)                                                         \
	GDRI_AMO_ONLY(pre, set, T, (T * dst, T value, int pe), GDRI_AMO_SET, GDRI_AMO_VALUE)       \
	GDRI_AMO_FETCH_FN(pre, fetch, T, (const T *dst, int pe),                                   \
			  gdri_fetch_atomic(GDRI_AMO_FETCH, sizeof(T), (void *)(uintptr_t)dst, 0,  \
					    0, pe, q), GDRI_AMO_FETCH, 0, 0)                       \
	GDRI_AMO_NBI_FN(pre, fetch, T, (T * fetch, const T *dst, int pe),                          \
			gdri_fetch_nbi(GDRI_AMO_FETCH, sizeof(T), fetch, (void *)(uintptr_t)dst,   \
				       0, 0, pe, q), GDRI_AMO_FETCH, 0, 0)                         \
	GDRI_AMO_PAIR(pre, swap, T, (T * dst, T value, int pe),                                    \
		      (T * fetch, T * dst, T value, int pe), GDRI_AMO_SWAP, GDRI_AMO_VALUE, 0)     \
	GDRI_AMO_PAIR(pre, compare_swap, T, (T * dst, T cond, T value, int pe),                    \
		      (T * fetch, T * dst, T cond, T value, int pe), GDRI_AMO_CSWAP,               \
		      GDRI_AMO_VALUE, gdri_bits(&cond, sizeof(T)))                                 \
	GDRI_AMO_ONLY(pre, inc, T, (T * dst, int pe), GDRI_AMO_INC(T), GDRI_AMO_ONE(T))            \
	GDRI_AMO_PAIR(pre, fetch_inc, T, (T * dst, int pe), (T * fetch, T * dst, int pe),          \
		      GDRI_AMO_INC(T), GDRI_AMO_ONE(T), 0)                                         \
	GDRI_AMO_NUMBER_OPS(GDRI_AMO_OP, pre, T)

#define GDRI_AMO_ROWS(pre, T, E, z)                                                                \
	GDRI_AMO_NUMBER_ROWS(pre, T, E, z)                                                         \
	GDRI_AMO_BIT_OPS(GDRI_AMO_OP, pre, T)

GDRI_TEMPLATE(gdri_t_amo, GDRI_AMO_ROWS)
GDRI_TEMPLATE(gdri_t_amof, GDRI_AMO_NUMBER_ROWS)

#if !defined(__CUDACC__) || defined(GDRI_PRINT_NAMES)
#define GDRI_AMO_TYPE(name, T)                                                                     \
	GDRI_OF(gdri_t_amo, T, sizeof(T))                                                          \
	GDRI_AMO_ROWS(name##_, T, sizeof(T), )
#define GDRI_AMO_FLOAT_TYPE(name, T)                                                               \
	GDRI_OF(gdri_t_amof, T, sizeof(T))                                                         \
	GDRI_AMO_NUMBER_ROWS(name##_, T, sizeof(T), )
GDR_AMO_TYPES(GDRI_AMO_TYPE)
GDR_FLOAT_TYPES(GDRI_AMO_FLOAT_TYPE)
#endif

#endif
