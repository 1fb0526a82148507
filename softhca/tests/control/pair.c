/* SPDX-License-Identifier: BSD-3-Clause */
/* The connected pair (pair.h). */
#include "pair.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void connect_with(struct ibv_context *ctx, struct ibv_qp *qp, uint32_t remote, uint8_t reads,
			 uint8_t resources)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1,
				.qp_access_flags = FULL_ACCESS & 0xf};
	union ibv_gid gid;

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						       IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_query_gid(ctx, 1, 0, &gid), 0);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = remote,
		.rq_psn = 77, .max_dest_rd_atomic = resources, .min_rnr_timer = 1,
		.ah_attr = {.port_num = 1, .dlid = 1, .is_global = !link_is_ib(ctx),
			    .grh = {.dgid = gid, .hop_limit = 9, .flow_label = 0x12345,
				    .traffic_class = 0x60}},
	};
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						       IBV_QP_MAX_DEST_RD_ATOMIC |
						       IBV_QP_MIN_RNR_TIMER), 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 5,
				 .rnr_retry = 7, .sq_psn = 77, .max_rd_atomic = reads};
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						       IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

void connect_qp(struct ibv_context *ctx, struct ibv_qp *qp, uint32_t remote)
{
	connect_with(ctx, qp, remote, 4, 8);
}

void connect_qp_reading(struct ibv_context *ctx, struct ibv_qp *qp, uint32_t remote, uint8_t reads)
{
	connect_with(ctx, qp, remote, reads, 8);
}

void connect_qp_read(struct ibv_context *ctx, struct ibv_qp *qp, uint32_t remote, uint8_t resources)
{
	connect_with(ctx, qp, remote, 4, resources);
}

int pair_setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 32, .max_recv_wr = 32,
					      .max_send_sge = 2, .max_recv_sge = 2,
					      .max_inline_data = 64}};

	p->ctx = open_device();
	p->pd = ibv_alloc_pd(p->ctx);
	p->channel = ibv_create_comp_channel(p->ctx);
	p->buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	p->mr = ibv_reg_mr(p->pd, p->buf, BUF, FULL_ACCESS);
	assert_non_null(p->mr);
	for (int i = 0; i < 2; i++) {
		p->cq[i] = ibv_create_cq(p->ctx, 64, NULL, i ? p->channel : NULL, 0);
		assert_non_null(p->cq[i]);
		ia.send_cq = ia.recv_cq = p->cq[i];
		p->qp[i] = ibv_create_qp(p->pd, &ia);
		assert_non_null(p->qp[i]);
	}
	for (int i = 0; i < 2; i++)
		connect_qp(p->ctx, p->qp[i], p->qp[!i]->qp_num);
	*state = p;
	return 0;
}

int pair_teardown(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_qp(p->qp[i]), 0);
		assert_int_equal(ibv_destroy_cq(p->cq[i]), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(p->channel), 0);
	assert_int_equal(ibv_dereg_mr(p->mr), 0);
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
	assert_int_equal(ibv_close_device(p->ctx), 0);
	munmap(p->buf, BUF);
	free(p);
	return 0;
}

struct ibv_wc wait_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n = 0;

	for (int i = 0; i < 300000 && !n; i++) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (!n)
			usleep(10);
	}
	assert_int_equal(n, 1);
	return wc;
}

void pair_post(struct pair *p, enum ibv_wr_opcode op, uint32_t len, unsigned flags,
		 uint32_t rkey, uint64_t add, uint64_t swap)
{
	struct ibv_sge sge = {.addr = (uintptr_t)p->buf, .length = len, .lkey = p->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 0xabc, .sg_list = &sge, .num_sge = 1, .opcode = op,
				 .send_flags = IBV_SEND_SIGNALED | flags,
				 .imm_data = htobe32(0x1234)};
	struct ibv_send_wr *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)p->buf + BUF / 2;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = add;
		wr.wr.atomic.swap = swap;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)p->buf + BUF / 2;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
}

void pair_post_at(struct pair *p, enum ibv_wr_opcode op, void *local, uint32_t lkey, void *remote, uint32_t rkey,
		  uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)local, .length = len, .lkey = lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
}

void pair_ok(struct pair *p)
{
	struct ibv_wc wc = wait_wc(p->cq[0]);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 0xabc);
	assert_int_equal(wc.qp_num, p->qp[0]->qp_num);
}

void pair_scramble(struct pair *p)
{
	for (uint32_t i = 0; i < BUF; i++)
		p->buf[i] = (uint8_t)(random() >> 3);
}
