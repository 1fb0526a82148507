/* SPDX-License-Identifier: BSD-3-Clause */
/* receiver NUMBER: writes receive entries and their record itself, in the ring of a queue pair or of
 * a shared queue, right except for mistake NUMBER (receives.def), and checks what arrives.
 * receiver --list: number, rule and text of each. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "softhca/tests/control/pair.h"

enum mistake {
#define MISTAKE(id, text, queue, from, rule) M_##id,
#include "receives.def"
#undef MISTAKE
	M_COUNT
};
enum { RQ, SRQ };
enum { ENTRIES = 16, MESSAGES = 50, SEGMENTS = 48, NOWHERE = 0x1234, SETTLE = 77, SIZE = 200, SLOT = 256 };

static const struct {
	const char *text, *rule;
	unsigned queue, from;
} mistakes[M_COUNT] = {
#define MISTAKE(id, text, queue, from, rule) {text, rule, queue, from},
#include "receives.def"
#undef MISTAKE
};

struct receiver {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *from, *to;
	struct mlx5dv_cq cq; /* of recv_cq */
	uint8_t *buf;
	struct ibv_mr *mr, *other, *read_only;
	uint32_t stale_key;

	uint8_t *ring;
	uint32_t stride, entries;
	__be32 *record;
	bool shared;
	unsigned head, tail; /* shared: next entry to use, last one of the chain */

	enum mistake mistake;
	bool now; /* this receive has it */
	unsigned posted, sent, done, consumed; /* done: at the sender */
	unsigned cqes;
};

static bool makes(const struct receiver *r, enum mistake m)
{
	return r->now && r->mistake == m;
}

static bool right(const struct receiver *r)
{
	return !*mistakes[r->mistake].rule;
}

static void nap(unsigned us)
{
	struct timespec t = {.tv_nsec = us * 1000l};

	nanosleep(&t, NULL);
}

static uint8_t *slot(const struct receiver *r, unsigned n)
{
	return r->buf + BUF / 2 + (r->mistake == M_RIGHT_SAME ? 0 : n % 32 * SLOT);
}

/* Waits until the device has looked at the record: it does when it carries out something else,
 * here a write of nothing. */
static void settle(struct receiver *r)
{
	struct ibv_send_wr wr = {.wr_id = SETTLE, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc = {0};

	assert_int_equal(ibv_post_send(r->from, &wr, &bad), 0);
	for (unsigned i = 0; i < 100000 && wc.wr_id != SETTLE; i++, nap(50))
		while (ibv_poll_cq(r->send_cq, 1, &wc) > 0 && wc.wr_id != SETTLE)
			r->done++;
}

/* ---- entries ---- */

static void put32(uint8_t *p, uint32_t v, bool wrong)
{
	v = wrong ? v : htobe32(v);
	memcpy(p, &v, 4);
}

static void segment(const struct receiver *r, uint8_t *s, uint8_t *at, uint32_t len)
{
	uint32_t key = r->shared ? r->other->lkey : r->mr->lkey;
	uint64_t address = htobe64((uintptr_t)at);

	if (makes(r, M_KEY_PD))
		key = r->other->lkey;
	if (makes(r, M_SRQ_KEY_PD))
		key = r->mr->lkey;
	if (makes(r, M_KEY_ACCESS))
		key = r->read_only->lkey;
	if (makes(r, M_KEY_STALE))
		key = r->stale_key;
	if (makes(r, M_KEY_RANGE))
		len = BUF + 1;
	if (makes(r, M_LENGTH_ZERO))
		len = 0;
	if (makes(r, M_INLINE))
		len |= 0x80000000;
	if (makes(r, M_ADDRESS_ENDIAN))
		address = __builtin_bswap64(address);
	put32(s, len, makes(r, M_LENGTH_ENDIAN));
	put32(s + 4, key, makes(r, M_KEY_ENDIAN));
	memcpy(s + 8, &address, 8);
}

static void end_of_list(uint8_t *s)
{
	memset(s, 0, 16);
	put32(s + 4, 0x100, false);
}

/* The two segments of receive n; entries of a shared queue have room for one more. */
static void build(const struct receiver *r, uint8_t *s, unsigned n)
{
	memset(s, 0, SEGMENTS);
	end_of_list(s + 32);
	if (r->mistake == M_RIGHT_EMPTY) {
		end_of_list(s);
		return;
	}
	if (r->mistake != M_RIGHT_SHORT && !makes(r, M_NO_END)) {
		segment(r, s, slot(r, n), 100);
		segment(r, s + 16, slot(r, n) + 100, SLOT - 100);
		return;
	}
	segment(r, s, slot(r, n), SLOT);
	if (!makes(r, M_NO_END))
		end_of_list(s + 16);
}

static uint8_t *entry_at(struct receiver *r, unsigned i)
{
	return r->ring + i % r->entries * r->stride;
}

/* The entry for the next receive, at its segments. */
static uint8_t *next_entry(struct receiver *r)
{
	uint8_t *e = entry_at(r, r->shared ? r->head : r->posted);

	if (!r->shared)
		return e;
	r->head = (unsigned)e[2] << 8 | e[3];
	if (makes(r, M_SRQ_IN_TURN))
		e = entry_at(r, r->head + 1);
	if (makes(r, M_SRQ_LINK_SELF))
		put32(e, (uint32_t)((e - r->ring) / r->stride), false);
	if (makes(r, M_SRQ_LINK_OUT))
		put32(e, NOWHERE, false);
	if (makes(r, M_SRQ_LINK_ENDIAN))
		put32(e, r->head << 8, false);
	if (makes(r, M_RIGHT_SRQ_NOTES)) {
		e[0] = (uint8_t)r->posted;
		memset(e + 4, 0x5a, 12);
	}
	return e + 16;
}

/* A complete one goes to the end of the chain. */
static void give_back(struct receiver *r, unsigned index)
{
	if (!r->shared)
		return;
	put32(entry_at(r, r->tail), index, false);
	r->tail = index;
}

static void write_record(struct receiver *r, unsigned count)
{
	uint32_t v = htobe32(count & 0xffff);

	if (makes(r, M_RECORD_ENDIAN))
		v = count;
	if (makes(r, M_RECORD_WIDTH))
		v = htobe32(count | 0x10000);
	/* Release: the device reads the entries behind the record. */
	__atomic_store_n(r->record, v, __ATOMIC_RELEASE);
}

static bool record_comes_first(const struct receiver *r)
{
	return makes(r, M_RECORD_FIRST) || makes(r, M_SRQ_RECORD_FIRST);
}

static void post(struct receiver *r, bool record)
{
	bool ahead = makes(r, M_AHEAD) || makes(r, M_AHEAD_LAP) || makes(r, M_SRQ_AHEAD_LAP);
	uint8_t segments[SEGMENTS], *e = next_entry(r);
	size_t n = r->shared ? SEGMENTS : 32;

	build(r, segments, r->posted);
	if (!record_comes_first(r) && (r->mistake != M_RIGHT_SAME || r->posted < r->entries))
		memcpy(e, segments, makes(r, M_SEGMENT_LATE) ? 16 : n);
	r->posted++;
	if (record)
		write_record(r, r->posted + ahead);
	if (record_comes_first(r) || makes(r, M_SEGMENT_LATE)) {
		settle(r);
		memcpy(e, segments, n);
	}
	if (makes(r, M_REUSE) || makes(r, M_SRQ_REUSE)) {
		settle(r);
		build(r, segments, r->posted);
		memcpy(e, segments, n);
	}
}

/* ---- messages ---- */

static void send_one(struct receiver *r)
{
	struct ibv_sge sge = {.addr = (uintptr_t)r->buf + r->sent * 8, .length = SIZE,
			      .lkey = r->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = r->mistake != M_RIGHT_EMPTY,
				 .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(r->from, &wr, &bad), 0);
	r->sent++;
}

static bool arrived(const struct receiver *r, unsigned n)
{
	return r->mistake == M_RIGHT_EMPTY || !memcmp(slot(r, n), r->buf + n * 8, SIZE);
}

/* 1: a receive is complete, -1: with an error or wrong data, 0: none. */
static int consume(struct receiver *r)
{
	const uint8_t *e = (const uint8_t *)r->cq.buf +
			   r->cqes % r->cq.cqe_cnt * r->cq.cqe_size + r->cq.cqe_size - 64;
	/* Acquire: pairs with the device's store of the last eight bytes. */
	uint64_t tail = be64toh(__atomic_load_n((const uint64_t *)(const void *)(e + 56),
						__ATOMIC_ACQUIRE));
	unsigned type = (uint8_t)tail >> 4;

	if (type == 15 || (tail & 1) != (r->cqes / r->cq.cqe_cnt & 1))
		return 0;
	give_back(r, (uint16_t)(tail >> 16));
	r->consumed++;
	r->cqes++;
	/* Release: the entry was read before. */
	__atomic_store_n(r->cq.dbrec, htobe32(r->cqes & 0xffffff), __ATOMIC_RELEASE);
	return type == 2 && arrived(r, r->consumed - 1) ? 1 : -1;
}

/* All that were sent. A mistake may mean that they never come. */
static bool drain(struct receiver *r)
{
	struct ibv_wc wc;
	int got = 0;

	for (unsigned us = 0; us < (right(r) || !r->now ? 5000000 : 100000); us += 20, nap(20)) {
		while (r->consumed != r->sent && (got = consume(r)) > 0)
			;
		if (got < 0)
			break;
		while (ibv_poll_cq(r->send_cq, 1, &wc) > 0)
			r->done++;
		if (r->consumed == r->sent && r->done == r->sent)
			return true;
	}
	if (right(r))
		printf("message %u of %u: %s\n", r->consumed, r->sent,
		       got < 0 ? "wrong" : "did not come");
	return false;
}

/* All entries are in use, and the device has seen that, when the record goes on. */
static void fill(struct receiver *r)
{
	while (r->posted - r->consumed < r->entries)
		post(r, true);
	settle(r);
	write_record(r, r->posted + 1);
	settle(r);
}

static bool step(struct receiver *r)
{
	bool batch = r->mistake == M_RIGHT_BATCH || r->mistake == M_RIGHT_SRQ_BATCH;
	unsigned n = batch ? r->entries - r->shared : 1;

	r->now = r->posted >= mistakes[r->mistake].from;
	if (makes(r, M_OVERRUN) || makes(r, M_SRQ_OVERRUN)) {
		/* Behind a shared queue libmlx5 may have as many entries in reserve. */
		write_record(r, r->posted + r->entries * (1 + r->shared) + 1);
		settle(r);
		return false;
	}
	if (makes(r, M_OVERRUN_BY_ONE)) {
		fill(r);
		return false;
	}
	for (unsigned i = 0; i < n; i++)
		post(r, i == n - 1);
	for (unsigned i = 0; i < n; i++)
		send_one(r);
	if (drain(r) && (right(r) || !r->now || makes(r, M_AHEAD)))
		return true;
	if (makes(r, M_RECORD_BACK))
		write_record(r, r->posted - 1);
	settle(r);
	return false;
}

static bool run(struct receiver *r)
{
	while (r->posted < MESSAGES)
		if (!step(r))
			return false;
	return true;
}

/* ---- set-up ---- */

static struct ibv_qp *create(struct receiver *r, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .srq = srq, .send_cq = cq,
				      .recv_cq = cq,
				      .cap = {.max_send_wr = 32, .max_send_sge = 1,
					      .max_recv_wr = srq ? 0 : ENTRIES,
					      .max_recv_sge = srq ? 0 : 2}};
	struct ibv_qp *qp = ibv_create_qp(r->pd, &ia);

	assert_non_null(qp);
	return qp;
}

static struct ibv_srq *shared_queue(struct receiver *r)
{
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = ENTRIES - 2, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(r->other_pd, &sa);
	struct mlx5dv_srq dv = {0};
	struct mlx5dv_obj o = {.srq = {.in = srq, .out = &dv}};

	assert_non_null(srq);
	assert_int_equal(mlx5dv_init_obj(&o, MLX5DV_OBJ_SRQ), 0);
	r->ring = dv.buf;
	r->stride = dv.stride;
	r->record = dv.dbrec;
	r->head = 0;
	r->tail = dv.tail;
	r->entries = r->tail + 1;
	for (unsigned i = 0; i < r->entries; i++) /* which libmlx5 may do in another order */
		put32(entry_at(r, i), (i + 1) % r->entries, false);
	return srq;
}

static struct ibv_mr *region(struct receiver *r, struct ibv_pd *pd, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, r->buf, BUF, access);

	assert_non_null(mr);
	return mr;
}

static void set_up(struct receiver *r)
{
	struct mlx5dv_qp qp = {0};
	struct mlx5dv_obj o = {.cq = {.out = &r->cq}, .qp = {.out = &qp}};
	struct ibv_mr *gone;

	r->ctx = open_device();
	r->pd = ibv_alloc_pd(r->ctx);
	r->other_pd = ibv_alloc_pd(r->ctx);
	r->buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(r->buf != MAP_FAILED);
	r->mr = region(r, r->pd, IBV_ACCESS_LOCAL_WRITE);
	r->other = region(r, r->other_pd, IBV_ACCESS_LOCAL_WRITE);
	r->read_only = region(r, r->pd, 0);
	gone = region(r, r->pd, IBV_ACCESS_LOCAL_WRITE);
	r->stale_key = gone->lkey;
	assert_int_equal(ibv_dereg_mr(gone), 0);
	r->send_cq = ibv_create_cq(r->ctx, 64, NULL, NULL, 0);
	r->recv_cq = ibv_create_cq(r->ctx, 64, NULL, NULL, 0);
	r->shared = mistakes[r->mistake].queue == SRQ;
	r->from = create(r, r->send_cq, NULL);
	r->to = create(r, r->recv_cq, r->shared ? shared_queue(r) : NULL);
	o.cq.in = r->recv_cq;
	o.qp.in = r->to;
	assert_int_equal(mlx5dv_init_obj(&o, MLX5DV_OBJ_CQ | MLX5DV_OBJ_QP), 0);
	if (r->shared)
		return;
	r->ring = qp.rq.buf;
	r->stride = qp.rq.stride;
	r->record = qp.dbrec;
	r->entries = qp.rq.wqe_cnt;
	assert_int_equal(r->entries, ENTRIES);
}

static void connect(struct receiver *r)
{
	if (r->mistake == M_RECORD_KEPT)
		write_record(r, 3);
	connect_qp(r->ctx, r->to, r->from->qp_num);
	connect_qp(r->ctx, r->from, r->to->qp_num);
}

static void again(struct receiver *r)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(ibv_modify_qp(r->from, &a, IBV_QP_STATE), 0);
	assert_int_equal(ibv_modify_qp(r->to, &a, IBV_QP_STATE), 0);
	assert_int_equal(*r->record, 0); /* libmlx5 cleared it */
	connect(r);
	r->posted = r->sent = r->done = r->consumed = 0;
}

int main(int argc, char **argv)
{
	struct receiver r = {.mistake = argc == 2 ? (enum mistake)atoi(argv[1]) : M_COUNT};
	bool ok;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (int i = 0; i < M_COUNT; i++)
			printf("%d %s %s\n", i, *mistakes[i].rule ? mistakes[i].rule : "-",
			       mistakes[i].text);
		return 0;
	}
	if (r.mistake >= M_COUNT)
		return 2;
	set_up(&r);
	for (unsigned i = 0; i < BUF / 2; i++)
		r.buf[i] = (uint8_t)(i * 7 + i / 256);
	connect(&r);
	ok = run(&r);
	if (ok && r.mistake == M_RIGHT_AGAIN) {
		again(&r);
		ok = run(&r);
	}
	if (r.mistake % 2)
		assert_int_equal(ibv_destroy_qp(r.to), 0);
	return !right(&r) || ok ? 0 : 1;
}
