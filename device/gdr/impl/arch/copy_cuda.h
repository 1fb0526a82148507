/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by the threads of a block under CUDA. A thread keeps eight accesses of the
 * widest kind in flight, which is what the latency of a peer's memory needs. They lie at constant
 * distances: an instruction for each access, and next to none for addresses; a block that
 * moves little spends its time on instructions. */
#ifndef GDRI_COPY_CUDA_H
#define GDRI_COPY_CUDA_H

#include <gdr/impl/arch/unit.h>

#define GDRI_COPY_ROWS 8 /* accesses of a thread in flight */
#define GDRI_COPY_NEAR_ROWS 4 /* accesses in flight of a thread that finds its source near */

/* Row k of the rest: its load stands before all stores, those of the rows behind it inside. No value is
 * without a definition anywhere, which the compiler would keep in memory. */
#define GDRI_COPY_ROW(T, k, behind)                                                                \
	if ((k) * (int)n < left) {                                                                 \
		T v##k = s[(k) * n];                                                               \
		behind d[(k) * n] = v##k;                                                          \
	}

/* From s to d, as far as `end` of the source, by thread `rank` of n: first ROWS rows of each warp at a
 * time, whose distance is a constant (`apart`: 32, or 1 of one thread alone, which begins at `first`);
 * what is less than that for all goes round, so that no warp has much more than the others. */
#define GDRI_COPY(T, name, apart)                                                                  \
	GDR_DEVICE void gdri_copy_##name(T *d, const T *s, const T *end, uint32_t first,           \
					 uint32_t rank, uint32_t n)                                \
	{                                                                                          \
		size_t step = (size_t)n * GDRI_COPY_ROWS, rest = (size_t)(end - s);                \
		int left;                                                                          \
                                                                                                   \
		asm("" : "+r"(first)); /* or the compiler puts constants into it, not into addresses */ \
		GDRI_NOT_UNROLLED                                                                  \
		for (; rest >= step; rest -= step, s += step, d += step) {                         \
			T v[GDRI_COPY_ROWS];                                                       \
                                                                                                   \
			GDRI_UNROLLED                                                              \
			for (int k = 0; k < GDRI_COPY_ROWS; k++)                                   \
				v[k] = (s + first)[k * apart];                                     \
			GDRI_UNROLLED                                                              \
			for (int k = 0; k < GDRI_COPY_ROWS; k++)                                   \
				(d + first)[k * apart] = v[k];                                     \
		}                                                                                  \
		left = (int)rest - (int)rank;                                                      \
		s += rank;                                                                         \
		d += rank;                                                                         \
		GDRI_COPY_ROW(T, 0, GDRI_COPY_ROW(T, 1, GDRI_COPY_ROW(T, 2, GDRI_COPY_ROW(T, 3,    \
		GDRI_COPY_ROW(T, 4, GDRI_COPY_ROW(T, 5, GDRI_COPY_ROW(T, 6,                        \
		GDRI_COPY_ROW(T, 7, ))))))))                                                       \
	}
GDRI_COPY(uint4, alone_16, 1)
GDRI_COPY(uint64_t, alone_8, 1)
GDRI_COPY(uint32_t, alone_4, 1)
GDRI_COPY(uint8_t, alone_1, 1)
GDRI_COPY(uint4, rows_16, 32)
GDRI_COPY(uint64_t, rows_8, 32)
GDRI_COPY(uint32_t, rows_4, 32)
GDRI_COPY(uint8_t, rows_1, 32)
#undef GDRI_COPY

#define GDRI_COPY_ALONE(T, how, d, s, len)                                                         \
	gdri_copy_##how((T *)(d), (const T *)(s), (const T *)((s) + (len)), 0, 0, 1)
/* n: whole warps. */
#define GDRI_COPY_BY(T, how, d, s, len, rank, n)                                                   \
	gdri_copy_##how((T *)(d), (const T *)(s), (const T *)((s) + (len)),                        \
			(rank & ~31u) * GDRI_COPY_ROWS + (rank & 31u), rank, n)

#define GDRI_COPY_STRIDE(T)                                                                        \
	for (i = rank; i < len / sizeof(T); i += n)                                                \
		((T *)d)[i] = ((const T *)s)[i]

/* Fewer threads than a warp, which are all of the block, or one that is a group of its own. */
GDRI_NOINLINE void gdri_copy_few_threads(uint8_t *d, const uint8_t *s, size_t len, uint32_t rank,
					 uint32_t n)
{
	uint64_t at = (uint64_t)d | (uint64_t)s | len;
	size_t i;

	if (!(at & 15))
		GDRI_COPY_STRIDE(uint4);
	else if (!(at & 7))
		GDRI_COPY_STRIDE(uint64_t);
	else if (!(at & 3))
		GDRI_COPY_STRIDE(uint32_t);
	else
		GDRI_COPY_STRIDE(uint8_t);
}
#undef GDRI_COPY_STRIDE

/* Where source and destination lie alike to 16 bytes, only the ends are copied in bytes. */
GDRI_NOINLINE void gdri_copy_odd(uint8_t *d, const uint8_t *s, size_t len, uint32_t rank, uint32_t n)
{
	uint64_t differ = (uint64_t)d ^ (uint64_t)s;
	uint32_t head, tail;

	if (n < 32) {
		gdri_copy_few_threads(d, s, len, rank, n);
		return;
	}
	n &= ~31u; /* of a block of an odd size only the whole warps */
	if (rank >= n)
		return;
	if (!(differ & 15)) {
		head = (uint32_t)-(uint64_t)d & 15;
		head = head < len ? head : (uint32_t)len;
		tail = (uint32_t)(len - head) & 15;
		if (rank < head)
			d[rank] = s[rank];
		if (rank < tail)
			d[len - tail + rank] = s[len - tail + rank];
		GDRI_COPY_BY(uint4, rows_16, d + head, s + head, len - head - tail, rank, n);
		return;
	}
	differ |= (uint64_t)d | len;
	if (!(differ & 7))
		GDRI_COPY_BY(uint64_t, rows_8, d, s, len, rank, n);
	else if (!(differ & 3))
		GDRI_COPY_BY(uint32_t, rows_4, d, s, len, rank, n);
	else
		GDRI_COPY_BY(uint8_t, rows_1, d, s, len, rank, n);
}

/* Thread `rank` of n. Those for which there is nothing make no call: their instructions would hold up
 * the others. */
GDR_DEVICE void gdri_copy(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n)
{
	uint8_t *d = (uint8_t *)dst;
	const uint8_t *s = (const uint8_t *)src;

	if (!(((uint64_t)d | (uint64_t)s | len) & 15) && !(n & 31)) {
		if ((size_t)rank * 16 < len)
			GDRI_COPY_BY(uint4, rows_16, d, s, len, rank, n);
	} else if (len == 8 && !(((uint64_t)d | (uint64_t)s) & 7)) {
		if (!rank)
			*(uint64_t *)d = *(const uint64_t *)s;
	} else if (rank < len) {
		gdri_copy_odd(d, s, len, rank, n);
	}
}

/* ---- one thread ---- */

/* Widest units that fit all; few registers. */
GDR_DEVICE void gdri_copy_units(uint8_t *d, const uint8_t *s, size_t len)
{
	uint64_t at = (uint64_t)d | (uint64_t)s | len;

	if (!(at & 7))
		GDRI_COPY_ALONE(uint64_t, alone_8, d, s, len);
	else if (!(at & 3))
		GDRI_COPY_ALONE(uint32_t, alone_4, d, s, len);
	else
		GDRI_COPY_ALONE(uint8_t, alone_1, d, s, len);
}

/* The fewer than 16 bytes before and behind the part that is aligned to 16. All loads stand before
 * the first store: one latency. */
GDR_DEVICE void gdri_copy_ends(uint8_t *d, const uint8_t *s, uint32_t head, uint8_t *dt,
			       const uint8_t *st, uint32_t tail)
{
	uint64_t h8 = 0, t8 = 0;
	uint32_t h4 = 0, t4 = 0;
	uint16_t h2 = 0, t2 = 0;
	uint8_t h1 = 0, t1 = 0;

	if (head & 1)
		h1 = *s;
	if (head & 2)
		h2 = *(const uint16_t *)(s + (head & 1));
	if (head & 4)
		h4 = *(const uint32_t *)(s + (head & 3));
	if (head & 8)
		h8 = *(const uint64_t *)(s + (head & 7));
	if (tail & 8)
		t8 = *(const uint64_t *)st;
	if (tail & 4)
		t4 = *(const uint32_t *)(st + (tail & 8));
	if (tail & 2)
		t2 = *(const uint16_t *)(st + (tail & 12));
	if (tail & 1)
		t1 = *(st + (tail & 14));
	if (head & 1)
		*d = h1;
	if (head & 2)
		*(uint16_t *)(d + (head & 1)) = h2;
	if (head & 4)
		*(uint32_t *)(d + (head & 3)) = h4;
	if (head & 8)
		*(uint64_t *)(d + (head & 7)) = h8;
	if (tail & 8)
		*(uint64_t *)dt = t8;
	if (tail & 4)
		*(uint32_t *)(dt + (tail & 8)) = t4;
	if (tail & 2)
		*(uint16_t *)(dt + (tail & 12)) = t2;
	if (tail & 1)
		*(dt + (tail & 14)) = t1;
}

/* One thread alone would wait for each batch of its loads: it first loads a word of every 32 bytes of
 * the next KiB, then finds them near. The sum of the words moves nothing. */
GDR_DEVICE void gdri_copy_near(uint4 *d, const uint4 *s, size_t count)
{
	const uint4 *end = s + count, *from;

	GDRI_NOT_UNROLLED
	for (; s + 64 <= end; s += 64, d += 64) {
		uint32_t sum = 0;

		GDRI_UNROLLED
		for (int k = 0; k < 32; k++)
			sum += *(const uint32_t *)(s + 2 * k);
		from = s + (sum & gdri_constants_here.zero);
		GDRI_UNROLLED
		for (int i = 0; i < 64; i += GDRI_COPY_NEAR_ROWS) {
			uint4 v[GDRI_COPY_NEAR_ROWS];

			GDRI_UNROLLED
			for (int k = 0; k < GDRI_COPY_NEAR_ROWS && i + k < 64; k++)
				v[k] = from[i + k];
			GDRI_UNROLLED
			for (int k = 0; k < GDRI_COPY_NEAR_ROWS && i + k < 64; k++)
				d[i + k] = v[k];
		}
	}
	gdri_copy_alone_16(d, s, end, 0, 0, 1);
}

/* A copy from a peer, where a second round trip would cost more than the call: by the ABI the function has registers
 * for all first loads at once. Inline, the compiler keeps some 22 under way, sums up, and asks for the rest. */
GDRI_NOINLINE void gdri_copy_far(uint4 *d, const uint4 *s, size_t count)
{
	const uint4 *end = s + count, *from;

	GDRI_BY_ABI(gdri_copy_far);
	GDRI_NOT_UNROLLED
	for (; s + 64 <= end; s += 64, d += 64) {
		uint4 v[GDRI_COPY_NEAR_ROWS];
		uint32_t sum = 0;

		GDRI_UNROLLED
		for (int k = 0; k < 32; k++)
			sum += *(const uint32_t *)(s + 2 * k);
		from = s + (sum & gdri_constants_here.zero);
		GDRI_UNROLLED
		for (int k = 0; k < GDRI_COPY_NEAR_ROWS; k++)
			v[k] = from[k];
		GDRI_UNROLLED
		for (int k = 0; k < 64; k++) { /* each store makes room for a load some rows on */
			d[k] = v[k % GDRI_COPY_NEAR_ROWS];
			if (k + GDRI_COPY_NEAR_ROWS < 64)
				v[k % GDRI_COPY_NEAR_ROWS] = from[k + GDRI_COPY_NEAR_ROWS];
		}
	}
	gdri_copy_alone_16(d, s, end, 0, 0, 1);
}

/* Up to four vectors. */
GDR_DEVICE void gdri_copy_few(uint4 *d, const uint4 *s, int left)
{
	const uint32_t n = 1;

	GDRI_COPY_ROW(uint4, 0, GDRI_COPY_ROW(uint4, 1, GDRI_COPY_ROW(uint4, 2,
	GDRI_COPY_ROW(uint4, 3, ))))
}

/* One access, or a few, cost no call; these do. Made twice: what is called by the ABI at one place is so in the whole
 * program (GDRI_BY_ABI), and those of put and get would have their callers keep less in registers wherever a collective
 * is called, too. */
#define GDRI_COPY_THREAD(name)                                                                     \
	GDRI_NOINLINE void name##_bytes(uint8_t *d, const uint8_t *s, size_t len)                  \
	{                                                                                          \
		size_t i;                                                                          \
                                                                                                   \
		GDRI_NOT_UNROLLED                                                                  \
		for (i = 0; i < len; i++)                                                          \
			d[i] = s[i];                                                               \
	}                                                                                          \
	GDRI_NOINLINE void name##_short(uint8_t *d, const uint8_t *s, size_t len)                  \
	{                                                                                          \
		gdri_copy_units(d, s, len);                                                        \
	}                                                                                          \
	GDRI_NOINLINE void name##_long(uint8_t *d, const uint8_t *s, size_t len) /* more than 64 */ \
	{                                                                                          \
		uint32_t head = (uint32_t)-(uint64_t)d & 15, tail = (uint32_t)(len - head) & 15;   \
                                                                                                   \
		if (((uint64_t)d ^ (uint64_t)s) & 15) {                                            \
			gdri_copy_units(d, s, len);                                                \
			return;                                                                    \
		}                                                                                  \
		if (head | tail)                                                                   \
			gdri_copy_ends(d, s, head, d + len - tail, s + len - tail, tail);          \
		gdri_copy_near((uint4 *)(d + head), (const uint4 *)(s + head), (len - head) >> 4); \
	}                                                                                          \
	GDR_DEVICE void name(void *dst, const void *src, size_t len)                               \
	{                                                                                          \
		uint64_t at = (uint64_t)dst | (uint64_t)src;                                       \
                                                                                                   \
		if (len == 8 && gdri_likely(!(at & 7)))                                            \
			*(uint64_t *)dst = *(const uint64_t *)src;                                 \
		else if (len == 4 && gdri_likely(!(at & 3)))                                       \
			*(uint32_t *)dst = *(const uint32_t *)src;                                 \
		else if (len <= 8)                                                                 \
			name##_bytes((uint8_t *)dst, (const uint8_t *)src, len);                   \
		else if (!((at | len) & 15) && len <= 64)                                          \
			gdri_copy_few((uint4 *)dst, (const uint4 *)src, (int)(len >> 4));          \
		else if (!((at | len) & 15))                                                       \
			gdri_copy_near((uint4 *)dst, (const uint4 *)src, len >> 4);                \
		else if (len <= 64)                                                                \
			name##_short((uint8_t *)dst, (const uint8_t *)src, len);                   \
		else                                                                               \
			name##_long((uint8_t *)dst, (const uint8_t *)src, len);                    \
	}
GDRI_COPY_THREAD(gdri_copy_thread)
GDRI_COPY_THREAD(gdri_copy_thread_coll)
#undef GDRI_COPY_THREAD

/* To a peer's memory. 8 bytes are mostly a word, which is under way before that is known: of others the one that src
 * lies in, which can be read where src can, and is not used. Takes two registers more. */
GDR_DEVICE void gdri_copy_word_first(void *dst, const void *src, size_t len)
{
	uint64_t to = __cvta_generic_to_global(dst), at = (uint64_t)dst | (uint64_t)src, word;
	uint32_t not_8 = ((uint32_t)len ^ 8u) | (uint32_t)(len >> 32); /* one instruction, as is the test of it */

	word = gdri_ld_word_if_0((const void *)((uint64_t)src & ~(uint64_t)7), not_8);
	asm volatile("" : "+l"(to)); /* or the address would be found once more behind the branch */
	if (gdri_likely(!(not_8 | ((uint32_t)at & 7u)))) /* generic stores in a row take half as long again */
		*(uint64_t *)__cvta_global_to_generic(to) = word;
	else
		gdri_copy_thread(dst, src, len);
}

/* ---- where registers count more than the last twentieth of the speed ----
 *
 * What kernels do when not all PEs are mapped: each of these is one of several ways, and a kernel takes the
 * registers of the dearest. */

GDR_DEVICE void gdri_copy_thread_lean(void *dst, const void *src, size_t len)
{
	uint8_t *d = (uint8_t *)dst;
	const uint8_t *s = (const uint8_t *)src;
	uint32_t head = (uint32_t)-(uint64_t)d & 15, tail;

	if (len <= 32 || (((uint64_t)d ^ (uint64_t)s) & 15)) {
		gdri_copy_units(d, s, len);
		return;
	}
	tail = (uint32_t)(len - head) & 15;
	gdri_copy_ends(d, s, head, d + len - tail, s + len - tail, tail);
	GDRI_COPY_ALONE(uint4, alone_16, d + head, s + head, len - head - tail);
}

GDR_DEVICE void gdri_copy_lean(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n)
{
	if (rank < len)
		gdri_copy_odd((uint8_t *)dst, (const uint8_t *)src, len, rank, n);
}

#endif
