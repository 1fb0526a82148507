/* SPDX-License-Identifier: BSD-3-Clause */
/* What reductions do to elements: one function for all types and operations, chosen by a code.
 * Types count by how they are represented, so that long and int64 are one. */
#ifndef GDRI_REDUCE_OP_H
#define GDRI_REDUCE_OP_H

#include <gdr/impl/scope.h>

enum gdri_op2 { GDRI_SUM, GDRI_PROD, GDRI_MIN, GDRI_MAX, GDRI_AND, GDRI_OR, GDRI_XOR };
enum gdri_class { GDRI_C_UNSIGNED, GDRI_C_SIGNED, GDRI_C_FLOAT };

/* operation << 8 | class << 4 | log2 of the size: a constant for each arithmetic type */
#define GDRI_LOG2(n) ((n) == 1 ? 0u : (n) == 2 ? 1u : (n) == 4 ? 2u : 3u)
#define GDRI_CLASS(T)                                                                              \
	((T)0.5 != (T)0 ? (unsigned)GDRI_C_FLOAT                                                   \
			: (T)-1 < (T)1 ? (unsigned)GDRI_C_SIGNED : (unsigned)GDRI_C_UNSIGNED)
#define GDRI_REDUCE_CODE(T, op2)                                                                   \
	((uint32_t)(op2) << 8 | GDRI_CLASS(T) << 4 | GDRI_LOG2(sizeof(T)))

/* Sums, products and bits of signed types are those of unsigned ones, which may overflow. */
#define GDRI_CASE(op2, cls, bits, T, expr)                                                         \
	case (uint32_t)(op2) << 8 | (uint32_t)(cls) << 4 | GDRI_LOG2(bits / 8): {                  \
		const T *pa = (const T *)a, *pb = (const T *)b;                                    \
		T *pd = (T *)d;                                                                    \
                                                                                                   \
		for (k = rank; k < n; k += step) {                                                 \
			T x = pa[k], y = pb[k];                                                    \
                                                                                                   \
			pd[k] = (T)(expr);                                                         \
		}                                                                                  \
		break;                                                                             \
	}
#define GDRI_CASES_BITS(bits)                                                                      \
	GDRI_CASE(GDRI_SUM, GDRI_C_UNSIGNED, bits, uint##bits##_t, x + y)                          \
	GDRI_CASE(GDRI_PROD, GDRI_C_UNSIGNED, bits, uint##bits##_t, 1u * x * y)                    \
	GDRI_CASE(GDRI_AND, GDRI_C_UNSIGNED, bits, uint##bits##_t, x & y)                          \
	GDRI_CASE(GDRI_OR, GDRI_C_UNSIGNED, bits, uint##bits##_t, x | y)                           \
	GDRI_CASE(GDRI_XOR, GDRI_C_UNSIGNED, bits, uint##bits##_t, x ^ y)                          \
	GDRI_CASE(GDRI_MIN, GDRI_C_UNSIGNED, bits, uint##bits##_t, x < y ? x : y)                  \
	GDRI_CASE(GDRI_MAX, GDRI_C_UNSIGNED, bits, uint##bits##_t, x > y ? x : y)                  \
	GDRI_CASE(GDRI_MIN, GDRI_C_SIGNED, bits, int##bits##_t, x < y ? x : y)                     \
	GDRI_CASE(GDRI_MAX, GDRI_C_SIGNED, bits, int##bits##_t, x > y ? x : y)
#define GDRI_CASES_FLOAT(bits, T)                                                                  \
	GDRI_CASE(GDRI_SUM, GDRI_C_FLOAT, bits, T, x + y)                                          \
	GDRI_CASE(GDRI_PROD, GDRI_C_FLOAT, bits, T, x *y)                                          \
	GDRI_CASE(GDRI_MIN, GDRI_C_FLOAT, bits, T, x < y ? x : y)                                  \
	GDRI_CASE(GDRI_MAX, GDRI_C_FLOAT, bits, T, x > y ? x : y)

GDR_DEVICE uint32_t gdri_reduce_fold(uint32_t code)
{
	uint32_t op2 = code >> 8, cls = code >> 4 & 15u;

	return cls == GDRI_C_SIGNED && op2 != GDRI_MIN && op2 != GDRI_MAX
		       ? code & ~(15u << 4) /* GDRI_C_UNSIGNED */
		       : code;
}

/* d = a op b for n elements; d may be a or b. Each thread of the scope always has the same ones. */
GDRI_NOINLINE void gdri_reduce_apply(uint32_t code, int scope, void *d, const void *a,
				     const void *b, size_t n)
{
	size_t k, rank = gdri_scope_rank(scope), step = gdri_scope_size(scope);

	switch (gdri_reduce_fold(code)) {
		GDRI_CASES_BITS(8)
		GDRI_CASES_BITS(16)
		GDRI_CASES_BITS(32)
		GDRI_CASES_BITS(64)
		GDRI_CASES_FLOAT(32, float)
		GDRI_CASES_FLOAT(64, double)
	default:
		break;
	}
}

/* In the same distribution. */
GDR_DEVICE void gdri_reduce_copy(uint32_t code, int scope, void *d, const void *a, size_t n)
{
	size_t k, rank = gdri_scope_rank(scope), step = gdri_scope_size(scope);

	if (d == a)
		return;
	for (k = rank; k < n; k += step)
		switch (code & 15u) {
		case 0:
			((uint8_t *)d)[k] = ((const uint8_t *)a)[k];
			break;
		case 1:
			((uint16_t *)d)[k] = ((const uint16_t *)a)[k];
			break;
		case 2:
			((uint32_t *)d)[k] = ((const uint32_t *)a)[k];
			break;
		default:
			((uint64_t *)d)[k] = ((const uint64_t *)a)[k];
			break;
		}
}

#endif
