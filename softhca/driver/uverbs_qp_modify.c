/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_modify_qp and ibv_query_qp. Which attributes a transition needs and
 * which it allows: InfiniBand Architecture Specification 11.2.5.2, table
 * "QP State Transition Properties". */
#include <errno.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "softhca/driver/uverbs.h"
#include "softhca/tools/options.h"

enum { /* attr_mask: the IBV_QP_ values */
	M_STATE = 1 << 0,
	M_CUR_STATE = 1 << 1,
	M_ACCESS = 1 << 3,
	M_PKEY = 1 << 4,
	M_PORT = 1 << 5,
	M_QKEY = 1 << 6,
	M_AV = 1 << 7,
	M_MTU = 1 << 8,
	M_TIMEOUT = 1 << 9,
	M_RETRY = 1 << 10,
	M_RNR_RETRY = 1 << 11,
	M_RQ_PSN = 1 << 12,
	M_RD_ATOMIC = 1 << 13,
	M_ALT_PATH = 1 << 14,
	M_MIN_RNR = 1 << 15,
	M_SQ_PSN = 1 << 16,
	M_DEST_RD_ATOMIC = 1 << 17,
	M_MIG_STATE = 1 << 18,
	M_DEST_QPN = 1 << 20,
};

static const struct transition {
	enum hca_qp_state from, to;
	uint32_t need, may;
} rc_table[] = {
	{HCA_QPS_RST, HCA_QPS_INIT, M_PKEY | M_PORT | M_ACCESS, 0},
	{HCA_QPS_INIT, HCA_QPS_INIT, 0, M_PKEY | M_PORT | M_ACCESS},
	{HCA_QPS_INIT, HCA_QPS_RTR,
	 M_AV | M_MTU | M_DEST_QPN | M_RQ_PSN | M_DEST_RD_ATOMIC | M_MIN_RNR, M_ACCESS | M_PKEY},
	{HCA_QPS_RTR, HCA_QPS_RTS, M_TIMEOUT | M_RETRY | M_RNR_RETRY | M_SQ_PSN | M_RD_ATOMIC,
	 M_CUR_STATE | M_ACCESS | M_MIN_RNR | M_MIG_STATE},
	{HCA_QPS_RTS, HCA_QPS_RTS, 0, M_CUR_STATE | M_ACCESS | M_MIN_RNR | M_MIG_STATE},
	{0},
}, uc_table[] = {
	{HCA_QPS_RST, HCA_QPS_INIT, M_PKEY | M_PORT | M_ACCESS, 0},
	{HCA_QPS_INIT, HCA_QPS_INIT, 0, M_PKEY | M_PORT | M_ACCESS},
	{HCA_QPS_INIT, HCA_QPS_RTR, M_AV | M_MTU | M_DEST_QPN | M_RQ_PSN, M_ACCESS | M_PKEY},
	{HCA_QPS_RTR, HCA_QPS_RTS, M_SQ_PSN, M_CUR_STATE | M_ACCESS | M_MIG_STATE},
	{HCA_QPS_RTS, HCA_QPS_RTS, 0, M_CUR_STATE | M_ACCESS | M_MIG_STATE},
	{HCA_QPS_SQER, HCA_QPS_RTS, 0, M_CUR_STATE | M_ACCESS},
	{0},
}, dci_table[] = { /* as the kernel driver has it: modify_dci_qp_is_ok() */
	{HCA_QPS_RST, HCA_QPS_INIT, M_PKEY | M_PORT, 0},
	{HCA_QPS_INIT, HCA_QPS_INIT, 0, M_PKEY | M_PORT},
	{HCA_QPS_INIT, HCA_QPS_RTR, M_MTU, M_PKEY | M_AV},
	{HCA_QPS_RTR, HCA_QPS_RTS, M_TIMEOUT | M_RETRY | M_RNR_RETRY | M_SQ_PSN | M_RD_ATOMIC,
	 M_MIN_RNR},
	{HCA_QPS_RTS, HCA_QPS_RTS, 0, M_MIN_RNR},
	{0},
}, dct_table[] = { /* mlx5_ib_modify_dct(); nothing else until it is destroyed */
	{HCA_QPS_RST, HCA_QPS_INIT, M_PKEY | M_PORT | M_ACCESS, 0},
	{HCA_QPS_INIT, HCA_QPS_RTR, M_AV | M_MTU | M_MIN_RNR, 0},
	{0},
}, ud_table[] = {
	{HCA_QPS_RST, HCA_QPS_INIT, M_PKEY | M_PORT | M_QKEY, 0},
	{HCA_QPS_INIT, HCA_QPS_INIT, 0, M_PKEY | M_PORT | M_QKEY},
	{HCA_QPS_INIT, HCA_QPS_RTR, 0, M_PKEY | M_QKEY},
	{HCA_QPS_RTR, HCA_QPS_RTS, M_SQ_PSN, M_CUR_STATE | M_QKEY},
	{HCA_QPS_RTS, HCA_QPS_RTS, 0, M_CUR_STATE | M_QKEY},
	{HCA_QPS_SQER, HCA_QPS_RTS, 0, M_CUR_STATE | M_QKEY},
	{0},
};

static const struct transition *const transitions[] = {
	[HCA_QP_RC] = rc_table,
	[HCA_QP_UC] = uc_table,
	[HCA_QP_UD] = ud_table,
	[HCA_QP_DCI] = dci_table,
	[HCA_QP_DCT] = dct_table,
};

/* Verbs number two states otherwise than the PRM; SQD is not modelled. */
static uint8_t verbs_state(enum hca_qp_state state)
{
	return state == HCA_QPS_SQER ? 5 : (uint8_t)state;
}

static int transition_check(const struct hca_qp *qp, uint32_t to, uint32_t mask)
{
	mask &= ~(uint32_t)M_STATE;
	if (qp->type != HCA_QP_DCT && (to == HCA_QPS_ERR || to == HCA_QPS_RST))
		return mask & ~(uint32_t)M_CUR_STATE ? EINVAL : 0;
	for (const struct transition *t = transitions[qp->type]; t->to; t++) {
		if (t->from != qp->state || (uint32_t)t->to != to)
			continue;
		return (mask & t->need) != t->need || mask & ~(t->need | t->may) ? EINVAL : 0;
	}
	return EINVAL;
}

static int values_check(const struct ib_uverbs_modify_qp *c, uint32_t mask, unsigned device)
{
	uint8_t gid[16];

	if (mask & M_PORT && c->port_num != 1)
		return EINVAL;
	if (mask & M_PKEY && c->pkey_index != 0)
		return EINVAL;
	if (mask & M_MTU && (c->path_mtu < 1 || c->path_mtu > mtu_code(port_mtu(device))))
		return EINVAL;
	if ((mask & M_RD_ATOMIC && c->max_rd_atomic > HCA_MAX_RD_ATOMIC) ||
	    (mask & M_DEST_RD_ATOMIC && c->max_dest_rd_atomic > HCA_MAX_RD_ATOMIC))
		return EINVAL;
	if ((mask & M_TIMEOUT && c->timeout > 31) || (mask & M_RETRY && c->retry_cnt > 7) ||
	    (mask & M_RNR_RETRY && c->rnr_retry > 7) || (mask & M_MIN_RNR && c->min_rnr_timer > 31))
		return EINVAL;
	if (!(mask & M_AV))
		return 0;
	if (c->dest.port_num != 1)
		return EINVAL;
	/* RoCE addresses are GIDs. */
	if (!port_is_ib() && !c->dest.is_global)
		return EINVAL;
	return c->dest.is_global && !port_gid(device, c->dest.sgid_index, gid) ? EINVAL : 0;
}

/* RoCEv2 source port from the flow label: 14 bits over 0xC000 (IBTA Annex A17). */
static uint16_t sport_of_flow_label(uint32_t label)
{
	label &= 0xfffff;
	return label ? (uint16_t)(((label ^ label >> 14) & 0x3fff) | 0xc000) : 0;
}

static void uverbs_qp_apply_path(struct ctl_qp *qp, const struct ib_uverbs_qp_dest *d)
{
	struct hca_path *p = &qp->qp.path;

	qp->is_global = d->is_global;
	qp->flow_label = d->flow_label;
	path_set_gid(p, d->dgid);
	gid_to_mac(d->dgid, p->dmac);
	p->dlid = d->dlid;
	p->sgid_index = d->sgid_index;
	p->tclass = d->traffic_class;
	p->hop_limit = d->hop_limit;
	p->sl = d->sl;
	p->udp_sport = sport_of_flow_label(d->flow_label);
}

/* The kernel driver grants no READs and atomics while there are no responder resources for them:
 * to_mlx5_access_flags(). A DCT has them all. */
static void uverbs_qp_grant(struct ctl_qp *c)
{
	struct hca_qp *qp = &c->qp;

	qp->access = c->asked & (HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC);
	if (!qp->max_dest_rd_atomic)
		qp->access &= HCA_REMOTE_WRITE;
	qp->atomic_mode = qp->access & HCA_REMOTE_ATOMIC ? HCA_ATOMIC_UP_TO_8B : HCA_ATOMIC_NONE;
}

static void uverbs_qp_apply(struct ctl_qp *c, const struct ib_uverbs_modify_qp *a, uint32_t mask)
{
	struct hca_qp *qp = &c->qp;

	if (mask & M_PORT)
		c->port = a->port_num;
	if (mask & M_PKEY)
		qp->path.pkey_index = a->pkey_index;
	if (mask & M_ACCESS)
		c->asked = (uint8_t)a->qp_access_flags;
	if (mask & M_AV)
		uverbs_qp_apply_path(c, &a->dest);
	if (mask & M_MTU)
		qp->mtu = 128u << a->path_mtu;
	if (mask & M_DEST_QPN)
		qp->dest_qpn = a->dest_qp_num & 0xffffff;
	if (mask & M_QKEY)
		qp->qkey = a->qkey;
	if (mask & M_RQ_PSN)
		qp->rq_psn = a->rq_psn & 0xffffff;
	if (mask & M_SQ_PSN)
		qp->sq_psn = a->sq_psn & 0xffffff;
	if (mask & M_DEST_RD_ATOMIC)
		qp->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & M_RD_ATOMIC) /* the kernel driver leaves log_sra_max at 0 for none: that is one */
		qp->max_rd_atomic = a->max_rd_atomic ? a->max_rd_atomic : 1;
	if (mask & M_MIN_RNR)
		qp->min_rnr_timer = a->min_rnr_timer;
	if (mask & M_TIMEOUT)
		qp->ack_timeout = a->timeout;
	if (mask & M_RETRY)
		qp->retry_cnt = a->retry_cnt;
	if (mask & M_RNR_RETRY)
		qp->rnr_retry = a->rnr_retry;
	if (mask & (M_ACCESS | M_DEST_RD_ATOMIC))
		uverbs_qp_grant(c);
}

/* ece: the options that libmlx5 was told to ask for; the kernel driver keeps them from a device that has none. */
static int uverbs_qp_modify(struct uverbs_call *call, const struct ib_uverbs_modify_qp *cmd, uint32_t ece)
{
	struct ctl_qp *qp = obj_get(call->ctx, cmd->qp_handle, OBJ_QP);
	uint32_t mask = cmd->attr_mask;
	uint32_t to;
	int rc;

	if (!qp || qp->obj.devx)
		return EINVAL;
	if (mask & M_ALT_PATH)
		return EOPNOTSUPP;
	if (mask & M_CUR_STATE && cmd->cur_qp_state != verbs_state(qp->qp.state))
		return EINVAL;
	to = mask & M_STATE ? cmd->qp_state : (uint32_t)qp->qp.state;
	if (mask & M_STATE && (to == 4 || to == 5))
		return EINVAL; /* SQD; nobody moves a QP to SQE */
	rc = transition_check(&qp->qp, to, mask);
	if (!rc)
		rc = values_check(cmd, mask, call->ctx->device);
	if (rc)
		return rc;
	if (!qp_ece_ask(qp, hca_options()->device.ece ? ece : 0))
		return EINVAL;
	uverbs_qp_apply(qp, cmd, mask);
	qp_set_state(qp, (enum hca_qp_state)to);
	return 0;
}

/* libmlx5 learns it from the transition to RTR. */
static uint32_t dct_number(const struct ctl_qp *qp)
{
	return qp->qp.type == HCA_QP_DCT && qp->qp.state == HCA_QPS_RTR ? qp->qp.qpn : 0;
}

int uw_modify_qp(struct uverbs_call *call)
{
	struct ib_uverbs_modify_qp cmd;

	ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	return uverbs_qp_modify(call, &cmd, 0);
}

int uw_ex_modify_qp(struct uverbs_call *call)
{
	struct mlx5_ib_modify_qp_resp uhw = {.response_length = sizeof(uhw)};
	struct ib_uverbs_ex_modify_qp_resp resp = {.response_length = sizeof(resp)};
	struct ib_uverbs_ex_modify_qp cmd;
	struct mlx5_ib_modify_qp uhw_in;
	const struct ctl_qp *qp;
	int rc;

	ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	ua_in(call, UVERBS_ATTR_UHW_IN, &uhw_in, sizeof(uhw_in));
	if (cmd.base.attr_mask & ~((1u << 21) - 1))
		return EOPNOTSUPP; /* rate limits */
	rc = uverbs_qp_modify(call, &cmd.base, uhw_in.ece_options);
	if (rc)
		return rc;
	qp = obj_get(call->ctx, cmd.base.qp_handle, OBJ_QP);
	uhw.dctn = dct_number(qp);
	uhw.ece_options = qp->ece;
	ua_out(call, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

int uw_query_qp(struct uverbs_call *call)
{
	struct ib_uverbs_query_qp cmd;
	struct ib_uverbs_query_qp_resp r = {0};
	struct ctl_qp *c;
	struct hca_qp *qp;

	ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	c = obj_get(call->ctx, cmd.qp_handle, OBJ_QP);
	if (!c || c->obj.devx)
		return EINVAL;
	qp = &c->qp;
	if (qp->type == HCA_QP_DCT && qp->state != HCA_QPS_RTR)
		return EINVAL; /* there is nothing to ask yet */
	memcpy(r.dest.dgid, &qp->path.dgid, 16);
	r.dest.flow_label = c->flow_label;
	r.dest.dlid = qp->path.dlid;
	r.dest.sgid_index = qp->path.sgid_index;
	r.dest.hop_limit = qp->path.hop_limit;
	r.dest.traffic_class = qp->path.tclass;
	r.dest.sl = qp->path.sl;
	r.dest.is_global = c->is_global;
	r.dest.port_num = r.port_num = c->port;
	r.max_send_wr = c->cap.max_send_wr;
	r.max_send_sge = c->cap.max_send_sge;
	/* What the ring holds, not what was asked for; libmlx5 fills in its send queue itself. */
	r.max_recv_wr = qp->rq_cnt;
	r.max_recv_sge = qp->rq_cnt ? (1u << qp->rq_shift) / 16 : 0;
	r.max_inline_data = c->cap.max_inline_data;
	r.rq_psn = qp->rq_psn;
	r.sq_psn = qp->sq_psn;
	r.dest_qp_num = qp->type == HCA_QP_DCI ? 0 : qp->dest_qpn;
	r.qp_access_flags = qp->access;
	r.pkey_index = qp->path.pkey_index;
	r.qp_state = r.cur_qp_state = verbs_state(qp->state);
	r.qkey = qp->qkey;
	r.path_mtu = (uint8_t)mtu_code(qp->mtu);
	r.max_rd_atomic = qp->max_rd_atomic;
	r.max_dest_rd_atomic = qp->max_dest_rd_atomic;
	r.min_rnr_timer = qp->min_rnr_timer;
	r.timeout = qp->ack_timeout;
	r.retry_cnt = qp->retry_cnt;
	r.rnr_retry = qp->rnr_retry;
	r.sq_sig_all = qp->sig_all;
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &r, sizeof(r));
}
