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
 * 1 ms tells the other PEs whom it waits for. Bodies: watch.h. */
#ifndef GDRI_WAITER_H
#define GDRI_WAITER_H

#include <gdr/impl/dev.h>

struct gdri_waiter {
	uint64_t start_ns; /* 0: the clock was not read yet */
	uint64_t next_ns;  /* next look at everything but the condition */
	uint64_t addr;	   /* heap offset waited on, or 0 */
	int32_t peer;	   /* -1: unknown; own PE: nobody else can help */
	uint32_t op;
	uint32_t round;
	int32_t rec; /* published record, -1: none */
};

GDRI_NOINLINE int gdri_wait_step(struct gdri_dev *dev, struct gdri_waiter *w);
GDR_DEVICE_COLD void gdri_wait_clear(struct gdri_dev *dev, struct gdri_waiter *w);
/* This PE gives up because of culprit: the others hear of it, before it may leave. */
GDR_DEVICE_COLD void gdri_wait_lost(struct gdri_dev *dev, const struct gdri_waiter *w,
				    int32_t culprit);

GDR_DEVICE void gdri_wait_begin(struct gdri_waiter *w, uint32_t op, int peer, uint64_t addr)
{
	w->start_ns = 0;
	w->next_ns = 0;
	w->addr = addr;
	w->peer = peer;
	w->op = op;
	w->round = 0;
	w->rec = -1;
}

GDR_DEVICE void gdri_wait_end(struct gdri_dev *dev, struct gdri_waiter *w)
{
	if (w->rec >= 0)
		gdri_wait_clear(dev, w);
}

#endif
