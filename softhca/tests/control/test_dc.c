/* SPDX-License-Identifier: BSD-3-Clause */
/* Dynamically connected transport through both interfaces: initiators and targets of mlx5dv,
 * and by firmware command with hand-written WQEs; each kind with the other. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

#define KEY  0x0123456789abcdefull
#define HALF (BUF / 2)

/* Beside the pair: an SRQ, whose completions go to CQ 1 as the targets' do. */
struct dc {
	struct pair *p;
	struct ibv_srq *srq;
	struct ibv_qp *dci, *dct;
	struct ibv_ah *ah;
	bool ib;
};

static struct ibv_qp *make_dct(struct dc *d, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_DRIVER, .send_cq = d->p->cq[1],
					.recv_cq = d->p->cq[1], .pd = d->p->pd, .srq = srq,
					.comp_mask = IBV_QP_INIT_ATTR_PD};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT,
							  .dct_access_key = KEY}};

	return mlx5dv_create_qp(d->p->ctx, &a, &dv);
}

static struct ibv_qp *make_dci(struct dc *d, unsigned recv_wr)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_DRIVER, .send_cq = d->p->cq[0], .recv_cq = d->p->cq[0],
		.pd = d->p->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
		.cap = {.max_send_wr = 32, .max_send_sge = 2, .max_inline_data = 64,
			.max_recv_wr = recv_wr, .max_recv_sge = recv_wr ? 1 : 0},
	};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};

	return mlx5dv_create_qp(d->p->ctx, &a, &dv);
}

static int dct_step(struct dc *d, struct ibv_qp *dct, enum ibv_qp_state to)
{
	struct ibv_qp_attr a = {
		.qp_state = to, .port_num = 1, .path_mtu = IBV_MTU_1024, .min_rnr_timer = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.ah_attr = {.port_num = 1, .is_global = !d->ib, .grh = {.hop_limit = 9}},
	};

	return ibv_modify_qp(dct, &a, to == IBV_QPS_INIT
					      ? IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
							IBV_QP_ACCESS_FLAGS
					      : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
							IBV_QP_MIN_RNR_TIMER);
}

static void dci_ready(struct ibv_qp *dci, uint8_t reads)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
				.timeout = 10, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = 0xfffffe,
				.max_rd_atomic = reads};

	assert_int_equal(ibv_modify_qp(dci, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(dci, &a, IBV_QP_STATE | IBV_QP_PATH_MTU), 0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(dci, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
							IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void dci_again(struct ibv_qp *dci, uint8_t reads)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(ibv_modify_qp(dci, &a, IBV_QP_STATE), 0);
	dci_ready(dci, reads);
}

static void dc_setup(struct dc *d, struct pair *p)
{
	struct ibv_srq_init_attr sia = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_ah_attr to = {.port_num = 1, .dlid = 1, .grh = {.hop_limit = 9}};

	*d = (struct dc){.p = p, .ib = link_is_ib(p->ctx)};
	d->srq = ibv_create_srq(p->pd, &sia);
	assert_non_null(d->srq);
	d->dct = make_dct(d, d->srq);
	assert_non_null(d->dct);
	assert_int_equal(dct_step(d, d->dct, IBV_QPS_INIT), 0);
	assert_int_equal(dct_step(d, d->dct, IBV_QPS_RTR), 0);
	d->dci = make_dci(d, 0);
	assert_non_null(d->dci);
	dci_ready(d->dci, 4);
	to.is_global = !d->ib;
	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &to.grh.dgid), 0);
	d->ah = ibv_create_ah(p->pd, &to);
	assert_non_null(d->ah);
	pair_scramble(p);
}

static void dc_teardown(struct dc *d)
{
	assert_int_equal(ibv_destroy_ah(d->ah), 0);
	assert_int_equal(ibv_destroy_qp(d->dci), 0);
	assert_int_equal(ibv_destroy_srq(d->srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(d->dct), 0);
	assert_int_equal(ibv_destroy_srq(d->srq), 0);
}

static void recv_at(struct dc *d, void *at, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = len, .lkey = d->p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)at, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_srq_recv(d->srq, &wr, &bad), 0);
}

/* One request to this target from the front half; add, swap: of atomics, or immediate. */
static void post_to(struct dc *d, uint32_t dctn, uint64_t key, enum ibv_wr_opcode op, uint32_t len,
		    void *remote, uint32_t rkey, uint64_t add, uint64_t swap)
{
	struct ibv_qp_ex *qx = ibv_qp_to_qp_ex(d->dci);
	uint64_t at = (uintptr_t)remote;

	ibv_wr_start(qx);
	qx->wr_id = 1;
	qx->wr_flags = IBV_SEND_SIGNALED;
	switch (op) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qx, rkey, at);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qx, rkey, at, htobe32((uint32_t)add));
		break;
	case IBV_WR_SEND:
		ibv_wr_send(qx);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qx, htobe32((uint32_t)add));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qx, rkey, at);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qx, rkey, at, add);
		break;
	default:
		ibv_wr_atomic_cmp_swp(qx, rkey, at, add, swap);
	}
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qx), d->ah, dctn, key);
	ibv_wr_set_sge(qx, d->p->mr->lkey, (uintptr_t)d->p->buf, len);
	assert_int_equal(ibv_wr_complete(qx), 0);
}

static void post(struct dc *d, enum ibv_wr_opcode op, uint32_t len, void *remote, uint64_t add,
		 uint64_t swap)
{
	post_to(d, d->dct->qp_num, KEY, op, len, remote, d->p->mr->rkey, add, swap);
}

static struct ibv_wc sent(struct dc *d)
{
	struct ibv_wc wc = wait_wc(d->p->cq[0]);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.qp_num, d->dci->qp_num);
	return wc;
}

static struct ibv_wc received(struct dc *d, enum ibv_wc_opcode op, uint32_t len)
{
	struct ibv_wc wc = wait_wc(d->p->cq[1]);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.qp_num, d->dct->qp_num);
	assert_int_equal(wc.opcode, op);
	assert_int_equal(wc.byte_len, len);
	return wc;
}

/* ---- mlx5dv ---- */

static void test_operations(void **state)
{
	struct pair *p = *state;
	uint8_t *at = p->buf + HALF;
	uint64_t *word = (uint64_t *)(void *)(at + 16384), *here = (uint64_t *)(void *)p->buf;
	struct ibv_wc wc;
	struct dc d;

	dc_setup(&d, p);
	post(&d, IBV_WR_RDMA_WRITE, 5000, at, 0, 0);
	sent(&d);
	assert_memory_equal(at, p->buf, 5000);
	recv_at(&d, at + 8192, 4000);
	post(&d, IBV_WR_SEND, 3000, NULL, 0, 0);
	sent(&d);
	wc = received(&d, IBV_WC_RECV, 3000);
	assert_int_equal(wc.wr_id, (uintptr_t)at + 8192);
	assert_memory_equal(at + 8192, p->buf, 3000);
	recv_at(&d, at + 8192, 4000);
	post(&d, IBV_WR_SEND_WITH_IMM, 10, NULL, 0xfeed, 0);
	sent(&d);
	assert_int_equal(be32toh(received(&d, IBV_WC_RECV, 10).imm_data), 0xfeed);
	recv_at(&d, at + 8192, 16);
	post(&d, IBV_WR_RDMA_WRITE_WITH_IMM, 2000, at + 12000, 0xbeef, 0);
	sent(&d);
	assert_int_equal(be32toh(received(&d, IBV_WC_RECV_RDMA_WITH_IMM, 2000).imm_data), 0xbeef);
	assert_memory_equal(at + 12000, p->buf, 2000);
	*word = 40;
	post(&d, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, word, 2, 0);
	assert_int_equal(sent(&d).opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(*here, 40);
	post(&d, IBV_WR_ATOMIC_CMP_AND_SWP, 8, word, 42, 7);
	assert_int_equal(sent(&d).opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(*here, 42);
	assert_int_equal(*word, 7);
	memset(p->buf, 0, 4000);
	post(&d, IBV_WR_RDMA_READ, 4000, at + 500, 0, 0);
	assert_int_equal(sent(&d).opcode, IBV_WC_RDMA_READ);
	assert_memory_equal(p->buf, at + 500, 4000);
	dc_teardown(&d);
}

static void test_errors(void **state)
{
	struct pair *p = *state;
	uint8_t *at = p->buf + HALF;
	struct ibv_qp_init_attr ia;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;
	struct dc d;

	dc_setup(&d, p);
	/* The target's key, the memory's, a target that is not there; each is the
	 * initiator's loss alone. */
	for (int i = 0; i < 3; i++) {
		memset(at, 0, 64);
		post_to(&d, d.dct->qp_num + (i == 2 ? 77 : 0), KEY ^ !i, IBV_WR_RDMA_WRITE, 64, at,
			p->mr->rkey ^ (i == 1), 0, 0);
		wc = wait_wc(p->cq[0]);
		assert_int_equal(wc.status,
				 i == 2 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(ibv_query_qp(d.dci, &attr, IBV_QP_STATE, &ia), 0);
		assert_int_equal(attr.qp_state, IBV_QPS_ERR);
		assert_int_equal(at[0], 0);
		dci_again(d.dci, 4);
		post(&d, IBV_WR_RDMA_WRITE, 64, at, 0, 0);
		sent(&d);
		assert_memory_equal(at, p->buf, 64);
	}
	/* A receive that is too short ends in error on both sides. */
	recv_at(&d, at, 99);
	post(&d, IBV_WR_SEND, 100, NULL, 0, 0);
	assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_LOC_LEN_ERR);
	dci_again(d.dci, 4);
	recv_at(&d, at, 100);
	post(&d, IBV_WR_SEND, 100, NULL, 0, 0);
	sent(&d);
	received(&d, IBV_WC_RECV, 100);
	dc_teardown(&d);
}

/* What the kernel driver lets pass. */
static void test_states(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_init_attr ia;
	struct ibv_qp *dct;
	struct dc d;

	dc_setup(&d, p);
	errno = 0;
	assert_null(make_dct(&d, NULL));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(make_dci(&d, 4));
	assert_int_equal(errno, EINVAL);
	dct = make_dct(&d, d.srq);
	assert_non_null(dct);
	assert_int_equal(dct->qp_num, 0); /* not yet */
	assert_int_equal(ibv_query_qp(dct, &attr, IBV_QP_STATE, &ia), EINVAL);
	assert_int_equal(dct_step(&d, dct, IBV_QPS_RTR), EINVAL);
	assert_int_equal(dct_step(&d, dct, IBV_QPS_INIT), 0);
	assert_int_equal(dct_step(&d, dct, IBV_QPS_RTR), 0);
	assert_int_not_equal(dct->qp_num, 0);
	assert_int_not_equal(dct->qp_num, d.dct->qp_num);
	assert_int_equal(ibv_query_qp(dct, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU, &ia), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(dct, &attr, IBV_QP_STATE), EINVAL);
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(ibv_modify_qp(dct, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_destroy_qp(dct), 0);
	dc_teardown(&d);
}

/* log_sra_max 0 stands for one: so many may be on their way where a program asks for none. */
static void test_one_at_least(void **state)
{
	struct pair *p = *state;
	uint64_t *word = (uint64_t *)(void *)(p->buf + HALF), *here = (uint64_t *)(void *)p->buf;
	struct dc d;

	dc_setup(&d, p);
	dci_again(d.dci, 0);
	*word = 0;
	for (uint64_t i = 0; i < 20; i++) {
		post(&d, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, word, 3, 0);
		sent(&d);
		assert_int_equal(*here, 3 * i);
	}
	assert_int_equal(*word, 60);
	dc_teardown(&d);
}

/* One initiator, two targets in turn. */
static void test_two_targets(void **state)
{
	struct pair *p = *state;
	uint64_t *word = (uint64_t *)(void *)(p->buf + HALF), *here = (uint64_t *)(void *)p->buf;
	struct ibv_qp *second;
	struct dc d;

	dc_setup(&d, p);
	second = make_dct(&d, d.srq);
	assert_non_null(second);
	assert_int_equal(dct_step(&d, second, IBV_QPS_INIT), 0);
	assert_int_equal(dct_step(&d, second, IBV_QPS_RTR), 0);
	word[0] = word[1] = 0;
	for (unsigned i = 0; i < 200; i++) {
		post_to(&d, (i % 2 ? second : d.dct)->qp_num, KEY, IBV_WR_ATOMIC_FETCH_AND_ADD, 8,
			word + i % 2, p->mr->rkey, 1, 0);
		if (i % 5 == 4) /* several at once, too */
			for (unsigned k = 0; k < 5; k++)
				sent(&d);
		if (i % 5 == 4)
			assert_int_equal(*here, i / 2);
	}
	assert_int_equal(word[0], 100);
	assert_int_equal(word[1], 100);
	assert_int_equal(ibv_destroy_qp(second), 0);
	dc_teardown(&d);
}

/* ---- firmware commands ---- */

#define DCTC 0x80u /* bit of the DCT context in its commands */

static uint32_t srq_number(struct ibv_srq *srq)
{
	struct mlx5dv_srq dv = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
	struct mlx5dv_obj obj = {.srq = {.in = srq, .out = &dv}};

	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ), 0);
	return dv.srqn;
}

static uint32_t cq_number(struct ibv_cq *cq)
{
	struct mlx5dv_cq dv = {0};
	struct mlx5dv_obj obj = {.cq = {.in = cq, .out = &dv}};

	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	return dv.cqn;
}

static void dct_mailbox(struct dc *d, uint8_t in[128])
{
	memset(in, 0, 128);
	put_bits(in, 0, 16, 0x710);
	put_bits(in, DCTC + 0x28, 24, 0x55); /* user_index */
	put_bits(in, DCTC + 0x48, 24, cq_number(d->p->cq[1]));
	put_bits(in, DCTC + 0x68, 4, 3); /* atomic_mode */
	put_bits(in, DCTC + 0x6c, 3, 7); /* rre rwe rae */
	put_bits(in, DCTC + 0x93, 5, 12); /* min_rnr_nak */
	put_bits(in, DCTC + 0xa8, 24, srq_number(d->srq));
	put_bits(in, DCTC + 0xc8, 24, pd_number(d->p->pd));
	put_bits(in, DCTC + 0x100, 64, KEY);
	put_bits(in, DCTC + 0x145, 3, 3); /* mtu 1024 */
	put_bits(in, DCTC + 0x148, 8, 1); /* port */
	put_bits(in, DCTC + 0x178, 8, 64); /* hop_limit */
}

static struct mlx5dv_devx_obj *dct_create(struct dc *d, const uint8_t in[128], uint32_t *number)
{
	uint8_t out[16] = {0};
	struct mlx5dv_devx_obj *o = mlx5dv_devx_obj_create(d->p->ctx, in, 128, out, sizeof(out));

	*number = (uint32_t)get_bits(out, 0x48, 24);
	return o;
}

static int dct_command(struct mlx5dv_devx_obj *o, uint16_t opcode, uint32_t number, uint8_t out[128])
{
	uint8_t in[16] = {0};

	memset(out, 0, 128);
	put_bits(in, 0, 16, opcode);
	put_bits(in, 0x48, 24, number);
	return opcode != 0x712 ? mlx5dv_devx_obj_query(o, in, sizeof(in), out, 128)
			       : mlx5dv_devx_obj_modify(o, in, sizeof(in), out, 128);
}

/* An RDMA WRITE of 64 bytes; the address vector has 48 bytes, or its first 16. */
static void write_by(struct dc *d, struct dq *q, uint16_t index, uint32_t dctn, uint64_t key,
		     bool full)
{
	uint8_t wqe[128] = {0}, *seg = wqe + (full ? 64 : 32);
	union ibv_gid gid;

	put_bits(wqe, 8, 16, index);
	put_bits(wqe, 24, 8, 8); /* RDMA WRITE */
	put_bits(wqe, 32, 24, q->qpn);
	put_bits(wqe, 56, 8, full ? 6 : 4); /* ds */
	wqe[11] = 8; /* always a CQE */
	put_bits(wqe, 128, 64, key);
	put_bits(wqe, 192, 32, dctn | (uint64_t)full << 31);
	put_bits(wqe, 240, 16, d->ib ? 1 : 0xc123); /* LID or UDP source port */
	if (full && !d->ib) {
		assert_int_equal(ibv_query_gid(d->p->ctx, 1, 0, &gid), 0);
		wqe[16 + 27] = 64; /* hop limit */
		wqe[16 + 28] = 0x40; /* GRH */
		memcpy(wqe + 16 + 32, gid.raw, 16);
	}
	put_bits(seg, 0, 64, (uintptr_t)d->p->buf + HALF);
	put_bits(seg, 64, 32, d->p->mr->rkey);
	put_bits(seg, 128, 32, 64);
	put_bits(seg, 160, 32, d->p->mr->lkey);
	put_bits(seg, 192, 64, (uintptr_t)d->p->buf);
	dq_post_blocks(q, index, wqe, full ? 2 : 1);
}

/* Waits for the n-th completion; its syndrome. */
static uint8_t completed(struct dq *q, unsigned n)
{
	const uint8_t *e = q->mem + DQ_CQ + n % (1u << q->log_cq) * 64;

	for (int i = 0; i < 20000; i++) {
		/* Acquire: pairs with the device's store of the entry's last word. */
		uint8_t own = __atomic_load_n(e + 63, __ATOMIC_ACQUIRE);

		if (own >> 4 != 15 && (own & 1) == (n >> q->log_cq & 1))
			return own >> 4 == 13 ? e[55] : 0;
		usleep(100);
	}
	fail_msg("no completion");
	return 0xff;
}

static void dci_create(struct dc *d, struct dq *q)
{
	uint8_t in[MBOX], out[16] = {0};

	dq_memory(q, d->p->ctx);
	q->log_cq = 4;
	dq_cq_mailbox(q, in, 4, false, true);
	q->cq = mlx5dv_devx_obj_create(q->ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q->cq);
	q->cqn = (uint32_t)get_bits(out, 0x48, 24);
	dq_qp_mailbox(q, in, pd_number(d->p->pd));
	put_bits(in, QPC + 0x08, 8, 5); /* st: DCI */
	memset(out, 0, sizeof(out));
	q->qp = mlx5dv_devx_obj_create(q->ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q->qp);
	q->qpn = (uint32_t)get_bits(out, 0x48, 24);
	dq_connect(q, 0);
}

static void test_commands(void **state)
{
	struct pair *p = *state;
	struct mlx5dv_devx_obj *dct;
	uint8_t in[128], out[128];
	uint32_t number;
	struct dc d;

	dc_setup(&d, p);
	dct_mailbox(&d, in);
	dct = dct_create(&d, in, &number);
	assert_non_null(dct);
	assert_int_equal(dct_command(dct, 0x713, number, out), 0); /* QUERY_DCT */
	assert_int_equal(get_bits(out, DCTC + 0x04, 4), 0); /* active */
	for (unsigned i = 4; i < 0x30; i += 4) /* as it was created */
		assert_int_equal(get_bits(out, DCTC + 8 * i, 32), get_bits(in, DCTC + 8 * i, 32));
	assert_int_equal(dct_command(dct, 0x713, number + 1, out), EINVAL);
	assert_int_equal(dct_command(dct, 0x50b, number, out), EINVAL); /* it is no QP */
	assert_int_equal(ibv_destroy_srq(d.srq), EBUSY);
	/* From now on it hears nobody. */
	post_to(&d, number, KEY, IBV_WR_RDMA_WRITE, 8, p->buf + HALF, p->mr->rkey, 0, 0);
	sent(&d);
	assert_int_equal(dct_command(dct, 0x712, number, out), 0); /* DRAIN_DCT */
	assert_int_equal(dct_command(dct, 0x713, number, out), 0);
	assert_int_equal(get_bits(out, DCTC + 0x04, 4), 2); /* drained */
	post_to(&d, number, KEY, IBV_WR_RDMA_WRITE, 8, p->buf + HALF, p->mr->rkey, 0, 0);
	assert_int_equal(wait_wc(p->cq[0]).status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(mlx5dv_devx_obj_destroy(dct), 0);

	static const struct { unsigned bit, width, value; } wrong[] = {
		{DCTC + 0x48, 24, 0xffff}, {DCTC + 0xa8, 24, 0xffff}, {DCTC + 0xc8, 24, 0xffff},
		{DCTC + 0x145, 3, 0}, {DCTC + 0x145, 3, 6}, {DCTC + 0x148, 8, 2},
		{DCTC + 0x168, 8, 200}, {DCTC + 0x150, 16, 1}, /* GID and P_Key index */
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		dct_mailbox(&d, in);
		put_bits(in, wrong[i].bit, wrong[i].width, wrong[i].value);
		errno = 0;
		assert_null(dct_create(&d, in, &number));
		assert_int_equal(errno, EREMOTEIO);
	}
	dc_teardown(&d);
}

/* An initiator by command with targets of both kinds, an initiator of mlx5dv with a target
 * by command. */
static void test_both_interfaces(void **state)
{
	struct pair *p = *state;
	struct mlx5dv_devx_obj *dct;
	uint8_t in[128], out[128];
	unsigned n = 0;
	uint16_t index = 0;
	uint32_t number;
	struct dq q;
	struct dc d;

	dc_setup(&d, p);
	dct_mailbox(&d, in);
	dct = dct_create(&d, in, &number);
	assert_non_null(dct);
	dci_create(&d, &q);
	for (unsigned i = 0; i < 40; i++) {
		bool full = i % 2;

		p->buf[i] ^= 0x5a;
		memset(p->buf + HALF, 0, 64);
		write_by(&d, &q, index, i % 4 < 2 ? number : d.dct->qp_num, KEY, full);
		assert_int_equal(completed(&q, n++), 0);
		assert_memory_equal(p->buf + HALF, p->buf, 64);
		index = (uint16_t)(index + 1 + full);
	}
	post_to(&d, number, KEY, IBV_WR_RDMA_READ, 64, p->buf + HALF + 100, p->mr->rkey, 0, 0);
	sent(&d);
	assert_memory_equal(p->buf + HALF + 100, p->buf, 64);
	/* A wrong key is counted, and the target stays. */
	write_by(&d, &q, index, number, KEY + 1, true);
	assert_int_equal(completed(&q, n), 0x13);
	assert_int_equal(dq_state(&q), 6);
	assert_int_equal(dct_command(dct, 0x713, number, out), 0);
	assert_int_equal(get_bits(out, DCTC + 0x180, 32), 1);
	post_to(&d, number, KEY, IBV_WR_RDMA_WRITE, 64, p->buf + HALF, p->mr->rkey, 0, 0);
	sent(&d);
	dq_destroy(&q);
	assert_int_equal(mlx5dv_devx_obj_destroy(dct), 0);
	dc_teardown(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_operations, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_errors, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_states, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_one_at_least, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_two_targets, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_commands, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_both_interfaces, pair_setup, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
