/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers after one that failed: PE 0 runs them, the test speaks for PE 1. All of them fail, at once and with the
 * first one's status, whoever gave it up; PE 1 is told, and never what PE 0 does not keep. */
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

static struct gdri_ctl *other(struct fake *f)
{
	return (struct gdri_ctl *)f->heap[1];
}

/* What PE 1 was told of a collective that PE 0 gave up. */
static void expect_told(struct fake *f, int status, int culprit, int op)
{
	struct gdri_fault told_of;
	uint64_t word;

	/* it is there; a PE that was called lost stays so */
	assert_int_equal(gdr_quiet(), status == -GDR_EPEERLOST ? status : 0);
	word = __atomic_load_n(&other(f)->broken, __ATOMIC_ACQUIRE);
	assert_int_equal(gdri_fault_read(word, 2, &told_of), 1);
	assert_int_equal(told_of.pe, 0);
	assert_int_equal(told_of.peer, culprit);
	assert_int_equal(told_of.status, status);
	assert_int_equal(told_of.op, op);
}

/* At once: without a wait, which would leave a record. */
static void expect_broken(struct fake *f, int status)
{
	uint32_t records = f->dev->n_errors;

	arrive(f, 1000); /* nobody is missing any more */
	assert_int_equal(gdr_barrier_all(), status);
	assert_int_equal(gdr_sync_all(), status);
	assert_int_equal(gdr_barrier_all_block(), status);
	assert_int_equal(f->dev->n_errors, records);
	assert_int_equal(f->dev->first, status);
}

static const struct gdri_fault gave_up = {1, 0, -GDR_EPEERLOST, GDRI_BARRIER, 0, 0};

static void say(struct fake *f)
{
	__atomic_store_n(&f->dev->ctl->broken, gdri_fault_word(&gave_up), __ATOMIC_RELAXED);
}

/* The quiet of barrier 1 expires, before the peers are told. */
static void test_failed_in_quiet(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 50};
	struct fake *f = fake_start(&opt);
	int ret;

	(void)state;
	fake_hold(f, 1);
	assert_int_equal(gdr_int_p(fake_sym(f, 0), 1, 1), 0);
	ret = gdr_barrier_all();
	assert_true(ret < 0);
	fake_hold(f, 0);
	f->dev->timeout_ns = 10000000000ull;
	expect_told(f, ret, 1, GDRI_BARRIER);
	assert_int_equal(told(f), 0);
	expect_broken(f, ret);
	assert_int_equal(told(f), 0);
	fake_stop(f);
}

/* Barrier 2 expires while it waits for the peer. */
static void test_failed_in_wait(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 50};
	struct fake *f = fake_start(&opt);

	(void)state;
	arrive(f, 1);
	assert_int_equal(gdr_barrier_all(), 0);
	assert_int_equal(f->dev->first, 0);
	assert_int_equal(gdr_sync_all(), -GDR_ETIMEOUT);
	f->dev->timeout_ns = 10000000000ull;
	expect_told(f, -GDR_ETIMEOUT, 1, GDRI_SYNC);
	expect_broken(f, -GDR_ETIMEOUT);
	say(f); /* another PE gave up for another reason: the status stays what it was */
	expect_broken(f, -GDR_ETIMEOUT);
	assert_int_equal(told(f), 2);
	fake_stop(f);
}

/* By a block whose own queue stands behind the one by which the peers are told. */
static void test_failed_in_other_block(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 2, .depth = 128, .timeout_ms = 50};
	const struct gdri_hd_thread *outside = gdri_hd_self, block = {.block_size = 1, .block = 1, .grid_size = 2};
	struct fake *f = fake_start(&opt);

	(void)state;
	gdri_hd_self = &block;
	assert_int_equal(gdri_slot(f->dev), 1);
	assert_int_equal(gdr_barrier_all(), -GDR_ETIMEOUT);
	f->dev->timeout_ns = 10000000000ull;
	expect_told(f, -GDR_ETIMEOUT, 1, GDRI_BARRIER);
	gdri_hd_self = outside;
	fake_stop(f);
}

static void *say_when_told(void *arg)
{
	while (told((struct fake *)arg) != 1)
		usleep(1000);
	say((struct fake *)arg);
	return NULL;
}

/* PE 1 gave up because of PE 0: before that one comes, or amid its wait. */
static void test_told(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 10000};
	struct fake *f;
	pthread_t t;
	int amid;

	(void)state;
	for (amid = 0; amid < 2; amid++) {
		f = fake_start(&opt);
		if (amid) {
			assert_int_equal(pthread_create(&t, NULL, say_when_told, f), 0);
		} else {
			arrive(f, 1); /* it had come */
			say(f);
		}
		assert_int_equal(gdr_barrier_all(), -GDR_EPEERLOST);
		if (amid)
			pthread_join(t, NULL);
		assert_int_equal(f->dev->n_errors, 1);
		assert_int_equal(f->dev->errors[0].kind, GDRI_ERROR_BROKEN);
		assert_int_equal(f->dev->errors[0].status, -GDR_EPEERLOST);
		assert_int_equal(f->dev->errors[0].peer, 0);
		assert_int_equal(f->dev->ctl->waits[0].state, GDRI_WAIT_FAILED); /* leads past this PE */
		assert_int_equal(told(f), amid ? 1 : 0);
		expect_broken(f, -GDR_EPEERLOST);
		assert_int_equal(other(f)->broken, 0); /* it knows */
		assert_int_equal(f->dev->lost, 0); /* this PE was late, and lives */
		assert_int_equal(gdr_status(), 0);
		fake_stop(f);
	}
}

/* A word that no PE could have told says nothing. */
/* PE 1 gave up because of somebody whom it does not know to be lost, and so names itself: it lives, since it told. */
static void test_teller_lives(void **state)
{
	const struct fake_options opt = {.n_pes = 3, .n_slots = 1, .depth = 128, .timeout_ms = 10000};
	struct gdri_fault told_of = {1, 1, -GDR_EPEERLOST, GDRI_HOST_CALL, 0, 0};
	struct fake *f = fake_start(&opt);

	(void)state;
	f->dev->ctl->broken = gdri_fault_word(&told_of);
	assert_int_equal(gdr_barrier_all(), -GDR_EPEERLOST);
	assert_int_equal(f->dev->lost, 0);
	assert_int_equal(gdr_status(), 0);
	fake_stop(f);
	f = fake_start(&opt); /* of another one it says so */
	told_of.peer = 2;
	f->dev->ctl->broken = gdri_fault_word(&told_of);
	assert_int_equal(gdr_barrier_all(), -GDR_EPEERLOST);
	assert_int_equal(f->dev->lost, 3);
	assert_int_equal(gdr_status(), -GDR_EPEERLOST);
	fake_stop(f);
}

static void test_told_nonsense(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 10000};
	static const struct gdri_fault words[] = {
		{2, 0, -GDR_ETIMEOUT, GDRI_BARRIER, 0, 0}, /* no such PE */
		{1, 2, -GDR_ETIMEOUT, GDRI_BARRIER, 0, 0},
		{1, -1, -GDR_ETIMEOUT, GDRI_BARRIER, 0, 0},
		{1, 0, 0, GDRI_BARRIER, 0, 0}, /* of success */
	};
	struct fake *f = fake_start(&opt);
	unsigned i;

	(void)state;
	arrive(f, 1000);
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		f->dev->ctl->broken = gdri_fault_word(&words[i]);
		assert_int_equal(gdr_barrier_all(), 0);
	}
	assert_int_equal(f->dev->first, 0);
	fake_stop(f);
}

/* What was latched before is told, and keeps nobody from meeting. */
static void test_latched_before(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 10000};
	struct fake *f = fake_start(&opt);

	(void)state;
	arrive(f, 2);
	f->dev->latched = -GDR_ETIMEOUT;
	assert_int_equal(gdr_barrier_all(), -GDR_ETIMEOUT);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(told(f), 1);
	assert_int_equal(gdr_barrier_all(), 0);
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
		cmocka_unit_test(test_failed_in_other_block),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_teller_lives),
		cmocka_unit_test(test_told_nonsense),
		cmocka_unit_test(test_latched_before),
		cmocka_unit_test(test_error_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
