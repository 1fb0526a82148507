// SPDX-License-Identifier: BSD-3-Clause
/* WQE bytes of gdr's builders against vectors that were captured from libmlx5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/golden/build.h"

static const struct golden vectors[] = {
#include "tests/golden/vectors.inc"
};

static void test_same_bytes(void **state)
{
	unsigned i, seen = 0;

	(void)state;
	for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		assert_int_equal(golden_compare(&vectors[i]), 0);
		seen |= 1u << vectors[i].op;
	}
	assert_int_equal(seen, 0x1f); /* every operation occurs */
}

/* The comparison itself: any bit changed in what the device reads is found. */
static void test_comparison_sees_changes(void **state)
{
	unsigned i, byte;

	(void)state;
	for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		for (byte = 0; byte < golden_used(&vectors[i]); byte++) {
			struct golden g = vectors[i];
			uint8_t w[64];

			if (byte == 7 || byte == 8)
				continue; /* ds decides what is read; signature */
			memcpy(w, g.bytes, 64);
			w[byte] ^= 0x10;
			assert_int_equal(golden_differs(&g, w), byte);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_comparison_sees_changes),
	};

	return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
