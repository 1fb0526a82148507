/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens in a wait beside the look at its condition: it is published, it hears of
 * errors and of PEs that are lost, and before its limit it finds out who is to blame
 * (blame.h). Everything here is bounded and off the fast path. */
#ifndef GDRI_TIMEOUT_H
#define GDRI_TIMEOUT_H

#include <gdr/impl/diag/broken.h>

/* The search for the culprit begins so long before the limit, or two thirds of the limit if that
 * is less, ... */
#define GDRI_BLAME_ALL_NS 4000000000ull
#define GDRI_BLAME_LEAST_NS 2000000000ull /* ... and has at least this long */
#define GDRI_TELL_NS 500000000ull /* for all notices to arrive */

/* ---- notices ---- */

/* Of this PE's word in the others' control areas. */
GDR_DEVICE_COLD uint64_t gdri_tell_notice_at(const struct gdri_dev *dev)
{
	return offsetof(struct gdri_ctl, notice) + (uint64_t)dev->pe * 8;
}

/* Tells everybody who is to blame. Waits a little for the notices to arrive: this PE may be
 * about to leave, and its queues go with it. */
GDR_DEVICE_COLD void gdri_tell_all(struct gdri_dev *dev, const struct gdri_waiter *w,
				     int32_t culprit)
{
	uint64_t deadline = gdr_clock_ns() + GDRI_TELL_NS, off = gdri_tell_notice_at(dev);
	struct gdri_qp *qp;
	uint32_t round = 0;
	int pe;

	if (culprit < 0)
		return;
	for (pe = 0; pe < dev->n_pes; pe++)
		if (pe != dev->pe && pe != culprit)
			gdri_tell_word(dev, pe, off, (uint64_t)culprit + 1);
	for (pe = 0; pe < dev->n_pes && gdri_n_slots(dev); pe++) {
		qp = gdri_qp_to(dev, pe, 0);
		if (pe == dev->pe || pe == culprit || !gdri_qp_is_used(dev, qp))
			continue;
		while (gdri_poll(dev, qp),
		       !gdri_qp_test(qp, gdri_ld_relaxed_gpu_u64(&qp->rsvd)))
			if (!gdri_blame_pause(dev, w, round++, deadline))
				return;
	}
}

/* The first failure of this PE is the one that others hear of. */
GDR_DEVICE_COLD void gdri_wait_lost(struct gdri_dev *dev, const struct gdri_waiter *w,
				    int32_t culprit)
{
	uint32_t none = 0;

	/* chooses one thread; others hear of it through the record and the notices */
	if (!gdri_cas_u32((uint32_t *)&dev->failed, &none, (uint32_t)(culprit + 2)))
		return;
	gdri_st_relaxed_gpu_u32((uint32_t *)&dev->failed_for, (uint32_t)w->peer);
	gdri_wait_publish_failed(dev, w->op, w->limit.start_ns, w->addr, culprit);
	gdri_tell_all(dev, w, culprit);
}

/* What this PE gave up for has come after all: it takes back what it told, or whoever waits for
 * it later would be led past it. Not behind a collective of all PEs that was given up: no other one comes. */
GDR_DEVICE_COLD void gdri_tell_recovered(struct gdri_dev *dev)
{
	uint32_t failed = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed);
	int pe;

	GDRI_BY_ABI(gdri_tell_recovered);
	/* alone: pairs with nothing */
	if (!failed || gdri_ld_relaxed_gpu_u32(&dev->broken) || !gdri_cas_u32((uint32_t *)&dev->failed, &failed, 0))
		return;
	/* pairs with the acquire of state by who looks */
	gdri_st_release_sys_u32(&dev->ctl->waits[0].state, GDRI_WAIT_IDLE);
	for (pe = 0; pe < dev->n_pes; pe++)
		if (pe != dev->pe)
			gdri_tell_word(dev, pe, gdri_tell_notice_at(dev), 0);
}

/* ---- the end of a wait ---- */

GDR_DEVICE_COLD void gdri_wait_leave(struct gdri_dev *dev, struct gdri_waiter *w)
{
	if (w->rec >= 0)
		gdri_wait_clear(dev, w);
	if (w->error)
		gdri_error_void(dev, w->error);
	w->error = 0;
}

GDRI_NOINLINE void gdri_wait_over(struct gdri_dev *dev, struct gdri_waiter *w)
{
	const struct gdri_wait *rec = &dev->ctl->waits[0];

	gdri_wait_leave(dev, w);
	/* the wait of the record, again: whatever else succeeds does not say that the culprit goes on */
	if (gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed) &&
	    gdri_ld_relaxed_sys_u32(&rec->op) == w->op &&
	    gdri_ld_relaxed_sys_u64(&rec->addr) == w->addr &&
	    (int32_t)gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed_for) == w->peer)
		gdri_tell_recovered(dev);
}

/* The condition holds. */
GDR_DEVICE void gdri_wait_end(struct gdri_dev *dev, struct gdri_waiter *w)
{
	if (w->rec >= 0 || w->error ||
	    gdri_unlikely(gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed)))
		gdri_wait_over(dev, w);
}

GDR_DEVICE_COLD int gdri_wait_fail(struct gdri_dev *dev, struct gdri_waiter *w, int status,
				   int32_t culprit)
{
	struct gdri_error *e = w->error;
	int stands = status;

	if (!e)
		e = gdri_error_take(dev, GDRI_ERROR_WAIT, status);
	w->error = 0;
	if (gdri_waits_together(w)) /* before the notices, which wait to arrive */
		stands = gdri_broken_set(dev, w->team, w->op, status, culprit);
	gdri_note_failure(dev, stands);
	if (status == -GDR_EPEERLOST)
		gdri_lost_found(dev, culprit);
	if (status != -GDR_EABORTED && status != -GDR_EPEERFAILED)
		gdri_wait_lost(dev, w, culprit);
	gdri_wait_leave(dev, w);
	gdri_wait_record(dev, w, e, status, culprit);
	return stands;
}

/* ---- the limit ---- */

/* Whether the connection to pe broke: then nothing will come from there. */
GDR_DEVICE_COLD int gdri_timeout_queues(struct gdri_dev *dev, int pe)
{
	struct gdri_qp *qp = &dev->qps[(uint32_t)pe * dev->n_slots];
	uint32_t i, n = gdri_n_slots(dev);
	int err;

	for (i = 0; i < n; i++, qp++) {
		if (!gdri_qp_is_used(dev, qp))
			continue;
		gdri_poll(dev, qp);
		err = (int)gdri_ld_acquire_gpu_u32((const uint32_t *)&qp->err); /* as in gdri_qp_test */
		if (gdri_qp_lost_peer(qp, err))
			return -GDR_EPEERLOST;
		if (err == -GDR_EFLUSHED)
			return err;
	}
	return 0;
}

/* One thread follows the chain at a time; the others take over its finding when it answers
 * their question. The wait's error record is taken before: what fails in the search stands
 * behind it, and is not what the user is told first. */
GDR_DEVICE_COLD void gdri_blame_search(struct gdri_dev *dev, struct gdri_waiter *w, uint64_t begin,
				       uint64_t end)
{
	uint32_t unlocked = 0;
	int32_t culprit = w->peer;

	if (!gdri_cas_u32(&dev->blame_lock, &unlocked, 1))
		return;
	/* Pairs with the release of the lock: the CAS continues its release sequence. A load, and
	 * not a fence, so that ThreadSanitizer sees it. */
	(void)gdri_ld_acquire_gpu_u32(&dev->blame_lock);
	if (dev->blame_time < begin || dev->blame_from != w->peer) {
		if (!w->error)
			w->error = gdri_error_take(dev, GDRI_ERROR_WAIT, -GDR_ETIMEOUT);
		dev->blame_status = w->peer < 0 ? gdri_blame_scan(dev, w, end, &culprit)
						: gdri_blame_follow(dev, w, end, &culprit);
		dev->blame_from = w->peer;
		dev->blame_end = culprit;
		dev->blame_time = gdr_clock_ns();
	}
	w->culprit = dev->blame_end;
	w->found = dev->blame_status;
	/* the look at the peer's records, too, found no room in a queue that works: says nothing of the peer */
	if (w->op == GDRI_QUEUE_FULL && w->found == -GDR_EPEERLOST && w->culprit == w->peer &&
	    !gdri_timeout_queues(dev, w->peer))
		w->found = -GDR_ETIMEOUT;
	/* the finding before the lock: pairs with the acquire by its next holder */
	gdri_st_release_gpu_u32(&dev->blame_lock, 0);
}

/* The culprit is looked for before the limit, so that the wait ends at the limit. */
GDR_DEVICE_COLD int gdri_wait_limit(struct gdri_dev *dev, struct gdri_waiter *w, uint64_t now)
{
	uint64_t limit = w->limit.still_ns + dev->timeout_ns, begin, end;
	int alone = w->peer == dev->pe || dev->n_pes == 1;

	begin = limit - gdri_min_u64(GDRI_BLAME_ALL_NS, dev->timeout_ns - dev->timeout_ns / 3);
	if (now < begin)
		return 0;
	end = begin + GDRI_BLAME_LEAST_NS;
	if (end < limit)
		end = limit;
	if (!alone && !w->found) {
		gdri_blame_search(dev, w, begin, end);
		now = gdr_clock_ns();
	}
	/* without a finding another thread is at it, which may be what this one asks, too */
	if (now < limit || (!alone && !w->found && now < end))
		return 0;
	return w->found ? gdri_wait_fail(dev, w, w->found, w->culprit)
			: gdri_wait_fail(dev, w, -GDR_ETIMEOUT, w->peer);
}

GDR_DEVICE_COLD int gdri_waits_on_memory(const struct gdri_waiter *w)
{
	return w->op == GDRI_WAIT_UNTIL || w->op == GDRI_SIGNAL_WAIT || w->op == GDRI_BARRIER ||
	       w->op == GDRI_SYNC || w->op == GDRI_LOCK || w->op >= GDRI_MEET;
}

/* Whether the launcher reported pe dead. Alone: pairs with nothing; what is not seen yet the next look sees. */
GDR_DEVICE_COLD int gdri_timeout_is_lost(const struct gdri_dev *dev, int pe)
{
	return pe >= 0 && gdri_ld_relaxed_sys_u32(&dev->peers[pe].lost);
}

/* A PE of the collective that is lost; -1: none. */
GDR_DEVICE_COLD int gdri_timeout_lost_of(const struct gdri_dev *dev, int team, int first)
{
	int i, pe;

	for (i = 0; team >= 0 && i < dev->teams[team].n; i++) {
		pe = gdri_team_pe(&dev->teams[team], i);
		if (gdri_timeout_is_lost(dev, pe))
			return pe;
	}
	return team < 0 ? first : -1;
}

/* A PE that the launcher reported dead and that this wait needs: the one waited for, anybody where that is unknown, the
 * one because of which the one waited for gave up what this wait needs of its threads, and all in a collective; -1:
 * none. A wait for a queue needs the other side's NIC alone. */
GDR_DEVICE_COLD int gdri_timeout_lost(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	int first = (int)gdri_ld_relaxed_sys_u32((const uint32_t *)&dev->lost) - 1, notice;

	if (first < 0 || w->peer == dev->pe)
		return -1;
	if (w->peer < 0)
		return first;
	if (gdri_timeout_is_lost(dev, w->peer))
		return w->peer;
	if (!gdri_waits_on_memory(w))
		return -1;
	notice = gdri_blame_notice(dev, w->peer);
	if (gdri_timeout_is_lost(dev, notice))
		return notice;
	return gdri_waits_together(w) ? gdri_timeout_lost_of(dev, w->team, first) : -1;
}

GDR_DEVICE_COLD int gdri_wait_check(struct gdri_dev *dev, struct gdri_waiter *w, uint64_t now)
{
	struct gdri_fault fault;
	int32_t culprit = w->peer;
	int status, lost;

	if (w->rec < 0)
		gdri_wait_publish(dev, w);
	lost = gdri_timeout_lost(dev, w);
	if (lost >= 0)
		return gdri_wait_fail(dev, w, -GDR_EPEERLOST, lost);
	status = gdri_waits_together(w) ? gdri_broken(dev, w->team, w->op) : 0;
	if (status) {
		gdri_wait_leave(dev, w);
		return status;
	}
	/* What a PE waits for may be what failed, or come behind it. */
	if (gdri_waits_on_memory(w) && gdri_fault_heard(dev, &fault))
		return gdri_wait_fail(dev, w, -GDR_EPEERFAILED, fault.pe);
	/* A wait for a queue sees that queue's error itself, and returns it. */
	if (gdri_waits_on_memory(w) && w->peer >= 0 && w->peer != dev->pe) {
		status = gdri_timeout_queues(dev, w->peer);
		if (status) {
			lost = gdri_blame_notice(dev, w->peer);
			if (lost >= 0)
				culprit = lost;
			return gdri_wait_fail(dev, w, status, culprit);
		}
	}
	return gdri_wait_limit(dev, w, now);
}

GDRI_NOINLINE int gdri_wait_step(struct gdri_dev *dev, struct gdri_waiter *w)
{
	uint64_t now;
	int due;

	gdri_wait_heartbeat(dev, w);
	due = gdri_limit_pause(dev, &w->limit, w->round++, &now);
	if (gdri_likely(!due))
		return 0;
	return due < 0 ? gdri_wait_fail(dev, w, due, w->peer) : gdri_wait_check(dev, w, now);
}

#endif
