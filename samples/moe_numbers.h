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

/* Saturates. Below 2^-6 the numbers are multiples of 2^-9. */
GDR_BOTH uint8_t fp8_of(float f)
{
	uint32_t bits = float_bits(f) & 0x7fffffff, sign = float_bits(f) >> 24 & 0x80, code;
	float units = bits_float(bits) * 512.0f, rest;

	if (units < 8.0f) {
		code = (uint32_t)units;
		rest = units - (float)code;
		code += rest > 0.5f || (rest == 0.5f && (code & 1));
	} else {
		code = ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - ((127 - 7) << 3);
		code = bits_float(bits) >= FP8_MAX || code > 0x7e ? 0x7e : code;
	}
	return (uint8_t)(sign | code);
}

GDR_BOTH float fp8_float(uint8_t q)
{
	uint32_t sign = (uint32_t)(q & 0x80) << 24, code = q & 0x7f;

	if (code < 8)
		return bits_float(float_bits((float)code / 512.0f) | sign);
	return bits_float((code + ((127 - 7) << 3)) << 20 | sign);
}

#endif
