/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in the middle of which something changes: memory that goes while it is read or written, a
 * queue that stops, repetitions that are cut otherwise. IBTA volume 1, section 9.7. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fakewire.h"
#include "softhca/transport/rc.h"

enum { BUF = 1 << 15, MTU = 256 };

static const struct wire_dest nobody = { .kind = WIRE_LOCAL };

static struct sim_qp *a, *b;
static uint8_t *mem_a, *mem_b;
static uint32_t key_a, key_b;
static struct packet last_ack;
static uint32_t passing;    /* key of a region that goes when */
static unsigned passes_at; /* so many packets of READ answers, or of UC, have left */

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static struct fake_fate note_ack(unsigned n, const struct packet *p)
{
	(void)n;
	if (packet_op(p) == BTH_ACK)
		last_ack = *p;
	if (((packet_op(p) >= BTH_READ_RESP_FIRST && packet_op(p) <= BTH_READ_RESP_ONLY) ||
	     packet_class(p) == BTH_UC) && passes_at && !--passes_at)
		sim_mr_remove(passing);
	return (struct fake_fate){ FAKE_PASS, 0 };
}

static void start(enum hca_qp_type type)
{
	if (a) {
		sim_qp_free(a);
		sim_qp_free(b);
	}
	fake_clear();
	fake_policy = note_ack;
	a = sim_qp_as(type, 6, SIM_CQ_RING);
	b = sim_qp_as(type, 6, SIM_CQ_RING);
	a->qp.mtu = b->qp.mtu = MTU;
	a->qp.ack_timeout = b->qp.ack_timeout = 24; /* never */
	sim_pair(a, b);
	last_ack = (struct packet){ 0 };
}

static void expect(struct sim_qp *q, uint8_t syndrome)
{
	struct sim_cqe c;

	assert_true(sim_poll(q, &c, 0));
	assert_int_equal(c.syndrome, syndrome);
}

static void request(struct packet p, uint32_t len)
{
	struct iovec iov = { mem_a, len };

	p.pkey = PKEY_DEFAULT;
	p.len = len;
	rc_receive(&b->qp, &nobody, &p, &iov, len ? 1 : 0);
}

/* The region goes when some of a READ's answer has left: the NAK has the PSN of the answer that is
 * missing, so the requester knows which request failed. */
static void test_read_of_what_goes(void **state)
{
	(void)state;
	start(HCA_QP_RC);
	passing = sim_mr(mem_b, BUF, 0xf, 1, addr(mem_b));
	passes_at = 3;
	sim_write(a, addr(mem_b), key_b, mem_a, 8, key_a, 1);
	sim_read(a, addr(mem_b), passing, mem_a, 10 * MTU, key_a, 1);
	sim_read(a, addr(mem_b), key_b, mem_a, 3 * MTU, key_a, 1);
	sim_ring(a);
	assert_true(fake_settle());
	assert_int_equal(b->qp.state, HCA_QPS_ERR);
	assert_int_equal(last_ack.syndrome, AETH_NAK_ACCESS);
	assert_int_equal(last_ack.psn, 1 + 3);
	expect(a, 0);
	expect(a, SYND_REMOTE_ACCESS);
	expect(a, SYND_FLUSH);
}

/* Or before the first of it has: what was asked for ahead is answered, what comes behind is not. */
static void test_second_read(void **state)
{
	struct packet read = { .opcode = BTH_READ_REQ, .va = addr(mem_b), .rkey = key_b,
			       .dmalen = 2 * MTU };

	(void)state;
	start(HCA_QP_RC);
	request(read, 0);
	read.psn = 2;
	read.rkey = passing = sim_mr(mem_b, BUF, 0xf, 1, addr(mem_b));
	passes_at = 1;
	request(read, 0);
	request((struct packet){ .opcode = BTH_WRITE_ONLY, .psn = 4, .va = addr(mem_b), .rkey = key_b,
				 .dmalen = 4, .ackreq = true }, 4);
	assert_true(fake_settle());
	assert_int_equal(fake_sent(), 3);
	assert_int_equal(last_ack.syndrome, AETH_NAK_ACCESS);
	assert_int_equal(last_ack.psn, 2);
	assert_int_equal(b->qp.state, HCA_QPS_ERR);
}

/* The region goes in the middle of a WRITE with immediate: the receive that waits is flushed. */
static void test_write_to_what_goes(void **state)
{
	uint32_t key = sim_mr(mem_b, BUF, 0xf, 1, addr(mem_b));
	struct sim_cqe c;

	(void)state;
	start(HCA_QP_RC);
	sim_recv(b, mem_b, 100, key_b);
	request((struct packet){ .opcode = BTH_WRITE_FIRST, .va = addr(mem_b), .rkey = key,
				 .dmalen = MTU + 4 }, MTU);
	sim_mr_remove(key);
	request((struct packet){ .opcode = BTH_WRITE_LAST_IMM, .psn = 1 }, 4);
	assert_true(fake_settle());
	assert_int_equal(b->qp.state, HCA_QPS_ERR);
	assert_int_equal(last_ack.syndrome, AETH_NAK_ACCESS);
	assert_true(sim_poll_recv(b, &c, 0));
	assert_int_equal(c.syndrome, SYND_FLUSH);
	assert_false(sim_poll_recv(b, &c, 0));
}

/* A repetition that begins with what is here and goes on with what is not, behind a NAK that was lost. */
static void test_overlap_behind_lost_nak(void **state)
{
	(void)state;
	start(HCA_QP_RC);
	for (uint32_t psn = 0; psn < 4; psn++)
		request((struct packet){ .opcode = BTH_WRITE_ONLY, .psn = psn, .va = addr(mem_b),
					 .rkey = key_b, .dmalen = 4 }, 4);
	request((struct packet){ .opcode = BTH_WRITE_ONLY, .psn = 6, .va = addr(mem_b),
				 .rkey = key_b, .dmalen = 4 }, 4);
	assert_true(fake_settle());
	assert_int_equal(last_ack.syndrome, AETH_NAK_SEQ);
	last_ack = (struct packet){ 0 };
	request((struct packet){ .opcode = BTH_WRITE_FIRST, .psn = 2, .more = 3, .va = addr(mem_b),
				 .rkey = key_b, .dmalen = 8 * MTU }, 4 * MTU);
	assert_true(fake_settle());
	assert_int_equal(last_ack.syndrome, AETH_NAK_SEQ);
	assert_int_equal(last_ack.psn, 4);
	assert_int_equal(b->qp.state, HCA_QPS_RTS);
}

/* A READ that names PSNs of before, but more bytes than any message has. */
static void test_huge_duplicate(void **state)
{
	uint32_t huge = sim_mr(mem_b, 1ull << 33, 0xf, 1, 0);

	(void)state;
	start(HCA_QP_RC);
	for (uint32_t psn = 0; psn < 2; psn++)
		request((struct packet){ .opcode = BTH_WRITE_ONLY, .psn = psn, .va = addr(mem_b),
					 .rkey = key_b, .dmalen = 4 }, 4);
	request((struct packet){ .opcode = BTH_READ_REQ, .rkey = huge, .dmalen = UINT32_MAX }, 0);
	assert_int_equal(b->qp.rc->rs.resp_head, b->qp.rc->rs.resp_tail);
	sim_mr_remove(huge);
}

/* The send queue of a UC QP stops in the middle of a message, and goes on with others. */
static void test_queue_goes_on(void **state)
{
	struct sim_cqe c;

	(void)state;
	start(HCA_QP_UC);
	passing = sim_mr(mem_a, BUF, 0xf, 1, addr(mem_a));
	passes_at = 70;
	sim_write(a, addr(mem_b), key_b, mem_a, BUF, passing, 1);
	sim_ring(a);
	assert_true(fake_settle());
	assert_int_equal(fake_sent(), 70);
	expect(a, SYND_LOCAL_PROT);
	assert_int_equal(a->qp.state, HCA_QPS_SQER);
	a->qp.state = HCA_QPS_RTS;
	dp_qp_modified(&a->qp, HCA_QPS_SQER);
	for (unsigned i = 0; i < 3; i++) {
		memset(mem_a, (int)i + 1, 3 * MTU);
		sim_write(a, addr(mem_b), key_b, mem_a, 3 * MTU, key_a, 1);
		sim_ring(a);
		assert_true(fake_settle());
		expect(a, 0);
		assert_memory_equal(mem_a, mem_b, 3 * MTU);
	}
	assert_false(sim_poll(a, &c, 0));
}

static int setup(void **state)
{
	(void)state;
	sim_init_idle();
	mem_a = calloc(1, BUF);
	mem_b = calloc(1, BUF);
	key_a = sim_mr(mem_a, BUF, 0xf, 1, addr(mem_a));
	key_b = sim_mr(mem_b, BUF, 0xf, 1, addr(mem_b));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_of_what_goes),
		cmocka_unit_test(test_second_read),
		cmocka_unit_test(test_write_to_what_goes),
		cmocka_unit_test(test_overlap_behind_lost_nak),
		cmocka_unit_test(test_huge_duplicate),
		cmocka_unit_test(test_queue_goes_on),
	};

	return cmocka_run_group_tests(tests, setup, NULL) ? 1 : 0;
}
