/* SPDX-License-Identifier: BSD-3-Clause */
/* poster NUMBER: posts a round of operations over and over on a ring of 16 blocks, right except
 * for mistake NUMBER (mistakes.def), and checks the data as far as it is right.
 * poster --list: number, rule and text of each. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "poster.h"

enum {
	BLOCKS = 200,
	LATE_US = 3000,
	LOG_CQ = 4,
	NEAR_WRAP = 65408 /* a multiple of the ring, and of the data's places */
};

static const struct {
	const char *text, *rule;
	enum op op;
	uint32_t from;
} mistakes[M_COUNT] = {
#define MISTAKE(id, text, op, from, rule) {text, rule, OP_##op, from},
#include "mistakes.def"
#undef MISTAKE
};

static bool right(const struct poster *p)
{
	return !mistakes[p->mistake].rule[0];
}

static void nap(unsigned us)
{
	struct timespec t = {.tv_nsec = us * 1000l};

	nanosleep(&t, NULL);
}

/* ---- ring, record, doorbell ---- */

static void store_blocks(struct poster *p, const uint8_t *wqe, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t slot = (p->posted + i) % p->blocks;

		if (makes(p, M_WRAP_FORGOTTEN))
			slot = p->posted % RING + i;
		/* As libmlx5: nothing is written behind inline data. */
		memcpy(p->sq + slot * BLOCK, wqe + i * BLOCK,
		       i && p->mistake == M_RIGHT_TAIL && wqe[32] & 0x80 ? 1 : BLOCK);
	}
}

static void write_record(struct poster *p, uint32_t pi)
{
	uint32_t *dbr = (uint32_t *)(void *)(p->q.mem + DQ_DBR);
	uint32_t v = htobe32(pi & 0xffff);

	if (makes(p, M_RECORD_MISSING) || !has_record(p))
		return;
	if (makes(p, M_RECORD_ENDIAN))
		v = pi;
	if (makes(p, M_RECORD_WIDTH))
		v = htobe32(pi | 0x10000);
	/* Release: the device reads the WQE behind the record. */
	__atomic_store_n(dbr + !makes(p, M_RECORD_FIRST_WORD), v, __ATOMIC_RELEASE);
}

static void ring(struct poster *p, uint32_t index)
{
	uint64_t *db = (makes(p, M_DOORBELL_PAGE) ? p->peer.uar : p->q.uar)->reg_addr; /* at 0x800 of its page */
	uint32_t w[2] = {htobe32((index & 0xffff) << 8), htobe32(p->q.qpn << 8)};
	uint64_t v;

	if (makes(p, M_NO_DOORBELL))
		return;
	if (makes(p, M_DOORBELL_NOT_SHIFTED))
		w[1] = htobe32(p->q.qpn);
	if (makes(p, M_DOORBELL_ENDIAN))
		for (int i = 0; i < 2; i++)
			w[i] = __builtin_bswap32(w[i]);
	if (!has_record(p) && index % 2)
		db -= 0x200 / sizeof(*db);
	v = w[0] | (uint64_t)w[1] << 32;
	if (makes(p, M_DOORBELL_EXCHANGED))
		v = v << 32 | v >> 32;
	/* Release: the record comes before the doorbell. */
	__atomic_store_n(db, v, __ATOMIC_RELEASE);
}

/* last: first block of the last WQE. */
static void publish(struct poster *p, uint32_t pi, uint32_t last)
{
	uint32_t index = p->mistake == M_RIGHT_LAST_INDEX ? last : pi;

	if (makes(p, M_PRODUCER_AHEAD) || makes(p, M_PRODUCER_AHEAD_LAP))
		index = ++pi;
	if (makes(p, M_PRODUCER_BEHIND))
		index = --pi;
	if (makes(p, M_OLD_DOORBELL))
		index -= 3;
	if (p->mistake == M_RIGHT_BOTH_SIDES || p->mistake == M_RIGHT_NO_RECORD_TWICE)
		ring(p, index);
	write_record(p, pi);
	ring(p, index);
}

/* ---- completions ---- */

static void write_consumer(struct poster *p)
{
	uint32_t ci = p->consumed;

	if (p->mistake == M_CQ_OVERRUN)
		return;
	if (p->mistake == M_CQ_CONSUMER)
		ci += 5;
	__atomic_store_n((uint32_t *)(void *)(p->q.mem + DQ_CQ_DBR), htobe32(ci & 0xffffff),
			 __ATOMIC_RELEASE); /* the entries were read before */
}

/* True when a CQE was there. */
static bool consume(struct poster *p)
{
	const uint8_t *e = p->q.mem + DQ_CQ + (p->consumed & ((1u << LOG_CQ) - 1)) * 64;
	/* Acquire: pairs with the device's store of the last eight bytes. */
	uint64_t tail = __atomic_load_n((const uint64_t *)(const void *)(e + 56), __ATOMIC_ACQUIRE);
	uint8_t own = (uint8_t)be64toh(tail);

	if (own >> 4 == 15 || (own & 1) != (p->consumed >> LOG_CQ & 1))
		return false;
	if (own >> 4 == 13) {
		p->failed = true;
		if (right(p))
			printf("completion %u: syndrome 0x%x, vendor 0x%x\n", p->consumed, e[55],
			       e[54]);
	}
	p->consumed++;
	write_consumer(p);
	return true;
}

/* All that were asked for. A mistake may mean that they never come. */
static bool drain(struct poster *p)
{
	bool due = right(p) || (!p->now && mistakes[p->mistake].op != OP_NONE);
	unsigned patience = due ? 20000 : 400; /* ms; on a busy machine the engine rests long */

	for (unsigned us = 0; us < patience * 1000 && !p->failed; us += 50) {
		while (p->consumed != p->expected && consume(p))
			;
		if (p->consumed == p->expected)
			return !p->failed;
		nap(50);
	}
	return false;
}

/* ---- posting ---- */

/* Writes what comes before the doorbell, rings, waits until the device has seen that (a
 * completion, which the peer of M_EARLY_REUSE keeps back), and writes the rest. */
static void post_late(struct poster *p, uint8_t *wqe, unsigned n)
{
	uint8_t *at = p->sq + p->posted % RING * BLOCK;

	if (makes(p, M_LAST_BYTES_LATE)) /* control and remote address are there */
		memcpy(at, wqe, 32);
	else if (makes(p, M_OPERAND_LATE))
		store_blocks(p, wqe, 1);
	else if (makes(p, M_EARLY_REUSE))
		store_blocks(p, wqe, n);
	publish(p, p->posted + n, p->posted);
	drain(p);
	if (makes(p, M_EARLY_REUSE))
		memset(at + 32, 0, 16);
	else
		store_blocks(p, wqe, n);
}

static void post(struct poster *p, enum op op, bool signalled, bool bell)
{
	uint8_t wqe[2 * BLOCK];
	uint32_t first = p->posted;
	unsigned n;

	if (p->mistake == M_RIGHT_TAIL)
		p->buf[TAIL - 1] = p->q.mem[DQ_SQ + (p->posted + 1) % RING * BLOCK];
	n = build(p, wqe, op, signalled);
	p->expected += signalled;
	if (makes(p, M_LAST_BYTES_LATE) || makes(p, M_OPERAND_LATE) || makes(p, M_EARLY_REUSE) ||
	    makes(p, M_DOORBELL_FIRST) || makes(p, M_DOORBELL_FIRST_LAP)) {
		post_late(p, wqe, n);
		p->posted += n;
		return;
	}
	store_blocks(p, wqe, n);
	p->posted += makes(p, M_COUNTS_WQES) ? 1 : n;
	if (bell)
		publish(p, p->posted, first);
}

static bool strikes(const struct poster *p, enum op op)
{
	if (op != mistakes[p->mistake].op || p->posted - p->begun < mistakes[p->mistake].from)
		return false;
	return p->mistake != M_WRAP_FORGOTTEN || p->posted % RING == RING - 1;
}

static void post_many(struct poster *p, unsigned n, bool signalled)
{
	for (unsigned i = 0; i < n; i++)
		post(p, OP_WRITE, signalled, signalled ? i == n - 1 : true);
}

/* False when there is nothing more to do. */
static bool step(struct poster *p, enum op op, bool last_of_batch)
{
	bool batch = p->mistake == M_RIGHT_BATCH;

	p->now = strikes(p, op);
	if (makes(p, M_RING_OVERRUN))
		post_many(p, RING + 4, true);
	else if (makes(p, M_NEVER_SIGNALLED))
		post_many(p, RING, false);
	else
		post(p, op, !batch || last_of_batch, !batch || last_of_batch);
	if (p->mistake == M_CQ_OVERRUN)
		return p->posted < 2 << LOG_CQ && (p->posted < 1 << LOG_CQ || drain(p));
	if (batch && !last_of_batch)
		return true;
	if (!drain(p) || p->now) {
		if (makes(p, M_RECORD_BACK))
			write_record(p, p->posted - 1);
		if (makes(p, M_BELL_BACK) || makes(p, M_BELL_BACK_WRAPPED))
			ring(p, p->posted - 4);
		nap(LATE_US);
		return false;
	}
	return true;
}

/* One doorbell for a whole ring: its index is as far ahead of the device's as behind it. */
static bool fill(struct poster *p)
{
	for (uint32_t i = 1; i <= p->blocks; i++)
		post(p, OP_NOP, i == p->blocks, i == p->blocks);
	return drain(p);
}

static bool run(struct poster *p)
{
	enum op op = OP_WRITE;
	unsigned i = 0;

	while (p->posted - p->begun < BLOCKS) {
		if (!step(p, op, ++i % 3 == 0))
			return false;
		op = op + 1 == OP_COUNT ? OP_WRITE : op + 1;
	}
	return true;
}

/* ---- set-up ---- */

/* big: the send queue, in a umem of its own; NULL: it is small, and lies beside the rest. */
static void create(struct dq *q, struct ibv_pd *pd, bool record, uint8_t *big)
{
	uint8_t in[MBOX], out[16] = {0};
	struct ibv_context *ctx = pd->context;

	dq_memory(q, ctx);
	dq_cq_mailbox(q, in, LOG_CQ, false, false);
	q->log_cq = LOG_CQ;
	q->cq = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q->cq);
	q->cqn = (uint32_t)get_bits(out, 0x48, 24);
	memset(out, 0, sizeof(out));
	dq_qp_mailbox(q, in, pd_number(pd));
	if (!record)
		put_bits(in, QPC + 0x400, 2, 1); /* send_dbr_mode */
	if (big) {
		struct mlx5dv_devx_umem *umem;

		umem = mlx5dv_devx_umem_reg(ctx, big, RING_MOST * BLOCK, IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(umem);
		put_bits(in, QPC + 0x51, 4, LOG_RING_MOST);
		put_bits(in, 0x800, 64, 0);
		put_bits(in, 0x840, 32, umem->umem_id);
	}
	q->qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q->qp);
	q->qpn = (uint32_t)get_bits(out, 0x48, 24);
}

static struct ibv_mr *region(struct ibv_pd *pd, void *mem, size_t n, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, n, access);

	assert_non_null(mr);
	return mr;
}

static void *memory(size_t n)
{
	void *m = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(m != MAP_FAILED);
	return m;
}

static void set_up(struct poster *p)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *pd2 = ibv_alloc_pd(ctx);
	struct ibv_mr *gone;

	p->buf = memory(BUFFER);
	p->mr = region(pd, p->buf, BUFFER, all);
	p->other_pd = region(pd2, p->buf, BUFFER, all);
	p->read_only = region(pd, p->buf, BUFFER, 0);
	if (p->mistake == M_TOO_LONG)
		p->huge = region(pd, memory(0x50000000), 0x50000000, IBV_ACCESS_LOCAL_WRITE);
	gone = region(pd, p->buf, BUFFER, all);
	p->stale_key = gone->lkey;
	assert_int_equal(ibv_dereg_mr(gone), 0);
	if (p->mistake == M_RIGHT_RING_FULL)
		p->sq = memory(RING_MOST * BLOCK);
	p->blocks = p->sq ? RING_MOST : RING;
	create(&p->q, pd, has_record(p), p->sq);
	if (!p->sq)
		p->sq = p->q.mem + DQ_SQ;
	/* libmlx5 cuts a page in two: the peer's would be the same. */
	assert_non_null(mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF));
	create(&p->peer, pd, true, NULL);
	assert_int_not_equal(p->q.uar->page_id, p->peer.uar->page_id);
}

static void connect(struct poster *p)
{
	if (p->mistake == M_RECORD_KEPT)
		write_record(p, 3);
	if (p->mistake != M_EARLY_REUSE)
		dq_connect(&p->peer, p->q.qpn);
	p->q.no_mac = p->mistake == M_PATH_MAC;
	dq_connect(&p->q, p->peer.qpn);
}

static void again(struct poster *p)
{
	struct dq *both[] = {&p->q, &p->peer};

	for (int i = 0; i < 2; i++) {
		uint8_t in[MBOX] = {0};

		put_bits(in, 0, 16, 0x50a); /* 2RST */
		put_bits(in, 0x48, 24, both[i]->qpn);
		assert_int_equal(dq_modify(both[i], in), 0);
	}
	p->posted = p->begun;
	write_record(p, 0);
	connect(p);
}

/* What the last round left behind. */
static bool data_right(const struct poster *p)
{
	const uint8_t *there = p->buf + BUFFER / 2;
	unsigned at = p->mistake == M_RIGHT_TAIL ? 198 : 190; /* a round is longer by one block */

	return !memcmp(there + at % 64 * 256, p->buf + 4096 + at % 64 * 256, 256) &&
	       !memcmp(there + (at + 1) % 64 * 256, p->buf, 12);
}

int main(int argc, char **argv)
{
	struct poster p = {.mistake = argc == 2 ? (enum mistake)atoi(argv[1]) : M_COUNT};
	bool ok;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (int i = 0; i < M_COUNT; i++)
			printf("%d %s %s\n", i, *mistakes[i].rule ? mistakes[i].rule : "-",
			       mistakes[i].text);
		return 0;
	}
	if (p.mistake >= M_COUNT)
		return 2;
	if (!has_record(&p)) {
		setenv("SOFTHCA_FAULTS", "first_wqe=65408", 1); /* NEAR_WRAP */
		p.begun = p.posted = NEAR_WRAP;
	}
	set_up(&p);
	for (int i = 0; i < BUFFER / 2; i++)
		p.buf[i] = (uint8_t)(i * 7);
	if (p.mistake == M_EARLY_POST) {
		post(&p, OP_WRITE, true, true);
		nap(20 * LATE_US);
		return 0;
	}
	connect(&p);
	ok = run(&p);
	if (p.mistake == M_RIGHT_RING_FULL)
		ok = ok && fill(&p);
	if (p.mistake == M_RIGHT_AGAIN) {
		again(&p);
		ok = ok && run(&p);
	}
	/* Half of them end with the process, half with the queue. This one needs the engine to
	 * look once more, and gets no completion to wait for. */
	if (p.mistake % 2 && p.mistake != M_NEVER_SIGNALLED)
		dq_destroy(&p.q);
	if (!right(&p))
		return 0;
	return ok && data_right(&p) ? 0 : 1;
}
