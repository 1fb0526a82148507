/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors: each syndrome is its own status, the record says what happened, every
 * waiter returns, refusals of arguments, the latch of value-returning calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

static struct fake *start(int ring)
{
	struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 5000};

	opt.ring = ring;
	return fake_start(&opt);
}

/* ---- syndromes ---- */

static void check_syndrome(uint8_t syndrome, int status, int ring)
{
	struct fake *f = start(ring);
	struct gdri_error *e = &f->dev->errors[0];
	int lost = 0;

	f->qps[1].fail_at = 3;
	f->qps[1].fail_syndrome = syndrome;
	f->qps[1].fail_vendor = 0x81;
	fake_hold(f, 1); /* all four are posted before the first is executed */
	assert_int_equal(gdr_put_nbi(fake_sym(f, 0), fake_sym(f, 64), 64, 1), 0);
	assert_int_equal(gdr_int_p(fake_sym(f, 0), 1, 1), 0);
	assert_int_equal(gdr_int_p(fake_sym(f, 0), 2, 1), 0);
	assert_int_equal(gdr_put_nbi(fake_sym(f, 128), fake_sym(f, 256), 100, 1), 0);
	fake_hold(f, 0);
	assert_int_equal(gdr_quiet(), status);
	assert_int_equal(gdr_quiet(), status); /* stays */
	if (status == -GDR_ERETRY || status == -GDR_ERNR)
		lost = -GDR_EPEERLOST; /* from then on, by each quiet and fence */
	assert_int_equal(gdr_status(), lost);
	assert_int_equal(gdr_quiet_pe(0), lost);
	assert_int_equal(gdr_fence(), lost);
	assert_int_equal(gdr_status(), lost);
	assert_int_equal(gdr_int_p(fake_sym(f, 0), 2, 1), status);
	assert_int_equal(gdr_put(fake_sym(f, 0), fake_sym(f, 0), 1000, 1), status);
	assert_int_equal(f->dev->n_errors, 1);
	assert_int_equal(e->state, 2);
	assert_int_equal(e->kind, GDRI_ERROR_CQE);
	assert_int_equal(e->status, status);
	assert_int_equal(e->peer, 1);
	assert_int_equal(e->qpn, f->dev->qps[1].qpn);
	assert_int_equal(e->wqe_index, 3);
	assert_int_equal(e->wqe_opcode, GDRI_OP_WRITE);
	assert_int_equal(e->op, GDRI_PUT);
	assert_int_equal(e->syndrome, syndrome);
	assert_int_equal(e->vendor_syndrome, 0x81);
	assert_int_equal(e->is_cause, ring || syndrome != 0x05);
	assert_int_equal(e->addr, FAKE_USER + 128);
	assert_int_equal(e->local, FAKE_USER + 256);
	assert_int_equal(e->len, 100);
	assert_int_not_equal(e->time_ns, 0);
	assert_int_equal(f->dev->qps[1].err_rec, 1);
	fake_stop(f);
}

static void test_syndromes(void **state)
{
	static const struct {
		uint8_t syndrome;
		int status;
	} all[] = {
		{0x01, -GDR_ELOCALLEN},	   {0x02, -GDR_ELOCALQP},    {0x04, -GDR_ELOCALPROT},
		{0x05, -GDR_EFLUSHED},	   {0x06, -GDR_EBIND},	     {0x10, -GDR_EBADRESP},
		{0x11, -GDR_ELOCALACCESS}, {0x12, -GDR_EREMOTEINV},  {0x13, -GDR_EREMOTEACCESS},
		{0x14, -GDR_EREMOTEOP},	   {0x15, -GDR_ERETRY},	     {0x16, -GDR_ERNR},
		{0x22, -GDR_EREMOTEABORT}, {0x7f, -GDR_ECQE},
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		check_syndrome(all[i].syndrome, all[i].status, 0);
		check_syndrome(all[i].syndrome, all[i].status, 1);
	}
}

/* With one CQ entry a flush overwrites the cause before anybody looks: the record
 * must not claim to hold the cause. The ring keeps it. */
static void check_flush(int ring)
{
	struct fake *f = start(ring);
	struct gdri_error *e = &f->dev->errors[0];
	int i, ret;

	f->qps[1].fail_at = 2;
	f->qps[1].fail_syndrome = 0x13;
	fake_hold(f, 1);
	for (i = 0; i < 6; i++)
		assert_int_equal(gdr_int_p(fake_sym(f, 0), i, 1), 0);
	fake_hold(f, 0);
	while (__atomic_load_n(&f->dev->qps[1].cq[ring ? 5 : 0].tail, __ATOMIC_ACQUIRE) >> 28 !=
		       13 ||
	       (__atomic_load_n(&f->dev->qps[1].cq[ring ? 5 : 0].tail, __ATOMIC_RELAXED) &
		0xffff) != 0x0500)
		usleep(100);
	ret = gdr_quiet();
	assert_int_equal(ret, ring ? -GDR_EREMOTEACCESS : -GDR_EFLUSHED);
	assert_int_equal(e->is_cause, ring);
	assert_int_equal(e->wqe_index, ring ? 2 : 5);
	assert_int_equal(f->dev->qps[1].done, ring ? 2 : 0);
	fake_stop(f);
}

static void test_flush(void **state)
{
	(void)state;
	check_flush(0);
	check_flush(1);
}

/* ---- waiters around the failing WQE ---- */

struct waiter {
	pthread_t thread;
	struct fake *f;
	uint64_t target;
	int ret;
};

static void *wait_for(void *arg)
{
	struct waiter *w = arg;

	w->ret = gdri_qp_wait(w->f->dev, &w->f->dev->qps[1], w->target, GDRI_PUT);
	return NULL;
}

static void check_waiters(int ring, uint64_t k)
{
	struct fake *f = start(ring);
	struct waiter w[3];
	uint64_t i;

	f->qps[1].fail_at = k;
	f->qps[1].fail_syndrome = 0x13;
	fake_hold(f, 1);
	for (i = 0; i <= k; i++) /* nothing behind k: no flush hides it */
		assert_int_equal(gdr_int_p(fake_sym(f, 0), (int)i, 1), 0);
	for (i = 0; i < 3; i++) {
		w[i].f = f;
		w[i].target = k + i; /* below k complete; k itself; behind it */
		w[i].ret = 1;
		assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for, &w[i]), 0);
	}
	usleep(2000);
	fake_hold(f, 0);
	for (i = 0; i < 3; i++)
		pthread_join(w[i].thread, NULL);
	assert_int_equal(w[0].ret, 0);
	assert_int_equal(w[1].ret, -GDR_EREMOTEACCESS);
	assert_int_equal(w[2].ret, -GDR_EREMOTEACCESS);
	assert_int_equal(f->dev->n_errors, 1);
	fake_stop(f);
}

static void test_waiters(void **state)
{
	uint64_t k;

	(void)state;
	for (k = 1; k < 100; k += 14) {
		check_waiters(0, k);
		check_waiters(1, k);
	}
}

/* An atomic in the record: its operand's place, also with two blocks. */
static void test_atomic_record(void **state)
{
	struct fake *f = start(1);
	struct gdri_error *e = &f->dev->errors[0];

	(void)state;
	f->qps[1].fail_at = 1;
	f->qps[1].fail_syndrome = 0x12;
	assert_int_equal(gdr_int_p(fake_sym(f, 0), 1, 1), 0);
	assert_int_equal(gdr_uint64_atomic_swap(fake_sym(f, 8), 1, 1), 0);
	assert_int_equal(gdr_status(), -GDR_EREMOTEINV);
	assert_int_equal(e->op, GDRI_AMO);
	assert_int_equal(e->wqe_opcode, GDRI_OP_MASKED_CS);
	assert_int_equal(e->len, 8);
	assert_int_equal(e->addr, FAKE_USER + 8);
	assert_int_equal(gdr_quiet(), -GDR_EREMOTEINV);
	assert_int_equal(gdr_status(), 0); /* the quiet reported and cleared it */
	fake_stop(f);
}

/* The error comes from the NIC's own checks. */
static void test_real_errors(void **state)
{
	struct fake *f = start(1);

	(void)state;
	assert_int_equal(gdr_int_p((int *)(void *)(f->heap[0] + FAKE_HEAP + 4096), 1, 1), 0);
	assert_int_equal(gdr_quiet(), -GDR_EREMOTEACCESS);
	assert_int_equal(gdr_put(fake_sym(f, 0), f->heap[0] + FAKE_HEAP - 64, 128, 0),
			 -GDR_ELOCALPROT);
	assert_int_equal(gdr_status(), -GDR_ELOCALPROT); /* until a quiet tells it */
	assert_int_equal(gdr_quiet(), -GDR_ELOCALPROT);
	assert_int_equal(gdr_status(), 0);
	fake_stop(f);
}

/* ---- arguments that are refused also without the checked build ---- */

/* By queue a PE that there is none of is refused, and latched for who looks at no status. */
static void test_no_such_pe(void **state)
{
	static const int wrong[] = {2, 99, GDRI_MAX_PES, -1};
	struct fake *f = start(0);
	uint64_t *d = fake_sym(f, 0);
	struct gdri_error *e;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		e = &f->dev->errors[f->dev->n_errors];
		assert_int_equal(gdr_put(d, d, 8, wrong[i]), -GDR_EINVAL);
		assert_int_equal(e->reason, GDRI_ARG_PE);
		assert_int_equal((int64_t)e->len, wrong[i]);
		assert_int_equal(e->waited_ns, 2);
		assert_int_equal(gdr_status(), -GDR_EINVAL);
		assert_int_equal(gdr_quiet(), -GDR_EINVAL);
		assert_int_equal(gdr_quiet(), 0);
		assert_int_equal(gdr_get(d, d, 8, wrong[i]), -GDR_EINVAL);
		assert_int_equal(gdr_uint64_p(d, 1, wrong[i]), -GDR_EINVAL);
		assert_int_equal(gdr_uint64_g(d, wrong[i]), 0);
		assert_int_equal(gdr_uint64_atomic_inc(d, wrong[i]), -GDR_EINVAL);
		assert_int_equal(gdr_uint64_atomic_fetch_inc(d, wrong[i]), 0);
		assert_int_equal(gdr_signal_op(d, 1, GDR_SIGNAL_SET, wrong[i]), -GDR_EINVAL);
		assert_int_equal(gdr_put_signal(d, d, 8, d, 1, GDR_SIGNAL_SET, wrong[i]), -GDR_EINVAL);
		assert_int_equal(gdr_uint64_iput(d, d, 1, 1, 2, wrong[i]), -GDR_EINVAL);
		assert_int_equal(wrong[i] < 0 ? gdr_quiet() : gdr_quiet_pe(wrong[i]), -GDR_EINVAL);
	}
	assert_int_equal(f->n_wqe, 0);
	fake_stop(f);
}

static void test_arguments(void **state)
{
	struct fake *f = start(0);
	uint8_t far[64] = {0};
	struct gdri_error *e = f->dev->errors;

	(void)state;
	assert_int_equal(gdr_put(fake_sym(f, 0), far, 29, 1), -GDR_EINVAL);
	assert_int_equal(e->kind, GDRI_ERROR_ARG);
	assert_int_equal(e->state, 2);
	assert_int_equal(e->op, GDRI_PUT);
	assert_int_equal(e->peer, 1);
	assert_int_equal(e->addr, (uintptr_t)far);
	assert_int_equal(e->len, 29);
	assert_int_equal(e->reason, GDRI_ARG_LOCAL);
	e++;
	assert_int_equal(gdr_get(far, fake_sym(f, 0), 8, 1), -GDR_EINVAL);
	assert_int_equal(e->op, GDRI_GET);
	e++;
	assert_int_equal(gdr_put_signal(fake_sym(f, 0), far, 29, fake_sym(f, 64), 1,
					GDR_SIGNAL_SET, 1), -GDR_EINVAL);
	assert_int_equal(e->op, GDRI_PUT_SIGNAL);
	assert_int_equal(e->reason, GDRI_ARG_LOCAL);
	assert_int_equal(gdr_signal_op(fake_sym(f, 64), 1, 7, 1), -GDR_EINVAL);
	assert_int_equal(e[1].reason, GDRI_ARG_SIGNAL_OP);
	assert_int_equal(e[1].len, 7);
	assert_int_equal(gdr_int_wait_until(fake_sym(f, 64), -9, 1), -GDR_EINVAL);
	assert_int_equal(e[2].reason, GDRI_ARG_CMP);
	assert_int_equal((int64_t)e[2].len, -9);
	assert_int_equal(f->dev->n_errors, 5);
	assert_int_equal(f->n_wqe, 0);
	fake_stop(f);
}

/* More errors than records: counted, nothing overwritten. */
static void test_many_errors(void **state)
{
	struct fake *f = start(0);
	uint8_t far[64] = {0};
	int i;

	(void)state;
	for (i = 0; i < GDRI_MAX_ERRORS + 10; i++)
		assert_int_equal(gdr_put(fake_sym(f, 0), far, (size_t)(29 + i % 30), 1),
				 -GDR_EINVAL);
	assert_int_equal(f->dev->n_errors, GDRI_MAX_ERRORS + 10);
	assert_int_equal(f->dev->errors[0].len, 29);
	fake_stop(f);
}

/* A get that timed out leaves its slot taken for ever: its data may still arrive. */
static void test_slots(void **state)
{
	struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .timeout_ms = 30};
	struct fake *f = fake_start(&opt);

	(void)state;
	assert_int_equal(gdr_int_g(fake_sym(f, 0), 0), 0);
	assert_int_equal(f->dev->fetch_map[0], 0);
	fake_hold(f, 1);
	assert_int_equal(gdr_int_g(fake_sym(f, 0), 0), 0);
	assert_int_equal(gdr_status(), -GDR_ETIMEOUT);
	assert_int_equal(f->dev->fetch_map[0], 1);
	fake_hold(f, 0);
	f->dev->timeout_ns = 20000000000ull; /* from here on the NIC's thread may be slow */
	assert_int_equal(gdr_quiet(), -GDR_ETIMEOUT); /* the latched one */
	assert_int_equal(gdr_quiet(), 0);
	*(int *)fake_sym(f, 0) = 44;
	assert_int_equal(gdr_int_g(fake_sym(f, 0), 0), 44);
	assert_int_equal(f->dev->fetch_map[0], 1);
	fake_stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_syndromes),   cmocka_unit_test(test_flush),
		cmocka_unit_test(test_waiters),	    cmocka_unit_test(test_atomic_record),
		cmocka_unit_test(test_real_errors), cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_no_such_pe),
		cmocka_unit_test(test_many_errors), cmocka_unit_test(test_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
