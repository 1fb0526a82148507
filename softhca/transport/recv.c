/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive work requests. Ring entries of an RQ are used in turn; those of an
 * SRQ are a linked list through their first 16 bytes, or used in turn as well. */

#include "softhca/memory/guest.h"
#include "softhca/tools/log.h"
#include "softhca/transport/rc.h"
#include "softhca/strict/strict.h"

enum { EVENT_SRQ_LIMIT = 15 /* IBV_EVENT_SRQ_LIMIT_REACHED */ };

/* IBTA 10.2.9.1: the event comes once for each time that the limit is set, when
 * a receive is taken. */
static void check_limit(struct hca_srq *srq)
{
	if (!srq->limit || (uint16_t)(guest_dbrec(srq->dbrec) - srq->consumed) >= srq->limit)
		return;
	srq->limit = 0;
	hca_async_srq_event(srq, EVENT_SRQ_LIMIT);
}

/* Strict mode looks at the record behind the look that found a receive, here and in take_rq(): so it
 * has covered what is taken. */
static bool take_srq(struct hca_qp *qp, struct hca_recv *r)
{
	struct hca_srq *srq = qp->srq;
	const uint8_t *wqe;

	/* Acquire in guest_dbrec: the WQEs it counts are seen whole. */
	if (!srq->dbrec || (uint16_t)(guest_dbrec(srq->dbrec) - srq->consumed) == 0)
		return false;
	if (strict_on)
		strict_recv_look(qp);
	if (srq->head >= srq->wqe_cnt) {
		hca_warn("SRQ 0x%x: link to WQE %u of %u", srq->srqn, srq->head, srq->wqe_cnt);
		return false;
	}
	wqe = srq->buf + ((size_t)srq->head << srq->wqe_shift);
	r->index = (uint16_t)srq->head;
	r->nsge = rwqe_decode(wqe + 16, ((size_t)1 << srq->wqe_shift) - 16, r->sge, WQE_MAX_SGE);
	srq->head = srq->cyclic ? (srq->head + 1) & (srq->wqe_cnt - 1) : get_be16(wqe + 2);
	srq->consumed++;
	check_limit(srq);
	return true;
}

static bool take_rq(struct hca_qp *qp, struct hca_recv *r)
{
	const uint8_t *wqe;

	if (!qp->rq || !qp->rq_cnt || !qp->dbrec ||
	    (uint16_t)(guest_dbrec(&qp->dbrec[0]) - qp->rq_ci) == 0)
		return false;
	if (strict_on)
		strict_recv_look(qp);
	wqe = qp->rq + ((size_t)(qp->rq_ci % qp->rq_cnt) << qp->rq_shift);
	r->index = qp->rq_ci;
	r->nsge = rwqe_decode(wqe, (size_t)1 << qp->rq_shift, r->sge, WQE_MAX_SGE);
	qp->rq_ci++;
	return true;
}

bool recv_take(struct hca_qp *qp, struct hca_recv *r)
{
	if (!(qp->srq ? take_srq(qp, r) : take_rq(qp, r)))
		return false;
	if (strict_on)
		strict_recv_taken(qp, r->index);
	r->off = r->inl_len = 0;
	r->room = 0;
	for (unsigned i = 0; i < r->nsge; i++)
		r->room += r->sge[i].len;
	return true;
}

/* Keys in a shared queue are of its own PD. */
static uint32_t recv_pdn(const struct hca_qp *qp)
{
	return qp->srq ? qp->srq->pdn : qp->pdn;
}

uint8_t recv_place(struct hca_qp *qp, struct hca_recv *r, const struct packet *p,
		   const struct iovec *pl, int npl, uint32_t len)
{
	struct iovec iov[PKT_MAX_IOV];
	int n;

	if (r->off + (uint64_t)len > r->room || r->off + len > 1u << HCA_LOG_MAX_MSG)
		return SYND_LOCAL_LENGTH;
	n = rc_gather(recv_pdn(qp), r->sge, r->nsge, r->off, len, HCA_LOCAL_WRITE, iov);
	if (n < 0)
		return SYND_LOCAL_PROT;
	if (!payload_copy(p, iov, n, pl, npl))
		return RECV_UNREAD;
	r->off += len;
	return 0;
}

bool recv_to_cqe(struct hca_qp *qp, struct hca_recv *r, const struct iovec *pl, int npl,
		 uint32_t len)
{
	struct iovec iov = { r->inl, len };

	if (!len || len > qp->cqe_res || len > r->room ||
	    !rc_by_address(qp, recv_pdn(qp), r->sge, r->nsge))
		return false;
	iov_copy(&iov, 1, pl, npl);
	r->off = r->inl_len = len;
	return true;
}

void recv_cqe(struct hca_qp *qp, const struct hca_recv *r, struct cqe c)
{
	if (strict_on)
		strict_recv_completed(qp, r->index);
	c.wqe_counter = r->index;
	c.qpn = qp->qpn;
	/* A basic SRQ has no index of its own: the provider finds it through the QP. */
	c.user_index = qp->user_index;
	c.byte_cnt = r->off;
	c.inl = r->inl;
	c.inl_len = c.syndrome ? 0 : r->inl_len;
	if (__builtin_expect(dma_on, 0) && qp->rcq && !dma_device(qp->rcq->buf))
		dma_settle(); /* what it completes is in place */
	if (qp->rcq)
		cq_write(qp->rcq, &c);
}

void recv_done(struct hca_qp *qp, const struct hca_recv *r, const struct packet *p,
	       enum cqe_type type)
{
	struct cqe c = {
		.type = type,
		.have_imm = type != CQE_RESP_SEND,
		.imm = p->imm,
		.solicited = p->solicited,
	};

	recv_cqe(qp, r, c);
}

void recv_error(struct hca_qp *qp, const struct hca_recv *r, uint8_t syndrome, uint8_t vendor)
{
	struct cqe c = { .type = CQE_RESP_ERR, .syndrome = syndrome, .vendor = vendor };

	recv_cqe(qp, r, c);
}

void recv_flush(struct hca_qp *qp)
{
	struct hca_recv r = { 0 };

	if (qp->srq)
		return; /* what is posted there belongs to the SRQ */
	while (take_rq(qp, &r))
		recv_error(qp, &r, SYND_FLUSH, VEND_FLUSH);
}
