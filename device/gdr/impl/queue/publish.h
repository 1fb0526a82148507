/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol, publication: blocks that are written are handed to the NIC in the order of their reservation,
 * with one doorbell for many. Arguments: docs/memory-model-internals.md, under the names used here. */
#ifndef GDRI_PUBLISH_H
#define GDRI_PUBLISH_H

#include <gdr/impl/queue/reserve.h>
#include <gdr/impl/wait/waiter.h>

/* A doorbell at least every so many blocks, though later reservers are about to
 * publish. With groups of at most depth / 4 it never leaves the blocks that
 * somebody waits for un-rung: a batch and a group fit into the smallest ring. */
#define GDRI_BATCH 64u
GDR_STATIC_ASSERT(GDRI_BATCH + GDRI_DEPTH_MIN / 4 <= GDRI_DEPTH_MIN, "who waits for room has it rung for");

/* Looks for the turn before the wait gets a record and sleeps between them: each of those before, which may be as many
 * as a GPU has blocks, takes half a look's time to hand it on. */
#define GDRI_TURN_SPINS (GDRI_SPINS * 8)

/* Blocks were reserved that will never be published. No record goes with it: pairs with nothing. 1: the queue had no
 * error. */
GDR_DEVICE_COLD int gdri_sq_break(struct gdri_qp *qp, int status)
{
	uint32_t none = 0;
	int first = gdri_cas_u32((uint32_t *)&qp->err, &none, (uint32_t)status);

	gdri_st_relaxed_gpu_u64(&qp->room, GDRI_ROOM_NONE);
	return first;
}

/* A poster gives up waiting for the turn: earlier posters do bounded work, so one was killed in between. The queue is
 * unusable, which is its error from then on. The poster that breaks it first writes the record. */
GDR_DEVICE_COLD int gdri_sq_give_up(struct gdri_dev *dev, struct gdri_qp *qp, int status)
{
	struct gdri_error *e;

	GDRI_DEV_CONSTANT(dev);
	if (!gdri_sq_break(qp, status))
		return status;
	gdri_note_failure(dev, status);
	e = gdri_error_take(dev, GDRI_ERROR_WAIT, status);
	if (!e)
		return status;
	e->op = GDRI_PUBLISH;
	e->peer = e->waited_for = dev->pe;
	e->addr = e->len = e->local = 0;
	e->waited_ns = status == -GDR_ETIMEOUT ? dev->timeout_ns : 0; /* since it moved last */
	gdri_error_complete(e);
	return status;
}

/* Waits for the publication of earlier reservers, or of the caller by one of them. All of them are this PE's: no other
 * PE is asked who is to blame, so that the blame walk (diag/) can publish, too. No call: nothing is kept in memory. */
GDR_DEVICE_COLD int gdri_sq_wait_turn(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base)
{
	struct gdri_limit limit;
	uint64_t ready;
	uint32_t round = 0, seen = 0; /* `ready` at the look before: whether it moves */
	int ret, over = 0;

	GDRI_DEV_CONSTANT(dev);
	gdri_limit_start(&limit);
	/* acquire: pairs with the hand-over in gdri_sq_pass_on (A1) */
	while ((ready = gdri_ld_acquire_gpu_u64(&qp->ready)) >> 1 < base) {
		if (over) /* and not there at the look behind it either */
			return over;
		if ((uint32_t)ready != seen)
			gdri_limit_anew(&limit);
		seen = (uint32_t)ready;
		ret = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&qp->err);
		if (ret == -GDR_ETIMEOUT || ret == -GDR_EABORTED) /* another poster gave up */
			return ret;
		over = gdri_limit_pass(dev, &limit, round++);
	}
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

/* Where it is not a record and then a register's doorbell, see GDRI_DEV_BELLS. F1 stands before, R1 behind. */
GDR_DEVICE void gdri_sq_ring_by(uint64_t *db, uint32_t *dbrec, uint64_t bell, uint32_t flags)
{
	if (flags & GDRI_DEV_EARLY) /* a NIC that goes by the doorbell's index need not wait for F2 */
		gdri_st_mmio_u64(db, bell);
	if (dbrec) {
		gdri_st_fenced_u32(dbrec, (uint32_t)bell << 8);
		gdri_fence_release_nic(); /* F2 */
	}
	gdri_st_mmio_u64(db, bell);
	/* F5: the word is memory, of which the host sees what was stored last, and passes that on. Orders
	 * this store before the next poster's, through the turn (R1, A1). */
	if (flags & GDRI_DEV_HOST_RINGS)
		gdri_fence_gpu();
	else if (!dbrec) /* F6: as F5, of a register without a record that tells which is younger; no memory of a GPU */
		gdri_fence_release_sys();
}

/* The caller has seen the turn, ready == base: everything before base is published. The fence behind that look
 * acquires the blocks of earlier reservers (A1, with the R1 of each of them), in both branches; ordered: it was made,
 * with the scope that a NIC needs. */
GDR_DEVICE void gdri_sq_pass_on(const struct gdri_dev *dev, struct gdri_qp *qp, struct gdri_bell b,
				uint64_t base, uint32_t n, uint32_t last2, int ordered)
{
	uint64_t end = base + n, bell;
	uint32_t pi, bells;

	if (gdri_sq_must_ring(b.rsvd, base, end)) {
		pi = gdri_bswap32((uint32_t)end & 0xffffu);
		bell = (uint64_t)b.qpn_shifted << 32 | pi >> 8;
		bells = gdri_k(dev, flags) & GDRI_DEV_BELLS;
		/* F1: blocks (own, and by cumulativity those acquired with the turn) and
		 * payload before the index, which makes the NIC read them. */
		if (!ordered)
			gdri_fence_nic();
		if (gdri_unlikely(bells)) {
			gdri_sq_ring_by(b.db, b.dbrec, bell, bells);
		} else {
			gdri_st_fenced_u32(b.dbrec, pi);
			/* F2: record before doorbell: the doorbell only says "look". */
			gdri_fence_release_nic();
			gdri_st_mmio_u64(b.db, bell);
		}
	} else if (!ordered) {
		gdri_fence_gpu();
	}
	/* R1, by the last fence: hands over the turn. A register's doorbell behind a record is behind that fence, and
	 * need not be on its way before the next one's: the NIC sees both, and the record tells which is younger. */
	gdri_st_fenced_u64(&qp->ready, end << 1 | last2);
}

/* Marks: handing on from poster to poster would be a chain through all of them, of which each link is a way to the
 * second-level cache. So a poster that waits says in qp->marks that its blocks are written, and the holder of the turn
 * hands on all blocks that follow. A bit names one block while that block lies in the window from `ready` on: nobody
 * sets bits of blocks outside the window, and a bit is cleared before `ready` moves beyond its block. */
#define GDRI_WINDOW 64u
#define GDRI_MARK_MAX 15u /* blocks; of larger groups too few fit into a window: they relay */
#ifndef GDRI_RELAY_AHEAD /* a test makes it small */
#define GDRI_RELAY_AHEAD 4u /* blocks; with no more in front the turn comes sooner from one to the next */
#endif

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

/* The caller has acquired the turn: what it reads of the marks is without those of blocks before. It hands on its n
 * blocks and those of all whose marks follow; the fence in gdri_sq_pass_on acquires them by M1, and stands between
 * clearing and R1. rsvd may be older than the marks, see gdri_sq_must_ring. */
GDRI_SLOW void gdri_sq_hand_on(const struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base, uint32_t n,
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

/* What became of the blocks of who can mark. */
enum { GDRI_SQ_MARKED = 1, GDRI_SQ_TURN = 2, GDRI_SQ_HANDED_ON = 4 };

/* A poster that can mark waits a while for the turn, or until another poster has handed on its blocks. It looks at
 * nothing else meanwhile: all posters that wait look at once. */
GDRI_NOINLINE uint32_t gdri_sq_publish_marked(struct gdri_qp *qp, uint64_t base, uint32_t n, uint32_t marked)
{
	uint64_t ready;
	int looks = 0;

	GDRI_NOT_UNROLLED
	while ((ready = gdri_ld_acquire_gpu_u64(&qp->ready)) >> 1 < base) { /* A1, and before the look at marks */
		if (!marked)
			marked = gdri_sq_mark(qp, base, n, gdri_sq_ahead(ready, base));
		if (looks++ >= GDRI_TURN_SPINS)
			return marked;
	}
	return marked | (ready >> 1 == base ? GDRI_SQ_TURN : GDRI_SQ_HANDED_ON);
}

/* One look for the turn, which comes soon. Who is to hand it on and no more does both in one step: a
 * read-modify-write continues the R1 of those before (A1 of the next one acquires from all of them), so that
 * nothing stands between but the fence behind the own blocks, which the caller has made already. 1: handed on. */
GDR_DEVICE int gdri_sq_relay(struct gdri_qp *qp, uint64_t *ready, uint64_t base, uint64_t end, uint32_t last2)
{
	uint64_t seen = *ready >> 1 == base ? *ready : base << 1; /* the guess: no WQE of two blocks before */

	*ready = seen;
	return gdri_cas_u64(&qp->ready, ready, end << 1 | last2);
}

/* Who does not mark: who cannot, with many blocks or a last WQE of two, or has few in front. 1: handed on. */
GDRI_NOINLINE int gdri_sq_publish_unmarked(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base, uint32_t n,
					   uint32_t last2)
{
	uint64_t ready = 0, end = base + n;
	struct gdri_bell b = gdri_sq_bell(qp);

	GDRI_NOT_UNROLLED
	for (int i = 0; i < GDRI_TURN_SPINS; i++) {
		if (!gdri_sq_must_ring(b.rsvd, base, end)) {
			if (gdri_sq_relay(qp, &ready, base, end, last2))
				return 1;
			continue;
		}
		ready = gdri_ld_fenced_u64(&qp->ready); /* A1, by the fence in gdri_sq_pass_on */
		b.rsvd = gdri_ld_relaxed_gpu_u64(&qp->rsvd);
		if (ready >> 1 == base) {
			gdri_sq_pass_on(dev, qp, b, base, n, last2, 0);
			return 1;
		}
	}
	return 0;
}

/* Who has waited for the turn. */
GDR_DEVICE_COLD void gdri_sq_publish_waited(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base, uint32_t n,
					    uint32_t last2)
{
	gdri_sq_pass_on(dev, qp, gdri_sq_bell(qp), base, n, last2, 0);
}

/* The caller wrote its n blocks from base on, and does not know that it has the turn. last2: its last WQE has two
 * blocks. ahead: gdri_sq_ahead of what it has read; GDRI_WINDOW: nothing. */
GDRI_NOINLINE int gdri_sq_publish_later(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base,
					uint32_t n, uint32_t last2, uint32_t ahead)
{
	uint32_t marked;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	GDRI_BY_ABI(gdri_sq_publish_later);
	gdri_fence_release_gpu(); /* own blocks before M1, and R1 in gdri_sq_relay; while one waits it costs nothing */
	if (last2 || n > GDRI_MARK_MAX || (GDRI_SPINS && ahead <= GDRI_RELAY_AHEAD)) {
		if (gdri_sq_publish_unmarked(dev, qp, base, n, last2))
			return 0;
		ret = gdri_sq_wait_turn(dev, qp, base);
		if (ret)
			return gdri_sq_give_up(dev, qp, ret);
		gdri_sq_publish_waited(dev, qp, base, n, last2);
		return 0;
	}
	marked = gdri_sq_mark(qp, base, n, ahead);
	GDRI_NOT_UNROLLED
	while ((marked = gdri_sq_publish_marked(qp, base, n, marked)) <= GDRI_SQ_MARKED) {
		ret = gdri_sq_wait_turn(dev, qp, base);
		if (ret)
			return gdri_sq_give_up(dev, qp, ret);
	}
	if (marked & GDRI_SQ_TURN)
		gdri_sq_hand_on(dev, qp, base, n, marked & GDRI_SQ_MARKED);
	return 0;
}

/* gdri_sq_publish_later for who has read nothing. */
GDR_DEVICE int gdri_sq_publish(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t base, uint32_t n,
			       uint32_t last2)
{
	uint64_t ready = gdri_ld_fenced_u64(&qp->ready); /* A1, by the fence in gdri_sq_pass_on */

	if (gdri_unlikely(ready >> 1 != base))
		return gdri_sq_publish_later(dev, qp, base, n, last2, gdri_sq_ahead(ready, base));
	gdri_sq_pass_on(dev, qp, gdri_sq_bell(qp), base, n, last2, 0);
	return 0;
}

/* gdri_sq_publish for who saw that ready was base before the blocks were reserved: it still is. */
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

#endif
