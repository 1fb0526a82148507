/* SPDX-License-Identifier: BSD-3-Clause */
/* What a schedule decides, asked directly and at times of our own: whom a
 * clause selects, from when to when, what chance does, and that it does so
 * again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "softhca/faults/faults_plan.h"
#include "softhca/transport/rc.h"

#define T0 1000000000ull
#define MS 1000000ull

static struct hca_qp qps[4];

static void start(const char *text, int rank)
{
	uint32_t r = (uint32_t)rank;
	char err[400];

	if (faults_start_with(text, rank < 0 ? NULL : &r, T0, err, sizeof(err)))
		fail_msg("%s", err);
	for (unsigned i = 0; i < 4; i++) {
		memset(&qps[i], 0, sizeof(qps[i]));
		qps[i].qpn = dp_first_qpn() + i;
		if (faults_on)
			faults_qp_ready(&qps[i]);
	}
}

static bool dropped(unsigned qp, uint64_t ms)
{
	struct fault_fate fate;

	faults_tx(&qps[qp], T0 + ms * MS, &fate);
	/* Who is mute is deaf as well; what is lost is lost by the sender. */
	if (faults_plan.clause[0].kind == FAULT_MUTE)
		assert_int_equal(fate.drop, faults_rx_drop(&qps[qp], T0 + ms * MS));
	return fate.drop;
}

/* Picks up one block; true when it ends in an error. */
static bool pick(unsigned qp, uint64_t ms, uint8_t *syndrome)
{
	uint8_t vendor = 0;

	return faults_wqe(&qps[qp], T0 + ms * MS, 1, 64, syndrome, &vendor);
}

static void test_windows(void **state)
{
	(void)state;
	start("mute at 100ms for 50ms; mute at 300ms", -1);
	assert_false(dropped(0, 99));
	assert_true(dropped(0, 100));
	assert_true(dropped(1, 149));
	assert_false(dropped(1, 150));
	assert_false(dropped(1, 299));
	assert_true(dropped(1, 300));
	assert_true(dropped(1, 3000000));
}

static void test_wqe_triggers(void **state)
{
	uint8_t s = 0;

	(void)state;
	start("qp * mute at wqe 2 for 10ms; pe 0: mute; qp * wqe 4: error 0x13/0x88", 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_false(dropped(0, 5));
		assert_false(pick(0, 5, &s));
	}
	assert_true(dropped(0, 5)); /* its block 2 was picked up */
	assert_false(dropped(1, 5));
	assert_true(dropped(0, 14));
	assert_false(dropped(0, 15));
	assert_false(pick(0, 20, &s));
	assert_true(pick(0, 20, &s));
	assert_int_equal(s, 0x13);
	assert_false(pick(0, 20, &s));
	faults_qp_ready(&qps[0]); /* counts anew */
	assert_false(dropped(0, 20));
	start("mute at wqe 3", -1); /* of all QPs together */
	for (unsigned i = 0; i < 4; i++) {
		assert_false(dropped(3, 1));
		pick(i, 1, &s);
	}
	assert_true(dropped(3, 1));
}

static void test_selection(void **state)
{
	char text[80];
	struct fault_fate fate;

	(void)state;
	snprintf(text, sizeof(text), "delay=7us; qp 0x%x: delay=1us; qp * peer 3: drop=1",
		 dp_first_qpn() + 2);
	start(text, -1);
	faults_tx(&qps[1], T0, &fate);
	assert_true(!fate.drop && fate.until == T0 + 7000);
	faults_tx(&qps[2], T0, &fate);
	assert_true(!fate.drop && fate.until == T0 + 1000);
	start("peer [2001:db8::7] mute", -1);
	assert_false(dropped(1, 0));
	qps[1].path.dgid = faults_plan.clause[0].addr;
	assert_true(dropped(1, 0));
	/* The last clause that names the setting. */
	start("drop=1; dup=1; drop=0 at 10ms for 10ms", -1);
	assert_true(dropped(0, 9));
	assert_false(dropped(0, 10));
	assert_true(dropped(0, 20));
	start("pe 1: mute", 0);
	assert_false(faults_on);
}

/* Bits of what happens to 64 packets each of two QPs, asked in turn or one by one. */
static void fates(uint64_t out[2], bool in_turn)
{
	struct fault_fate fate;

	out[0] = out[1] = 0;
	for (unsigned i = 0; i < 128; i++) {
		unsigned qp = in_turn ? i % 2 : i / 64, n = in_turn ? i / 2 : i % 64;

		faults_tx(&qps[qp], T0, &fate);
		out[qp] |= (uint64_t)fate.drop << n;
	}
}

static void test_reproducible(void **state)
{
	uint64_t a[2], b[2];

	(void)state;
	start("drop=0.5,seed=9", 0);
	fates(a, true);
	assert_int_not_equal(a[0], a[1]);
	start("drop=0.5,seed=9", 0);
	fates(b, false);
	assert_memory_equal(a, b, sizeof(a));
	start("drop=0.5,seed=10", 0);
	fates(b, false);
	assert_int_not_equal(a[0], b[0]);
	start("drop=0.5,seed=9", 1);
	fates(b, false);
	assert_int_not_equal(a[0], b[0]);
}

/* Within six standard deviations: the generator is fixed, so this cannot flake. */
static void test_rates(void **state)
{
	unsigned drop = 0, dup = 0, corrupt = 0, late = 0, after[5] = {0};
	struct fault_fate fate;

	(void)state;
	start("drop=0.1,dup=0.2,corrupt=0.05,reorder=5,seed=3", -1);
	for (unsigned i = 0; i < 100000; i++) {
		faults_tx(&qps[0], T0, &fate);
		drop += fate.drop;
		dup += fate.dup;
		corrupt += fate.corrupt;
		late += fate.until == T0 + 200000;
		assert_true(fate.after < 5 && !fate.until == !fate.after);
		after[fate.after]++;
	}
	assert_in_range(drop, 9400, 10600);
	assert_in_range(dup, 16700, 17500); /* of the 85.5 % that are neither lost nor spoilt */
	assert_in_range(corrupt, 4100, 4900);
	assert_in_range(late, 67500, 69300); /* four of five */
	for (unsigned i = 1; i < 5; i++)
		assert_in_range(after[i], 16300, 17900);
}

static void test_slow(void **state)
{
	uint8_t s;

	(void)state;
	start("slow=1ms,rate=64kB/s", -1); /* 64 bytes take another millisecond */
	assert_true(faults_may_pick(&qps[0], T0));
	pick(0, 0, &s);
	assert_false(faults_may_pick(&qps[1], T0 + 2 * MS - 1));
	assert_true(faults_may_pick(&qps[1], T0 + 2 * MS));
	start("qp * slow=1ms", -1); /* each queue for itself */
	pick(0, 0, &s);
	assert_false(faults_may_pick(&qps[0], T0));
	assert_true(faults_may_pick(&qps[1], T0));
}

static void test_refuse(void **state)
{
	(void)state;
	start("refuse mr 2; refuse qp after 1", -1);
	assert_false(faults_refuse(FAULT_MR));
	assert_true(faults_refuse(FAULT_MR));
	assert_false(faults_refuse(FAULT_MR));
	assert_false(faults_refuse(FAULT_QP));
	assert_true(faults_refuse(FAULT_QP));
	assert_true(faults_refuse(FAULT_QP));
	assert_false(faults_refuse(FAULT_CQ));
}

static void test_counters(void **state)
{
	(void)state;
	start("first_wqe=0xfffffff0; first_psn=0; first_wqe=7", -1);
	assert_int_equal(faults_first(FAULT_FIRST_WQE, 0), 7);
	assert_int_equal(faults_first(FAULT_FIRST_CQE, 0), 0);
	assert_int_equal(faults_first(FAULT_FIRST_PSN, 0x123), 0);
	start("mute", -1);
	assert_int_equal(faults_first(FAULT_FIRST_PSN, 0x123), 0x123);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),	  cmocka_unit_test(test_wqe_triggers),
		cmocka_unit_test(test_selection), cmocka_unit_test(test_reproducible),
		cmocka_unit_test(test_rates),	  cmocka_unit_test(test_slow),
		cmocka_unit_test(test_refuse),	  cmocka_unit_test(test_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
