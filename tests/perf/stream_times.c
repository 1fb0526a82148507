// SPDX-License-Identifier: BSD-3-Clause
/* What operations cost that host threads put on a stream, one behind the other, with one wait at the end; and malloc,
 * free and barrier of host threads. Lines "RESULT name us us [least..most]" of PE 0: medians of 5 times.
 * usage: stream_times [puts] [coll] [sums] [heap] [ops]: sums of floats up to 256 MiB; ops, which are other reductions
 * and odd lengths, only where named.
 * The same source measures NVSHMEM (-DAS_NVSHMEM, no ops) and NCCL (-DAS_NCCL, collectives only; by mpirun,
 * STREAM_TIMES_ID names a file for its unique id). */
#include "tests/perf/help.h"
#include "tests/perf/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(AS_NVSHMEM)
#include <nvshmem.h>
#include <nvshmemx.h>
#elif defined(AS_NCCL)
#include <cuda_runtime.h>
#include <nccl.h>
#else
#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif
#include <gdr.h>
#endif

#define AREA ((size_t)256 << 20)

static float *dst, *src;
static int me, n_pes;

/* ---- the library ---- */

#if defined(AS_NVSHMEM) || defined(AS_NCCL)
static cudaStream_t stream;
static int sync_stream(void) { return cudaStreamSynchronize(stream); }
static int env(const char *name) { return getenv(name) ? atoi(getenv(name)) : 0; }
#else
static gdr_stream_t stream;
static int sync_stream(void) { return gdr_stream_sync(stream); }
#endif

#if defined(AS_NVSHMEM)
static int up(void)
{
	cudaSetDevice(env("OMPI_COMM_WORLD_LOCAL_RANK"));
	nvshmem_init();
	me = nvshmem_my_pe();
	n_pes = nvshmem_n_pes();
	dst = (float *)nvshmem_calloc(1, AREA);
	src = (float *)nvshmem_calloc(1, AREA);
	return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
}
static void meet(void) { nvshmem_barrier_all(); }
#define T NVSHMEM_TEAM_WORLD
#define PUT(len) (nvshmemx_putmem_on_stream(dst, src, len, (me + 1) % n_pes, stream), 0)
#define GET(len) (nvshmemx_getmem_on_stream(dst, src, len, (me + 1) % n_pes, stream), 0)
#define P4 (nvshmemx_float_p_on_stream(dst, 1, (me + 1) % n_pes, stream), 0)
#define P8 (nvshmemx_double_p_on_stream((double *)dst, 1, (me + 1) % n_pes, stream), 0)
#define SIGNAL (nvshmemx_signal_op_on_stream((uint64_t *)dst, 1, NVSHMEM_SIGNAL_SET, (me + 1) % n_pes, stream), 0)
#define BARRIER (nvshmemx_barrier_all_on_stream(stream), 0)
#define SYNC (nvshmemx_sync_all_on_stream(stream), 0)
#define BROADCAST(n) nvshmemx_float_broadcast_on_stream(T, dst, src, n, 0, stream)
#define FCOLLECT(n) nvshmemx_float_fcollect_on_stream(T, dst, src, n, stream)
#define ALLTOALL(n) nvshmemx_float_alltoall_on_stream(T, dst, src, n, stream)
#define REDUCE(n) nvshmemx_float_sum_reduce_on_stream(T, dst, src, n, stream)
#define REDUCESCATTER(n) nvshmemx_float_sum_reducescatter_on_stream(T, dst, src, n, stream)
#define PEER nvshmem_ptr(dst, (me + 1) % n_pes)
#define MALLOC nvshmem_malloc
#define FREE nvshmem_free
#elif defined(AS_NCCL)
static ncclComm_t comm;
static float *word;
static int up(void)
{
	const char *path = getenv("STREAM_TIMES_ID");
	char part[256];
	ncclUniqueId id;
	FILE *f;
	size_t n = 0;

	me = env("OMPI_COMM_WORLD_RANK");
	n_pes = env("OMPI_COMM_WORLD_SIZE");
	cudaSetDevice(env("OMPI_COMM_WORLD_LOCAL_RANK"));
	snprintf(part, sizeof(part), "%s.part", path);
	if (!me && (ncclGetUniqueId(&id) || !(f = fopen(part, "w")) || fwrite(&id, sizeof(id), 1, f) != 1 ||
		    fclose(f) || rename(part, path)))
		return 1;
	for (int i = 0; me && !n && i < 10000; i++, usleep(1000))
		if ((f = fopen(path, "r"))) {
			n = fread(&id, sizeof(id), 1, f);
			fclose(f);
		}
	if (ncclCommInitRank(&comm, n_pes, id, me) || ncclMemAlloc((void **)&dst, AREA) ||
	    ncclMemAlloc((void **)&src, AREA) || cudaMalloc(&word, 4) || cudaMemset(src, 0, AREA))
		return 1;
	if (getenv("NCCL_WINDOWS")) {
		ncclWindow_t w;
		if (ncclCommWindowRegister(comm, dst, AREA, &w, NCCL_WIN_COLL_SYMMETRIC) ||
		    ncclCommWindowRegister(comm, src, AREA, &w, NCCL_WIN_COLL_SYMMETRIC))
			return 1;
	}
	return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
}
static void meet(void)
{
	ncclAllReduce(word, word, 1, ncclFloat, ncclSum, comm, stream);
	cudaStreamSynchronize(stream);
}
#define BROADCAST(n) ncclBroadcast(src, dst, n, ncclFloat, 0, comm, stream)
#define FCOLLECT(n) ncclAllGather(src, dst, n, ncclFloat, comm, stream)
#define ALLTOALL(n) ncclAlltoAll(src, dst, n, ncclFloat, comm, stream)
#define REDUCE(n) ncclAllReduce(src, dst, n, ncclFloat, ncclSum, comm, stream)
#define REDUCESCATTER(n) ncclReduceScatter(src, dst, n, ncclFloat, ncclSum, comm, stream)
#else
static int up(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	attr.heap_size = 2 * AREA + ((size_t)256 << 20);
	if (gdr_init_attr(&attr))
		return 1;
	me = gdr_host_my_pe();
	n_pes = gdr_host_n_pes();
	dst = (float *)gdr_calloc(1, AREA);
	src = (float *)gdr_calloc(1, AREA);
	return gdr_stream_create(&stream);
}
static void meet(void)
{
	if (gdr_barrier_all())
		exit(1);
}
#define T GDR_TEAM_WORLD
#define PUT(len) gdr_put_on_stream(dst, src, len, (me + 1) % n_pes, stream)
#define GET(len) gdr_get_on_stream(dst, src, len, (me + 1) % n_pes, stream)
#define P4 gdr_float_p_on_stream(dst, 1, (me + 1) % n_pes, stream)
#define P8 gdr_double_p_on_stream((double *)dst, 1, (me + 1) % n_pes, stream)
#define SIGNAL gdr_signal_op_on_stream((uint64_t *)dst, 1, GDR_SIGNAL_SET, (me + 1) % n_pes, stream)
#define BARRIER gdr_barrier_all_on_stream(stream)
#define SYNC gdr_sync_all_on_stream(stream)
#define BROADCAST(n) gdr_float_broadcast_on_stream(T, dst, src, n, 0, stream)
#define FCOLLECT(n) gdr_float_fcollect_on_stream(T, dst, src, n, stream)
#define ALLTOALL(n) gdr_float_alltoall_on_stream(T, dst, src, n, stream)
#define REDUCE(n) gdr_float_sum_reduce_on_stream(T, dst, src, n, stream)
#define REDUCESCATTER(n) gdr_float_sum_reducescatter_on_stream(T, dst, src, n, stream)
#define PEER gdr_host_ptr(dst, (me + 1) % n_pes)
#define MALLOC gdr_malloc
#define FREE gdr_free
#endif

/* ---- times ---- */

#define MEASURE(n, name, ...)                                                                     \
	do {                                                                                       \
		double t_[6];                                                                      \
		for (int r_ = 0; r_ < 6; r_++) { /* the first one does not count */                \
			meet();                                                                    \
			t_[r_] = now_us();                                                         \
			for (int i_ = 0; i_ < (n); i_++)                                           \
				if (__VA_ARGS__)                                                       \
					return 1;                                                  \
			if (sync_stream())                                                         \
				return 1;                                                          \
			t_[r_] = (now_us() - t_[r_]) / (n);                                        \
		}                                                                                  \
		qsort(t_ + 1, 5, sizeof(*t_), by_value);                                           \
		if (!me)                                                                           \
			printf("RESULT %s %.2f us [%.2f..%.2f]\n", name, t_[3], t_[1], t_[5]);     \
		fflush(stdout);                                                                    \
	} while (0)

#ifndef AS_NCCL
#ifdef __CUDACC__
/* What the runtime itself takes for a put and a p, in the same minute: by these a busy host is told. */
static int bare(void)
{
	double value = 1;
	void *peer = PEER;

	if (!peer)
		return 0;
	MEASURE(1000, "bare_copy_8B", cudaMemcpyAsync(peer, src, 8, cudaMemcpyDeviceToDevice, stream));
	MEASURE(1000, "bare_value_8B", cudaMemcpyAsync(peer, &value, 8, cudaMemcpyHostToDevice, stream));
	return 0;
}
#else
static int bare(void) { return 0; }
#endif

static int puts_and_barriers(void)
{
	if (bare())
		return 1;
	MEASURE(1000, "put_8B_on_stream", PUT(8));
	MEASURE(1000, "put_64KiB_on_stream", PUT(65536));
	MEASURE(1000, "get_8B_on_stream", GET(8));
	MEASURE(1000, "p_4B_on_stream", P4);
	MEASURE(1000, "p_8B_on_stream", P8);
	MEASURE(1000, "signal_on_stream", SIGNAL);
	MEASURE(200, "put_8B_and_wait_for_stream", PUT(8) || sync_stream());
	MEASURE(1000, "barrier_on_stream", BARRIER);
	MEASURE(1000, "sync_on_stream", SYNC);
	MEASURE(200, "barrier_and_wait_for_stream", BARRIER || sync_stream());
	return 0;
}

static int heap(void)
{
	void *p = NULL;

	MEASURE(100, "malloc_free_1KiB", (p = MALLOC(1024), FREE(p), !p));
	MEASURE(100, "malloc_free_1MiB", (p = MALLOC(1 << 20), FREE(p), !p));
	MEASURE(100, "barrier_of_hosts", (meet(), 0));
	return 0;
}
#endif

/* Bytes: the whole message, which fcollect and alltoall divide by the PEs. */
static int collectives(void)
{
	static const size_t sizes[] = {8, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20,
				       2 << 20, 4 << 20, 16 << 20, 64 << 20};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t bytes = sizes[i], n = bytes / 4, each = n / (size_t)n_pes ? n / (size_t)n_pes : 1;
		int calls = bytes <= 1 << 18 ? 200 : bytes <= 4 << 20 ? 50 : 20;
		char name[64];

		if (getenv("STREAM_TIMES_FEW") && bytes > 1 << 15)
			calls = 2; /* for those that take seconds */

#define COLL(what, ...)                                                                            \
	do {                                                                                       \
		snprintf(name, sizeof(name), what "_%zuB_on_stream", bytes);                       \
		MEASURE(calls, name, __VA_ARGS__);                                                      \
	} while (0)
		COLL("broadcast", BROADCAST(n));
		COLL("fcollect", FCOLLECT(each));
		COLL("alltoall", ALLTOALL(each));
		COLL("sum_reduce", REDUCE(n));
		COLL("sum_reducescatter", REDUCESCATTER(each));
	}
	return 0;
}

/* What is not the sum of floats of whole lines. */
#ifdef AS_NCCL
#define OPS(X)                                                                                     \
	X(float_max, 4, ncclAllReduce(src, dst, n, ncclFloat, ncclMax, comm, stream))              \
	X(float_prod, 4, ncclAllReduce(src, dst, n, ncclFloat, ncclProd, comm, stream))            \
	X(double_sum, 8, ncclAllReduce(src, dst, n, ncclDouble, ncclSum, comm, stream))            \
	X(int32_sum, 4, ncclAllReduce(src, dst, n, ncclInt32, ncclSum, comm, stream))              \
	X(int64_min, 8, ncclAllReduce(src, dst, n, ncclInt64, ncclMin, comm, stream))              \
	X(uint8_max, 1, ncclAllReduce(src, dst, n, ncclUint8, ncclMax, comm, stream))              \
	X(half_sum, 2, ncclAllReduce(src, dst, n, ncclHalf, ncclSum, comm, stream))                \
	X(float_sum_odd, 4, ncclAllReduce(src, dst, n - 1, ncclFloat, ncclSum, comm, stream))      \
	X(float_broadcast_odd, 4, ncclBroadcast(src, dst, n - 1, ncclFloat, 0, comm, stream))      \
	X(float_alltoall_odd, 4, ncclAlltoAll(src, dst, n / 2 - 1, ncclFloat, comm, stream))       \
	X(float_reducescatter_odd, 4, ncclReduceScatter(src, dst, n / 2 - 1, ncclFloat, ncclSum, comm, stream)) \
	X(float_reducescatter_here, 4,                                                             \
	  ncclReduceScatter(src, src + (size_t)me * n / 2, n / 2, ncclFloat, ncclSum, comm, stream))
#elif !defined(AS_NVSHMEM)
#define RED(T, E, op) gdr_##T##_##op##_reduce_on_stream(GDR_TEAM_WORLD, (E *)dst, (E *)src, n, stream)
#define OPS(X)                                                                                     \
	X(float_max, 4, RED(float, float, max))                                                    \
	X(float_prod, 4, RED(float, float, prod))                                                  \
	X(double_sum, 8, RED(double, double, sum))                                                 \
	X(int32_sum, 4, RED(int32, int32_t, sum))                                                  \
	X(int64_min, 8, RED(int64, int64_t, min))                                                  \
	X(uint8_max, 1, RED(uint8, uint8_t, max))                                                  \
	X(half_sum, 2, RED(half, gdr_half_t, sum))                                                 \
	X(float_sum_odd, 4, REDUCE(n - 1))                                                         \
	X(float_broadcast_odd, 4, BROADCAST(n - 1))                                                \
	X(float_alltoall_odd, 4, ALLTOALL(n / 2 - 1))                                              \
	X(float_reducescatter_odd, 4, REDUCESCATTER(n / 2 - 1))                                    \
	X(float_reducescatter_here, 4, gdr_float_sum_reducescatter_on_stream(                      \
		GDR_TEAM_WORLD, src + (size_t)me * n / 2, src, n / 2, stream))                     \
	X(float_inscan, 4, gdr_float_sum_inscan_on_stream(GDR_TEAM_WORLD, dst, src, n, stream))    \
	X(float_exscan_here, 4, gdr_float_sum_exscan_on_stream(GDR_TEAM_WORLD, dst, dst, n, stream))
#endif

#ifdef OPS
static int others(void)
{
	static const size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		int calls = sizes[i] <= 1 << 16 ? 200 : sizes[i] <= 1 << 20 ? 50 : 10;
		char name[64];
		size_t n;

#define OP(what, size, ...)                                                                        \
	n = sizes[i] / (size);                                                                     \
	snprintf(name, sizeof(name), #what "_%zuB_on_stream", sizes[i]);                           \
	MEASURE(calls, name, __VA_ARGS__);
		OPS(OP)
	}
	return 0;
}
#endif

static int sums(void)
{
	char name[64];

	for (size_t bytes = 64 << 10; bytes <= AREA; bytes *= bytes < 1 << 20 ? 2 : 4) {
		snprintf(name, sizeof(name), "sum_%zuB_on_stream", bytes);
		MEASURE(bytes <= 4 << 20 ? 200 : bytes <= 64 << 20 ? 30 : 10, name, REDUCE(bytes / 4));
	}
	return 0;
}

static int wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return 1;
	return argc < 2;
}

int main(int argc, char **argv)
{
	int ret;

	help_if_asked(argc, argv, "stream_times [puts] [coll] [sums] [heap] [ops]");
	ret = up() || !dst || !src;
#ifndef AS_NCCL
	if (!ret && wanted(argc, argv, "puts"))
		ret = puts_and_barriers();
	if (!ret && wanted(argc, argv, "heap"))
		ret = heap();
#endif
	if (!ret && wanted(argc, argv, "coll"))
		ret = collectives();
#ifdef OPS
	if (!ret && argc > 1 && wanted(argc, argv, "ops"))
		ret = others();
#endif
	if (!ret && wanted(argc, argv, "sums"))
		ret = sums();
	if (ret)
		fprintf(stderr, "stream_times: PE %d failed\n", me);
#if defined(AS_NVSHMEM)
	nvshmem_finalize();
#elif !defined(AS_NCCL)
	ret |= gdr_finalize() != 0;
#endif
	return ret;
}
