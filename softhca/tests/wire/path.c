/* SPDX-License-Identifier: BSD-3-Clause */
/* wire_peer's queue pair: its states, where it leads to, its receives. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "softhca/tests/wire/peer.h"

static int failed(const char *what)
{
	fprintf(stderr, "wire_peer: %s: %s\n", what, strerror(errno));
	return -1;
}

int peer_new_qp(struct peer *p)
{
	struct ibv_qp_init_attr a = { .send_cq = p->cq,
				      .recv_cq = p->cq,
				      .qp_type = p->type,
				      .sq_sig_all = 1,
				      .cap = { .max_send_wr = PEER_DEPTH,
					       .max_recv_wr = PEER_DEPTH,
					       .max_send_sge = 2,
					       .max_recv_sge = 2 } };
	struct ibv_qp_attr m = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = PEER_QKEY,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (p->ah)
		ibv_destroy_ah(p->ah);
	if (p->qp)
		ibv_destroy_qp(p->qp);
	p->ah = NULL;
	p->qp = ibv_create_qp(p->pd, &a);
	if (!p->qp)
		return failed("QP");
	if (p->type == IBV_QPT_UC)
		m.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	mask |= p->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	return ibv_modify_qp(p->qp, &m, mask) ? failed("INIT") : 0;
}

static struct ibv_ah_attr path_of(const struct peer *p)
{
	struct ibv_ah_attr a = { .is_global = 1,
				 .port_num = 1,
				 .grh = { .hop_limit = 64,
					  .traffic_class = (uint8_t)p->tclass,
					  .flow_label = p->flow_label,
					  .sgid_index = (uint8_t)p->gid_index } };

	memcpy(&a.grh.dgid, p->there.gid, 16);
	return a;
}

static int to_rtr(struct peer *p)
{
	struct ibv_qp_attr m = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = p->mtu,
				 .dest_qp_num = p->there.qpn,
				 .rq_psn = p->there.psn,
				 .max_dest_rd_atomic = 4,
				 .min_rnr_timer = 12,
				 .ah_attr = path_of(p) };
	int mask = IBV_QP_STATE;

	if (p->type == IBV_QPT_UD) {
		p->ah = ibv_create_ah(p->pd, &m.ah_attr);
		if (!p->ah)
			return failed("AH");
	} else {
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (p->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(p->qp, &m, mask) ? failed("RTR") : 0;
}

static int to_rts(struct peer *p)
{
	struct ibv_qp_attr m = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = p->here.psn,
				 .timeout = (uint8_t)p->timeout,
				 .retry_cnt = (uint8_t)p->retries,
				 .rnr_retry = 7,
				 .max_rd_atomic = 4 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (p->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(p->qp, &m, mask) ? failed("RTS") : 0;
}

int peer_ready(struct peer *p)
{
	return to_rtr(p) || to_rts(p) ? -1 : 0;
}

void peer_address(const struct peer *p, struct ibv_send_wr *wr)
{
	wr->wr.ud.ah = p->ah;
	wr->wr.ud.remote_qpn = p->there.qpn;
	wr->wr.ud.remote_qkey = PEER_QKEY;
}

static bool is_ipv4(const uint8_t *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

/* Annex A17.4.5.2: an IPv4 header is in the last 20 bytes. */
bool peer_grh_ok(const struct peer *p)
{
	const uint8_t *grh = p->buf, *ip = grh + PEER_GRH - 20;
	bool ok;

	if (is_ipv4(p->here.gid))
		ok = ip[0] == 0x45 && ip[9] == 17 && !memcmp(ip + 12, p->there.gid + 12, 4) &&
		     !memcmp(ip + 16, p->here.gid + 12, 4);
	else
		ok = grh[0] >> 4 == 6 && !memcmp(grh + 8, p->there.gid, 16) &&
		     !memcmp(grh + 24, p->here.gid, 16);
	if (!ok) {
		fprintf(stderr, "wire_peer: the network header does not name both sides:");
		for (unsigned i = 0; i < PEER_GRH; i++)
			fprintf(stderr, " %02x", grh[i]);
		fprintf(stderr, "\n");
	}
	return ok;
}

int peer_post_recv(struct peer *p, uint32_t len, uint32_t lkey)
{
	struct ibv_sge s[2] = { { .addr = (uintptr_t)p->buf, .length = PEER_GRH, .lkey = lkey },
				{ .addr = (uintptr_t)p->buf + PEER_OFFSET,
				  .length = len,
				  .lkey = lkey } };
	bool ud = p->type == IBV_QPT_UD;
	struct ibv_recv_wr wr = { .wr_id = 1,
				  .sg_list = ud ? s : s + 1,
				  .num_sge = (ud ? 1 : 0) + (len ? 1 : 0) },
			   *no;

	return ibv_post_recv(p->qp, &wr, &no) ? failed("receive") : 0;
}
