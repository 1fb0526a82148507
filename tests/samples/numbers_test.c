/* SPDX-License-Identifier: BSD-3-Clause */
/* samples/moe_numbers.h against the numbers that the formats have: each float between two of them becomes the nearer
 * one, and half-way the one whose code is even. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "samples/moe_numbers.h"

/* What OCP's E4M3 says a code is. */
static float e4m3(int code)
{
	int exponent = code >> 3, mantissa = code & 7;

	return exponent ? ldexpf(1.0f + (float)mantissa / 8, exponent - 7) : ldexpf((float)mantissa / 8, -6);
}

/* Both signs of x. */
static void expect_fp8(float x, int code)
{
	assert_int_equal(fp8_of(x), code);
	assert_int_equal(fp8_of(-x), code | 0x80);
}

static void test_fp8(void **state)
{
	(void)state;
	for (int code = 0; code < 0x7e; code++) {
		float low = e4m3(code), high = e4m3(code + 1), half = (low + high) / 2;

		assert_true(fp8_float((uint8_t)code) == low);
		assert_true(fp8_float((uint8_t)(code | 0x80)) == -low);
		expect_fp8(low, code);
		expect_fp8(nextafterf(half, low), code);
		expect_fp8(half, code & 1 ? code + 1 : code);
		expect_fp8(nextafterf(half, high), code + 1);
	}
	assert_true(fp8_float(0x7e) == FP8_MAX);
	expect_fp8(FP8_MAX, 0x7e);
	expect_fp8(1e30f, 0x7e);
	assert_true(fp8_factor(448.0f * 8) == 0.125f && fp8_scale(448.0f * 8) == 8.0f);
	for (float largest = 0x1p-149f; largest < 0x1p127f; largest *= 2) /* below it, what becomes 0 */
		expect_fp8(largest * fp8_factor(largest), largest > 0x1p-100f ? 0x7e : 0);
}

static void test_bf16(void **state)
{
	(void)state;
	for (uint32_t code = 0; code < 0x7f7f; code++) {
		float low = bf16_float((uint16_t)code), high = bf16_float((uint16_t)(code + 1));
		float half = bits_float(code << 16 | 0x8000);

		assert_true(low < half && half < high);
		assert_int_equal(bf16_of(low), code);
		assert_int_equal(bf16_of(-low), code | 0x8000);
		assert_int_equal(bf16_of(nextafterf(half, low)), code);
		assert_int_equal(bf16_of(half), code & 1 ? code + 1 : code);
		assert_int_equal(bf16_of(nextafterf(half, high)), code + 1);
	}
	assert_true(bf16_float(0x3f80) == 1.0f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fp8),
		cmocka_unit_test(test_bf16),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
