/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy that stays in the caller's code, also where all others are libgdr_device.a's. */
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

#endif
