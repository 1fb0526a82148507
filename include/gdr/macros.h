/* SPDX-License-Identifier: BSD-3-Clause */
/* How functions of the public headers are declared in each language. */
#ifndef GDR_MACROS_H
#define GDR_MACROS_H

#ifdef __CUDACC_RTC__ /* has no headers */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
#ifndef offsetof
#define offsetof(type, member) ((size_t) & ((type *)0)->member)
#endif
#else
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
#define GDR_EXTERN_C_BEGIN extern "C" {
#define GDR_EXTERN_C_END }
#ifdef __CUDACC_RTC__ /* whose offsetof is no constant */
#define GDR_STATIC_ASSERT(cond, text) static_assert(1, text)
#else
#define GDR_STATIC_ASSERT(cond, text) static_assert(cond, text)
#endif
#else
#define GDR_EXTERN_C_BEGIN
#define GDR_EXTERN_C_END
#define GDR_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

/* Exported from libgdr.so; everything else is hidden. */
#define GDR_API __attribute__((visibility("default")))

/* Device functions: inline in the kernel's translation unit. GDR_DEVICE for
 * what a kernel runs all the time, GDR_DEVICE_COLD for slow and error paths. Where the compiler does not
 * optimize, and in nvcc's pass for the host, in which they are stubs, cold functions are `inline`: else the object
 * would hold each of them, called or not. */
#ifdef __CUDACC__
#define GDR_DEVICE static __device__ __forceinline__
#ifdef __CUDA_ARCH__
#define GDR_DEVICE_COLD static __device__ __noinline__ __attribute__((unused))
#else
#define GDR_DEVICE_COLD static inline __device__ __attribute__((unused))
#endif
#define GDRI_INLINE static __host__ __device__ __forceinline__
#else
#define GDR_DEVICE static inline __attribute__((always_inline, unused))
#ifdef __OPTIMIZE__
#define GDR_DEVICE_COLD static __attribute__((noinline, cold, unused))
#else
#define GDR_DEVICE_COLD static inline __attribute__((unused))
#endif
#define GDRI_INLINE static inline __attribute__((always_inline, unused))
#endif

/* In struct gdr_dim3. */
#ifdef __CUDACC__
#define GDRI_TO_DIM3                                                                               \
	__host__ __device__ operator dim3() const                                                  \
	{                                                                                          \
		return dim3(x, y, z);                                                              \
	}
#else
#define GDRI_TO_DIM3
#endif

#define GDRI_OPEN(...) __VA_ARGS__

/* Before a union without a name. */
#ifdef __cplusplus /* has unions without a name, and nvrtc no __extension__ before one */
#define GDRI_UNNAMED
#else /* C99 has none */
#define GDRI_UNNAMED __extension__
#endif

/* Around functions that have the name of a struct: -Wshadow of g++ takes them for its constructor's. */
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define GDRI_NAMESAKES_BEGIN _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"")
#define GDRI_NAMESAKES_END _Pragma("GCC diagnostic pop")
#else
#define GDRI_NAMESAKES_BEGIN
#define GDRI_NAMESAKES_END
#endif

/* For kernels, and under CUDA for host threads too. */
#if defined(__CUDACC__) && !defined(__CUDACC_RTC__) && !defined(GDR_MODULE)
#define GDR_BOTH static __host__ __device__ __forceinline__
#else
#define GDR_BOTH GDR_DEVICE
#endif

/* A prototype of a typed family. C compiles it; under CUDA and in the checked build the names are
 * macros. */
#if defined(GDRI_PRINT_NAMES) /* tools/gen_names */
#define GDRI_PROTOTYPE(ret, name, params) GDRI_DOCUMENTED | name | ret | params;
#elif defined(__CUDACC__) || defined(GDR_CHECKED)
#define GDRI_PROTOTYPE(ret, name, params)
#else
#define GDRI_PROTOTYPE(ret, name, params) GDR_DEVICE ret name params;
#endif
/* gdr_<name>, and gdr_ctx_<name> on a context. The prototype of gdr_ctx_<name> is for the reference: the compiler
 * need read only its row, which comes out of this text as well. */
#if defined(GDRI_PRINT_NAMES) || defined(GDRI_REFERENCE)
#define GDRI_PROTOTYPES(ret, name, params)                                                         \
	GDRI_PROTOTYPE(ret, gdr_##name, params)                                                    \
	GDRI_PROTOTYPE(ret, gdr_ctx_##name, (gdr_ctx_t ctx, GDRI_OPEN params))
#else
#define GDRI_PROTOTYPES(ret, name, params) GDRI_PROTOTYPE(ret, gdr_##name, params)
#endif

#endif
