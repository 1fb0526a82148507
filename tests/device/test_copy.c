/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy of one thread: every length up to 300 bytes, from and to every place in a word. With arguments it is what
 * ./copy_count counts the instructions of: test_copy LENGTH OFFSET. */
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
	for (d = 0; d < 8; d++)
		for (s = 0; s < 8; s++)
			for (len = 0; len <= MOST; len++)
				check(d, s, len);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies)};

	if (argc == 3) {
		count_copy(0, strtoul(argv[2], NULL, 10), strtoul(argv[1], NULL, 10));
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
