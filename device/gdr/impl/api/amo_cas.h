/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics that combine the word and the operand as a reduction does (reduce_op.h): no NIC has them, nor C. GPUs have
 * sums of floats, maxima and minima on mapped memory, a transport in software one command for each
 * (GDRI_DEV_COMBINES); all else is a loop of compare-and-swap. */
#ifndef GDRI_AMO_CAS_H
#define GDRI_AMO_CAS_H

#include <gdr/impl/coll/reduce_op.h>
#include <gdr/impl/path/xfer.h>

#ifdef __CUDACC__
/* The order of floats is that of their bits as a signed number, and where the operand has the sign the other way round
 * as an unsigned one: then a word without it is the least of all. */
#define GDRI_AMO_ORDER(bits)                                                                       \
	GDR_DEVICE uint##bits##_t gdri_amo_order_u##bits(uint32_t code, uint##bits##_t *p, uint##bits##_t v) \
	{                                                                                          \
		uint32_t cls = code >> 4 & 15u;                                                    \
		int minus = cls == GDRI_C_FLOAT && v >> (bits - 1), max = (code >> 8 == GDRI_MAX) != minus; \
                                                                                                   \
		if (cls == GDRI_C_UNSIGNED || minus)                                               \
			return max ? gdri_amo_max_u##bits(p, v) : gdri_amo_min_u##bits(p, v);      \
		return max ? gdri_amo_max_signed_u##bits(p, v) : gdri_amo_min_signed_u##bits(p, v); \
	}
GDRI_AMO_ORDER(32)
GDRI_AMO_ORDER(64)

/* In memory: what fails is another's success. */
GDR_DEVICE uint64_t gdri_amo_retry(uint32_t code, uint32_t size, uint8_t *p, uint64_t operand)
{
	uint64_t old, seen = gdri_p2p_atomic(GDRI_AMO_FETCH, size, p, 0, 0);

	do {
		old = seen;
		seen = gdri_p2p_atomic(GDRI_AMO_CSWAP, size, p, gdri_amo_combine(code, old, operand), old);
	} while (seen != old);
	return old;
}

GDR_DEVICE uint64_t gdri_amo_mapped(uint32_t code, uint8_t *p, uint64_t operand)
{
	uint32_t op2 = code >> 8, size = 1u << (code & 15u);

	if (op2 == GDRI_SUM && (code >> 4 & 15u) == GDRI_C_FLOAT)
		return gdri_amo_float_add(size, p, operand);
	if (op2 != GDRI_MAX && op2 != GDRI_MIN)
		return gdri_amo_retry(code, size, p, operand);
	if (size == 8)
		return gdri_amo_order_u64(code, (uint64_t *)p, operand);
	return gdri_amo_order_u32(code, (uint32_t *)p, (uint32_t)operand);
}
#endif

#define GDRI_AMO_AWAY 10   /* doublings of the time away, */
#define GDRI_AMO_LIMITS 64 /* which is at most such a part of the limit of every wait */

/* A loop of compare-and-swap, in memory: its steps are functions that take few registers. */
struct gdri_amo_tries {
	struct gdri_operation o;
	struct gdri_waiter w;
	uint64_t operand, *old;
	uint64_t began, took, until;
	uint32_t code, n;
};

/* Another one came between. Of many that try at once one succeeds, and all others make its way longer: a thread that
 * lost stays away for a random part of a time that doubles, at first that of its quickest try. What it has seen is old
 * then: the try behind that, which likely fails, too, reads the word anew, and the next one follows at once. */
GDRI_NOINLINE void gdri_amo_lost(const struct gdri_dev *dev, struct gdri_amo_tries *t)
{
	uint64_t now = gdr_clock_ns(), most = dev->timeout_ns / GDRI_AMO_LIMITS, away;
	uint64_t who = (uint64_t)gdri_k(dev, pe) << 48 ^ (uint64_t)gdr_block_id() << 16 ^ gdr_thread_id();
	uint32_t twice = t->n / 2 < GDRI_AMO_AWAY ? t->n / 2 : GDRI_AMO_AWAY;

	t->took = gdri_min_u64(t->took, now - t->began);
	away = gdri_min_u64(t->took << twice, most) * (((now ^ who) * 0x9e3779b97f4a7c15ull) >> 48) >> 16;
	t->until = t->n++ & 1 ? now : now + away;
}

/* 1: there is nothing left to do. */
GDRI_NOINLINE int gdri_amo_next(struct gdri_amo_tries *t)
{
	*t->old = t->o.result;
	t->o.compare = t->o.result;
	t->o.value = gdri_amo_combine(t->code, t->o.compare, t->operand);
	return t->o.value == t->o.compare;
}

GDRI_FRAMELESS int gdri_amo_once(struct gdri_dev *dev, struct gdri_amo_tries *t)
{
	GDRI_DEV_CONSTANT(dev);
	t->began = gdr_clock_ns();
	return gdri_xfer_fetch(dev, &t->o);
}

/* Compare-and-swap until nobody came between. Who loses saw another's success: its limit counts from then, as that of
 * whoever waits for a queue counts from the last completion. A word that stays what it is was read atomically, which is
 * all that is to be done to it. A thread that stays away goes round this loop, not round one of its own: threads of a
 * warp leave a loop together, so that all would stay as long as the last of them and then try at once, 31 in vain. */
GDRI_NOINLINE int gdri_amo_loop(struct gdri_dev *dev, uint32_t code, void *dst, uint64_t operand, int pe, uint32_t q,
				uint64_t *old)
{
	struct gdri_amo_tries t;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	t.o = gdri_op_scalar(GDRI_FETCH_AMO, GDRI_AMO_FETCH, 1u << (code & 15u), dst, 0, pe, q);
	t.o.compare = 0;
	t.operand = operand;
	t.old = old;
	t.took = ~0ull >> 32;
	t.until = 0;
	t.code = code;
	t.n = 0;
	ret = gdri_amo_once(dev, &t);
	gdri_wait_begin(&t.w, GDRI_FETCH_AMO, pe, 0);
	for (t.o.kind = GDRI_AMO_CSWAP; !ret; ret = gdri_wait_step(dev, &t.w)) {
		if (gdr_clock_ns() < t.until && !t.w.ends)
			continue;
		if (gdri_amo_next(&t))
			break;
		ret = gdri_amo_once(dev, &t);
		if (ret || t.o.result == t.o.compare)
			break;
		gdri_wait_anew(dev, &t.w, t.n);
		gdri_amo_lost(dev, &t);
	}
	if (ret)
		gdri_wait_leave(dev, &t.w);
	else
		gdri_wait_end(dev, &t.w);
	return ret;
}

/* By queue, whose other end combines. */
GDRI_NOINLINE int gdri_amo_post_combine(struct gdri_dev *dev, uint32_t code, void *dst, uint64_t operand, int pe,
					uint32_t q, uint64_t *old)
{
	struct gdri_operation o;
	int ret;

	o = gdri_op_scalar(GDRI_FETCH_AMO, GDRI_AMO_COMBINED, 1u << (code & 15u), dst, operand, pe, q);
	o.compare = code;
	ret = gdri_xfer_post_atomic(dev, &o);
	if (!ret)
		*old = o.result;
	return ret;
}

GDRI_SLOW int gdri_slow_combine(uint32_t code, void *dst, uint64_t operand, int pe, uint32_t q, uint64_t *old)
{
	struct gdri_dev *dev = gdri_dev();
#ifdef __CUDACC__
	uint8_t *p;
#endif

	GDRI_BY_ABI(gdri_slow_combine);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
#ifdef __CUDACC__
	p = gdri_mapped_atomic(dev, dst, pe);
	if (p) {
		*old = gdri_amo_mapped(code, p, operand);
		return gdri_peer_status(dev, pe);
	}
#endif
	if (gdri_k(dev, flags) & GDRI_DEV_COMBINES && !gdri_mapped_atomic(dev, dst, pe))
		return gdri_amo_post_combine(dev, code, dst, operand, pe, q, old);
	return gdri_amo_loop(dev, code, dst, operand, pe, q, old);
}

GDR_DEVICE int gdri_amo_fetch_combine(uint32_t code, void *dst, uint64_t operand, int pe, uint32_t q, uint64_t *old)
{
#ifdef __CUDACC__
	return GDRI_DIRECT_OR((*old = gdri_amo_mapped(code, gdri_direct_at(dst, pe), operand), 0),
			      gdri_slow_combine(code, dst, operand, pe, q, old));
#else
	return gdri_slow_combine(code, dst, operand, pe, q, old);
#endif
}

#endif
