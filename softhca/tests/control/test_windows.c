/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows of both types, and SEND with invalidate, through both posting
 * interfaces: what a bound window lets pass, what it does not, who can take it back. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define HALF (BUF / 2)
#define AT   4096u /* where windows begin in the back half */
#define LEN  2000u

enum { ALL = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

/* QP 1 owns the windows, QP 0 uses them. mr: of the back half, to bind windows to. */
struct win {
	struct pair *p;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint8_t *at;
};

static void setup(struct win *w, struct pair *p, enum ibv_mw_type type)
{
	w->p = p;
	w->at = p->buf + HALF + AT;
	w->mr = ibv_reg_mr(p->pd, p->buf + HALF, HALF,
			   FULL_ACCESS | IBV_ACCESS_MW_BIND);
	assert_non_null(w->mr);
	w->mw = ibv_alloc_mw(p->pd, type);
	assert_non_null(w->mw);
	pair_scramble(p);
}

static void teardown(struct win *w)
{
	assert_int_equal(ibv_dealloc_mw(w->mw), 0);
	assert_int_equal(ibv_dereg_mr(w->mr), 0);
}

static struct ibv_mw_bind_info info(struct win *w, unsigned access)
{
	return (struct ibv_mw_bind_info){.mr = w->mr, .addr = (uintptr_t)w->at, .length = LEN,
					 .mw_access_flags = access};
}

static enum ibv_wc_status done(struct win *w, int side, enum ibv_wc_opcode op)
{
	struct ibv_wc wc = wait_wc(w->p->cq[side]);

	if (!wc.status)
		assert_int_equal(wc.opcode, op);
	return wc.status;
}

/* Type 2, by ibv_post_send of this QP. */
static enum ibv_wc_status bind_by(struct win *w, int side, struct ibv_mw_bind_info bind)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	uint32_t rkey = ibv_inc_rkey(w->mw->rkey);
	enum ibv_wc_status status;

	wr.bind_mw.mw = w->mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = bind;
	assert_int_equal(ibv_post_send(w->p->qp[side], &wr, &bad), 0);
	status = done(w, side, IBV_WC_BIND_MW);
	if (!status)
		w->mw->rkey = rkey;
	return status;
}

static enum ibv_wc_status local_invalidate(struct win *w, int side)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_LOCAL_INV,
				       .send_flags = IBV_SEND_SIGNALED,
				       .invalidate_rkey = w->mw->rkey};

	assert_int_equal(ibv_post_send(w->p->qp[side], &wr, &bad), 0);
	return done(w, side, IBV_WC_LOCAL_INV);
}

/* QP 0 works on the memory behind this address by the window's key. */
static enum ibv_wc_status use(struct win *w, enum ibv_wr_opcode op, uint64_t remote, uint32_t len)
{
	pair_post_at(w->p, op, w->p->buf, w->p->mr->lkey, (void *)(uintptr_t)remote, w->mw->rkey, len);
	return wait_wc(w->p->cq[0]).status;
}

static void reconnect(struct pair *p)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_modify_qp(p->qp[i], &a, IBV_QP_STATE), 0);
	for (int i = 0; i < 2; i++)
		while (ibv_poll_cq(p->cq[i], 1, &wc) > 0)
			;
	for (int i = 0; i < 2; i++)
		connect_qp(p->ctx, p->qp[i], p->qp[!i]->qp_num);
}

static void works(struct win *w, uint64_t remote)
{
	w->p->buf[0] ^= 0x55;
	memset(w->at, 0, LEN);
	assert_int_equal(use(w, IBV_WR_RDMA_WRITE, remote, LEN), 0);
	assert_memory_equal(w->at, w->p->buf, LEN);
	memset(w->p->buf, 0, LEN);
	assert_int_equal(use(w, IBV_WR_RDMA_READ, remote + 3, LEN - 3), 0);
	assert_memory_equal(w->p->buf, w->at + 3, LEN - 3);
	assert_int_equal(use(w, IBV_WR_ATOMIC_FETCH_AND_ADD, remote + 8, 8), 0);
}

/* A responder in error does not repeat a NAK that was lost. */
static void access_error(enum ibv_wc_status status)
{
	if (status != IBV_WC_RETRY_EXC_ERR || !getenv("SOFTHCA_FAULTS"))
		assert_int_equal(status, IBV_WC_REM_ACCESS_ERR);
}

static void refused(struct win *w, enum ibv_wr_opcode op, uint64_t remote, uint32_t len)
{
	access_error(use(w, op, remote, len));
	reconnect(w->p);
}

static void test_type_1(void **state)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	struct pair *p = *state;
	uint32_t old;
	struct win w;

	setup(&w, p, IBV_MW_TYPE_1);
	refused(&w, IBV_WR_RDMA_WRITE, (uintptr_t)w.at, 8); /* bound to nothing */
	bind.bind_info = info(&w, ALL);
	old = w.mw->rkey;
	assert_int_equal(ibv_bind_mw(p->qp[1], w.mw, &bind), 0);
	assert_int_equal(done(&w, 1, IBV_WC_BIND_MW), 0);
	assert_int_not_equal(w.mw->rkey, old);
	works(&w, (uintptr_t)w.at);
	refused(&w, IBV_WR_RDMA_WRITE, (uintptr_t)w.at - 1, 8);
	refused(&w, IBV_WR_RDMA_WRITE, (uintptr_t)w.at + LEN - 7, 8);
	/* Bound anew: another range, less access, and the old key is nothing any more. */
	bind.bind_info = info(&w, IBV_ACCESS_REMOTE_READ);
	bind.bind_info.length = 100;
	old = w.mw->rkey;
	assert_int_equal(ibv_bind_mw(p->qp[1], w.mw, &bind), 0);
	assert_int_equal(done(&w, 1, IBV_WC_BIND_MW), 0);
	assert_int_equal(use(&w, IBV_WR_RDMA_READ, (uintptr_t)w.at, 100), 0);
	refused(&w, IBV_WR_RDMA_READ, (uintptr_t)w.at, 101);
	refused(&w, IBV_WR_RDMA_WRITE, (uintptr_t)w.at, 8);
	w.mw->rkey = old;
	refused(&w, IBV_WR_RDMA_READ, (uintptr_t)w.at, 8);
	w.mw->rkey = ibv_inc_rkey(old);
	/* Length 0 binds it to nothing. */
	bind.bind_info = (struct ibv_mw_bind_info){0};
	assert_int_equal(ibv_bind_mw(p->qp[1], w.mw, &bind), 0);
	assert_int_equal(done(&w, 1, IBV_WC_BIND_MW), 0);
	refused(&w, IBV_WR_RDMA_READ, (uintptr_t)w.at, 8);
	teardown(&w);
}

static void test_type_2(void **state)
{
	struct pair *p = *state;
	struct ibv_mw_bind_info zero;
	struct win w;

	setup(&w, p, IBV_MW_TYPE_2);
	assert_int_equal(bind_by(&w, 1, info(&w, ALL)), 0);
	works(&w, (uintptr_t)w.at);
	refused(&w, IBV_WR_RDMA_READ, (uintptr_t)w.at - 1, 8);
	/* What is bound has to be taken back first, and by its own QP. */
	assert_int_equal(bind_by(&w, 1, info(&w, ALL)), IBV_WC_MW_BIND_ERR);
	reconnect(p);
	assert_int_equal(local_invalidate(&w, 0), IBV_WC_MW_BIND_ERR);
	reconnect(p);
	works(&w, (uintptr_t)w.at);
	assert_int_equal(local_invalidate(&w, 1), 0);
	refused(&w, IBV_WR_RDMA_READ, (uintptr_t)w.at, 8);
	zero = info(&w, ALL | IBV_ACCESS_ZERO_BASED);
	assert_int_equal(bind_by(&w, 1, zero), 0);
	works(&w, 0);
	assert_int_equal(local_invalidate(&w, 1), 0);
	/* Of QP 0: nothing that comes to QP 1 can use it. */
	assert_int_equal(bind_by(&w, 0, info(&w, ALL)), 0);
	refused(&w, IBV_WR_RDMA_READ, (uintptr_t)w.at, 8);
	assert_int_equal(local_invalidate(&w, 0), 0);
	/* The region goes, and the window is worth nothing. */
	assert_int_equal(bind_by(&w, 1, info(&w, ALL)), 0);
	assert_int_equal(ibv_dereg_mr(w.mr), 0);
	refused(&w, IBV_WR_RDMA_READ, (uintptr_t)w.at, 8);
	w.mr = ibv_reg_mr(p->pd, p->buf, 64, 0);
	assert_non_null(w.mr);
	teardown(&w);
}

static void test_bind_errors(void **state)
{
	struct pair *p = *state;
	struct ibv_pd *pd = ibv_alloc_pd(p->ctx);
	struct ibv_mr *plain = ibv_reg_mr(p->pd, p->buf, BUF, FULL_ACCESS);
	struct ibv_mr *other = ibv_reg_mr(pd, p->buf, BUF, FULL_ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_mr *readable = ibv_reg_mr(p->pd, p->buf, BUF,
					     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind_info bind[5];
	struct win w;

	setup(&w, p, IBV_MW_TYPE_2);
	for (unsigned i = 0; i < 5; i++)
		bind[i] = info(&w, IBV_ACCESS_REMOTE_WRITE);
	bind[0].mr = plain;    /* not for windows */
	bind[1].mr = other;    /* another PD */
	bind[2].mr = readable; /* not to be written */
	bind[3].length = HALF; /* past its end */
	bind[4].addr -= AT + 1;
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(bind_by(&w, 1, bind[i]), IBV_WC_MW_BIND_ERR);
		reconnect(p);
	}
	assert_int_equal(bind_by(&w, 1, info(&w, IBV_ACCESS_REMOTE_WRITE)), 0);
	teardown(&w);
	assert_int_equal(ibv_dereg_mr(plain), 0);
	assert_int_equal(ibv_dereg_mr(other), 0);
	assert_int_equal(ibv_dereg_mr(readable), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* ---- SEND with invalidate ---- */

static void send_inv(struct win *w, struct ibv_qp *qp, uint32_t len, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)w->p->buf, .length = len, .lkey = w->p->mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND_WITH_INV, .sg_list = &sge,
				       .send_flags = IBV_SEND_SIGNALED, .num_sge = len ? 1 : 0,
				       .invalidate_rkey = rkey};
	struct ibv_qp_ex *qx = qp == w->p->qp[0] ? NULL : ibv_qp_to_qp_ex(qp);

	if (!qx) {
		assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
		return;
	}
	ibv_wr_start(qx);
	qx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_inv(qx, rkey);
	ibv_wr_set_sge_list(qx, len ? 1 : 0, &sge);
	assert_int_equal(ibv_wr_complete(qx), 0);
}

static void recv_at(struct win *w, struct ibv_qp *qp, void *at, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = len, .lkey = w->p->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static void took_it_back(struct win *w, uint32_t len)
{
	struct ibv_wc wc = wait_wc(w->p->cq[1]);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, len);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_false(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(wc.invalidated_rkey, w->mw->rkey);
	assert_int_equal(done(w, 0, IBV_WC_SEND), 0);
}

static void test_send(void **state)
{
	static const uint32_t sizes[] = {0, 1, 32, 1000, 1024, 1025, 5000};
	struct pair *p = *state;
	uint8_t *to = p->buf + HALF + 16384;
	struct win w;

	setup(&w, p, IBV_MW_TYPE_2);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		assert_int_equal(bind_by(&w, 1, info(&w, ALL)), 0);
		works(&w, (uintptr_t)w.at);
		pair_scramble(p);
		recv_at(&w, p->qp[1], to, 6000);
		send_inv(&w, p->qp[0], sizes[i], w.mw->rkey);
		took_it_back(&w, sizes[i]);
		assert_memory_equal(to, p->buf, sizes[i]);
		refused(&w, IBV_WR_RDMA_READ, (uintptr_t)w.at, 8);
	}
	teardown(&w);
}

static void test_send_ex(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_RC, .send_cq = p->cq[0], .recv_cq = p->cq[0], .pd = p->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_INV,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_init_attr_ex b = a;
	struct ibv_qp_ex *qx;
	struct ibv_qp *from, *old = p->qp[1];
	uint8_t *to = p->buf + HALF + 16384;
	struct ibv_mw_bind_info bind;
	struct win w;

	setup(&w, p, IBV_MW_TYPE_2);
	b.send_cq = b.recv_cq = p->cq[1];
	b.send_ops_flags = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
	from = ibv_create_qp_ex(p->ctx, &a);
	p->qp[1] = ibv_create_qp_ex(p->ctx, &b);
	assert_non_null(from);
	assert_non_null(p->qp[1]);
	connect_qp(p->ctx, from, p->qp[1]->qp_num);
	connect_qp(p->ctx, p->qp[1], from->qp_num);
	qx = ibv_qp_to_qp_ex(p->qp[1]);
	for (int i = 0; i < 2; i++) {
		uint32_t rkey = ibv_inc_rkey(w.mw->rkey);

		bind = info(&w, ALL);
		ibv_wr_start(qx);
		qx->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_bind_mw(qx, w.mw, rkey, &bind);
		w.mw->rkey = rkey;
		if (i) /* once by itself */
			ibv_wr_local_inv(qx, rkey);
		assert_int_equal(ibv_wr_complete(qx), 0);
		assert_int_equal(done(&w, 1, IBV_WC_BIND_MW), 0);
		if (i) {
			assert_int_equal(done(&w, 1, IBV_WC_LOCAL_INV), 0);
			break;
		}
		recv_at(&w, p->qp[1], to, 6000);
		send_inv(&w, from, 3000, rkey);
		took_it_back(&w, 3000);
		assert_memory_equal(to, p->buf, 3000);
	}
	assert_int_equal(ibv_destroy_qp(from), 0);
	assert_int_equal(ibv_destroy_qp(p->qp[1]), 0);
	p->qp[1] = old;
	teardown(&w);
}

/* A key that the peer may not take back: of a region, a window of another queue pair or of
 * none, of type 1, unknown. */
static void test_send_errors(void **state)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	struct pair *p = *state;
	struct ibv_wc wc;
	struct ibv_mw *one;
	struct win w;

	setup(&w, p, IBV_MW_TYPE_2);
	one = ibv_alloc_mw(p->pd, IBV_MW_TYPE_1);
	assert_non_null(one);
	bind.bind_info = info(&w, ALL);
	assert_int_equal(ibv_bind_mw(p->qp[1], one, &bind), 0);
	assert_int_equal(done(&w, 1, IBV_WC_BIND_MW), 0);
	for (unsigned i = 0; i < 5; i++) {
		uint32_t key = w.mw->rkey;

		if (i == 0)
			key = w.mr->rkey;
		else if (i == 1)
			key = one->rkey;
		else if (i == 2)
			key ^= 0x7f;
		else if (i == 4) { /* bound, but to QP 0 */
			assert_int_equal(bind_by(&w, 0, info(&w, ALL)), 0);
			key = w.mw->rkey;
		}
		recv_at(&w, p->qp[1], p->buf + HALF + 16384, 100);
		send_inv(&w, p->qp[0], 100, key);
		access_error(wait_wc(p->cq[0]).status);
		wc = wait_wc(p->cq[1]);
		assert_int_equal(wc.status, IBV_WC_REM_INV_REQ_ERR);
		reconnect(p);
	}
	w.mw->rkey = one->rkey; /* it is still bound */
	works(&w, (uintptr_t)w.at);
	assert_int_equal(ibv_dealloc_mw(one), 0);
	teardown(&w);
}

static void test_device(void **state)
{
	struct pair *p = *state;
	struct ibv_device_attr a;
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	struct ibv_pd *pd = ibv_alloc_pd(p->ctx);
	struct ibv_mw *last = ibv_alloc_mw(pd, IBV_MW_TYPE_1);

	assert_int_equal(ibv_query_device(p->ctx, &a), 0);
	assert_true(a.max_mw > 0);
	assert_true(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	assert_true(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_true(a.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_mw(last), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_type_1, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_type_2, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_bind_errors, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_send, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_send_ex, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_send_errors, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_device, pair_setup, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
