/* SPDX-License-Identifier: BSD-3-Clause */
/* Big-endian integers as types of their own: the compiler refuses to mix them
 * with host integers, and they cost nothing (gcc and nvcc generate the same
 * code as for raw integers). Little-endian hosts and GPUs only. */
#ifndef GDRI_BE_H
#define GDRI_BE_H

#include <gdr/impl/arch/arch.h>

typedef struct {
	uint16_t be;
} gdri_be16_t;
typedef struct {
	uint32_t be;
} gdri_be32_t;
typedef struct {
	uint64_t be;
} gdri_be64_t;

GDRI_INLINE uint16_t gdri_bswap16(uint16_t v)
{
	return (uint16_t)((v >> 8) | (v << 8));
}

GDRI_INLINE gdri_be16_t gdri_to_be16(uint16_t v)
{
	gdri_be16_t r = {gdri_bswap16(v)};
	return r;
}

GDRI_INLINE gdri_be32_t gdri_to_be32(uint32_t v)
{
	gdri_be32_t r = {gdri_bswap32(v)};
	return r;
}

GDRI_INLINE gdri_be64_t gdri_to_be64(uint64_t v)
{
	gdri_be64_t r = {gdri_bswap64(v)};
	return r;
}

GDRI_INLINE uint16_t gdri_from_be16(gdri_be16_t v)
{
	return gdri_bswap16(v.be);
}

GDRI_INLINE uint32_t gdri_from_be32(gdri_be32_t v)
{
	return gdri_bswap32(v.be);
}

GDRI_INLINE uint64_t gdri_from_be64(gdri_be64_t v)
{
	return gdri_bswap64(v.be);
}

#endif
