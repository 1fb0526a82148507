/* SPDX-License-Identifier: BSD-3-Clause */
/* The typed forms of every RMA type: put, get, p, g, blocking and nbi, with
 * values that fill all bits, and the words beside them untouched. */
#include "tests/multi/multi.h"

#define N 5

#ifdef MULTI_PART
#define TYPES(X) MULTI_RMA_TYPES(X)
#else
#define TYPES(X) GDR_RMA_TYPES(X)
#endif

struct typed {
	uint8_t *dst, *src;
	int type, pe, from;
	uint64_t seed;
	struct multi_report *report;
};

enum { TYPES(MULTI_NUMBER) MULTI_MORE_TYPES(MULTI_NUMBER) TYPE_COUNT };

/* Value i of the type at p, from the random stream. */
#define VALUE(T, seed, i, out)                                                                     \
	do {                                                                                       \
		uint64_t bits[2] = {multi_hash((seed) + (i)) & 0x7f7f7f7f7f7f7f7fu};               \
		bits[1] = bits[0] ^ 0x0f1e2d3c4b5a6978u;                                           \
		memcpy(&(out), bits, sizeof(T));                                                   \
	} while (0)

/* A long double of x86 is 10 bytes, and 6 that are not copied with it. */
#define BYTES(T) (sizeof(T) == 16 && __alignof__(T) == 16 ? 10 : sizeof(T))

/* Puts N values behind one word of poison, then one by p; reads them back. */
#define DEFINE(name, T)                                                                            \
	MULTI_BODY void test_##name(const struct typed *a)                                         \
	{                                                                                          \
		T *dst = (T *)a->dst, *src = (T *)a->src, value, back[N + 3];                      \
		T poison;                                                                          \
		memset(&poison, MULTI_POISON, sizeof(poison));                                     \
		for (int i = 0; i < N; i++)                                                        \
			VALUE(T, a->seed, (uint64_t)i, src[i]);                                    \
		EXPECT_OK(a->report, gdr_##name##_put(dst + 1, src, N - 1, a->pe));                \
		EXPECT_OK(a->report, gdr_##name##_put_nbi(dst + N, src + N - 1, 1, a->pe));        \
		VALUE(T, a->seed, 99, value);                                                      \
		EXPECT_OK(a->report, gdr_##name##_p(dst + N + 1, value, a->pe));                   \
		EXPECT_OK(a->report, gdr_quiet());                                                 \
		for (int i = 0; i < N + 3; i++) {                                                  \
			T want, got = gdr_##name##_g(dst + i, a->pe);                              \
			if (i == 0 || i == N + 2)                                                  \
				want = poison;                                                     \
			else                                                                       \
				VALUE(T, a->seed, i == N + 1 ? 99 : (uint64_t)(i - 1), want);      \
			EXPECT_EQ(a->report, multi_differ(&got, &want, BYTES(T)), 0);              \
			memcpy(back + i, &want, sizeof(T));                                        \
		}                                                                                  \
		EXPECT_OK(a->report, gdr_##name##_get(src + N, dst, N + 3, a->pe));                \
		for (int i = 0; i < N + 3; i++)                                                    \
			EXPECT_EQ(a->report, multi_differ(src + N + i, back + i, BYTES(T)), 0);    \
		memset(src + N, 0, sizeof(back));                                                  \
		EXPECT_OK(a->report, gdr_##name##_get_nbi(src + N, dst, N + 3, a->pe));            \
		EXPECT_OK(a->report, gdr_quiet());                                                 \
		for (int i = 0; i < N + 3; i++)                                                    \
			EXPECT_EQ(a->report, multi_differ(src + N + i, back + i, BYTES(T)), 0);    \
		EXPECT_OK(a->report, gdr_status());                                                \
	}
TYPES(DEFINE)
MULTI_MORE_TYPES(DEFINE)

GDR_KERNEL(one_by_one, struct typed, a)
{
	switch (a.type) {
		TYPES(MULTI_CASE)
		MULTI_MORE_TYPES(MULTI_CASE)
	}
}

#define RUN_ONE(name, T)                                                                           \
	for (int shift = 0; shift < multi_n; shift++) {                                            \
		a.pe = (multi_pe + shift) % multi_n;                                               \
		a.seed = multi_hash((uint64_t)(sizeof(T) * 4096 + (unsigned)multi_pe));            \
		multi_fill(a.dst, MULTI_POISON, 256);                                              \
		CHECK_OK(gdr_barrier_all());                                                       \
		a.type = TYPE_##name;                                                              \
		RUN(one_by_one, 1, 1, &a);                                                         \
		CHECK_OK(gdr_barrier_all());                                                       \
	}

int main(void)
{
	struct typed a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.dst = (uint8_t *)gdr_malloc(256);
	a.src = (uint8_t *)gdr_malloc(256);
	CHECK(a.dst && a.src);
	TYPES(RUN_ONE)
	MULTI_MORE_TYPES(RUN_ONE)
	multi_shared_free(a.report);
	return multi_end("typed");
}
