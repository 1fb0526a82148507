/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy of one thread: every length up to 300 bytes, from and to every place in 16 bytes; words of 8 bytes arrive
 * whole beside a thread that changes the source. With arguments it is what ./copy_count counts the instructions of:
 * test_copy LENGTH OFFSET. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gdr.h>

enum { MOST = 300, EDGE = 16 };

static uint8_t from[MOST + 2 * EDGE] __attribute__((aligned(64))), to[MOST + 2 * EDGE] __attribute__((aligned(64)));

__attribute__((noinline)) void count_copy(size_t d, size_t s, size_t len);

void count_copy(size_t d, size_t s, size_t len)
{
	gdri_copy_thread(to + d, from + s, len);
}

static void check(size_t d, size_t s, size_t len)
{
	size_t i;

	memset(to, 0xee, sizeof(to));
	count_copy(d, s, len);
	for (i = 0; i < sizeof(to); i++)
		if (to[i] != (i >= d && i < d + len ? from[s + i - d] : 0xee))
			fail_msg("byte %zu of %zu bytes from place %zu to place %zu", i, len, s, d);
}

static void test_copies(void **state)
{
	size_t d, s, len;

	(void)state;
	for (d = 0; d < sizeof(from); d++)
		from[d] = (uint8_t)(d * 7 + 1);
	for (d = 0; d < 16; d++)
		for (s = 0; s < 16; s++)
			for (len = 0; len <= MOST; len++)
				check(d, s, len);
}

/* ---- words stay whole ---- */

enum { WORDS = 32, COPIES = 300000 };

static int stop;

/* Each word of the source is, at any time, 8 equal bytes. */
static void *change(void *arg)
{
	uint64_t *w = arg, v;
	unsigned round;
	int i;

	for (round = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); round++) /* alone: pairs with nothing */
		for (v = (round & 0xff) * 0x0101010101010101u, i = 0; i < WORDS; i++)
			__atomic_store_n(&w[i], v, __ATOMIC_RELAXED); /* pairs with the copy's load */
	return NULL;
}

static void *copy(void *arg)
{
	int i;

	for (i = 0; i < COPIES; i++)
		gdri_copy_thread(to + 8, arg, 8 * WORDS);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED); /* alone: pairs with nothing */
	return NULL;
}

static void look(const uint64_t *w)
{
	uint64_t v;
	int i;

	for (i = 0; i < WORDS; i++) {
		v = __atomic_load_n(&w[i], __ATOMIC_RELAXED); /* pairs with the copy's store */
		if (v != (v & 0xff) * 0x0101010101010101u)
			fail_msg("word %d came in parts: %016llx", i, (unsigned long long)v);
	}
}

/* The source's words are pairs as the destination's are, or lie across them and across lines. */
static void check_whole(size_t s)
{
	pthread_t changer, copier;

	memset(from, 0, sizeof(from));
	memset(to, 0, sizeof(to));
	stop = 0;
	assert_false(pthread_create(&changer, NULL, change, from + s));
	assert_false(pthread_create(&copier, NULL, copy, from + s));
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) /* alone: pairs with nothing */
		look((const uint64_t *)(const void *)(to + 8));
	pthread_join(changer, NULL);
	pthread_join(copier, NULL);
}

static void test_whole_words(void **state)
{
	(void)state;
	check_whole(8);
	check_whole(16);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies), cmocka_unit_test(test_whole_words)};

	if (argc == 3) {
		count_copy(0, strtoul(argv[2], NULL, 10), strtoul(argv[1], NULL, 10));
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
