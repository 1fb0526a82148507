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

struct gdri_turn {
	uint32_t side;
	uint64_t unused_ns; /* since when there is such room; 0: there is none */
};

GDR_DEVICE_COLD int gdri_turn_unused(const struct gdri_dev *dev, const struct gdri_waiter *w, int spare,
				     struct gdri_turn *t)
{
	if (!spare || !w->limit.start_ns)
		t->unused_ns = 0;
	else if (!t->unused_ns)
		t->unused_ns = w->limit.next_ns;
	return t->unused_ns && w->limit.next_ns - t->unused_ns > gdri_min_u64(GDRI_TURN_NS, dev->timeout_ns / 8);
}

/* One look for who waits: 1 the caller has leave for n blocks; else as gdri_sq_look. */
GDR_DEVICE_COLD int gdri_sq_try(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n, const struct gdri_waiter *w,
				struct gdri_turn *t)
{
	int ret, turn = gdri_gate_turn(qp, t->side, 0);

	ret = gdri_sq_look(dev, qp, turn ? n : qp->depth / 4);
	if (ret < 0)
		return ret;
	if (!turn && gdri_turn_unused(dev, w, ret, t))
		turn = gdri_gate_turn(qp, t->side, 1);
	return ret && (turn ? gdri_sq_take_free(qp, n) : gdri_sq_take_spare(qp, n));
}

/* Until the caller has leave for n blocks (1), or an error. */
GDR_DEVICE_COLD int gdri_sq_wait(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t n, struct gdri_waiter *w)
{
	struct gdri_turn t = {gdri_gate_enter(qp), 0};
	int ret;

	while (!(ret = gdri_sq_try(dev, qp, n, w, &t))) {
		ret = gdri_wait_step(dev, w);
		if (ret)
			break;
		gdri_wait_moves(dev, w, gdri_ld_relaxed_gpu_u64(&qp->done));
	}
	gdri_gate_leave(qp, t.side);
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
	gdri_wait_begin_queue(&w, GDRI_QUEUE_FULL, qp);
	ret = gdri_sq_look(dev, qp, n);
	if (ret > 0)
		ret = gdri_sq_take_now(qp, n) || gdri_sq_take_spare(qp, n);
	if (!ret)
		ret = gdri_sq_wait(dev, qp, n, &w);
	if (gdri_unlikely(ret < 0)) {
		gdri_wait_leave(dev, &w);
		return ret;
	}
	gdri_wait_end(dev, &w);
	return 0;
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

/* ---- completion ---- */

GDRI_NOINLINE int gdri_qp_wait_long(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target,
				    uint32_t op)
{
	struct gdri_waiter w;
	int ret;

	GDRI_BY_ABI(gdri_qp_wait_long);
	gdri_wait_begin_queue(&w, op, qp);
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
		gdri_wait_moves(dev, &w, gdri_ld_relaxed_gpu_u64(&qp->done));
	}
	if (gdri_unlikely(ret < 0)) {
		gdri_note_failure(dev, ret);
		if (gdri_qp_lost_peer(qp, ret))
			gdri_wait_lost(dev, &w, qp->peer);
		gdri_wait_leave(dev, &w);
		return ret;
	}
	gdri_wait_end(dev, &w);
	return 0;
}

GDRI_NOINLINE int gdri_qp_wait(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target,
			       uint32_t op)
{
	/* read before, when its time does not count, as in gdri_wait_short */
	uint32_t failed = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed);

	if (gdri_likely(qp->cq_mask && !failed) && gdri_qp_wait_short(dev, qp, target))
		return 0;
	return gdri_qp_wait_long(dev, qp, target, op);
}

#endif
