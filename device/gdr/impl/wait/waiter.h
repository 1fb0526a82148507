/* SPDX-License-Identifier: BSD-3-Clause */
/* The core of waits: what is waited for, since when, the pause, the limit, the end of the job. It knows of no queue and
 * blames nobody: that is diag/timeout.h's, in whose terms a loop
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
 * 1 ms tells the other PEs whom it waits for. Whatever the reason to give up, the loop looks at its condition once more
 * behind it: the step that learns the reason returns 0, the next one the status. A loop that ends otherwise than by its
 * condition or by gdri_wait_step calls gdri_wait_leave. */
#ifndef GDRI_WAITER_H
#define GDRI_WAITER_H

#include <gdr/impl/wait/error.h>

/* Looks at a condition before the frame is set up: a GPU's cost nobody anything, while a fiber of the
 * host device that does not call gdr_pause keeps the others off its CPU thread. */
#ifdef __CUDACC__
#define GDRI_SPINS 64
#elif !defined(GDRI_SPINS) /* a test takes a GPU's ways */
#define GDRI_SPINS 0
#endif

/* The clock is read once in so many steps, less one. A GPU has one, for which its threads queue up. */
#ifdef __CUDACC__
#define GDRI_LIMIT_ROUNDS 63u
#else
#define GDRI_LIMIT_ROUNDS 3u
#endif

#define GDRI_LIMIT_FIRST_NS 1000000ull /* a wait this long is published */
#define GDRI_LIMIT_EVERY_NS 4000000ull /* from then on between looks at all else than the condition */
#define GDRI_LIMIT_STOPPED_NS 5000000000ull /* longer than all that a wait does between two looks */

GDR_DEVICE uint64_t gdri_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When a wait looks at more than its condition, and when it ends. */
struct gdri_limit {
	uint64_t start_ns; /* 0: the clock was not read yet */
	uint64_t still_ns; /* from when on the limit counts */
	uint64_t next_ns;  /* next look at everything but the condition */
};

#define GDRI_TOLD (-2)
#define GDRI_WAITS_FOR_WORD (-2) /* gdri_waiter.team: who waits completes the record, by gdri_wait_record_word */

/* Small: it stands in the frame of whoever waits, below all that a wait does. */
struct gdri_waiter {
	struct gdri_limit limit;
	uint64_t addr;	   /* heap offset waited on, or 0 */
	uint32_t first, last; /* of a queue: what was complete when it began, and at the last look; the low halves */
	uint32_t round;
	int16_t peer;	   /* -1: unknown; own PE: nobody else can help */
	int16_t culprit;   /* because of whom; GDRI_TOLD: of what another PE told, which is recorded */
	int8_t found;	   /* < 0: the status that the wait ends with, now or at its limit, */
	int8_t ends;	   /* 1: with the next step; 2: and another PE told that the culprit is in gdr_finalize */
	int8_t rec;	   /* published record, -1: none */
	uint8_t error;	   /* 1 + number of the error record that was taken for that, or 0 */
	uint8_t op;	   /* enum gdri_op */
	int8_t team;	   /* whose collective it is part of; -1: no team's; or GDRI_WAITS_FOR_WORD */
	uint16_t queue;	   /* of a look at the queues to the peer: which is next */
};
GDR_STATIC_ASSERT(GDRI_MAX_PES <= INT16_MAX && GDRI_MAX_ERRORS < UINT8_MAX && GDRI_WAIT_RECORDS <= INT8_MAX &&
		  GDRI_MAX_TEAMS <= INT8_MAX + 1, "fields of gdri_waiter");

GDR_DEVICE void gdri_limit_start(struct gdri_limit *l)
{
	l->start_ns = 0;
	l->still_ns = 0;
	l->next_ns = 0;
}

/* It counts from now, by the clock as it was last looked at, or will be soon: to look at it each time costs more. */
GDR_DEVICE void gdri_limit_anew(struct gdri_limit *l)
{
	l->still_ns = l->next_ns;
}

/* 1: since its last look the thread was stopped, and all PEs with it, it may be: that was no waiting. A GPU's threads
 * run on when their process is stopped. */
GDR_DEVICE int gdri_limit_stopped(const struct gdri_limit *l, uint64_t now)
{
#ifdef __CUDACC__
	(void)l, (void)now;
	return 0;
#else
	return gdri_unlikely(now > l->next_ns && now - l->next_ns > GDRI_LIMIT_STOPPED_NS) && l->next_ns;
#endif
}

/* Pauses. 1: a look at all else is due, at *now; 0: not yet; < 0: -GDR_EABORTED. */
GDR_DEVICE int gdri_limit_pause(const struct gdri_dev *dev, struct gdri_limit *l, uint32_t round, uint64_t *now)
{
	gdr_pause(round);
	if (round & GDRI_LIMIT_ROUNDS)
		return 0;
	*now = gdr_clock_ns();
	if (*now < l->next_ns)
		return 0;
	/* Host memory: thousands of threads of a GPU that begin to wait would queue up for PCIe. There
	 * the first look is that of a wait that is long. */
	if ((!GDRI_SPINS || l->start_ns) && gdri_unlikely(gdri_ld_relaxed_sys_u32(dev->abort)))
		return -GDR_EABORTED;
	if (l->start_ns) {
		if (gdri_limit_stopped(l, *now)) /* a sixteenth: where a machine often stands still waits end, too */
			l->still_ns += *now - l->next_ns - gdri_min_u64(*now - l->next_ns, dev->timeout_ns / 16);
		l->next_ns = *now + gdri_min_u64(GDRI_LIMIT_EVERY_NS, dev->timeout_ns / 4);
		return 1;
	}
	l->start_ns = l->still_ns = *now;
	l->next_ns = *now + gdri_min_u64(GDRI_LIMIT_FIRST_NS, dev->timeout_ns);
	return 0;
}

/* Pauses where no other PE can be the reason: 0, or the status that the wait ends with. */
GDR_DEVICE int gdri_limit_pass(const struct gdri_dev *dev, struct gdri_limit *l, uint32_t round)
{
	uint64_t now;
	int due = gdri_limit_pause(dev, l, round, &now);

	if (due > 0)
		return now >= l->still_ns + dev->timeout_ns ? -GDR_ETIMEOUT : 0;
	return due;
}

/* Out of line. */
GDR_DEVICE_COLD int gdri_limit_step(const struct gdri_dev *dev, struct gdri_limit *l, uint32_t round)
{
	return gdri_limit_pass(dev, l, round);
}

/* ---- a wait for what is to be named ---- */

GDR_DEVICE void gdri_wait_begin(struct gdri_waiter *w, uint32_t op, int peer, uint64_t addr)
{
	gdri_limit_start(&w->limit);
	w->addr = addr;
	w->first = w->last = 0;
	w->peer = (int16_t)peer;
	w->op = (uint8_t)op;
	w->team = -1;
	w->round = 0;
	w->rec = -1;
	w->ends = 0;
	w->found = 0;
	w->error = 0;
}

/* Of what a queue brings nearer: its limit counts from the last block that was completed. */
GDR_DEVICE void gdri_wait_begin_queue(struct gdri_waiter *w, uint32_t op, const struct gdri_qp *qp)
{
	gdri_wait_begin(w, op, qp->peer, 0);
	w->first = w->last = (uint32_t)gdri_ld_relaxed_gpu_u64(&qp->done);
}

GDRI_NOINLINE void gdri_wait_anew(struct gdri_dev *dev, struct gdri_waiter *w, uint32_t last)
{
	w->last = last;
	gdri_limit_anew(&w->limit);
	w->ends = 0;
	w->found = 0;
	if (w->error)
		gdri_error_void(dev, &dev->errors[w->error - 1]);
	w->error = 0;
}

/* What was completed is `last` now. */
GDR_DEVICE void gdri_wait_moves(struct gdri_dev *dev, struct gdri_waiter *w, uint64_t last)
{
	if (w->last != (uint32_t)last)
		gdri_wait_anew(dev, w, (uint32_t)last);
}

/* A PE that stands still is named by those that wait for it: whoever does anything in a wait
 * moves the heartbeat of its record, if it has one. */
GDR_DEVICE void gdri_wait_heartbeat(struct gdri_dev *dev, int32_t rec)
{
	uint32_t *heartbeat;

	if (rec < 0)
		return;
	heartbeat = &dev->ctl->waits[rec].heartbeat; /* has one writer */
	gdri_st_relaxed_sys_u32(heartbeat, gdri_ld_relaxed_sys_u32(heartbeat) + 1);
}

/* A record for the wait, if it has none. */
GDR_DEVICE_COLD void gdri_wait_take_record(struct gdri_dev *dev, struct gdri_waiter *w, int status)
{
	struct gdri_error *e;

	GDRI_DEV_CONSTANT(dev);
	e = w->error ? 0 : gdri_error_take(dev, GDRI_ERROR_WAIT, status);
	if (e)
		w->error = (uint8_t)(1 + (e - dev->errors));
}

/* The record of a wait that fails, taken for it, if one was free. */
GDR_DEVICE_COLD void gdri_wait_record(struct gdri_dev *dev, const struct gdri_waiter *w)
{
	struct gdri_error *e = &dev->errors[w->error - 1];

	if (!w->error)
		return;
	e->status = w->found;
	e->op = w->op;
	e->peer = w->culprit;
	e->waited_for = w->peer;
	e->addr = w->addr;
	e->len = w->last - w->first;
	if (w->ends == 2)
		e->reason = 1;
	e->local = w->found == -GDR_EPEERFAILED ? gdri_ld_relaxed_sys_u64(&dev->ctl->fault) : 0;
	e->time_ns = gdr_clock_ns();
	e->waited_ns = w->limit.start_ns ? e->time_ns - w->limit.start_ns : 0;
	if (w->team != GDRI_WAITS_FOR_WORD)
		gdri_error_complete(e);
}

#endif
