/* SPDX-License-Identifier: BSD-3-Clause */
/* The checked build on the host device looks objects up: what runs over an object's end, and what lies in memory that
 * was freed or never given out, is refused, nothing has moved, and the text says by how much. Not refused is what an
 * object's size was rounded up to, memory of the program that was registered, and parts that a heap grew by, also while
 * another thread allocates. */
#include <pthread.h>

#include "tests/multi/multi.h"

enum { WORDS = 512, SIZE = WORDS * 8, PAGE = GDR_SYMMETRIC_PAGE, ROUNDS = 100 };

static struct gdr_error e[64];
static int records, pe;

static void told(int ret, const char *words)
{
	CHECK_EQ(ret, -GDR_EINVAL);
	CHECK_EQ(gdr_errors(e, 64), ++records);
	if (!strstr(e[records - 1].text, words) || !strstr(e[records - 1].text, "objects.c:"))
		multi_fail(__FILE__, __LINE__, "not \"%s\": %s", words, e[records - 1].text);
}

/* And the next quiet says so. */
static void told_twice(int ret, const char *words)
{
	told(ret, words);
	CHECK_EQ(gdr_quiet(), -GDR_EINVAL);
}

static void told_of(int ret, const char *arg, const void *at, const char *words)
{
	char text[128];

	snprintf(text, sizeof(text), "%s 0x%llx, ", arg, (unsigned long long)(uintptr_t)at);
	told(ret, text);
	if (!strstr(e[records - 1].text, words))
		multi_fail(__FILE__, __LINE__, "not \"%s\": %s", words, e[records - 1].text);
}

static const char *at_object(const char *words, const void *object)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s of %d bytes at 0x%llx", words, SIZE, (unsigned long long)(uintptr_t)object);
	return text;
}

/* b lies behind a. */
static void beyond(uint64_t *a, uint64_t *b)
{
	uint64_t own[WORDS + 1] = {0}, *end = a + WORDS + 1;

	told_of(gdr_uint64_put(a, b, WORDS + 1, pe), "dest", a, at_object("goes 8 bytes beyond the object", a));
	told_of(gdr_put(a, own, SIZE + 1, pe), "dest", a, at_object("goes 1 bytes beyond the object", a));
	told_of(gdr_get(own, a + 1, SIZE, pe), "source", a + 1, at_object("goes 8 bytes beyond the object", a));
	told_of(gdr_put_nbi(a, b + WORDS - 1, 16, pe), "source", b + WORDS - 1, "goes 8 bytes beyond");
	told_of(gdr_uint64_iput(a, b, 8, 1, WORDS / 8 + 1, pe), "dest", a, "goes 8 bytes beyond");
	told_of(gdr_uint64_ibget(b, a, 4, WORDS, 4, 2, pe), "source", a, "goes 32 bytes beyond");
	told_of(gdr_put_signal(a, b, SIZE + 8, b, 1, GDR_SIGNAL_SET, pe), "dest", a, "goes 8 bytes beyond");
	told_of(gdr_uint64_wait_until_all(a + 1, WORDS, NULL, GDR_CMP_EQ, 0), "the word", a + 1,
		"goes 8 bytes beyond");
	told_of(gdr_uint64_fcollect(GDR_TEAM_WORLD, end - 2 * multi_n, b, 2), "dest", end - 2 * multi_n,
		"goes 8 bytes beyond");
	CHECK_EQ(gdr_quiet(), -GDR_EINVAL);
	CHECK_OK(gdr_put(a, b, SIZE, pe));
	CHECK_OK(gdr_uint64_iput(a + 7, b, 8, 1, WORDS / 8, pe));
	CHECK_OK(gdr_quiet());
}

/* Between two that are there, and behind all. */
static void in_none(uint64_t *a, uint64_t *gone, uint64_t *last)
{
	uint64_t v = 0;

	told_of(gdr_uint64_p(gone, 1, pe), "dest", gone, at_object("is in no object: 0 bytes behind the one", a));
	CHECK_EQ(gdr_uint64_g(gone + 1, pe), 0);
	told_twice(gdr_status(), "is in no object: 8 bytes behind the one");
	told_twice(gdr_uint64_atomic_add(gone + 2, 1, pe), "is in no object: 16 bytes behind");
	told_twice(gdr_signal_set(gone + 3, 1, pe), "is in no object: 24 bytes behind");
	told_twice(gdr_put(a, gone, SIZE, pe), "is in no object");
	told_twice(gdr_get(gone, a, SIZE, pe), "is in no object");
	told(gdr_set_lock((long *)gone), "is in no object");
	told_twice(gdr_put(gone + WORDS - 1, &v, 16, pe), "is in no object"); /* though its end is in one */
	told_twice(gdr_put(last + WORDS, &v, 8, pe), at_object("is in no object: 0 bytes behind the one", last));
	told_twice(gdr_put(last + 8 * WORDS, &v, 8, pe), "is in no object: 28672 bytes behind");
}

static void rounded(void)
{
	uint8_t *small = gdr_calloc(1, 1), *v = gdr_calloc(1, 300);

	CHECK(small && v);
	CHECK_OK(gdr_put(small, v, 256, pe));
	told_twice(gdr_put(small, v, 257, pe), "goes 1 bytes beyond the object of 256 bytes");
	CHECK_OK(gdr_put(v, v + 256, 256, pe));
	v = gdr_realloc(v, 100);
	CHECK(v);
	told_twice(gdr_put(v, small, 300, pe), "beyond the object of 256 bytes");
	CHECK_OK(gdr_free(v));
	CHECK_OK(gdr_free(small));
}

/* Memory of the program as part of the heap. */
static void registered(void)
{
	static GDR_SYMMETRIC(uint8_t, own, 1);
	uint8_t *p = gdr_symmetric_register(own, PAGE);
	uint64_t v = 1;

	CHECK(p);
	CHECK_OK(gdr_put(p + PAGE - 8, &v, 8, pe));
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(own[PAGE - 8], 1);
	told_twice(gdr_put(p + PAGE - 8, p, 16, pe), "goes 8 bytes beyond the object of 65536 bytes");
	CHECK_OK(gdr_symmetric_unregister(p));
	told_twice(gdr_put(p, &v, 8, pe), "is in no object");
}

static int stop;

/* pairs with nothing: a number */
static void *puts_meanwhile(void *object)
{
	uint64_t v[WORDS] = {0};

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		CHECK_OK(gdr_put(object, v, 16, pe));
		CHECK_OK(gdr_quiet());
	}
	return NULL;
}

static void beside_others(void *object)
{
	void *some[64] = {NULL};
	pthread_t thread;

	CHECK_OK(pthread_create(&thread, NULL, puts_meanwhile, object));
	for (int i = 0; i < ROUNDS; i++) {
		void **p = &some[i * 7 % 64];

		CHECK_OK(gdr_free(*p));
		*p = gdr_malloc(1000 + (size_t)i * 3000);
		CHECK(*p);
	}
	for (int i = 0; i < 64; i++)
		CHECK_OK(gdr_free(some[i]));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

int main(void)
{
	uint64_t *a, *b, *gone, *last;

	multi_begin();
	pe = (multi_pe + 1) % multi_n;
	a = gdr_calloc(WORDS, 8);
	b = gdr_calloc(WORDS, 8);
	gone = gdr_calloc(WORDS, 8);
	last = gdr_calloc(WORDS, 8);
	CHECK(a && b && gone && last && b == a + WORDS && gone == b + WORDS);
	beyond(a, b);
	CHECK_OK(gdr_free(gone));
	in_none(b, gone, last);
	rounded();
	registered();
	CHECK_OK(gdr_barrier_all());
	for (int i = 0; i < WORDS; i++)
		CHECK_EQ(a[i] | b[i] | last[i], 0);
	CHECK_OK(gdr_barrier_all());
	beside_others(a);
	CHECK_OK(gdr_free(last));
	CHECK_OK(gdr_free(b));
	CHECK_OK(gdr_free(a));
	told_twice(gdr_uint64_p(a, 1, pe), "is in no object, and there is none before it");
	CHECK_EQ(gdr_errors(NULL, 0), records);
	CHECK_OK(gdr_finalize());
	return 0;
}
