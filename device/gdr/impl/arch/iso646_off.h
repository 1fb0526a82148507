/* SPDX-License-Identifier: BSD-3-Clause */
/* <iso646.h> makes and, or and xor macros in C: rows of operations hold these words, which would expand before they
 * become a part of a name. iso646_on.h gives the program its macros back. No guard: each use is a pair. */
#ifndef __cplusplus
#pragma push_macro("and")
#pragma push_macro("or")
#pragma push_macro("xor")
#undef and
#undef or
#undef xor
#endif
