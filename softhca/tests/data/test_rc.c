/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport's rules, packet by packet: every single packet of a mixed
 * exchange lost, doubled, late; many of them at once; PSNs that wrap; then
 * each answer and request that breaks a rule. IBTA volume 1, section 9.7. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "finish.h"

enum { BUF = 1 << 16, MTU = 256, POSTS_A = 11, POSTS_B = 4, AT_WORDS = 60000 };

static struct sim_qp *a, *b;
static uint8_t *mem_a, *mem_b; /* each is its side's source, destination, result */
static uint32_t key_a, key_b;

static const struct wire_dest nobody = { .kind = WIRE_LOCAL };

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static void connect_at(uint32_t psn_a, uint32_t psn_b)
{
	fake_policy = NULL;
	fake_clear();
	sim_reset(a);
	sim_reset(b);
	a->qp.mtu = b->qp.mtu = MTU;
	a->qp.sq_psn = b->qp.rq_psn = psn_a;
	b->qp.sq_psn = a->qp.rq_psn = psn_b;
	sim_pair(a, b);
}

/* ---- a mixed exchange, both ways ---- */

static const uint8_t opcodes_a[POSTS_A] = {
	WQE_WRITE, WQE_WRITE, WQE_READ,		    WQE_FETCH_ADD, WQE_SEND,  WQE_WRITE_IMM,
	WQE_READ,  WQE_NOP,   WQE_MASKED_FETCH_ADD, WQE_CMP_SWAP,  WQE_WRITE,
};
static const uint8_t opcodes_b[POSTS_B] = { WQE_WRITE, WQE_FETCH_ADD, WQE_READ, WQE_WRITE };

static void post_all(void)
{
	uint64_t *wa = (uint64_t *)(void *)(mem_a + AT_WORDS);
	uint64_t *wb = (uint64_t *)(void *)(mem_b + AT_WORDS);

	memset(mem_a, 0, BUF);
	memset(mem_b, 0, BUF);
	fill(mem_a, 4000, 1);
	fill(mem_b + 10000, 20000, 2);
	wa[4] = 1000;
	wb[0] = 100;
	wb[1] = 5;
	sim_recv(b, mem_b + 4000, 1000, key_b);
	sim_recv(b, NULL, 0, 0x100);
	sim_write(a, addr(mem_b), key_b, mem_a, 700, key_a, 1);
	sim_inline(a, addr(mem_b + 3000), key_b, mem_a, 8, 1);
	sim_read(a, addr(mem_b + 10000), key_b, mem_a + 10000, 1200, key_a, 1);
	sim_fetch_add(a, addr(wb), key_b, wa, key_a, 7, 1);
	sim_send(a, mem_a + 1000, 600, key_a, 1);
	sim_write_imm(a, addr(mem_b + 5000), key_b, mem_a + 2000, 300, key_a, 0xabcd, 1);
	sim_read(a, addr(mem_b + 12000), key_b, mem_a + 12000, 40 * MTU - 3, key_a, 1);
	sim_nop(a, 1);
	sim_masked(a, true, 8, addr(wb), key_b, wa + 1, key_a, (uint64_t[]){ 1, 0, 0, 0 }, 1);
	sim_cmp_swap(a, addr(wb + 1), key_b, wa + 2, key_a, 5, 6, 1);
	a->fence = 0x40;
	sim_write(a, addr(mem_b + 6000), key_b, mem_a + 12000, 500, key_a, 1);
	a->fence = 0;
	sim_write(b, addr(mem_a + 30000), key_a, mem_b + 20000, 600, key_b, 1);
	sim_fetch_add(b, addr(wa + 4), key_a, wb + 4, key_b, 1, 1);
	sim_read(b, addr(mem_a), key_a, mem_b + 40000, 1000, key_b, 1);
	sim_write(b, addr(mem_a + 31000), key_a, mem_b + 21000, 8, key_b, 1);
	sim_ring(a);
	sim_ring(b);
}

static void expect_all(struct sim_qp *q, const uint8_t *opcodes, unsigned n)
{
	struct sim_cqe c;
	unsigned blocks = 0;

	for (unsigned i = 0; i < n; i++) {
		assert_true(sim_poll(q, &c, 0));
		assert_int_equal(c.type, 0);
		assert_int_equal(c.opcode, opcodes[i]);
		assert_int_equal(c.counter, blocks);
		blocks++;
	}
	assert_false(sim_poll(q, &c, 0));
}

static void check_all(void)
{
	uint64_t *wa = (uint64_t *)(void *)(mem_a + AT_WORDS);
	uint64_t *wb = (uint64_t *)(void *)(mem_b + AT_WORDS);
	struct sim_cqe c;

	assert_true(fake_finish(a, b));
	expect_all(a, opcodes_a, POSTS_A);
	expect_all(b, opcodes_b, POSTS_B);
	assert_true(sim_poll_recv(b, &c, 0));
	assert_int_equal(c.type, 2);
	assert_int_equal(c.byte_cnt, 600);
	assert_true(sim_poll_recv(b, &c, 0));
	assert_int_equal(c.type, 1);
	assert_int_equal(c.imm, 0xabcd);
	assert_false(sim_poll_recv(b, &c, 0));
	assert_memory_equal(mem_b, mem_a, 700);
	assert_memory_equal(mem_b + 3000, mem_a, 8);
	assert_memory_equal(mem_a + 10000, mem_b + 10000, 1200);
	assert_memory_equal(mem_b + 4000, mem_a + 1000, 600);
	assert_memory_equal(mem_b + 5000, mem_a + 2000, 300);
	assert_memory_equal(mem_a + 12000, mem_b + 12000, 40 * MTU - 3);
	assert_memory_equal(mem_b + 6000, mem_b + 12000, 500); /* fenced behind the READ */
	assert_memory_equal(mem_a + 30000, mem_b + 20000, 600);
	assert_memory_equal(mem_b + 40000, mem_a, 1000);
	assert_memory_equal(mem_a + 31000, mem_b + 21000, 8);
	assert_int_equal(wa[0], 100);
	assert_int_equal(wa[1], 107);
	assert_int_equal(wb[0], 108);
	assert_int_equal(wa[2], 5);
	assert_int_equal(wb[1], 6);
	assert_int_equal(wb[4], 1000);
	assert_int_equal(wa[4], 1001);
}

static unsigned hit_at;
static struct fake_fate hit;

static struct fake_fate hit_one(unsigned n, const struct packet *p)
{
	(void)p;
	return n == hit_at ? hit : (struct fake_fate){ FAKE_PASS, 0 };
}

static void test_each_packet(void **state)
{
	static const struct fake_fate fates[] = { { FAKE_DROP, 0 }, { FAKE_DUP, 0 }, { FAKE_DUP, 3 },
						  { FAKE_DUP, 40 }, { FAKE_LATE, 1 },
						  { FAKE_LATE, 4 }, { FAKE_LATE, 50 } };
	unsigned n = 100;

	(void)state;
	for (unsigned f = 0; f < sizeof(fates) / sizeof(*fates); f++) {
		for (hit_at = 0; hit_at < n; hit_at++) {
			uint64_t again = hca_stats.retransmits;

			/* Both sides' PSNs wrap at another place each time. */
			connect_at(psn_add(0, -hit_at % 80), psn_add(0, -hit_at % 9));
			hit = fates[f];
			fake_policy = hit_one;
			post_all();
			check_all();
			if (!f && !hit_at)
				n = fake_sent();
			if (hit.kind == FAKE_DUP)
				assert_int_equal(hca_stats.retransmits, again);
		}
	}
}

static uint32_t rng;
static unsigned per_mille;

static struct fake_fate hit_some(unsigned n, const struct packet *p)
{
	uint32_t r = (rng = rng * 1664525u + 1013904223u) >> 8;

	(void)n;
	(void)p;
	if (r % 1000 >= per_mille)
		return (struct fake_fate){ FAKE_PASS, 0 };
	return (struct fake_fate){ FAKE_DROP + (r >> 10) % 3, (r >> 12) % 40 };
}

static void test_many_packets(void **state)
{
	unsigned runs = getenv("RC_RUNS") ? (unsigned)atoi(getenv("RC_RUNS")) : 3000;

	(void)state;
	for (unsigned i = 0; i < runs; i++) {
		connect_at(psn_add(0, -i % 97), psn_add(0x7ffff0, i % 20));
		a->qp.retry_cnt = b->qp.retry_cnt = 100; /* so much loss is not an error here */
		rng = i;
		per_mille = 5 + i % 100;
		fake_policy = hit_some;
		post_all();
		check_all();
	}
	a->qp.retry_cnt = b->qp.retry_cnt = 7;
}

/* ---- the requester and answers that are not what it waits for ---- */

static void answer(struct sim_qp *q, uint8_t opcode, uint32_t psn, uint8_t syndrome, uint32_t len)
{
	static uint8_t data[4096];
	struct packet p = { .opcode = opcode, .dqpn = q->qp.qpn, .psn = psn, .pkey = 0xffff,
			    .syndrome = syndrome, .len = len };
	struct iovec iov = { data, len };

	rc_receive(&q->qp, &nobody, &p, &iov, len ? 1 : 0);
}

static struct fake_fate to_nobody(unsigned n, const struct packet *p)
{
	(void)n;
	(void)p;
	return (struct fake_fate){ FAKE_DROP, 0 };
}

/* Of the codes that the standard reserves one is softhca's own, between processes of one host: from
 * elsewhere it means no more than the others. */
static void test_reserved_nak(void **state)
{
	static const struct {
		enum wire_kind from;
		uint8_t syndrome;
		bool again;
	} cases[] = { { WIRE_REMOTE, AETH_NAK_UNREAD, false },
		      { WIRE_REMOTE, AETH_NAK_UNREAD - 1, false },
		      { WIRE_HOST, AETH_NAK_UNREAD - 1, false },
		      { WIRE_HOST, AETH_NAK_UNREAD, true } };
	struct sim_cqe c;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		connect_at(5, 5);
		fake_policy = to_nobody;
		a->qp.rc->dest.kind = cases[i].from;
		sim_write(a, addr(mem_b), key_b, mem_a, 8, key_a, 1);
		sim_ring(a);
		assert_true(fake_settle());
		answer(a, BTH_ACK, 5, cases[i].syndrome, 0);
		assert_true(fake_settle());
		assert_int_equal(fake_sent(), cases[i].again ? 2 : 1);
		assert_int_equal(a->qp.state, cases[i].again ? HCA_QPS_RTS : HCA_QPS_ERR);
		if (cases[i].again)
			continue;
		assert_true(sim_poll(a, &c, 0));
		assert_int_equal(c.syndrome, SYND_BAD_RESP);
	}
}

/* A finished request keeps its success when the answer that finishes it
 * shows that the next one fails. */
static void test_success_before_error(void **state)
{
	struct sim_cqe c;
	uint32_t key = sim_mr(mem_a, BUF, HCA_LOCAL_WRITE, 1, addr(mem_a));

	(void)state;
	connect_at(5, 5);
	fake_policy = to_nobody;
	sim_write(a, addr(mem_b), key_b, mem_a, 8, key_a, 1);
	sim_read(a, addr(mem_b), key_b, mem_a, 8, key, 1);
	sim_ring(a);
	assert_true(fake_settle());
	sim_mr_remove(key);
	answer(a, BTH_READ_RESP_ONLY, 6, AETH_ACK, 8);
	assert_true(sim_poll(a, &c, 0));
	assert_int_equal(c.type, 0);
	assert_true(sim_poll(a, &c, 0));
	assert_int_equal(c.syndrome, SYND_LOCAL_PROT);
	assert_int_equal(c.counter, 1);
}

/* Old answers, whatever they are, change nothing. */
static void test_old_answers(void **state)
{
	static const uint8_t kinds[] = { BTH_ACK, BTH_READ_RESP_MIDDLE, BTH_ATOMIC_ACK };
	static const uint8_t syndromes[] = { AETH_ACK, AETH_NAK_SEQ, AETH_NAK_ACCESS, AETH_RNR };

	(void)state;
	for (uint32_t back = 1; back < 12; back++) {
		for (unsigned k = 0; k < sizeof(kinds) * sizeof(syndromes); k++) {
			uint64_t again = hca_stats.retransmits;

			connect_at(0xfffffe, 5);
			fake_policy = to_nobody;
			sim_read(a, addr(mem_b), key_b, mem_a, 16 * MTU, key_a, 1);
			sim_ring(a);
			assert_true(fake_settle());
			for (uint32_t i = 0; i < 10; i++)
				answer(a, BTH_READ_RESP_MIDDLE, psn_add(0xfffffe, i), AETH_ACK, MTU);
			answer(a, kinds[k / sizeof(syndromes)], psn_add(8, PSN_MASK + 1 - back),
			       syndromes[k % sizeof(syndromes)], MTU);
			assert_true(fake_settle());
			assert_int_equal(a->qp.state, HCA_QPS_RTS);
			assert_int_equal(a->qp.rc->psn_una, 8);
			assert_int_equal(hca_stats.retransmits, again);
			assert_int_equal(a->qp.rc->rnr_until, 0);
		}
	}
}

/* A receiver that is not ready may also say of each packet behind that its number is wrong; that is
 * no repetition more, and what is left of the waiting time stays. */
static void test_out_of_sequence_while_waiting(void **state)
{
	(void)state;
	connect_at(7, 7);
	fake_policy = to_nobody;
	sim_send(a, mem_a, 3 * MTU, key_a, 1);
	sim_ring(a);
	for (int round = 0; round < 20; round++) {
		assert_true(fake_settle());
		answer(a, BTH_ACK, 7, AETH_RNR | 31, 0);
		assert_int_not_equal(a->qp.rc->rnr_until, 0);
		for (int k = 0; k < 3; k++)
			answer(a, BTH_ACK, 7, AETH_NAK_SEQ, 0);
		assert_int_equal(a->qp.state, HCA_QPS_RTS);
		assert_int_not_equal(a->qp.rc->rnr_until, 0);
		a->qp.rc->rnr_until = 1; /* the time has come */
		rc_timer(&a->qp, 1);
	}
}

/* Retries count since the last progress, not since the beginning. */
static void test_retries_reset(void **state)
{
	(void)state;
	connect_at(0, 0);
	fake_policy = to_nobody;
	a->qp.retry_cnt = 2;
	sim_write(a, addr(mem_b), key_b, mem_a, 20 * MTU, key_a, 1);
	sim_ring(a);
	for (uint32_t i = 0; i < 19; i++) {
		for (int k = 0; k < 2; k++) {
			assert_true(fake_settle());
			rc_timer(&a->qp, UINT64_MAX);
		}
		assert_true(fake_settle());
		answer(a, BTH_ACK, i, AETH_ACK, 0);
		assert_int_equal(a->qp.state, HCA_QPS_RTS);
	}
	for (int k = 0; k < 3; k++) {
		assert_true(fake_settle());
		rc_timer(&a->qp, UINT64_MAX);
	}
	assert_int_equal(a->qp.state, HCA_QPS_ERR);
	a->qp.retry_cnt = 7;
	a->ci = a->scq.pi;
}

/* Messages longer than the device says it takes. */
static void test_longest_message(void **state)
{
	uint32_t huge = sim_mr(mem_a, 1ull << 33, 0xf, 1, 0);
	struct sim_cqe c;

	(void)state;
	connect_at(0, 0);
	fake_policy = to_nobody;
	sim_read(a, 0, key_b, NULL, (1u << HCA_LOG_MAX_MSG) + 1, huge, 1);
	sim_ring(a);
	assert_true(fake_settle());
	assert_true(sim_poll(a, &c, 0));
	assert_int_equal(c.syndrome, SYND_LOCAL_LENGTH);
	sim_mr_remove(huge);
}

/* ---- the responder and requests that break a rule ---- */

static uint8_t last_nak;

static struct fake_fate note_nak(unsigned n, const struct packet *p)
{
	(void)n;
	if (p->opcode == BTH_ACK && (p->syndrome & AETH_KIND) == AETH_KIND)
		last_nak = p->syndrome;
	return (struct fake_fate){ FAKE_DROP, 0 };
}

static void expect_nak(struct packet p, uint8_t nak)
{
	static uint8_t data[4096];
	struct iovec iov = { data, p.len };
	uint32_t epsn;

	connect_at(0, 0);
	fake_policy = note_nak;
	sim_recv(b, mem_b, 1000, key_b);
	last_nak = 0;
	p.pkey = 0xffff;
	p.dqpn = b->qp.qpn;
	epsn = b->qp.rc->rs.epsn;
	rc_receive(&b->qp, &nobody, &p, &iov, p.len ? 1 : 0);
	assert_true(fake_settle());
	assert_int_equal(last_nak, nak);
	assert_int_equal(b->qp.rc->rs.epsn, epsn);
	b->ci = b->scq.pi;
	b->rcq_ci = b->rcq.pi;
}

static void test_bad_requests(void **state)
{
	uint32_t huge = sim_mr(mem_b, 1ull << 33, 0xf, 1, 0);

	(void)state;
	/* longer than the path MTU */
	expect_nak((struct packet){ .opcode = BTH_SEND_ONLY, .len = MTU + 1 }, AETH_NAK_INVAL);
	expect_nak((struct packet){ .opcode = BTH_WRITE_ONLY, .va = addr(mem_b), .rkey = key_b,
				    .dmalen = MTU + 4, .len = MTU + 4 }, AETH_NAK_INVAL);
	/* a first packet that is not full, or is already all */
	expect_nak((struct packet){ .opcode = BTH_SEND_FIRST, .len = MTU - 1 }, AETH_NAK_INVAL);
	expect_nak((struct packet){ .opcode = BTH_WRITE_FIRST, .va = addr(mem_b), .rkey = key_b,
				    .dmalen = MTU, .len = MTU }, AETH_NAK_INVAL);
	/* middle and last of nothing */
	expect_nak((struct packet){ .opcode = BTH_SEND_MIDDLE, .len = MTU }, AETH_NAK_INVAL);
	expect_nak((struct packet){ .opcode = BTH_WRITE_LAST, .len = 4 }, AETH_NAK_INVAL);
	/* more than a message may have */
	expect_nak((struct packet){ .opcode = BTH_READ_REQ, .rkey = huge,
				    .dmalen = (1u << HCA_LOG_MAX_MSG) + 1 }, AETH_NAK_INVAL);
	expect_nak((struct packet){ .opcode = BTH_WRITE_FIRST, .rkey = huge,
				    .dmalen = (1u << HCA_LOG_MAX_MSG) + 1, .len = MTU },
		   AETH_NAK_INVAL);
	/* atomics of odd sizes and places */
	expect_nak((struct packet){ .opcode = BTH_MASKED_ATOMIC, .va = addr(mem_b), .rkey = key_b,
				    .atomic_size = 2 }, AETH_NAK_INVAL);
	expect_nak((struct packet){ .opcode = BTH_FETCH_ADD, .va = addr(mem_b) + 4, .rkey = key_b,
				    .atomic_size = 8 }, AETH_NAK_INVAL);
	sim_mr_remove(huge);
}

/* What the QP does not grant, of length 0, too, and atomics without or beyond its mode. */
static void test_not_granted(void **state)
{
	static const struct packet none[] = { { .opcode = BTH_READ_REQ }, { .opcode = BTH_WRITE_ONLY },
					      { .opcode = BTH_WRITE_ONLY_IMM } };
	struct packet atomic = { .opcode = BTH_FETCH_ADD, .va = addr(mem_b), .rkey = key_b,
				 .atomic_size = 8 };

	(void)state;
	for (uint8_t resources = 0; resources <= 1; resources++) {
		b->qp.max_dest_rd_atomic = resources;
		b->qp.access = 0;
		for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
			expect_nak(none[i], AETH_NAK_ACCESS);
		expect_nak(atomic, AETH_NAK_ACCESS);
		b->qp.access = HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC;
		b->qp.atomic_mode = HCA_ATOMIC_NONE;
		expect_nak(atomic, AETH_NAK_ACCESS);
		b->qp.atomic_mode = HCA_ATOMIC_ONLY_8B;
		atomic.opcode = BTH_MASKED_ATOMIC;
		atomic.atomic_size = 4;
		expect_nak(atomic, AETH_NAK_ACCESS);
		b->qp.atomic_mode = HCA_ATOMIC_UP_TO_8B;
		atomic.opcode = BTH_FETCH_ADD;
		atomic.atomic_size = 8;
	}
	b->qp.max_dest_rd_atomic = 16;
}

/* One NAK for a gap, however much follows it; one more for the next gap. */
static void test_nak_once(void **state)
{
	uint64_t naks;

	(void)state;
	connect_at(0, 0);
	fake_policy = note_nak;
	naks = hca_stats.naks_tx;
	for (uint32_t i = 1; i < 10; i++)
		answer(b, BTH_SEND_ONLY, i, 0, 4);
	assert_true(fake_settle());
	assert_int_equal(hca_stats.naks_tx - naks, 1);
	assert_int_equal(last_nak, AETH_NAK_SEQ);
	sim_recv(b, mem_b, 1000, key_b);
	answer(b, BTH_SEND_ONLY, 0, 0, 4);
	answer(b, BTH_SEND_ONLY, 2, 0, 4);
	assert_true(fake_settle());
	assert_int_equal(hca_stats.naks_tx - naks, 2);
	b->rcq_ci = b->rcq.pi;
}

static uint32_t acked[8];
static unsigned n_acked;

static struct fake_fate note_ack(unsigned n, const struct packet *p)
{
	(void)n;
	if (p->opcode == BTH_ACK && n_acked < 8)
		acked[n_acked++] = p->psn;
	return (struct fake_fate){ FAKE_DROP, 0 };
}

/* A WRITE that comes again behind an atomic and a READ: what is acknowledged ends before them. */
static void test_ack_of_duplicate(void **state)
{
	struct packet write = { .opcode = BTH_WRITE_ONLY, .pkey = 0xffff, .ackreq = true,
				.va = addr(mem_b), .rkey = key_b };
	struct packet add = { .opcode = BTH_FETCH_ADD, .psn = 2, .pkey = 0xffff, .atomic_size = 8,
			      .va = addr(mem_b), .rkey = key_b };
	struct packet read = { .opcode = BTH_READ_REQ, .psn = 3, .pkey = 0xffff, .va = addr(mem_b),
			       .rkey = key_b, .dmalen = 3 * MTU };

	(void)state;
	connect_at(0, 0);
	fake_policy = note_ack;
	n_acked = 0;
	rc_receive(&b->qp, &nobody, &write, NULL, 0);
	write.psn = 1;
	rc_receive(&b->qp, &nobody, &write, NULL, 0);
	rc_receive(&b->qp, &nobody, &add, NULL, 0);
	rc_receive(&b->qp, &nobody, &read, NULL, 0);
	assert_true(fake_settle());
	write.psn = 0;
	rc_receive(&b->qp, &nobody, &write, NULL, 0);
	assert_true(fake_settle());
	assert_int_equal(n_acked, 2);
	assert_int_equal(acked[0], 1);
	assert_int_equal(acked[1], 1);
	write.psn = 6;
	rc_receive(&b->qp, &nobody, &write, NULL, 0);
	assert_true(fake_settle());
	assert_int_equal(acked[2], 6);
}

/* The error state answers nothing (IBTA 10.3.1): whose NAK is lost finds out by its retries. */
static void test_error_is_silent(void **state)
{
	struct packet bad = { .opcode = BTH_WRITE_ONLY, .pkey = 0xffff, .ackreq = true,
			      .va = addr(mem_b), .rkey = key_b + 0x100, .dmalen = 4, .len = 4 };
	struct iovec iov = { mem_a, 4 };

	(void)state;
	connect_at(0, 0);
	for (unsigned i = 0; i < 3; i++) {
		rc_receive(&b->qp, &nobody, &bad, &iov, 1);
		assert_true(fake_settle());
		assert_int_equal(b->qp.state, HCA_QPS_ERR);
		assert_int_equal(fake_sent(), 1);
	}
}

static int setup(void **state)
{
	(void)state;
	sim_init_idle();
	mem_a = sim_memory(BUF, 0xf, &key_a);
	mem_b = sim_memory(BUF, 0xf, &key_b);
	a = sim_qp(6, SIM_CQ_RING);
	b = sim_qp(6, SIM_CQ_RING);
	/* Time passes when the test says so, however slow the machine. */
	a->qp.ack_timeout = b->qp.ack_timeout = 24;
	return 0;
}

/* More READs than the responder has resources for, all there before it answers:
 * hardware refuses the first that is too many. */
static void test_too_many_reads(void **state)
{
	(void)state;
	for (unsigned grant = 0; grant <= 3; grant++) {
		connect_at(0, 0);
		b->qp.max_dest_rd_atomic = (uint8_t)grant;
		for (unsigned i = 0; i < 3; i++) {
			struct packet p = { .opcode = BTH_READ_REQ, .psn = i, .pkey = 0xffff,
					    .va = addr(mem_b), .rkey = key_b, .dmalen = 100 };

			rc_receive(&b->qp, &nobody, &p, NULL, 0);
			assert_int_equal(b->qp.state, i < grant ? HCA_QPS_RTS : HCA_QPS_ERR);
		}
		assert_true(fake_settle());
		assert_int_equal(fake_sent(), grant < 3 ? grant + 1 : 3);
	}
	/* Those that come again take none. */
	connect_at(0, 0);
	b->qp.max_dest_rd_atomic = 1;
	for (unsigned i = 0; i < 4; i++) {
		struct packet p = { .opcode = BTH_READ_REQ, .psn = i == 3, .pkey = 0xffff,
				    .va = addr(mem_b), .rkey = key_b, .dmalen = 100 };

		rc_receive(&b->qp, &nobody, &p, NULL, 0);
		if (!i)
			assert_true(fake_settle());
	}
	assert_int_equal(b->qp.state, HCA_QPS_RTS);
	assert_true(fake_settle());
	assert_int_equal(fake_sent(), 4);
	b->qp.max_dest_rd_atomic = 16;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_packet),	     cmocka_unit_test(test_many_packets),
		cmocka_unit_test(test_success_before_error), cmocka_unit_test(test_old_answers),
		cmocka_unit_test(test_out_of_sequence_while_waiting),
		cmocka_unit_test(test_retries_reset),	     cmocka_unit_test(test_longest_message),
		cmocka_unit_test(test_bad_requests),	     cmocka_unit_test(test_nak_once),
		cmocka_unit_test(test_too_many_reads),	     cmocka_unit_test(test_ack_of_duplicate),
		cmocka_unit_test(test_error_is_silent),	     cmocka_unit_test(test_reserved_nak),
		cmocka_unit_test(test_not_granted),
	};

	return cmocka_run_group_tests(tests, setup, NULL) ? 1 : 0;
}
