/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of gdr/threads.h in both worlds. */
#ifndef GDRI_THREADS_H
#define GDRI_THREADS_H

#include <gdr/impl/arch/arch.h>

#ifdef __CUDACC__
#define GDR_SHARED __shared__
#else
#define GDR_SHARED static __thread /* a block has one CPU thread, from its start to its end */
#endif

/* name, T, CUDA's type and function, what the word becomes (C: o is its value, v the operand) */
#define GDRI_RMW_WORDS(X, by, scope)                                                               \
	X(by, scope, fetch_add_u32, uint32_t, unsigned int, atomicAdd, o + v)                      \
	X(by, scope, fetch_add_u64, uint64_t, unsigned long long, atomicAdd, o + v)                \
	X(by, scope, fetch_add_i32, int32_t, int, atomicAdd, (int32_t)((uint32_t)o + (uint32_t)v)) \
	X(by, scope, fetch_add_i64, int64_t, unsigned long long, atomicAdd, (int64_t)((uint64_t)o + (uint64_t)v)) \
	X(by, scope, fetch_add_f32, float, float, atomicAdd, o + v)                                \
	X(by, scope, fetch_add_f64, double, double, atomicAdd, o + v)                              \
	X(by, scope, fetch_min_u32, uint32_t, unsigned int, atomicMin, v < o ? v : o)              \
	X(by, scope, fetch_min_u64, uint64_t, unsigned long long, atomicMin, v < o ? v : o)        \
	X(by, scope, fetch_min_i32, int32_t, int, atomicMin, v < o ? v : o)                        \
	X(by, scope, fetch_min_i64, int64_t, long long, atomicMin, v < o ? v : o)                  \
	X(by, scope, fetch_max_u32, uint32_t, unsigned int, atomicMax, v > o ? v : o)              \
	X(by, scope, fetch_max_u64, uint64_t, unsigned long long, atomicMax, v > o ? v : o)        \
	X(by, scope, fetch_max_i32, int32_t, int, atomicMax, v > o ? v : o)                        \
	X(by, scope, fetch_max_i64, int64_t, long long, atomicMax, v > o ? v : o)                  \
	X(by, scope, fetch_and_u32, uint32_t, unsigned int, atomicAnd, o & v)                      \
	X(by, scope, fetch_and_u64, uint64_t, unsigned long long, atomicAnd, o & v)                \
	X(by, scope, fetch_or_u32, uint32_t, unsigned int, atomicOr, o | v)                        \
	X(by, scope, fetch_or_u64, uint64_t, unsigned long long, atomicOr, o | v)                  \
	X(by, scope, fetch_xor_u32, uint32_t, unsigned int, atomicXor, o ^ v)                      \
	X(by, scope, fetch_xor_u64, uint64_t, unsigned long long, atomicXor, o ^ v)                \
	X(by, scope, exchange_u32, uint32_t, unsigned int, atomicExch, v)                          \
	X(by, scope, exchange_u64, uint64_t, unsigned long long, atomicExch, v)

#ifdef __CUDACC__

#define GDRI_RMW(by, scope, name, T, C, function, expression)                                      \
	GDR_DEVICE T gdr_##by##_##name(T *p, T v)                                                  \
	{                                                                                          \
		return (T)function##scope((C *)p, (C)v);                                           \
	}
#define GDRI_CAS(by, scope, z, T, C)                                                               \
	GDR_DEVICE T gdr_##by##_compare_swap_##z(T *p, T expected, T v)                            \
	{                                                                                          \
		return (T)atomicCAS##scope((C *)p, (C)expected, (C)v);                             \
	}
#define GDRI_ORDERED(by, ptx, z, T, bits, letter)                                                  \
	GDR_DEVICE T gdr_##by##_load_##z(const T *p)                                               \
	{                                                                                          \
		T v;                                                                               \
                                                                                                   \
		asm volatile("ld.acquire." ptx "." bits " %0, [%1];" : "=" letter(v) : "l"(p) : "memory"); \
		return v;                                                                          \
	}                                                                                          \
	GDR_DEVICE void gdr_##by##_store_##z(T *p, T v)                                            \
	{                                                                                          \
		asm volatile("st.release." ptx "." bits " [%0], %1;" ::"l"(p), letter(v) : "memory"); \
	}
#define GDRI_SHFL(z, T, C)                                                                         \
	GDR_DEVICE T gdr_shfl_up_##z(uint32_t mask, T v, unsigned delta)                           \
	{                                                                                          \
		return (T)__shfl_up_sync(mask, (C)v, delta);                                       \
	}                                                                                          \
	GDR_DEVICE T gdr_shfl_down_##z(uint32_t mask, T v, unsigned delta)                         \
	{                                                                                          \
		return (T)__shfl_down_sync(mask, (C)v, delta);                                     \
	}                                                                                          \
	GDR_DEVICE T gdr_shfl_xor_##z(uint32_t mask, T v, unsigned lanes)                          \
	{                                                                                          \
		return (T)__shfl_xor_sync(mask, (C)v, (int)lanes);                                 \
	}
#define GDRI_SHFL_LANE(z, T, C)                                                                    \
	GDR_DEVICE T gdr_shfl_##z(uint32_t mask, T v, unsigned lane)                               \
	{                                                                                          \
		return (T)__shfl_sync(mask, (C)v, (int)lane);                                      \
	}

GDR_DEVICE void gdr_threadfence_block(void)
{
	__threadfence_block();
}

GDR_DEVICE void gdr_threadfence(void)
{
	__threadfence();
}

#else

/* ThreadSanitizer sees no fences, by which GPUs' relaxed atomics are ordered. */
#ifdef GDRI_TSAN
#define GDRI_RMW_ORDER __ATOMIC_ACQ_REL
#define GDRI_RMW_FAILED __ATOMIC_ACQUIRE
#else
#define GDRI_RMW_ORDER __ATOMIC_RELAXED
#define GDRI_RMW_FAILED __ATOMIC_RELAXED
#endif

#define GDRI_RMW(by, scope, name, T, C, function, expression)                                      \
	GDR_DEVICE T gdr_##by##_##name(T *p, T v)                                                  \
	{                                                                                          \
		T o, n;                                                                            \
                                                                                                   \
		__atomic_load(p, &o, __ATOMIC_RELAXED);                                            \
		do                                                                                 \
			n = (expression);                                                          \
		while (!__atomic_compare_exchange(p, &o, &n, 1, GDRI_RMW_ORDER, GDRI_RMW_FAILED)); \
		return o;                                                                          \
	}
#define GDRI_CAS(by, scope, z, T, C)                                                               \
	GDR_DEVICE T gdr_##by##_compare_swap_##z(T *p, T expected, T v)                            \
	{                                                                                          \
		(void)__atomic_compare_exchange_n(p, &expected, v, 0, GDRI_RMW_ORDER, GDRI_RMW_FAILED); \
		return expected;                                                                   \
	}
#define GDRI_ORDERED(by, ptx, z, T, bits, letter)                                                  \
	GDR_DEVICE T gdr_##by##_load_##z(const T *p)                                               \
	{                                                                                          \
		return __atomic_load_n(p, __ATOMIC_ACQUIRE); /* pairs with the store's release */  \
	}                                                                                          \
	GDR_DEVICE void gdr_##by##_store_##z(T *p, T v)                                            \
	{                                                                                          \
		__atomic_store_n(p, v, __ATOMIC_RELEASE); /* pairs with the load's acquire */      \
	}
/* As words of 64 bits, whatever T is. */
#define GDRI_SHFL_LANE(z, T, C)                                                                    \
	GDR_DEVICE T gdr_shfl_##z(uint32_t mask, T v, unsigned lane)                               \
	{                                                                                          \
		uint64_t word = 0;                                                                 \
                                                                                                   \
		__builtin_memcpy(&word, &v, sizeof(v));                                            \
		word = gdr_shfl_u64(mask, word, lane);                                             \
		__builtin_memcpy(&v, &word, sizeof(v));                                            \
		return v;                                                                          \
	}
/* A lane that has no source asks for its own value, as under CUDA. */
#define GDRI_SHFL(z, T, C)                                                                         \
	GDR_DEVICE T gdr_shfl_up_##z(uint32_t mask, T v, unsigned delta)                           \
	{                                                                                          \
		unsigned lane = gdr_lane_id();                                                     \
                                                                                                   \
		return gdr_shfl_##z(mask, v, delta > lane ? lane : lane - delta);                  \
	}                                                                                          \
	GDR_DEVICE T gdr_shfl_down_##z(uint32_t mask, T v, unsigned delta)                         \
	{                                                                                          \
		unsigned lane = gdr_lane_id();                                                     \
                                                                                                   \
		return gdr_shfl_##z(mask, v, delta > 31u - lane ? lane : lane + delta);            \
	}                                                                                          \
	GDR_DEVICE T gdr_shfl_xor_##z(uint32_t mask, T v, unsigned lanes)                          \
	{                                                                                          \
		unsigned lane = gdr_lane_id() ^ lanes;                                             \
                                                                                                   \
		return gdr_shfl_##z(mask, v, lane > 31u ? gdr_lane_id() : lane);                   \
	}

/* Fibers of a block share a CPU thread, but the program may wait for a thread of another block or of the host. */
GDR_DEVICE void gdr_threadfence_block(void)
{
	gdri_fence_gpu();
}

GDR_DEVICE void gdr_threadfence(void)
{
	gdri_fence_gpu();
}

#endif

GDRI_RMW_WORDS(GDRI_RMW, block, _block)
GDRI_RMW_WORDS(GDRI_RMW, grid, )
GDRI_CAS(block, _block, u32, uint32_t, unsigned int)
GDRI_CAS(block, _block, u64, uint64_t, unsigned long long)
GDRI_CAS(grid, , u32, uint32_t, unsigned int)
GDRI_CAS(grid, , u64, uint64_t, unsigned long long)
GDRI_ORDERED(block, "cta", u32, uint32_t, "u32", "r")
GDRI_ORDERED(block, "cta", u64, uint64_t, "u64", "l")
GDRI_ORDERED(grid, "gpu", u32, uint32_t, "u32", "r")
GDRI_ORDERED(grid, "gpu", u64, uint64_t, "u64", "l")
GDRI_SHFL_LANE(i32, int32_t, int)
GDRI_SHFL_LANE(i64, int64_t, long long)
GDRI_SHFL_LANE(f32, float, float)
GDRI_SHFL_LANE(f64, double, double)
GDRI_SHFL(u32, uint32_t, unsigned int)
GDRI_SHFL(u64, uint64_t, unsigned long long)
GDRI_SHFL(i32, int32_t, int)
GDRI_SHFL(i64, int64_t, long long)
GDRI_SHFL(f32, float, float)
GDRI_SHFL(f64, double, double)

#endif
