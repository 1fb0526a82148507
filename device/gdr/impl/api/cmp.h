/* SPDX-License-Identifier: BSD-3-Clause */
/* Comparisons of words with a value, as waits and tests make them. */
#ifndef GDRI_CMP_H
#define GDRI_CMP_H

#include <gdr/impl/arch/arch.h>

/* a - b in the order of the type, as -1, 0, 1; compared with a mask per operator:
 * bit 0 less, bit 1 equal, bit 2 greater. Unknown operators never hold. */
GDR_DEVICE uint32_t gdri_cmp_mask(int cmp)
{
	return cmp == GDR_CMP_EQ   ? 2u
	       : cmp == GDR_CMP_NE ? 5u
	       : cmp == GDR_CMP_GT ? 4u
	       : cmp == GDR_CMP_GE ? 6u
	       : cmp == GDR_CMP_LT ? 1u
	       : cmp == GDR_CMP_LE ? 3u
				   : 0u;
}

/* v as it was loaded: 2 and 4 bytes are extended here. */
GDR_DEVICE int gdri_cmp_holds(uint64_t v, uint32_t size, int is_signed, int cmp, uint64_t value)
{
	uint64_t bias = is_signed ? 1ull << 63 : 0;
	uint32_t rel;

	if (size == 4 && is_signed)
		v = (uint64_t)(int64_t)(int32_t)v;
	if (size == 2 && is_signed)
		v = (uint64_t)(int64_t)(int16_t)v;
	v ^= bias; /* signed order as unsigned order */
	value ^= bias;
	rel = v < value ? 1u : v == value ? 2u : 4u;
	return (gdri_cmp_mask(cmp) & rel) != 0;
}

/* The loads are acquires: pair with the release of the signal, or with the NIC's
 * order of data before it. */
GDR_DEVICE uint64_t gdri_ld_word(const void *p, uint32_t size)
{
	return size == 8   ? gdri_ld_acquire_sys_u64((const uint64_t *)p)
	       : size == 4 ? gdri_ld_acquire_sys_u32((const uint32_t *)p)
			   : gdri_ld_acquire_sys_u16((const uint16_t *)p);
}

GDR_DEVICE int gdri_cmp_u64(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value)
{
	return gdri_cmp_holds(gdri_ld_word(p, size), size, is_signed, cmp, value);
}

#endif
