/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics: bodies and rows (define.h). Values travel as the low bits of 64. */
#ifndef GDRI_AMO_H
#define GDRI_AMO_H

#include <gdr/impl/api/define.h>
#include <gdr/impl/path/xfer.h>

GDRI_GENERAL int gdri_atomic_any(int kind, uint32_t size, void *dst, uint64_t a, int pe, uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();

	GDRI_BY_ABI(gdri_atomic_any);
	return gdri_likely(dev) ? gdri_xfer_atomic(dev, kind, size, dst, a, 0, pe, q) : -GDR_ESTATE;
}

GDR_DEVICE int gdri_atomic(int kind, uint32_t size, void *dst, uint64_t a, int pe, uint32_t q)
{
	if (gdri_direct()) {
		gdri_p2p_red(kind, size, gdri_direct_at(dst, pe), a);
		return 0;
	}
	return GDRI_ELSE(gdri_atomic_any(kind, size, dst, a, pe, q));
}

/* Old value; 0 on failure, with the status latched. */
GDRI_GENERAL uint64_t gdri_fetch_atomic_any(int kind, uint32_t size, void *dst, uint64_t a,
					    uint64_t b, int pe, uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();
	uint64_t old = 0;
	int ret;

	GDRI_BY_ABI(gdri_fetch_atomic_any);
	if (gdri_unlikely(!dev))
		return 0;
	ret = gdri_xfer_fetch_atomic(dev, kind, size, dst, a, b, pe, q, &old);
	if (gdri_likely(!ret))
		return old;
	gdri_latch(dev, ret);
	return 0;
}

GDR_DEVICE uint64_t gdri_fetch_atomic(int kind, uint32_t size, void *dst, uint64_t a, uint64_t b,
				      int pe, uint32_t q)
{
	return gdri_direct() ? gdri_p2p_atomic(kind, size, gdri_direct_at(dst, pe), a, b)
			     : GDRI_ELSE_VALUE(gdri_fetch_atomic_any(kind, size, dst, a, b, pe, q));
}

/* As gdri_fetch_atomic, with the status. */
GDR_DEVICE int gdri_atomic_of(int kind, uint32_t size, void *dst, uint64_t a, uint64_t b, int pe, uint32_t q,
			      uint64_t *old)
{
	if (gdri_direct()) {
		*old = gdri_p2p_atomic(kind, size, gdri_direct_at(dst, pe), a, b);
		return 0;
	}
	return GDRI_ELSE(gdri_dev() ? gdri_xfer_fetch_atomic(gdri_dev(), kind, size, dst, a, b, pe, q,
							     old)
				    : -GDR_ESTATE);
}

/* 8 bytes by queue, which the NIC writes to `fetch` itself. */
GDRI_NOINLINE int gdri_fetch_post(struct gdri_dev *dev, int kind, void *fetch, void *dst, uint64_t a,
				  uint64_t b, int pe, uint32_t q)
{
	struct gdri_local l;
	uint64_t target;
	int ret = gdri_local(dev, fetch, 8, &l, GDRI_FETCH_AMO, pe);

	GDRI_BY_ABI(gdri_fetch_post);
	return ret ? ret
		   : gdri_post_amo(dev, gdri_qp_to(dev, pe, q), kind, 8, gdri_heap_offset(dev, dst), a,
				   b, l, &target);
}

/* The old value is in `fetch` by the next quiet. 4 bytes are waited for: what a NIC writes of them
 * stands the wrong way round. */
GDR_DEVICE int gdri_fetch_nbi(int kind, uint32_t size, void *fetch, void *dst, uint64_t a,
			      uint64_t b, int pe, uint32_t q)
{
	uint64_t old = 0;
	int ret;

	if (GDRI_QUEUES && size == 8 && gdri_dev() && !gdri_mapped_atomic(gdri_dev(), dst, pe))
		return gdri_fetch_post(gdri_dev(), kind, fetch, dst, a, b, pe, q);
	ret = gdri_atomic_of(kind, size, dst, a, b, pe, q, &old);
	if (!ret)
		gdri_unbits(fetch, old, size);
	return ret;
}

/* ---- float, double ---- */

GDR_DEVICE uint64_t gdri_float_sum(uint64_t bits, uint64_t value, uint32_t size)
{
	double d, e;
	float f, g;

	if (size == 8) {
		memcpy(&d, &bits, 8);
		memcpy(&e, &value, 8);
		d += e;
		return gdri_bits(&d, 8);
	}
	memcpy(&f, &bits, 4);
	memcpy(&g, &value, 4);
	f += g;
	return gdri_bits(&f, 4);
}

#define GDRI_FLOAT_AWAY 10   /* doublings of the time away, */
#define GDRI_FLOAT_LIMITS 64 /* which is at most such a part of the limit of every wait */

/* Another one came between. Of many that try at once one succeeds, and all others make its way longer: a thread that
 * lost stays away for a random part of a time that doubles, at first that of its quickest try. What it has seen is old
 * then: the try behind that, which likely fails, too, reads the word anew, and the next one follows at once. */
GDRI_NOINLINE int gdri_float_lost(struct gdri_dev *dev, struct gdri_waiter *w, uint32_t tries, uint64_t took_ns)
{
	uint64_t begin = gdr_clock_ns(), most = dev->timeout_ns / GDRI_FLOAT_LIMITS;
	uint64_t who = (uint64_t)gdri_k(dev, pe) << 48 ^ (uint64_t)gdr_block_id() << 16 ^ gdr_thread_id();
	uint64_t draw = ((begin ^ who) * 0x9e3779b97f4a7c15ull) >> 48, away;
	int ret;

	if (tries & 1)
		return gdri_wait_step(dev, w);
	tries /= 2;
	away = took_ns << (tries < GDRI_FLOAT_AWAY ? tries : GDRI_FLOAT_AWAY);
	away = (away < most ? away : most) * draw >> 16;
	do
		ret = gdri_wait_step(dev, w);
	while (!ret && gdr_clock_ns() - begin < away);
	return ret;
}

/* No NIC adds them, nor does C: compare-and-swap until nobody came between. Somebody's succeeds each
 * time; who never wins ends at the limit of every wait. */
GDRI_NOINLINE int gdri_float_add_any(uint32_t size, void *dst, uint64_t value, int pe, uint32_t q,
				     uint64_t *old)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_waiter w;
	uint64_t seen, began, took = ~0ull >> 32;
	uint32_t tries = 0;
	int ret;

	GDRI_BY_ABI(gdri_float_add_any);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	ret = gdri_xfer_fetch_atomic(dev, GDRI_AMO_FETCH, size, dst, 0, 0, pe, q, &seen);
	gdri_wait_begin(&w, GDRI_FETCH_AMO, pe, 0);
	for (; !ret; ret = gdri_float_lost(dev, &w, tries++, took)) {
		began = gdr_clock_ns();
		*old = seen;
		ret = gdri_xfer_fetch_atomic(dev, GDRI_AMO_CSWAP, size, dst,
					     gdri_float_sum(*old, value, size), *old, pe, q, &seen);
		if (ret || seen == *old)
			break;
		took = gdri_min_u64(took, gdr_clock_ns() - began);
	}
	if (ret)
		gdri_wait_leave(dev, &w);
	else
		gdri_wait_end(dev, &w);
	return ret;
}

/* GPUs add them in memory, also in that of a peer. */
GDR_DEVICE int gdri_float_add(uint32_t size, void *dst, uint64_t value, int pe, uint32_t q, uint64_t *old)
{
#ifdef __CUDACC__
	if (gdri_direct()) {
		*old = gdri_amo_float_add(size, gdri_direct_at(dst, pe), value);
		return 0;
	}
#endif
	return GDRI_ELSE(gdri_float_add_any(size, dst, value, pe, q, old));
}

GDR_DEVICE uint64_t gdri_float_fetch_add(uint32_t size, void *dst, uint64_t value, int pe, uint32_t q)
{
	uint64_t old = 0;
	int ret = gdri_float_add(size, dst, value, pe, q, &old);

	if (gdri_unlikely(ret) && gdri_dev())
		gdri_latch(gdri_dev(), ret);
	return ret ? 0 : old;
}

GDR_DEVICE int gdri_float_add_only(uint32_t size, void *dst, uint64_t value, int pe, uint32_t q)
{
	uint64_t old;

	return gdri_float_add(size, dst, value, pe, q, &old);
}

GDR_DEVICE int gdri_float_add_nbi(uint32_t size, void *fetch, void *dst, uint64_t value, int pe, uint32_t q)
{
	uint64_t old;
	int ret = gdri_float_add(size, dst, value, pe, q, &old);

	if (!ret)
		gdri_unbits(fetch, old, size);
	return ret;
}

/* ---- rows ---- */

/* what, kind, a, b: of the request of a host thread. */
#define GDRI_AMO_FN(pre, op, T, params, result, what, kind, a)                                     \
	GDRI_FN_CTX(GDRI_THREAD, int, GDRI_NAMES(pre, atomic_##op, , ), params,                    \
		     (GDRI_AMO, GDRI_THREAD), gdri_check_sym(&at, GDRI_DEST, dst, sizeof(T), sizeof(T), pe),  \
		     result, gdri_ask_amo(what, kind, sizeof(T), dst, a, 0, pe))
#define GDRI_AMO_FETCH_FN(pre, op, T, params, bits, what, kind, a, b)                              \
	GDRI_FN_VALUE_CTX(T, GDRI_NAMES(pre, atomic_##op, , ), params,                             \
			   (GDRI_FETCH_AMO, GDRI_THREAD),                                          \
			   gdri_check_sym(&at, GDRI_DEST, dst, sizeof(T), sizeof(T), pe),                     \
			   gdri_unbits(&out, bits, sizeof(T)),                                     \
			   gdri_unbits(&out, gdri_ask_fetch(what, kind, sizeof(T), dst, a, b, pe), \
				       sizeof(T)))
/* Host threads wait: the value is there when it returns. */
#define GDRI_AMO_NBI_FN(pre, op, T, params, result, what, kind, a, b)                              \
	GDRI_FN_CTX(GDRI_THREAD, int, GDRI_NAMES(pre, atomic_##op, , _nbi), params,                \
		    (GDRI_FETCH_AMO, GDRI_THREAD), gdri_check_fetch(&at, fetch, dst, sizeof(T), pe), result, \
		    gdri_ask_fetch_to(what, kind, sizeof(T), fetch, dst, a, b, pe))

/* One that brings the old value, in both forms; a: the operand. */
#define GDRI_AMO_PAIR(pre, op, T, params, nbi_params, kind, a, b)                                  \
	GDRI_AMO_FETCH_FN(pre, op, T, params, gdri_fetch_atomic(kind, sizeof(T), dst, a, b, pe, q), \
			  GDRI_RQ_FETCH_AMO, kind, a, b)                                           \
	GDRI_AMO_NBI_FN(pre, op, T, nbi_params,                                                    \
			gdri_fetch_nbi(kind, sizeof(T), fetch, dst, a, b, pe, q),                  \
			GDRI_RQ_FETCH_AMO, kind, a, b)

#define GDRI_AMO_VALUE gdri_bits(&value, sizeof(value))

/* What every type has. */
#define GDRI_AMO_COMMON(pre, T, E, z)                                                              \
	GDRI_AMO_FN(pre, set, T, (T * dst, T value, int pe),                                       \
		    gdri_atomic(GDRI_AMO_SET, sizeof(T), dst, GDRI_AMO_VALUE, pe, q), GDRI_RQ_AMO, \
		    GDRI_AMO_SET, GDRI_AMO_VALUE)                                                  \
	GDRI_AMO_FETCH_FN(pre, fetch, T, (const T *dst, int pe),                                   \
			  gdri_fetch_atomic(GDRI_AMO_FETCH, sizeof(T), (void *)(uintptr_t)dst, 0,  \
					    0, pe, q), GDRI_RQ_FETCH_AMO, GDRI_AMO_FETCH, 0, 0)    \
	GDRI_AMO_NBI_FN(pre, fetch, T, (T * fetch, const T *dst, int pe),                          \
			gdri_fetch_nbi(GDRI_AMO_FETCH, sizeof(T), fetch, (void *)(uintptr_t)dst,   \
				       0, 0, pe, q), GDRI_RQ_FETCH_AMO, GDRI_AMO_FETCH, 0, 0)      \
	GDRI_AMO_PAIR(pre, swap, T, (T * dst, T value, int pe),                                    \
		      (T * fetch, T * dst, T value, int pe), GDRI_AMO_SWAP, GDRI_AMO_VALUE, 0)     \
	GDRI_AMO_PAIR(pre, compare_swap, T, (T * dst, T cond, T value, int pe),                    \
		      (T * fetch, T * dst, T cond, T value, int pe), GDRI_AMO_CSWAP,               \
		      GDRI_AMO_VALUE, gdri_bits(&cond, sizeof(T)))

#define GDRI_AMO_INTEGER(op, kind, pre, T)                                                         \
	GDRI_AMO_FN(pre, op, T, (T * dst, T value, int pe),                                        \
		    gdri_atomic(GDRI_AMO_##kind, sizeof(T), dst, GDRI_AMO_VALUE, pe, q),           \
		    GDRI_RQ_AMO, GDRI_AMO_##kind, GDRI_AMO_VALUE)                                  \
	GDRI_AMO_PAIR(pre, fetch_##op, T, (T * dst, T value, int pe),                              \
		      (T * fetch, T * dst, T value, int pe), GDRI_AMO_##kind, GDRI_AMO_VALUE, 0)

#define GDRI_AMO_ROWS(pre, T, E, z)                                                                \
	GDRI_AMO_COMMON(pre, T, E, z)                                                              \
	GDRI_AMO_FN(pre, inc, T, (T * dst, int pe),                                                \
		    gdri_atomic(GDRI_AMO_ADD, sizeof(T), dst, 1, pe, q), GDRI_RQ_AMO, GDRI_AMO_ADD, 1) \
	GDRI_AMO_PAIR(pre, fetch_inc, T, (T * dst, int pe), (T * fetch, T * dst, int pe),          \
		      GDRI_AMO_ADD, 1, 0)                                                          \
	GDRI_AMO_NUMBER_OPS(GDRI_AMO_INTEGER, pre, T)                                              \
	GDRI_AMO_BIT_OPS(GDRI_AMO_INTEGER, pre, T)

#define GDRI_AMO_FLOAT(pre, op, fetch_op, T, params, nbi_params, a)                                \
	GDRI_AMO_FN(pre, op, T, params, gdri_float_add_only(sizeof(T), dst, a, pe, q),             \
		    GDRI_RQ_FLOAT_ADD, 0, a)                                                       \
	GDRI_AMO_FETCH_FN(pre, fetch_op, T, params, gdri_float_fetch_add(sizeof(T), dst, a, pe, q), \
			  GDRI_RQ_FLOAT_ADD, 0, a, 0)                                              \
	GDRI_AMO_NBI_FN(pre, fetch_op, T, nbi_params,                                              \
			gdri_float_add_nbi(sizeof(T), fetch, dst, a, pe, q), GDRI_RQ_FLOAT_ADD, 0, a, 0)

#define GDRI_AMO_FLOAT_ROWS(pre, T, E, z)                                                          \
	GDRI_AMO_COMMON(pre, T, E, z)                                                              \
	GDRI_AMO_FLOAT(pre, inc, fetch_inc, T, (T * dst, int pe), (T * fetch, T * dst, int pe),    \
		       (E) == 8 ? GDRI_ONE_F64 : GDRI_ONE_F32)                                     \
	GDRI_AMO_FLOAT(pre, add, fetch_add, T, (T * dst, T value, int pe),                         \
		       (T * fetch, T * dst, T value, int pe), GDRI_AMO_VALUE)
#define GDRI_ONE_F32 0x3f800000u /* 1 as IEEE 754 writes it */
#define GDRI_ONE_F64 0x3ff0000000000000ull

GDRI_TEMPLATE(gdri_t_amo, GDRI_AMO_ROWS)
GDRI_TEMPLATE(gdri_t_amof, GDRI_AMO_FLOAT_ROWS)

#if !defined(__CUDACC__) || defined(GDRI_PRINT_NAMES)
#define GDRI_AMO_TYPE(name, T)                                                                     \
	GDRI_OF(gdri_t_amo, T, sizeof(T))                                                          \
	GDRI_AMO_ROWS(name##_, T, sizeof(T), )
#define GDRI_AMO_FLOAT_TYPE(name, T)                                                               \
	GDRI_OF(gdri_t_amof, T, sizeof(T))                                                         \
	GDRI_AMO_FLOAT_ROWS(name##_, T, sizeof(T), )
GDR_AMO_TYPES(GDRI_AMO_TYPE)
GDR_FLOAT_TYPES(GDRI_AMO_FLOAT_TYPE)
#endif

#endif
