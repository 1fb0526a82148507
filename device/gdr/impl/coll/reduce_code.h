/* SPDX-License-Identifier: BSD-3-Clause */
/* What a reduction does to its elements, as a number. */
#ifndef GDRI_REDUCE_CODE_H
#define GDRI_REDUCE_CODE_H

#include <gdr/macros.h>

enum gdri_op2 {
	GDRI_SUM = 0,
	GDRI_PROD = 1,
	GDRI_MIN = 2,
	GDRI_MAX = 3,
	GDRI_AND = 4,
	GDRI_OR = 5,
	GDRI_XOR = 6,
	GDRI_MAXLOC = 7,
};
enum gdri_class {
	GDRI_C_UNSIGNED = 0,
	GDRI_C_SIGNED = 1,
	GDRI_C_FLOAT = 2,
	GDRI_C_BFLOAT = 3, /* the upper half of a float */
};

/* What MAXLOC looks for the greatest of: the first of a pair, with the second as its place. */
struct gdri_pair {
	double value, at;
};
#define GDRI_CODE_PAIR ((uint32_t)GDRI_MAXLOC << 8 | (uint32_t)GDRI_C_FLOAT << 4 | 4u)

/* operation << 8 | class << 4 | log2 of the size: a constant for each type */
#define GDRI_LOG2(n) ((n) == 1 ? 0u : (n) == 2 ? 1u : (n) == 4 ? 2u : 3u)
#define GDRI_CLASS(T)                                                                              \
	((T)0.5 != (T)0 ? (unsigned)GDRI_C_FLOAT                                                   \
			: (T)-1 < (T)1 ? (unsigned)GDRI_C_SIGNED : (unsigned)GDRI_C_UNSIGNED)
#define GDRI_REDUCE_CODE(T, op2)                                                                   \
	((uint32_t)(op2) << 8 | GDRI_CLASS(T) << 4 | GDRI_LOG2(sizeof(T)))

/* of types that C cannot reckon with */
#define GDRI_CODE_half(op2) ((uint32_t)(op2) << 8 | (uint32_t)GDRI_C_FLOAT << 4 | 1u)
#define GDRI_CODE_bfloat16(op2) ((uint32_t)(op2) << 8 | (uint32_t)GDRI_C_BFLOAT << 4 | 1u)

#endif
