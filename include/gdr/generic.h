/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations by the type of their arguments, in one source for C11 and C++17: gdr_p(dst, value, pe) is gdr_T_p of the
 * type that dst points to, gdr_host_p is gdr_host_T_p, whose contracts stand in gdr/device.h, gdr/coll.h and
 * gdr/host_ops.h. In C++ they are the overloads of gdr/gdr.hpp and gdr/host_ops.hpp. docs/cpp.md.
 *
 * They are macros, so that a type that has no such function is an error of the compiler, at the call. Arguments are
 * evaluated once. gdr_put and its like are not here: they take any pointer, and count bytes. */
#ifndef GDR_GENERIC_H
#define GDR_GENERIC_H

#include <gdr.h>

#ifdef __cplusplus
#include <gdr/gdr.hpp>
#include <gdr/host_ops.hpp>
#define GDRI_BY_TYPE(types, f, ...) gdr::f(__VA_ARGS__)
#define GDRI_BY_DEST(types, f, ...) gdr::f(__VA_ARGS__)
#define GDRI_HOST_BY_TYPE(types, f, ...) gdr::host_##f(__VA_ARGS__)
#define GDRI_HOST_BY_DEST(types, f, ...) gdr::host_##f(__VA_ARGS__)
#else
#include <gdr/host_ops.h>

/* The functions of C that the macros choose from; those of the checked build take the line of the call, too. */
#ifdef GDR_CHECKED
#define GDRI_TYPED(name, f) gdri_at_gdr_##name##_##f
#else
#define GDRI_TYPED(name, f) gdr_##name##_##f
#ifndef GDRI_HERE
#define GDRI_HERE
#endif
#endif
#define GDRI_CHOICE(name, T, f)                                                                    \
	T * : GDRI_TYPED(name, f), const T * : GDRI_TYPED(name, f),
#define GDRI_HOST_CHOICE(name, T, f)                                                               \
	T * : gdr_host_##name##_##f, const T * : gdr_host_##name##_##f,
/* The last one ends the list. */
#define GDRI_CHOOSE(ptr, types, choice, f) _Generic((ptr), types(choice, f) struct gdri_no_type * : 0)
#define GDRI_BY_TYPE(types, f, ptr, ...)                                                           \
	GDRI_CHOOSE(ptr, types, GDRI_CHOICE, f)(GDRI_HERE ptr, __VA_ARGS__)
#define GDRI_BY_DEST(types, f, team, dest, ...)                                                    \
	GDRI_CHOOSE(dest, types, GDRI_CHOICE, f)(GDRI_HERE team, dest, __VA_ARGS__)
#define GDRI_HOST_BY_TYPE(types, f, ptr, ...)                                                      \
	GDRI_CHOOSE(ptr, types, GDRI_HOST_CHOICE, f)(ptr, __VA_ARGS__)
#define GDRI_HOST_BY_DEST(types, f, team, dest, ...)                                               \
	GDRI_CHOOSE(dest, types, GDRI_HOST_CHOICE, f)(team, dest, __VA_ARGS__)
#endif

/* The types of the language, of which the names have several, each once: those of GDRI_CPP_TYPES. */
#define GDRI_C_WORDS(X, f)                                                                         \
	X(int, int, f)                                                                             \
	X(long, long, f)                                                                           \
	X(longlong, long long, f)                                                                  \
	X(uint, unsigned int, f)                                                                   \
	X(ulong, unsigned long, f)                                                                 \
	X(ulonglong, unsigned long long, f)
#define GDRI_C_FLOATS(X, f)                                                                        \
	X(float, float, f)                                                                         \
	X(double, double, f)
#define GDRI_C_WAITS(X, f)                                                                         \
	GDRI_C_WORDS(X, f)                                                                         \
	X(short, short, f)                                                                         \
	X(ushort, unsigned short, f)
#define GDRI_C_INTEGERS(X, f)                                                                      \
	GDRI_C_WAITS(X, f)                                                                         \
	X(char, char, f)                                                                           \
	X(schar, signed char, f)                                                                   \
	X(uchar, unsigned char, f)
#define GDRI_C_AMOS(X, f)                                                                          \
	GDRI_C_WORDS(X, f)                                                                         \
	GDRI_C_FLOATS(X, f)
#define GDRI_C_NUMBERS(X, f)                                                                       \
	GDRI_C_INTEGERS(X, f)                                                                      \
	GDRI_C_FLOATS(X, f)
#define GDRI_C_REDUCED(X, f)                                                                       \
	GDRI_C_NUMBERS(X, f)                                                                       \
	X(half, gdr_half_t, f)                                                                     \
	X(bfloat16, gdr_bfloat16_t, f)

/* ---- words: gdr_p(dst, value, pe), gdr_g(src, pe) ---- */

#define gdr_p(...) GDRI_BY_TYPE(GDRI_C_NUMBERS, p, __VA_ARGS__)
#define gdr_host_p(...) GDRI_HOST_BY_TYPE(GDRI_C_NUMBERS, p, __VA_ARGS__)
#define gdr_g(...) GDRI_BY_TYPE(GDRI_C_NUMBERS, g, __VA_ARGS__)
#define gdr_host_g(...) GDRI_HOST_BY_TYPE(GDRI_C_NUMBERS, g, __VA_ARGS__)

/* ---- atomics: (dst[, value], pe), with result also _nbi, (fetch, dst[, value], pe) ---- */

#define gdr_atomic_set(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_set, __VA_ARGS__)
#define gdr_host_atomic_set(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_set, __VA_ARGS__)
#define gdr_atomic_inc(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_inc, __VA_ARGS__)
#define gdr_host_atomic_inc(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_inc, __VA_ARGS__)
#define gdr_atomic_add(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_add, __VA_ARGS__)
#define gdr_host_atomic_add(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_add, __VA_ARGS__)
#define gdr_atomic_max(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_max, __VA_ARGS__)
#define gdr_host_atomic_max(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_max, __VA_ARGS__)
#define gdr_atomic_min(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_min, __VA_ARGS__)
#define gdr_host_atomic_min(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_min, __VA_ARGS__)
#define gdr_atomic_and(...) GDRI_BY_TYPE(GDRI_C_WORDS, atomic_and, __VA_ARGS__)
#define gdr_host_atomic_and(...) GDRI_HOST_BY_TYPE(GDRI_C_WORDS, atomic_and, __VA_ARGS__)
#define gdr_atomic_or(...) GDRI_BY_TYPE(GDRI_C_WORDS, atomic_or, __VA_ARGS__)
#define gdr_host_atomic_or(...) GDRI_HOST_BY_TYPE(GDRI_C_WORDS, atomic_or, __VA_ARGS__)
#define gdr_atomic_xor(...) GDRI_BY_TYPE(GDRI_C_WORDS, atomic_xor, __VA_ARGS__)
#define gdr_host_atomic_xor(...) GDRI_HOST_BY_TYPE(GDRI_C_WORDS, atomic_xor, __VA_ARGS__)
#define gdr_atomic_fetch(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch, __VA_ARGS__)
#define gdr_host_atomic_fetch(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch, __VA_ARGS__)
#define gdr_atomic_fetch_nbi(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch_nbi, __VA_ARGS__)
#define gdr_host_atomic_fetch_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch_nbi, __VA_ARGS__)
#define gdr_atomic_swap(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_swap, __VA_ARGS__)
#define gdr_host_atomic_swap(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_swap, __VA_ARGS__)
#define gdr_atomic_swap_nbi(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_swap_nbi, __VA_ARGS__)
#define gdr_host_atomic_swap_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_swap_nbi, __VA_ARGS__)
#define gdr_atomic_compare_swap(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_compare_swap, __VA_ARGS__)
#define gdr_host_atomic_compare_swap(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_compare_swap, __VA_ARGS__)
#define gdr_atomic_compare_swap_nbi(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_compare_swap_nbi, __VA_ARGS__)
#define gdr_host_atomic_compare_swap_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_compare_swap_nbi, __VA_ARGS__)
#define gdr_atomic_fetch_inc(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch_inc, __VA_ARGS__)
#define gdr_host_atomic_fetch_inc(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch_inc, __VA_ARGS__)
#define gdr_atomic_fetch_inc_nbi(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch_inc_nbi, __VA_ARGS__)
#define gdr_host_atomic_fetch_inc_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch_inc_nbi, __VA_ARGS__)
#define gdr_atomic_fetch_add(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch_add, __VA_ARGS__)
#define gdr_host_atomic_fetch_add(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch_add, __VA_ARGS__)
#define gdr_atomic_fetch_add_nbi(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch_add_nbi, __VA_ARGS__)
#define gdr_host_atomic_fetch_add_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch_add_nbi, __VA_ARGS__)
#define gdr_atomic_fetch_max(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch_max, __VA_ARGS__)
#define gdr_host_atomic_fetch_max(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch_max, __VA_ARGS__)
#define gdr_atomic_fetch_max_nbi(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch_max_nbi, __VA_ARGS__)
#define gdr_host_atomic_fetch_max_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch_max_nbi, __VA_ARGS__)
#define gdr_atomic_fetch_min(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch_min, __VA_ARGS__)
#define gdr_host_atomic_fetch_min(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch_min, __VA_ARGS__)
#define gdr_atomic_fetch_min_nbi(...) GDRI_BY_TYPE(GDRI_C_AMOS, atomic_fetch_min_nbi, __VA_ARGS__)
#define gdr_host_atomic_fetch_min_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_AMOS, atomic_fetch_min_nbi, __VA_ARGS__)
#define gdr_atomic_fetch_and(...) GDRI_BY_TYPE(GDRI_C_WORDS, atomic_fetch_and, __VA_ARGS__)
#define gdr_host_atomic_fetch_and(...) GDRI_HOST_BY_TYPE(GDRI_C_WORDS, atomic_fetch_and, __VA_ARGS__)
#define gdr_atomic_fetch_and_nbi(...) GDRI_BY_TYPE(GDRI_C_WORDS, atomic_fetch_and_nbi, __VA_ARGS__)
#define gdr_host_atomic_fetch_and_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_WORDS, atomic_fetch_and_nbi, __VA_ARGS__)
#define gdr_atomic_fetch_or(...) GDRI_BY_TYPE(GDRI_C_WORDS, atomic_fetch_or, __VA_ARGS__)
#define gdr_host_atomic_fetch_or(...) GDRI_HOST_BY_TYPE(GDRI_C_WORDS, atomic_fetch_or, __VA_ARGS__)
#define gdr_atomic_fetch_or_nbi(...) GDRI_BY_TYPE(GDRI_C_WORDS, atomic_fetch_or_nbi, __VA_ARGS__)
#define gdr_host_atomic_fetch_or_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_WORDS, atomic_fetch_or_nbi, __VA_ARGS__)
#define gdr_atomic_fetch_xor(...) GDRI_BY_TYPE(GDRI_C_WORDS, atomic_fetch_xor, __VA_ARGS__)
#define gdr_host_atomic_fetch_xor(...) GDRI_HOST_BY_TYPE(GDRI_C_WORDS, atomic_fetch_xor, __VA_ARGS__)
#define gdr_atomic_fetch_xor_nbi(...) GDRI_BY_TYPE(GDRI_C_WORDS, atomic_fetch_xor_nbi, __VA_ARGS__)
#define gdr_host_atomic_fetch_xor_nbi(...) GDRI_HOST_BY_TYPE(GDRI_C_WORDS, atomic_fetch_xor_nbi, __VA_ARGS__)

/* ---- waits: (ptr, cmp, value[, limit_ns]) ---- */

#define gdr_wait_until(...) GDRI_BY_TYPE(GDRI_C_WAITS, wait_until, __VA_ARGS__)
#define gdr_host_wait_until(...) GDRI_HOST_BY_TYPE(GDRI_C_WAITS, wait_until, __VA_ARGS__)
#define gdr_wait_until_for(...) GDRI_BY_TYPE(GDRI_C_WAITS, wait_until_for, __VA_ARGS__)
#define gdr_host_wait_until_for(...) GDRI_HOST_BY_TYPE(GDRI_C_WAITS, wait_until_for, __VA_ARGS__)
#define gdr_test(...) GDRI_BY_TYPE(GDRI_C_WAITS, test, __VA_ARGS__)
#define gdr_host_test(...) GDRI_HOST_BY_TYPE(GDRI_C_WAITS, test, __VA_ARGS__)

/* ---- reductions: (team, dest, source, n[, stream]) ---- */

#define gdr_sum_reduce(...) GDRI_BY_DEST(GDRI_C_REDUCED, sum_reduce, __VA_ARGS__)
#define gdr_sum_reduce_warp(...) GDRI_BY_DEST(GDRI_C_REDUCED, sum_reduce_warp, __VA_ARGS__)
#define gdr_sum_reduce_block(...) GDRI_BY_DEST(GDRI_C_REDUCED, sum_reduce_block, __VA_ARGS__)
#define gdr_sum_reduce_on_stream(...) GDRI_BY_DEST(GDRI_C_REDUCED, sum_reduce_on_stream, __VA_ARGS__)
#define gdr_host_sum_reduce(...) GDRI_HOST_BY_DEST(GDRI_C_REDUCED, sum_reduce, __VA_ARGS__)
#define gdr_prod_reduce(...) GDRI_BY_DEST(GDRI_C_REDUCED, prod_reduce, __VA_ARGS__)
#define gdr_prod_reduce_warp(...) GDRI_BY_DEST(GDRI_C_REDUCED, prod_reduce_warp, __VA_ARGS__)
#define gdr_prod_reduce_block(...) GDRI_BY_DEST(GDRI_C_REDUCED, prod_reduce_block, __VA_ARGS__)
#define gdr_prod_reduce_on_stream(...) GDRI_BY_DEST(GDRI_C_REDUCED, prod_reduce_on_stream, __VA_ARGS__)
#define gdr_host_prod_reduce(...) GDRI_HOST_BY_DEST(GDRI_C_REDUCED, prod_reduce, __VA_ARGS__)
#define gdr_min_reduce(...) GDRI_BY_DEST(GDRI_C_REDUCED, min_reduce, __VA_ARGS__)
#define gdr_min_reduce_warp(...) GDRI_BY_DEST(GDRI_C_REDUCED, min_reduce_warp, __VA_ARGS__)
#define gdr_min_reduce_block(...) GDRI_BY_DEST(GDRI_C_REDUCED, min_reduce_block, __VA_ARGS__)
#define gdr_min_reduce_on_stream(...) GDRI_BY_DEST(GDRI_C_REDUCED, min_reduce_on_stream, __VA_ARGS__)
#define gdr_host_min_reduce(...) GDRI_HOST_BY_DEST(GDRI_C_REDUCED, min_reduce, __VA_ARGS__)
#define gdr_max_reduce(...) GDRI_BY_DEST(GDRI_C_REDUCED, max_reduce, __VA_ARGS__)
#define gdr_max_reduce_warp(...) GDRI_BY_DEST(GDRI_C_REDUCED, max_reduce_warp, __VA_ARGS__)
#define gdr_max_reduce_block(...) GDRI_BY_DEST(GDRI_C_REDUCED, max_reduce_block, __VA_ARGS__)
#define gdr_max_reduce_on_stream(...) GDRI_BY_DEST(GDRI_C_REDUCED, max_reduce_on_stream, __VA_ARGS__)
#define gdr_host_max_reduce(...) GDRI_HOST_BY_DEST(GDRI_C_REDUCED, max_reduce, __VA_ARGS__)
#define gdr_and_reduce(...) GDRI_BY_DEST(GDRI_C_INTEGERS, and_reduce, __VA_ARGS__)
#define gdr_and_reduce_warp(...) GDRI_BY_DEST(GDRI_C_INTEGERS, and_reduce_warp, __VA_ARGS__)
#define gdr_and_reduce_block(...) GDRI_BY_DEST(GDRI_C_INTEGERS, and_reduce_block, __VA_ARGS__)
#define gdr_and_reduce_on_stream(...) GDRI_BY_DEST(GDRI_C_INTEGERS, and_reduce_on_stream, __VA_ARGS__)
#define gdr_host_and_reduce(...) GDRI_HOST_BY_DEST(GDRI_C_INTEGERS, and_reduce, __VA_ARGS__)
#define gdr_or_reduce(...) GDRI_BY_DEST(GDRI_C_INTEGERS, or_reduce, __VA_ARGS__)
#define gdr_or_reduce_warp(...) GDRI_BY_DEST(GDRI_C_INTEGERS, or_reduce_warp, __VA_ARGS__)
#define gdr_or_reduce_block(...) GDRI_BY_DEST(GDRI_C_INTEGERS, or_reduce_block, __VA_ARGS__)
#define gdr_or_reduce_on_stream(...) GDRI_BY_DEST(GDRI_C_INTEGERS, or_reduce_on_stream, __VA_ARGS__)
#define gdr_host_or_reduce(...) GDRI_HOST_BY_DEST(GDRI_C_INTEGERS, or_reduce, __VA_ARGS__)
#define gdr_xor_reduce(...) GDRI_BY_DEST(GDRI_C_INTEGERS, xor_reduce, __VA_ARGS__)
#define gdr_xor_reduce_warp(...) GDRI_BY_DEST(GDRI_C_INTEGERS, xor_reduce_warp, __VA_ARGS__)
#define gdr_xor_reduce_block(...) GDRI_BY_DEST(GDRI_C_INTEGERS, xor_reduce_block, __VA_ARGS__)
#define gdr_xor_reduce_on_stream(...) GDRI_BY_DEST(GDRI_C_INTEGERS, xor_reduce_on_stream, __VA_ARGS__)
#define gdr_host_xor_reduce(...) GDRI_HOST_BY_DEST(GDRI_C_INTEGERS, xor_reduce, __VA_ARGS__)
#define gdr_sum_reducescatter(...) GDRI_BY_DEST(GDRI_C_REDUCED, sum_reducescatter, __VA_ARGS__)
#define gdr_sum_reducescatter_warp(...) GDRI_BY_DEST(GDRI_C_REDUCED, sum_reducescatter_warp, __VA_ARGS__)
#define gdr_sum_reducescatter_block(...) GDRI_BY_DEST(GDRI_C_REDUCED, sum_reducescatter_block, __VA_ARGS__)
#define gdr_sum_reducescatter_on_stream(...) GDRI_BY_DEST(GDRI_C_REDUCED, sum_reducescatter_on_stream, __VA_ARGS__)
#define gdr_host_sum_reducescatter(...) GDRI_HOST_BY_DEST(GDRI_C_REDUCED, sum_reducescatter, __VA_ARGS__)
#define gdr_prod_reducescatter(...) GDRI_BY_DEST(GDRI_C_REDUCED, prod_reducescatter, __VA_ARGS__)
#define gdr_prod_reducescatter_warp(...) GDRI_BY_DEST(GDRI_C_REDUCED, prod_reducescatter_warp, __VA_ARGS__)
#define gdr_prod_reducescatter_block(...) GDRI_BY_DEST(GDRI_C_REDUCED, prod_reducescatter_block, __VA_ARGS__)
#define gdr_prod_reducescatter_on_stream(...) GDRI_BY_DEST(GDRI_C_REDUCED, prod_reducescatter_on_stream, __VA_ARGS__)
#define gdr_host_prod_reducescatter(...) GDRI_HOST_BY_DEST(GDRI_C_REDUCED, prod_reducescatter, __VA_ARGS__)
#define gdr_min_reducescatter(...) GDRI_BY_DEST(GDRI_C_REDUCED, min_reducescatter, __VA_ARGS__)
#define gdr_min_reducescatter_warp(...) GDRI_BY_DEST(GDRI_C_REDUCED, min_reducescatter_warp, __VA_ARGS__)
#define gdr_min_reducescatter_block(...) GDRI_BY_DEST(GDRI_C_REDUCED, min_reducescatter_block, __VA_ARGS__)
#define gdr_min_reducescatter_on_stream(...) GDRI_BY_DEST(GDRI_C_REDUCED, min_reducescatter_on_stream, __VA_ARGS__)
#define gdr_host_min_reducescatter(...) GDRI_HOST_BY_DEST(GDRI_C_REDUCED, min_reducescatter, __VA_ARGS__)
#define gdr_max_reducescatter(...) GDRI_BY_DEST(GDRI_C_REDUCED, max_reducescatter, __VA_ARGS__)
#define gdr_max_reducescatter_warp(...) GDRI_BY_DEST(GDRI_C_REDUCED, max_reducescatter_warp, __VA_ARGS__)
#define gdr_max_reducescatter_block(...) GDRI_BY_DEST(GDRI_C_REDUCED, max_reducescatter_block, __VA_ARGS__)
#define gdr_max_reducescatter_on_stream(...) GDRI_BY_DEST(GDRI_C_REDUCED, max_reducescatter_on_stream, __VA_ARGS__)
#define gdr_host_max_reducescatter(...) GDRI_HOST_BY_DEST(GDRI_C_REDUCED, max_reducescatter, __VA_ARGS__)
#define gdr_and_reducescatter(...) GDRI_BY_DEST(GDRI_C_INTEGERS, and_reducescatter, __VA_ARGS__)
#define gdr_and_reducescatter_warp(...) GDRI_BY_DEST(GDRI_C_INTEGERS, and_reducescatter_warp, __VA_ARGS__)
#define gdr_and_reducescatter_block(...) GDRI_BY_DEST(GDRI_C_INTEGERS, and_reducescatter_block, __VA_ARGS__)
#define gdr_and_reducescatter_on_stream(...) GDRI_BY_DEST(GDRI_C_INTEGERS, and_reducescatter_on_stream, __VA_ARGS__)
#define gdr_host_and_reducescatter(...) GDRI_HOST_BY_DEST(GDRI_C_INTEGERS, and_reducescatter, __VA_ARGS__)
#define gdr_or_reducescatter(...) GDRI_BY_DEST(GDRI_C_INTEGERS, or_reducescatter, __VA_ARGS__)
#define gdr_or_reducescatter_warp(...) GDRI_BY_DEST(GDRI_C_INTEGERS, or_reducescatter_warp, __VA_ARGS__)
#define gdr_or_reducescatter_block(...) GDRI_BY_DEST(GDRI_C_INTEGERS, or_reducescatter_block, __VA_ARGS__)
#define gdr_or_reducescatter_on_stream(...) GDRI_BY_DEST(GDRI_C_INTEGERS, or_reducescatter_on_stream, __VA_ARGS__)
#define gdr_host_or_reducescatter(...) GDRI_HOST_BY_DEST(GDRI_C_INTEGERS, or_reducescatter, __VA_ARGS__)
#define gdr_xor_reducescatter(...) GDRI_BY_DEST(GDRI_C_INTEGERS, xor_reducescatter, __VA_ARGS__)
#define gdr_xor_reducescatter_warp(...) GDRI_BY_DEST(GDRI_C_INTEGERS, xor_reducescatter_warp, __VA_ARGS__)
#define gdr_xor_reducescatter_block(...) GDRI_BY_DEST(GDRI_C_INTEGERS, xor_reducescatter_block, __VA_ARGS__)
#define gdr_xor_reducescatter_on_stream(...) GDRI_BY_DEST(GDRI_C_INTEGERS, xor_reducescatter_on_stream, __VA_ARGS__)
#define gdr_host_xor_reducescatter(...) GDRI_HOST_BY_DEST(GDRI_C_INTEGERS, xor_reducescatter, __VA_ARGS__)
#define gdr_sum_inscan(...) GDRI_BY_DEST(GDRI_C_NUMBERS, sum_inscan, __VA_ARGS__)
#define gdr_sum_inscan_warp(...) GDRI_BY_DEST(GDRI_C_NUMBERS, sum_inscan_warp, __VA_ARGS__)
#define gdr_sum_inscan_block(...) GDRI_BY_DEST(GDRI_C_NUMBERS, sum_inscan_block, __VA_ARGS__)
#define gdr_sum_inscan_on_stream(...) GDRI_BY_DEST(GDRI_C_NUMBERS, sum_inscan_on_stream, __VA_ARGS__)
#define gdr_host_sum_inscan(...) GDRI_HOST_BY_DEST(GDRI_C_NUMBERS, sum_inscan, __VA_ARGS__)
#define gdr_sum_exscan(...) GDRI_BY_DEST(GDRI_C_NUMBERS, sum_exscan, __VA_ARGS__)
#define gdr_sum_exscan_warp(...) GDRI_BY_DEST(GDRI_C_NUMBERS, sum_exscan_warp, __VA_ARGS__)
#define gdr_sum_exscan_block(...) GDRI_BY_DEST(GDRI_C_NUMBERS, sum_exscan_block, __VA_ARGS__)
#define gdr_sum_exscan_on_stream(...) GDRI_BY_DEST(GDRI_C_NUMBERS, sum_exscan_on_stream, __VA_ARGS__)
#define gdr_host_sum_exscan(...) GDRI_HOST_BY_DEST(GDRI_C_NUMBERS, sum_exscan, __VA_ARGS__)

#endif
