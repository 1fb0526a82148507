/* SPDX-License-Identifier: BSD-3-Clause */
/* The transports without answers: UC gives whole messages or nothing, UD one
 * packet with its sender; nothing that goes wrong on the way is an error. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fakewire.h"
#include "softhca/transport/rc.h"

enum { BUF = 1 << 15, MTU = 256, GRH = 40 };

static struct sim_qp *uc_a, *uc_b, *ud_a, *ud_b;
static uint8_t *src, *dst;
static uint32_t skey, dkey;
static unsigned drop_from, drop_to; /* packets lost, by number */

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static struct fake_fate lose(unsigned n, const struct packet *p)
{
	(void)p;
	return (struct fake_fate){ n >= drop_from && n < drop_to ? FAKE_DROP : FAKE_PASS, 0 };
}

static void start(struct sim_qp *x, struct sim_qp *y, uint32_t psn)
{
	fake_policy = NULL;
	fake_clear();
	drop_from = drop_to = 0;
	sim_reset(x);
	sim_reset(y);
	x->qp.sq_psn = y->qp.rq_psn = psn;
	x->qp.rq_psn = y->qp.sq_psn = psn;
	sim_pair(x, y);
	memset(dst, 0, BUF);
	for (unsigned i = 0; i < BUF; i++)
		src[i] = (uint8_t)(i * 7 + (i >> 8) + psn);
}

static void expect_sent(struct sim_qp *q, unsigned n)
{
	struct sim_cqe c;

	while (n--) {
		assert_true(sim_poll(q, &c, 0));
		assert_int_equal(c.type, CQE_REQ);
	}
	assert_false(sim_poll(q, &c, 0));
}

static void test_uc_whole(void **state)
{
	struct sim_cqe c;

	(void)state;
	start(uc_a, uc_b, 0xfffffd); /* wraps */
	sim_recv(uc_b, dst, 2000, dkey);
	sim_recv(uc_b, dst, 2000, dkey);
	sim_recv(uc_b, dst, 10, dkey);
	sim_send(uc_a, src, 600, skey, 1);
	sim_write(uc_a, addr(dst + 4000), dkey, src, 1000, skey, 1);
	sim_send_imm(uc_a, src + 1, 256, skey, 77, 1);
	sim_write_imm(uc_a, addr(dst + 8000), dkey, src, 513, skey, 78, 1);
	sim_ring(uc_a);
	assert_true(fake_settle());
	expect_sent(uc_a, 4);
	assert_true(sim_poll_recv(uc_b, &c, 0));
	assert_int_equal(c.type, CQE_RESP_SEND);
	assert_int_equal(c.byte_cnt, 600);
	assert_true(sim_poll_recv(uc_b, &c, 0));
	assert_int_equal(c.type, CQE_RESP_SEND_IMM);
	assert_int_equal(c.imm, 77);
	assert_true(sim_poll_recv(uc_b, &c, 0));
	assert_int_equal(c.type, CQE_RESP_WRITE_IMM);
	assert_int_equal(c.imm, 78);
	assert_int_equal(c.byte_cnt, 513);
	assert_false(sim_poll_recv(uc_b, &c, 0));
	assert_memory_equal(dst, src + 1, 256);
	assert_memory_equal(dst + 256, src + 256, 344);
	assert_memory_equal(dst + 4000, src, 1000);
	assert_memory_equal(dst + 8000, src, 513);
}

/* Messages of three packets; those that lose one are not there, the others are
 * whole, and a receive serves the next message. */
static void test_uc_losses(void **state)
{
	struct sim_cqe c;

	(void)state;
	for (unsigned from = 0; from < 9; from++) {
		for (unsigned n = 1; from + n <= 9; n++) {
			unsigned first_lost = from / 3, last_lost = (from + n - 1) / 3;

			start(uc_a, uc_b, 100 * from + n);
			drop_from = from;
			drop_to = from + n;
			fake_policy = lose;
			for (unsigned m = 0; m < 3; m++) {
				sim_recv(uc_b, dst + 1000 * m, 1000, dkey);
				sim_send(uc_a, src + 1000 * m, 600, skey, 1);
			}
			sim_ring(uc_a);
			assert_true(fake_settle());
			expect_sent(uc_a, 3);
			for (unsigned m = 0, at = 0; m < 3; m++) {
				if (m >= first_lost && m <= last_lost)
					continue;
				assert_true(sim_poll_recv(uc_b, &c, 0));
				assert_int_equal(c.type, CQE_RESP_SEND);
				assert_int_equal(c.byte_cnt, 600);
				assert_int_equal(c.counter, at);
				assert_memory_equal(dst + 1000 * at, src + 1000 * m, 600);
				at++;
			}
			assert_false(sim_poll_recv(uc_b, &c, 0));
			assert_int_equal(uc_b->qp.state, HCA_QPS_RTS);
		}
	}
}

static void test_uc_silence(void **state)
{
	unsigned events = sim_async_events();
	struct sim_cqe c;

	(void)state;
	start(uc_a, uc_b, 5);
	sim_send(uc_a, src, 600, skey, 1);			 /* nothing posted */
	sim_write(uc_a, addr(dst), dkey ^ 1, src, 600, skey, 1); /* no such key */
	sim_write(uc_a, addr(dst) + BUF - 10, dkey, src, 11, skey, 1);
	uc_b->qp.access = 0;
	sim_write(uc_a, addr(dst), dkey, src, 0, skey, 1);
	sim_ring(uc_a);
	assert_true(fake_settle());
	expect_sent(uc_a, 4);
	sim_recv(uc_b, dst, 600, dkey);
	sim_write_imm(uc_a, 0, 0, NULL, 0, 0, 7, 1); /* of nothing, but a WRITE */
	sim_ring(uc_a);
	assert_true(fake_settle());
	expect_sent(uc_a, 1);
	assert_false(sim_poll_recv(uc_b, &c, 0));
	sim_write(uc_a, addr(dst), dkey, src, 300, skey, 1); /* not allowed by the QP */
	sim_ring(uc_a);
	assert_true(fake_settle());
	expect_sent(uc_a, 1);
	uc_b->qp.access = HCA_REMOTE_WRITE;
	assert_int_equal(dst[0], 0);
	assert_int_equal(fake_sent(), 3 + 3 + 1 + 1 + 1 + 2);
	/* And yet it works. */
	sim_send(uc_a, src, 600, skey, 1);
	sim_ring(uc_a);
	assert_true(fake_settle());
	expect_sent(uc_a, 1);
	assert_true(sim_poll_recv(uc_b, &c, 0));
	assert_int_equal(c.type, CQE_RESP_SEND);
	assert_memory_equal(dst, src, 600);
	assert_int_equal(sim_async_events(), events);
}

/* An error of the send queue stops it and leaves receiving alone. */
static void send_queue_error(struct sim_qp *a, struct sim_qp *b)
{
	unsigned grh = a == ud_a ? GRH : 0;
	struct sim_cqe c;

	if (grh)
		sim_to(a, b->qp.qpn, (uint64_t)b->qp.qkey << 32);
	sim_send(a, src, 10, skey ^ 1, 1);
	if (grh)
		sim_to(a, b->qp.qpn, (uint64_t)b->qp.qkey << 32);
	sim_send(a, src, 10, skey, 1);
	sim_ring(a);
	assert_true(fake_settle());
	assert_true(sim_poll(a, &c, 0));
	assert_int_equal(c.syndrome, SYND_LOCAL_PROT);
	assert_true(sim_poll(a, &c, 0));
	assert_int_equal(c.syndrome, SYND_FLUSH);
	assert_int_equal(a->qp.state, HCA_QPS_SQER);
	sim_recv(a, dst, 100, dkey);
	if (grh)
		sim_to(b, a->qp.qpn, (uint64_t)a->qp.qkey << 32);
	sim_send(b, src, 10, skey, 1);
	sim_ring(b);
	assert_true(fake_settle());
	expect_sent(b, 1);
	assert_true(sim_poll_recv(a, &c, 0));
	assert_int_equal(c.byte_cnt, 10 + grh);
	a->qp.state = HCA_QPS_RTS;
	dp_qp_modified(&a->qp, HCA_QPS_SQER);
	if (grh)
		sim_to(a, b->qp.qpn, (uint64_t)b->qp.qkey << 32);
	sim_recv(b, dst, 100, dkey);
	sim_send(a, src, 10, skey, 1);
	sim_ring(a);
	assert_true(fake_settle());
	expect_sent(a, 1);
	assert_true(sim_poll_recv(b, &c, 0));
	assert_int_equal(c.type, CQE_RESP_SEND);
}

static void test_send_queue_error(void **state)
{
	(void)state;
	start(uc_a, uc_b, 1);
	send_queue_error(uc_a, uc_b);
	start(ud_a, ud_b, 1);
	send_queue_error(ud_a, ud_b);
}

static void test_ud(void **state)
{
	uint64_t violations = hca_stats.qkey_violations;
	struct sim_cqe c;

	(void)state;
	start(ud_a, ud_b, 9);
	sim_recv(ud_b, dst, 1000, dkey);
	sim_recv(ud_b, dst + 1000, 1000, dkey);
	sim_recv(ud_b, dst + 2000, GRH, dkey);
	sim_to(ud_a, ud_b->qp.qpn, 0x11111111ull << 32);
	sim_send(ud_a, src, 100, skey, 1);
	sim_to(ud_a, ud_b->qp.qpn, 0x22222222ull << 32); /* another key: nobody hears it */
	sim_send(ud_a, src + 1, 100, skey, 1);
	sim_to(ud_a, ud_b->qp.qpn, 0x80000000ull << 32); /* the QP's own */
	sim_send_imm(ud_a, src + 2, MTU, skey, 0xabcd, 1);
	sim_to(ud_a, ud_b->qp.qpn, 0x11111111ull << 32);
	sim_send(ud_a, src, 0, skey, 1);
	sim_to(ud_a, ud_b->qp.qpn, 0x11111111ull << 32); /* no receive for this one */
	sim_send(ud_a, src, 8, skey, 1);
	sim_ring(ud_a);
	assert_true(fake_settle());
	expect_sent(ud_a, 5);
	assert_int_equal(hca_stats.qkey_violations, violations + 1);
	assert_true(sim_poll_recv(ud_b, &c, 0));
	assert_int_equal(c.type, CQE_RESP_SEND);
	assert_int_equal(c.byte_cnt, 100 + GRH);
	assert_int_equal(c.flags_rqpn & 0xffffff, ud_a->qp.qpn);
	assert_int_equal(c.flags_rqpn >> 28 & 3, 1);
	assert_memory_equal(dst + GRH, src, 100);
	assert_true(sim_poll_recv(ud_b, &c, 0));
	assert_int_equal(c.type, CQE_RESP_SEND_IMM);
	assert_int_equal(c.imm, 0xabcd);
	assert_memory_equal(dst + 1000 + GRH, src + 2, MTU);
	assert_true(sim_poll_recv(ud_b, &c, 0));
	assert_int_equal(c.byte_cnt, GRH);
	assert_false(sim_poll_recv(ud_b, &c, 0));
}

static void test_ud_errors(void **state)
{
	struct sim_cqe c;

	(void)state;
	start(ud_a, ud_b, 9);
	sim_to(ud_a, ud_b->qp.qpn, 0x11111111ull << 32);
	sim_send(ud_a, src, MTU + 1, skey, 1); /* longer than a packet */
	sim_ring(ud_a);
	assert_true(fake_settle());
	assert_true(sim_poll(ud_a, &c, 0));
	assert_int_equal(c.syndrome, SYND_LOCAL_LENGTH);
	start(ud_a, ud_b, 9);
	sim_to(ud_a, ud_b->qp.qpn, 0x11111111ull << 32);
	sim_write(ud_a, addr(dst), dkey, src, 10, skey, 1);
	sim_ring(ud_a);
	assert_true(fake_settle());
	assert_true(sim_poll(ud_a, &c, 0));
	assert_int_equal(c.syndrome, SYND_LOCAL_QP_OP);
	/* A receive without room for the header: the receiver's mistake. */
	start(ud_a, ud_b, 9);
	sim_recv(ud_b, dst, 100 + GRH - 1, dkey);
	sim_recv(ud_b, dst, 1000, dkey);
	sim_to(ud_a, ud_b->qp.qpn, 0x11111111ull << 32);
	sim_send(ud_a, src, 100, skey, 1);
	sim_ring(ud_a);
	assert_true(fake_settle());
	expect_sent(ud_a, 1);
	assert_true(sim_poll_recv(ud_b, &c, 0));
	assert_int_equal(c.syndrome, SYND_LOCAL_LENGTH);
	assert_true(sim_poll_recv(ud_b, &c, 0));
	assert_int_equal(c.syndrome, SYND_FLUSH);
	assert_int_equal(ud_b->qp.state, HCA_QPS_ERR);
}

/* Packets of one transport are nothing to a QP of another. */
static void test_other_transports(void **state)
{
	static const uint8_t opcodes[] = { BTH_SEND_ONLY, BTH_ACK, BTH_WRITE_ONLY,
					   BTH_UC | BTH_SEND_ONLY, BTH_UC | BTH_WRITE_ONLY,
					   BTH_UD_SEND_ONLY };
	const struct wire_dest from = { .kind = WIRE_LOCAL };
	struct iovec iov = { src, 8 };
	struct sim_cqe c;

	(void)state;
	start(uc_a, uc_b, 0);
	start(ud_a, ud_b, 0);
	sim_recv(uc_b, dst, 100, dkey);
	sim_recv(ud_b, dst, 100, dkey);
	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		struct packet p = { .opcode = opcodes[i], .pkey = 0xffff, .len = 8, .va = addr(dst + 500),
				    .rkey = dkey, .dmalen = 8, .qkey = 0x11111111 };

		if ((opcodes[i] & BTH_CLASS) != BTH_UC)
			rc_receive(&uc_b->qp, &from, &p, &iov, 1);
		if ((opcodes[i] & BTH_CLASS) != BTH_UD)
			rc_receive(&ud_b->qp, &from, &p, &iov, 1);
	}
	assert_true(fake_settle());
	assert_int_equal(fake_sent(), 0);
	assert_false(sim_poll_recv(uc_b, &c, 0));
	assert_false(sim_poll_recv(ud_b, &c, 0));
	assert_int_equal(dst[500], 0);
}

/* The upper bit of a partition key is membership: the table's is a full member. */
static void test_partition(void **state)
{
	static const uint16_t keys[] = { 0x7ffe, 0xfffe, 0, 0x8000, 0x7fff, 0xffff };
	const struct wire_dest from = { .kind = WIRE_LOCAL };
	struct iovec iov = { src, 8 };
	struct sim_cqe c;

	(void)state;
	start(ud_a, ud_b, 0);
	for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		uint64_t before = hca_stats.pkey_violations;
		struct packet p = { .opcode = BTH_UD_SEND_ONLY, .pkey = keys[i], .len = 8,
				    .qkey = 0x11111111 };

		sim_recv(ud_b, dst, 100, dkey);
		rc_receive(&ud_b->qp, &from, &p, &iov, 1);
		assert_int_equal(sim_poll_recv(ud_b, &c, 0), i >= 4);
		assert_int_equal(hca_stats.pkey_violations - before, i < 4);
	}
}

static int setup(void **state)
{
	(void)state;
	sim_init_idle();
	src = malloc(BUF);
	dst = malloc(BUF);
	skey = sim_mr(src, BUF, 0xf, 1, addr(src));
	dkey = sim_mr(dst, BUF, 0xf, 1, addr(dst));
	uc_a = sim_qp_as(HCA_QP_UC, 4, SIM_CQ_RING);
	uc_b = sim_qp_as(HCA_QP_UC, 4, SIM_CQ_RING);
	ud_a = sim_qp_as(HCA_QP_UD, 6, SIM_CQ_RING);
	ud_b = sim_qp_as(HCA_QP_UD, 6, SIM_CQ_RING);
	uc_a->qp.mtu = uc_b->qp.mtu = ud_a->qp.mtu = ud_b->qp.mtu = MTU;
	ud_a->qp.qkey = ud_b->qp.qkey = 0x11111111;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uc_whole),	   cmocka_unit_test(test_uc_losses),
		cmocka_unit_test(test_uc_silence),	   cmocka_unit_test(test_send_queue_error),
		cmocka_unit_test(test_ud),		   cmocka_unit_test(test_ud_errors),
		cmocka_unit_test(test_other_transports),  cmocka_unit_test(test_partition),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
