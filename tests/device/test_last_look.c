/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait that learns why it is to give up looks at its condition once more, and succeeds where it holds: what it waits
 * for had come, while the thread paused. Every reason, every kind of wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

enum reason { FAULT, LOST, ANY_LOST, BROKEN, ABORTED, LIMIT, QUEUE, OWN_LIMIT, LEFT };

/* The wait's own words, from PE 1. */
enum { SIGNAL, WORDS, BARRIER, LOCK, N_FORMS };

#define LIMIT_MS 60

static struct fake *f;
static enum reason why;
static int form, come;

static void say_reason(void)
{
	static const struct gdri_fault failed = {1, 0, -GDR_EREMOTEACCESS, GDRI_PUT, 0x13, 0};
	struct gdri_dev *dev = f->dev;

	if (why == FAULT)
		__atomic_store_n(&dev->ctl->fault, gdri_fault_word(&failed), __ATOMIC_RELEASE);
	if (why == BROKEN)
		__atomic_store_n(&dev->ctl->broken, gdri_fault_word(&failed), __ATOMIC_RELEASE);
	if (why == LOST || why == ANY_LOST) {
		dev->peers[1].lost = why == LOST;
		dev->peers[2].lost = why == ANY_LOST;
		__atomic_store_n(&dev->lost, why == LOST ? 2 : 3, __ATOMIC_RELEASE);
	}
	if (why == ABORTED)
		__atomic_store_n(dev->abort, 1, __ATOMIC_RELEASE);
	if (why == LEFT) { /* a barrier hears of 2 first */
		__atomic_store_n(&dev->peers[1].finalizes, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&dev->peers[2].finalizes, 1, __ATOMIC_RELEASE);
	}
	if (why == QUEUE)
		__atomic_store_n(&dev->qps[1].err, -GDR_ERETRY, __ATOMIC_RELEASE);
	if (why == LIMIT || why == OWN_LIMIT)
		usleep(LIMIT_MS * 1500);
}

static void word_comes(void)
{
	struct gdri_ctl *ctl = f->dev->ctl;
	int pe;

	if (form == BARRIER) {
		for (pe = 0; pe < 3; pe++) {
			__atomic_store_n(&ctl->barrier[pe], 1, __ATOMIC_RELEASE);
			__atomic_store_n(&ctl->flat[pe], 1, __ATOMIC_RELEASE);
		}
	} else if (form == LOCK) { /* nobody holds it */
		__atomic_store_n((uint32_t *)fake_sym(f, 8) + 1, 0, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n((uint64_t *)fake_sym(f, 0), 1, __ATOMIC_RELEASE);
		__atomic_store_n((uint64_t *)fake_sym(f, 8), 1, __ATOMIC_RELEASE);
	}
}

/* In the pause of a wait that is long, before a look at all else that is due. */
static void reason_and_word(unsigned round)
{
	if (round != 4)
		return;
	usleep(2000);
	say_reason();
	if (come)
		word_comes();
}

/* The second look at the clock is behind the first one at the word. */
static void clock_and_word(void)
{
	static unsigned n;

	if (++n % 2)
		return;
	say_reason();
	if (come)
		word_comes();
}

static int do_wait(void)
{
	if (form == SIGNAL && why == OWN_LIMIT)
		return gdr_signal_wait_until_from_for(fake_sym(f, 0), GDR_CMP_EQ, 1, 1, LIMIT_MS * 1000000ull);
	if (form == SIGNAL)
		return gdr_signal_wait_until_from(fake_sym(f, 0), GDR_CMP_EQ, 1, 1);
	if (form == BARRIER && why == QUEUE) /* one round: the next one would tell by that queue */
		return gdri_sync_hear(f->dev, 1, f->dev->ctl->barrier, 1, GDRI_SYNC);
	if (form == BARRIER)
		return gdr_sync_all();
	if (form == LOCK)
		return gdri_lock_wait(f->dev, (uint32_t *)fake_sym(f, 8) + 1, GDRI_LOCK_WAITS, 0, 1, &(uint32_t){0});
	if (why == OWN_LIMIT)
		return gdr_uint64_wait_until_for(fake_sym(f, 0), GDR_CMP_EQ, 1, LIMIT_MS * 1000000ull);
	return gdr_uint64_wait_until_all(fake_sym(f, 0), 2, NULL, GDR_CMP_EQ, 1);
}

static int run(int mapped)
{
	struct fake_options opt = {.n_pes = 3, .n_slots = 1, .depth = 128};
	int ret;

	opt.mapped = mapped;
	opt.timeout_ms = why == LIMIT ? LIMIT_MS : 20000;
	f = fake_start(&opt);
	gdri_qp_mark_used(f->dev, &f->dev->qps[1]);
	*((uint32_t *)fake_sym(f, 8) + 1) = form == LOCK ? GDRI_LOCK_WAITS : 0;
	if (why == OWN_LIMIT)
		fake_on_clock = clock_and_word;
	else
		fake_on_pause = reason_and_word;
	ret = do_wait();
	fake_on_clock = NULL;
	fake_on_pause = NULL;
	return ret;
}

/* With the word there is no failure that anybody hears of; without it the wait ends with `status`. */
static void expect(int status)
{
	int mapped, ret;

	for (mapped = 0; mapped < 2; mapped++) {
		come = 1;
		ret = run(mapped);
		if (ret)
			fprintf(stderr, "reason %d, form %d, mapped %d: %d\n", why, form, mapped, ret);
		assert_int_equal(ret, 0);
		/* others were told that this PE gave up: of the broken collective alone, which this was not */
		assert_int_equal(f->dev->failed != 0, why == BROKEN);
		assert_int_equal(f->dev->first, why == BROKEN ? status : 0);
		assert_int_equal(f->dev->ctl->waits[1].state, GDRI_WAIT_IDLE);
		assert_int_equal(f->dev->n_errors, why == BROKEN ? 1 : 0);
		fake_stop(f);
		come = 0;
		ret = run(mapped);
		if (ret != status)
			fprintf(stderr, "reason %d, form %d, mapped %d, no word: %d\n", why, form, mapped, ret);
		assert_int_equal(ret, status);
		assert_int_equal(f->dev->ctl->waits[1].state, GDRI_WAIT_IDLE);
		assert_int_equal(f->dev->n_errors, why == OWN_LIMIT ? 0 : 1);
		if (why == LEFT)
			assert_int_equal(f->dev->lost, 0);
		fake_stop(f);
	}
}

static void every_form(enum reason reason, int status)
{
	why = reason;
	for (form = 0; form < N_FORMS; form++)
		expect(status);
}

static void test_fault(void **state)
{
	(void)state;
	every_form(FAULT, -GDR_EPEERFAILED);
}

static void test_lost(void **state)
{
	(void)state;
	every_form(LOST, -GDR_EPEERLOST);
}

static void test_aborted(void **state)
{
	(void)state;
	every_form(ABORTED, -GDR_EABORTED);
}

static void test_limit(void **state)
{
	(void)state;
	every_form(LIMIT, -GDR_ETIMEOUT);
}

/* The queue to the PE waited for broke. */
static void test_queue(void **state)
{
	(void)state;
	why = QUEUE;
	for (form = 0; form < N_FORMS; form++)
		if (form != WORDS) /* from anybody */
			expect(-GDR_EPEERLOST);
}

/* The PE waited for has called gdr_finalize. It is not lost. */
static void test_left(void **state)
{
	(void)state;
	why = LEFT;
	for (form = 0; form < N_FORMS; form++)
		if (form != WORDS)
			expect(-GDR_EPEERLOST);
}

/* What only collectives hear of: another PE gave them up, another member is lost. */
static void test_together(void **state)
{
	(void)state;
	form = BARRIER;
	why = BROKEN;
	expect(-GDR_EREMOTEACCESS);
	why = ANY_LOST;
	expect(-GDR_EPEERLOST);
}

static void test_own_limit(void **state)
{
	(void)state;
	form = WORDS;
	why = OWN_LIMIT;
	expect(-GDR_ETIMEOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fault),	cmocka_unit_test(test_lost),	 cmocka_unit_test(test_aborted),
		cmocka_unit_test(test_limit),	cmocka_unit_test(test_queue),	 cmocka_unit_test(test_together),
		cmocka_unit_test(test_own_limit), cmocka_unit_test(test_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
