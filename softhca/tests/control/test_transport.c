/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of other services than RC, shared receive queues and their
 * events, data inside completions: through plain verbs. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

enum { GRH = 40, QKEY = 0x1234567 };

static struct ibv_qp *make_qp(struct pair *p, int i, enum ibv_qp_type type, struct ibv_srq *srq,
			      bool all)
{
	struct ibv_qp_init_attr ia = {.qp_type = type, .send_cq = p->cq[i], .recv_cq = p->cq[i],
				      .srq = srq, .sq_sig_all = all,
				      .cap = {.max_send_wr = 32, .max_recv_wr = 32,
					      .max_send_sge = 2, .max_recv_sge = 2,
					      .max_inline_data = 32}};
	struct ibv_qp *qp = ibv_create_qp(p->pd, &ia);

	assert_non_null(qp);
	return qp;
}

static void recv_at(struct ibv_qp *qp, struct ibv_srq *srq, const struct ibv_mr *mr, void *at,
		    uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = len, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)at, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad), 0);
}

static struct ibv_send_wr send_of(struct pair *p, struct ibv_sge *sge, uint32_t len)
{
	*sge = (struct ibv_sge){.addr = (uintptr_t)p->buf, .length = len, .lkey = p->mr->lkey};
	return (struct ibv_send_wr){.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED};
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
}

/* ---- datagrams ---- */

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						       IBV_QP_QKEY), 0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* A datagram to a QP of this port, and one back to whoever sent it. */
static void test_ud(void **state)
{
	struct pair *p = *state;
	struct ibv_qp *a = make_qp(p, 0, IBV_QPT_UD, NULL, false);
	struct ibv_qp *b = make_qp(p, 1, IBV_QPT_UD, NULL, false);
	bool ib = link_is_ib(p->ctx);
	struct ibv_ah_attr to = {.port_num = 1, .dlid = 1, .is_global = !ib,
				 .grh = {.hop_limit = 7, .traffic_class = 0x68}};
	uint8_t *at = p->buf + BUF / 2;
	struct ibv_qp_init_attr ia;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	to_rts(a);
	to_rts(b);
	assert_int_equal(ibv_query_qp(b, &attr, IBV_QP_QKEY, &ia), 0);
	assert_int_equal(attr.qkey, QKEY);
	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &to.grh.dgid), 0);
	ah = ibv_create_ah(p->pd, &to);
	assert_non_null(ah);
	pair_scramble(p);
	recv_at(b, NULL, p->mr, at, 1024 + GRH);
	wr = send_of(p, &sge, 1024);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htobe32(0xfeed);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = b->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	post(a, &wr);
	assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_SUCCESS);
	wc = wait_wc(p->cq[1]);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 1024 + GRH);
	assert_int_equal(be32toh(wc.imm_data), 0xfeed);
	assert_int_equal(wc.src_qp, a->qp_num);
	assert_int_equal(!!(wc.wc_flags & IBV_WC_GRH), !ib);
	assert_memory_equal(at + GRH, p->buf, 1024);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	ah = ibv_create_ah_from_wc(p->pd, &wc, (struct ibv_grh *)(void *)at, 1);
	assert_non_null(ah);
	recv_at(a, NULL, p->mr, at, 1000);
	wr = send_of(p, &sge, 20);
	wr.send_flags |= IBV_SEND_INLINE;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = wc.src_qp;
	wr.wr.ud.remote_qkey = QKEY;
	post(b, &wr);
	assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_SUCCESS);
	wc = wait_wc(p->cq[0]);
	assert_int_equal(wc.byte_len, 20 + GRH);
	assert_int_equal(wc.src_qp, b->qp_num);
	assert_memory_equal(at + GRH, p->buf, 20);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

/* What was posted before its queue is destroyed is sent: a program's last word. */
static void test_ud_last(void **state)
{
	struct pair *p = *state;
	struct ibv_qp *b = make_qp(p, 1, IBV_QPT_UD, NULL, false);
	struct ibv_ah_attr to = {.port_num = 1, .dlid = 1, .is_global = !link_is_ib(p->ctx),
				 .grh = {.hop_limit = 7}};
	uint8_t *at = p->buf + BUF / 2;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;

	to_rts(b);
	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &to.grh.dgid), 0);
	ah = ibv_create_ah(p->pd, &to);
	assert_non_null(ah);
	for (int i = 0; i < 50; i++) {
		struct ibv_qp *a = make_qp(p, 0, IBV_QPT_UD, NULL, false);

		to_rts(a);
		p->buf[0] = (uint8_t)(i + 1);
		recv_at(b, NULL, p->mr, at, 1024 + GRH);
		usleep(i % 5 * 1000); /* the engine may have gone to sleep */
		wr = send_of(p, &sge, 1024);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = b->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		post(a, &wr);
		assert_int_equal(ibv_destroy_qp(a), 0);
		assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_SUCCESS);
		assert_int_equal(at[GRH], i + 1);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

/* The send queue stops alone, says SQE, and goes on when told to. */
static void test_ud_sqe(void **state)
{
	struct pair *p = *state;
	struct ibv_qp *a = make_qp(p, 0, IBV_QPT_UD, NULL, false);
	struct ibv_ah_attr to = {.port_num = 1, .dlid = 1, .is_global = !link_is_ib(p->ctx),
				 .grh = {.hop_limit = 7}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
	struct ibv_qp_init_attr ia;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	to_rts(a);
	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &to.grh.dgid), 0);
	wr = send_of(p, &sge, 64);
	wr.wr.ud.ah = ibv_create_ah(p->pd, &to);
	wr.wr.ud.remote_qpn = a->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	sge.lkey ^= 1;
	post(a, &wr);
	assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_query_qp(a, &attr, IBV_QP_STATE, &ia), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_SQE);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
	assert_int_equal(ibv_modify_qp(a, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	sge.lkey ^= 1;
	post(a, &wr);
	assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(wr.wr.ud.ah), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
}

/* ---- unreliable connections ---- */

static void connect_uc(struct pair *p, struct ibv_qp *qp, uint32_t remote)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						       IBV_QP_ACCESS_FLAGS), 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_256,
				 .dest_qp_num = remote, .rq_psn = 5,
				 .ah_attr = {.port_num = 1, .dlid = 1,
					     .is_global = !link_is_ib(p->ctx)}};
	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						       IBV_QP_MIN_RNR_TIMER), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN), 0);
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = 5;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void test_uc(void **state)
{
	struct pair *p = *state;
	struct ibv_qp *a = make_qp(p, 0, IBV_QPT_UC, NULL, false);
	struct ibv_qp *b = make_qp(p, 1, IBV_QPT_UC, NULL, false);
	uint8_t *at = p->buf + BUF / 2;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	connect_uc(p, a, b->qp_num);
	connect_uc(p, b, a->qp_num);
	pair_scramble(p);
	wr = send_of(p, &sge, 5000);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)at;
	wr.wr.rdma.rkey = p->mr->rkey;
	post(a, &wr);
	recv_at(b, NULL, p->mr, at + 6000, 3000);
	wr = send_of(p, &sge, 3000);
	post(a, &wr);
	assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(p->cq[1]).byte_len, 3000);
	assert_memory_equal(at, p->buf, 5000);
	assert_memory_equal(at + 6000, p->buf, 3000);
	/* A READ is not for UC. */
	wr = send_of(p, &sge, 8);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = (uintptr_t)at;
	wr.wr.rdma.rkey = p->mr->rkey;
	post(a, &wr);
	assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

/* ---- shared receive queues ---- */

static bool event_waits(struct pair *p)
{
	struct pollfd f = {.fd = p->ctx->async_fd, .events = POLLIN};

	return poll(&f, 1, 0) == 1;
}

static struct ibv_async_event next_event(struct pair *p)
{
	struct pollfd f = {.fd = p->ctx->async_fd, .events = POLLIN};
	struct ibv_async_event e;

	assert_int_equal(poll(&f, 1, 5000), 1);
	assert_int_equal(ibv_get_async_event(p->ctx, &e), 0);
	ibv_ack_async_event(&e);
	return e;
}

static void test_srq(void **state)
{
	struct pair *p = *state;
	struct ibv_srq_init_attr sia = {.attr = {.max_wr = 16, .max_sge = 2}};
	struct ibv_pd *other = ibv_alloc_pd(p->ctx); /* an SRQ and its keys may be of another PD */
	struct ibv_mr *mr = ibv_reg_mr(other, p->buf, BUF, FULL_ACCESS);
	struct ibv_srq *srq = ibv_create_srq(other, &sia);
	struct ibv_qp *a = make_qp(p, 0, IBV_QPT_RC, NULL, false);
	struct ibv_qp *b = make_qp(p, 1, IBV_QPT_RC, srq, false);
	struct ibv_srq_attr set = {.srq_limit = 3}, now;
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	uint8_t *at = p->buf + BUF / 2;
	struct ibv_async_event e;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	assert_non_null(srq);
	connect_qp(p->ctx, a, b->qp_num);
	connect_qp(p->ctx, b, a->qp_num);
	for (unsigned i = 0; i < 6; i++)
		recv_at(NULL, srq, mr, at + 1000 * i, 1000);
	assert_int_equal(ibv_modify_srq(srq, &set, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.srq_limit, 3);
	pair_scramble(p);
	for (unsigned i = 0; i < 5; i++) {
		wr = send_of(p, &sge, 900 - i);
		post(a, &wr);
		assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_SUCCESS);
		assert_int_equal(wait_wc(p->cq[1]).byte_len, 900 - i);
		assert_memory_equal(at + 1000 * i, p->buf, 900 - i);
		assert_int_equal(event_waits(p), i >= 3); /* two are left */
	}
	e = next_event(p);
	assert_int_equal(e.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(e.element.srq, srq);
	assert_false(event_waits(p)); /* once */
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.srq_limit, 0);
	/* A QP that fails takes no more; what is posted serves others. */
	assert_int_equal(ibv_modify_qp(b, &err, IBV_QP_STATE), 0);
	e = next_event(p);
	assert_int_equal(e.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(e.element.qp, b);
	assert_int_equal(ibv_poll_cq(p->cq[1], 1, &(struct ibv_wc){0}), 0);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(b), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* n messages from a to the SRQ behind b; each has to arrive. */
static void send_messages(struct pair *p, struct ibv_qp *a, unsigned n)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	while (n--) {
		wr = send_of(p, &sge, 200);
		post(a, &wr);
		assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_SUCCESS);
		assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_SUCCESS);
	}
}

static void set_limit(struct ibv_srq *srq, uint32_t limit)
{
	struct ibv_srq_attr set = {.srq_limit = limit}, now;

	assert_int_equal(ibv_modify_srq(srq, &set, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.srq_limit, limit);
}

/* One event for each time that the limit is set; none when it is taken back. */
static void test_srq_limit(void **state)
{
	struct pair *p = *state;
	struct ibv_srq_init_attr sia = {.attr = {.max_wr = 30, .max_sge = 1, .srq_limit = 25}};
	struct ibv_srq *srq = ibv_create_srq(p->pd, &sia), *none;
	struct ibv_qp *a = make_qp(p, 0, IBV_QPT_RC, NULL, false);
	struct ibv_qp *b = make_qp(p, 1, IBV_QPT_RC, srq, false);
	struct ibv_srq_attr set = {.srq_limit = 1000};
	uint8_t *at = p->buf + BUF / 2;
	struct ibv_async_event e;

	assert_non_null(srq);
	assert_int_equal(ibv_query_srq(srq, &sia.attr), 0);
	assert_int_equal(sia.attr.srq_limit, 0); /* what creation is told means nothing */
	connect_qp(p->ctx, a, b->qp_num);
	connect_qp(p->ctx, b, a->qp_num);
	assert_int_equal(ibv_modify_srq(srq, &set, IBV_SRQ_LIMIT), EINVAL); /* never to be reached */
	for (unsigned i = 0; i < 20; i++)
		recv_at(NULL, srq, p->mr, at + 256 * i, 256);
	set_limit(srq, 18);
	send_messages(p, a, 2);
	assert_false(event_waits(p)); /* 18 are left */
	set_limit(srq, 0);
	send_messages(p, a, 4);
	assert_false(event_waits(p)); /* taken back */
	set_limit(srq, 14);
	send_messages(p, a, 1);
	assert_true(event_waits(p));
	send_messages(p, a, 3);
	e = next_event(p);
	assert_int_equal(e.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(e.element.srq, srq);
	assert_false(event_waits(p)); /* 10 are left: once */
	set_limit(srq, 10);
	recv_at(NULL, srq, p->mr, at + 256 * 20, 256);
	send_messages(p, a, 1);
	assert_false(event_waits(p)); /* as many as before */
	send_messages(p, a, 1);
	e = next_event(p);
	assert_int_equal(e.event_type, IBV_EVENT_SRQ_LIMIT_REACHED); /* armed anew */
	sia.attr = (struct ibv_srq_attr){0}; /* an empty one may be made */
	none = ibv_create_srq(p->pd, &sia);
	assert_non_null(none);
	assert_int_equal(ibv_destroy_srq(none), 0);
	/* An event that nobody has read does not keep the queue alive. */
	set_limit(srq, 9);
	send_messages(p, a, 1);
	assert_true(event_waits(p));
	assert_int_equal(ibv_destroy_qp(b), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_false(event_waits(p));
}

/* ---- data in completions ---- */

/* It is there when the completion has been polled; where it is in there, not before. */
static void in_cqe(struct pair *p, struct ibv_cq *polled, const uint8_t *data, uint8_t *at,
		   uint32_t len, uint32_t limit)
{
	uint8_t before[128];

	memset(before, 0xee, sizeof(before));
	usleep(20000);
	if (len && len <= limit)
		assert_memory_equal(at, before, len);
	assert_int_equal(wait_wc(polled).status, IBV_WC_SUCCESS);
	assert_memory_equal(at, data, len);
	assert_int_equal(at[len], 0xee);
	(void)p;
}

static void test_scatter_to_cqe(void **state)
{
	static const uint32_t sizes[] = {1, 7, 32, 33, 64, 65};
	const char *off = getenv("MLX5_SCATTER_TO_CQE"), *size = getenv("MLX5_CQE_SIZE");
	bool on = !off || strcmp(off, "0"), wide = size && !strcmp(size, "128");
	uint32_t limit = on ? 32 << wide : 0, limit_req = on && !wide ? 32 : 0;
	struct pair *p = *state;
	struct ibv_qp *a = make_qp(p, 0, IBV_QPT_RC, NULL, true);
	struct ibv_qp *b = make_qp(p, 1, IBV_QPT_RC, NULL, true);
	uint8_t *at = p->buf + BUF / 2, *from = p->buf + BUF / 4;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	connect_qp(p->ctx, a, b->qp_num);
	connect_qp(p->ctx, b, a->qp_num);
	pair_scramble(p);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		memset(at, 0xee, 128);
		recv_at(b, NULL, p->mr, at, 128);
		wr = send_of(p, &sge, sizes[i]);
		post(a, &wr);
		assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_SUCCESS);
		in_cqe(p, p->cq[1], p->buf, at, sizes[i], limit);

		memset(at, 0xee, 128);
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = (uintptr_t)from;
		wr.wr.rdma.rkey = p->mr->rkey;
		sge.addr = (uintptr_t)at;
		post(a, &wr);
		in_cqe(p, p->cq[0], from, at, sizes[i], limit_req);
	}
	memset(at, 0xee, 128);
	sge.addr = (uintptr_t)at;
	sge.length = 8;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)from;
	wr.wr.atomic.rkey = p->mr->rkey;
	wr.wr.atomic.compare_add = 0;
	post(a, &wr);
	in_cqe(p, p->cq[0], from, at, 8, limit_req);
	/* Addresses that are no pointers. */
	mr = ibv_reg_mr_iova(p->pd, p->buf, BUF, 0x1000, FULL_ACCESS);
	assert_non_null(mr);
	memset(at, 0xee, 128);
	recv_at(b, NULL, mr, (void *)(uintptr_t)(0x1000 + BUF / 2), 128);
	wr = send_of(p, &sge, 8);
	post(a, &wr);
	assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_SUCCESS);
	assert_memory_equal(at, p->buf, 8);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ud, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_ud_last, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_ud_sqe, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_uc, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_srq, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_srq_limit, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_scatter_to_cqe, pair_setup, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
