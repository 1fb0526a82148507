/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement out of order: what a WRITE brings is seen behind what comes later, atomics and a strongly ordered WRITE
 * wait, and so do completions. The other side looks between the engine's rounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../data/finish.h"

enum { BUF = 1 << 14, ROUNDS = 200, LONG = 3000, FLAG = 8192, STRONG = 3 << 5, LIMIT_NS = 2000000000 };

static struct sim_qp *a, *b;
static uint8_t *mem_a, *mem_b;
static uint32_t key_a, key_b;

static uint64_t at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static int order_setup(void **state)
{
	(void)state;
	a = sim_qp(8, SIM_CQ_RING);
	b = sim_qp(8, SIM_CQ_RING);
	return 0;
}

static int order_teardown(void **state)
{
	(void)state;
	sim_qp_free(a);
	sim_qp_free(b);
	return 0;
}

/* How many bytes of the data are old. */
static unsigned missing(unsigned len, uint8_t value)
{
	unsigned n = 0;

	for (unsigned i = 0; i < len; i++)
		n += mem_b[i] != value;
	return n;
}

enum behind { BY_WRITE, BY_STRONG, BY_ADD };

/* Both ends anew; b places in this order. */
static void begin(enum hca_order order)
{
	sim_reset(a);
	sim_reset(b);
	sim_pair(a, b);
	/* what was rung last would be a doorbell of the new ring; release: the engine reads it with acquire */
	__atomic_store_n((uint64_t *)(void *)b->uar, 0, __ATOMIC_RELEASE);
	b->qp.order = (uint8_t)order;
	b->qp.halves = false;
	b->qp.relaxed = false;
}

static void post_pair(unsigned len, uint8_t value, enum behind behind)
{
	uint64_t flag = value;

	memset(mem_a, value, len);
	sim_write(a, at(mem_b), key_b, mem_a, len, key_a, 0);
	a->fence = behind == BY_STRONG ? STRONG : 0;
	if (behind == BY_ADD)
		sim_fetch_add(a, at(mem_b + FLAG), key_b, mem_a + FLAG, key_a, 1, 1);
	else
		sim_inline(a, at(mem_b + FLAG), key_b, &flag, 8, 1);
	a->fence = 0;
	sim_ring(a);
}

/* Whether the flag was ever seen ahead of the data, and (torn) part of the data alone. */
static unsigned rounds(unsigned len, enum behind behind, unsigned *torn)
{
	unsigned early = 0;
	struct sim_cqe c;
	uint64_t flag;

	memset(mem_b, 0, BUF);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		uint64_t end = dp_clock() + LIMIT_NS;
		bool seen = false, part = false;
		uint8_t value = (uint8_t)i;

		post_pair(len, value, behind);
		while (!sim_look(a, &c)) {
			assert_true(dp_clock() < end);
			engine_round();
			memcpy(&flag, mem_b + FLAG, 8);
			seen |= (uint8_t)flag == value && missing(len, value);
			part |= missing(len, value) && missing(len, value) < len;
		}
		assert_int_equal(c.type, 0);
		assert_int_equal(missing(len, value), 0); /* completions come behind all */
		memcpy(&flag, mem_b + FLAG, 8);
		assert_int_equal((uint8_t)flag, value);
		early += seen;
		*torn += part;
	}
	return early;
}

static unsigned litmus(enum hca_order order, unsigned len, enum behind behind, unsigned *torn)
{
	begin(order);
	return rounds(len, behind, torn);
}

static void test_in_order(void **state)
{
	unsigned torn = 0;

	(void)state;
	assert_int_equal(litmus(HCA_ORDER_IBTA, 8, BY_WRITE, &torn), 0);
	assert_int_equal(litmus(HCA_ORDER_IBTA, LONG, BY_WRITE, &torn), 0);
}

static void test_out_of_order(void **state)
{
	unsigned torn = 0;

	(void)state;
	assert_in_range(litmus(HCA_ORDER_OOO_RW, 8, BY_WRITE, &torn), ROUNDS / 20, ROUNDS);
	assert_in_range(litmus(HCA_ORDER_OOO_RW, LONG, BY_WRITE, &torn), ROUNDS / 20, ROUNDS);
	assert_in_range(torn, ROUNDS / 20, 2 * ROUNDS);
}

static void test_what_waits(void **state)
{
	unsigned torn = 0;

	(void)state;
	assert_int_equal(litmus(HCA_ORDER_OOO_RW, 8, BY_ADD, &torn), 0);
	assert_int_equal(litmus(HCA_ORDER_OOO_RW, LONG, BY_ADD, &torn), 0);
	assert_int_equal(litmus(HCA_ORDER_OOO_RW, 8, BY_STRONG, &torn), 0);
	assert_int_equal(litmus(HCA_ORDER_OOO_RW, LONG, BY_STRONG, &torn), 0);
}

/* Keys of relaxed order alone: what the queue pair was told changes nothing. */
static unsigned relaxed(unsigned len, enum behind behind, unsigned *torn)
{
	begin(HCA_ORDER_IBTA);
	b->qp.relaxed = true;
	return rounds(len, behind, torn);
}

static void test_relaxed_keys(void **state)
{
	unsigned torn = 0;

	(void)state;
	assert_in_range(relaxed(8, BY_WRITE, &torn), ROUNDS / 20, ROUNDS);
	assert_in_range(relaxed(LONG, BY_WRITE, &torn), ROUNDS / 20, ROUNDS);
	assert_in_range(torn, ROUNDS / 20, 2 * ROUNDS);
	assert_int_equal(relaxed(8, BY_ADD, &torn), 0);
	assert_int_equal(relaxed(LONG, BY_ADD, &torn), 0);
	assert_int_equal(relaxed(8, BY_STRONG, &torn), 0);
}

/* A receive, and an immediate, complete behind the WRITEs before them. */
static void test_receives(void **state)
{
	uint8_t value;
	struct sim_cqe c;

	(void)state;
	begin(HCA_ORDER_OOO_RW);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		uint64_t end = dp_clock() + LIMIT_NS;

		value = (uint8_t)i;
		memset(mem_a, value, LONG);
		sim_recv(b, mem_b + FLAG, 8, key_b);
		sim_ring(b);
		sim_write(a, at(mem_b), key_b, mem_a, LONG, key_a, 0);
		if (i & 1)
			sim_send(a, mem_a, 8, key_a, 1);
		else
			sim_write_imm(a, at(mem_b + FLAG), key_b, mem_a, 8, key_a, i, 1);
		sim_ring(a);
		while (!sim_poll_recv(b, &c, 0)) {
			assert_true(dp_clock() < end);
			engine_round();
		}
		assert_int_equal(missing(LONG, value), 0);
		while (!sim_look(a, &c)) {
			assert_true(dp_clock() < end);
			engine_round();
		}
	}
}

/* What is held is placed before its region goes. */
static void test_region_ends(void **state)
{
	unsigned held = 0;
	struct sim_cqe c;

	(void)state;
	begin(HCA_ORDER_OOO_RW);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		uint8_t value = (uint8_t)i;

		post_pair(8, value, BY_WRITE);
		for (unsigned n = 0; n < 20 && !sim_look(a, &c) && !held; n++) {
			engine_round();
			held += missing(8, value) && rc_order_holds(&b->qp, rc_order_last(&b->qp));
		}
		rc_order_settle_all();
		if (held) {
			assert_int_equal(missing(8, value), 0);
			return;
		}
		assert_true(fake_finish(a, b));
	}
	fail_msg("nothing was ever held");
}

/* Halves overtake each other also where the order of WRITEs is kept, and completions do not wait; what the device read
 * behind them, by a DUMP of its own or for an atomic, tells that all is there. */
static void see_halves(unsigned len, bool dump, unsigned *early, unsigned *late)
{
	struct sim_cqe c;

	begin(HCA_ORDER_IBTA);
	b->qp.halves = true;
	memset(mem_b, 0, BUF);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		uint64_t end = dp_clock() + LIMIT_NS;
		bool seen = false;

		post_pair(len, (uint8_t)i, dump ? BY_WRITE : BY_ADD);
		while (!sim_look(a, &c)) {
			assert_true(dp_clock() < end);
			engine_round();
			seen |= mem_b[FLAG] == (uint8_t)i && missing(len, (uint8_t)i);
		}
		*early += seen;
		*late += missing(len, (uint8_t)i) != 0;
		if (!dump)
			continue;
		sim_dump(b, mem_b, 1, key_b, 1);
		sim_ring(b);
		while (!sim_look(b, &c)) {
			assert_true(dp_clock() < end);
			engine_round();
		}
		assert_int_equal(c.type, 0);
		assert_int_equal(missing(len, (uint8_t)i), 0);
		assert_int_equal(mem_b[FLAG], (uint8_t)i);
	}
}

static void test_halves(void **state)
{
	unsigned early = 0, late = 0;

	(void)state;
	see_halves(8, true, &early, &late);
	see_halves(LONG, true, &early, &late);
	assert_in_range(early, ROUNDS / 20, 2 * ROUNDS);
	early = late = 0; /* how many were late at the completion is a matter of time */
	see_halves(LONG, false, &early, &late);
	assert_int_equal(early + late, 0);
}

/* The bytes of an address keep their order. */
static void test_halves_of_one_place(void **state)
{
	struct sim_cqe c;
	uint8_t last = 0;

	(void)state;
	begin(HCA_ORDER_IBTA);
	b->qp.halves = true;
	memset(mem_b, 0, BUF);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		uint64_t end = dp_clock() + LIMIT_NS;

		post_pair(8, (uint8_t)i, BY_WRITE);
		while (!sim_look(a, &c)) {
			assert_true(dp_clock() < end);
			engine_round();
			assert_true(mem_b[0] >= last);
			last = mem_b[0];
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_halves), cmocka_unit_test(test_halves_of_one_place),
		cmocka_unit_test(test_in_order), cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_what_waits), cmocka_unit_test(test_relaxed_keys), cmocka_unit_test(test_receives),
		cmocka_unit_test(test_region_ends),
	};

	sim_init_idle();
	mem_a = sim_memory(BUF, HCA_REMOTE_WRITE | HCA_REMOTE_ATOMIC | HCA_LOCAL_WRITE, &key_a);
	mem_b = sim_memory(BUF, HCA_REMOTE_WRITE | HCA_REMOTE_ATOMIC | HCA_LOCAL_WRITE, &key_b);
	return cmocka_run_group_tests(tests, order_setup, order_teardown);
}
