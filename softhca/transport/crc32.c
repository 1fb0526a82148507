/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 of IEEE 802.3 (reflected polynomial 0xedb88320), which the ICRC is.
 * Every byte on the wire passes here twice, so x86 folds with carry-less
 * multiplication ("Fast CRC Computation Using PCLMULQDQ", Intel 2009); other
 * machines and short pieces take eight table look-ups for eight bytes. Own
 * code, because a preloaded library should bring no other library along. */
#include <endian.h>
#include <pthread.h>
#include <string.h>

#include "softhca/transport/packet.h"

static uint32_t table[8][256];

static uint32_t crc32_bytewise(uint32_t c, const uint8_t *p, size_t n)
{
	while (n--)
		c = table[0][(c ^ *p++) & 0xff] ^ c >> 8;
	return c;
}

static uint32_t crc32_sliced(uint32_t c, const uint8_t *p, size_t n)
{
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		v = le64toh(v) ^ c;
		c = table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^
		    table[4][v >> 24 & 0xff] ^ table[3][v >> 32 & 0xff] ^
		    table[2][v >> 40 & 0xff] ^ table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
	}
	return crc32_bytewise(c, p, n);
}

#ifdef __x86_64__
#include <immintrin.h>

/* One step: both halves of x times the powers of the polynomial in k, onto d. */
__attribute__((target("pclmul,sse4.1"))) static inline __m128i crc32_fold(__m128i x, __m128i k, __m128i d)
{
	__m128i lo = _mm_clmulepi64_si128(x, k, 0x00);
	__m128i hi = _mm_clmulepi64_si128(x, k, 0x11);

	return _mm_xor_si128(_mm_xor_si128(lo, hi), d);
}

/* n is at least 64; returns how much was consumed, *c the register after it. */
__attribute__((target("pclmul,sse4.1"))) static size_t crc32_folded(uint32_t *c, const uint8_t *p,
								    size_t n)
{
	const __m128i by64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
	const __m128i by16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
	const __m128i *v = (const __m128i *)(const void *)p;
	__m128i x[4];
	uint8_t rest[16];
	size_t done = 64;

	for (int i = 0; i < 4; i++)
		x[i] = _mm_loadu_si128(v + i);
	x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)*c));
	for (; n - done >= 64; done += 64) {
		v += 4;
		for (int i = 0; i < 4; i++)
			x[i] = crc32_fold(x[i], by64, _mm_loadu_si128(v + i));
	}
	for (int i = 1; i < 4; i++)
		x[0] = crc32_fold(x[0], by16, x[i]);
	/* What 16 bytes are left stand for all before them. */
	_mm_storeu_si128((__m128i *)(void *)rest, x[0]);
	*c = crc32_sliced(0, rest, sizeof(rest));
	return done;
}

static bool can_fold;

static void crc32_detect(void)
{
	can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}
#else
static const bool can_fold = false;

static size_t crc32_folded(uint32_t *c, const uint8_t *p, size_t n)
{
	(void)c;
	(void)p;
	(void)n;
	return 0;
}

static void crc32_detect(void)
{
}
#endif

static void crc32_init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
		table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			table[k][i] = table[0][table[k - 1][i] & 0xff] ^ table[k - 1][i] >> 8;
	crc32_detect();
}

uint32_t crc32_ieee(uint32_t crc, const void *buf, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const uint8_t *p = buf;
	uint32_t c = ~crc;

	pthread_once(&once, crc32_init);
	if (can_fold && n >= 64) {
		size_t done = crc32_folded(&c, p, n);

		p += done;
		n -= done;
	}
	return ~crc32_sliced(c, p, n);
}
