/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on streams whose objects lie at odd places and have odd lengths, short and so long that many blocks
 * work on them: each way of GPUs' memory accesses, and what is behind the last whole one. */
#include "tests/multi/multi.h"

#define MOST 200003u /* elements */
#define TEAMS 7 /* more than have memory for pushes */
#define SHIFTS 3     /* elements that objects lie behind the beginning of a line */

static uint8_t *src, *dst;
static void *image;
static gdr_stream_t stream;
static uint64_t seed;
static int next_root;
static gdr_team_t team = GDR_TEAM_WORLD; /* or one of the same PEs */

static uint64_t number(int pe, size_t k)
{
	return (seed * 31 + (uint64_t)pe * 17 + k * 7 + (k >> 9)) % 101;
}

static uint64_t sum(int lo, int hi, size_t k)
{
	uint64_t s = 0;

	for (; lo < hi; lo++)
		s += number(lo, k);
	return s;
}

static uint64_t most(int lo, int hi, size_t k)
{
	uint64_t m = number(lo, k), x;

	for (lo++; lo < hi; lo++) {
		x = number(lo, k);
		m = x > m ? x : m;
	}
	return m;
}

static uint64_t bits(int lo, int hi, size_t k)
{
	uint64_t x = 0;

	for (; lo < hi; lo++)
		x ^= number(lo, k);
	return x;
}

static void settle(void)
{
	CHECK_OK(gdr_barrier_all_on_stream(stream));
	CHECK_OK(gdr_stream_sync(stream));
	CHECK_EQ(gdr_host_status(), 0);
}

/* One more element than belongs to the result is looked at: it is nobody's. */
#define LOOK(T, d, n, what, ...)                                                                   \
	do {                                                                                       \
		T *i_ = (T *)image;                                                                \
                                                                                                   \
		settle();                                                                          \
		CHECK_OK(gdr_memcpy(i_, d, ((n) + 1) * sizeof(T)));                                \
		for (size_t k = 0; k < (n); k++)                                                   \
			if (i_[k] != (T)(__VA_ARGS__))                                             \
				multi_fail(__FILE__, __LINE__, "%s of %zu %s at %p: element %zu is %.0f, not %.0f", \
					   what, (size_t)(n), #T, (void *)(d), k, (double)i_[k],   \
					   (double)(T)(__VA_ARGS__));                              \
		CHECK(i_[n] == (T)77);                                                             \
		CLEAR(T, d, n);                                                                    \
	} while (0)
#define CLEAR(T, d, n)                                                                             \
	do {                                                                                       \
		for (size_t k = 0; k <= (n); k++)                                                  \
			((T *)image)[k] = (T)77;                                                   \
		CHECK_OK(gdr_memcpy(d, image, ((n) + 1) * sizeof(T)));                             \
		CHECK_OK(gdr_barrier_all());                                                       \
	} while (0)

#define ODD(name, T, OP, op)                                                                       \
	static void odd_##name(size_t n, size_t at)                                                \
	{                                                                                          \
		T *d = (T *)dst + at, *s = (T *)src + (at ? SHIFTS - at : 0);                      \
		size_t b = n / (size_t)multi_n, me = (size_t)multi_pe;                             \
		int root = next_root++ % multi_n;                                                  \
                                                                                                   \
		seed++;                                                                            \
		for (size_t k = 0; k < n; k++)                                                     \
			((T *)image)[k] = (T)number(multi_pe, k);                                  \
		CHECK_OK(gdr_memcpy(s, image, n * sizeof(T)));                                     \
		CLEAR(T, d, n);                                                                    \
		CHECK_OK(gdr_##name##_##op##_reduce_on_stream(team, d, s, n, stream));                \
		LOOK(T, d, n, #op, OP(0, multi_n, k));                                             \
		CHECK_OK(gdr_##name##_##op##_reducescatter_on_stream(team, d, s, b, stream));         \
		LOOK(T, d, b, #op " reducescatter", OP(0, multi_n, me * b + k));                   \
		CHECK_OK(gdr_##name##_broadcast_on_stream(team, d, s, n, root, stream));              \
		LOOK(T, d, n, "broadcast", number(root, k));                                       \
		CHECK_OK(gdr_##name##_fcollect_on_stream(team, d, s, b, stream));                     \
		LOOK(T, d, b *(size_t)multi_n, "fcollect", number((int)(k / b), k % b));           \
		CHECK_OK(gdr_##name##_alltoall_on_stream(team, d, s, b, stream));                     \
		LOOK(T, d, b *(size_t)multi_n, "alltoall", number((int)(k / b), me * b + k % b));  \
		CHECK_OK(gdr_##name##_sum_inscan_on_stream(team, d, s, n, stream));                   \
		LOOK(T, d, n, "inscan", sum(0, multi_pe + 1, k));                                  \
		CHECK_OK(gdr_##name##_sum_exscan_on_stream(team, d, s, n, stream));                   \
		LOOK(T, d, n, "exscan", sum(0, multi_pe, k));                                      \
		CHECK_OK(gdr_##name##_##op##_reduce_on_stream(team, s, s, n, stream));                \
		LOOK_IN_PLACE(T, s, n, #op " in place", OP(0, multi_n, k));                        \
	}
/* What is behind it was never written. */
#define LOOK_IN_PLACE(T, d, n, what, ...)                                                          \
	do {                                                                                       \
		T *i_ = (T *)image;                                                                \
                                                                                                   \
		settle();                                                                          \
		CHECK_OK(gdr_memcpy(i_, d, (n) * sizeof(T)));                                      \
		for (size_t k = 0; k < (n); k++)                                                   \
			if (i_[k] != (T)(__VA_ARGS__))                                             \
				multi_fail(__FILE__, __LINE__, "%s of %zu %s: element %zu is %.0f, not %.0f", what, \
					   (size_t)(n), #T, k, (double)i_[k], (double)(T)(__VA_ARGS__)); \
	} while (0)

#define TYPES(X)                                                                                   \
	X(uint8, uint8_t, most, max)                                                               \
	X(uint16, uint16_t, bits, xor)                                                             \
	X(int, int, most, max)                                                                     \
	X(int64, int64_t, most, max)                                                               \
	X(float, float, sum, sum)                                                                  \
	X(double, double, most, max)
TYPES(ODD)

int main(void)
{
	static const size_t lengths[] = {1, 5, 1021, 65537, MOST};

	multi_begin();
	src = (uint8_t *)gdr_malloc((MOST + 16) * 8);
	dst = (uint8_t *)gdr_malloc((MOST + 16) * 8);
	image = malloc((MOST + 16) * 8);
	CHECK(src && dst && image);
	CHECK_OK(gdr_stream_create(&stream));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (size_t at = 0; at < SHIFTS; at++) {
			if (lengths[i] == MOST && at == 1)
				continue;
#define CALL(name, T, OP, op) odd_##name(lengths[i], at);
			TYPES(CALL)
		}
	for (int i = 0; i < TEAMS; i++) {
		CHECK_OK(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_n, NULL, 0, &team));
		odd_int(1021, 0);
		odd_double(65537, 2);
	}
	CHECK_OK(gdr_stream_destroy(stream));
	free(image);
	return multi_end("stream_odd");
}
