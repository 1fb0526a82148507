/* SPDX-License-Identifier: BSD-3-Clause */
/* What gdr_fence does to the entries behind it. IBTA volume 1, table "Work Request
 * Operation Ordering" (10.8.3.3): a READ or ATOMIC is in order with a later SEND,
 * WRITE or ATOMIC only if that one has the fence indicator. Looks at the bytes
 * in the ring, and runs against a NIC that makes use of what the table allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

#define THREADS 4

#ifdef GDRI_TSAN
#define ROUNDS 200
#else
#define ROUNDS 1000
#endif

static struct fake *f;

static void start(void)
{
	const struct fake_options opt = {.n_pes = 3, .n_slots = 1, .depth = 128};

	f = fake_start(&opt);
	fake_hold(f, 1);
}

static void finish(void)
{
	fake_hold(f, 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(f->n_bad, 0);
	fake_stop(f);
}

/* fm_ce_se of the WQE at block i of the queue to pe. */
static unsigned flags(int pe, unsigned i)
{
	return f->dev->qps[pe].sq[i * 64 + 11];
}

/* The first WQE behind a fence has the bit, whatever it is; no other has. */
static void test_bytes(void **state)
{
	uint64_t *w;

	(void)state;
	start();
	w = fake_sym(f, 0);
	assert_int_equal(gdr_uint64_atomic_add(w, 1, 1), 0);
	assert_int_equal(gdr_uint64_p(w, 1, 1), 0);
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_uint64_p(w, 2, 1), 0);	      /* 2 */
	assert_int_equal(gdr_uint64_p(w, 3, 1), 0);
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_put(w, w + 1, 8, 1), 0);	      /* 4 */
	assert_int_equal(gdr_put(w, w + 1, 8, 1), 0);
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_put(w, w + 1, 20, 1), 0);	      /* 6 */
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_put_nbi(w, w + 1, 640, 1), 0);   /* 7 */
	assert_int_equal(gdr_put_nbi(w, w + 1, 640, 1), 0);
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_put_signal_nbi(w, w + 8, 64, w, 1, GDR_SIGNAL_ADD, 1), 0); /* 9, 10 */
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_signal_op(w, 1, GDR_SIGNAL_SET, 1), 0); /* 11 */
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_uint64_atomic_set(w, 1, 1), 0);  /* 12, 13 */
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_uint32_atomic_set((uint32_t *)w, 1, 1), 0); /* 14 */
	assert_int_equal(gdr_uint32_atomic_set((uint32_t *)w, 1, 1), 0);
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_get_nbi(w + 8, w, 64, 1), 0);    /* 16 */
	assert_int_equal(gdr_uint64_p(w, 3, 1), 0);
	assert_int_equal(flags(1, 0), 0x08);
	assert_int_equal(flags(1, 1), 0x08);
	assert_int_equal(flags(1, 2), 0x48);
	assert_int_equal(flags(1, 3), 0x08);
	assert_int_equal(flags(1, 4), 0x48);
	assert_int_equal(flags(1, 5), 0x08);
	assert_int_equal(flags(1, 6), 0x48);
	assert_int_equal(flags(1, 7), 0x48);
	assert_int_equal(flags(1, 8), 0x08);
	assert_int_equal(flags(1, 9), 0x40);
	assert_int_equal(flags(1, 10), 0x08);
	assert_int_equal(flags(1, 11), 0x48);
	assert_int_equal(flags(1, 12), 0x48);
	assert_int_equal(flags(1, 14), 0x48);
	assert_int_equal(flags(1, 15), 0x08);
	assert_int_equal(flags(1, 16), 0x48);
	assert_int_equal(flags(1, 17), 0x08);
	finish();
}

/* Opcode and opmod. */
static unsigned opcode(int pe, unsigned i)
{
	const uint8_t *w = f->dev->qps[pe].sq + i * 64;

	return w[0] << 8 | w[3];
}

enum { SWAP_4 = 0x814, SWAP_8 = 0x914, WRITE = 0x008 };

/* Where the network does not keep WRITEs in order a flag is an atomic, or waits, and so does what is behind a fence. */
static void test_relaxed(void **state)
{
	uint64_t *w;
	uint8_t *b;

	(void)state;
	start();
	f->dev->flags |= GDRI_DEV_RELAXED;
	w = fake_sym(f, 0);
	b = (uint8_t *)w;
	assert_int_equal(gdr_uint64_p(w, 1, 1), 0);		/* 0, 1 */
	assert_int_equal(gdr_uint32_p((uint32_t *)w, 2, 1), 0); /* 2 */
	assert_int_equal(gdr_uint16_p((uint16_t *)w, 3, 1), 0); /* 3 */
	assert_int_equal(gdr_uint8_p(b + 1, 4, 1), 0);		/* 4 */
	assert_int_equal(gdr_signal_op(w, 1, GDR_SIGNAL_SET, 1), 0); /* 5, 6 */
	assert_int_equal(gdr_signal_op(w, 1, GDR_SIGNAL_ADD, 1), 0); /* 7 */
	assert_int_equal(gdr_put_signal_nbi(w + 8, w + 16, 64, w, 5, GDR_SIGNAL_SET, 1), 0); /* 8; 9, 10 */
	assert_int_equal(gdr_put(w + 8, w + 16, 8, 1), 0);     /* 11 */
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_put(w + 8, w + 16, 8, 1), 0);     /* 12 */
	assert_int_equal(gdr_put(w + 8, w + 16, 8, 1), 0);     /* 13 */
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_uint64_p(w, 6, 1), 0);	       /* 14, 15 */
	assert_int_equal(opcode(1, 0), SWAP_8);
	assert_int_equal(opcode(1, 2), SWAP_4);
	assert_int_equal(opcode(1, 3), WRITE);
	assert_int_equal(flags(1, 3), 0x68);
	assert_int_equal(opcode(1, 4), WRITE);
	assert_int_equal(flags(1, 4), 0x68);
	assert_int_equal(opcode(1, 5), SWAP_8);
	assert_int_equal(opcode(1, 7), GDRI_OP_ATOMIC_FA);
	assert_int_equal(opcode(1, 8), WRITE);
	assert_int_equal(flags(1, 8), 0);
	assert_int_equal(opcode(1, 9), SWAP_8);
	assert_int_equal(flags(1, 9), 0x08);
	assert_int_equal(opcode(1, 11), WRITE);
	assert_int_equal(flags(1, 11), 0x08);
	assert_int_equal(flags(1, 12), 0x68);
	assert_int_equal(flags(1, 13), 0x08);
	assert_int_equal(opcode(1, 14), SWAP_8);
	assert_int_equal(flags(1, 14), 0x68);
	fake_hold(f, 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(*(uint64_t *)fake_at(f, 1, 0), 6);
	finish();
}

/* What a PE tells that gives up waits for what it told before, where the network alone does not see to it. */
static void test_notice(void **state)
{
	struct gdri_qp *qp;

	(void)state;
	start();
	qp = gdri_qp_to(f->dev, 1, 0);
	assert_int_equal(gdri_tell_queue(f->dev, qp, offsetof(struct gdri_ctl, left), 1), 1); /* 0 */
	f->dev->flags |= GDRI_DEV_RELAXED;
	assert_int_equal(gdri_tell_queue(f->dev, qp, offsetof(struct gdri_ctl, left), 1), 1); /* 1 */
	gdri_tell_each(f->dev, -1); /* 2 */
	assert_int_equal(flags(1, 0), 0x08);
	assert_int_equal(flags(1, 1), 0x68);
	assert_int_equal(opcode(1, 2), WRITE);
	assert_int_equal(flags(1, 2), 0x68);
	assert_int_equal(flags(2, 0), 0x68);
	finish();
}

/* Each queue has its own. */
static void test_queues(void **state)
{
	uint64_t *w;
	int pe, k;

	(void)state;
	start();
	w = fake_sym(f, 0);
	assert_int_equal(gdr_fence(), 0);
	for (pe = 0; pe < 3; pe++)
		for (k = 0; k < 2; k++)
			assert_int_equal(gdr_uint64_p(w, 2, pe), 0);
	for (pe = 0; pe < 3; pe++) {
		assert_int_equal(flags(pe, 0), 0x48);
		assert_int_equal(flags(pe, 1), 0x08);
	}
	finish();
}

/* A reservation in front of the fenced one has looked before, and is the fencing thread's no
 * longer: who sees the mark reserves behind it. */
static void test_mark_is_behind(void **state)
{
	struct gdri_post a, b;
	struct gdri_qp *qp;

	(void)state;
	start();
	qp = &f->dev->qps[1];
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdri_post_begin(f->dev, qp, 1, 0, &a), 0);
	assert_int_equal(gdri_post_begin(f->dev, qp, 1, 0, &b), 0);
	assert_int_equal(a.fm, GDRI_FM_FENCE);
	assert_int_equal(b.fm, 0);
	assert_true(a.index < b.index);
	gdri_wqe_nop(qp, a.index, a.ce | a.fm);
	gdri_wqe_nop(qp, b.index, b.ce | b.fm);
	assert_int_equal(gdri_post_end(f->dev, qp, &a), 0);
	assert_int_equal(gdri_post_end(f->dev, qp, &b), 0);
	finish();
}

/* ---- the promise, against a NIC that is late with atomics ---- */

struct litmus {
	pthread_t thread;
	int id, bad;
};

static void *litmus(void *arg)
{
	struct litmus *l = arg;
	uint64_t *data = fake_sym(f, 64 * (uint64_t)l->id), *flag = data + 1, k;
	uint64_t *there = fake_at(f, 1, 64 * (uint64_t)l->id);
	unsigned round;

	for (k = 1; k <= ROUNDS; k++) {
		if (gdr_uint64_atomic_add(data, 1, 1) || gdr_fence() || gdr_uint64_p(flag, k, 1))
			l->bad++;
		for (round = 0; __atomic_load_n(there + 1, __ATOMIC_ACQUIRE) != k; round++)
			gdr_pause(round);
		if (__atomic_load_n(there, __ATOMIC_RELAXED) != k)
			l->bad++;
	}
	return NULL;
}

/* The word of a call, and that the PE gives up the next one: who finds that looks once more for the word. */
static void test_notice_behind(void **state)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .ring = 1, .late_atomics = 1,
					 .flags = GDRI_DEV_RELAXED};
	struct gdri_ctl *there;
	unsigned round;
	uint64_t k;

	(void)state;
	f = fake_start(&opt);
	there = (struct gdri_ctl *)f->heap[1];
	for (k = 1; k <= ROUNDS; k++) {
		assert_int_equal(gdr_signal_op(fake_sym(f, 0), k, GDR_SIGNAL_SET, 1), 0);
		f->dev->ctl->broken = k;
		gdri_tell_each(f->dev, -1);
		for (round = 0; __atomic_load_n(&there->broken, __ATOMIC_ACQUIRE) != k; round++)
			gdr_pause(round);
		assert_int_equal(__atomic_load_n((uint64_t *)fake_at(f, 1, 0), __ATOMIC_RELAXED), k);
	}
	assert_int_equal(gdr_quiet(), 0);
	fake_stop(f);
}

static void run_litmus(int n)
{
	const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .ring = 1,
					 .late_atomics = 1};
	struct litmus l[THREADS];
	int i;

	f = fake_start(&opt);
	for (i = 0; i < n; i++) {
		l[i].id = i;
		l[i].bad = 0;
		assert_int_equal(pthread_create(&l[i].thread, NULL, litmus, &l[i]), 0);
	}
	for (i = 0; i < n; i++) {
		pthread_join(l[i].thread, NULL);
		assert_int_equal(l[i].bad, 0);
	}
	assert_int_equal(gdr_quiet(), 0);
	fake_stop(f);
}

static void test_litmus(void **state)
{
	(void)state;
	run_litmus(1);
	run_litmus(THREADS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_relaxed),
		cmocka_unit_test(test_notice),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_mark_is_behind),
		cmocka_unit_test(test_litmus),
		cmocka_unit_test(test_notice_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
