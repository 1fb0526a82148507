/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol, reservation: blocks of the ring for the caller, and whether its first one carries the fence bit.
 * Arguments: docs/memory-model.md, under the names used here. */
#ifndef GDRI_RESERVE_H
#define GDRI_RESERVE_H

#include <gdr/impl/complete.h>

GDR_DEVICE_COLD void gdri_qp_mark_used(struct gdri_dev *dev, const struct gdri_qp *qp)
{
	uint64_t i = (uint64_t)(qp - dev->qps), bit = 1ull << (i & 63u);

	/* before the caller's reservation, in its own order: a quiet that is behind the post sees it */
	if (!(gdri_ld_relaxed_gpu_u64(&dev->used[i >> 6]) & bit))
		gdri_or_u64(&dev->used[i >> 6], bit);
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

/* One look: 1 `room` has n blocks at least (limit raised), 0 not now, < 0 the queue's error. The caller makes a fence
 * behind a look that found what it claimed: pairs with that before gdri_sq_raise. */
GDR_DEVICE int gdri_sq_look(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n)
{
	uint64_t limit;
	int err;

	gdri_poll(dev, qp);
	err = (int)gdri_ld_acquire_gpu_u32((const uint32_t *)&qp->err); /* as in gdri_qp_test */
	if (err)
		return err;
	limit = gdri_ld_fenced_u64(&qp->done) + qp->depth - 1; /* one block of slack */
	gdri_fence_nic(); /* the NIC has read the blocks given back; pairs as in gdri_qp_test */
	gdri_sq_raise(qp, limit);
	return (int64_t)gdri_ld_fenced_u64(&qp->room) >= (int64_t)n; /* as gdri_sq_enough */
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

/* Who has waited long takes its n blocks off though there are too few: `room` is below 0, and nobody else gets any,
 * until as many have come back. One at a time, so that a ring that runs empty has them: n <= depth / 4. */
GDR_DEVICE_COLD uint32_t gdri_sq_claim(struct gdri_qp *qp, uint32_t n)
{
	uint32_t none = 0;

	if (gdri_ld_relaxed_gpu_u32(&qp->claimed) || !gdri_cas_u32(&qp->claimed, &none, 1))
		return 0;
	gdri_sq_take(qp, n);
	return 1;
}

/* The wait is over, the next one may claim. n: what is given back. The fence is that behind the look at `room`. */
GDR_DEVICE_COLD void gdri_sq_unclaim(struct gdri_qp *qp, uint32_t n)
{
	gdri_fence_nic();
	if (n)
		gdri_sq_give_back(qp, n);
	gdri_st_relaxed_gpu_u32(&qp->claimed, 0);
}

/* One look for who waits: 1 the caller has leave for n blocks, by what it claimed or by taking them now; else as
 * gdri_sq_look. */
GDR_DEVICE_COLD int gdri_sq_try(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n, uint32_t claimed)
{
	int ret = gdri_sq_look(dev, qp, claimed ? 0 : n);

	if (ret <= 0 || claimed)
		return ret;
	if (gdri_sq_enough(gdri_sq_take(qp, n), n))
		return 1;
	gdri_sq_give_back(qp, n);
	return 0;
}

/* Until the caller has leave for n blocks (1), or an error. Who has waited long claims them. */
GDR_DEVICE_COLD int gdri_sq_wait(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n, struct gdri_waiter *w)
{
	uint32_t claimed = 0;
	int ret;

	while (!(ret = gdri_sq_try(dev, qp, n, claimed))) {
		ret = gdri_wait_step(dev, w);
		if (ret)
			break;
		if (!claimed && gdri_wait_is_long(w))
			claimed = gdri_sq_claim(qp, n);
	}
	if (claimed)
		gdri_sq_unclaim(qp, ret < 0 ? n : 0);
	return ret;
}

/* First use, full ring or error: leave for n blocks, or an error. The caller holds no blocks, so that whoever does is
 * never waiting for it. */
GDRI_NOINLINE int gdri_sq_room(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n)
{
	struct gdri_waiter w;
	int ret;

	if (!qp->sq)
		return -GDR_ESTATE;
	gdri_qp_mark_used(dev, qp);
	gdri_wait_begin(&w, GDRI_QUEUE_FULL, qp->peer, 0);
	ret = gdri_sq_wait(dev, qp, n, &w);
	if (gdri_unlikely(ret < 0)) {
		gdri_wait_leave(dev, &w);
		return ret;
	}
	gdri_wait_end(dev, &w);
	return 0;
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
	if (gdri_sq_enough(gdri_sq_take(qp, n), n))
		return gdri_sq_next(qp, n);
	gdri_sq_give_back(qp, n);
	return GDRI_NO_ROOM;
}

/* gdri_sq_reserve_now, waiting for room. */
GDR_DEVICE int gdri_sq_reserve(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n, uint64_t *base)
{
	int ret;

	*base = gdri_sq_reserve_now(qp, n);
	if (gdri_likely(*base != GDRI_NO_ROOM))
		return 0;
	ret = gdri_sq_room(dev, qp, n);
	if (ret)
		return ret;
	*base = gdri_sq_next(qp, n);
	return 0;
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
