/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict mode, doorbells: registers of the UAR pages and doorbell records. A
 * register shows the last doorbell of whoever shares it, so a doorbell that was
 * not seen may have been overwritten; what is said about missing ones holds only
 * where nobody else rings, or where nobody has rung at all. */
#include <stdlib.h>
#include <sys/uio.h>

#include "softhca/memory/guest.h"
#include "softhca/strict/strict_impl.h"

enum { PAGES = 4096 };

static const uint16_t reg_offset[STRICT_REGS] = {0x800, 0x900, 0xa00, 0xb00, 0x600};

static struct page {
	uint64_t seen[STRICT_REGS];
	uint32_t seq;	 /* changes of any register */
	uint32_t users;	 /* queues created with this page */
	bool shared;	 /* by several, at some time since it had none */
} *pages[PAGES];

static struct page *strict_page_of(uint32_t n)
{
	if (n >= PAGES)
		return NULL;
	if (!pages[n])
		pages[n] = calloc(1, sizeof(*pages[n]));
	return pages[n];
}

void strict_bell_create(struct strict_qp *s)
{
	struct page *p = strict_page_of(s->qp->uar_page);

	if (p && ++p->users > 1)
		p->shared = true;
}

void strict_bell_destroy(struct strict_qp *s)
{
	struct page *p = strict_page_of(s->qp->uar_page);

	if (p && p->users && !--p->users)
		p->shared = false;
}

void strict_bell_reset(struct strict_qp *s)
{
	s->rec = s->qp->sq_first;
	s->rec_max = s->qp->sq_first;
	s->judged = true;
	s->bell_seen = s->strange_page = s->bell_is_pi = false;
	s->bell = 0;
	for (unsigned r = 0; r < STRICT_REGS; r++)
		s->rung[r] = INT64_MIN;
}

/* ---- registers ---- */

static void bell_changed(struct strict_qp *s)
{
	s->rec_at = strict_clock();
	s->judged = false;
}

static void unknown_qpn(const uint8_t b[8], uint32_t page, uint16_t reg)
{
	struct strict_at at = {.bytes = b, .n = 8};
	uint32_t first = get_be32(b), second = get_be32(b + 4);
	const struct hca_qp *swapped = engine_find_qp(__builtin_bswap32(second) >> 8);
	const struct hca_qp *low = engine_find_qp(second & 0xffffff);
	uint32_t size = low ? strict_ring_blocks(low) : 0;

	/* 00 00 80 00 may be either: then it tells whether that queue may have the index now. */
	if (swapped && !(low && (uint16_t)((uint16_t)(first >> 8) - low->sq_ci + size) <= 2 * size))
		strict_report(RULE_ENDIAN, &at,
			      "doorbell at UAR page %u + 0x%x: the second word names QP 0x%x with its "
			      "bytes swapped", page, reg, __builtin_bswap32(second) >> 8);
	else if (low)
		strict_report(RULE_DB_QPN, &at,
			      "doorbell at UAR page %u + 0x%x: QPN 0x%x stands in the lower bits",
			      page, reg, second & 0xffffff);
	else if (engine_find_qp(first >> 8))
		strict_report(RULE_DB_QPN, &at,
			      "doorbell at UAR page %u + 0x%x: its two words are exchanged", page, reg);
	else
		strict_report(RULE_DB_QPN, &at, "doorbell at UAR page %u + 0x%x for QP 0x%x", page,
			      reg, second >> 8);
}

/* Nothing tells which of two doorbells without a record is the younger one, so an older one takes the index back.
 * Of two registers the older one may be read later. What the engine has taken away is no doorbell. */
static void bell_backward(struct strict_qp *s, unsigned r, uint16_t index, const struct strict_at *at)
{
	int64_t i = strict_unwrap(s, index);

	if (i < s->rung[r])
		strict_report(RULE_DB_BACKWARD, at, "the register at 0x%x went back from %u to %u",
			      reg_offset[r], (uint16_t)s->rung[r], index);
	else
		s->rung[r] = i;
}

static void bell_rung(struct strict_qp *s, uint16_t index)
{
	int64_t at = strict_unwrap(s, index);

	/* Registers are read one after the other: an older one may come later. */
	if (!s->bell_seen || at > s->bell)
		s->bell = at;
	s->bell_seen = true;
	bell_changed(s);
	strict_ring_producer(s, index, "doorbell");
}

static void check_register(uint32_t page, unsigned r, uint64_t v)
{
	uint16_t reg = reg_offset[r], index;
	uint8_t b[8];
	struct strict_at at = {.bytes = b, .n = 8};
	struct hca_qp *qp;

	memcpy(b, &v, 8);
	if (!v)
		return;
	qp = engine_find_qp(get_be32(b + 4) >> 8);
	if (!qp) {
		unknown_qpn(b, page, reg);
		return;
	}
	if (!qp->strict) /* in memory of a GPU: nothing is known of its ring */
		return;
	at.qp = qp;
	if (qp->uar_page != page && qp->uar_page) {
		strict_report(RULE_DB_UAR, &at, "rung in UAR page %u, created with page %u", page,
			      qp->uar_page);
		qp->strict->strange_page = true;
	}
	index = (uint16_t)(get_be32(b) >> 8);
	if (qp->state == HCA_QPS_RTS) {
		if (!qp->dbrec && qp->uar_page == page)
			bell_backward(qp->strict, r, index, &at);
		bell_rung(qp->strict, index);
	} else if (qp->state < HCA_QPS_RTS) {
		strict_report(RULE_DB_STATE, &at, "a doorbell in state %u", qp->state);
	}
}

void strict_bell_poll(uint32_t page)
{
	const uint8_t *uar = hca_uar_page(page);
	struct page *p = strict_page_of(page);

	for (unsigned r = 0; uar && p && r < STRICT_REGS; r++) {
		uint64_t v = guest_uar(uar + reg_offset[r]);

		if (v == p->seen[r])
			continue;
		p->seen[r] = v;
		p->seq++;
		check_register(page, r, v);
	}
}

/* ---- records ---- */

static void check_word(struct strict_qp *s, uint32_t word)
{
	uint32_t size = strict_ring_blocks(s->qp);
	uint16_t swapped = (uint16_t)__builtin_bswap32(word);
	uint8_t b[4];
	struct strict_at at = {.qp = s->qp, .bytes = b, .n = 4};

	if (!(word >> 16))
		return;
	put_be32(b, word);
	if (!(word & 0xffff) && (uint16_t)(swapped - s->qp->sq_ci) <= size)
		strict_report(RULE_ENDIAN, &at, "the doorbell record fits with its bytes swapped: %u",
			      swapped);
	else
		strict_report(RULE_DBR_WIDTH, &at, "the doorbell record is 0x%08x", word);
}

void strict_look(struct hca_qp *qp)
{
	struct strict_qp *s = qp->strict;
	struct page *p;
	uint32_t word;

	if (!s || !s->slot || !qp->dbrec || qp->state != HCA_QPS_RTS)
		return;
	strict_total(s);
	p = strict_page_of(qp->uar_page);
	word = guest_dbrec(&qp->dbrec[1]);
	if (word != s->rec) {
		s->rec = word;
		s->seq_before = s->seq_look;
		bell_changed(s);
		check_word(s, word);
		strict_ring_producer(s, (uint16_t)word, "doorbell record");
	} else if (!s->judged && strict_clock() - s->rec_at > STRICT_SETTLE_NS &&
		   qp->sq_ci == qp->sq_pi) {
		s->judged = true;
		strict_bell_poll(qp->uar_page);
		strict_bell_judge(s, false);
		strict_ring_settled(s, false);
	}
	s->seq_look = p ? p->seq : 0;
	if (strict_unwrap(s, (uint16_t)word) > s->rec_max)
		s->rec_max = strict_unwrap(s, (uint16_t)word);
	/* An index of the last WQE is always below a record that is read later. */
	if (s->bell_seen && s->bell == strict_unwrap(s, (uint16_t)word))
		s->bell_is_pi = true;
}

/* A queue that becomes ready to send starts at 0. */
void strict_bell_ready(struct strict_qp *s)
{
	struct strict_at at = {.qp = s->qp};

	if (!s->slot || !s->qp->dbrec)
		return;
	s->rec = guest_dbrec(&s->qp->dbrec[1]);
	s->rec_at = strict_clock();
	if (s->rec && s->rec != s->qp->sq_first)
		strict_report(RULE_DBR_INITIAL, &at, "the doorbell record is %u", s->rec);
}

/* ---- one against the other ---- */

/* A queue that was reset rings the same values again, which is no change to be seen. */
static bool stands_in_register(const struct strict_qp *s, const struct page *p)
{
	for (unsigned r = 0; r < STRICT_REGS; r++) {
		uint8_t b[8];
		uint16_t index;

		memcpy(b, &p->seen[r], 8);
		index = (uint16_t)(get_be32(b) >> 8);
		if (get_be32(b + 4) >> 8 == s->qp->qpn &&
		    (index == (uint16_t)s->rec || (!s->bell_is_pi && index == s->last_start)))
			return true;
	}
	return false;
}

/* RULE_COUNT: they fit, or nothing can be said. */
static enum strict_rule strict_judge_bell(struct strict_qp *s, const struct page *p)
{
	int64_t rec = strict_unwrap(s, (uint16_t)s->rec), done = (int64_t)s->total;

	if (rec < s->rec_max)
		return RULE_DBR_BACKWARD;
	if ((s->bell_seen && s->bell > rec) || rec < done)
		return RULE_DBR_BEHIND;
	/* The engine has not seen it yet; or nothing was ever posted. */
	if (rec > done || !s->picked)
		return RULE_COUNT;
	if (s->bell_seen && (s->bell == rec ||
			     (!s->bell_is_pi && (uint16_t)s->bell == s->last_start)))
		return RULE_COUNT;
	/* Others' doorbells may have hidden ours. */
	if ((p->shared && p->seq != s->seq_before) || stands_in_register(s, p))
		return RULE_COUNT;
	return RULE_NO_DOORBELL;
}

bool strict_bell_judge(struct strict_qp *s, bool dry)
{
	struct page *p = strict_page_of(s->qp->uar_page);
	struct strict_at at = {.qp = s->qp};
	uint32_t rec = s->rec & 0xffff;
	enum strict_rule rule;

	if (!p || !s->slot || !s->qp->dbrec || !s->qp->uar_page || s->strange_page ||
	    s->qp->state != HCA_QPS_RTS || s->qp->sq_ci != s->qp->sq_pi || s->told_overrun)
		return false;
	rule = strict_judge_bell(s, p);
	if (rule == RULE_COUNT || dry)
		return rule != RULE_COUNT;
	if (rule == RULE_NO_DOORBELL && !s->bell_seen)
		strict_report(rule, &at, "the record is at %u and no doorbell was rung", rec);
	else if (rule == RULE_DBR_BACKWARD)
		strict_report(rule, &at, "the record went back from %u to %u",
			      (uint16_t)s->rec_max, rec);
	else
		strict_report(rule, &at, "the record is at %u, the last doorbell at %u", rec,
			      (uint16_t)s->bell);
	return true;
}
