/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that change while they are in use: completion queues that grow, shrink
 * and overrun, regions that are registered again, queue pairs that go round their
 * states or go away amid traffic. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

/* ---- completion queues ---- */

static void writes(struct pair *p, unsigned n)
{
	while (n--)
		pair_post(p, IBV_WR_RDMA_WRITE, 8, 0, p->mr->rkey, 0, 0);
}

/* Posted work is done when what QP 1 receives behind it is. */
static void settle(struct pair *p)
{
	struct ibv_sge sge = {.addr = (uintptr_t)p->buf + BUF / 2, .length = 64,
			      .lkey = p->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_sge from = {.addr = (uintptr_t)p->buf, .length = 4, .lkey = p->mr->lkey};
	struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad_send;

	assert_int_equal(ibv_post_recv(p->qp[1], &wr, &bad), 0);
	assert_int_equal(ibv_post_send(p->qp[0], &send, &bad_send), 0);
	assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_SUCCESS);
	usleep(2000); /* the acknowledgement of it */
}

static void test_resize(void **state)
{
	static const int sizes[] = {200, 20, 1000, 31, 7, 64};
	struct pair *p = *state;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int least = sizes[i] < p->cq[0]->cqe ? sizes[i] : p->cq[0]->cqe;
		unsigned waiting = least < 20 ? (unsigned)least - 2 : 18;

		/* Some laps, so that the index is not small. */
		for (unsigned n = 0; n < 17 + 5 * i; n++) {
			writes(p, 1);
			pair_ok(p);
		}
		writes(p, waiting);
		settle(p);
		assert_int_equal(ibv_resize_cq(p->cq[0], sizes[i]), 0);
		assert_true(p->cq[0]->cqe >= sizes[i]);
		/* What waited before and what comes after. */
		for (unsigned n = 0; n < waiting; n++)
			pair_ok(p);
		for (unsigned n = 0; n < 3; n++) {
			writes(p, 4);
			for (unsigned m = 0; m < 4; m++)
				pair_ok(p);
		}
	}
	writes(p, 20);
	settle(p);
	assert_int_equal(ibv_resize_cq(p->cq[0], 10), EINVAL); /* 20 wait */
	for (unsigned n = 0; n < 20; n++)
		pair_ok(p);
	writes(p, 8);
	settle(p);
	assert_int_equal(ibv_resize_cq(p->cq[0], 7), EINVAL); /* as many as it has, and one that says "resized" */
	pair_ok(p);
	assert_int_equal(ibv_resize_cq(p->cq[0], 7), 0);
	for (unsigned n = 0; n < 7; n++)
		pair_ok(p);
	assert_int_equal(ibv_resize_cq(p->cq[0], 1 << 22), EINVAL);
	writes(p, 1);
	pair_ok(p);
}

struct poller {
	struct pair *p;
	unsigned done;
};

static void *poll_all(void *arg)
{
	struct poller *poller = arg;

	for (; poller->done < 3000; poller->done++)
		pair_ok(poller->p);
	return NULL;
}

static void test_resize_amid_traffic(void **state)
{
	struct poller poller = {.p = *state};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, poll_all, &poller), 0);
	/* The poller's count, read as a hint: at most 24 are under way. */
	for (unsigned posted = 0; posted < 3000; posted++) {
		while (posted - __atomic_load_n(&poller.done, __ATOMIC_RELAXED) > 24)
			usleep(10);
		writes(poller.p, 1);
		if (posted % 50 == 0)
			assert_int_equal(ibv_resize_cq(poller.p->cq[0], posted % 100 ? 63 : 255),
					 0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_resize_with_events(void **state)
{
	struct pair *p = *state;
	struct ibv_sge sge = {.addr = (uintptr_t)p->buf + BUF / 2, .length = 64,
			      .lkey = p->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct pollfd pf = {.fd = p->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	for (int i = 0; i < 6; i++) {
		assert_int_equal(ibv_req_notify_cq(p->cq[1], 0), 0);
		assert_int_equal(ibv_resize_cq(p->cq[1], i & 1 ? 60 : 200), 0);
		assert_int_equal(poll(&pf, 1, 20), 0); /* resizing is no completion */
		assert_int_equal(ibv_post_recv(p->qp[1], &wr, &bad), 0);
		pair_post(p, IBV_WR_SEND, 8, 0, 0, 0, 0);
		pair_ok(p);
		assert_int_equal(ibv_get_cq_event(p->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_SUCCESS);
	}
}

static int next_event(struct pair *p, struct ibv_async_event *ev)
{
	struct pollfd pf = {.fd = p->ctx->async_fd, .events = POLLIN};

	if (poll(&pf, 1, ev ? 2000 : 50) != 1)
		return 0;
	return ev && !ibv_get_async_event(p->ctx, ev) ? 1 : -1;
}

static void test_overrun(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 32, .max_send_sge = 1}};
	struct ibv_cq *small = ibv_create_cq(p->ctx, 3, NULL, NULL, 0);
	struct ibv_qp *qp, *first = p->qp[0];
	struct ibv_qp_attr a;
	struct ibv_async_event ev;
	unsigned seen = 0;

	ia.send_cq = ia.recv_cq = small;
	qp = ibv_create_qp(p->pd, &ia);
	assert_non_null(qp);
	connect_qp(p->ctx, qp, p->qp[1]->qp_num);
	a.qp_state = IBV_QPS_RESET;
	assert_int_equal(ibv_modify_qp(p->qp[1], &a, IBV_QP_STATE), 0);
	connect_qp(p->ctx, p->qp[1], qp->qp_num);
	p->qp[0] = qp;
	writes(p, 12);
	for (int i = 0; i < 2; i++) { /* one of each */
		assert_int_equal(next_event(p, &ev), 1);
		seen |= 1u << ev.event_type;
		if (ev.event_type == IBV_EVENT_CQ_ERR)
			assert_ptr_equal(ev.element.cq, small);
		else
			assert_ptr_equal(ev.element.qp, qp);
		ibv_ack_async_event(&ev);
	}
	assert_int_equal(seen, 1u << IBV_EVENT_CQ_ERR | 1u << IBV_EVENT_QP_FATAL);
	assert_int_equal(next_event(p, NULL), 0);
	for (int i = 0; i < 1000 && a.qp_state != IBV_QPS_ERR; i++) {
		assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_STATE, &ia), 0);
		usleep(1000);
	}
	assert_int_equal(a.qp_state, IBV_QPS_ERR);
	/* What was there can be read, the rest is lost, for ever. */
	for (int i = 0; i < 4; i++)
		assert_int_equal(wait_wc(small).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(small, 1, &(struct ibv_wc){0}), 0);
	assert_int_equal(ibv_resize_cq(small, 100), EINVAL);
	p->qp[0] = first;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(small), 0);
}

/* ---- memory ---- */

static enum ibv_wc_status write_status(struct pair *p, uint32_t rkey)
{
	struct ibv_wc wc;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

	pair_post(p, IBV_WR_RDMA_WRITE, 32, 0, rkey, 0, 0);
	wc = wait_wc(p->cq[0]);
	if (wc.status == IBV_WC_SUCCESS)
		return wc.status;
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_modify_qp(p->qp[i], &a, IBV_QP_STATE), 0);
	for (int i = 0; i < 2; i++)
		connect_qp(p->ctx, p->qp[i], p->qp[!i]->qp_num);
	return wc.status;
}

static void test_rereg(void **state)
{
	struct pair *p = *state;
	struct ibv_pd *other = ibv_alloc_pd(p->ctx);
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf + BUF / 2, 4096, IBV_ACCESS_LOCAL_WRITE);
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_non_null(mr);
	assert_int_equal(write_status(p, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), 0);
	pair_scramble(p);
	assert_int_equal(write_status(p, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(p->buf, p->buf + BUF / 2, 32);
	/* What cannot be changes nothing. */
	assert_true(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 IBV_ACCESS_REMOTE_WRITE) != 0);
	assert_true(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, hole, 4096, 0) != 0);
	assert_int_equal(write_status(p, mr->rkey), IBV_WC_SUCCESS);
	/* Elsewhere: the old address is out of bounds. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p->buf, 4096, 0),
			 0);
	assert_ptr_equal(mr->addr, p->buf);
	assert_int_equal(write_status(p, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	/* In another domain, together with the first place. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD,
				      other, p->buf + BUF / 2, 4096, 0), 0);
	assert_int_equal(write_status(p, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, p->pd, NULL, 0, 0), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	assert_int_equal(write_status(p, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(hole, 4096);
}

/* ---- queue pairs ---- */

static void test_states(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .qp_access_flags = 0,
				.cur_qp_state = IBV_QPS_RTS};
	struct ibv_qp_init_attr ia;

	/* RTS to RTS: QP 1 stops to grant writes, and grants them again. */
	assert_int_equal(ibv_modify_qp(p->qp[1], &a, IBV_QP_STATE | IBV_QP_CUR_STATE |
							     IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_query_qp(p->qp[1], &a, IBV_QP_ACCESS_FLAGS, &ia), 0);
	assert_int_equal(a.qp_access_flags, 0);
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(ibv_modify_qp(p->qp[1], &a, IBV_QP_ACCESS_FLAGS), 0);
	writes(p, 1);
	pair_ok(p);
	/* The driver has no way from RTS to SQD. */
	a.qp_state = IBV_QPS_SQD;
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE), EINVAL);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE), EINVAL);
	a.cur_qp_state = IBV_QPS_RTR;
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
	/* To error and round again, with work posted on the way: it is flushed once. */
	for (int lap = 0; lap < 5; lap++) {
		a.qp_state = IBV_QPS_ERR;
		assert_int_equal(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE), 0);
		writes(p, 2);
		for (int i = 0; i < 2; i++)
			assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(ibv_poll_cq(p->cq[0], 1, &(struct ibv_wc){0}), 0);
		assert_int_equal(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE), 0); /* ERR to ERR */
		a.qp_state = IBV_QPS_RESET;
		for (int i = 0; i < 2; i++)
			assert_int_equal(ibv_modify_qp(p->qp[i], &a, IBV_QP_STATE), 0);
		a = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
		assert_int_equal(ibv_modify_qp(p->qp[1], &a,
					       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						       IBV_QP_ACCESS_FLAGS), 0);
		a.qp_access_flags = IBV_ACCESS_REMOTE_READ; /* INIT to INIT */
		assert_int_equal(ibv_modify_qp(p->qp[1], &a, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS),
				 0);
		assert_int_equal(ibv_query_qp(p->qp[1], &a, IBV_QP_STATE, &ia), 0);
		assert_int_equal(a.qp_state, IBV_QPS_INIT);
		assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_READ);
		a.qp_state = IBV_QPS_RESET;
		assert_int_equal(ibv_modify_qp(p->qp[1], &a, IBV_QP_STATE), 0);
		for (int i = 0; i < 2; i++)
			connect_qp(p->ctx, p->qp[i], p->qp[!i]->qp_num);
		pair_scramble(p);
		writes(p, 3);
		for (int i = 0; i < 3; i++)
			pair_ok(p);
		assert_memory_equal(p->buf, p->buf + BUF / 2, 8);
	}
}

static unsigned granted(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr ia;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_ACCESS_FLAGS, &ia), 0);
	return a.qp_access_flags;
}

/* As with the kernel driver: who has no resources for READs and atomics grants none. */
static void test_no_resources(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct pair *p = *state;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(granted(p->qp[1]), FULL_ACCESS & 0xe);
	for (unsigned op = 0; op < 3; op++) {
		for (int i = 0; i < 2; i++) {
			a.qp_state = IBV_QPS_RESET;
			assert_int_equal(ibv_modify_qp(p->qp[i], &a, IBV_QP_STATE), 0);
		}
		connect_qp(p->ctx, p->qp[0], p->qp[1]->qp_num);
		connect_qp_read(p->ctx, p->qp[1], p->qp[0]->qp_num, 0);
		assert_int_equal(granted(p->qp[1]), IBV_ACCESS_REMOTE_WRITE);
		/* Nor does asking again help. */
		a.qp_access_flags = FULL_ACCESS & 0xe;
		assert_int_equal(ibv_modify_qp(p->qp[1], &a, IBV_QP_ACCESS_FLAGS), 0);
		assert_int_equal(granted(p->qp[1]), IBV_ACCESS_REMOTE_WRITE);
		pair_post(p, ops[op], 8, 0, p->mr->rkey, 1, 0);
		assert_int_equal(wait_wc(p->cq[0]).status,
				 op ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
	}
}

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                                                     \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |            \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS                                                                                     \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |     \
	 IBV_QP_MAX_QP_RD_ATOMIC)

/* One of the bytes of a is one too many; then it is not. */
static void limit(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask, uint8_t *byte)
{
	(*byte)++;
	assert_int_equal(ibv_modify_qp(qp, a, mask), EINVAL);
	(*byte)--;
}

/* Values at their limits are taken, the next ones are not, and change nothing. */
static void test_values(void **state)
{
	struct pair *p = *state;
	struct ibv_qp *qp = p->qp[0];
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET, .port_num = 1};

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_INIT;
	limit(qp, &a, TO_INIT, &a.port_num);
	a.pkey_index = 1;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_INIT), EINVAL);
	a.pkey_index = 0;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_INIT), 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_256,
				 .max_dest_rd_atomic = 16, .min_rnr_timer = 31,
				 .ah_attr = {.port_num = 1, .dlid = 1, .is_global = !link_is_ib(p->ctx)}};
	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	limit(qp, &a, TO_RTR, &a.max_dest_rd_atomic);
	limit(qp, &a, TO_RTR, &a.min_rnr_timer);
	a.path_mtu = 0;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTR), EINVAL);
	a.path_mtu = IBV_MTU_256;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTR), 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 31, .retry_cnt = 7,
				 .rnr_retry = 7, .max_rd_atomic = 16};
	limit(qp, &a, TO_RTS, &a.timeout);
	limit(qp, &a, TO_RTS, &a.retry_cnt);
	limit(qp, &a, TO_RTS, &a.rnr_retry);
	limit(qp, &a, TO_RTS, &a.max_rd_atomic);
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTS), 0);
}

/* The kernel wants the port in the address vector, too. */
static void test_path_without_port(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET, .port_num = 1};

	assert_int_equal(ibv_modify_qp(p->qp[0], &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_INIT;
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, TO_INIT), 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
				 .ah_attr = {.dlid = 1, .is_global = !link_is_ib(p->ctx)}};
	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, TO_RTR), EINVAL);
	a.ah_attr.port_num = 2;
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, TO_RTR), EINVAL);
	a.ah_attr.port_num = 1;
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, TO_RTR), 0);
}

/* Everything goes away while the engine works on it; what is left still works. */
static void test_destroy_amid_traffic(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 32, .max_recv_wr = 4,
					      .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *keep[2] = {p->qp[0], p->qp[1]};
	struct ibv_mr *keep_mr = p->mr;

	for (int round = 0; round < 60; round++) {
		struct ibv_cq *cq[2];
		struct ibv_qp *qp[2];
		struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf, BUF, FULL_ACCESS);

		for (int i = 0; i < 2; i++) {
			cq[i] = ibv_create_cq(p->ctx, 64, NULL, NULL, 0);
			ia.send_cq = ia.recv_cq = cq[i];
			qp[i] = ibv_create_qp(p->pd, &ia);
			assert_non_null(qp[i]);
		}
		for (int i = 0; i < 2; i++)
			connect_qp(p->ctx, qp[i], qp[!i]->qp_num);
		p->qp[0] = qp[0];
		p->mr = mr;
		for (int n = 0; n < 30; n++)
			pair_post(p, n & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, BUF / 2, 0,
				  mr->rkey, 0, 0);
		/* The sender first, the responder first, the memory first. */
		if (round % 3 == 2)
			assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(ibv_destroy_qp(qp[round & 1]), 0);
		assert_int_equal(ibv_destroy_qp(qp[!(round & 1)]), 0);
		if (round % 3 != 2)
			assert_int_equal(ibv_dereg_mr(mr), 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	}
	memcpy(p->qp, keep, sizeof(keep));
	p->mr = keep_mr;
	pair_scramble(p);
	writes(p, 2);
	pair_ok(p);
	pair_ok(p);
	assert_memory_equal(p->buf, p->buf + BUF / 2, 8);
}

/* The verbs contract of fork: the child has no part in the device, whatever it calls, and the
 * parent goes on. What the child posts must not ring in the parent. */
static void child_of(struct pair *p)
{
	struct ibv_wc wc;

	for (int i = 0; i < 8; i++)
		pair_post(p, IBV_WR_RDMA_WRITE, 64, i & 1 ? IBV_SEND_INLINE : 0, p->mr->rkey, 0, 0);
	/* What completed before the fork may be there: the queue was copied. */
	usleep(2000);
	if (ibv_poll_cq(p->cq[0], 1, &wc) < 0 || ibv_alloc_pd(p->ctx))
		_exit(1);
	if (!ibv_destroy_qp(p->qp[0]) || !ibv_dereg_mr(p->mr))
		_exit(2);
	_exit(0);
}

static void test_fork(void **state)
{
	struct pair *p = *state;
	int status;

	for (int round = 0; round < 5; round++) {
		pid_t pid;

		writes(p, 4); /* under way */
		pid = fork();
		if (!pid)
			child_of(p);
		assert_true(pid > 0);
		for (int i = 0; i < 4; i++)
			pair_ok(p);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		/* Nothing rang here: no completion comes, and the next ones are the parent's. */
		usleep(5000);
		assert_int_equal(ibv_poll_cq(p->cq[0], 1, &(struct ibv_wc){0}), 0);
		pair_scramble(p);
		writes(p, 4);
		for (int i = 0; i < 4; i++)
			pair_ok(p);
		assert_memory_equal(p->buf, p->buf + BUF / 2, 8);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_resize),	 T(test_resize_amid_traffic), T(test_resize_with_events),
		T(test_overrun), T(test_rereg),		      T(test_states),
		T(test_destroy_amid_traffic), T(test_fork),   T(test_no_resources),
		T(test_path_without_port),    T(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
