// SPDX-License-Identifier: BSD-3-Clause
/* Dissemination, as in the device's barrier: in round k a PE tells the one 2^k above
 * it and hears of the one 2^k below. What is told is the word that the teller and
 * all it has heard of agree on, or that they differ, above 8 bits that count the
 * barriers. Two barriers alternate between two sets of words: a PE writes those
 * of the next but one when all have come to the next, and so have read them. */
#include "runtime/core/host_barrier.h"

#include <gdr/device.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/hostdev/hostdev_fiber.h"

#define COUNT 0xffull
#define DIFFER (~COUNT)
#define ABSENT_ROUNDS 64u /* pauses between two looks at all PEs */

/* written once, before any thread may settle or wait */
static void (*barrier_looks)(struct gdri_state *st);
static int (*barrier_absent)(const struct gdri_state *st);

void gdri_host_barrier_looks(void (*look)(struct gdri_state *st), int (*absent)(const struct gdri_state *st))
{
	barrier_looks = look;
	barrier_absent = absent;
}

static int host_barrier_tell(struct gdri_state *st, uint64_t *word, uint64_t value, int pe)
{
	struct gdri_operation o = gdri_op_scalar(GDRI_SIGNAL, GDRI_AMO_SET, 8, word, value, pe, 0);
	int ret = gdri_xfer_tell(gdri_host_dev(st), &o);

	if (ret)
		gdri_error("%s: no way to PE %d: %s", st->call, pe, gdr_strerror(ret));
	return ret;
}

/* The PE that left first; -1: none. The word is a peer's to write. */
static int host_barrier_left(const struct gdri_state *st)
{
	/* acquire: what it told before is seen by the look behind; pairs with the release in tell_of_leaving */
	int pe = gdri_fault_pe(__atomic_load_n(&gdri_host_dev(st)->ctl->left, __ATOMIC_ACQUIRE));

	return pe < st->n_pes ? pe : -1;
}

/* The PE in gdr_finalize because of which it left; -1: it says none. */
static int left_for_one_in_finalize(const struct gdri_state *st)
{
	/* relaxed: behind the acquire of host_barrier_left */
	uint64_t left = __atomic_load_n(&gdri_host_dev(st)->ctl->left, __ATOMIC_RELAXED);

	return left & GDRI_FAULT_LEFT && gdri_fault_peer(left) < st->n_pes ? gdri_fault_peer(left) : -1;
}

bool gdri_host_barrier_left(const struct gdri_state *st)
{
	return host_barrier_left(st) >= 0;
}

/* Who gave up a barrier and then left told that before: the barriers of all PEs have that status. A PE that is lost
 * may be the one that left. */
static int somebody_left(const struct gdri_state *st, int pe)
{
	struct gdri_dev *dev = gdri_host_dev(st);
	uint64_t word = gdri_ld_relaxed_sys_u64(gdri_broken_word(dev, -1)); /* behind the acquire of `left` */
	int culprit = gdri_blame_notice(dev, pe), finalizes = left_for_one_in_finalize(st);
	/* a word that comes behind the look is not what `left` is about */
	int ret = !word || gdri_fault_status(word) == -GDR_EPEERLOST ? 0 : gdri_broken(dev, -1, GDRI_HOST_CALL);

	if (gdri_fault_left(word) && gdri_fault_peer(word) == st->pe) /* its record says it */
		return gdri_broken(dev, -1, GDRI_HOST_CALL);
	if (ret && gdri_fault_peer(word) == st->pe)
		gdri_error("%s: PE %d gave up a call of all PEs because of this one, which did not come to it: %s",
			   st->call, gdri_fault_pe(word), gdr_strerror(ret));
	else if (ret)
		gdri_error("%s: given up because of PE %d: %s", st->call, gdri_fault_peer(word), gdr_strerror(ret));
	if (ret)
		return ret;
	if (finalizes == st->pe)
		return gdri_fail(-GDR_EMISMATCH, "%s: PE %d gave up a wait for this PE: what others wait for comes "
				 "before gdr_finalize", st->call, pe);
	/* the word that this PE tells says it, too: that PE may hear this one before the one that left */
	if (finalizes >= 0 && gdri_broken_mark(dev, -1, GDRI_HOST_CALL, -GDR_EPEERLOST, finalizes, 1))
		gdri_tell_each(dev, -1);
	if (finalizes >= 0)
		gdri_error("%s: PE %d has left: it gave up because of PE %d, which has called gdr_finalize", st->call,
			   pe, finalizes);
	else if (culprit < 0)
		gdri_error("%s: PE %d has left after an error", st->call, pe);
	else
		gdri_error("%s: PE %d has left: it gave up because of PE %d", st->call, pe, culprit);
	return -GDR_EPEERLOST;
}

/* It has told nobody of this call, and whoever waits for one that is late would learn so from that one alone. */
static int host_barrier_absent(struct gdri_state *st, int pe)
{
	struct gdri_dev *dev = gdri_host_dev(st);

	gdri_error("%s: PE %d has called gdr_finalize: it takes no part", st->call, pe);
	if (gdri_broken_mark(dev, -1, GDRI_HOST_CALL, -GDR_EPEERLOST, pe, 1))
		gdri_tell_each(dev, -1);
	return -GDR_EPEERLOST;
}

/* finalizes: in gdr_finalize itself nobody is absent who is there. */
static int host_barrier_hear(struct gdri_state *st, const uint64_t *word, int pe, uint64_t start,
			     bool finalizes, uint64_t *value)
{
	struct gdri_dev *dev = gdri_host_dev(st);
	struct gdri_waiter w;
	int ret, left, absent;

	gdri_wait_begin(&w, GDRI_HOST_CALL, pe, gdri_heap_offset(dev, word));
	w.limit.start_ns = w.limit.still_ns = start; /* the limit is one for all rounds */
	for (;;) {
		left = host_barrier_left(st);
		absent = finalizes || !barrier_absent || w.round % ABSENT_ROUNDS ? -1 : barrier_absent(st);
		/* acquire: pairs with the partner's release, or the NIC's order */
		*value = gdri_ld_acquire_sys_u64(word);
		if ((*value & COUNT) == (st->host_barriers & COUNT))
			break;
		if (left >= 0) {
			gdri_wait_leave(dev, &w);
			return somebody_left(st, left);
		}
		if (absent >= 0) {
			gdri_wait_leave(dev, &w);
			return host_barrier_absent(st, absent);
		}
		ret = gdri_wait_step(dev, &w);
		if (!ret)
			continue;
		if (ret != -GDR_EMISMATCH) /* what this PE is to blame for its record says (gdri_broken_told) */
			gdri_error("%s: waiting for PE %d: %s", st->call, pe, gdr_strerror(ret));
		return ret;
	}
	gdri_wait_end(dev, &w);
	return 0;
}

int gdri_host_barrier(struct gdri_state *st, uint64_t word)
{
	uint64_t mine = word & DIFFER, start = gdri_now_ns(), heard, *words;
	struct gdri_dev *dev = gdri_host_dev(st);
	int n = st->n_pes, me = st->pe, step, ret = gdri_broken(dev, -1, GDRI_HOST_CALL);

	if (ret)
		return ret;
	words = dev->ctl->host_barrier[++st->host_barriers & 1];
	/* As in gdri_agree: what comes before on any PE is behind this for ThreadSanitizer. */
	gdri_hd_release(dev->heap);
	gdri_fence_sys(); /* the stores of all threads that this one speaks for */
	for (step = 1; step < n; step *= 2, words++) {
		ret = host_barrier_tell(st, words, mine | (st->host_barriers & COUNT), (me + step) % n);
		if (!ret)
			ret = host_barrier_hear(st, words, (me - step + n) % n, start, !word, &heard);
		if (ret)
			return gdri_broken_set(dev, -1, GDRI_HOST_CALL, ret, -1);
		if ((heard & DIFFER) != mine)
			mine = DIFFER;
	}
	gdri_hd_acquire(dev->heap);
	return mine == DIFFER ? GDRI_HOST_BARRIER_DIFFER : 0;
}

/* By any queue that still works, if it has room. */
static void tell_of_leaving(struct gdri_state *st, int pe, uint64_t value)
{
	uint64_t off = offsetof(struct gdri_ctl, left);
	struct gdri_dev *dev = gdri_host_dev(st);
	struct gdri_qp *qp;

	if (dev->peers[pe].base) {
		gdri_fence_release_sys(); /* pairs with the acquire in host_barrier_left */
		gdri_p2p_store(dev->peers[pe].base + off, value, 8);
		return;
	}
	for (uint32_t i = 0; i < dev->n_slots; i++) {
		qp = &dev->qps[(uint32_t)pe * dev->n_slots + i];
		if (qp->sq && gdri_tell_queue(dev, qp, off, value))
			return;
	}
}

/* A PE tells that it leaves before its queues go: their error finds that said, whoever looked when before. But it
 * does not tell one that leaves after an error, and knows of nobody's: to such a PE the other one has left, too, for
 * what the library tells it last. */
static void settle_poll(struct gdri_state *st, struct gdri_dev *dev, struct gdri_qp *qp, bool leaves)
{
	if (gdri_poll_entries(qp)) {
		if (barrier_looks)
			barrier_looks(st);
		if (leaves) /* relaxed: of this thread, which polls next; others may see it later */
			__atomic_fetch_or(&dev->peers[qp->peer].finalizes, 1u, __ATOMIC_RELAXED);
	}
	gdri_poll(dev, qp);
}

static int all_complete(struct gdri_state *st, struct gdri_dev *dev, bool leaves)
{
	uint32_t i, n = dev->n_queues;
	struct gdri_qp *qp = dev->qps;

	for (i = 0; i < n; i++, qp++) {
		if (!gdri_qp_is_used(dev, qp) || gdri_has_gone(dev, qp->peer))
			continue;
		settle_poll(st, dev, qp, leaves);
		/* relaxed: what is meant was posted by this thread, or by one that it met after that */
		if (!gdri_qp_test(qp, gdri_published(gdri_ld_relaxed_gpu_u64(&qp->ready))))
			return 0;
	}
	return 1;
}

static bool host_barrier_settle(struct gdri_state *st, int ms, bool leaves)
{
	struct gdri_dev *dev = gdri_host_dev(st);
	uint64_t deadline = gdri_deadline_ns(ms);
	uint32_t round = 0;

	/* on GPUs kernels have ended, and what they posted is their own matter */
	while (dev->n_slots && !all_complete(st, dev, leaves)) {
		if (gdri_now_ns() >= deadline)
			return false;
		gdr_pause(round++);
	}
	return true;
}

bool gdri_host_barrier_settle(struct gdri_state *st, int ms)
{
	return host_barrier_settle(st, ms, false);
}

void gdri_host_barrier_leave(struct gdri_state *st)
{
	struct gdri_dev *dev = gdri_host_dev(st);
	/* who left before this PE is the one to be named; relaxed: no data comes with `left` */
	uint64_t left = __atomic_load_n(&dev->ctl->left, __ATOMIC_RELAXED);
	/* relaxed: nobody writes it any more */
	uint32_t failed = __atomic_load_n((const uint32_t *)&dev->failed, __ATOMIC_RELAXED);

	if (!left) {
		left = gdri_fault_word_of(st->pe, failed ? (int32_t)failed - 2 : -1, 0, 0);
		if (failed && dev->ctl->waits[0].heartbeat & GDRI_WAIT_SAID_LEFT) /* gdri_wait_publish_failed */
			left |= GDRI_FAULT_LEFT;
	}
	for (int i = 1; i < st->n_pes; i++) {
		if (!gdri_has_gone(dev, (st->pe + i) % st->n_pes)) /* who waits for nobody does not ask either */
			tell_of_leaving(st, (st->pe + i) % st->n_pes, left);
	}
	host_barrier_settle(st, GDRI_SETTLE_MS, true);
}
