/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a fuzzer, one behind the other; zeros when there are no more. */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

static const uint8_t *in;
static size_t in_left;

static uint8_t byte(void)
{
	if (!in_left)
		return 0;
	in_left--;
	return *in++;
}

static uint32_t word(void)
{
	uint32_t v = byte();

	v = v << 8 | byte();
	v = v << 8 | byte();
	return v << 8 | byte();
}

#endif
