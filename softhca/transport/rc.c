/* SPDX-License-Identifier: BSD-3-Clause */
/* What both sides of a reliable connection share: life cycle of the state,
 * dispatch of packets, the error state. */
#include <errno.h>
#include <stdlib.h>

#include "softhca/engine/dp.h"
#include "softhca/tools/log.h"
#include "softhca/strict/strict.h"
#include "softhca/memory/guest.h"
#include "softhca/transport/rc.h"

enum { EVENT_LAST_WQE = 16 /* IBV_EVENT_QP_LAST_WQE_REACHED */ };

int rc_gather(uint32_t pdn, const struct wqe_sge *sge, unsigned nsge, uint64_t off,
	      uint64_t len, uint32_t access, struct iovec *iov)
{
	int n = 0;

	for (unsigned i = 0; i < nsge && len; i++) {
		uint64_t take = sge[i].len;
		uint8_t *va;

		if (off >= take) {
			off -= take;
			continue;
		}
		take -= off;
		if (take > len)
			take = len;
		if (sge[i].inlined)
			va = (uint8_t *)(uintptr_t)sge[i].addr + off;
		else
			va = mr_translate(sge[i].lkey, pdn, sge[i].addr + off, take, access);
		if (n == PKT_MAX_IOV)
			return -1;
		if (va) {
			iov[n].iov_base = va;
			iov[n++].iov_len = take;
		} else {
			int more = sge[i].inlined ? -1
						  : mkey_pieces(sge[i].lkey, pdn, sge[i].addr + off, take,
								access, iov + n, PKT_MAX_IOV - n);

			if (more < 0)
				return -1;
			n += more;
		}
		len -= take;
		off = 0;
	}
	return len ? -1 : n;
}

bool rc_by_address(const struct hca_qp *qp, uint32_t pdn, const struct wqe_sge *sge, unsigned nsge)
{
	unsigned i = 0;

	while (i < nsge && mr_translate(sge[i].lkey, pdn, sge[i].addr, sge[i].len, HCA_LOCAL_WRITE) ==
				   (uint8_t *)(uintptr_t)sge[i].addr)
		i++;
	if (strict_on && i < nsge)
		strict_cqe_data(qp, &sge[i]);
	return i == nsge;
}

static bool is_response(const struct packet *p)
{
	uint8_t op = packet_op(p);

	return op >= BTH_READ_RESP_FIRST && op <= BTH_ATOMIC_ACK;
}

void rc_receive(struct hca_qp *qp, const struct wire_dest *from, const struct packet *p,
		const struct iovec *pl, int npl)
{
	if ((p->pkey ^ PKEY_DEFAULT) & 0x7fff) { /* IBTA 10.9.3: bit 15 is membership */
		STAT_INC(pkey_violations);
		return;
	}
	if (packet_class(p) != rc_class(qp) || qp->state < HCA_QPS_RTR || qp->state > HCA_QPS_SQER) {
		STAT_INC(pkts_dropped);
		return;
	}
	if (__builtin_expect(dma_on, 0))
		dma_works_for(qp->qpn);
	switch (qp->type) {
	case HCA_QP_UC:
		uc_receive(qp, p, pl, npl);
		break;
	case HCA_QP_UD:
		ud_receive(qp, from, p, pl, npl);
		break;
	case HCA_QP_DCI:
		if (is_response(p) && qp->state == HCA_QPS_RTS)
			rc_req_response(qp, p, pl, npl);
		break;
	case HCA_QP_DCT:
		if (!is_response(p))
			dc_target_receive(qp, from, p, pl, npl);
		break;
	default:
		if (!is_response(p))
			rc_resp_request(qp, &qp->rc->rs, p, pl, npl);
		else if (qp->state == HCA_QPS_RTS)
			rc_req_response(qp, p, pl, npl);
	}
}

bool rc_run(struct hca_qp *qp, unsigned budget)
{
	bool more;

	if (__builtin_expect(dma_on, 0))
		dma_works_for(qp->qpn);
	if (qp->fatal && qp->state != HCA_QPS_ERR && qp->state != HCA_QPS_RST)
		rc_to_error(qp);
	if (qp->type == HCA_QP_DCT)
		return dc_target_run(qp, budget);
	more = rc_resp_run(qp, &qp->rc->rs, &budget);
	return rc_req_run(qp, &budget) || more;
}

void rc_to_error(struct hca_qp *qp)
{
	/* The state first: who sees an error CQE may query it. */
	qp->state = HCA_QPS_ERR;
	qp->rc->flushing = true;
	rc_order_settle(qp);
	doorbell_qp_changed(qp);
	rc_req_flush(qp);
	rc_resp_flush(qp, &qp->rc->rs);
	if (qp->type == HCA_QP_DCT)
		dc_target_reset(qp);
	recv_flush(qp);
	if (qp->srq && qp->type != HCA_QP_DCI) /* no more of its receives are taken by this QP */
		hca_async_qp_event(qp, EVENT_LAST_WQE);
}

static int rc_create(struct hca_qp *qp)
{
	struct hca_rc *rc = id_table_get(sizeof(*rc));

	if (!rc)
		return -ENOMEM;
	qp->rc = rc;
	if (qp->type == HCA_QP_DCT) {
		if (!dc_target_create(qp))
			return 0;
	} else {
		rc->dc.life = (uint8_t)(dp_clock() >> 20); /* another than the last owner's of this QPN */
		rc->reqs = calloc(RC_MAX_REQS, sizeof(*rc->reqs));
		if (rc->reqs)
			return 0;
	}
	dp_qp_destroy(qp);
	return -ENOMEM;
}

int dp_qp_create(struct hca_qp *qp)
{
	int ret = rc_create(qp);

	if (ret)
		return ret;
	rc_req_reset(qp);
	rc_resp_reset(&qp->rc->rs, 0);
	ret = dma_qp_attach(qp);
	if (!ret)
		ret = engine_add_qp(qp);
	if (ret)
		dp_qp_destroy(qp);
	else if (strict_on && !dma_qp_hidden(qp)) /* strict mode reads the program's ring */
		strict_qp_create(qp);
	return ret;
}

void dp_qp_destroy(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	if (qp->strict)
		strict_qp_destroy(qp);
	if (rc) {
		dma_qp_detach(qp); /* what is on its way arrives by the QP's number */
		rc_order_end(qp);
	}
	engine_remove_qp(qp);
	if (!rc)
		return;
	if (rc->reqs)
		rc_req_reset(qp);
	dc_target_destroy(qp);
	free(rc->reqs);
	id_table_put(rc, sizeof(*rc));
	qp->rc = NULL;
}

/* Annex A17.6.1: the source port spreads connections over paths. */
uint16_t rc_sport(uint32_t qpn, uint32_t dqpn)
{
	uint64_t v = (uint64_t)qpn * dqpn;

	v ^= v >> 20;
	v ^= v >> 40;
	return (uint16_t)(0xc000 | ((v ^ (v >> 14 & 0x3f)) & 0x3fff));
}

static void rc_connect_peer(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	if (qp->type == HCA_QP_UD || qp->type == HCA_QP_DCT)
		wire_listen(qp->device);
	if (qp->type == HCA_QP_UD || qp->type == HCA_QP_DCT || qp->type == HCA_QP_DCI)
		return;
	if (!wire_resolve(&qp->path.dgid, HCA_GIDS * qp->device + qp->path.sgid_index,
			  qp->dest_qpn, &rc->dest))
		hca_warn("QP 0x%x: no route to the GID of QP 0x%x from GID index %u: not the same "
			 "IP version, or no socket there", qp->qpn, qp->dest_qpn,
			 qp->path.sgid_index);
	rc->dest.tclass = qp->path.tclass;
	rc->dest.sport = qp->path.udp_sport ? qp->path.udp_sport
					    : rc_sport(qp->qpn, qp->dest_qpn);
	rc->rs.dest = rc->dest;
	rc->rs.dest_qpn = qp->dest_qpn;
}

static uint32_t first_psn(uint32_t psn)
{
	return faults_first(FAULT_FIRST_PSN, psn) & PSN_MASK;
}

void dp_qp_modified(struct hca_qp *qp, enum hca_qp_state from)
{
	struct hca_rc *rc = qp->rc;

	if (!rc)
		return;
	doorbell_qp_changed(qp);
	if (qp->strict)
		strict_qp_modified(qp, from);
	if (qp->mtu < 256 || qp->mtu > PKT_MAX_MTU)
		qp->mtu = 256;
	switch (qp->state) {
	case HCA_QPS_RST:
		doorbell_forget(qp);
		rc_order_end(qp);
		rc_req_reset(qp);
		rc_resp_reset(&rc->rs, 0);
		if (qp->type == HCA_QP_DCT)
			dc_target_reset(qp);
		qp->sq_ci = qp->sq_pi = qp->sq_first;
		dma_qp_reset(qp);
		if (qp->scq) /* the program may prepare the entry anew */
			qp->scq->alike = 0;
		qp->rq_ci = 0;
		qp->fatal = false;
		break;
	case HCA_QPS_RTR:
		if (from != HCA_QPS_RTR)
			rc_resp_reset(&rc->rs, first_psn(qp->rq_psn));
		rc_connect_peer(qp);
		break;
	case HCA_QPS_RTS:
		if (from == HCA_QPS_SQER) {
			rc->flushing = rc->stalled_by_error = false;
			rc->psn_pick = rc->psn_next; /* a message may not have left whole */
		} else if (from != HCA_QPS_RTS) {
			rc_req_reset(qp);
			rc->psn_pick = rc->psn_next = first_psn(qp->sq_psn);
			rc->psn_una = rc->psn_max = rc->psn_next;
			rc->dc.life++;
			dma_qp_reset(qp);
			doorbell_qp_ready(qp);
		}
		rc_connect_peer(qp);
		if (faults_on && from != HCA_QPS_RTS)
			faults_qp_ready(qp);
		engine_activate(qp);
		break;
	case HCA_QPS_ERR:
		if (from != HCA_QPS_ERR)
			rc_to_error(qp);
		break;
	default:
		break;
	}
}
