/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of wire_peer. The client names one, the server prepares, the client executes it, and
 * both compare their memory. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/tests/wire/peer.h"

enum {
	GUARD_BYTE = 0xee,
	MIX = 8,
	SLOT = 16384, /* of the buffer, in a mix */
};

static const uint64_t CELL = 0x1122334455667788; /* what an atomic finds */

struct op {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status status; /* expected */
	enum kind { PLAIN, RECEIVED, FETCHED, ATOMIC, MIXED, RECONNECT, END } kind;
	enum { FINE, BARE_KEY, ODD_ADDRESS, SHORT_RECEIVE, LATE_RECEIVE,
	       RECEIVE_KEY } wrong;
};

static const struct op ops[] = {
	{ "write", IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS, PLAIN, FINE },
	{ "write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_SUCCESS, RECEIVED, FINE },
	{ "send", IBV_WR_SEND, IBV_WC_SUCCESS, RECEIVED, FINE },
	{ "send_imm", IBV_WR_SEND_WITH_IMM, IBV_WC_SUCCESS, RECEIVED, FINE },
	{ "send_inv", IBV_WR_SEND_WITH_INV, IBV_WC_SUCCESS, RECEIVED, FINE },
	{ "read", IBV_WR_RDMA_READ, IBV_WC_SUCCESS, FETCHED, FINE },
	{ "fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_SUCCESS, ATOMIC, FINE },
	{ "cmp_swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_SUCCESS, ATOMIC, FINE },
	{ "mix", 0, IBV_WC_SUCCESS, MIXED, FINE },
	{ "late_receive", IBV_WR_SEND, IBV_WC_SUCCESS, RECEIVED, LATE_RECEIVE },
	{ "bad_write", IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, PLAIN, BARE_KEY },
	{ "bad_read", IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, PLAIN, BARE_KEY },
	{ "bad_atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_REM_ACCESS_ERR, ATOMIC, BARE_KEY },
	{ "odd_atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_REM_INV_REQ_ERR, ATOMIC, ODD_ADDRESS },
	{ "short_receive", IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR, PLAIN, SHORT_RECEIVE },
	{ "bad_receive", IBV_WR_SEND, IBV_WC_REM_OP_ERR, PLAIN, RECEIVE_KEY },
	{ "reconnect", 0, IBV_WC_SUCCESS, RECONNECT, FINE },
	{ "end", 0, IBV_WC_SUCCESS, END, FINE },
};

static const struct op *op_named(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strlen(ops[i].name) == n && !strncmp(ops[i].name, name, n))
			return &ops[i];
	return NULL;
}

/* ---- data ---- */

static void fill(uint8_t *at, uint32_t n, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (uint32_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		at[i] = (uint8_t)(x >> 24);
	}
}

/* Messages that are received go to the start of the room, others anywhere. */
static uint32_t place(const struct op *o, const struct peer_step *s)
{
	return PEER_OFFSET + (o->kind == PLAIN || o->kind == FETCHED ? s->seed % 8 : 0);
}

static void clear(uint8_t *buf, uint32_t at, uint32_t n)
{
	memset(buf + at - PEER_GUARD, GUARD_BYTE, n + 2 * PEER_GUARD);
}

static bool matches(const uint8_t *buf, uint32_t at, uint32_t n, uint32_t seed)
{
	uint8_t *want = malloc(n + 1);
	bool ok;

	if (!want)
		return false;
	fill(want, n, seed);
	ok = !memcmp(buf + at, want, n);
	free(want);
	return ok;
}

static int compare_cell(const uint8_t *at, uint64_t want)
{
	uint64_t cell;

	memcpy(&cell, at, 8);
	if (cell == want)
		return 0;
	fprintf(stderr, "wire_peer: a cell of a mix has 0x%llx, not 0x%llx\n",
		(unsigned long long)cell, (unsigned long long)want);
	return -1;
}

/* Part of a mix, without guard. */
static int compare_slot(const char *what, const uint8_t *at, uint32_t i, uint32_t n, uint32_t seed)
{
	if (matches(at, 0, n, seed))
		return 0;
	fprintf(stderr, "wire_peer: %s of slot %u of a mix is wrong: %02x%02x%02x%02x\n", what, i,
		at[0], at[1], at[2], at[3]);
	return -1;
}

static int compare(const uint8_t *buf, uint32_t at, uint32_t n, uint32_t seed)
{
	uint8_t *want = malloc(n + 1);
	int ret = -1;

	if (!want)
		return -1;
	fill(want, n, seed);
	if (memcmp(buf + at, want, n)) {
		for (uint32_t i = 0; i < n; i++)
			if (buf[at + i] != want[i]) {
				fprintf(stderr, "wire_peer: byte %u of %u is wrong\n", i, n);
				break;
			}
	} else {
		ret = 0;
	}
	for (uint32_t i = 1; i <= PEER_GUARD && !ret; i++)
		if (buf[at - i] != GUARD_BYTE || buf[at + n + i - 1] != GUARD_BYTE) {
			fprintf(stderr, "wire_peer: written beside the message of %u\n", n);
			ret = -1;
		}
	free(want);
	return ret;
}

/* ---- client ---- */

static int post(struct peer *p, const struct op *o, const struct peer_step *s, uint32_t at,
		uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)p->src + at,
			       .length = len,
			       .lkey = p->src_mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = len ? 1 : 0,
				  .opcode = o->opcode,
				  .imm_data = htonl(s->seed) },
			   *no;
	uint64_t to = p->there.addr + at;
	uint32_t key = o->wrong == BARE_KEY ? p->there.bare_rkey : p->there.rkey;

	if (o->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = s->window;
	if (o->wrong == ODD_ADDRESS)
		to += 4;
	if (p->type == IBV_QPT_UD) {
		peer_address(p, &wr);
	} else if (o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		   o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = to;
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.compare_add = o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? CELL : s->seed;
		wr.wr.atomic.swap = ~(uint64_t)s->seed;
	} else {
		wr.wr.rdma.remote_addr = to;
		wr.wr.rdma.rkey = key;
	}
	return ibv_post_send(p->qp, &wr, &no);
}

static int completed(struct peer *p, enum ibv_wc_status want)
{
	struct ibv_wc wc;

	if (peer_poll(p, &wc))
		return -1;
	if (wc.status == want)
		return 0;
	fprintf(stderr, "wire_peer: completion %s (vendor 0x%x), want %s\n",
		ibv_wc_status_str(wc.status), wc.vendor_err, ibv_wc_status_str(want));
	return -1;
}

/* Write, read back and add, all on their way at the same time: the read has to see the write. */
static int mix(struct peer *p, const struct peer_step *s)
{
	const struct op *w = op_named("write", 5), *r = op_named("read", 4),
			*f = op_named("fetch_add", 9);
	uint32_t len = s->size < SLOT / 2 ? s->size : SLOT / 2;

	for (uint32_t i = 0; i < MIX; i++) {
		uint32_t at = PEER_OFFSET + i * SLOT;

		fill(p->src + at, len, s->seed + i);
		if (post(p, w, s, at, len))
			return -1;
		memcpy(p->src + at + SLOT / 2, p->src + at, len); /* what is to be found */
		if (post(p, f, s, PEER_OFFSET + (MIX + 1) * SLOT, 8))
			return -1;
	}
	for (uint32_t i = 0; i < 2 * MIX; i++)
		if (completed(p, IBV_WC_SUCCESS))
			return -1;
	if (compare_cell(p->src + PEER_OFFSET + (MIX + 1) * SLOT,
			 CELL + (uint64_t)(MIX - 1) * s->seed))
		return -1;
	for (uint32_t i = 0; i < MIX; i++) { /* the write's source is the read's target */
		uint32_t at = PEER_OFFSET + i * SLOT;

		memset(p->src + at, GUARD_BYTE, len);
		fill(p->src + at + SLOT / 2, len, s->seed + 100 + i);
	}
	for (uint32_t i = 0; i < MIX; i++) {
		uint32_t at = PEER_OFFSET + i * SLOT;

		if (post(p, r, s, at, len) || post(p, w, s, at + SLOT / 2, len))
			return -1;
	}
	for (uint32_t i = 0; i < 2 * MIX; i++)
		if (completed(p, IBV_WC_SUCCESS))
			return -1;
	for (uint32_t i = 0; i < MIX; i++)
		if (compare_slot("what was read", p->src + PEER_OFFSET + i * SLOT, i, len, s->seed + i))
			return -1;
	return 0;
}

static int execute(struct peer *p, const struct op *o, const struct peer_step *s)
{
	uint32_t at = place(o, s);
	uint32_t len = o->kind == ATOMIC ? 8 : s->size;
	uint64_t cell;

	if (o->kind == MIXED)
		return mix(p, s);
	clear(p->src, at, len);
	if (o->kind == PLAIN || o->kind == RECEIVED)
		fill(p->src + at, len, s->seed);
	if (post(p, o, s, at, len) || completed(p, o->status))
		return -1;
	if (o->kind == FETCHED)
		return compare(p->src, at, len, s->seed);
	if (o->kind == ATOMIC && !o->wrong) {
		memcpy(&cell, p->src + at, 8);
		return cell == CELL ? 0 : -1;
	}
	return 0;
}

static int step(struct peer *p, const struct op *o, uint32_t size, uint32_t seed)
{
	struct peer_step s = { .op = (uint32_t)(o - ops), .size = size, .seed = seed };
	int status = 0;

	if (peer_say(p, &s, sizeof(s)))
		return -1;
	if (o->kind == END)
		return 0;
	if (o->kind == RECONNECT)
		return peer_connect(p);
	if (peer_hear(p, &s, sizeof(s)))
		return -1;
	status = s.status ? s.status : execute(p, o, &s);
	if (peer_say(p, &s, sizeof(s)) || peer_hear(p, &s, sizeof(s)))
		return -1;
	if (!status && !s.status)
		return 0;
	fprintf(stderr, "wire_peer: %s of %u bytes: client %d, server %d\n", o->name, size, status,
		s.status);
	return -1;
}

static int sizes_of(struct peer *p, const struct op *o, uint32_t max, uint32_t seed)
{
	const uint32_t mtu = 128u << p->mtu;
	const uint32_t sizes[] = { 0,	    1,	     2,	      3,	 4,	  7,	     8,
				   63,	    64,	     65,      mtu - 1,	 mtu,	  mtu + 1,   2 * mtu,
				   3 * mtu + 5, 17 * mtu, 65536,	65537, 1 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i] <= max && step(p, o, sizes[i], seed + (uint32_t)i))
			return -1;
	return 0;
}

static int one_op(struct peer *p, const struct op *o, uint32_t max, uint32_t seed)
{
	if (o->wrong == FINE && (o->kind == PLAIN || o->kind == RECEIVED || o->kind == FETCHED))
		return sizes_of(p, o, max, seed);
	if (step(p, o, o->kind == ATOMIC ? 8 : 3000, seed))
		return -1;
	return o->status == IBV_WC_SUCCESS ? 0 : step(p, op_named("reconnect", 9), 0, 0);
}

int peer_client(struct peer *p, const char *list, uint32_t max, unsigned rounds)
{
	uint32_t seed = 1;

	for (unsigned i = 0; i < rounds; i++)
		for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
			const struct op *o = op_named(at, strcspn(at, ","));

			if (!o) {
				fprintf(stderr, "wire_peer: no operation %s\n", at);
				return -1;
			}
			if (one_op(p, o, max, seed))
				return -1;
			seed += 37;
		}
	return step(p, op_named("end", 3), 0, 0);
}

/* ---- server ---- */

/* A window bound to this QP, for the other side to take back. */
static int rkeys_window(struct peer *p, struct peer_step *s)
{
	struct ibv_send_wr *no, wr = { .opcode = IBV_WR_BIND_MW };

	if (!p->mw)
		p->mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	if (!p->mw) {
		perror("wire_peer: window");
		return -1;
	}
	s->window = ibv_inc_rkey(p->mw->rkey);
	wr.bind_mw.mw = p->mw;
	wr.bind_mw.rkey = s->window;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ .mr = p->mr, .addr = (uintptr_t)p->buf,
							  .length = PEER_OFFSET,
							  .mw_access_flags = IBV_ACCESS_REMOTE_READ };
	if (ibv_post_send(p->qp, &wr, &no) || completed(p, IBV_WC_SUCCESS))
		return -1;
	p->mw->rkey = s->window;
	return 0;
}

static int prepare(struct peer *p, const struct op *o, struct peer_step *s)
{
	uint32_t at = place(o, s);
	uint64_t cell = CELL;

	if (o->kind == MIXED) {
		memcpy(p->buf + PEER_OFFSET + (MIX + 1) * SLOT, &cell, 8);
		return 0;
	}
	clear(p->buf, at, o->kind == ATOMIC ? 8 : s->size);
	if (o->opcode == IBV_WR_SEND_WITH_INV && rkeys_window(p, s))
		return -1;
	if (o->kind == FETCHED)
		fill(p->buf + at, s->size, s->seed);
	if (o->kind == ATOMIC)
		memcpy(p->buf + at, &cell, 8);
	if (o->wrong == SHORT_RECEIVE)
		return peer_post_recv(p, s->size - 1, p->mr->lkey);
	if (o->wrong == RECEIVE_KEY)
		return peer_post_recv(p, s->size, p->mr->lkey ^ 0x5500);
	if (o->kind == RECEIVED && o->wrong != LATE_RECEIVE)
		return peer_post_recv(p, o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : s->size,
				      p->mr->lkey);
	return 0;
}

/* rdma_rxe hands up the kernel's flag, which is another bit than that of verbs. */
static unsigned inv_flag(const struct peer *p)
{
	return p->device && !strncmp(p->device, "rxe", 3) ? 4 : IBV_WC_WITH_INV;
}

static int check_receive(struct peer *p, const struct op *o, const struct peer_step *s)
{
	bool write = o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool imm = write || o->opcode == IBV_WR_SEND_WITH_IMM;
	bool inv = o->opcode == IBV_WR_SEND_WITH_INV;
	bool ud = p->type == IBV_QPT_UD;
	struct ibv_wc wc;

	if (peer_poll(p, &wc))
		return -1;
	if (!(wc.wc_flags & inv_flag(p)) == inv || (inv && wc.invalidated_rkey != s->window)) {
		fprintf(stderr, "wire_peer: receive: %s, key 0x%x taken back, not 0x%x\n",
			ibv_wc_status_str(wc.status), wc.invalidated_rkey, s->window);
		return -1;
	}
	if (ud && (!(wc.wc_flags & IBV_WC_GRH) || wc.src_qp != p->there.qpn || !peer_grh_ok(p)))
		return -1;
	if (wc.status == IBV_WC_SUCCESS && wc.byte_len == s->size + (ud ? PEER_GRH : 0) &&
	    wc.opcode == (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) &&
	    !(wc.wc_flags & IBV_WC_WITH_IMM) == !imm && (!imm || wc.imm_data == htonl(s->seed)))
		return 0;
	fprintf(stderr, "wire_peer: receive: %s, %u bytes, opcode %d, immediate %s 0x%x\n",
		ibv_wc_status_str(wc.status), wc.byte_len, wc.opcode,
		wc.wc_flags & IBV_WC_WITH_IMM ? "yes" : "no", ntohl(wc.imm_data));
	return -1;
}

/* Nobody says when a write has come that is not acknowledged. */
static void await_data(const uint8_t *buf, uint32_t at, uint32_t n, uint32_t seed)
{
	for (int i = 0; i < 5000 && !matches(buf, at, n, seed); i++)
		usleep(1000);
}

static int check_mix(struct peer *p, const struct peer_step *s)
{
	uint32_t len = s->size < SLOT / 2 ? s->size : SLOT / 2;
	int bad = compare_cell(p->buf + PEER_OFFSET + (MIX + 1) * SLOT,
			       CELL + (uint64_t)MIX * s->seed);

	for (uint32_t i = 0; i < MIX; i++) {
		const uint8_t *at = p->buf + PEER_OFFSET + i * SLOT;

		bad |= compare_slot("the first half", at, i, len, s->seed + i);
		bad |= compare_slot("the second half", at + SLOT / 2, i, len, s->seed + 100 + i);
	}
	return bad;
}

static int verify(struct peer *p, const struct op *o, const struct peer_step *s)
{
	uint32_t at = place(o, s);
	uint64_t cell, want = CELL;

	if (o->status != IBV_WC_SUCCESS)
		return 0;
	if (o->kind == RECEIVED && check_receive(p, o, s))
		return -1;
	if (o->kind == MIXED)
		return check_mix(p, s);
	if (p->type == IBV_QPT_UC)
		await_data(p->buf, at, s->size, s->seed);
	if (o->kind != ATOMIC)
		return compare(p->buf, at, s->size, s->seed);
	want = o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? ~(uint64_t)s->seed : CELL + s->seed;
	memcpy(&cell, p->buf + at, 8);
	return cell == want ? 0 : -1;
}

int peer_server(struct peer *p)
{
	struct peer_step s;

	while (!peer_hear(p, &s, sizeof(s)) && s.op < sizeof(ops) / sizeof(ops[0])) {
		const struct op *o = &ops[s.op];

		if (o->kind == END)
			return 0;
		if (o->kind == RECONNECT) {
			if (peer_connect(p))
				return -1;
			continue;
		}
		s.status = prepare(p, o, &s);
		if (peer_say(p, &s, sizeof(s)))
			return -1;
		if (o->wrong == LATE_RECEIVE) {
			usleep(30000);
			peer_post_recv(p, s.size, p->mr->lkey);
		}
		if (peer_hear(p, &s, sizeof(s)))
			return -1;
		s.status = verify(p, o, &s);
		if (peer_say(p, &s, sizeof(s)))
			return -1;
	}
	return -1;
}
