/* SPDX-License-Identifier: BSD-3-Clause */
/* CREATE_QP. */

#include "softhca/faults/faults.h"
#include "softhca/firmware/prm.h"

enum { NO_DBR_EXT = 1 }; /* send_dbr_mode; 2 is for doorbells that the device itself rings */
enum { RQ_REGULAR = 0, RQ_SRQ = 1, RQ_ZERO_SIZE = 3 };

static int qp_rings(struct prm_cmd *cmd, const uint8_t *qpc, struct ctl_qp *c)
{
	struct hca_qp *qp = &c->qp;
	uint64_t offset = get_be64(cmd->in + CREATE_QP_WQ_UMEM_OFFSET);
	uint64_t rq_bytes = 0, sq_bytes = 0;
	uint8_t *wq;
	int rc;

	if (prm_get(qpc, QPC_RQ_TYPE) == RQ_REGULAR) {
		qp->rq_cnt = 1u << prm_get(qpc, QPC_LOG_RQ_SIZE);
		qp->rq_shift = 4 + prm_get(qpc, QPC_LOG_RQ_STRIDE);
		rq_bytes = (uint64_t)qp->rq_cnt << qp->rq_shift;
	}
	if (!prm_get(qpc, QPC_NO_SQ)) {
		qp->log_sq_size = prm_get(qpc, QPC_LOG_SQ_SIZE);
		sq_bytes = 64ull << qp->log_sq_size;
	}
	if (!rq_bytes && !sq_bytes)
		return 0;
	c->umem = umem_find(cmd->ctx, prm_get(cmd->in, CREATE_QP_WQ_UMEM_ID));
	if (!c->umem)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_UMEM_ID);
	/* page_offset counts 64-byte blocks into the first page. */
	if (offset > c->umem->umem.len)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_UMEM_RANGE);
	offset += 64ull * prm_get(qpc, QPC_PAGE_OFFSET);
	rc = prm_umem_queue(cmd, c->umem, offset, rq_bytes + sq_bytes, &wq);
	if (rc)
		return rc;
	/* The receive ring lies first. */
	qp->rq = rq_bytes ? wq : NULL;
	qp->sq = sq_bytes ? wq + rq_bytes : NULL;
	return 0;
}

static int qp_dbrec(struct prm_cmd *cmd, const uint8_t *qpc, struct ctl_qp *c)
{
	uint64_t dbr = get_be64(qpc + QPC_DBR_ADDR);
	uint32_t mode = prm_get(qpc, QPC_SEND_DBR_MODE);

	c->dbr_less = mode == NO_DBR_EXT;
	/* A receive ring is counted in the record. */
	if (mode > NO_DBR_EXT || (c->dbr_less && c->qp.rq))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_DBR_MODE);
	if (!uar_admits(c->qp.uar_page, c->dbr_less))
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_DBR_LESS);
	if (c->dbr_less)
		return 0;
	c->dbr_offset = dbr;
	return prm_umem_record(cmd, prm_get(qpc, QPC_DBR_UMEM_ID), dbr, &c->dbr_umem, &c->qp.dbrec);
}

static int qp_objects(struct prm_cmd *cmd, const uint8_t *qpc, struct ctl_qp *c)
{
	uint32_t rq_type = prm_get(qpc, QPC_RQ_TYPE);
	struct ctl_cq *scq = cq_find(cmd->ctx, prm_get(qpc, QPC_CQN_SND));
	struct ctl_cq *rcq = cq_find(cmd->ctx, prm_get(qpc, QPC_CQN_RCV));

	c->pd = pd_find(cmd->ctx, prm_get(qpc, QPC_PD));
	if (!c->pd)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_PD);
	if (!scq && !prm_get(qpc, QPC_NO_SQ))
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_SEND_CQ);
	/* Without a receive queue the receive CQ may be left out. */
	if (!rcq && (rq_type != RQ_ZERO_SIZE || prm_get(qpc, QPC_CQN_RCV)))
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_RECV_CQ);
	c->qp.scq = scq ? &scq->cq : &rcq->cq;
	c->qp.rcq = rcq ? &rcq->cq : &scq->cq;
	if (rq_type == RQ_SRQ) {
		struct ctl_srq *srq = srq_find(cmd->ctx, prm_get(qpc, QPC_SRQN));

		if (!srq)
			return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_SRQ);
		c->qp.srq = &srq->srq;
	}
	c->uar = uar_find(cmd->ctx, prm_get(qpc, QPC_UAR_PAGE));
	if (!c->uar)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_UAR_PAGE);
	c->qp.uar_page = prm_get(qpc, QPC_UAR_PAGE);
	c->counters = counters_find(cmd->ctx, prm_get(qpc, QPC_COUNTER_SET));
	if (!c->counters && prm_get(qpc, QPC_COUNTER_SET))
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_COUNTER_SET);
	return 0;
}

/* cs_req and cs_res: 1 or 0x11 for 32 bytes, 2 or 0x22 for 64. */
uint8_t prm_scatter_bytes(uint32_t mode, const struct hca_cq *cq)
{
	mode &= 3;
	return !mode || !cq ? 0 : mode == 2 && cq->cqe_size == 128 ? 64 : 32;
}

static int qp_fill(struct prm_cmd *cmd, struct ctl_qp *c)
{
	const uint8_t *qpc = cmd->in + QP_CMD_QPC;
	uint32_t rq_type = prm_get(qpc, QPC_RQ_TYPE);
	int rc;

	switch (prm_get(qpc, QPC_ST)) {
	case ST_RC:
		c->qp.type = HCA_QP_RC;
		break;
	case ST_UC:
		c->qp.type = HCA_QP_UC;
		break;
	case ST_UD:
		c->qp.type = HCA_QP_UD;
		break;
	case ST_DCI:
		c->qp.type = HCA_QP_DCI;
		break;
	default:
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_SERVICE_TYPE);
	}
	if ((rq_type != RQ_REGULAR && rq_type != RQ_SRQ && rq_type != RQ_ZERO_SIZE) ||
	    (rq_type == RQ_REGULAR && c->qp.type == HCA_QP_DCI)) /* it receives nothing */
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_RQ_TYPE);
	c->qp.user_index = prm_get(qpc, QPC_USER_INDEX);
	rc = qp_objects(cmd, qpc, c);
	if (!rc) {
		c->qp.cqe_req = prm_scatter_bytes(prm_get(qpc, QPC_CS_REQ), c->qp.scq);
		c->qp.cqe_res = prm_scatter_bytes(prm_get(qpc, QPC_CS_RES), c->qp.rcq);
		c->qp.cqe_be = true; /* which libmlx5, whose queue pairs are verbs', copies as it is, and UCX swaps */
	}
	if (!rc && prm_get(qpc, QPC_NO_SQ) && rq_type == RQ_ZERO_SIZE && !c->qp.scq)
		rc = prm_fail(cmd, PRM_BAD_RESOURCE, SYN_SEND_CQ);
	if (!rc)
		rc = qp_rings(cmd, qpc, c);
	if (!rc)
		rc = qp_dbrec(cmd, qpc, c);
	return rc;
}

int prm_activate_qp(struct prm_cmd *cmd, struct ctl_qp *c, int status)
{
	if (!status)
		return qp_activate(c) ? prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY) : 0;
	obj_free(&c->obj);
	return status;
}

int prm_create_qp(struct prm_cmd *cmd)
{
	uint32_t ece = prm_get(cmd->in, QP_CMD_ECE);
	struct ctl_qp *c;
	int rc;

	if (ece && !qp_ece_offered(ece))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_ECE);
	c = obj_new(cmd->ctx, OBJ_QP, sizeof(*c));
	if (!c)
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	c->obj.devx = true;
	rc = prm_activate_qp(cmd, c, qp_fill(cmd, c));
	if (rc)
		return rc;
	/* Programs that build WQEs themselves can learn where to begin: QUERY_QP. */
	c->qp.sq_first = (uint16_t)faults_first(FAULT_FIRST_WQE, 0);
	c->qp.sq_ci = c->qp.sq_pi = c->qp.sq_first;
	prm_set(cmd->out, CMD_OBJ_NUM, c->qp.qpn);
	prm_set(cmd->out, QP_CMD_OUT_ECE, qp_ece_offered(ece));
	cmd->obj = &c->obj;
	return 0;
}
