/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: each PE publishes whom it waits for, and a wait that expires follows
 * that chain to its end: a PE that cannot be reached, that stands still, or that
 * is not waiting for anybody. Everything here is bounded and off the fast path. */
#ifndef GDRI_WATCH_H
#define GDRI_WATCH_H

#include <gdr/impl/nic.h>

#define GDRI_WATCH_FIRST_NS 1000000ull	/* a wait this long is published */
#define GDRI_WATCH_EVERY_NS 4000000ull	/* then a look at queues and clock */
/* Limits of the diagnosis, which comes on top of GDR_TIMEOUT. They do not shrink with it:
 * on a crowded machine a PE that lives may not run for a while. */
#define GDRI_WATCH_STILL_NS 500000000ull /* a beat that rests for so long stands still */
#define GDRI_WATCH_HOP_NS 1000000000ull /* to read another PE's records */
#define GDRI_WATCH_TELL_NS 500000000ull /* for all notices to arrive */
#define GDRI_WATCH_ALL_NS 5000000000ull /* all of it, */
#define GDRI_WATCH_ALL_MORE_NS 2000000000ull /* and at most this more than GDR_TIMEOUT */

GDR_DEVICE_COLD uint64_t gdri_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

GDR_DEVICE_COLD int gdri_qp_is_used(const struct gdri_dev *dev, const struct gdri_qp *qp)
{
	uint64_t i = (uint64_t)(qp - dev->qps);

	return qp->sq && (gdri_ld_relaxed_gpu_u64(&dev->used[i >> 6]) >> (i & 63u) & 1u);
}

/* ---- own records ---- */

/* Record 0 is for FAILED. With all taken the wait stays unpublished: another
 * thread of the PE speaks for it. */
GDR_DEVICE_COLD void gdri_wait_publish(struct gdri_dev *dev, struct gdri_waiter *w)
{
	struct gdri_wait *rec;
	uint32_t idle;
	int i;

	for (i = 1; i < GDRI_WAIT_RECORDS; i++) {
		rec = &dev->ctl->waits[i];
		idle = GDRI_WAIT_IDLE;
		/* a state that who looks ignores, while it is being filled */
		if (gdri_ld_relaxed_sys_u32(&rec->state) != GDRI_WAIT_IDLE ||
		    !gdri_cas_u32(&rec->state, &idle, GDRI_WAIT_FILLING))
			continue;
		gdri_st_relaxed_sys_u32((uint32_t *)&rec->peer, (uint32_t)w->peer);
		gdri_st_relaxed_sys_u32(&rec->op, w->op);
		gdri_st_relaxed_sys_u64(&rec->since_ns, w->start_ns);
		gdri_st_relaxed_sys_u64(&rec->addr, w->addr);
		/* pairs with the acquire of state by who looks */
		gdri_st_release_sys_u32(&rec->state, GDRI_WAIT_WAITING);
		w->rec = i;
		return;
	}
}

GDR_DEVICE_COLD void gdri_wait_clear(struct gdri_dev *dev, struct gdri_waiter *w)
{
	gdri_st_release_sys_u32(&dev->ctl->waits[w->rec].state, GDRI_WAIT_IDLE);
	w->rec = -1;
}

/* A PE that stands still is named by those that wait for it: whoever does anything in a wait
 * moves the beat. */
GDR_DEVICE_COLD void gdri_wait_beat(struct gdri_dev *dev, const struct gdri_waiter *w)
{
	uint32_t *beat;

	if (w->rec < 0)
		return;
	beat = &dev->ctl->waits[w->rec].beat; /* has one writer */
	gdri_st_relaxed_sys_u32(beat, gdri_ld_relaxed_sys_u32(beat) + 1);
}

GDR_DEVICE_COLD void gdri_wait_publish_failed(struct gdri_dev *dev, const struct gdri_waiter *w,
					      int culprit)
{
	struct gdri_wait *rec = &dev->ctl->waits[0];

	gdri_st_relaxed_sys_u32((uint32_t *)&rec->peer, (uint32_t)culprit);
	gdri_st_relaxed_sys_u32(&rec->op, w->op);
	gdri_st_relaxed_sys_u64(&rec->since_ns, w->start_ns);
	gdri_st_relaxed_sys_u64(&rec->addr, w->addr);
	gdri_st_release_sys_u32(&rec->state, GDRI_WAIT_FAILED);
}

/* ---- other PEs' records ---- */

/* 0: the clock has passed the deadline. Else moves the beat and pauses. */
GDR_DEVICE_COLD int gdri_watch_pause(struct gdri_dev *dev, const struct gdri_waiter *w,
				     uint32_t round, uint64_t deadline)
{
	if (gdr_clock_ns() > deadline)
		return 0;
	gdri_wait_beat(dev, w);
	gdr_pause(round);
	return 1;
}

/* Whether scratch slot i may be read into: no read that was given up can still land there. */
GDR_DEVICE_COLD int gdri_watch_slot_free(struct gdri_dev *dev, uint32_t i)
{
	struct gdri_qp *qp = &dev->qps[dev->watch_late_qp[i]];

	if (!(dev->watch_bad >> i & 1u))
		return 1;
	gdri_poll(dev, qp);
	if (!gdri_qp_test(qp, dev->watch_late[i]))
		return 0;
	dev->watch_bad &= ~(1u << i); /* it has landed, or the queue failed and it never will */
	return 1;
}

/* READ of the records into scratch slot i, within the time limit; 0 or < 0. */
GDR_DEVICE_COLD int gdri_watch_read(struct gdri_dev *dev, const struct gdri_waiter *w, int pe,
				    uint32_t i, uint64_t deadline)
{
	struct gdri_qp *qp = gdri_qp_to(dev, pe);
	uint64_t base, r;
	uint32_t round = 0;
	int ret;

	if (!dev->n_slots || !qp->sq)
		return -GDR_EPEERLOST;
	gdri_qp_mark_used(dev, qp);
	for (;;) { /* reserve, but with a limit of its own */
		ret = gdri_sq_look(dev, qp, 1);
		if (ret < 0)
			return ret;
		r = gdri_ld_relaxed_gpu_u64(&qp->rsvd);
		if (ret && r + 1 <= gdri_ld_fenced_u64(&qp->limit) &&
		    gdri_cas_u64(&qp->rsvd, &r, r + 1))
			break;
		if (!gdri_watch_pause(dev, w, round++, deadline))
			return -GDR_ETIMEOUT;
	}
	base = r;
	gdri_wqe_rdma(qp, base, GDRI_OP_READ, GDRI_CE_ALWAYS, offsetof(struct gdri_ctl, waits),
		      qp->rkey_sync, offsetof(struct gdri_ctl, watch) +
				     (uint64_t)i * sizeof(dev->ctl->watch[0]),
		      dev->lkey, sizeof(dev->ctl->waits));
	gdri_sq_publish(dev, qp, base, 1, 0);
	for (round = 0;; round++) {
		gdri_poll(dev, qp);
		ret = gdri_qp_test(qp, base + 1);
		if (ret)
			return ret < 0 ? ret : 0;
		if (!gdri_watch_pause(dev, w, round, deadline))
			break;
	}
	dev->watch_late[i] = base + 1;
	dev->watch_late_qp[i] = (uint32_t)(qp - dev->qps);
	dev->watch_bad |= 1u << i;
	return -GDR_ETIMEOUT;
}

/* The records of pe: mapped, or a copy; NULL when pe cannot be reached. */
GDR_DEVICE_COLD const struct gdri_wait *gdri_watch_fetch(struct gdri_dev *dev,
							 const struct gdri_waiter *w, int pe,
							 uint64_t deadline)
{
	uint32_t i;

	if (pe == dev->pe)
		return dev->ctl->waits;
	if (dev->peers[pe].base)
		return ((const struct gdri_ctl *)dev->peers[pe].base)->waits;
	for (i = 0; i < GDRI_WATCH_SLOTS && !gdri_watch_slot_free(dev, i); i++)
		;
	if (i == GDRI_WATCH_SLOTS ||
	    gdri_watch_read(dev, w, pe, i,
			    gdri_min_u64(deadline, gdr_clock_ns() + GDRI_WATCH_HOP_NS)))
		return 0;
	return (const struct gdri_wait *)dev->ctl->watch[i];
}

/* The PE that pe said it gave up for, when its queues to this one still worked; -1: none. The
 * word is a peer's to write. */
GDR_DEVICE_COLD int32_t gdri_watch_notice(const struct gdri_dev *dev, int pe)
{
	uint64_t v = gdri_ld_relaxed_sys_u64(&dev->ctl->notice[pe]) - 1;

	return v < (uint64_t)dev->n_pes ? (int32_t)v : -1;
}

struct gdri_look {
	uint64_t sum;	/* changes when any beat moves */
	int waiting;	/* number of waits */
	int32_t peer;	/* for whom the oldest of them waits */
	int failed;	/* 1: a wait failed, */
	int32_t culprit; /* because of this PE */
};

GDR_DEVICE_COLD void gdri_watch_look(const struct gdri_wait *rec, struct gdri_look *l)
{
	uint64_t oldest = ~0ull, since;
	uint32_t state;
	int i;

	l->sum = 0;
	l->waiting = 0;
	l->failed = 0;
	l->peer = -1;
	l->culprit = -1;
	for (i = 0; i < GDRI_WAIT_RECORDS; i++, rec++) {
		state = gdri_ld_acquire_sys_u32(&rec->state);
		l->sum += gdri_ld_relaxed_sys_u32(&rec->beat) + (uint64_t)state * 0x100000000ull;
		if (state == GDRI_WAIT_FAILED) {
			l->failed = 1;
			l->culprit = (int32_t)gdri_ld_relaxed_sys_u32((const uint32_t *)&rec->peer);
		}
		if (state != GDRI_WAIT_WAITING)
			continue;
		l->waiting++;
		since = gdri_ld_relaxed_sys_u64(&rec->since_ns);
		if (since < oldest) {
			oldest = since;
			l->peer = (int32_t)gdri_ld_relaxed_sys_u32((const uint32_t *)&rec->peer);
		}
	}
}

/* ---- the chain ---- */

enum gdri_watch_found {
	GDRI_FOUND_LOST,   /* cannot be reached */
	GDRI_FOUND_STILL,  /* waits, but its threads do not move */
	GDRI_FOUND_IDLE,   /* is not waiting for anybody */
	GDRI_FOUND_FAILED, /* gave up because of *next */
	GDRI_FOUND_WAITS,  /* alive, waits for *next */
};

/* The records of pe cannot be read: what it last told us may lead past it. */
GDR_DEVICE_COLD int gdri_watch_gone(const struct gdri_dev *dev, int pe, int32_t *next)
{
	*next = gdri_watch_notice(dev, pe);
	return *next >= 0 ? GDRI_FOUND_FAILED : GDRI_FOUND_LOST;
}

/* What pe says it is doing. Looks again until a beat moves or has rested long enough: that
 * time begins with the first look, which may have taken long to get. */
GDR_DEVICE_COLD int gdri_watch_examine(struct gdri_dev *dev, const struct gdri_waiter *w, int pe,
				       uint64_t deadline, int32_t *next)
{
	const struct gdri_wait *rec = gdri_watch_fetch(dev, w, pe, deadline);
	uint64_t until = gdr_clock_ns() + GDRI_WATCH_STILL_NS;
	struct gdri_look first, now;
	uint32_t round;

	if (!rec)
		return gdri_watch_gone(dev, pe, next);
	gdri_watch_look(rec, &first);
	now = first;
	for (round = 64; now.waiting && now.sum == first.sum; round++) {
		if (!gdri_watch_pause(dev, w, round, until))
			return GDRI_FOUND_STILL;
		rec = gdri_watch_fetch(dev, w, pe, until + GDRI_WATCH_HOP_NS);
		if (!rec)
			return gdri_watch_gone(dev, pe, next);
		gdri_watch_look(rec, &now);
	}
	*next = now.waiting ? now.peer : now.culprit;
	if (now.waiting)
		return GDRI_FOUND_WAITS;
	return now.failed && *next >= 0 && *next < dev->n_pes ? GDRI_FOUND_FAILED : GDRI_FOUND_IDLE;
}

/* Nobody knows who should have come: the worst of all PEs. */
GDR_DEVICE_COLD int gdri_watch_scan(struct gdri_dev *dev, const struct gdri_waiter *w,
				    uint64_t deadline, int32_t *end)
{
	int pe, found, idle = -1, failed = -1;
	int32_t next;

	for (pe = 0; pe < dev->n_pes && gdr_clock_ns() < deadline; pe++) {
		if (pe == dev->pe)
			continue;
		found = gdri_watch_examine(dev, w, pe, deadline, &next);
		if (found <= GDRI_FOUND_STILL) {
			*end = pe;
			return found == GDRI_FOUND_LOST ? -GDR_EPEERLOST : -GDR_ETIMEOUT;
		}
		if (found == GDRI_FOUND_FAILED && failed < 0 && next != dev->pe)
			failed = next;
		if (found == GDRI_FOUND_IDLE && idle < 0)
			idle = pe;
	}
	*end = failed >= 0 ? failed : idle;
	return -GDR_ETIMEOUT;
}

/* Follows the chain from pe; *end names the culprit. Returns the status of the wait. */
GDR_DEVICE_COLD int gdri_watch_follow(struct gdri_dev *dev, const struct gdri_waiter *w,
				      uint64_t deadline, int32_t *end)
{
	int hops, found, pe = w->peer;
	int32_t next = -1;

	for (hops = 0; hops < dev->n_pes; hops++) {
		*end = pe;
		if (gdr_clock_ns() > deadline)
			return -GDR_ETIMEOUT; /* this far the chain is known */
		found = gdri_watch_examine(dev, w, pe, deadline, &next);
		if (found == GDRI_FOUND_LOST)
			return -GDR_EPEERLOST;
		if (found == GDRI_FOUND_STILL || found == GDRI_FOUND_IDLE)
			return -GDR_ETIMEOUT;
		if (next < 0 || next >= dev->n_pes)
			return gdri_watch_scan(dev, w, deadline, end);
		if (next == pe || (next == dev->pe && found == GDRI_FOUND_FAILED))
			return -GDR_ETIMEOUT;
		if (next == dev->pe)
			break;
		pe = next;
	}
	/* a circle: somebody else than those in it may be the reason */
	found = gdri_watch_scan(dev, w, deadline, &next);
	if (next >= 0)
		*end = next;
	return found;
}

/* ---- the end of a wait ---- */

/* To one PE, if that is possible without waiting. */
GDR_DEVICE_COLD void gdri_watch_tell_one(struct gdri_dev *dev, int pe, uint64_t value)
{
	uint64_t off = offsetof(struct gdri_ctl, notice) + (uint64_t)dev->pe * 8, r;
	struct gdri_qp *qp = gdri_qp_to(dev, pe);
	uint32_t v[7] = {0, 0, 0, 0, 0, 0, 0};

	if (dev->peers[pe].base) {
		gdri_st_relaxed_sys_u64((uint64_t *)(dev->peers[pe].base + off), value);
		return;
	}
	if (!dev->n_slots || !gdri_qp_is_used(dev, qp) || gdri_sq_look(dev, qp, 1) <= 0)
		return;
	r = gdri_ld_relaxed_gpu_u64(&qp->rsvd);
	if (r + 1 > gdri_ld_fenced_u64(&qp->limit) || !gdri_cas_u64(&qp->rsvd, &r, r + 1))
		return;
	v[0] = (uint32_t)value;
	v[1] = (uint32_t)(value >> 32);
	gdri_wqe_write_inline(qp, r, GDRI_CE_ALWAYS, off, qp->rkey_sync, v, 8);
	gdri_sq_publish(dev, qp, r, 1, 0);
}

/* Tells everybody who is to blame. Waits a little for the notices to arrive: this PE may be
 * about to leave, and its queues go with it. */
GDR_DEVICE_COLD void gdri_watch_tell(struct gdri_dev *dev, const struct gdri_waiter *w,
				     int32_t culprit)
{
	uint64_t deadline = gdr_clock_ns() + GDRI_WATCH_TELL_NS;
	struct gdri_qp *qp;
	uint32_t round = 0;
	int pe;

	if (culprit < 0)
		return;
	for (pe = 0; pe < dev->n_pes; pe++)
		if (pe != dev->pe && pe != culprit)
			gdri_watch_tell_one(dev, pe, (uint64_t)culprit + 1);
	for (pe = 0; pe < dev->n_pes && dev->n_slots; pe++) {
		qp = gdri_qp_to(dev, pe);
		if (pe == dev->pe || pe == culprit || !gdri_qp_is_used(dev, qp))
			continue;
		while (gdri_poll(dev, qp),
		       !gdri_qp_test(qp, gdri_ld_relaxed_gpu_u64(&qp->rsvd)))
			if (!gdri_watch_pause(dev, w, round++, deadline))
				return;
	}
}

/* One thread follows the chain at a time; those that expire meanwhile take over its
 * finding when it answers their question. */
GDR_DEVICE_COLD int gdri_watch_diagnose(struct gdri_dev *dev, const struct gdri_waiter *w,
					int32_t *end)
{
	uint64_t deadline = gdr_clock_ns() +
			    gdri_min_u64(GDRI_WATCH_ALL_NS,
					 dev->timeout_ns + GDRI_WATCH_ALL_MORE_NS);
	uint32_t unlocked = 0, round = 64;
	int ret;

	while (!gdri_cas_u32(&dev->watch_lock, &unlocked, 1)) {
		unlocked = 0;
		if (!gdri_watch_pause(dev, w, round++, deadline + 2 * GDRI_WATCH_HOP_NS))
			return -GDR_ETIMEOUT;
	}
	/* Pairs with the release of the lock: the CAS continues its release sequence. A load, and
	 * not a fence, so that ThreadSanitizer sees it. */
	(void)gdri_ld_acquire_gpu_u32(&dev->watch_lock);
	if (dev->watch_time > w->start_ns && dev->watch_from == w->peer) {
		*end = dev->watch_end;
		ret = dev->watch_status;
	} else {
		ret = w->peer < 0 ? gdri_watch_scan(dev, w, deadline, end)
				  : gdri_watch_follow(dev, w, deadline, end);
		dev->watch_from = w->peer;
		dev->watch_end = *end;
		dev->watch_status = ret;
		dev->watch_time = gdr_clock_ns();
		gdri_watch_tell(dev, w, *end);
	}
	gdri_st_release_gpu_u32(&dev->watch_lock, 0);
	return ret;
}

GDR_DEVICE_COLD void gdri_wait_lost(struct gdri_dev *dev, const struct gdri_waiter *w,
				    int32_t culprit)
{
	uint32_t none = 0;

	if (!gdri_cas_u32((uint32_t *)&dev->failed, &none, (uint32_t)(culprit + 1)))
		return;
	gdri_wait_publish_failed(dev, w, culprit);
	gdri_watch_tell(dev, w, culprit);
}

/* e: the record, NULL when all are taken. */
GDR_DEVICE_COLD int gdri_wait_fail_as(struct gdri_dev *dev, struct gdri_waiter *w, int status,
				      int32_t culprit, struct gdri_error *e)
{
	uint32_t none = 0;

	if (status != -GDR_EABORTED) {
		gdri_wait_publish_failed(dev, w, culprit);
		gdri_cas_u32((uint32_t *)&dev->failed, &none, (uint32_t)(culprit + 1));
	}
	gdri_wait_end(dev, w);
	if (!e)
		return status;
	e->status = status;
	e->op = w->op;
	e->peer = culprit;
	e->waited_for = w->peer;
	e->addr = w->addr;
	e->waited_ns = w->start_ns ? e->time_ns - w->start_ns : 0;
	gdri_error_complete(e);
	return status;
}

GDR_DEVICE_COLD int gdri_wait_fail(struct gdri_dev *dev, struct gdri_waiter *w, int status,
				   int32_t culprit)
{
	return gdri_wait_fail_as(dev, w, status, culprit,
				 gdri_error_take(dev, GDRI_ERROR_WAIT, status));
}

/* The record is taken before the diagnosis: what fails in that stands behind it, and is not
 * what the user is told first. */
GDR_DEVICE_COLD int gdri_wait_expire(struct gdri_dev *dev, struct gdri_waiter *w)
{
	struct gdri_error *e = gdri_error_take(dev, GDRI_ERROR_WAIT, -GDR_ETIMEOUT);
	int32_t culprit = w->peer;
	int status = -GDR_ETIMEOUT;

	if (w->peer != dev->pe && dev->n_pes > 1)
		status = gdri_watch_diagnose(dev, w, &culprit);
	return gdri_wait_fail_as(dev, w, status, culprit, e);
}

GDR_DEVICE_COLD int gdri_waits_on_memory(const struct gdri_waiter *w)
{
	return w->op == GDRI_WAIT_UNTIL || w->op == GDRI_SIGNAL_WAIT || w->op == GDRI_BARRIER ||
	       w->op == GDRI_SYNC;
}

/* Whether the connection to pe broke: then nothing will come from there. */
GDR_DEVICE_COLD int gdri_watch_queues(struct gdri_dev *dev, int pe)
{
	struct gdri_qp *qp = &dev->qps[(uint32_t)pe * dev->n_slots];
	uint32_t i;
	int err;

	for (i = 0; i < dev->n_slots; i++, qp++) {
		if (!gdri_qp_is_used(dev, qp))
			continue;
		gdri_poll(dev, qp);
		err = (int)gdri_ld_acquire_gpu_u32((const uint32_t *)&qp->err);
		if (gdri_qp_lost_peer(qp, err))
			return -GDR_EPEERLOST;
		if (err == -GDR_EFLUSHED)
			return err;
	}
	return 0;
}

/* Whether the PE that the launcher reported dead is one that this wait needs: the one
 * waited for, anybody where that is unknown, and all in a collective. */
GDR_DEVICE_COLD int gdri_watch_lost(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	int lost = (int)gdri_ld_relaxed_sys_u32((const uint32_t *)&dev->lost) - 1;

	if (lost < 0 || w->peer == dev->pe)
		return -1;
	if (w->peer < 0 || w->peer == lost || w->op == GDRI_BARRIER || w->op == GDRI_SYNC)
		return lost;
	return -1;
}

GDR_DEVICE_COLD int gdri_wait_check(struct gdri_dev *dev, struct gdri_waiter *w, uint64_t now)
{
	int32_t culprit = w->peer;
	int status, lost;

	if (!w->start_ns) {
		w->start_ns = now;
		w->next_ns = now + gdri_min_u64(GDRI_WATCH_FIRST_NS, dev->timeout_ns);
		return 0;
	}
	w->next_ns = now + gdri_min_u64(GDRI_WATCH_EVERY_NS, dev->timeout_ns / 4);
	if (w->rec < 0)
		gdri_wait_publish(dev, w);
	lost = gdri_watch_lost(dev, w);
	if (lost >= 0) {
		gdri_watch_tell(dev, w, lost);
		return gdri_wait_fail(dev, w, -GDR_EPEERLOST, lost);
	}
	/* A wait for a queue sees that queue's error itself, and returns it. */
	if (gdri_waits_on_memory(w) && w->peer >= 0 && w->peer != dev->pe) {
		status = gdri_watch_queues(dev, w->peer);
		if (status) {
			lost = gdri_watch_notice(dev, w->peer);
			if (lost >= 0)
				culprit = lost;
			gdri_wait_lost(dev, w, culprit);
			return gdri_wait_fail(dev, w, status, culprit);
		}
	}
	return now - w->start_ns < dev->timeout_ns ? 0 : gdri_wait_expire(dev, w);
}

GDRI_NOINLINE int gdri_wait_step(struct gdri_dev *dev, struct gdri_waiter *w)
{
	uint32_t round = w->round++;
	uint64_t now;

	gdr_pause(round);
	gdri_wait_beat(dev, w);
	if (round & 3)
		return 0;
	if (gdri_unlikely(gdri_ld_relaxed_sys_u32(dev->abort)))
		return gdri_wait_fail(dev, w, -GDR_EABORTED, w->peer);
	now = gdr_clock_ns();
	return now < w->next_ns ? 0 : gdri_wait_check(dev, w, now);
}

#endif
