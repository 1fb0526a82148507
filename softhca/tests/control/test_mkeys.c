/* SPDX-License-Identifier: BSD-3-Clause */
/* Indirect memory keys: lists of pieces and interleaved ones, filled through both interfaces of
 * libmlx5, used by either side, taken back by their owner and by the peer. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#include "pair.h"

#define HALF (BUF / 2)

enum { PIECES = 3, PIECE = 96, REPEAT = 5, SHORT = 10, SKIP = 6 };

struct keys {
	struct pair *p;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct mlx5dv_mkey *key;
};

static struct ibv_qp *new_qp(struct pair *p, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .pd = p->pd,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4,
			.max_inline_data = 512},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
				  MLX5DV_QP_EX_WITH_MKEY_CONFIGURE};
	struct ibv_qp *qp = mlx5dv_create_qp(p->ctx, &a, &dv);

	assert_non_null(qp);
	return qp;
}

static struct mlx5dv_mkey *new_key(struct pair *p, uint32_t flags, uint16_t entries)
{
	return mlx5dv_create_mkey(&(struct mlx5dv_mkey_init_attr){
		.pd = p->pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | flags,
		.max_entries = entries});
}

static void setup(struct keys *k, struct pair *p, uint32_t flags)
{
	*k = (struct keys){.p = p, .cq = ibv_create_cq(p->ctx, 64, NULL, NULL, 0)};
	assert_non_null(k->cq);
	for (int i = 0; i < 2; i++)
		k->qp[i] = new_qp(p, k->cq);
	for (int i = 0; i < 2; i++)
		connect_qp(p->ctx, k->qp[i], k->qp[!i]->qp_num);
	k->key = new_key(p, flags, 2 * PIECES);
	assert_non_null(k->key);
	assert_int_equal(k->key->lkey, k->key->rkey);
	pair_scramble(p);
}

static void teardown(struct keys *k)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(k->qp[i]), 0);
	assert_int_equal(mlx5dv_destroy_mkey(k->key), 0);
	assert_int_equal(ibv_destroy_cq(k->cq), 0);
}

/* The i-th piece of the list, in the back half. */
static uint8_t *piece(const struct keys *k, int i)
{
	return k->p->buf + HALF + 1000 - 300 * i; /* in no order */
}

static enum ibv_wc_status end_of(struct keys *k, struct ibv_qp *qp)
{
	assert_int_equal(ibv_wr_complete(ibv_qp_to_qp_ex(qp)), 0);
	return wait_wc(k->cq).status;
}

static struct ibv_qp_ex *begin(struct ibv_qp *qp, unsigned flags)
{
	struct ibv_qp_ex *q = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED | flags;
	return q;
}

static enum ibv_wc_status fill_list(struct keys *k, unsigned access, bool configure, int n)
{
	struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(begin(k->qp[1], IBV_SEND_INLINE));
	struct ibv_sge sge[2 * PIECES];

	for (int i = 0; i < n; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)piece(k, i), PIECE, k->p->mr->lkey};
	if (!configure) {
		mlx5dv_wr_mr_list(dv, k->key, access, (uint16_t)n, sge);
	} else {
		mlx5dv_wr_mkey_configure(dv, k->key, 2, &(struct mlx5dv_mkey_conf_attr){0});
		mlx5dv_wr_set_mkey_access_flags(dv, access);
		mlx5dv_wr_set_mkey_layout_list(dv, (uint16_t)n, sge);
	}
	return end_of(k, k->qp[1]);
}

static enum ibv_wc_status fill_interleaved(struct keys *k, unsigned access, bool configure)
{
	struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(begin(k->qp[1], IBV_SEND_INLINE));
	struct mlx5dv_mr_interleaved e[2];

	for (int i = 0; i < 2; i++)
		e[i] = (struct mlx5dv_mr_interleaved){(uintptr_t)piece(k, i), SHORT + (unsigned)i, SKIP,
						      k->p->mr->lkey};
	if (!configure) {
		mlx5dv_wr_mr_interleaved(dv, k->key, access, REPEAT, 2, e);
	} else {
		mlx5dv_wr_mkey_configure(dv, k->key, 2, &(struct mlx5dv_mkey_conf_attr){0});
		mlx5dv_wr_set_mkey_access_flags(dv, access);
		mlx5dv_wr_set_mkey_layout_interleaved(dv, REPEAT, 2, e);
	}
	return end_of(k, k->qp[1]);
}

/* The key's bytes in order, taken from where they lie. */
static unsigned gather(const struct keys *k, bool interleaved, uint8_t *to)
{
	unsigned n = 0;

	for (unsigned round = 0; round < (interleaved ? REPEAT : 1); round++) {
		for (int i = 0; i < (interleaved ? 2 : PIECES); i++) {
			unsigned len = interleaved ? SHORT + (unsigned)i : PIECE;

			memcpy(to + n, piece(k, i) + round * (len + SKIP), len);
			n += len;
		}
	}
	return n;
}

/* QP 0, from or to the front half, by the key's bytes [from, from + len). */
static enum ibv_wc_status rdma(struct keys *k, bool read, uint64_t from, uint32_t len)
{
	struct ibv_qp_ex *q = begin(k->qp[0], 0);

	if (read)
		ibv_wr_rdma_read(q, k->key->rkey, from);
	else
		ibv_wr_rdma_write(q, k->key->rkey, from);
	ibv_wr_set_sge(q, k->p->mr->lkey, (uintptr_t)k->p->buf, len);
	return end_of(k, k->qp[0]);
}

/* A SEND of all by QP 1 out of the key, and one by QP 0 into it. */
static void send_both_ways(struct keys *k, unsigned len, bool interleaved)
{
	struct ibv_recv_wr *bad, wr = {.num_sge = 1};
	struct ibv_sge plain = {(uintptr_t)k->p->buf, len, k->p->mr->lkey},
		       keyed = {0, len, k->key->lkey};
	uint8_t want[PIECES * PIECE], got[PIECES * PIECE];

	for (int into = 0; into < 2; into++) {
		struct ibv_qp_ex *q;

		gather(k, interleaved, want);
		for (unsigned i = 0; into && i < len; i++)
			k->p->buf[i] = want[i] = (uint8_t)(i * 7 + 1);
		wr.sg_list = into ? &keyed : &plain;
		assert_int_equal(ibv_post_recv(k->qp[into], &wr, &bad), 0);
		q = begin(k->qp[!into], 0);
		ibv_wr_send(q);
		if (into)
			ibv_wr_set_sge(q, plain.lkey, plain.addr, plain.length);
		else
			ibv_wr_set_sge(q, keyed.lkey, keyed.addr, keyed.length);
		assert_int_equal(ibv_wr_complete(q), 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(wait_wc(k->cq).status, IBV_WC_SUCCESS);
		gather(k, interleaved, got);
		assert_memory_equal(into ? got : k->p->buf, want, len);
	}
}

static void use(struct keys *k, bool interleaved)
{
	uint8_t want[PIECES * PIECE], got[PIECES * PIECE];
	unsigned len = gather(k, interleaved, want);

	send_both_ways(k, len, interleaved);
	for (unsigned i = 0; i < len; i++)
		k->p->buf[i] = (uint8_t)(i * 5);
	gather(k, interleaved, want);
	memcpy(want + 7, k->p->buf, len - 9);
	assert_int_equal(rdma(k, false, 7, len - 9), 0);
	gather(k, interleaved, got);
	assert_memory_equal(got, want, len);
	assert_int_equal(rdma(k, true, 3, len - 3), 0);
	assert_memory_equal(k->p->buf, want + 3, len - 3);
}

static enum ibv_wc_status invalidate(struct keys *k)
{
	ibv_wr_local_inv(begin(k->qp[1], 0), k->key->lkey);
	return end_of(k, k->qp[1]);
}

enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
	     IBV_ACCESS_REMOTE_ATOMIC };

static void test_layouts(void **state)
{
	struct keys k;

	setup(&k, *state, 0);
	for (int configure = 0; configure < 2; configure++) {
		assert_int_equal(fill_list(&k, ALL, configure, PIECES), 0);
		use(&k, false);
		assert_int_equal(invalidate(&k), 0);
		assert_int_equal(fill_interleaved(&k, ALL, configure), 0);
		use(&k, true);
		assert_int_equal(invalidate(&k), 0);
	}
	teardown(&k);
}

/* What it does not hold or allow, before it is filled, and after it was taken back. */
static void refused(struct pair *p, bool filled, unsigned access, uint64_t from, uint32_t len, bool read)
{
	struct keys k;

	setup(&k, p, 0);
	if (filled)
		assert_int_equal(fill_list(&k, access, true, PIECES), 0);
	assert_int_equal(rdma(&k, read, from, len), IBV_WC_REM_ACCESS_ERR);
	teardown(&k);
}

static void test_refused(void **state)
{
	struct keys k;

	refused(*state, false, ALL, 0, 8, true);
	refused(*state, true, ALL, PIECES * PIECE - 4, 8, true);
	refused(*state, true, ALL, PIECES * PIECE + 4, 8, false);
	refused(*state, true, IBV_ACCESS_REMOTE_READ, 0, 8, false);
	refused(*state, true, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE, 0, 8, true);
	setup(&k, *state, 0);
	assert_int_equal(fill_list(&k, ALL, true, PIECES), 0);
	assert_int_equal(rdma(&k, true, 0, 8), 0);
	assert_int_equal(invalidate(&k), 0);
	assert_int_equal(rdma(&k, true, 0, 8), IBV_WC_REM_ACCESS_ERR);
	teardown(&k);
	assert_null(mlx5dv_create_mkey(&(struct mlx5dv_mkey_init_attr){
		.pd = k.p->pd, .max_entries = 4,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO}));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* By a SEND of the peer, if it was made so. */
static void test_remote_invalidate(void **state)
{
	for (int may = 0; may < 2; may++) {
		struct ibv_recv_wr *bad, wr = {0};
		enum ibv_wc_status status;
		struct ibv_qp_ex *q;
		struct keys k;

		setup(&k, *state, may ? MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE : 0);
		assert_int_equal(fill_list(&k, ALL, true, PIECES), 0);
		assert_int_equal(ibv_post_recv(k.qp[1], &wr, &bad), 0);
		q = begin(k.qp[0], 0);
		ibv_wr_send_inv(q, k.key->rkey);
		ibv_wr_set_sge_list(q, 0, NULL);
		assert_int_equal(ibv_wr_complete(q), 0);
		for (int i = 0; i < 2; i++) {
			status = wait_wc(k.cq).status;
			assert_true(may ? !status : status != 0);
		}
		if (may)
			assert_int_equal(rdma(&k, true, 0, 8), IBV_WC_REM_ACCESS_ERR);
		teardown(&k);
	}
}

/* The command itself with one field as it may not be; its status, 0: it was carried out. */
static uint8_t create(struct pair *p, unsigned bit, unsigned width, uint32_t value)
{
	enum { MKC = 0x80 };
	uint8_t in[0x110] = {0}, out[16] = {0};
	struct mlx5dv_pd pd = {0};
	struct mlx5dv_obj dv = {.pd = {.in = p->pd, .out = &pd}};
	struct mlx5dv_devx_obj *obj;

	assert_int_equal(mlx5dv_init_obj(&dv, MLX5DV_OBJ_PD), 0);
	put_bits(in, 0x00, 16, 0x200);
	put_bits(in, MKC + 1, 1, 1);	  /* free */
	put_bits(in, MKC + 16, 1, 1);	  /* umr_en */
	put_bits(in, MKC + 22, 2, 2);	  /* access_mode_1_0: KLMs */
	put_bits(in, MKC + 0x38, 8, 0x5a); /* mkey_7_0 */
	put_bits(in, MKC + 0x68, 24, pd.pdn);
	put_bits(in, MKC + 0x1a0, 32, 4); /* translations_octword_size */
	if (width)
		put_bits(in, MKC + bit, width, value);
	obj = mlx5dv_devx_obj_create(p->ctx, in, sizeof(in), out, sizeof(out));
	assert_int_equal(obj != NULL, !out[0]);
	if (!obj)
		return out[0];
	assert_int_not_equal(get_bits(out, 0x48, 24), 0);
	/* A context keeps its PD. */
	assert_int_equal(ibv_dealloc_pd(p->pd), EBUSY);
	assert_int_equal(mlx5dv_devx_obj_destroy(obj), 0);
	return 0;
}

static void test_command(void **state)
{
	assert_int_equal(create(*state, 0, 0, 0), 0);
	for (uint32_t mode = 0; mode < 4; mode++)
		assert_int_equal(create(*state, 22, 2, mode), mode == 2 ? 0 : 3);
	assert_int_equal(create(*state, 3, 3, 1), 3);		/* another mode */
	assert_int_equal(create(*state, 1, 1, 0), 3);		/* with a list of its own */
	assert_int_equal(create(*state, 16, 1, 0), 3);		/* that no UMR may fill */
	assert_int_equal(create(*state, 0x61, 1, 1), 3);	/* with signatures */
	assert_int_equal(create(*state, 0x1a0, 32, 0), 3);	/* without room */
	assert_int_equal(create(*state, 0x1a0, 32, 1 << 30), 3);
	assert_int_equal(create(*state, 0x68, 24, 0xffffff), 5); /* no such PD */
}

/* Filled by the command: PIECES pieces of mr behind the mailbox, of which `given` bytes are there; NULL: refused. */
static struct mlx5dv_devx_obj *made_filled(struct keys *k, const struct ibv_mr *mr, unsigned access_bits, size_t given,
					   uint64_t len)
{
	enum { MKC = 0x80, ROOM = 0x110 + 4 * 16 };
	uint8_t in[ROOM] = {0}, out[16] = {0};
	struct mlx5dv_pd pd = {0};
	struct mlx5dv_obj dv = {.pd = {.in = k->p->pd, .out = &pd}};
	struct mlx5dv_devx_obj *obj;

	assert_int_equal(mlx5dv_init_obj(&dv, MLX5DV_OBJ_PD), 0);
	put_bits(in, 0x00, 16, 0x200);
	put_bits(in, 0x300, 32, 4);	       /* translations_octword_actual_size */
	put_bits(in, MKC + 17, 5, access_bits); /* a, rw, rr, lw, lr */
	put_bits(in, MKC + 22, 2, 2);	       /* access_mode_1_0: KLMs */
	put_bits(in, MKC + 0x68, 24, pd.pdn);
	put_bits(in, MKC + 0xe0, 32, (uint32_t)len);
	put_bits(in, MKC + 0x1a0, 32, 4);
	for (unsigned i = 0; i < PIECES; i++) { /* the fourth has no length */
		unsigned at = 0x880 + i * 128;

		put_bits(in, at, 32, PIECE);
		put_bits(in, at + 32, 32, mr->lkey);
		put_bits(in, at + 64, 32, (uint32_t)((uintptr_t)piece(k, (int)i) >> 32));
		put_bits(in, at + 96, 32, (uint32_t)(uintptr_t)piece(k, (int)i));
	}
	obj = mlx5dv_devx_obj_create(k->p->ctx, in, given, out, sizeof(out));
	assert_int_equal(obj != NULL, !out[0]);
	if (obj)
		k->key->lkey = k->key->rkey = get_bits(out, 0x48, 24) << 8;
	return obj;
}

static void test_filled_by_command(void **state)
{
	struct mlx5dv_devx_obj *obj;
	struct mlx5dv_mkey made = {0, 0}, *own;
	struct ibv_mr *mr; /* of strict order, as what holds atomics */
	struct keys k;

	setup(&k, *state, 0);
	mr = ibv_reg_mr(k.p->pd, k.p->buf, BUF, FULL_ACCESS & ~IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	own = k.key;
	k.key = &made;
	assert_null(made_filled(&k, mr, 0x1f, 0x110 + 3 * 16, PIECES * PIECE)); /* a piece is not there */
	assert_null(made_filled(&k, mr, 0x1f, 0x110 + 4 * 16, PIECES * PIECE + 1)); /* longer than all of them */
	obj = made_filled(&k, mr, 0x1f, 0x110 + 4 * 16, PIECES * PIECE);
	assert_non_null(obj);
	use(&k, false);
	assert_int_equal(mlx5dv_devx_obj_destroy(obj), 0);
	obj = made_filled(&k, mr, 0x07, 0x110 + 4 * 16, PIECES * PIECE); /* remote reads, local writes */
	assert_non_null(obj);
	assert_int_equal(rdma(&k, true, 0, PIECES * PIECE), 0);
	assert_int_equal(rdma(&k, false, 0, 8), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_devx_obj_destroy(obj), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	k.key = own;
	teardown(&k);
}

/* A WQE of three blocks: one piece for the key, and of its fields those of the mask, the others zero. */
static void post_umr(struct dq *q, uint16_t index, uint32_t key, uint64_t mask, uint64_t len, const struct ibv_mr *mr)
{
	uint8_t w[192] = {0};

	put_bits(w, 0x08, 16, index);
	put_bits(w, 0x18, 8, 0x25);
	put_bits(w, 0x20, 24, q->qpn);
	put_bits(w, 0x3a, 6, 12);
	w[11] = 8;
	put_bits(w, 0x60, 32, key);
	w[16] = 0x80; /* inline */
	put_bits(w, 0x90, 16, 4);
	put_bits(w, 0xc0, 64, mask);
	put_bits(w, 64 * 8 + 0xc0, 64, len);
	put_bits(w, 128 * 8, 32, (uint32_t)len);
	put_bits(w, 128 * 8 + 0x20, 32, mr->lkey);
	put_bits(w, 128 * 8 + 0x40, 64, (uintptr_t)mr->addr);
	dq_post_blocks(q, index, w, 3);
}

static void post_write(struct dq *q, uint16_t index, uint32_t rkey, const struct ibv_mr *mr, uint32_t len)
{
	uint8_t w[64] = {0};

	put_bits(w, 0x08, 16, index);
	put_bits(w, 0x18, 8, 8);
	put_bits(w, 0x20, 24, q->qpn);
	put_bits(w, 0x3a, 6, 3);
	w[11] = 8;
	put_bits(w, 0xc0, 32, rkey);
	put_bits(w, 0x100, 32, len);
	put_bits(w, 0x120, 32, mr->lkey);
	put_bits(w, 0x140, 64, (uintptr_t)mr->addr + HALF);
	dq_post(q, index, w);
}

/* How the n-th completion ended: 0, or its syndrome. */
static uint8_t ended(const struct dq *q, unsigned n)
{
	const uint8_t *cqe = q->mem + DQ_CQ + 64 * n;

	for (int i = 0; i < 200000 && __atomic_load_n(cqe + 63, __ATOMIC_ACQUIRE) >> 4 == 15; i++)
		usleep(10);
	return cqe[63] >> 4 == 13 ? cqe[55] : cqe[63] >> 4;
}

/* What a UMR does not name stays as CREATE_MKEY said: SPDK names the length and that the key is no longer free. */
static void test_fields_that_stay(void **state)
{
	enum { FREE = 1 << 29, LEN = 1, MKC = 0x80, BYTES = 512 };
	struct pair *p = *state;
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf, BUF, FULL_ACCESS);
	uint8_t in[0x110] = {0}, out[16] = {0};
	struct mlx5dv_devx_obj *obj;
	uint32_t key;
	struct dq q;

	put_bits(in, 0x00, 16, 0x200);
	put_bits(in, MKC + 1, 1, 1);   /* free */
	put_bits(in, MKC + 16, 1, 1);  /* umr_en */
	put_bits(in, MKC + 18, 4, 15); /* rw, rr, lw, lr */
	put_bits(in, MKC + 22, 2, 2);
	put_bits(in, MKC + 0x38, 8, 0x42);
	put_bits(in, MKC + 0x68, 24, pd_number(p->pd));
	put_bits(in, MKC + 0x1a0, 32, 4);
	obj = mlx5dv_devx_obj_create(p->ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(obj);
	key = (uint32_t)get_bits(out, 0x48, 24) << 8 | 0x42;
	dq_create(&q, p->ctx, pd_number(p->pd), 4, false);
	dq_connect(&q, q.qpn);
	for (unsigned i = 0; i < HALF; i++)
		p->buf[HALF + i] = (uint8_t)(i * 7);
	post_umr(&q, 0, key, FREE | LEN, BYTES, mr);
	assert_int_equal(ended(&q, 0), 0);
	post_write(&q, 3, key, mr, BYTES);
	assert_int_equal(ended(&q, 1), 0);
	assert_memory_equal(p->buf, p->buf + HALF, BYTES);
	dq_destroy(&q);
	assert_int_equal(mlx5dv_devx_obj_destroy(obj), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* Pieces of one length, which the key says and not its entries (KLM_FBS), as DPDK makes them: the key's length cuts the
 * last one, and those that fill up four are none. */
static void test_fixed_pieces(void **state)
{
	enum { MKC = 0x80, ROOM = 0x110 + 4 * 16, LOG = 6, LEN = (3 << LOG) - 10 };
	static const unsigned at[3] = {2048, 0, 512};
	struct pair *p = *state;
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf, BUF, FULL_ACCESS);
	uint8_t in[ROOM] = {0}, out[16] = {0};
	struct mlx5dv_devx_obj *obj;
	struct dq q;

	put_bits(in, 0x00, 16, 0x200);
	put_bits(in, 0x300, 32, 4);
	put_bits(in, MKC + 18, 4, 15); /* rw, rr, lw, lr */
	put_bits(in, MKC + 22, 2, 3);
	put_bits(in, MKC + 0x68, 24, pd_number(p->pd));
	put_bits(in, MKC + 0xe0, 32, LEN);
	put_bits(in, MKC + 0x1a0, 32, 4);
	put_bits(in, MKC + 0x1db, 5, LOG); /* log_page_size */
	for (unsigned i = 0; i < 3; i++) {
		put_bits(in, 0x880 + i * 128 + 32, 32, mr->lkey);
		put_bits(in, 0x880 + i * 128 + 64, 64, (uintptr_t)p->buf + at[i]);
	}
	obj = mlx5dv_devx_obj_create(p->ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(obj);
	dq_create(&q, p->ctx, pd_number(p->pd), 4, false);
	dq_connect(&q, q.qpn);
	memset(p->buf, 0, HALF);
	for (unsigned i = 0; i < HALF; i++)
		p->buf[HALF + i] = (uint8_t)(i * 7 + 1);
	post_write(&q, 0, (uint32_t)get_bits(out, 0x48, 24) << 8, mr, LEN);
	assert_int_equal(ended(&q, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_memory_equal(p->buf + at[i], p->buf + HALF + (i << LOG), i < 2 ? 1 << LOG : (1 << LOG) - 10);
	assert_int_equal(p->buf[512 + (1 << LOG) - 10], 0);
	post_write(&q, 1, (uint32_t)get_bits(out, 0x48, 24) << 8, mr, LEN + 1);
	assert_int_not_equal(ended(&q, 1), 0); /* or flushed: it is both ends */
	dq_destroy(&q);
	assert_int_equal(mlx5dv_devx_obj_destroy(obj), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_filled_by_command),
		cmocka_unit_test(test_fields_that_stay),
		cmocka_unit_test(test_fixed_pieces),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_remote_invalidate),
	};

	return cmocka_run_group_tests(tests, pair_setup, pair_teardown) ? 1 : 0;
}
