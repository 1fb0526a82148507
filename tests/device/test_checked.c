/* SPDX-License-Identifier: BSD-3-Clause */
/* The checked build: what it refuses, and that the record has file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

static struct fake *f;

static int setup(void **state)
{
	static const struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .buffer = 1};

	(void)state;
	f = fake_start(&opt);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_stop(f);
	return 0;
}

static void refused(int ret, uint32_t line)
{
	struct gdri_error *e = &f->dev->errors[f->dev->n_errors - 1];

	assert_int_equal(ret, -GDR_EINVAL);
	assert_int_equal(e->kind, GDRI_ERROR_ARG);
	assert_int_equal(e->line, line);
	assert_string_equal(e->file + strlen(e->file) - strlen("test_checked.c"),
			    "test_checked.c");
	assert_true(f->dev->n_errors < GDRI_MAX_ERRORS);
}

#define REFUSED(call) refused(call, __LINE__)
#define LATCHED(call)                                                                              \
	do {                                                                                       \
		assert_true((call) == 0);                                                          \
		refused(gdr_status(), __LINE__);                                                   \
		assert_int_equal(gdr_quiet(), -GDR_EINVAL);                                        \
	} while (0)

static void test_good_calls(void **state)
{
	uint8_t any[28] = {1};

	(void)state;
	assert_int_equal(gdr_put(fake_sym(f, 1), any, sizeof(any), 1), 0);
	assert_int_equal(gdr_put(fake_sym(f, 1), f->buffer, 65536, 1), 0);
	assert_int_equal(gdr_put(fake_sym(f, 1), NULL, 0, 1), 0);
	assert_int_equal(gdr_get(fake_sym(f, 1), fake_sym(f, 5), 1000, 1), 0);
	assert_int_equal(gdr_double_p(fake_sym(f, 8), 1.5, 1), 0);
	assert_true(gdr_double_g(fake_sym(f, 8), 1) >= 1.5);
	assert_int_equal(gdr_int_atomic_fetch_add(fake_sym(f, 16), 1, 1), 0);
	assert_int_equal(gdr_put_signal(fake_sym(f, 1), any, 3, fake_sym(f, 64), 1,
					GDR_SIGNAL_ADD, 1), 0);
	assert_int_equal(gdr_put_block(fake_sym(f, 1), f->buffer, 6, 1), 0);
	assert_int_equal(gdr_quiet_pe(1), 0);
	assert_int_equal(f->dev->n_errors, 0);
}

static void test_ranges(void **state)
{
	volatile size_t huge = (size_t)-4; /* the compiler would refuse it too */
	uint8_t any[64] = {0};
	uint8_t *end = f->heap[0] + FAKE_HEAP;

	(void)state;
	REFUSED(gdr_put(any, fake_sym(f, 0), 8, 1));
	REFUSED(gdr_put(end - 7, fake_sym(f, 0), 8, 1));
	REFUSED(gdr_put(end, fake_sym(f, 0), 8, 1));
	REFUSED(gdr_put(f->heap[0], fake_sym(f, 0), 8, 1)); /* control area */
	REFUSED(gdr_put(fake_sym(f, 0), fake_sym(f, 0), huge, 1));
	REFUSED(gdr_put(fake_sym(f, 0), NULL, 4, 1));
	REFUSED(gdr_put(fake_sym(f, 0), any, 29, 1));
	REFUSED(gdr_put(fake_sym(f, 0), f->buffer + 1, 65536, 1));
	REFUSED(gdr_put(fake_sym(f, 0), end - 100, 101, 1));
	REFUSED(gdr_get(any, fake_sym(f, 0), 8, 1));
	REFUSED(gdr_get_nbi_warp(fake_sym(f, 0), end - 1, 8, 1));
	REFUSED(gdr_int_put(fake_sym(f, 0), fake_sym(f, 0), ((size_t)-1 / 4) + 2, 1));
	LATCHED(gdr_int_g((int *)(void *)end, 1));
}

static void test_pes_and_enums(void **state)
{
	(void)state;
	REFUSED(gdr_put(fake_sym(f, 0), fake_sym(f, 0), 8, 2));
	REFUSED(gdr_put(fake_sym(f, 0), fake_sym(f, 0), 8, -1));
	REFUSED(gdr_quiet_pe(2));
	REFUSED(gdr_int_p(fake_sym(f, 0), 1, 1000000));
	REFUSED(gdr_signal_op(fake_sym(f, 0), 1, 2, 1));
	REFUSED(gdr_put_signal(fake_sym(f, 0), fake_sym(f, 0), 8, fake_sym(f, 64), 1, -1, 1));
	REFUSED(gdr_signal_wait_until(fake_sym(f, 0), 6, 1));
	REFUSED(gdr_signal_wait_until_from(fake_sym(f, 0), GDR_CMP_EQ, 1, 2));
	REFUSED(gdr_signal_wait_until_for(fake_sym(f, 0), 6, 1, 1));
	REFUSED(gdr_signal_wait_until_from_for(fake_sym(f, 0), GDR_CMP_EQ, 1, 2, 1));
	REFUSED(gdr_int_wait_until(fake_sym(f, 0), -1, 1));
	LATCHED(gdr_uint64_atomic_swap(fake_sym(f, 0), 1, 2));
	LATCHED(gdr_int_test(fake_sym(f, 0), 77, 0));
}

static void test_alignment(void **state)
{
	(void)state;
	REFUSED(gdr_int_p(fake_sym(f, 2), 1, 1));
	REFUSED(gdr_uint64_atomic_add(fake_sym(f, 4), 1, 1));
	REFUSED(gdr_signal_op(fake_sym(f, 4), 1, GDR_SIGNAL_SET, 1));
	REFUSED(gdr_double_put(fake_sym(f, 4), fake_sym(f, 8), 1, 1));
	REFUSED(gdr_double_get(fake_sym(f, 8), fake_sym(f, 4), 1, 1));
	LATCHED(gdr_uint64_atomic_fetch(fake_sym(f, 4), 1));
	LATCHED(gdr_short_g(fake_sym(f, 1), 1));
}

/* One record, of this line; then as if nothing had been. */
static void told(int ret, uint32_t line)
{
	refused(ret, line);
	assert_int_equal(f->dev->n_errors, 1);
	f->dev->n_errors = 0;
}

#define NOBODY 99 /* a PE that the job does not have */
#define TOLD(call) told(call, __LINE__)
#define TOLD_LATCHED(call)                                                                         \
	do {                                                                                       \
		assert_true((call) == 0);                                                          \
		told(gdr_status(), __LINE__);                                                      \
		assert_int_equal(gdr_quiet(), -GDR_EINVAL);                                        \
	} while (0)

#define RMA_SCOPE(name, T, suffix)                                                                 \
	TOLD(gdr_##name##_put##suffix(d, d, 1, NOBODY));                                           \
	TOLD(gdr_##name##_put_nbi##suffix(d, d, 1, NOBODY));                                       \
	TOLD(gdr_##name##_get##suffix(d, d, 1, NOBODY));                                           \
	TOLD(gdr_##name##_get_nbi##suffix(d, d, 1, NOBODY));
#define RMA_TYPE(name, T)                                                                          \
	static void rma_##name(void)                                                               \
	{                                                                                          \
		T *d = fake_sym(f, 0);                                                             \
                                                                                                   \
		RMA_SCOPE(name, T, )                                                               \
		RMA_SCOPE(name, T, _warp)                                                          \
		RMA_SCOPE(name, T, _block)                                                         \
		TOLD(gdr_##name##_p(d, 1, NOBODY));                                                \
		TOLD_LATCHED(gdr_##name##_g(d, NOBODY));                                           \
	}
GDR_RMA_TYPES(RMA_TYPE)

#define AMO_TYPE(name, T)                                                                          \
	static void amo_##name(void)                                                               \
	{                                                                                          \
		T *d = fake_sym(f, 0);                                                             \
                                                                                                   \
		TOLD(gdr_##name##_atomic_set(d, 1, NOBODY));                                       \
		TOLD(gdr_##name##_atomic_inc(d, NOBODY));                                          \
		TOLD(gdr_##name##_atomic_add(d, 1, NOBODY));                                       \
		TOLD(gdr_##name##_atomic_and(d, 1, NOBODY));                                       \
		TOLD(gdr_##name##_atomic_or(d, 1, NOBODY));                                        \
		TOLD(gdr_##name##_atomic_xor(d, 1, NOBODY));                                       \
		TOLD_LATCHED(gdr_##name##_atomic_fetch(d, NOBODY));                                \
		TOLD_LATCHED(gdr_##name##_atomic_fetch_inc(d, NOBODY));                            \
		TOLD_LATCHED(gdr_##name##_atomic_fetch_add(d, 1, NOBODY));                         \
		TOLD_LATCHED(gdr_##name##_atomic_fetch_and(d, 1, NOBODY));                         \
		TOLD_LATCHED(gdr_##name##_atomic_fetch_or(d, 1, NOBODY));                          \
		TOLD_LATCHED(gdr_##name##_atomic_fetch_xor(d, 1, NOBODY));                         \
		TOLD_LATCHED(gdr_##name##_atomic_swap(d, 1, NOBODY));                              \
		TOLD_LATCHED(gdr_##name##_atomic_compare_swap(d, 1, 2, NOBODY));                   \
		TOLD(gdr_##name##_wait_until(d, 6, 1));                                            \
		TOLD_LATCHED(gdr_##name##_test(d, 6, 1));                                          \
	}
GDR_AMO_TYPES(AMO_TYPE)

#define BYTES(suffix)                                                                              \
	TOLD(gdr_put##suffix(d, d, 1, NOBODY));                                                    \
	TOLD(gdr_put_nbi##suffix(d, d, 1, NOBODY));                                                \
	TOLD(gdr_get##suffix(d, d, 1, NOBODY));                                                    \
	TOLD(gdr_get_nbi##suffix(d, d, 1, NOBODY));                                                \
	TOLD(gdr_put_bulk##suffix(d, d, 1, NULL, 0, NOBODY));                                      \
	TOLD(gdr_put_bulk_nbi##suffix(d, d, 1, NULL, 0, NOBODY));                                  \
	TOLD(gdr_get_bulk##suffix(d, d, 1, NULL, 0, NOBODY));                                      \
	TOLD(gdr_get_bulk_nbi##suffix(d, d, 1, NULL, 0, NOBODY));                                  \
	TOLD(gdr_put_signal##suffix(d, d, 1, d, 1, GDR_SIGNAL_SET, NOBODY));                       \
	TOLD(gdr_put_signal_nbi##suffix(d, d, 1, d, 1, GDR_SIGNAL_SET, NOBODY));

#define STRIDED(s)                                                                                 \
	TOLD(gdr_uint64_iput##s(d, d, 1, 1, 1, NOBODY));                                           \
	TOLD(gdr_uint64_iget##s(d, d, 1, 1, 1, NOBODY));                                           \
	TOLD(gdr_uint64_ibput##s(d, d, 1, 1, 1, 1, NOBODY));                                       \
	TOLD(gdr_ibget64##s(d, d, 1, 1, 1, 1, NOBODY));                                            \
	TOLD(gdr_put32_signal##s(d, d, 1, d, 1, GDR_SIGNAL_SET, NOBODY));                          \
	TOLD(gdr_uint64_put_signal##s(d, d, 1, d, 1, 7, 1));
#define SETS(form, V)                                                                              \
	TOLD(gdr_uint64_wait_until_all##form(d, 1, NULL, 6, V));                                   \
	refused_index(gdr_uint64_wait_until_any##form(d, 1, NULL, 6, V), __LINE__);                \
	TOLD_LATCHED(gdr_uint64_wait_until_some##form(d, 1, at, NULL, 6, V));                      \
	TOLD_LATCHED(gdr_uint64_test_all##form(d, 1, NULL, 6, V));                                 \
	refused_index(gdr_uint64_test_any##form(d, 1, NULL, 6, V), __LINE__);                      \
	TOLD_LATCHED(gdr_uint64_test_some##form(d, 1, at, NULL, 6, V));

static void refused_index(size_t index, uint32_t line)
{
	assert_true(index == (size_t)-1); /* 0 would be the first word */
	told(gdr_status(), line);
	assert_int_equal(gdr_quiet(), -GDR_EINVAL);
}

static void test_new_forms(void **state)
{
	uint64_t *d = fake_sym(f, 0), outside = 0, *end = (uint64_t *)(void *)(f->heap[0] + FAKE_HEAP);
	double *e = fake_sym(f, 0);
	size_t at[1];

	(void)state;
	STRIDED()
	STRIDED(_nbi)
	STRIDED(_warp)
	STRIDED(_nbi_block)
	SETS(, 1)
	SETS(_vector, d)
	refused_index(gdr_uint64_wait_until_any_for(&outside, 1, NULL, GDR_CMP_EQ, 1, 5), __LINE__);
	TOLD(gdr_uint64_wait_until_for(d, 6, 1, 5));
	TOLD(gdr_uint64_wait_until_all_for(&outside, 1, NULL, GDR_CMP_EQ, 1, 5));
	TOLD(gdr_uint64_atomic_fetch_add_nbi(d, d, 1, NOBODY));
	TOLD(gdr_uint64_atomic_swap_nbi(&outside, d, 1, 1)); /* where no NIC can write */
	TOLD(gdr_double_atomic_add(e, 1, NOBODY));
	TOLD_LATCHED(gdr_double_atomic_fetch_inc(e, NOBODY));
	TOLD(gdr_signal_set(d, 1, NOBODY));
	TOLD(gdr_signal_add(d, 1, NOBODY));
	TOLD(gdr_set_lock((long *)&outside));
	TOLD(gdr_test_lock((long *)&outside));
	TOLD(gdr_clear_lock((long *)&outside));
	/* strides that leave the heap, either way, or cannot be reckoned */
	TOLD(gdr_uint64_iput(end - 4, d, 2, 1, 3, 1));
	assert_int_equal(gdr_uint64_iput(end - 5, d, 2, 1, 3, 1), 0);
	TOLD(gdr_uint64_iput(end - 1, d, PTRDIFF_MIN / 8, 1, 3, 1));
	TOLD(gdr_uint64_iget(d, (uint64_t *)(void *)(f->heap[0] + GDRI_CTL_SIZE) + 1, 1, -1, 3, 1));
	TOLD(gdr_uint64_ibput(d, d, 1, 1, (size_t)1 << 60, 2, 1));
	assert_int_equal(gdr_quiet(), -GDR_EINVAL);
	assert_int_equal(gdr_quiet(), 0);
}

/* Steps and blocks whose bytes wrap round to few, or to none. */
static void test_strides_that_wrap(void **state)
{
	static const ptrdiff_t wild[] = {PTRDIFF_MAX, PTRDIFF_MIN, (ptrdiff_t)1 << 61, -((ptrdiff_t)1 << 61),
					 ((ptrdiff_t)1 << 61) + 1};
	uint64_t *d = fake_sym(f, 4096), before[2] = {d[-1], d[0]};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		TOLD(gdr_uint64_iput(d, d, wild[i], 1, 3, 1));
		TOLD(gdr_uint64_iget(d, d, 1, wild[i], 3, 1));
		TOLD(gdr_iput128(d, d, 1, wild[i], 3, 1));
		TOLD(gdr_ibget64(d, d, wild[i], 1, 1, 2, 1));
		TOLD(gdr_uint64_ibput(d, d, 1, 1, (size_t)wild[i], 2, 1));
		assert_int_equal(gdr_uint64_iput(d + 8, d + 16, wild[i], wild[i], 1, 1), 0); /* one block has none */
	}
	TOLD(gdr_uint64_iput(d, d, 1, 1, (size_t)1 << 61, 1));
	TOLD(gdr_uint64_wait_until_all(d, (size_t)1 << 61, NULL, GDR_CMP_EQ, 1));
	assert_int_equal(gdr_quiet(), -GDR_EINVAL);
	assert_int_equal(gdr_quiet(), 0);
	assert_true(d[-1] == before[0] && d[0] == before[1]);
}

/* All in front of the first object, not only the control area. */
static void test_own_words(void **state)
{
	uint64_t *d = fake_sym(f, 4096), in[2] = {0, 0};

	(void)state;
	f->dev->own_size = FAKE_USER + 4096;
	assert_int_equal(gdr_put(d, in, 8, 1), 0);
	TOLD(gdr_put(d - 1, in, 8, 1));
	TOLD(gdr_put((uint8_t *)d - 1, in, 8, 1));
	TOLD(gdr_get(d, d - 8, 8, 1));
	TOLD(gdr_get(d - 8, d, 8, 1));
	TOLD(gdr_uint64_iput(d + 1, in, -2, 1, 2, 1));
	TOLD(gdr_uint64_atomic_inc(d - 1, 1));
	TOLD(gdr_signal_op(d - 1, 1, GDR_SIGNAL_SET, 1));
	TOLD(gdr_uint64_wait_until(d - 1, GDR_CMP_EQ, 0));
	assert_int_equal(gdr_quiet(), -GDR_EINVAL);
	assert_int_equal(gdr_quiet(), 0);
}

/* The record says which argument, why, its value and what it may be. */
static void expect(uint32_t reason, uint64_t len, uint64_t low, uint64_t high)
{
	struct gdri_error *e = &f->dev->errors[f->dev->n_errors - 1];

	assert_int_equal(e->reason & 0xffffu, reason); /* above: which call it is */
	assert_int_equal(e->len, len);
	assert_int_equal(e->local, low);
	assert_int_equal(e->waited_ns, high);
}

static void test_reasons(void **state)
{
	uint64_t *d = fake_sym(f, 0), heap = (uintptr_t)f->heap[0], any[8] = {0};

	(void)state;
	REFUSED(gdr_put(d, d, 8, 99));
	expect(GDRI_ARG_PE, 99, 0, 2);
	REFUSED(gdr_put(d, d, 8, -1));
	expect(GDRI_ARG_PE, (uint64_t)-1, 0, 2);
	REFUSED(gdr_put(any, d, 8, 1));
	expect(GDRI_DEST | GDRI_ARG_HEAP, 8, heap, heap + FAKE_HEAP);
	REFUSED(gdr_put(f->heap[0], d, 16, 1));
	expect(GDRI_DEST | GDRI_ARG_OWN, 16, heap, heap + FAKE_USER);
	REFUSED(gdr_get(d, NULL, 8, 1));
	expect(GDRI_SOURCE | GDRI_ARG_HEAP, 8, heap, heap + FAKE_HEAP);
	REFUSED(gdr_put(d, NULL, 8, 1));
	expect(GDRI_SOURCE | GDRI_ARG_NULL, 8, 0, 0);
	REFUSED(gdr_get(any, d, 8, 1));
	expect(GDRI_DEST | GDRI_ARG_LOCAL, 8, 0, 0);
	REFUSED(gdr_uint64_atomic_inc((uint64_t *)(void *)((uint8_t *)d + 4), 1));
	expect(GDRI_DEST | GDRI_ARG_ALIGN, 0, 0, 8);
	REFUSED(gdr_signal_op(d, 1, 17, 1));
	expect(GDRI_ARG_SIGNAL_OP, 17, 0, 0);
	REFUSED(gdr_uint64_wait_until(d, 17, 1));
	expect(GDRI_ARG_CMP, 17, 0, 0);
	REFUSED(gdr_uint64_iput(d, d, 1 << 30, 1, 3, 1));
	expect(GDRI_DEST | GDRI_ARG_STRIDE, 1 << 30, 3, FAKE_HEAP);
	REFUSED(gdr_uint64_put(d, d, (size_t)1 << 61, 1));
	expect(GDRI_DEST | GDRI_ARG_SIZE, (uint64_t)1 << 61, 8, FAKE_HEAP);
}

/* Every function that takes an argument refuses a wrong one, by name and line. */
static void test_every_function(void **state)
{
	uint64_t *d = fake_sym(f, 0), outside = 0;

	(void)state;
#define CALL_RMA(name, T) rma_##name();
#define CALL_AMO(name, T) amo_##name();
	GDR_RMA_TYPES(CALL_RMA)
	GDR_AMO_TYPES(CALL_AMO)
	BYTES()
	BYTES(_warp)
	BYTES(_block)
	TOLD(gdr_signal_op(d, 1, GDR_SIGNAL_SET, NOBODY));
	TOLD_LATCHED(gdr_signal_fetch(&outside));
	TOLD(gdr_signal_wait_until(&outside, GDR_CMP_EQ, 1));
	TOLD(gdr_signal_wait_until_from(d, GDR_CMP_EQ, 1, NOBODY));
	TOLD(gdr_signal_wait_until_seen(&outside, GDR_CMP_EQ, 1, &outside));
	TOLD(gdr_signal_wait_until_from_seen(d, GDR_CMP_EQ, 1, NOBODY, &outside));
	TOLD(gdr_quiet_pe(NOBODY));
	assert_null(gdr_ptr(d, NOBODY)); /* its way to say so */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_function, setup, teardown),
		cmocka_unit_test_setup_teardown(test_new_forms, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strides_that_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reasons, setup, teardown),
		cmocka_unit_test_setup_teardown(test_good_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pes_and_enums, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alignment, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
