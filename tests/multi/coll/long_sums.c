// SPDX-License-Identifier: BSD-3-Clause
/* Sums of all PEs on a stream, of lengths at which their algorithm takes another step, uses other blocks or has
 * something left over; several behind each other with no wait between, and in place. */
#include "tests/multi/multi.h"

#ifdef __CUDACC__
#define MOST ((size_t)24 << 20) /* bytes */
#else
#define MOST ((size_t)1 << 20)
#endif
#define ROUNDS 4 /* calls behind each other */

static uint8_t *src, *dst, *host;
static gdr_stream_t stream;
static uint64_t seed;

/* Small whole numbers, whose sums are exact in any type and order. */
static uint32_t element(int pe, size_t k, uint64_t of)
{
	return (uint32_t)(multi_hash((of * 64 + (uint64_t)pe) ^ (uint64_t)k << 20) % 61u);
}

#define SUMS(name, T)                                                                              \
	static void fill_##name(uint8_t *at, size_t n)                                             \
	{                                                                                          \
		for (size_t k = 0; k < n; k++)                                                     \
			((T *)host)[k] = (T)element(multi_pe, k, seed);                            \
		CHECK_OK(gdr_memcpy(at, host, n * sizeof(T)));                                     \
	}                                                                                          \
                                                                                                   \
	static void look_##name(const uint8_t *at, size_t n, const char *how)                      \
	{                                                                                          \
		CHECK_OK(gdr_memcpy(host, at, (n + 1) * sizeof(T)));                               \
		for (size_t k = 0; k < n; k++) {                                                   \
			uint32_t sum = 0;                                                          \
                                                                                                   \
			for (int i = 0; i < multi_n; i++)                                          \
				sum += element(i, k, seed);                                        \
			if (((T *)host)[k] != (T)sum)                                              \
				multi_fail(__FILE__, __LINE__, #name " %s, %zu: [%zu] is %g, not %u", how, \
					   n, k, (double)((T *)host)[k], sum);                     \
		}                                                                                  \
		for (size_t i = n * sizeof(T); i < (n + 1) * sizeof(T) && at == dst; i++)          \
			CHECK_EQ(host[i], MULTI_POISON);                                           \
	}                                                                                          \
                                                                                                   \
	static void sums_##name(size_t bytes)                                                      \
	{                                                                                          \
		size_t n = bytes / sizeof(T), few = n / 3 / 16 * 16;                               \
                                                                                                   \
		seed++;                                                                            \
		fill_##name(src, n);                                                               \
		memset(host, MULTI_POISON, bytes + 16);                                            \
		CHECK_OK(gdr_memcpy(dst, host, bytes + 16));                                       \
		CHECK_OK(gdr_barrier_all());                                                       \
		for (int i = 0; i < ROUNDS; i++) {                                                 \
			CHECK_OK(gdr_##name##_sum_reduce_on_stream(GDR_TEAM_WORLD, (T *)dst, (T *)src, few, \
								   stream));                       \
			CHECK_OK(gdr_##name##_sum_reduce_on_stream(GDR_TEAM_WORLD, (T *)dst, (T *)src, n, \
								   stream));                       \
		}                                                                                  \
		CHECK_OK(gdr_##name##_sum_reduce_on_stream(GDR_TEAM_WORLD, (T *)src, (T *)src, n, stream)); \
		CHECK_OK(gdr_stream_sync(stream));                                                 \
		look_##name(dst, n, "");                                                           \
		look_##name(src, n, "in place");                                                   \
	}
SUMS(float, float)
SUMS(double, double)
SUMS(uint32, uint32_t)
SUMS(int64, int64_t)

int main(void)
{
	static const size_t rows[] = {1, 2, 7, 9, 64, 500, 513, 4096, 4097, 8191, 32768, 65536 + 8, 65536 + 9,
				      262144, 262144 + 1, 1000003, 1572863};

	multi_begin();
	src = (uint8_t *)gdr_malloc(MOST + 64);
	dst = (uint8_t *)gdr_malloc(MOST + 64);
	host = (uint8_t *)malloc(MOST + 64);
	CHECK(src && dst && host);
	CHECK_OK(gdr_stream_create(&stream));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && 16 * rows[i] <= MOST; i++) {
		sums_float(16 * rows[i]);
		sums_float(16 * rows[i] + 4); /* no whole rows */
		if (rows[i] > 100000 && i % 3)
			continue;
		sums_double(16 * rows[i]);
		sums_uint32(16 * rows[i]);
		sums_int64(16 * rows[i]);
	}
	gdr_stream_destroy(stream);
	gdr_free(dst);
	gdr_free(src);
	free(host);
	return multi_end("long_sums");
}
