/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device refuses, and with which error: wrong mailboxes, wrong
 * registrations, objects in use, transitions that do not exist. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common.h"

struct fixture {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct dq q;
};

/* Status of a create command that has to fail; 0 if it did not. */
static unsigned create_status(struct fixture *f, const uint8_t *in, size_t in_len)
{
	uint8_t out[16] = {0};
	struct mlx5dv_devx_obj *obj =
		mlx5dv_devx_obj_create(f->ctx, in, in_len, out, sizeof(out));

	if (obj) {
		mlx5dv_devx_obj_destroy(obj);
		return 0;
	}
	return errno == EREMOTEIO ? out[0] : 0x1000u + (unsigned)errno;
}

static unsigned cq_with(struct fixture *f, unsigned bit, unsigned width, uint64_t value)
{
	uint8_t in[MBOX];

	dq_cq_mailbox(&f->q, in, 4, false, true);
	put_bits(in, bit, width, value);
	return create_status(f, in, sizeof(in));
}

static unsigned qp_with(struct fixture *f, unsigned bit, unsigned width, uint64_t value)
{
	uint8_t in[MBOX];

	dq_qp_mailbox(&f->q, in, pd_number(f->pd));
	put_bits(in, bit, width, value);
	return create_status(f, in, sizeof(in));
}

static void test_cq_mailbox(void **state)
{
	struct fixture *f = *state;
	uint8_t in[MBOX];

	assert_int_equal(cq_with(f, 0x20, 16, 0), 0); /* nothing spoilt: it works */
	assert_int_equal(cq_with(f, 0x2c0, 32, 0xdead), 5);
	assert_int_equal(cq_with(f, CQC + 0x20, 32, 0xdead), 5);
	assert_int_equal(cq_with(f, CQC + 0x63, 5, 31), 3);
	assert_int_equal(cq_with(f, CQC + 0x63, 5, 10), 3);	 /* beyond the umem */
	assert_int_equal(cq_with(f, 0x280, 64, DQ_SIZE), 3);
	assert_int_equal(cq_with(f, 0x280, 64, ~0ull - 63), 3); /* wraps */
	assert_int_equal(cq_with(f, 0x280, 64, DQ_CQ + 8), 3);	 /* alignment */
	assert_int_equal(cq_with(f, CQC + 0x1c0, 64, DQ_SIZE), 3);
	assert_int_equal(cq_with(f, CQC + 0x1c0, 64, DQ_CQ_DBR + 4), 3);
	assert_int_equal(cq_with(f, CQC + 0x68, 24, 0), 5); /* UAR page 0 is nobody's */
	assert_int_equal(cq_with(f, CQC + 0x08, 3, 5), 3);  /* CQE size */
	dq_cq_mailbox(&f->q, in, 4, false, true);
	assert_int_equal(create_status(f, in, 64), 0x50);
	assert_int_equal(create_status(f, in, 8), 0x1000u + EINVAL);
	put_bits(in, 0, 16, 0x7777);
	assert_int_equal(create_status(f, in, sizeof(in)), 2);
}

static void test_qp_mailbox(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(qp_with(f, 0x20, 16, 0), 0);
	assert_int_equal(qp_with(f, QPC + 0x08, 8, 3), 3);	 /* XRC */
	assert_int_equal(qp_with(f, QPC + 0x28, 24, 0xabcdef), 5); /* PD */
	assert_int_equal(qp_with(f, QPC + 0x3e8, 24, 0xabcdef), 5);
	assert_int_equal(qp_with(f, QPC + 0x4e8, 24, 0xabcdef), 5);
	assert_int_equal(qp_with(f, QPC + 0x68, 24, 0xabcdef), 5);
	assert_int_equal(qp_with(f, QPC + 0x51, 4, 15), 3);
	assert_int_equal(qp_with(f, 0x840, 32, 0xdead), 5);
	assert_int_equal(qp_with(f, 0x800, 64, DQ_SIZE - 512), 3);
	assert_int_equal(qp_with(f, 0x800, 64, ~0ull - 1023), 3);
	assert_int_equal(qp_with(f, QPC + 0x500, 64, DQ_SIZE - 4), 3);
	assert_int_equal(qp_with(f, QPC + 0x720, 32, 0), 5);
	assert_int_equal(qp_with(f, QPC + 0x400, 2, 2), 3); /* no doorbell record */
	assert_int_equal(qp_with(f, QPC + 0x565, 3, 1), 5); /* SRQ that is not there */
}

static int modify_op(struct dq *q, unsigned opcode)
{
	uint8_t in[MBOX] = {0};

	put_bits(in, 0, 16, opcode);
	put_bits(in, 0x48, 24, q->qpn);
	return dq_modify(q, in);
}

static void test_transitions(void **state)
{
	struct fixture *f = *state;
	uint8_t in[MBOX];
	struct dq q;

	dq_create(&q, f->ctx, pd_number(f->pd), 4, false);
	assert_int_equal(modify_op(&q, 0x503), 0x10010);
	assert_int_equal(modify_op(&q, 0x504), 0x10010);
	assert_int_equal(modify_op(&q, 0x505), 0x10010);
	memset(in, 0, sizeof(in));
	put_bits(in, 0, 16, 0x502);
	put_bits(in, 0x48, 24, q.qpn);
	put_bits(in, PATH + 0x10, 16, 1); /* P_Key index: the table has one entry */
	assert_int_equal(dq_modify(&q, in), 0x10003);
	assert_int_equal(modify_op(&q, 0x502), 0);
	assert_int_equal(modify_op(&q, 0x502), 0x10010);
	assert_int_equal(modify_op(&q, 0x50e), 0);
	assert_int_equal(modify_op(&q, 0x506), 0x10010); /* a send queue error is not modelled */
	dq_rtr_mailbox(&q, in, 5);
	put_bits(in, QPC + 0x40, 3, 0); /* MTU */
	assert_int_equal(dq_modify(&q, in), 0x10003);
	put_bits(in, QPC + 0x40, 3, 7);
	assert_int_equal(dq_modify(&q, in), 0x10003);
	dq_rtr_mailbox(&q, in, 5);
	put_bits(in, PATH + 0x10, 16, 1);
	put_bits(in, 0x80, 32, 1 << 4); /* its bit in opt_param_mask */
	assert_int_equal(dq_modify(&q, in), 0x10003);
	dq_rtr_mailbox(&q, in, 5);
	put_bits(in, PATH + 0x48, 8, 3); /* GID index */
	assert_int_equal(dq_modify(&q, in), 0x10003);
	put_bits(in, 0x48, 24, q.qpn + 1); /* another QP than the handle's */
	assert_int_equal(dq_modify(&q, in), EINVAL);
	assert_int_equal(dq_state(&q), 1);
	assert_int_equal(modify_op(&q, 0x507), 0);
	assert_int_equal(dq_state(&q), 6);
	assert_int_equal(modify_op(&q, 0x50a), 0);
	assert_int_equal(dq_state(&q), 0);
	dq_destroy(&q);
}

static void test_busy(void **state)
{
	struct fixture *f = *state;
	struct ibv_pd *pd = ibv_alloc_pd(f->ctx);
	static uint8_t page[4096] __attribute__((aligned(4096)));
	struct ibv_mr *mr = ibv_reg_mr(pd, page, sizeof(page), 0);
	struct dq q;

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	dq_create(&q, f->ctx, pd_number(pd), 4, false);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(mlx5dv_devx_obj_destroy(q.cq), EBUSY);
	assert_int_equal(mlx5dv_devx_umem_dereg(q.umem), EBUSY);
	dq_destroy(&q);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static struct ibv_mr *reg(struct fixture *f, void *addr, size_t len, uint64_t iova, int access)
{
	errno = 0;
	return ibv_reg_mr_iova(f->pd, addr, len, iova, access);
}

static void test_registration(void **state)
{
	struct fixture *f = *state;
	uint8_t *m = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	munmap(m + 8192, 4096);
	assert_null(reg(f, m, 16384, (uintptr_t)m, IBV_ACCESS_LOCAL_WRITE)); /* a hole */
	assert_int_equal(errno, EFAULT);
	assert_null(reg(f, ro, 4096, (uintptr_t)ro, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	mr = reg(f, ro, 4096, (uintptr_t)ro, IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(reg(f, m, 4096, (uintptr_t)m, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(reg(f, m, 4096, 8, IBV_ACCESS_LOCAL_WRITE)); /* page offsets differ */
	assert_int_equal(errno, EINVAL);
	assert_null(reg(f, m, 0, (uintptr_t)m, IBV_ACCESS_LOCAL_WRITE));
	assert_null(reg(f, m, SIZE_MAX, (uintptr_t)m, IBV_ACCESS_LOCAL_WRITE));
	assert_null(mlx5dv_devx_umem_reg(f->ctx, m, 16384, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_null(mlx5dv_devx_umem_reg(f->ctx, m, 0, IBV_ACCESS_LOCAL_WRITE));
	munmap(m, 8192);
	munmap(m + 12288, 4096);
	munmap(ro, 4096);
}

static void test_unsupported(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *cq = ibv_create_cq(f->ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RAW_PACKET, .send_cq = cq, .recv_cq = cq,
				      .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS};
	uint8_t in[16] = {0}, out[16] = {0};
	struct ibv_qp *qp;

	assert_non_null(cq);
	assert_null(ibv_create_qp(f->pd, &ia));
	assert_int_equal(errno, EOPNOTSUPP);
	ia.qp_type = IBV_QPT_RC;
	qp = ibv_create_qp(f->pd, &ia);
	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), EINVAL); /* RST to RTS */
	a.qp_state = IBV_QPS_INIT;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), EINVAL); /* attributes miss */
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	put_bits(in, 0, 16, 0xfff);
	assert_int_equal(mlx5dv_devx_general_cmd(f->ctx, in, sizeof(in), out, sizeof(out)),
			 EREMOTEIO);
	assert_int_equal(out[0], 2);
	assert_int_equal(ibv_query_gid(f->ctx, 2, 0, (union ibv_gid *)in), -1);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint8_t in[MBOX], out[16] = {0};

	f->ctx = open_device();
	f->pd = ibv_alloc_pd(f->ctx);
	dq_memory(&f->q, f->ctx);
	dq_cq_mailbox(&f->q, in, 4, false, true);
	f->q.cq = mlx5dv_devx_obj_create(f->ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(f->q.cq);
	f->q.cqn = (uint32_t)get_bits(out, 0x48, 24);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	dq_destroy(&f->q);
	assert_int_equal(ibv_dealloc_pd(f->pd), 0);
	assert_int_equal(ibv_close_device(f->ctx), 0);
	free(f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cq_mailbox),  cmocka_unit_test(test_qp_mailbox),
		cmocka_unit_test(test_transitions), cmocka_unit_test(test_busy),
		cmocka_unit_test(test_registration), cmocka_unit_test(test_unsupported),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
