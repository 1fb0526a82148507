/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing completion queue entries, overrun, and the event that an armed CQ
 * raises. CQE layout: PRM "CQE format"; offsets as in mlx5dv.h's mlx5_cqe64. */
#include <endian.h>

#include "softhca/engine/dp.h"
#include "softhca/memory/guest.h"
#include "softhca/tools/log.h"
#include "softhca/strict/strict.h"

enum {
	CQE_INLINE_32 = 4, /* in op_own */
	CQE_INLINE_64 = 8,
	CQE_TAIL = 56, /* be32 opcode and QPN, be16 counter, signature, op_own */
	CI_MASK = 0xffffff,
	ARM_SOLICITED = 1 << 24,
	EVENT_CQ_ERR = 0, /* the IBV_EVENT_ numbers */
	EVENT_QP_FATAL = 1,
};

static int32_t ci_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* True when the ring is full. A collapsed CQ has no ring to overrun. */
static bool cq_overrun(struct hca_cq *cq)
{
	uint32_t used;

	if (cq->overrun)
		return true;
	if (cq->overrun_ignore || cq->collapsed || !cq->dbrec)
		return false;
	/* The index only grows, and the poller writes its line all the time: as long as an old
	 * one leaves room it is not read again. Strict mode judges each. */
	used = (cq->pi - cq->consumed) & CI_MASK;
	if (used < 1u << cq->log_size && !strict_on)
		return false;
	if (__builtin_expect(dma_on, 0))
		dma_record_refresh(cq->dbrec);
	cq->consumed = guest_dbrec(&cq->dbrec[0]);
	used = (cq->pi - cq->consumed) & CI_MASK;
	if (used < 1u << cq->log_size)
		return false;
	cq->overrun = true;
	if (strict_on)
		strict_cq_full(cq, cq->consumed);
	hca_warn("CQ 0x%x overrun: %u entries of %u not consumed; its completions are lost",
		cq->cqn, used, 1u << cq->log_size);
	hca_async_cq_event(cq, EVENT_CQ_ERR);
	return true;
}

/* A QP whose completion is lost cannot go on: IBTA 11.6.3.2, "local work queue
 * catastrophic error". It goes to the error state at its next turn, not amid what
 * it is doing. */
static void completion_lost(uint32_t qpn)
{
	struct hca_qp *qp = engine_find_qp(qpn);

	if (!qp || qp->fatal)
		return;
	qp->fatal = true;
	hca_async_qp_event(qp, EVENT_QP_FATAL);
	engine_activate(qp);
}

/* As a device does: 64 bytes at once, behind all that was written before. */
static void place_on_gpu(struct hca_cq *cq, uint8_t *slot, const struct cqe *c,
			 const uint64_t w[8])
{
	const uint8_t *b = (const void *)w;
	uint32_t places;

	if (cq->cqe_size == 128) {
		if (c->inl_len)
			dma_post(slot, c->inl, c->inl_len, false);
		slot += 64;
	}
	/* Of an entry often no more than the end is another than what lies there. */
	places = cq->collapsed ? 1 : 1u << cq->log_size;
	if (!cq->alike || memcmp(cq->last, b, CQE_TAIL)) {
		memcpy(cq->last, b, CQE_TAIL);
		cq->alike = 0;
	}
	if (c->syndrome) /* ahead of those behind it */
		dma_post(slot, b, 64, false);
	else
		dma_post_cqe(slot, b, cq->alike >= places);
	if (cq->cqe_size == 64 && cq->alike < places)
		cq->alike++;
}

/* Composed in registers, word by word: bytes put together in memory and read again as words would
 * wait for each other. Big-endian. */
static inline uint64_t tail_word(const struct hca_cq *cq, const struct cqe *c)
{
	uint8_t own = (uint8_t)(c->type << 4 | ((cq->pi >> cq->log_size) & 1));

	if (c->inl_len)
		own |= cq->cqe_size == 64 ? CQE_INLINE_32 : CQE_INLINE_64;
	return htobe64((uint64_t)c->opcode << 56 | (uint64_t)c->qpn << 32 |
		       (uint64_t)c->wqe_counter << 16 | own);
}

static inline void cq_compose(const struct hca_cq *cq, const struct cqe *c, uint64_t w[8])
{
	memset(w, 0, CQE_TAIL);
	w[2] = htobe64(c->slid); /* bytes 22 and 23 */
	w[3] = htobe64((uint64_t)c->flags_rqpn << 32);
	w[4] = htobe64((uint64_t)c->user_index << 32 | (c->have_imm ? be32toh(c->imm) : 0));
	w[5] = htobe64(c->byte_cnt);
	if (c->type == CQE_REQ_ERR || c->type == CQE_RESP_ERR) {
		w[6] = htobe64((uint64_t)c->vendor << 8 | c->syndrome);
		STAT_INC(error_cqes);
	}
	w[7] = tail_word(cq, c);
	if (c->inl_len && cq->cqe_size == 64)
		memcpy(w, c->inl, c->inl_len);
}

/* In memory of the host. */
static inline void cq_place_host(struct hca_cq *cq, uint8_t *slot, const struct cqe *c, const uint64_t w[8])
{
	if (cq->cqe_size == 128) {
		if (c->inl_len) /* published with the upper half */
			memcpy(slot, c->inl, c->inl_len);
		slot += 64;
	}
	/* Word by word and relaxed: a poller of a collapsed entry may read while
	 * the entry is overwritten; only the last word says what it holds. */
#pragma GCC unroll 8
	for (unsigned i = 0; i < CQE_TAIL / 8; i++)
		__atomic_store_n((uint64_t *)(void *)slot + i, w[i], __ATOMIC_RELAXED);
	guest_publish64(slot + CQE_TAIL, w[7]);
}

static inline uint8_t *cq_slot_of(const struct hca_cq *cq, uint32_t pi)
{
	uint32_t mask = (1u << cq->log_size) - 1;

	return cq->buf + (size_t)(cq->collapsed ? 0 : pi & mask) * cq->cqe_size;
}

void cq_write(struct hca_cq *cq, const struct cqe *c)
{
	uint8_t *slot = cq_slot_of(cq, cq->pi);
	uint64_t w[8];

	if (cq_overrun(cq)) {
		completion_lost(c->qpn);
		return;
	}
	cq_compose(cq, c, w);
	if (dma_device(slot))
		place_on_gpu(cq, slot, c, w);
	else
		cq_place_host(cq, slot, c, w);
	cq->pi++;
	if (__builtin_expect(cq->waited, 0))
		cq_waited(cq);
	if (c->solicited || c->syndrome)
		cq->solicited_pi = cq->pi;
	STAT_INC(cqes);
	if (cq->events && c->type != CQE_RESIZE_CQ)
		cq_check_arm(cq);
}

void cq_write_done(struct hca_cq *cq, const struct hca_qp *qp, uint8_t opcode, uint16_t wqe_counter)
{
	const struct cqe c = { .type = CQE_REQ, .opcode = opcode, .wqe_counter = wqe_counter,
			       .qpn = qp->qpn, .user_index = qp->user_index };
	uint64_t *w = (void *)(cq_slot_of(cq, cq->pi) + cq->cqe_size - 64);

	if (cq->events || cq->waited || __builtin_expect(dma_on, 0) || cq_overrun(cq)) {
		cq_write(cq, &c);
		return;
	}
	/* As cq_place_host(). */
#pragma GCC unroll 8
	for (unsigned i = 0; i < CQE_TAIL / 8; i++)
		__atomic_store_n(w + i, i == 4 ? htobe64((uint64_t)c.user_index << 32) : 0,
				 __ATOMIC_RELAXED);
	guest_publish64((uint8_t *)(w + 7), tail_word(cq, &c));
	cq->pi++;
	STAT_INC(cqes);
	/* The next one will be asked for soon, and was not used for a whole turn of the ring. */
	__builtin_prefetch(cq_slot_of(cq, cq->pi), 1);
}

/* The reader moves what is not consumed to the new ring, one place on: the entry that
 * says "resized" is counted and takes no place there. */
bool dp_cq_resize(struct hca_cq *cq, uint8_t *buf, uint32_t log_size)
{
	struct cqe last = { .type = CQE_RESIZE_CQ };
	uint32_t used = cq->dbrec ? (cq->pi - guest_dbrec(&cq->dbrec[0])) & CI_MASK : 0;

	if (cq->overrun || used >= 1u << cq->log_size || used >= 1u << log_size)
		return false;
	cq_write(cq, &last);
	if (!used)
		cq->last_notified_pi = cq->pi; /* this entry is no completion */
	cq->buf = buf;
	cq->alike = 0;
	cq->log_size = log_size;
	return true;
}

/* The arm word is be32 sequence:2, command:4 at bit 24, consumer index:24. A
 * word that differs from the last one acted upon is a request; it is met when
 * there is a CQE beyond its consumer index that no event has announced yet. */
void cq_check_arm(struct hca_cq *cq)
{
	uint32_t word, pi;

	if (!cq->events || !cq->dbrec)
		return;
	word = guest_dbrec(&cq->dbrec[1]);
	if (word == cq->armed_word)
		return;
	pi = word & ARM_SOLICITED ? cq->solicited_pi : cq->pi;
	if (ci_diff(pi, word) <= 0 || ci_diff(pi, cq->last_notified_pi) <= 0)
		return;
	cq->armed_word = word;
	cq->last_notified_pi = cq->pi;
	hca_comp_event(cq);
}
