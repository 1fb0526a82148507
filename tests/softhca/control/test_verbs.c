/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain verbs in one process: two RC queue pairs connected to each other, every
 * operation with its data compared, events, SRQ, AH, memory registration. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

#define FULL_ACCESS                                                                                \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)

struct pair {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	uint8_t *buf;
};

#define BUF 65536u

static void connect_qp(struct ibv_context *ctx, struct ibv_qp *qp, uint32_t remote)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1,
				.qp_access_flags = FULL_ACCESS & 0xf};
	union ibv_gid gid;

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						       IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_query_gid(ctx, 1, 0, &gid), 0);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = remote,
		.rq_psn = 77, .max_dest_rd_atomic = 8, .min_rnr_timer = 1,
		.ah_attr = {.port_num = 1, .dlid = 1, .is_global = !link_is_ib(ctx),
			    .grh = {.dgid = gid, .hop_limit = 9, .flow_label = 0x12345,
				    .traffic_class = 0x60}},
	};
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						       IBV_QP_MAX_DEST_RD_ATOMIC |
						       IBV_QP_MIN_RNR_TIMER), 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 5,
				 .rnr_retry = 7, .sq_psn = 77, .max_rd_atomic = 4};
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						       IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static int pair_setup(void **state)
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

static int pair_teardown(void **state)
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

static struct ibv_wc wait_wc(struct ibv_cq *cq)
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

/* From the front half of the buffer to the back half, unless said otherwise. */
static void post(struct pair *p, enum ibv_wr_opcode op, uint32_t len, unsigned flags,
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

static void ok(struct pair *p)
{
	struct ibv_wc wc = wait_wc(p->cq[0]);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 0xabc);
	assert_int_equal(wc.qp_num, p->qp[0]->qp_num);
}

static void scramble(struct pair *p)
{
	for (uint32_t i = 0; i < BUF; i++)
		p->buf[i] = (uint8_t)(random() >> 3);
}

static void test_write_read(void **state)
{
	static const uint32_t sizes[] = {1, 7, 64, 1024, 1025, 5000, BUF / 2};
	struct pair *p = *state;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		scramble(p);
		post(p, IBV_WR_RDMA_WRITE, sizes[i], 0, p->mr->rkey, 0, 0);
		ok(p);
		assert_memory_equal(p->buf, p->buf + BUF / 2, sizes[i]);
		scramble(p);
		post(p, IBV_WR_RDMA_READ, sizes[i], 0, p->mr->rkey, 0, 0);
		ok(p);
		assert_memory_equal(p->buf, p->buf + BUF / 2, sizes[i]);
	}
	scramble(p);
	post(p, IBV_WR_RDMA_WRITE, 60, IBV_SEND_INLINE, p->mr->rkey, 0, 0);
	ok(p);
	assert_memory_equal(p->buf, p->buf + BUF / 2, 60);
}

static void test_atomics(void **state)
{
	struct pair *p = *state;
	uint64_t *local = (uint64_t *)(void *)p->buf;
	uint64_t *remote = (uint64_t *)(void *)(p->buf + BUF / 2);

	*remote = 41;
	post(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, p->mr->rkey, 1, 0);
	ok(p);
	assert_int_equal(*local, 41);
	assert_int_equal(*remote, 42);
	post(p, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0, p->mr->rkey, 42, 777);
	ok(p);
	assert_int_equal(*local, 42);
	assert_int_equal(*remote, 777);
	post(p, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0, p->mr->rkey, 42, 5);
	ok(p);
	assert_int_equal(*local, 777);
	assert_int_equal(*remote, 777);
}

static void receive(struct pair *p, uint64_t id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)p->buf + BUF / 2, .length = 4096,
			      .lkey = p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(p->qp[1], &wr, &bad), 0);
}

static void test_send_and_events(void **state)
{
	struct pair *p = *state;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	for (int i = 0; i < 20; i++) {
		receive(p, 5);
		assert_int_equal(ibv_req_notify_cq(p->cq[1], 0), 0);
		scramble(p);
		post(p, i & 1 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM, 100, 0,
		     p->mr->rkey, 0, 0);
		ok(p);
		assert_int_equal(ibv_get_cq_event(p->channel, &cq, &context), 0);
		assert_ptr_equal(cq, p->cq[1]);
		/* The last is left to destroy, which must not wait for it. */
		if (i < 19)
			ibv_ack_cq_events(cq, 1);
		wc = wait_wc(p->cq[1]);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, 5);
		assert_int_equal(be32toh(wc.imm_data), 0x1234);
		assert_int_equal(wc.opcode, i & 1 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		assert_memory_equal(p->buf, p->buf + BUF / 2, 100);
	}
	ibv_ack_cq_events(p->cq[1], 1);
	/* An event that is never read does not keep destroy from returning. */
	receive(p, 6);
	assert_int_equal(ibv_req_notify_cq(p->cq[1], 0), 0);
	post(p, IBV_WR_SEND_WITH_IMM, 4, 0, p->mr->rkey, 0, 0);
	ok(p);
	wc = wait_wc(p->cq[1]);
	assert_int_equal(wc.wr_id, 6);
}

static void test_errors_and_flush(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;

	post(p, IBV_WR_RDMA_WRITE, 8, 0, p->mr->rkey ^ 0x5500, 0, 0);
	post(p, IBV_WR_RDMA_WRITE, 8, 0, p->mr->rkey, 0, 0);
	wc = wait_wc(p->cq[0]);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	wc = wait_wc(p->cq[0]);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_query_qp(p->qp[0], &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	/* The responder's side is told by an asynchronous event. */
	{
		struct pollfd pf = {.fd = p->ctx->async_fd, .events = POLLIN};
		struct ibv_async_event ev;

		assert_int_equal(poll(&pf, 1, 2000), 1);
		assert_int_equal(ibv_get_async_event(p->ctx, &ev), 0);
		assert_int_equal(ev.event_type, IBV_EVENT_QP_ACCESS_ERR);
		assert_ptr_equal(ev.element.qp, p->qp[1]);
		ibv_ack_async_event(&ev);
	}
	/* Reset, connect again, and it works. */
	for (int i = 0; i < 2; i++) {
		attr.qp_state = IBV_QPS_RESET;
		assert_int_equal(ibv_modify_qp(p->qp[i], &attr, IBV_QP_STATE), 0);
	}
	for (int i = 0; i < 2; i++)
		connect_qp(p->ctx, p->qp[i], p->qp[!i]->qp_num);
	scramble(p);
	post(p, IBV_WR_RDMA_WRITE, 512, 0, p->mr->rkey, 0, 0);
	ok(p);
	assert_memory_equal(p->buf, p->buf + BUF / 2, 512);
}

static void test_query(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	union ibv_gid gid;

	assert_int_equal(ibv_query_qp(p->qp[0], &a, (1 << 21) - 1, &init), 0);
	assert_int_equal(a.qp_state, IBV_QPS_RTS);
	assert_int_equal(a.path_mtu, IBV_MTU_1024);
	assert_int_equal(a.dest_qp_num, p->qp[1]->qp_num);
	assert_int_equal(a.rq_psn, 77);
	assert_int_equal(a.max_rd_atomic, 4);
	assert_int_equal(a.max_dest_rd_atomic, 8);
	assert_int_equal(a.timeout, 14);
	assert_int_equal(a.retry_cnt, 5);
	assert_int_equal(a.rnr_retry, 7);
	assert_int_equal(a.min_rnr_timer, 1);
	assert_int_equal(a.port_num, 1);
	assert_int_equal(a.qp_access_flags, FULL_ACCESS & 0xe);
	assert_int_equal(a.ah_attr.grh.hop_limit, 9);
	assert_int_equal(a.ah_attr.grh.traffic_class, 0x60);
	assert_int_equal(a.ah_attr.grh.flow_label, 0x12345);
	if (!link_is_ib(p->ctx)) {
		assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &gid), 0);
		assert_memory_equal(a.ah_attr.grh.dgid.raw, gid.raw, 16);
	}
}

static void test_registration(void **state)
{
	struct pair *p = *state;
	int fd = memfd_create("dmabuf", 0);
	uint8_t *map;
	struct ibv_mr *mr;
	uint32_t old_key;

	/* iova 0: the remote address is an offset. */
	mr = ibv_reg_mr_iova(p->pd, p->buf + BUF / 2, BUF / 2, 0, FULL_ACCESS);
	assert_non_null(mr);
	scramble(p);
	{
		struct ibv_sge sge = {.addr = (uintptr_t)p->buf, .length = 300,
				      .lkey = p->mr->lkey};
		struct ibv_send_wr wr = {.wr_id = 0xabc, .sg_list = &sge, .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = 16, .rkey = mr->rkey}};
		struct ibv_send_wr *bad;

		assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
		ok(p);
		assert_memory_equal(p->buf, p->buf + BUF / 2 + 16, 300);
	}
	/* A key that comes back for the same index differs. */
	old_key = mr->rkey;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	for (int i = 0; i < 300; i++) {
		mr = ibv_reg_mr(p->pd, p->buf, 4096, FULL_ACCESS);
		assert_non_null(mr);
		assert_true(i > 200 || mr->rkey != old_key);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	/* A memfd stands in for a dma-buf. */
	assert_int_equal(ftruncate(fd, 16384), 0);
	map = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	mr = ibv_reg_dmabuf_mr(p->pd, 4096, 8192, 0x100000000ull, fd, FULL_ACCESS & 0xf);
	assert_non_null(mr);
	{
		struct ibv_sge sge = {.addr = (uintptr_t)p->buf, .length = 200,
				      .lkey = p->mr->lkey};
		struct ibv_send_wr wr = {.wr_id = 0xabc, .sg_list = &sge, .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = 0x100000000ull + 8,
						     .rkey = mr->rkey}};
		struct ibv_send_wr *bad;

		assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
		ok(p);
		assert_memory_equal(p->buf, map + 4096 + 8, 200);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(map, 16384);
	close(fd);
}

static void test_srq_ah_parent_domain(void **state)
{
	struct pair *p = *state;
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 100, .max_sge = 1}};
	struct ibv_parent_domain_init_attr pa = {.pd = p->pd};
	struct ibv_ah_attr aa = {.port_num = 1, .dlid = 1, .is_global = 1};
	struct ibv_srq_attr attr = {.srq_limit = 10};
	struct mlx5dv_srq dv = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
	struct mlx5dv_obj obj;
	struct ibv_pd *parent = ibv_alloc_parent_domain(p->ctx, &pa);
	struct ibv_srq *srq;
	struct ibv_ah *ah;

	assert_non_null(parent);
	srq = ibv_create_srq(parent, &sa);
	assert_non_null(srq);
	obj.srq.in = srq;
	obj.srq.out = &dv;
	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ), 0);
	assert_int_not_equal(dv.srqn, 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 10);
	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &aa.grh.dgid), 0);
	ah = ibv_create_ah(p->pd, &aa);
	assert_non_null(ah);
	if (!link_is_ib(p->ctx)) {
		struct mlx5dv_ah dva;

		obj.ah.in = ah;
		obj.ah.out = &dva;
		assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH), 0);
		assert_memory_equal(dva.av->rmac, "\x52\x54\x00", 3);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_write_read),	  T(test_atomics),	T(test_send_and_events),
		T(test_errors_and_flush), T(test_query),	T(test_registration),
		T(test_srq_ah_parent_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
