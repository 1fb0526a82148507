/* SPDX-License-Identifier: BSD-3-Clause */
/* RC requester, the end of a request: completions in order, the error that
 * waits its turn, and what happens to the rest when a QP fails (IBTA volume 1,
 * section 9.9.2 and 10.8.5). */
#include <stdlib.h>

#include "softhca/transport/rc.h"
#include "softhca/strict/strict.h"

static void req_free(struct rc_req *r)
{
	if (r->sge != r->sge_keep)
		free(r->sge);
	if (r->fetch)
		dma_fetch_end_of(r->fetch, r->inl);
	else if (r->inl != r->inl_keep)
		free(r->inl);
	r->fetch = 0;
	r->sge = NULL;
	r->inl = NULL;
}

void rc_req_reset(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	for (; rc->head != rc->tail; rc->head++)
		req_free(req_at(rc, rc->head));
	rc->head = rc->cur = rc->tail = 0;
	rc->cur_off = 0;
	rc->psn_pick = rc->psn_next = rc->psn_una = rc->psn_max = 0;
	rc->window = RC_WINDOW_START;
	rc->acked_in_window = rc->since_ackreq = 0;
	rc->lost = false;
	rc->rd_head = rc->rd_tail = 0;
	rc->deadline = rc->rnr_until = 0;
	rc->retries = rc->rnr_retries = rc->backoffs = rc->unread = 0;
	rc->stalled_by_error = rc->flushing = rc->implied_nak = rc->probing = rc->waits = false;
}

static void rc_complete_request(struct hca_qp *qp, const struct rc_req *r, uint8_t syndrome, uint8_t vendor)
{
	struct cqe c = {
		.type = syndrome ? CQE_REQ_ERR : CQE_REQ,
		.opcode = r->opcode,
		.syndrome = syndrome,
		.vendor = vendor,
		.wqe_counter = r->wqe_index,
		.qpn = qp->qpn,
		.user_index = qp->user_index,
		.byte_cnt = r->kind == REQ_READ || r->kind == REQ_ATOMIC ? r->len : 0,
		.inl = r->inl_keep,
		.inl_len = r->to_cqe && !syndrome ? r->len : 0,
	};

	if (!syndrome) {
		STAT_INC(wqes);
		STAT_ADD(wqe_bytes, r->len);
		STAT_INC(wqes_by_opcode[r->opcode]);
	}
	if (strict_on)
		strict_completed(qp, r->wqe_index, r->blocks, (r->signalled || syndrome) && qp->scq);
	if ((r->signalled || syndrome) && qp->scq)
		cq_write(qp->scq, &c);
}

static void rc_pop(struct hca_qp *qp, uint8_t syndrome, uint8_t vendor)
{
	struct hca_rc *rc = qp->rc;
	struct rc_req *r = req_at(rc, rc->head);

	rc_complete_request(qp, r, syndrome, vendor);
	req_free(r);
	if (rc->cur == rc->head) {
		rc->cur++;
		rc->cur_off = 0;
	}
	rc->head++;
}

/* The oldest request is finished when all its packets are acknowledged. */
static bool head_done(const struct hca_rc *rc, const struct rc_req *r)
{
	if (r->syndrome)
		return false;
	if (!r->npkts) /* nothing on the wire: carried out here, or still held back by a fence */
		return r->done;
	if (r->kind == REQ_ATOMIC && !r->done)
		return false;
	return psn_diff(rc->psn_una, psn_add(r->psn, r->npkts)) >= 0;
}

void rc_req_fail(struct hca_qp *qp, uint8_t syndrome, uint8_t vendor)
{
	struct hca_rc *rc = qp->rc;

	if (dma_on)
		dma_settle();
	/* Done, and only held back: the error is not theirs. */
	while (rc->head != rc->tail && head_done(rc, req_at(rc, rc->head)))
		rc_pop(qp, 0, 0);
	/* The state first: who sees an error CQE may query it. Where no peer
	 * waits for this queue, it alone stops (IBTA 10.3.1, SQE). */
	qp->state = rc_acked(qp) ? HCA_QPS_ERR : HCA_QPS_SQER;
	if (rc->head != rc->tail)
		rc_pop(qp, syndrome, vendor);
	if (rc_acked(qp)) {
		rc_to_error(qp);
		return;
	}
	rc->flushing = true;
	rc_req_flush(qp);
}

/* Completes what is finished, and the error that waits behind it. */
void rc_retire(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	while (rc->head != rc->tail) {
		struct rc_req *r = req_at(rc, rc->head);

		if (r->syndrome) {
			rc_req_fail(qp, r->syndrome, r->vendor);
			return;
		}
		if (!head_done(rc, r))
			return;
		if (faults_on && !faults_may_complete(qp, dp_now()))
			return;
		/* An answer is in place before its completion. Where that is in memory of a GPU, too,
		 * the order of the writes sees to it. */
		if (qp->scq && !dma_device(qp->scq->buf) && rc_placing(qp, rc->placed))
			return;
		rc_pop(qp, 0, 0);
	}
}

void rc_req_flush(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	rc->deadline = rc->rnr_until = 0;
	while (rc->head != rc->tail)
		rc_pop(qp, SYND_FLUSH, VEND_FLUSH);
	while (qp->sq && qp->sq_ci != qp->sq_pi) {
		struct rc_req r = { 0 };
		uint8_t buf[WQE_BLOCK];
		uint16_t left = (uint16_t)(qp->sq_pi - qp->sq_ci);
		struct wqe w;

		rc_fetch(qp, qp->sq_ci, WQE_BLOCK, buf);
		wqe_decode_ctrl(buf, &w);
		r.opcode = w.opcode;
		r.wqe_index = qp->sq_ci;
		r.blocks = w.blocks;
		rc_complete_request(qp, &r, SYND_FLUSH, VEND_FLUSH);
		qp->sq_ci = (uint16_t)(qp->sq_ci + (w.blocks < left ? w.blocks : left));
	}
}
