/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol, its waits that other PEs may be to blame for: for room, for completion. */
#ifndef GDRI_QUEUE_WAIT_H
#define GDRI_QUEUE_WAIT_H

#include <gdr/impl/diag/timeout.h>
#include <gdr/impl/queue/publish.h>

/* ---- room ---- */

/* A thread whose turn it is and that does not run is not waited for longer than this, by the clock as the wait looks at
 * it, while there is room that it would take. */
#define GDRI_TURN_NS 250000000ull

/* A wait for room: for its steps, which keep nothing else. */
struct gdri_room {
	struct gdri_waiter w;
	struct gdri_qp *qp;
	uint64_t unused_ns; /* since when there is room that those whose turn it is leave; 0: there is none */
	uint16_t n;	    /* blocks */
	uint8_t side;
	uint8_t waits; /* at the gate */
};

GDR_DEVICE int gdri_room_unused(const struct gdri_dev *dev, struct gdri_room *r, int spare)
{
	if (!spare || !r->w.limit.start_ns)
		r->unused_ns = 0;
	else if (!r->unused_ns)
		r->unused_ns = r->w.limit.next_ns;
	return r->unused_ns && r->w.limit.next_ns - r->unused_ns > gdri_min_u64(GDRI_TURN_NS, dev->timeout_ns / 8);
}

/* One look for who waits: 1 the caller has leave for the blocks; else as gdri_sq_look. */
GDR_DEVICE_COLD int gdri_room_turn(struct gdri_dev *dev, struct gdri_room *r)
{
	int turn, ret;

	GDRI_DEV_CONSTANT(dev);
	gdri_wait_moves(dev, &r->w, gdri_ld_relaxed_gpu_u64(&r->qp->done));
	turn = gdri_gate_turn(r->qp, r->side, 0);
	ret = gdri_sq_look(dev, r->qp, turn ? r->n : r->qp->depth / 4);
	if (ret < 0)
		return ret;
	if (!turn && gdri_room_unused(dev, r, ret))
		turn = gdri_gate_turn(r->qp, r->side, 1);
	return ret && (turn ? gdri_sq_take_free(r->qp, r->n) : gdri_sq_take_spare(r->qp, r->n));
}

/* The first look: as gdri_room_turn, but that nobody is waited for. Who is to wait goes to the gate and looks again. */
GDR_DEVICE_COLD int gdri_room_try(struct gdri_dev *dev, struct gdri_room *r)
{
	int ret = gdri_sq_look(dev, r->qp, r->n);

	if (ret > 0)
		ret = gdri_sq_take_now(r->qp, r->n) || gdri_sq_take_spare(r->qp, r->n);
	if (ret)
		return ret;
	r->side = (uint8_t)gdri_gate_enter(r->qp);
	r->waits = 1;
	return 0;
}

GDR_DEVICE int gdri_room_look(struct gdri_dev *dev, struct gdri_room *r)
{
	return r->waits ? gdri_room_turn(dev, r) : gdri_room_try(dev, r);
}

GDR_DEVICE_COLD void gdri_room_begin(struct gdri_dev *dev, struct gdri_room *r, struct gdri_qp *qp, uint32_t n)
{
	GDRI_DEV_CONSTANT(dev);
	gdri_qp_mark_used(dev, qp);
	r->qp = qp;
	r->n = (uint16_t)n;
	r->waits = 0;
	r->unused_ns = 0;
	gdri_wait_begin_queue(&r->w, GDRI_QUEUE_FULL, qp);
}

/* Those two that add at what the record names are functions: in relocatable code ptxas takes what a function reads of
 * its own frame for the same in all lanes, and would add once for all of them at one address. */
GDRI_NOINLINE void gdri_room_leave(const struct gdri_room *r)
{
	gdri_gate_leave(r->qp, r->side);
}

GDRI_NOINLINE uint64_t gdri_room_next(const struct gdri_room *r)
{
	return gdri_sq_next(r->qp, r->n);
}

/* ret: of the last look, or of the wait. */
GDRI_FRAMELESS int gdri_room_end(struct gdri_dev *dev, struct gdri_room *r, int ret)
{
	GDRI_DEV_CONSTANT(dev);
	if (r->waits)
		gdri_room_leave(r);
	if (gdri_unlikely(ret < 0)) {
		gdri_wait_leave(dev, &r->w);
		return ret;
	}
	gdri_wait_end(dev, &r->w);
	return 0;
}

/* First use, full ring or error: leave for n blocks, or an error. The caller holds no blocks, so that whoever does is
 * never waiting for it. It finds queue and number in *r behind the wait. */
GDRI_FRAMELESS int gdri_sq_room(struct gdri_dev *dev, struct gdri_room *r, struct gdri_qp *qp, uint32_t n)
{
	int ret;

	GDRI_DEV_CONSTANT(dev);
	if (!qp->sq)
		return -GDR_ESTATE;
	gdri_room_begin(dev, r, qp, n);
	GDRI_NOT_UNROLLED
	while (!(ret = gdri_room_look(dev, r)) && !(ret = gdri_wait_step(dev, &r->w)))
		;
	return gdri_room_end(dev, r, ret);
}

/* gdri_sq_reserve_now, waiting for room. */
GDR_DEVICE int gdri_sq_reserve(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n, uint64_t *base)
{
	struct gdri_room r;
	int ret;

	if (gdri_likely(gdri_sq_take_now(qp, n))) {
		*base = gdri_sq_next(qp, n);
		return 0;
	}
	ret = gdri_sq_room(dev, &r, qp, n);
	*base = gdri_likely(!ret) ? gdri_room_next(&r) : GDRI_NO_ROOM;
	return ret;
}

/* ---- completion ---- */

/* A PE that has called gdr_finalize may be gone: what the library told it is not waited for, and its error not met.
 * ret: of gdri_qp_test. */
GDR_DEVICE_COLD int gdri_qp_left(const struct gdri_dev *dev, const struct gdri_qp *qp, uint64_t target, int ret)
{
	uint64_t done;
	int needless;

	GDRI_DEV_CONSTANT(dev);
	if (ret > 0 || gdri_likely(!gdri_has_left(dev, qp->peer)))
		return ret;
	/* done behind err, as in gdri_qp_test; a completion counts the first block of its entry alone */
	done = gdri_ld_acquire_gpu_u64(&qp->done);
	needless = gdri_qp_needless(dev, qp, done + !gdri_wqe_begins(qp, done), target);
	/* the blocks before the number: they stay while it does (gdri_sq_polled); pairs with who raises it */
	gdri_fence_acquire_sys();
	return needless && gdri_ld_relaxed_gpu_u64(&qp->done) == done ? 1 : ret;
}

/* For who waits: as gdri_qp_test, with a poll between two of them. */
GDR_DEVICE_COLD int gdri_qp_look(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target, struct gdri_waiter *w)
{
	int ret;

	GDRI_DEV_CONSTANT(dev);
	gdri_wait_moves(dev, w, gdri_ld_relaxed_gpu_u64(&qp->done));
	ret = gdri_qp_test(qp, target);
	if (!ret) {
		gdri_poll(dev, qp);
		ret = gdri_qp_test(qp, target);
	}
	return ret > 0 ? ret : gdri_qp_left(dev, qp, target, ret);
}

/* The queue has an error. */
GDR_DEVICE int gdri_qp_wait_failed(struct gdri_dev *dev, struct gdri_waiter *w, int status)
{
	gdri_note_failure(dev, status);
	if (gdri_qp_lost_peer(status) || status == -GDR_EFLUSHED)
		gdri_wait_lost(dev, w, gdri_qp_lost_peer(status) ? -GDR_EPEERLOST : status);
	gdri_wait_leave(dev, w);
	return status;
}

GDRI_FRAMELESS int gdri_qp_wait_long(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target,
				    uint32_t op)
{
	struct gdri_waiter w;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	gdri_wait_begin_queue(&w, op, qp);
	GDRI_NOT_UNROLLED
	while (!(ret = gdri_qp_look(dev, qp, target, &w))) {
		ret = gdri_wait_step(dev, &w);
		if (ret)
			return ret;
	}
	if (gdri_unlikely(ret < 0))
		return gdri_qp_wait_failed(dev, &w, ret);
	gdri_wait_end(dev, &w);
	return 0;
}

GDRI_NOINLINE int gdri_qp_wait(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target,
			       uint32_t op)
{
	/* read before, when its time does not count, as in gdri_wait_short */
	uint32_t failed = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed);

	GDRI_BY_ABI(gdri_qp_wait);
	if (gdri_likely(qp->cq_mask && !failed) && gdri_qp_wait_short(dev, qp, target))
		return 0;
	return gdri_qp_wait_long(dev, qp, target, op);
}

#endif
