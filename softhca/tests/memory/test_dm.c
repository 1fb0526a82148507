/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory: what is given out and refused, copies, regions in it as target and source of everything, and who
 * shares it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/tests/control/pair.h"

enum { MOST = 131072, POOL = 262144, REGION = 4096, AT = 256 };

static const unsigned ACCESS = IBV_ACCESS_ZERO_BASED | (FULL_ACCESS & 0xf);

static struct ibv_dm *alloc(struct pair *p, size_t length)
{
	return ibv_alloc_dm(p->ctx, &(struct ibv_alloc_dm_attr){.length = length});
}

/* A page of device memory, and a region of all but its first AT bytes. */
struct region {
	struct pair *p;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
};

static void setup(struct region *r, struct pair *p)
{
	r->p = p;
	r->dm = alloc(p, REGION);
	assert_non_null(r->dm);
	r->mr = ibv_reg_dm_mr(p->pd, r->dm, AT, REGION - AT, ACCESS);
	assert_non_null(r->mr);
	pair_scramble(p);
}

static void teardown(struct region *r)
{
	assert_int_equal(ibv_dereg_mr(r->mr), 0);
	assert_int_equal(ibv_free_dm(r->dm), 0);
}

/* By QP 0: this piece here, that address there. */
static enum ibv_wc_status move(struct pair *p, enum ibv_wr_opcode op, struct ibv_sge sge, uint64_t remote,
			       uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {.opcode = op, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 77;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
	return wait_wc(p->cq[0]).status;
}

static struct ibv_sge host(struct pair *p, size_t at, uint32_t n)
{
	return (struct ibv_sge){.addr = (uintptr_t)p->buf + at, .length = n, .lkey = p->mr->lkey};
}

static struct ibv_sge device(struct region *r, uint64_t at, uint32_t n)
{
	return (struct ibv_sge){.addr = at, .length = n, .lkey = r->mr->lkey};
}

static void test_given_and_refused(void **state)
{
	static const enum mlx5dv_alloc_dm_type steering[] = {MLX5DV_DM_TYPE_STEERING_SW_ICM,
							     MLX5DV_DM_TYPE_HEADER_MODIFY_SW_ICM};
	struct pair *p = *state;
	struct ibv_device_attr_ex attr;
	struct ibv_dm *dm[POOL / MOST];

	assert_int_equal(ibv_query_device_ex(p->ctx, NULL, &attr), 0);
	assert_int_equal(attr.max_dm_size, MOST);
	assert_null(alloc(p, MOST + 1));
	assert_null(alloc(p, 0));
	assert_null(ibv_alloc_dm(p->ctx, &(struct ibv_alloc_dm_attr){.length = 64, .log_align_req = 13}));
	for (size_t i = 0; i < sizeof(steering) / sizeof(steering[0]); i++) {
		errno = 0;
		assert_null(mlx5dv_alloc_dm(p->ctx, &(struct ibv_alloc_dm_attr){.length = 64},
					    &(struct mlx5dv_alloc_dm_attr){.type = steering[i]}));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	/* All of it, and what was given back again. */
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < POOL / MOST; i++) {
			dm[i] = alloc(p, MOST);
			assert_non_null(dm[i]);
		}
		assert_null(alloc(p, 4));
		for (unsigned i = 0; i < POOL / MOST; i++)
			assert_int_equal(ibv_free_dm(dm[i]), 0);
	}
	dm[0] = ibv_alloc_dm(p->ctx, &(struct ibv_alloc_dm_attr){.length = 64, .log_align_req = 12});
	assert_non_null(dm[0]);
	errno = 0;
	assert_null(mlx5dv_dm_map_op_addr(dm[0], 0));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(mlx5dv_dm_map_op_addr(dm[0], 32));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_free_dm(dm[0]), 0);
}

/* QUERY_HCA_CAP says it, too. */
static void test_capabilities(void **state)
{
	struct pair *p = *state;
	uint8_t in[16] = {0}, out[0x1010];

	put_bits(in, 0, 16, 0x100);
	put_bits(in, 0x30, 16, 1);
	assert_int_equal(mlx5dv_devx_general_cmd(p->ctx, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, 0x80 + 0x1a8, 1), 1); /* device_memory */
	put_bits(in, 0x30, 16, 0xf << 1 | 1);
	assert_int_equal(mlx5dv_devx_general_cmd(p->ctx, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, 0x80, 1), 1); /* memic */
	assert_int_equal(get_bits(out, 0x80 + 0x80, 32), POOL);
	assert_int_equal(get_bits(out, 0x80 + 0xa0, 32), MOST);
}

static void test_copies(void **state)
{
	struct pair *p = *state;
	struct ibv_dm *a = alloc(p, 100), *b = alloc(p, 5000), *seen;
	uint32_t word[25], back[25];

	assert_non_null(a);
	assert_non_null(b);
	for (unsigned i = 0; i < 25; i++)
		word[i] = 0x1000 + i;
	assert_int_equal(ibv_memcpy_to_dm(a, 0, word, 100), 0);
	memset(back, 0xee, sizeof(back));
	assert_int_equal(ibv_memcpy_to_dm(b, 4000, back, 100), 0);
	assert_int_equal(ibv_memcpy_from_dm(back, a, 0, 100), 0);
	assert_memory_equal(back, word, 100);
	assert_int_equal(ibv_memcpy_from_dm(back, a, 4, 100), EFAULT);
	assert_int_equal(ibv_memcpy_from_dm(back, a, 2, 4), EINVAL);
	seen = ibv_import_dm(p->ctx, a->handle);
	assert_non_null(seen);
	memset(back, 0, sizeof(back));
	assert_int_equal(ibv_memcpy_from_dm(back, seen, 0, 100), 0);
	assert_memory_equal(back, word, 100);
	ibv_unimport_dm(seen);
	assert_int_equal(ibv_free_dm(a), 0);
	assert_int_equal(ibv_free_dm(b), 0);
}

static void test_regions(void **state)
{
	struct pair *p = *state;
	struct ibv_dm *dm = alloc(p, 100);
	struct ibv_mr *mr;

	assert_non_null(dm);
	assert_null(ibv_reg_dm_mr(p->pd, dm, 0, 104, ACCESS));
	assert_null(ibv_reg_dm_mr(p->pd, dm, 104, 0, ACCESS));
	assert_null(ibv_reg_dm_mr(p->pd, dm, 8, UINT64_MAX - 4, ACCESS));
	assert_null(ibv_reg_dm_mr(p->pd, dm, 0, 100, ACCESS & ~(unsigned)IBV_ACCESS_ZERO_BASED));
	assert_null(ibv_reg_dm_mr(p->pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE));
	assert_null(ibv_reg_dm_mr(p->pd, dm, 0, 100, ACCESS | IBV_ACCESS_MW_BIND));
	mr = ibv_reg_dm_mr(p->pd, dm, 100, 0, ACCESS);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_dm_mr(p->pd, dm, 0, 100, ACCESS);
	assert_non_null(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void test_target(void **state)
{
	struct region r;
	uint64_t word[2];
	uint8_t back[64];

	setup(&r, *state);
	assert_int_equal(move(r.p, IBV_WR_RDMA_WRITE, host(r.p, 0, 64), 128, r.mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(back, r.dm, AT + 128, 64), 0);
	assert_memory_equal(back, r.p->buf, 64);
	assert_int_equal(move(r.p, IBV_WR_RDMA_READ, host(r.p, 1024, 64), 128, r.mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(r.p->buf + 1024, back, 64);

	word[0] = 5;
	word[1] = 5;
	assert_int_equal(ibv_memcpy_to_dm(r.dm, AT, word, 16), 0);
	assert_int_equal(move(r.p, IBV_WR_ATOMIC_FETCH_AND_ADD, host(r.p, 0, 8), 0, r.mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)(void *)r.p->buf, 5);
	assert_int_equal(move(r.p, IBV_WR_ATOMIC_CMP_AND_SWP, host(r.p, 0, 8), 8, r.mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)(void *)r.p->buf, 5);
	assert_int_equal(ibv_memcpy_from_dm(word, r.dm, AT, 16), 0);
	assert_int_equal(word[0], 10);
	assert_int_equal(word[1], 77);
	teardown(&r);
}

static void test_source(void **state)
{
	struct region r;
	uint8_t data[64];

	setup(&r, *state);
	memcpy(data, r.p->buf, 64);
	assert_int_equal(ibv_memcpy_to_dm(r.dm, AT + 512, data, 64), 0);
	assert_int_equal(move(r.p, IBV_WR_RDMA_WRITE, device(&r, 512, 64), (uintptr_t)r.p->buf + 4096, r.p->mr->rkey),
			 IBV_WC_SUCCESS);
	assert_memory_equal(r.p->buf + 4096, data, 64);
	/* What is read lands there, and an atomic's old value; its queue pair says that none comes in a completion. */
	assert_int_equal(move(r.p, IBV_WR_RDMA_READ, device(&r, 1024, 64), (uintptr_t)r.p->buf, r.p->mr->rkey),
			 IBV_WC_SUCCESS);
	assert_int_equal(move(r.p, IBV_WR_ATOMIC_FETCH_AND_ADD, device(&r, 2048, 8), (uintptr_t)r.p->buf + 8192,
			      r.p->mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(data, r.dm, AT + 1024, 64), 0);
	assert_memory_equal(data, r.p->buf, 64);
	assert_int_equal(ibv_memcpy_from_dm(data, r.dm, AT + 2048, 8), 0);
	assert_int_equal(*(uint64_t *)(void *)data + 5, *(uint64_t *)(void *)(r.p->buf + 8192));
	teardown(&r);
}

static void send_into(struct region *r)
{
	struct ibv_sge sge = device(r, 0, 16);
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	uint8_t back[16];

	assert_int_equal(ibv_post_recv(r->p->qp[1], &wr, &bad), 0);
	assert_int_equal(move(r->p, IBV_WR_SEND, host(r->p, 0, 16), 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(r->p->cq[1]).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(back, r->dm, AT, 16), 0);
	assert_memory_equal(back, r->p->buf, 16);
}

static void test_receive(void **state)
{
	struct region r;

	setup(&r, *state);
	send_into(&r);
	teardown(&r);
}

/* Not beyond the region, though there is device memory. */
static void test_bounds(void **state)
{
	struct region r;

	setup(&r, *state);
	if (!getenv("SOFTHCA_STRICT") || *getenv("SOFTHCA_STRICT") == '0')
		assert_int_equal(move(r.p, IBV_WR_RDMA_WRITE, host(r.p, 0, 64), REGION - AT - 60, r.mr->rkey),
				 IBV_WC_REM_ACCESS_ERR);
	teardown(&r);
}

/* Doorbell pages pass device memory by: as many as there are, and none of them shows in it. */
static void test_doorbell_pages(void **state)
{
	enum { UARS = 5000 }; /* libmlx5 puts two on a page */
	static struct mlx5dv_devx_uar *uar[UARS];
	struct pair *p = *state;
	struct ibv_dm *dm;
	unsigned n = 0;
	uint32_t is, top = 0;

	while (n < UARS && (uar[n] = mlx5dv_devx_alloc_uar(p->ctx, MLX5DV_UAR_ALLOC_TYPE_BF))) {
		top = uar[n]->page_id > top ? uar[n]->page_id : top;
		n++;
	}
	if (sysconf(_SC_PAGESIZE) == 4096) /* beyond device memory */
		assert_in_range(top, 2048 + 256, 4095);
	dm = alloc(p, MOST);
	assert_non_null(dm);
	for (size_t at = 0; at < MOST; at += 4096)
		assert_int_equal(ibv_memcpy_to_dm(dm, at, &(uint32_t){0x12345678}, 4), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	for (unsigned i = 0; i < n; i++) {
		memcpy(&is, uar[i]->base_addr, 4);
		assert_int_not_equal(is, 0x12345678);
		mlx5dv_devx_free_uar(uar[i]);
	}
}

/* A child allocates from what it inherited, and has what nobody else has. */
static void test_child(void **state)
{
	struct pair *p = *state;
	struct ibv_dm *dm = alloc(p, MOST), *rest;
	uint32_t is = 0;
	int status;
	pid_t pid;

	assert_non_null(dm);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, &(uint32_t){1}, 4), 0);
	pid = fork();
	if (!pid) {
		struct ibv_dm *own = alloc(p, MOST);
		struct ibv_pd *pd = ibv_alloc_pd(p->ctx);

		_exit(!own || pd || alloc(p, 4) || ibv_memcpy_to_dm(own, 0, &(uint32_t){2}, 4) ||
		      ibv_memcpy_from_dm(&is, own, 0, 4) || is != 2 || ibv_free_dm(own));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ibv_memcpy_from_dm(&is, dm, 0, 4), 0);
	assert_int_equal(is, 1);
	rest = alloc(p, MOST);
	assert_non_null(rest);
	assert_int_equal(ibv_free_dm(rest), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_given_and_refused), TEST(test_capabilities), TEST(test_copies),   TEST(test_regions),
		TEST(test_target),	      TEST(test_source),       TEST(test_receive),  TEST(test_bounds),
		TEST(test_doorbell_pages),    TEST(test_child),
	};

	setenv("MLX5_SCATTER_TO_CQE", "0", 1); /* rule dm-cqe */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
