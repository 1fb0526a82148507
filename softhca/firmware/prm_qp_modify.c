/* SPDX-License-Identifier: BSD-3-Clause */
/* QP transitions by firmware command, and QUERY_QP. Fields that a transition
 * requires are always taken from the context; the optional ones only where
 * opt_param_mask has their bit (PRM, "QP Optional Parameters"). */
#include <string.h>

#include "softhca/firmware/prm.h"
#include "softhca/strict/strict.h"
#include "softhca/tools/options.h"
#include "softhca/transport/packet.h"

enum { /* opt_param_mask */
	OPT_RRE = 1 << 1,
	OPT_RAE = 1 << 2,
	OPT_RWE = 1 << 3,
	OPT_PKEY_INDEX = 1 << 4,
	OPT_Q_KEY = 1 << 5,
	OPT_RNR_TIMEOUT = 1 << 6,
	OPT_ALL_ACCESS = OPT_RRE | OPT_RAE | OPT_RWE,
};

static const struct {
	uint16_t opcode;
	enum hca_qp_state from, to;
} transitions[] = {
	{OP_RST2INIT, HCA_QPS_RST, HCA_QPS_INIT},  {OP_INIT2INIT, HCA_QPS_INIT, HCA_QPS_INIT},
	{OP_INIT2RTR, HCA_QPS_INIT, HCA_QPS_RTR},  {OP_RTR2RTS, HCA_QPS_RTR, HCA_QPS_RTS},
	{OP_RTS2RTS, HCA_QPS_RTS, HCA_QPS_RTS},    {OP_SQERR2RTS, HCA_QPS_SQER, HCA_QPS_RTS},
};

static void set_bit(uint32_t *access, uint32_t bit, uint32_t on)
{
	*access = on ? *access | bit : *access & ~bit;
}

static void apply_optional(struct hca_qp *qp, const uint8_t *qpc, uint32_t mask)
{
	const uint8_t *path = qpc + QPC_PATH;

	if (mask & OPT_RRE)
		set_bit(&qp->access, HCA_REMOTE_READ, prm_get(qpc, QPC_RRE));
	if (mask & OPT_RWE)
		set_bit(&qp->access, HCA_REMOTE_WRITE, prm_get(qpc, QPC_RWE));
	if (mask & OPT_RAE) {
		set_bit(&qp->access, HCA_REMOTE_ATOMIC, prm_get(qpc, QPC_RAE));
		if (prm_get(qpc, QPC_ATOMIC_MODE) || qp->state == HCA_QPS_RST) /* else it stays */
			qp->atomic_mode = (uint8_t)prm_get(qpc, QPC_ATOMIC_MODE);
	}
	if (mask & OPT_PKEY_INDEX)
		qp->path.pkey_index = (uint16_t)prm_get(path, PATH_PKEY_INDEX);
	if (mask & OPT_Q_KEY)
		qp->qkey = prm_get(qpc, QPC_Q_KEY);
	if (mask & OPT_RNR_TIMEOUT)
		qp->min_rnr_timer = (uint8_t)prm_get(qpc, QPC_MIN_RNR_NAK);
}

/* gid: the port's, at the path's index. A path that stays on the port (fl) needs no address. */
static void prm_qp_apply_path(struct ctl_qp *c, const uint8_t *path, const uint8_t gid[16])
{
	struct hca_path *p = &c->qp.path;
	uint32_t hi = prm_get(path, PATH_RMAC_HI), lo = prm_get(path, PATH_RMAC_LO);

	path_set_gid(p, c->loopback ? gid : path + PATH_RGID);
	c->is_global = !port_is_ib() || prm_get(path, PATH_GRH);
	p->dlid = c->loopback ? port_lid(c->obj.ctx->device) : (uint16_t)prm_get(path, PATH_RLID);
	p->dmac[0] = (uint8_t)(hi >> 8);
	p->dmac[1] = (uint8_t)hi;
	put_be32(p->dmac + 2, lo);
	p->sgid_index = (uint8_t)prm_get(path, PATH_SRC_ADDR_INDEX);
	p->hop_limit = (uint8_t)prm_get(path, PATH_HOP_LIMIT);
	p->udp_sport = (uint16_t)prm_get(path, PATH_UDP_SPORT);
	c->flow_label = prm_get(path, PATH_FLOW_LABEL);
	if (port_is_ib()) {
		p->tclass = (uint8_t)prm_get(path, PATH_TCLASS);
		p->sl = (uint8_t)prm_get(path, PATH_SL);
	} else {
		p->tclass = (uint8_t)(prm_get(path, PATH_DSCP) << 2 | prm_get(path, PATH_ECN));
		p->sl = (uint8_t)prm_get(path, PATH_ETH_PRIO);
	}
}

/* RST2INIT says which set counts, whatever CREATE_QP said: it is where mlx5_ib and UCX name theirs. */
static int prm_qp_counters(struct prm_cmd *cmd, struct ctl_qp *c, const uint8_t *qpc)
{
	struct ctl_counters *set = counters_find(cmd->ctx, prm_get(qpc, QPC_COUNTER_SET));

	if (!set && prm_get(qpc, QPC_COUNTER_SET))
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_COUNTER_SET);
	if (c->counters)
		c->counters->obj.refs--;
	c->counters = set;
	if (set)
		set->obj.refs++;
	c->qp.counters = set ? &set->counters : NULL;
	return 0;
}

static int prm_qp_to_init(struct prm_cmd *cmd, struct ctl_qp *c, const uint8_t *qpc)
{
	uint32_t port = prm_get(qpc + QPC_PATH, PATH_PORT), lag = prm_get(qpc, QPC_LAG_PORT);

	if (port > 1)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_PORT);
	if (lag > hca_options()->device.lag || (lag && hca_options()->device.lag == 1))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_LAG_PORT);
	if (!lag && hca_options()->device.lag > 1)
		strict_command(RULE_LAG_PORT, "RST2INIT_QP: QP 0x%x goes where all do, of %u ports", c->qp.qpn,
			       hca_options()->device.lag);
	c->lag_port = (uint8_t)lag;
	apply_optional(&c->qp, qpc, OPT_ALL_ACCESS | OPT_PKEY_INDEX | OPT_Q_KEY);
	return prm_qp_counters(cmd, c, qpc);
}

/* A program that does not force it leaves the order to the device, and may ask for less. */
static int prm_qp_order(struct prm_cmd *cmd, struct hca_qp *qp, const uint8_t *qpc)
{
	uint32_t order = prm_get(qpc, QPC_DP_ORDERING_1) << 1 | prm_get(qpc, QPC_DP_ORDERING_0);
	const struct hca_device *dev = &hca_options()->device;
	bool force = prm_get(qpc, QPC_DP_ORDERING_FORCE);

	if (order > dev->ooo || (force && !dev->order_force))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_ORDER);
	qp->order_force = force;
	qp->order = (uint8_t)(force || order ? order : dev->ooo);
	return 0;
}

static int prm_qp_to_rtr(struct prm_cmd *cmd, struct ctl_qp *c, const uint8_t *qpc, uint32_t mask)
{
	struct hca_qp *qp = &c->qp;
	const uint8_t *path = qpc + QPC_PATH;
	bool loopback = prm_get(path, PATH_FL);
	uint32_t mtu = prm_get(qpc, QPC_MTU), most = loopback ? PKT_MAX_MTU : port_mtu(c->obj.ctx->device);
	uint8_t gid[16], mac[6];
	int rc;

	if (qp->type == HCA_QP_UD) { /* no peer */
		apply_optional(qp, qpc, mask);
		return 0;
	}
	if (mtu < 1 || mtu > mtu_code(most))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_MTU);
	if (qp->type == HCA_QP_DCI) { /* WQEs name their targets */
		apply_optional(qp, qpc, mask);
		qp->mtu = 128u << mtu;
		return 0;
	}
	if (!port_gid(c->obj.ctx->device, prm_get(path, PATH_SRC_ADDR_INDEX), gid))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_GID_INDEX);
	if (1u << prm_get(qpc, QPC_LOG_RRA_MAX) > HCA_MAX_RD_ATOMIC)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_RD_ATOMIC);
	if (loopback && !hca_options()->device.loopback)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_LOOPBACK);
	c->loopback = loopback;
	rc = qp->type == HCA_QP_RC ? prm_qp_order(cmd, qp, qpc) : 0;
	if (rc)
		return rc;
	apply_optional(qp, qpc, mask);
	prm_qp_apply_path(c, path, gid);
	if (strict_on && !loopback && !port_is_ib()) {
		gid_to_mac(path + PATH_RGID, mac);
		strict_path(qp, mac);
	}
	qp->mtu = 128u << mtu;
	qp->dest_qpn = prm_get(qpc, QPC_REMOTE_QPN);
	qp->rq_psn = prm_get(qpc, QPC_NEXT_RCV_PSN);
	qp->min_rnr_timer = (uint8_t)prm_get(qpc, QPC_MIN_RNR_NAK);
	qp->max_dest_rd_atomic = (uint8_t)(1u << prm_get(qpc, QPC_LOG_RRA_MAX));
	return 0;
}

static int prm_qp_to_rts(struct prm_cmd *cmd, struct ctl_qp *c, const uint8_t *qpc, uint32_t mask)
{
	struct hca_qp *qp = &c->qp;

	if (1u << prm_get(qpc, QPC_LOG_SRA_MAX) > HCA_MAX_RD_ATOMIC)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_RD_ATOMIC);
	apply_optional(qp, qpc, mask);
	qp->sq_psn = prm_get(qpc, QPC_NEXT_SEND_PSN);
	qp->retry_cnt = (uint8_t)prm_get(qpc, QPC_RETRY_COUNT);
	qp->rnr_retry = (uint8_t)prm_get(qpc, QPC_RNR_RETRY);
	qp->ack_timeout = (uint8_t)prm_get(qpc + QPC_PATH, PATH_ACK_TIMEOUT);
	qp->max_rd_atomic = (uint8_t)(1u << prm_get(qpc, QPC_LOG_SRA_MAX));
	return 0;
}

static int prm_qp_apply(struct prm_cmd *cmd, struct ctl_qp *c, uint16_t opcode)
{
	const uint8_t *qpc = cmd->in + QP_CMD_QPC;
	uint32_t mask = prm_get(cmd->in, QP_CMD_OPT_MASK);

	if (!qp_ece_ask(c, prm_get(cmd->in, QP_CMD_ECE)))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_ECE);
	/* The P_Key table has one entry. */
	if ((opcode == OP_RST2INIT || mask & OPT_PKEY_INDEX) &&
	    prm_get(qpc + QPC_PATH, PATH_PKEY_INDEX))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_PKEY_INDEX);
	switch (opcode) {
	case OP_RST2INIT:
		return prm_qp_to_init(cmd, c, qpc);
	case OP_INIT2RTR:
		return prm_qp_to_rtr(cmd, c, qpc, mask);
	case OP_RTR2RTS:
		return prm_qp_to_rts(cmd, c, qpc, mask);
	default:
		apply_optional(&c->qp, qpc, mask);
		return 0;
	}
}

int prm_modify_qp(struct prm_cmd *cmd)
{
	struct ctl_qp *c = (struct ctl_qp *)cmd->obj;
	uint16_t opcode = (uint16_t)prm_get(cmd->in, CMD_OPCODE);
	int rc;

	if (opcode == OP_2ERR || opcode == OP_2RST) {
		qp_set_state(c, opcode == OP_2ERR ? HCA_QPS_ERR : HCA_QPS_RST);
		return 0;
	}
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
		if (transitions[i].opcode != opcode || transitions[i].from != c->qp.state)
			continue;
		rc = prm_qp_apply(cmd, c, opcode);
		if (rc)
			return rc;
		qp_set_state(c, transitions[i].to);
		prm_set(cmd->out, QP_CMD_OUT_ECE, c->ece);
		return 0;
	}
	return prm_fail(cmd, PRM_BAD_QP_STATE, SYN_QP_STATE);
}

/* ---- QUERY_QP ---- */

static uint32_t log2_of(uint32_t n)
{
	return n ? 31 - (uint32_t)__builtin_clz(n) : 0;
}

static uint32_t service_type(enum hca_qp_type type)
{
	return type == HCA_QP_UC    ? ST_UC
	       : type == HCA_QP_UD  ? ST_UD
	       : type == HCA_QP_DCI ? ST_DCI
				    : ST_RC;
}

static void query_path(uint8_t *path, const struct ctl_qp *c)
{
	const struct hca_path *p = &c->qp.path;

	prm_set(path, PATH_FL, c->loopback);
	prm_set(path, PATH_PKEY_INDEX, p->pkey_index);
	prm_set(path, PATH_GRH, c->is_global);
	prm_set(path, PATH_RLID, p->dlid);
	prm_set(path, PATH_ACK_TIMEOUT, c->qp.ack_timeout);
	prm_set(path, PATH_SRC_ADDR_INDEX, p->sgid_index);
	prm_set(path, PATH_HOP_LIMIT, p->hop_limit);
	prm_set(path, PATH_FLOW_LABEL, c->flow_label);
	prm_set(path, PATH_UDP_SPORT, p->udp_sport);
	prm_set(path, PATH_PORT, c->port);
	memcpy(path + PATH_RGID, &p->dgid, 16);
	if (port_is_ib()) {
		prm_set(path, PATH_TCLASS, p->tclass);
		prm_set(path, PATH_SL, p->sl);
		return;
	}
	prm_set(path, PATH_DSCP, p->tclass >> 2);
	prm_set(path, PATH_ECN, p->tclass & 3);
	prm_set(path, PATH_ETH_PRIO, p->sl);
	prm_set(path, PATH_RMAC_HI, (uint32_t)p->dmac[0] << 8 | p->dmac[1]);
	prm_set(path, PATH_RMAC_LO, get_be32(p->dmac + 2));
}

static void query_rings(uint8_t *qpc, const struct ctl_qp *c)
{
	const struct hca_qp *qp = &c->qp;

	prm_set(qpc, QPC_NO_SQ, !qp->sq);
	prm_set(qpc, QPC_LOG_SQ_SIZE, qp->log_sq_size);
	prm_set(qpc, QPC_RQ_TYPE, qp->srq ? 1 : qp->rq ? 0 : 3);
	if (qp->rq) {
		prm_set(qpc, QPC_LOG_RQ_SIZE, log2_of(qp->rq_cnt));
		prm_set(qpc, QPC_LOG_RQ_STRIDE, qp->rq_shift - 4);
	}
	if (qp->srq)
		prm_set(qpc, QPC_SRQN, qp->srq->srqn);
	prm_set(qpc, QPC_UAR_PAGE, qp->uar_page);
	prm_set(qpc, QPC_CQN_SND, qp->scq ? qp->scq->cqn : 0);
	prm_set(qpc, QPC_CQN_RCV, qp->rcq ? qp->rcq->cqn : 0);
	prm_set(qpc, QPC_HW_SQ_COUNTER, qp->sq_ci);
	prm_set(qpc, QPC_SW_SQ_COUNTER, qp->sq_pi);
	prm_set(qpc, QPC_HW_RQ_COUNTER, qp->rq_ci);
	put_be64(qpc + QPC_DBR_ADDR, c->dbr_offset);
	prm_set(qpc, QPC_SEND_DBR_MODE, c->dbr_less);
	prm_set(qpc, QPC_DBR_UMEM_VALID, c->dbr_umem != NULL);
	if (c->dbr_umem)
		prm_set(qpc, QPC_DBR_UMEM_ID, c->dbr_umem->umem.id);
}

int prm_query_qp(struct prm_cmd *cmd)
{
	const struct ctl_qp *c = (const struct ctl_qp *)cmd->obj;
	const struct hca_qp *qp = &c->qp;
	uint8_t *qpc = cmd->out + QP_CMD_QPC;

	prm_set(cmd->out, QP_CMD_ECE, c->ece);
	prm_set(qpc, QPC_STATE, qp->state);
	prm_set(qpc, QPC_LAG_PORT, c->lag_port);
	prm_set(qpc, QPC_ST, service_type(qp->type));
	prm_set(qpc, QPC_Q_KEY, qp->qkey);
	prm_set(qpc, QPC_PM_STATE, 3); /* migrated: there is one path */
	prm_set(qpc, QPC_PD, qp->pdn);
	prm_set(qpc, QPC_COUNTER_SET, c->counters ? c->counters->id : 0);
	prm_set(qpc, QPC_DP_ORDERING_0, qp->order & 1u);
	prm_set(qpc, QPC_DP_ORDERING_1, qp->order >> 1);
	prm_set(qpc, QPC_DP_ORDERING_FORCE, qp->order_force);
	prm_set(qpc, QPC_MTU, mtu_code(qp->mtu));
	prm_set(qpc, QPC_LOG_MSG_MAX, 30);
	prm_set(qpc, QPC_USER_INDEX, qp->user_index);
	prm_set(qpc, QPC_REMOTE_QPN, qp->type == HCA_QP_DCI ? 0 : qp->dest_qpn);
	prm_set(qpc, QPC_LOG_SRA_MAX, log2_of(qp->max_rd_atomic));
	prm_set(qpc, QPC_LOG_RRA_MAX, log2_of(qp->max_dest_rd_atomic));
	prm_set(qpc, QPC_RETRY_COUNT, qp->retry_cnt);
	prm_set(qpc, QPC_RNR_RETRY, qp->rnr_retry);
	prm_set(qpc, QPC_NEXT_SEND_PSN, qp->sq_psn);
	prm_set(qpc, QPC_NEXT_RCV_PSN, qp->rq_psn);
	prm_set(qpc, QPC_MIN_RNR_NAK, qp->min_rnr_timer);
	prm_set(qpc, QPC_ATOMIC_MODE, qp->atomic_mode);
	prm_set(qpc, QPC_RRE, !!(qp->access & HCA_REMOTE_READ));
	prm_set(qpc, QPC_RWE, !!(qp->access & HCA_REMOTE_WRITE));
	prm_set(qpc, QPC_RAE, !!(qp->access & HCA_REMOTE_ATOMIC));
	query_path(qpc + QPC_PATH, c);
	query_rings(qpc, c);
	return 0;
}
