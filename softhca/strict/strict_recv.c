/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict mode, receive queues: a copy of each entry as it was when the record
 * first covered it shows whether it had been written by then, and whether it
 * stays as it is until its completion. The entries of an SRQ are followed along
 * their chain.
 *
 * Entries carry no index. An entry that still holds the receive of the lap before is
 * no mistake by itself, because a buffer may be posted again; it is a mistake when the
 * entry then changes. */
#include <stdlib.h>

#include "softhca/memory/guest.h"
#include "softhca/strict/strict_impl.h"

enum { SEG = 16, LKEY_LIST_END = 0x100, STRIDE_MAX = 2048 };
enum { SEEN = 1, POSTED = 2, STALE = 4 }; /* marks of an entry */

struct strict_recv {
	uint32_t count, stride, head; /* entries, bytes of each, bytes before its segments */
	const uint8_t *ring;
	uint8_t *shadow;  /* the entries as the record covered them */
	uint8_t *mark;
	uint32_t word;	  /* record as last seen */
	uint16_t covered; /* as far as entries were copied */
	uint16_t next;	  /* entry that the next count is for */
	uint32_t posted;  /* copied and not complete */
	bool doubtful;	  /* the record makes no sense yet */
	bool broken;	  /* the chain does not go on */
};

/* ---- life ---- */

static struct strict_recv *strict_recv_create(const uint8_t *ring, uint32_t count, uint32_t log_stride,
					      uint32_t head)
{
	struct strict_recv *r = log_stride > 11 ? NULL : calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ring = ring;
	r->count = count;
	r->stride = 1u << log_stride;
	r->head = head;
	r->shadow = calloc(count, r->stride);
	r->mark = calloc(count, 1);
	if (r->shadow && r->mark)
		return r;
	strict_recv_free(r);
	return NULL;
}

void strict_recv_free(struct strict_recv *r)
{
	if (!r)
		return;
	free(r->shadow);
	free(r->mark);
	free(r);
}

/* Made at the first look; NULL: nothing to judge, or no memory. */
static struct strict_recv *strict_recv_state_of(const struct hca_qp *qp)
{
	struct hca_srq *srq = qp->srq;
	struct strict_qp *s = qp->strict;

	if (srq) {
		if (!srq->strict && srq->buf && srq->dbrec)
			srq->strict = strict_recv_create(srq->buf, srq->wqe_cnt, srq->wqe_shift, SEG);
		return srq->strict;
	}
	if (!s || !qp->rq || !qp->rq_cnt || !qp->dbrec)
		return NULL;
	if (!s->recv)
		s->recv = strict_recv_create(qp->rq, qp->rq_cnt, qp->rq_shift, 0);
	return s->recv;
}

void strict_srq_destroy(struct hca_srq *srq)
{
	strict_recv_free(srq->strict);
	srq->strict = NULL;
}

void strict_recv_reset(struct strict_qp *s)
{
	struct strict_recv *r = s->recv;

	if (!r)
		return;
	memset(r->mark, 0, r->count);
	r->word = r->posted = 0;
	r->covered = r->next = 0;
	r->doubtful = false;
}

/* A queue that becomes INIT, and takes receives from then on, starts at 0. */
void strict_recv_ready(struct strict_qp *s)
{
	const struct hca_qp *qp = s->qp;
	struct strict_at at = {.qp = qp};
	uint32_t word;

	if (!qp->rq || !qp->dbrec)
		return;
	word = guest_dbrec(&qp->dbrec[0]);
	if (word)
		strict_report(RULE_DBR_INITIAL, &at, "the record's first word, which counts "
			      "receives, is %u when the queue leaves reset", word);
}

/* ---- reports ---- */

static struct strict_at strict_recv_place(const struct hca_qp *qp, const struct strict_recv *r, uint32_t entry,
					  const uint8_t *bytes)
{
	return (struct strict_at){
		.qp = qp->srq ? NULL : qp,
		.srq = qp->srq,
		.is_recv = true,
		.entry = entry,
		.entries = r->count,
		.bytes = bytes,
		.n = r->stride,
		.mark = STRICT_NO_MARK,
	};
}

/* ---- an entry when the record covers it ---- */

static bool strict_recv_all_zero(const uint8_t *p, size_t n)
{
	while (n && !*p)
		p++, n--;
	return !n;
}

/* The link of an SRQ's entry; false: the chain ends here. What stands around it is nobody's: UCX keeps
 * notes of its own there. */
static bool strict_recv_follow(const struct hca_qp *qp, struct strict_recv *r, uint32_t entry)
{
	const uint8_t *e = r->shadow + (size_t)entry * r->stride;
	struct strict_at at = strict_recv_place(qp, r, entry, e);
	uint16_t next = get_be16(e + 2);

	at.mark = 0;
	if (next < r->count && !(r->mark[next] & POSTED)) {
		r->next = next;
		return true;
	}
	if (next >= r->count && __builtin_bswap16(next) < r->count)
		strict_report(RULE_ENDIAN, &at, "the link 0x%04x fits with its bytes swapped", next);
	else if (next >= r->count)
		strict_report(RULE_SRQ_LINK, &at, "it leads to entry %u of %u", next, r->count);
	else
		strict_report(RULE_SRQ_LINK, &at, "it leads to entry %u, which is posted", next);
	return false;
}

static void cover_one(const struct hca_qp *qp, struct strict_recv *r)
{
	uint32_t entry = r->next;
	uint8_t *was = r->shadow + (size_t)entry * r->stride;
	const uint8_t *now = r->ring + (size_t)entry * r->stride;
	struct strict_at at = strict_recv_place(qp, r, entry, was);
	bool same;

	guest_dma_begin();
	same = r->mark[entry] & SEEN && !memcmp(was, now, r->stride);
	memcpy(was, now, r->stride);
	guest_dma_end();
	r->mark[entry] = (uint8_t)(SEEN | POSTED | (same ? STALE : 0));
	r->posted++;
	if (strict_recv_all_zero(was + r->head, SEG))
		strict_report(RULE_RECV_UNWRITTEN, &at, "nothing has been written in this entry");
	if (!qp->srq || qp->srq->cyclic)
		r->next = (uint16_t)((entry + 1) % r->count);
	else
		r->broken = !strict_recv_follow(qp, r, entry);
}

/* ---- the record ---- */

static void strict_recv_doubt(const struct hca_qp *qp, const struct strict_recv *r, uint32_t word)
{
	uint16_t swapped = (uint16_t)__builtin_bswap32(word);
	uint32_t room = r->count - r->posted;
	uint16_t ahead = (uint16_t)(word - r->covered);
	uint8_t b[4];
	struct strict_at at = {.qp = qp->srq ? NULL : qp, .srq = qp->srq, .bytes = b, .n = 4};

	put_be32(b, word);
	if (word >> 16 && !(word & 0xffff) && (uint16_t)(swapped - r->covered) <= room)
		strict_report(RULE_ENDIAN, &at, "the record of receives fits with its bytes swapped: "
			      "%u", swapped);
	else if (word >> 16)
		strict_report(RULE_DBR_WIDTH, &at, "the record of receives is 0x%08x", word);
	else if (ahead >= 0x8000)
		strict_report(RULE_DBR_BACKWARD, &at, "the record of receives went back from %u to %u",
			      r->covered, word);
	else
		strict_report(RULE_RECV_OVERRUN, &at,
			      "the record says %u: %u entries beyond the last that was complete, in "
			      "a ring of %u", word, ahead + r->posted, r->count);
}

void strict_recv_look(struct hca_qp *qp)
{
	struct strict_recv *r = qp->state == HCA_QPS_RST ? NULL : strict_recv_state_of(qp);
	uint32_t word;

	if (!r || r->broken)
		return;
	word = guest_dbrec(qp->srq ? qp->srq->dbrec : qp->dbrec);
	if (word == r->word && !r->doubtful)
		return;
	if (word >> 16 || (uint16_t)(word - r->covered) > r->count - r->posted) {
		if (word != r->word)
			strict_recv_doubt(qp, r, word);
		r->word = word;
		r->doubtful = true;
		return;
	}
	r->word = word;
	r->doubtful = false;
	for (; r->covered != (uint16_t)word && !r->broken; r->covered++)
		cover_one(qp, r);
}

/* ---- an entry in use ---- */

/* Is it still as the record covered it? If not, says so once. */
static void strict_recv_compare(const struct hca_qp *qp, struct strict_recv *r, uint32_t entry)
{
	const uint8_t *ring = r->ring + (size_t)entry * r->stride;
	uint8_t *was = r->shadow + (size_t)entry * r->stride;
	struct strict_at at = strict_recv_place(qp, r, entry, was);
	bool stale = r->mark[entry] & STALE;
	uint8_t now[STRIDE_MAX];

	guest_dma_begin();
	memcpy(now, ring, r->stride);
	guest_dma_end();
	if (!memcmp(was, now, r->stride))
		return;
	for (at.mark = 0; !memcmp(was + at.mark, now + at.mark, SEG);)
		at.mark += SEG;
	if (stale)
		strict_report(RULE_STALE_RECV, &at, "when the record covered it, it held the receive "
			      "of the lap before, which has changed since");
	else
		strict_report(RULE_RECV_CHANGED, &at, "so it was when the record covered it; it has "
			      "changed before it was complete");
	memcpy(was, now, r->stride);
	r->mark[entry] &= (uint8_t)~STALE;
}

static void check_segments(const struct hca_qp *qp, const struct strict_recv *r, uint32_t entry)
{
	const uint8_t *e = r->shadow + (size_t)entry * r->stride;
	uint32_t pdn = qp->srq ? qp->srq->pdn : qp->pdn;
	struct strict_at at = strict_recv_place(qp, r, entry, e);

	for (size_t off = r->head; off + SEG <= r->stride; off += SEG) {
		uint32_t len = get_be32(e + off), key = get_be32(e + off + 4);

		at.mark = off;
		if (!len && key == LKEY_LIST_END)
			return;
		if (!(len >> 31)) {
			strict_check_segment(pdn, &at, e + off, off, true);
			continue;
		}
		strict_report(RULE_WQE_RESERVED, &at, "byte count 0x%x: bit 31 means inline data, which "
			      "no receive has", len);
	}
}

/* The entry of a posted receive, compared with what was posted; NULL: it was not. */
static struct strict_recv *strict_recv_posted(struct hca_qp *qp, uint16_t index, uint32_t *entry)
{
	struct strict_recv *r = strict_recv_state_of(qp);

	*entry = r ? index % r->count : 0;
	if (!r || !(r->mark[*entry] & POSTED))
		return NULL;
	strict_recv_compare(qp, r, *entry);
	return r;
}

void strict_recv_taken(struct hca_qp *qp, uint16_t index)
{
	uint32_t entry;
	struct strict_recv *r = strict_recv_posted(qp, index, &entry);

	/* Said when the record covered it. */
	if (r && !strict_recv_all_zero(r->shadow + (size_t)entry * r->stride + r->head, SEG))
		check_segments(qp, r, entry);
}

void strict_recv_completed(struct hca_qp *qp, uint16_t index)
{
	uint32_t entry;
	struct strict_recv *r = strict_recv_posted(qp, index, &entry);

	if (!r)
		return;
	r->mark[entry] = SEEN;
	r->posted--;
}
