/* SPDX-License-Identifier: BSD-3-Clause */
/* arch.h for nvcc, sm_80 and later: the only file with inline PTX. Byte swaps
 * and bit counts also compile for the host half of a CUDA file. */
#ifndef GDRI_ARCH_CUDA_H
#define GDRI_ARCH_CUDA_H

/* The release of CUDA that compiles: some of PTX came with later ones (docs/cuda.md, "Releases of CUDA"). Tests name an
 * earlier one. */
#ifndef GDRI_CUDA
#define GDRI_CUDA (__CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__)
#endif
#if GDRI_CUDA < 1108
#error "gdr takes CUDA 11.8 or later"
#endif

#define GDRI_NOINLINE GDR_DEVICE_COLD
#define GDRI_NOT_UNROLLED _Pragma("unroll 1")
#define GDRI_UNROLLED _Pragma("unroll")
/* In a function out of line: its address is taken, which makes the compiler call it, and what it calls, by the
 * ABI. Without, callers keep what they need across the call in memory, not in registers, also where the
 * call is not made. Nothing is stored. What it calls is called so in the whole program: nothing that put and get call
 * (tests/device/quick_puts). In libgdr_device.a all is called so; there nvlink keeps each function whose address is
 * taken, called or not, and drops the others. */
#ifdef GDRI_LIBRARY_PART
#define GDRI_BY_ABI(f)
#else
#define GDRI_BY_ABI(f)                                                                             \
	do {                                                                                       \
		if (gdri_unlikely(gdri_constants_here.zero))                                       \
			*(volatile uint64_t *)gdri_constants_here.heap = (uint64_t)(f);            \
	} while (0)
#endif
/* The address is found here, not where it is used. */
#define GDRI_FOUND(p) asm volatile("" : "+l"(p))
#define gdri_unlikely(x) (__builtin_expect(!!(x), 0) != 0)
#define gdri_likely(x) (__builtin_expect(!!(x), 1) != 0)

/* "memory" in every one: the compiler keeps their order among all accesses. All are of global memory: the
 * heap, a peer's, what the library allocated; the generic forms would look first. */
#define GDRI_GLOBAL(p) "l"(__cvta_generic_to_global(p))
#define GDRI_WORLD_LD(name, ptx, bits, reg)                                                        \
	GDR_DEVICE uint##bits##_t name##_u##bits(const uint##bits##_t *p)                          \
	{                                                                                          \
		uint##bits##_t v;                                                                  \
		asm volatile("ld." ptx ".global.u" #bits " %0, [%1];"                              \
			     : "=" reg(v)                                                          \
			     : GDRI_GLOBAL(p)                                                      \
			     : "memory");                                                          \
		return v;                                                                          \
	}
#define GDRI_WORLD_ST(name, ptx, bits, reg)                                                        \
	GDR_DEVICE void name##_u##bits(uint##bits##_t *p, uint##bits##_t v)                        \
	{                                                                                          \
		asm volatile("st." ptx ".global.u" #bits " [%0], %1;" ::GDRI_GLOBAL(p), reg(v)     \
			     : "memory");                                                          \
	}
#define GDRI_WORLD_RMW(name, ptx, bits, reg)                                                       \
	GDR_DEVICE uint##bits##_t name##_u##bits(uint##bits##_t *p, uint##bits##_t v)              \
	{                                                                                          \
		uint##bits##_t old;                                                                \
		asm volatile("atom.global." ptx #bits " %0, [%1], %2;"                             \
			     : "=" reg(old)                                                        \
			     : GDRI_GLOBAL(p), reg(v)                                              \
			     : "memory");                                                          \
		return old;                                                                        \
	}
/* Without result: nothing comes back over the link. */
#define GDRI_WORLD_RED(name, ptx, bits, reg)                                                       \
	GDR_DEVICE void name##_u##bits(uint##bits##_t *p, uint##bits##_t v)                        \
	{                                                                                          \
		asm volatile("red.global." ptx #bits " [%0], %1;" ::GDRI_GLOBAL(p), reg(v)         \
			     : "memory");                                                          \
	}
#define GDRI_WORLD_BITS(bits, reg)                                                                 \
	GDRI_WORLD_LD(gdri_ld_relaxed_gpu, "relaxed.gpu", bits, reg)                               \
	GDRI_WORLD_LD(gdri_ld_relaxed_sys, "relaxed.sys", bits, reg)                               \
	GDRI_WORLD_LD(gdri_ld_acquire_gpu, "acquire.gpu", bits, reg)                               \
	GDRI_WORLD_LD(gdri_ld_acquire_sys, "acquire.sys", bits, reg)                               \
	GDRI_WORLD_LD(gdri_ld_fenced, "relaxed.sys", bits, reg)                                    \
	GDRI_WORLD_ST(gdri_st_relaxed_gpu, "relaxed.gpu", bits, reg)                               \
	GDRI_WORLD_ST(gdri_st_relaxed_sys, "relaxed.sys", bits, reg)                               \
	GDRI_WORLD_ST(gdri_st_release_gpu, "release.gpu", bits, reg)                               \
	GDRI_WORLD_ST(gdri_st_release_sys, "release.sys", bits, reg)                               \
	GDRI_WORLD_ST(gdri_st_fenced, "relaxed.sys", bits, reg)                                    \
	GDRI_WORLD_RMW(gdri_add, "relaxed.gpu.add.u", bits, reg)                                   \
	GDRI_WORLD_RMW(gdri_add_fenced, "relaxed.gpu.add.u", bits, reg)                            \
	GDRI_WORLD_RMW(gdri_exch, "relaxed.gpu.exch.b", bits, reg)                                 \
	GDRI_WORLD_RMW(gdri_amo_add, "relaxed.sys.add.u", bits, reg)                               \
	GDRI_WORLD_RMW(gdri_amo_and, "relaxed.sys.and.b", bits, reg)                               \
	GDRI_WORLD_RMW(gdri_amo_or, "relaxed.sys.or.b", bits, reg)                                 \
	GDRI_WORLD_RMW(gdri_amo_xor, "relaxed.sys.xor.b", bits, reg)                               \
	GDRI_WORLD_RMW(gdri_amo_exch, "relaxed.sys.exch.b", bits, reg)                             \
	GDRI_WORLD_RMW(gdri_amo_max, "relaxed.sys.max.u", bits, reg)                               \
	GDRI_WORLD_RMW(gdri_amo_min, "relaxed.sys.min.u", bits, reg)                               \
	GDRI_WORLD_RMW(gdri_amo_max_signed, "relaxed.sys.max.s", bits, reg)                        \
	GDRI_WORLD_RMW(gdri_amo_min_signed, "relaxed.sys.min.s", bits, reg)                        \
	GDRI_WORLD_RED(gdri_red_add, "relaxed.sys.add.u", bits, reg)                               \
	GDRI_WORLD_RED(gdri_red_and, "relaxed.sys.and.b", bits, reg)                               \
	GDRI_WORLD_RED(gdri_red_or, "relaxed.sys.or.b", bits, reg)                                 \
	GDRI_WORLD_RED(gdri_red_xor, "relaxed.sys.xor.b", bits, reg)                               \
	GDR_DEVICE uint##bits##_t gdri_amo_cas_u##bits(uint##bits##_t *p, uint##bits##_t old,      \
						       uint##bits##_t v)                           \
	{                                                                                          \
		uint##bits##_t was;                                                                \
		asm volatile("atom.global.relaxed.sys.cas.b" #bits " %0, [%1], %2, %3;"                   \
			     : "=" reg(was)                                                        \
			     : GDRI_GLOBAL(p), reg(old), reg(v)                                    \
			     : "memory");                                                          \
		return was;                                                                        \
	}                                                                                          \
	GDR_DEVICE int gdri_cas_u##bits(uint##bits##_t *p, uint##bits##_t *expected,               \
					uint##bits##_t v)                                          \
	{                                                                                          \
		uint##bits##_t was;                                                                \
		asm volatile("atom.global.relaxed.gpu.cas.b" #bits " %0, [%1], %2, %3;"                   \
			     : "=" reg(was)                                                        \
			     : GDRI_GLOBAL(p), reg(*expected), reg(v)                              \
			     : "memory");                                                          \
		if (was == *expected)                                                              \
			return 1;                                                                  \
		*expected = was;                                                                   \
		return 0;                                                                          \
	}
GDRI_WORLD_BITS(32, "r")
GDRI_WORLD_BITS(64, "l")
GDRI_WORLD_RMW(gdri_or, "relaxed.gpu.or.b", 64, "l")
GDRI_WORLD_RMW(gdri_and, "relaxed.gpu.and.b", 64, "l")

/* Bits of a float (size 4) or a double; atom.add.f32 takes subnormal values as 0. */
GDR_DEVICE uint64_t gdri_amo_float_add(uint32_t size, void *p, uint64_t value)
{
	if (size == 8)
		return (uint64_t)__double_as_longlong(
			atomicAdd_system((double *)p, __longlong_as_double((long long)value)));
	return (uint32_t)__float_as_int(
		atomicAdd_system((float *)p, __int_as_float((int)(uint32_t)value)));
}

GDR_DEVICE void gdri_st_relaxed_sys_u16(uint16_t *p, uint16_t v)
{
	asm volatile("st.relaxed.sys.global.u16 [%0], %1;" ::GDRI_GLOBAL(p), "h"(v) : "memory");
}

GDR_DEVICE uint16_t gdri_ld_relaxed_sys_u16(const uint16_t *p)
{
	uint16_t v;

	asm volatile("ld.relaxed.sys.global.u16 %0, [%1];" : "=h"(v) : GDRI_GLOBAL(p) : "memory");
	return v;
}

GDR_DEVICE uint16_t gdri_ld_acquire_sys_u16(const uint16_t *p)
{
	uint16_t v;

	asm volatile("ld.acquire.sys.global.u16 %0, [%1];" : "=h"(v) : GDRI_GLOBAL(p) : "memory");
	return v;
}

GDR_DEVICE void gdri_max_u64(uint64_t *p, uint64_t v)
{
	asm volatile("red.global.relaxed.gpu.max.u64 [%0], %1;" ::GDRI_GLOBAL(p), "l"(v) : "memory");
}

GDR_DEVICE void gdri_st_v4(void *p, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::GDRI_GLOBAL(p), "r"(a), "r"(b),
		     "r"(c), "r"(d)
		     : "memory");
}

GDR_DEVICE void gdri_st_2x64(void *p, uint64_t lo, uint64_t hi)
{
	asm volatile("st.global.v2.b64 [%0], {%1, %2};" ::GDRI_GLOBAL(p), "l"(lo), "l"(hi)
		     : "memory");
}

GDR_DEVICE void gdri_st_pair_sys(uint64_t *p, uint64_t a, uint64_t b)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::GDRI_GLOBAL(p), "l"(a), "l"(b)
		     : "memory");
}

GDR_DEVICE void gdri_ld_pair_sys(const uint64_t *p, uint64_t *a, uint64_t *b)
{
	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
		     : "=l"(*a), "=l"(*b)
		     : GDRI_GLOBAL(p)
		     : "memory");
}

GDR_DEVICE void gdri_st_mmio_u64(uint64_t *p, uint64_t v)
{
	/* .mmio wants the global state space: never split, merged or elided. CUDA 12.1 and earlier do not know it; what
	 * is volatile is relaxed.sys, too, and stays one store. */
#if GDRI_CUDA >= 1202
	asm volatile("st.mmio.relaxed.sys.global.b64 [%0], %1;" ::GDRI_GLOBAL(p), "l"(v)
		     : "memory");
#else
	asm volatile("st.volatile.global.b64 [%0], %1;" ::GDRI_GLOBAL(p), "l"(v) : "memory");
#endif
}

/* fence.acq_rel, not __threadfence: membar is a fence.sc since sm_70 */
GDR_DEVICE void gdri_fence_gpu(void)
{
	asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

GDR_DEVICE void gdri_fence_sys(void)
{
	asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Halves of the above: from sm_90 on a release leaves the first-level cache as it is, and an acquire
 * waits for nothing. The assemblers of CUDA 12.6 and earlier have no such fence: there both are wholes. */
#define GDRI_HAS_HALVES (__CUDA_ARCH__ >= 900 && GDRI_CUDA >= 1208)
GDR_DEVICE void gdri_fence_release_sys(void)
{
#if GDRI_HAS_HALVES
	asm volatile("fence.release.sys;" ::: "memory");
#else
	gdri_fence_sys();
#endif
}

GDR_DEVICE void gdri_fence_release_gpu(void)
{
#if GDRI_HAS_HALVES
	asm volatile("fence.release.gpu;" ::: "memory");
#else
	gdri_fence_gpu();
#endif
}

GDR_DEVICE void gdri_fence_acquire_sys(void)
{
#if GDRI_HAS_HALVES
	asm volatile("fence.acquire.sys;" ::: "memory");
#else
	gdri_fence_sys();
#endif
}

GDR_DEVICE uint64_t gdri_globaltimer(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

GDR_DEVICE uint32_t gdri_popc(uint32_t v)
{
	return (uint32_t)__popc(v);
}

/* v is not 0 */
GDR_DEVICE uint32_t gdri_ffs_u32(uint32_t v)
{
	return (uint32_t)__ffs((int)v) - 1u;
}

GDR_DEVICE uint32_t gdri_ffs_u64(uint64_t v)
{
	return (uint32_t)__ffsll((long long)v) - 1u;
}

GDRI_INLINE uint32_t gdri_bswap32(uint32_t v)
{
#ifdef __CUDA_ARCH__
	return __byte_perm(v, 0, 0x0123);
#else
	return __builtin_bswap32(v);
#endif
}

GDRI_INLINE uint64_t gdri_bswap64(uint64_t v)
{
	return (uint64_t)gdri_bswap32((uint32_t)v) << 32 | gdri_bswap32((uint32_t)(v >> 32));
}

GDRI_NOINLINE uint64_t gdri_ld_odd_8(const void *src)
{
	uint64_t v;

	memcpy(&v, src, 8);
	return v;
}

/* Were the rare way inline, the compiler would make one load of both, byte by byte. */
GDR_DEVICE void gdri_ld_bytes_8(uint64_t *dst, const void *src)
{
	if (gdri_likely(!((uintptr_t)src & 7)))
		*dst = *(const uint64_t *)src;
	else
		*dst = gdri_ld_odd_8(src);
}

/* len bytes from anywhere. */
GDR_DEVICE void gdri_ld_bytes(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

/* The word at src, any memory, where `other` is 0: by a predicate, so that it is under way before any branch. Behind
 * what the thread stored before. */
GDR_DEVICE uint64_t gdri_ld_word_if_0(const void *src, uint32_t other)
{
	uint64_t v;

	asm volatile("{ .reg .pred p; setp.eq.u32 p, %2, 0; @p ld.b64 %0, [%1]; }"
		     : "=l"(v)
		     : "l"(src), "r"(other)
		     : "memory");
	return v;
}

/* ---- the bulk copy engine (TMA): PTX ISA, cp.async.bulk, mbarrier, async proxy ----
 *
 * Addresses of shared memory are 32 bits wide; sizes and addresses are multiples of 16. Loads count at a barrier in
 * shared memory, stores as groups of the thread that issues them. */
#define GDRI_HAS_BULK (__CUDA_ARCH__ >= 900 && GDRI_CUDA >= 1200)
#if GDRI_HAS_BULK
GDR_DEVICE int gdri_is_shared(const void *p)
{
	return __isShared(p) != 0;
}

/* Parameters of kernels pass for global memory, and are none. */
GDR_DEVICE int gdri_is_global(const void *p)
{
	return __isGlobal(p) && !__isGridConstant(p);
}

GDR_DEVICE uint32_t gdri_shared_at(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

/* What threads accessed before, and the engine after: nothing else orders the two. */
GDR_DEVICE void gdri_fence_engine(void)
{
	asm volatile("fence.proxy.async;" ::: "memory");
}

/* Of one arrival a phase: that of the thread which says how many bytes will come. */
GDR_DEVICE void gdri_mbar_init(uint32_t bar)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
}

GDR_DEVICE void gdri_mbar_inval(uint32_t bar)
{
	asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

/* Has the phase ended? An acquire; waits for it a while. */
GDR_DEVICE int gdri_mbar_try(uint32_t bar, uint32_t parity)
{
	uint32_t ended;

	asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
		     : "=r"(ended)
		     : "r"(bar), "r"(parity)
		     : "memory");
	return (int)ended;
}

GDR_DEVICE void gdri_bulk_load(uint32_t to, const void *from, uint32_t len, uint32_t bar)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%3], %2;\n\t"
		     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
		     :
		     : "r"(to), GDRI_GLOBAL(from), "r"(len), "r"(bar)
		     : "memory");
}

GDR_DEVICE void gdri_bulk_store(void *to, uint32_t from, uint32_t len)
{
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\t"
		     "cp.async.bulk.commit_group;" ::GDRI_GLOBAL(to),
		     "r"(from), "r"(len)
		     : "memory");
}

/* All of the thread's stores but the latest have read shared memory. */
GDR_DEVICE void gdri_bulk_wait_read(void)
{
	asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
}

/* All of the thread's stores are done, as if it had made them itself before. */
GDR_DEVICE void gdri_bulk_wait(void)
{
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
#endif

#endif
