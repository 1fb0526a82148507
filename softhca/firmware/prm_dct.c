/* SPDX-License-Identifier: BSD-3-Clause */
/* DC targets by firmware command. A DCT is ready from the start, has no transitions
 * and is destroyed by its handle, whatever it is connected to. */
#include "softhca/firmware/prm.h"

enum { DCT_ACTIVE = 0, DCT_DRAINED = 2 };

static int dct_objects(struct prm_cmd *cmd, const uint8_t *dctc, struct ctl_qp *c)
{
	struct ctl_cq *cq = cq_find(cmd->ctx, prm_get(dctc, DCTC_CQN));
	struct ctl_srq *srq = srq_find(cmd->ctx, prm_get(dctc, DCTC_SRQN));

	c->pd = pd_find(cmd->ctx, prm_get(dctc, DCTC_PD));
	if (!c->pd)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_PD);
	if (!cq)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_RECV_CQ);
	if (!srq)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_SRQ);
	c->qp.scq = c->qp.rcq = &cq->cq;
	c->qp.srq = &srq->srq;
	c->qp.cqe_res = prm_scatter_bytes(prm_get(dctc, DCTC_CS_RES), c->qp.rcq);
	return 0;
}

static int dct_fill(struct prm_cmd *cmd, const uint8_t *dctc, struct ctl_qp *c)
{
	uint32_t mtu = prm_get(dctc, DCTC_MTU);
	unsigned device = c->obj.ctx->device;
	struct hca_qp *qp = &c->qp;
	uint8_t gid[16];

	if (prm_get(dctc, DCTC_PORT) > 1)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_PORT);
	if (mtu < 1 || mtu > mtu_code(port_mtu(device)))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_MTU);
	if (!port_gid(device, prm_get(dctc, DCTC_ADDR_INDEX), gid))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_GID_INDEX);
	if (prm_get(dctc, DCTC_PKEY_INDEX)) /* the table has one entry */
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_PKEY_INDEX);
	qp->type = HCA_QP_DCT;
	qp->user_index = prm_get(dctc, DCTC_USER_INDEX);
	qp->dc_key = get_be64(dctc + DCTC_ACCESS_KEY);
	qp->access = (prm_get(dctc, DCTC_RRE) ? HCA_REMOTE_READ : 0) |
		     (prm_get(dctc, DCTC_RWE) ? HCA_REMOTE_WRITE : 0) |
		     (prm_get(dctc, DCTC_RAE) ? HCA_REMOTE_ATOMIC : 0);
	qp->atomic_mode = (uint8_t)prm_get(dctc, DCTC_ATOMIC_MODE);
	qp->min_rnr_timer = (uint8_t)prm_get(dctc, DCTC_MIN_RNR_NAK);
	qp->max_dest_rd_atomic = HCA_MAX_RD_ATOMIC;
	qp->path.sgid_index = (uint8_t)prm_get(dctc, DCTC_ADDR_INDEX);
	qp->path.hop_limit = (uint8_t)prm_get(dctc, DCTC_HOP_LIMIT);
	qp->path.tclass = port_is_ib() ? (uint8_t)prm_get(dctc, DCTC_TCLASS)
				       : (uint8_t)(prm_get(dctc, DCTC_DSCP) << 2 |
						   prm_get(dctc, DCTC_ECN));
	qp->path.sl = (uint8_t)prm_get(dctc, DCTC_ETH_PRIO);
	c->flow_label = prm_get(dctc, DCTC_FLOW_LABEL);
	return dct_objects(cmd, dctc, c);
}

int prm_create_dct(struct prm_cmd *cmd)
{
	const uint8_t *dctc = cmd->in + DCT_CMD_DCTC;
	struct ctl_qp *c = obj_new(cmd->ctx, OBJ_QP, sizeof(*c));
	int rc;

	if (!c)
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	c->obj.devx = true;
	rc = prm_activate_qp(cmd, c, dct_fill(cmd, dctc, c));
	if (rc)
		return rc;
	c->qp.mtu = 128u << prm_get(dctc, DCTC_MTU);
	qp_set_state(c, HCA_QPS_RTR);
	prm_set(cmd->out, CMD_OBJ_NUM, c->qp.qpn);
	cmd->obj = &c->obj;
	return 0;
}

/* New requesters are no longer heard. Connections end by themselves, with the request that
 * they were made for, so there is nothing to wait for. */
int prm_drain_dct(struct prm_cmd *cmd)
{
	struct ctl_qp *c = (struct ctl_qp *)cmd->obj;

	c->qp.dc_drained = true;
	devx_event(cmd->obj, DEVX_DCT_DRAINED, c->qp.qpn);
	return 0;
}

int prm_query_dct(struct prm_cmd *cmd)
{
	const struct ctl_qp *c = (const struct ctl_qp *)cmd->obj;
	const struct hca_qp *qp = &c->qp;
	uint8_t *dctc = cmd->out + DCT_CMD_DCTC;

	prm_set(dctc, DCTC_STATE, qp->dc_drained ? DCT_DRAINED : DCT_ACTIVE);
	prm_set(dctc, DCTC_USER_INDEX, qp->user_index);
	prm_set(dctc, DCTC_CQN, qp->rcq->cqn);
	prm_set(dctc, DCTC_SRQN, qp->srq->srqn);
	prm_set(dctc, DCTC_PD, qp->pdn);
	prm_set(dctc, DCTC_ATOMIC_MODE, qp->atomic_mode);
	prm_set(dctc, DCTC_RRE, !!(qp->access & HCA_REMOTE_READ));
	prm_set(dctc, DCTC_RWE, !!(qp->access & HCA_REMOTE_WRITE));
	prm_set(dctc, DCTC_RAE, !!(qp->access & HCA_REMOTE_ATOMIC));
	prm_set(dctc, DCTC_MIN_RNR_NAK, qp->min_rnr_timer);
	prm_set(dctc, DCTC_FLOW_LABEL, c->flow_label);
	put_be64(dctc + DCTC_ACCESS_KEY, qp->dc_key);
	prm_set(dctc, DCTC_MTU, mtu_code(qp->mtu));
	prm_set(dctc, DCTC_PORT, c->port);
	prm_set(dctc, DCTC_PKEY_INDEX, qp->path.pkey_index);
	prm_set(dctc, DCTC_ADDR_INDEX, qp->path.sgid_index);
	prm_set(dctc, DCTC_HOP_LIMIT, qp->path.hop_limit);
	prm_set(dctc, DCTC_VIOLATIONS, qp->dc_violations);
	if (port_is_ib()) {
		prm_set(dctc, DCTC_TCLASS, qp->path.tclass);
	} else {
		prm_set(dctc, DCTC_ETH_PRIO, qp->path.sl);
		prm_set(dctc, DCTC_DSCP, qp->path.tclass >> 2);
		prm_set(dctc, DCTC_ECN, qp->path.tclass & 3);
	}
	return 0;
}
