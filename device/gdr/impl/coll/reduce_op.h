/* SPDX-License-Identifier: BSD-3-Clause */
/* What reductions do to elements: one function for all types and operations, chosen by a code.
 * Types count by how they are represented, so that long and int64 are one. */
#ifndef GDRI_REDUCE_OP_H
#define GDRI_REDUCE_OP_H

#include <gdr/impl/arch/scope.h>
#include <gdr/impl/coll/reduce_code.h>

/* ---- numbers of 16 bits: reckoned with as floats, which is exact before the one rounding (to the
 * nearest, ties to even) of the result ---- */

GDR_DEVICE float gdri_float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

GDR_DEVICE uint32_t gdri_bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return bits;
}

GDR_DEVICE float gdri_from_bfloat(uint16_t v)
{
	return gdri_float_of((uint32_t)v << 16);
}

GDR_DEVICE uint16_t gdri_to_bfloat(float f)
{
	uint32_t v = gdri_bits_of(f);

	if ((v & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(v >> 16 | 0x40u); /* a NaN stays one */
	return (uint16_t)((v + 0x7fffu + (v >> 16 & 1u)) >> 16);
}

#ifdef __CUDACC__
GDR_DEVICE float gdri_from_half(uint16_t v)
{
	float f;

	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v));
	return f;
}

GDR_DEVICE uint16_t gdri_to_half(float f)
{
	uint16_t v;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(v) : "f"(f));
	return v;
}
#else
/* The exponent is put right by a product with a power of two, which is exact, also for what has
 * none of the ordinary ones. 2^112 in decimal digits: C++11 has no others. */
GDR_DEVICE float gdri_from_half(uint16_t v)
{
	uint32_t sign = (uint32_t)(v & 0x8000u) << 16, rest = (uint32_t)(v & 0x7fffu) << 13;

	if ((v & 0x7c00u) == 0x7c00u) /* infinite, or a NaN */
		return gdri_float_of(sign | 0x7f800000u | rest);
	return gdri_float_of(sign | gdri_bits_of(gdri_float_of(rest) * 5192296858534827628530496329220096.0f));
}

GDR_DEVICE uint16_t gdri_to_half(float f)
{
	uint32_t v = gdri_bits_of(f), sign = v >> 16 & 0x8000u, rest = v & 0x7fffffffu;

	if (rest > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00u);
	if (rest >= 0x477ff000u) /* 65520: rounds to infinity */
		return (uint16_t)(sign | 0x7c00u);
	if (rest < 0x38800000u) /* less than 2^-14: a sum aligns and rounds it */
		return (uint16_t)(sign | (gdri_bits_of(gdri_float_of(rest) + 0.5f) - 0x3f000000u));
	rest += 0xfffu + (rest >> 13 & 1u);
	return (uint16_t)(sign | (rest - 0x38000000u) >> 13);
}
#endif

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

/* X(operation, class, bits, type, of x and y): all that there is of unsigned and signed numbers. */
#define GDRI_OPS_BITS(X, bits)                                                                     \
	X(GDRI_SUM, GDRI_C_UNSIGNED, bits, uint##bits##_t, x + y)                                  \
	X(GDRI_PROD, GDRI_C_UNSIGNED, bits, uint##bits##_t, 1u * x * y)                            \
	X(GDRI_AND, GDRI_C_UNSIGNED, bits, uint##bits##_t, x & y)                                  \
	X(GDRI_OR, GDRI_C_UNSIGNED, bits, uint##bits##_t, x | y)                                   \
	X(GDRI_XOR, GDRI_C_UNSIGNED, bits, uint##bits##_t, x ^ y)                                  \
	X(GDRI_MIN, GDRI_C_UNSIGNED, bits, uint##bits##_t, x < y ? x : y)                          \
	X(GDRI_MAX, GDRI_C_UNSIGNED, bits, uint##bits##_t, x > y ? x : y)                          \
	X(GDRI_MIN, GDRI_C_SIGNED, bits, int##bits##_t, x < y ? x : y)                             \
	X(GDRI_MAX, GDRI_C_SIGNED, bits, int##bits##_t, x > y ? x : y)
#define GDRI_OPS_FLOAT(X, bits, T)                                                                 \
	X(GDRI_SUM, GDRI_C_FLOAT, bits, T, x + y)                                                  \
	X(GDRI_PROD, GDRI_C_FLOAT, bits, T, x *y)                                                  \
	X(GDRI_MIN, GDRI_C_FLOAT, bits, T, x < y ? x : y)                                          \
	X(GDRI_MAX, GDRI_C_FLOAT, bits, T, x > y ? x : y)

/* x and y are floats, whatever is in memory. */
#define GDRI_CASE_16(op2, cls, from, to, expr)                                                     \
	case (uint32_t)(op2) << 8 | (uint32_t)(cls) << 4 | 1u: {                                   \
		const uint16_t *pa = (const uint16_t *)a, *pb = (const uint16_t *)b;               \
		uint16_t *pd = (uint16_t *)d;                                                      \
                                                                                                   \
		for (k = rank; k < n; k += step) {                                                 \
			float x = from(pa[k]), y = from(pb[k]);                                    \
                                                                                                   \
			pd[k] = to(expr);                                                          \
		}                                                                                  \
		break;                                                                             \
	}
#define GDRI_OPS_16(X, cls, from, to)                                                              \
	X(GDRI_SUM, cls, from, to, x + y)                                                          \
	X(GDRI_PROD, cls, from, to, x *y)                                                          \
	X(GDRI_MIN, cls, from, to, x < y ? x : y)                                                  \
	X(GDRI_MAX, cls, from, to, x > y ? x : y)

/* Of equal values the one at the lowest place, so that the order of the PEs does not matter. */
GDR_DEVICE struct gdri_pair gdri_greater_pair(struct gdri_pair x, struct gdri_pair y)
{
	return x.value > y.value || (!(x.value < y.value) && x.at <= y.at) ? x : y;
}

GDR_DEVICE uint32_t gdri_reduce_fold(uint32_t code)
{
	uint32_t op2 = code >> 8, cls = code >> 4 & 15u;

	return cls == GDRI_C_SIGNED && op2 != GDRI_MIN && op2 != GDRI_MAX
		       ? code & ~(15u << 4) /* GDRI_C_UNSIGNED */
		       : code;
}

/* d = a op b for n elements; d may be a or b. An element is always of one thread of the scope. Inline: for a code
 * that is a constant. */
GDR_DEVICE void gdri_reduce_apply_as(uint32_t code, int scope, void *d, const void *a,
				     const void *b, size_t n)
{
	size_t k, rank = gdri_scope_rank(scope), step = gdri_scope_size(scope);

	switch (gdri_reduce_fold(code)) {
		GDRI_OPS_BITS(GDRI_CASE, 8)
		GDRI_OPS_BITS(GDRI_CASE, 16)
		GDRI_OPS_BITS(GDRI_CASE, 32)
		GDRI_OPS_BITS(GDRI_CASE, 64)
		GDRI_OPS_FLOAT(GDRI_CASE, 32, float)
		GDRI_OPS_FLOAT(GDRI_CASE, 64, double)
		GDRI_OPS_16(GDRI_CASE_16, GDRI_C_FLOAT, gdri_from_half, gdri_to_half)
		GDRI_OPS_16(GDRI_CASE_16, GDRI_C_BFLOAT, gdri_from_bfloat, gdri_to_bfloat)
	case GDRI_CODE_PAIR:
		for (k = rank; k < n; k += step)
			((struct gdri_pair *)d)[k] =
				gdri_greater_pair(((const struct gdri_pair *)a)[k],
						  ((const struct gdri_pair *)b)[k]);
		break;
	default:
		break;
	}
}

/* Of an atomic: bits of numbers of 4 and of 8 bytes. */
GDR_DEVICE uint64_t gdri_amo_combine(uint32_t code, uint64_t word, uint64_t operand)
{
#define GDRI_AMO_CASE(op2, cls, bits, T, expr)                                                     \
	case (uint32_t)(op2) << 8 | (uint32_t)(cls) << 4 | GDRI_LOG2(bits / 8): {                  \
		uint##bits##_t a = (uint##bits##_t)word, b = (uint##bits##_t)operand;              \
		T x, y;                                                                            \
                                                                                                   \
		memcpy(&x, &a, sizeof(x));                                                         \
		memcpy(&y, &b, sizeof(y));                                                         \
		x = (T)(expr);                                                                     \
		memcpy(&a, &x, sizeof(a));                                                         \
		return a;                                                                          \
	}
	switch (gdri_reduce_fold(code)) {
		GDRI_OPS_BITS(GDRI_AMO_CASE, 32)
		GDRI_OPS_BITS(GDRI_AMO_CASE, 64)
		GDRI_OPS_FLOAT(GDRI_AMO_CASE, 32, float)
		GDRI_OPS_FLOAT(GDRI_AMO_CASE, 64, double)
	default:
		return word;
	}
#undef GDRI_AMO_CASE
}

#define GDRI_WIDE_SUMS(X)                                                                          \
	X(GDRI_REDUCE_CODE(float, GDRI_SUM))                                                       \
	X(GDRI_REDUCE_CODE(double, GDRI_SUM))                                                      \
	X(GDRI_REDUCE_CODE(uint32_t, GDRI_SUM))                                                    \
	X(GDRI_REDUCE_CODE(uint64_t, GDRI_SUM))                                                    \
	X(GDRI_CODE_half(GDRI_SUM))                                                                \
	X(GDRI_CODE_bfloat16(GDRI_SUM))

/* 1: most of what there is; one thread computes these by rows of 16 bytes. */
GDR_DEVICE int gdri_reduce_wide(uint32_t code)
{
	code = gdri_reduce_fold(code);
#define GDRI_CODE_IS(one) code == (one) ||
	return GDRI_WIDE_SUMS(GDRI_CODE_IS) 0;
#undef GDRI_CODE_IS
}

#ifdef __CUDACC__
#define GDRI_WIDE_ROWS 4 /* of 16 bytes under way, of each of both: called by the ABI, it has all kernels' registers */

/* One thread, rows of such sums: a load's latency for as many as are under way. */
GDRI_NOINLINE void gdri_reduce_rows(uint32_t code, uint4 *d, const uint4 *a, const uint4 *b, int left)
{
	uint4 x[GDRI_WIDE_ROWS], y[GDRI_WIDE_ROWS];

	code = gdri_reduce_fold(code);
	GDRI_NOT_UNROLLED
	for (; left > 0; left -= GDRI_WIDE_ROWS) {
		GDRI_UNROLLED
		for (int k = 0; k < GDRI_WIDE_ROWS; k++) {
			x[k] = k < left ? a[k] : make_uint4(0, 0, 0, 0);
			y[k] = k < left ? b[k] : make_uint4(0, 0, 0, 0);
		}
		switch (code) {
#define GDRI_ROWS_CASE(one)                                                                        \
	case one:                                                                                  \
		GDRI_UNROLLED                                                                      \
		for (int k = 0; k < GDRI_WIDE_ROWS; k++)                                               \
			gdri_reduce_apply_as(one, GDRI_THREAD, &x[k], &x[k], &y[k], (size_t)16 >> ((one) & 15u)); \
		break;
			GDRI_WIDE_SUMS(GDRI_ROWS_CASE)
#undef GDRI_ROWS_CASE
		default:
			break;
		}
		GDRI_UNROLLED
		for (int k = 0; k < GDRI_WIDE_ROWS; k++)
			if (k < left)
				d[k] = x[k];
		a += GDRI_WIDE_ROWS;
		b += GDRI_WIDE_ROWS;
		d += GDRI_WIDE_ROWS;
	}
}
#endif

GDRI_NOINLINE void gdri_reduce_apply(uint32_t code, int scope, void *d, const void *a,
				     const void *b, size_t n)
{
	gdri_reduce_apply_as(code, scope, d, a, b, n);
}

/* gdri_reduce_apply of much. */
GDR_DEVICE void gdri_reduce_many(uint32_t code, int scope, uint8_t *d, const uint8_t *a, const uint8_t *b, size_t len)
{
#ifdef __CUDACC__
	if (scope == GDRI_THREAD && gdri_reduce_wide(code) &&
	    !(((uintptr_t)d | (uintptr_t)a | (uintptr_t)b | len) & 15)) {
		gdri_reduce_rows(code, (uint4 *)d, (const uint4 *)a, (const uint4 *)b, (int)(len / 16));
		return;
	}
#endif
	gdri_reduce_apply(code, scope, d, a, b, len >> (code & 15u));
}

/* Each thread copies the elements that gdri_reduce_apply gives it. */
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
		case 4:
			((struct gdri_pair *)d)[k] = ((const struct gdri_pair *)a)[k];
			break;
		default:
			((uint64_t *)d)[k] = ((const uint64_t *)a)[k];
			break;
		}
}

#endif
