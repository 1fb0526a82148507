/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by the threads of a block under CUDA. A thread keeps several accesses of the widest kind in flight, which is
 * what the latency of a peer's memory needs: eight in collectives, whose registers are many, up to four in puts and
 * gets, whose kernels are to have 32. They lie at constant distances: an instruction for each access, and next to none
 * for addresses; a block that moves little spends its time on instructions. */
#ifndef GDRI_COPY_CUDA_H
#define GDRI_COPY_CUDA_H

#include <gdr/impl/arch/copy_word_cuda.h>
#include <gdr/impl/arch/unit.h>

#define GDRI_COPY_GROUP_ROWS 8 /* accesses in flight of each thread of a warp or a block of a collective */
#define GDRI_COPY_ODD_ROWS 7 /* of these, where they move the ends in bytes: a register less for a row */
#define GDRI_COPY_ALONE_ROWS 6 /* of one thread alone that moves words */
#define GDRI_COPY_NEAR_ROWS 3 /* of a thread that finds its source near */
#define GDRI_COPY_AHEAD 15 /* words that bring it near; more take a kernel beyond 32 registers */

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
GDR_DEVICE void gdri_copy_few_here(uint8_t *d, const uint8_t *s, size_t len, uint32_t rank, uint32_t n)
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

GDRI_NOINLINE void gdri_copy_few_threads(uint8_t *d, const uint8_t *s, size_t len, uint32_t rank, uint32_t n)
{
	gdri_copy_few_here(d, s, len, rank, n);
}

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

/* ---- a warp or a block of put and get, of few registers ---- */

#define GDRI_COPY_LANE(T, k, behind)                                                               \
	if ((k) * 32 < left) {                                                                     \
		T v##k = s[(k) * 32];                                                              \
		behind d[(k) * 32] = v##k;                                                         \
	}
#define GDRI_COPY_LANES_3(T) GDRI_COPY_LANE(T, 0, GDRI_COPY_LANE(T, 1, GDRI_COPY_LANE(T, 2, )))

/* Thread `rank` of n, whole warps: each warp takes batches of 128 in turn, four rows that lie together. Four vectors
 * leave 14 of 30 registers for all else, so what else there is to do is out of line, too; and parameters stand in this
 * order, or ptxas puts the vectors behind them. Of bytes it takes 256 GiB. */
#define GDRI_COPY_GROUP_BATCHES(T, name)                                                           \
	GDRI_NOINLINE void gdri_copy_batches_##name(uint32_t n, int32_t batches, T *d, const T *s, uint32_t rank) \
	{                                                                                          \
		batches -= (int32_t)(rank >> 5);                                                   \
		s += (rank >> 5) * 128 + (rank & 31u);                                             \
		d += (rank >> 5) * 128 + (rank & 31u);                                             \
		n >>= 5;                                                                           \
		GDRI_NOT_UNROLLED                                                                  \
		for (; batches > 0; batches -= (int32_t)n) {                                       \
			T v[4];                                                                    \
                                                                                                   \
			GDRI_UNROLLED                                                              \
			for (int k = 0; k < 4; k++)                                                \
				v[k] = s[k * 32];                                                  \
			GDRI_UNROLLED                                                              \
			for (int k = 0; k < 4; k++)                                                \
				d[k * 32] = v[k];                                                  \
			s += (size_t)n * 128;                                                      \
			d += (size_t)n * 128;                                                      \
			GDRI_COPY_HIDE(0, "l", s); /* or each has a base and a distance */         \
			GDRI_COPY_HIDE(0, "l", d);                                                 \
		}                                                                                  \
	}
/* What is behind the last whole batch, by a warp. */
#define GDRI_COPY_GROUP_TAIL(T, name)                                                              \
	GDRI_NOINLINE void gdri_copy_tail_##name(T *d, const T *s, size_t count, uint32_t lane)    \
	{                                                                                          \
		int left = (int)(count & 127u) - (int)lane;                                        \
                                                                                                   \
		s += (count & ~(size_t)127) + lane;                                                \
		d += (count & ~(size_t)127) + lane;                                                \
		GDRI_NOT_UNROLLED                                                                  \
		for (; left > 0; left -= 96, s += 96, d += 96)                                     \
			GDRI_COPY_LANES_3(T)                                                       \
	}
/* What is no more than an element a thread is a row. */
#define GDRI_COPY_GROUP(T, name)                                                                   \
	GDRI_COPY_GROUP_BATCHES(T, name)                                                           \
	GDRI_COPY_GROUP_TAIL(T, name)                                                              \
	GDR_DEVICE void gdri_copy_group_##name(T *d, const T *s, size_t count, uint32_t rank, uint32_t n) \
	{                                                                                          \
		if (count <= n) {                                                                  \
			if (rank < count)                                                          \
				d[rank] = s[rank];                                                 \
			return;                                                                    \
		}                                                                                  \
		if (rank + 32 >= n)                                                                \
			gdri_copy_tail_##name(d, s, count, rank & 31u);                            \
		gdri_copy_batches_##name(n, (int32_t)(count / 128), d, s, rank);                   \
	}
GDRI_COPY_GROUP(uint4, 16)
GDRI_COPY_GROUP(uint64_t, 8)
GDRI_COPY_GROUP(uint32_t, 4)
GDRI_COPY_GROUP(uint8_t, 1)
#undef GDRI_COPY_GROUP

#define GDRI_COPY_GROUP_BY(T, name, d, s, len)                                                     \
	gdri_copy_group_##name((T *)(d), (const T *)(s), (len) / sizeof(T), rank, n)

/* Thread `rank` of n, of any number; rank < len. */
GDR_DEVICE void gdri_copy_group_any(uint8_t *d, const uint8_t *s, size_t len, uint32_t rank, uint32_t n)
{
	uint64_t differ = (uint64_t)d ^ (uint64_t)s;
	uint32_t head, tail;

	if (n < 32) {
		gdri_copy_few_here(d, s, len, rank, n);
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
		GDRI_COPY_GROUP_BY(uint4, 16, d + head, s + head, len - head);
		return;
	}
	differ |= (uint64_t)d | len;
	if (!(differ & 7))
		GDRI_COPY_GROUP_BY(uint64_t, 8, d, s, len);
	else if (!(differ & 3))
		GDRI_COPY_GROUP_BY(uint32_t, 4, d, s, len);
	else
		GDRI_COPY_GROUP_BY(uint8_t, 1, d, s, len);
}

/* On the slow path, and what is no word or a few rows of vectors: by the ABI, so that the kernel has its own registers
 * beside these, and both are 32. */
GDRI_NOINLINE void gdri_copy_lean(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n)
{
	GDRI_BY_ABI(gdri_copy_lean);
	if (rank < len)
		gdri_copy_group_any((uint8_t *)dst, (const uint8_t *)src, len, rank, n);
}

/* Bytes from `rank` on that are vectors, `step` of them in a row, two rows at a time. gdri_copy_lean and what it calls
 * put 26 registers of each thread aside; this calls nothing, and puts 8 aside. */
GDRI_NOINLINE void gdri_copy_pairs(uint8_t *d, const uint8_t *s, uint32_t len, uint32_t rank, uint32_t step)
{
	GDRI_BY_ABI(gdri_copy_pairs);
	int32_t left = (int32_t)(len - rank);

	d += rank;
	s += rank;
	GDRI_NOT_UNROLLED
	for (; left > 0; left -= 2 * (int32_t)step) {
		uint4 first = *(const uint4 *)s, second;

		s += step;
		if (left > (int32_t)step)
			second = *(const uint4 *)s;
		s += step;
		*(uint4 *)d = first;
		d += step;
		if (left > (int32_t)step)
			*(uint4 *)d = second;
		d += step;
	}
}

/* Four rows at a time wait less often, and the more threads there are the more it takes to put registers aside: pairs
 * are quicker up to n / 16 rows, of a peer's memory, where a wait is longer, up to n / 128 (docs/perf/house.md, Block
 * copies). */
GDR_DEVICE int gdri_copy_is_pairs(const void *dst, const void *src, size_t len, uint32_t n, int get)
{
	return gdri_copy_is_rows(dst, src, len, n, n / (get ? 128 : 16));
}

GDR_DEVICE void gdri_copy_group(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n, int get)
{
	if (len == 8 && !(((uint64_t)dst | (uint64_t)src) & 7)) {
		if (!rank)
			*(uint64_t *)dst = *(const uint64_t *)src;
	} else if (gdri_copy_if_rows(dst, src, len, rank, n, GDRI_COPY_ROWS(get))) {
		return;
	} else if (gdri_copy_is_pairs(dst, src, len, n, get)) {
		gdri_copy_pairs((uint8_t *)dst, (const uint8_t *)src, (uint32_t)len, rank * 16, n * 16);
	} else if (rank < len) {
		gdri_copy_lean(dst, src, len, rank, n);
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

/* One access, or a few, cost no call; these do. Not by the ABI is that of a put of a word, whose callers keep less in
 * registers then (tests/device/quick_puts): so nothing that is called by the ABI may call it. */
GDRI_NOINLINE void gdri_copy_thread_bytes(uint8_t *d, const uint8_t *s, size_t len)
{
	GDRI_NOT_UNROLLED
	for (size_t i = 0; i < len; i++)
		d[i] = s[i];
}

/* Up to four vectors. */
GDR_DEVICE void gdri_copy_few(uint4 *d, const uint4 *s, int left)
{
	const uint32_t n = 1, m = 1;

	GDRI_COPY_REST_4(uint4)
}

/* Up to 64 bytes that are vectors. */
GDRI_NOINLINE void gdri_copy_thread_vectors(uint8_t *d, const uint8_t *s, size_t len)
{
	GDRI_BY_ABI(gdri_copy_thread_vectors);
	gdri_copy_few((uint4 *)d, (const uint4 *)s, (int)(len >> 4));
}

GDRI_NOINLINE void gdri_copy_thread_short(uint8_t *d, const uint8_t *s, size_t len)
{
	GDRI_BY_ABI(gdri_copy_thread_short);
	gdri_copy_units(d, s, len);
}

#define GDRI_COPY_PART(T)                                                                          \
	do {                                                                                       \
		if (n & sizeof(T))                                                                 \
			*(T *)d = *(const T *)s;                                                   \
		s += n & sizeof(T);                                                                \
		d += n & sizeof(T);                                                                \
	} while (0)

/* The fewer than 16 bytes before and behind the part of a longer copy that is aligned to 16, piece by piece, the first
 * of which brings the others near. */
GDRI_NOINLINE void gdri_copy_thread_ends(uint8_t *d, const uint8_t *s, size_t len)
{
	uint32_t n = (uint32_t)-(uint64_t)d & 15;

	GDRI_BY_ABI(gdri_copy_thread_ends);
	len -= n;
	GDRI_COPY_PART(uint8_t);
	GDRI_COPY_PART(uint16_t);
	GDRI_COPY_PART(uint32_t);
	GDRI_COPY_PART(uint64_t);
	n = (uint32_t)len & 15;
	s += len - n;
	d += len - n;
	GDRI_COPY_PART(uint64_t);
	GDRI_COPY_PART(uint32_t);
	GDRI_COPY_PART(uint16_t);
	GDRI_COPY_PART(uint8_t);
}
#undef GDRI_COPY_PART

/* A word of each of n pieces of 32 bytes. */
GDR_DEVICE uint32_t gdri_copy_words(const uint4 *s, int n)
{
	uint32_t sum = 0;

	GDRI_UNROLLED
	for (int k = 0; k < n; k++)
		sum += *(const uint32_t *)(s + 2 * k);
	return sum;
}

/* One thread alone would wait for each batch of its loads: it first loads a word of each of the next
 * GDRI_COPY_AHEAD pieces, then finds them near. The sum of the words moves nothing, but what is loaded from here on
 * waits for it. */
GDR_DEVICE const uint4 *gdri_copy_ahead(const uint4 *s)
{
	return s + (gdri_copy_words(s, GDRI_COPY_AHEAD) & gdri_constants_here.zero);
}

/* What stands in front of the first whole number of GDRI_COPY_AHEAD pieces: n vectors in all, part: it is not empty. */
GDR_DEVICE const uint4 *gdri_copy_ahead_first(const uint4 *s, size_t n, uint32_t part)
{
	uint32_t sum = 0;

	if (n >= 2 * GDRI_COPY_AHEAD) {
		if (part)
			sum = gdri_copy_words(s, GDRI_COPY_AHEAD);
	} else if (n >= 16) {
		sum = gdri_copy_words(s, 8);
	} else if (n >= 8) {
		sum = gdri_copy_words(s, 4);
	}
	return s + (sum & gdri_constants_here.zero);
}

GDR_DEVICE void gdri_copy_rows(uint4 *d, const uint4 *s)
{
	uint4 v[GDRI_COPY_NEAR_ROWS];

	GDRI_UNROLLED
	for (int k = 0; k < GDRI_COPY_NEAR_ROWS; k++)
		v[k] = s[k];
	GDRI_UNROLLED
	for (int k = 0; k < GDRI_COPY_NEAR_ROWS; k++)
		d[k] = v[k];
}

/* n vectors, three at least; the last batch goes back over what it shares with the one before. One count, for two
 * would take a register more than there are. Not unrolled: the compiler would take registers anew for each row. */
#define GDRI_COPY_BATCHES (2 * GDRI_COPY_AHEAD / GDRI_COPY_NEAR_ROWS)
GDRI_NOINLINE void gdri_copy_thread_near(uint4 *d, const uint4 *s, size_t n)
{
	uint32_t batches = (uint32_t)(n / GDRI_COPY_NEAR_ROWS);
	uint32_t rest = (uint32_t)(n % GDRI_COPY_NEAR_ROWS);

	GDRI_BY_ABI(gdri_copy_thread_near);
	s = gdri_copy_ahead_first(s, n, batches % GDRI_COPY_BATCHES);
	GDRI_NOT_UNROLLED
	do {
		if (!(batches % GDRI_COPY_BATCHES))
			s = gdri_copy_ahead(s);
		gdri_copy_rows(d, s);
		s += GDRI_COPY_NEAR_ROWS;
		d += GDRI_COPY_NEAR_ROWS;
		GDRI_COPY_HIDE(0, "l", s); /* or each has a base and a distance */
		GDRI_COPY_HIDE(0, "l", d);
	} while (--batches);
	if (rest)
		gdri_copy_rows(d + rest - GDRI_COPY_NEAR_ROWS, s + rest - GDRI_COPY_NEAR_ROWS);
}

/* More than 64 bytes. */
GDR_DEVICE void gdri_copy_long(uint8_t *d, const uint8_t *s, size_t len)
{
	uint32_t head = (uint32_t)-(uint64_t)d & 15;

	if (((uint64_t)d ^ (uint64_t)s) & 15) {
		gdri_copy_thread_short(d, s, len);
		return;
	}
	if (((uint32_t)(uint64_t)d | (uint32_t)len) & 15) {
		gdri_copy_thread_ends(d, s, len);
		d += head;
		s += head;
		len -= head;
	}
	gdri_copy_thread_near((uint4 *)d, (const uint4 *)s, len >> 4);
}

typedef void (*gdri_copy_fn)(uint8_t *d, const uint8_t *s, size_t len);

/* odd: up to 8 bytes that are no word. */
GDR_DEVICE void gdri_copy_thread_by(gdri_copy_fn odd, void *dst, const void *src, size_t len)
{
	uint64_t at = (uint64_t)dst | (uint64_t)src;

	if (len == 8 && gdri_likely(!(at & 7)))
		*(uint64_t *)dst = *(const uint64_t *)src;
	else if (len == 4 && gdri_likely(!(at & 3)))
		*(uint32_t *)dst = *(const uint32_t *)src;
	else if (len <= 8)
		odd((uint8_t *)dst, (const uint8_t *)src, len);
	else if (len == 16 && !(at & 15))
		*(uint4 *)dst = *(const uint4 *)src;
	else if (!((at | len) & 15) && len <= 64)
		gdri_copy_thread_vectors((uint8_t *)dst, (const uint8_t *)src, len);
	else if (len <= 64)
		gdri_copy_thread_short((uint8_t *)dst, (const uint8_t *)src, len);
	else
		gdri_copy_long((uint8_t *)dst, (const uint8_t *)src, len);
}

GDR_DEVICE void gdri_copy_thread(void *dst, const void *src, size_t len)
{
	gdri_copy_thread_by(gdri_copy_thread_bytes, dst, src, len);
}

GDR_DEVICE void gdri_copy_thread_coll(void *dst, const void *src, size_t len)
{
	gdri_copy_thread_by(gdri_copy_thread_short, dst, src, len);
}

/* To a peer's memory. */
GDR_DEVICE void gdri_copy_word_first(void *dst, const void *src, size_t len)
{
	if (gdri_unlikely(!gdri_copy_if_word(dst, src, len)))
		gdri_copy_thread_by(gdri_copy_thread_bytes, dst, src, len);
}

/* ---- where registers count more than the last twentieth of the speed ----
 *
 * What kernels do when not all PEs are mapped: each of these is one of several ways, and a kernel takes the
 * registers of the dearest. */

GDR_DEVICE void gdri_copy_thread_lean(void *dst, const void *src, size_t len)
{
	if (len <= 64)
		gdri_copy_thread_short((uint8_t *)dst, (const uint8_t *)src, len);
	else
		gdri_copy_long((uint8_t *)dst, (const uint8_t *)src, len);
}

#endif
