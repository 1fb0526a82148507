/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of atomics by type: what an instruction of the kernel or a request carries. */
#ifndef GDRI_AMO_KIND_H
#define GDRI_AMO_KIND_H

#include <gdr/impl/arch/ops.h>
#include <gdr/impl/coll/reduce_code.h>

/* What a row of ops.h is of type T: no NIC adds floats. */
#define GDRI_AMO_KIND(kind, reduction, T)                                                          \
	((kind) == GDRI_AMO_COMBINE || GDRI_CLASS(T) == (unsigned)GDRI_C_FLOAT                     \
		 ? (int)(GDRI_AMO_COMBINE | GDRI_REDUCE_CODE(T, reduction))                        \
		 : (int)(kind))

#define GDRI_AMO_INC(T) GDRI_AMO_KIND(GDRI_AMO_ADD, GDRI_SUM, T)
#define GDRI_AMO_ONE(T) /* as IEEE 754 writes it */                                                \
	(GDRI_CLASS(T) != (unsigned)GDRI_C_FLOAT ? 1u : sizeof(T) == 8 ? 0x3ff0000000000000ull : 0x3f800000u)

#endif
