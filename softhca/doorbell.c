/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out what the program has posted.
 *
 * The UAR registers are polled as a hint: QPs share them and overwrite each
 * other's values, so a change names a QP to look at and a candidate for its
 * producer index. What was posted is decided with the doorbell record, and a
 * sweep over all records finds what no register showed.
 *
 * A round costs the same whatever the number of QPs and pages: it polls the
 * pages where doorbells were seen lately and some of the others, and sweeps
 * over some records. The sweep looks at the record alone, unless something
 * else may have changed: then at the QP. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/guest.h"
#include "softhca/rc.h"
#include "softhca/strict.h"

enum {
	UAR_MAX = 4096,
	UAR_REGS = 5,
	UAR_PAGE = 4096,
	HOT_PAGES = 8,	   /* pages polled in each round */
	COLD_PAGES = 8,	   /* of the others */
	SWEEP_QPS = 2,	   /* records swept over in a round */
	CLOSELY_LAPS = 16, /* each so many laps every QP is looked at */
};

/* Beside engine.c's list of QPs, same index. */
struct watch {
	struct hca_qp *qp;
	const uint32_t *record; /* the program's word, big-endian; NULL: look at the QP */
	uint32_t seen;		/* the word when there was nothing behind it */
	bool closely;
};

static const uint16_t uar_reg[UAR_REGS] = { 0x800, 0x900, 0xa00, 0xb00, 0x600 };
static uint64_t uar_seen[UAR_MAX][UAR_REGS];
static uint32_t hot[HOT_PAGES];
static unsigned n_hot, hot_at, cold_at;
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
	uint16_t best = (uint16_t)(qp->sq_pi - qp->sq_ci), old = best, d;

	if (!qp->sq || qp->state < HCA_QPS_RTS)
		return false;
	if (strict_on)
		strict_look(qp);
	if (qp->dbrec) {
		d = (uint16_t)((uint16_t)guest_dbrec(&qp->dbrec[1]) - qp->sq_ci);
		if (d <= size && d > best)
			best = d;
	}
	if (hint) {
		d = (uint16_t)(*hint - qp->sq_ci);
		if (d <= size && d > best)
			best = d;
	}
	if (best == old)
		return false;
	if (faults_active() && faults_doorbell_late(qp, dp_now(), (uint16_t)(qp->sq_ci + best)))
		return false;
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
		strict_doorbell(page);
	memcpy(b, &v, 8);
	qp = engine_find_qp(get_be32(b + 4) >> 8);
	if (!qp)
		return 0;
	hint = (uint16_t)(get_be32(b) >> 8);
	if (!look_at(qp, &hint))
		return 0;
	STAT_INC(doorbells_uar);
	return 1;
}

/* A QP without a doorbell record has its page to itself: what lies there is its own. */
static bool look_at_page(struct hca_qp *qp)
{
	const uint8_t *page = hca_uar_page(qp->uar_page);
	bool found = false;

	for (unsigned r = 0; page && r < UAR_REGS; r++) {
		uint64_t v = guest_uar(page + uar_reg[r]);
		uint8_t b[8];
		uint16_t hint;

		memcpy(b, &v, 8);
		hint = (uint16_t)(get_be32(b) >> 8);
		if (get_be32(b + 4) >> 8 == qp->qpn)
			found |= look_at(qp, &hint);
	}
	return found;
}

/* ---- all pages ---- */

/* base: page 0; the others follow it. */
static inline unsigned poll_page(const uint8_t *base, uint32_t i)
{
	const uint8_t *page = base + (size_t)i * UAR_PAGE;
	uint64_t *seen = uar_seen[i], changed = 0;
	unsigned n = 0;

	for (unsigned r = 0; r < UAR_REGS; r++)
		changed |= guest_uar(page + uar_reg[r]) ^ seen[r];
	if (!changed)
		return 0;
	for (unsigned r = 0; r < UAR_REGS; r++)
		n += poll_register(i, page + uar_reg[r], &seen[r]);
	return n;
}

static void make_hot(uint32_t page)
{
	for (unsigned i = 0; i < n_hot; i++)
		if (hot[i] == page)
			return;
	if (n_hot < HOT_PAGES)
		n_hot++;
	hot[hot_at++ % HOT_PAGES] = page;
}

static unsigned poll_uars(void)
{
	const uint8_t *base = hca_uar_page(0);
	uint32_t pages = hca_uar_pages_used();
	unsigned n = 0;

	if (pages > UAR_MAX)
		pages = UAR_MAX;
	if (pages <= HOT_PAGES + COLD_PAGES) {
		for (uint32_t i = 0; i < pages; i++)
			n += poll_page(base, i);
		return n;
	}
	for (unsigned i = 0; i < n_hot; i++)
		if (hot[i] < pages)
			n += poll_page(base, hot[i]);
	for (unsigned i = 0; i < COLD_PAGES; i++) {
		if (cold_at >= pages)
			cold_at = 0;
		if (poll_page(base, cold_at)) {
			make_hot(cold_at);
			n++;
		}
		cold_at++;
	}
	return n;
}

/* ---- all records ---- */

/* True when nothing can have happened that the record alone does not show. */
static bool record_tells(const struct hca_qp *qp)
{
	return qp->dbrec && qp->sq && qp->state == HCA_QPS_RTS && !strict_on && !faults_active() &&
	       !(qp->scq && qp->scq->channel) && !(qp->rcq && qp->rcq->channel);
}

static unsigned look_closely(struct watch *w)
{
	struct hca_qp *qp = w->qp;
	uint32_t record = 0;
	unsigned n = 0;

	if (strict_on)
		strict_recv_look(qp);
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
	if (qp->scq && qp->scq->channel)
		cq_check_arm(qp->scq);
	if (qp->rcq && qp->rcq->channel && qp->rcq != qp->scq)
		cq_check_arm(qp->rcq);
	/* A record that is far from what is executed may come to make sense. */
	if (!w->closely && (uint16_t)record == qp->sq_pi) {
		w->record = &qp->dbrec[1];
		w->seen = record;
	}
	return n;
}

static unsigned sweep(unsigned qps)
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
	unsigned n = poll_uars();

	return n + sweep(SWEEP_QPS);
}

unsigned doorbell_sweep_all(void)
{
	const uint8_t *base = hca_uar_page(0);
	uint32_t pages = hca_uar_pages_used();
	unsigned n = 0;

	for (uint32_t i = 0; i < pages && i < UAR_MAX; i++)
		n += poll_page(base, i);
	return n + sweep(n_watches);
}
