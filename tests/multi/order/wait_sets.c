/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits and tests for all, any and some of several words, with one value or one for each, with words
 * that do not count, and with limits: what a look at the words finds, compared with a plain loop over
 * them, and waits that another PE's put ends. */
#include "tests/multi/multi.h"

enum { N = 7, LATE = 4 };

struct sets {
	void *words; /* [N] */
	int type, what;
	struct multi_report *report;
};

enum { MULTI_WAIT_TYPES(MULTI_NUMBER) TYPE_FAIR };
enum { LOOKS, ENDED, LATE_BY_BLOCK, LATER_BY_BLOCK };

#define NONE ((size_t)-1)
#define SHORT_NS 1000u
#define LONG_NS 15000000000u

/* Any word that holds, or none. */
GDR_DEVICE int one_of(size_t any, const size_t *where, size_t n)
{
	int found = !n && any == NONE;

	for (size_t i = 0; i < n; i++)
		found |= any == where[i];
	return found;
}

/* A word that always holds does not hide the others. */
MULTI_BODY void fair(const struct sets *a)
{
	const int *w = (const int *)a->words;
	unsigned seen = 0;

	for (int i = 0; i < 100; i++) {
		seen |= 1u << gdr_int_test_any(w, 3, NULL, GDR_CMP_EQ, 0);
		seen |= 8u << gdr_int_wait_until_any(w, 3, NULL, GDR_CMP_EQ, 0);
	}
	EXPECT_EQ(a->report, seen, 63);
}

/* All forms agree with the loop that found `holds` of `counted` words; those that would wait for ever
 * are called with a short limit, which is no error. form: nothing or _vector, V: its last argument. */
#define AGREE(name, form, V)                                                                       \
	do {                                                                                       \
		int all = gdr_##name##_test_all##form(w, N, mask, cmp, V);                         \
		size_t any = gdr_##name##_test_any##form(w, N, mask, cmp, V);                      \
		EXPECT_EQ(r, all, n_holds == n_counted);                                           \
		EXPECT_EQ(r, one_of(any, where, n_holds), 1);                                      \
		EXPECT_EQ(r, gdr_##name##_test_some##form(w, N, at, mask, cmp, V), n_holds);       \
		for (size_t i = 0; i < n_holds; i++)                                               \
			EXPECT_EQ(r, at[i], where[i]);                                             \
		EXPECT_EQ(r, gdr_##name##_wait_until_all##form##_for(w, N, mask, cmp, V, SHORT_NS), \
			  n_holds == n_counted ? 0 : -GDR_ETIMEOUT);                               \
		any = gdr_##name##_wait_until_any##form##_for(w, N, mask, cmp, V, SHORT_NS);       \
		EXPECT_EQ(r, one_of(any, where, n_holds), 1);                                      \
		EXPECT_EQ(r,                                                                       \
			  gdr_##name##_wait_until_some##form##_for(w, N, at, mask, cmp, V,         \
								   SHORT_NS),                      \
			  n_holds);                                                                \
		if (n_holds == n_counted)                                                          \
			EXPECT_OK(r, gdr_##name##_wait_until_all##form(w, N, mask, cmp, V));       \
		if (n_holds || !n_counted) {                                                       \
			any = gdr_##name##_wait_until_any##form(w, N, mask, cmp, V);               \
			EXPECT_EQ(r, one_of(any, where, n_holds), 1);                              \
			at[0] = 99;                                                                \
			EXPECT_EQ(r, gdr_##name##_wait_until_some##form(w, N, at, mask, cmp, V),   \
				  n_holds);                                                        \
			if (n_holds)                                                               \
				EXPECT_EQ(r, at[0], where[0]);                                     \
		}                                                                                  \
	} while (0)

#define DEFINE(name, T)                                                                            \
	GDR_DEVICE void look_##name(const struct sets *a, int cmp, const int *mask,                \
				    const T *values)                                               \
	{                                                                                          \
		T *w = (T *)a->words;                                                              \
		struct multi_report *r = a->report;                                                \
		size_t at[N], where[N], n_holds, n_counted;                                        \
		for (int vector = 0; vector < 2; vector++) {                                       \
			n_holds = n_counted = 0;                                                   \
			for (int i = 0; i < N; i++) {                                              \
				T v = values[vector ? i : 0];                                      \
				if (mask && mask[i])                                               \
					continue;                                                  \
				n_counted++;                                                       \
				if (!MULTI_HOLDS(cmp, w[i], v))                                    \
					continue;                                                  \
				where[n_holds++] = (size_t)i;                                      \
			}                                                                          \
			if (vector)                                                                \
				AGREE(name, _vector, values);                                      \
			else                                                                       \
				AGREE(name, , values[0]);                                          \
		}                                                                                  \
		EXPECT_EQ(r, gdr_##name##_wait_until_for(w, cmp, values[0], SHORT_NS),             \
			  MULTI_HOLDS(cmp, w[0], values[0]) ? 0 : -GDR_ETIMEOUT);                  \
		EXPECT_OK(r, gdr_status());                                                        \
	}                                                                                          \
	MULTI_BODY void looks_##name(const struct sets *a)                                         \
	{                                                                                          \
		const int masks[3][N] = {/* some, most, all */                                     \
					 {1, 0, 0, 7, 0, -1, 0}, {1, 1, 0, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}}; \
		const T values[2][N] = {{3, (T)-3, 9, (T)-1, 0, 3, 4}, {(T)-1, 3, 3, 4, 9, 2, 4}}; \
		for (int k = 0; k < 6 * 2; k++) {                                                  \
			look_##name(a, k % 6, NULL, values[k / 6]);                                \
			for (int m = 0; m < 3; m++)                                                \
				look_##name(a, k % 6, masks[m], values[k / 6]);                    \
		}                                                                                  \
	}                                                                                          \
	/* The waits begin before the previous PE's puts, and end with them. */                    \
	MULTI_BODY void ended_##name(const struct sets *a)                                         \
	{                                                                                          \
		T *w = (T *)a->words, values[N];                                                   \
		struct multi_report *r = a->report;                                                \
		int mask[N] = {0}, next = (gdr_my_pe() + 1) % gdr_n_pes();                         \
		size_t at[N];                                                                      \
		if (gdr_block_id()) {                                                              \
			for (int i = 0; i < N; i++) {                                              \
				EXPECT_OK(r, gdr_##name##_p(w + (i + LATE) % N,                    \
							    (T)(100 + (i + LATE) % N), next));     \
				EXPECT_OK(r, gdr_fence());                                         \
			}                                                                          \
			EXPECT_OK(r, gdr_quiet());                                                 \
			return;                                                                    \
		}                                                                                  \
		for (int i = 0; i < N; i++)                                                        \
			values[i] = (T)(100 + i);                                                  \
		EXPECT_EQ(r, gdr_##name##_wait_until_any(w, N, NULL, GDR_CMP_GE, 100) < N, 1);     \
		for (int i = 0; i < N; i++) {                                                      \
			size_t n = gdr_##name##_wait_until_some_vector(w, N, at, mask, GDR_CMP_EQ, \
								       values);                    \
			EXPECT_EQ(r, n > 0 && n <= N, 1);                                          \
			mask[at[0]] = 1; /* each index once: the last of all comes, too */         \
		}                                                                                  \
		for (int i = 0; i < N; i++)                                                        \
			EXPECT_EQ(r, mask[i], 1);                                                  \
		EXPECT_EQ(r, gdr_##name##_wait_until_any_vector(w, N, mask, GDR_CMP_EQ, values),   \
			  NONE);                                                                   \
		EXPECT_OK(r, gdr_##name##_wait_until_all(w, N, NULL, GDR_CMP_GE, 100));            \
		EXPECT_OK(r, gdr_##name##_wait_until_all_vector(w, N, NULL, GDR_CMP_EQ, values));  \
		EXPECT_OK(r, gdr_##name##_wait_until_for(w + LATE, GDR_CMP_NE, 1, LONG_NS));       \
		EXPECT_EQ(r, gdr_##name##_wait_until_some(w, N, at, NULL, GDR_CMP_EQ, 103), 1);    \
	}                                                                                          \
	/* What ends the waits comes from a thread of the same block, when they let it run. */     \
	MULTI_BODY void late_##name(const struct sets *a)                                          \
	{                                                                                          \
		T *w = (T *)a->words;                                                              \
		const T values[2] = {8, 9};                                                        \
		struct multi_report *r = a->report;                                                \
		int me = gdr_my_pe();                                                              \
		if (gdr_thread_id()) {                                                             \
			for (int i = 0; i < 4; i++)                                                \
				EXPECT_OK(r, gdr_##name##_p(w + i, i < 2 ? 7 : (T)(6 + i), me));   \
			EXPECT_OK(r, gdr_quiet());                                                 \
			return;                                                                    \
		}                                                                                  \
		EXPECT_OK(r, gdr_##name##_wait_until_all_vector(w + 2, 2, NULL, GDR_CMP_EQ, values)); \
		EXPECT_EQ(r, w[3], 9);                                                             \
	}                                                                                          \
	MULTI_BODY void later_##name(const struct sets *a)                                         \
	{                                                                                          \
		T *w = (T *)a->words;                                                              \
		struct multi_report *r = a->report;                                                \
		if (gdr_thread_id()) {                                                             \
			EXPECT_OK(r, gdr_##name##_p(w, 5, gdr_my_pe()));                           \
			EXPECT_OK(r, gdr_quiet());                                                 \
			return;                                                                    \
		}                                                                                  \
		EXPECT_OK(r, gdr_##name##_wait_until_all(w, 1, NULL, GDR_CMP_EQ, 5));              \
		EXPECT_EQ(r, w[0], 5);                                                             \
	}                                                                                          \
	GDR_DEVICE void test_##name(const struct sets *a)                                          \
	{                                                                                          \
		if (a->what == LOOKS)                                                              \
			looks_##name(a);                                                           \
		else if (a->what == ENDED)                                                         \
			ended_##name(a);                                                           \
		else if (a->what == LATE_BY_BLOCK)                                                 \
			late_##name(a);                                                            \
		else                                                                               \
			later_##name(a);                                                           \
	}
MULTI_WAIT_TYPES(DEFINE)

GDR_KERNEL(sets, struct sets, a)
{
	switch (a.type) {
		MULTI_WAIT_TYPES(MULTI_CASE)
	default:
		fair(&a);
	}
}

#define RUN_WHAT(stage, grid, block)                                                               \
	a.what = stage;                                                                            \
	RUN(sets, grid, block, &a);

#define RUN_ONE(name, T)                                                                           \
	{                                                                                          \
		const T words[N] = {3, (T)-3, 3, 4, 0, 3, (T)-1};                                  \
		CHECK_OK(gdr_memcpy(a.words, words, sizeof(words)));                               \
		a.type = TYPE_##name;                                                              \
		RUN_WHAT(LOOKS, 1, 1)                                                              \
		multi_fill(a.words, 0, sizeof(words));                                             \
		CHECK_OK(gdr_barrier_all());                                                       \
		RUN_WHAT(ENDED, 2, 1)                                                              \
		CHECK_OK(gdr_barrier_all());                                                       \
		RUN_WHAT(LATE_BY_BLOCK, 1, 2)                                                      \
		RUN_WHAT(LATER_BY_BLOCK, 1, 2)                                                     \
		CHECK_OK(gdr_barrier_all());                                                       \
	}

int main(void)
{
	struct sets a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.words = (uint64_t *)gdr_calloc(N, 8);
	CHECK(a.words);
	MULTI_WAIT_TYPES(RUN_ONE)
	multi_fill(a.words, 0, N * 8);
	a.type = TYPE_FAIR;
	RUN(sets, 1, 1, &a);
	multi_shared_free(a.report);
	return multi_end("wait_sets");
}
