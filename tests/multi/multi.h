/* SPDX-License-Identifier: BSD-3-Clause */
/* What the multi-PE tests share: start and end, a check that ends the whole
 * job, random data that both sides can compute, checks inside kernels. */
#ifndef TESTS_MULTI_H
#define TESTS_MULTI_H

#ifdef __CUDACC__ /* half and bfloat16 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#include <gdr.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The types of the large tests. Programs of the sanitizers take one of each size: there each type
 * more costs a second of the compiler's time, and its code is the same. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MULTI_FEW_TYPES
#define MULTI_AMO_TYPES(X) X(int, int) X(long, long)
#define MULTI_WAIT_TYPES(X) MULTI_AMO_TYPES(X) X(short, short)
#define MULTI_RMA_TYPES(X) MULTI_AMO_TYPES(X) X(float, float) X(int16, int16_t) X(uint8, uint8_t)
#define MULTI_INTEGER_TYPES(X) GDR_INTEGER_TYPES(X)
#else
#ifdef MULTI_PART /* nvcc takes minutes for all of them: programs of a quarter */
#define MULTI_AMO_TYPES(X) MULTI_JOIN(MULTI_AMO_, MULTI_PART)(X)
#define MULTI_RMA_TYPES(X) MULTI_JOIN(MULTI_PART_, MULTI_PART)(X)
#define MULTI_WAIT_TYPES(X) MULTI_JOIN(MULTI_WAIT_, MULTI_PART)(X)
#define MULTI_INTEGER_TYPES(X) MULTI_JOIN(MULTI_INTEGER_, MULTI_PART)(X)
#define MULTI_INTEGER_1(X) X(int, int) X(long, long) X(uint8, uint8_t) X(char, char)
#define MULTI_INTEGER_2(X) MULTI_PART_2(X)
#define MULTI_INTEGER_3(X) MULTI_PART_3(X)
#define MULTI_INTEGER_4(X) MULTI_PART_4(X)
#define MULTI_PART_1(X) X(float, float) X(double, double) MULTI_INTEGER_1(X)
#define MULTI_PART_2(X) X(schar, signed char) X(short, short) X(longlong, long long)               \
	X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int)
#define MULTI_PART_3(X) X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int8, int8_t)   \
	X(int16, int16_t) X(int32, int32_t) X(int64, int64_t)
#define MULTI_PART_4(X) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t)                \
	X(size, size_t) X(ptrdiff, ptrdiff_t)
#define MULTI_AMO_1(X) X(int, int) X(long, long) X(longlong, long long)
#define MULTI_AMO_2(X) X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long)
#define MULTI_AMO_3(X) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t)
#define MULTI_AMO_4(X) X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)
#define MULTI_WAIT_1(X) X(int, int) X(long, long) X(longlong, long long) X(uint, unsigned int)
#define MULTI_WAIT_2(X) X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int32, int32_t) \
	X(int64, int64_t)
#define MULTI_WAIT_3(X) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t)
#define MULTI_WAIT_4(X) X(ptrdiff, ptrdiff_t) X(short, short) X(ushort, unsigned short)
#else
#define MULTI_AMO_TYPES(X) GDR_AMO_TYPES(X)
#define MULTI_WAIT_TYPES(X) GDR_WAIT_TYPES(X)
#define MULTI_RMA_TYPES(X) GDR_RMA_TYPES(X)
#define MULTI_INTEGER_TYPES(X) GDR_INTEGER_TYPES(X)
#endif
#define MULTI_JOIN(a, b) MULTI_JOIN_(a, b)
#define MULTI_JOIN_(a, b) a##b
#endif
#if defined(MULTI_PART) && MULTI_PART != 1
#define MULTI_FIRST_PART 0
#define MULTI_FLOAT_TYPES(X)
#define MULTI_MORE_TYPES(X)
#define MULTI_SIZES(X)
#else
#define MULTI_FIRST_PART 1
#define MULTI_FLOAT_TYPES(X) GDR_FLOAT_TYPES(X)
#define MULTI_MORE_TYPES(X) GDR_RMA_TYPES_MORE(X)
#define MULTI_SIZES(X) GDR_RMA_SIZES(X)
#endif

/* Under CUDA each kernel has a copy of its own of every function that it calls, with queues some ten thousand
 * instructions: what a test does with many types is one kernel. There a body is inline in it, or the version of the
 * kernel for mapped PEs alone would not be one; elsewhere it is a function, which gcc takes by itself. */
#ifdef __CUDACC__
#define MULTI_BODY GDR_DEVICE
#else
#define MULTI_BODY static __attribute__((noinline, unused))
#endif
#define MULTI_NUMBER(name, T) TYPE_##name,
#define MULTI_CASE(name, T)                                                                        \
	case TYPE_##name:                                                                          \
		test_##name(&a);                                                                   \
		break;

#ifdef MULTI_ON_CTX
#include "tests/multi/queue/on_ctx.h"
#endif

static int multi_pe, multi_n;

/* Ends this PE, and through the launcher the job. */
__attribute__((noreturn, unused, format(printf, 3, 4))) static void
multi_fail(const char *file, int line, const char *fmt, ...)
{
	struct gdr_error e;
	va_list ap;

	fprintf(stderr, "PE %d: %s:%d: ", multi_pe, file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (gdr_errors(&e, 1) > 0)
		fprintf(stderr, "PE %d: first error: %s\n", multi_pe, e.text);
	_exit(1);
}

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			multi_fail(__FILE__, __LINE__, "not true: %s", #cond);                     \
	} while (0)

#define CHECK_OK(call)                                                                             \
	do {                                                                                       \
		int check_ret = (call);                                                            \
		if (check_ret)                                                                     \
			multi_fail(__FILE__, __LINE__, "%s: %d, %s", #call, check_ret,             \
				   gdr_strerror(check_ret));                                       \
	} while (0)

#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long check_a = (long long)(a), check_b = (long long)(b);                      \
		if (check_a != check_b)                                                            \
			multi_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #a, check_a,        \
				   check_b);                                                       \
	} while (0)

__attribute__((unused)) static void multi_begin(void)
{
	CHECK_OK(gdr_init());
	multi_pe = gdr_host_my_pe();
	multi_n = gdr_host_n_pes();
#ifdef MULTI_ON_CTX
	gdr_ctx_t ctx;

	CHECK_OK(gdr_ctx_create(GDR_CTX_GPU | GDR_CTX_N_QUEUES(2), &ctx));
	CHECK_EQ(ctx, multi_ctx);
#endif
}

__attribute__((unused)) static int multi_end(const char *name)
{
	int root = multi_pe == 0, n = multi_n;

	CHECK_EQ(gdr_errors(NULL, 0), 0);
	CHECK_OK(gdr_finalize());
	if (root)
		printf("%s: all right on %d PEs\n", name, n);
	return 0;
}

GDRI_INLINE uint64_t multi_hash(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Byte i of the random stream `seed`. */
GDRI_INLINE uint8_t multi_byte(uint64_t seed, uint64_t i)
{
	return (uint8_t)(multi_hash(seed * 0x9e3779b97f4a7c15u + (i >> 3)) >> (i & 7) * 8);
}

GDRI_INLINE int multi_differ(const void *a, const void *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((const uint8_t *)a)[i] != ((const uint8_t *)b)[i])
			return 1;
	return 0;
}

#define MULTI_POISON 0xa5u

/* ---- checks inside kernels ---- */

/* The first thing that went wrong in a kernel; `line` 0: nothing. */
struct multi_report {
	int line;
	long long got, want;
};

GDR_DEVICE_COLD void multi_note(struct multi_report *r, int line, long long got, long long want)
{
	uint32_t none = 0;

	/* Only the first; read after the kernel has ended, which orders. */
	if (gdri_cas_u32((uint32_t *)&r->line, &none, (uint32_t)line)) {
		r->got = got;
		r->want = want;
	}
}

#define EXPECT_EQ(report, a, b)                                                                    \
	do {                                                                                       \
		long long expect_a = (long long)(a), expect_b = (long long)(b);                    \
		if (expect_a != expect_b)                                                          \
			multi_note(report, __LINE__, expect_a, expect_b);                          \
	} while (0)

/* The call may be a macro whose words hold commas. */
#define EXPECT_OK(report, ...) EXPECT_EQ(report, (__VA_ARGS__), 0)

/* Runs a kernel to its end and fails with what it noted. */
#define RUN(kernel, grid, block, argp)                                                             \
	do {                                                                                       \
		CHECK_OK(gdr_launch(kernel, grid, block, 256, NULL, argp));                        \
		CHECK_OK(gdr_stream_sync(NULL));                                                   \
		if ((argp)->report->line)                                                          \
			multi_fail(__FILE__, (argp)->report->line, "in kernel: %lld, not %lld",    \
				   (argp)->report->got, (argp)->report->want);                     \
	} while (0)

/* Zeroed memory that kernels and host both read and write. */
__attribute__((unused)) static void *multi_shared_new(size_t size)
{
	void *p = NULL;

#ifdef __CUDACC__
	if (cudaHostAlloc(&p, size, cudaHostAllocMapped) == cudaSuccess)
		memset(p, 0, size);
#else
	p = calloc(1, size);
#endif
	CHECK(p);
	return p;
}

__attribute__((unused)) static void multi_shared_free(void *p)
{
#ifdef __CUDACC__
	cudaFreeHost(p);
#else
	free(p);
#endif
}

__attribute__((unused)) static struct multi_report *multi_report_new(void)
{
	return (struct multi_report *)multi_shared_new(sizeof(struct multi_report));
}

/* ---- the host's view of the heap, which may be memory of a GPU ---- */

__attribute__((unused)) static uint64_t multi_u64(const uint64_t *p)
{
	uint64_t v;

	CHECK_OK(gdr_memcpy(&v, p, sizeof(v)));
	return v;
}

__attribute__((unused)) static uint32_t multi_u32(const uint32_t *p)
{
	uint32_t v;

	CHECK_OK(gdr_memcpy(&v, p, sizeof(v)));
	return v;
}

__attribute__((unused)) static void multi_set_u64(uint64_t *p, uint64_t v)
{
	CHECK_OK(gdr_memcpy(p, &v, sizeof(v)));
}

/* A copy for the host to look at, to be freed. */
__attribute__((unused)) static void *multi_copy(const void *p, size_t len)
{
	void *v = malloc(len);

	CHECK(v);
	CHECK_OK(gdr_memcpy(v, p, len));
	return v;
}

__attribute__((unused)) static void multi_fill(void *p, int byte, size_t len)
{
	void *v = malloc(len);

	CHECK(v);
	memset(v, byte, len);
	CHECK_OK(gdr_memcpy(p, v, len));
	free(v);
}

__attribute__((unused)) static uint64_t multi_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What is long enough for another PE to run out of GDR_TIMEOUT grows with it on a crowded machine. */
__attribute__((unused)) static void multi_sleep_us(unsigned us)
{
	const char *slow = getenv("TEST_SLOW");
	uint64_t all = us >= 100000 && slow ? (uint64_t)us * (unsigned)atoi(slow) : us;
	struct timespec t = {(time_t)(all / 1000000), (long)(all % 1000000) * 1000};

	nanosleep(&t, NULL);
}

/* What a comparison of gdr_*_wait_until means. */
#define MULTI_HOLDS(cmp, a, b)                                                                     \
	((cmp) == GDR_CMP_EQ   ? (a) == (b)                                                        \
	 : (cmp) == GDR_CMP_NE ? (a) != (b)                                                        \
	 : (cmp) == GDR_CMP_GT ? (a) > (b)                                                         \
	 : (cmp) == GDR_CMP_GE ? (a) >= (b)                                                        \
	 : (cmp) == GDR_CMP_LT ? (a) < (b)                                                         \
			       : (a) <= (b))

#endif
