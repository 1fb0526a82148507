/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that was registered and then unmapped, or whose file was cut: each side of each operation completes with the
 * access error of that side, and the process goes on. It does so as well where the memory of queues is gone, whose
 * contents hardware would still have. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"

#define SIZE (1u << 20)

struct gone {
	uint8_t *at;
	struct ibv_mr *mr;
};

/* Registered, and gone: by munmap, or because its file was cut. */
static struct gone make_gone(struct pair *p, bool by_file)
{
	int fd = by_file ? memfd_create("gone", 0) : -1;
	struct gone g;

	assert_true(!by_file || !ftruncate(fd, SIZE));
	g.at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, by_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	assert_ptr_not_equal(g.at, MAP_FAILED);
	memset(g.at, 7, SIZE);
	g.mr = ibv_reg_mr(p->pd, g.at, SIZE, FULL_ACCESS);
	assert_non_null(g.mr);
	if (by_file)
		assert_int_equal(ftruncate(fd, 0), 0);
	else
		assert_int_equal(munmap(g.at, SIZE), 0);
	if (fd >= 0)
		close(fd);
	return g;
}

static void post_recv(struct pair *p, void *at, uint32_t lkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = 4096, .lkey = lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(p->qp[1], &wr, &bad), 0);
}

/* An error ends the queue pairs, so each case has its own. */
static void one(enum ibv_wr_opcode op, bool local, uint32_t len, bool by_file)
{
	enum ibv_wc_status expected = local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR;
	void *state = NULL;
	struct pair *p;
	struct gone g;

	assert_int_equal(pair_setup(&state), 0);
	p = state;
	g = make_gone(p, by_file);
	if (op == IBV_WR_SEND) {
		post_recv(p, local ? p->buf : g.at, local ? p->mr->lkey : g.mr->lkey);
		expected = local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR;
	}
	pair_post_at(p, op, local ? g.at : p->buf, local ? g.mr->lkey : p->mr->lkey, local ? p->buf + BUF / 2 : g.at,
	     local ? p->mr->rkey : g.mr->rkey, len);
	assert_int_equal(wait_wc(p->cq[0]).status, expected);
	if (op == IBV_WR_SEND && !local)
		assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(g.mr), 0);
	if (by_file)
		assert_int_equal(munmap(g.at, SIZE), 0);
	assert_int_equal(pair_teardown(&state), 0);
}

static void both(bool by_file)
{
	static const struct {
		enum ibv_wr_opcode op;
		uint32_t len;
	} cases[] = { { IBV_WR_RDMA_WRITE, 4 },	 { IBV_WR_RDMA_WRITE, 4096 }, { IBV_WR_RDMA_WRITE, 32768 },
		      { IBV_WR_RDMA_READ, 8 },	 { IBV_WR_RDMA_READ, 32768 }, { IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
		      { IBV_WR_SEND, 64 },	 { IBV_WR_SEND, 4096 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		one(cases[i].op, true, cases[i].len, by_file);
		one(cases[i].op, false, cases[i].len, by_file);
	}
}

static void test_unmapped(void **state)
{
	(void)state;
	both(false);
}

static void test_cut(void **state)
{
	(void)state;
	both(true);
}

/* ---- queues ---- */

enum part { RING = DQ_SQ, ENTRIES = DQ_CQ, RECORDS = DQ_DBR };

static void ring(struct dq *q, const void *wqe)
{
	uint64_t first;

	memcpy(&first, wqe, sizeof(first));
	__atomic_store_n((uint64_t *)q->uar->reg_addr, first, __ATOMIC_RELEASE);
}

/* A WQE is posted; a page goes before it is rung. */
static void one_queue(struct ibv_context *ctx, uint32_t pdn, enum part gone)
{
	uint8_t wqe[64] = { 0, 0, 0, 0x00 /* NOP */, 0, 0, 0, 1, 0, 0, 0, 8 /* CQE always */ };
	struct dq q, other;

	dq_create(&q, ctx, pdn, 4, false);
	dq_create(&other, ctx, pdn, 4, false);
	put_bits(wqe, 32, 24, q.qpn);
	memcpy(q.mem + DQ_SQ, wqe, sizeof(wqe));
	dq_connect(&q, other.qpn);
	dq_connect(&other, q.qpn);
	if (gone != RECORDS)
		__atomic_store_n((uint32_t *)(void *)(q.mem + DQ_DBR) + 1, htobe32(1), __ATOMIC_RELEASE);
	assert_int_equal(munmap(q.mem + gone, 4096), 0);
	ring(&q, wqe);
	for (int i = 0; i < 100; i++) {
		usleep(1000);
		(void)dq_state(&q);
	}
	put_bits(wqe, 32, 24, other.qpn); /* the device goes on */
	dq_post(&other, 0, wqe);
	for (int i = 0; i < 2000 && other.mem[DQ_CQ + 63] >> 4 != 0; i++)
		usleep(1000);
	assert_int_equal(other.mem[DQ_CQ + 63] >> 4, 0);
	dq_destroy(&q);
	dq_destroy(&other);
}

static void test_queues(void **state)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	(void)state;
	assert_non_null(pd);
	one_queue(ctx, pd_number(pd), RING);
	one_queue(ctx, pd_number(pd), ENTRIES);
	one_queue(ctx, pd_number(pd), RECORDS);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* A hole in a long message, behind what is looked at before it begins. */
static void hole(bool local)
{
	void *state = NULL;
	struct pair *p;
	struct gone g;
	uint8_t *whole = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_int_equal(pair_setup(&state), 0);
	p = state;
	g.at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	g.mr = ibv_reg_mr(p->pd, g.at, SIZE, FULL_ACCESS);
	mr = ibv_reg_mr(p->pd, whole, SIZE, FULL_ACCESS);
	assert_non_null(g.mr);
	assert_non_null(mr);
	assert_int_equal(munmap(g.at + 100 * 4096, 4096), 0);
	pair_post_at(p, IBV_WR_RDMA_WRITE, local ? g.at : whole, local ? g.mr->lkey : mr->lkey, local ? whole : g.at,
	     local ? mr->rkey : g.mr->rkey, SIZE);
	assert_int_equal(wait_wc(p->cq[0]).status, local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(g.mr), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(whole, SIZE);
	munmap(g.at, SIZE);
	assert_int_equal(pair_teardown(&state), 0);
}

static void test_hole(void **state)
{
	(void)state;
	hole(true);
	hole(false);
}

/* The program's own handler, set before or after a registration, has its own faults. */
static volatile sig_atomic_t faults;
static uint8_t *page;

static void on_fault(int sig)
{
	(void)sig;
	faults = faults + 1;
	mprotect(page, 4096, PROT_READ);
}

static void fault_once(void)
{
	faults = 0;
	assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
	assert_int_equal(*(volatile uint8_t *)page, 0);
	assert_int_equal(faults, 1);
}

static void test_own_handler(void **state)
{
	struct sigaction old;

	(void)state;
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(sigaction(SIGSEGV, &(struct sigaction){ .sa_handler = on_fault }, &old), 0);
	fault_once();
	one(IBV_WR_RDMA_WRITE, true, 4096, false);
	fault_once();
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unmapped),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_own_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
