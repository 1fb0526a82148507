/* SPDX-License-Identifier: BSD-3-Clause */
/* DEVX as a GPU runtime uses it: capabilities, umem, UAR, CQ, QP, the
 * transitions, and a hand-written WQE whose completion comes back. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

static int query_cap(struct ibv_context *ctx, unsigned type, bool current, uint8_t *cap)
{
	static uint8_t out[0x1010];
	uint8_t in[16] = {0};
	int rc;

	put_bits(in, 0, 16, 0x100);
	put_bits(in, 0x30, 16, type << 1 | current);
	memset(out, 0xee, sizeof(out));
	rc = mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out));
	assert_int_equal(out[0], 0);
	memcpy(cap, out + 16, 0x1000);
	return rc;
}

static void test_capabilities(void **state)
{
	struct ibv_context *ctx = *state;
	bool ib = link_is_ib(ctx);
	uint8_t cap[0x1000];

	for (int current = 0; current < 2; current++) {
		assert_int_equal(query_cap(ctx, 0, current, cap), 0);
		assert_int_equal(cap[0x11], 15);		    /* log_max_qp_sz */
		assert_int_equal(cap[0x13] & 0x1f, 18);		    /* log_max_qp */
		assert_int_equal(get_bits(cap, 0x1b6, 2), ib ? 0 : 1); /* port_type */
		assert_int_equal(cap[0x37], 1);			    /* num_ports */
		assert_int_equal(get_bits(cap, 0x1fc, 4), 1);	    /* cqe_version */
		assert_int_equal(get_bits(cap, 0x200, 1), 1); /* compact_address_vector */
		assert_int_equal(get_bits(cap, 0x21d, 1), ib ? 0 : 1); /* roce */
		assert_int_equal(get_bits(cap, 0x21e, 1), 1);	    /* atomic */
		assert_int_equal(get_bits(cap, 0x23d, 3), 7);	    /* ud, uc, rc */
		assert_int_equal(get_bits(cap, 0x26b, 5), 9);	    /* log_bf_reg_size */
	}
	assert_int_equal(query_cap(ctx, 3, true, cap), 0);
	assert_int_equal(get_bits(cap, 0x40, 2), 1);
	assert_int_equal(get_bits(cap, 0x46, 1), 1);
	assert_int_equal(get_bits(cap, 0x90, 16), 0xf);
	assert_int_equal(get_bits(cap, 0xb0, 16), 0xc);
	assert_int_equal(query_cap(ctx, 4, true, cap), 0);
	assert_int_equal(get_bits(cap, 0xb0, 16), ib ? 0 : 4791);
	assert_int_equal(query_cap(ctx, 0x20, true, cap), 0);
	assert_int_equal(get_bits(cap, 0x2e1, 1), 1); /* send_dbr_mode_no_dbr_ext */
}

static void test_roce_address(void **state)
{
	struct ibv_context *ctx = *state;
	uint8_t in[16] = {0}, out[0x30] = {0};
	union ibv_gid gid;
	int rc;

	put_bits(in, 0, 16, 0x760);
	rc = mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out));
	if (link_is_ib(ctx)) {
		assert_int_equal(rc, EREMOTEIO);
		return;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(ibv_query_gid(ctx, 1, 0, &gid), 0);
	assert_memory_equal(out + 0x10, gid.raw, 16);
	assert_int_equal(get_bits(out, 0x80 + 0xd8, 8), 2);
	put_bits(in, 0x40, 16, 5);
	assert_int_equal(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), EREMOTEIO);
}

static void test_no_bond(void **state)
{
	uint8_t in[16] = {0}, out[16] = {0};

	put_bits(in, 0, 16, 0x842); /* QUERY_LAG */
	assert_int_equal(mlx5dv_devx_general_cmd(*state, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, 0x5d, 3), 0); /* lag_state */
}

static void test_uar_pages(void **state)
{
	struct ibv_context *ctx = *state;
	struct mlx5dv_devx_uar *bf = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
	struct mlx5dv_devx_uar *nc = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);

	assert_non_null(bf);
	assert_non_null(nc);
	assert_int_not_equal(bf->page_id, 0);
	assert_int_not_equal(bf->page_id, nc->page_id);
	assert_ptr_equal((uint8_t *)bf->base_addr + 0x800, bf->reg_addr);
	mlx5dv_devx_free_uar(nc);
	mlx5dv_devx_free_uar(bf);
}

static void test_query_qp(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t in[16] = {0}, out[MBOX] = {0};
	union ibv_gid gid;
	struct dq q;

	dq_create(&q, ctx, pd_number(pd), 4, false);
	put_bits(in, 0, 16, 0x50b);
	put_bits(in, 0x48, 24, q.qpn);
	assert_int_equal(mlx5dv_devx_obj_query(q.qp, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, QPC, 4), 0);
	/* A fresh QP must report a legal MTU. */
	assert_in_range(get_bits(out, QPC + 0x40, 3), 1, 5);
	assert_int_equal(get_bits(out, QPC + 0x88, 24), 0x77);
	dq_connect(&q, 0x4321);
	assert_int_equal(mlx5dv_devx_obj_query(q.qp, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, QPC, 4), 3);
	assert_int_equal(get_bits(out, QPC + 0x28, 24), pd_number(pd));
	assert_int_equal(get_bits(out, QPC + 0x40, 3), 3);
	assert_int_equal(get_bits(out, QPC + 0x51, 4), 4);
	assert_int_equal(get_bits(out, QPC + 0x68, 24), q.uar->page_id);
	assert_int_equal(get_bits(out, QPC + 0xa8, 24), 0x4321);
	assert_int_equal(get_bits(out, QPC + 0x388, 3), 3);
	assert_int_equal(get_bits(out, QPC + 0x38d, 3), 7);
	assert_int_equal(get_bits(out, QPC + 0x390, 3), 6);
	assert_int_equal(get_bits(out, QPC + 0x3c8, 24), 0x123456);
	assert_int_equal(get_bits(out, QPC + 0x3e8, 24), q.cqn);
	assert_int_equal(get_bits(out, QPC + 0x488, 3), 4);
	assert_int_equal(get_bits(out, QPC + 0x490, 3), 7);
	assert_int_equal(get_bits(out, QPC + 0x4a3, 5), 12);
	assert_int_equal(get_bits(out, QPC + 0x4a8, 24), 0x123456);
	assert_int_equal(get_bits(out, PATH + 0x40, 5), 17);
	assert_int_equal(get_bits(out, PATH + 0x58, 8), 64);
	if (link_is_ib(ctx)) {
		assert_int_equal(get_bits(out, PATH + 0x30, 16), 1);
		assert_int_equal(get_bits(out, PATH + 0x64, 8), 0xa8);
	} else {
		assert_int_equal(get_bits(out, PATH + 0x10a, 6), 42);
		assert_int_equal(get_bits(out, PATH + 0x110, 16), 0xc123);
		assert_int_equal(ibv_query_gid(ctx, 1, 0, &gid), 0);
		assert_int_equal(get_bits(out, PATH + 0x130, 24), 0x525400);
		assert_memory_equal(out + PATH / 8 + 0x29, gid.raw + 13, 3);
	}
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

/* ---- data ---- */

static uint8_t poll_cqe(struct dq *q, uint32_t n, const uint8_t **cqe)
{
	const uint8_t *e = q->mem + DQ_CQ + (n & ((1u << q->log_cq) - 1)) * 64u;
	uint8_t want_owner = (uint8_t)(n >> q->log_cq & 1);
	struct timespec nap = {.tv_nsec = 10000};

	for (int i = 0; i < 200000; i++) {
		/* Acquire: pairs with the device's one store of the entry's last eight
		 * bytes; the others and the data come before it. */
		uint64_t last = __atomic_load_n((const uint64_t *)(const void *)(e + 56),
						__ATOMIC_ACQUIRE);
		uint8_t own = (uint8_t)(be64toh(last));

		/* The owner bit of a collapsed CQ tells nothing: there is one entry. */
		if (own >> 4 != 15 && (q->collapsed || (own & 1) == want_owner)) {
			*cqe = e;
			return own;
		}
		nanosleep(&nap, NULL);
	}
	fail_msg("no completion within 2 s");
	return 0xff;
}

static void write_wqe(uint8_t wqe[64], const struct dq *q, uint16_t index, const void *src,
		      uint32_t lkey, const void *dst, uint32_t rkey, uint32_t len)
{
	memset(wqe, 0, 64);
	put_bits(wqe, 8, 16, index);
	put_bits(wqe, 24, 8, 8); /* RDMA WRITE */
	put_bits(wqe, 32, 24, q->qpn);
	put_bits(wqe, 56, 8, 3); /* ds */
	wqe[11] = 8;		 /* always a CQE */
	put_bits(wqe, 128, 64, (uintptr_t)dst);
	put_bits(wqe, 192, 32, rkey);
	put_bits(wqe, 256, 32, len);
	put_bits(wqe, 288, 32, lkey);
	put_bits(wqe, 320, 64, (uintptr_t)src);
}

static void run_data(struct ibv_context *ctx, unsigned log_cq, bool collapsed)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	static uint8_t buf[8192] __attribute__((aligned(4096)));
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct dq a, b;
	uint8_t wqe[64];
	const uint8_t *cqe;

	assert_non_null(mr);
	dq_create(&a, ctx, pd_number(pd), log_cq, collapsed);
	dq_create(&b, ctx, pd_number(pd), log_cq, collapsed);
	dq_connect(&a, b.qpn);
	dq_connect(&b, a.qpn);
	for (uint16_t i = 0; i < 100; i++) {
		uint8_t own;

		memset(buf, i + 1, 1024);
		memset(buf + 4096, 0, 1025);
		memset(a.mem + DQ_CQ, 0xff, collapsed ? 64 : 0);
		write_wqe(wqe, &a, i, buf, mr->lkey, buf + 4096, mr->rkey, 1024);
		dq_post(&a, i, wqe);
		own = poll_cqe(&a, collapsed ? 0 : i, &cqe);
		if (collapsed)
			assert_int_equal(get_bits(cqe, 60 * 8, 16), i);
		assert_int_equal(own >> 4, 0);
		assert_int_equal(get_bits(cqe, 60 * 8, 16), i);
		assert_int_equal(get_bits(cqe, 56 * 8, 8), 8);
		assert_int_equal(get_bits(cqe, 57 * 8, 24), a.qpn);
		assert_int_equal(get_bits(cqe, 33 * 8, 24), 0x77);
		assert_memory_equal(buf + 4096, buf, 1024);
		assert_int_equal(buf[4096 + 1024], 0);
	}
	/* A bad rkey: remote access error, and the QP is in error. */
	if (!collapsed) {
		write_wqe(wqe, &a, 100, buf, mr->lkey, buf + 4096, mr->rkey ^ 1, 8);
		dq_post(&a, 100, wqe);
		assert_int_equal(poll_cqe(&a, 100, &cqe) >> 4, 13);
		assert_int_equal(cqe[55], 0x13);
		assert_int_equal(dq_state(&a), 6);
	}
	dq_destroy(&a);
	dq_destroy(&b);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void test_data_ring(void **state)
{
	run_data(*state, 5, false);
}

static void test_data_one_entry(void **state)
{
	run_data(*state, 0, false);
}

static void test_data_collapsed(void **state)
{
	run_data(*state, 6, true);
}

/* FETCH_ADD of eight bytes, or a masked one of so many, opmod 8 or 9. */
static void atomic_wqe(uint8_t wqe[64], const struct dq *q, unsigned masked, const struct ibv_mr *mr,
		       const uint64_t *word)
{
	memset(wqe, 0, 64);
	put_bits(wqe, 0, 8, masked ? masked == 4 ? 8 : 9 : 0);
	put_bits(wqe, 24, 8, masked ? 0x15 : 0x12);
	put_bits(wqe, 32, 24, q->qpn);
	put_bits(wqe, 56, 8, 4); /* ds */
	wqe[11] = 8;
	put_bits(wqe, 128, 64, (uintptr_t)word);
	put_bits(wqe, 192, 32, mr->rkey);
	put_bits(wqe, 256, masked == 4 ? 32 : 64, 1);
	put_bits(wqe, 384, 32, masked ? masked : 8);
	put_bits(wqe, 416, 32, mr->lkey);
	put_bits(wqe, 448, 64, (uintptr_t)(word + 1));
}

/* A responder executes the atomics that its atomic_mode names, whatever rae grants. */
static void test_atomic_mode(void **state)
{
	static const struct {
		unsigned mode, masked;
		bool done;
	} cases[] = { {0, 0, false}, {0, 4, false}, {0, 8, false}, {1, 0, true}, {1, 4, false},
		      {2, 0, true},  {2, 4, false}, {3, 0, true},  {3, 4, true}, {3, 8, true} };
	static uint64_t word[2] __attribute__((aligned(4096)));
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, word, sizeof(word),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);

	assert_non_null(mr);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *cqe;
		struct dq a, b;
		uint8_t wqe[64];

		word[0] = 41;
		dq_create(&a, ctx, pd_number(pd), 5, false);
		dq_create(&b, ctx, pd_number(pd), 5, false);
		dq_connect(&a, b.qpn);
		dq_connect_mode(&b, a.qpn, cases[i].mode);
		atomic_wqe(wqe, &a, cases[i].masked, mr, word);
		dq_post(&a, 0, wqe);
		assert_int_equal(poll_cqe(&a, 0, &cqe) >> 4, cases[i].done ? 0 : 13);
		if (!cases[i].done)
			assert_int_equal(cqe[55], 0x13);
		assert_int_equal(word[0], cases[i].done ? 42 : 41);
		dq_destroy(&a);
		dq_destroy(&b);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* The answer of an atomic inside the completion is big-endian. */
static void test_answer_in_cqe(void **state)
{
	static uint64_t word[2] __attribute__((aligned(4096)));
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, word, sizeof(word), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	uint8_t in[MBOX], out[16] = {0}, wqe[64];
	const uint8_t *cqe;
	struct dq q;

	assert_non_null(mr);
	dq_create(&q, ctx, pd_number(pd), 5, false);
	assert_int_equal(mlx5dv_devx_obj_destroy(q.qp), 0);
	dq_qp_mailbox(&q, in, pd_number(pd));
	put_bits(in, QPC + 0x630, 8, 0x11); /* cs_req */
	q.qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q.qp);
	q.qpn = (uint32_t)get_bits(out, 0x48, 24);
	dq_connect(&q, q.qpn);
	word[0] = 0x1122334455667788;
	word[1] = 0;
	atomic_wqe(wqe, &q, 0, mr, word);
	dq_post(&q, 0, wqe);
	assert_int_equal(poll_cqe(&q, 0, &cqe) & 0xfc, 4); /* inside */
	assert_int_equal(get_bits(cqe, 0, 64), 0x1122334455667788);
	assert_int_equal(word[0], 0x1122334455667789);
	assert_int_equal(word[1], 0);
	dq_destroy(&q);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void test_query_cq(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t in[16] = {0}, out[MBOX] = {0};
	struct dq q;

	dq_create(&q, ctx, pd_number(pd), 5, true);
	put_bits(in, 0, 16, 0x402);
	put_bits(in, 0x48, 24, q.cqn);
	assert_int_equal(mlx5dv_devx_obj_query(q.cq, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, CQC + 0x0b, 1), 1);
	assert_int_equal(get_bits(out, CQC + 0x0e, 1), 1);
	assert_int_equal(get_bits(out, CQC + 0x63, 5), 5);
	assert_int_equal(get_bits(out, CQC + 0x68, 24), q.uar->page_id);
	assert_int_equal(get_bits(out, CQC + 0x1c0, 64), DQ_CQ_DBR);
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

static int resize(struct dq *q, unsigned log_size, uint64_t offset)
{
	uint8_t in[MBOX] = {0}, out[16] = {0};
	int rc;

	put_bits(in, 0, 16, 0x403);
	put_bits(in, 0x30, 16, 1); /* op_mod: resize */
	put_bits(in, 0x48, 24, q->cqn);
	put_bits(in, 0x60, 32, 1); /* log size */
	put_bits(in, CQC + 0x63, 5, log_size);
	put_bits(in, 0x280, 64, offset);
	put_bits(in, 0x2c0, 32, q->umem->umem_id);
	put_bits(in, 0x2e0, 1, 1);
	rc = mlx5dv_devx_obj_modify(q->cq, in, sizeof(in), out, sizeof(out));
	assert_true((rc == EREMOTEIO) == (out[0] != 0));
	return rc ? out[0] : 0;
}

/* The old ring ends in a RESIZE_CQ entry, the next completion is in the new one. */
static void test_modify_cq(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct mlx5_cqe64 *old, *new;
	uint8_t own = 0xff;
	uint8_t in[MBOX] = {0}, out[MBOX] = {0}, wqe[64] = {0};
	uint32_t *ci;
	struct dq q;

	dq_create(&q, ctx, pd_number(pd), 4, false);
	dq_connect(&q, q.qpn);
	ci = (uint32_t *)(void *)(q.mem + DQ_CQ_DBR);
	old = (struct mlx5_cqe64 *)(void *)(q.mem + DQ_CQ);
	new = (struct mlx5_cqe64 *)(void *)(q.mem + DQ_CQ + 2048);
	/* Release: the device reads what is consumed with acquire. */
	__atomic_store_n(ci, htobe32(0), __ATOMIC_RELEASE);
	assert_int_equal(resize(&q, 31, DQ_CQ), 3);
	assert_int_equal(resize(&q, 3, DQ_SIZE), 3);
	assert_int_equal(resize(&q, 3, DQ_CQ + 2048), 0);
	assert_int_equal(mlx5dv_get_cqe_opcode(&old[0]), MLX5_CQE_RESIZE_CQ);
	/* Release: the device reads what is consumed with acquire. */
	__atomic_store_n(ci, htobe32(1), __ATOMIC_RELEASE);
	/* A NOP whose completion is asked for. */
	put_bits(wqe, 0x20, 24, q.qpn);
	put_bits(wqe, 0x3a, 6, 1);
	wqe[11] = 8;
	dq_post(&q, 0, wqe);
	/* Acquire: pairs with the device's store of the entry's last word. */
	for (int i = 0; i < 2000 && own >> 4; i++) {
		usleep(1000);
		own = __atomic_load_n(&new[1].op_own, __ATOMIC_ACQUIRE);
	}
	assert_int_equal(own >> 4, MLX5_CQE_REQ);
	put_bits(in, 0, 16, 0x402);
	put_bits(in, 0x48, 24, q.cqn);
	assert_int_equal(mlx5dv_devx_obj_query(q.cq, in, 16, out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, CQC + 0x63, 5), 3);
	assert_int_equal(get_bits(out, CQC + 0x148, 24), 1); /* consumer */
	assert_int_equal(get_bits(out, CQC + 0x168, 24), 2); /* producer */
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

/* A NOP whose completion is asked for, by the doorbell alone; the register at this offset of the
 * page holds the count of blocks. */
static void ring_nop(struct dq *q, uint16_t index, unsigned reg)
{
	uint8_t wqe[64] = {0}, db[8] = {0};
	uint64_t v;

	put_bits(wqe, 8, 16, index);
	put_bits(wqe, 32, 24, q->qpn);
	put_bits(wqe, 56, 8, 1);
	wqe[11] = 8;
	memcpy(q->mem + DQ_SQ + index % 16 * 64u, wqe, 64);
	put_bits(db, 8, 16, (uint16_t)(index + 1));
	put_bits(db, 32, 24, q->qpn);
	memcpy(&v, db, 8);
	/* Release: the device reads the WQE after the register. */
	__atomic_store_n((uint64_t *)(void *)((uint8_t *)q->uar->base_addr + reg), v,
			 __ATOMIC_RELEASE);
}

static bool is_there(const struct dq *q, uint32_t n)
{
	/* Acquire: as in poll_cqe. */
	uint8_t own = __atomic_load_n(q->mem + DQ_CQ + n % 32 * 64u + 63, __ATOMIC_ACQUIRE);

	return own >> 4 != 15 && (own & 1) == (n / 32 & 1);
}

static unsigned create_dbr_less(struct dq *q, uint8_t in[MBOX], unsigned mode)
{
	uint8_t out[16] = {0};

	put_bits(in, QPC + 0x400, 2, mode);
	put_bits(in, QPC + 0x683, 1, 0); /* no umem for a record */
	put_bits(in, QPC + 0x720, 32, 0);
	q->qp = mlx5dv_devx_obj_create(q->ctx, in, MBOX, out, sizeof(out));
	q->qpn = (uint32_t)get_bits(out, 0x48, 24);
	return out[0];
}

/* So many NOPs, the last with a completion, which comes: number n of the queue. */
static void nops(struct dq *q, uint32_t index, unsigned count, uint32_t n)
{
	const uint8_t *cqe;
	uint8_t wqe[64];

	for (unsigned i = 0; i + 1 < count; i++, index++) {
		memset(wqe, 0, sizeof(wqe));
		put_bits(wqe, 8, 16, (uint16_t)index);
		put_bits(wqe, 32, 24, q->qpn);
		put_bits(wqe, 56, 8, 1);
		memcpy(q->mem + DQ_SQ + index % 16 * 64u, wqe, 64);
	}
	ring_nop(q, (uint16_t)index, 0x800);
	assert_int_equal(poll_cqe(q, n, &cqe) >> 4, 0);
	assert_int_equal(get_bits(cqe, 60 * 8, 16), (uint16_t)index);
}

/* Once round: what stands in a register that was rung long ago is no doorbell when it would fit again. */
static void once_round(struct dq *q, uint32_t n)
{
	const uint8_t *cqe;

	ring_nop(q, 0, 0x600);
	poll_cqe(q, n++, &cqe);
	nops(q, 1, 7, n++);
	for (uint32_t at = 8; at < 0x10040; at += 8) {
		nops(q, at, 8, n++);
		if (at > 0xffe0)
			usleep(5000);
	}
	assert_int_equal(dq_state(q), 3);
}

/* Queue pairs without a doorbell record: one for each page, told apart by nothing else. */
static void test_dbr_less(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t in[MBOX], out[MBOX] = {0}, query[16] = {0};
	struct mlx5dv_devx_obj *other;
	const uint8_t *cqe;
	unsigned n = 0;
	struct dq q;

#ifdef __SANITIZE_THREAD__
	/* The doorbell alone pairs here, and the device reads it at an address of its own. */
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	skip();
#endif
	dq_create(&q, ctx, pd_number(pd), 5, false);
	dq_qp_mailbox(&q, in, pd_number(pd));
	other = q.qp;
	assert_int_equal(create_dbr_less(&q, in, 1), 0xf); /* the page is in use */
	assert_null(q.qp);
	assert_int_equal(mlx5dv_devx_obj_destroy(other), 0);
	assert_int_equal(create_dbr_less(&q, in, 2), 3); /* rung by the device: not modelled */
	put_bits(in, QPC + 0x565, 3, 0);		 /* a receive ring needs a record */
	assert_int_equal(create_dbr_less(&q, in, 1), 3);
	put_bits(in, QPC + 0x565, 3, 3);
	assert_int_equal(create_dbr_less(&q, in, 1), 0);
	dq_qp_mailbox(&q, in, pd_number(pd));
	other = mlx5dv_devx_obj_create(ctx, in, MBOX, out, sizeof(out));
	assert_null(other); /* nor can anyone join it */
	put_bits(query, 0, 16, 0x50b);
	put_bits(query, 0x48, 24, q.qpn);
	assert_int_equal(mlx5dv_devx_obj_query(q.qp, query, 16, out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, QPC + 0x400, 2), 1);
	for (unsigned life = 0; life < 4; life++) {
		/* The same doorbells as in the life before; the last ends after one. */
		uint16_t last = life == 2 ? 1 : life == 3 ? 70 : 40;

		dq_connect(&q, q.qpn);
		/* The doorbell of the life before is none. */
		usleep(5000);
		assert_false(is_there(&q, n));
		for (uint16_t i = 0; i < last; i++, n++) {
			ring_nop(&q, i, i & 1 ? 0x800 : 0x600);
			poll_cqe(&q, n, &cqe);
			assert_int_equal(get_bits(cqe, 60 * 8, 16), i);
		}
		put_bits(query, 0, 16, 0x50a);
		assert_int_equal(mlx5dv_devx_obj_modify(q.qp, query, 16, out, sizeof(out)), 0);
	}
	dq_connect(&q, q.qpn);
	once_round(&q, n);
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

/* dp_ordering of a queue pair on its way to RTR; what QUERY_QP then says, or -1: refused. */
static int order_of(struct dq *q, unsigned order, bool force)
{
	uint8_t in[MBOX] = {0}, out[MBOX] = {0};
	int ret;

	put_bits(in, 0, 16, 0x50a); /* 2RST */
	put_bits(in, 0x48, 24, q->qpn);
	assert_int_equal(dq_modify(q, in), 0);
	put_bits(in, 0, 16, 0x502);
	put_bits(in, PATH + 0x128, 8, 1);
	assert_int_equal(dq_modify(q, in), 0);
	dq_rtr_mailbox(q, in, q->qpn);
	put_bits(in, QPC + 0x26, 1, order & 1);
	put_bits(in, QPC + 0x27, 1, force);
	put_bits(in, QPC + 0x49c, 1, order >> 1);
	ret = dq_modify(q, in);
	if (ret)
		return -1;
	memset(in, 0, 16);
	put_bits(in, 0, 16, 0x50b);
	put_bits(in, 0x48, 24, q->qpn);
	assert_int_equal(mlx5dv_devx_obj_query(q->qp, in, 16, out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, QPC + 0x27, 1), force);
	return (int)(get_bits(out, QPC + 0x49c, 1) << 1 | get_bits(out, QPC + 0x26, 1));
}

/* On devices without out-of-order placement, with it, and with it and no way to refuse it (SOFTHCA_DEVICE). */
static void test_ordering(void **state)
{
	const char *device = getenv("SOFTHCA_DEVICE");
	bool ooo = device && strstr(device, "ooo=rw"), can = ooo && !strstr(device, "order-force=0");
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t cap[0x1000];
	struct dq q;

	assert_int_equal(query_cap(ctx, 0, true, cap), 0);
	assert_int_equal(get_bits(cap, 0x1ca, 1), ooo); /* dp_ordering_ooo_rw_rc */
	assert_int_equal(get_bits(cap, 0x334, 1), 0);	/* dp_ordering_ooo_all_rc */
	assert_int_equal(query_cap(ctx, 0x20, true, cap), 0);
	assert_int_equal(get_bits(cap, 0x88, 1), can); /* dp_ordering_force */
	dq_create(&q, ctx, pd_number(pd), 4, false);
	assert_int_equal(order_of(&q, 0, false), ooo);
	assert_int_equal(order_of(&q, 0, true), can ? 0 : -1);
	assert_int_equal(order_of(&q, 1, false), ooo ? 1 : -1);
	assert_int_equal(order_of(&q, 1, true), can ? 1 : -1);
	assert_int_equal(order_of(&q, 2, false), -1);
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

/* RTS2RTS takes what its mask names, and nothing else. */
static void test_rts2rts(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t in[MBOX] = {0}, out[MBOX] = {0};
	struct dq q;

	dq_create(&q, ctx, pd_number(pd), 4, false);
	dq_connect(&q, q.qpn);
	put_bits(in, 0, 16, 0x505);
	put_bits(in, 0x48, 24, q.qpn);
	put_bits(in, 0x80, 32, 1 << 1 | 1 << 6); /* opt_param_mask: rre, rnr_timeout */
	put_bits(in, QPC + 0x4a3, 5, 20);
	assert_int_equal(dq_modify(&q, in), 0);
	put_bits(in, 0, 16, 0x50b);
	assert_int_equal(mlx5dv_devx_obj_query(q.qp, in, 16, out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, QPC, 4), 3);
	assert_int_equal(get_bits(out, QPC + 0x490, 3), 3); /* rre gone; rwe, rae kept */
	assert_int_equal(get_bits(out, QPC + 0x4a3, 5), 20);
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

static void dq_reset(struct dq *q)
{
	uint8_t in[MBOX] = {0};

	put_bits(in, 0, 16, 0x50a);
	put_bits(in, 0x48, 24, q->qpn);
	assert_int_equal(dq_modify(q, in), 0);
}

/* RST2INIT with a counter set: which one QUERY_QP shows then; -1: refused. */
static int counted_by(struct dq *q, uint32_t set)
{
	uint8_t in[MBOX] = {0}, out[MBOX] = {0};

	put_bits(in, 0, 16, 0x502);
	put_bits(in, 0x48, 24, q->qpn);
	put_bits(in, PATH + 0x128, 8, 1); /* port */
	put_bits(in, QPC + 0x60, 8, set);
	if (dq_modify(q, in))
		return -1;
	put_bits(in, 0, 16, 0x50b);
	assert_int_equal(mlx5dv_devx_obj_query(q->qp, in, 16, out, sizeof(out)), 0);
	return (int)get_bits(out, QPC + 0x60, 8);
}

/* A queue pair counts in the set that RST2INIT names, and in no other, whatever it was created with. */
static void test_counters(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t alloc[16] = {0}, query[32] = {0}, in[MBOX], out[MBOX] = {0};
	struct mlx5dv_devx_obj *set, *qp;
	uint32_t id;
	struct dq q;

	put_bits(alloc, 0, 16, 0x771);
	set = mlx5dv_devx_obj_create(ctx, alloc, sizeof(alloc), out, 16);
	assert_non_null(set);
	id = (uint32_t)get_bits(out, 0x58, 8);
	assert_int_not_equal(id, 0);
	dq_create(&q, ctx, pd_number(pd), 4, false);
	dq_qp_mailbox(&q, in, pd_number(pd));
	put_bits(in, QPC + 0x60, 8, id + 1);
	memset(out, 0, sizeof(out));
	assert_null(mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, 16));
	assert_int_equal(get_bits(out, 0x20, 32), 0x50fc0026);
	put_bits(in, QPC + 0x60, 8, id);
	qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, 16);
	assert_non_null(qp);
	put_bits(query, 0, 16, 0x773);
	put_bits(query, 0xf8, 8, id);
	memset(out, 0xff, sizeof(out));
	assert_int_equal(mlx5dv_devx_obj_query(set, query, sizeof(query), out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, 0x300, 32), 0); /* local_ack_timeout_err */
	assert_int_not_equal(mlx5dv_devx_obj_destroy(set), 0); /* in use */
	assert_int_equal(mlx5dv_devx_obj_destroy(qp), 0);
	assert_int_equal(counted_by(&q, id + 1), -1);
	assert_int_equal(counted_by(&q, id), id);
	assert_int_not_equal(mlx5dv_devx_obj_destroy(set), 0);
	dq_reset(&q);
	assert_int_equal(counted_by(&q, 0), 0);
	assert_int_equal(mlx5dv_devx_obj_destroy(set), 0);
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

static void test_umem_dmabuf(void **state)
{
	struct ibv_context *ctx = *state;
	int fd = memfd_create("dmabuf", 0);
	struct mlx5dv_devx_umem_in in = {
		.size = 8192,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pgsz_bitmap = ~4095ull,
		.comp_mask = MLX5DV_UMEM_MASK_DMABUF,
		.dmabuf_fd = fd,
	};
	struct mlx5dv_devx_umem *umem;

	assert_int_equal(ftruncate(fd, 8192), 0);
	umem = mlx5dv_devx_umem_reg_ex(ctx, &in);
	assert_non_null(umem);
	assert_int_equal(mlx5dv_devx_umem_dereg(umem), 0);
	in.size = 16384; /* more than there is */
	assert_null(mlx5dv_devx_umem_reg_ex(ctx, &in));
	close(fd);
}

static int setup(void **state)
{
	*state = open_device();
	return 0;
}

static int teardown(void **state)
{
	return ibv_close_device(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capabilities), cmocka_unit_test(test_roce_address),
		cmocka_unit_test(test_no_bond), cmocka_unit_test(test_uar_pages),    cmocka_unit_test(test_query_qp),
		cmocka_unit_test(test_query_cq),     cmocka_unit_test(test_umem_dmabuf),
		cmocka_unit_test(test_data_ring),    cmocka_unit_test(test_data_one_entry),
		cmocka_unit_test(test_data_collapsed), cmocka_unit_test(test_modify_cq),
		cmocka_unit_test(test_rts2rts),	     cmocka_unit_test(test_dbr_less),
		cmocka_unit_test(test_atomic_mode),  cmocka_unit_test(test_ordering),
		cmocka_unit_test(test_counters),     cmocka_unit_test(test_answer_in_cqe),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
