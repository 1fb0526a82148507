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

/* A search: what its steps share, so that none keeps it in registers over another one. */
struct gdri_search {
	const struct gdri_waiter *w;
	uint64_t deadline; /* of all of it */
	int32_t pe;	   /* who is looked at */
	int32_t next;	   /* whom that one waits for, or gave up for; -1: unknown */
	int32_t end;	   /* the culprit, as far as is known */
	/* a look */
	int32_t waiting; /* number of waits */
	int32_t failed;	 /* 1: a wait failed */
	uint32_t slot;	 /* of gdri_ctl.blame, to read the records into */
	uint64_t sum;	 /* changes when any heartbeat moves */
	uint64_t first;	 /* sum at the first look */
	uint64_t until;	 /* when it has rested long enough */
	/* a READ */
	uint64_t target; /* complete when the queue has come so far */
	uint64_t done, limit;
};

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

/* Each block that the NIC completes of the queue gives the READ behind it new time: 0 that is over. */
GDR_DEVICE int gdri_blame_hop(struct gdri_dev *dev, struct gdri_search *s, const struct gdri_qp *qp, uint32_t round)
{
	uint64_t done = gdri_ld_relaxed_gpu_u64(&qp->done); /* says that it moves, no more */

	if (!round || done != s->done)
		s->limit = gdri_min_u64(s->deadline, gdr_clock_ns() + GDRI_BLAME_HOP_NS);
	s->done = done;
	return gdri_blame_pause(dev, s->w, round, s->limit);
}

/* READ of the records into the scratch slot, by the block `base`. */
GDR_DEVICE_COLD int gdri_blame_publish(struct gdri_dev *dev, const struct gdri_search *s, struct gdri_qp *qp,
				       uint64_t base)
{
	gdri_wqe_rdma(qp, base, GDRI_OP_READ, GDRI_CE_ALWAYS, offsetof(struct gdri_ctl, waits),
		      qp->rkey_sync, offsetof(struct gdri_ctl, blame) +
				     (uint64_t)s->slot * sizeof(dev->ctl->blame[0]),
		      dev->lkey, sizeof(dev->ctl->waits));
	return gdri_sq_publish_later(dev, qp, base, 1, 0, GDRI_WINDOW);
}

GDR_DEVICE_COLD int gdri_blame_post(struct gdri_dev *dev, struct gdri_search *s)
{
	struct gdri_qp *qp = gdri_qp_to(dev, s->pe, 0);
	uint64_t base;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	if (!gdri_n_slots(dev) || !qp->sq)
		return -GDR_EPEERLOST;
	gdri_qp_mark_used(dev, qp);
	GDRI_NOT_UNROLLED
	for (uint32_t round = 0; (base = gdri_sq_reserve_beside(dev, qp)) == GDRI_NO_ROOM; round++) {
		ret = (int)gdri_ld_acquire_gpu_u32((const uint32_t *)&qp->err); /* as in gdri_qp_test */
		if (ret)
			return ret;
		if (!gdri_blame_hop(dev, s, qp, round))
			return -GDR_ETIMEOUT;
	}
	s->target = base + 1;
	return gdri_blame_publish(dev, s, qp, base);
}

/* It is here: 0; or the slot is lost for now. */
GDR_DEVICE_COLD int gdri_blame_await(struct gdri_dev *dev, struct gdri_search *s)
{
	struct gdri_qp *qp = gdri_qp_to(dev, s->pe, 0);
	uint32_t round = 0;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	do {
		gdri_poll(dev, qp);
		ret = gdri_qp_test(qp, s->target);
		if (ret)
			return ret < 0 ? ret : 0;
	} while (gdri_blame_hop(dev, s, qp, round++));
	dev->blame_late[s->slot] = s->target;
	dev->blame_late_qp[s->slot] = (uint32_t)(qp - dev->qps);
	dev->blame_bad |= 1u << s->slot;
	return -GDR_ETIMEOUT;
}

/* The records of s->pe, where they can be read by now: mapped, or in the slot, into which it brings them; else NULL. */
GDR_DEVICE const struct gdri_wait *gdri_blame_fetch(struct gdri_dev *dev, struct gdri_search *s)
{
	if (s->pe == dev->pe)
		return dev->ctl->waits;
	if (dev->peers[s->pe].base)
		return ((const struct gdri_ctl *)dev->peers[s->pe].base)->waits;
	/* without queues no slot: a loop behind a return nvcc takes for a mistake */
	GDRI_NOT_UNROLLED
	for (s->slot = GDRI_QUEUES ? 0 : GDRI_BLAME_SLOTS;
	     s->slot < GDRI_BLAME_SLOTS && !gdri_blame_slot_free(dev, s->slot); s->slot++)
		;
	if (s->slot == GDRI_BLAME_SLOTS || gdri_blame_post(dev, s) || gdri_blame_await(dev, s))
		return 0;
	return (const struct gdri_wait *)dev->ctl->blame[s->slot];
}

/* The PE that pe said it gave up for, when its queues to this one still worked; -1: none. The
 * word is a peer's to write. */
GDR_DEVICE_COLD int32_t gdri_blame_notice(const struct gdri_dev *dev, int pe)
{
	uint64_t v = gdri_ld_relaxed_sys_u64(&dev->ctl->notice[pe]) - 1;

	return v < (uint64_t)dev->n_pes ? (int32_t)v : -1;
}

/* What they say. s->next: for whom the oldest of the waits waits, or because of whom one failed. */
GDR_DEVICE_COLD void gdri_blame_look(const struct gdri_wait *rec, struct gdri_search *s)
{
	uint64_t oldest = ~0ull, since, sum = 0;
	int32_t peer = -1, culprit = -1, waiting = 0;
	uint32_t state;

	s->failed = 0;
	GDRI_NOT_UNROLLED
	for (int i = 0; i < GDRI_WAIT_RECORDS; i++, rec++) {
		/* pairs with the releases of state in record.h, or with the NIC's READ of it */
		state = gdri_ld_acquire_sys_u32(&rec->state);
		sum += gdri_ld_relaxed_sys_u32(&rec->heartbeat) + (uint64_t)state * 0x100000000ull;
		if (state == GDRI_WAIT_FAILED) {
			s->failed = 1;
			culprit = (int32_t)gdri_ld_relaxed_sys_u32((const uint32_t *)&rec->peer);
		}
		if (state != GDRI_WAIT_WAITING)
			continue;
		waiting++;
		since = gdri_ld_relaxed_sys_u64(&rec->since_ns);
		if (since < oldest) {
			oldest = since;
			peer = (int32_t)gdri_ld_relaxed_sys_u32((const uint32_t *)&rec->peer);
		}
	}
	s->sum = sum;
	s->waiting = waiting;
	s->next = waiting ? peer : culprit;
}

/* ---- the chain ---- */

enum gdri_blame_found {
	GDRI_FOUND_LOST,   /* cannot be reached */
	GDRI_FOUND_STILL,  /* waits, but its threads do not move */
	GDRI_FOUND_IDLE,   /* is not waiting for anybody */
	GDRI_FOUND_FAILED, /* gave up because of s->next */
	GDRI_FOUND_WAITS,  /* alive, waits for s->next */
};

/* Its records cannot be read, or not in time: what it last told us may lead past it. */
GDR_DEVICE int gdri_blame_gone(const struct gdri_dev *dev, struct gdri_search *s)
{
	s->next = gdri_blame_notice(dev, s->pe);
	if (s->next >= 0)
		return GDRI_FOUND_FAILED;
	return gdr_clock_ns() > s->deadline ? GDRI_FOUND_STILL : GDRI_FOUND_LOST;
}

/* What s->pe says it is doing. Looks again until a heartbeat moves or has rested long enough: that
 * time begins with the first look, which may have taken long to get. */
GDR_DEVICE_COLD int gdri_blame_examine(struct gdri_dev *dev, struct gdri_search *s)
{
	const struct gdri_wait *rec;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (uint32_t round = 63;; round++) {
		rec = gdri_blame_fetch(dev, s);
		if (!rec)
			return gdri_blame_gone(dev, s);
		gdri_blame_look(rec, s);
		if (round == 63) {
			s->until = gdri_min_u64(gdr_clock_ns() + GDRI_BLAME_STILL_NS, s->deadline);
			s->first = s->sum;
		}
		if (!s->waiting || s->sum != s->first)
			break;
		if (!gdri_blame_pause(dev, s->w, round + 1, s->until))
			return GDRI_FOUND_STILL;
	}
	if (s->waiting)
		return GDRI_FOUND_WAITS;
	return s->failed && s->next >= 0 && s->next < dev->n_pes ? GDRI_FOUND_FAILED : GDRI_FOUND_IDLE;
}

/* Nobody knows who should have come: the worst of all PEs. -1: none. */
GDR_DEVICE_COLD int gdri_blame_scan(struct gdri_dev *dev, struct gdri_search *s)
{
	int found, idle = -1, failed = -1;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (s->pe = 0; s->pe < dev->n_pes && gdr_clock_ns() < s->deadline; s->pe++) {
		if (s->pe == dev->pe)
			continue;
		found = gdri_blame_examine(dev, s);
		if (found <= GDRI_FOUND_STILL) {
			s->end = s->pe;
			return found == GDRI_FOUND_LOST ? -GDR_EPEERLOST : -GDR_ETIMEOUT;
		}
		if (found == GDRI_FOUND_FAILED && failed < 0 && s->next != dev->pe)
			failed = s->next;
		if (found == GDRI_FOUND_IDLE && idle < 0)
			idle = s->pe;
	}
	s->end = failed >= 0 ? failed : idle;
	return -GDR_ETIMEOUT;
}

/* Follows the chain from the PE waited for; s->end names the culprit. Returns the status of the wait; 0: it leads to
 * nobody. */
GDR_DEVICE_COLD int gdri_blame_follow(struct gdri_dev *dev, struct gdri_search *s)
{
	int found;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (int hops = 0; hops < dev->n_pes; hops++) {
		s->end = s->pe;
		if (gdr_clock_ns() > s->deadline)
			return -GDR_ETIMEOUT; /* this far the chain is known */
		found = gdri_blame_examine(dev, s);
		if (found == GDRI_FOUND_LOST)
			return -GDR_EPEERLOST;
		if (found == GDRI_FOUND_STILL || found == GDRI_FOUND_IDLE)
			return -GDR_ETIMEOUT;
		if (s->next < 0 || s->next >= dev->n_pes) {
			s->end = -1;
			return 0;
		}
		if (s->next == s->pe || (s->next == dev->pe && found == GDRI_FOUND_FAILED))
			return -GDR_ETIMEOUT;
		if (s->next == dev->pe) /* a circle: somebody else than those in it may be the reason */
			return 0;
		s->pe = s->next;
	}
	return 0;
}

/* The status of the wait, and s->end, its culprit. */
GDR_DEVICE int gdri_blame_find(struct gdri_dev *dev, struct gdri_search *s)
{
	int32_t chain;
	int ret = s->pe < 0 ? 0 : gdri_blame_follow(dev, s);

	if (ret)
		return ret;
	chain = s->end;
	ret = gdri_blame_scan(dev, s);
	if (s->end < 0)
		s->end = chain;
	return ret;
}

#endif
