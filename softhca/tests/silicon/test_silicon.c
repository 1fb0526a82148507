/* SPDX-License-Identifier: BSD-3-Clause */
/* What devices differ in (SOFTHCA_DEVICE): a group of tests for each capability, named on the command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "softhca/tests/control/common.h"

#define PAGES	  8192u
#define REGISTERS 32u /* of a host's page of 64 KiB */

static uint8_t memory[PAGES] __attribute__((aligned(4096)));

static uint64_t cap(struct ibv_context *ctx, unsigned group, unsigned bit, unsigned width)
{
	static uint8_t out[0x1010];
	uint8_t in[16] = {0};

	put_bits(in, 0, 16, 0x100);
	put_bits(in, 0x30, 16, group << 1 | 1);
	assert_int_equal(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), 0);
	return get_bits(out + 16, bit, width);
}

static void test_relaxed_only(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t in[KLM_MBOX], out[16] = {0};
	struct mlx5dv_devx_obj *key;
	struct ibv_mr *mr;

	assert_int_equal(cap(ctx, 0, 0x3a9, 1), 1); /* mkc_order_write_after_write_ro_only */
	errno = 0;
	assert_null(ibv_reg_mr(pd, memory, PAGES, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	mr = ibv_reg_mr(pd, memory, PAGES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	klm_mailbox(in, pd_number(pd), mr->lkey, memory, PAGES); /* of strict order */
	assert_null(mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(get_bits(out, 0x20, 32), 0x50fc0022);
	put_bits(in, 0x80 + 0x0d, 1, 1);
	put_bits(in, 0x80 + 0x11, 1, 1); /* such keys do the atomics there */
	key = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(key);
	assert_int_equal(mlx5dv_devx_obj_destroy(key), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	ibv_dealloc_pd(pd);
}

static void test_lag(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t in[MBOX] = {0}, out[MBOX] = {0};
	struct dq q;

	assert_int_equal(cap(ctx, 0, 0x278, 1), 1); /* lag_tx_port_affinity */
	assert_int_equal(cap(ctx, 0, 0x27c, 4), 2); /* num_lag_ports */
	put_bits(in, 0, 16, 0x842);
	assert_int_equal(mlx5dv_devx_general_cmd(ctx, in, 16, out, 16), 0);
	assert_int_equal(get_bits(out, 0x5d, 3), 1); /* lag_state */
	assert_int_equal(get_bits(out, 0x55, 3), 0); /* port_select_mode */
	dq_create(&q, ctx, pd_number(pd), 4, false);
	put_bits(in, 0, 16, 0x502); /* RST2INIT, to the second port */
	put_bits(in, 0x48, 24, q.qpn);
	put_bits(in, PATH + 0x128, 8, 1);
	put_bits(in, QPC + 4, 4, 2);
	assert_int_equal(dq_modify(&q, in), 0);
	memset(in, 0, sizeof(in));
	put_bits(in, 0, 16, 0x50b);
	put_bits(in, 0x48, 24, q.qpn);
	assert_int_equal(mlx5dv_devx_obj_query(q.qp, in, 16, out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, QPC + 4, 4), 2);
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

#define ECE_IN	0xa0 /* also out, of QUERY_QP */
#define ECE_OUT 0x60

static const char *ece_said(void)
{
	const char *text = strstr(getenv("SOFTHCA_DEVICE"), "ece=");

	return text ? text + 4 : "0x30000002";
}

/* What a queue pair created with these options is offered. */
static uint32_t ece_offer(struct dq *q, uint32_t pdn, uint32_t options, bool taken)
{
	uint8_t in[MBOX], out[16] = {0};

	if (q->qp)
		assert_int_equal(mlx5dv_devx_obj_destroy(q->qp), 0);
	dq_qp_mailbox(q, in, pdn);
	put_bits(in, ECE_IN, 32, options);
	q->qp = mlx5dv_devx_obj_create(q->ctx, in, sizeof(in), out, sizeof(out));
	assert_int_equal(q->qp != NULL, taken);
	q->qpn = (uint32_t)get_bits(out, 0x48, 24);
	if (!taken) {
		assert_int_equal(get_bits(out, 0x20, 32), 0x50fc0027);
		return 0;
	}
	return (uint32_t)get_bits(out, ECE_OUT, 32);
}

/* A transition that asks for options: what it answers, and QUERY_QP behind it. */
static void ece_modify(struct dq *q, uint8_t in[MBOX], uint32_t ask, uint32_t on)
{
	uint8_t out[MBOX] = {0}, query[16] = {0};

	put_bits(in, ECE_IN, 32, ask);
	assert_int_equal(mlx5dv_devx_obj_modify(q->qp, in, MBOX, out, 16), 0);
	assert_int_equal(get_bits(out, ECE_OUT, 32), on);
	put_bits(query, 0, 16, 0x50b);
	put_bits(query, 0x48, 24, q->qpn);
	assert_int_equal(mlx5dv_devx_obj_query(q->qp, query, sizeof(query), out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, ECE_IN, 32), on);
}

static void ece_init_mailbox(const struct dq *q, uint8_t in[MBOX])
{
	memset(in, 0, MBOX);
	put_bits(in, 0, 16, 0x502);
	put_bits(in, 0x48, 24, q->qpn);
	put_bits(in, PATH + 0x128, 8, 1);
}

/* By command: offered where the program asks for a version, on what it asks for of that; none where there is none. */
static void test_ece(void **state)
{
	uint32_t has = (uint32_t)strtoul(ece_said(), NULL, 16), pdn;
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t in[MBOX] = {0};
	struct dq q;

	pdn = pd_number(pd);
	assert_int_equal(cap(ctx, 0, 0xa3, 1), has != 0); /* ece_support */
	dq_create(&q, ctx, pdn, 4, false);
	if (!has)
		ece_offer(&q, pdn, 0x10000000, false);
	assert_int_equal(ece_offer(&q, pdn, 0, true), 0);
	ece_init_mailbox(&q, in);
	ece_modify(&q, in, 0, 0);
	dq_rtr_mailbox(&q, in, q.qpn);
	if (!has) {
		put_bits(in, ECE_IN, 32, 0x10000000);
		assert_int_equal(dq_modify(&q, in), 0x10003);
	}
	ece_modify(&q, in, 0, 0);
	if (has) {
		assert_int_equal(ece_offer(&q, pdn, 0x10000000, true), has);
		ece_init_mailbox(&q, in);
		ece_modify(&q, in, 0, 0);
		dq_rtr_mailbox(&q, in, q.qpn);
		ece_modify(&q, in, 0xffffffff, has); /* UCX asks so for all that there is */
		memset(in, 0, sizeof(in));
		put_bits(in, 0, 16, 0x504);
		put_bits(in, 0x48, 24, q.qpn);
		ece_modify(&q, in, 0, has);
		put_bits(in, 0, 16, 0x50a); /* 2RST */
		assert_int_equal(dq_modify(&q, in), 0);
		ece_init_mailbox(&q, in);
		ece_modify(&q, in, 0, 0);
	}
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

/* An unconnected queue pair takes its options once. */
static void test_ece_unconnected(void **state)
{
	uint32_t has = (uint32_t)strtoul(ece_said(), NULL, 16);
	struct ibv_context *ctx = *state;
	uint8_t in[MBOX], out[16] = {0};
	struct ibv_pd *pd;
	struct dq q;

	if (!has)
		skip();
	pd = ibv_alloc_pd(ctx);
	dq_create(&q, ctx, pd_number(pd), 4, false);
	assert_int_equal(mlx5dv_devx_obj_destroy(q.qp), 0);
	dq_qp_mailbox(&q, in, pd_number(pd));
	put_bits(in, QPC + 0x08, 8, 2); /* st: UD */
	put_bits(in, ECE_IN, 32, 0x10000000);
	q.qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q.qp);
	q.qpn = (uint32_t)get_bits(out, 0x48, 24);
	ece_init_mailbox(&q, in);
	ece_modify(&q, in, has, has);
	put_bits(in, 0, 16, 0x503);
	put_bits(in, ECE_IN, 32, 0x10000000);
	assert_int_equal(dq_modify(&q, in), 0x10003);
	ece_modify(&q, in, has, has);
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

/* libmlx5's way: it asks for version 1 by itself, and hands on what ibv_set_ece was told at the next transition. */
static void test_ece_verbs(void **state)
{
	uint32_t has = (uint32_t)strtoul(ece_said(), NULL, 16);
	struct ibv_context *ctx = *state;
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_ece ece = {0};

	assert_int_equal(ibv_query_ece(qp, &ece), 0);
	assert_int_equal(ece.vendor_id, 0x15b3);
	assert_int_equal(ece.options, has);
	ece.options = 0x10000002;
	assert_int_equal(ibv_set_ece(qp, &ece), has ? 0 : EOPNOTSUPP);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(ibv_query_ece(qp, &ece), 0);
	assert_int_equal(ece.options, has & 0x10000002);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
}

/* The first entry of its completion queue comes, and is none of an error. */
static void wait_done(const struct dq *q)
{
	const uint64_t *last = (const uint64_t *)(const void *)(q->mem + DQ_CQ + 56);
	uint64_t word = 0;

	for (int i = 0; i < 200000; i++) {
		/* acquire: pairs with the release of the engine, which writes this word of the entry last */
		word = __atomic_load_n(last, __ATOMIC_ACQUIRE);
		if (word >> 60 != 15)
			break;
		nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
	}
	assert_int_equal(word >> 60, 0);
}

/* A path to oneself that is told so: taken where the capability says so, and shown. */
static void test_loopback(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	bool can = link_is_ib(ctx) ? cap(ctx, 0, 0x248, 1) : cap(ctx, 4, 0x06, 1); /* fl_rc_qp_when_roce_* */
	uint8_t in[MBOX] = {0}, out[MBOX] = {0};
	struct dq q;

	assert_int_equal(can, !strstr(getenv("SOFTHCA_DEVICE"), "fl=no"));
	dq_create(&q, ctx, pd_number(pd), 4, false);
	put_bits(in, 0, 16, 0x502);
	put_bits(in, 0x48, 24, q.qpn);
	put_bits(in, PATH + 0x128, 8, 1);
	assert_int_equal(dq_modify(&q, in), 0);
	dq_rtr_mailbox(&q, in, q.qpn);
	put_bits(in, PATH, 1, 1);
	assert_int_equal(dq_modify(&q, in), can ? 0 : 0x10003);
	memset(in, 0, sizeof(in));
	put_bits(in, 0, 16, 0x50b);
	put_bits(in, 0x48, 24, q.qpn);
	assert_int_equal(mlx5dv_devx_obj_query(q.qp, in, 16, out, sizeof(out)), 0);
	assert_int_equal(get_bits(out, PATH, 1), can);
	dq_destroy(&q);
	ibv_dealloc_pd(pd);
}

/* SPDK and DPDK so make queues to themselves: no address, and packets larger than the port's. */
static void test_loopback_alone(void **state)
{
	struct ibv_context *ctx = *state;
	uint8_t in[MBOX] = {0}, wqe[64] = {0};
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct dq q;

	if (strstr(getenv("SOFTHCA_DEVICE"), "fl=no"))
		skip();
	pd = ibv_alloc_pd(ctx);
	mr = ibv_reg_mr(pd, memory, PAGES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	dq_create(&q, ctx, pd_number(pd), 4, false);
	put_bits(in, 0, 16, 0x502);
	put_bits(in, 0x48, 24, q.qpn);
	put_bits(in, PATH + 0x128, 8, 1);
	put_bits(in, QPC + 0x490, 3, 7); /* rre rwe rae */
	assert_int_equal(dq_modify(&q, in), 0);
	memset(in, 0, sizeof(in));
	put_bits(in, 0, 16, 0x503);
	put_bits(in, 0x48, 24, q.qpn);
	put_bits(in, QPC + 0x40, 3, 5); /* 4096 */
	put_bits(in, QPC + 0x43, 5, 30);
	put_bits(in, QPC + 0xa8, 24, q.qpn);
	if (!link_is_ib(ctx)) /* without fl it leaves by the port, whose packets are smaller */
		assert_int_equal(dq_modify(&q, in), 0x10003);
	put_bits(in, PATH, 1, 1);
	assert_int_equal(dq_modify(&q, in), 0);
	memset(in, 0, sizeof(in));
	put_bits(in, 0, 16, 0x504);
	put_bits(in, 0x48, 24, q.qpn);
	put_bits(in, QPC + 0x38d, 3, 7);
	put_bits(in, PATH + 0x40, 5, 16);
	assert_int_equal(dq_modify(&q, in), 0);
	put_bits(wqe, 0x18, 8, 8); /* WRITE of half the memory to the other half */
	put_bits(wqe, 0x20, 24, q.qpn);
	put_bits(wqe, 0x3a, 6, 3);
	wqe[11] = 8;
	put_bits(wqe, 0x80, 64, (uintptr_t)memory);
	put_bits(wqe, 0xc0, 32, mr->rkey);
	put_bits(wqe, 0x100, 32, PAGES / 2);
	put_bits(wqe, 0x120, 32, mr->lkey);
	put_bits(wqe, 0x140, 64, (uintptr_t)memory + PAGES / 2);
	memset(memory + PAGES / 2, 7, PAGES / 2);
	dq_post(&q, 0, wqe);
	wait_done(&q);
	assert_memory_equal(memory, memory + PAGES / 2, PAGES / 2);
	dq_destroy(&q);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
}

/* SPDK asks a queue pair in reset for its port. */
static void test_port(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {0};

	assert_non_null(qp);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_PORT, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RESET);
	assert_int_equal(attr.port_num, 1);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
}

static void limit_records(struct ibv_context *ctx, struct dq q[2], uint32_t pdn, uint32_t page)
{
	uint8_t in[MBOX], out[16] = {0};

	q[1].uar->page_id = page; /* of its own, as queue pairs without a record want */
	for (int i = 0; i < 2; i++) {
		memset(out, 0, sizeof(out));
		dq_qp_mailbox(&q[i], in, pdn);
		put_bits(in, QPC + 0x400, 2, 1); /* send_dbr_mode: no record */
		put_bits(in, QPC + 0x683, 1, 0);
		put_bits(in, QPC + 0x720, 32, 0);
		q[i].qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
		assert_int_equal(!q[i].qp, i); /* the second is one too many, */
		assert_int_equal(out[0], i ? 0xf : 0);
	}
	dq_qp_mailbox(&q[1], in, pdn); /* with a record there is room */
	q[1].qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q[1].qp);
}

/* A QP without a record is refused where q rings, and made in another page of the device. */
static void alone_in_page(struct ibv_context *ctx, struct dq *q, uint32_t pdn, uint32_t page)
{
	uint8_t in[MBOX], out[16] = {0};
	struct mlx5dv_devx_obj *qp;

	dq_qp_mailbox(q, in, pdn);
	put_bits(in, QPC + 0x400, 2, 1); /* send_dbr_mode: no record */
	assert_null(mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(out[0], 0xf);
	put_bits(in, QPC + 0x68, 24, page);
	qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(qp);
	assert_int_equal(mlx5dv_devx_obj_destroy(qp), 0);
}

/* Of each two are to be had (qp-limit=2,uar-limit=2,norecord-limit=1: one without a record), and again when one goes.
 * A page has two registers of libmlx5's. */
static void test_limits(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t in[MBOX], out[16] = {0};
	struct mlx5dv_devx_uar *second;
	uint32_t page;
	struct dq q[2];

	for (int i = 0; i < 2; i++)
		dq_create(&q[i], ctx, pd_number(pd), 4, false);
	page = q[1].uar->page_id;
	assert_int_equal(page, q[0].uar->page_id);
	second = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	assert_non_null(second);
	assert_null(mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF));
	dq_qp_mailbox(&q[0], in, pd_number(pd));
	assert_null(mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(out[0], 0xf); /* no resources */
	for (int i = 0; i < 2; i++)
		assert_int_equal(mlx5dv_devx_obj_destroy(q[i].qp), 0);
	limit_records(ctx, q, pd_number(pd), second->page_id);
	q[1].uar->page_id = page;
	for (int i = 0; i < 2; i++)
		dq_destroy(&q[i]);
	mlx5dv_devx_free_uar(second);
	ibv_dealloc_pd(pd);
}

/* A page of the host holds 16 of the device's, each with two registers of libmlx5's, and a QP rings in the last one.
 * Without a record it wants a page of the device to itself, not of the host. */
static void test_host_pages(void **state)
{
	struct mlx5dv_devx_uar *uar[REGISTERS - 1], *next;
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t wqe[64] = {0}, in[MBOX], out[16] = {0};
	struct dq q;

	assert_int_equal(sysconf(_SC_PAGESIZE), 65536);
	assert_int_equal(getpagesize(), 65536);
	for (int i = 0; i < 4; i++) /* of any length, one beside the other */
		assert_int_equal((uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) % 65536, 0);
	for (unsigned i = 0; i < REGISTERS - 1; i++) {
		uar[i] = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
		assert_non_null(uar[i]);
		assert_int_equal((uintptr_t)uar[i]->base_addr % 65536, 0);
		assert_ptr_equal(uar[i]->base_addr, uar[0]->base_addr);
		assert_int_equal(uar[i]->page_id, uar[0]->page_id + i / 2);
		assert_int_equal(((uint8_t *)uar[i]->reg_addr - (uint8_t *)uar[0]->base_addr) / 4096, i / 2);
	}
	assert_int_equal(uar[0]->page_id % 16, 0);
	dq_create(&q, ctx, pd_number(pd), 4, false); /* the last register */
	assert_int_equal(q.uar->page_id, uar[0]->page_id + 15);
	next = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
	assert_int_equal((uintptr_t)next->base_addr % 65536, 0);
	assert_ptr_not_equal(next->base_addr, uar[0]->base_addr);
	dq_connect(&q, q.qpn);
	put_bits(wqe, 0x20, 24, q.qpn); /* a NOP with a completion */
	put_bits(wqe, 0x3a, 6, 1);
	wqe[11] = 8;
	dq_post(&q, 0, wqe);
	wait_done(&q);
	assert_int_equal(mlx5dv_devx_obj_destroy(q.qp), 0);
	dq_qp_mailbox(&q, in, pd_number(pd));
	q.qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q.qp);
	alone_in_page(ctx, &q, pd_number(pd), uar[0]->page_id + 14);
	dq_destroy(&q);
	mlx5dv_devx_free_uar(next);
	for (unsigned i = 0; i < REGISTERS - 1; i++)
		mlx5dv_devx_free_uar(uar[i]);
	ibv_dealloc_pd(pd);
}

static int group_setup(void **state)
{
	*state = open_device();
	return 0;
}

static int group_teardown(void **state)
{
	return ibv_close_device(*state);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *group;
		struct CMUnitTest test;
	} all[] = {
		{"relaxed-only", cmocka_unit_test(test_relaxed_only)},
		{"lag", cmocka_unit_test(test_lag)},
		{"fl", cmocka_unit_test(test_loopback)},
		{"fl", cmocka_unit_test(test_loopback_alone)},
		{"fl", cmocka_unit_test(test_port)},
		{"pages", cmocka_unit_test(test_host_pages)},
		{"qp-limit", cmocka_unit_test(test_limits)},
		{"ece", cmocka_unit_test(test_ece)},
		{"ece", cmocka_unit_test(test_ece_unconnected)},
		{"ece", cmocka_unit_test(test_ece_verbs)},
	};
	int bad = -1;

	for (size_t i = 0; argc == 2 && i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i].group, argv[1]))
			continue;
		bad = bad < 0 ? 0 : bad;
		bad += _cmocka_run_group_tests(all[i].test.name, &all[i].test, 1, group_setup, group_teardown);
	}
	return bad;
}
