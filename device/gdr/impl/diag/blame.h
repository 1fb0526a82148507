/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is to blame for a wait: follows what the PEs publish about theirs from one to the
 * next, to a PE that cannot be reached, that stands still, or that is not waiting for
 * anybody. Everything here ends at the deadline it is given. */
#ifndef GDRI_BLAME_H
#define GDRI_BLAME_H

#include <gdr/impl/queue/publish.h>
#include <gdr/impl/wait/fault.h>
#include <gdr/impl/wait/record.h>

/* These do not shrink with GDR_TIMEOUT: on a crowded machine a PE that lives may not run for a while. Where there is
 * time it gets more: all but the last GDRI_BLAME_LEAST_NS before the deadline (gdri_blame_until). */
#define GDRI_BLAME_STILL_NS 500000000ull /* a heartbeat that rests for so long stands still */
#define GDRI_BLAME_HOP_NS 1000000000ull /* to read another PE's records */
#define GDRI_BLAME_LEAST_NS 2000000000ull /* a search has at least this long */

/* A search goes by steps, which share struct gdri_search and nothing else: none stands on another one's frame. */
enum gdri_blame_step {
	GDRI_BLAME_OVER,
	GDRI_BLAME_FETCH, /* the records of s->pe */
	GDRI_BLAME_SLOT,  /* to read them into */
	GDRI_BLAME_POLL,  /* the queue, for room for */
	GDRI_BLAME_POST,  /* a READ of them */
	GDRI_BLAME_AWAIT,
	GDRI_BLAME_LOOK,
	GDRI_BLAME_FOUND, /* what it is doing: on to the next PE */
};

enum gdri_blame_found {
	GDRI_FOUND_LOST,   /* a queue to it had no answer, or the launcher reported it dead */
	GDRI_FOUND_STILL,  /* waits, but its threads do not move; or its NIC is silent, and may yet answer */
	GDRI_FOUND_IDLE,   /* is not waiting for anybody */
	GDRI_FOUND_FAILED, /* gave up because of s->next */
	GDRI_FOUND_WAITS,  /* alive, waits for s->next */
};

/* 0: the clock has passed the deadline. Else moves the heartbeat of the wait's record and pauses. */
GDR_DEVICE_COLD int gdri_blame_pause(struct gdri_dev *dev, int32_t rec, uint32_t round, uint64_t deadline)
{
	if (gdr_clock_ns() > deadline)
		return 0;
	gdri_wait_heartbeat(dev, rec);
	gdr_pause(round);
	return 1;
}

/* The end of a step of the search that takes `least`, or longer while nobody needs the time. */
GDR_DEVICE uint64_t gdri_blame_until(const struct gdri_search *s, uint64_t least)
{
	uint64_t until = gdr_clock_ns() + least;

	if (until + GDRI_BLAME_LEAST_NS < s->deadline)
		return s->deadline - GDRI_BLAME_LEAST_NS;
	return gdri_min_u64(until, s->deadline);
}

/* What a notice says of a status: none, or one that there is. */
GDR_DEVICE int gdri_blame_says(uint64_t word)
{
	return !((word & ~GDRI_FAULT_LEFT) >> 32) ||
	       (!((word & ~GDRI_FAULT_LEFT) >> 40) && gdri_fault_known(gdri_fault_status(word)));
}

/* The PE that pe said it gave up for, when its queues to this one still worked; -1: none. *word: with what status. The
 * word is a peer's to write. */
GDR_DEVICE_COLD int32_t gdri_blame_told(const struct gdri_dev *dev, int pe, uint64_t *word)
{
	uint32_t v;

	*word = gdri_ld_relaxed_sys_u64(&dev->ctl->notice[pe]);
	v = (uint32_t)*word - 1;
	return v < (uint32_t)dev->n_pes && gdri_blame_says(*word) ? (int32_t)v : -1;
}

GDR_DEVICE_COLD int32_t gdri_blame_notice(const struct gdri_dev *dev, int pe)
{
	uint64_t word;

	return gdri_blame_told(dev, pe, &word);
}

/* ---- other PEs' records ---- */

GDR_DEVICE struct gdri_qp *gdri_blame_qp(const struct gdri_dev *dev)
{
	return gdri_qp_to(dev, dev->search.pe, 0);
}

/* Alone: pairs with nothing. */
GDR_DEVICE int gdri_blame_lost(const struct gdri_dev *dev, int pe)
{
	if (gdri_ld_relaxed_sys_u32(&dev->peers[pe].lost))
		return 1;
	return gdri_n_slots(dev) && gdri_qp_lost_peer((int)gdri_ld_relaxed_gpu_u32(
					    (const uint32_t *)&gdri_qp_to(dev, pe, 0)->err));
}

/* The records of s->pe cannot be read, or not in time: what it last told us may lead past it. */
GDR_DEVICE_COLD int gdri_blame_gone(struct gdri_dev *dev)
{
	struct gdri_search *s = &dev->search;

	s->next = gdri_blame_notice(dev, s->pe);
	s->found = s->next >= 0 ? GDRI_FOUND_FAILED : gdri_has_left(dev, s->pe) ? GDRI_FOUND_IDLE
		   : gdri_blame_lost(dev, s->pe) ? GDRI_FOUND_LOST : GDRI_FOUND_STILL;
	return GDRI_BLAME_FOUND;
}

/* Whether the slot may be read into: no read that was given up can still land there. */
GDR_DEVICE int gdri_blame_slot_free(struct gdri_dev *dev)
{
	GDRI_DEV_CONSTANT(dev);
	if (!(dev->blame_bad >> dev->search.slot & 1u))
		return 1;
	gdri_poll(dev, &dev->qps[dev->blame_late_qp[dev->search.slot]]);
	if (!gdri_qp_test(&dev->qps[dev->blame_late_qp[dev->search.slot]], dev->blame_late[dev->search.slot]))
		return 0;
	/* it has landed, or the queue failed and it never will */
	dev->blame_bad &= ~(1u << dev->search.slot);
	return 1;
}

/* Each block that the NIC completes of the queue gives the READ behind it new time: 0 that is over. */
GDR_DEVICE_COLD int gdri_blame_hop(struct gdri_dev *dev)
{
	struct gdri_search *s = &dev->search;
	uint64_t done = gdri_ld_relaxed_gpu_u64(&gdri_blame_qp(dev)->done); /* says that it moves, no more */

	if (!s->round || done != s->done)
		s->limit = gdri_blame_until(s, GDRI_BLAME_HOP_NS);
	s->done = done;
	return gdri_blame_pause(dev, s->rec, s->round++, s->limit);
}

/* Its heap is mapped, or its own, or a READ brings them. One that has called gdr_finalize, and may be gone, is asked
 * nothing: it owes nobody anything else. */
GDR_DEVICE_COLD int gdri_blame_fetch(struct gdri_dev *dev)
{
	struct gdri_search *s = &dev->search;

	s->slot = s->round = 0;
	if (gdri_has_left(dev, s->pe))
		return gdri_blame_gone(dev);
	if (s->pe == dev->pe || dev->peers[s->pe].base)
		return GDRI_BLAME_LOOK;
	return GDRI_QUEUES ? GDRI_BLAME_SLOT : gdri_blame_gone(dev);
}

GDR_DEVICE_COLD int gdri_blame_slot(struct gdri_dev *dev)
{
	GDRI_DEV_CONSTANT(dev);
	if (gdri_blame_slot_free(dev))
		return gdri_n_slots(dev) && gdri_blame_qp(dev)->sq ? GDRI_BLAME_POLL : gdri_blame_gone(dev);
	return ++dev->search.slot < GDRI_BLAME_SLOTS ? GDRI_BLAME_SLOT : gdri_blame_gone(dev);
}

GDR_DEVICE_COLD int gdri_blame_poll(struct gdri_dev *dev)
{
	GDRI_DEV_CONSTANT(dev);
	gdri_qp_mark_used(dev, gdri_blame_qp(dev));
	gdri_poll(dev, gdri_blame_qp(dev));
	return GDRI_BLAME_POST;
}

/* There is no room: again later, unless the queue has an error. */
GDR_DEVICE_COLD int gdri_blame_full(struct gdri_dev *dev)
{
	/* as in gdri_qp_test */
	if (gdri_ld_acquire_gpu_u32((const uint32_t *)&gdri_blame_qp(dev)->err) || !gdri_blame_hop(dev))
		return gdri_blame_gone(dev);
	return GDRI_BLAME_POLL;
}

GDRI_SLOW uint64_t gdri_blame_reserve(struct gdri_dev *dev)
{
	GDRI_DEV_CONSTANT(dev);
	return gdri_sq_reserve_polled(gdri_blame_qp(dev));
}

/* READ of the records into the slot, by the block `base`. */
GDRI_SLOW void gdri_blame_write(struct gdri_dev *dev, uint64_t base)
{
	struct gdri_qp *qp;

	GDRI_DEV_CONSTANT(dev);
	qp = gdri_blame_qp(dev);
	dev->search.target = base + 1;
	dev->search.round = 0;
	gdri_wqe_rdma(qp, base, GDRI_OP_READ, GDRI_CE_ALWAYS, offsetof(struct gdri_ctl, waits), qp->rkey_sync,
		      offsetof(struct gdri_ctl, blame) + (uint64_t)dev->search.slot * sizeof(dev->ctl->blame[0]),
		      dev->lkey, sizeof(dev->ctl->waits));
}

/* When there is room for it. */
GDR_DEVICE_COLD int gdri_blame_post(struct gdri_dev *dev)
{
	uint64_t base = gdri_blame_reserve(dev);

	GDRI_DEV_CONSTANT(dev);
	if (base == GDRI_NO_ROOM)
		return gdri_blame_full(dev);
	gdri_blame_write(dev, base);
	return gdri_sq_publish_later(dev, gdri_blame_qp(dev), dev->search.target - 1, 1, 0, GDRI_WINDOW)
		       ? gdri_blame_gone(dev) : GDRI_BLAME_AWAIT;
}

/* They are here; or the slot is lost for now. */
GDR_DEVICE_COLD int gdri_blame_await(struct gdri_dev *dev)
{
	int ret;

	GDRI_DEV_CONSTANT(dev);
	gdri_poll(dev, gdri_blame_qp(dev));
	ret = gdri_qp_test(gdri_blame_qp(dev), dev->search.target);
	if (ret)
		return ret < 0 ? gdri_blame_gone(dev) : GDRI_BLAME_LOOK;
	if (gdri_blame_hop(dev))
		return GDRI_BLAME_AWAIT;
	dev->blame_late[dev->search.slot] = dev->search.target;
	dev->blame_late_qp[dev->search.slot] = (uint32_t)(gdri_blame_qp(dev) - dev->qps);
	dev->blame_bad |= 1u << dev->search.slot;
	return gdri_blame_gone(dev);
}

/* What the records say. s->next: for whom the oldest of the waits waits, or because of whom one failed. */
GDR_DEVICE_COLD void gdri_blame_read(const struct gdri_wait *rec, struct gdri_search *s)
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
			s->op = gdri_ld_relaxed_sys_u32(&rec->op);
			peer = (int32_t)gdri_ld_relaxed_sys_u32((const uint32_t *)&rec->peer);
		}
	}
	s->sum = sum;
	s->waiting = waiting;
	s->next = waiting ? peer : culprit;
}

/* Where the records of s->pe are now. */
GDR_DEVICE const struct gdri_wait *gdri_blame_records(const struct gdri_dev *dev)
{
	const struct gdri_search *s = &dev->search;

	if (s->pe == dev->pe)
		return dev->ctl->waits;
	if (dev->peers[s->pe].base)
		return ((const struct gdri_ctl *)dev->peers[s->pe].base)->waits;
	return (const struct gdri_wait *)dev->ctl->blame[s->slot];
}

/* Looks again until a heartbeat moves or has rested long enough: that time begins with the first look, which may have
 * taken long to get. */
GDR_DEVICE_COLD int gdri_blame_look(struct gdri_dev *dev)
{
	struct gdri_search *s;

	GDRI_DEV_CONSTANT(dev);
	s = &dev->search;
	gdri_blame_read(gdri_blame_records(dev), s);
	if (!s->looks++) {
		s->until = gdri_blame_until(s, GDRI_BLAME_STILL_NS);
		s->first = s->sum;
	}
	if (s->waiting && s->sum == s->first) {
		if (gdri_blame_pause(dev, s->rec, 63 + s->looks, s->until))
			return GDRI_BLAME_FETCH;
		s->found = GDRI_FOUND_STILL;
	} else if (s->waiting) {
		s->found = GDRI_FOUND_WAITS;
	} else {
		s->found = s->failed && s->next >= 0 && s->next < dev->n_pes ? GDRI_FOUND_FAILED : GDRI_FOUND_IDLE;
	}
	return GDRI_BLAME_FOUND;
}

/* ---- the chain ---- */

GDR_DEVICE int gdri_blame_over(struct gdri_search *s, int status)
{
	s->status = status;
	return GDRI_BLAME_OVER;
}

/* A chain of waits that is a circle: from bit 1 on 1 + the PE that its last PE waits for, from bit 12 on in which call
 * (enum gdri_op), from bit 20 on how many PEs it has behind this one. Bit 0 is another's (gdri_error.reason). */
GDR_DEVICE uint32_t gdri_blame_circle(const struct gdri_search *s)
{
	return (uint32_t)(s->next + 1) << 1 | (s->op & 0xffu) << 12 | (uint32_t)s->hops << 20;
}

/* Nobody knows who should have come: the worst of all PEs, else what the chain led to. */
GDR_DEVICE int gdri_blame_scan(const struct gdri_dev *dev, struct gdri_search *s)
{
	s->pe += s->pe + 1 == dev->pe ? 2 : 1;
	s->looks = 0;
	if (s->pe < dev->n_pes && gdr_clock_ns() < s->deadline)
		return GDRI_BLAME_FETCH;
	if (s->gave >= 0 || s->idle >= 0) {
		s->end = s->gave >= 0 ? s->gave : s->idle;
		s->circle = 0;
	}
	return gdri_blame_over(s, -GDR_ETIMEOUT);
}

GDR_DEVICE int gdri_blame_scan_begin(const struct gdri_dev *dev, struct gdri_search *s)
{
	s->idle = s->next == s->pe ? s->pe : -1; /* who is idle need not be the reason why a PE does not tell itself */
	s->circle = s->idle < 0 && s->pe >= 0 && s->next >= 0 && s->next < dev->n_pes
			    ? gdri_blame_circle(s) : 0;
	s->hops = s->pe = s->gave = -1;
	return gdri_blame_scan(dev, s);
}

/* One of all PEs was looked at. */
GDR_DEVICE int gdri_blame_scanned(const struct gdri_dev *dev, struct gdri_search *s)
{
	if (s->found <= GDRI_FOUND_STILL) {
		s->end = s->pe;
		return gdri_blame_over(s, s->found == GDRI_FOUND_LOST ? -GDR_EPEERLOST : -GDR_ETIMEOUT);
	}
	if (s->found == GDRI_FOUND_FAILED && s->gave < 0 && s->next != dev->pe)
		s->gave = s->next;
	if (s->found == GDRI_FOUND_IDLE && s->idle < 0)
		s->idle = s->pe;
	return gdri_blame_scan(dev, s);
}

/* The chain leads to s->pe, which is the culprit as far as is known. */
GDR_DEVICE int gdri_blame_follow(const struct gdri_dev *dev, struct gdri_search *s)
{
	if (s->pe < 0)
		return gdri_blame_scan_begin(dev, s);
	s->hops++;
	s->end = s->pe;
	s->looks = 0;
	return gdr_clock_ns() > s->deadline ? gdri_blame_over(s, -GDR_ETIMEOUT) : GDRI_BLAME_FETCH;
}

/* One PE of the chain was looked at. */
GDR_DEVICE int gdri_blame_followed(const struct gdri_dev *dev, struct gdri_search *s)
{
	if (s->found == GDRI_FOUND_LOST)
		return gdri_blame_over(s, -GDR_EPEERLOST);
	if (s->found == GDRI_FOUND_STILL || s->found == GDRI_FOUND_IDLE)
		return gdri_blame_over(s, -GDR_ETIMEOUT);
	if (s->found == GDRI_FOUND_FAILED && (s->next == s->pe || s->next == dev->pe))
		return gdri_blame_over(s, -GDR_ETIMEOUT);
	/* it waits for whom it cannot name, or for itself, or in a circle: somebody else may be the reason */
	if (s->next < 0 || s->next >= dev->n_pes || s->next == s->pe || s->next == dev->pe || s->hops >= dev->n_pes)
		return gdri_blame_scan_begin(dev, s);
	s->pe = s->next;
	return gdri_blame_follow(dev, s);
}

GDRI_SLOW int gdri_blame_next(struct gdri_dev *dev)
{
	GDRI_DEV_CONSTANT(dev);
	return dev->search.hops < 0 ? gdri_blame_scanned(dev, &dev->search) : gdri_blame_followed(dev, &dev->search);
}

/* For a wait for pe (-1: unknown), whose record is rec. Ends with the status of the wait, and s->end, its culprit. */
GDRI_SLOW int gdri_blame_begin(struct gdri_dev *dev, int32_t pe, int32_t rec, uint64_t deadline)
{
	struct gdri_search *s = &dev->search;

	s->deadline = deadline;
	s->rec = rec;
	s->pe = s->end = pe;
	s->hops = 0;
	s->circle = 0;
	return gdri_blame_follow(dev, s);
}

/* Makes the step, and says which is next. */
GDR_DEVICE int gdri_blame_step(struct gdri_dev *dev, int step)
{
	switch (step) {
	case GDRI_BLAME_FETCH:
		return gdri_blame_fetch(dev);
	case GDRI_BLAME_SLOT:
		return gdri_blame_slot(dev);
	case GDRI_BLAME_POLL:
		return gdri_blame_poll(dev);
	case GDRI_BLAME_POST:
		return gdri_blame_post(dev);
	case GDRI_BLAME_AWAIT:
		return gdri_blame_await(dev);
	case GDRI_BLAME_LOOK:
		return gdri_blame_look(dev);
	default:
		return gdri_blame_next(dev);
	}
}

#endif
