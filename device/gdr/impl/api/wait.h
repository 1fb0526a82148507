/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits and tests on the own heap: bodies and rows (define.h). */
#ifndef GDRI_WAIT_H
#define GDRI_WAIT_H

#include <gdr/impl/api/cmp.h>
#include <gdr/impl/api/define.h>
#include <gdr/impl/api/waits.h>
#include <gdr/impl/wait/waiter.h>

/* Looks for a while without a frame; the caller's fence makes what was seen an acquire. Counts down: as a loop
 * upwards the compiler took 10 ns more to leave it. */
GDR_DEVICE int gdri_spin(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value)
{
	uint64_t v;
	int left = GDRI_SPINS;

	if (!left)
		return 0;
	GDRI_NOT_UNROLLED
	for (;;) {
		v = size == 8	? gdri_ld_fenced_u64((const uint64_t *)p)
		    : size == 4 ? gdri_ld_fenced_u32((const uint32_t *)p)
				: gdri_ld_acquire_sys_u16((const uint16_t *)p);
		if (gdri_cmp_holds(v, size, is_signed, cmp, value))
			return 1;
		if (!--left)
			return 0;
	}
}

#define GDRI_SPIN_ROWS 4

/* The words of n PEs, which lie `apart` words from each other, but number me: loads of several are under way at
 * once. 1: each was seen to be at least `least`; the caller's fence makes that acquires. */
GDR_DEVICE int gdri_spin_all(const uint64_t *words, size_t apart, int n, int me, uint64_t least)
{
	int spins, all;

	GDRI_NOT_UNROLLED
	for (int first = 0; first < n; first += GDRI_SPIN_ROWS) {
		GDRI_NOT_UNROLLED
		for (spins = all = 0; spins <= GDRI_SPINS && !all; spins++) {
			all = 1;
			GDRI_UNROLLED
			for (int i = first; i < first + GDRI_SPIN_ROWS; i++)
				if (i < n && i != me)
					all &= gdri_ld_fenced_u64(&words[(size_t)i * apart]) >= least;
		}
		if (!all)
			return 0;
	}
	return 1;
}

/* Whom a wait names; a caller's -1 is not "unknown". */
#define GDRI_NAMED_MINUS_1 (-0x7fffffff - 1)
GDR_DEVICE int gdri_wait_named(int pe)
{
	return pe == -1 ? GDRI_NAMED_MINUS_1 : pe;
}

/* 1 when the condition holds and nothing is left to do. */
GDR_DEVICE int gdri_wait_short(struct gdri_dev *dev, const void *p, uint32_t size, int is_signed,
			       int cmp, uint64_t value)
{
	/* read before, when its time does not count: what is seen later is for the next wait */
	uint32_t left = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed) |
			(GDRI_QUEUES ? gdri_k(dev, flags) & GDRI_DEV_READ_FLUSH : 0);

	if (gdri_unlikely(!gdri_spin(p, size, is_signed, cmp, value)))
		return 0;
	gdri_fence_acquire_sys(); /* makes the load one: as in gdri_cmp_u64 */
	return !left;
}

#if !GDRI_LINKED
/* There is no PE of the number that the caller named. */
GDR_DEVICE int gdri_wait_misnamed(const struct gdri_dev *dev, int peer)
{
	return peer != -1 && (uint32_t)peer >= (uint32_t)gdri_k(dev, n_pes);
}

GDR_DEVICE_COLD int gdri_wait_no_pe(struct gdri_dev *dev, uint32_t call, int peer)
{
	return gdri_no_pe(dev, call, peer == GDRI_NAMED_MINUS_1 ? -1 : peer);
}

/* Of the form that says who will write the word. */
GDR_DEVICE uint32_t gdri_wait_call(uint32_t op, int peer)
{
	return peer == -1 ? op : op | GDRI_CALL_FROM;
}

/* Out of line, and its operands in one register, so that the wait keeps few. */
GDRI_SLOW int gdri_wait_look(const void *p, uint32_t form, uint64_t value)
{
	return gdri_cmp_u64(p, form & 0xffu, (int)(form >> 8 & 1u), (int)(form >> 16), value);
}

GDRI_NOINLINE int gdri_wait_long(struct gdri_dev *dev, const void *p, uint32_t size, int is_signed,
				 int cmp, uint64_t value, int peer, uint32_t op)
{
	uint32_t form = gdri_wait_form(size, is_signed, cmp);
	struct gdri_waiter w;

	GDRI_BY_ABI(gdri_wait_long);
	GDRI_DEV_CONSTANT(dev);
	if (gdri_unlikely(gdri_wait_misnamed(dev, peer)))
		return gdri_wait_no_pe(dev, gdri_wait_call(op, peer), peer);
	gdri_wait_begin(&w, op, peer, gdri_heap_offset(dev, p));
	w.team = GDRI_WAITS_FOR_WORD;
	while (!gdri_wait_look(p, form, value)) {
		if (gdri_unlikely(gdri_wait_step(dev, &w)))
			return gdri_wait_record_word(dev, &w, p, form, value);
	}
	gdri_wait_end(dev, &w);
	return gdri_wait_flush(dev, w.op);
}

/* peer: who will write it, -1 unknown. */
GDR_DEVICE int gdri_wait_until(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value,
			       int peer, uint32_t op)
{
	struct gdri_dev *dev = gdri_dev();

	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	if (gdri_unlikely(!gdri_cmp_mask(cmp)))
		return gdri_error_arg(dev, gdri_wait_call(op, peer), peer, p, (uint64_t)(int64_t)cmp, GDRI_ARG_CMP);
	if (GDRI_SPINS && gdri_wait_short(dev, p, size, is_signed, cmp, value))
		return 0;
	return gdri_wait_long(dev, p, size, is_signed, cmp, value, peer, op);
}
#else
/* No comparison that there is not holds: the library refuses it. */
GDR_DEVICE int gdri_wait_until(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value,
			       int peer, uint32_t op)
{
	struct gdri_dev *dev = gdri_dev();

	if (gdri_likely(dev) && gdri_wait_short(dev, p, size, is_signed, cmp, value))
		return 0;
	return gdri_lib_wait(p, size, is_signed, cmp, value, peer, op);
}
#endif

GDR_DEVICE int gdri_test(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value)
{
	struct gdri_dev *dev = gdri_dev();
	int ret;

	if (gdri_unlikely(!dev))
		return 0;
	if (!gdri_cmp_u64(p, size, is_signed, cmp, value))
		return 0;
	ret = gdri_wait_flush(dev, GDRI_WAIT_UNTIL);
	if (gdri_unlikely(ret))
		gdri_latch(dev, ret);
	return 1;
}

/* ---- rows ---- */

#define GDRI_SIGNED(T) ((T) - 1 < (T)1)

#define GDRI_WAIT_ROWS(pre, T, E, z)                                                               \
	GDRI_FN_BOTH(GDRI_THREAD, int, GDRI_NAME(pre, wait_until, , ),                             \
		     (const T *ptr, int cmp, T value), (GDRI_WAIT_UNTIL, GDRI_THREAD),             \
		     gdri_check_wait(&at, GDRI_WORD, ptr, sizeof(T), cmp),                                    \
		     gdri_wait_until(ptr, sizeof(T), GDRI_SIGNED(T), cmp, (uint64_t)value, -1,     \
				     GDRI_WAIT_UNTIL),                                             \
		     gdri_submit_wait(ptr, 0, 0, 0, (uint64_t)value, sizeof(T), GDRI_SIGNED(T), cmp,  \
				   GDRI_NOW))                                                \
	GDRI_FN(int, GDRI_NAME(pre, wait_until, , _for),                                           \
		(const T *ptr, int cmp, T value, uint64_t limit_ns),                               \
		(GDRI_WAIT_UNTIL | GDRI_CALL_FOR, GDRI_THREAD), gdri_check_wait(&at, GDRI_WORD, ptr, sizeof(T), cmp), \
		gdri_wait_all(ptr, 1, 0, 0, (uint64_t)value, sizeof(T), GDRI_SIGNED(T), cmp,       \
			      limit_ns))                                                           \
	GDRI_FN_VALUE(int, GDRI_NAME(pre, test, , ), (const T *ptr, int cmp, T value),             \
		      (GDRI_WAIT_UNTIL | GDRI_CALL_TEST, GDRI_THREAD),                             \
		      gdri_check_wait(&at, GDRI_WORD, ptr, sizeof(T), cmp),                        \
		      out = gdri_test(ptr, sizeof(T), GDRI_SIGNED(T), cmp, (uint64_t)value))

/* One value for all words, or one for each (V, of which there are n_values); with the limit of all waits, or one of the
 * call. */
#define GDRI_SETS(pre, T, vector, V, values, n_values, value, form, call, limit, L)                \
	GDRI_FN(int, GDRI_NAME(pre, wait_until_all, , vector##form),                               \
		(const T *ptrs, size_t n, const int *status, int cmp, V L),                        \
		(GDRI_WAIT_UNTIL | GDRI_CALL_ALL | (call), GDRI_THREAD),                           \
		gdri_check_waits(&at, ptrs, n, sizeof(T), status, cmp, values, n_values),          \
		gdri_wait_all(ptrs, n, status, values, value, sizeof(T), GDRI_SIGNED(T), cmp,      \
			      limit))                                                              \
	GDRI_FN_INDEX(size_t, GDRI_NAME(pre, wait_until_any, , vector##form),                      \
		      (const T *ptrs, size_t n, const int *status, int cmp, V L),                  \
		      (GDRI_WAIT_UNTIL | GDRI_CALL_ANY | (call), GDRI_THREAD),                     \
		      gdri_check_waits(&at, ptrs, n, sizeof(T), status, cmp, values, n_values),    \
		      out = gdri_wait_any(ptrs, n, status, values, value, sizeof(T),               \
					  GDRI_SIGNED(T), cmp, limit))                             \
	GDRI_FN_VALUE(size_t, GDRI_NAME(pre, wait_until_some, , vector##form),                     \
		      (const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, V L), \
		      (GDRI_WAIT_UNTIL | GDRI_CALL_SOME | (call), GDRI_THREAD),                    \
		      gdri_check_waits_some(&at, ptrs, n, sizeof(T), indices, status, cmp, values, n_values), \
		      out = gdri_wait_some(ptrs, n, indices, status, values, value, sizeof(T),     \
					   GDRI_SIGNED(T), cmp, limit))
#define GDRI_TESTS(pre, T, vector, V, values, n_values, value, call)                               \
	GDRI_FN_VALUE(int, GDRI_NAME(pre, test_all, , vector),                                     \
		      (const T *ptrs, size_t n, const int *status, int cmp, V),                    \
		      (GDRI_WAIT_UNTIL | GDRI_CALL_ALL | GDRI_CALL_TEST | (call), GDRI_THREAD),    \
		      gdri_check_waits(&at, ptrs, n, sizeof(T), status, cmp, values, n_values),    \
		      out = gdri_test_all(ptrs, n, status, values, value, sizeof(T),               \
					  GDRI_SIGNED(T), cmp))                                    \
	GDRI_FN_INDEX(size_t, GDRI_NAME(pre, test_any, , vector),                                  \
		      (const T *ptrs, size_t n, const int *status, int cmp, V),                    \
		      (GDRI_WAIT_UNTIL | GDRI_CALL_ANY | GDRI_CALL_TEST | (call), GDRI_THREAD),    \
		      gdri_check_waits(&at, ptrs, n, sizeof(T), status, cmp, values, n_values),    \
		      out = gdri_test_any(ptrs, n, status, values, value, sizeof(T),               \
					  GDRI_SIGNED(T), cmp))                                    \
	GDRI_FN_VALUE(size_t, GDRI_NAME(pre, test_some, , vector),                                 \
		      (const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, V),   \
		      (GDRI_WAIT_UNTIL | GDRI_CALL_SOME | GDRI_CALL_TEST | (call), GDRI_THREAD),   \
		      gdri_check_waits_some(&at, ptrs, n, sizeof(T), indices, status, cmp, values, n_values), \
		      out = gdri_test_some(ptrs, n, indices, status, values, value, sizeof(T),     \
					   GDRI_SIGNED(T), cmp))
#define GDRI_COMMA ,

#define GDRI_WAIT_ALL(pre, T, E, z)                                                                \
	GDRI_WAIT_ROWS(pre, T, E, z)                                                               \
	GDRI_SETS(pre, T, , T value, 0, 0, (uint64_t)value, , 0, GDRI_NO_LIMIT, )                     \
	GDRI_SETS(pre, T, , T value, 0, 0, (uint64_t)value, _for, GDRI_CALL_FOR, limit_ns,         \
		  GDRI_COMMA uint64_t limit_ns)                                                    \
	GDRI_SETS(pre, T, _vector, const T *values, values, n, 0, , GDRI_CALL_VECTOR, GDRI_NO_LIMIT, ) \
	GDRI_SETS(pre, T, _vector, const T *values, values, n, 0, _for, GDRI_CALL_VECTOR | GDRI_CALL_FOR, limit_ns, \
		  GDRI_COMMA uint64_t limit_ns)                                                    \
	GDRI_TESTS(pre, T, , T value, 0, 0, (uint64_t)value, 0)                                       \
	GDRI_TESTS(pre, T, _vector, const T *values, values, n, 0, GDRI_CALL_VECTOR)
GDRI_TEMPLATE(gdri_t_wait, GDRI_WAIT_ALL)

#if !defined(__CUDACC__) || defined(GDRI_PRINT_NAMES)
#define GDRI_WAIT_TYPE(name, T)                                                                    \
	GDRI_OF(gdri_t_wait, T, sizeof(T))                                                         \
	GDRI_WAIT_ALL(name##_, T, sizeof(T), )
GDR_WAIT_TYPES(GDRI_WAIT_TYPE)
#endif

#endif
