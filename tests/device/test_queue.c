/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol against the NIC in memory: many posters, small rings,
 * indexes that pass 2^16 and 2^32, full rings, both kinds of CQ. Each test
 * counts what arrived and that the NIC never fetched a block too early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

#define THREADS 4
#define SLOTS 64 /* words that each thread writes to, per PE */

#ifdef GDRI_TSAN
#define SCALE 8
#else
#define SCALE 1
#endif

struct poster {
	pthread_t thread;
	struct fake *f;
	int id;
	unsigned posts, rng;
	enum { STRAIGHT, DELAYS, QUIETS } how; /* DELAYS: random ones between the steps of a post; QUIETS: after each */
	int failures;
	int stop; /* for who posts until told to stop */
};

static uint64_t *word(struct fake *f, int thread, unsigned i)
{
	return fake_sym(f, (uint64_t)(thread * SLOTS + (int)(i % SLOTS)) * 8);
}

/* One post with a delay between reservation, WQE and publication. */
static int post_slowly(struct poster *p, uint64_t *dst, uint64_t value, int pe)
{
	struct gdri_dev *dev = p->f->dev;
	struct gdri_qp *qp = gdri_qp_to(dev, pe, 0);
	uint32_t v[3] = {(uint32_t)value, (uint32_t)(value >> 32), 0};
	struct gdri_post post;
	int ret = gdri_post_begin(dev, qp, 1, 0, &post);

	if (ret)
		return ret;
	if (rand_r(&p->rng) % 16 == 0)
		usleep((unsigned)rand_r(&p->rng) % 200);
	gdri_wqe_write_inline(qp, post.index, post.ce, gdri_heap_offset(dev, dst), qp->rkey_sync, v,
			      8);
	if (rand_r(&p->rng) % 16 == 0)
		usleep((unsigned)rand_r(&p->rng) % 200);
	gdri_post_end(dev, qp, &post);
	return 0;
}

static void *post_many(void *arg)
{
	struct poster *p = arg;
	struct fake *f = p->f;
	unsigned i;
	int pe;

	for (i = 0; i < p->posts; i++) {
		pe = (int)(i % 2);
		if (p->how == DELAYS)
			p->failures += post_slowly(p, word(f, p->id, i), i + 1, pe) != 0;
		else if (i % 64 == 63) /* two blocks */
			p->failures += gdr_uint64_atomic_set(word(f, p->id, i), i + 1, pe) != 0;
		else
			p->failures += gdr_uint64_p(word(f, p->id, i), i + 1, pe) != 0;
		if (p->how == QUIETS || i % 1000 == 999)
			p->failures += gdr_quiet() != 0;
	}
	p->failures += gdr_quiet() != 0;
	return NULL;
}

static void check_words(struct fake *f, int id, unsigned posts)
{
	unsigned i;

	for (i = posts - SLOTS; i < posts; i++)
		assert_int_equal(*(uint64_t *)fake_at(f, (int)(i % 2),
						      (uint64_t)(id * SLOTS + (int)(i % SLOTS)) * 8),
				 i + 1);
}

static void run_posters(const struct fake_options *opt, unsigned posts, int how)
{
	struct poster p[THREADS];
	struct fake *f = fake_start(opt);
	int i;

	for (i = 0; i < THREADS; i++) {
		p[i].f = f;
		p[i].id = i;
		p[i].posts = posts;
		p[i].rng = (unsigned)i + 1;
		p[i].how = how;
		p[i].failures = 0;
		assert_int_equal(pthread_create(&p[i].thread, NULL, post_many, &p[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(p[i].thread, NULL);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(p[i].failures, 0);
		check_words(f, i, posts);
	}
	assert_int_equal(f->n_bad, 0);
	assert_int_equal(f->n_wqe, (uint64_t)posts * THREADS);
	assert_int_equal(f->dev->n_errors, 0);
	fake_stop(f);
}

static void test_one_entry(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128};

	(void)state;
	run_posters(&opt, 100000 / SCALE, STRAIGHT); /* 200,000 a queue: the 16-bit index wraps three times */
}

static void test_ring(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .ring = 1};

	(void)state;
	run_posters(&opt, 100000 / SCALE, STRAIGHT);
}

static void test_starts(void **state)
{
	static const uint64_t starts[] = {0xff00, 0x10000, 0xffffff80ull, 0x1fffffff0ull,
					  0x3fffffffffffff00ull};
	struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		opt.start = starts[i];
		opt.ring = 0;
		run_posters(&opt, 2000, STRAIGHT);
	}
}

static void test_delays(void **state)
{
	struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .slow_us = 50};

	(void)state;
	run_posters(&opt, 2000, DELAYS);
	opt.ring = 1;
	run_posters(&opt, 2000, DELAYS);
}

/* Every number is an index: WQEs of two blocks, which are reserved the general way, from each power of two on. */
static void test_powers(void **state)
{
	struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .timeout_ms = 2000};
	struct fake *f;
	unsigned bit;

	(void)state;
	for (bit = 6; bit < 63; bit++) {
		opt.start = 1ull << bit;
		f = fake_start(&opt);
		assert_int_equal(gdr_uint64_atomic_swap(fake_sym(f, 0), bit, 1), 0);
		assert_int_equal(gdr_quiet(), 0);
		assert_int_equal(f->dev->qps[1].rsvd, opt.start + 2);
		assert_int_equal(f->dev->n_errors, 0);
		fake_stop(f);
	}
}

/* Two-block WQEs that cross the end of the ring: depth is even, so one block goes first. */
static void test_two_blocks_at_end(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128};
	struct fake *f = fake_start(&opt);
	uint64_t *w = fake_sym(f, 0);
	unsigned i;

	(void)state;
	assert_int_equal(gdr_uint64_p(w, 7, 1), 0);
	for (i = 0; i < 1000; i++)
		assert_int_equal(gdr_uint64_atomic_swap(w, i, 1), i ? i - 1 : 7);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(f->n_bad, 0);
	assert_int_equal(f->dev->qps[1].rsvd, 2001);
	fake_stop(f);
}

/* A group that waits for room behind blocks of which only whole batches were rung for. */
static void test_group_behind_batch(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = GDRI_DEPTH_MIN};
	struct fake *f = fake_start(&opt);
	struct gdri_dev *dev = f->dev;
	struct gdri_qp *qp = &dev->qps[0];
	uint64_t base[2], group;
	unsigned i;

	(void)state;
	assert_int_equal(gdri_sq_reserve(dev, qp, 1, &base[0]), 0);
	for (i = 1; i < GDRI_DEPTH_MIN; i++) { /* always one more reserved */
		assert_int_equal(gdri_sq_reserve(dev, qp, 1, &base[i % 2]), 0);
		gdri_wqe_nop(qp, base[(i - 1) % 2], GDRI_CE_ALWAYS);
		gdri_sq_publish(dev, qp, base[(i - 1) % 2], 1, 0);
	}
	assert_int_equal(gdri_sq_reserve(dev, qp, GDRI_DEPTH_MIN / 4, &group), 0);
	gdri_wqe_nop(qp, base[1], GDRI_CE_ALWAYS);
	gdri_sq_publish(dev, qp, base[1], 1, 0);
	for (i = 0; i < GDRI_DEPTH_MIN / 4; i++)
		gdri_wqe_nop(qp, group + i, GDRI_CE_ALWAYS);
	gdri_sq_publish(dev, qp, group, GDRI_DEPTH_MIN / 4, 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(f->n_wqe, GDRI_DEPTH_MIN + GDRI_DEPTH_MIN / 4);
	fake_stop(f);
}

/* A full ring whose blocks the NIC has not looked at: posters wait, then go on. */
static void *release_later(void *arg)
{
	usleep(100000);
	fake_hold(arg, 0);
	return NULL;
}

static void test_full(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128};
	struct fake *f = fake_start(&opt);
	uint64_t *w = fake_sym(f, 0);
	pthread_t t;
	unsigned i;

	(void)state;
	fake_hold(f, 1);
	assert_int_equal(pthread_create(&t, NULL, release_later, f), 0);
	for (i = 0; i < 1000; i++)
		assert_int_equal(gdr_uint64_p(w, i, 1), 0);
	assert_true(f->dev->qps[1].rsvd <= 1000);
	assert_int_equal(gdr_quiet(), 0);
	pthread_join(t, NULL);
	assert_int_equal(*(uint64_t *)fake_at(f, 1, 0), 999);
	fake_stop(f);
}

/* With the NIC held a poster fills the ring to one block short and then gives up in time. */
static void test_full_times_out(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .timeout_ms = 50};
	struct fake *f = fake_start(&opt);
	uint64_t *w = fake_sym(f, 0);
	unsigned i;

	(void)state;
	fake_hold(f, 1);
	for (i = 0; i < 127; i++)
		assert_int_equal(gdr_uint64_p(w, i, 0), 0);
	assert_int_equal(gdr_uint64_p(w, i, 0), -GDR_ETIMEOUT);
	assert_int_equal(f->dev->errors[0].state, 2);
	assert_int_equal(f->dev->errors[0].kind, GDRI_ERROR_WAIT);
	assert_int_equal(f->dev->errors[0].op, GDRI_QUEUE_FULL);
	fake_hold(f, 0);
	f->dev->timeout_ns = 20000000000ull; /* from here on the NIC's thread may be slow */
	assert_int_equal(gdr_quiet(), 0); /* a timeout does not break the queue */
	fake_stop(f);
}

/* One doorbell each when posts do not overlap; the last block of a batch rings too. */
static void test_doorbells(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128};
	struct fake *f = fake_start(&opt);
	struct gdri_dev *dev = f->dev;
	struct gdri_qp *qp = &dev->qps[0];
	uint64_t base[2] = {0, 0};
	unsigned i;

	(void)state;
	for (i = 0; i < 40; i++) {
		assert_int_equal(gdr_uint64_p(fake_sym(f, 0), i, 0), 0);
		assert_int_equal(__builtin_bswap32(*qp->dbrec), i + 1);
	}
	assert_int_equal(gdri_sq_reserve(dev, qp, 1, &base[0]), 0);
	assert_int_equal(gdri_sq_reserve(dev, qp, 1, &base[1]), 0);
	gdri_wqe_nop(qp, base[0], GDRI_CE_ALWAYS);
	gdri_sq_publish(dev, qp, base[0], 1, 0);
	assert_int_equal(__builtin_bswap32(*qp->dbrec), 40); /* a later reserver rings */
	gdri_wqe_nop(qp, base[1], GDRI_CE_ALWAYS);
	gdri_sq_publish(dev, qp, base[1], 1, 0);
	assert_int_equal(__builtin_bswap32(*qp->dbrec), 42);
	for (; i < GDRI_BATCH - 3; i++)
		assert_int_equal(gdr_uint64_p(fake_sym(f, 0), i, 0), 0);
	assert_int_equal(gdri_sq_reserve(dev, qp, 1, &base[0]), 0);
	assert_int_equal(base[0], GDRI_BATCH - 1);
	assert_int_equal(gdri_sq_reserve(dev, qp, 1, &base[1]), 0);
	gdri_wqe_nop(qp, base[0], GDRI_CE_ALWAYS);
	gdri_sq_publish(dev, qp, base[0], 1, 0);
	assert_int_equal(__builtin_bswap32(*qp->dbrec), GDRI_BATCH); /* batch boundary */
	gdri_wqe_nop(qp, base[1], GDRI_CE_ALWAYS);
	gdri_sq_publish(dev, qp, base[1], 1, 0);
	assert_int_equal(gdr_quiet(), 0);
	fake_stop(f);
}

/* Who publishes hands on those behind it that are written and wait, all at once and up to the first that is not. From
 * each bit of the window on. */
static void hand_on_from(uint64_t start)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .start = start};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	uint64_t at[5], i;
	static const uint32_t n[5] = {1, 1, 2, 1, 3};

	for (i = 0; i < 5; i++) {
		assert_int_equal(gdri_sq_reserve(f->dev, qp, n[i], &at[i]), 0);
		gdri_wqe_nop(qp, at[i], GDRI_CE_ALWAYS);
		gdri_wqe_nop(qp, at[i] + n[i] - 1, GDRI_CE_ALWAYS);
		gdri_wqe_nop(qp, at[i] + n[i] / 2, GDRI_CE_ALWAYS);
	}
	for (i = 1; i < 5; i++)
		if (i != 3)
			assert_int_equal(gdri_sq_mark(qp, at[i], n[i], (uint32_t)(at[i] - start)), 1);
	gdri_sq_hand_on(f->dev, qp, at[0], 1, 0);
	assert_int_equal(qp->ready, at[3] << 1);
	gdri_sq_hand_on(f->dev, qp, at[3], 1, 0); /* as if it had not got round to marking */
	assert_int_equal(qp->ready, (start + 8) << 1);
	assert_int_equal(qp->marks, 0);
	assert_int_equal(__builtin_bswap32(*qp->dbrec), (start + 8) & 0xffff);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(f->n_wqe, 8);
	fake_stop(f);
}

static void test_hands_on(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 0; i < GDRI_WINDOW; i++)
		hand_on_from(0x3fffffffffffff00ull + i);
}

/* A whole window of them. */
static void test_hands_on_window(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .start = 100};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	uint64_t at, i;

	(void)state;
	for (i = 0; i < GDRI_WINDOW + 1; i++) {
		assert_int_equal(gdri_sq_reserve(f->dev, qp, 1, &at), 0);
		gdri_wqe_nop(qp, at, GDRI_CE_ALWAYS);
		if (i)
			assert_int_equal(gdri_sq_mark(qp, at, 1, gdri_sq_ahead(200, at)), i < GDRI_WINDOW);
	}
	gdri_sq_hand_on(f->dev, qp, 100, 1, 0);
	assert_int_equal(qp->ready, (100 + GDRI_WINDOW) << 1);
	assert_int_equal(qp->marks, 0);
	gdri_sq_publish(f->dev, qp, 100 + GDRI_WINDOW, 1, 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(f->n_wqe, GDRI_WINDOW + 1);
	fake_stop(f);
}

/* Groups are handed on as a whole, also the last one that fits into the window. */
static void test_hands_on_groups(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	uint64_t at, i;

	(void)state;
	assert_int_equal(gdri_sq_reserve(f->dev, qp, 1, &at), 0);
	gdri_wqe_nop(qp, at, GDRI_CE_ALWAYS);
	while (at < GDRI_WINDOW - 5) {
		assert_int_equal(gdri_sq_reserve(f->dev, qp, 5, &at), 0);
		for (i = 0; i < 5; i++)
			gdri_wqe_nop(qp, at + i, GDRI_CE_ALWAYS);
		assert_int_equal(gdri_sq_mark(qp, at, 5, gdri_sq_ahead(0, at)), at + 5 <= GDRI_WINDOW);
	}
	gdri_sq_hand_on(f->dev, qp, 0, 1, 0);
	assert_int_equal(qp->ready, at << 1);
	gdri_sq_publish(f->dev, qp, at, 5, 0);
	assert_int_equal(gdr_quiet(), 0);
	fake_stop(f);
}

/* Who finds too little room gives back what it took, and an error leaves none, whatever is completed behind it. */
static void test_room(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	uint64_t base;

	(void)state;
	assert_int_equal(gdri_sq_reserve_now(qp, 1), GDRI_NO_ROOM);
	assert_int_equal(gdri_sq_reserve(f->dev, qp, 32, &base), 0);
	assert_int_equal(qp->room, 127 - 32);
	assert_int_equal(gdri_sq_reserve_now(qp, 96), GDRI_NO_ROOM);
	assert_int_equal(gdri_sq_reserve_now(qp, 95), 32);
	assert_int_equal(qp->room, 0);
	assert_false(gdri_sq_enough(gdri_sq_take(qp, 1), 1)); /* another one, that has not given back yet */
	gdri_sq_raise(qp, qp->limit + 1);
	assert_int_equal(gdri_sq_reserve_now(qp, 1), GDRI_NO_ROOM);
	gdri_sq_give_back(qp, 1);
	assert_int_equal(gdri_sq_reserve_now(qp, 1), 127);
	gdri_sq_break(qp, -GDR_ETIMEOUT);
	gdri_sq_raise(qp, qp->limit + 1000);
	gdri_sq_give_back(qp, 1000);
	assert_int_equal(gdri_sq_reserve_now(qp, 1), GDRI_NO_ROOM);
	assert_int_equal(gdri_sq_reserve(f->dev, qp, 1, &base), -GDR_ETIMEOUT);
	fake_stop(f);
}

static void *post_ones(void *arg)
{
	struct poster *p = arg;
	struct gdri_qp *qp = &p->f->dev->qps[0];
	uint64_t at;

	while (!p->failures && !__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) { /* nothing is read behind it */
		p->failures = gdri_sq_reserve(p->f->dev, qp, 1, &at);
		if (p->failures)
			break;
		gdri_wqe_nop(qp, at, GDRI_CE_ALWAYS);
		p->failures = gdri_sq_publish(p->f->dev, qp, at, 1, 0);
	}
	return NULL;
}

/* Who needs many blocks of a full ring gets them beside those who take one at a time. */
static void test_many_beside_few(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .slow_us = 20, .timeout_ms = 20000};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	struct poster p[2 * THREADS] = {0};
	unsigned i, k;
	uint64_t at;

	(void)state;
	for (i = 0; i < 2 * THREADS; i++) {
		p[i].f = f;
		assert_int_equal(pthread_create(&p[i].thread, NULL, post_ones, &p[i]), 0);
	}
	for (i = 0; i < 20; i++) {
		assert_int_equal(gdri_sq_reserve(f->dev, qp, 32, &at), 0);
		for (k = 0; k < 32; k++)
			gdri_wqe_nop(qp, at + k, GDRI_CE_ALWAYS);
		assert_int_equal(gdri_sq_publish(f->dev, qp, at, 32, 0), 0);
	}
	for (i = 0; i < 2 * THREADS; i++) {
		__atomic_store_n(&p[i].stop, 1, __ATOMIC_RELAXED); /* pairs with the load in post_ones */
		pthread_join(p[i].thread, NULL);
		assert_int_equal(p[i].failures, 0);
	}
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(qp->room + qp->rsvd, qp->limit);
	fake_stop(f);
}

static void *reserve_32(void *arg)
{
	struct poster *p = arg;
	uint64_t at = 0;

	p->failures = gdri_sq_reserve(p->f->dev, &p->f->dev->qps[0], 32, &at);
	if (!p->failures)
		p->posts = (unsigned)at;
	return NULL;
}

static void wait_for_gate(struct gdri_qp *qp, uint32_t side, uint32_t count)
{
	unsigned i;

	for (i = 0; i < 10000 && gdri_gate_count(gdri_ld_relaxed_gpu_u64(&qp->gate), side) != count; i++)
		usleep(1000);
	assert_int_equal(gdri_gate_count(gdri_ld_relaxed_gpu_u64(&qp->gate), side), count);
}

/* Who waits for room, also for more than there is, goes before who does not; who comes later is on the other side. */
static void test_turns(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .timeout_ms = 20000};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	struct poster p[3] = {{.f = f}, {.f = f}, {.f = f}};
	uint32_t side = 1;
	unsigned i, k;

	(void)state;
	fake_hold(f, 1);
	for (i = 0; i < 100; i++)
		assert_int_equal(gdr_uint64_p(fake_sym(f, 0), i, 0), 0);
	assert_int_equal(qp->room, 27);
	for (i = 0; i < 3; i++) { /* the first one's turn comes at once */
		assert_int_equal(pthread_create(&p[i].thread, NULL, reserve_32, &p[i]), 0);
		wait_for_gate(qp, i ? !side : side, i ? i : 1);
	}
	assert_int_equal(gdri_sq_free(gdri_ld_relaxed_gpu_u64(&qp->room)), 27);
	assert_int_equal(gdri_sq_reserve_now(qp, 1), GDRI_NO_ROOM);
	assert_int_equal(gdri_sq_reserve_beside(f->dev, qp), 100); /* a wait's own */
	gdri_wqe_nop(qp, 100, GDRI_CE_ALWAYS);
	assert_int_equal(gdri_sq_publish(f->dev, qp, 100, 1, 0), 0);
	fake_hold(f, 0);
	for (i = 0; i < 3; i++) {
		pthread_join(p[i].thread, NULL);
		assert_int_equal(p[i].failures, 0);
		for (k = 0; k < 32; k++)
			gdri_wqe_nop(qp, p[i].posts + k, GDRI_CE_ALWAYS);
	}
	assert_int_equal(gdri_sq_publish(f->dev, qp, 101, 96, 0), 0);
	assert_int_equal(gdri_gate_count(qp->gate, 0) + gdri_gate_count(qp->gate, 1), 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(qp->room + qp->rsvd, qp->limit);
	fake_stop(f);
}

/* Who gives up waiting is not waited for. */
static void test_turn_times_out(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .timeout_ms = 50};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	uint64_t at;
	unsigned i;

	(void)state;
	fake_hold(f, 1);
	for (i = 0; i < 100; i++)
		assert_int_equal(gdr_uint64_p(fake_sym(f, 0), i, 0), 0);
	assert_int_equal(gdri_sq_reserve(f->dev, qp, 32, &at), -GDR_ETIMEOUT);
	assert_int_equal(qp->room, 27);
	assert_int_equal(gdri_gate_count(qp->gate, 0) + gdri_gate_count(qp->gate, 1), 0);
	fake_hold(f, 0);
	f->dev->timeout_ns = 20000000000ull;
	assert_int_equal(gdri_sq_reserve(f->dev, qp, 32, &at), 0);
	for (i = 0; i < 32; i++)
		gdri_wqe_nop(qp, at + i, GDRI_CE_ALWAYS);
	assert_int_equal(gdri_sq_publish(f->dev, qp, at, 32, 0), 0);
	assert_int_equal(gdr_quiet(), 0);
	fake_stop(f);
}

/* A thread whose turn it is and that does not run keeps the others waiting for a time, no longer. */
static void test_turn_unused(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .timeout_ms = 20000};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	uint32_t late;
	unsigned i;

	(void)state;
	late = gdri_gate_enter(qp);
	assert_int_equal(gdri_gate_turn(qp, late, 0), 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(gdr_uint64_p(fake_sym(f, 0), i, 0), 0);
	assert_int_equal(gdri_gate_count(qp->gate, late), 1);
	gdri_gate_leave(qp, late);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(f->n_wqe, 3);
	assert_int_equal(f->dev->n_errors, 0);
	fake_stop(f);
}

/* The limit of a wait counts from the last block that the NIC completed: a slow one lasts longer than the limit. */
static void test_slow_is_not_stuck(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .timeout_ms = 1000, .each_us = 35000};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	unsigned i;
	uint64_t at;

	(void)state;
	for (i = 0; i < 127; i++)
		assert_int_equal(gdr_uint64_p(fake_sym(f, 0), i, 0), 0);
	assert_int_equal(gdri_sq_reserve(f->dev, qp, 32, &at), 0); /* 32 times 35 ms */
	__atomic_store_n(&f->opt.each_us, 0, __ATOMIC_RELAXED); /* alone: pairs with nothing */
	for (i = 0; i < 32; i++)
		gdri_wqe_nop(qp, at + i, GDRI_CE_ALWAYS);
	assert_int_equal(gdri_sq_publish(f->dev, qp, at, 32, 0), 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(f->n_wqe, at + 32);
	assert_int_equal(f->dev->n_errors, 0);
	fake_stop(f);
}

/* A reserver that never publishes: the next one ends in time and the queue says so. */
static void test_lost_reserver(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .timeout_ms = 50};
	struct fake *f = fake_start(&opt);
	uint64_t base = 0;

	(void)state;
	assert_int_equal(gdr_uint64_p(fake_sym(f, 0), 1, 0), 0);
	assert_int_equal(gdri_sq_reserve(f->dev, &f->dev->qps[0], 1, &base), 0);
	assert_int_equal(gdr_uint64_p(fake_sym(f, 0), 2, 0), -GDR_ETIMEOUT);
	assert_int_equal(gdr_uint64_p(fake_sym(f, 0), 3, 0), -GDR_ETIMEOUT);
	assert_int_equal(gdr_quiet(), -GDR_ETIMEOUT);
	assert_int_equal(f->dev->errors[0].op, GDRI_PUBLISH);
	fake_stop(f);
}

/* Two wait behind it; the second learns of the first one's failure. Neither goes on
 * telling the other PEs that it waits. */
static void *post_one(void *arg)
{
	struct fake *f = arg;

	gdr_uint64_p(fake_sym(f, 0), 2, 0);
	return NULL;
}

static void test_lost_reserver_two(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .timeout_ms = 200};
	struct fake *f = fake_start(&opt);
	uint64_t base = 0;
	pthread_t t[2];
	unsigned i;

	(void)state;
	assert_int_equal(gdr_uint64_p(fake_sym(f, 0), 1, 0), 0);
	assert_int_equal(gdri_sq_reserve(f->dev, &f->dev->qps[0], 1, &base), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&t[i], NULL, post_one, f), 0);
		usleep(100000);
	}
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	for (i = 1; i < GDRI_WAIT_RECORDS; i++)
		assert_int_equal(f->dev->ctl->waits[i].state, GDRI_WAIT_IDLE);
	fake_stop(f);
}

/* Only the last WQE of a reservation asks for a CQE. */
static void test_unsignalled(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .ring = 1};
	struct fake *f = fake_start(&opt);
	struct gdri_dev *dev = f->dev;
	struct gdri_qp *qp = &dev->qps[0];
	uint64_t base = 0, i, round;

	(void)state;
	for (round = 0; round < 100; round++) {
		assert_int_equal(gdri_sq_reserve(dev, qp, 30, &base), 0);
		for (i = 0; i < 30; i++)
			gdri_wqe_nop(qp, base + i, i == 29 ? GDRI_CE_ALWAYS : GDRI_CE_ERROR_ONLY);
		gdri_sq_publish(dev, qp, base, 30, 0);
	}
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(qp->done, 3000);
	assert_int_equal(qp->cq_ci, 100);
	fake_stop(f);
}

/* Waits for what one thread posts at a time, by which others may be waiting, too. */
static void test_quiets(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .ring = 1, .start = 65000};

	(void)state;
	run_posters(&opt, 2000 / SCALE, QUIETS);
}

/* Until the short wait has found what it waits for: how often it did not. */
static int looks(struct fake *f, uint64_t target)
{
	int n;

	for (n = 0; n < 10000 && !gdri_qp_wait_short(f->dev, &f->dev->qps[0], target); n++)
		usleep(100);
	assert_in_range(n, 0, 9999);
	return n;
}

static void test_wait_short(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128, .ring = 1};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];
	unsigned i;

	(void)state;
	fake_hold(f, 1);
	assert_int_equal(gdr_uint64_p(fake_sym(f, 0), 1, 0), 0);
	assert_int_equal(gdri_qp_wait_short(f->dev, qp, 1), 0);
	assert_int_equal(qp->cq_ci, 0);
	fake_hold(f, 0);
	looks(f, 1);
	assert_int_equal(qp->cq_ci, 1);
	assert_int_equal(qp->done, 1);
	assert_int_equal(looks(f, 1), 0); /* no more to be consumed for it */
	assert_int_equal(qp->cq_ci, 1);
	for (i = 0; i < 10; i++)
		assert_int_equal(gdr_uint64_p(fake_sym(f, 0), i, 0), 0);
	looks(f, 11); /* the last of many */
	assert_int_equal(qp->cq_ci, 11);
	assert_int_equal(qp->done, 11);
	f->qps[0].fail_syndrome = 0x13;
	f->qps[0].fail_at = 11;
	assert_int_equal(gdr_uint64_p(fake_sym(f, 0), 2, 0), 0);
	assert_true(gdri_qp_wait(f->dev, qp, 12, GDRI_QUIET) < 0);
	assert_int_equal(gdri_qp_wait_short(f->dev, qp, 12), 0); /* an error stays */
	assert_int_equal(qp->cq_ci, 11);
	fake_stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_entry),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_powers),
		cmocka_unit_test(test_delays),
		cmocka_unit_test(test_two_blocks_at_end),
		cmocka_unit_test(test_group_behind_batch),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_full_times_out),
		cmocka_unit_test(test_doorbells),
		cmocka_unit_test(test_lost_reserver),
		cmocka_unit_test(test_lost_reserver_two),
		cmocka_unit_test(test_hands_on),
		cmocka_unit_test(test_hands_on_window),
		cmocka_unit_test(test_hands_on_groups),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_many_beside_few),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_turn_times_out),
		cmocka_unit_test(test_turn_unused),
		cmocka_unit_test(test_slow_is_not_stuck),
		cmocka_unit_test(test_unsignalled),
		cmocka_unit_test(test_quiets),
		cmocka_unit_test(test_wait_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
