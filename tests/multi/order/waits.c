/* SPDX-License-Identifier: BSD-3-Clause */
/* wait_until and test of every type that they know, with every comparison: the truth table
 * at the ends of the type, and waits that hold through a write which does not
 * fulfil them and end with the one that does, handed on from PE to PE, or from thread to thread. */
#include "tests/multi/multi.h"

enum { CMPS = 6, WAITS = 2 * CMPS, BEFORE = 0, STILL = 1, GOOD = 2 };

struct waits {
	void *words; /* [WAITS] of the type */
	void *one;
	int type, later;
	struct multi_report *report;
};

enum { MULTI_WAIT_TYPES(MULTI_NUMBER) TYPE_signal };

/* The smallest and the largest value: top bit clear or set by the type's sign. */
#define TOP(T) ((T)1 << (sizeof(T) * 8 - 2))
#define SIGNED(T) ((T)-1 < (T)1)
#define MIN_OF(T) (SIGNED(T) ? (T)(-TOP(T) - TOP(T)) : (T)0)
#define MAX_OF(T) (SIGNED(T) ? (T)(TOP(T) - 1 + TOP(T)) : (T)-1)

/* What ends the wait comes from a thread of the same block, when the wait lets it run. */
#define LATER(what, name, T, WAIT)                                                                 \
	MULTI_BODY void later_##what(const struct waits *a)                                        \
	{                                                                                          \
		T *w = (T *)a->one;                                                                \
		if (gdr_thread_id()) {                                                             \
			EXPECT_OK(a->report, gdr_##name##_p(w, 5, gdr_my_pe()));                   \
			EXPECT_OK(a->report, gdr_quiet());                                         \
			return;                                                                    \
		}                                                                                  \
		EXPECT_OK(a->report, WAIT(w, GDR_CMP_EQ, 5));                                      \
		EXPECT_EQ(a->report, gdr_##name##_g(w, gdr_my_pe()), 5);                           \
	}
LATER(signal, uint64, uint64_t, gdr_signal_wait_until)
#define RUN_LATER(what)                                                                            \
	multi_fill(a.one, 0, 8);                                                                   \
	a.type = TYPE_##what;                                                                      \
	a.later = 1;                                                                               \
	RUN(waits, 1, 2, &a);

/* Wait i: far values for the first CMPS, neighbours for the others. The reference is negative, or
 * large where there is no sign. */
#define REF(T) ((T)-5)
#define DEFINE(name, T)                                                                            \
	GDRI_INLINE T value_##name(int i, int which)                                               \
	{                                                                                          \
		const T r = REF(T), below = (T)(r - 1), above = (T)(r + 1);                        \
		const T lo = i < CMPS ? MIN_OF(T) : below, hi = i < CMPS ? MAX_OF(T) : above;      \
		const T table[CMPS][3] = {/* by GDR_CMP_: EQ, NE, GT, GE, LT, LE */                \
					  {lo, hi, r}, {r, r, hi},   {r, lo, hi},                  \
					  {lo, below, r}, {r, hi, lo}, {hi, above, r}};            \
		return table[i % CMPS][which];                                                     \
	}                                                                                          \
	GDR_DEVICE void table_##name(const struct waits *a)                                        \
	{                                                                                          \
		const T v[] = {MIN_OF(T), (T)-1, 0, 1, 7, (T)(MIN_OF(T) + 1), MAX_OF(T)};          \
		T *w = (T *)a->one;                                                                \
		for (int i = 0; i < 7; i++) {                                                      \
			EXPECT_OK(a->report, gdr_##name##_p(w, v[i], gdr_my_pe()));                \
			EXPECT_OK(a->report, gdr_quiet());                                         \
			for (int k = 0; k < 7 * CMPS; k++) {                                       \
				int cmp = k % CMPS, holds = MULTI_HOLDS(cmp, v[i], v[k / CMPS]);   \
				EXPECT_EQ(a->report, gdr_##name##_test(w, cmp, v[k / CMPS]),       \
					  holds);                                                  \
				if (holds)                                                         \
					EXPECT_OK(a->report, gdr_##name##_wait_until(              \
								     w, cmp, v[k / CMPS]));        \
			}                                                                          \
		}                                                                                  \
	}                                                                                          \
	GDR_DEVICE void send_##name(const struct waits *a, int i)                                  \
	{                                                                                          \
		int next = (gdr_my_pe() + 1) % gdr_n_pes();                                        \
		T *w = (T *)a->words + i, still = value_##name(i, STILL);                          \
		T good = value_##name(i, GOOD);                                                    \
		EXPECT_OK(a->report, gdr_##name##_p(w, still, next));                              \
		EXPECT_OK(a->report, gdr_fence());                                                 \
		if (i & 1)                                                                         \
			EXPECT_OK(a->report, gdr_##name##_atomic_set(w, good, next));              \
		else                                                                               \
			EXPECT_OK(a->report, gdr_##name##_p(w, good, next));                       \
	}                                                                                          \
	MULTI_BODY void test_##name(const struct waits *a)                                         \
	{                                                                                          \
		table_##name(a);                                                                   \
		for (int i = 0; i < WAITS; i++) {                                                  \
			T *w = (T *)a->words + i;                                                  \
			if (gdr_my_pe() == 0)                                                      \
				send_##name(a, i);                                                 \
			EXPECT_OK(a->report, gdr_##name##_wait_until(w, i % CMPS, REF(T)));        \
			EXPECT_EQ(a->report, gdr_##name##_g(w, gdr_my_pe()), value_##name(i, GOOD));\
			for (int cmp = 0; cmp < CMPS; cmp++)                                       \
				EXPECT_EQ(a->report, gdr_##name##_test(w, cmp, REF(T)),            \
					  MULTI_HOLDS(cmp, value_##name(i, GOOD), REF(T)));        \
			if (gdr_my_pe() != 0)                                                      \
				send_##name(a, i);                                                 \
		}                                                                                  \
		EXPECT_OK(a->report, gdr_quiet());                                                 \
	}                                                                                          \
	LATER(name, name, T, gdr_##name##_wait_until)
#define gdr_short_atomic_set gdr_short_p /* there is none */
#define gdr_ushort_atomic_set gdr_ushort_p
MULTI_WAIT_TYPES(DEFINE)

#define TEST(name, T)                                                                              \
	case TYPE_##name:                                                                          \
		if (a.later)                                                                       \
			later_##name(&a);                                                          \
		else                                                                               \
			test_##name(&a);                                                           \
		break;
GDR_KERNEL(waits, struct waits, a)
{
	switch (a.type) {
		MULTI_WAIT_TYPES(TEST)
	default:
		later_signal(&a);
	}
}

/* What stands before and what comes first must not fulfil the wait, or it proves nothing. */
#define RUN_ONE(name, T)                                                                           \
	for (int i = 0; i < WAITS; i++) {                                                          \
		T before = value_##name(i, BEFORE);                                                \
		CHECK_OK(gdr_memcpy((T *)a.words + i, &before, sizeof(before)));                   \
		CHECK(!MULTI_HOLDS(i % CMPS, value_##name(i, BEFORE), REF(T)));                    \
		CHECK(!MULTI_HOLDS(i % CMPS, value_##name(i, STILL), REF(T)));                     \
	}                                                                                          \
	CHECK_OK(gdr_barrier_all());                                                               \
	a.type = TYPE_##name;                                                                      \
	a.later = 0;                                                                               \
	RUN(waits, 1, 1, &a);                                                                      \
	RUN_LATER(name)                                                                            \
	CHECK_OK(gdr_barrier_all());

int main(void)
{
	struct waits a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.words = gdr_calloc(WAITS, 8);
	a.one = gdr_calloc(1, 8);
	CHECK(a.words && a.one);
	MULTI_WAIT_TYPES(RUN_ONE)
	RUN_LATER(signal)
	multi_shared_free(a.report);
	return multi_end("waits");
}
