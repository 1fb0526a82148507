/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues that DEVX makes: entries taken along a list or in turn, the limit and the last receive as
 * events; what is refused. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "softhca/tests/control/common.h"

enum { LIST = 0, CYCLIC = 1, LIMIT_EVENT = 0x14, LAST_WQE_EVENT = 0x13, N = 8, TAKEN = 6, LIMIT = 3 };
/* In the memory of a struct dq: entries of 32 bytes, their record, what is sent and received. */
enum { RING = 2048, RECORD = DQ_CQ_DBR + 8, DATA = DQ_CQ_DBR + 64 };
#define RMPC 0x100u /* bits */
#define WQ   0x280u

struct rmp {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct mlx5dv_devx_event_channel *ch;
	struct mlx5dv_devx_obj *obj;
	uint32_t number;
	struct dq q; /* connected to itself, receives from there */
};

static void rmp_mailbox(const struct rmp *r, uint8_t in[MBOX], unsigned type)
{
	memset(in, 0, MBOX);
	put_bits(in, 0, 16, 0x90c);
	put_bits(in, RMPC + 0x08, 4, 1); /* ready */
	put_bits(in, WQ, 4, type);
	put_bits(in, WQ + 0x30, 16, LIMIT);
	put_bits(in, WQ + 0x48, 24, pd_number(r->pd));
	put_bits(in, WQ + 0x80, 64, RECORD);
	put_bits(in, WQ + 0x10c, 4, 5);	 /* log_wq_stride */
	put_bits(in, WQ + 0x11b, 5, 3);	 /* log_wq_sz */
	put_bits(in, WQ + 0x140, 32, r->q.umem->umem_id);
	put_bits(in, WQ + 0x160, 32, r->q.umem->umem_id);
	put_bits(in, WQ + 0x180, 64, RING);
}

static int rmp_create(struct rmp *r, const uint8_t in[MBOX])
{
	uint8_t out[16] = {0};

	r->obj = mlx5dv_devx_obj_create(r->q.ctx, in, MBOX, out, sizeof(out));
	r->number = (uint32_t)get_bits(out, 0x48, 24);
	assert_int_equal(!r->obj, out[0] != 0);
	return out[0];
}

/* The queue pair of dq_create() once more, on the shared queue. */
static void rmp_qp(struct rmp *r)
{
	uint8_t in[MBOX], out[16] = {0};

	assert_int_equal(mlx5dv_devx_obj_destroy(r->q.qp), 0);
	dq_qp_mailbox(&r->q, in, pd_number(r->pd));
	put_bits(in, QPC + 0x565, 3, 1); /* rq_type: shared */
	put_bits(in, QPC + 0x568, 24, r->number);
	r->q.qp = mlx5dv_devx_obj_create(r->q.ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(r->q.qp);
	r->q.qpn = (uint32_t)get_bits(out, 0x48, 24);
	dq_connect(&r->q, r->q.qpn);
}

static void rmp_open(struct rmp *r, struct ibv_context *ctx)
{
	memset(r, 0, sizeof(*r));
	r->pd = ibv_alloc_pd(ctx);
	dq_create(&r->q, ctx, pd_number(r->pd), 5, false);
	r->mr = ibv_reg_mr(r->pd, r->q.mem, DQ_SIZE, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(r->mr);
}

static void rmp_close(struct rmp *r)
{
	assert_int_equal(ibv_dereg_mr(r->mr), 0);
	dq_destroy(&r->q);
	assert_int_equal(ibv_dealloc_pd(r->pd), 0);
}

static void event(struct rmp *r, uint64_t cookie)
{
	struct pollfd pf = {.fd = r->ch->fd, .events = POLLIN};
	struct mlx5dv_devx_async_event_hdr hdr;

	assert_int_equal(poll(&pf, 1, 5000), 1);
	assert_int_equal(mlx5dv_devx_get_event(r->ch, &hdr, sizeof(hdr)), sizeof(hdr));
	assert_int_equal(hdr.cookie, cookie);
}

static void subscribe(struct rmp *r, struct mlx5dv_devx_obj *obj, uint16_t type)
{
	assert_int_equal(mlx5dv_devx_subscribe_devx_event(r->ch, obj, sizeof(type), &type, type), 0);
}

/* Every entry leads to the next but one. */
static void post_receives(struct rmp *r)
{
	for (unsigned i = 0; i < N; i++) {
		uint8_t *e = r->q.mem + RING + 32 * i;

		put_bits(e, 16, 16, i + 2 < N ? i + 2 : (i + 3) % N);
		put_bits(e, 128, 32, 64);
		put_bits(e, 160, 32, r->mr->lkey);
		put_bits(e, 192, 64, (uintptr_t)r->q.mem + DATA + 64 * (1 + i));
	}
	/* Release: the device reads the entries after the record. */
	__atomic_store_n((uint32_t *)(void *)(r->q.mem + RECORD), htobe32(TAKEN), __ATOMIC_RELEASE);
}

static void send(struct rmp *r, uint16_t index)
{
	uint8_t wqe[64] = {0};

	put_bits(wqe, 8, 16, index);
	put_bits(wqe, 24, 8, 0x0a);
	put_bits(wqe, 32, 24, r->q.qpn);
	put_bits(wqe, 56, 8, 2);
	put_bits(wqe, 128, 32, 8);
	put_bits(wqe, 160, 32, r->mr->lkey);
	put_bits(wqe, 192, 64, (uintptr_t)r->q.mem + DATA);
	dq_post(&r->q, index, wqe);
}

/* The n-th completion: a receive into this entry. */
static void received(struct rmp *r, unsigned n, unsigned entry)
{
	const uint8_t *cqe = r->q.mem + DQ_CQ + 64 * n;

	assert_int_equal(dq_completed(&r->q, n), 2);
	assert_int_equal(get_bits(cqe, 60 * 8, 16), entry);
	assert_int_equal(get_bits(cqe, 44 * 8, 32), 8);
	assert_memory_equal(r->q.mem + DATA + 64 * (1 + entry), r->q.mem + DATA, 8);
}

static void run(struct ibv_context *ctx, unsigned type)
{
	static const uint8_t order[2][TAKEN] = {[LIST] = {0, 2, 4, 6, 1, 3}, [CYCLIC] = {0, 1, 2, 3, 4, 5}};
	uint8_t in[MBOX];
	struct rmp r;

	rmp_open(&r, ctx);
	rmp_mailbox(&r, in, type);
	assert_int_equal(rmp_create(&r, in), 0);
	rmp_qp(&r);
	r.ch = mlx5dv_devx_create_event_channel(ctx, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
	assert_non_null(r.ch);
	subscribe(&r, r.obj, LIMIT_EVENT);
	subscribe(&r, r.q.qp, LAST_WQE_EVENT);
	post_receives(&r);
	for (uint16_t i = 0; i < TAKEN; i++) {
		memset(r.q.mem + DATA, i + 1, 8);
		send(&r, i);
		received(&r, i, order[type][i]);
	}
	event(&r, LIMIT_EVENT);
	memset(in, 0, sizeof(in));
	put_bits(in, 0, 16, 0x507); /* 2ERR */
	put_bits(in, 0x48, 24, r.q.qpn);
	assert_int_equal(dq_modify(&r.q, in), 0);
	event(&r, LAST_WQE_EVENT);
	assert_int_not_equal(mlx5dv_devx_obj_destroy(r.obj), 0); /* in use */
	assert_int_equal(mlx5dv_devx_obj_destroy(r.q.qp), 0);
	r.q.qp = NULL;
	assert_int_equal(mlx5dv_devx_obj_destroy(r.obj), 0);
	mlx5dv_devx_destroy_event_channel(r.ch);
	rmp_close(&r);
}

static void test_list(void **state)
{
	run(*state, LIST);
}

static void test_cyclic(void **state)
{
	run(*state, CYCLIC);
}

static void test_refused(void **state)
{
	static const struct { unsigned bit, width; uint64_t value; } wrong[] = {
		{WQ, 4, 2}, {RMPC + 0x08, 4, 3}, {RMPC + 0x20, 1, 1}, /* strides, state, no links */
		{WQ + 0x48, 24, 0xffff}, {WQ + 0x80, 64, RECORD + 4}, {WQ + 0x80, 64, DQ_SIZE},
		{WQ + 0x10c, 4, 4}, {WQ + 0x11b, 5, 16}, {WQ + 0x140, 32, 0xffff}, {WQ + 0x160, 32, 0xffff},
		{WQ + 0x180, 64, DQ_SIZE - 64},
	};
	uint8_t in[MBOX];
	struct rmp r;

	rmp_open(&r, *state);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		rmp_mailbox(&r, in, CYCLIC);
		put_bits(in, wrong[i].bit, wrong[i].width, wrong[i].value);
		assert_int_not_equal(rmp_create(&r, in), 0);
	}
	rmp_close(&r);
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_list), cmocka_unit_test(test_cyclic),
					   cmocka_unit_test(test_refused)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
