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

#include "pair.h"

static void test_write_read(void **state)
{
	static const uint32_t sizes[] = {1, 7, 64, 1024, 1025, 5000, BUF / 2};
	struct pair *p = *state;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		pair_scramble(p);
		pair_post(p, IBV_WR_RDMA_WRITE, sizes[i], 0, p->mr->rkey, 0, 0);
		pair_ok(p);
		assert_memory_equal(p->buf, p->buf + BUF / 2, sizes[i]);
		pair_scramble(p);
		pair_post(p, IBV_WR_RDMA_READ, sizes[i], 0, p->mr->rkey, 0, 0);
		pair_ok(p);
		assert_memory_equal(p->buf, p->buf + BUF / 2, sizes[i]);
	}
	pair_scramble(p);
	pair_post(p, IBV_WR_RDMA_WRITE, 60, IBV_SEND_INLINE, p->mr->rkey, 0, 0);
	pair_ok(p);
	assert_memory_equal(p->buf, p->buf + BUF / 2, 60);
}

static void test_atomics(void **state)
{
	struct pair *p = *state;
	uint64_t *local = (uint64_t *)(void *)p->buf;
	uint64_t *remote = (uint64_t *)(void *)(p->buf + BUF / 2);

	*remote = 41;
	pair_post(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, p->mr->rkey, 1, 0);
	pair_ok(p);
	assert_int_equal(*local, 41);
	assert_int_equal(*remote, 42);
	pair_post(p, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0, p->mr->rkey, 42, 777);
	pair_ok(p);
	assert_int_equal(*local, 42);
	assert_int_equal(*remote, 777);
	pair_post(p, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0, p->mr->rkey, 42, 5);
	pair_ok(p);
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
		pair_scramble(p);
		pair_post(p, i & 1 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM, 100, 0,
		     p->mr->rkey, 0, 0);
		pair_ok(p);
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
	pair_post(p, IBV_WR_SEND_WITH_IMM, 4, 0, p->mr->rkey, 0, 0);
	pair_ok(p);
	wc = wait_wc(p->cq[1]);
	assert_int_equal(wc.wr_id, 6);
}

/* Is there one within the time that one takes? */
static bool event(struct pair *p, int ms)
{
	struct pollfd pf = {.fd = p->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (poll(&pf, 1, ms) != 1)
		return false;
	assert_int_equal(ibv_get_cq_event(p->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* Who asks for solicited completions alone hears of those, and of errors. */
static void test_solicited(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	for (int i = 0; i < 3; i++) {
		bool last = i == 2;

		receive(p, 5);
		assert_int_equal(ibv_req_notify_cq(p->cq[1], 1), 0);
		pair_post(p, IBV_WR_SEND, 8, last ? IBV_SEND_SOLICITED : 0, 0, 0, 0);
		pair_ok(p);
		assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_SUCCESS);
		assert_int_equal(event(p, last ? 2000 : 50), last);
	}
	/* Asked for all: that there was one is told, whatever kind. */
	receive(p, 5);
	assert_int_equal(ibv_req_notify_cq(p->cq[1], 0), 0);
	pair_post(p, IBV_WR_SEND, 8, 0, 0, 0, 0);
	pair_ok(p);
	assert_true(event(p, 2000));
	assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_SUCCESS);
	receive(p, 6);
	assert_int_equal(ibv_req_notify_cq(p->cq[1], 1), 0);
	assert_int_equal(ibv_modify_qp(p->qp[1], &a, IBV_QP_STATE), 0);
	assert_true(event(p, 2000));
	assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_WR_FLUSH_ERR);
}

/* What is built and given up is not posted, and no mistake to strict mode. */
static void test_abort(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_init_attr_ex ia = {
		.qp_type = IBV_QPT_RC, .send_cq = p->cq[0], .recv_cq = p->cq[0],
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = p->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(p->ctx, &ia);
	struct ibv_qp_ex *x;

	assert_non_null(qp);
	connect_qp(p->ctx, qp, qp->qp_num);
	x = ibv_qp_to_qp_ex(qp);
	x->wr_flags = IBV_SEND_SIGNALED;
	for (int i = 0; i < 40; i++) {
		bool posted = i % 3 == 0;

		pair_scramble(p);
		ibv_wr_start(x);
		x->wr_id = 0xabc;
		ibv_wr_rdma_write(x, p->mr->rkey, (uintptr_t)p->buf + BUF / 2);
		ibv_wr_set_sge(x, p->mr->lkey, (uintptr_t)p->buf, 100);
		if (!posted) {
			ibv_wr_abort(x);
			continue;
		}
		assert_int_equal(ibv_wr_complete(x), 0);
		assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_SUCCESS);
		assert_memory_equal(p->buf, p->buf + BUF / 2, 100);
	}
	ibv_wr_start(x);
	ibv_wr_rdma_write(x, p->mr->rkey, (uintptr_t)p->buf + BUF / 2);
	ibv_wr_set_sge(x, p->mr->lkey, (uintptr_t)p->buf, 100);
	ibv_wr_abort(x);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_poll_cq(p->cq[0], 1, &(struct ibv_wc){0}), 0);
}

static void test_errors_and_flush(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;

	pair_post(p, IBV_WR_RDMA_WRITE, 8, 0, p->mr->rkey ^ 0x5500, 0, 0);
	pair_post(p, IBV_WR_RDMA_WRITE, 8, 0, p->mr->rkey, 0, 0);
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
	pair_scramble(p);
	pair_post(p, IBV_WR_RDMA_WRITE, 512, 0, p->mr->rkey, 0, 0);
	pair_ok(p);
	assert_memory_equal(p->buf, p->buf + BUF / 2, 512);
}

/* As many receives as the queue pair says it takes, and not one more. */
static void test_receives_that_fit(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .send_cq = p->cq[0],
				      .recv_cq = p->cq[0],
				      .cap = {.max_send_wr = 1, .max_send_sge = 1,
					      .max_recv_wr = 20, .max_recv_sge = 3}};
	struct ibv_qp *qp = ibv_create_qp(p->pd, &ia);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						       IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_CAP, &ia), 0);
	assert_int_equal(a.cap.max_recv_wr, 32);
	assert_int_equal(ia.cap.max_recv_wr, 32);
	assert_int_equal(a.cap.max_recv_sge, 4);
	for (unsigned i = 0; i < a.cap.max_recv_wr; i++)
		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), ENOMEM);
	assert_int_equal(ibv_destroy_qp(qp), 0);
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

/* The kernel driver leaves log_sra_max at 0, which stands for one, where a program asks for none. */
static void test_one_read_at_least(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE), 0);
	connect_qp_reading(p->ctx, p->qp[0], p->qp[1]->qp_num, 0);
	assert_int_equal(ibv_query_qp(p->qp[0], &a, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
	assert_int_equal(a.max_rd_atomic, 1);
	pair_scramble(p);
	for (int i = 0; i < 8; i++)
		pair_post(p, IBV_WR_RDMA_READ, 300, IBV_SEND_SIGNALED, p->mr->rkey, 0, 0);
	for (int i = 0; i < 8; i++)
		pair_ok(p);
	assert_memory_equal(p->buf, p->buf + BUF / 2, 300);
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
	pair_scramble(p);
	{
		struct ibv_sge sge = {.addr = (uintptr_t)p->buf, .length = 300,
				      .lkey = p->mr->lkey};
		struct ibv_send_wr wr = {.wr_id = 0xabc, .sg_list = &sge, .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = 16, .rkey = mr->rkey}};
		struct ibv_send_wr *bad;

		assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
		pair_ok(p);
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
		pair_ok(p);
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
		T(test_receives_that_fit), T(test_solicited),	T(test_abort),
		T(test_srq_ah_parent_domain), T(test_one_read_at_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
