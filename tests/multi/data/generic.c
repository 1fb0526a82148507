/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr/generic.h: every macro, and those of one thread, in a kernel and on the host, with every type that they take.
 * Each PE writes to the next one alone. C and C++. */
#include "tests/multi/multi.h"

#include <gdr/generic.h>

#define LIMIT_NS 60000000000ull

/* X(name, T) */
#define WORDS(X) X(i, int) X(l, long) X(ll, long long) X(u, unsigned) X(ul, unsigned long) X(ull, unsigned long long)
#define FLOATS(X) X(f, float) X(d, double)
#define SHORTS(X) X(s, short) X(us, unsigned short)
#define CHARS(X) X(c, char) X(sc, signed char) X(uc, unsigned char)
#define NUMBERS(X) WORDS(X) SHORTS(X) CHARS(X) FLOATS(X)

/* Of a type: the words that are written, a fetched value, a source, its result, a source of each PE. */
enum { P, AMO, BITS, WAITED, FETCHED, SOURCE, RESULT, SOURCES = 8, ALL = 16, MAX_N = 8 };

struct words {
#define POINTER(name, T) T *name;
	NUMBERS(POINTER)
	struct multi_report *report;
	int me, n, next;
};

/* ---- by whom: pre is gdr_ or gdr_host_, EQ compares ---- */

#define SCALAR(pre, EQ, w, name, T)                                                                \
	EQ(pre##p(w->name + P, (T)(w->me + 3), w->next), 0);                                       \
	EQ(pre##quiet(), 0);                                                                       \
	EQ(pre##g(w->name + P, w->next), w->me + 3);

/* Without result: complete by the quiet. */
#define CHANGED(pre, EQ, w, name, T, call, want)                                                   \
	EQ(call, 0);                                                                               \
	EQ(pre##quiet(), 0);                                                                       \
	EQ(pre##atomic_fetch(w->name + at, w->next), want);
/* The old value, and by the next quiet the one before the _nbi form of the call. */
#define WAS(pre, EQ, w, name, op, old, then, ...)                                                  \
	EQ(pre##atomic_##op(w->name + at, __VA_ARGS__ w->next), old);                              \
	EQ(pre##atomic_##op##_nbi(w->name + FETCHED, w->name + at, __VA_ARGS__ w->next), 0);       \
	EQ(pre##quiet(), 0);                                                                       \
	EQ(pre##g(w->name + FETCHED, w->me), then);
#define ATOMIC(pre, EQ, w, name, T)                                                                \
	{                                                                                          \
		const int at = AMO;                                                                \
                                                                                                   \
		CHANGED(pre, EQ, w, name, T, pre##atomic_set(w->name + at, (T)10, w->next), 10)    \
		CHANGED(pre, EQ, w, name, T, pre##atomic_add(w->name + at, (T)5, w->next), 15)     \
		CHANGED(pre, EQ, w, name, T, pre##atomic_inc(w->name + at, w->next), 16)           \
		CHANGED(pre, EQ, w, name, T, pre##atomic_max(w->name + at, (T)20, w->next), 20)    \
		CHANGED(pre, EQ, w, name, T, pre##atomic_min(w->name + at, (T)17, w->next), 17)    \
		WAS(pre, EQ, w, name, fetch, 17, 17, )                                             \
		WAS(pre, EQ, w, name, fetch_add, 17, 20, (T)3, )                                   \
		WAS(pre, EQ, w, name, fetch_inc, 23, 24, )                                         \
		WAS(pre, EQ, w, name, fetch_max, 25, 30, (T)30, )                                  \
		WAS(pre, EQ, w, name, fetch_min, 30, 4, (T)4, )                                    \
		WAS(pre, EQ, w, name, swap, 4, 6, (T)6, )                                          \
		WAS(pre, EQ, w, name, compare_swap, 6, 9, (T)6, (T)9, )                            \
	}
#define BITWISE(pre, EQ, w, name, T)                                                               \
	{                                                                                          \
		const int at = BITS;                                                               \
                                                                                                   \
		CHANGED(pre, EQ, w, name, T, pre##atomic_set(w->name + at, (T)0, w->next), 0)      \
		CHANGED(pre, EQ, w, name, T, pre##atomic_or(w->name + at, (T)0x3c, w->next), 0x3c) \
		CHANGED(pre, EQ, w, name, T, pre##atomic_and(w->name + at, (T)0x0f, w->next), 0x0c) \
		CHANGED(pre, EQ, w, name, T, pre##atomic_xor(w->name + at, (T)0x05, w->next), 0x09) \
		WAS(pre, EQ, w, name, fetch_or, 0x09, 0x0b, (T)0x02, )                             \
		WAS(pre, EQ, w, name, fetch_and, 0x0b, 0x02, (T)0x06, )                            \
		WAS(pre, EQ, w, name, fetch_xor, 0x02, 0x03, (T)0x01, )                            \
	}
/* The limit is longer than GDR_TIMEOUT. */
#define WAIT(pre, EQ, w, name, T)                                                                  \
	EQ(pre##p(w->name + WAITED, (T)41, w->next), 0);                                           \
	EQ(pre##wait_until(w->name + WAITED, GDR_CMP_EQ, (T)41), 0);                               \
	EQ(pre##wait_until_for(w->name + WAITED, GDR_CMP_GT, (T)40, LIMIT_NS), 0);                 \
	EQ(pre##test(w->name + WAITED, GDR_CMP_LT, (T)41), 0);

/* Of 1, 2, 1, 2, ... of the PEs, in turn: or 3, xor the parity of each bit. */
#define ONES(n) (((n) + 1) / 2)
#define TWOS(n) ((n) / 2)
#define REDUCED(pre, EQ, w, name, T, op, s, want)                                                  \
	EQ(pre##op##_reduce##s(GDR_TEAM_WORLD, w->name + RESULT, w->name + SOURCE, 1), 0);         \
	EQ(pre##g(w->name + RESULT, w->me), want);                                                 \
	EQ(pre##op##_reducescatter##s(GDR_TEAM_WORLD, w->name + RESULT, w->name + SOURCES, 1), 0); \
	EQ(pre##g(w->name + RESULT, w->me), want);
#define REDUCE(pre, EQ, w, name, T, s)                                                             \
	REDUCED(pre, EQ, w, name, T, sum, s, ONES(w->n) + 2 * TWOS(w->n))                          \
	REDUCED(pre, EQ, w, name, T, prod, s, 1 << TWOS(w->n))                                     \
	REDUCED(pre, EQ, w, name, T, min, s, 1)                                                    \
	REDUCED(pre, EQ, w, name, T, max, s, w->n > 1 ? 2 : 1)                                     \
	EQ(pre##sum_inscan##s(GDR_TEAM_WORLD, w->name + RESULT, w->name + SOURCE, 1), 0);          \
	EQ(pre##g(w->name + RESULT, w->me), ONES(w->me + 1) + 2 * TWOS(w->me + 1));                \
	EQ(pre##sum_exscan##s(GDR_TEAM_WORLD, w->name + RESULT, w->name + SOURCE, 1), 0);          \
	EQ(w->me ? (long long)pre##g(w->name + RESULT, w->me) : 0, ONES(w->me) + 2 * TWOS(w->me));
#define REDUCE_BITS(pre, EQ, w, name, T, s)                                                        \
	REDUCED(pre, EQ, w, name, T, and, s, w->n > 1 ? 0 : 1)                                     \
	REDUCED(pre, EQ, w, name, T, or, s, w->n > 1 ? 3 : 1)                                      \
	REDUCED(pre, EQ, w, name, T, xor, s, (ONES(w->n) & 1) | (TWOS(w->n) & 1) << 1)

/* ---- kernels, one thread but for the last one ---- */

#define IN_KERNEL(a, b) EXPECT_EQ(m->report, a, b)
#define K_SCALAR(name, T) SCALAR(gdr_, IN_KERNEL, m, name, T)
#define K_ATOMIC(name, T) ATOMIC(gdr_, IN_KERNEL, m, name, T)
#define K_BITWISE(name, T) BITWISE(gdr_, IN_KERNEL, m, name, T)
#define K_WAIT(name, T) WAIT(gdr_, IN_KERNEL, m, name, T)
#define K_REDUCE(name, T) REDUCE(gdr_, IN_KERNEL, m, name, T, )
#define K_REDUCE_BITS(name, T) REDUCE_BITS(gdr_, IN_KERNEL, m, name, T, )

GDR_KERNEL(words_kernel, struct words, arg)
{
	const struct words *m = &arg;

	NUMBERS(K_SCALAR)
	WORDS(K_ATOMIC)
	FLOATS(K_ATOMIC)
	WORDS(K_BITWISE)
}

GDR_KERNEL(waits_kernel, struct words, arg)
{
	const struct words *m = &arg;

	WORDS(K_WAIT)
	SHORTS(K_WAIT)
}

GDR_KERNEL(reduce_kernel, struct words, arg)
{
	const struct words *m = &arg;

	NUMBERS(K_REDUCE)
	WORDS(K_REDUCE_BITS)
	SHORTS(K_REDUCE_BITS)
	CHARS(K_REDUCE_BITS)
}

GDR_KERNEL(warp_kernel, struct words, arg)
{
	const struct words *m = &arg;

	REDUCE(gdr_, IN_KERNEL, m, d, double, _warp)
	REDUCE_BITS(gdr_, IN_KERNEL, m, us, unsigned short, _warp)
	REDUCE(gdr_, IN_KERNEL, m, l, long, _block)
	REDUCE_BITS(gdr_, IN_KERNEL, m, c, char, _block)
}

/* ---- numbers of 16 bits: ones, whose result of each operation is a word of its own ---- */

struct halves {
	gdr_half_t *h; /* ONE of each PE, then a result for each operation */
	gdr_bfloat16_t *b;
	struct multi_report *report;
};

#define HALVES(pre, EQ, x)                                                                         \
	EQ(pre##sum_reduce(GDR_TEAM_WORLD, x + MAX_N, x, 1), 0);                                   \
	EQ(pre##prod_reduce(GDR_TEAM_WORLD, x + MAX_N + 1, x, 1), 0);                              \
	EQ(pre##min_reduce(GDR_TEAM_WORLD, x + MAX_N + 2, x, 1), 0);                               \
	EQ(pre##max_reduce(GDR_TEAM_WORLD, x + MAX_N + 3, x, 1), 0);                               \
	EQ(pre##sum_reducescatter(GDR_TEAM_WORLD, x + MAX_N + 4, x, 1), 0);                        \
	EQ(pre##prod_reducescatter(GDR_TEAM_WORLD, x + MAX_N + 5, x, 1), 0);                       \
	EQ(pre##min_reducescatter(GDR_TEAM_WORLD, x + MAX_N + 6, x, 1), 0);                        \
	EQ(pre##max_reducescatter(GDR_TEAM_WORLD, x + MAX_N + 7, x, 1), 0);

GDR_KERNEL(halves_kernel, struct halves, m)
{
#define IN_HALVES(a, b) EXPECT_EQ(m.report, a, b)
	HALVES(gdr_, IN_HALVES, m.h)
	HALVES(gdr_, IN_HALVES, m.b)
}

/* The codes of one, and of the number of PEs; then ones again. */
static void halves_are(void *x, uint16_t one, uint16_t sum)
{
	uint16_t bits[2 * MAX_N];

	CHECK_OK(gdr_memcpy(bits, x, sizeof(bits)));
	for (int i = MAX_N; i < 2 * MAX_N; i++)
		CHECK_EQ(bits[i], i % 4 ? one : sum);
	for (int i = 0; i < 2 * MAX_N; i++)
		bits[i] = one;
	CHECK_OK(gdr_memcpy(x, bits, sizeof(bits)));
}

static void run_halves(void)
{
	static const uint16_t half[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};
	static const uint16_t bfloat16[] = {0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100};
	struct halves m = {(gdr_half_t *)gdr_calloc(2 * MAX_N, 2), (gdr_bfloat16_t *)gdr_calloc(2 * MAX_N, 2),
			   multi_report_new()};

	CHECK(m.h && m.b);
	for (int i = 0; i < MAX_N; i++) {
		CHECK_OK(gdr_memcpy(m.h + i, half, 2));
		CHECK_OK(gdr_memcpy(m.b + i, bfloat16, 2));
	}
	CHECK_OK(gdr_barrier_all());
	RUN(halves_kernel, 1, 1, &m);
	halves_are(m.h, half[0], half[multi_n - 1]);
	halves_are(m.b, bfloat16[0], bfloat16[multi_n - 1]);
	HALVES(gdr_host_, CHECK_EQ, m.h)
	HALVES(gdr_host_, CHECK_EQ, m.b)
	halves_are(m.h, half[0], half[multi_n - 1]);
	halves_are(m.b, bfloat16[0], bfloat16[multi_n - 1]);
	multi_shared_free(m.report);
}

/* ---- a thread of the host ---- */

#define H_SCALAR(name, T) SCALAR(gdr_host_, CHECK_EQ, m, name, T)
#define H_ATOMIC(name, T) ATOMIC(gdr_host_, CHECK_EQ, m, name, T)
#define H_BITWISE(name, T) BITWISE(gdr_host_, CHECK_EQ, m, name, T)
#define H_WAIT(name, T) WAIT(gdr_host_, CHECK_EQ, m, name, T)
#define H_REDUCE(name, T) REDUCE(gdr_host_, CHECK_EQ, m, name, T, )
#define H_REDUCE_BITS(name, T) REDUCE_BITS(gdr_host_, CHECK_EQ, m, name, T, )

/* Another PE may still read what this one writes. */
static void clear(const struct words *m)
{
	CHECK_OK(gdr_barrier_all());
#define CLEAR(name, T) CHECK_OK(gdr_host_p(m->name + WAITED, (T)0, m->me));
	NUMBERS(CLEAR)
	CHECK_OK(gdr_barrier_all());
}

static void host_words(const struct words *m)
{
	NUMBERS(H_SCALAR)
	WORDS(H_ATOMIC)
	FLOATS(H_ATOMIC)
	WORDS(H_BITWISE)
}

static void host_waits(const struct words *m)
{
	WORDS(H_WAIT)
	SHORTS(H_WAIT)
}

static void host_reduce(const struct words *m)
{
	NUMBERS(H_REDUCE)
	WORDS(H_REDUCE_BITS)
	SHORTS(H_REDUCE_BITS)
	CHARS(H_REDUCE_BITS)
}

#define STREAM(x, op, from, want)                                                                  \
	CHECK_OK(gdr_##op##_on_stream(GDR_TEAM_WORLD, m->x + RESULT, m->x + from, 1, NULL));       \
	CHECK_OK(gdr_stream_sync(NULL));                                                           \
	CHECK_EQ(gdr_host_g(m->x + RESULT, m->me), want);
#define STREAMS(x, op, want)                                                                       \
	STREAM(x, op##_reduce, SOURCE, want)                                                       \
	STREAM(x, op##_reducescatter, SOURCES, want)

static void on_stream(const struct words *m)
{
	STREAMS(f, sum, ONES(m->n) + 2 * TWOS(m->n))
	STREAMS(ll, prod, 1 << TWOS(m->n))
	STREAMS(us, min, 1)
	STREAMS(d, max, m->n > 1 ? 2 : 1)
	STREAMS(ul, and, m->n > 1 ? 0 : 1)
	STREAMS(i, or, m->n > 1 ? 3 : 1)
	STREAMS(uc, xor, (ONES(m->n) & 1) | (TWOS(m->n) & 1) << 1)
	STREAM(f, sum_inscan, SOURCE, ONES(m->me + 1) + 2 * TWOS(m->me + 1))
	CHECK_OK(gdr_sum_exscan_on_stream(GDR_TEAM_WORLD, m->l + RESULT, m->l + SOURCE, 1, NULL));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(m->me ? gdr_host_g(m->l + RESULT, m->me) : 0, ONES(m->me) + 2 * TWOS(m->me));
}

int main(void)
{
	struct words m;

	multi_begin();
	CHECK(multi_n <= MAX_N);
	m.me = multi_pe;
	m.n = multi_n;
	m.next = (multi_pe + 1) % multi_n;
	m.report = multi_report_new();
#define NEW(name, T)                                                                               \
	m.name = (T *)gdr_calloc(ALL, sizeof(T));                                                  \
	CHECK(m.name);                                                                             \
	CHECK_OK(gdr_host_p(m.name + SOURCE, (T)(1 + multi_pe % 2), multi_pe));                    \
	for (int i = 0; i < multi_n; i++)                                                          \
		CHECK_OK(gdr_host_p(m.name + SOURCES + i, (T)(1 + multi_pe % 2), multi_pe));
	NUMBERS(NEW)
	clear(&m);
	RUN(words_kernel, 1, 1, &m);
	RUN(waits_kernel, 1, 1, &m);
	RUN(reduce_kernel, 1, 1, &m);
	RUN(warp_kernel, 1, 32, &m);
	clear(&m);
	host_words(&m);
	host_waits(&m);
	host_reduce(&m);
	on_stream(&m);
	run_halves();
	multi_shared_free(m.report);
	return multi_end("generic");
}
