/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the host device share. */
#ifndef TESTS_HOSTDEV_TEST_H
#define TESTS_HOSTDEV_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/hostdev/hostdev.h"
#include "runtime/hostdev/hostdev_fiber.h" /* GDRI_HD_TSAN */
#include "tests/hostdev/kernels.h"

#define MAX_BLOCKS 256

struct results {
	uint32_t errors;
	uint32_t out[8];
	uint64_t sum[MAX_BLOCKS];
};

static inline struct kernel_args args_for(struct results *r, uint32_t n)
{
	struct kernel_args a = {&r->errors, r->out, r->sum, n, 0};

	memset(r, 0, sizeof(*r));
	return a;
}

#endif
