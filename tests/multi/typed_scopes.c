/* SPDX-License-Identifier: BSD-3-Clause */
/* The typed put and get of every RMA type as a thread, a warp and a block call
 * them, blocking and nbi, 64 threads at once: each unit has a stretch of its own
 * with one element of poison before and behind it. */
#include "tests/multi/multi.h"

enum { PUT, PUT_NBI, GET, GET_NBI, OPS };
enum { THREAD, WARP, BLOCK, SCOPES };

#define THREADS 64u

static const unsigned units[SCOPES] = {THREADS, THREADS / 32, 1}, elems[SCOPES] = {3, 37, 131};

#define AREA_ELEMS 480u /* of one operation: all its stretches */
#define AREA (2 * AREA_ELEMS * 8u)

struct typed {
	uint8_t *dst, *src, *back; /* two areas each: blocking and nbi */
	int pe;
	uint64_t seed; /* of pe's src */
	struct multi_report *report;
};

typedef int typed_call(int op, int scope, void *dst, const void *src, size_t n, int pe);

/* First element of a unit's stretch. */
GDR_DEVICE unsigned stretch(int nbi, int scope, unsigned unit)
{
	unsigned at = (unsigned)nbi * AREA_ELEMS + 1;

	for (int s = 0; s < scope; s++)
		at += units[s] * (elems[s] + 1);
	return at + unit * (elems[scope] + 1);
}

/* A blocking get has the data when it returns, for every thread of the unit. */
GDR_DEVICE void got(const struct typed *a, size_t at, size_t len)
{
	for (size_t i = at; i < at + len; i++)
		EXPECT_EQ(a->report, a->back[i], multi_byte(a->seed, i));
}

GDR_DEVICE void all_forms(const struct typed *a, typed_call *call, size_t size)
{
	unsigned t = gdr_thread_id();
	const unsigned unit[SCOPES] = {t, t / 32, 0};

	for (int op = 0; op < OPS; op++)
		for (int scope = 0; scope < SCOPES; scope++) {
			size_t at = stretch(op & 1, scope, unit[scope]) * size;
			uint8_t *dst = op < GET ? a->dst : a->back;

			EXPECT_OK(a->report,
				  call(op, scope, dst + at, a->src + at, elems[scope], a->pe));
			if (op == GET)
				got(a, at, elems[scope] * size);
		}
	gdr_sync_block();
	if (t == 0)
		EXPECT_OK(a->report, gdr_quiet());
}

#define SCOPE_CASES(name, scope, suffix)                                                           \
	case PUT * SCOPES + (scope):                                                               \
		return gdr_##name##_put##suffix(dst, src, n, pe);                                  \
	case PUT_NBI * SCOPES + (scope):                                                           \
		return gdr_##name##_put_nbi##suffix(dst, src, n, pe);                              \
	case GET * SCOPES + (scope):                                                               \
		return gdr_##name##_get##suffix(dst, src, n, pe);                                  \
	case GET_NBI * SCOPES + (scope):                                                           \
		return gdr_##name##_get_nbi##suffix(dst, src, n, pe);
#define DEFINE(name, T)                                                                            \
	static int call_##name(int op, int scope, void *dst, const void *src, size_t n, int pe)    \
	{                                                                                          \
		switch (op * SCOPES + scope) {                                                     \
			SCOPE_CASES(name, THREAD, )                                                \
			SCOPE_CASES(name, WARP, _warp)                                             \
			SCOPE_CASES(name, BLOCK, _block)                                           \
		default:                                                                           \
			return 1;                                                                  \
		}                                                                                  \
	}                                                                                          \
	GDR_KERNEL(kernel_##name, struct typed, a)                                                 \
	{                                                                                          \
		all_forms(&a, call_##name, sizeof(T));                                             \
	}
GDR_RMA_TYPES(DEFINE)

static void verify(const uint8_t *area, uint64_t seed, size_t size, const char *type)
{
	static uint8_t in[2 * AREA_ELEMS];

	if (!in[1])
		for (int nbi = 0; nbi < 2; nbi++)
			for (int s = 0; s < SCOPES; s++)
				for (unsigned u = 0; u < units[s]; u++)
					memset(in + stretch(nbi, s, u), 1, elems[s]);
	for (size_t i = 0; i < AREA; i++) {
		int inside = i / size < sizeof(in) && in[i / size];
		uint8_t want = inside ? multi_byte(seed, i) : MULTI_POISON;

		if (area[i] != want)
			multi_fail(__FILE__, __LINE__, "%s: byte %zu is %02x, not %02x", type, i,
				   area[i], want);
	}
}

/* Before and after a kernel that talks to the PE `shift` further. */
static void prepare(struct typed *a, int shift)
{
	a->pe = (multi_pe + shift) % multi_n;
	a->seed = 77 + (uint64_t)a->pe;
	memset(a->dst, MULTI_POISON, AREA);
	memset(a->back, MULTI_POISON, AREA);
	for (unsigned i = 0; i < AREA; i++)
		a->src[i] = multi_byte(77 + (uint64_t)multi_pe, i);
	CHECK_OK(gdr_barrier_all());
}

static void conclude(const struct typed *a, int shift, size_t size, const char *type)
{
	CHECK_OK(gdr_barrier_all());
	verify(a->dst, 77 + (uint64_t)((multi_pe + multi_n - shift) % multi_n), size, type);
	verify(a->back, a->seed, size, type);
	CHECK_OK(gdr_barrier_all());
}

#define RUN_ONE(name, T)                                                                           \
	shift = (shift + 1) % multi_n;                                                             \
	prepare(&a, shift);                                                                        \
	RUN(kernel_##name, 1, THREADS, &a);                                                        \
	conclude(&a, shift, sizeof(T), #name);

int main(void)
{
	struct typed a = {0};
	int shift = 0;

	multi_begin();
	a.report = multi_report_new();
	a.dst = gdr_malloc(AREA);
	a.src = gdr_malloc(AREA);
	a.back = gdr_malloc(AREA);
	CHECK(a.dst && a.src && a.back);
	GDR_RMA_TYPES(RUN_ONE)
	multi_shared_free(a.report);
	return multi_end("typed_scopes");
}
