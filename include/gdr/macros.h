/* SPDX-License-Identifier: BSD-3-Clause */
/* How functions of the public headers are declared in each language. */
#ifndef GDR_MACROS_H
#define GDR_MACROS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define GDR_EXTERN_C_BEGIN extern "C" {
#define GDR_EXTERN_C_END }
#define GDR_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define GDR_EXTERN_C_BEGIN
#define GDR_EXTERN_C_END
#define GDR_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

/* Exported from libgdr.so; everything else is hidden. */
#define GDR_API __attribute__((visibility("default")))

/* Device functions: inline in the kernel's translation unit. GDR_DEVICE for
 * what a kernel runs all the time, GDR_DEVICE_COLD for slow and error paths. */
#ifdef __CUDACC__
#define GDR_DEVICE static __device__ __forceinline__
#define GDR_DEVICE_COLD static __device__ __noinline__ __attribute__((unused))
#define GDRI_INLINE static __host__ __device__ __forceinline__
#else
#define GDR_DEVICE static inline __attribute__((always_inline, unused))
#define GDR_DEVICE_COLD static __attribute__((noinline, cold, unused))
#define GDRI_INLINE static inline __attribute__((always_inline, unused))
#endif

#endif
