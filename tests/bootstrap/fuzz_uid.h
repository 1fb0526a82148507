/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_UID_H
#define TESTS_FUZZ_UID_H

#include <stddef.h>
#include <stdint.h>

/* How far inputs came. */
extern struct fuzz_uid_stats {
	uint64_t welcomes, results, done, aborts, taken;
} fuzz_uid_stats;

void fuzz_uid(const uint8_t *data, size_t n);

#endif
