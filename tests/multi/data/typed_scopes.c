/* SPDX-License-Identifier: BSD-3-Clause */
/* put, get and put_signal of every RMA type and size as a thread, a warp and a block
 * call them, blocking and nbi, 64 threads at once: each unit has a stretch of its own
 * with one element of poison before and behind it; each signal adds to a count. */
#include "tests/multi/multi.h"

enum { PUT, PUT_NBI, SIGNAL, SIGNAL_NBI, GET, GET_NBI, OPS };
enum { THREAD, WARP, BLOCK, SCOPES };

#define THREADS 64u

static const unsigned units[SCOPES] = {THREADS, THREADS / 32, 1}, elems[SCOPES] = {3, 37, 131};

#define AREA_ELEMS 480u /* of one operation: all its stretches */
#define AREA (4 * AREA_ELEMS * 16u)
#define CALLS (THREADS + THREADS / 32 + 1) /* of one form */

struct typed {
	uint8_t *dst, *src, *back; /* an area for each of the forms that go the same way */
	uint64_t *sig;		   /* blocking, nbi */
	int pe;
	uint64_t seed; /* of pe's src */
	struct multi_report *report;
};

typedef int typed_call(int op, int scope, void *dst, const void *src, size_t n, uint64_t *sig,
		       int pe);

/* First element of a unit's stretch. */
GDR_DEVICE unsigned stretch(int area, int scope, unsigned unit)
{
	unsigned at = (unsigned)area * AREA_ELEMS + 1;

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
			size_t at = stretch(op < GET ? op : op - GET, scope, unit[scope]) * size;
			uint8_t *dst = op < GET ? a->dst : a->back;

			EXPECT_OK(a->report,
				  call(op, scope, dst + at, a->src + at, elems[scope],
				       a->sig + (op & 1), a->pe));
			if (op == GET)
				got(a, at, elems[scope] * size);
		}
	gdr_sync_block();
	if (t == 0)
		EXPECT_OK(a->report, gdr_quiet());
}

#define SCOPE_CASES(pre, z, scope, suffix)                                                         \
	case PUT * SCOPES + (scope):                                                               \
		return gdr_##pre##put##z##suffix(dst, src, n, pe);                                 \
	case PUT_NBI * SCOPES + (scope):                                                           \
		return gdr_##pre##put##z##_nbi##suffix(dst, src, n, pe);                           \
	case SIGNAL * SCOPES + (scope):                                                            \
		return gdr_##pre##put##z##_signal##suffix(dst, src, n, sig, 1, GDR_SIGNAL_ADD,     \
							  pe);                                     \
	case SIGNAL_NBI * SCOPES + (scope):                                                        \
		return gdr_##pre##put##z##_signal_nbi##suffix(dst, src, n, sig, 1, GDR_SIGNAL_ADD, \
							      pe);                                 \
	case GET * SCOPES + (scope):                                                               \
		return gdr_##pre##get##z##suffix(dst, src, n, pe);                                 \
	case GET_NBI * SCOPES + (scope):                                                           \
		return gdr_##pre##get##z##_nbi##suffix(dst, src, n, pe);
#define DEFINE_ANY(name, pre, z, size)                                                             \
	static int call_##name(int op, int scope, void *dst, const void *src, size_t n,            \
			       uint64_t *sig, int pe)                                              \
	{                                                                                          \
		switch (op * SCOPES + scope) {                                                     \
			SCOPE_CASES(pre, z, THREAD, )                                              \
			SCOPE_CASES(pre, z, WARP, _warp)                                           \
			SCOPE_CASES(pre, z, BLOCK, _block)                                         \
		default:                                                                           \
			return 1;                                                                  \
		}                                                                                  \
	}                                                                                          \
	GDR_KERNEL(kernel_##name, struct typed, a)                                                 \
	{                                                                                          \
		all_forms(&a, call_##name, size);                                                  \
	}
#define DEFINE(name, T) DEFINE_ANY(name, name##_, , sizeof(T))
#define DEFINE_SIZE(bits, bytes) DEFINE_ANY(size##bits, , bits, bytes)
MULTI_RMA_TYPES(DEFINE)
GDR_RMA_TYPES_MORE(DEFINE)
GDR_RMA_SIZES(DEFINE_SIZE)
DEFINE_ANY(mem, , , 1)

static void verify(const uint8_t *area, int areas, uint64_t seed, size_t size, const char *type)
{
	static uint8_t in[4 * AREA_ELEMS];

	if (!in[1])
		for (int k = 0; k < 4; k++)
			for (int s = 0; s < SCOPES; s++)
				for (unsigned u = 0; u < units[s]; u++)
					memset(in + stretch(k, s, u), 1, elems[s]);
	for (size_t i = 0; i < AREA; i++) {
		int inside = i / size < (size_t)areas * AREA_ELEMS && in[i / size];
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
	memset(a->sig, 0, 16);
	for (unsigned i = 0; i < AREA; i++)
		a->src[i] = multi_byte(77 + (uint64_t)multi_pe, i);
	CHECK_OK(gdr_barrier_all());
}

static void conclude(const struct typed *a, int shift, size_t size, const char *type)
{
	CHECK_OK(gdr_barrier_all());
	verify(a->dst, 4, 77 + (uint64_t)((multi_pe + multi_n - shift) % multi_n), size, type);
	verify(a->back, 2, a->seed, size, type);
	CHECK_EQ(a->sig[0], CALLS);
	CHECK_EQ(a->sig[1], CALLS);
	CHECK_OK(gdr_barrier_all());
}

#define RUN_ONE(name, T) RUN_ANY(name, sizeof(T))
#define RUN_SIZE(bits, bytes) RUN_ANY(size##bits, bytes)
#define RUN_ANY(name, size)                                                                        \
	shift = (shift + 1) % multi_n;                                                             \
	prepare(&a, shift);                                                                        \
	RUN(kernel_##name, 1, THREADS, &a);                                                        \
	conclude(&a, shift, size, #name);

int main(void)
{
	struct typed a = {0};
	int shift = 0;

	multi_begin();
	a.report = multi_report_new();
	a.dst = gdr_malloc(AREA);
	a.src = gdr_malloc(AREA);
	a.back = gdr_malloc(AREA);
	a.sig = gdr_malloc(16);
	CHECK(a.dst && a.src && a.back && a.sig);
	MULTI_RMA_TYPES(RUN_ONE)
	GDR_RMA_TYPES_MORE(RUN_ONE)
	GDR_RMA_SIZES(RUN_SIZE)
	RUN_ANY(mem, 1)
	multi_shared_free(a.report);
	return multi_end("typed_scopes");
}
