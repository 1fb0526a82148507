/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of the engine in threads that poll (SOFTHCA_INLINE=1): several threads, control calls
 * amid them, the engine's thread that leaves and comes back, threads that end in a poll. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim.h"
#include "softhca/engine/poll_round.h"

enum { THREADS = 3, WRITES = 3000, AREA = 8192, WAIT = 20000, POLLS = 1000 };

static struct worker {
	struct sim_qp *a, *b;
	uint8_t *src, *dst;
	uint32_t lkey, rkey;
	unsigned seed, bad;
} workers[THREADS];

static uint64_t rounds(void)
{
	return __atomic_load_n(&hca_stats.poll_rounds, __ATOMIC_RELAXED);
}

static void worker_init(struct worker *w, unsigned seed)
{
	const uint32_t all = HCA_LOCAL_WRITE | HCA_REMOTE_WRITE | HCA_REMOTE_READ;

	*w = (struct worker){ .a = sim_qp(6, SIM_CQ_RING), .b = sim_qp(6, SIM_CQ_RING),
			      .src = aligned_alloc(64, AREA), .dst = aligned_alloc(64, AREA),
			      .seed = seed };
	memset(w->src, 0, AREA);
	memset(w->dst, 0, AREA);
	w->lkey = sim_mr(w->src, AREA, all, 1, (uintptr_t)w->src);
	w->rkey = sim_mr(w->dst, AREA, all, 1, (uintptr_t)w->dst);
	sim_pair(w->a, w->b);
}

static void worker_end(struct worker *w)
{
	sim_qp_free(w->a);
	sim_qp_free(w->b);
	sim_mr_remove(w->lkey);
	sim_mr_remove(w->rkey);
	free(w->src);
	free(w->dst);
}

/* As ibv_poll_cq with the hook. */
static bool poll(struct worker *w, struct sim_cqe *c)
{
	return sim_look(w->a, c) || (poll_round() && sim_look(w->a, c));
}

static bool poll_until(struct worker *w)
{
	uint64_t end = sim_now() + WAIT * 1000000ull;
	struct sim_cqe c = { .type = 0xff };

	while (!poll(w, &c))
		if (sim_now() > end)
			return false;
	return c.type == 0;
}

/* A write, or its bytes read back, of another size each time. */
static bool turn(struct worker *w, unsigned i)
{
	uint32_t len = 1 + rand_r(&w->seed) % AREA;

	if (i % 4 == 3) {
		memset(w->src, 0, AREA);
		sim_read(w->a, (uintptr_t)w->dst, w->rkey, w->src, AREA, w->lkey, 1);
		sim_ring(w->a);
		return poll_until(w) && !memcmp(w->src, w->dst, AREA);
	}
	for (uint32_t j = 0; j < len; j++)
		w->src[j] = (uint8_t)(i + j);
	sim_write(w->a, (uintptr_t)w->dst, w->rkey, w->src, len, w->lkey, 1);
	sim_ring(w->a);
	return poll_until(w) && !memcmp(w->src, w->dst, len);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < WRITES && !w->bad; i++)
		w->bad = turn(w, i) ? 0 : i + 1;
	return NULL;
}

/* Objects come and go meanwhile: who polls lets control calls have the lock. */
static void test_threads(void **state)
{
	uint64_t before = rounds();
	pthread_t t[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		worker_init(&workers[i], i + 1);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, work, &workers[i]), 0);
	for (unsigned i = 0; i < 20; i++) {
		struct sim_qp *q = sim_qp(6, SIM_CQ_RING);

		sim_connect(q, q->qp.qpn);
		usleep(500);
		sim_qp_free(q);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(workers[i].bad, 0);
		worker_end(&workers[i]);
	}
	assert_true(rounds() > before);
}

/* Polls an empty queue so long; how many rounds that were. */
static uint64_t poll_for(struct worker *w, unsigned us)
{
	uint64_t before = rounds(), end = sim_now() + us * 1000ull;
	struct sim_cqe c;

	while (sim_now() < end)
		assert_false(poll(w, &c));
	return rounds() - before;
}

/* Without rounds by this thread. */
static void write_unpolled(struct worker *w)
{
	struct sim_cqe c;

	sim_write(w->a, (uintptr_t)w->dst, w->rkey, w->src, 8, w->lkey, 1);
	sim_ring(w->a);
	assert_true(sim_poll(w->a, &c, WAIT));
	assert_int_equal(c.type, 0);
}

/* Who polled has stopped: what is posted then is done all the same. */
static void test_comes_back(void **state)
{
	struct worker *w = &workers[0];

	(void)state;
	worker_init(w, 9);
	for (unsigned i = 0; i < 20; i++) {
		poll_for(w, 1000);
		write_unpolled(w);
	}
	worker_end(w);
}

static bool polls_in_vain(struct worker *w)
{
	uint64_t before = rounds();
	struct sim_cqe c;

	for (unsigned i = 0; i < POLLS; i++)
		assert_false(poll(w, &c));
	return rounds() == before;
}

/* Where the engine comes too late again and again, those who poll run no rounds for a while. */
static void test_ban(void **state)
{
	struct worker *w = &workers[0];
	uint64_t end = sim_now() + WAIT * 1000000ull;

	(void)state;
	worker_init(w, 9);
	while (!polls_in_vain(w)) {
		assert_true(sim_now() < end);
		poll_for(w, 200);
		write_unpolled(w);
	}
	while (!poll_for(w, 1000))
		assert_true(sim_now() < end);
	worker_end(w);
}

#ifndef __SANITIZE_ADDRESS__ /* it takes the unwound stack of a cancelled thread for one in use */
static void *poll_for_ever(void *arg)
{
	struct sim_cqe c;

	for (;;) {
		poll(arg, &c);
		pthread_testcancel();
	}
	return NULL;
}

/* A round makes system calls, at which a thread may end. */
static void test_cancelled(void **state)
{
	struct worker *w = &workers[0];
	pthread_t t;

	(void)state;
	worker_init(w, 9);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(pthread_create(&t, NULL, poll_for_ever, w), 0);
		usleep(rand_r(&w->seed) % 1000);
		pthread_cancel(t);
		pthread_join(t, NULL);
		write_unpolled(w);
	}
	worker_end(w);
}
#endif

/* The last one: it is for good. A poll in vain of before does not take the lock from the engine after
 * each round from then on. */
static void test_forbidden(void **state)
{
	struct worker *w = &workers[0];
	uint64_t end = sim_now() + WAIT * 1000000ull;

	(void)state;
	worker_init(w, 9);
	while (!poll_for(w, 1000)) /* a ban of before */
		assert_true(sim_now() < end);
	hca_lock();
	usleep(20000); /* the engine wants it, too */
	assert_false(poll_round());
	poll_forbid();
	hca_unlock();
	assert_int_equal(poll_for(w, 300000), 0);
	assert_false(poll_wanted());
	write_unpolled(w);
	worker_end(w);
}

static int init(void **state)
{
	(void)state;
	setenv("SOFTHCA_INLINE", "1", 1);
	sim_init();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_comes_back),
		cmocka_unit_test(test_ban),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_cancelled),
#endif
		cmocka_unit_test(test_forbidden),
	};

	return cmocka_run_group_tests(tests, init, NULL);
}
