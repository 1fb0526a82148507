/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits and tests of host threads for several words (gdr/host_ops.h): what a look at the words finds, compared with a
 * plain loop over a copy; waits that another PE's put ends; what is refused. `late`: a wait that nobody ends. C and
 * C++. */
#include "tests/multi/multi.h"
#include "tests/multi/said.h"

#include <gdr/host_ops.h>

enum { N = 7, LATE = 4 };
#define NONE ((size_t)-1)
#define SHORT_NS 1000u
#define LONG_NS 15000000000u

static int next;
static uint64_t *heap; /* [N] */

/* Any word that holds, or none. */
static int one_of(size_t any, const size_t *where, size_t n)
{
	int found = !n && any == NONE;

	for (size_t i = 0; i < n; i++)
		found |= any == where[i];
	return found;
}

/* All forms agree with the loop that found `holds` of `counted` words; those that would wait for ever are called with a
 * short limit, which is no error. form: nothing or _vector, V: its last argument. */
#define AGREE(name, form, V)                                                                       \
	do {                                                                                       \
		CHECK_EQ(gdr_host_##name##_test_all##form(w, N, mask, cmp, V), n_holds == n_counted); \
		CHECK(one_of(gdr_host_##name##_test_any##form(w, N, mask, cmp, V), where, n_holds)); \
		CHECK_EQ(gdr_host_##name##_test_some##form(w, N, at, mask, cmp, V), n_holds);      \
		CHECK(!n_holds || !memcmp(at, where, n_holds * sizeof(*at)));                      \
		CHECK_EQ(gdr_host_##name##_wait_until_all##form##_for(w, N, mask, cmp, V, SHORT_NS), \
			 n_holds == n_counted ? 0 : -GDR_ETIMEOUT);                                \
		CHECK(one_of(gdr_host_##name##_wait_until_any##form##_for(w, N, mask, cmp, V, SHORT_NS), where, \
			     n_holds));                                                            \
		CHECK_EQ(gdr_host_##name##_wait_until_some##form##_for(w, N, at, mask, cmp, V, SHORT_NS), n_holds); \
		if (n_holds == n_counted)                                                          \
			CHECK_OK(gdr_host_##name##_wait_until_all##form(w, N, mask, cmp, V));      \
		if (!n_holds && n_counted)                                                         \
			break;                                                                     \
		CHECK(one_of(gdr_host_##name##_wait_until_any##form(w, N, mask, cmp, V), where, n_holds)); \
		memset(at, 0xff, sizeof(at));                                                      \
		CHECK_EQ(gdr_host_##name##_wait_until_some##form(w, N, at, mask, cmp, V), n_holds); \
		CHECK(!n_holds || !memcmp(at, where, n_holds * sizeof(*at)));                      \
	} while (0)

#define DEFINE(name, T)                                                                            \
	static void look_##name(const T *have, int cmp, const int *mask, const T *values)          \
	{                                                                                          \
		size_t at[N], where[N], n_holds, n_counted;                                        \
		T *w = (T *)(void *)heap;                                                          \
                                                                                                   \
		for (int vector = 0; vector < 2; vector++) {                                       \
			n_holds = n_counted = 0;                                                   \
			for (size_t i = 0; i < N; i++) {                                           \
				if (mask && mask[i])                                               \
					continue;                                                  \
				n_counted++;                                                       \
				if (MULTI_HOLDS(cmp, have[i], values[vector ? i : 0]))             \
					where[n_holds++] = i;                                      \
			}                                                                          \
			if (vector)                                                                \
				AGREE(name, _vector, values);                                      \
			else                                                                       \
				AGREE(name, , values[0]);                                          \
		}                                                                                  \
	}                                                                                          \
	static void looks_##name(void)                                                             \
	{                                                                                          \
		const int masks[3][N] = {/* some, most, all */                                     \
					 {1, 0, 0, 7, 0, -1, 0}, {1, 1, 0, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}}; \
		const T values[2][N] = {{3, (T)-3, 9, (T)-1, 0, 3, 4}, {(T)-1, 3, 3, 4, 9, 2, 4}}; \
		const T have[N] = {3, 3, (T)-1, 4, 3, 2, 4};                                       \
                                                                                                   \
		CHECK_OK(gdr_host_##name##_put((T *)(void *)heap, have, N, multi_pe));             \
		CHECK_OK(gdr_host_quiet());                                                        \
		for (int k = 0; k < 6 * 2; k++) {                                                  \
			look_##name(have, k % 6, NULL, values[k / 6]);                             \
			for (int m = 0; m < 3; m++)                                                \
				look_##name(have, k % 6, masks[m], values[k / 6]);                 \
		}                                                                                  \
		CHECK_OK(gdr_host_status());                                                       \
	}                                                                                          \
	/* What the previous PE puts, before or meanwhile. */                                      \
	static void ended_##name(void)                                                             \
	{                                                                                          \
		T *w = (T *)(void *)heap, values[N];                                               \
		int mask[N] = {0};                                                                 \
		size_t at[N], n;                                                                   \
                                                                                                   \
		CHECK_OK(gdr_barrier_all());                                                       \
		multi_fill(heap, 0, N * 8);                                                        \
		CHECK_OK(gdr_barrier_all());                                                       \
		for (int i = 0; i < N; i++) {                                                      \
			values[i] = (T)(100 + i);                                                  \
			CHECK_OK(gdr_host_##name##_p(w + (i + LATE) % N, (T)(100 + (i + LATE) % N), next)); \
			CHECK_OK(gdr_host_fence());                                                \
		}                                                                                  \
		CHECK(gdr_host_##name##_wait_until_any(w, N, NULL, GDR_CMP_GE, 100) < N);          \
		for (int i = 0, last = 0; i < N; i += last) {                                      \
			n = gdr_host_##name##_wait_until_some_vector(w, N, at, mask, GDR_CMP_EQ, values); \
			CHECK(n > 0 && n <= (size_t)(N - i));                                      \
			for (size_t k = 0; k < n; k++)                                             \
				mask[at[k]]++; /* each once */                                     \
			last = (int)n;                                                             \
		}                                                                                  \
		for (int i = 0; i < N; i++)                                                        \
			CHECK_EQ(mask[i], 1);                                                      \
		CHECK_EQ(gdr_host_##name##_wait_until_any_vector(w, N, mask, GDR_CMP_EQ, values), NONE); \
		CHECK_OK(gdr_host_##name##_wait_until_all(w, N, NULL, GDR_CMP_GE, 100));           \
		CHECK_OK(gdr_host_##name##_wait_until_all_vector_for(w, N, NULL, GDR_CMP_EQ, values, LONG_NS)); \
		CHECK_EQ(gdr_host_##name##_wait_until_some(w, N, at, NULL, GDR_CMP_EQ, 103), 1);   \
		CHECK_EQ(at[0], 3);                                                                \
		CHECK_EQ(gdr_host_##name##_wait_until_all(w, N, NULL, 6, 1), -GDR_EINVAL);         \
		CHECK_EQ(gdr_host_##name##_wait_until_all_vector(w, N, NULL, 6, values), -GDR_EINVAL); \
	}
MULTI_WAIT_TYPES(DEFINE)

/* The words come while all wait: each PE starts the next one's. */
static void turns(void)
{
	int *w = (int *)(void *)heap;

	CHECK_OK(gdr_barrier_all());
	multi_fill(heap, 0, N * 8);
	CHECK_OK(gdr_barrier_all());
	for (int i = 1; i <= 50; i++) {
		if (!multi_pe)
			CHECK_OK(gdr_host_int_p(w + i % N, i, next));
		CHECK_EQ(gdr_host_int_wait_until_any_for(w, N, NULL, GDR_CMP_EQ, i, LONG_NS), i % N);
		if (multi_pe)
			CHECK_OK(gdr_host_int_p(w + i % N, i, next));
	}
}

/* A word that always holds does not hide the others. */
static void fair(void)
{
	int *w = (int *)(void *)heap;
	unsigned seen = 0;

	multi_fill(heap, 0, N * 8);
	for (int i = 0; i < 200; i++) {
		seen |= 1u << gdr_host_int_test_any(w, 3, NULL, GDR_CMP_EQ, 0);
		seen |= 8u << gdr_host_int_wait_until_any(w, 3, NULL, GDR_CMP_EQ, 0);
	}
	CHECK_EQ(seen, 63);
}

static void empty(void)
{
	CHECK_OK(gdr_host_int_wait_until_all(NULL, 0, NULL, GDR_CMP_EQ, 1));
	CHECK_OK(gdr_host_int_wait_until_all_vector(NULL, 0, NULL, GDR_CMP_EQ, NULL));
	CHECK_EQ(gdr_host_int_wait_until_any(NULL, 0, NULL, GDR_CMP_EQ, 1), NONE);
	CHECK_EQ(gdr_host_int_wait_until_some(NULL, 0, NULL, NULL, GDR_CMP_EQ, 1), 0);
	CHECK_EQ(gdr_host_int_test_all(NULL, 0, NULL, GDR_CMP_EQ, 1), 1);
	CHECK_OK(gdr_host_status());
}

/* Says which call it was, and gives what there is when nothing is. */
#define REFUSED(call, none, text)                                                                  \
	do {                                                                                       \
		said_begin();                                                                      \
		CHECK_EQ(call, none);                                                              \
		said_expect(text, NULL);                                                           \
		CHECK_EQ(gdr_host_quiet(), -GDR_EINVAL);                                           \
	} while (0)

static void refused(void)
{
	int own[N] = {0}, *w = (int *)(void *)heap;
	size_t at[N];

	if (multi_pe)
		return;
	CHECK_EQ(gdr_host_int_wait_until_all(own, N, NULL, GDR_CMP_EQ, 0), -GDR_EINVAL); /* not in the heap */
	CHECK_EQ(gdr_host_int_wait_until_all_for(w, N, NULL, 6, 0, 0), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_wait_until_all(w, SIZE_MAX / 2, NULL, GDR_CMP_EQ, 0), -GDR_EINVAL);
	CHECK_OK(gdr_host_quiet());
	REFUSED(gdr_host_int_wait_until_any(own, N, NULL, GDR_CMP_EQ, 0), NONE, "gdr_host_TYPE_wait_until_any: ");
	REFUSED(gdr_host_int_wait_until_any_vector_for(w, N, NULL, GDR_CMP_EQ, NULL, 0), NONE,
		"gdr_host_TYPE_wait_until_any_vector_for: values is NULL, with 7 words");
	REFUSED(gdr_host_int_test_some(w, N, NULL, NULL, GDR_CMP_EQ, 0), 0,
		"gdr_host_TYPE_test_some: indices is NULL, with 7 words");
	REFUSED(gdr_host_int_test_some_vector(w, N, at, NULL, -1, own), 0,
		"gdr_host_TYPE_test_some_vector: there is no comparison");
	REFUSED(gdr_host_int_test_all(own, N, NULL, GDR_CMP_EQ, 0), 0, "gdr_host_TYPE_test_all: ");
}

/* GDR_TIMEOUT ends it, though its own limit is longer: an error, which is told by the name of the call. */
static int late(void)
{
	struct gdr_error e;
	int *w = (int *)(void *)heap;

	CHECK_EQ(gdr_host_int_wait_until_any_for(w, N, NULL, GDR_CMP_EQ, 1, 100 * (uint64_t)LONG_NS), NONE);
	CHECK_EQ(gdr_host_status(), -GDR_ETIMEOUT);
	if (gdr_errors(&e, 1) == 1) /* on a GPU the host waits, and says so */
		CHECK(strstr(e.text, "gdr_host_TYPE_wait_until_any_for"));
	CHECK_EQ(gdr_host_int_wait_until_all(w, N, NULL, GDR_CMP_EQ, 1), -GDR_ETIMEOUT);
	gdr_finalize();
	printf("host_waits: ended as it should\n");
	return 0;
}

#define DO(name, T)                                                                                \
	looks_##name();                                                                            \
	ended_##name();

int main(int argc, char **argv)
{
	CHECK_EQ(gdr_host_int_test_any(NULL, 1, NULL, GDR_CMP_EQ, 1), NONE); /* before gdr_init */
	multi_begin();
	next = (multi_pe + 1) % multi_n;
	heap = (uint64_t *)gdr_calloc(N, 8);
	CHECK(heap);
	if (argc > 1 && !strcmp(argv[1], "late"))
		return late();
	MULTI_WAIT_TYPES(DO)
	turns();
	fair();
	empty();
	refused();
	CHECK_OK(gdr_free(heap));
	return multi_end("host_waits");
}
