/* SPDX-License-Identifier: BSD-3-Clause */
/* WAIT, packet by packet: what stands behind it is carried out when the other queue's CQE is there,
 * without another doorbell, once, whatever is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fakewire.h"
#include "softhca/transport/rc.h"

enum { BUF = 4096, MTU = 256, LEN = 600 };

static struct sim_qp *a, *b; /* a waits */
static struct sim_qp *c, *d; /* for c's */
static uint8_t *src, *dst;
static uint32_t skey, dkey, posted; /* CQEs of c so far */

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void start(void)
{
	fake_policy = NULL;
	fake_clear();
	sim_reset(a);
	sim_reset(b);
	sim_pair(a, b);
	memset(dst, 0, BUF);
	for (unsigned i = 0; i < BUF; i++)
		src[i] = (uint8_t)(i * 7 + (i >> 8));
}

static bool at_work(const struct sim_qp *q)
{
	const struct hca_rc *rc = q->qp.rc;

	if (rc->waits && req_at((struct hca_rc *)rc, rc->head)->opcode == WQE_WAIT)
		return false;
	return q->qp.state == HCA_QPS_RTS && (q->qp.sq_ci != (uint16_t)q->pi || rc->head != rc->tail);
}

static void settle(void)
{
	int rounds = 0;

	do {
		assert_true(fake_settle());
		rc_timer(&a->qp, UINT64_MAX);
		rc_timer(&c->qp, UINT64_MAX);
	} while ((at_work(a) || at_work(c)) && ++rounds < 400);
	assert_true(rounds < 400);
}

static void expect(struct sim_qp *q, uint8_t opcode, uint8_t syndrome)
{
	struct sim_cqe e;

	assert_true(sim_poll(q, &e, 0));
	assert_int_equal(e.opcode, opcode);
	assert_int_equal(e.type, syndrome ? CQE_REQ_ERR : CQE_REQ);
	assert_int_equal(e.syndrome, syndrome);
}

static void other(void)
{
	struct sim_cqe e;

	sim_write(c, addr(dst), dkey, src, LEN, skey, 1);
	sim_ring(c);
	settle();
	assert_true(sim_poll(c, &e, 0));
	posted++;
}

static unsigned hit_at;
static struct fake_fate hit;

static struct fake_fate hit_one(unsigned n, const struct packet *p)
{
	(void)p;
	return n == hit_at ? hit : (struct fake_fate){ FAKE_PASS, 0 };
}

/* Two of the other's entries from now. */
static void wait_for_two(void)
{
	struct sim_cqe e;

	start();
	fake_policy = hit_one;
	sim_write(a, addr(dst + 1024), dkey, src, LEN, skey, 1);
	sim_wait(a, c->scq.cqn, posted + 1, 1);
	sim_write(a, addr(dst + 2048), dkey, src + 1024, LEN, skey, 1);
	sim_ring(a);
	settle();
	expect(a, WQE_WRITE, 0);
	other();
	assert_false(sim_poll(a, &e, 0));
	assert_int_equal(dst[2048] | dst[2049], 0);
	src[1024] ^= 0xff; /* its payload is read behind the WAIT */
	other();
	settle();
	expect(a, WQE_WAIT, 0);
	expect(a, WQE_WRITE, 0);
	assert_memory_equal(dst + 1024, src, LEN);
	assert_memory_equal(dst + 2048, src + 1024, LEN);
	sim_wait(a, c->scq.cqn, posted - 1, 1); /* long there */
	sim_ring(a);
	settle();
	expect(a, WQE_WAIT, 0);
}

static void test_each_packet(void **state)
{
	static const struct fake_fate fates[] = { { FAKE_DROP, 0 }, { FAKE_DUP, 3 }, { FAKE_LATE, 4 } };

	(void)state;
	for (unsigned f = 0; f < sizeof(fates) / sizeof(*fates); f++)
		for (hit_at = 0; hit_at < 24; hit_at++) {
			hit = fates[f];
			wait_for_two();
		}
}

/* A lost packet in front of it, and it is over when that goes again. */
static void test_lost_before(void **state)
{
	(void)state;
	start();
	fake_policy = hit_one;
	hit_at = 0;
	hit = (struct fake_fate){ FAKE_DROP, 0 };
	sim_write(a, addr(dst + 1024), dkey, src, LEN, skey, 1);
	sim_wait(a, c->scq.cqn, posted - 1, 1);
	sim_write(a, addr(dst + 2048), dkey, src, LEN, skey, 1);
	sim_ring(a);
	settle();
	expect(a, WQE_WRITE, 0);
	expect(a, WQE_WAIT, 0);
	expect(a, WQE_WRITE, 0);
	assert_memory_equal(dst + 1024, src, LEN);
	assert_memory_equal(dst + 2048, src, LEN);
}

static void test_refused(void **state)
{
	static const struct { unsigned at; uint8_t change; } wrong[] = {
		{ 0, 1 },  /* opmod: for data in memory */
		{ 7, 1 },  /* ds */
		{ 29, 9 }, /* no such CQ */
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		start();
		sim_wait(a, c->scq.cqn, 0, 1);
		a->qp.sq[wrong[i].at] ^= wrong[i].change;
		sim_ring(a);
		settle();
		expect(a, WQE_WAIT, SYND_LOCAL_QP_OP);
	}
}

static int setup(void **state)
{
	(void)state;
	sim_init_idle();
	src = malloc(BUF);
	dst = malloc(BUF);
	skey = sim_mr(src, BUF, 0xf, 1, addr(src));
	dkey = sim_mr(dst, BUF, 0x1f, 1, addr(dst));
	a = sim_qp(4, SIM_CQ_RING);
	b = sim_qp(4, SIM_CQ_RING);
	c = sim_qp(4, SIM_CQ_RING);
	d = sim_qp(4, SIM_CQ_RING);
	a->qp.mtu = b->qp.mtu = c->qp.mtu = d->qp.mtu = MTU;
	sim_pair(c, d);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_packet),
		cmocka_unit_test(test_lost_before),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
