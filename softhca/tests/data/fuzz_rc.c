/* SPDX-License-Identifier: BSD-3-Clause */
/* What a hostile byte string does to live QPs; see fuzz_rc.h. */
#include "fuzz_rc.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "fakewire.h"
#include "softhca/memory/guest.h"
#include "softhca/transport/rc.h"
#include "tests/fuzz_input.h"

enum { SEG = 16, BUF = 1 << 14, N_QP = 10, DCI = 8, DCT = 9 }; /* 4 RC, 2 UC, 2 UD, 2 DC */

static const uint64_t dc_key = 0x4242424200001111;

static struct sim_qp *qp[N_QP];
static uint8_t *mem;
static uint32_t key, odd_key, window, mkey;

/* ---- packets ---- */

/* A number that is near what the QP works with, mostly. */
static uint32_t near_psn(const struct hca_rc *rc)
{
	uint8_t how = byte();
	uint32_t base = how & 1 ? rc->rs.epsn : how & 2 ? rc->psn_una : rc->psn_next;

	if ((how & 0xf0) == 0xf0)
		return word() & PSN_MASK;
	return psn_add(base, PSN_MASK + 1 - 2 + (how >> 2 & 3));
}

static uint64_t near_va(void)
{
	uint8_t how = byte();
	uint64_t va = (uint64_t)(uintptr_t)mem + (uint64_t)byte() * 8;

	if ((how & 0xf0) == 0xf0)
		return (uint64_t)word() << 32 | word();
	return how & 8 ? va + BUF - 2048 + (how & 7) : va + (how & 3);
}

static uint32_t some_key(void)
{
	uint8_t how = byte();

	if (how < 180)
		return key;
	if (how < 210)
		return hca_find_mr_by_index(mkey)->key;
	return how < 230 ? odd_key : how < 245 ? window : word();
}

static uint32_t some_len(uint32_t mtu)
{
	uint8_t how = byte();

	switch (how & 7) {
	case 0:
		return mtu;
	case 1:
		return mtu * (how >> 3);
	case 2:
		return mtu + (how >> 3);
	case 3:
		return word();
	default:
		return how >> 3;
	}
}

static uint8_t some_opcode(const struct sim_qp *q)
{
	uint8_t how = byte();

	if (q->qp.type == HCA_QP_UC && how < 220)
		return (uint8_t)(BTH_UC | how % (BTH_WRITE_ONLY_IMM + 1));
	if (q->qp.type == HCA_QP_UD && how < 220)
		return (uint8_t)(BTH_UD_SEND_ONLY + how % 2);
	if (q->qp.type >= HCA_QP_DCI && how < 245)
		return (uint8_t)(BTH_DC | how % 32);
	return how < 220 ? how % (BTH_SEND_ONLY_INV + 1) : how < 245 ? BTH_MASKED_ATOMIC : byte();
}

/* Of a connection of the DCI that there is, mostly. */
static void some_connection(struct packet *p)
{
	const struct hca_rc *rc = qp[DCI]->qp.rc;
	uint8_t how = byte();

	p->dc_key = dc_key + (how == 0);
	p->sqpn = how >= 240 ? word() : qp[DCI]->qp.qpn + (how >= 200);
	p->life = (uint8_t)(rc->dc.life + (how >> 2 & 1));
	p->first_psn = how & 2 ? rc->dc.first : near_psn(rc);
	p->psn = how & 1 ? p->first_psn : p->psn;
}

/* A packet that passes the parser, with some bytes changed, or bytes as they are. */
static void send_packet(struct sim_qp *q)
{
	uint8_t bytes[PKT_MAX + 64];
	struct packet p = { .opcode = some_opcode(q), .dqpn = q->qp.qpn, .pkey = 0xffff };
	size_t n;
	uint8_t *exact, changes;

	p.ackreq = byte() & 1;
	p.qkey = byte() & 7 ? q->qp.qkey : word();
	p.psn = near_psn(q->qp.rc);
	if (q->qp.type == HCA_QP_DCT) {
		p.psn = near_psn(qp[DCI]->qp.rc);
		some_connection(&p);
	}
	p.va = near_va();
	p.rkey = some_key();
	p.dmalen = some_len(q->qp.mtu);
	p.syndrome = byte();
	p.atomic_size = byte() & 1 ? 8 : 4;
	p.atomic_add = byte() & 1;
	p.operand = p.compare = word();
	p.len = some_len(q->qp.mtu) & 0x1fff;
	if (p.len > PKT_MAX_MTU)
		p.len = PKT_MAX_MTU;
	if (!(packet_headers(p.opcode) & PKT_HAS_PAYLOAD))
		p.len = 0;
	memset(bytes, 0x5a, sizeof(bytes));
	n = packet_encode(&p, bytes) + p.len + p.pad + PKT_ICRC_LEN;
	changes = byte();
	if (changes >= 224) {
		for (unsigned i = 0; i < (changes & 7u) + 1u; i++)
			bytes[word() % n] = byte();
		put_be32(bytes + 4, q->qp.qpn); /* else nobody reads it */
	}
	if (changes % 32 == 31)
		n = word() % (n + 1);
	exact = malloc(n ? n : 1); /* so that reading one byte too many shows */
	memcpy(exact, bytes, n);
	fake_inject(exact, n);
	free(exact);
}

/* ---- work requests, doorbells, records ---- */

/* Where a UMR's entries begin; pieces in a row, or a head and pieces that repeat. Returns how many. */
static unsigned pieces(uint8_t *at, uint8_t how)
{
	unsigned n = 1 + (how & 7);
	bool repeat = how & 8;

	if (repeat) {
		put_be32(at + 4, 0x400);
		put_be32(at + 8, byte() & 15 ? 1u + (byte() & 63) : word());
		at[15] = (uint8_t)n;
		at += SEG;
	}
	for (unsigned i = 0; i < n; i++, at += SEG) {
		uint32_t len = some_len(256);

		put_be32(at, repeat ? (len & 0xff) << 16 | (byte() & 0x3f) : len);
		put_be32(at + 4, some_key());
		put_be64(at + 8, near_va());
	}
	return n + repeat;
}

/* Fills the indirect key, or takes it back. */
static void fill_mkey(struct sim_qp *q)
{
	uint8_t wqe[20 * SEG] = { 0 }, how = byte();
	bool free = (how & 0x30) == 0x30;
	unsigned ds = 8 + (free ? 0 : (pieces(wqe + 8 * SEG, how) + 3) / 4 * 4);

	put_be32(wqe, (q->pi & 0xffff) << 8 | WQE_UMR);
	put_be32(wqe + 4, q->qp.qpn << 8 | ds);
	wqe[11] = 8; /* CQE */
	put_be32(wqe + 12, mkey);
	wqe[SEG] = 0x80; /* inline */
	put_be64(wqe + SEG + 8, 1ull << 29 | 1ull << 13 | 0x3c0041);
	wqe[4 * SEG] = free ? 0x40 : 0;
	wqe[4 * SEG + 2] = byte();
	wqe[4 * SEG + 7] = how & 0x40 ? byte() : (uint8_t)mkey;
	put_be64(wqe + 5 * SEG, (uint64_t)(uintptr_t)mem);
	put_be64(wqe + 5 * SEG + 8, how & 0x80 ? word() : byte() * 8u);
	sim_raw(q, wqe, ds);
}

static void post(struct sim_qp *q)
{
	uint64_t at = near_va();
	uint32_t len = some_len(q->qp.mtu) & 0xfff;

	if (q->qp.type == HCA_QP_UD)
		sim_to(q, byte() & 7 ? q->qp.qpn : word(), (uint64_t)q->qp.qkey << 32);
	if (q->qp.type == HCA_QP_DCI)
		sim_to(q, byte() & 7 ? qp[DCT]->qp.qpn : word(), dc_key + !(byte() & 15));
	switch (byte() % 11) {
	case 10:
		fill_mkey(q);
		break;
	case 8:
		sim_send_inv(q, mem, len, some_key(), some_key(), byte() & 1);
		break;
	case 9:
		sim_umr(q, window, byte() & 1, some_key(), mem + 64, len, byte());
		break;
	case 0:
		sim_write(q, at, some_key(), mem, len, some_key(), byte() & 1);
		break;
	case 1:
		sim_read(q, at, some_key(), mem, len, some_key(), byte() & 1);
		break;
	case 2:
		sim_fetch_add(q, at & ~7ull, some_key(), mem, some_key(), 1, 1);
		break;
	case 3:
		sim_masked(q, byte() & 1, byte() & 1 ? 4 : 8, at & ~7ull, some_key(), mem,
			   some_key(), (uint64_t[4]){ word(), word(), 1, 2 }, 1);
		break;
	case 4:
		sim_send(q, mem, len, some_key(), byte() & 1);
		break;
	case 5:
		sim_write_imm(q, at, some_key(), mem, len, some_key(), 7, byte() & 1);
		break;
	case 6:
		sim_inline(q, at, some_key(), mem, byte() % 200, byte() & 1);
		break;
	default:
		sim_dump(q, mem, len, some_key(), byte() & 1);
	}
}

/* Bytes of the ring from the input: sparse changes, or whole segments with a
 * control segment that fits the position. */
static void scribble(struct sim_qp *q)
{
	size_t size = (size_t)64 << q->qp.log_sq_size;
	uint8_t how = byte();

	if (how & 1) {
		uint8_t wqe[16 * 16] = { 0 };
		unsigned ds = how >> 1 & 15;

		for (unsigned i = 0; i < (ds ? ds : 1) * 16; i++)
			wqe[i] = byte();
		wqe[1] = (uint8_t)(q->pi >> 8);
		wqe[2] = (uint8_t)q->pi;
		if (how & 0x40)
			wqe[3] = (uint8_t[]){ 0, 8, 9, 0xa, 0xb, 0x10, 0x11, 0x12, 0x14, 0x15,
					      0x23, 0x25, 0x01, 0x13, 0x20, 0xff }[wqe[3] & 15];
		wqe[4] = (uint8_t)(q->qp.qpn >> 16);
		wqe[5] = (uint8_t)(q->qp.qpn >> 8);
		wqe[6] = (uint8_t)q->qp.qpn;
		wqe[7] = (uint8_t)(how & 0x80 ? wqe[7] : ds);
		sim_raw(q, wqe, ds ? ds : 1);
		return;
	}
	for (unsigned i = 0; i < (how >> 5) + 1u; i++)
		q->qp.sq[word() % size] = byte();
}

static void ring(struct sim_qp *q)
{
	uint8_t how = byte();
	uint64_t v;

	if (how < 160) {
		sim_ring(q);
		return;
	}
	if (how & 1) {
		if (how & 2)
			q->dbrec[1] = word();
		else /* all that it says is posted is flushed one by one: not too much */
			q->dbrec[0] = htobe32(q->rq_pi + byte());
		return;
	}
	v = how & 2 ? (uint64_t)word() << 32 | word()
		    : (uint64_t)htobe32(q->qp.qpn << 8) << 32 | htobe32((uint32_t)byte() << 8 | word());
	memcpy(q->uar + (how >> 2 & 3) * 256, &v, 8);
}

static void receive(struct sim_qp *q)
{
	uint8_t how = byte();

	sim_recv(q, mem + 1024, some_len(q->qp.mtu) & 0xfff, some_key());
	if (how >= 200)
		q->qp.rq[word() % (64 * 64)] = byte();
}

static void again(struct sim_qp *q)
{
	unsigned i = 0;

	while (qp[i] != q)
		i++;
	sim_reset(q);
	q->qp.sq_psn = psn_add(0, PSN_MASK + 1 - byte());
	q->qp.rq_psn = qp[i ^ 1]->qp.sq_psn;
	if (i == DCT)
		sim_listen(q);
	else
		sim_connect(q, qp[i ^ 1]->qp.qpn);
}

void fuzz_rc(const uint8_t *data, size_t n)
{
	fake_policy = NULL;
	fake_clear();
	for (unsigned i = 0; i < N_QP; i++)
		again(qp[i]);
	in = data;
	in_left = n;
	while (in_left) {
		uint8_t what = byte();
		struct sim_qp *q = qp[(what & 15) % N_QP];

		if (q->qp.state > HCA_QPS_RTS && what >> 6)
			again(q);
		switch (byte() & 15) {
		case 0:
		case 1:
		case 2:
			post(q);
			break;
		case 3:
			scribble(q);
			break;
		case 4:
		case 5:
			ring(q);
			break;
		case 6:
			receive(q);
			break;
		case 7:
			rc_timer(&q->qp, UINT64_MAX);
			break;
		case 8:
			for (unsigned i = what >> 6; i < 4; i++)
				engine_round();
			break;
		case 9:
			if (what >> 6 == 3)
				again(q);
			break;
		default:
			send_packet(q);
		}
	}
	/* Retries end, so it settles; a hang is the driver's time limit. */
	for (int k = 0; k < 40; k++) {
		if (!fake_settle())
			abort();
		for (unsigned i = 0; i < N_QP; i++)
			rc_timer(&qp[i]->qp, UINT64_MAX);
	}
}

void fuzz_rc_init(void)
{
	static const enum hca_qp_type types[] = { HCA_QP_RC, HCA_QP_RC, HCA_QP_UC, HCA_QP_UD,
						  HCA_QP_DCI };

	sim_init_idle();
	mem = aligned_alloc(4096, BUF);
	if (!mem)
		abort();
	memset(mem, 0x33, BUF);
	window = sim_window(HCA_WINDOW_2, 1);
	mkey = sim_window(HCA_INDIRECT, 1);
	hca_find_mr(mkey)->max_pieces = 8;
	hca_find_mr(mkey)->remote_inv = true;
	key = sim_mr(mem, BUF, 0x1f, 1, (uint64_t)(uintptr_t)mem);
	odd_key = sim_mr(mem + 1, 1000, 0xf, 1, 0);
	for (unsigned i = 0; i < N_QP; i++) {
		qp[i] = sim_qp_as(types[i / 2] + (i == DCT), i < 2 || i == DCI ? 5 : 2,
				  i & 1 ? SIM_CQ_ONE : SIM_CQ_COLLAPSED);
		qp[i]->qp.dc_key = dc_key;
		qp[i]->rcq.overrun_ignore = true;
		if (i & 2)
			qp[i]->qp.cqe_req = qp[i]->qp.cqe_res = 32;
		qp[i]->qp.mtu = i < 2 || i >= DCI ? 256 : 1024;
		qp[i]->qp.rnr_retry = 3;
	}
}
