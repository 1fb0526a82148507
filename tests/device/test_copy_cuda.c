/* SPDX-License-Identifier: BSD-3-Clause */
/* The copies of CUDA (arch/copy_cuda.h), compiled as C, thread after thread: every length of some, every place in 16
 * bytes at either side, by one thread, warps, blocks of whole warps and not, and on the slow path. What they access is
 * aligned (-fsanitize=alignment), and nothing beside the destination changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gdr/macros.h>

/* What arch_cuda.h and unit.h say under CUDA. */
#define GDRI_UNIT_H
#define GDRI_NOINLINE static __attribute__((noinline, unused))
#define GDRI_NOT_UNROLLED
#define GDRI_UNROLLED
#define GDRI_BY_ABI(f) ((void)0)
#define gdri_likely(x) (x)
#define gdri_unlikely(x) (x)
#define __builtin_assume(x) ((void)0)
#define __cvta_generic_to_global(p) ((uint64_t)(uintptr_t)(p))
#define __cvta_global_to_generic(p) ((void *)(uintptr_t)(p))

typedef struct {
	uint32_t x, y, z, w;
} __attribute__((aligned(16))) uint4;

static struct {
	uint64_t zero;
} gdri_constants_here;

static uint64_t gdri_ld_word_if_0(const void *src, uint32_t other)
{
	return other ? 0 : *(const uint64_t *)src;
}

#include <gdr/impl/arch/copy_cuda.h>

enum { MOST = 70000, EDGE = 32 };

static uint8_t from[MOST + 2 * EDGE] __attribute__((aligned(64))), to[MOST + 2 * EDGE] __attribute__((aligned(64)));

enum how { TO_PEER, FROM_PEER, SLOW_THREAD, PUT_GROUP, GET_GROUP, COLLECTIVE, SLOW_GROUP };

static void copy(enum how how, uint8_t *d, const uint8_t *s, size_t len, uint32_t n)
{
	uint32_t rank;

	if (how == TO_PEER)
		gdri_copy_word_first(d, s, len);
	else if (how == FROM_PEER)
		gdri_copy_thread(d, s, len);
	else if (how == SLOW_THREAD)
		gdri_copy_thread_lean(d, s, len);
	for (rank = 0; how >= PUT_GROUP && rank < n; rank++) {
		if (how == PUT_GROUP || how == GET_GROUP)
			gdri_copy_group(d, s, len, rank, n, how == GET_GROUP);
		else if (how == COLLECTIVE)
			gdri_copy(d, s, len, rank, n);
		else
			gdri_copy_lean(d, s, len, rank, n);
	}
}

static void check(enum how how, size_t d, size_t s, size_t len, uint32_t n)
{
	memset(to, 0xee, len + 2 * EDGE);
	copy(how, to + d, from + s, len, n);
	for (size_t i = 0; i < d; i++)
		assert_int_equal(to[i], 0xee);
	for (size_t i = d + len; i < len + 2 * EDGE; i++)
		assert_int_equal(to[i], 0xee);
	if (memcmp(to + d, from + s, len))
		fail_msg("way %d, %u threads: %zu bytes from place %zu to place %zu", how, n, len, s, d);
}

static const uint32_t sizes[] = {1, 5, 31, 32, 33, 64, 96, 256, 1024};

static void all(size_t d, size_t s, size_t len)
{
	for (int how = TO_PEER; how <= SLOW_THREAD; how++)
		check((enum how)how, d, s, len, 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		check(PUT_GROUP, d, s, len, sizes[i]);
		check(GET_GROUP, d, s, len, sizes[i]);
		check(COLLECTIVE, d, s, len, sizes[i]);
		check(SLOW_GROUP, d, s, len, sizes[i]);
	}
}

static void test_short_ones(void **state)
{
	(void)state;
	for (size_t d = 0; d < 16; d += 1 + d / 2)
		for (size_t s = 0; s < 16; s += 1 + s / 2)
			for (size_t len = 0; len <= 160; len++)
				all(d, s, len);
}

/* Around the lengths at which the ways change, and one of many rounds. */
static void test_long_ones(void **state)
{
	static const size_t lengths[] = {512, 1024, 2048, 4096, 14336, 32768, 65536};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (size_t d = 0; d < 16; d += 4)
			for (size_t more = 0; more < 48; more += 1 + more / 2) {
				all(d, d, lengths[i] + more);
				all(d, (d + 8) & 15, lengths[i] + more);
				all(d, (d + 3) & 15, lengths[i] - more);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_ones),
		cmocka_unit_test(test_long_ones),
	};

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
