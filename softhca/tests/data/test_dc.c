/* SPDX-License-Identifier: BSD-3-Clause */
/* Dynamically connected transport, packet by packet: one initiator and several
 * targets in turn, several initiators and one target; every single packet of an
 * exchange lost, doubled, late; what is refused, and whom that concerns. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "finish.h"
#include "softhca/transport/rc.h"

enum { BUF = 1 << 16, MTU = 256, WORDS = 60000, DCIS = 2, DCTS = 3 };

static const uint64_t KEY = 0x1122334455667788;

static struct sim_qp *dci[DCIS], *dct[DCTS];
static uint8_t *src, *dst[DCTS];
static uint32_t skey, dkey[DCTS];

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static uint64_t *word(uint8_t *mem, unsigned i)
{
	return (uint64_t *)(void *)(mem + WORDS) + i;
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static void start(uint32_t psn)
{
	fake_policy = NULL;
	fake_clear();
	for (unsigned i = 0; i < DCTS; i++) {
		sim_reset(dct[i]);
		dct[i]->qp.dc_key = KEY + i;
		dct[i]->qp.dc_violations = 0;
		sim_listen(dct[i]);
		memset(dst[i], 0, BUF);
	}
	for (unsigned i = 0; i < DCIS; i++) {
		sim_reset(dci[i]);
		dci[i]->qp.sq_psn = psn_add(psn, i);
		sim_connect(dci[i], 0);
	}
	fill(src, 30000, psn);
	memset(word(src, 0), 0, 64);
}

/* The next request of this DCI is for this DCT. */
static void to(unsigned i, unsigned t)
{
	sim_to(dci[i], dct[t]->qp.qpn, KEY + t);
}

static void expect(unsigned i, uint8_t opcode)
{
	struct sim_cqe c;

	assert_true(sim_poll(dci[i], &c, 0));
	assert_int_equal(c.type, CQE_REQ);
	assert_int_equal(c.opcode, opcode);
}

static void expect_error(unsigned i, uint8_t syndrome, uint8_t vendor)
{
	struct sim_cqe c;

	assert_true(sim_poll(dci[i], &c, 0));
	assert_int_equal(c.type, CQE_REQ_ERR);
	assert_int_equal(c.syndrome, syndrome);
	assert_int_equal(c.vendor, vendor);
	assert_int_equal(dci[i]->qp.state, HCA_QPS_ERR);
}

static void nothing_more(void)
{
	struct sim_cqe c;

	for (unsigned i = 0; i < DCIS; i++)
		assert_false(sim_poll(dci[i], &c, 0));
	for (unsigned i = 0; i < DCTS; i++) {
		assert_false(sim_poll_recv(dct[i], &c, 0));
		assert_int_equal(dct[i]->qp.state, HCA_QPS_RTR);
	}
}

/* Until all have finished; time passes whenever nothing else happens. */
static bool finish(void)
{
	for (int waits = 0; waits < 400; waits++) {
		bool busy = false;

		if (!fake_settle())
			return false;
		for (unsigned i = 0; i < DCIS; i++) {
			busy |= fake_at_work(dci[i]);
			rc_timer(&dci[i]->qp, UINT64_MAX);
		}
		if (!busy)
			return true;
	}
	return false;
}

/* ---- an exchange of all operations with three targets ---- */

static void post_all(void)
{
	struct sim_qp *q = dci[0];

	*word(dst[0], 0) = 100;
	*word(dst[1], 0) = 5;
	fill(dst[2] + 10000, 5000, 9);
	sim_recv(dct[0], dst[0] + 4000, 1000, dkey[0]);
	sim_recv(dct[1], dst[1] + 4000, 1000, dkey[1]);
	sim_recv(dct[1], NULL, 0, 0x100);
	to(0, 0);
	sim_write(q, addr(dst[0]), dkey[0], src, 700, skey, 1);
	to(0, 0);
	sim_fetch_add(q, addr(word(dst[0], 0)), dkey[0], word(src, 0), skey, 7, 1);
	to(0, 1);
	sim_send_imm(q, src + 1000, 600, skey, 0x1234, 1);
	to(0, 2);
	sim_read(q, addr(dst[2] + 10000), dkey[2], src + 40000, 17 * MTU + 5, skey, 1);
	to(0, 0);
	sim_send(q, src + 2000, 300, skey, 1);
	to(0, 1);
	sim_write_imm(q, addr(dst[1] + 6000), dkey[1], src + 3000, 513, skey, 0xabcd, 1);
	to(0, 1);
	sim_cmp_swap(q, addr(word(dst[1], 0)), dkey[1], word(src, 1), skey, 5, 6, 1);
	sim_nop(q, 1);
	to(0, 0);
	sim_masked(q, true, 8, addr(word(dst[0], 0)), dkey[0], word(src, 2), skey,
		   (uint64_t[]){ 1, 0, 0, 0 }, 1);
	to(0, 1);
	sim_masked(q, false, 4, addr(word(dst[1], 1)), dkey[1], word(src, 3), skey,
		   (uint64_t[]){ 9, 0, 0xffffffff, 0xffffffff }, 1);
	/* Another initiator, at the same time, to one of them. */
	to(1, 0);
	sim_write(dci[1], addr(dst[0] + 20000), dkey[0], src + 5000, 1000, skey, 1);
	to(1, 0);
	sim_fetch_add(dci[1], addr(word(dst[0], 1)), dkey[0], word(src, 4), skey, 1, 1);
	sim_ring(q);
	sim_ring(dci[1]);
}

static void check_received(unsigned t, uint8_t type, uint32_t len, uint32_t imm)
{
	struct sim_cqe c;

	assert_true(sim_poll_recv(dct[t], &c, 0));
	assert_int_equal(c.type, type);
	assert_int_equal(c.byte_cnt, len);
	assert_int_equal(c.imm, imm);
	assert_int_equal(c.qpn, dct[t]->qp.qpn);
}

static void check_all(void)
{
	static const uint8_t opcodes[] = { WQE_WRITE,	  WQE_FETCH_ADD, WQE_SEND_IMM, WQE_READ,
					   WQE_SEND,	  WQE_WRITE_IMM, WQE_CMP_SWAP, WQE_NOP,
					   WQE_MASKED_FETCH_ADD, WQE_MASKED_CMP_SWAP };

	assert_true(finish());
	for (unsigned i = 0; i < sizeof(opcodes); i++)
		expect(0, opcodes[i]);
	expect(1, WQE_WRITE);
	expect(1, WQE_FETCH_ADD);
	check_received(1, CQE_RESP_SEND_IMM, 600, 0x1234);
	check_received(0, CQE_RESP_SEND, 300, 0);
	check_received(1, CQE_RESP_WRITE_IMM, 513, 0xabcd);
	nothing_more();
	assert_memory_equal(dst[0], src, 700);
	assert_memory_equal(dst[1] + 4000, src + 1000, 600);
	assert_memory_equal(src + 40000, dst[2] + 10000, 17 * MTU + 5);
	assert_memory_equal(dst[0] + 4000, src + 2000, 300);
	assert_memory_equal(dst[1] + 6000, src + 3000, 513);
	assert_memory_equal(dst[0] + 20000, src + 5000, 1000);
	assert_int_equal(*word(dst[0], 0), 108);
	assert_int_equal(*word(dst[0], 1), 1);
	assert_int_equal(*word(dst[1], 0), 6);
	assert_int_equal(*word(dst[1], 1), 9);
	assert_int_equal(*word(src, 0), 100);
	assert_int_equal(*word(src, 1), 5);
	assert_int_equal(*word(src, 2), 107);
	assert_int_equal(*word(src, 4), 0);
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
	unsigned n = 40;

	(void)state;
	for (unsigned f = 0; f < sizeof(fates) / sizeof(*fates); f++) {
		for (hit_at = 0; hit_at < n; hit_at++) {
			start(psn_add(0, -hit_at % 40)); /* wraps at another place each time */
			hit = fates[f];
			fake_policy = hit_one;
			post_all();
			check_all();
			if (!f && !hit_at)
				n = fake_sent();
		}
	}
}

static uint32_t rng;

static struct fake_fate hit_some(unsigned n, const struct packet *p)
{
	(void)n;
	(void)p;
	rng = rng * 1664525u + 1013904223u;
	if (rng >> 24 > 50)
		return (struct fake_fate){ FAKE_PASS, 0 };
	return (struct fake_fate){ FAKE_DROP + (rng >> 16) % 3, (rng >> 8) % 30 };
}

static void test_many_packets(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 300; seed++) {
		start(seed * 7919);
		rng = seed;
		fake_policy = hit_some;
		post_all();
		check_all();
	}
}

/* ---- connections ---- */

/* In turn, so that each request connects anew; the results count without a gap. */
static void test_in_turn(void **state)
{
	(void)state;
	start(0xfffff0);
	for (unsigned i = 0; i < 300; i++) {
		for (unsigned t = 0; t < DCTS; t++) {
			to(0, t);
			sim_fetch_add(dci[0], addr(word(dst[t], 0)), dkey[t], word(src, t), skey, 1,
				      1);
		}
		sim_ring(dci[0]);
		assert_true(fake_settle());
		for (unsigned t = 0; t < DCTS; t++) {
			expect(0, WQE_FETCH_ADD);
			assert_int_equal(*word(src, t), i);
		}
	}
	nothing_more();
}

static uint8_t late_bytes[PKT_MAX];
static size_t late_len;

/* The first WRITE is kept, to come again. */
static struct fake_fate keep_first(unsigned n, const struct packet *p)
{
	struct packet copy = *p;

	if (n == 0) {
		late_len = packet_encode(&copy, late_bytes);
		memcpy(late_bytes + late_len, src, 8);
		late_len += 8 + PKT_ICRC_LEN;
	}
	return (struct fake_fate){ FAKE_PASS, 0 };
}

/* A packet of a connection that is over changes nothing. */
static void test_late_packet(void **state)
{
	unsigned sent;

	(void)state;
	start(77);
	fake_policy = keep_first;
	to(0, 0);
	sim_write(dci[0], addr(dst[0]), dkey[0], src, 8, skey, 1);
	to(0, 1);
	sim_write(dci[0], addr(dst[1]), dkey[1], src, 8, skey, 1);
	to(0, 0);
	sim_write(dci[0], addr(dst[0]), dkey[0], src + 100, 8, skey, 1);
	sim_ring(dci[0]);
	assert_true(fake_settle());
	for (unsigned i = 0; i < 3; i++)
		expect(0, WQE_WRITE);
	sent = fake_sent();
	fake_inject(late_bytes, late_len);
	assert_true(fake_settle());
	assert_memory_equal(dst[0], src + 100, 8);
	assert_int_equal(fake_sent(), sent);
	nothing_more();
}

/* ---- what is refused ---- */

/* Others go on, and the initiator too after a reset. */
static void still_alive(unsigned t)
{
	to(1, t);
	sim_write(dci[1], addr(dst[t] + 512), dkey[t], src, 600, skey, 1);
	sim_ring(dci[1]);
	sim_reset(dci[0]);
	sim_connect(dci[0], 0);
	to(0, t);
	sim_write(dci[0], addr(dst[t] + 2048), dkey[t], src, 600, skey, 1);
	sim_ring(dci[0]);
	assert_true(finish());
	expect(1, WQE_WRITE);
	expect(0, WQE_WRITE);
	assert_memory_equal(dst[t] + 512, src, 600);
	assert_memory_equal(dst[t] + 2048, src, 600);
	nothing_more();
}

static void test_wrong_key(void **state)
{
	unsigned events = sim_async_events();

	(void)state;
	for (int again = 0; again < 2; again++) {
		start(5);
		hit_at = 1; /* the answer, once more lost */
		hit = (struct fake_fate){ FAKE_DROP, 0 };
		fake_policy = again ? hit_one : NULL;
		sim_to(dci[0], dct[0]->qp.qpn, KEY + 1);
		sim_write(dci[0], addr(dst[0]), dkey[0], src, 100, skey, 1);
		sim_ring(dci[0]);
		assert_true(finish());
		expect_error(0, SYND_REMOTE_ACCESS, VEND_REMOTE_ACCESS);
		assert_int_equal(dst[0][0], 0);
		assert_int_equal(dct[0]->qp.dc_violations, 1);
		still_alive(0);
	}
	assert_int_equal(sim_async_events(), events);
}

static void test_refused(void **state)
{
	struct sim_cqe c;

	(void)state;
	start(6); /* a memory key */
	to(0, 0);
	sim_write(dci[0], addr(dst[0]), dkey[0] ^ 1, src, 100, skey, 1);
	sim_ring(dci[0]);
	assert_true(finish());
	expect_error(0, SYND_REMOTE_ACCESS, VEND_REMOTE_ACCESS);
	still_alive(0);
	start(7); /* an access that the target does not give */
	dct[0]->qp.access = HCA_REMOTE_WRITE;
	to(0, 0);
	sim_read(dci[0], addr(dst[0]), dkey[0], src + 40000, 8, skey, 1);
	sim_ring(dci[0]);
	assert_true(finish());
	expect_error(0, SYND_REMOTE_ACCESS, VEND_REMOTE_ACCESS);
	dct[0]->qp.access = 0xe;
	still_alive(0);
	start(8); /* a receive that is too short */
	sim_recv(dct[0], dst[0], 299, dkey[0]);
	to(0, 0);
	sim_send(dci[0], src, 300, skey, 1);
	sim_ring(dci[0]);
	assert_true(finish());
	assert_true(sim_poll_recv(dct[0], &c, 0));
	assert_int_equal(c.syndrome, SYND_LOCAL_LENGTH);
	expect_error(0, SYND_REMOTE_INVAL_REQ, VEND_REMOTE_INVAL);
	still_alive(0);
}

static void test_nobody(void **state)
{
	(void)state;
	start(9);
	sim_to(dci[0], dct[0]->qp.qpn + 100, KEY);
	sim_write(dci[0], addr(dst[0]), dkey[0], src, 100, skey, 1);
	sim_ring(dci[0]);
	assert_true(finish());
	expect_error(0, SYND_RETRY_EXC, VEND_RETRY);
	start(10); /* or it takes no one any more */
	dct[0]->qp.dc_drained = true;
	to(0, 0);
	sim_write(dci[0], addr(dst[0]), dkey[0], src, 100, skey, 1);
	sim_ring(dci[0]);
	assert_true(finish());
	expect_error(0, SYND_RETRY_EXC, VEND_RETRY);
	dct[0]->qp.dc_drained = false;
	still_alive(0);
}

static void test_no_receive(void **state)
{
	(void)state;
	start(11);
	dci[0]->qp.rnr_retry = 0;
	to(0, 0);
	sim_send(dci[0], src, 10, skey, 1);
	sim_ring(dci[0]);
	assert_true(finish());
	expect_error(0, SYND_RNR_RETRY_EXC, VEND_RNR_RETRY);
	dci[0]->qp.rnr_retry = 7;
	still_alive(0);
}

/* A message that stops half way gives its receive back, in error, when the initiator comes
 * with another connection. */
static void test_half_a_message(void **state)
{
	struct sim_cqe c;

	(void)state;
	start(12);
	sim_recv(dct[0], dst[0], 1000, dkey[0]);
	hit_at = 1;
	hit = (struct fake_fate){ FAKE_DROP, 0 };
	fake_policy = hit_one;
	to(0, 0);
	sim_send(dci[0], src, 600, skey, 1);
	sim_ring(dci[0]);
	for (unsigned i = 0; i < 4; i++)
		engine_round();
	sim_reset(dci[0]);
	fake_clear();
	fake_policy = NULL;
	sim_connect(dci[0], 0);
	to(0, 0);
	sim_write(dci[0], addr(dst[0] + 5000), dkey[0], src, 10, skey, 1);
	sim_ring(dci[0]);
	assert_true(finish());
	expect(0, WQE_WRITE);
	assert_true(sim_poll_recv(dct[0], &c, 0));
	assert_int_equal(c.syndrome, SYND_FLUSH);
	nothing_more();
}

/* Packets of one transport are nothing to a QP of another. */
static void test_other_transports(void **state)
{
	static const uint8_t opcodes[] = { BTH_SEND_ONLY, BTH_ACK, BTH_WRITE_ONLY, BTH_MASKED_ATOMIC,
					   BTH_UC | BTH_WRITE_ONLY, BTH_UD_SEND_ONLY,
					   BTH_DC | BTH_ACK };
	const struct wire_dest from = { .kind = WIRE_LOCAL };
	struct iovec iov = { src, 8 };

	(void)state;
	start(0);
	sim_recv(dct[0], dst[0], 100, dkey[0]);
	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		struct packet p = { .opcode = opcodes[i], .pkey = 0xffff, .len = 8, .rkey = dkey[0],
				    .va = addr(dst[0]), .dmalen = 8, .dc_key = KEY };

		rc_receive(&dct[0]->qp, &from, &p, &iov, 1);
		p.opcode = BTH_DC | BTH_WRITE_ONLY;
		rc_receive(&dci[0]->qp, &from, &p, &iov, 1);
	}
	assert_true(fake_settle());
	assert_int_equal(fake_sent(), 0);
	assert_int_equal(dst[0][0], 0);
	nothing_more();
}

/* More initiators than a target remembers: it hears no more of them, and stays. */
static void test_many_initiators(void **state)
{
	const struct wire_dest from = { .kind = WIRE_LOCAL };
	struct iovec iov = { src, 8 };

	(void)state;
	start(3);
	for (uint32_t i = 0; i < 3000; i++) {
		struct packet p = { .opcode = BTH_DC | BTH_WRITE_ONLY, .pkey = 0xffff, .len = 8,
				    .rkey = dkey[0], .va = addr(dst[0] + 8 * i), .dmalen = 8,
				    .dc_key = KEY, .sqpn = 0x5000 + i, .dqpn = dct[0]->qp.qpn };

		rc_receive(&dct[0]->qp, &from, &p, &iov, 1);
	}
	assert_true(fake_settle());
	assert_memory_equal(dst[0] + 8 * 1023, src, 8);
	assert_int_equal(*(uint64_t *)(void *)(dst[0] + 8 * 1024), 0);
	nothing_more();
}

static int setup(void **state)
{
	(void)state;
	sim_init_idle();
	src = malloc(BUF);
	skey = sim_mr(src, BUF, 0xf, 1, addr(src));
	for (unsigned i = 0; i < DCTS; i++) {
		dst[i] = malloc(BUF);
		dkey[i] = sim_mr(dst[i], BUF, 0xf, 1, addr(dst[i]));
		dct[i] = sim_qp_as(HCA_QP_DCT, 4, SIM_CQ_RING);
		dct[i]->qp.mtu = MTU;
	}
	for (unsigned i = 0; i < DCIS; i++) {
		dci[i] = sim_qp_as(HCA_QP_DCI, 6, SIM_CQ_RING);
		dci[i]->qp.mtu = MTU;
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_packet),	cmocka_unit_test(test_many_packets),
		cmocka_unit_test(test_in_turn),		cmocka_unit_test(test_late_packet),
		cmocka_unit_test(test_wrong_key),	cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nobody),		cmocka_unit_test(test_no_receive),
		cmocka_unit_test(test_half_a_message),	cmocka_unit_test(test_other_transports),
		cmocka_unit_test(test_many_initiators),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
