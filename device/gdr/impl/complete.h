/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol, completion: what of a queue is complete, by its CQ, and waiting for it. Proofs for indexes that
 * wrap: docs/memory-model.md, "Wrap". */
#ifndef GDRI_COMPLETE_H
#define GDRI_COMPLETE_H

#include <gdr/impl/error.h>
#include <gdr/impl/waiter.h>

/* The largest index <= r whose low bits (mask: 0xffff) are those of low; below 0 (as
 * a signed number) when there is none. */
GDR_DEVICE uint64_t gdri_index_below(uint64_t r, uint64_t low, uint64_t mask)
{
	return r - ((r - low) & mask);
}

/* What a CQE's tail says: every block below is complete. A CQE carries the index of its
 * WQE's first block. r: rsvd, read at a time that the caller vouches for. */
GDR_DEVICE uint64_t gdri_tail_done(uint64_t r, uint32_t tail)
{
	return gdri_index_below(r, gdri_bswap16((uint16_t)tail) + 1u, 0xffffu);
}

/* One entry, overwritten by each completion. rsvd is read FIRST: then the result
 * is a lower bound however long this thread is delayed (memory-model, "Wrap"). */
GDR_DEVICE void gdri_poll_one(struct gdri_dev *dev, struct gdri_qp *qp)
{
	uint64_t r = gdri_ld_acquire_gpu_u64(&qp->rsvd), done; /* acquire: before the tail */
	uint32_t tail = gdri_ld_fenced_u32(&qp->cq->tail);
	uint32_t opcode = tail >> 28;

	if (gdri_unlikely(opcode >= GDRI_CQE_REQ_ERR)) {
		if (opcode != GDRI_CQE_INVALID)
			gdri_cqe_latch(dev, qp, qp->cq);
		return;
	}
	done = gdri_tail_done(r, tail);
	/* signed: after a long delay within the first 65536 blocks it is below 0 */
	if ((int64_t)done <= (int64_t)gdri_ld_relaxed_gpu_u64(&qp->done))
		return;
	gdri_fence_nic(); /* tail and data before it; pairs with the NIC's order of data and CQE */
	gdri_max_u64(&qp->done, done);
}

/* The tail of CQE number i, if it is there; else one that is invalid. */
GDR_DEVICE uint32_t gdri_ring_tail(const struct gdri_qp *qp, uint64_t i)
{
	/* acquire: before rsvd */
	uint32_t tail = gdri_ld_acquire_sys_u32(&qp->cq[i & qp->cq_mask].tail);
	uint32_t lap = (i & ((uint64_t)qp->cq_mask + 1)) != 0;

	return (tail >> 24 & 1u) == lap ? tail : (uint32_t)GDRI_CQE_INVALID << 28;
}

/* Ring: the entry whose turn it is, and with it those behind it, as far as looks at a distance that doubles
 * each time find good ones: entries come in order, and no good one behind an error. rsvd is read AFTER the
 * entries, and cq_ci again after that: unchanged, it was their turn all the while, so that they
 * cannot have been a later lap's. cq_ci before done: until done is raised, no later lap's can
 * be posted. Where nothing more is posted none is looked for, nor again behind one that was just seen
 * not to be there: a look is a way to the host where the entries are there. Returns 1 when there may be
 * more. */
GDR_DEVICE int gdri_poll_ring_step(struct gdri_dev *dev, struct gdri_qp *qp)
{
	uint64_t ci = gdri_ld_acquire_gpu_u64(&qp->cq_ci), n = 1, r;
	uint32_t tail = gdri_ring_tail(qp, ci), next = (uint32_t)GDRI_CQE_INVALID << 28;

	if (tail >> 28 == GDRI_CQE_INVALID)
		return 0;
	r = gdri_ld_relaxed_gpu_u64(&qp->rsvd); /* a guess, which saves a look */
	while (gdri_tail_done(r, tail) != r && tail >> 28 < GDRI_CQE_REQ_ERR && 2 * n <= qp->cq_mask) {
		next = gdri_ring_tail(qp, ci + 2 * n - 1);
		if (next >> 28 >= GDRI_CQE_REQ_ERR)
			break;
		tail = next;
		n *= 2;
	}
	r = gdri_ld_acquire_gpu_u64(&qp->rsvd);
	if (gdri_ld_relaxed_gpu_u64(&qp->cq_ci) != ci)
		return 1; /* somebody else consumed them: there may be more */
	if (gdri_unlikely(tail >> 28 >= GDRI_CQE_REQ_ERR)) {
		gdri_cqe_latch(dev, qp, &qp->cq[ci & qp->cq_mask]); /* and stays: nobody advances past it */
		return 0;
	}
	if (!gdri_cas_u64(&qp->cq_ci, &ci, ci + n))
		return 1;
	gdri_fence_nic(); /* as in gdri_poll_one */
	gdri_max_u64(&qp->done, gdri_tail_done(r, tail));
	return n > 1 || next >> 28 != GDRI_CQE_INVALID;
}

GDRI_NOINLINE void gdri_poll(struct gdri_dev *dev, struct gdri_qp *qp)
{
	uint32_t i;

	if (!qp->cq_mask)
		gdri_poll_one(dev, qp);
	else
		for (i = 0; i < qp->depth && gdri_poll_ring_step(dev, qp); i++)
			;
}

/* 1: every block below target is complete. 0: not yet. < 0: never, the queue's error. */
GDR_DEVICE int gdri_qp_test(const struct gdri_qp *qp, uint64_t target)
{
	/* err first: the completions before an error are counted before err is set */
	int err = (int)gdri_ld_acquire_gpu_u32((const uint32_t *)&qp->err);

	if (gdri_ld_fenced_u64(&qp->done) >= target) {
		gdri_fence_nic(); /* pairs with the fence before done was raised */
		return 1;
	}
	return err;
}

/* Whether err says that the peer no longer answers. A queue whose one CQ entry holds a flush has
 * lost the cause; nothing arrives over it any more, and that is what a wait needs to know. */
GDR_DEVICE_COLD int gdri_qp_lost_peer(const struct gdri_qp *qp, int err)
{
	return err == -GDR_ERETRY || err == -GDR_ERNR || (err == -GDR_EFLUSHED && !qp->cq_mask);
}

GDRI_NOINLINE int gdri_qp_wait(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target,
			       uint32_t op)
{
	struct gdri_waiter w;
	int ret;

	gdri_wait_begin(&w, op, qp->peer, 0);
	for (;;) {
		ret = gdri_qp_test(qp, target);
		if (ret)
			break;
		gdri_poll(dev, qp);
		ret = gdri_qp_test(qp, target);
		if (ret)
			break;
		ret = gdri_wait_step(dev, &w);
		if (ret)
			return ret;
	}
	if (gdri_unlikely(ret < 0)) {
		if (gdri_qp_lost_peer(qp, ret))
			gdri_wait_lost(dev, &w, qp->peer);
		gdri_wait_leave(dev, &w);
		return ret;
	}
	gdri_wait_end(dev, &w);
	return 0;
}

#endif
