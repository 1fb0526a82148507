/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers keep what was written to them: what the engine makes of it late. Rounds are run by
 * hand, so that it is known what has been looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim.h"
#include "softhca/engine/dp.h"

enum { BUF = 4096 };

static struct sim_qp *a, *b;
static uint8_t *mem;
static uint32_t key;

static void post(void)
{
	uint64_t at = (uint64_t)(uintptr_t)mem;

	sim_write(a, at + 64, key, mem, 8, key, 1);
	sim_ring(a);
}

/* The sweep finds the record ahead of the register; then the queue pair is reset. The register
 * still names it and its first entry, which is an old one. */
static void test_reset(void **state)
{
	struct sim_cqe c;

	(void)state;
	sim_pair(a, b);
	post();
	for (unsigned i = 0; i < 10 && !sim_look(a, &c); i++)
		engine_round();
	assert_int_equal(a->ci, 1);
	assert_int_equal(hca_stats.doorbells_sweep, 1);
	assert_int_equal(hca_stats.doorbells_uar, 0);
	sim_reset(a);
	sim_reset(b);
	sim_pair(a, b);
	doorbell_sweep_all();
	assert_int_equal(a->qp.sq_pi, 0);
	assert_false(sim_look(a, &c));
	post();
	doorbell_sweep_all();
	assert_int_equal(a->qp.sq_pi, 1);
}

/* While one queue pair is always rung again, polls that carry out its writes still find the record of another whose
 * doorbell was lost, at each eighth round two of the four. */
static void test_flood(void **state)
{
	struct sim_qp *c = sim_qp(4, SIM_CQ_RING), *d = sim_qp(4, SIM_CQ_RING);
	uint64_t at = (uint64_t)(uintptr_t)mem;
	struct sim_cqe e;

	(void)state;
	sim_reset(a);
	sim_reset(b);
	sim_pair(a, b);
	sim_pair(c, d);
	for (unsigned i = 0; i < 100; i++) /* both are looked at by their records alone now */
		engine_round();
	c->no_uar = true;
	for (unsigned i = 0; i < 8; i++) {
		unsigned n = 0;

		sim_write(c, at + 128, key, mem, 8, key, 1);
		sim_ring(c);
		for (; n < 100 && !sim_look(c, &e); n++) {
			post();
			if (!engine_round_short())
				engine_round();
			assert_true(sim_look(a, &e));
		}
		assert_in_range(n, 0, 24); /* a sweep takes two rounds */
	}
}

static int init(void **state)
{
	(void)state;
	sim_init_idle();
	mem = calloc(1, BUF);
	key = sim_mr(mem, BUF, HCA_LOCAL_WRITE | HCA_REMOTE_WRITE, 1, (uintptr_t)mem);
	a = sim_qp(4, SIM_CQ_RING);
	b = sim_qp(4, SIM_CQ_RING);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reset),
					    cmocka_unit_test(test_flood) };

	return cmocka_run_group_tests(tests, init, NULL);
}
