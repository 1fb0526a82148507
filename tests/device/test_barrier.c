/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers after one that failed: PE 0 runs them, the test speaks for PE 1. A
 * barrier must not take the peer's arrival at an earlier one for this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

static void arrive(struct fake *f, uint64_t epoch)
{
	__atomic_store_n(&f->dev->ctl->barrier[0], epoch, __ATOMIC_RELEASE);
}

static uint64_t told(struct fake *f)
{
	return __atomic_load_n(&((struct gdri_ctl *)f->heap[1])->barrier[0], __ATOMIC_ACQUIRE);
}

/* The quiet of barrier 1 expires, before the peers are told. */
static void test_failed_in_quiet(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 50};
	struct fake *f = fake_start(&opt);

	(void)state;
	fake_hold(f, 1);
	assert_int_equal(gdr_int_p(fake_sym(f, 0), 1, 1), 0);
	assert_int_equal(gdr_barrier_all() < 0, 1);
	fake_hold(f, 0);
	f->dev->timeout_ns = 10000000000ull;
	assert_int_equal(gdr_quiet(), 0);
	arrive(f, 1); /* at the one that failed here */
	f->dev->timeout_ns = 50000000;
	assert_int_equal(gdr_barrier_all(), -GDR_ETIMEOUT); /* 2: the peer is not there */
	f->dev->timeout_ns = 10000000000ull;
	arrive(f, 3);
	assert_int_equal(gdr_barrier_all(), 0); /* 3 */
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(told(f), 3);
	fake_stop(f);
}

/* Barrier 1 expires while it waits for the peer. */
static void test_failed_in_wait(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 50};
	struct fake *f = fake_start(&opt);

	(void)state;
	assert_int_equal(gdr_sync_all(), -GDR_ETIMEOUT);
	arrive(f, 1);
	assert_int_equal(gdr_barrier_all(), -GDR_ETIMEOUT);
	arrive(f, 4);
	f->dev->timeout_ns = 10000000000ull;
	assert_int_equal(gdr_barrier_all(), 0);
	assert_int_equal(gdr_sync_all(), 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(told(f), 4);
	fake_stop(f);
}

/* The other queues' errors do not keep the PEs from meeting, and are reported. */
static void test_error_is_reported(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 10000};
	struct fake *f = fake_start(&opt);

	(void)state;
	f->qps[0].fail_syndrome = 0x13;
	assert_int_equal(gdr_int_p(fake_sym(f, 0), 1, 0), 0);
	arrive(f, 1);
	assert_int_equal(gdr_barrier_all(), -GDR_EREMOTEACCESS);
	assert_int_equal(gdr_quiet_pe(1), 0);
	assert_int_equal(told(f), 1);
	fake_stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failed_in_quiet),
		cmocka_unit_test(test_failed_in_wait),
		cmocka_unit_test(test_error_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
