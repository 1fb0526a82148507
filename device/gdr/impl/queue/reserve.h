/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol, reservation: blocks of the ring for the caller, and whether its first one carries the fence bit.
 * Arguments: docs/memory-model-internals.md, under the names used here. */
#ifndef GDRI_RESERVE_H
#define GDRI_RESERVE_H

#include <gdr/impl/queue/complete.h>
#include <gdr/impl/queue/gate.h>

GDR_DEVICE_COLD void gdri_qp_mark_used(struct gdri_dev *dev, const struct gdri_qp *qp)
{
	uint64_t i = (uint64_t)(qp - dev->qps), bit = 1ull << (i & 63u);

	/* before the caller's reservation, in its own order: a quiet that is behind the post sees it */
	if (!(gdri_ld_relaxed_gpu_u64(&dev->used[i >> 6]) & bit))
		gdri_or_u64(&dev->used[i >> 6], bit);
}

GDR_DEVICE int gdri_qp_is_used(const struct gdri_dev *dev, const struct gdri_qp *qp)
{
	uint64_t i = (uint64_t)(qp - dev->qps);

	return qp->sq && (gdri_ld_relaxed_gpu_u64(&dev->used[i >> 6]) >> (i & 63u) & 1u);
}

/* Blocks up to the new limit may be taken. The caller's fence stands behind its look at done: pairs with gdri_sq_take.
 * Only who moved limit puts in what lies between. */
GDR_DEVICE void gdri_sq_raise(struct gdri_qp *qp, uint64_t limit)
{
	uint64_t old = gdri_ld_relaxed_gpu_u64(&qp->limit);

	while (old < limit) {
		if (!gdri_cas_u64(&qp->limit, &old, limit))
			continue;
		gdri_add_fenced_u64(&qp->room, limit - old);
		break;
	}
}

/* The blocks that nobody has taken, in a value of `room`, whether others wait for them or not. */
GDR_DEVICE int64_t gdri_sq_free(uint64_t room)
{
	return (int64_t)(room << (64 - GDRI_ROOM_BITS)) >> (64 - GDRI_ROOM_BITS);
}

/* gdri_sq_look, when the queue was polled. */
GDRI_SLOW int gdri_sq_polled(struct gdri_qp *qp, uint32_t n)
{
	int err = (int)gdri_ld_acquire_gpu_u32((const uint32_t *)&qp->err); /* as in gdri_qp_test */
	uint64_t limit;

	if (err)
		return err;
	limit = gdri_ld_fenced_u64(&qp->done) + qp->depth - 1; /* one block of slack */
	gdri_fence_nic(); /* the NIC has read the blocks given back; pairs as in gdri_qp_test */
	gdri_sq_raise(qp, limit);
	return gdri_sq_free(gdri_ld_relaxed_gpu_u64(&qp->room)) >= (int64_t)n;
}

/* One look: 1 n blocks at least are free (limit raised), 0 not now, < 0 the queue's error. */
GDR_DEVICE int gdri_sq_look(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n)
{
	gdri_poll(dev, qp);
	return gdri_sq_polled(qp, n);
}

/* Leave to reserve n blocks, one addition however many ask at once: what there was before, for gdri_sq_enough. Pairs
 * with the fence before gdri_sq_raise; the write of blocks depends on it. */
GDR_DEVICE uint64_t gdri_sq_take(struct gdri_qp *qp, uint32_t n)
{
	return gdri_add_fenced_u64(&qp->room, 0 - (uint64_t)n);
}

GDR_DEVICE int gdri_sq_enough(uint64_t room, uint32_t n)
{
	return gdri_likely((int64_t)room >= (int64_t)n);
}

/* It was not enough. Others may meanwhile have found too little: they look again. */
GDR_DEVICE void gdri_sq_give_back(struct gdri_qp *qp, uint32_t n)
{
	gdri_add_fenced_u64(&qp->room, n);
}

/* n blocks, if there is room for them now, and nobody waits. 1: the caller has leave for them. */
GDR_DEVICE int gdri_sq_take_now(struct gdri_qp *qp, uint32_t n)
{
	if (gdri_sq_enough(gdri_sq_take(qp, n), n))
		return 1;
	gdri_sq_give_back(qp, n);
	return 0;
}

/* n blocks of those that are free, whoever waits. 1: the caller has leave for them. */
GDR_DEVICE_COLD int gdri_sq_take_free(struct gdri_qp *qp, uint32_t n)
{
	if (gdri_sq_free(gdri_sq_take(qp, n)) >= (int64_t)n)
		return 1;
	gdri_sq_give_back(qp, n);
	return 0;
}

/* Out of turn: whoever runs uses what those whose turn it is, and who do not run, leave unused; else each post
 * would wait until all of them have run. What anybody asks for (gdri_post_begin_any) stays there: each of them finds
 * it at its next look. And as many times in a turn, no more, for threads that run do not do so equally. */
GDR_DEVICE_COLD int gdri_sq_take_spare(struct gdri_qp *qp, uint32_t n)
{
	uint64_t gate = gdri_ld_relaxed_gpu_u64(&qp->gate);
	uint32_t spare = qp->depth / 4;

	if (gdri_sq_free(gdri_ld_relaxed_gpu_u64(&qp->room)) < (int64_t)n + spare)
		return 0;
	if (gdri_gate_spent(gate) >= spare || !gdri_cas_u64(&qp->gate, &gate, gate + GDRI_GATE_SPENT))
		return 0;
	return gdri_sq_take_free(qp, n);
}

#define GDRI_NO_ROOM (~0ull) /* no index, `ready` counts to 2^63: nothing was reserved */

/* n blocks that the caller has leave for, so that rsvd never passes limit and rsvd - done < depth always holds. It only
 * counts, blocks are handed on by `ready`; but one of those that reserved up to here took its leave behind the
 * raise that was for these blocks, and comes before. */
GDR_DEVICE uint64_t gdri_sq_next(struct gdri_qp *qp, uint32_t n)
{
	return gdri_add_fenced_u64(&qp->rsvd, n);
}

/* n blocks (at most depth / 4), if there is room for them now. */
GDR_DEVICE uint64_t gdri_sq_reserve_now(struct gdri_qp *qp, uint32_t n)
{
	return gdri_likely(gdri_sq_take_now(qp, n)) ? gdri_sq_next(qp, n) : GDRI_NO_ROOM;
}

/* One block of those that are free, whoever waits. */
GDRI_SLOW uint64_t gdri_sq_next_free(struct gdri_qp *qp)
{
	return gdri_sq_take_free(qp, 1) ? gdri_sq_next(qp, 1) : GDRI_NO_ROOM;
}

/* gdri_sq_reserve_beside, when the queue was polled. */
GDR_DEVICE uint64_t gdri_sq_reserve_polled(struct gdri_qp *qp)
{
	return gdri_sq_polled(qp, 1) > 0 ? gdri_sq_next_free(qp) : GDRI_NO_ROOM;
}

/* A block for what a wait posts itself, which waits for nobody: beside those that wait for room, now or not at all. */
GDR_DEVICE uint64_t gdri_sq_reserve_beside(struct gdri_dev *dev, struct gdri_qp *qp)
{
	gdri_poll(dev, qp);
	return gdri_sq_reserve_polled(qp);
}

/* ---- fences ---- */

/* READs and atomics are in order with what follows them only if that has the fence bit. A
 * fence counts up fence_seq; the first block of each queue that is reserved after that
 * carries the bit, for all threads. Both words are read BEFORE the reservation: who finds
 * `fenced` up to date reserves behind that block. *seq: what to mark the queue with.
 *
 * Which of them is read first does not matter, so neither waits for the other: both only grow, and the number
 * of a fence that the caller is to keep is in what it reads of fence_seq anyhow. */
GDR_DEVICE int gdri_sq_fence_due(const struct gdri_dev *dev, const struct gdri_qp *qp,
				 uint64_t *seq)
{
	*seq = gdri_ld_fenced_u64(&dev->fence_seq); /* pairs with the fence in gdr_fence, by the fence below */
	/* acquire: pairs with the fence in gdri_sq_fenced */
	if (gdri_likely(gdri_ld_acquire_gpu_u64(&qp->fenced) == *seq))
		return 0;
	gdri_fence_gpu(); /* what was reserved before that fence, before the own reservation */
	return 1;
}

/* The caller has reserved a block and gives it the fence bit. */
GDR_DEVICE void gdri_sq_fenced(struct gdri_qp *qp, uint64_t seq)
{
	gdri_fence_gpu(); /* the reservation before the mark */
	gdri_max_u64(&qp->fenced, seq);
}

#endif
