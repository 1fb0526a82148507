/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by the threads of a block under CUDA. A thread keeps eight accesses of the
 * widest kind in flight, which is what the latency of a peer's memory needs;
 * neighbouring threads touch neighbouring addresses. */
#ifndef GDRI_COPY_CUDA_H
#define GDRI_COPY_CUDA_H

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
		for (; i < count; i += step)                                                       \
			d[i] = s[i];                                                               \
	}
GDRI_COPY(uint4)
GDRI_COPY(uint64_t)
GDRI_COPY(uint32_t)
GDRI_COPY(uint8_t)
#undef GDRI_COPY

/* Where source and destination lie alike to 16 bytes, only the ends are copied in bytes. */
GDRI_NOINLINE void gdri_copy(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n)
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

#endif
