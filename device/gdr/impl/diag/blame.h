/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is to blame for a wait: follows what the PEs publish about theirs from one to the
 * next, to a PE that cannot be reached, that stands still, or that is not waiting for
 * anybody. Everything here ends at the deadline it is given. */
#ifndef GDRI_BLAME_H
#define GDRI_BLAME_H

#include <gdr/impl/queue/publish.h>
#include <gdr/impl/wait/record.h>

/* These do not shrink with GDR_TIMEOUT: on a crowded machine a PE that lives may not run for a
 * while. */
#define GDRI_BLAME_STILL_NS 500000000ull /* a heartbeat that rests for so long stands still */
#define GDRI_BLAME_HOP_NS 1000000000ull /* to read another PE's records */

/* ---- other PEs' records ---- */

/* 0: the clock has passed the deadline. Else moves the heartbeat and pauses. */
GDR_DEVICE_COLD int gdri_blame_pause(struct gdri_dev *dev, const struct gdri_waiter *w,
				     uint32_t round, uint64_t deadline)
{
	if (gdr_clock_ns() > deadline)
		return 0;
	gdri_wait_heartbeat(dev, w);
	gdr_pause(round);
	return 1;
}

/* Whether scratch slot i may be read into: no read that was given up can still land there. */
GDR_DEVICE_COLD int gdri_blame_slot_free(struct gdri_dev *dev, uint32_t i)
{
	struct gdri_qp *qp = &dev->qps[dev->blame_late_qp[i]];

	if (!(dev->blame_bad >> i & 1u))
		return 1;
	gdri_poll(dev, qp);
	if (!gdri_qp_test(qp, dev->blame_late[i]))
		return 0;
	dev->blame_bad &= ~(1u << i); /* it has landed, or the queue failed and it never will */
	return 1;
}

struct gdri_hop {
	uint64_t done, end, deadline;
};

/* Each block that the NIC completes of the queue gives the READ behind it new time: 0 that is over. */
GDR_DEVICE_COLD int gdri_blame_hop(struct gdri_dev *dev, const struct gdri_waiter *w, const struct gdri_qp *qp,
				   uint32_t round, struct gdri_hop *h)
{
	uint64_t done = gdri_ld_relaxed_gpu_u64(&qp->done); /* says that it moves, no more */

	if (!round || done != h->done)
		h->end = gdri_min_u64(h->deadline, gdr_clock_ns() + GDRI_BLAME_HOP_NS);
	h->done = done;
	return gdri_blame_pause(dev, w, round, h->end);
}

/* READ of the records into scratch slot i, within the time limit; 0 or < 0. */
GDR_DEVICE_COLD int gdri_blame_read(struct gdri_dev *dev, const struct gdri_waiter *w, int pe,
				    uint32_t i, uint64_t deadline)
{
	struct gdri_qp *qp = gdri_qp_to(dev, pe, 0);
	struct gdri_hop hop = {0, 0, deadline};
	uint64_t base;
	uint32_t round;
	int ret;

	if (!gdri_n_slots(dev) || !qp->sq)
		return -GDR_EPEERLOST;
	gdri_qp_mark_used(dev, qp);
	for (round = 0; (base = gdri_sq_reserve_beside(dev, qp)) == GDRI_NO_ROOM; round++) {
		ret = (int)gdri_ld_acquire_gpu_u32((const uint32_t *)&qp->err); /* as in gdri_qp_test */
		if (ret)
			return ret;
		if (!gdri_blame_hop(dev, w, qp, round, &hop))
			return -GDR_ETIMEOUT;
	}
	gdri_wqe_rdma(qp, base, GDRI_OP_READ, GDRI_CE_ALWAYS, offsetof(struct gdri_ctl, waits),
		      qp->rkey_sync, offsetof(struct gdri_ctl, blame) +
				     (uint64_t)i * sizeof(dev->ctl->blame[0]),
		      dev->lkey, sizeof(dev->ctl->waits));
	ret = gdri_sq_publish(dev, qp, base, 1, 0);
	if (ret)
		return ret;
	for (round = 0;; round++) {
		gdri_poll(dev, qp);
		ret = gdri_qp_test(qp, base + 1);
		if (ret)
			return ret < 0 ? ret : 0;
		if (!gdri_blame_hop(dev, w, qp, round, &hop))
			break;
	}
	dev->blame_late[i] = base + 1;
	dev->blame_late_qp[i] = (uint32_t)(qp - dev->qps);
	dev->blame_bad |= 1u << i;
	return -GDR_ETIMEOUT;
}

/* The records of pe: mapped, or a copy; NULL when pe cannot be reached. */
GDR_DEVICE_COLD const struct gdri_wait *gdri_blame_fetch(struct gdri_dev *dev,
							 const struct gdri_waiter *w, int pe,
							 uint64_t deadline)
{
	uint32_t i;

	if (pe == dev->pe)
		return dev->ctl->waits;
	if (dev->peers[pe].base)
		return ((const struct gdri_ctl *)dev->peers[pe].base)->waits;
	for (i = 0; GDRI_QUEUES && i < GDRI_BLAME_SLOTS && !gdri_blame_slot_free(dev, i); i++)
		;
	if (!GDRI_QUEUES || i == GDRI_BLAME_SLOTS ||
	    gdri_blame_read(dev, w, pe, i, deadline))
		return 0;
	return (const struct gdri_wait *)dev->ctl->blame[i];
}

/* The PE that pe said it gave up for, when its queues to this one still worked; -1: none. The
 * word is a peer's to write. */
GDR_DEVICE_COLD int32_t gdri_blame_notice(const struct gdri_dev *dev, int pe)
{
	uint64_t v = gdri_ld_relaxed_sys_u64(&dev->ctl->notice[pe]) - 1;

	return v < (uint64_t)dev->n_pes ? (int32_t)v : -1;
}

struct gdri_look {
	uint64_t sum;	/* changes when any heartbeat moves */
	int waiting;	/* number of waits */
	int32_t peer;	/* for whom the oldest of them waits */
	int failed;	/* 1: a wait failed, */
	int32_t culprit; /* because of this PE */
};

GDR_DEVICE_COLD void gdri_blame_look(const struct gdri_wait *rec, struct gdri_look *l)
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
		/* pairs with the releases of state in record.h, or with the NIC's READ of it */
		state = gdri_ld_acquire_sys_u32(&rec->state);
		l->sum += gdri_ld_relaxed_sys_u32(&rec->heartbeat) + (uint64_t)state * 0x100000000ull;
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

enum gdri_blame_found {
	GDRI_FOUND_LOST,   /* cannot be reached */
	GDRI_FOUND_STILL,  /* waits, but its threads do not move */
	GDRI_FOUND_IDLE,   /* is not waiting for anybody */
	GDRI_FOUND_FAILED, /* gave up because of *next */
	GDRI_FOUND_WAITS,  /* alive, waits for *next */
};

/* The records of pe cannot be read, or not in time: what it last told us may lead past it. */
GDR_DEVICE_COLD int gdri_blame_gone(const struct gdri_dev *dev, int pe, uint64_t deadline,
				    int32_t *next)
{
	*next = gdri_blame_notice(dev, pe);
	if (*next >= 0)
		return GDRI_FOUND_FAILED;
	return gdr_clock_ns() > deadline ? GDRI_FOUND_STILL : GDRI_FOUND_LOST;
}

/* What pe says it is doing. Looks again until a heartbeat moves or has rested long enough: that
 * time begins with the first look, which may have taken long to get. */
GDR_DEVICE_COLD int gdri_blame_examine(struct gdri_dev *dev, const struct gdri_waiter *w, int pe,
				       uint64_t deadline, int32_t *next)
{
	const struct gdri_wait *rec = gdri_blame_fetch(dev, w, pe, deadline);
	uint64_t until = gdri_min_u64(gdr_clock_ns() + GDRI_BLAME_STILL_NS, deadline);
	struct gdri_look first, now;
	uint32_t round;

	if (!rec)
		return gdri_blame_gone(dev, pe, deadline, next);
	gdri_blame_look(rec, &first);
	now = first;
	for (round = 64; now.waiting && now.sum == first.sum; round++) {
		if (!gdri_blame_pause(dev, w, round, until))
			return GDRI_FOUND_STILL;
		rec = gdri_blame_fetch(dev, w, pe, deadline);
		if (!rec)
			return gdri_blame_gone(dev, pe, deadline, next);
		gdri_blame_look(rec, &now);
	}
	*next = now.waiting ? now.peer : now.culprit;
	if (now.waiting)
		return GDRI_FOUND_WAITS;
	return now.failed && *next >= 0 && *next < dev->n_pes ? GDRI_FOUND_FAILED : GDRI_FOUND_IDLE;
}

/* Nobody knows who should have come: the worst of all PEs. */
GDR_DEVICE_COLD int gdri_blame_scan(struct gdri_dev *dev, const struct gdri_waiter *w,
				    uint64_t deadline, int32_t *end)
{
	int pe, found, idle = -1, failed = -1;
	int32_t next;

	for (pe = 0; pe < dev->n_pes && gdr_clock_ns() < deadline; pe++) {
		if (pe == dev->pe)
			continue;
		found = gdri_blame_examine(dev, w, pe, deadline, &next);
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
GDR_DEVICE_COLD int gdri_blame_follow(struct gdri_dev *dev, const struct gdri_waiter *w,
				      uint64_t deadline, int32_t *end)
{
	int hops, found, pe = w->peer;
	int32_t next = -1;

	for (hops = 0; hops < dev->n_pes; hops++) {
		*end = pe;
		if (gdr_clock_ns() > deadline)
			return -GDR_ETIMEOUT; /* this far the chain is known */
		found = gdri_blame_examine(dev, w, pe, deadline, &next);
		if (found == GDRI_FOUND_LOST)
			return -GDR_EPEERLOST;
		if (found == GDRI_FOUND_STILL || found == GDRI_FOUND_IDLE)
			return -GDR_ETIMEOUT;
		if (next < 0 || next >= dev->n_pes)
			return gdri_blame_scan(dev, w, deadline, end);
		if (next == pe || (next == dev->pe && found == GDRI_FOUND_FAILED))
			return -GDR_ETIMEOUT;
		if (next == dev->pe)
			break;
		pe = next;
	}
	/* a circle: somebody else than those in it may be the reason */
	found = gdri_blame_scan(dev, w, deadline, &next);
	if (next >= 0)
		*end = next;
	return found;
}

#endif
