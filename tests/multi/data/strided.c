/* SPDX-License-Identifier: BSD-3-Clause */
/* iput, iget, ibput, ibget of every RMA type and size, blocking and nbi, as a thread, a warp and a block
 * call them. Each call has a stretch of its own; what is not an element of it keeps its poison. */
#include "tests/multi/multi.h"

enum { IPUT, IPUT_NBI, IBPUT, IBPUT_NBI, IGET, IGET_NBI, IBGET, IBGET_NBI, OPS };
enum { THREAD, WARP, BLOCK, SCOPES };

#define THREADS 64u
#define CALLERS 6u /* single threads that call */
#define UNITS (CALLERS + THREADS / 32 + 1)
#define STRETCH 24u /* elements */
#define ELEMS (OPS / 2 * UNITS * STRETCH)
#define AREA (ELEMS * 16u)

struct strided {
	uint8_t *dst, *src, *back;
	int type, pe;
	uint64_t seed; /* of pe's src */
	struct multi_report *report;
};

#define NUMBER_SIZE(bits, bytes) TYPE_size##bits,
enum { MULTI_RMA_TYPES(MULTI_NUMBER) MULTI_MORE_TYPES(MULTI_NUMBER) MULTI_SIZES(NUMBER_SIZE) TYPE_LONG };

/* What the calls move: blocks of elements from..., each step elements behind the one before. */
struct shape {
	int n, bsize, dst0, dst, src0, sst;
};

GDRI_INLINE struct shape shape_of(int op)
{
	const struct shape single = {5, 1, 1, 2, 0, 3}, blocks = {4, 2, 1, 5, 12, -3};

	return op == IPUT || op == IPUT_NBI || op == IGET || op == IGET_NBI ? single : blocks;
}

typedef int strided_call(int op, int scope, void *dst, const void *src, const struct shape *s, int pe);

GDRI_INLINE size_t stretch(int op, unsigned unit)
{
	return ((unsigned)(op % (OPS / 2)) * UNITS + unit) * STRETCH;
}

/* A blocking get has the data, of all threads of the scope, when it returns. */
GDR_DEVICE void got(const struct strided *a, const struct shape *s, size_t at, size_t size)
{
	for (int i = 0; i < s->n; i++)
		for (size_t b = 0; b < (size_t)s->bsize * size; b++) {
			size_t from = (at + (size_t)(s->src0 + i * s->sst)) * size + b;
			size_t to = (at + (size_t)(s->dst0 + i * s->dst)) * size + b;

			EXPECT_EQ(a->report, a->back[to], multi_byte(a->seed, from));
		}
}

GDR_DEVICE void all_forms(const struct strided *a, strided_call *call, size_t size)
{
	unsigned t = gdr_thread_id();
	const unsigned unit[SCOPES] = {t, CALLERS + t / 32, CALLERS + THREADS / 32};

	for (int op = 0; op < OPS; op++)
		for (int scope = 0; scope < SCOPES; scope++) {
			struct shape s = shape_of(op);
			size_t at = stretch(op, unit[scope]);
			uint8_t *dst = op < IGET ? a->dst : a->back;

			if (scope == THREAD && t >= CALLERS)
				continue;
			EXPECT_OK(a->report,
				  call(op, scope, dst + (at + (size_t)s.dst0) * size,
				       a->src + (at + (size_t)s.src0) * size, &s, a->pe));
			if (op == IGET || op == IBGET)
				got(a, &s, at, size);
		}
	gdr_sync_block();
	if (t == 0)
		EXPECT_OK(a->report, gdr_quiet());
}

#define CASES(pre, z, op, OP, scope, suffix)                                                       \
	case (I##OP) * SCOPES + (scope):                                                           \
		return gdr_##pre##i##op##z##suffix(dst, src, s->dst, s->sst, (size_t)s->n, pe);    \
	case (I##OP##_NBI) * SCOPES + (scope):                                                     \
		return gdr_##pre##i##op##z##_nbi##suffix(dst, src, s->dst, s->sst, (size_t)s->n,   \
							 pe);                                      \
	case (IB##OP) * SCOPES + (scope):                                                          \
		return gdr_##pre##ib##op##z##suffix(dst, src, s->dst, s->sst, (size_t)s->bsize,    \
						    (size_t)s->n, pe);                             \
	case (IB##OP##_NBI) * SCOPES + (scope):                                                    \
		return gdr_##pre##ib##op##z##_nbi##suffix(dst, src, s->dst, s->sst,                \
							  (size_t)s->bsize, (size_t)s->n, pe);
#define SCOPE_CASES(pre, z, scope, suffix)                                                         \
	CASES(pre, z, put, PUT, scope, suffix) CASES(pre, z, get, GET, scope, suffix)
#define DEFINE_ANY(name, pre, z, size, T)                                                          \
	GDR_DEVICE int call_##name(int op, int scope, void *to, const void *from,                  \
				   const struct shape *s, int pe)                                  \
	{                                                                                          \
		T *dst = (T *)to;                                                                  \
		const T *src = (const T *)from;                                                    \
                                                                                                   \
		switch (op * SCOPES + scope) {                                                     \
			SCOPE_CASES(pre, z, THREAD, )                                              \
			SCOPE_CASES(pre, z, WARP, _warp)                                           \
			SCOPE_CASES(pre, z, BLOCK, _block)                                         \
		default:                                                                           \
			return 1;                                                                  \
		}                                                                                  \
	}                                                                                          \
	MULTI_BODY void test_##name(const struct strided *a)                                       \
	{                                                                                          \
		all_forms(a, call_##name, size);                                                   \
	}
#define DEFINE(name, T) DEFINE_ANY(name, name##_, , sizeof(T), T)
#define DEFINE_SIZE(bits, bytes) DEFINE_ANY(size##bits, , bits, bytes, void)
MULTI_RMA_TYPES(DEFINE)
MULTI_MORE_TYPES(DEFINE)
MULTI_SIZES(DEFINE_SIZE)

/* Blocks so long that the threads of a block share each; none at all. */
MULTI_BODY void long_blocks(const struct strided *a)
{
	EXPECT_OK(a->report, gdr_ibput8_block(a->dst, a->src, 2000, 1500, 1501, 2, a->pe));
	EXPECT_OK(a->report, gdr_ibget8_block(a->back, a->src, 1600, 1700, 1100, 3, a->pe));
	EXPECT_OK(a->report, gdr_iput64_block(a->dst, a->src, 1, 1, 0, a->pe));
	EXPECT_OK(a->report, gdr_ibget32_warp(a->dst, a->src, 1, 1, 0, 7, a->pe));
}

#define CASE_SIZE(bits, bytes) MULTI_CASE(size##bits, )
GDR_KERNEL(forms, struct strided, a)
{
	switch (a.type) {
		MULTI_RMA_TYPES(MULTI_CASE)
		MULTI_MORE_TYPES(MULTI_CASE)
		MULTI_SIZES(CASE_SIZE)
	default:
		long_blocks(&a);
	}
}

/* The source element of each element of an area, or -1: poison. */
static int origin[ELEMS];

static void plan(void)
{
	memset(origin, 0xff, sizeof(origin));
	for (int op = 0; op < OPS / 2; op++)
		for (unsigned u = 0; u < UNITS; u++) {
			struct shape s = shape_of(op);
			int at = (int)stretch(op, u);

			for (int k = 0; k < s.n * s.bsize; k++) {
				int i = k / s.bsize, e = k % s.bsize;

				origin[at + s.dst0 + i * s.dst + e] = at + s.src0 + i * s.sst + e;
			}
		}
}

static void verify(const uint8_t *where, uint64_t seed, size_t size, const char *type)
{
	uint8_t *area = (uint8_t *)multi_copy(where, AREA);

	for (size_t i = 0; i < AREA; i++) {
		int from = i / size < ELEMS ? origin[i / size] : -1;
		uint8_t want = from < 0 ? MULTI_POISON
					: multi_byte(seed, (size_t)from * size + i % size);

		if (area[i] != want)
			multi_fail(__FILE__, __LINE__, "%s: byte %zu is %02x, not %02x", type, i,
				   area[i], want);
	}
	free(area);
}

static void prepare(struct strided *a, int shift)
{
	static uint8_t image[AREA];

	a->pe = (multi_pe + shift) % multi_n;
	a->seed = 99 + (uint64_t)a->pe;
	multi_fill(a->dst, MULTI_POISON, AREA);
	multi_fill(a->back, MULTI_POISON, AREA);
	for (unsigned i = 0; i < AREA; i++)
		image[i] = multi_byte(99 + (uint64_t)multi_pe, i);
	CHECK_OK(gdr_memcpy(a->src, image, AREA));
	CHECK_OK(gdr_barrier_all());
}

static void conclude(const struct strided *a, int shift, size_t size, const char *type)
{
	CHECK_OK(gdr_barrier_all());
	verify(a->dst, 99 + (uint64_t)((multi_pe + multi_n - shift) % multi_n), size, type);
	verify(a->back, a->seed, size, type);
	CHECK_OK(gdr_barrier_all());
}

static void run_long(struct strided *a)
{
	uint8_t *dst, *back;

	prepare(a, multi_n - 1);
	a->type = TYPE_LONG;
	RUN(forms, 1, THREADS, a);
	CHECK_OK(gdr_barrier_all());
	dst = (uint8_t *)multi_copy(a->dst, 6000);
	back = (uint8_t *)multi_copy(a->back, 6000);
	for (unsigned i = 0; i < 6000; i++) {
		uint64_t from = 99 + (uint64_t)((multi_pe + 1) % multi_n);
		int put = i < 4000 && i % 2000 < 1501, get = i < 4800 && i % 1600 < 1100;

		CHECK_EQ(dst[i], put ? multi_byte(from, i / 2000 * 1500 + i % 2000) : MULTI_POISON);
		CHECK_EQ(back[i],
			 get ? multi_byte(a->seed, i / 1600 * 1700 + i % 1600) : MULTI_POISON);
	}
	free(dst);
	free(back);
	CHECK_OK(gdr_barrier_all());
}

#define RUN_ONE(name, T) RUN_ANY(name, sizeof(T))
#define RUN_SIZE(bits, bytes) RUN_ANY(size##bits, bytes)
#define RUN_ANY(name, size)                                                                        \
	shift = (shift + 1) % multi_n;                                                             \
	prepare(&a, shift);                                                                        \
	a.type = TYPE_##name;                                                                      \
	RUN(forms, 1, THREADS, &a);                                                                \
	conclude(&a, shift, size, #name);

int main(void)
{
	struct strided a = {0};
	int shift = 0;

	multi_begin();
	plan();
	a.report = multi_report_new();
	a.dst = (uint8_t *)gdr_malloc(AREA);
	a.src = (uint8_t *)gdr_malloc(AREA);
	a.back = (uint8_t *)gdr_malloc(AREA);
	CHECK(a.dst && a.src && a.back);
	MULTI_RMA_TYPES(RUN_ONE)
	MULTI_MORE_TYPES(RUN_ONE)
	MULTI_SIZES(RUN_SIZE)
	run_long(&a);
	multi_shared_free(a.report);
	return multi_end("strided");
}
