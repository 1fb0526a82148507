/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends what iso646_off.h began. */
#ifndef __cplusplus
#pragma pop_macro("and")
#pragma pop_macro("or")
#pragma pop_macro("xor")
#endif
