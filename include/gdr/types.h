/* SPDX-License-Identifier: BSD-3-Clause */
/* The types of the typed families: OpenSHMEM's standard RMA and AMO types, and more.
 * X(name, C type). */
#ifndef GDR_TYPES_H
#define GDR_TYPES_H

#include <gdr/macros.h>

/* The integers of C that are distinct types on every platform: each of those below is one of them. */
#define GDR_LANGUAGE_TYPES(X)                                                                      \
	X(int, int)                                                                                \
	X(long, long)                                                                              \
	X(longlong, long long)                                                                     \
	X(uint, unsigned int)                                                                      \
	X(ulong, unsigned long)                                                                    \
	X(ulonglong, unsigned long long)

#define GDR_AMO_TYPES(X)                                                                           \
	GDR_LANGUAGE_TYPES(X)                                                                      \
	X(int32, int32_t)                                                                          \
	X(int64, int64_t)                                                                          \
	X(uint32, uint32_t)                                                                        \
	X(uint64, uint64_t)                                                                        \
	X(size, size_t)                                                                            \
	X(ptrdiff, ptrdiff_t)

/* Types of atomics that are no integers. */
#define GDR_FLOAT_TYPES(X)                                                                         \
	X(float, float)                                                                            \
	X(double, double)

/* Integers without atomics. */
#define GDR_SMALL_TYPES(X)                                                                         \
	X(char, char)                                                                              \
	X(schar, signed char)                                                                      \
	X(short, short)                                                                            \
	X(uchar, unsigned char)                                                                    \
	X(ushort, unsigned short)                                                                  \
	X(int8, int8_t)                                                                            \
	X(int16, int16_t)                                                                          \
	X(uint8, uint8_t)                                                                          \
	X(uint16, uint16_t)

#define GDR_RMA_TYPES(X)                                                                           \
	GDR_AMO_TYPES(X)                                                                           \
	GDR_FLOAT_TYPES(X)                                                                         \
	GDR_SMALL_TYPES(X)

/* The integer types among GDR_RMA_TYPES. */
#define GDR_INTEGER_TYPES(X)                                                                       \
	GDR_AMO_TYPES(X)                                                                           \
	GDR_SMALL_TYPES(X)

/* Types that wait and test know. */
#define GDR_WAIT_TYPES(X)                                                                          \
	GDR_AMO_TYPES(X)                                                                           \
	X(short, short)                                                                            \
	X(ushort, unsigned short)

/* Numbers of 16 bits: reductions reckon with them. */
#define GDR_HALF_TYPES(X)                                                                          \
	X(half, gdr_half_t)                                                                        \
	X(bfloat16, gdr_bfloat16_t)

/* Types that are moved; of these only GDR_HALF_TYPES are reckoned with. Under CUDA they are its own,
 * and a program that uses them includes cuda_fp16.h, cuda_bf16.h; long double does not exist on GPUs. */
#define GDR_RMA_TYPES_MORE(X)                                                                      \
	GDR_HALF_TYPES(X)                                                                          \
	X(complexf, gdr_complexf_t)                                                                \
	X(complexd, gdr_complexd_t)                                                                \
	GDRI_HOST_TYPES(X)

#ifdef __CUDACC__
#define GDRI_HOST_TYPES(X)
#define gdr_half_t __half
#define gdr_bfloat16_t __nv_bfloat16
typedef float2 gdr_complexf_t;
typedef double2 gdr_complexd_t;
#else
#define GDRI_HOST_TYPES(X) X(longdouble, long double)
typedef struct {
	uint16_t bits; /* IEEE 754 binary16 */
} gdr_half_t;
typedef struct {
	uint16_t bits; /* the upper half of a float */
} gdr_bfloat16_t;
#ifdef __cplusplus
typedef struct {
	float re, im;
} gdr_complexf_t;
typedef struct {
	double re, im;
} gdr_complexd_t;
#else
typedef float _Complex gdr_complexf_t;
typedef double _Complex gdr_complexd_t;
#endif
#endif

/* For overloads of C++: each type of the language, of which the names of C have several, once. */
#define GDRI_CPP_WAIT_TYPES(X)                                                                     \
	GDR_LANGUAGE_TYPES(X)                                                                      \
	X(short, short)                                                                            \
	X(ushort, unsigned short)
#define GDRI_CPP_INTEGERS(X)                                                                       \
	GDRI_CPP_WAIT_TYPES(X)                                                                     \
	X(char, char)                                                                              \
	X(schar, signed char)                                                                      \
	X(uchar, unsigned char)
#define GDRI_CPP_TYPES(X)                                                                          \
	GDRI_CPP_INTEGERS(X)                                                                       \
	GDR_FLOAT_TYPES(X)

/* Sizes of elements without a type: X(bits, bytes). */
#define GDR_RMA_SIZES(X)                                                                           \
	X(8, 1)                                                                                    \
	X(16, 2)                                                                                   \
	X(32, 4)                                                                                   \
	X(64, 8)                                                                                   \
	X(128, 16)

#endif
