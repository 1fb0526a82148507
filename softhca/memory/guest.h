/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to memory that is shared with the program without a lock: rings,
 * doorbell records, UAR pages and registered memory. Each accessor names the
 * program's store or load that it pairs with. Hardware numbers are big-endian
 * and are converted here. */
#ifndef SOFTHCA_GUEST_H
#define SOFTHCA_GUEST_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "softhca/gpu/dma.h"

/* Big-endian fields at any alignment. */
static inline uint16_t get_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static inline uint64_t get_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put_be64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

/* Doorbell record word. Acquire: pairs with the program's release (or store
 * barrier, udma_to_device_barrier) between writing a WQE and the record, so
 * that the WQE which the record covers is seen whole. */
static inline uint32_t guest_dbrec(const uint32_t *word)
{
	return be32toh(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

/* UAR register. Acquire: pairs with the same barrier ahead of the doorbell
 * store. Eight bytes are read at once because the program stores them so; a
 * BlueFlame copy is wider, only its first eight bytes count. */
static inline uint64_t guest_uar(const uint8_t *reg)
{
	return __atomic_load_n((const uint64_t *)(const void *)reg, __ATOMIC_ACQUIRE);
}

/* Takes a doorbell out of its register, unless another one has been rung meanwhile. Relaxed: it pairs
 * with that store alone, and orders nothing; the register was read by guest_uar(). */
static inline void guest_uar_take(uint8_t *reg, uint64_t v)
{
	__atomic_compare_exchange_n((uint64_t *)(void *)reg, &v, 0, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#endif

/* The last eight bytes of a CQE. Release: pairs with the poller's load of the
 * owner byte and its load barrier, which then sees the rest of the CQE and all
 * data that was placed before it. */
static inline void guest_publish64(uint8_t *p, uint64_t v)
{
#ifdef __SANITIZE_THREAD__
	/* It goes by addresses: pollers read the last four bytes, or the last one. */
	__tsan_release(p + 4);
	__tsan_release(p + 7);
#endif
	__atomic_store_n((uint64_t *)(void *)p, v, __ATOMIC_RELEASE);
}

/* Places up to eight bytes; aligned power-of-two sizes as one store. Release:
 * pairs with a program that polls on this word (a flag) and then reads what an
 * earlier operation of the same QP placed. */
static inline void guest_store_small(uint8_t *dst, const uint8_t *src, size_t n)
{
	uintptr_t a = (uintptr_t)dst;

	if (n == 8 && !(a & 7)) {
		uint64_t v;

		memcpy(&v, src, 8);
		__atomic_store_n((uint64_t *)(void *)dst, v, __ATOMIC_RELEASE);
	} else if (n == 4 && !(a & 3)) {
		uint32_t v;

		memcpy(&v, src, 4);
		__atomic_store_n((uint32_t *)(void *)dst, v, __ATOMIC_RELEASE);
	} else if (n == 2 && !(a & 1)) {
		uint16_t v;

		memcpy(&v, src, 2);
		__atomic_store_n((uint16_t *)(void *)dst, v, __ATOMIC_RELEASE);
	} else {
		for (size_t i = 0; i < n; i++)
			__atomic_store_n(dst + i, src[i], __ATOMIC_RELEASE);
	}
}

/* Reads up to eight bytes; aligned power-of-two sizes as one load, so that a
 * word which the program updates concurrently is never sent torn. Acquire:
 * pairs with the release of whoever wrote the word. */
static inline void guest_load_small(uint8_t *dst, const uint8_t *src, size_t n)
{
	uintptr_t a = (uintptr_t)src;

	if (n == 8 && !(a & 7)) {
		uint64_t v = __atomic_load_n((const uint64_t *)(const void *)src, __ATOMIC_ACQUIRE);

		memcpy(dst, &v, 8);
	} else if (n == 4 && !(a & 3)) {
		uint32_t v = __atomic_load_n((const uint32_t *)(const void *)src, __ATOMIC_ACQUIRE);

		memcpy(dst, &v, 4);
	} else {
		for (size_t i = 0; i < n; i++)
			dst[i] = __atomic_load_n(src + i, __ATOMIC_ACQUIRE);
	}
}

/* So many bytes in words, each as long as its address allows: a program may poll
 * on any of them, and set it anew when it has come, while memmove may store a
 * word twice. */
#define GUEST_WORDS 256

static inline void guest_copy_words(uint8_t *dst, const uint8_t *src, size_t n)
{
	uint8_t word[8];
	size_t t;

	for (; n; dst += t, src += t, n -= t) {
		for (t = 8; t > n || (uintptr_t)dst & (t - 1); t /= 2)
			;
		guest_load_small(word, src, t);
		guest_store_small(dst, word, t);
	}
}

/* Copies between registered memory. The bytes of the last aligned word go
 * last, so that a program which polls on the end of a message finds the rest
 * placed. Ranges may overlap (an operation looped back onto itself): words are
 * copied from the front, which must not overtake itself. */
static inline void guest_copy(uint8_t *dst, const uint8_t *src, size_t n)
{
	uint8_t tail[8];
	size_t t;

	if (n <= 8) {
		guest_load_small(tail, src, n);
		guest_store_small(dst, tail, n);
		return;
	}
	if (n <= GUEST_WORDS && (uintptr_t)dst - (uintptr_t)src >= n) {
		guest_copy_words(dst, src, n);
		return;
	}
	t = (uintptr_t)(dst + n) & 7;
	if (!t)
		t = 8;
	guest_load_small(tail, src + n - t, t);
	memmove(dst, src, n - t);
	guest_store_small(dst + n - t, tail, t); /* release: after the memmove */
}

/* Around what reads the program's memory for a packet. What orders the program's next
 * write behind it is the peer's answer, which ThreadSanitizer cannot follow
 * through the wire; and a READ may meet words that are being written, as DMA
 * does. */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
#endif

static inline void guest_dma_begin(void)
{
#ifdef __SANITIZE_THREAD__
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
#endif
}

static inline void guest_dma_end(void)
{
#ifdef __SANITIZE_THREAD__
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}

/* Copies pieces of the program's memory for a packet; returns their length. A
 * word of up to eight bytes alone is read as one, whoever else writes it. */
static inline size_t guest_gather(uint8_t *dst, const struct iovec *iov, int n)
{
	size_t len = 0;

	guest_dma_begin();
	for (int i = 0; i < n; i++) {
		if (dma_device(iov[i].iov_base))
			dma_read(dst + len, iov[i].iov_base, iov[i].iov_len, true);
		else if (iov[i].iov_len <= 8)
			guest_load_small(dst + len, iov[i].iov_base, iov[i].iov_len);
		else
			memcpy(dst + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	guest_dma_end();
	return len;
}

/* From piece to piece, in order, the shorter side's bytes. */
static inline __attribute__((always_inline)) void
guest_iov_copy(const struct iovec *dst, int ndst, const struct iovec *src, int nsrc,
	       void (*copy)(uint8_t *, const uint8_t *, size_t))
{
	size_t doff = 0, soff = 0;
	int d = 0, s = 0;

	while (d < ndst && s < nsrc) {
		size_t dl = dst[d].iov_len - doff, sl = src[s].iov_len - soff;
		size_t n = dl < sl ? dl : sl;

		if (n)
			copy((uint8_t *)dst[d].iov_base + doff, (const uint8_t *)src[s].iov_base + soff, n);
		doff += n;
		soff += n;
		if (doff == dst[d].iov_len) {
			d++;
			doff = 0;
		}
		if (soff == src[s].iov_len) {
			s++;
			soff = 0;
		}
	}
}

#endif
