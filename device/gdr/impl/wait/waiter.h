/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of every loop that waits: what is waited for, since when. The loop
 *
 *	gdri_wait_begin(&w, GDRI_GET, pe, 0);
 *	while (!condition()) {
 *		ret = gdri_wait_step(dev, &w);
 *		if (ret)
 *			return ret;
 *	}
 *	gdri_wait_end(dev, &w);
 *
 * is bounded by GDR_TIMEOUT, ends on abort and on the loss of the peer, and after
 * 1 ms tells the other PEs whom it waits for. A loop that ends otherwise than by its
 * condition or by gdri_wait_step calls gdri_wait_leave. Bodies: watch.h. */
#ifndef GDRI_WAITER_H
#define GDRI_WAITER_H

#include <gdr/impl/arch/dev.h>

/* Looks at a condition before the frame is set up: a GPU's cost nobody anything, while a fiber of the
 * host device that does not call gdr_pause keeps the others off its CPU thread. */
#ifdef __CUDACC__
#define GDRI_SPINS 64
#elif !defined(GDRI_SPINS) /* a test takes a GPU's ways */
#define GDRI_SPINS 0
#endif

/* The clock is read once in so many steps, less one. A GPU has one, for which its threads queue up. */
#ifdef __CUDACC__
#define GDRI_WATCH_ROUNDS 63u
#else
#define GDRI_WATCH_ROUNDS 3u
#endif

#define GDRI_WATCH_FIRST_NS 1000000ull /* a wait this long is published */

GDR_DEVICE_COLD uint64_t gdri_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct gdri_waiter {
	uint64_t start_ns; /* 0: the clock was not read yet */
	uint64_t still_ns; /* from when on the limit counts */
	uint64_t next_ns;  /* next look at everything but the condition */
	uint64_t addr;	   /* heap offset waited on, or 0 */
	uint64_t first, last; /* of a queue: what was complete when it began, and at the last look */
	int32_t peer;	   /* -1: unknown; own PE: nobody else can help */
	uint16_t op;	   /* enum gdri_op */
	int16_t team;	   /* whose collective it is part of; -1: no team's */
	uint32_t round;
	int32_t rec; /* published record, -1: none */
	int32_t found;	 /* < 0: the status that the wait will end with at its limit, */
	int32_t culprit; /* because of this PE */
	struct gdri_error *error; /* taken for that, or 0 */
};

GDRI_NOINLINE int gdri_wait_step(struct gdri_dev *dev, struct gdri_waiter *w);
GDRI_NOINLINE void gdri_wait_over(struct gdri_dev *dev, struct gdri_waiter *w);
GDR_DEVICE_COLD void gdri_wait_leave(struct gdri_dev *dev, struct gdri_waiter *w);
/* The limit counts from now. */
GDRI_NOINLINE void gdri_wait_anew(struct gdri_dev *dev, struct gdri_waiter *w, uint64_t last);
/* This PE gives up because of culprit: the others hear of it, before it may leave. */
GDR_DEVICE_COLD void gdri_wait_lost(struct gdri_dev *dev, const struct gdri_waiter *w,
				    int32_t culprit);

GDR_DEVICE void gdri_wait_begin(struct gdri_waiter *w, uint32_t op, int peer, uint64_t addr)
{
	w->start_ns = 0;
	w->next_ns = 0;
	w->addr = addr;
	w->first = w->last = 0;
	w->peer = peer;
	w->op = (uint16_t)op;
	w->team = -1;
	w->round = 0;
	w->rec = -1;
	w->found = 0;
	w->error = 0;
}

/* Of what a queue brings nearer: its limit counts from the last block that was completed. */
GDR_DEVICE void gdri_wait_begin_queue(struct gdri_waiter *w, uint32_t op, const struct gdri_qp *qp)
{
	gdri_wait_begin(w, op, qp->peer, 0);
	w->first = w->last = gdri_ld_relaxed_gpu_u64(&qp->done);
}

/* What was completed is `last` now. */
GDR_DEVICE void gdri_wait_moves(struct gdri_dev *dev, struct gdri_waiter *w, uint64_t last)
{
	if (w->last != last)
		gdri_wait_anew(dev, w, last);
}

/* The condition holds. */
GDR_DEVICE void gdri_wait_end(struct gdri_dev *dev, struct gdri_waiter *w)
{
	if (w->rec >= 0 || w->error ||
	    gdri_unlikely(gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed)))
		gdri_wait_over(dev, w);
}

#endif
