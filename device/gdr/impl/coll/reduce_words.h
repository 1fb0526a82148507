/* SPDX-License-Identifier: BSD-3-Clause */
/* All reductions once more, for GPUs, on elements that are in registers: one switch for a row of many. */
#ifndef GDRI_REDUCE_WORDS_H
#define GDRI_REDUCE_WORDS_H

#include <gdr/impl/coll/reduce_op.h>

#ifdef __CUDACC__

/* a = a op b, n times 8 bytes that are registers: n is a constant. All ways at once, so that it is inline once
 * for a row of many elements. */
#define GDRI_WORD_CASE(op2, cls, bits, T, expr)                                                    \
	case (uint32_t)(op2) << 8 | (uint32_t)(cls) << 4 | GDRI_LOG2(bits / 8): {                  \
		GDRI_UNROLLED                                                                      \
		for (int k = 0; k < n; k++) {                                                      \
			uint64_t d = 0;                                                            \
                                                                                                   \
			GDRI_UNROLLED                                                              \
			for (int i = 0; i < 64; i += bits) {                                       \
				T x = gdri_part_##T(a[k] >> i), y = gdri_part_##T(b[k] >> i);      \
                                                                                                   \
				d |= gdri_whole_##T((T)(expr)) << i;                               \
			}                                                                          \
			a[k] = d;                                                                  \
		}                                                                                  \
		break;                                                                             \
	}
#define GDRI_WORD_CASE_16(op2, cls, from, to, expr)                                                \
	case (uint32_t)(op2) << 8 | (uint32_t)(cls) << 4 | 1u: {                                   \
		GDRI_UNROLLED                                                                      \
		for (int k = 0; k < n; k++) {                                                      \
			uint64_t d = 0;                                                            \
                                                                                                   \
			GDRI_UNROLLED                                                              \
			for (int i = 0; i < 64; i += 16) {                                         \
				float x = from((uint16_t)(a[k] >> i)), y = from((uint16_t)(b[k] >> i)); \
                                                                                                   \
				d |= (uint64_t)to(expr) << i;                                      \
			}                                                                          \
			a[k] = d;                                                                  \
		}                                                                                  \
		break;                                                                             \
	}
#define GDRI_WORD_INT(T, U)                                                                        \
	GDR_DEVICE T gdri_part_##T(uint64_t v) { return (T)v; }                                    \
	GDR_DEVICE uint64_t gdri_whole_##T(T v) { return (U)v; }
GDRI_WORD_INT(uint8_t, uint8_t)
GDRI_WORD_INT(uint16_t, uint16_t)
GDRI_WORD_INT(uint32_t, uint32_t)
GDRI_WORD_INT(uint64_t, uint64_t)
GDRI_WORD_INT(int8_t, uint8_t)
GDRI_WORD_INT(int16_t, uint16_t)
GDRI_WORD_INT(int32_t, uint32_t)
GDRI_WORD_INT(int64_t, uint64_t)
GDR_DEVICE float gdri_part_float(uint64_t v) { return gdri_float_of((uint32_t)v); }
GDR_DEVICE uint64_t gdri_whole_float(float v) { return gdri_bits_of(v); }
GDR_DEVICE double gdri_part_double(uint64_t v) { return __longlong_as_double((long long)v); }
GDR_DEVICE uint64_t gdri_whole_double(double v) { return (uint64_t)__double_as_longlong(v); }

template <int n> GDR_DEVICE void gdri_reduce_words(uint32_t code, uint64_t (&a)[n], const uint64_t (&b)[n])
{
	switch (gdri_reduce_fold(code)) {
		GDRI_OPS_BITS(GDRI_WORD_CASE, 8)
		GDRI_OPS_BITS(GDRI_WORD_CASE, 16)
		GDRI_OPS_BITS(GDRI_WORD_CASE, 32)
		GDRI_OPS_BITS(GDRI_WORD_CASE, 64)
		GDRI_OPS_FLOAT(GDRI_WORD_CASE, 32, float)
		GDRI_OPS_FLOAT(GDRI_WORD_CASE, 64, double)
		GDRI_OPS_16(GDRI_WORD_CASE_16, GDRI_C_FLOAT, gdri_from_half, gdri_to_half)
		GDRI_OPS_16(GDRI_WORD_CASE_16, GDRI_C_BFLOAT, gdri_from_bfloat, gdri_to_bfloat)
	default:
		break;
	}
}

#endif

#endif
