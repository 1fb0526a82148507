/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of host threads by type (gdr/host_ops.h): every type, size and operation, over all PEs, and what a team
 * of some of them has. All looks at own memory are transfers: it may be a GPU's. C and C++. */
#include "tests/multi/multi.h"

#include <gdr/host_ops.h>

enum { K = 3, MOST = 8 }; /* elements of a PE; PEs */
enum { SRC = 4096, AREA = 8192 };

static uint8_t *heap; /* dest; source at SRC */
static uint8_t got[SRC], want[SRC];

/* Byte i of element `at` of PE pe's source: in no floating format a NaN. */
static uint8_t sent(int pe, size_t size, size_t at, size_t i)
{
	return (uint8_t)((multi_byte((uint64_t)pe + 5, at * size + i) & 0x3f) | 1);
}

static void set_source(const void *from, size_t len)
{
	CHECK_OK(gdr_barrier_all());
	multi_fill(heap, 0, SRC);
	CHECK_OK(gdr_host_put(heap + SRC, from, len, multi_pe));
	memset(want, 0, sizeof(want));
	CHECK_OK(gdr_barrier_all());
}

static void dest_is(size_t len)
{
	CHECK_OK(gdr_host_get(got, heap, len, multi_pe));
	CHECK(!multi_differ(got, want, len));
}

static void send_elements(size_t size, size_t n)
{
	static uint8_t from[SRC];

	for (size_t i = 0; i < n * size; i++)
		from[i] = sent(multi_pe, size, i / size, i % size);
	set_source(from, n * size);
}

/* Element `to` of dest is element `at` of PE pe. */
static void expect(size_t size, size_t to, int pe, size_t at)
{
	for (size_t i = 0; i < size; i++)
		want[to * size + i] = sent(pe, size, at, i);
}

/* Each block of K, or of K + pe where PEs send different numbers; PE i's block `block`. */
static void expect_blocks(size_t size, int more, int block)
{
	size_t to = 0;

	for (int pe = 0; pe < multi_n; pe++)
		for (size_t k = 0; k < (size_t)(K + more * pe); k++)
			expect(size, to++, pe, (size_t)(block * K) + k);
}

#define MOVE(name, pre, z, T, E)                                                                   \
	static void move_##name(void)                                                              \
	{                                                                                          \
		T *dst = (T *)(void *)heap, *src = (T *)(void *)(heap + SRC);                      \
		size_t all = (size_t)multi_n * K, k;                                               \
		int root = multi_n - 1;                                                            \
                                                                                                   \
		send_elements(E, K);                                                               \
		CHECK_OK(gdr_host_##pre##broadcast##z(GDR_TEAM_WORLD, dst, src, K, root));         \
		for (k = 0; k < K; k++)                                                            \
			expect(E, k, root, k);                                                     \
		dest_is(SRC);                                                                      \
		send_elements(E, K);                                                               \
		CHECK_OK(gdr_host_##pre##fcollect##z(GDR_TEAM_WORLD, dst, src, K));                \
		expect_blocks(E, 0, 0);                                                            \
		dest_is(SRC);                                                                      \
		send_elements(E, (size_t)(K + multi_pe));                                          \
		CHECK_OK(gdr_host_##pre##collect##z(GDR_TEAM_WORLD, dst, src, (size_t)(K + multi_pe))); \
		expect_blocks(E, 1, 0);                                                            \
		dest_is(SRC);                                                                      \
		send_elements(E, all);                                                             \
		CHECK_OK(gdr_host_##pre##alltoall##z(GDR_TEAM_WORLD, dst, src, K));                \
		expect_blocks(E, 0, multi_pe);                                                     \
		dest_is(SRC);                                                                      \
		send_elements(E, 2 * all);                                                         \
		CHECK_OK(gdr_host_##pre##alltoalls##z(GDR_TEAM_WORLD, dst, src, 3, 2, K));         \
		for (k = 0; k < all; k++)                                                          \
			expect(E, 3 * k, (int)(k / K), 2 * ((size_t)multi_pe * K + k % K));        \
		dest_is(SRC);                                                                      \
	}
#define MOVE_TYPE(name, T) MOVE(name, name##_, , T, sizeof(T))
#define MOVE_SIZE(bits, bytes) MOVE(bits, , bits, void, bytes)
GDRI_HOST_RMA_TYPES(MOVE_TYPE)
GDR_RMA_SIZES(MOVE_SIZE)
MOVE(mem, , mem, void, 1)

/* What PE pe sends, small enough for sums and products of eight in what counts as a number: 1 or 2. */
static int number(int pe, size_t at)
{
	return 1 + (int)(multi_byte((uint64_t)pe, at) & 1);
}


#define PUT_NUMBER(p, T, r) (*(p) = (T)(r))
/* Whole numbers up to 256 in 16 bits. */
static uint16_t half_bits(int r)
{
	unsigned int e = 0;

	if (!r)
		return 0;
	while (r >> (e + 1))
		e++;
	return (uint16_t)((15u + e) << 10 | (((unsigned int)r << 10 >> e) & 0x3ffu));
}

static uint16_t bfloat16_bits(int r)
{
	float f = (float)r;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

static void put_bits(void *p, uint16_t bits)
{
	memcpy(p, &bits, sizeof(bits));
}
#define PUT_half(p, T, r) put_bits(p, half_bits(r))
#define PUT_bfloat16(p, T, r) put_bits(p, bfloat16_bits(r))

/* put: a number as a T; combine: r, the result so far, and v. */
#define REDUCED(name, T, op, put, begin, combine)                                                  \
	static void op##_##name(void)                                                              \
	{                                                                                          \
		T *dst = (T *)(void *)heap, *src = (T *)(void *)(heap + SRC), from[K * MOST], *w = (T *)(void *)want; \
		size_t all = (size_t)multi_n * K, first = (size_t)multi_pe * K;                    \
		int r, v;                                                                          \
                                                                                                   \
		for (size_t k = 0; k < all; k++)                                                   \
			put(from + k, T, number(multi_pe, k));                                     \
		for (int scatter = 0; scatter < 2; scatter++) {                                    \
			set_source(from, all * sizeof(T));                                         \
			if (scatter)                                                               \
				CHECK_OK(gdr_host_##name##_##op##_reducescatter(GDR_TEAM_WORLD, dst, src, K)); \
			else                                                                       \
				CHECK_OK(gdr_host_##name##_##op##_reduce(GDR_TEAM_WORLD, dst, src, all)); \
			for (size_t k = 0; k < (scatter ? (size_t)K : all); k++) {                         \
				r = begin;                                                         \
				for (int pe = 0; pe < multi_n; pe++, r = combine)                  \
					v = number(pe, scatter ? first + k : k);                   \
				put(w + k, T, r);                                                  \
			}                                                                          \
			dest_is(SRC);                                                              \
		}                                                                                  \
	}
#define SCANNED(name, T, op, last)                                                                 \
	static void op##_##name(void)                                                              \
	{                                                                                          \
		T *dst = (T *)(void *)heap, *src = (T *)(void *)(heap + SRC), from[K], *w = (T *)(void *)want; \
                                                                                                   \
		for (size_t k = 0; k < K; k++)                                                     \
			from[k] = (T)number(multi_pe, k);                                          \
		set_source(from, sizeof(from));                                                    \
		CHECK_OK(gdr_host_##name##_sum_##op(GDR_TEAM_WORLD, dst, src, K));                 \
		for (size_t k = 0; k < K; k++)                                                     \
			for (int pe = 0; pe < (last); pe++)                                        \
				w[k] = (T)(w[k] + (T)number(pe, k));                               \
		dest_is(SRC);                                                                      \
	}
#define REDUCED_ALL(name, T, put)                                                                  \
	REDUCED(name, T, sum, put, 0, r + v)                                                       \
	REDUCED(name, T, prod, put, 1, r * v)                                                      \
	REDUCED(name, T, min, put, 9, r < v ? r : v)                                               \
	REDUCED(name, T, max, put, 0, r > v ? r : v)
#define REDUCED_TYPE(name, T)                                                                      \
	REDUCED_ALL(name, T, PUT_NUMBER)                                                           \
	SCANNED(name, T, inscan, multi_pe + 1)                                                     \
	SCANNED(name, T, exscan, multi_pe)
#define REDUCED_BITS(name, T)                                                                      \
	REDUCED(name, T, and, PUT_NUMBER, 3, r & v)                                                \
	REDUCED(name, T, or, PUT_NUMBER, 0, r | v)                                                 \
	REDUCED(name, T, xor, PUT_NUMBER, 0, r ^ v)
#define REDUCED_HALF(name, T) REDUCED_ALL(name, T, PUT_##name)
GDR_RMA_TYPES(REDUCED_TYPE)
GDR_INTEGER_TYPES(REDUCED_BITS)
GDRI_HOST_HALF_TYPES(REDUCED_HALF)

/* Who waits, and for whom: each tells of itself before, and sees all behind. */
static void syncs(void)
{
	uint64_t *word = (uint64_t *)(void *)heap;
	gdr_team_t team;

	CHECK_OK(gdr_barrier_all());
	multi_fill(heap, 0, 64);
	CHECK_OK(gdr_host_sync_all());
	for (int pe = 0; pe < multi_n; pe++)
		CHECK_OK(gdr_host_uint64_atomic_inc(word, pe));
	CHECK_OK(gdr_host_barrier(GDR_TEAM_WORLD));
	CHECK_EQ(gdr_host_uint64_g(word, multi_pe), multi_n);
	CHECK_OK(gdr_host_team_sync(GDR_TEAM_WORLD));
	CHECK_OK(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 2, (multi_n + 1) / 2, NULL, 0, &team));
	if (multi_pe % 2 == 0) {
		CHECK_OK(gdr_host_uint64_atomic_add(word, 3, 0));
		CHECK_OK(gdr_host_barrier(team));
		CHECK_EQ(gdr_host_uint64_g(word, 0), multi_n + (multi_n + 1) / 2 * 3);
		CHECK_OK(gdr_host_team_sync(team));
		CHECK_OK(gdr_team_destroy(team));
	}
	CHECK_OK(gdr_barrier_all());
}

static void refused(void)
{
	int *o = (int *)(void *)heap, outside = 0;

	CHECK_EQ(gdr_host_barrier(77), -GDR_EINVAL);
	CHECK_EQ(gdr_host_team_sync(-1), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_broadcast(GDR_TEAM_WORLD, o, o, 1, multi_n), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_fcollect(77, o, o, 1), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_alltoall(GDR_TEAM_WORLD, o, &outside, 1), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_alltoalls(GDR_TEAM_WORLD, o, o + SRC / 4, 0, 1, 1), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_sum_reduce(GDR_TEAM_WORLD, o, o + 1, 4), -GDR_EINVAL); /* overlap */
	CHECK_OK(gdr_host_int_sum_reduce(GDR_TEAM_WORLD, NULL, NULL, 0));
}

#define DO_MOVE(name, T) move_##name();
#define DO_ALL(name, T)                                                                            \
	sum_##name();                                                                              \
	prod_##name();                                                                             \
	min_##name();                                                                              \
	max_##name();
#define DO_TYPE(name, T)                                                                           \
	DO_ALL(name, T)                                                                            \
	inscan_##name();                                                                           \
	exscan_##name();
#define DO_BITS(name, T)                                                                           \
	and_##name();                                                                              \
	or_##name();                                                                               \
	xor_##name();

int main(void)
{
	CHECK_EQ(gdr_host_sync_all(), -GDR_ESTATE);
	CHECK_EQ(gdr_host_int_sum_reduce(GDR_TEAM_WORLD, NULL, NULL, 1), -GDR_ESTATE);
	multi_begin();
	CHECK(multi_n <= MOST);
	heap = (uint8_t *)gdr_calloc(1, AREA);
	CHECK(heap);
	GDRI_HOST_RMA_TYPES(DO_MOVE)
	GDR_RMA_SIZES(DO_MOVE)
	move_mem();
	GDR_RMA_TYPES(DO_TYPE)
	GDR_INTEGER_TYPES(DO_BITS)
	GDRI_HOST_HALF_TYPES(DO_ALL)
	syncs();
	refused();
	CHECK_OK(gdr_free(heap));
	return multi_end("host_coll");
}
