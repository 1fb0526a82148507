/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by the threads of a block under CUDA. A thread keeps eight accesses of the
 * widest kind in flight, which is what the latency of a peer's memory needs. They lie at constant
 * distances: an instruction for each access, and next to none for addresses; a block that
 * moves little spends its time on instructions. */
#ifndef GDRI_COPY_CUDA_H
#define GDRI_COPY_CUDA_H

#include <gdr/impl/arch/copy_word_cuda.h>
#include <gdr/impl/arch/unit.h>

#define GDRI_COPY_GROUP_ROWS 8 /* accesses in flight of each thread of a warp or a block */
#define GDRI_COPY_ODD_ROWS 7 /* of these, where they move the ends in bytes: a register less for a row */
#define GDRI_COPY_ALONE_ROWS 6 /* of one thread alone */
#define GDRI_COPY_LEAN_ROWS 4 /* of any on the slow path */
#define GDRI_COPY_NEAR_ROWS 4 /* of a thread that finds its source near */
#define GDRI_COPY_AHEAD 16 /* words that bring it near, */
#define GDRI_COPY_AHEAD_FAR 32 /* from a peer, */
#define GDRI_COPY_AHEAD_LEAN 16 /* on the slow path */

/* Row k of the rest: its load stands before all stores, those of the rows behind it inside. No value is
 * without a definition anywhere, which the compiler would keep in memory. m is n: the distances of stores, which would
 * be kept from those of loads. */
#define GDRI_COPY_ROW(T, k, behind)                                                                \
	if ((k) * (int)n < left) {                                                                 \
		T v##k = s[(k) * n];                                                               \
		behind d[(k) * m] = v##k;                                                          \
	}
#define GDRI_COPY_REST_4(T)                                                                        \
	GDRI_COPY_ROW(T, 0, GDRI_COPY_ROW(T, 1, GDRI_COPY_ROW(T, 2, GDRI_COPY_ROW(T, 3, ))))
#define GDRI_COPY_REST_6(T)                                                                        \
	GDRI_COPY_ROW(T, 0, GDRI_COPY_ROW(T, 1, GDRI_COPY_ROW(T, 2, GDRI_COPY_ROW(T, 3,            \
	GDRI_COPY_ROW(T, 4, GDRI_COPY_ROW(T, 5, ))))))
#define GDRI_COPY_REST_7(T)                                                                        \
	GDRI_COPY_ROW(T, 0, GDRI_COPY_ROW(T, 1, GDRI_COPY_ROW(T, 2, GDRI_COPY_ROW(T, 3,            \
	GDRI_COPY_ROW(T, 4, GDRI_COPY_ROW(T, 5, GDRI_COPY_ROW(T, 6, )))))))
#define GDRI_COPY_REST_8(T)                                                                        \
	GDRI_COPY_ROW(T, 0, GDRI_COPY_ROW(T, 1, GDRI_COPY_ROW(T, 2, GDRI_COPY_ROW(T, 3,            \
	GDRI_COPY_ROW(T, 4, GDRI_COPY_ROW(T, 5, GDRI_COPY_ROW(T, 6, GDRI_COPY_ROW(T, 7, ))))))))
#define GDRI_COPY_REST(T, rows) GDRI_COPY_REST_OF(T, rows)
#define GDRI_COPY_REST_OF(T, rows) GDRI_COPY_REST_##rows(T)

/* From s to d, as far as `end` of the source, by thread `rank` of n: first `rows` rows of each warp at a
 * time, whose distance is a constant (`apart`: 32, or 1 of one thread alone);
 * what is less than that for all goes round, so that no warp has much more than the others. What is hidden from the
 * compiler would take registers beside those of the rows: it is found anew. */
#define GDRI_COPY(T, name, apart, rows)                                                            \
	GDR_DEVICE void gdri_copy_##name(T *d, const T *s, const T *end, uint32_t rank, uint32_t n) \
	{                                                                                          \
		int64_t rest = (end - s) - (int64_t)((size_t)n * (rows));                          \
		uint32_t first = (rank & ~31u) * (rows) + (rank & 31u), m = n;                     \
		int left;                                                                          \
                                                                                                   \
		GDRI_COPY_HIDE(apart, "r", first); /* or constants would be put into it, not into addresses */ \
		s += first;                                                                        \
		d += first;                                                                        \
		GDRI_NOT_UNROLLED                                                                  \
		for (; rest >= 0; rest -= m * (rows), s += m * (rows), d += m * (rows)) {          \
			T v[rows];                                                                 \
                                                                                                   \
			GDRI_UNROLLED                                                              \
			for (int k = 0; k < (rows); k++)                                           \
				v[k] = s[k * apart];                                               \
			GDRI_UNROLLED                                                              \
			for (int k = 0; k < (rows); k++)                                           \
				d[k * apart] = v[k];                                               \
			GDRI_COPY_HIDE(apart, "r", m);                                             \
		}                                                                                  \
		left = (int)rest + (int)n * (rows) - (int)rank;                                    \
		s += (int)(rank - first);                                                          \
		d += (int)(rank - first);                                                          \
		GDRI_COPY_HIDE(apart, "l", d);                                                     \
		GDRI_COPY_HIDE(apart, "r", m);                                                     \
		GDRI_COPY_REST(T, rows)                                                            \
	}
#define GDRI_COPY_HIDE(apart, how, value)                                                          \
	do {                                                                                       \
		if ((apart) != 1)                                                                  \
			asm("" : "+" how(value));                                                  \
	} while (0)
GDRI_COPY(uint4, alone_16, 1, GDRI_COPY_ALONE_ROWS)
GDRI_COPY(uint4, lean_16, 1, GDRI_COPY_LEAN_ROWS)
GDRI_COPY(uint64_t, alone_8, 1, GDRI_COPY_ALONE_ROWS)
GDRI_COPY(uint32_t, alone_4, 1, GDRI_COPY_ALONE_ROWS)
GDRI_COPY(uint8_t, alone_1, 1, GDRI_COPY_ALONE_ROWS)
GDRI_COPY(uint4, rows_16, 32, GDRI_COPY_GROUP_ROWS)
GDRI_COPY(uint4, odd_16, 32, GDRI_COPY_ODD_ROWS)
GDRI_COPY(uint64_t, rows_8, 32, GDRI_COPY_GROUP_ROWS)
GDRI_COPY(uint32_t, rows_4, 32, GDRI_COPY_GROUP_ROWS)
GDRI_COPY(uint8_t, rows_1, 32, GDRI_COPY_GROUP_ROWS)
#undef GDRI_COPY

#define GDRI_COPY_ALONE(T, how, d, s, len)                                                         \
	gdri_copy_##how((T *)(d), (const T *)(s), (const T *)((s) + (len)), 0, 1)
/* n: whole warps. */
#define GDRI_COPY_BY(T, how, d, s, len, rank, n)                                                   \
	gdri_copy_##how((T *)(d), (const T *)(s), (const T *)((s) + (len)), rank, n)

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
		GDRI_COPY_BY(uint4, odd_16, d + head, s + head, len - head - tail, rank, n);
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

/* One latency more. */
GDR_DEVICE void gdri_copy_ends_lean(uint8_t *d, const uint8_t *s, uint32_t head, uint8_t *dt, const uint8_t *st,
				    uint32_t tail)
{
	gdri_copy_ends(d, s, head, d, s, 0);
	gdri_copy_ends(dt, st, 0, dt, st, tail);
}

/* One thread alone would wait for each batch of its loads: it first loads a word of each of the next `ahead` pieces of
 * 32 bytes, then finds them near. The sum of the words moves nothing, but what is loaded from here on waits for it. Not
 * unrolled: the compiler would take registers anew for each row. The rest has `alone` rows. */
#define GDRI_COPY_NEAR(name, ahead, rows, alone)                                                   \
	GDR_DEVICE void gdri_copy_##name(uint4 *d, const uint4 *s, size_t n)                       \
	{                                                                                          \
		GDRI_NOT_UNROLLED                                                                  \
		for (; n >= 2 * (ahead); n -= 2 * (ahead)) {                                       \
			uint32_t sum = 0;                                                          \
                                                                                                   \
			GDRI_UNROLLED                                                              \
			for (int k = 0; k < (ahead); k++)                                          \
				sum += *(const uint32_t *)(s + 2 * k);                             \
			s += sum & gdri_constants_here.zero;                                       \
			GDRI_NOT_UNROLLED                                                          \
			for (int i = 0; i < 2 * (ahead); i += (rows), s += (rows), d += (rows)) {  \
				uint4 v[rows];                                                     \
                                                                                                   \
				GDRI_UNROLLED                                                      \
				for (int k = 0; k < (rows); k++)                                   \
					v[k] = s[k];                                               \
				GDRI_UNROLLED                                                      \
				for (int k = 0; k < (rows); k++)                                   \
					d[k] = v[k];                                               \
			}                                                                          \
			GDRI_COPY_HIDE(0, "l", s); /* or each has a base and a distance */         \
			GDRI_COPY_HIDE(0, "l", d);                                                 \
		}                                                                                  \
		gdri_copy_##alone(d, s, s + n, 0, 1);                                              \
	}
GDRI_COPY_NEAR(near, GDRI_COPY_AHEAD, GDRI_COPY_NEAR_ROWS, alone_16)
GDRI_COPY_NEAR(far, GDRI_COPY_AHEAD_FAR, GDRI_COPY_NEAR_ROWS, alone_16) /* from a peer: a second round trip is dear */
GDRI_COPY_NEAR(near_lean, GDRI_COPY_AHEAD_LEAN, GDRI_COPY_LEAN_ROWS, lean_16)
#undef GDRI_COPY_NEAR

/* More than 64 bytes. */
#define GDRI_COPY_LONG(name, ends)                                                                 \
	GDR_DEVICE void gdri_copy_long_##name(uint8_t *d, const uint8_t *s, size_t len)            \
	{                                                                                          \
		uint32_t head = (uint32_t)-(uint64_t)d & 15, tail = (uint32_t)(len - head) & 15;   \
                                                                                                   \
		if (((uint64_t)d ^ (uint64_t)s) & 15) {                                            \
			gdri_copy_units(d, s, len);                                                \
			return;                                                                    \
		}                                                                                  \
		if (head | tail)                                                                   \
			ends(d, s, head, d + len - tail, s + len - tail, tail);                    \
		gdri_copy_##name((uint4 *)(d + head), (const uint4 *)(s + head),           \
				 (len - head) >> 4);                                       \
	}
GDRI_COPY_LONG(far, gdri_copy_ends)
GDRI_COPY_LONG(near, gdri_copy_ends_lean)
GDRI_COPY_LONG(near_lean, gdri_copy_ends_lean)
#undef GDRI_COPY_LONG

/* Up to four vectors. */
GDR_DEVICE void gdri_copy_few(uint4 *d, const uint4 *s, int left)
{
	const uint32_t n = 1, m = 1;

	GDRI_COPY_REST_4(uint4)
}

/* One access, or a few, cost no call; these do. Not by the ABI is that of a put of a word, whose callers keep less in
 * registers then (tests/device/quick_puts): so nothing that is called by the ABI may call it. */
GDRI_NOINLINE void gdri_copy_thread_bytes(uint8_t *d, const uint8_t *s, size_t len)
{
	GDRI_NOT_UNROLLED
	for (size_t i = 0; i < len; i++)
		d[i] = s[i];
}

GDRI_NOINLINE void gdri_copy_thread_short(uint8_t *d, const uint8_t *s, size_t len)
{
	GDRI_BY_ABI(gdri_copy_thread_short);
	gdri_copy_units(d, s, len);
}

GDRI_NOINLINE void gdri_copy_thread_far(uint8_t *d, const uint8_t *s, size_t len)
{
	GDRI_BY_ABI(gdri_copy_thread_far);
	gdri_copy_long_far(d, s, len);
}

/* d is global memory: generic stores in a row take longer. */
GDRI_NOINLINE void gdri_copy_thread_near(uint8_t *d, const uint8_t *s, size_t len)
{
	GDRI_BY_ABI(gdri_copy_thread_near);
	__builtin_assume(__isGlobal(d));
	gdri_copy_long_near(d, s, len);
}

typedef void (*gdri_copy_fn)(uint8_t *d, const uint8_t *s, size_t len);

/* odd: up to 8 bytes that are no word; more: of more than 64. */
GDR_DEVICE void gdri_copy_thread_by(gdri_copy_fn odd, gdri_copy_fn more, void *dst, const void *src, size_t len)
{
	uint64_t at = (uint64_t)dst | (uint64_t)src;

	if (len == 8 && gdri_likely(!(at & 7)))
		*(uint64_t *)dst = *(const uint64_t *)src;
	else if (len == 4 && gdri_likely(!(at & 3)))
		*(uint32_t *)dst = *(const uint32_t *)src;
	else if (len <= 8)
		odd((uint8_t *)dst, (const uint8_t *)src, len);
	else if (!((at | len) & 15) && len <= 64)
		gdri_copy_few((uint4 *)dst, (const uint4 *)src, (int)(len >> 4));
	else if (len <= 64)
		gdri_copy_thread_short((uint8_t *)dst, (const uint8_t *)src, len);
	else
		more((uint8_t *)dst, (const uint8_t *)src, len);
}

GDR_DEVICE void gdri_copy_thread(void *dst, const void *src, size_t len)
{
	gdri_copy_thread_by(gdri_copy_thread_bytes, gdri_copy_thread_far, dst, src, len);
}

GDR_DEVICE void gdri_copy_thread_coll(void *dst, const void *src, size_t len)
{
	gdri_copy_thread_by(gdri_copy_thread_short, gdri_copy_thread_far, dst, src, len);
}

/* To a peer's memory. */
GDR_DEVICE void gdri_copy_word_first(void *dst, const void *src, size_t len)
{
	if (gdri_unlikely(!gdri_copy_if_word(dst, src, len)))
		gdri_copy_thread_by(gdri_copy_thread_bytes, gdri_copy_thread_near, dst, src, len);
}

/* ---- where registers count more than the last twentieth of the speed ----
 *
 * What kernels do when not all PEs are mapped: each of these is one of several ways, and a kernel takes the
 * registers of the dearest. */

GDR_DEVICE void gdri_copy_thread_lean(void *dst, const void *src, size_t len)
{
	if (len <= 64)
		gdri_copy_units((uint8_t *)dst, (const uint8_t *)src, len);
	else
		gdri_copy_long_near_lean((uint8_t *)dst, (const uint8_t *)src, len);
}

/* Rows one behind the other: no registers for distances. */
#define GDRI_COPY_LEAN_ROW(T, k, behind)                                                           \
	if (left > 0) {                                                                            \
		T v##k = *s;                                                                       \
		s += n;                                                                            \
		d += n;                                                                            \
		left -= n;                                                                         \
		GDRI_COPY_HIDE(0, "l", s);                                                         \
		GDRI_COPY_HIDE(0, "l", d);                                                         \
		behind *d = v##k;                                                                  \
		d -= n;                                                                            \
		GDRI_COPY_HIDE(0, "l", d);                                                         \
	}
#define GDRI_COPY_GROUP_LEAN(T)                                                                    \
	do {                                                                                       \
		const T *s = (const T *)src + rank;                                                \
		T *d = (T *)dst + rank - n;                                                        \
		int64_t left = (int64_t)(len / sizeof(T)) - rank;                                  \
                                                                                                   \
		GDRI_NOT_UNROLLED                                                                  \
		while (left > 0) {                                                                 \
			GDRI_COPY_LEAN_ROW(T, 0, GDRI_COPY_LEAN_ROW(T, 1, GDRI_COPY_LEAN_ROW(T, 2, \
			GDRI_COPY_LEAN_ROW(T, 3, ))))                                              \
			d += (size_t)n * 4;                                                        \
		}                                                                                  \
	} while (0)

/* Thread `rank` of n, of any number. */
GDR_DEVICE void gdri_copy_lean(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n)
{
	uint32_t head, tail;
	uint64_t at;

	if (rank >= len)
		return;
	if (len > 32 && !(((uint64_t)dst ^ (uint64_t)src) & 15)) {
		head = (uint32_t)-(uint64_t)dst & 15;
		tail = (uint32_t)(len - head) & 15;
		for (uint32_t i = rank; i < head; i += n)
			((uint8_t *)dst)[i] = ((const uint8_t *)src)[i];
		for (uint32_t i = rank; i < tail; i += n)
			((uint8_t *)dst)[len - tail + i] = ((const uint8_t *)src)[len - tail + i];
		dst = (uint8_t *)dst + head;
		src = (const uint8_t *)src + head;
		len -= head + tail;
	}
	at = (uint64_t)dst | (uint64_t)src | len;
	if (!(at & 15))
		GDRI_COPY_GROUP_LEAN(uint4);
	else if (!(at & 7))
		GDRI_COPY_GROUP_LEAN(uint64_t);
	else if (!(at & 3))
		GDRI_COPY_GROUP_LEAN(uint32_t);
	else
		GDRI_COPY_GROUP_LEAN(uint8_t);
}
#undef GDRI_COPY_GROUP_LEAN

#endif
