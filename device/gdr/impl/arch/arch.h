/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory accesses, fences and atomics in words that both compilers have. One
 * file for each world defines the same names; scopes follow PTX: gpu is every
 * thread of the own device, sys adds host, NIC and peers. On the host device
 * both are process-wide C11 atomics.
 *
 *	T gdri_ld_{relaxed,acquire}_{gpu,sys}_{u32,u64}(const T *p)
 *	void gdri_st_{relaxed,release}_{gpu,sys}_{u32,u64}(T *p, T v)
 *	uint16_t gdri_ld_acquire_sys_u16(const uint16_t *p), void gdri_st_relaxed_sys_u16(uint16_t *p, uint16_t v)
 *	T gdri_ld_fenced_{u32,u64}(const T *p)		relaxed.sys; the gdri_fence_* behind it makes it
 *	void gdri_st_fenced_{u32,u64}(T *p, T v)	an acquire, the one before it a release
 *	void gdri_st_v4(void *p, a, b, c, d)		16 bytes as four 32-bit words, p aligned
 *	void gdri_st_2x64(void *p, lo, hi)		16 bytes as two 64-bit words
 *	void gdri_{ld,st}_pair_sys(...)			two neighbouring 64-bit words, each relaxed.sys; p aligned to 16
 *	void gdri_st_mmio_u64(uint64_t *p, uint64_t v)	one store that reaches the NIC
 *	void gdri_fence_{gpu,sys}(void)			acquire and release
 *	void gdri_fence_{release,acquire}_sys(void)	one of them
 *	int gdri_cas_u64(uint64_t *p, uint64_t *expected, uint64_t v)	1: done; 0: *expected is news
 *	T gdri_{add,exch}_{u32,u64}(T *p, T v)		return the old value
 *	uint64_t gdri_{or,and}_u64, void gdri_max_u64(uint64_t *p, uint64_t v)	fenced both ways
 *	T gdri_amo_{add,and,or,xor,exch}_{u32,u64}(T *p, T v)	system scope: the user's atomics
 *	T gdri_amo_{max,min}[_signed]_{u32,u64}(T *p, T v), uint64_t gdri_amo_float_add(size, p, bits)	CUDA alone
 *	void gdri_red_{add,and,or,xor}_{u32,u64}(T *p, T v)	such atomics without result
 *	T gdri_amo_cas_{u32,u64}(T *p, T expected, T v)		return the old value
 *	void gdri_copy(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n)
 *		rank's share of a copy that n threads do together
 *	void gdri_copy_group(..., int get)	of puts and gets: of few registers
 *	void gdri_copy_thread(void *dst, const void *src, size_t len)	by one thread
 *	void gdri_copy_word_first(...)			by one thread, to a peer, quickest where it is a word
 *	void gdri_copy_thread_coll(...)			by one thread, of collectives
 *	void gdri_ld_bytes(void *dst, const void *src, size_t len), gdri_ld_bytes_8(uint64_t *dst, const void *src)
 *	uint32_t gdri_popc(uint32_t), gdri_ffs_u32(uint32_t), gdri_ffs_u64(uint64_t)	ffs: 0-based
 *	uint32_t gdri_bswap32(uint32_t), uint64_t gdri_bswap64(uint64_t)
 *
 * Read-modify-write operations are relaxed and of gpu scope unless said otherwise. */
#ifndef GDRI_ARCH_H
#define GDRI_ARCH_H

#include <gdr/macros.h>

#ifdef __CUDACC__
#include <gdr/impl/arch/arch_cuda.h>
#elif defined(GDRI_WORLD) /* of a test: tests/weak */
#include GDRI_WORLD
#else
#include <gdr/impl/arch/arch_host.h>
#endif

#endif
