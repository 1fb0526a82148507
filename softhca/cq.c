/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing completion queue entries, overrun, and the event that an armed CQ
 * raises. CQE layout: PRM "CQE format"; offsets as in mlx5dv.h's mlx5_cqe64. */
#include <endian.h>

#include "softhca/dp.h"
#include "softhca/guest.h"
#include "softhca/log.h"
#include "softhca/strict.h"

enum {
	CQE_SLID = 22,
	CQE_FLAGS_RQPN = 24,
	CQE_SRQN_UIDX = 32,
	CQE_IMM = 36,
	CQE_BYTE_CNT = 44,
	CQE_VENDOR = 54,
	CQE_SYNDROME = 55,
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
static bool overrun(struct hca_cq *cq)
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
			 const uint8_t b[64])
{
	if (cq->cqe_size == 128) {
		if (c->inl_len)
			dma_post(slot, c->inl, c->inl_len, false);
		slot += 64;
	}
	/* Of a collapsed entry often no more than the end is another than before. */
	if (cq->shown && !memcmp(cq->last, b, CQE_TAIL)) {
		dma_post(slot + CQE_TAIL, b + CQE_TAIL, 8, false);
		return;
	}
	memcpy(cq->last, b, CQE_TAIL);
	cq->shown = cq->collapsed && cq->cqe_size == 64;
	dma_post(slot, b, 64, false);
}

void cq_write(struct hca_cq *cq, const struct cqe *c)
{
	uint32_t n = 1u << cq->log_size;
	uint8_t owner = (cq->pi >> cq->log_size) & 1;
	uint8_t b[64] = { 0 };
	uint8_t *slot;
	uint64_t tail;

	if (overrun(cq)) {
		completion_lost(c->qpn);
		return;
	}
	put_be16(b + CQE_SLID, c->slid);
	put_be32(b + CQE_FLAGS_RQPN, c->flags_rqpn);
	put_be32(b + CQE_SRQN_UIDX, c->user_index);
	put_be32(b + CQE_BYTE_CNT, c->byte_cnt);
	if (c->have_imm)
		memcpy(b + CQE_IMM, &c->imm, 4);
	if (c->type == CQE_REQ_ERR || c->type == CQE_RESP_ERR) {
		b[CQE_VENDOR] = c->vendor;
		b[CQE_SYNDROME] = c->syndrome;
		STAT_INC(error_cqes);
	}
	if (c->inl_len && cq->cqe_size == 64)
		memcpy(b, c->inl, c->inl_len);
	put_be32(b + CQE_TAIL, (uint32_t)c->opcode << 24 | c->qpn);
	put_be16(b + CQE_TAIL + 4, c->wqe_counter);
	b[CQE_TAIL + 7] = (uint8_t)(c->type << 4 | owner);
	if (c->inl_len)
		b[CQE_TAIL + 7] |= cq->cqe_size == 64 ? CQE_INLINE_32 : CQE_INLINE_64;
	memcpy(&tail, b + CQE_TAIL, 8);

	slot = cq->buf + (size_t)(cq->collapsed ? 0 : cq->pi & (n - 1)) * cq->cqe_size;
	if (dma_device(slot)) {
		place_on_gpu(cq, slot, c, b);
	} else {
		if (cq->cqe_size == 128) {
			if (c->inl_len) /* published with the upper half */
				memcpy(slot, c->inl, c->inl_len);
			slot += 64;
		}
		/* Word by word and relaxed: a poller of a collapsed entry may read while
		 * the entry is overwritten; only the last word says what it holds. */
		for (unsigned i = 0; i < CQE_TAIL; i += 8) {
			uint64_t v;

			memcpy(&v, b + i, 8);
			__atomic_store_n((uint64_t *)(void *)(slot + i), v, __ATOMIC_RELAXED);
		}
		guest_publish64(slot + CQE_TAIL, tail);
	}
	cq->pi++;
	if (c->solicited || c->syndrome)
		cq->solicited_pi = cq->pi;
	STAT_INC(cqes);
	if (cq->channel && c->type != CQE_RESIZE_CQ)
		cq_check_arm(cq);
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
	cq->log_size = log_size;
	cq->consumed = cq->pi - used - 1;
	return true;
}

/* The arm word is be32 sequence:2, command:4 at bit 24, consumer index:24. A
 * word that differs from the last one acted upon is a request; it is met when
 * there is a CQE beyond its consumer index that no event has announced yet. */
void cq_check_arm(struct hca_cq *cq)
{
	uint32_t word, pi;

	if (!cq->channel || !cq->dbrec)
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
