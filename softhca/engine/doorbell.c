/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out what the program has posted.
 *
 * The UAR registers are polled as a hint: QPs share them and overwrite each
 * other's values, so a change names a QP to look at and a candidate for its
 * producer index. What was posted is decided with the doorbell record, and a
 * sweep over all records finds what no register showed.
 *
 * A round costs the same whatever the number of QPs and pages: it polls the
 * registers where doorbells were seen lately and some of the others, and sweeps
 * over some records, more where it finds something. The sweep looks at the record alone, unless something
 * else may have changed: then at the QP.
 *
 * A thread that polls for what it has just posted looks for one doorbell only, first at the register
 * that was rung the last time behind the doorbell just seen: programs use their QPs in turn.
 * Registers of different pages share cache sets, so that looking at all costs more than what is posted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/memory/guest.h"
#include "softhca/transport/rc.h"
#include "softhca/strict/strict.h"

enum {
	UAR_MAX = 4096,
	UAR_PAIRS = 3,	   /* of registers in a page; libraries write to both in turn */
	UAR_PAGE = 4096,
	HOT_PAIRS = 64,	   /* polled in each round, */
	HOT_ROUNDS = 8,	   /* of which so many, one after the other, may be all that is polled */
	COLD_PAIRS = 4,	   /* of all */
	FEW_PAIRS = 72,	   /* to be looked at before each yield */
	SWEEP_QPS = 2,	   /* records swept over in a round, */
	SWEEP_MORE = 14,   /* and then, when there was something */
	SETTLE_NS = 1000000,
	CLOSELY_LAPS = 16, /* each so many laps every QP is looked at */
};

/* Beside engine.c's list of QPs, same index. */
struct watch {
	struct hca_qp *qp;
	const uint32_t *record; /* the program's word, big-endian; NULL: look at the QP */
	uint32_t seen;		/* the word when there was nothing behind it */
	bool closely;
};

/* Pair p of page i has number i * UAR_PAIRS + p. */
static const uint16_t uar_reg[UAR_PAIRS][2] = { { 0x800, 0x900 }, { 0xa00, 0xb00 }, { 0x600, 0x600 } };
static uint64_t uar_seen[UAR_MAX * UAR_PAIRS][2];
static struct hot {
	const uint8_t *reg[2];
	uint64_t *seen; /* of uar_seen */
	uint32_t pair;
	uint32_t next;	/* where the next doorbell was found the last time */
} hot[HOT_PAIRS];
static unsigned n_hot, hot_at, hot_last;
static unsigned alone; /* looks at them that found something, one after the other, and were all */
static bool hot_quiet; /* nothing there a moment ago: the next whole round leaves them out */
static uint32_t cold_at;
static struct watch *watches;
static unsigned n_watches, cap_watches, sweep_at, laps;

/* ---- what is watched ---- */

int doorbell_add(struct hca_qp *qp, unsigned index)
{
	if (index == cap_watches) {
		unsigned cap = cap_watches ? cap_watches * 2 : 64;
		struct watch *bigger = realloc(watches, cap * sizeof(*watches));

		if (!bigger)
			return -ENOMEM;
		watches = bigger;
		cap_watches = cap;
	}
	watches[index] = (struct watch){ .qp = qp, .closely = true };
	n_watches = index + 1;
	return 0;
}

void doorbell_remove(unsigned index)
{
	watches[index] = watches[--n_watches];
}

void doorbell_qp_changed(const struct hca_qp *qp)
{
	unsigned i = qp->rc->live_index;

	if (i < n_watches && watches[i].qp == qp)
		watches[i].closely = true;
}

/* ---- one QP ---- */

/* Moves sq_pi to the farthest believable producer index. The record counts
 * blocks posted; the register's index is that count or the index of the last
 * WQE, by library. A distance of more than the ring is an old value. */
static bool look_at(struct hca_qp *qp, const uint16_t *hint)
{
	uint32_t size = 1u << qp->log_sq_size;
	uint16_t best = (uint16_t)(qp->sq_pi - qp->sq_ci), old, d;

	if (!qp->sq || qp->state < HCA_QPS_RTS)
		return false;
	if (__builtin_expect(dma_on, 0))
		best = (uint16_t)(dma_qp_known(qp) - qp->sq_ci);
	old = best;
	if (strict_on)
		strict_look(qp);
	if (qp->dbrec) {
		uint16_t record = (uint16_t)guest_dbrec(&qp->dbrec[1]);

		/* An adapter looks at it when a doorbell rings: what a life before has left there is not posted. */
		if (__builtin_expect(qp->record_old, 0))
			qp->record_old = !hint && record == qp->record_before;
		d = (uint16_t)(record - qp->sq_ci);
		if (d <= size && d > best && !qp->record_old)
			best = d;
	}
	if (hint) {
		d = (uint16_t)(*hint - qp->sq_ci);
		if (d <= size && d > best)
			best = d;
	}
	if (best == old)
		return false;
	if (faults_on && faults_doorbell_late(qp, dp_now(), (uint16_t)(qp->sq_ci + best)))
		return false;
	if (__builtin_expect(qp->rc->ring != NULL, 0)) {
		dma_qp_posted(qp, (uint16_t)(qp->sq_ci + best));
		return true;
	}
	qp->sq_pi = (uint16_t)(qp->sq_ci + best);
	engine_activate(qp);
	return true;
}

static unsigned poll_register(uint32_t page, const uint8_t *reg, uint64_t *seen)
{
	uint64_t v = guest_uar(reg);
	uint8_t b[8];
	struct hca_qp *qp;
	uint16_t hint;

	if (v == *seen)
		return 0;
	*seen = v;
	if (strict_on)
		strict_bell_poll(page);
	memcpy(b, &v, 8);
	qp = engine_prefetch(get_be32(b + 4) >> 8);
	if (!qp)
		return 0;
	/* The program has written them on another core: they come while the record does. */
	if (qp->sq)
		__builtin_prefetch(qp->sq + (size_t)(qp->sq_ci & ((1u << qp->log_sq_size) - 1)) * WQE_BLOCK);
	if (qp->dest_qpn != qp->qpn && qp->rc->dest.kind == WIRE_LOCAL)
		engine_prefetch(qp->dest_qpn);
	hint = (uint16_t)(get_be32(b) >> 8);
	if (!look_at(qp, &hint))
		return 0;
	STAT_INC(doorbells_uar);
	prefetch_rung(qp->qpn);
	return 1;
}

/* A QP without a doorbell record has its page to itself: what lies there is its own. What was acted upon is
 * taken away: 2^16 blocks later it would fit again, where the program has gone on in another register. */
static bool look_at_page(struct hca_qp *qp)
{
	uint8_t *page = hca_uar_page(qp->uar_page);
	bool found = false;

	for (unsigned r = 0; page && r < 2 * UAR_PAIRS; r++) {
		uint64_t v = guest_uar(page + uar_reg[r / 2][r % 2]);
		uint8_t b[8];
		uint16_t hint;

		memcpy(b, &v, 8);
		hint = (uint16_t)(get_be32(b) >> 8);
		if (get_be32(b + 4) >> 8 != qp->qpn)
			continue;
		if (strict_on)
			strict_bell_poll(qp->uar_page); /* before it is taken */
		found |= look_at(qp, &hint);
		if (qp->state == HCA_QPS_RTS && (uint16_t)(qp->sq_pi - hint) < 0x8000)
			guest_uar_take(page + uar_reg[r / 2][r % 2], v);
	}
	return found;
}

/* What was rung before a reset may not have been looked at: the sweep was faster. It is taken away, since the next life
 * may begin with the very same doorbell. */
void doorbell_forget(const struct hca_qp *qp)
{
	uint8_t *page = hca_uar_page(qp->uar_page);
	uint64_t (*seen)[2] = &uar_seen[(size_t)(qp->uar_page % UAR_MAX) * UAR_PAIRS];

	for (unsigned r = 0; page && r < 2 * UAR_PAIRS; r++) {
		uint64_t v = guest_uar(page + uar_reg[r / 2][r % 2]);
		uint8_t b[8];

		memcpy(b, &v, 8);
		if (get_be32(b + 4) >> 8 != qp->qpn)
			continue;
		if (strict_on)
			strict_bell_poll(qp->uar_page); /* before it is taken */
		guest_uar_take(page + uar_reg[r / 2][r % 2], v);
		seen[r / 2][r % 2] = 0;
	}
}

/* ---- all registers ---- */

static unsigned poll_both(uint32_t page, const uint8_t *const reg[2], uint64_t *seen)
{
	unsigned n;

	/* Acquire by themselves when they have changed: poll_register() reads again. */
	if (!((guest_uar(reg[0]) ^ seen[0]) | (guest_uar(reg[1]) ^ seen[1])))
		return 0;
	n = poll_register(page, reg[0], &seen[0]);
	if (reg[0] == reg[1])
		seen[1] = seen[0];
	return n + poll_register(page, reg[1], &seen[1]);
}

/* base: page 0; the others follow it. */
static inline unsigned poll_pair(const uint8_t *base, uint32_t pair)
{
	const uint16_t *at = uar_reg[pair % UAR_PAIRS];
	const uint8_t *page = base + (size_t)(pair / UAR_PAIRS) * UAR_PAGE;
	const uint8_t *const reg[2] = { page + at[0], page + at[1] };

	return poll_both(pair / UAR_PAIRS, reg, uar_seen[pair]);
}

/* Pages stay where they are, and one that is not handed out reads as zero. */
static void make_hot(const uint8_t *base, uint32_t pair)
{
	const uint8_t *page = base + (size_t)(pair / UAR_PAIRS) * UAR_PAGE;
	const uint16_t *at = uar_reg[pair % UAR_PAIRS];

	for (unsigned i = 0; i < n_hot; i++)
		if (hot[i].pair == pair)
			return;
	if (n_hot < HOT_PAIRS)
		n_hot++;
	hot[hot_at++ % HOT_PAIRS] = (struct hot){ .reg = { page + at[0], page + at[1] },
						  .seen = uar_seen[pair],
						  .pair = pair };
}

static uint32_t pairs_used(void)
{
	uint32_t pages = hca_uar_pages_used();

	return UAR_PAIRS * (pages < UAR_MAX ? pages : UAR_MAX);
}

/* Some of all, in turn. */
static unsigned poll_cold(void)
{
	const uint8_t *base = hca_uar_page(0);
	uint32_t pairs = pairs_used();
	unsigned n = 0;

	for (unsigned i = 0; i < COLD_PAIRS && i < pairs; i++) {
		if (++cold_at >= pairs)
			cold_at = 0;
		if (poll_pair(base, cold_at)) {
			make_hot(base, cold_at);
			n++;
		}
	}
	return n;
}

static inline unsigned poll_hot_one(const struct hot *h)
{
	return poll_both(h->pair / UAR_PAIRS, h->reg, h->seen);
}

static unsigned poll_hot(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_hot; i++)
		n += poll_hot_one(&hot[i]);
	return n;
}

unsigned doorbell_poll_first(void)
{
	unsigned guess = hot[hot_last].next, n;

	alone++;
	if (guess < n_hot && (n = poll_hot_one(&hot[guess])) != 0) {
		hot_last = guess;
		return n;
	}
	for (unsigned i = 0, at = hot_last; i < n_hot; i++) {
		at = at + 1 < n_hot ? at + 1 : 0;
		n = poll_hot_one(&hot[at]);
		if (!n)
			continue;
		hot[hot_last].next = at;
		hot_last = at;
		return n;
	}
	alone--;
	hot_quiet = true;
	prefetch_peer();
	return 0;
}

/* ---- a record that a life before has left ---- */

/* Whether the ring holds entries of this queue from the next one on, as far as the record says. */
static bool ring_is_written(struct hca_qp *qp)
{
	uint16_t blocks = (uint16_t)(qp->record_before - qp->sq_ci), at = 0;
	uint8_t b[WQE_BLOCK];

	if (qp->rc->ring || blocks > 1u << qp->log_sq_size)
		return false;
	while (at < blocks) {
		uint16_t index = (uint16_t)(qp->sq_ci + at);

		rc_fetch(qp, index, WQE_BLOCK, b);
		if ((uint16_t)(get_be32(b) >> 8) != index || get_be32(b + 4) >> 8 != qp->qpn || !(b[7] & 63))
			return false;
		at = (uint16_t)(at + ((b[7] & 63) + 3) / 4);
	}
	return at == blocks;
}

void doorbell_qp_ready(struct hca_qp *qp)
{
	qp->record_before = qp->dbrec ? (uint16_t)guest_dbrec(&qp->dbrec[1]) : qp->sq_ci;
	qp->record_old = qp->sq && qp->record_before != qp->sq_ci;
	qp->record_since = qp->record_old && ring_is_written(qp) ? UINT64_MAX : 0;
}

/* As many blocks may be posted as in the life before, and all doorbells overwritten by those of other queues. A ring
 * that was empty then tells, when it has held all of them for a while. */
static void record_settles(struct hca_qp *qp)
{
	if (qp->record_since == UINT64_MAX)
		return;
	if (!ring_is_written(qp))
		qp->record_since = 0;
	else if (!qp->record_since)
		qp->record_since = dp_now();
	else if (dp_now() - qp->record_since > SETTLE_NS)
		qp->record_old = false;
}

/* ---- all records ---- */

/* True when nothing can have happened that the record alone does not show. */
static bool record_tells(const struct hca_qp *qp)
{
	return qp->dbrec && qp->sq && qp->state == HCA_QPS_RTS && !strict_on && !faults_on &&
	       !(qp->scq && qp->scq->events) && !(qp->rcq && qp->rcq->events);
}

static unsigned look_closely(struct watch *w)
{
	struct hca_qp *qp = w->qp;
	uint32_t record = 0;
	unsigned n = 0;

	if (strict_on)
		strict_recv_look(qp);
	if (qp->record_old)
		record_settles(qp);
	w->record = NULL;
	w->closely = !record_tells(qp);
	if (!w->closely) /* before the look: what comes later differs */
		record = guest_dbrec(&qp->dbrec[1]);
	if (qp->dbrec ? look_at(qp, NULL) : look_at_page(qp)) {
		STAT_INC(doorbells_sweep);
		n = 1;
	}
	if (qp->state == HCA_QPS_ERR && qp->rc->flushing)
		recv_flush(qp); /* posted since */
	if (qp->scq && qp->scq->events)
		cq_check_arm(qp->scq);
	if (qp->rcq && qp->rcq->events && qp->rcq != qp->scq)
		cq_check_arm(qp->rcq);
	/* A record that is far from what is executed may come to make sense. */
	if (!w->closely && (uint16_t)record == qp->sq_pi) {
		w->record = &qp->dbrec[1];
		w->seen = record;
	}
	return n;
}

unsigned doorbell_look(const struct hca_qp *qp)
{
	unsigned i = qp->rc->live_index;

	return i < n_watches && watches[i].qp == qp ? look_closely(&watches[i]) : 0;
}

static unsigned doorbell_sweep(unsigned qps)
{
	unsigned n = 0;

	if (qps > n_watches)
		qps = n_watches;
	for (unsigned i = 0; i < qps; i++) {
		struct watch *w;

		if (sweep_at >= n_watches) {
			sweep_at = 0;
			laps++;
		}
		w = &watches[sweep_at++];
		if (w->closely || !w->record || laps % CLOSELY_LAPS == 0 ||
		    guest_dbrec(w->record) != w->seen)
			n += look_closely(w);
	}
	return n;
}

unsigned doorbell_poll(void)
{
	unsigned n = hot_quiet ? 0 : poll_hot(), found;

	hot_quiet = false;

	/* What was just rung does not wait for a look at what was probably not. */
	if (n && ++alone < HOT_ROUNDS)
		return n;
	alone = 0;
	n += poll_cold();
	found = doorbell_sweep(SWEEP_QPS);
	/* Where doorbells overwrite each other one lost seldom comes alone. */
	if (found)
		found += doorbell_sweep(SWEEP_MORE);
	return n + found;
}

/* Makes them hot by the way. */
unsigned doorbell_poll_cold(void)
{
	uint32_t pairs = pairs_used();
	unsigned n = 0;

	for (uint32_t i = 0; pairs <= FEW_PAIRS && i < pairs; i += COLD_PAIRS)
		n += poll_cold();
	return n;
}

unsigned doorbell_sweep_all(void)
{
	const uint8_t *base = hca_uar_page(0);
	uint32_t pairs = pairs_used();
	unsigned n = 0;

	for (uint32_t i = 0; i < pairs; i++)
		n += poll_pair(base, i);
	return n + doorbell_sweep(n_watches);
}
