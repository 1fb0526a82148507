/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of 16 and 8 bits for moe.c, in C that all compilers take: bfloat16, and FP8 as E4M3 (no infinities,
 * largest 448), both rounded to the nearest, ties to even. NaNs and infinities are not looked for. */
#ifndef MOE_NUMBERS_H
#define MOE_NUMBERS_H

#include <gdr.h>
#include <string.h>

#define FP8_MAX 448.0f

GDR_BOTH uint32_t float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

GDR_BOTH float bits_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

GDR_BOTH uint16_t bf16_of(float f)
{
	uint32_t bits = float_bits(f);

	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

GDR_BOTH float bf16_float(uint16_t b)
{
	return bits_float((uint32_t)b << 16);
}

/* Saturates. Below 2^-6 the numbers are multiples of 2^-9, which is what a float can hold from 2^14 on. */
GDR_BOTH uint8_t fp8_of(float f)
{
	uint32_t bits = float_bits(f) & 0x7fffffff, sign = float_bits(f) >> 24 & 0x80;
	uint32_t small = float_bits(bits_float(bits) + 16384.0f) - float_bits(16384.0f);
	uint32_t code = bits_float(bits) < 0x1p-6f ? small
						   : ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - ((127 - 7) << 3);

	return (uint8_t)(sign | (code > 0x7e ? 0x7e : code));
}

/* By what numbers are multiplied before they are cast, and after, if the largest of them is this one: it becomes
 * FP8_MAX. Where it is so small that the factor might not be a float, all become 0. */
GDR_BOTH float fp8_factor(float largest)
{
	return largest > 0x1p-100f ? FP8_MAX / largest : 1.0f;
}

GDR_BOTH float fp8_scale(float largest)
{
	return largest > 0x1p-100f ? largest / FP8_MAX : 1.0f;
}

GDR_BOTH float fp8_float(uint8_t q)
{
	uint32_t sign = (uint32_t)(q & 0x80) << 24, code = q & 0x7f;

	if (code < 8)
		return bits_float(float_bits((float)code / 512.0f) | sign);
	return bits_float((code + ((127 - 7) << 3)) << 20 | sign);
}

#endif
