/* SPDX-License-Identifier: BSD-3-Clause */
/* Firmware commands, and a queue pair, with mistakes to choose from (commands.def): the device has to refuse each
 * command, and strict mode to name its rule. commander --list, commander NUMBER. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/tests/control/pair.h"

#define SIZE 65536u

struct commander {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint8_t *mem; /* SIZE */
};

/* What the command has to say: a syndrome, or 0 where it has to succeed. */
static void expect(bool done, const uint8_t *out, uint32_t syndrome)
{
	if (done != !syndrome || (syndrome && get_bits(out, 0x20, 32) != syndrome)) {
		printf("%s, syndrome 0x%08x\n", done ? "done" : "refused", (unsigned)get_bits(out, 0x20, 32));
		exit(1);
	}
}

static struct ibv_mr *region(struct commander *c, int order)
{
	struct ibv_mr *mr = ibv_reg_mr(c->pd, c->mem, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ | order);

	if (!mr)
		exit(1);
	return mr;
}

static void indirect(struct commander *c, uint32_t child, bool atomic, bool relaxed, uint32_t syndrome)
{
	uint8_t in[KLM_MBOX], out[16] = {0};
	struct mlx5dv_devx_obj *obj;

	klm_mailbox(in, pd_number(c->pd), child, c->mem, SIZE);
	put_bits(in, 0x80 + 0x0d, 1, relaxed);
	put_bits(in, 0x80 + 0x11, 1, atomic);
	obj = mlx5dv_devx_obj_create(c->ctx, in, sizeof(in), out, sizeof(out));
	expect(obj, out, syndrome);
	if (obj)
		mlx5dv_devx_obj_destroy(obj);
}

static void nothing(struct commander *c)
{
	(void)c;
}

static void key_right(struct commander *c)
{
	indirect(c, region(c, IBV_ACCESS_REMOTE_ATOMIC)->lkey, true, false, 0);
	indirect(c, region(c, IBV_ACCESS_RELAXED_ORDERING)->lkey, false, true, 0);
}

static void key_child(struct commander *c)
{
	indirect(c, 0x100, false, false, 0x50fc0023);
}

static void key_atomic(struct commander *c)
{
	indirect(c, region(c, IBV_ACCESS_RELAXED_ORDERING)->lkey, true, true, 0x45d3a4);
}

/* CREATE_CQ of one entry at the second line of a umem. */
static void small_cq(struct commander *c, uint64_t pages, uint32_t syndrome)
{
	struct mlx5dv_devx_umem_in u = {.addr = c->mem, .size = SIZE, .access = IBV_ACCESS_LOCAL_WRITE,
					.pgsz_bitmap = pages};
	uint8_t in[MBOX], out[16] = {0};
	struct mlx5dv_devx_obj *obj;
	struct dq q = {.ctx = c->ctx, .umem = mlx5dv_devx_umem_reg_ex(c->ctx, &u),
		       .uar = mlx5dv_devx_alloc_uar(c->ctx, MLX5DV_UAR_ALLOC_TYPE_BF)};

	if (!q.umem || !q.uar)
		exit(1);
	dq_cq_mailbox(&q, in, 0, true, true);
	put_bits(in, 0x280, 64, 128); /* cq_umem_offset */
	obj = mlx5dv_devx_obj_create(c->ctx, in, sizeof(in), out, sizeof(out));
	expect(obj, out, syndrome);
}

static void umem_right(struct commander *c)
{
	small_cq(c, 8192 | 4096, 0);
}

static void umem_offset(struct commander *c)
{
	small_cq(c, ~4095ull, 0x50fc0005);
}

/* RST2INIT, of a bond of two ports. */
static int to_init(struct commander *c, unsigned lag_port)
{
	uint8_t in[MBOX] = {0};
	struct dq q;

	dq_create(&q, c->ctx, pd_number(c->pd), 4, false);
	put_bits(in, 0, 16, 0x502);
	put_bits(in, 0x48, 24, q.qpn);
	put_bits(in, QPC + 0x04, 4, lag_port);
	put_bits(in, PATH + 0x128, 8, 1);
	return dq_modify(&q, in);
}

static void lag_right(struct commander *c)
{
	if (to_init(c, 1) || to_init(c, 2) || !to_init(c, 3))
		exit(1);
}

static void lag_port(struct commander *c)
{
	if (to_init(c, 0))
		exit(1);
}

/* A queue pair sends itself something short, into device memory. inside: it may come in the completion. */
static void receive_into_dm(struct commander *c, bool inside)
{
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_recv_wr = 4,
				      .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 16}};
	struct ibv_dm *dm = ibv_alloc_dm(c->ctx, &(struct ibv_alloc_dm_attr){.length = 64});
	struct ibv_mr *mr = dm ? ibv_reg_dm_mr(c->pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_sge into = {.length = 16}, from = {.addr = (uintptr_t)c->mem, .length = 16};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = &into, .num_sge = 1};
	struct ibv_send_wr *bad, send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE, .sg_list = &from,
					 .num_sge = 1};
	struct ibv_qp *qp;

	setenv("MLX5_SCATTER_TO_CQE", inside ? "1" : "0", 1);
	ia.send_cq = ia.recv_cq = ibv_create_cq(c->ctx, 8, NULL, NULL, 0);
	qp = mr && ia.send_cq ? ibv_create_qp(c->pd, &ia) : NULL;
	if (!qp)
		exit(1);
	connect_qp(c->ctx, qp, qp->qp_num);
	into.lkey = mr->lkey;
	if (ibv_post_recv(qp, &recv, &bad_recv) || ibv_post_send(qp, &send, &bad) ||
	    wait_wc(ia.recv_cq).status != IBV_WC_SUCCESS)
		exit(1);
}

static void dm_right(struct commander *c)
{
	receive_into_dm(c, false);
}

static void dm_cqe(struct commander *c)
{
	receive_into_dm(c, true);
}

static const struct {
	void (*make)(struct commander *c);
	const char *text, *rule;
} mistakes[] = {
#define MISTAKE(name, text, rule) {name, text, rule},
#include "commands.def"
#undef MISTAKE
};

int main(int argc, char **argv)
{
	struct commander c = {.mem = aligned_alloc(SIZE, SIZE)};
	int n = argc == 2 ? atoi(argv[1]) : -1, count = (int)(sizeof(mistakes) / sizeof(mistakes[0]));

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (int i = 0; i < count; i++)
			printf("%d %s %s\n", i, *mistakes[i].rule ? mistakes[i].rule : "-", mistakes[i].text);
		return 0;
	}
	if (n < 0 || n >= count || !c.mem)
		return 2;
	c.ctx = open_device();
	c.pd = ibv_alloc_pd(c.ctx);
	if (!c.pd)
		return 1;
	mistakes[n].make(&c);
	return 0;
}
