/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict mode, a work request in its ring: a copy of each block as it was
 * picked up shows whether the program goes on writing behind its doorbell; what
 * completions have given back shows whether it may write there at all. */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "softhca/memory/guest.h"
#include "softhca/strict/strict_impl.h"

enum { TAIL_TELLS = 8 }; /* bytes of a block that tell whether it was written */

int strict_ring_create(struct strict_qp *s)
{
	uint32_t n = strict_ring_blocks(s->qp);

	if (!s->qp->sq)
		return 0;
	s->shadow = calloc(n, WQE_BLOCK);
	s->slot = calloc(n, sizeof(*s->slot));
	return s->shadow && s->slot ? 0 : -1;
}

void strict_ring_reset(struct strict_qp *s)
{
	if (s->slot)
		memset(s->slot, 0, strict_ring_blocks(s->qp) * sizeof(*s->slot));
	s->total = s->freed = s->last_start = s->qp->sq_first;
	s->picked = s->told_overrun = false;
	s->unsignalled = 0;
}

void strict_ring_destroy(struct strict_qp *s)
{
	free(s->shadow);
	free(s->slot);
}

static uint32_t strict_ring_slot_of(const struct strict_qp *s, uint16_t index)
{
	return index & (strict_ring_blocks(s->qp) - 1);
}

static const uint8_t *strict_ring_block(const struct strict_qp *s, uint32_t slot)
{
	return s->qp->sq + (size_t)slot * WQE_BLOCK;
}

/* ---- pick-up ---- */

static void check_signalled(struct strict_qp *s, const struct strict_at *at, const struct wqe *w)
{
	uint32_t size = strict_ring_blocks(s->qp), before = s->unsignalled;

	if (w->ce >= 2 || s->qp->sig_all) {
		s->unsignalled = 0;
		return;
	}
	s->unsignalled += w->blocks;
	if (before < size && s->unsignalled >= size)
		strict_report(RULE_NO_COMPLETION, at,
			      "the last %u blocks fill the ring, and none of their WQEs asks for a CQE",
			      s->unsignalled);
}

static void strict_ring_remember(struct strict_qp *s, const uint8_t *buf, size_t n, const struct wqe *w)
{
	uint32_t left = n / WQE_BLOCK < w->blocks ? (uint32_t)(n / WQE_BLOCK) : w->blocks;

	for (uint32_t i = 0; i < left; i++) {
		uint16_t index = (uint16_t)(s->qp->sq_ci + i);
		uint32_t at = strict_ring_slot_of(s, index);

		memcpy(s->shadow + (size_t)at * WQE_BLOCK, buf + (size_t)i * WQE_BLOCK, WQE_BLOCK);
		s->slot[at] = (struct strict_slot){
			.index = index,
			.blocks = i ? 0 : (uint8_t)left,
			.off = (uint8_t)i,
			.seen = true,
		};
	}
	s->last_start = s->qp->sq_ci;
	s->picked = true;
}

/* The program's stores may come while this waits: how long until the WQE had its
 * index, in us; -1: not within the wait. */
static long late_by(const struct strict_qp *s)
{
	const uint8_t *b = strict_ring_block(s, strict_ring_slot_of(s, s->qp->sq_ci));
	uint64_t from = dp_clock(), now;
	uint32_t op;

	do {
		/* Acquire: nothing is read behind it; it is only asked for its value. */
		op = be32toh(__atomic_load_n((const uint32_t *)(const void *)b, __ATOMIC_ACQUIRE));
		now = dp_clock();
		if ((uint16_t)(op >> 8) == s->qp->sq_ci)
			return (long)((now - from) / 1000);
	} while (now - from < 300000);
	return -1;
}

static bool strict_ring_unwritten(const uint8_t *buf)
{
	uint64_t v;

	memcpy(&v, buf, sizeof(v));
	return !v || v == UINT64_MAX;
}

static bool stands_as_before(const struct strict_qp *s, uint16_t index, const uint8_t *buf)
{
	uint32_t slot = strict_ring_slot_of(s, index);

	return s->slot[slot].seen &&
	       !memcmp(s->shadow + (size_t)slot * WQE_BLOCK, buf, WQE_BLOCK);
}

static bool check_index(struct strict_qp *s, const struct strict_at *at, const uint8_t *buf,
			const struct wqe *w)
{
	uint32_t size = strict_ring_blocks(s->qp);
	uint16_t index = s->qp->sq_ci;
	bool before;
	long us;

	if (w->index == index && !strict_ring_unwritten(buf))
		return false;
	before = stands_as_before(s, index, buf);
	us = late_by(s);
	if (strict_ring_unwritten(buf))
		strict_report(RULE_WQE_UNWRITTEN, at, "nothing has been written in this block%s",
			      us >= 0 && w->index != index ? " until after the doorbell" : "");
	else if (us >= 0)
		strict_report(RULE_STALE_WQE, at,
			      "the block held index %u when its doorbell came, its own %ld us later", w->index, us);
	else if (before)
		strict_report(RULE_STALE_WQE, at, "the block still holds the WQE of index %u, of an earlier lap",
			      w->index);
	else if ((uint16_t)(__builtin_bswap32(get_be32(buf)) >> 8) == index)
		strict_report(RULE_ENDIAN, at, "the first word fits with its bytes swapped");
	else
		strict_report(RULE_WQE_INDEX, at, "the index field says %u%s", w->index,
			      w->index == (index & (size - 1)) && index >= size
				      ? ": counted modulo the ring, not modulo 2^16"
				      : "");
	return true;
}

static bool check_qpn(struct strict_qp *s, const struct strict_at *at, const uint8_t *buf,
		      const struct wqe *w)
{
	uint32_t word = get_be32(buf + 4), qpn = s->qp->qpn;

	if (w->qpn == qpn)
		return false;
	if (__builtin_bswap32(word) >> 8 == qpn)
		strict_report(RULE_ENDIAN, at, "the second word fits with its bytes swapped");
	else if ((word ^ qpn) < 64 || ((word ^ qpn) & 0xffffff) == 0)
		strict_report(RULE_WQE_QPN, at, "the QPN stands in the lower bits of 0x%08x", word);
	else
		strict_report(RULE_WQE_QPN, at, "the QPN field says 0x%x%s", w->qpn,
			      engine_find_qp(w->qpn) ? ", which is another queue" : "");
	return true;
}

/* Where it ends for the program: behind inline data the rest of a segment may stay as it was. */
static size_t strict_ring_end_of(const struct wqe *w, const struct wqe *decoded)
{
	const struct wqe_sge *last = decoded && decoded->nsge ? &decoded->sge[decoded->nsge - 1] : NULL;

	return last && last->inlined ? last->addr + last->len : (size_t)w->ds * 16;
}

/* Blocks after the first that nothing was written to. */
static bool check_tail(struct strict_qp *s, const struct strict_at *at, const uint8_t *buf,
		       size_t n, const struct wqe *w, size_t end)
{
	/* A few bytes of data may be those of the control segment before them by chance. */
	for (uint32_t i = 1; i < w->blocks && i * WQE_BLOCK + TAIL_TELLS <= end &&
			     (i + 1) * WQE_BLOCK <= n; i++) {
		uint16_t index = (uint16_t)(s->qp->sq_ci + i);
		uint32_t slot = strict_ring_slot_of(s, index);
		struct strict_at a = *at;

		/* A continuation may be the same lap after lap; a control segment not. */
		if (!s->slot[slot].blocks || !stands_as_before(s, index, buf + i * WQE_BLOCK))
			continue;
		a.mark = i * WQE_BLOCK;
		strict_report(slot < strict_ring_slot_of(s, s->qp->sq_ci) ? RULE_WQE_WRAP : RULE_STALE_WQE, &a,
			      "its block %u, in ring block %u, still holds the WQE of index %u", i,
			      slot, s->slot[slot].index);
		return true;
	}
	return false;
}

static bool check_covered(struct strict_qp *s, const struct strict_at *at, const struct wqe *w)
{
	uint16_t covered = (uint16_t)(s->qp->sq_pi - s->qp->sq_ci);

	if (w->blocks <= covered || w->blocks > strict_ring_blocks(s->qp))
		return false;
	strict_report(RULE_PAST_DOORBELL, at, "it has %u blocks (ds %u), the producer index covers %u",
		      w->blocks, w->ds, covered);
	return true;
}

void strict_fetch(struct hca_qp *qp, const uint8_t *buf, size_t n, const struct wqe *decoded,
		    const char *why)
{
	struct strict_qp *s = qp->strict;
	struct strict_at at = {.qp = qp, .has_index = true, .index = qp->sq_ci, .bytes = buf};
	struct wqe w;

	if (!s || !s->slot)
		return;
	strict_total(s);
	wqe_decode_ctrl(buf, &w);
	at.n = (size_t)w.ds * 16 < n ? (size_t)w.ds * 16 : n;
	at.n = at.n < 16 ? 16 : at.n;
	strict_wqes++;
	if (check_index(s, &at, buf, &w) || check_qpn(s, &at, buf, &w)) {
		/* the rest means nothing */
	} else if (!check_covered(s, &at, &w) &&
		   !check_tail(s, &at, buf, n, &w, strict_ring_end_of(&w, why ? NULL : decoded)) &&
		   !strict_check_wqe(qp, &at, buf, n) && why) {
		at.mark = STRICT_NO_MARK;
		strict_report(RULE_WQE_FORM, &at, "%s", why);
	}
	at.mark = 0;
	check_signalled(s, &at, &w);
	strict_ring_remember(s, buf, n, &w);
}

/* ---- completion ---- */

static void report_changed(struct strict_qp *s, uint16_t index, const uint8_t now[WQE_BLOCK], const char *when)
{
	const uint8_t *was = s->shadow + (size_t)strict_ring_slot_of(s, index) * WQE_BLOCK;
	struct strict_at at = {.qp = s->qp, .has_index = true, .index = index, .bytes = now, .n = WQE_BLOCK};
	uint32_t w[4];

	while (at.mark + 16 < WQE_BLOCK && !memcmp(was + at.mark, now + at.mark, 16))
		at.mark += 16;
	for (unsigned i = 0; i < 4; i++)
		w[i] = get_be32(was + at.mark + 4 * i);
	strict_report(RULE_WQE_CHANGED, &at,
		      "changed %s; at +%02zx it was %08x %08x %08x %08x when its doorbell was seen",
		      when, at.mark, w[0], w[1], w[2], w[3]);
}

static void strict_ring_compare(struct strict_qp *s, uint16_t index)
{
	uint32_t slot = strict_ring_slot_of(s, index);
	uint8_t now[WQE_BLOCK];

	if (!s->slot[slot].seen || s->slot[slot].index != index || s->slot[slot].done)
		return;
	guest_dma_begin();
	memcpy(now, strict_ring_block(s, slot), WQE_BLOCK);
	guest_dma_end();
	s->slot[slot].done = true;
	if (!memcmp(now, s->shadow + (size_t)slot * WQE_BLOCK, WQE_BLOCK))
		return;
	report_changed(s, index, now, "before it was complete");
	memcpy(s->shadow + (size_t)slot * WQE_BLOCK, now, WQE_BLOCK);
}

void strict_completed(struct hca_qp *qp, uint16_t index, unsigned blocks, bool cqe)
{
	struct strict_qp *s = qp->strict;

	if (!s || !s->slot)
		return;
	for (unsigned i = 0; i < blocks; i++)
		strict_ring_compare(s, (uint16_t)(index + i));
	if (cqe) {
		s->freed = (uint16_t)(index + blocks);
		s->told_overrun = false;
	}
}

/* ---- the producer ---- */

void strict_ring_producer(struct strict_qp *s, uint16_t pi, const char *source)
{
	uint16_t ahead = (uint16_t)(pi - s->qp->sq_ci), used = (uint16_t)(pi - s->freed);
	uint32_t size = strict_ring_blocks(s->qp);
	struct strict_at at = {.qp = s->qp, .mark = STRICT_NO_MARK};

	/* More than half the range: an older value. */
	if (s->told_overrun || ahead >= 0x8000)
		return;
	if (ahead <= size && used <= size)
		return;
	s->told_overrun = true;
	strict_report(RULE_SQ_OVERRUN, &at,
		      "the %s says %u: %u blocks beyond the last that a CQE gave back (%u), in a ring "
		      "of %u", source, pi, ahead > size ? ahead : used, s->freed, size);
}

/* ---- when nothing moves any more ---- */

/* The ring may be gone: its memory is the program's. */
static bool read_ring(const struct strict_qp *s, uint8_t *copy, size_t n)
{
	struct iovec to = {copy, n}, from = {s->qp->sq, n};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)n;
}

/* Does the WQE that has this block stand in the ring as it was picked up, by its index
 * field? With another index the program is preparing the next lap. */
static bool same_lap(const struct strict_qp *s, const uint8_t *ring, uint32_t slot)
{
	uint16_t index = (uint16_t)(s->slot[slot].index - s->slot[slot].off);
	uint32_t start = strict_ring_slot_of(s, index);

	return s->slot[slot].seen && s->slot[start].blocks && s->slot[start].index == index &&
	       (uint16_t)(get_be32(ring + (size_t)start * WQE_BLOCK) >> 8) == index;
}

static void check_late_changes(struct strict_qp *s, const uint8_t *ring)
{
	for (uint32_t i = 0; i < strict_ring_blocks(s->qp); i++) {
		const uint8_t *now = ring + (size_t)i * WQE_BLOCK;
		uint8_t *was = s->shadow + (size_t)i * WQE_BLOCK;

		if (!same_lap(s, ring, i) || !memcmp(now, was, WQE_BLOCK))
			continue;
		report_changed(s, s->slot[i].index, now,
			       s->slot[i].done ? "after the device had carried it out" : "before it was complete");
		memcpy(was, now, WQE_BLOCK);
	}
}

static void check_unposted(const struct strict_qp *s, const uint8_t *ring)
{
	uint16_t index = s->qp->sq_ci;
	const uint8_t *b = ring + (size_t)strict_ring_slot_of(s, index) * WQE_BLOCK;
	struct strict_at at = {.qp = s->qp, .has_index = true, .index = index, .bytes = b,
			       .n = WQE_BLOCK, .mark = STRICT_NO_MARK};

	/* Plain verbs have ibv_wr_abort, which leaves such WQEs behind. */
	if (s->qp->user_handle || s->qp->state != HCA_QPS_RTS || index != s->qp->sq_pi ||
	    (uint16_t)s->rec != index ||
	    (uint16_t)(get_be32(b) >> 8) != index || get_be32(b + 4) >> 8 != s->qp->qpn ||
	    !(b[7] & 0x3f))
		return;
	strict_report(RULE_WQE_UNPOSTED, &at,
		      "written, but record and doorbell end before it: off by one?");
}

void strict_ring_settled(struct strict_qp *s, bool end)
{
	size_t n = (size_t)strict_ring_blocks(s->qp) * WQE_BLOCK;
	uint8_t *ring;

	if (!s->slot)
		return;
	ring = malloc(n);
	if (ring && read_ring(s, ring, n)) {
		check_late_changes(s, ring);
		if (end)
			check_unposted(s, ring);
	}
	free(ring);
}
