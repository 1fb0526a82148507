/* SPDX-License-Identifier: BSD-3-Clause */
/* arch.h for gcc and clang: __atomic builtins on plain objects.
 *
 * ThreadSanitizer does not model fences: an access that a fence makes acquire
 * or release ("fenced") is made so itself in its builds, and the fences are
 * then compiler barriers. The unordered accesses stay relaxed there too, so a
 * publication that relies on one still shows as a race. */
#ifndef GDRI_ARCH_HOST_H
#define GDRI_ARCH_HOST_H

#include <string.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define GDRI_TSAN 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define GDRI_TSAN 1
#endif

#ifdef GDRI_TSAN
#define GDRI_FENCED_LD __ATOMIC_ACQUIRE
#define GDRI_FENCED_ST __ATOMIC_RELEASE
#define GDRI_FENCED_RMW __ATOMIC_ACQ_REL
#else
#define GDRI_FENCED_LD __ATOMIC_RELAXED
#define GDRI_FENCED_ST __ATOMIC_RELAXED
#define GDRI_FENCED_RMW __ATOMIC_RELAXED
#endif

/* Out of line without being rare: waits, ring CQ. */
#ifdef __OPTIMIZE__
#define GDRI_NOINLINE static __attribute__((noinline, unused))
#else
#define GDRI_NOINLINE GDR_DEVICE_COLD
#endif
#define GDRI_NOT_UNROLLED
#define GDRI_UNROLLED
#define GDRI_BY_ABI(f) /* of CUDA's compiler */
#define GDRI_FOUND(p) ((void)(p)) /* of CUDA's compiler, too */
#define gdri_unlikely(x) (__builtin_expect(!!(x), 0) != 0)
#define gdri_likely(x) (__builtin_expect(!!(x), 1) != 0)

#define GDRI_WORLD_LD(name, bits, order)                                                           \
	GDRI_INLINE uint##bits##_t name##_u##bits(const uint##bits##_t *p)                         \
	{                                                                                          \
		return __atomic_load_n(p, order);                                                  \
	}
#define GDRI_WORLD_ST(name, bits, order)                                                           \
	GDRI_INLINE void name##_u##bits(uint##bits##_t *p, uint##bits##_t v)                       \
	{                                                                                          \
		__atomic_store_n(p, v, order);                                                     \
	}
#define GDRI_WORLD_RMW(name, bits, builtin, order)                                                 \
	GDRI_INLINE uint##bits##_t name##_u##bits(uint##bits##_t *p, uint##bits##_t v)             \
	{                                                                                          \
		return builtin(p, v, order);                                                       \
	}
#define GDRI_WORLD_BITS(bits)                                                                      \
	GDRI_WORLD_LD(gdri_ld_relaxed_gpu, bits, __ATOMIC_RELAXED)                                 \
	GDRI_WORLD_LD(gdri_ld_relaxed_sys, bits, __ATOMIC_RELAXED)                                 \
	GDRI_WORLD_LD(gdri_ld_acquire_gpu, bits, __ATOMIC_ACQUIRE)                                 \
	GDRI_WORLD_LD(gdri_ld_acquire_sys, bits, __ATOMIC_ACQUIRE)                                 \
	GDRI_WORLD_LD(gdri_ld_fenced, bits, GDRI_FENCED_LD)                                        \
	GDRI_WORLD_ST(gdri_st_relaxed_gpu, bits, __ATOMIC_RELAXED)                                 \
	GDRI_WORLD_ST(gdri_st_relaxed_sys, bits, __ATOMIC_RELAXED)                                 \
	GDRI_WORLD_ST(gdri_st_release_gpu, bits, __ATOMIC_RELEASE)                                 \
	GDRI_WORLD_ST(gdri_st_release_sys, bits, __ATOMIC_RELEASE)                                 \
	GDRI_WORLD_ST(gdri_st_fenced, bits, GDRI_FENCED_ST)                                        \
	GDRI_WORLD_RMW(gdri_add, bits, __atomic_fetch_add, __ATOMIC_RELAXED)                       \
	GDRI_WORLD_RMW(gdri_add_fenced, bits, __atomic_fetch_add, GDRI_FENCED_RMW)                 \
	GDRI_WORLD_RMW(gdri_exch, bits, __atomic_exchange_n, __ATOMIC_RELAXED)                     \
	GDRI_WORLD_RMW(gdri_amo_add, bits, __atomic_fetch_add, __ATOMIC_ACQ_REL)                   \
	GDRI_WORLD_RMW(gdri_amo_and, bits, __atomic_fetch_and, __ATOMIC_ACQ_REL)                   \
	GDRI_WORLD_RMW(gdri_amo_or, bits, __atomic_fetch_or, __ATOMIC_ACQ_REL)                     \
	GDRI_WORLD_RMW(gdri_amo_xor, bits, __atomic_fetch_xor, __ATOMIC_ACQ_REL)                   \
	GDRI_WORLD_RMW(gdri_amo_exch, bits, __atomic_exchange_n, __ATOMIC_ACQ_REL)                 \
	GDRI_INLINE uint##bits##_t gdri_amo_cas_u##bits(uint##bits##_t *p, uint##bits##_t old,     \
							uint##bits##_t v)                          \
	{                                                                                          \
		__atomic_compare_exchange_n(p, &old, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);    \
		return old;                                                                        \
	}
GDRI_WORLD_BITS(32)
GDRI_WORLD_BITS(64)
GDRI_WORLD_LD(gdri_ld_relaxed_sys, 16, __ATOMIC_RELAXED)
GDRI_WORLD_LD(gdri_ld_acquire_sys, 16, __ATOMIC_ACQUIRE)
GDRI_WORLD_ST(gdri_st_relaxed_sys, 16, __ATOMIC_RELAXED)
GDRI_WORLD_RMW(gdri_or, 64, __atomic_fetch_or, GDRI_FENCED_RMW)
GDRI_WORLD_RMW(gdri_and, 64, __atomic_fetch_and, GDRI_FENCED_RMW)

GDRI_INLINE int gdri_cas_u64(uint64_t *p, uint64_t *expected, uint64_t v)
{
	return __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

GDRI_INLINE int gdri_cas_u32(uint32_t *p, uint32_t *expected, uint32_t v)
{
	return __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The 16 bytes are ordered by the fence or release that publishes them. */
GDRI_INLINE void gdri_st_v4(void *p, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	uint32_t *w = (uint32_t *)p;

	w[0] = a;
	w[1] = b;
	w[2] = c;
	w[3] = d;
}

GDRI_INLINE void gdri_st_2x64(void *p, uint64_t lo, uint64_t hi)
{
	uint64_t *w = (uint64_t *)p;

	w[0] = lo;
	w[1] = hi;
}

GDRI_INLINE void gdri_st_pair_sys(uint64_t *p, uint64_t a, uint64_t b)
{
	gdri_st_relaxed_sys_u64(&p[0], a);
	gdri_st_relaxed_sys_u64(&p[1], b);
}

GDRI_INLINE void gdri_ld_pair_sys(const uint64_t *p, uint64_t *a, uint64_t *b)
{
	*a = gdri_ld_relaxed_sys_u64(&p[0]);
	*b = gdri_ld_relaxed_sys_u64(&p[1]);
}

/* A release: the HCA of the host device is a thread. Pairs with its load. */
/* A doorbell register may be mapped write-combining: the store must leave the
 * processor now (rdma-core's mmio_flush_writes). */
GDRI_INLINE void gdri_st_mmio_u64(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
#if defined(__x86_64__)
	__asm__ __volatile__("sfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ __volatile__("dsb st" ::: "memory");
#endif
}

#ifdef GDRI_TSAN
GDRI_INLINE void gdri_fence_gpu(void)
{
	__asm__ __volatile__("" ::: "memory");
}
#else
GDRI_INLINE void gdri_fence_gpu(void)
{
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
}
#endif

/* C11's fences order within the inner shareable domain of aarch64 (dmb ish), and a NIC is outside of it: as rdma-core's
 * barriers to and from a device. */
#if defined(__aarch64__) && !defined(GDRI_TSAN)
#define GDRI_FENCE_OUTER(loads) __asm__ __volatile__("dmb osh" loads ::: "memory")
#else
#define GDRI_FENCE_OUTER(loads) gdri_fence_gpu()
#endif

GDRI_INLINE void gdri_fence_sys(void)
{
	GDRI_FENCE_OUTER("");
}

#define GDRI_WORLD_RED(op, bits)                                                                   \
	GDRI_INLINE void gdri_red_##op##_u##bits(uint##bits##_t *p, uint##bits##_t v)              \
	{                                                                                          \
		(void)gdri_amo_##op##_u##bits(p, v);                                               \
	}
GDRI_WORLD_RED(add, 32)
GDRI_WORLD_RED(add, 64)
GDRI_WORLD_RED(and, 32)
GDRI_WORLD_RED(and, 64)
GDRI_WORLD_RED(or, 32)
GDRI_WORLD_RED(or, 64)
GDRI_WORLD_RED(xor, 32)
GDRI_WORLD_RED(xor, 64)

GDRI_INLINE void gdri_fence_release_sys(void)
{
	GDRI_FENCE_OUTER("");
}

GDRI_INLINE void gdri_fence_release_gpu(void)
{
	gdri_fence_gpu();
}

GDRI_INLINE void gdri_fence_acquire_sys(void)
{
	GDRI_FENCE_OUTER("ld");
}

GDRI_INLINE void gdri_max_u64(uint64_t *p, uint64_t v)
{
	uint64_t cur = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (cur < v && !__atomic_compare_exchange_n(p, &cur, v, 0, GDRI_FENCED_RMW,
						       __ATOMIC_RELAXED))
		;
}

GDRI_INLINE uint32_t gdri_popc(uint32_t v)
{
	return (uint32_t)__builtin_popcount(v);
}

/* v is not 0 */
GDRI_INLINE uint32_t gdri_ffs_u32(uint32_t v)
{
	return (uint32_t)__builtin_ctz(v);
}

GDRI_INLINE uint32_t gdri_ffs_u64(uint64_t v)
{
	return (uint32_t)__builtin_ctzll(v);
}

GDRI_INLINE uint32_t gdri_bswap32(uint32_t v)
{
	return __builtin_bswap32(v);
}

GDRI_INLINE uint64_t gdri_bswap64(uint64_t v)
{
	return __builtin_bswap64(v);
}

GDRI_INLINE void gdri_ld_bytes_8(uint64_t *dst, const void *src)
{
	memcpy(dst, src, 8);
}

/* len bytes from anywhere. */
GDRI_INLINE void gdri_ld_bytes(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

/* Up to GDRI_WORDS bytes are copied in words as long as their address in dst allows, each stored once and at once.
 * memcpy does not promise that, and glibc's stores 8 bytes twice: who waits for a word may look meanwhile, and may set
 * it anew when it has come. Relaxed: what they pair with is the caller's matter. */
#define GDRI_WORDS 256u
#define GDRI_MOVE_WORD(bits)                                                                       \
	GDRI_INLINE void gdri_move_u##bits(void *dst, const void *src)                             \
	{                                                                                          \
		uint##bits##_t v;                                                                  \
                                                                                                   \
		if ((uintptr_t)src % sizeof(v))                                                    \
			memcpy(&v, src, sizeof(v));                                                \
		else                                                                               \
			v = __atomic_load_n((const uint##bits##_t *)src, __ATOMIC_RELAXED);        \
		__atomic_store_n((uint##bits##_t *)dst, v, __ATOMIC_RELAXED);                      \
	}
GDRI_MOVE_WORD(16)
GDRI_MOVE_WORD(32)
GDRI_MOVE_WORD(64)
#undef GDRI_MOVE_WORD

/* Two words of 8 bytes; dst is a multiple of 16. By one access of a vector register where that keeps each of them
 * whole: arm64 says so of multiples of 8 (two accesses of 64 bits), x86-64 of multiples of 16 (those with AVX make one
 * of all 16 bytes); a load of another multiple of 8 comes apart between two words, if at all. ThreadSanitizer
 * takes no vector for an atomic access. */
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(GDRI_TSAN)
typedef uint64_t gdri_two_words __attribute__((vector_size(16), may_alias));
typedef gdri_two_words gdri_two_words_any __attribute__((aligned(1)));

GDRI_INLINE void gdri_move_pair(void *dst, const void *src)
{
	/* volatile: once, in one piece, as relaxed accesses */
	*(volatile gdri_two_words *)dst = *(const volatile gdri_two_words_any *)src;
}
#else
GDRI_INLINE void gdri_move_pair(void *dst, const void *src)
{
	gdri_move_u64(dst, src);
	gdri_move_u64((uint64_t *)dst + 1, (const uint8_t *)src + 8);
}
#endif

/* The 16 bytes of len, of which dst is a multiple. */
GDRI_INLINE void gdri_move_pairs(uint8_t *d, const uint8_t *s, size_t len)
{
	size_t i;

	for (i = 0; i + 64 <= len; i += 64) {
		gdri_move_pair(d + i, s + i);
		gdri_move_pair(d + i + 16, s + i + 16);
		gdri_move_pair(d + i + 32, s + i + 32);
		gdri_move_pair(d + i + 48, s + i + 48);
	}
	for (; i + 16 <= len; i += 16)
		gdri_move_pair(d + i, s + i);
}

/* Up to the next multiple of 16 in d, as far as len goes; returns how many bytes. */
GDRI_INLINE size_t gdri_move_head(uint8_t *d, const uint8_t *s, size_t len)
{
	size_t at = 0;

	if ((uintptr_t)d & 1 && len)
		d[at] = s[at], at = 1;
	if ((uintptr_t)(d + at) & 2 && len - at >= 2)
		gdri_move_u16(d + at, s + at), at += 2;
	if ((uintptr_t)(d + at) & 4 && len - at >= 4)
		gdri_move_u32(d + at, s + at), at += 4;
	if ((uintptr_t)(d + at) & 8 && len - at >= 8)
		gdri_move_u64(d + at, s + at), at += 8;
	return at;
}

/* Fewer than 16 bytes; d is a multiple of what there is. */
GDRI_INLINE void gdri_move_tail(uint8_t *d, const uint8_t *s, size_t len)
{
	if (len & 8)
		gdri_move_u64(d, s), d += 8, s += 8;
	if (len & 4)
		gdri_move_u32(d, s), d += 4, s += 4;
	if (len & 2)
		gdri_move_u16(d, s), d += 2, s += 2;
	if (len & 1)
		*d = *s;
}

/* All of it, by one thread. More than words go to the C library's copy: for a length whose range it knows gcc has REP
 * MOVS, which takes longer to begin than that copy takes. */
GDRI_NOINLINE void gdri_copy_thread(void *dst, const void *src, size_t len)
{
	uint8_t *d = (uint8_t *)dst;
	const uint8_t *s = (const uint8_t *)src;
	size_t at;

	if (len > GDRI_WORDS) {
		__asm__("" : "+r"(len));
		memcpy(dst, src, len);
		return;
	}
	at = (uintptr_t)d & 15 ? gdri_move_head(d, s, len) : 0;
	d += at, s += at, len -= at;
	gdri_move_pairs(d, s, len);
	at = len & ~(size_t)15;
	gdri_move_tail(d + at, s + at, len - at);
}

/* A block's threads share one CPU thread: whole slices suit its cache. */
GDRI_INLINE void gdri_copy(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n)
{
	size_t slice = n == 1 ? len : (len / n + 64) & ~(size_t)63;
	size_t at = slice * rank;

	if (at < len)
		gdri_copy_thread((char *)dst + at, (const char *)src + at, len - at < slice ? len - at : slice);
}

/* matters of CUDA's compiler */
#define gdri_copy_word_first gdri_copy_thread
#define gdri_copy_thread_coll gdri_copy_thread
#define gdri_copy_thread_lean gdri_copy_thread
#define gdri_copy_group(dst, src, len, rank, n, get) ((void)(get), gdri_copy(dst, src, len, rank, n))
#define gdri_copy_lean gdri_copy

#endif
