/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol: reserve blocks, publish them in order with one doorbell,
 * learn of completions. The arguments why it is right are in
 * docs/memory-model.md, under the names used here. No locks: a thread that
 * holds blocks does bounded work until they are published. */
#ifndef GDRI_NIC_DEV_H
#define GDRI_NIC_DEV_H

#include <gdr/impl/error.h>
#include <gdr/impl/waiter.h>

/* A doorbell at least every so many blocks, though later reservers are about to
 * publish. With groups of at most depth / 4 it never leaves the blocks that
 * somebody waits for un-rung: a batch and a group fit into the smallest ring. */
#define GDRI_BATCH 64u
GDR_STATIC_ASSERT(GDRI_BATCH + GDRI_DEPTH_MIN / 4 <= GDRI_DEPTH_MIN, "who waits for room has it rung for");

/* ---- completion ---- */

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

/* ---- reservation ---- */

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

/* One look: 1 there is room for n blocks (limit raised), 0 not now, < 0 the queue's error. */
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
	return (int64_t)gdri_ld_relaxed_gpu_u64(&qp->room) >= (int64_t)n; /* as gdri_sq_enough */
}

/* First use, full ring or error. The caller holds no blocks, so that whoever
 * does is never waiting for it. */
GDRI_NOINLINE int gdri_sq_room(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n)
{
	struct gdri_waiter w;
	int ret;

	if (!qp->sq)
		return -GDR_ESTATE;
	gdri_qp_mark_used(dev, qp);
	gdri_wait_begin(&w, GDRI_QUEUE_FULL, qp->peer, 0);
	while (!(ret = gdri_sq_look(dev, qp, n))) {
		ret = gdri_wait_step(dev, &w);
		if (ret)
			return ret;
	}
	if (gdri_likely(ret > 0))
		gdri_wait_end(dev, &w);
	else
		gdri_wait_leave(dev, &w);
	return ret < 0 ? ret : 0;
}

#define GDRI_NO_ROOM (~0ull) /* no index, `ready` counts to 2^63: nothing was reserved */

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

	for (;;) {
		*base = gdri_sq_reserve_now(qp, n);
		if (gdri_likely(*base != GDRI_NO_ROOM))
			return 0;
		ret = gdri_sq_room(dev, qp, n);
		if (ret)
			return ret;
	}
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

/* ---- publication ---- */

/* Looks for the baton before the wait gets a record and sleeps between them: each of those before, which may be as many
 * as a GPU has blocks, takes half a look's time to hand it on. */
#define GDRI_BATON_SPINS (GDRI_SPINS * 8)

/* Blocks were reserved that will never be published. No record goes with it: pairs with nothing. */
GDR_DEVICE_COLD void gdri_sq_break(struct gdri_qp *qp, int status)
{
	uint32_t none = 0;

	gdri_cas_u32((uint32_t *)&qp->err, &none, (uint32_t)status);
	gdri_st_relaxed_gpu_u64(&qp->room, GDRI_ROOM_NONE);
}

/* Waits for the publication of earlier reservers, or of the caller by one of them. They do bounded work; one that was
 * killed in between leaves the queue unusable, which is its error from then on. */
GDR_DEVICE_COLD int gdri_sq_wait_baton(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base)
{
	struct gdri_waiter w;
	int ret = 0;

	gdri_wait_begin(&w, GDRI_PUBLISH, dev->pe, 0);
	/* acquire: pairs with the hand-over in gdri_sq_pass_on (A1) */
	while (gdri_ld_acquire_gpu_u64(&qp->ready) >> 1 < base) {
		ret = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&qp->err);
		if (ret != -GDR_ETIMEOUT && ret != -GDR_EABORTED)
			ret = gdri_wait_step(dev, &w);
		if (!ret)
			continue;
		gdri_sq_break(qp, ret);
		gdri_wait_leave(dev, &w);
		return ret;
	}
	gdri_wait_end(dev, &w);
	return 0;
}

/* What publishing reads, asked for at once: behind a fence each would be a round trip. */
struct gdri_bell {
	uint64_t rsvd, *db;
	uint32_t *dbrec, qpn_shifted;
};

GDR_DEVICE struct gdri_bell gdri_sq_bell(const struct gdri_qp *qp)
{
	struct gdri_bell b;

	b.db = qp->db; /* before rsvd, or the compiler would ask for them where they are needed */
	b.dbrec = qp->dbrec;
	b.qpn_shifted = qp->qpn_shifted;
	b.rsvd = gdri_ld_relaxed_gpu_u64(&qp->rsvd);
	return b;
}

/* Nobody behind end, or a batch ends: the caller is to ring. Once it is not it stays so: rsvd only grows. It may have
 * been read before who lies below end reserved. */
GDR_DEVICE int gdri_sq_must_ring(uint64_t rsvd, uint64_t base, uint64_t end)
{
	return gdri_likely(rsvd <= end) || ((base ^ end) & ~(uint64_t)(GDRI_BATCH - 1));
}

/* The caller has seen the baton, ready == base: everything before base is published. The fence behind that look
 * acquires the blocks of earlier reservers (A1, with the R1 of each of them), in both branches; ordered: it was made,
 * with the scope that a NIC needs. */
GDR_DEVICE void gdri_sq_pass_on(const struct gdri_dev *dev, struct gdri_qp *qp, struct gdri_bell b,
				uint64_t base, uint32_t n, uint32_t last2, int ordered)
{
	uint64_t end = base + n;
	uint32_t pi;

	if (gdri_sq_must_ring(b.rsvd, base, end)) {
		pi = gdri_bswap32((uint32_t)end & 0xffffu);
		/* F1: blocks (own, and by cumulativity those acquired with the baton) and
		 * payload before the index, which makes the NIC read them. */
		if (!ordered)
			gdri_fence_nic();
		gdri_st_fenced_u32(b.dbrec, pi);
		/* F2: record before doorbell: the doorbell only says "look". */
		gdri_fence_release_nic();
		gdri_st_mmio_u64(b.db, (uint64_t)b.qpn_shifted << 32 | pi >> 8);
		/* F5: the word is memory, of which the host sees what was stored last, and passes that on. Orders
		 * this store before the next poster's, through the baton (R1, A1). */
		if (gdri_unlikely(gdri_k(dev, flags) & GDRI_DEV_HOST_RINGS))
			gdri_fence_gpu();
	} else if (!ordered) {
		gdri_fence_gpu();
	}
	/* R1, by the last fence: hands over the baton. A register's doorbell, which is behind that fence, need
	 * not be on its way before the next one's: the NIC sees both, and the record tells which is younger. */
	gdri_st_fenced_u64(&qp->ready, end << 1 | last2);
}

/* Marks: from one who waits to the next would be a chain through all of them, of which each link is a way to the
 * second-level cache. So who waits says in qp->marks that its blocks are written, and who has the baton hands on all
 * that follow. A bit says which block is meant only as long as that lies in the window from `ready` on, where each
 * bit is one block's: nobody sets another one, and it is cleared before `ready` moves beyond it. */
#define GDRI_WINDOW 64u
#define GDRI_MARK_MAX 15u /* blocks; of larger groups too few fit into a window: they relay */
#define GDRI_RELAY_AHEAD 4u /* blocks; with no more in front the baton comes sooner from one to the next */

/* Those of n < GDRI_WINDOW blocks. */
GDR_DEVICE uint64_t gdri_marks_of(uint64_t base, uint32_t n)
{
	uint64_t bits = (1ull << n) - 1;
	uint32_t at = (uint32_t)base & (GDRI_WINDOW - 1);

	return bits << at | (at ? bits >> (GDRI_WINDOW - at) : 0);
}

/* How many follow each other from `from` on, at most `most`. Groups are marked as a whole: a gap is between two. */
GDR_DEVICE uint32_t gdri_marks_run(uint64_t marks, uint64_t from, uint32_t most)
{
	uint32_t at = (uint32_t)from & (GDRI_WINDOW - 1), run;
	uint64_t gaps = ~(marks >> at | (at ? marks << (GDRI_WINDOW - at) : 0));

	run = gaps ? gdri_ffs_u64(gaps) : GDRI_WINDOW;
	return run < most ? run : most;
}

/* How many blocks were to be published before base, by `ready` as it was read, which only grows; or many. */
GDR_DEVICE uint32_t gdri_sq_ahead(uint64_t ready, uint64_t base)
{
	uint64_t ahead = base - (ready >> 1);

	return ahead < GDRI_WINDOW ? (uint32_t)ahead : GDRI_WINDOW;
}

/* All of the caller's blocks by one step, behind its fence: M1. 1: marked; 0: not as near yet. */
GDR_DEVICE uint32_t gdri_sq_mark(struct gdri_qp *qp, uint64_t base, uint32_t n, uint32_t ahead)
{
	if (ahead + n > GDRI_WINDOW)
		return 0;
	gdri_red_or_u64(&qp->marks, gdri_marks_of(base, n));
	return 1;
}

/* The caller has acquired the baton: what it reads of the marks is without those of blocks before. It hands on its n
 * blocks and those of all whose marks follow; the fence in gdri_sq_pass_on acquires them by M1, and stands between
 * clearing and R1. rsvd may be older than the marks, see gdri_sq_must_ring. */
GDR_DEVICE void gdri_sq_hand_on(const struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base, uint32_t n,
				uint32_t marked)
{
	uint64_t marks = gdri_ld_fenced_u64(&qp->marks), clear = marked ? gdri_marks_of(base, n) : 0;
	struct gdri_bell b = gdri_sq_bell(qp);
	uint32_t run = gdri_marks_run(marks, base + n, GDRI_WINDOW - n);

	clear |= run ? gdri_marks_of(base + n, run) : 0;
	if (clear)
		gdri_red_and_u64(&qp->marks, ~clear);
	gdri_sq_pass_on(dev, qp, b, base, n + run, 0, 0);
}

/* Who can mark waits for the baton, or until another one has handed on its blocks. It looks at nothing else meanwhile:
 * all who wait look at once. */
GDR_DEVICE int gdri_sq_publish_marked(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base, uint32_t n,
				      uint32_t ahead)
{
	uint32_t marked = gdri_sq_mark(qp, base, n, ahead);
	uint64_t ready;
	int looks = 0, ret;

	GDRI_NOT_UNROLLED
	while ((ready = gdri_ld_acquire_gpu_u64(&qp->ready)) >> 1 < base) { /* A1, and before the look at marks */
		if (!marked)
			marked = gdri_sq_mark(qp, base, n, gdri_sq_ahead(ready, base));
		if (looks++ < GDRI_BATON_SPINS)
			continue;
		ret = gdri_sq_wait_baton(dev, qp, base);
		if (ret)
			return ret;
	}
	if (ready >> 1 == base) /* else another one did it */
		gdri_sq_hand_on(dev, qp, base, n, marked);
	return 0;
}

/* One look for the baton, which comes soon. Who is to hand it on and no more does both in one step: a
 * read-modify-write continues the R1 of those before (A1 of the next one acquires from all of them), so that
 * nothing stands between but the fence behind the own blocks, which the caller has made already. 1: handed on. */
GDR_DEVICE int gdri_sq_relay(struct gdri_qp *qp, uint64_t *ready, uint64_t base, uint64_t end, uint32_t last2)
{
	uint64_t seen = *ready >> 1 == base ? *ready : base << 1; /* the guess: no WQE of two blocks before */

	*ready = seen;
	return gdri_cas_u64(&qp->ready, ready, end << 1 | last2);
}

/* Who does not mark: who cannot, with many blocks or a last WQE of two, or has few in front. */
GDR_DEVICE int gdri_sq_publish_unmarked(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base, uint32_t n,
					uint32_t last2)
{
	uint64_t ready = 0, end = base + n;
	struct gdri_bell b = gdri_sq_bell(qp);
	int i, ret;

	GDRI_NOT_UNROLLED
	for (i = 0; i < GDRI_BATON_SPINS; i++) {
		if (!gdri_sq_must_ring(b.rsvd, base, end)) {
			if (gdri_sq_relay(qp, &ready, base, end, last2))
				return 0;
			continue;
		}
		ready = gdri_ld_fenced_u64(&qp->ready); /* A1, by the fence in gdri_sq_pass_on */
		b.rsvd = gdri_ld_relaxed_gpu_u64(&qp->rsvd);
		if (ready >> 1 == base) {
			gdri_sq_pass_on(dev, qp, b, base, n, last2, 0);
			return 0;
		}
	}
	ret = gdri_sq_wait_baton(dev, qp, base);
	if (!ret)
		gdri_sq_pass_on(dev, qp, gdri_sq_bell(qp), base, n, last2, 0);
	return ret;
}

/* The caller wrote its n blocks from base on, and does not know that it has the baton. last2: its last WQE has two
 * blocks. ahead: gdri_sq_ahead of what it has read. */
GDRI_NOINLINE int gdri_sq_publish_later(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base,
					uint32_t n, uint32_t last2, uint32_t ahead)
{
	GDRI_BY_ABI(gdri_sq_publish_later);
	gdri_fence_release_gpu(); /* own blocks before M1, and R1 in gdri_sq_relay; while one waits it costs nothing */
	if (last2 || n > GDRI_MARK_MAX || (GDRI_SPINS && ahead <= GDRI_RELAY_AHEAD))
		return gdri_sq_publish_unmarked(dev, qp, base, n, last2);
	return gdri_sq_publish_marked(dev, qp, base, n, ahead);
}

/* The same for who has read nothing. */
GDR_DEVICE int gdri_sq_publish(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base, uint32_t n,
			       uint32_t last2)
{
	uint64_t ready = gdri_ld_fenced_u64(&qp->ready); /* A1, by the fence in gdri_sq_pass_on */

	if (gdri_unlikely(ready >> 1 != base))
		return gdri_sq_publish_later(dev, qp, base, n, last2, gdri_sq_ahead(ready, base));
	gdri_sq_pass_on(dev, qp, gdri_sq_bell(qp), base, n, last2, 0);
	return 0;
}

/* The same for who saw that ready was base before the blocks were reserved: it still is. */
GDR_DEVICE void gdri_sq_publish_first(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base, uint32_t n,
				      uint32_t last2)
{
	struct gdri_bell b;

	b.db = qp->db; /* they arrive while the fence waits */
	b.dbrec = qp->dbrec;
	b.qpn_shifted = qp->qpn_shifted;
	b.rsvd = base + n; /* as it was when they were reserved; to look again would be a round trip */
	gdri_fence_nic();  /* F1 */
	gdri_sq_pass_on(dev, qp, b, base, n, last2, 1);
}

/* The same for what a wait itself posts (chain.h, watch.h). Were it to wait as others do, waits would call
 * each other, and nobody could tell how deep the stack of a GPU's thread has to be. */
GDR_DEVICE_COLD int gdri_sq_publish_watch(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base)
{
	uint64_t end = gdr_clock_ns() + dev->timeout_ns;
	uint32_t round = 0;
	int ret;

	/* acquire: pairs with the hand-over in gdri_sq_pass_on (A1) */
	while (gdri_ld_acquire_gpu_u64(&qp->ready) >> 1 != base) {
		ret = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&qp->err);
		if (ret != -GDR_ETIMEOUT && ret != -GDR_EABORTED)
			ret = gdri_ld_relaxed_sys_u32(dev->abort) ? -GDR_EABORTED
			      : gdr_clock_ns() > end		  ? -GDR_ETIMEOUT
								  : 0;
		if (ret) {
			gdri_sq_break(qp, ret);
			return ret;
		}
		gdr_pause(round++);
	}
	gdri_sq_pass_on(dev, qp, gdri_sq_bell(qp), base, 1, 0, 0);
	return 0;
}

/* ---- posting by the lanes that happen to be together ---- */

struct gdri_post {
	uint64_t index;	 /* caller's first block */
	uint64_t base;	 /* group's first block */
	uint32_t n;	 /* group's blocks */
	uint32_t mask;	 /* lanes of the group */
	uint32_t ce;	 /* completion mode of the caller's last WQE */
	uint32_t fm;	 /* fence mode of the caller's first */
	uint32_t leader; /* the caller publishes */
	uint32_t last2;
	uint32_t strict; /* there are fences to be kept: see gdri_put_rkey */
	uint32_t ahead;	 /* of the leader, by what it read before it reserved; 0: see gdri_sq_publish_first */
	struct gdri_qp q; /* constants of the queue that entries need, no more */
};

/* Known at compile time under CUDA, where calls by lone threads are not worth a path. */
GDR_DEVICE int gdri_alone(void)
{
#ifdef __CUDACC__
	return 0;
#else
	return gdr_block_size() == 1;
#endif
}

/* The lanes of mask whose rank in it is in the caller's run of `per`. */
GDR_DEVICE_COLD uint32_t gdri_group_part(uint32_t mask, uint32_t per)
{
	uint32_t mine = gdri_popc(mask & gdri_lanes_below()) / per, part = 0, rank = 0, m;

	for (m = mask; m; m &= m - 1, rank++)
		if (rank / per == mine)
			part |= m & -m;
	return part;
}

GDR_DEVICE int gdri_post_is_single(uint32_t mask)
{
	return gdri_likely(!(mask & (mask - 1)));
}

/* A GPU's thread would ask for each of them when it needs it, behind a fence that has emptied its cache. */
GDR_DEVICE void gdri_qp_constants(struct gdri_qp *q, const struct gdri_qp *qp)
{
	q->sq = qp->sq;
	q->qpn_shifted = qp->qpn_shifted;
	q->depth = qp->depth;
	q->rkey_data = qp->rkey_data;
	q->rkey_sync = qp->rkey_sync;
}

/* Who posts together: the same queue, the same shape, the same way, short or (any) not. Lanes may come from
 * different places. */
GDR_DEVICE uint64_t gdri_post_key(const struct gdri_qp *qp, uint32_t blocks, uint32_t last2, uint32_t due,
				  uint32_t any)
{
	return (uint64_t)(uintptr_t)qp + any * 64 + blocks * 4 + last2 * 2 + due;
}

/* What the leader found, for all of the group. */
GDR_DEVICE void gdri_post_share(const struct gdri_post *p, uint64_t *base)
{
	if (gdri_post_is_single(p->mask))
		return;
	*base = gdr_shfl_u64(p->mask, *base, gdri_ffs_u32(p->mask));
	gdr_sync_warp(p->mask); /* a shuffle orders no memory: the leader's look at limit before our WQEs */
}

/* The caller's part of the group's blocks. */
GDR_DEVICE void gdri_post_take(struct gdri_post *p, uint64_t base, uint32_t blocks, uint32_t last2,
				uint32_t due)
{
	uint32_t count = gdri_popc(p->mask), rank = gdri_popc(p->mask & gdri_lanes_below());

	p->base = base;
	p->n = count * blocks;
	p->index = base + (uint64_t)rank * blocks;
	p->ce = rank == count - 1 ? GDRI_CE_ALWAYS : GDRI_CE_ERROR_ONLY;
	p->fm = due && !rank ? GDRI_FM_FENCE : 0; /* the leader's stands before all */
	p->leader = !rank;
	p->last2 = last2;
}

/* What the short way below has no room for: a group that is larger than its share of the ring, a wait. Out of
 * line, and what it finds comes by memory: the short way is to keep no registers for it. */
struct gdri_post_place { /* of a post, all but what is constant */
	uint64_t index, base;
	uint32_t n, mask, ce, fm, leader, strict;
};

GDRI_NOINLINE int gdri_post_begin_any(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks,
				      uint32_t last2, struct gdri_post_place *at)
{
	struct gdri_post here, *p = &here;
	uint64_t fences = gdri_ld_relaxed_gpu_u64(&dev->fence_done), seq, base = 0;
	uint32_t due, count, rank;
	int ret;

	GDRI_BY_ABI(gdri_post_begin_any);
	p->q.depth = qp->depth;
	due = gdri_sq_fence_due(dev, qp, &seq);
	p->strict = seq != fences;
	p->mask = gdri_group(gdri_post_key(qp, blocks, last2, due, 1));
	count = gdri_popc(p->mask);
	if (gdri_unlikely(count * blocks > p->q.depth / 4)) {
		p->mask = gdri_group_part(p->mask, p->q.depth / 4 / blocks);
		count = gdri_popc(p->mask);
	}
	rank = gdri_popc(p->mask & gdri_lanes_below());
	if (!rank) {
		ret = gdri_sq_reserve(dev, qp, count * blocks, &base);
		if (gdri_unlikely(ret))
			base = (uint64_t)(int64_t)ret;
		else if (gdri_unlikely(due))
			gdri_sq_fenced(qp, seq);
	}
	gdri_post_share(p, &base);
	gdri_post_take(p, base, blocks, last2, due);
	at->index = p->index;
	at->base = p->base;
	at->n = p->n;
	at->mask = p->mask;
	at->ce = p->ce;
	at->fm = p->fm;
	at->leader = p->leader;
	at->strict = p->strict;
	return gdri_unlikely((int64_t)base < 0) ? (int)(int64_t)base : 0;
}

/* Reserves `blocks` (at most 8) for the caller, together with the lanes that are here with
 * the same queue and shape, both in the key. The lowest lane reserves for all; the
 * others wait for it in the shuffle, not in a spin. One doorbell and one CQE for the group.
 * On 0 the caller writes its WQEs from p->index on, the first one with p->fm, the last one with
 * p->ce, and calls gdri_post_end.
 *
 * All that is asked before the reservation is asked for at once: leave to reserve, too, though a fence may be due. */
GDR_DEVICE int gdri_post_begin(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks,
			       uint32_t last2, struct gdri_post *p)
{
	/* A1, by F1 in gdri_sq_publish_first. If it is that far when the caller gets this block, nobody but the caller
	 * will move it. */
	uint64_t ready = gdri_ld_fenced_u64(&qp->ready);
	uint64_t fences = gdri_ld_relaxed_gpu_u64(&dev->fence_done), seq, base = GDRI_NO_ROOM, room = 0;
	struct gdri_post_place any;
	uint32_t due, n;
	int ret, leads;

	p->mask = gdri_group(gdri_post_key(qp, blocks, last2, 0, 0));
	n = gdri_popc(p->mask) * blocks;
	leads = !(p->mask & gdri_lanes_below());
	if (leads)
		room = gdri_sq_take(qp, n);
	gdri_qp_constants(&p->q, qp);
	due = gdri_sq_fence_due(dev, qp, &seq);
	if (!gdri_post_is_single(p->mask))
		due = gdr_ballot(p->mask, (int)due);
	p->strict = seq != fences;
	if (leads) {
		if (gdri_likely(gdri_sq_enough(room, n) && !due && n <= p->q.depth / 4))
			base = gdri_sq_next(qp, n);
		else
			gdri_sq_give_back(qp, n);
	}
	p->ahead = gdri_sq_ahead(ready, base); /* many, where nothing was reserved */
	gdri_post_share(p, &base);
	if (gdri_unlikely(base == GDRI_NO_ROOM)) {
		ret = gdri_post_begin_any(dev, qp, blocks, last2, &any);
		p->index = any.index;
		p->base = any.base;
		p->n = any.n;
		p->mask = any.mask;
		p->ce = any.ce;
		p->fm = any.fm;
		p->leader = any.leader;
		p->last2 = last2;
		p->strict = any.strict;
		return ret;
	}
	gdri_post_take(p, base, blocks, last2, 0);
	return 0;
}

GDR_DEVICE int gdri_post_publish(struct gdri_dev *dev, struct gdri_qp *qp, const struct gdri_post *p)
{
	if (!GDRI_SPINS)
		return gdri_sq_publish(dev, qp, p->base, p->n, p->last2);
	if (gdri_unlikely(p->ahead))
		return gdri_sq_publish_later(dev, qp, p->base, p->n, p->last2, p->ahead);
	gdri_sq_publish_first(dev, qp, p->base, p->n, p->last2);
	return 0;
}

/* A failure to publish is the leader's to report; the others find it in the queue. None goes on before
 * all is published: a quiet takes what is published as its target, and covers the caller's own. */
GDR_DEVICE int gdri_post_end(struct gdri_dev *dev, struct gdri_qp *qp, const struct gdri_post *p)
{
	int ret;

	if (gdri_post_is_single(p->mask))
		return gdri_post_publish(dev, qp, p);
	gdr_sync_warp(p->mask); /* all blocks written; orders them before the leader's F1 */
	ret = p->leader ? gdri_post_publish(dev, qp, p) : 0;
	gdr_sync_warp(p->mask); /* orders `ready` before the others' looks at it */
	return ret;
}

/* The short way, without calls, of a block of one thread with room in the queue and no fence
 * due: 1 when it holds block *index and will call gdri_sq_publish. Else nothing happened, and the general
 * way is next; a warp's lanes always take that one, together. */
GDR_DEVICE int gdri_post_try(const struct gdri_dev *dev, struct gdri_qp *qp, uint64_t *index)
{
	uint64_t seq;

	if (!gdri_alone() || gdri_unlikely(gdri_sq_fence_due(dev, qp, &seq)))
		return 0;
	*index = gdri_sq_reserve_now(qp, 1);
	return gdri_likely(*index != GDRI_NO_ROOM);
}

#endif
