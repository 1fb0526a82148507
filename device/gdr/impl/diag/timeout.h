/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens in a wait beside the look at its condition: it is published, it hears of
 * errors and of PEs that are lost, and before its limit it finds out who is to blame
 * (blame.h). Everything here is bounded and off the fast path. */
#ifndef GDRI_TIMEOUT_H
#define GDRI_TIMEOUT_H

#include <gdr/impl/diag/broken.h>

/* The search for the culprit begins so long before the limit, or two thirds of the limit if that
 * is less. */
#define GDRI_BLAME_ALL_NS 4000000000ull
#define GDRI_TELL_NS 500000000ull /* for all notices to arrive */
#define GDRI_TELL_ROUND 128u /* a pause in which it gives the core to whoever carries them */

/* ---- notices ---- */

/* Whether what this PE told pe is there, or never will be. */
GDR_DEVICE int gdri_tell_arrived(struct gdri_dev *dev, int pe)
{
	if (!gdri_qp_is_used(dev, gdri_qp_to(dev, pe, 0)))
		return 1;
	gdri_poll(dev, gdri_qp_to(dev, pe, 0));
	return gdri_qp_test(gdri_qp_to(dev, pe, 0), gdri_ld_relaxed_gpu_u64(&gdri_qp_to(dev, pe, 0)->rsvd)) != 0;
}

/* Other PEs hear of this PE's first failure alone. 1: the caller's wait is the first to fail. */
GDR_DEVICE_COLD int gdri_wait_first(struct gdri_dev *dev, const struct gdri_waiter *w, int32_t culprit, uint32_t said)
{
	uint32_t none = 0;

	/* chooses one thread; others hear of it through the record and the notices */
	if (!gdri_cas_u32((uint32_t *)&dev->failed, &none, (uint32_t)(culprit + 2)))
		return 0;
	gdri_st_relaxed_gpu_u32((uint32_t *)&dev->failed_for, (uint32_t)w->peer);
	gdri_wait_publish_failed(dev, w->op, w->limit.start_ns, w->addr, culprit, said);
	return culprit >= 0;
}

/* What this PE gave up for has come after all. 1: it is to take back what it told, or whoever waits for it later would
 * be led past it. Not behind a collective of all PEs that was given up: no other one comes. */
GDR_DEVICE_COLD int gdri_tell_take_back(struct gdri_dev *dev)
{
	uint32_t failed = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed);

	/* alone: pairs with nothing */
	if (!failed || gdri_ld_relaxed_gpu_u32(&dev->broken) || !gdri_cas_u32((uint32_t *)&dev->failed, &failed, 0))
		return 0;
	/* pairs with the acquire of state by who looks */
	gdri_st_release_sys_u32(&dev->ctl->waits[0].state, GDRI_WAIT_IDLE);
	return 1;
}

GDR_DEVICE_COLD void gdri_tell_recovered(struct gdri_dev *dev)
{
	GDRI_BY_ABI(gdri_tell_recovered);
	if (gdri_tell_take_back(dev))
		gdri_tell_each(dev, GDRI_TELL_NOTICE);
}

/* ---- the end of a wait ---- */

GDR_DEVICE_COLD void gdri_wait_leave(struct gdri_dev *dev, struct gdri_waiter *w)
{
	if (w->rec >= 0)
		gdri_wait_clear(dev, w);
	if (w->error)
		gdri_error_void(dev, &dev->errors[w->error - 1]);
	w->error = 0;
}

/* The wait of the record of what failed, again: whatever else succeeds does not say that the culprit goes on. */
GDR_DEVICE int gdri_wait_again(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	const struct gdri_wait *rec = &dev->ctl->waits[0];

	return gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed) &&
	       gdri_ld_relaxed_sys_u32(&rec->op) == w->op && gdri_ld_relaxed_sys_u64(&rec->addr) == w->addr &&
	       (int32_t)gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed_for) == w->peer;
}

GDRI_NOINLINE void gdri_wait_over(struct gdri_dev *dev, struct gdri_waiter *w)
{
	GDRI_DEV_CONSTANT(dev);
	gdri_wait_leave(dev, w);
	if (gdri_wait_again(dev, w) && gdri_tell_take_back(dev))
		gdri_tell_each(dev, GDRI_TELL_NOTICE);
}

/* The condition holds. */
GDR_DEVICE void gdri_wait_end(struct gdri_dev *dev, struct gdri_waiter *w)
{
	if (w->rec >= 0 || w->error ||
	    gdri_unlikely(gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed)))
		gdri_wait_over(dev, w);
}

/* The status of a wait that has failed. */
GDRI_SLOW int gdri_wait_stands(struct gdri_dev *dev, const struct gdri_waiter *w)
{
	return gdri_waits_together(w) ? gdri_broken_first_status(dev, w->team) : w->found;
}

/* ---- the limit ---- */

/* What a wait does beside looking at its condition goes by steps, which share the waiter and nothing else: none stands
 * on another one's frame. Those of a search are first. */
enum gdri_wait_step {
	GDRI_STEP_ON = GDRI_BLAME_FOUND + 1, /* none: back to the condition */
	GDRI_STEP_CHECK,
	GDRI_STEP_HEAR,
	GDRI_STEP_QUEUES,
	GDRI_STEP_BLAME,
	GDRI_STEP_TAKE_OVER,
	GDRI_STEP_LIMIT,
	GDRI_STEP_FAIL, /* the wait ends with w->found, because of w->culprit */
	GDRI_STEP_TELL, /* who takes part in the collective */
	GDRI_STEP_NOTE,
	GDRI_STEP_NOTICE, /* all */
	GDRI_STEP_AWAIT,
	GDRI_STEP_RECORD,
	GDRI_STEP_LEFT, /* it has ended, with the status gdri_wait_stands() */
};

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

/* One thread follows the chain at a time; the others take over its finding when it answers
 * their question. The wait's error record is taken before: what fails in the search stands
 * behind it, and is not what the user is told first. */
GDR_DEVICE int gdri_blame_search_begin(struct gdri_dev *dev, struct gdri_waiter *w)
{
	gdri_wait_take_record(dev, w, -GDR_ETIMEOUT);
	dev->blame_from = w->peer;
	return gdri_blame_begin(dev, w->peer, w->rec, gdri_blame_deadline(dev, w));
}

GDR_DEVICE_COLD int gdri_blame_search_end(struct gdri_dev *dev, const struct gdri_waiter *w)
{
	if (w->error) /* of those who share the finding one says it */
		dev->errors[w->error - 1].reason = dev->search.circle;
	dev->blame_status = dev->search.status;
	dev->blame_end = dev->search.end;
	dev->blame_time = gdr_clock_ns();
	return GDRI_STEP_TAKE_OVER;
}

/* By who holds the lock. */
GDR_DEVICE_COLD int gdri_blame_take_over(struct gdri_dev *dev, struct gdri_waiter *w)
{
	w->culprit = (int16_t)dev->blame_end;
	w->found = (int8_t)dev->blame_status;
	/* the finding before the lock: pairs with the acquire by its next holder */
	gdri_st_release_gpu_u32(&dev->blame_lock, 0);
	return GDRI_STEP_LIMIT;
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

/* Nobody else can help. What a PE tells itself may be behind another wait of its threads. */
GDR_DEVICE int gdri_blame_alone(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	return (w->peer == dev->pe && w->op != GDRI_SIGNAL_WAIT) || dev->n_pes == 1;
}

/* The culprit is looked for before the limit, so that the wait ends at the limit. 0: no, or not yet. */
GDR_DEVICE_COLD int gdri_blame_due(struct gdri_dev *dev, const struct gdri_waiter *w, uint64_t now)
{
	if (now < gdri_blame_time(dev, w) || w->found || gdri_blame_alone(dev, w))
		return 0;
	return gdri_blame_try(dev, w);
}

/* The status with which the wait ends now, or 0. Without a finding another thread walks, perhaps with this thread's
 * question. */
GDR_DEVICE_COLD int gdri_wait_is_over(const struct gdri_dev *dev, const struct gdri_waiter *w, uint64_t now)
{
	if (now < w->limit.still_ns + dev->timeout_ns)
		return 0;
	if (w->found)
		return w->found;
	return gdri_blame_alone(dev, w) || now >= gdri_blame_deadline(dev, w) ? -GDR_ETIMEOUT : 0;
}

GDR_DEVICE int gdri_waits_on_memory(const struct gdri_waiter *w)
{
	return w->op == GDRI_WAIT_UNTIL || w->op == GDRI_SIGNAL_WAIT || w->op == GDRI_BARRIER ||
	       w->op == GDRI_SYNC || w->op == GDRI_LOCK || w->op >= GDRI_HOST_CALL;
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

/* A PE that the launcher reported dead and that this wait needs: the one waited for, anybody where that is unknown, in
 * a collective any member, in other waits the one because of which the one waited for gave up what this wait needs of
 * its threads; -1: none. A wait for a queue needs the other side's NIC alone. Who gives up a collective says so to its
 * members (broken.h); a notice is of anything else, behind which its PE may come to the collective. */
GDR_DEVICE_COLD int gdri_timeout_lost(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	int first = (int)gdri_ld_relaxed_sys_u32((const uint32_t *)&dev->lost) - 1, notice;

	if (first < 0 || w->peer == dev->pe)
		return -1;
	if (w->peer < 0)
		return first;
	if (gdri_timeout_is_lost(dev, w->peer))
		return w->peer;
	if (gdri_waits_together(w))
		return gdri_timeout_lost_of(dev, w->team, first);
	if (!gdri_waits_on_memory(w) || w->op >= GDRI_HOST_CALL) /* for a queue, also in a collective */
		return -1;
	notice = gdri_blame_notice(dev, w->peer);
	return gdri_timeout_is_lost(dev, notice) ? notice : -1;
}

/* Whether the PE waited for has called gdr_finalize. Host threads meet in that call, and look themselves. */
GDR_DEVICE_COLD int gdri_timeout_finalizes(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	return gdri_waits_on_memory(w) && w->op != GDRI_HOST_CALL ? gdri_has_left(dev, w->peer) : 0;
}

/* ---- steps ---- */

/* With the next step, if the condition does not hold at the look behind the reason either. */
GDR_DEVICE int gdri_wait_ends(struct gdri_waiter *w, int status, int32_t culprit)
{
	w->found = (int8_t)status;
	w->culprit = (int16_t)culprit;
	w->ends = 1;
	/* the reason before the caller's look: pairs with the release fence of who tells it (gdri_tell_mapped), or with
	 * the release of peers[].finalizes (runtime/diag/absent.c) */
	gdri_fence_acquire_sys();
	return GDRI_STEP_ON;
}

/* All else than the condition, what other PEs told, the queues and who is to blame. */
GDR_DEVICE_COLD int gdri_wait_check(struct gdri_dev *dev, struct gdri_waiter *w)
{
	int32_t lost;

	GDRI_DEV_CONSTANT(dev);
	w->queue = 0;
	if (w->rec < 0)
		gdri_wait_publish(dev, w);
	lost = gdri_timeout_lost(dev, w);
	return lost >= 0 ? gdri_wait_ends(w, -GDR_EPEERLOST, lost) : GDRI_STEP_HEAR;
}

/* The PE waited for has called gdr_finalize. One that had given up because of another PE told that before: the wait
 * ends as the chain of what is told does, and nobody is asked. Of what only flushed a queue nobody knows the cause. */
GDR_DEVICE_COLD int gdri_wait_left_alone(const struct gdri_dev *dev, struct gdri_waiter *w)
{
	int status = -GDR_EPEERLOST, hops = 0, told = 0, step;
	int32_t pe = w->peer, next;
	uint64_t word;

	GDRI_NOT_UNROLLED
	while (hops++ < dev->n_pes && !told && gdri_has_left(dev, pe) != 1) {
		next = gdri_blame_told(dev, pe, &word);
		if (next < 0 || next == pe || next == dev->pe)
			break;
		pe = next;
		told = gdri_fault_left(word);
		status = gdri_fault_status(word) == -GDR_EFLUSHED ? -GDR_EPEERFAILED : gdri_fault_status(word);
	}
	if (!status || gdri_timeout_is_lost(dev, pe) || gdri_has_left(dev, pe) == 1)
		status = -GDR_EPEERLOST;
	step = gdri_wait_ends(w, status, pe);
	w->ends = (int8_t)(1 + told);
	return step;
}

GDR_DEVICE_COLD int gdri_wait_hear(struct gdri_dev *dev, struct gdri_waiter *w)
{
	int gone = gdri_timeout_finalizes(dev, w), status;
	int32_t lost;

	GDRI_DEV_CONSTANT(dev);
	if (gone) /* before the looks below at what it told: pairs with the release in gdri_absent_look */
		gdri_fence_acquire_sys();
	status = gdri_waits_together(w) ? gdri_broken(dev, w->team, w->op) : 0;
	if (status)
		return gdri_wait_ends(w, status, GDRI_TOLD);
	/* What a PE waits for may be what failed, or come behind it. */
	lost = gdri_waits_on_memory(w) ? gdri_fault_from(dev) : -1;
	if (lost >= 0)
		return gdri_wait_ends(w, -GDR_EPEERFAILED, lost);
	return gone ? gdri_wait_left_alone(dev, w) : GDRI_STEP_QUEUES;
}

/* The next queue that was ever used to who is waited for; NULL: there are no more. A wait for a queue sees that queue's
 * error itself, and returns it. */
GDR_DEVICE_COLD struct gdri_qp *gdri_wait_queue(const struct gdri_dev *dev, struct gdri_waiter *w)
{
	uint32_t n = gdri_n_slots(dev);
	struct gdri_qp *qp;

	GDRI_DEV_CONSTANT(dev);
	if (!gdri_waits_on_memory(w) || w->peer < 0 || w->peer == dev->pe)
		return 0;
	GDRI_NOT_UNROLLED
	while (w->queue < n) {
		qp = &dev->qps[(uint32_t)w->peer * dev->n_slots + w->queue++];
		if (gdri_qp_is_used(dev, qp))
			return qp;
	}
	return 0;
}

/* Whether its connection broke, and how: then nothing will come from there. */
GDR_DEVICE int gdri_qp_broke(const struct gdri_qp *qp)
{
	int err = (int)gdri_ld_acquire_gpu_u32((const uint32_t *)&qp->err); /* as in gdri_qp_test */

	return gdri_qp_lost_peer(err) ? -GDR_EPEERLOST : err == -GDR_EFLUSHED ? err : 0;
}

GDR_DEVICE_COLD int gdri_wait_queue_broke(const struct gdri_dev *dev, struct gdri_waiter *w, const struct gdri_qp *qp)
{
	int status = gdri_qp_broke(qp);
	int32_t culprit;

	GDRI_DEV_CONSTANT(dev);
	if (!status)
		return GDRI_STEP_QUEUES;
	culprit = gdri_blame_notice(dev, w->peer);
	return gdri_wait_ends(w, status, culprit < 0 ? w->peer : culprit);
}

/* One queue a step. */
GDR_DEVICE_COLD int gdri_wait_check_queue(struct gdri_dev *dev, struct gdri_waiter *w)
{
	struct gdri_qp *qp = gdri_wait_queue(dev, w);

	GDRI_DEV_CONSTANT(dev);
	if (!qp)
		return GDRI_STEP_BLAME;
	gdri_poll(dev, qp);
	return gdri_wait_queue_broke(dev, w, qp);
}

/* The culprit is looked for when its time has come. */
GDR_DEVICE_COLD int gdri_wait_blame(struct gdri_dev *dev, struct gdri_waiter *w)
{
	uint64_t now = gdr_clock_ns();
	int turn = gdri_limit_stopped(&w->limit, now) ? 0 : gdri_blame_due(dev, w, now);

	GDRI_DEV_CONSTANT(dev);
	if (turn == 2)
		return gdri_blame_search_begin(dev, w);
	return turn ? GDRI_STEP_TAKE_OVER : GDRI_STEP_LIMIT;
}

GDR_DEVICE_COLD int gdri_wait_limit(struct gdri_dev *dev, struct gdri_waiter *w)
{
	uint64_t now = gdr_clock_ns();
	/* One that was stopped since the pause: the next pause takes that into account. */
	int status = gdri_limit_stopped(&w->limit, now) ? 0 : gdri_wait_is_over(dev, w, now);

	return status ? gdri_wait_ends(w, status, w->found ? w->culprit : w->peer) : GDRI_STEP_ON;
}

/* The PE without which the wait ends is not lost: it has called gdr_finalize. */
GDR_DEVICE_COLD int gdri_wait_culprit_left(const struct gdri_dev *dev, const struct gdri_waiter *w)
{
	return w->found == -GDR_EPEERLOST && (w->ends == 2 || gdri_has_left(dev, w->culprit));
}

/* A collective is told before the notices, which wait to arrive. */
GDR_DEVICE_COLD int gdri_wait_fail(struct gdri_dev *dev, struct gdri_waiter *w)
{
	GDRI_DEV_CONSTANT(dev);
	if (w->culprit == GDRI_TOLD) {
		gdri_wait_leave(dev, w);
		return GDRI_STEP_LEFT;
	}
	gdri_wait_take_record(dev, w, w->found);
	w->round = 0;
	if (!gdri_waits_together(w) ||
	    !gdri_broken_mark(dev, w->team, w->op, w->found, w->culprit, gdri_wait_culprit_left(dev, w)))
		return GDRI_STEP_NOTE;
	return GDRI_STEP_TELL;
}

GDR_DEVICE_COLD int gdri_wait_note(struct gdri_dev *dev, struct gdri_waiter *w)
{
	int left = gdri_wait_culprit_left(dev, w);

	GDRI_DEV_CONSTANT(dev);
	gdri_note_failure(dev, gdri_wait_stands(dev, w));
	if (w->found == -GDR_EPEERLOST && !left)
		gdri_lost_found(dev, w->culprit);
	if (w->found == -GDR_EABORTED || w->found == -GDR_EPEERFAILED ||
	    !gdri_wait_first(dev, w, w->culprit, (uint32_t)-w->found | (left ? GDRI_WAIT_SAID_LEFT : 0)))
		return GDRI_STEP_RECORD;
	return GDRI_STEP_NOTICE;
}

/* Waits for the notices to arrive, until next_ns: this PE may be about to leave, and its queues go with it. w->round:
 * the PE whose turn it is. */
GDR_DEVICE_COLD int gdri_wait_await(struct gdri_dev *dev, struct gdri_waiter *w)
{
	GDRI_DEV_CONSTANT(dev);
	if (!gdri_n_slots(dev) || w->round >= (uint32_t)gdri_k(dev, n_pes))
		return GDRI_STEP_RECORD;
	if ((int)w->round == gdri_k(dev, pe) || (int)w->round == w->culprit || gdri_tell_arrived(dev, (int)w->round))
		w->round++;
	else if (!gdri_blame_pause(dev, w->rec, GDRI_TELL_ROUND, w->limit.next_ns))
		return GDRI_STEP_RECORD;
	return GDRI_STEP_AWAIT;
}

/* Once one was told: on with the next one, or with the next step. */
GDR_DEVICE_COLD int gdri_wait_told(struct gdri_dev *dev, struct gdri_waiter *w, int step)
{
	GDRI_DEV_CONSTANT(dev);
	w->round = gdri_tell_next(dev, step == GDRI_STEP_TELL ? w->team : GDRI_TELL_NOTICE, w->round);
	w->limit.next_ns = gdr_clock_ns() + GDRI_TELL_NS;
	return w->round ? step : step + 1;
}

/* One of those who take part, or of all. */
GDRI_FRAMELESS int gdri_wait_tell(struct gdri_dev *dev, struct gdri_waiter *w, int step)
{
	GDRI_DEV_CONSTANT(dev);
	gdri_tell_one(dev, step == GDRI_STEP_TELL ? w->team : GDRI_TELL_NOTICE, w->round);
	return gdri_wait_told(dev, w, step);
}

GDR_DEVICE_COLD int gdri_wait_close(struct gdri_dev *dev, struct gdri_waiter *w)
{
	GDRI_DEV_CONSTANT(dev);
	gdri_wait_record(dev, w);
	if (w->team != GDRI_WAITS_FOR_WORD)
		w->error = 0; /* it stands */
	if (w->rec >= 0)
		gdri_wait_clear(dev, w);
	return GDRI_STEP_LEFT;
}

/* Makes the step, and says which is next. */
GDR_DEVICE int gdri_wait_does(struct gdri_dev *dev, struct gdri_waiter *w, int step)
{
	switch (step) {
	case GDRI_BLAME_OVER:
		return gdri_blame_search_end(dev, w);
	case GDRI_STEP_CHECK:
		return gdri_wait_check(dev, w);
	case GDRI_STEP_HEAR:
		return gdri_wait_hear(dev, w);
	case GDRI_STEP_QUEUES:
		return gdri_wait_check_queue(dev, w);
	case GDRI_STEP_BLAME:
		return gdri_wait_blame(dev, w);
	case GDRI_STEP_TAKE_OVER:
		return gdri_blame_take_over(dev, w);
	case GDRI_STEP_LIMIT:
		return gdri_wait_limit(dev, w);
	case GDRI_STEP_FAIL:
		return gdri_wait_fail(dev, w);
	case GDRI_STEP_TELL:
	case GDRI_STEP_NOTICE:
		return gdri_wait_tell(dev, w, step);
	case GDRI_STEP_NOTE:
		return gdri_wait_note(dev, w);
	case GDRI_STEP_AWAIT:
		return gdri_wait_await(dev, w);
	case GDRI_STEP_RECORD:
		return gdri_wait_close(dev, w);
	default:
		return gdri_blame_step(dev, step);
	}
}

/* Pauses. The first step of a look, if one is due. */
GDRI_SLOW int gdri_wait_pause(struct gdri_dev *dev, struct gdri_waiter *w)
{
	uint64_t now;
	int due;

	GDRI_DEV_CONSTANT(dev);
	if (gdri_unlikely(w->ends))
		return GDRI_STEP_FAIL;
	gdri_wait_heartbeat(dev, w->rec);
	due = gdri_limit_pause(dev, &w->limit, w->round++, &now);
	if (gdri_likely(!due))
		return GDRI_STEP_ON;
	return due < 0 ? gdri_wait_ends(w, due, w->peer) : GDRI_STEP_CHECK;
}

GDRI_NOINLINE int gdri_wait_step(struct gdri_dev *dev, struct gdri_waiter *w)
{
	int step;

	GDRI_DEV_CONSTANT(dev);
	step = gdri_wait_pause(dev, w);
	GDRI_NOT_UNROLLED
	while (gdri_unlikely(step != GDRI_STEP_ON && step != GDRI_STEP_LEFT))
		step = gdri_wait_does(dev, w, step);
	return gdri_likely(step == GDRI_STEP_ON) ? 0 : gdri_wait_stands(dev, w);
}

/* A queue's error ends a wait that has not failed itself: others hear of it, if it is the first. */
GDR_DEVICE_COLD void gdri_wait_lost(struct gdri_dev *dev, struct gdri_waiter *w, int status)
{
	int step = GDRI_STEP_NOTICE;

	GDRI_DEV_CONSTANT(dev);
	w->round = 0;
	w->culprit = w->peer;
	if (!gdri_wait_first(dev, w, w->peer, (uint32_t)-status))
		return;
	GDRI_NOT_UNROLLED
	while (step != GDRI_STEP_RECORD)
		step = step == GDRI_STEP_NOTICE ? gdri_wait_tell(dev, w, step) : gdri_wait_await(dev, w);
}

#endif
