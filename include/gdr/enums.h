/* SPDX-License-Identifier: BSD-3-Clause */
/* What operations on signals and waits are told to do, for kernels and host threads alike. */
#ifndef GDR_ENUMS_H
#define GDR_ENUMS_H

/** What a signal word becomes. */
enum gdr_signal {
	GDR_SIGNAL_SET = 0, /**< the value */
	GDR_SIGNAL_ADD = 1, /**< itself and the value */
};
/** Comparisons of the word with the value. */
enum gdr_cmp {
	GDR_CMP_EQ = 0, /**< equal */
	GDR_CMP_NE = 1, /**< not equal */
	GDR_CMP_GT = 2, /**< greater */
	GDR_CMP_GE = 3, /**< greater or equal */
	GDR_CMP_LT = 4, /**< less */
	GDR_CMP_LE = 5, /**< less or equal */
};

#endif
