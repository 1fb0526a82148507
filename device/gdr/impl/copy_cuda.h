/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by the threads of a block under CUDA. A thread keeps eight accesses of the
 * widest kind in flight, which is what the latency of a peer's memory needs;
 * neighbouring threads touch neighbouring addresses. */
#ifndef GDRI_COPY_CUDA_H
#define GDRI_COPY_CUDA_H

#include <gdr/impl/unit.h>

#define GDRI_COPY_UNROLL 8

/* count values of type T; rank of n threads. */
#define GDRI_COPY(T)                                                                               \
	GDR_DEVICE void gdri_copy_##T(void *dst, const void *src, size_t count, uint32_t rank,     \
				      uint32_t n)                                                  \
	{                                                                                          \
		T *d = (T *)dst, v[GDRI_COPY_UNROLL];                                              \
		const T *s = (const T *)src;                                                       \
		size_t i = rank, step = n;                                                         \
                                                                                                   \
		for (; i + (GDRI_COPY_UNROLL - 1) * step < count; i += GDRI_COPY_UNROLL * step) {  \
			_Pragma("unroll") for (int k = 0; k < GDRI_COPY_UNROLL; k++)               \
				v[k] = s[i + k * step];                                            \
			_Pragma("unroll") for (int k = 0; k < GDRI_COPY_UNROLL; k++)               \
				d[i + k * step] = v[k];                                            \
		}                                                                                  \
		if (i >= count)                                                                    \
			return;                                                                    \
		_Pragma("unroll") for (int k = 0; k < GDRI_COPY_UNROLL - 1; k++)                   \
			if (i + k * step < count)                                                  \
				v[k] = s[i + k * step];                                            \
		_Pragma("unroll") for (int k = 0; k < GDRI_COPY_UNROLL - 1; k++)                   \
			if (i + k * step < count)                                                  \
				d[i + k * step] = v[k];                                            \
	}
GDRI_COPY(uint4)
GDRI_COPY(uint64_t)
GDRI_COPY(uint32_t)
GDRI_COPY(uint8_t)
#undef GDRI_COPY

/* Where source and destination lie alike to 16 bytes, only the ends are copied in bytes. */
GDRI_NOINLINE void gdri_copy_any(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n)
{
	uint8_t *d = (uint8_t *)dst;
	const uint8_t *s = (const uint8_t *)src;
	uint64_t differ = (uint64_t)dst ^ (uint64_t)src;
	size_t head;

	if (!(differ & 15)) {
		head = -(uint64_t)dst & 15;
		if (head > len)
			head = len;
		if (head)
			gdri_copy_uint8_t(d, s, head, rank, n);
		d += head;
		s += head;
		len -= head;
		gdri_copy_uint4(d, s, len >> 4, rank, n);
		if (len & 15)
			gdri_copy_uint8_t(d + (len & ~(size_t)15), s + (len & ~(size_t)15), len & 15,
					  rank, n);
		return;
	}
	differ |= (uint64_t)dst | len;
	if (!(differ & 7))
		gdri_copy_uint64_t(d, s, len >> 3, rank, n);
	else if (!(differ & 3))
		gdri_copy_uint32_t(d, s, len >> 2, rank, n);
	else
		gdri_copy_uint8_t(d, s, len, rank, n);
}

/* Threads for which there is nothing leave at once: their instructions would hold up the others. */
GDR_DEVICE void gdri_copy(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n)
{
	if (rank < len && (rank < 16 || rank <= len >> 4 || (((uint64_t)dst ^ (uint64_t)src) & 15)))
		gdri_copy_any(dst, src, len, rank, n);
}

/* One thread alone would wait for each batch of its loads: it first loads a word of every 32 bytes of
 * the next KiB, then finds them near. The sum of the words moves nothing. */
GDR_DEVICE void gdri_copy_near(uint4 *d, const uint4 *s, size_t count, uint32_t zero)
{
	size_t at, part;
	uint32_t sum;
	int k;

	for (at = 0; at < count; at += part) {
		part = count - at < 64 ? count - at : 64;
		sum = 0;
		if (part > GDRI_COPY_UNROLL) {
#pragma unroll
			for (k = 0; k < 32; k++)
				if (2 * k < part)
					sum += *(const uint32_t *)(s + at + 2 * k);
		}
		gdri_copy_uint4(d + at, s + at + (sum & zero), part, 0, 1);
	}
}

GDRI_NOINLINE void gdri_copy_thread_any(void *dst, const void *src, size_t len, uint32_t zero)
{
	if (((uint64_t)dst | (uint64_t)src | len) & 15)
		gdri_copy(dst, src, len, 0, 1);
	else
		gdri_copy_near((uint4 *)dst, (const uint4 *)src, len >> 4, zero);
}

/* Up to four vectors. */
GDR_DEVICE void gdri_copy_few(uint4 *d, const uint4 *s, size_t count)
{
	uint4 v[4];
	int k;

#pragma unroll
	for (k = 0; k < 4; k++)
		if (k < count)
			v[k] = s[k];
#pragma unroll
	for (k = 0; k < 4; k++)
		if (k < count)
			d[k] = v[k];
}

/* One access, or a few, cost no call. */
GDR_DEVICE void gdri_copy_thread(void *dst, const void *src, size_t len)
{
	uint64_t at = (uint64_t)dst | (uint64_t)src;

	if (len == 8 && !(at & 7))
		*(uint64_t *)dst = *(const uint64_t *)src;
	else if (len == 4 && !(at & 3))
		*(uint32_t *)dst = *(const uint32_t *)src;
	else if (len <= 64 && !((at | len) & 15))
		gdri_copy_few((uint4 *)dst, (const uint4 *)src, len >> 4);
	else
		gdri_copy_thread_any(dst, src, len, gdri_constants_here.zero);
}

#endif
