// SPDX-License-Identifier: BSD-3-Clause
/* The three modify commands that connect a queue pair: RST2INIT, INIT2RTR,
 * RTR2RTS (PRM, "Command Reference"; attributes by transition: IBTA 11.2.5.2).
 * Every attribute is set here, none is left to a default of the firmware. */

#include <string.h>

#include "runtime/nic/address.h"
#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

#define HOP_LIMIT	     64 /* as Linux sends IP packets */
#define MIN_RNR_NAK	     12 /* 0.64 ms; nothing here needs receives */
#define LOG_ACK_REQ_FREQ     8	    /* ask for an ACK every 2^8 packets of a long message */
#define ATOMIC_MODE_UP_TO_8B 3	    /* PRM, QPC.atomic_mode: plain and extended, up to 8 bytes */
#define SPORT_MIN	     0xc000 /* RoCE v2 annex (IBTA A17.5.1): the dynamic port range */
#define SPORT_MAX	     0xffff

static void qp_modify_begin(uint8_t in[PRM_MODIFY_QP_IN_BYTES], int opcode, uint32_t qpn)
{
	memset(in, 0, PRM_MODIFY_QP_IN_BYTES);
	gdri_prm_set(in, PRM_IN_OPCODE, (uint64_t)opcode);
	gdri_prm_set(in, PRM_MODIFY_QP_QPN, qpn);
}

static int qp_to_init(struct gdri_nic *nic, int i)
{
	uint8_t in[PRM_MODIFY_QP_IN_BYTES];
	void *qpc = gdri_prm_at(in, PRM_QP_IN_QPC), *ads = gdri_prm_at(qpc, PRM_QPC_ADS);
	char name[GDRI_NIC_QP_NAME];

	qp_modify_begin(in, PRM_OP_RST2INIT_QP, nic->qps[i].qpn);
	gdri_prm_set(qpc, PRM_QPC_PM_STATE, PRM_QP_PM_MIGRATED);
	if (nic->lag_ports) /* i counts up by queues of a peer, then by peers */
		gdri_prm_set(qpc, PRM_QPC_LAG_PORT, 1 + (unsigned)i % nic->lag_ports);
	gdri_prm_set(qpc, PRM_QPC_COUNTER_SET, nic->counter_set); /* here, as mlx5_ib and UCX do */
	gdri_prm_set(qpc, PRM_QPC_RRE, 1);
	gdri_prm_set(qpc, PRM_QPC_RWE, 1);
	gdri_prm_set(qpc, PRM_QPC_RAE, 1);
	gdri_prm_set(qpc, PRM_QPC_ATOMIC_MODE, ATOMIC_MODE_UP_TO_8B);
	gdri_prm_set(ads, PRM_ADS_VHCA_PORT_NUM, nic->port);
	gdri_prm_set(ads, PRM_ADS_PKEY_INDEX, nic->pkey_index);
	return gdri_nic_obj_modify(nic, gdri_nic_qp_name(nic, "RST2INIT_QP", i, name),
				   nic->qps[i].qp, in, sizeof(in));
}

/* Spreads queue pairs over the paths of a routed network. Both ends compute a different port;
 * each only needs to keep its own for the life of the queue pair. */
static uint32_t udp_sport(const struct gdri_nic *nic, uint32_t qpn, uint32_t remote_qpn)
{
	uint32_t min = nic->caps.sport_min, max = nic->caps.sport_max;
	uint64_t hash = ((uint64_t)qpn << 24 | remote_qpn) * 0x9e3779b97f4a7c15ull;

	if (min < SPORT_MIN || max < min) {
		min = SPORT_MIN;
		max = SPORT_MAX;
	}
	return min + (uint32_t)(hash >> 40) % (max - min + 1);
}

static void set_grh(const struct gdri_nic *nic, void *ads, const struct gdri_nic_route *route)
{
	gdri_prm_set(ads, PRM_ADS_SRC_ADDR_INDEX, nic->gid_index);
	gdri_prm_set(ads, PRM_ADS_HOP_LIMIT, HOP_LIMIT);
	gdri_prm_set(ads, PRM_ADS_TCLASS, nic->opt.traffic_class);
	memcpy(gdri_prm_at(ads, PRM_ADS_RGID), route->remote->gid, 16);
}

static void set_path(const struct gdri_nic *nic, void *ads, const struct gdri_nic_route *route,
		     uint32_t qpn, uint32_t remote_qpn)
{
	const uint8_t *m = route->mac;

	gdri_prm_set(ads, PRM_ADS_VHCA_PORT_NUM, nic->port);
	gdri_prm_set(ads, PRM_ADS_PKEY_INDEX, nic->pkey_index);
	if (nic->link_layer == GDRI_LINK_IB) {
		gdri_prm_set(ads, PRM_ADS_RLID, route->remote->lid);
		gdri_prm_set(ads, PRM_ADS_SL, nic->opt.service_level);
		gdri_prm_set(ads, PRM_ADS_GRH, nic->grh_required);
		if (nic->grh_required)
			set_grh(nic, ads, route);
		return;
	}
	set_grh(nic, ads, route);
	/* Not by way of the switch or the embedded one, where loopback may be off. */
	gdri_prm_set(ads, PRM_ADS_FL, route->self && nic->caps.loopback);
	gdri_prm_set(ads, PRM_ADS_ETH_PRIO, nic->opt.service_level);
	gdri_prm_set(ads, PRM_ADS_DSCP, nic->opt.traffic_class >> 2);
	gdri_prm_set(ads, PRM_ADS_UDP_SPORT, udp_sport(nic, qpn, remote_qpn));
	gdri_prm_set(ads, PRM_ADS_RMAC_47_32, (uint64_t)m[0] << 8 | m[1]);
	gdri_prm_set(ads, PRM_ADS_RMAC_31_0,
		     (uint64_t)m[2] << 24 | (uint64_t)m[3] << 16 | (uint64_t)m[4] << 8 | m[5]);
}

static int qp_to_rtr(struct gdri_nic *nic, int i, const struct gdri_nic_route *route,
		     uint32_t remote_qpn)
{
	uint8_t in[PRM_MODIFY_QP_IN_BYTES];
	void *qpc = gdri_prm_at(in, PRM_QP_IN_QPC), *ads = gdri_prm_at(qpc, PRM_QPC_ADS);
	char name[GDRI_NIC_QP_NAME];

	qp_modify_begin(in, PRM_OP_INIT2RTR_QP, nic->qps[i].qpn);
	gdri_prm_set(qpc, PRM_QPC_MTU, route->mtu);
	gdri_prm_set(qpc, PRM_QPC_LOG_MSG_MAX, nic->caps.log_max_msg);
	gdri_prm_set(qpc, PRM_QPC_REMOTE_QPN, remote_qpn);
	gdri_prm_set(qpc, PRM_QPC_NEXT_RCV_PSN, route->remote->psn);
	gdri_prm_set(qpc, PRM_QPC_MIN_RNR_NAK, MIN_RNR_NAK);
	gdri_prm_set(qpc, PRM_QPC_LOG_RRA_MAX, nic->caps.log_responder);
	gdri_prm_set(qpc, PRM_QPC_RRE, 1);
	gdri_prm_set(qpc, PRM_QPC_RWE, 1);
	gdri_prm_set(qpc, PRM_QPC_RAE, 1);
	gdri_prm_set(qpc, PRM_QPC_ATOMIC_MODE, ATOMIC_MODE_UP_TO_8B);
	gdri_prm_set(in, PRM_MODIFY_QP_ECE, gdri_nic_ece_with(nic, route->remote));
	gdri_nic_order_set(nic, qpc);
	set_path(nic, ads, route, nic->qps[i].qpn, remote_qpn);
	return gdri_nic_obj_modify(nic, gdri_nic_qp_name(nic, "INIT2RTR_QP", i, name),
				   nic->qps[i].qp, in, sizeof(in));
}

static int qp_to_rts(struct gdri_nic *nic, int i, const struct gdri_nic_route *route)
{
	unsigned theirs = route->remote->log_responder, ours = nic->caps.log_initiator;
	uint8_t in[PRM_MODIFY_QP_IN_BYTES];
	void *qpc = gdri_prm_at(in, PRM_QP_IN_QPC), *ads = gdri_prm_at(qpc, PRM_QPC_ADS);
	char name[GDRI_NIC_QP_NAME];

	qp_modify_begin(in, PRM_OP_RTR2RTS_QP, nic->qps[i].qpn);
	gdri_prm_set(qpc, PRM_QPC_LOG_ACK_REQ_FREQ, LOG_ACK_REQ_FREQ);
	/* No more than the peer's responder can hold. */
	gdri_prm_set(qpc, PRM_QPC_LOG_SRA_MAX, ours < theirs ? ours : theirs);
	gdri_prm_set(qpc, PRM_QPC_RETRY_COUNT, nic->opt.retry_count);
	gdri_prm_set(qpc, PRM_QPC_RNR_RETRY, nic->opt.rnr_retry);
	gdri_prm_set(qpc, PRM_QPC_NEXT_SEND_PSN, nic->psn);
	gdri_prm_set(ads, PRM_ADS_ACK_TIMEOUT, gdri_ack_timeout(&nic->opt));
	gdri_prm_set(ads, PRM_ADS_VHCA_PORT_NUM, nic->port);
	return gdri_nic_obj_modify(nic, gdri_nic_qp_name(nic, "RTR2RTS_QP", i, name),
				   nic->qps[i].qp, in, sizeof(in));
}

int gdri_nic_qp_to_rts(struct gdri_nic *nic, int i, const struct gdri_nic_route *route,
		       uint32_t remote_qpn)
{
	int ret = qp_to_init(nic, i);

	if (!ret)
		ret = qp_to_rtr(nic, i, route, remote_qpn);
	if (!ret)
		ret = qp_to_rts(nic, i, route);
	return ret;
}

static int qp_order(struct gdri_nic *nic, int i, bool *relaxed)
{
	uint8_t in[PRM_QUERY_QP_IN_BYTES] = {0}, out[PRM_QUERY_QP_OUT_BYTES];
	const void *qpc = gdri_prm_at(out, PRM_QP_IN_QPC);
	char name[GDRI_NIC_QP_NAME];
	int ret;

	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_QUERY_QP);
	gdri_prm_set(in, PRM_MODIFY_QP_QPN, nic->qps[i].qpn);
	ret = gdri_nic_obj_query(nic, gdri_nic_qp_name(nic, "QUERY_QP", i, name), nic->qps[i].qp, in, sizeof(in), out,
				 sizeof(out));
	if (!ret)
		*relaxed = gdri_prm_get(qpc, PRM_QPC_DP_ORDERING_0) || gdri_prm_get(qpc, PRM_QPC_DP_ORDERING_1);
	return ret;
}

int gdri_nic_qp_probe(struct gdri_nic *nic, int i, const struct gdri_nic_route *self, bool *relaxed)
{
	uint8_t in[PRM_MODIFY_QP_IN_BYTES];
	char name[GDRI_NIC_QP_NAME];
	int ret = qp_to_init(nic, i);

	if (!ret)
		ret = qp_to_rtr(nic, i, self, nic->qps[i].qpn);
	if (!ret)
		ret = qp_order(nic, i, relaxed);
	if (ret)
		return ret;
	qp_modify_begin(in, PRM_OP_2RST_QP, nic->qps[i].qpn);
	return gdri_nic_obj_modify(nic, gdri_nic_qp_name(nic, "2RST_QP", i, name), nic->qps[i].qp, in, sizeof(in));
}
