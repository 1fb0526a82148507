/* SPDX-License-Identifier: BSD-3-Clause */
/* The PRM commands: opcodes as in the kernel's include/linux/mlx5/mlx5_ifc.h and drivers/fwctl/mlx5,
 * and those that public drivers of the adapters name beyond these, each issued by all four DEVX
 * methods. A command that none of them knows ends in status
 * BAD_OP; any other answer means that it exists, and the test that proves it has to
 * be named here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "coverage.h"

static const struct command {
	uint16_t opcode;
	const char *name;
	const char *test; /* that proves it, where it exists */
} commands[] = {
#define C(name, opcode) {opcode, #name, NULL},
#define T(name, opcode, test) {opcode, #name, test},
#include "commands.def"
#undef C
#undef T
};

struct answer {
	int err; /* errno of the call */
	uint8_t status;
	uint32_t syndrome;
};

static struct answer note(int rc, const uint8_t *out)
{
	struct answer a = {.err = rc, .status = out[0]};

	memcpy(&a.syndrome, out + 4, 4);
	a.syndrome = be32toh(a.syndrome);
	return a;
}

/* Not by an object of the right kind, the kernel says EINVAL before it asks the device. */
static bool exists(const struct answer *a)
{
	return !(a->err == EREMOTEIO && a->status == 2) && a->err != EINVAL;
}

static struct answer ask(struct env *e, struct mlx5dv_devx_obj *obj, uint16_t opcode)
{
	struct answer first = {0}, a = {0};
	uint8_t in[0x110] = {(uint8_t)(opcode >> 8), (uint8_t)opcode}, out[0x1010];

	for (int method = 0; method < 6; method++) {
		uint32_t number = htobe32(e->qp->qp_num);
		struct mlx5dv_devx_obj *made;

		memset(out, 0, sizeof(out));
		memcpy(in + 8, &number, 4);
		errno = 0;
		switch (method) {
		case 0:
			a = note(mlx5dv_devx_general_cmd(e->ctx, in, sizeof(in), out, sizeof(out)),
				 out);
			first = a;
			break;
		case 1:
			made = mlx5dv_devx_obj_create(e->ctx, in, sizeof(in), out, sizeof(out));
			a = note(made ? 0 : errno, out);
			if (made)
				mlx5dv_devx_obj_destroy(made);
			break;
		case 2:
			a = note(mlx5dv_devx_qp_modify(e->qp, in, sizeof(in), out, sizeof(out)),
				 out);
			break;
		case 3:
			a = note(mlx5dv_devx_qp_query(e->qp, in, sizeof(in), out, sizeof(out)),
				 out);
			break;
		default: /* a completion queue, whose number the caller has put there */
			memcpy(in + 8, e->buf, 4);
			a = note(method == 4 ? mlx5dv_devx_obj_modify(obj, in, sizeof(in), out,
								      sizeof(out))
					     : mlx5dv_devx_obj_query(obj, in, sizeof(in), out,
								     sizeof(out)),
				 out);
			break;
		}
		if (exists(&a))
			return a;
	}
	return first;
}

/* A completion queue of the smallest size. */
static struct mlx5dv_devx_obj *make_cq(struct env *e, struct mlx5dv_devx_uar **uar)
{
	uint8_t in[0x110] = {0x04, 0x00}, out[16] = {0};
	struct mlx5dv_devx_obj *cq;
	uint32_t v = htobe32(e->umem->umem_id);

	*uar = mlx5dv_devx_alloc_uar(e->ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
	if (!*uar)
		return NULL;
	in[0x12] = 0x02;	   /* oi */
	memcpy(in + 0x14, &v, 4);  /* doorbell record's umem */
	memcpy(in + 0x58, &v, 4);  /* ring's umem */
	v = htobe32((*uar)->page_id);
	memcpy(in + 0x1c, &v, 4);
	in[0x4e] = 0x10; /* doorbell record at 4096 */
	cq = mlx5dv_devx_obj_create(e->ctx, in, sizeof(in), out, sizeof(out));
	memcpy(e->buf, out + 8, 4);
	return cq;
}

void print_commands(struct env *e)
{
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_obj *cq = make_cq(e, &uar);

	if (!cq) {
		printf("command\tCREATE_CQ\twrong\t\n");
		return;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *c = &commands[i];
		struct answer a = ask(e, cq, c->opcode);

		printf("command\t0x%03x %s\t", c->opcode, c->name);
		if (c->test)
			printf("supported\t%s\n", c->test);
		else if (exists(&a))
			printf("unproved: errno %d, status 0x%x\t\n", a.err, a.status);
		else
			printf("refused: %s, status 0x%02x, syndrome 0x%08x\tsofthca.coverage\n",
			       strerrorname_np(a.err), a.status, a.syndrome);
	}
	mlx5dv_devx_obj_destroy(cq);
	mlx5dv_devx_free_uar(uar);
}
