/* SPDX-License-Identifier: BSD-3-Clause */
/* Random mailboxes: legal commands with some bits changed, cut short or all
 * noise. Nothing may crash (run under ASan this is the check of bounds), every
 * failure has a status or is EINVAL, and the device still works afterwards.
 * MAILBOX_ROUNDS and MAILBOX_SEED set length and seed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

static uint32_t seed;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static const uint16_t opcodes[] = {0x100, 0x400, 0x402, 0x403, 0x500, 0x502, 0x503, 0x504, 0x505,
				   0x506, 0x507, 0x50a, 0x50b, 0x50e, 0x710, 0x712, 0x713, 0x760, 0x200, 0x777};

static void spoil(uint8_t *in, size_t len)
{
	unsigned n = rnd(8);

	for (unsigned i = 0; i < n; i++) {
		unsigned at = 4 + rnd((uint32_t)len - 4);

		in[at] = rnd(2) ? (uint8_t)rnd(256) : (uint8_t)(in[at] ^ 1u << rnd(8));
	}
}

static void check(int rc, const uint8_t *out)
{
	if (rc == EREMOTEIO)
		assert_int_not_equal(out[0], 0);
	else if (rc)
		assert_true(rc == EINVAL || rc == ENOENT);
	else
		assert_int_equal(out[0], 0);
}

static void one_round(struct ibv_context *ctx, struct dq *q, uint32_t pdn)
{
	uint8_t in[MBOX], out[0x200] = {0};
	size_t in_len = rnd(4) ? MBOX : rnd(MBOX + 1), out_len = rnd(4) ? sizeof(out) : rnd(sizeof(out));
	uint16_t op = opcodes[rnd(sizeof(opcodes) / sizeof(opcodes[0]))];
	struct mlx5dv_devx_obj *obj;

	if (op == 0x400) {
		dq_cq_mailbox(q, in, rnd(6), rnd(2), rnd(2));
	} else if (op == 0x500) {
		dq_qp_mailbox(q, in, pdn);
	} else {
		for (unsigned i = 0; i < MBOX; i++)
			in[i] = rnd(3) ? 0 : (uint8_t)rnd(256);
		if (op == 0x503 && rnd(2))
			dq_rtr_mailbox(q, in, rnd(1u << 24));
		put_bits(in, 0, 16, op);
		put_bits(in, 0x48, 24, op == 0x402 || op == 0x403 ? q->cqn : q->qpn);
	}
	if (in_len > 4)
		spoil(in, in_len);
	switch (rnd(4)) {
	case 0:
		check(mlx5dv_devx_general_cmd(ctx, in, in_len, out, out_len), out);
		break;
	case 1:
		obj = mlx5dv_devx_obj_create(ctx, in, in_len, out, out_len);
		check(obj ? 0 : errno, out);
		if (obj)
			assert_int_equal(mlx5dv_devx_obj_destroy(obj), 0);
		break;
	case 2:
		check(mlx5dv_devx_obj_modify(op == 0x403 ? q->cq : q->qp, in, in_len, out, out_len), out);
		break;
	default:
		check(mlx5dv_devx_obj_query(rnd(2) ? q->qp : q->cq, in, in_len, out, out_len), out);
		break;
	}
}

static void test_random(void **state)
{
	const char *rounds = getenv("MAILBOX_ROUNDS"), *start = getenv("MAILBOX_SEED");
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	unsigned n = rounds ? (unsigned)strtoul(rounds, NULL, 10) : 20000;
	struct dq q;

	(void)state;
	seed = start ? (uint32_t)strtoul(start, NULL, 10) : 1;
	dq_create(&q, ctx, pd_number(pd), 5, false);
	for (unsigned i = 0; i < n; i++)
		one_round(ctx, &q, pd_number(pd));
	dq_destroy(&q);
	dq_create(&q, ctx, pd_number(pd), 5, false);
	dq_connect(&q, q.qpn);
	assert_int_equal(dq_state(&q), 3);
	dq_destroy(&q);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
