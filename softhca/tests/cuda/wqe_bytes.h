/* SPDX-License-Identifier: BSD-3-Clause */
/* Big-endian fields of WQEs that a test builds as a kernel would. */
#ifndef SOFTHCA_TEST_WQE_BYTES_H
#define SOFTHCA_TEST_WQE_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void put32(uint8_t *b, size_t at, uint32_t v)
{
	v = htobe32(v);
	memcpy(b + at, &v, 4);
}

static inline void put64(uint8_t *b, size_t at, uint64_t v)
{
	v = htobe64(v);
	memcpy(b + at, &v, 8);
}

#endif
