/* SPDX-License-Identifier: BSD-3-Clause */
/* What the checked build refuses of collectives, with the line of the call; and reductions of half and
 * bfloat16 in every scope, on a stream too. */
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "tests/multi/multi.h"

#ifdef GDR_CHECKED
static struct gdr_error seen[32];
static int before;

static void told(int ret, int line)
{
	char where[64];

	CHECK_EQ(ret, -GDR_EINVAL);
	CHECK_EQ(gdr_errors(seen, 32), before + 1);
	snprintf(where, sizeof(where), "coll_refused.c:%d", line);
	CHECK(strstr(seen[before++].text, where));
}

#define TOLD(call) told(call, __LINE__)

/* All PEs make the same mistakes: none waits. */
static void refused(int *d, int *s)
{
	int own = 0, none = 50, n = multi_n, t = GDR_TEAM_WORLD;

	TOLD(gdr_int_broadcast(none, d, s, 1, 0));
	TOLD(gdr_int_broadcast(t, d, s, 1, n));
	TOLD(gdr_int_broadcast(t, d, s, 1, -1));
	TOLD(gdr_int_broadcast(t, &own, s, 1, 0));
	TOLD(gdr_int_fcollect(t, d, &own, 1));
	TOLD(gdr_int_fcollect(t, d, s, (size_t)1 << 60));
	TOLD(gdr_int_collect(t, d, (int *)((char *)s + 1), 1));
	TOLD(gdr_int_alltoall(t, d, d, 1));
	TOLD(gdr_int_alltoalls(t, d, s, 0, 1, 1));
	CHECK(strstr(seen[before - 1].text, "the stride of dest is 0, and has to be 1 at least"));
	TOLD(gdr_int_alltoalls(t, d, s, 1, -1, 1));
	CHECK(strstr(seen[before - 1].text, "the stride of source is -1, and has to be 1 at least"));
	TOLD(gdr_int_alltoalls(t, d, s, 1, (ptrdiff_t)1 << 40, 2));
	TOLD(gdr_int_sum_reduce(t, d + 1, d, 2));
	TOLD(gdr_int_max_reducescatter(t, d, s, (size_t)1 << 50));
	TOLD(gdr_int_sum_inscan(t, NULL, s, 1));
	TOLD(gdr_int_sum_exscan(-1, d, s, 1));
}
#endif

/* ---- half, bfloat16 ---- */

#define MANY 40 /* elements */

struct args {
	uint16_t *dst, *src;
	int which;
	struct multi_report *report;
};

#define SCOPED(name, T, suffix)                                                                    \
	(a->which == 0	 ? gdr_##name##_sum_reduce##suffix(GDR_TEAM_WORLD, (T *)a->dst,            \
							   (const T *)a->src, MANY)                \
	 : a->which == 1 ? gdr_##name##_prod_reduce##suffix(GDR_TEAM_WORLD, (T *)a->dst,           \
							    (const T *)a->src, MANY)               \
	 : a->which == 2 ? gdr_##name##_min_reduce##suffix(GDR_TEAM_WORLD, (T *)a->dst,            \
							   (const T *)a->src, MANY)                \
	 : a->which == 3 ? gdr_##name##_max_reduce##suffix(GDR_TEAM_WORLD, (T *)a->dst,            \
							   (const T *)a->src, MANY)                \
	 : a->which == 4 ? gdr_##name##_sum_reducescatter##suffix(GDR_TEAM_WORLD, (T *)a->dst,     \
								  (const T *)a->src, 2)            \
	 : a->which == 5 ? gdr_##name##_prod_reducescatter##suffix(GDR_TEAM_WORLD, (T *)a->dst,    \
								   (const T *)a->src, 2)           \
	 : a->which == 6 ? gdr_##name##_min_reducescatter##suffix(GDR_TEAM_WORLD, (T *)a->dst,     \
								  (const T *)a->src, 2)            \
			 : gdr_##name##_max_reducescatter##suffix(GDR_TEAM_WORLD, (T *)a->dst,     \
								  (const T *)a->src, 2))
#define ON_STREAM(name, T)                                                                         \
	static int stream_##name(const struct args *a)                                             \
	{                                                                                          \
		T *d = (T *)a->dst;                                                                \
		const T *s = (const T *)a->src;                                                    \
		int t = GDR_TEAM_WORLD;                                                            \
                                                                                                   \
		switch (a->which) {                                                                \
		case 0:                                                                            \
			return gdr_##name##_sum_reduce_on_stream(t, d, s, MANY, NULL);             \
		case 1:                                                                            \
			return gdr_##name##_prod_reduce_on_stream(t, d, s, MANY, NULL);            \
		case 2:                                                                            \
			return gdr_##name##_min_reduce_on_stream(t, d, s, MANY, NULL);             \
		case 3:                                                                            \
			return gdr_##name##_max_reduce_on_stream(t, d, s, MANY, NULL);             \
		case 4:                                                                            \
			return gdr_##name##_sum_reducescatter_on_stream(t, d, s, 2, NULL);         \
		case 5:                                                                            \
			return gdr_##name##_prod_reducescatter_on_stream(t, d, s, 2, NULL);        \
		case 6:                                                                            \
			return gdr_##name##_min_reducescatter_on_stream(t, d, s, 2, NULL);         \
		default:                                                                           \
			return gdr_##name##_max_reducescatter_on_stream(t, d, s, 2, NULL);         \
		}                                                                                  \
	}                                                                                          \
	GDR_DEVICE int call_##name(const struct args *a, int scope)                                \
	{                                                                                          \
		return scope == 0   ? SCOPED(name, T, )                                            \
		       : scope == 1 ? SCOPED(name, T, _warp)                                       \
				    : SCOPED(name, T, _block);                                     \
	}                                                                                          \
	GDR_KERNEL(thread_##name, struct args, a)                                                  \
	{                                                                                          \
		EXPECT_OK(a.report, call_##name(&a, 0));                                           \
	}                                                                                          \
	GDR_KERNEL(warp_##name, struct args, a)                                                    \
	{                                                                                          \
		EXPECT_OK(a.report, call_##name(&a, 1));                                           \
	}                                                                                          \
	GDR_KERNEL(block_##name, struct args, a)                                                   \
	{                                                                                          \
		EXPECT_OK(a.report, call_##name(&a, 2));                                           \
	}
GDR_HALF_TYPES(ON_STREAM)

/* Whole numbers up to 8, as both types write them: mantissas of m bits. */
static uint16_t number(int v, int m, int bias)
{
	int e = v ? 31 - __builtin_clz((unsigned)v) : 0;

	return v ? (uint16_t)((e + bias) << m | (v - (1 << e)) << m >> e) : 0;
}

static int value(int pe, int k)
{
	return 1 + (int)(multi_hash((uint64_t)pe * 1000 + (uint64_t)k) % 2);
}

/* Sums to 16, products to 2^8: exact in both types. */
static int expected(int which, int k)
{
	int v = value(0, k);

	for (int pe = 1; pe < multi_n; pe++) {
		int x = value(pe, k);

		v = which % 4 == 0 ? v + x : which % 4 == 1 ? v * x : which % 4 == 2 ? (x < v ? x : v)
								    : (x > v ? x : v);
	}
	return v;
}

static void look(const struct args *a, int m, int bias)
{
	uint16_t got[MANY];
	int n = a->which < 4 ? MANY : 2;

	CHECK_OK(gdr_memcpy(got, a->dst, sizeof(got)));
	for (int k = 0; k < n; k++)
		CHECK_EQ(got[k], number(expected(a->which, a->which < 4 ? k : 2 * multi_pe + k), m, bias));
	multi_fill(a->dst, MULTI_POISON, sizeof(got));
}

static void fill(const struct args *a, int m, int bias)
{
	uint16_t v[MANY];

	for (int k = 0; k < MANY; k++)
		v[k] = number(value(multi_pe, k), m, bias);
	CHECK_OK(gdr_memcpy(a->src, v, sizeof(v)));
}

#define TYPE(name, m, bias)                                                                        \
	do {                                                                                       \
		fill(&a, m, bias);                                                                 \
		for (a.which = 0; a.which < 8; a.which++) {                                        \
			RUN(thread_##name, 1, 1, &a);                                              \
			look(&a, m, bias);                                                         \
			RUN(warp_##name, 1, 32, &a);                                               \
			look(&a, m, bias);                                                         \
			RUN(block_##name, 1, 64, &a);                                              \
			look(&a, m, bias);                                                         \
			CHECK_OK(stream_##name(&a));                                               \
			CHECK_OK(gdr_stream_sync(NULL));                                           \
			look(&a, m, bias);                                                         \
		}                                                                                  \
	} while (0)

int main(void)
{
	struct args a;

	multi_begin();
	a.dst = (uint16_t *)gdr_calloc(MANY, sizeof(uint16_t));
	a.src = (uint16_t *)gdr_calloc(MANY, sizeof(uint16_t));
	a.report = multi_report_new();
	CHECK(a.dst && a.src);
	TYPE(half, 10, 15);
	TYPE(bfloat16, 7, 127);
	CHECK_EQ(gdr_errors(NULL, 0), 0);
#ifdef GDR_CHECKED
	refused((int *)a.dst, (int *)a.src + 8);
	(void)gdr_host_quiet();
#endif
	multi_shared_free(a.report);
	CHECK_OK(gdr_finalize());
	if (!multi_pe)
		printf("coll_refused: all right on %d PEs\n", multi_n);
	return 0;
}
