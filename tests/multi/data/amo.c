/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics: every operation of every type has the result that C gives, on every PE, also in the
 * forms that do not wait; concurrent ones from all threads of all PEs lose nothing. AMO_BLOCK: so many threads a
 * block (64). */
#include "tests/multi/multi.h"

struct amo {
	void *word; /* [n_pes] of 8 bytes: word [source PE] on the target */
	uint64_t *count64, *bits, *spin;
	uint32_t *count32;
	void *sum;   /* a float, a double */
	void *order; /* [3] of 8 bytes: a maximum, a minimum, a maximum of doubles */
	void *fetch; /* [16] of 8 bytes: where _nbi forms bring old values */
	uint8_t *seen; /* local: [n_pes * threads], which values fetch_add gave */
	int type, pe, rounds, sums;
	struct multi_report *report;
};

enum { MULTI_AMO_TYPES(MULTI_NUMBER) MULTI_FLOAT_TYPES(MULTI_NUMBER) TYPES };

/* The old values of _nbi forms are there after a quiet, each in its place. */
#define NBI(name, T, call, old)                                                                    \
	EXPECT_OK(r, gdr_##name##_atomic_##call);                                                  \
	want[n++] = old;
#define DEFINE_NBI(name, T)                                                                        \
	GDR_DEVICE void nbi_##name(const struct amo *a)                                            \
	{                                                                                          \
		T *w = (T *)a->word + 1, *f = (T *)a->fetch, want[8];                              \
		struct multi_report *r = a->report;                                                \
		int pe = a->pe, n = 0;                                                             \
		EXPECT_OK(r, gdr_##name##_atomic_set(w, (T)40, pe));                               \
		EXPECT_OK(r, gdr_fence());                                                         \
		NBI(name, T, fetch_nbi(f + n, w, pe), (T)40)                                       \
		NBI(name, T, fetch_inc_nbi(f + n, w, pe), (T)40)                                   \
		NBI(name, T, fetch_add_nbi(f + n, w, (T)9, pe), (T)41)                             \
		NBI(name, T, swap_nbi(f + n, w, (T)12, pe), (T)50)                                 \
		NBI(name, T, compare_swap_nbi(f + n, w, (T)12, (T)6, pe), (T)12)                   \
		NBI(name, T, compare_swap_nbi(f + n, w, (T)12, (T)3, pe), (T)6)                    \
		EXPECT_OK(r, gdr_quiet());                                                         \
		for (int i = 0; i < n; i++)                                                        \
			EXPECT_EQ(r, f[i], want[i]);                                               \
		EXPECT_EQ(r, gdr_##name##_g(w, pe), 6);                                            \
	}
#define DEFINE_NBI_BITS(name, T)                                                                   \
	GDR_DEVICE void nbi_bits_##name(const struct amo *a)                                       \
	{                                                                                          \
		T *w = (T *)a->word + 1, *f = (T *)a->fetch, want[8];                              \
		struct multi_report *r = a->report;                                                \
		int pe = a->pe, n = 0;                                                             \
		EXPECT_OK(r, gdr_##name##_atomic_set(w, (T)0x5a, pe));                             \
		EXPECT_OK(r, gdr_fence());                                                         \
		NBI(name, T, fetch_and_nbi(f + n, w, (T)0x3c, pe), (T)0x5a)                        \
		NBI(name, T, fetch_or_nbi(f + n, w, (T)0x81, pe), (T)0x18)                         \
		NBI(name, T, fetch_xor_nbi(f + n, w, (T)0xff, pe), (T)0x99)                        \
		EXPECT_OK(r, gdr_quiet());                                                         \
		for (int i = 0; i < n; i++)                                                        \
			EXPECT_EQ(r, f[i], want[i]);                                               \
		EXPECT_EQ(r, gdr_##name##_g(w, pe), 0x66);                                         \
	}
MULTI_AMO_TYPES(DEFINE_NBI)
MULTI_AMO_TYPES(DEFINE_NBI_BITS)
MULTI_FLOAT_TYPES(DEFINE_NBI)

/* Maxima and minima by the type's order: to a type without sign -3 is more than all others here. */
#define DEFINE_ORDER(name, T)                                                                      \
	GDR_DEVICE void order_##name(const struct amo *a)                                          \
	{                                                                                          \
		T *w = (T *)a->word + 1, *f = (T *)a->fetch, five = (T)5, less = (T)-3, v = five;  \
		struct multi_report *r = a->report;                                                \
		int pe = a->pe;                                                                    \
		EXPECT_OK(r, gdr_##name##_atomic_set(w, five, pe));                                \
		EXPECT_OK(r, gdr_##name##_atomic_max(w, (T)6, pe));                                \
		EXPECT_OK(r, gdr_##name##_atomic_max(w, less, pe));                                \
		v = less > (T)6 ? less : (T)6;                                                     \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_max(w, (T)7, pe), v);                       \
		v = v > (T)7 ? v : (T)7;                                                           \
		EXPECT_OK(r, gdr_##name##_atomic_max(w, five, pe));                                \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_min(w, (T)6, pe), v);                       \
		EXPECT_OK(r, gdr_##name##_atomic_min(w, (T)4, pe));                                \
		EXPECT_OK(r, gdr_##name##_atomic_min(w, less, pe));                                \
		v = less < (T)4 ? less : (T)4;                                                     \
		EXPECT_OK(r, gdr_##name##_atomic_fetch_max_nbi(f, w, (T)9, pe));                   \
		EXPECT_OK(r, gdr_##name##_atomic_fetch_min_nbi(f + 1, w, (T)2, pe));               \
		EXPECT_OK(r, gdr_quiet());                                                         \
		EXPECT_EQ(r, f[0], v);                                                             \
		EXPECT_EQ(r, f[1], 9);                                                             \
		EXPECT_EQ(r, gdr_##name##_g(w, pe), 2);                                            \
	}
MULTI_AMO_TYPES(DEFINE_ORDER)
MULTI_FLOAT_TYPES(DEFINE_ORDER)

/* Floats: of both signs, more and less than any number. */
#define DEFINE_ORDER_FLOAT(name, T)                                                                \
	GDR_DEVICE void order_more_##name(const struct amo *a)                                     \
	{                                                                                          \
		T *w = (T *)a->word + 1, big = (T)1e30;                                            \
		struct multi_report *r = a->report;                                                \
		int pe = a->pe;                                                                    \
		EXPECT_OK(r, gdr_##name##_atomic_set(w, (T)-0.5, pe));                             \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_max(w, (T)-0.75, pe) * 4, -2);              \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_max(w, (T)-0.25, pe) * 4, -2);              \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_min(w, (T)0.25, pe) * 4, -1);               \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_min(w, -big * big, pe) * 4, -1);            \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_max(w, (T)-8, pe) < -big, 1);               \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_max(w, big * big, pe), -8);                 \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_min(w, (T)0.75, pe) > big, 1);              \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch(w, pe) * 4, 3);                             \
	}
MULTI_FLOAT_TYPES(DEFINE_ORDER_FLOAT)

/* Values that a double and a float hold exactly. */
#define DEFINE_FLOAT(name, T)                                                                      \
	MULTI_BODY void test_##name(const struct amo *a)                                           \
	{                                                                                          \
		T *w = (T *)a->word + 1;                                                           \
		struct multi_report *r = a->report;                                                \
		int pe = a->pe;                                                                    \
		EXPECT_OK(r, gdr_##name##_atomic_set(w, (T)0.5, pe));                              \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch(w, pe) * 4, 2);                             \
		EXPECT_OK(r, gdr_##name##_atomic_add(w, (T)-2.25, pe));                            \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_add(w, (T)1.25, pe) * 4, -7);               \
		EXPECT_OK(r, gdr_##name##_atomic_inc(w, pe));                                      \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_inc(w, pe) * 4, 2);                         \
		EXPECT_EQ(r, gdr_##name##_atomic_swap(w, (T)-8, pe) * 4, 6);                       \
		EXPECT_EQ(r, gdr_##name##_atomic_compare_swap(w, (T)8, (T)1, pe), -8);             \
		EXPECT_EQ(r, gdr_##name##_atomic_compare_swap(w, (T)-8, (T)1, pe), -8);            \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch(w, pe), 1);                                 \
		nbi_##name(a);                                                                     \
		order_##name(a);                                                                   \
		order_more_##name(a);                                                              \
		EXPECT_EQ(r, multi_differ(w - 1, "\377\377\377\377\377\377\377\377", sizeof(T)), 0); \
		EXPECT_OK(r, gdr_status());                                                        \
	}
MULTI_FLOAT_TYPES(DEFINE_FLOAT)

/* The words beside the operand must stay what they are: 4-byte operands are surrounded. */
#define DEFINE(name, T)                                                                            \
	GDR_DEVICE void ops_##name(const struct amo *a)                                            \
	{                                                                                          \
		T *w = (T *)a->word + 1;                                                           \
		struct multi_report *r = a->report;                                                \
		T x = (T)0x7172737475767778u, y = (T)0x0f1e2d3c4b5a6978u, v = x;                   \
		int pe = a->pe;                                                                    \
		EXPECT_OK(r, gdr_##name##_atomic_set(w, x, pe));                                   \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch(w, pe), v);                                 \
		EXPECT_OK(r, gdr_##name##_atomic_inc(w, pe));                                      \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_inc(w, pe), (T)(v + 1));                    \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_add(w, 5, pe), (T)(v + 2));                 \
		EXPECT_OK(r, gdr_##name##_atomic_add(w, (T)-4, pe));                               \
		v = (T)(v + 3);                                                                    \
		EXPECT_EQ(r, gdr_##name##_atomic_swap(w, y, pe), v);                               \
		EXPECT_EQ(r, gdr_##name##_atomic_compare_swap(w, x, 1, pe), y);                    \
		EXPECT_EQ(r, gdr_##name##_atomic_compare_swap(w, y, x, pe), y);                    \
		EXPECT_OK(r, gdr_##name##_atomic_and(w, (T)~(T)0x70, pe));                         \
		v = (T)(x & (T)~(T)0x70);                                                          \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_and(w, (T)~(T)0x8, pe), v);                 \
		v = (T)(v & (T)~(T)0x8);                                                           \
		EXPECT_OK(r, gdr_##name##_atomic_or(w, (T)0x80, pe));                              \
		v = (T)(v | (T)0x80);                                                              \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_or(w, (T)0x3, pe), v);                      \
		v = (T)(v | (T)0x3);                                                               \
		EXPECT_OK(r, gdr_##name##_atomic_xor(w, y, pe));                                   \
		v = (T)(v ^ y);                                                                    \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch_xor(w, (T)0x55, pe), v);                    \
		v = (T)(v ^ (T)0x55);                                                              \
		EXPECT_EQ(r, gdr_##name##_atomic_fetch(w, pe), v);                                 \
		EXPECT_EQ(r, gdr_##name##_g(w - 1, pe), (T)-1);                                    \
		EXPECT_EQ(r, gdr_##name##_g(w + 1, pe), (T)-1);                                    \
		EXPECT_OK(r, gdr_status());                                                        \
	}                                                                                          \
	MULTI_BODY void test_##name(const struct amo *a)                                           \
	{                                                                                          \
		ops_##name(a);                                                                     \
		nbi_##name(a);                                                                     \
		nbi_bits_##name(a);                                                                \
		order_##name(a);                                                                   \
		EXPECT_EQ(a->report, gdr_##name##_g((T *)a->word, a->pe), (T)-1);                  \
		EXPECT_EQ(a->report, gdr_##name##_g((T *)a->word + 2, a->pe), (T)-1);              \
	}
MULTI_AMO_TYPES(DEFINE)

GDR_KERNEL(one_by_one, struct amo, a)
{
	switch (a.type) {
		MULTI_AMO_TYPES(MULTI_CASE)
		MULTI_FLOAT_TYPES(MULTI_CASE)
	}
}

#define RUN_ONE(name, T)                                                                           \
	for (int shift = 0; shift < multi_n; shift++) {                                            \
		a.pe = (multi_pe + shift) % multi_n;                                               \
		multi_fill(a.word, 0xff, 64);                                                      \
		CHECK_OK(gdr_barrier_all());                                                       \
		a.type = TYPE_##name;                                                              \
		RUN(one_by_one, 1, 1, &a);                                                         \
		CHECK_OK(gdr_barrier_all());                                                       \
	}

#if MULTI_FIRST_PART
/* Another one for each operand. */
GDR_BOTH uint32_t order_key(uint64_t i)
{
	return (uint32_t)i * 2654435761u;
}

/* What a thread sees never falls, nor is it below what the thread itself brought. */
GDR_DEVICE void order_all(const struct amo *a, unsigned t)
{
	uint64_t first = ((uint64_t)gdr_my_pe() * gdr_grid_size() * gdr_block_size() + t) * (unsigned)a->sums;
	uint64_t seen, most = 0, *w = (uint64_t *)a->order;
	double most_real = -1e30, seen_real;

	for (int i = 0; i < a->sums; i++) {
		uint32_t key = order_key(first + (unsigned)i);
		double real = 0.5 * (int32_t)key;

		seen = gdr_uint64_atomic_fetch_max(w, key, a->pe);
		EXPECT_EQ(a->report, seen >= most, 1);
		most = seen > key ? seen : key;
		EXPECT_OK(a->report, gdr_int32_atomic_min((int32_t *)(w + 1), (int32_t)key, a->pe));
		seen_real = gdr_double_atomic_fetch_max((double *)(w + 2), real, a->pe);
		EXPECT_EQ(a->report, seen_real >= most_real, 1);
		most_real = seen_real > real ? seen_real : real;
	}
}

/* All threads of all PEs on words of PE a.pe. */
GDR_KERNEL(concurrent, struct amo, a)
{
	unsigned t = gdr_block_id() * gdr_block_size() + gdr_thread_id();

	for (int i = 0; i < a.rounds; i++) {
		uint64_t got = gdr_uint64_atomic_fetch_add(a.count64, 1, a.pe);

		a.seen[got] = 1; /* twice the same value: another one is missing */
		EXPECT_OK(a.report, gdr_uint64_atomic_inc(a.count64 + 1, a.pe));
		EXPECT_OK(a.report, gdr_uint32_atomic_add(a.count32, 3, a.pe));
		(void)gdr_uint32_atomic_fetch_inc(a.count32 + 1, a.pe);
		(void)gdr_int32_atomic_fetch_add((int32_t *)a.count32 + 2, -1, a.pe);
	}
	for (int i = 0; i < a.sums; i++) {
		EXPECT_OK(a.report, gdr_double_atomic_add((double *)a.sum, 0.25, a.pe));
		(void)gdr_float_atomic_fetch_add((float *)a.sum + 2, 2, a.pe);
	}
	order_all(&a, t);
	EXPECT_OK(a.report, gdr_uint64_atomic_or(a.bits, 1ull << (t & 63), a.pe));
	EXPECT_OK(a.report, gdr_uint64_atomic_xor(a.bits + 1, 1ull << (t & 63), a.pe));
	(void)gdr_uint64_atomic_fetch_and(a.bits + 2, ~(1ull << (t & 63)), a.pe);
	EXPECT_OK(a.report, gdr_status());
}

/* One thread of each PE adds under a lock that a compare_swap takes. */
GDR_KERNEL(locked, struct amo, a)
{
	uint64_t me = (uint64_t)gdr_my_pe() + 1;

	for (int i = 0; i < a.rounds; i++) {
		unsigned turn = 0;

		while (gdr_uint64_atomic_compare_swap(a.spin, 0, me, a.pe) != 0 && !gdr_status())
			gdr_pause(turn++);
		EXPECT_OK(a.report,
			  gdr_uint64_p(a.spin + 1, gdr_uint64_g(a.spin + 1, a.pe) + 1, a.pe));
		EXPECT_OK(a.report, gdr_quiet());
		EXPECT_EQ(a.report, gdr_uint64_atomic_swap(a.spin, 0, a.pe), me);
	}
}

/* On the PE where they are: of n operands. */
static void check_order(const struct amo *a, uint64_t n)
{
	int32_t least = INT32_MAX, most_signed = INT32_MIN;
	uint32_t most = 0;
	double real;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t key = order_key(i);

		most = key > most ? key : most;
		least = (int32_t)key < least ? (int32_t)key : least;
		most_signed = (int32_t)key > most_signed ? (int32_t)key : most_signed;
	}
	CHECK_EQ(multi_u64((uint64_t *)a->order), most);
	CHECK_EQ((int32_t)multi_u32((uint32_t *)a->order + 2), least);
	CHECK_OK(gdr_memcpy(&real, (double *)a->order + 2, sizeof(real)));
	CHECK_EQ(real * 2, most_signed);
}

static void run_concurrent(struct amo *a, unsigned grid, unsigned block)
{
	uint64_t all = (uint64_t)multi_n * grid * block * (uint64_t)a->rounds;
	uint8_t *seen = (uint8_t *)gdr_calloc(all, 1), *other = (uint8_t *)malloc(all);
	unsigned threads = grid * block, own = threads < 64 ? threads : 64; /* bits */
	uint64_t found = 0, mask = ~0ull >> (64 - own), flips = (uint64_t)multi_n * (threads / own);
	double sum;
	float sum32;

	CHECK(seen && other && threads % own == 0);
	a->seen = seen;
	multi_fill(a->sum, 0, 16);
	multi_fill(a->order, 0, 24); /* the minimum is less, the double's maximum more */
	multi_fill(a->count64, 0, 16);
	multi_fill(a->count32, 0, 16);
	multi_fill(a->bits, 0, 16);
	multi_set_u64(a->bits + 2, ~0ull);
	CHECK_OK(gdr_barrier_all());
	RUN(concurrent, grid, block, a);
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == a->pe) {
		CHECK_OK(gdr_memcpy(&sum, a->sum, 8));
		CHECK_OK(gdr_memcpy(&sum32, (float *)a->sum + 2, 4));
		CHECK_EQ(sum * 4, multi_n * (int)threads * a->sums);
		CHECK_EQ(sum32, multi_n * (int)threads * 2 * a->sums);
		check_order(a, (uint64_t)multi_n * threads * (unsigned)a->sums);
		CHECK_EQ(multi_u64(a->count64), all);
		CHECK_EQ(multi_u64(a->count64 + 1), all);
		CHECK_EQ(multi_u32(a->count32), all * 3);
		CHECK_EQ(multi_u32(a->count32 + 1), all);
		CHECK_EQ(multi_u32(a->count32 + 2), (uint32_t)-all);
		CHECK_EQ(multi_u32(a->count32 + 3), 0);
		CHECK_EQ(multi_u64(a->bits), mask);
		CHECK_EQ(multi_u64(a->bits + 1), flips % 2 ? mask : 0);
		CHECK_EQ(multi_u64(a->bits + 2), ~multi_u64(a->bits));
		CHECK_OK(gdr_buffer_register(other, all));
		for (int pe = 0; pe < multi_n; pe++) {
			CHECK_OK(gdr_host_get(other, seen, all, pe));
			for (uint64_t i = 0; i < all; i++)
				found += other[i];
		}
		CHECK_EQ(found, all);
		CHECK_OK(gdr_buffer_unregister(other));
	}
	CHECK_OK(gdr_free(seen));
	free(other);
}

static void race(struct amo *a)
{
	const char *block = getenv("AMO_BLOCK");

	a->rounds = 20;
	a->sums = multi_n > 4 ? 1 : 3; /* by queue one of all at a time: a trip each */
	for (a->pe = 0; a->pe < multi_n; a->pe += multi_n > 1 ? multi_n - 1 : 1)
		run_concurrent(a, 2, block ? (unsigned)atoi(block) : 64);
	a->pe = multi_n - 1;
	CHECK_OK(gdr_barrier_all());
	RUN(locked, 1, 1, a);
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == a->pe)
		CHECK_EQ(multi_u64(a->spin + 1), multi_n * a->rounds);
}
#else
static void race(struct amo *a)
{
	(void)a;
}
#endif

int main(void)
{
	struct amo a;

	multi_begin();
	memset(&a, 0, sizeof(a));
	a.report = multi_report_new();
	a.word = gdr_malloc(64);
	a.count64 = (uint64_t *)gdr_calloc(2, 8);
	a.count32 = (uint32_t *)gdr_calloc(4, 4);
	a.bits = (uint64_t *)gdr_calloc(3, 8);
	a.spin = (uint64_t *)gdr_calloc(2, 8);
	a.sum = gdr_calloc(2, 8);
	a.order = gdr_calloc(3, 8);
	a.fetch = gdr_calloc(16, 8);
	CHECK(a.word && a.count64 && a.count32 && a.bits && a.spin && a.sum && a.order && a.fetch);
	MULTI_AMO_TYPES(RUN_ONE)
	MULTI_FLOAT_TYPES(RUN_ONE)
	race(&a);
	multi_shared_free(a.report);
	return multi_end("amo");
}
