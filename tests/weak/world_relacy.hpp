/* SPDX-License-Identifier: BSD-3-Clause */
/* arch.h for the check under a weak memory model: the words of the queue are rl::atomic objects, found by address,
 * everything else is memory. Orders are those of CUDA: what is "fenced" is relaxed, and the fences are fences.
 *
 * Each acquire, release and fence is a site: function, kind and word name it, and one of them at a time can be
 * taken out (weak_out): an access becomes relaxed, a fence nothing. */
#ifndef WEAK_WORLD_RELACY_HPP
#define WEAK_WORLD_RELACY_HPP

#include <gdr/impl/arch/arch_host.h>

struct weak_site {
	const char *func, *kind, *word;
	unsigned line;
};

/* Not const: the section is written. All sites of what is compiled stand in it, in no order. */
#define WEAK_SITE(kind, word)                                                                                          \
	({                                                                                                             \
		static struct weak_site weak_here                                                                      \
			__attribute__((section("weak_sites"), used)) = {__func__, kind, word, __LINE__};               \
		&weak_here;                                                                                            \
	})

/* order stays, or is none where the site is the one that is taken out; marks the site as reached */
rl::memory_order weak_order(struct weak_site *site, rl::memory_order order);
/* The object of a queue's word; NULL: memory. */
rl::atomic<uint64_t> *weak_word(const void *p);
void weak_fence(struct weak_site *site, rl::memory_order order);
enum weak_op { WEAK_ADD, WEAK_OR, WEAK_AND };
uint64_t weak_rmw(rl::atomic<uint64_t> *word, enum weak_op op, uint64_t v, const char *func);
void weak_max(rl::atomic<uint64_t> *word, uint64_t v);
int weak_cas(rl::atomic<uint64_t> *word, uint64_t *expected, uint64_t v);
void weak_st_ring(const void *p);
/* Of the loads that returned, of the stores that follow. */
void weak_seen(const rl::atomic<uint64_t> *word, uint64_t v);
void weak_stores(const rl::atomic<uint64_t> *word, uint64_t v);

template <typename T> T weak_ld(const T *p, rl::memory_order order)
{
	rl::atomic<uint64_t> *word = weak_word(p);
	uint64_t v;

	if (!word)
		return *p;
	v = word->load(order, $);
	weak_seen(word, v);
	return (T)v;
}

template <typename T> void weak_st(T *p, T v, rl::memory_order order)
{
	rl::atomic<uint64_t> *word = weak_word(p);

	if (!word) {
		*p = v;
		return;
	}
	weak_stores(word, v);
	word->store(v, order, $);
}

template <typename T> int weak_cas_any(T *p, T *expected, T v)
{
	rl::atomic<uint64_t> *word = weak_word(p);
	uint64_t was = *expected;
	int ret;

	if (!word)
		return __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	ret = weak_cas(word, &was, v);
	*expected = (T)was;
	return ret;
}

#define WEAK_RMW(p, v, op, builtin, func)                                                                             \
	({                                                                                                             \
		rl::atomic<uint64_t> *weak_at = weak_word(p);                                                          \
		weak_at ? weak_rmw(weak_at, op, (v), func) : builtin((p), (v), __ATOMIC_RELAXED);  \
	})

#define WEAK_ACQUIRE(p) weak_ld((p), weak_order(WEAK_SITE("acquire", #p), rl::mo_acquire))
#define WEAK_RELEASE(type, p, v) weak_st<type>((p), (v), weak_order(WEAK_SITE("release", #p), rl::mo_release))
#define WEAK_FENCE(kind, order) weak_fence(WEAK_SITE(kind, ""), order)

#define gdri_ld_relaxed_gpu_u32(p) weak_ld((p), rl::mo_relaxed)
#define gdri_ld_relaxed_gpu_u64(p) weak_ld((p), rl::mo_relaxed)
#define gdri_ld_relaxed_sys_u32(p) weak_ld((p), rl::mo_relaxed)
#define gdri_ld_relaxed_sys_u64(p) weak_ld((p), rl::mo_relaxed)
#define gdri_ld_fenced_u32(p) weak_ld((p), rl::mo_relaxed)
#define gdri_ld_fenced_u64(p) weak_ld((p), rl::mo_relaxed)
#define gdri_ld_acquire_gpu_u32(p) WEAK_ACQUIRE(p)
#define gdri_ld_acquire_gpu_u64(p) WEAK_ACQUIRE(p)
#define gdri_ld_acquire_sys_u32(p) WEAK_ACQUIRE(p)
#define gdri_ld_acquire_sys_u64(p) WEAK_ACQUIRE(p)
#define gdri_st_relaxed_gpu_u32(p, v) weak_st<uint32_t>((p), (v), rl::mo_relaxed)
#define gdri_st_relaxed_gpu_u64(p, v) weak_st<uint64_t>((p), (v), rl::mo_relaxed)
#define gdri_st_relaxed_sys_u32(p, v) weak_st<uint32_t>((p), (v), rl::mo_relaxed)
#define gdri_st_relaxed_sys_u64(p, v) weak_st<uint64_t>((p), (v), rl::mo_relaxed)
#define gdri_st_fenced_u32(p, v) weak_st<uint32_t>((p), (v), rl::mo_relaxed)
#define gdri_st_fenced_u64(p, v) weak_st<uint64_t>((p), (v), rl::mo_relaxed)
#define gdri_st_release_gpu_u32(p, v) WEAK_RELEASE(uint32_t, p, v)
#define gdri_st_release_gpu_u64(p, v) WEAK_RELEASE(uint64_t, p, v)
#define gdri_st_release_sys_u32(p, v) WEAK_RELEASE(uint32_t, p, v)
#define gdri_st_release_sys_u64(p, v) WEAK_RELEASE(uint64_t, p, v)
#define gdri_add_u32(p, v) WEAK_RMW(p, v, WEAK_ADD, __atomic_fetch_add, __func__)
#define gdri_add_u64(p, v) WEAK_RMW(p, v, WEAK_ADD, __atomic_fetch_add, __func__)
#define gdri_add_fenced_u64(p, v) WEAK_RMW(p, v, WEAK_ADD, __atomic_fetch_add, __func__)
#define gdri_or_u64(p, v) WEAK_RMW(p, v, WEAK_OR, __atomic_fetch_or, __func__)
#define gdri_red_or_u64(p, v) ((void)WEAK_RMW(p, v, WEAK_OR, __atomic_fetch_or, __func__))
#define gdri_red_and_u64(p, v) ((void)WEAK_RMW(p, v, WEAK_AND, __atomic_fetch_and, __func__))
#define gdri_max_u64(p, v) weak_max(weak_word(p), (v))
#define gdri_cas_u32(p, expected, v) weak_cas_any<uint32_t>((p), (expected), (v))
#define gdri_cas_u64(p, expected, v) weak_cas_any<uint64_t>((p), (expected), (v))
#define gdri_st_mmio_u64(p, v) weak_st<uint64_t>((p), (v), rl::mo_relaxed) /* as PTX has it */
#define gdri_fence_gpu() WEAK_FENCE("fence_gpu", rl::mo_acq_rel)
#define gdri_fence_sys() WEAK_FENCE("fence_sys", rl::mo_acq_rel)
#define gdri_fence_release_gpu() WEAK_FENCE("fence_release_gpu", rl::mo_release)
#define gdri_fence_release_sys() WEAK_FENCE("fence_release_sys", rl::mo_release)
#define gdri_fence_acquire_sys() WEAK_FENCE("fence_acquire_sys", rl::mo_acquire)

/* Of a queue entry: the memory, for who reads its bytes, and the object that is watched for races. */
#define gdri_st_v4(p, a, b, c, d) (weak_st_ring(p), gdri_st_v4((p), (a), (b), (c), (d)))
#define gdri_st_2x64(p, lo, hi) (weak_st_ring(p), gdri_st_2x64((p), (lo), (hi)))

#endif
