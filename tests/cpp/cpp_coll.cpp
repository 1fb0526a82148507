/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives of gdr/gdr.hpp: each does what that of C does, of each type, by thread, warp, block and on a stream. */
#include "tests/multi/multi.h"
#include <gdr/gdr.hpp>

struct pair {
	short x;
	char y[4];
};

enum { AREA = 1024 }; /* bytes of dest and of source: blocks of all PEs */

struct coll {
	unsigned char *dest, *source;
	struct multi_report *report;
	int me, n;
};

/* For GPUs a type and a scope takes nvcc half a minute. */
#ifdef __CUDACC__
#define COLL_NUMBERS(X) X(int, int)
#define COLL_INTEGERS(X) X(int, int)
#define COLL_MORE(X)
#define COLL_WARP(what)
#else
#define COLL_WARP(what) what(_warp, 1);
#define COLL_NUMBERS(X) GDRI_CPP_TYPES(X)
#define COLL_INTEGERS(X) GDRI_CPP_INTEGERS(X)
#define COLL_MORE(X) GDR_HALF_TYPES(X)
#endif

/* What PE pe brings: 1 and 2 are in each type, as their product is. */
GDRI_INLINE int brought(int pe)
{
	return 1 + (pe & 1);
}

GDRI_INLINE int folded(char op, int n)
{
	int v = brought(0);

	for (int pe = 1; pe < n; pe++) {
		int b = brought(pe);

		v = op == '+' ? v + b : op == '*' ? v * b : op == '<' ? (v < b ? v : b) : op == '>' ? (v > b ? v : b)
		    : op == '&' ? v & b : op == '|' ? v | b : v ^ b;
	}
	return v;
}

GDRI_INLINE int sum_before(int n)
{
	return n ? folded('+', n) : 0;
}

/* One call, by `lead` threads of the block; dest[at] of it. */
#define MEET(lead, call, T, at, want)                                                              \
	do {                                                                                       \
		if (lead)                                                                          \
			EXPECT_OK(a->report, call);                                                \
		gdr_sync_block();                                                                  \
		if (gdr_thread_id() == 0) {                                                        \
			EXPECT_EQ(a->report, ((T *)a->dest)[at], want);                            \
			((T *)a->dest)[at] = (T)77;                                                \
		}                                                                                  \
		gdr_sync_block();                                                                  \
	} while (0)
#define W GDR_TEAM_WORLD

#define REDUCE(s, lead, name, op)                                                                  \
	MEET(lead, gdr::name##_reduce##s(W, d, v, 2), T, 1, folded(op, a->n));                     \
	MEET(lead, gdr::name##_reducescatter##s(W, d, v, 1), T, 0, folded(op, a->n))
#define NUMBER(s, lead)                                                                            \
	REDUCE(s, lead, sum, '+');                                                                 \
	REDUCE(s, lead, prod, '*');                                                                \
	REDUCE(s, lead, min, '<');                                                                 \
	REDUCE(s, lead, max, '>');                                                                 \
	MEET(lead, gdr::sum_inscan##s(W, d, v, 2), T, 1, folded('+', a->me + 1));                  \
	MEET(lead, gdr::sum_exscan##s(W, d, v, 2), T, 1, sum_before(a->me))
#define BITS(s, lead)                                                                              \
	REDUCE(s, lead, and, '&');                                                                 \
	REDUCE(s, lead, or, '|');                                                                  \
	REDUCE(s, lead, xor, '^')
/* Each element is what its PE brings. */
#define GATHER(s, lead)                                                                            \
	MEET(lead, gdr::broadcast##s(W, d, v, 2, a->n - 1), T, 1, brought(a->n - 1));              \
	MEET(lead, gdr::collect##s(W, d, v, 1), T, a->n - 1, brought(a->n - 1));                   \
	MEET(lead, gdr::fcollect##s(W, d, v, 2), T, 2 * a->n - 1, brought(a->n - 1));              \
	MEET(lead, gdr::alltoall##s(W, d, v, 2), T, 2 * a->n - 1, brought(a->n - 1));              \
	MEET(lead, gdr::alltoalls##s(W, d, v, 2, 1, 2), T, 4 * a->n - 2, brought(a->n - 1))
#define SCOPES(what)                                                                               \
	what(, gdr_thread_id() == 0);                                                              \
	COLL_WARP(what)                                                                            \
	what(_block, 1)

template <typename T> GDR_DEVICE void bring(const struct coll *a)
{
	gdr_sync_block();
	for (unsigned i = gdr_thread_id(); i < AREA / sizeof(T); i += gdr_block_size())
		((T *)a->source)[i] = (T)brought(a->me);
	gdr_sync_block();
}

template <typename T> MULTI_BODY void numbers(const struct coll *a)
{
	T *d = (T *)a->dest, *v = (T *)a->source;

	bring<T>(a);
	SCOPES(NUMBER);
	SCOPES(GATHER);
}

template <typename T> MULTI_BODY void integers(const struct coll *a)
{
	T *d = (T *)a->dest, *v = (T *)a->source;

	bring<T>(a);
	SCOPES(BITS);
}

#define RUN_NUMBERS(name, T) numbers<T>(&a);
#define RUN_INTEGERS(name, T) integers<T>(&a);
GDR_KERNEL(by_scope, struct coll, a)
{
	COLL_NUMBERS(RUN_NUMBERS)
	COLL_INTEGERS(RUN_INTEGERS)
	if (gdr_thread_id() == 0) {
		EXPECT_OK(a.report, gdr::barrier(W));
		EXPECT_OK(a.report, gdr::team_sync(W));
	}
	gdr_sync_block();
	EXPECT_OK(a.report, gdr::barrier_warp(W));
	EXPECT_OK(a.report, gdr::team_sync_warp(W));
	EXPECT_OK(a.report, gdr::barrier_block(W));
	EXPECT_OK(a.report, gdr::team_sync_block(W));
}

/* What has no name of C: a struct, in blocks of PEs. */
GDR_KERNEL(structs, struct coll, a)
{
	struct pair *d = (struct pair *)a.dest, *v = (struct pair *)a.source;

	for (int i = 0; i < 2 * a.n; i++) {
		v[i].x = (short)(100 * a.me + i);
		v[i].y[3] = (char)a.me;
	}
	EXPECT_OK(a.report, gdr::fcollect(W, d, v, 2));
	for (int pe = 0; pe < a.n; pe++)
		EXPECT_EQ(a.report, d[2 * pe + 1].x, 100 * pe + 1);
	EXPECT_OK(a.report, gdr::alltoall(W, d, v, 2));
	for (int pe = 0; pe < a.n; pe++) {
		EXPECT_EQ(a.report, d[2 * pe + 1].x, 100 * pe + 2 * a.me + 1);
		EXPECT_EQ(a.report, d[2 * pe + 1].y[3], pe);
	}
	EXPECT_OK(a.report, gdr::collect(W, d, v, (size_t)a.me));
	EXPECT_OK(a.report, gdr::broadcast(W, d, v, 2, 0));
	EXPECT_EQ(a.report, d[1].x, 1);
}

/* ---- on streams ---- */

template <typename T> static void put_there(const struct coll *a)
{
	T mine[AREA / sizeof(T)];

	for (T &v : mine)
		v = (T)brought(a->me);
	CHECK_OK(gdr_memcpy(a->source, mine, sizeof(mine)));
}

#define STREAM(call, T, at, want)                                                                  \
	do {                                                                                       \
		T got;                                                                             \
                                                                                                   \
		CHECK_OK(call);                                                                    \
		CHECK_OK(gdr_stream_sync(0));                                                      \
		CHECK_OK(gdr_memcpy(&got, (T *)a->dest + (at), sizeof(T)));                        \
		CHECK_EQ(got, want);                                                               \
		CHECK_OK(gdr_memset(a->dest, 77, AREA));                                           \
		CHECK_OK(gdr_barrier_all());                                                       \
	} while (0)
#define STREAM_REDUCE(name, op)                                                                    \
	STREAM(gdr::name##_reduce_on_stream(W, d, v, 2, 0), T, 1, folded(op, a->n));               \
	STREAM(gdr::name##_reducescatter_on_stream(W, d, v, 1, 0), T, 0, folded(op, a->n))

template <typename T> static void stream_numbers(const struct coll *a)
{
	T *d = (T *)a->dest, *v = (T *)a->source;

	put_there<T>(a);
	STREAM_REDUCE(sum, '+');
	STREAM_REDUCE(prod, '*');
	STREAM_REDUCE(min, '<');
	STREAM_REDUCE(max, '>');
	STREAM(gdr::sum_inscan_on_stream(W, d, v, 2, 0), T, 1, folded('+', a->me + 1));
	STREAM(gdr::sum_exscan_on_stream(W, d, v, 2, 0), T, 1, sum_before(a->me));
	STREAM(gdr::broadcast_on_stream(W, d, v, 2, a->n - 1, 0), T, 1, brought(a->n - 1));
	STREAM(gdr::collect_on_stream(W, d, v, 1, 0), T, a->n - 1, brought(a->n - 1));
	STREAM(gdr::fcollect_on_stream(W, d, v, 2, 0), T, 2 * a->n - 1, brought(a->n - 1));
	STREAM(gdr::alltoall_on_stream(W, d, v, 2, 0), T, 2 * a->n - 1, brought(a->n - 1));
	STREAM(gdr::alltoalls_on_stream(W, d, v, 2, 1, 2, 0), T, 4 * a->n - 2, brought(a->n - 1));
}

template <typename T> static void stream_integers(const struct coll *a)
{
	T *d = (T *)a->dest, *v = (T *)a->source;

	put_there<T>(a);
	STREAM_REDUCE(and, '&');
	STREAM_REDUCE(or, '|');
	STREAM_REDUCE(xor, '^');
}

/* Numbers of 16 bits: that they compile, and add. */
#define SUM_16(name, T)                                                                            \
	static void sum_##name(const struct coll *a)                                               \
	{                                                                                          \
		static const T one = {GDRI_ONE_##name};                                            \
		T *d = (T *)a->dest, *v = (T *)a->source, got;                                     \
                                                                                                   \
		CHECK_OK(gdr_memcpy(v, &one, sizeof(one)));                                        \
		CHECK_OK(gdr::max_reduce_on_stream(W, d, v, 1, 0));                                \
		CHECK_OK(gdr_stream_sync(0));                                                      \
		CHECK_OK(gdr_memcpy(&got, d, sizeof(got)));                                        \
		CHECK_EQ(got.bits, one.bits);                                                      \
	}
#define GDRI_ONE_half 0x3c00
#define GDRI_ONE_bfloat16 0x3f80
COLL_MORE(SUM_16)

#define STREAM_NUMBERS(name, T) stream_numbers<T>(&a);
#define STREAM_INTEGERS(name, T) stream_integers<T>(&a);
#define STREAM_16(name, T) sum_##name(&a);
int main(void)
{
	gdr::job job;
	struct coll a;

	CHECK_OK(job.status());
	multi_pe = job.my_pe();
	multi_n = job.n_pes();
	{
		gdr::object<unsigned char> dest(AREA), source(AREA);

		CHECK(dest && source);
		a = {dest.get(), source.get(), multi_report_new(), multi_pe, multi_n};
		RUN(by_scope, 1, 32, &a);
		RUN(structs, 1, 1, &a);
		COLL_NUMBERS(STREAM_NUMBERS)
		COLL_INTEGERS(STREAM_INTEGERS)
		COLL_MORE(STREAM_16)
		CHECK_OK(gdr::team_sync_on_stream(W, 0));
		CHECK_OK(gdr::barrier_on_stream(W, 0));
		CHECK_OK(gdr_stream_sync(0));
		multi_shared_free(a.report);
	}
	CHECK_EQ(gdr_errors(NULL, 0), 0);
	CHECK_OK(job.finalize());
	if (multi_pe == 0)
		printf("cpp_coll: all right on %d PEs\n", multi_n);
	return 0;
}
