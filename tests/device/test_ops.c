/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation, type and size class against what memory must hold after it,
 * by queue (both kinds of CQ, both clean and slow NIC) and by mapped heap. PE 1
 * is the target; destinations are poisoned on both sides of the object. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

static const struct fake_options configs[] = {
	{.n_pes = 3, .n_slots = 1, .depth = 128, .buffer = 1},
	{.n_pes = 3, .n_slots = 2, .depth = 128, .ring = 1, .buffer = 1},
	{.n_pes = 3, .n_slots = 1, .depth = 128, .buffer = 1, .flags = GDRI_DEV_READ_FLUSH},
	{.n_pes = 3, .n_slots = 1, .depth = 128, .mapped = 1},
	{.n_pes = 3, .n_slots = 1, .depth = 128, .mapped = 1,
	 .flags = GDRI_DEV_NIC_ATOMICS | GDRI_DEV_MIXED},
};
#define N_CONFIGS (sizeof(configs) / sizeof(configs[0]))

static struct fake *f;

static void each_config(void (*fn)(void))
{
	unsigned i;

	for (i = 0; i < N_CONFIGS; i++) {
		f = fake_start(&configs[i]);
		fn();
		assert_int_equal(gdr_quiet(), 0);
		assert_int_equal(gdr_status(), 0);
		assert_int_equal(f->n_bad, 0);
		assert_int_equal(f->dev->n_errors, 0);
		fake_stop(f);
	}
}

/* ---- put and get ---- */

static void fill(uint8_t *p, size_t len, unsigned seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(rand_r(&seed) >> 3);
}

static void check_put(size_t len, unsigned shift, int form)
{
	uint8_t *src = fake_sym(f, 200000 + shift), *at = fake_at(f, 1, 4096 - 64);
	uint8_t *dst = fake_sym(f, 4096 + shift);
	uint64_t *sig = fake_sym(f, 64);
	int ret;

	fill(src, len, (unsigned)len);
	memset(at, 0xa5, len + 256);
	*(uint64_t *)fake_at(f, 1, 64) = 5;
	switch (form) {
	case 0:
		ret = gdr_put(dst, src, len, 1);
		break;
	case 1:
		ret = gdr_put_nbi(dst, src, len, 1);
		break;
	case 2:
		ret = gdr_put_signal(dst, src, len, sig, 9, GDR_SIGNAL_SET, 1);
		break;
	case 3:
		ret = gdr_put_signal_nbi(dst, src, len, sig, 4, GDR_SIGNAL_ADD, 1);
		break;
	case 4:
		ret = gdr_put_block(dst, src, len, 1);
		break;
	default:
		ret = gdr_put_nbi_warp(dst, src, len, 1);
		break;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_memory_equal(at + 64 + shift, src, len);
	assert_int_equal(at[63 + shift], 0xa5);
	assert_int_equal(at[64 + shift + len], 0xa5);
	assert_int_equal(*(uint64_t *)fake_at(f, 1, 64), form == 2 || form == 3 ? 9 : 5);
}

static void check_get(size_t len, unsigned shift, int nbi)
{
	uint8_t *src = fake_sym(f, 4096 + shift), *at = fake_at(f, 1, 4096 + shift);
	uint8_t *dst = fake_sym(f, 200000 + shift);

	fill(at, len, (unsigned)len + 1);
	memset(dst - 1, 0xa5, len + 2);
	assert_int_equal(nbi ? gdr_get_nbi(dst, src, len, 1) : gdr_get(dst, src, len, 1), 0);
	if (nbi)
		assert_int_equal(gdr_quiet_pe(1), 0);
	assert_memory_equal(dst, at, len);
	assert_int_equal(dst[-1], 0xa5);
	assert_int_equal(dst[len], 0xa5);
}

static void put_get(void)
{
	static const size_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 11, 12, 13, 16, 27, 28, 29, 64, 1000, 4096,
				       65536, 100001};
	unsigned i, shift;
	int form;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (shift = 0; shift < 9; shift++) {
			for (form = 0; form < 6; form++)
				check_put(sizes[i], shift, form);
			check_get(sizes[i], shift, 0);
			check_get(sizes[i], shift, 1);
		}
}

static void test_put_get(void **state)
{
	(void)state;
	each_config(put_get);
}

/* Sources outside the heap: small ones anywhere, others in a registered buffer. */
static void outside(void)
{
	uint8_t small[28], back[28];

	fill(small, sizeof(small), 3);
	assert_int_equal(gdr_put(fake_sym(f, 0), small, sizeof(small), 1), 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_memory_equal(fake_at(f, 1, 0), small, sizeof(small));
	fill(f->buffer, 5000, 4);
	assert_int_equal(gdr_put(fake_sym(f, 3), f->buffer + 5, 4000, 1), 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_memory_equal(fake_at(f, 1, 3), f->buffer + 5, 4000);
	memset(f->buffer, 0, 5000);
	assert_int_equal(gdr_get(f->buffer + 1, fake_sym(f, 0), 28, 1), 0);
	memcpy(back, f->buffer + 1, 28);
	assert_memory_equal(back, fake_at(f, 1, 0), 28);
}

static void test_outside(void **state)
{
	(void)state;
	each_config(outside);
}

/* ---- typed ---- */

#define CHECK_RMA(name, T)                                                                         \
	do {                                                                                       \
		T *o = fake_sym(f, 512), v[5], got[5];                                             \
		T *heap = fake_sym(f, 8192);                                                       \
                                                                                                   \
		fill((uint8_t *)v, sizeof(v), 7);                                                  \
		v[0] = (T)77;                                                                      \
		memset(fake_at(f, 1, 504), 0xa5, 256);                                             \
		assert_int_equal(gdr_##name##_p(o, v[0], 1), 0);                                   \
		assert_int_equal(gdr_quiet(), 0);                                                  \
		assert_memory_equal(fake_at(f, 1, 512), &v[0], sizeof(T));                         \
		assert_int_equal(*(uint8_t *)fake_at(f, 1, 511), 0xa5);                            \
		assert_int_equal(*(uint8_t *)fake_at(f, 1, 512 + sizeof(T)), 0xa5);                \
		assert_true(gdr_##name##_g(o, 1) == v[0]);                                         \
		memcpy(heap, v, sizeof(v));                                                        \
		assert_int_equal(gdr_##name##_put(o, heap, 5, 1), 0);                              \
		assert_int_equal(gdr_##name##_put_nbi(o, heap, 5, 1), 0);                          \
		assert_int_equal(gdr_quiet(), 0);                                                  \
		assert_memory_equal(fake_at(f, 1, 512), v, sizeof(v));                             \
		assert_int_equal(*(uint8_t *)fake_at(f, 1, 512 + sizeof(v)), 0xa5);                \
		memset(heap, 0, sizeof(v));                                                        \
		assert_int_equal(gdr_##name##_get(heap, o, 5, 1), 0);                              \
		memcpy(got, heap, sizeof(got));                                                    \
		assert_memory_equal(got, v, sizeof(v));                                            \
	} while (0);

static void typed(void)
{
	GDR_RMA_TYPES(CHECK_RMA)
}

static void test_typed(void **state)
{
	(void)state;
	each_config(typed);
}

/* ---- atomics ---- */

#define AT(T) (*(T *)fake_at(f, 1, 1024))
#define CHECK_PLAIN(T, call, before, after)                                                        \
	do {                                                                                       \
		AT(T) = (T)(before);                                                               \
		assert_int_equal(call, 0);                                                         \
		assert_int_equal(gdr_quiet(), 0);                                                  \
		assert_true(AT(T) == (T)(after));                                                  \
	} while (0)
#define CHECK_FETCH(T, call, before, after)                                                        \
	do {                                                                                       \
		AT(T) = (T)(before);                                                               \
		assert_true((call) == (T)(before));                                                \
		assert_true(AT(T) == (T)(after));                                                  \
	} while (0)

#define CHECK_AMO(name, T)                                                                         \
	do {                                                                                       \
		T *o = fake_sym(f, 1024);                                                          \
		T b = (T)0x8123456789abcdefull, v = (T)0xf0f1f2f3f4f5f6f7ull;                      \
		uint64_t ub = (uint64_t)b, uv = (uint64_t)v;                                       \
                                                                                                   \
		memset(fake_at(f, 1, 1016), 0xa5, 32);                                             \
		CHECK_PLAIN(T, gdr_##name##_atomic_set(o, v, 1), b, v);                            \
		CHECK_PLAIN(T, gdr_##name##_atomic_inc(o, 1), b, ub + 1);                          \
		CHECK_PLAIN(T, gdr_##name##_atomic_add(o, v, 1), b, ub + uv);                      \
		CHECK_PLAIN(T, gdr_##name##_atomic_and(o, v, 1), b, ub & uv);                      \
		CHECK_PLAIN(T, gdr_##name##_atomic_or(o, v, 1), b, ub | uv);                       \
		CHECK_PLAIN(T, gdr_##name##_atomic_xor(o, v, 1), b, ub ^ uv);                      \
		CHECK_FETCH(T, gdr_##name##_atomic_fetch(o, 1), b, b);                             \
		CHECK_FETCH(T, gdr_##name##_atomic_fetch_inc(o, 1), b, ub + 1);                    \
		CHECK_FETCH(T, gdr_##name##_atomic_fetch_inc(o, 1), -1, 0);                        \
		CHECK_FETCH(T, gdr_##name##_atomic_fetch_add(o, v, 1), b, ub + uv);                \
		CHECK_FETCH(T, gdr_##name##_atomic_fetch_and(o, v, 1), b, ub & uv);                \
		CHECK_FETCH(T, gdr_##name##_atomic_fetch_or(o, v, 1), b, ub | uv);                 \
		CHECK_FETCH(T, gdr_##name##_atomic_fetch_xor(o, v, 1), b, ub ^ uv);                \
		CHECK_PLAIN(T, gdr_##name##_atomic_max(o, v, 1), b, b > v ? b : v);                \
		CHECK_PLAIN(T, gdr_##name##_atomic_min(o, v, 1), b, b < v ? b : v);                \
		CHECK_FETCH(T, gdr_##name##_atomic_fetch_max(o, b, 1), v, b > v ? b : v);          \
		CHECK_FETCH(T, gdr_##name##_atomic_fetch_min(o, b, 1), v, b < v ? b : v);          \
		CHECK_FETCH(T, gdr_##name##_atomic_swap(o, v, 1), b, v);                           \
		CHECK_FETCH(T, gdr_##name##_atomic_compare_swap(o, b, v, 1), b, v);                \
		CHECK_FETCH(T, gdr_##name##_atomic_compare_swap(o, v, v, 1), b, b);                \
		assert_int_equal(*(uint8_t *)fake_at(f, 1, 1023), 0xa5);                           \
		assert_int_equal(*(uint8_t *)fake_at(f, 1, 1024 + sizeof(T)), 0xa5);               \
	} while (0);

static void atomics(void)
{
	GDR_AMO_TYPES(CHECK_AMO)
}

static void test_atomics(void **state)
{
	(void)state;
	each_config(atomics);
}

/* Where a PE is reached by queue no atomic takes the mapped way, not even to oneself. */
static void test_one_path(void **state)
{
	uint64_t *w, before;
	int pe;

	(void)state;
	f = fake_start(&configs[4]);
	w = fake_sym(f, 0);
	for (pe = 0; pe < 3; pe++) {
		before = __atomic_load_n(&f->n_wqe, __ATOMIC_RELAXED);
		assert_int_equal(gdr_uint64_atomic_add(w, 2, pe), 0);
		assert_int_equal(gdr_uint64_atomic_fetch_add(w, 2, pe), 2);
		assert_int_equal(gdr_signal_op(w, 3, GDR_SIGNAL_ADD, pe), 0);
		assert_int_equal(gdr_quiet(), 0);
		assert_int_equal(f->n_wqe - before, 3);
		assert_int_equal(*(uint64_t *)fake_at(f, pe, 0), 7);
		assert_int_equal(gdr_signal_op(w, 1, GDR_SIGNAL_SET, pe), 0);
		assert_int_equal(gdr_uint64_p(w, 1, pe), 0);
		assert_int_equal(f->n_wqe - before, 3); /* these are stores */
	}
	/* fence completes what a later store could overtake */
	fake_hold(f, 1);
	assert_int_equal(gdr_uint64_atomic_add(w, 2, 1), 0);
	fake_hold(f, 0);
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(*(uint64_t *)fake_at(f, 1, 0), 3);
	fake_stop(f);
}

/* By compare-and-swap: a look, and a swap only where the word is to change. */
static void test_maximum(void **state)
{
	const double word = -0.5, less = -2, more = 0.25;
	uint64_t before;
	double *w, *at;

	(void)state;
	f = fake_start(&configs[4]);
	w = fake_sym(f, 0);
	at = fake_at(f, 1, 0);
	*at = word;
	before = __atomic_load_n(&f->n_wqe, __ATOMIC_RELAXED); /* alone: pairs with nothing */
	assert_true(gdr_double_atomic_fetch_max(w, less, 1) == word);
	assert_int_equal(f->n_wqe - before, 1);
	assert_true(gdr_double_atomic_fetch_max(w, more, 1) == word);
	assert_int_equal(f->n_wqe - before, 3);
	assert_true(*at == more);
	assert_int_equal(gdr_double_atomic_min(w, less, 1), 0);
	assert_int_equal(f->n_wqe - before, 5);
	assert_true(*at == less);
	fake_stop(f);
}

/* Where the other end combines it is one entry, which a NIC refuses. */
static void test_combine(void **state)
{
	const double more = 0.25;
	uint64_t before, bits;
	const uint8_t *entry;
	struct gdri_qp *qp;

	(void)state;
	f = fake_start(&configs[4]);
	f->dev->flags |= GDRI_DEV_COMBINES;
	qp = &f->dev->qps[f->dev->n_slots];
	entry = qp->sq + (qp->rsvd & (qp->depth - 1)) * GDRI_WQE_BLOCK;
	before = qp->rsvd;
	assert_int_equal(gdr_double_atomic_max((double *)fake_sym(f, 16), more, 1), -GDR_ELOCALQP);
	assert_int_equal(qp->rsvd - before, 1);
	memcpy(&bits, &more, 8);
	assert_int_equal(entry[0], GDRI_OPMOD_COMBINE);
	assert_int_equal(entry[3], GDRI_OP_MASKED_FA);
	assert_int_equal(entry[7], 4);
	assert_true(gdri_ld_be64(entry + 16) == FAKE_USER + 16);
	assert_true(gdri_ld_be64(entry + 32) == bits);
	assert_int_equal(gdri_ld_be64(entry + 40), GDRI_REDUCE_CODE(double, GDRI_MAX));
	assert_int_equal(gdri_ld_be32(entry + 48), 8);
	assert_int_equal(f->dev->errors[0].op, GDRI_AMO);
	assert_int_equal(f->dev->errors[0].len, 8);
	assert_int_equal(gdr_quiet(), -GDR_ELOCALQP);
	fake_stop(f);
}

/* ---- waits, order, collectives ---- */

static void waits(void)
{
	int32_t *i = fake_sym(f, 0);
	uint64_t *u = fake_sym(f, 8);

	*i = -5;
	*u = ~0ull;
	assert_int_equal(gdr_int32_test(i, GDR_CMP_LT, 0), 1);
	assert_int_equal(gdr_int32_test(i, GDR_CMP_GT, 0), 0);
	assert_int_equal(gdr_int32_test(i, GDR_CMP_GE, -5), 1);
	assert_int_equal(gdr_int32_test(i, GDR_CMP_LE, -6), 0);
	assert_int_equal(gdr_int32_test(i, GDR_CMP_NE, -5), 0);
	assert_int_equal(gdr_uint64_test(u, GDR_CMP_GT, 1), 1);
	assert_int_equal(gdr_int64_test((int64_t *)u, GDR_CMP_GT, 1), 0);
	assert_int_equal(gdr_int32_wait_until(i, GDR_CMP_EQ, -5), 0);
	assert_int_equal(gdr_signal_wait_until(u, GDR_CMP_NE, 0), 0);
	assert_int_equal(gdr_signal_wait_until_from(u, GDR_CMP_EQ, ~0ull, 2), 0);
	assert_int_equal(gdr_signal_fetch(u), ~0ull);
	/* to oneself, and waited for */
	*u = 0;
	assert_int_equal(gdr_put_signal_nbi(fake_sym(f, 64), fake_sym(f, 4096), 64, u, 1,
					    GDR_SIGNAL_ADD, 0), 0);
	assert_int_equal(gdr_signal_wait_until_from(u, GDR_CMP_GE, 1, 0), 0);
	assert_int_equal(gdr_my_pe(), 0);
	assert_int_equal(gdr_n_pes(), 3);
	assert_ptr_equal(gdr_ptr(u, 2), f->opt.mapped ? fake_at(f, 2, 8) : NULL);
	assert_null(gdr_ptr(u, 3));
	assert_null(gdr_ptr(u, -1));
	assert_null(gdr_ptr(&u, 0));
}

static void test_waits(void **state)
{
	(void)state;
	each_config(waits);
}

/* After a fence data goes with the strict key, after the next quiet no longer. */
static uint32_t last_rkey(struct gdri_qp *qp)
{
	uint32_t k;

	memcpy(&k, qp->sq + ((qp->rsvd - 1) % qp->depth) * 64 + 24, 4);
	return k;
}

static void test_fence_keys(void **state)
{
	struct gdri_qp *qp;

	(void)state;
	f = fake_start(&configs[0]);
	qp = &f->dev->qps[1];
	fake_hold(f, 1);
	assert_int_equal(gdr_put_nbi(fake_sym(f, 0), fake_sym(f, 0), 64, 1), 0);
	assert_int_equal(last_rkey(qp), qp->rkey_data.be);
	assert_int_equal(gdr_int_p(fake_sym(f, 0), 1, 1), 0);
	assert_int_equal(last_rkey(qp), qp->rkey_sync.be);
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_put_nbi(fake_sym(f, 0), fake_sym(f, 0), 64, 1), 0);
	assert_int_equal(last_rkey(qp), qp->rkey_sync.be);
	fake_hold(f, 0);
	assert_int_equal(gdr_quiet(), 0);
	fake_hold(f, 1);
	assert_int_equal(gdr_put_nbi(fake_sym(f, 0), fake_sym(f, 0), 64, 1), 0);
	assert_int_equal(last_rkey(qp), qp->rkey_data.be);
	fake_hold(f, 0);
	fake_stop(f);
}

/* The partners' words are written by the test: what arrives there is checked too. */
static void barriers(void)
{
	struct gdri_ctl *c0 = (struct gdri_ctl *)f->heap[0];
	int epoch;

	for (epoch = 1; epoch < 4; epoch++) {
		c0->barrier[0] = (uint64_t)epoch;
		c0->barrier[1] = (uint64_t)epoch + 1; /* one ahead is fine */
		assert_int_equal(epoch == 2 ? gdr_sync_all() : gdr_barrier_all_block(), 0);
		assert_int_equal(gdr_quiet(), 0);
		assert_int_equal(((struct gdri_ctl *)f->heap[1])->barrier[0], epoch);
		assert_int_equal(((struct gdri_ctl *)f->heap[2])->barrier[1], epoch);
	}
}

static void test_barriers(void **state)
{
	(void)state;
	each_config(barriers);
}

static void test_before_init(void **state)
{
	uint64_t w = 1;

	(void)state;
	assert_null(gdri_dev_state);
	assert_int_equal(gdr_put(&w, &w, 8, 0), -GDR_ESTATE);
	assert_int_equal(gdr_quiet(), -GDR_ESTATE);
	assert_int_equal(gdr_my_pe(), -GDR_ESTATE);
	assert_int_equal(gdr_barrier_all(), -GDR_ESTATE);
	assert_int_equal(gdr_uint64_g(&w, 0), 0);
	assert_int_equal(gdr_signal_wait_until(&w, GDR_CMP_EQ, 2), -GDR_ESTATE);
	assert_null(gdr_ptr(&w, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_init), cmocka_unit_test(test_put_get),
		cmocka_unit_test(test_outside),	    cmocka_unit_test(test_typed),
		cmocka_unit_test(test_atomics),	    cmocka_unit_test(test_one_path),
		cmocka_unit_test(test_waits),	    cmocka_unit_test(test_fence_keys),
		cmocka_unit_test(test_barriers),    cmocka_unit_test(test_maximum),
		cmocka_unit_test(test_combine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
