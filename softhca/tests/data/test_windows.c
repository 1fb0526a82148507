/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows and SEND with invalidate, packet by packet: what a window is bound to and
 * taken back from happens once, in order, whatever is lost. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "finish.h"

enum { BUF = 1 << 14, MTU = 256 };

static struct sim_qp *a, *b; /* b has the window */
static uint8_t *src, *dst;
static uint32_t skey, dkey, window;

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void start(uint32_t psn)
{
	fake_policy = NULL;
	fake_clear();
	sim_reset(a);
	sim_reset(b);
	a->qp.sq_psn = b->qp.rq_psn = psn;
	b->qp.sq_psn = a->qp.rq_psn = psn;
	sim_pair(a, b);
	memset(dst, 0, BUF);
	for (unsigned i = 0; i < BUF; i++)
		src[i] = (uint8_t)(i * 7 + (i >> 8) + psn);
}

static void expect(struct sim_qp *q, uint8_t opcode)
{
	struct sim_cqe c;

	assert_true(sim_poll(q, &c, 0));
	assert_int_equal(c.type, CQE_REQ);
	assert_int_equal(c.opcode, opcode);
}

static void expect_error(struct sim_qp *q, uint8_t opcode, uint8_t syndrome)
{
	struct sim_cqe c;

	assert_true(sim_poll(q, &c, 0));
	assert_int_equal(c.type, CQE_REQ_ERR);
	assert_int_equal(c.opcode, opcode);
	assert_int_equal(c.syndrome, syndrome);
}

static unsigned hit_at;
static struct fake_fate hit;

static struct fake_fate hit_one(unsigned n, const struct packet *p)
{
	(void)p;
	return n == hit_at ? hit : (struct fake_fate){ FAKE_PASS, 0 };
}

/* b binds behind a READ of its own, which it may wait for (fence); a writes by the window, takes it
 * back, and is refused. */
static void round_trip(uint32_t psn, uint8_t fence)
{
	static uint8_t variant;
	struct sim_cqe c;

	start(psn);
	fake_policy = hit_one;
	window = (window & ~0xffu) | ++variant;
	sim_recv(b, dst + 8192, 1000, dkey);
	sim_read(b, addr(src), skey, dst + 10000, 700, dkey, 1);
	b->fence = fence;
	sim_umr(b, window, true, dkey, dst + 4096, 1000, HCA_REMOTE_WRITE);
	b->fence = 0;
	sim_ring(b);
	assert_true(fake_finish(a, b));
	expect(b, WQE_READ);
	expect(b, WQE_UMR);
	assert_memory_equal(dst + 10000, src, 700);
	sim_write(a, addr(dst + 4096), window, src, 1000, skey, 1);
	sim_send_inv(a, src + 1000, 600, skey, window, 1);
	sim_ring(a);
	assert_true(fake_finish(a, b));
	expect(a, WQE_WRITE);
	expect(a, WQE_SEND_INV);
	assert_memory_equal(dst + 4096, src, 1000);
	assert_memory_equal(dst + 8192, src + 1000, 600);
	assert_true(sim_poll_recv(b, &c, 0));
	assert_int_equal(c.type, CQE_RESP_SEND_INV);
	assert_int_equal(c.byte_cnt, 600);
	assert_int_equal(c.imm, window);
	assert_false(sim_poll_recv(b, &c, 0));
	fake_policy = NULL;
	sim_write(a, addr(dst + 4096), window, src, 8, skey, 1);
	sim_ring(a);
	assert_true(fake_finish(a, b));
	expect_error(a, WQE_WRITE, SYND_REMOTE_ACCESS);
}

static void test_each_packet(void **state)
{
	static const struct fake_fate fates[] = { { FAKE_DROP, 0 }, { FAKE_DUP, 0 }, { FAKE_DUP, 3 },
						  { FAKE_LATE, 1 }, { FAKE_LATE, 4 } };

	(void)state;
	for (unsigned f = 0; f < sizeof(fates) / sizeof(*fates); f++) {
		for (hit_at = 0; hit_at < 24; hit_at++) {
			hit = fates[f];
			round_trip(psn_add(0, -hit_at % 11), 0);
			round_trip(psn_add(0, -hit_at % 11), 0x40);
		}
	}
}

/* UMRs that this device does not know, or that are cut short. */
static void test_other_umr(void **state)
{
	static const struct { unsigned at; uint8_t change, syndrome; } wrong[] = {
		{ 0, 1, SYND_LOCAL_QP_OP },	 /* opmod */
		{ 16, 0x80, SYND_LOCAL_QP_OP },	 /* not inline */
		{ 24 + 7, 2, SYND_LOCAL_QP_OP }, /* another field of the key */
		{ 7, 1, SYND_LOCAL_QP_OP },	 /* ds */
		{ 7, 8, SYND_LOCAL_QP_OP },
		{ 7, 4, SYND_MW_BIND }, /* no entry: of an indirect key it could be */
	};
	struct sim_cqe c;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		start(i);
		sim_umr(b, window, true, dkey, dst, 100, HCA_REMOTE_WRITE);
		b->qp.sq[wrong[i].at] ^= wrong[i].change;
		if (wrong[i].at == 7)
			b->pi = ((b->qp.sq[7] & 0x3f) + 3u) / 4;
		sim_ring(b);
		assert_true(fake_finish(a, b));
		assert_true(sim_poll(b, &c, 0));
		assert_int_equal(c.syndrome, wrong[i].syndrome);
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
	window = sim_window(HCA_WINDOW_2, 1);
	a = sim_qp(4, SIM_CQ_RING);
	b = sim_qp(4, SIM_CQ_RING);
	a->qp.mtu = b->qp.mtu = MTU;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_packet),
		cmocka_unit_test(test_other_umr),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
