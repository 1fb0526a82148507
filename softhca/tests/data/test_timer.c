/* SPDX-License-Identifier: BSD-3-Clause */
/* When a requester repeats and when it gives up, by a clock that the test sets: in
 * silence, without a core of its own, before a peer without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "fakewire.h"
#include "softhca/transport/rc.h"

enum { TIMEOUT = 12, RETRIES = 7, BUF = 4096, ROUNDS = 10 };

#define UNIT (4096ull << TIMEOUT) /* ns */
#define STEP (UNIT / 16)	  /* less than a pause that counts */
#define UNITS 22		  /* 1, 1, 2, 2, 4, 4, 4, 4 */

static uint64_t now = 1000000000;
static struct sim_qp *a, *b;
static uint8_t *mem;
static uint32_t key;

/* Stands before that of the C library. A look takes time: waits end. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	now++;
	t->tv_sec = (time_t)(now / 1000000000);
	t->tv_nsec = (long)(now % 1000000000);
	return 0;
}

static struct fake_fate lost(unsigned n, const struct packet *p)
{
	(void)n;
	(void)p;
	return (struct fake_fate){ FAKE_DROP, 0 };
}

/* A write of one packet that gets no answer. */
static void post(void)
{
	uint64_t at = (uint64_t)(uintptr_t)mem;

	fake_clear();
	sim_reset(a);
	sim_reset(b);
	sim_pair(a, b);
	fake_unread = false;
	fake_policy = lost;
	sim_write(a, at + 64, key, mem, 64, key, 1);
	sim_ring(a);
	assert_true(fake_settle());
	assert_int_equal(fake_sent(), 1);
}

/* Time goes on in steps of this size; how many of them until the error, at most max. */
static unsigned steps(uint64_t step, unsigned max)
{
	unsigned n = 0;

	while (n < max && a->qp.state == HCA_QPS_RTS) {
		now += step;
		n++;
		for (unsigned i = 0; i < ROUNDS; i++) /* not each of them looks at the clock */
			engine_round();
		assert_true(fake_settle());
	}
	return n;
}

static void expect_error(void)
{
	struct sim_cqe c;

	assert_true(sim_poll(a, &c, 0));
	assert_int_equal(c.syndrome, SYND_RETRY_EXC);
	assert_false(sim_poll(a, &c, 0));
}

static void test_silence(void **state)
{
	unsigned n;

	(void)state;
	post();
	n = steps(STEP, 10000);
	assert_in_range(n, 16 * UNITS, 16 * UNITS + RETRIES + 1);
	assert_int_equal(fake_sent(), 1 + RETRIES);
	expect_error();
}

/* Pauses that would be timeouts each, were they the peer's. */
static void test_no_core(void **state)
{
	(void)state;
	post();
	assert_int_equal(steps(5 * UNIT, RETRIES + 3), RETRIES + 3);
	assert_in_range(fake_sent(), 2, RETRIES);
	/* They are charged, in part: silence ends here, too. */
	assert_in_range(steps(5 * UNIT, 1000), 1, 8 * UNITS);
	expect_error();
}

/* What the peer's process has not taken is not sent again, for a while. */
static void test_peer_without_core(void **state)
{
	unsigned n;

	(void)state;
	post();
	fake_unread = true;
	n = steps(STEP, 16 * UNITS);
	assert_int_equal(n, 16 * UNITS);
	assert_in_range(fake_sent(), 1, RETRIES / 2 + 1);
	n += steps(STEP, 10000);
	assert_in_range(n, 16 * UNITS * (RC_BACKOFFS + 1),
			(16 * UNITS + RETRIES + 1) * (RC_BACKOFFS + 1));
	assert_int_equal(fake_sent(), 1 + RETRIES);
	expect_error();
}

static void test_peer_comes_back(void **state)
{
	struct sim_cqe c;

	(void)state;
	post();
	fake_unread = true;
	assert_int_equal(steps(STEP, 16 * UNITS), 16 * UNITS);
	fake_unread = false;
	fake_policy = NULL;
	assert_int_equal(steps(STEP, 16 * 8), 16 * 8);
	assert_true(sim_poll(a, &c, 0));
	assert_int_equal(c.type, 0);
	assert_int_equal(a->qp.rc->backoffs, 0);
}

static int setup(void **state)
{
	(void)state;
	sim_init_idle();
	mem = sim_memory(BUF, 0xf, &key);
	a = sim_qp(6, SIM_CQ_RING);
	b = sim_qp(6, SIM_CQ_RING);
	a->qp.ack_timeout = b->qp.ack_timeout = TIMEOUT;
	a->qp.retry_cnt = b->qp.retry_cnt = RETRIES;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_no_core),
		cmocka_unit_test(test_peer_without_core),
		cmocka_unit_test(test_peer_comes_back),
	};

	return cmocka_run_group_tests(tests, setup, NULL) ? 1 : 0;
}
