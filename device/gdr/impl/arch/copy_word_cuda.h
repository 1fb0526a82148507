/* SPDX-License-Identifier: BSD-3-Clause */
/* The copies that stay in the caller's code, also where all others are libgdr_device.a's. */
#ifndef GDRI_COPY_WORD_CUDA_H
#define GDRI_COPY_WORD_CUDA_H

#include <gdr/impl/arch/unit.h>

/* Copies what is a word, aligned: 1; else nothing: 0. 8 bytes are mostly one, which is under way before that is known:
 * of others the one that src lies in, which can be read where src can, and is not used. Takes two registers more. */
GDR_DEVICE int gdri_copy_if_word(void *dst, const void *src, size_t len)
{
	uint64_t to = __cvta_generic_to_global(dst), at = (uint64_t)dst | (uint64_t)src, word;
	uint32_t not_8 = ((uint32_t)len ^ 8u) | (uint32_t)(len >> 32); /* one instruction, as is the test of it */

	word = gdri_ld_word_if_0((const void *)((uint64_t)src & ~(uint64_t)7), not_8);
	asm volatile("" : "+l"(to)); /* or the address would be found once more behind the branch */
	if (gdri_unlikely(not_8 | ((uint32_t)at & 7u)))
		return 0;
	*(uint64_t *)__cvta_global_to_generic(to) = word; /* generic stores in a row take half as long again */
	return 1;
}

#define GDRI_COPY_PUT_ROWS 4u /* each waits for the one before */
#define GDRI_COPY_GET_ROWS 1u /* a round trip each */
#define GDRI_COPY_ROWS(get) ((get) ? GDRI_COPY_GET_ROWS : GDRI_COPY_PUT_ROWS)

GDR_DEVICE int gdri_copy_is_rows(const void *dst, const void *src, size_t len, uint32_t n, uint32_t rows)
{
	uint32_t at = (uint32_t)(uint64_t)dst | (uint32_t)(uint64_t)src;

	return !((at | (uint32_t)len) & 15) && len <= (size_t)n * (16 * rows);
}

/* By n threads, whole vectors, up to `rows` for each thread: 1; else nothing: 0. Without a call, which takes longer
 * than the threads wait for one vector at a time; two, or an index beside the addresses, take a kernel to 34
 * registers (docs/perf/house.md, Block copies). */
GDR_DEVICE int gdri_copy_if_rows(void *dst, const void *src, size_t len, uint32_t rank, uint32_t n, uint32_t rows)
{
	uint4 *d = (uint4 *)dst + rank;
	const uint4 *s = (const uint4 *)src + rank;
	int32_t left = (int32_t)((uint32_t)len / 16 - rank);

	if (!gdri_copy_is_rows(dst, src, len, n, rows))
		return 0;
	GDRI_NOT_UNROLLED
	for (; left > 0; left -= (int32_t)n) {
		*d = *s;
		d += n;
		s += n;
	}
	return 1;
}

#endif
