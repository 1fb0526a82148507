/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion entries in the memory of the host, which a GPU looks at by one thread at a time: the others wait for what
 * it finds, and all of them end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

#define THREADS 4
#define POSTS 400

static struct gdri_qp *far_start(const struct fake_options *opt, struct fake **f)
{
	struct gdri_qp *qp;

	*f = fake_start(opt);
	qp = &(*f)->dev->qps[0];
	qp->cq_far = 1;
	return qp;
}

/* While another thread looks nothing is consumed; behind that all is, and nobody looks any more. */
static void far_one(int ring)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .ring = ring};
	struct fake *f;
	struct gdri_qp *qp = far_start(&opt, &f);

	assert_int_equal(gdr_uint64_p(fake_sym(f, 0), 1, 0), 0);
	fake_settle(f);
	qp->looker = 1;
	gdri_poll(f->dev, qp);
	assert_int_equal(qp->done, 0);
	if (ring)
		assert_int_equal(gdri_qp_wait_short(f->dev, qp, 1), 0);
	assert_int_equal(qp->cq_ci, 0);
	assert_int_equal(qp->looker, 1);
	qp->looker = 0;
	assert_int_equal(gdri_qp_wait(f->dev, qp, 1, GDRI_QUIET), 0);
	assert_int_equal(qp->done, 1);
	assert_int_equal(qp->looker, 0);
	fake_stop(f);
}

static void test_one(void **state)
{
	(void)state;
	far_one(0);
	far_one(1);
}

/* What another thread found ends a wait that does not look. */
static void test_found(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .ring = 1};
	struct fake *f;
	struct gdri_qp *qp = far_start(&opt, &f);

	(void)state;
	assert_int_equal(gdr_uint64_p(fake_sym(f, 0), 1, 0), 0);
	fake_settle(f);
	qp->looker = 1;
	qp->cq_ci = qp->done = 1;
	assert_int_equal(gdri_qp_wait(f->dev, qp, 1, GDRI_QUIET), 0);
	assert_int_equal(qp->looker, 1);
	fake_stop(f);
}

/* An error is recorded once, and all waits end by it. */
static void test_error(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .ring = 1, .timeout_ms = 5000};
	struct fake *f;
	struct gdri_qp *qp = far_start(&opt, &f);

	(void)state;
	f->qps[0].fail_syndrome = 0x13;
	f->qps[0].fail_at = 1;
	assert_int_equal(gdr_uint64_p(fake_sym(f, 0), 1, 0), 0);
	assert_int_equal(gdr_uint64_p(fake_sym(f, 8), 1, 0), 0);
	assert_int_equal(gdri_qp_wait(f->dev, qp, 2, GDRI_QUIET), -GDR_EREMOTEACCESS);
	assert_int_equal(qp->looker, 0);
	fake_stop(f);
}

static struct fake *shared;
static int failures;

static void *post_and_wait(void *arg)
{
	uint64_t i, id = (uint64_t)(uintptr_t)arg;
	int failed = 0;

	for (i = 1; i <= POSTS; i++)
		failed += gdr_uint64_p(fake_sym(shared, 8 * id), i, 0) || gdr_quiet() ||
			  *(volatile uint64_t *)fake_at(shared, 0, 8 * id) != i;
	__atomic_fetch_add(&failures, failed, __ATOMIC_RELAXED); /* read behind the join */
	return NULL;
}

static void far_many(int ring)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .ring = ring, .start = 65000};
	struct gdri_qp *qp = far_start(&opt, &shared);
	pthread_t t[THREADS];
	uintptr_t i;

	failures = 0;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, post_and_wait, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(failures, 0);
	assert_int_equal(qp->looker, 0);
	fake_stop(shared);
}

static void test_many(void **state)
{
	(void)state;
	far_many(0);
	far_many(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
