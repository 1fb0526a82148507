/* SPDX-License-Identifier: BSD-3-Clause */
/* On-demand paging: regions of memory that is not there yet, not any more, or not the same, and of all addresses; what
 * is advised. Each access finds what lies at its addresses then, or ends with the access error of its side. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "softhca/tests/control/pair.h"

enum { PAGE = 65536, SIZE = 4 * PAGE }; /* a page of any host */

#define ON_DEMAND (FULL_ACCESS | IBV_ACCESS_ON_DEMAND)

/* Addresses at which there is nothing. */
static uint8_t *nowhere(void)
{
	uint8_t *at = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(munmap(at, SIZE), 0);
	return at;
}

static void put_memory(uint8_t *at, int prot)
{
	assert_ptr_equal(mmap(at, SIZE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
}

/* By QP 0, between its own buffer and that address. */
static enum ibv_wc_status post(struct pair *p, enum ibv_wr_opcode op, uint8_t *remote, uint32_t rkey, uint32_t len)
{
	pair_post_at(p, op, p->buf, p->mr->lkey, remote, rkey, len);
	return wait_wc(p->cq[0]).status;
}

/* From that address to the buffer's other half. */
static enum ibv_wc_status post_from(struct pair *p, enum ibv_wr_opcode op, uint8_t *local, uint32_t lkey, uint32_t len)
{
	pair_post_at(p, op, local, lkey, p->buf + BUF / 2, p->mr->rkey, len);
	return wait_wc(p->cq[0]).status;
}

/* An error ends the queue pairs: they start again. */
static void again(struct pair *p)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_modify_qp(p->qp[i], &reset, IBV_QP_STATE), 0);
	for (int i = 0; i < 2; i++)
		connect_qp(p->ctx, p->qp[i], p->qp[1 - i]->qp_num);
}

static void test_capabilities(void **state)
{
	struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_DC_ODP_CAPS};
	struct pair *p = *state;
	uint8_t in[16] = {0}, out[0x1010];
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(p->ctx, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, 0x3f);
	assert_int_equal(attr.odp_caps.per_transport_caps.uc_odp_caps, 0);
	assert_int_equal(attr.odp_caps.per_transport_caps.ud_odp_caps, IBV_ODP_SUPPORT_SEND);
	assert_int_equal(attr.xrc_odp_caps, 0);
	assert_int_equal(mlx5dv_query_device(p->ctx, &dv), 0);
	assert_int_equal(dv.dc_odp_caps, 0x3f);
	put_bits(in, 0, 16, 0x100);
	put_bits(in, 0x30, 16, 1);
	assert_int_equal(mlx5dv_devx_general_cmd(p->ctx, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, 0x80 + 0x227, 1), 1); /* pg */
}

/* Each side of each operation, where nothing is; then where something is. */
static void test_comes(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct pair *p = *state;
	uint8_t *at = nowhere();
	struct ibv_mr *mr = ibv_reg_mr(p->pd, at, SIZE, ON_DEMAND);

	assert_non_null(mr);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		assert_int_equal(post(p, ops[i], at, mr->rkey, 8), IBV_WC_REM_ACCESS_ERR);
		again(p);
	}
	for (uint32_t len = 64; len <= 16384; len *= 256) {
		assert_int_equal(post_from(p, IBV_WR_RDMA_WRITE, at, mr->lkey, len), IBV_WC_LOC_PROT_ERR);
		again(p);
		assert_int_equal(post_from(p, IBV_WR_RDMA_READ, at, mr->lkey, len), IBV_WC_LOC_PROT_ERR);
		again(p);
	}
	put_memory(at, PROT_READ | PROT_WRITE);
	pair_scramble(p);
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, at, mr->rkey, 16384), IBV_WC_SUCCESS);
	assert_memory_equal(at, p->buf, 16384);
	assert_int_equal(post_from(p, IBV_WR_RDMA_WRITE, at, mr->lkey, 16384), IBV_WC_SUCCESS);
	assert_memory_equal(at, p->buf + BUF / 2, 16384);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(at, SIZE), 0);
}

/* What is put in its place is what the next access finds. */
static void test_goes(void **state)
{
	struct pair *p = *state;
	uint8_t *at = nowhere();
	struct ibv_mr *mr;

	put_memory(at, PROT_READ | PROT_WRITE);
	mr = ibv_reg_mr(p->pd, at, SIZE, ON_DEMAND);
	assert_non_null(mr);
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, at, mr->rkey, 4096), IBV_WC_SUCCESS);
	assert_int_equal(munmap(at, SIZE), 0);
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, at, mr->rkey, 4096), IBV_WC_REM_ACCESS_ERR);
	again(p);
	put_memory(at, PROT_READ | PROT_WRITE);
	memset(at, 0x5a, 4096);
	assert_int_equal(post(p, IBV_WR_RDMA_READ, at, mr->rkey, 4096), IBV_WC_SUCCESS);
	assert_memory_equal(p->buf, at, 4096);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(at, SIZE), 0);
}

/* A page that may be read alone is no target; what lies around it is. */
static void test_read_only(void **state)
{
	struct pair *p = *state;
	uint8_t *at = nowhere();
	struct ibv_mr *mr;

	put_memory(at, PROT_READ | PROT_WRITE);
	memset(at, 0x5a, SIZE);
	assert_int_equal(mprotect(at + PAGE, PAGE, PROT_READ), 0);
	mr = ibv_reg_mr(p->pd, at, SIZE, ON_DEMAND);
	assert_non_null(mr);
	assert_int_equal(post(p, IBV_WR_RDMA_READ, at + PAGE, mr->rkey, 4096), IBV_WC_SUCCESS);
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, at, mr->rkey, 8), IBV_WC_SUCCESS);
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, at + PAGE, mr->rkey, 8), IBV_WC_REM_ACCESS_ERR);
	again(p);
	assert_int_equal(post(p, IBV_WR_ATOMIC_FETCH_AND_ADD, at + PAGE, mr->rkey, 8), IBV_WC_REM_ACCESS_ERR);
	again(p);
	assert_int_equal(post_from(p, IBV_WR_RDMA_READ, at + PAGE, mr->lkey, 64), IBV_WC_LOC_PROT_ERR);
	again(p);
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(at[PAGE + i], 0x5a);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(at, SIZE), 0);
}

static void test_implicit(void **state)
{
	struct pair *p = *state;
	struct ibv_mr *mr = ibv_reg_mr(p->pd, NULL, SIZE_MAX, ON_DEMAND);
	uint8_t *at = nowhere();

	assert_non_null(mr);
	assert_null(ibv_reg_mr_iova(p->pd, NULL, SIZE_MAX, PAGE, ON_DEMAND));
	assert_null(ibv_reg_mr(p->pd, NULL, SIZE_MAX, FULL_ACCESS));
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, at, mr->rkey, 64), IBV_WC_REM_ACCESS_ERR);
	again(p);
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, NULL, mr->rkey, 64), IBV_WC_REM_ACCESS_ERR);
	again(p);
	put_memory(at, PROT_READ | PROT_WRITE);
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, at + PAGE - 8192, mr->rkey, 16384), IBV_WC_SUCCESS);
	assert_memory_equal(at + PAGE - 8192, p->buf, 16384);
	assert_int_equal(post_from(p, IBV_WR_RDMA_READ, at, mr->lkey, 16384), IBV_WC_SUCCESS);
	assert_memory_equal(at, p->buf + BUF / 2, 16384);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(at, SIZE), 0);
}

static int advise(struct ibv_pd *pd, enum ib_uverbs_advise_mr_advice advice, bool wait, const struct ibv_mr *mr,
		  const uint8_t *at, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = len, .lkey = mr->lkey};

	return ibv_advise_mr(pd, advice, wait ? IBV_ADVISE_MR_FLAG_FLUSH : 0, &sge, 1);
}

static bool resident(uint8_t *at)
{
	unsigned char is = 0;

	assert_int_equal(mincore(at, 1, &is), 0);
	return is & 1;
}

static void test_advice(void **state)
{
	struct pair *p = *state;
	struct ibv_pd *other = ibv_alloc_pd(p->ctx);
	uint8_t *at = nowhere();
	struct ibv_mr *mr = ibv_reg_mr(p->pd, at, SIZE, ON_DEMAND);
	struct ibv_mr *reads = ibv_reg_mr(p->pd, at, SIZE, IBV_ACCESS_ON_DEMAND);

	assert_non_null(mr);
	assert_non_null(reads);
	assert_int_equal(advise(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, true, mr, at, SIZE), EFAULT);
	assert_int_equal(advise(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, false, mr, at, SIZE), 0);
	assert_int_equal(advise(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, true, mr, at, SIZE), 0);
	put_memory(at, PROT_READ | PROT_WRITE);
	assert_int_equal(advise(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, true, mr, at, SIZE), 0);
	assert_false(resident(at));
	assert_int_equal(advise(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, true, mr, at + 100, SIZE - 100), 0);
	assert_true(resident(at));
	assert_true(resident(at + SIZE - 1 - (SIZE - 1) % 4096));
	assert_int_equal(advise(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, true, reads, at, 64), EPERM);
	assert_int_equal(advise(other, IBV_ADVISE_MR_ADVICE_PREFETCH, true, mr, at, 64), EPERM);
	assert_int_equal(advise(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, true, p->mr, p->buf, 64), ENOENT);
	assert_int_equal(advise(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, false, mr, at + 1, SIZE), EFAULT);
	assert_int_equal(advise(p->pd, (enum ib_uverbs_advise_mr_advice)7, true, mr, at, 64), EOPNOTSUPP);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(reads), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	assert_int_equal(munmap(at, SIZE), 0);
}

/* Regions become such, and cease to be such; no other memory of the device's is on demand. */
static void test_registered_again(void **state)
{
	const int all = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;
	struct pair *p = *state;
	uint8_t *at = nowhere();
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf, 4096, FULL_ACCESS);

	assert_non_null(mr);
	assert_int_equal(ibv_rereg_mr(mr, all, NULL, at, SIZE, FULL_ACCESS), IBV_REREG_MR_ERR_CMD);
	assert_int_equal(ibv_rereg_mr(mr, all, NULL, at, SIZE, ON_DEMAND), 0);
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, at, mr->rkey, 64), IBV_WC_REM_ACCESS_ERR);
	again(p);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, FULL_ACCESS),
			 IBV_REREG_MR_ERR_CMD);
	put_memory(at, PROT_READ | PROT_WRITE);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, FULL_ACCESS), 0);
	assert_int_equal(post(p, IBV_WR_RDMA_WRITE, at, mr->rkey, 64), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(mlx5dv_devx_umem_reg(p->ctx, at, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(munmap(at, SIZE), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_capabilities), TEST(test_comes),  TEST(test_goes),		 TEST(test_read_only),
		TEST(test_implicit),	 TEST(test_advice), TEST(test_registered_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
