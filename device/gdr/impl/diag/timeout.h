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
GDR_DEVICE uint64_t gdri_tell_notice_at(const struct gdri_dev *dev)
{
	return offsetof(struct gdri_ctl, notice) + (uint64_t)dev->pe * 8;
}

/* Tells everybody who is to blame. */
GDR_DEVICE_COLD void gdri_tell_all(struct gdri_dev *dev, int32_t culprit)
{
	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (int pe = 0; pe < dev->n_pes; pe++)
		if (pe != dev->pe && pe != culprit)
			gdri_tell_word(dev, pe, gdri_tell_notice_at(dev), (uint64_t)culprit + 1);
}

/* Whether what this PE told pe is there, or never will be. */
GDR_DEVICE_COLD int gdri_tell_arrived(struct gdri_dev *dev, int pe)
{
	struct gdri_qp *qp = gdri_qp_to(dev, pe, 0);

	if (!gdri_qp_is_used(dev, qp))
		return 1;
	gdri_poll(dev, qp);
	return gdri_qp_test(qp, gdri_ld_relaxed_gpu_u64(&qp->rsvd)) != 0;
}

/* Waits a little for the notices to arrive: this PE may be about to leave, and its queues go with it. */
GDR_DEVICE_COLD void gdri_tell_await(struct gdri_dev *dev, int32_t rec, int32_t culprit)
{
	uint64_t deadline = gdr_clock_ns() + GDRI_TELL_NS;
	uint32_t round = 0;
	int pe;

	GDRI_DEV_CONSTANT(dev);
	pe = gdri_n_slots(dev) ? 0 : gdri_k(dev, n_pes);
	GDRI_NOT_UNROLLED
	while (pe < gdri_k(dev, n_pes)) {
		if (pe == gdri_k(dev, pe) || pe == culprit || gdri_tell_arrived(dev, pe))
			pe++;
		else if (!gdri_blame_pause(dev, rec, round++, deadline))
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
	if (culprit < 0)
		return;
	gdri_tell_all(dev, culprit);
	gdri_tell_await(dev, w->rec, culprit);
}

/* What this PE gave up for has come after all: it takes back what it told, or whoever waits for
 * it later would be led past it. Not behind a collective of all PEs that was given up: no other one comes. */
GDR_DEVICE_COLD void gdri_tell_recovered(struct gdri_dev *dev)
{
	uint32_t failed = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed);

	GDRI_DEV_CONSTANT(dev);
	GDRI_BY_ABI(gdri_tell_recovered);
	/* alone: pairs with nothing */
	if (!failed || gdri_ld_relaxed_gpu_u32(&dev->broken) || !gdri_cas_u32((uint32_t *)&dev->failed, &failed, 0))
		return;
	/* pairs with the acquire of state by who looks */
	gdri_st_release_sys_u32(&dev->ctl->waits[0].state, GDRI_WAIT_IDLE);
	GDRI_NOT_UNROLLED
	for (int pe = 0; pe < dev->n_pes; pe++)
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

/* The condition does not hold at the look behind the reason either. The wait ends with the status w->found, because of
 * w->culprit: in w, or each step would keep them over those before. */
GDR_DEVICE_COLD int gdri_wait_fail(struct gdri_dev *dev, struct gdri_waiter *w)
{
	int stands = w->found;

	GDRI_DEV_CONSTANT(dev);
	if (w->culprit == GDRI_TOLD) {
		gdri_wait_leave(dev, w);
		return stands;
	}
	if (!w->error)
		w->error = gdri_error_take(dev, GDRI_ERROR_WAIT, w->found);
	/* before the notices, which wait to arrive */
	if (gdri_waits_together(w))
		stands = gdri_broken_set(dev, w->team, w->op, w->found, w->culprit);
	gdri_note_failure(dev, stands);
	if (w->found == -GDR_EPEERLOST)
		gdri_lost_found(dev, w->culprit);
	if (w->found != -GDR_EABORTED && w->found != -GDR_EPEERFAILED)
		gdri_wait_lost(dev, w, w->culprit);
	if (w->error)
		gdri_wait_record(dev, w, w->error);
	w->error = 0; /* it stands */
	gdri_wait_leave(dev, w);
	return stands;
}

/* ---- the limit ---- */

/* Whether the connection to pe broke: then nothing will come from there. */
GDR_DEVICE_COLD int gdri_timeout_queues(struct gdri_dev *dev, int pe)
{
	struct gdri_qp *qp = &dev->qps[(uint32_t)pe * dev->n_slots];
	uint32_t i, n = gdri_n_slots(dev);
	int err;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (i = 0; i < n; i++, qp++) {
		if (!gdri_qp_is_used(dev, qp))
			continue;
		gdri_poll(dev, qp);
		err = (int)gdri_ld_acquire_gpu_u32((const uint32_t *)&qp->err); /* as in gdri_qp_test */
		if (gdri_qp_lost_peer(err))
			return -GDR_EPEERLOST;
		if (err == -GDR_EFLUSHED)
			return err;
	}
	return 0;
}

/* One thread follows the chain at a time; the others take over its finding when it answers
 * their question. The wait's error record is taken before: what fails in the search stands
 * behind it, and is not what the user is told first. */
GDR_DEVICE_COLD void gdri_blame_search(struct gdri_dev *dev, struct gdri_waiter *w, uint64_t deadline)
{
	int step;

	GDRI_DEV_CONSTANT(dev);
	if (!w->error)
		w->error = gdri_error_take(dev, GDRI_ERROR_WAIT, -GDR_ETIMEOUT);
	dev->blame_from = w->peer;
	step = gdri_blame_begin(dev, w->peer, w->rec, deadline);
	GDRI_NOT_UNROLLED
	while (step)
		step = gdri_blame_step(dev, step);
	dev->blame_status = dev->search.status;
	dev->blame_end = dev->search.end;
	dev->blame_time = gdr_clock_ns();
}

/* By who holds the lock. */
GDR_DEVICE_COLD void gdri_blame_take_over(struct gdri_dev *dev, struct gdri_waiter *w)
{
	w->culprit = dev->blame_end;
	w->found = dev->blame_status;
	/* the finding before the lock: pairs with the acquire by its next holder */
	gdri_st_release_gpu_u32(&dev->blame_lock, 0);
}

/* The search begins so long before the wait's limit. */
GDR_DEVICE uint64_t gdri_blame_time(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	return w->limit.still_ns + dev->timeout_ns -
	       gdri_min_u64(GDRI_BLAME_ALL_NS, dev->timeout_ns - dev->timeout_ns / 3);
}

GDR_DEVICE uint64_t gdri_blame_deadline(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	uint64_t end = gdri_blame_time(dev, w) + GDRI_BLAME_LEAST_NS, limit = w->limit.still_ns + dev->timeout_ns;

	return end < limit ? limit : end;
}

/* 1: the caller holds the lock, 2: and is to search. */
GDR_DEVICE int gdri_blame_try(struct gdri_dev *dev, const struct gdri_waiter *w)
{
	uint32_t unlocked = 0;

	if (!gdri_cas_u32(&dev->blame_lock, &unlocked, 1))
		return 0;
	/* Pairs with the release of the lock: the CAS continues its release sequence. A load, and
	 * not a fence, so that ThreadSanitizer sees it. */
	(void)gdri_ld_acquire_gpu_u32(&dev->blame_lock);
	return 1 + (dev->blame_time < gdri_blame_time(dev, w) || dev->blame_from != w->peer);
}

/* Nobody else can help. */
GDR_DEVICE int gdri_blame_alone(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	return w->peer == dev->pe || dev->n_pes == 1;
}

/* The culprit is looked for before the limit, so that the wait ends at the limit. 0: no, or not yet. */
GDR_DEVICE_COLD int gdri_blame_due(struct gdri_dev *dev, const struct gdri_waiter *w, uint64_t now)
{
	if (now < gdri_blame_time(dev, w) || w->found || gdri_blame_alone(dev, w))
		return 0;
	return gdri_blame_try(dev, w);
}

/* Whether the wait ends now. Without a finding another thread is at it, which may be what this one asks, too. */
GDR_DEVICE_COLD int gdri_wait_is_over(const struct gdri_dev *dev, const struct gdri_waiter *w, uint64_t now)
{
	if (now < w->limit.still_ns + dev->timeout_ns)
		return 0;
	return w->found || gdri_blame_alone(dev, w) || now >= gdri_blame_deadline(dev, w);
}

GDR_DEVICE int gdri_waits_on_memory(const struct gdri_waiter *w)
{
	return w->op == GDRI_WAIT_UNTIL || w->op == GDRI_SIGNAL_WAIT || w->op == GDRI_BARRIER ||
	       w->op == GDRI_SYNC || w->op == GDRI_LOCK || w->op >= GDRI_MEET;
}

/* Whether the launcher reported pe dead. Alone: pairs with nothing; what is not seen yet the next look sees. */
GDR_DEVICE int gdri_timeout_is_lost(const struct gdri_dev *dev, int pe)
{
	return pe >= 0 && gdri_ld_relaxed_sys_u32(&dev->peers[pe].lost);
}

/* A PE of the collective that is lost; -1: none. */
GDR_DEVICE_COLD int gdri_timeout_lost_of(const struct gdri_dev *dev, int team, int first)
{
	int pe;

	GDRI_NOT_UNROLLED
	for (int i = 0; team >= 0 && i < dev->teams[team].n; i++) {
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

/* What failed elsewhere and ends this wait: a status, with w->culprit; 0: nothing. A wait for a queue sees that queue's
 * error itself, and returns it. */
GDR_DEVICE_COLD int gdri_timeout_failed(struct gdri_dev *dev, struct gdri_waiter *w)
{
	struct gdri_fault fault;
	int32_t culprit;
	int status;

	GDRI_DEV_CONSTANT(dev);
	if (!gdri_waits_on_memory(w))
		return 0;
	/* What a PE waits for may be what failed, or come behind it. */
	if (gdri_fault_heard(dev, &fault)) {
		w->culprit = fault.pe;
		return -GDR_EPEERFAILED;
	}
	if (w->peer < 0 || w->peer == dev->pe)
		return 0;
	status = gdri_timeout_queues(dev, w->peer);
	if (!status)
		return 0;
	culprit = gdri_blame_notice(dev, w->peer);
	w->culprit = culprit < 0 ? w->peer : culprit;
	return status;
}

/* The culprit is looked for when its time has come. A status with which the wait ends now, because of w->culprit. */
GDR_DEVICE_COLD int gdri_wait_blame(struct gdri_dev *dev, struct gdri_waiter *w)
{
	int turn;

	GDRI_DEV_CONSTANT(dev);
	turn = gdri_blame_due(dev, w, gdr_clock_ns());
	if (turn == 2)
		gdri_blame_search(dev, w, gdri_blame_deadline(dev, w));
	if (turn)
		gdri_blame_take_over(dev, w);
	if (!gdri_wait_is_over(dev, w, gdr_clock_ns()))
		return 0;
	if (!w->found)
		w->culprit = w->peer;
	return w->found ? w->found : -GDR_ETIMEOUT;
}

/* A look at all else than the condition: one step behind the other, so that their frames do not stand on each other.
 * 0; < 0: the status with which the wait fails, because of w->culprit. */
GDRI_NOINLINE int gdri_wait_check(struct gdri_dev *dev, struct gdri_waiter *w)
{
	int32_t lost;
	int status;

	GDRI_DEV_CONSTANT(dev);
	if (w->rec < 0)
		gdri_wait_publish(dev, w);
	lost = gdri_timeout_lost(dev, w);
	if (lost >= 0) {
		w->culprit = lost;
		return -GDR_EPEERLOST;
	}
	status = gdri_waits_together(w) ? gdri_broken(dev, w->team, w->op) : 0;
	if (status) {
		w->culprit = GDRI_TOLD;
		return status;
	}
	status = gdri_timeout_failed(dev, w);
	return status ? status : gdri_wait_blame(dev, w);
}

GDRI_NOINLINE int gdri_wait_step(struct gdri_dev *dev, struct gdri_waiter *w)
{
	uint64_t now;
	int due;

	if (gdri_unlikely(w->ends))
		return gdri_wait_fail(dev, w);
	gdri_wait_heartbeat(dev, w->rec);
	due = gdri_limit_pause(dev, &w->limit, w->round++, &now);
	if (gdri_likely(!due))
		return 0;
	if (due < 0)
		w->culprit = w->peer;
	else
		due = gdri_wait_check(dev, w);
	if (!due)
		return 0;
	w->found = due;
	w->ends = 1;
	/* the reason before the caller's look: pairs with the release fence of who tells it (gdri_tell_word) */
	gdri_fence_acquire_sys();
	return 0;
}

#endif
