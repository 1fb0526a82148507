/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol, completion: what of a queue is complete, by its CQ, and a short wait for it. Proofs for indexes
 * that wrap: docs/memory-model-internals.md, "Wrap". */
#ifndef GDRI_COMPLETE_H
#define GDRI_COMPLETE_H

#include <gdr/impl/queue/error.h>
#include <gdr/impl/wait/waiter.h>

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
 * is a lower bound however long this thread is delayed (memory-model-internals, "Wrap"). 1: it is one of an error. */
GDR_DEVICE int gdri_poll_one(struct gdri_qp *qp)
{
	uint64_t r = gdri_ld_acquire_gpu_u64(&qp->rsvd), done; /* acquire: before the tail */
	uint32_t tail = gdri_ld_fenced_u32(&qp->cq->tail);
	uint32_t opcode = tail >> 28;

	if (gdri_unlikely(opcode >= GDRI_CQE_REQ_ERR))
		return opcode != GDRI_CQE_INVALID;
	done = gdri_tail_done(r, tail);
	/* signed: after a long delay within the first 65536 blocks it is below 0 */
	if ((int64_t)done <= (int64_t)gdri_ld_relaxed_gpu_u64(&qp->done))
		return 0;
	gdri_fence_nic(); /* tail and data before it; pairs with the NIC's order of data and CQE */
	gdri_max_u64(&qp->done, done);
	return 0;
}

/* tail, if it is that of CQE number i and not of the lap before; else one that is invalid. */
GDR_DEVICE uint32_t gdri_tail_of(const struct gdri_qp *qp, uint64_t i, uint32_t tail)
{
	uint32_t lap = (i & ((uint64_t)qp->cq_mask + 1)) != 0;

	return (tail >> 24 & 1u) == lap ? tail : (uint32_t)GDRI_CQE_INVALID << 28;
}

GDR_DEVICE uint32_t gdri_ring_tail(const struct gdri_qp *qp, uint64_t i)
{
	/* acquire: before rsvd */
	return gdri_tail_of(qp, i, gdri_ld_acquire_sys_u32(&qp->cq[i & qp->cq_mask].tail));
}

/* Ring: the entry whose turn it is, and with it those behind it, as far as looks at a distance that doubles
 * each time find good ones: entries come in order, and no good one behind an error. rsvd is read AFTER the
 * entries, and cq_ci again after that: unchanged, it was their turn all the while, so that they
 * cannot have been a later lap's. cq_ci before done: until done is raised, no later lap's can
 * be posted. Where nothing more is posted none is looked for, nor again behind one that was just seen
 * not to be there: a look is a way to the host where the entries are there. Returns 1 when there may be
 * more, -1 where it is the turn of an entry of an error, which stays: nobody advances past it. */
GDR_DEVICE int gdri_poll_ring_step(struct gdri_qp *qp)
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
	if (gdri_unlikely(tail >> 28 >= GDRI_CQE_REQ_ERR))
		return -1;
	gdri_fence_nic(); /* as in gdri_poll_one; the entries before cq_ci, too: pairs with its acquire */
	if (!gdri_cas_u64(&qp->cq_ci, &ci, ci + n))
		return 1;
	gdri_max_u64(&qp->done, gdri_tail_done(r, tail));
	return n > 1 || next >> 28 != GDRI_CQE_INVALID;
}

GDR_DEVICE int gdri_poll_ring(struct gdri_qp *qp)
{
	int more = 1;

	GDRI_NOT_UNROLLED
	for (uint32_t i = 0; i < qp->depth && more > 0; i++)
		more = gdri_poll_ring_step(qp);
	return more < 0;
}

/* A GPU reads one line of the host's memory once at a time, and whatever else it asks of the host stands behind the
 * reads that wait for their turn: where many blocks look at one entry, the copies of the proxy that is to complete it
 * take many times as long (docs/perf/ofi.md). So one thread looks, and the others at what it found, in memory of the
 * GPU. 1: the caller looks, and calls gdri_look_ends. Orders nothing, as looks by many need no order among them: pairs
 * with nothing. */
GDR_DEVICE int gdri_look_begins(struct gdri_qp *qp)
{
	uint32_t none = 0;

	return !GDRI_SPINS || gdri_likely(!qp->cq_far) || gdri_cas_u32(&qp->looker, &none, 1);
}

GDR_DEVICE void gdri_look_ends(struct gdri_qp *qp)
{
	if (GDRI_SPINS && gdri_unlikely(qp->cq_far))
		gdri_st_relaxed_gpu_u32(&qp->looker, 0);
}

/* By who looks. 1: it is the turn of an entry of an error. */
GDRI_SLOW int gdri_poll_now(struct gdri_qp *qp)
{
	return qp->cq_mask ? gdri_poll_ring(qp) : gdri_poll_one(qp);
}

/* As gdri_poll_now. Where another thread looks it does nothing: who needs what that one finds comes again. */
GDRI_SLOW int gdri_poll_entries(struct gdri_qp *qp)
{
	int ret;

	if (!gdri_look_begins(qp))
		return 0;
	ret = gdri_poll_now(qp);
	gdri_look_ends(qp);
	return ret;
}

GDRI_FRAMELESS void gdri_poll(struct gdri_dev *dev, struct gdri_qp *qp)
{
	if (gdri_unlikely(gdri_poll_entries(qp)))
		gdri_cqe_latch(dev, qp);
}

/* What `done` has to come to for all that was published when gdri_qp.ready was this. */
GDR_DEVICE uint64_t gdri_published(uint64_t ready)
{
	return (ready >> 1) - (ready & 1u);
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

/* Looks at a queue, a few times as long as an operation takes, before a wait gets a frame. */
#define GDRI_CQ_LOOKS (4 * GDRI_SPINS + 1)

/* The smallest index > d whose low bits (mask: 0xffff) are those of low. */
GDR_DEVICE uint64_t gdri_index_above(uint64_t d, uint64_t low, uint64_t mask)
{
	return d + 1 + ((low - d - 1) & mask);
}

/* What the tail of the CQE whose turn it is says, where `done` was read between its turn and its consumption: every
 * block below is complete (memory-model-internals, "Wrap"). */
GDR_DEVICE uint64_t gdri_tail_next(uint64_t done, uint32_t tail)
{
	return gdri_index_above(done, gdri_bswap16((uint16_t)tail) + 1u, 0xffffu);
}

/* Waits for the next entry of a ring, whose tail it is, or (invalid) until somebody else has consumed what is waited
 * for, *all, or it did not come. Both are asked for at once. */
GDR_DEVICE uint32_t gdri_ring_next(const struct gdri_qp *qp, uint64_t ci, uint64_t target, int *looks, int *all)
{
	uint32_t tail;

	GDRI_NOT_UNROLLED
	for (;;) {
		*all = gdri_ld_fenced_u64(&qp->done) >= target; /* acquires by the caller's fence */
		tail = gdri_ring_tail(qp, ci); /* acquire: before the caller moves cq_ci */
		if (*all || tail >> 28 != GDRI_CQE_INVALID || ++*looks >= GDRI_CQ_LOOKS)
			return tail;
		gdr_pause((unsigned)*looks);
	}
}

/* gdri_qp_wait_short, by who looks. */
GDR_DEVICE int gdri_qp_wait_looks(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target)
{
	uint64_t ci, done;
	uint32_t tail;
	int all, mine;

	for (int looks = 0; looks < GDRI_CQ_LOOKS; looks++) {
		ci = gdri_ld_acquire_gpu_u64(&qp->cq_ci);  /* before done */
		done = gdri_ld_acquire_gpu_u64(&qp->done); /* before cq_ci is moved */
		tail = gdri_ring_next(qp, ci, target, &looks, &all);
		if (!all && tail >> 28 >= GDRI_CQE_REQ_ERR)
			return 0;
		done = gdri_tail_next(done, tail);
		if (!all && done < target) { /* one of many */
			if (gdri_unlikely(gdri_poll_now(qp)))
				gdri_cqe_latch(dev, qp);
			continue;
		}
		gdri_fence_nic(); /* as in gdri_poll_ring_step and gdri_qp_test */
		mine = !all && gdri_cas_u64(&qp->cq_ci, &ci, ci + 1);
		if (mine)
			gdri_max_u64(&qp->done, done);
		if (mine || all)
			return 1;
	}
	return 0;
}

/* A wait as short as it can be: behind the entry there is the one fence, then one step of the counter. 1: every block
 * below target is complete. 0: not seen, another thread looks, or it is not that simple: an entry of an error. */
GDRI_SLOW int gdri_qp_wait_short(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target)
{
	int ret;

	if (!gdri_look_begins(qp))
		return 0;
	ret = gdri_qp_wait_looks(dev, qp, target);
	gdri_look_ends(qp);
	return ret;
}

#endif
