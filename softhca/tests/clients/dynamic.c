/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pairs of the dynamically connected transport (dynamic.h). */
#include "dynamic.h"

#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>

#define ACCESS_KEY 0x5ca1ab1e0ddba11ull
#define SHARE	   2u /* lanes of an initiator */

static struct ibv_qp *make_dci(struct peer *p)
{
	const struct config *c = p->config;
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_DRIVER, .send_cq = p->cq[0], .recv_cq = p->cq[1], .pd = p->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
		.cap = {.max_send_wr = c->depth * SHARE, .max_send_sge = c->sges,
			.max_inline_data = c->inline_size},
	};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};

	return mlx5dv_create_qp(p->ctx, &a, &dv);
}

static struct ibv_qp *make_dct(struct peer *p)
{
	struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_DRIVER, .send_cq = p->cq[0],
					.recv_cq = p->cq[1], .pd = p->pd, .srq = p->srq,
					.comp_mask = IBV_QP_INIT_ATTR_PD};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT,
							  .dct_access_key = ACCESS_KEY}};

	return mlx5dv_create_qp(p->ctx, &a, &dv);
}

static int listen_to_all(struct peer *p, struct ibv_qp *dct)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .min_rnr_timer = 1,
		.path_mtu = peer_mtu(p->config->mtu),
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	if (ibv_query_port(p->ctx, 1, &port) ||
	    ibv_modify_qp(dct, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					   IBV_QP_ACCESS_FLAGS))
		return -1;
	a.qp_state = IBV_QPS_RTR;
	a.ah_attr.port_num = 1;
	a.ah_attr.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	a.ah_attr.grh.hop_limit = 64;
	a.ah_attr.grh.sgid_index = (uint8_t)p->config->gid;
	return ibv_modify_qp(dct, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					      IBV_QP_MIN_RNR_TIMER);
}

int dynamic_open(struct peer *p)
{
	unsigned n = p->config->qps;

	p->dct = calloc(n, sizeof(struct ibv_qp *));
	p->remote_dct = calloc(n, sizeof(uint32_t));
	if (!p->dct || !p->remote_dct)
		return -1;
	for (unsigned i = 0; i < n; i++) {
		p->qp[i] = i % SHARE ? p->qp[i - 1] : make_dci(p);
		p->dct[i] = make_dct(p);
		if (!p->qp[i] || !p->dct[i] || listen_to_all(p, p->dct[i])) {
			perror("dynamically connected queue pair");
			return -1;
		}
	}
	return 0;
}

int dynamic_connect(struct peer *p, const struct ibv_ah_attr *to, uint32_t psn)
{
	struct ibv_ah_attr attr = *to;

	p->ah = ibv_create_ah(p->pd, &attr);
	for (unsigned i = 0; p->ah && i < p->config->qps; i += SHARE) {
		struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .timeout = 14,
					.path_mtu = peer_mtu(p->config->mtu), .retry_cnt = 7,
					.rnr_retry = 7, .sq_psn = psn, .max_rd_atomic = 16};

		if (ibv_modify_qp(p->qp[i], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT))
			return -1;
		a.qp_state = IBV_QPS_RTR;
		if (ibv_modify_qp(p->qp[i], &a, IBV_QP_STATE | IBV_QP_PATH_MTU))
			return -1;
		a.qp_state = IBV_QPS_RTS;
		if (ibv_modify_qp(p->qp[i], &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
							IBV_QP_MAX_QP_RD_ATOMIC))
			return -1;
	}
	return p->ah ? 0 : -1;
}

void dynamic_address(const struct peer *p, struct ibv_qp_ex *qp, unsigned lane)
{
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qp), p->ah, p->remote_dct[lane],
			      ACCESS_KEY);
}

int dynamic_close(struct peer *p)
{
	int bad = p->ah ? ibv_destroy_ah(p->ah) : 0;

	for (unsigned i = 0; i < p->config->qps; i++) {
		bad |= i % SHARE ? 0 : ibv_destroy_qp(p->qp[i]);
		bad |= ibv_destroy_qp(p->dct[i]);
	}
	free(p->dct);
	free(p->remote_dct);
	return bad;
}
