/* SPDX-License-Identifier: BSD-3-Clause */
/* The types of the typed families: OpenSHMEM's standard RMA and AMO types.
 * X(name, C type); a further macro argument is passed through. */
#ifndef GDR_TYPES_H
#define GDR_TYPES_H

#include <gdr/macros.h>

#define GDR_AMO_TYPES(X)                                                                           \
	X(int, int)                                                                                \
	X(long, long)                                                                              \
	X(longlong, long long)                                                                     \
	X(uint, unsigned int)                                                                      \
	X(ulong, unsigned long)                                                                    \
	X(ulonglong, unsigned long long)                                                           \
	X(int32, int32_t)                                                                          \
	X(int64, int64_t)                                                                          \
	X(uint32, uint32_t)                                                                        \
	X(uint64, uint64_t)                                                                        \
	X(size, size_t)                                                                            \
	X(ptrdiff, ptrdiff_t)

#define GDR_RMA_TYPES(X)                                                                           \
	GDR_AMO_TYPES(X)                                                                           \
	X(float, float)                                                                            \
	X(double, double)                                                                          \
	X(char, char)                                                                              \
	X(schar, signed char)                                                                      \
	X(short, short)                                                                            \
	X(uchar, unsigned char)                                                                    \
	X(ushort, unsigned short)                                                                  \
	X(int8, int8_t)                                                                            \
	X(int16, int16_t)                                                                          \
	X(uint8, uint8_t)                                                                          \
	X(uint16, uint16_t)

#endif
