/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for NVIDIA's NVSHMEM: put, get, p, atomics, put with signal, barrier, reduction, called
 * from kernels; every byte that is moved is compared. Each PE works with the next one. Ranks meet
 * through a file: RANK, NRANKS, MEET name it. With an argument "error" the program only puts and
 * waits until it is over, and says what NVSHMEM said: an error is produced below it. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

static int me, n_pes, bad;

#define CUDA(call)                                                                                 \
	do {                                                                                       \
		cudaError_t e_ = (call);                                                           \
		if (e_ != cudaSuccess) {                                                           \
			printf("[%d] %s: %s\n", me, #call, cudaGetErrorString(e_));                \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

enum { MOST = 2 << 20, WORDS = 64 };

static double now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void verdict(const char *what, size_t size, long wrong)
{
	printf("[%d] %-28s %8zu  %s (%ld wrong)\n", me, what, size, wrong ? "WRONG" : "ok", wrong);
	fflush(stdout);
	bad += wrong != 0;
}

static __host__ __device__ uint8_t byte_of(size_t i, int pe, int salt)
{
	uint32_t v = (uint32_t)i * 2654435761u + (uint32_t)pe * 97u + (uint32_t)salt * 7919u;

	return (uint8_t)(v >> 24 ^ v >> 11);
}

__global__ void fill(uint8_t *p, size_t n, int pe, int salt)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = byte_of(i, pe, salt);
}

__global__ void compare(const uint8_t *p, size_t n, int pe, int salt, unsigned long long *wrong)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		if (p[i] != byte_of(i, pe, salt))
			atomicAdd(wrong, 1ull);
}

static unsigned long long *counter;

static long check(const uint8_t *p, size_t n, int pe, int salt)
{
	unsigned long long wrong = 0;

	CUDA(cudaMemset(counter, 0, sizeof(*counter)));
	compare<<<64, 256>>>(p, n, pe, salt, counter);
	CUDA(cudaMemcpy(&wrong, counter, sizeof(wrong), cudaMemcpyDeviceToHost));
	return (long)wrong;
}

static void barrier()
{
	CUDA(cudaDeviceSynchronize());
	nvshmem_barrier_all();
}

/* ---- put, get, p ---- */

__global__ void put_kernel(uint8_t *dst, const uint8_t *src, size_t n, int pe, int block)
{
	if (block) {
		nvshmemx_putmem_nbi_block(dst, src, n, pe);
		__syncthreads();
	} else if (!threadIdx.x) {
		nvshmem_putmem_nbi(dst, src, n, pe);
	}
	if (!threadIdx.x)
		nvshmem_quiet();
}

__global__ void get_kernel(uint8_t *dst, const uint8_t *src, size_t n, int pe)
{
	nvshmem_getmem(dst, src, n, pe);
}

__global__ void p_kernel(int *dst, uint64_t *wide, int value, int pe)
{
	if (!threadIdx.x)
		nvshmem_int_p(dst, value, pe);
	nvshmem_uint64_p(wide + threadIdx.x, (uint64_t)value << 32 | threadIdx.x, pe);
	nvshmem_quiet();
}

static void moves(uint8_t *src, uint8_t *dst)
{
	static const size_t sizes[] = { 1, 8, 100, 4096, 65536, 1 << 20, (2 << 20) - 1001 };
	int next = (me + 1) % n_pes, before = (me + n_pes - 1) % n_pes, salt = 0;

	for (int block = 0; block < 2; block++)
		for (size_t n : sizes) {
			fill<<<64, 256>>>(src, MOST, me, ++salt);
			CUDA(cudaMemset(dst, 0xee, MOST));
			barrier();
			put_kernel<<<1, block ? 128 : 1>>>(dst, src, n, next, block);
			barrier();
			verdict(block ? "putmem_nbi_block + quiet" : "putmem_nbi + quiet", n,
				check(dst, n, before, salt));
		}
	for (size_t n : sizes) {
		fill<<<64, 256>>>(src, MOST, me, ++salt);
		CUDA(cudaMemset(dst, 0xee, MOST));
		barrier();
		get_kernel<<<1, 1>>>(dst, src, n, next);
		CUDA(cudaDeviceSynchronize());
		verdict("getmem", n, check(dst, n, next, salt));
		barrier();
	}
}

static void words(uint64_t *wide)
{
	int next = (me + 1) % n_pes, before = (me + n_pes - 1) % n_pes;
	uint64_t host[WORDS];
	long wrong = 0;

	CUDA(cudaMemset(wide, 0, WORDS * 8));
	barrier();
	p_kernel<<<1, 32>>>((int *)(wide + 40), wide, 1000 + me, next);
	barrier();
	CUDA(cudaMemcpy(host, wide, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		wrong += host[i] != ((uint64_t)(1000 + before) << 32 | (unsigned)i);
	wrong += (int)host[40] != 1000 + before;
	verdict("int_p, uint64_p by 32 lanes", 33, wrong);
}

/* ---- atomics ---- */

__global__ void atomics_kernel(uint64_t *w, unsigned *h, uint64_t *out, int pe)
{
	int i = 0;

	out[i++] = nvshmem_uint64_atomic_fetch_add(w, 5, pe);		/* 100 -> 105 */
	out[i++] = nvshmem_uint64_atomic_fetch(w, pe);			/* 105 */
	out[i++] = nvshmem_uint64_atomic_compare_swap(w, 105, 7, pe);	/* 105 -> 7 */
	out[i++] = nvshmem_uint64_atomic_compare_swap(w, 105, 9, pe);	/* 7, stays */
	out[i++] = nvshmem_uint64_atomic_swap(w, 0xff00ull, pe);	/* 7 -> ff00 */
	nvshmem_uint64_atomic_add(w, 1, pe);				/* ff01 */
	nvshmem_uint64_atomic_inc(w, pe);				/* ff02 */
	out[i++] = nvshmem_uint64_atomic_fetch_or(w, 0xf0, pe);		/* ff02 -> fff2 */
	out[i++] = nvshmem_uint64_atomic_fetch_and(w, 0xf0f2, pe);	/* fff2 -> f0f2 */
	out[i++] = nvshmem_uint64_atomic_fetch_xor(w, 0x3, pe);		/* f0f2 -> f0f1 */
	out[i++] = nvshmem_uint64_atomic_fetch_inc(w, pe);		/* f0f1 -> f0f2 */
	out[i++] = nvshmem_uint32_atomic_fetch_add(h, 3, pe);		/* 200 -> 203 */
	out[i++] = nvshmem_uint32_atomic_compare_swap(h, 203, 11, pe);	/* 203 -> 11 */
	out[i++] = nvshmem_uint32_atomic_swap(h, 0x1234, pe);		/* 11 -> 1234 */
	nvshmem_uint32_atomic_set(h, 0x55, pe);				/* 55 */
	out[i++] = nvshmem_uint32_atomic_fetch(h, pe);			/* 55 */
	out[i++] = nvshmem_uint32_atomic_fetch_xor(h, 0xff, pe);	/* 55 -> aa */
	out[i++] = nvshmem_uint32_atomic_fetch_or(h, 0x100, pe);	/* aa -> 1aa */
	out[i++] = nvshmem_uint32_atomic_fetch_and(h, 0x10a, pe);	/* 1aa -> 10a */
	nvshmem_quiet();
}

__global__ void add_kernel(uint64_t *w, int pe)
{
	nvshmem_uint64_atomic_add(w, 1 + threadIdx.x % 2, pe);
	nvshmem_quiet();
}

static void atomics(uint64_t *wide)
{
	static const uint64_t want[] = { 100, 105, 105, 7, 7, 0xff02, 0xfff2, 0xf0f2, 0xf0f1,
					 200, 203, 11, 0x55, 0x55, 0xaa, 0x1aa };
	const size_t n = sizeof(want) / sizeof(want[0]);
	int next = (me + 1) % n_pes;
	uint64_t host[WORDS] = { 100, 200 }, *out, got[n];
	long wrong = 0;

	CUDA(cudaMalloc(&out, sizeof(got)));
	CUDA(cudaMemcpy(wide, host, sizeof(host), cudaMemcpyHostToDevice));
	barrier();
	atomics_kernel<<<1, 1>>>(wide, (unsigned *)(wide + 1), out, next);
	barrier();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(host, wide, sizeof(host), cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < n; i++) {
		wrong += got[i] != want[i];
		if (got[i] != want[i])
			printf("[%d] atomic %zu returned 0x%llx, not 0x%llx\n", me, i,
			       (unsigned long long)got[i], (unsigned long long)want[i]);
	}
	wrong += host[0] != 0xf0f2 || (uint32_t)host[1] != 0x10a;
	verdict("atomics of 8 and 4 bytes", n, wrong);
	CUDA(cudaMemset(wide + 2, 0, 8));
	barrier();
	add_kernel<<<4, 64>>>(wide + 2, 0); /* all PEs on one word */
	barrier();
	CUDA(cudaMemcpy(host, wide + 2, 8, cudaMemcpyDeviceToHost));
	if (!me)
		verdict("atomic_add by 256 threads", host[0], host[0] != 384ull * (unsigned)n_pes);
	CUDA(cudaFree(out));
}

/* ---- signals ---- */

__global__ void signal_kernel(uint8_t *dst, const uint8_t *src, size_t n, uint64_t *sig, uint64_t value,
			      int next, int before, unsigned long long *wrong, int salt)
{
	if (!threadIdx.x) {
		nvshmem_putmem_signal_nbi(dst, src, n, sig, value, NVSHMEM_SIGNAL_SET, next);
		nvshmem_signal_wait_until(sig, NVSHMEM_CMP_EQ, value);
	}
	__syncthreads();
	for (size_t i = threadIdx.x; i < n; i += blockDim.x)
		if (((volatile uint8_t *)dst)[i] != byte_of(i, before, salt))
			atomicAdd(wrong, 1ull);
	__syncthreads();
	if (!threadIdx.x)
		nvshmem_quiet();
}

static void signals(uint8_t *src, uint8_t *dst, uint64_t *sig)
{
	static const size_t sizes[] = { 8, 1000, 65536, 1 << 20 };
	int next = (me + 1) % n_pes, before = (me + n_pes - 1) % n_pes, salt = 1000;
	uint64_t value = 0;

	CUDA(cudaMemset(sig, 0, 8));
	for (size_t n : sizes) {
		unsigned long long wrong = 0;
		int rounds = n < 100000 ? 40 : 6;

		CUDA(cudaMemset(counter, 0, sizeof(*counter)));
		/* Nothing waits for the kernel before the next fill and memset: these wait in the driver. */
		for (int r = 0; r < rounds; r++) {
			fill<<<64, 256>>>(src, n, me, ++salt);
			CUDA(cudaMemset(dst, 0xee, n));
			barrier();
			signal_kernel<<<1, 256>>>(dst, src, n, sig, ++value, next, before, counter, salt);
		}
		barrier();
		CUDA(cudaMemcpy(&wrong, counter, sizeof(wrong), cudaMemcpyDeviceToHost));
		verdict("put_signal, data before it", n * (size_t)rounds, (long)wrong);
	}
}

/* ---- collectives ---- */

__global__ void barrier_kernel(int times)
{
	for (int i = 0; i < times; i++)
		nvshmem_barrier_all();
}

static void collectives(float *a, float *b)
{
	float host[1024];
	long wrong = 0;

	for (int i = 0; i < 1024; i++)
		host[i] = (float)(i + me * 10);
	CUDA(cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice));
	barrier();
	barrier_kernel<<<1, 1>>>(20);
	CUDA(cudaDeviceSynchronize());
	verdict("barrier_all in a kernel", 20, 0);
	nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, b, a, 1024, 0);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(host, b, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 1024; i++)
		wrong += host[i] != (float)(i * n_pes + 10 * n_pes * (n_pes - 1) / 2);
	verdict("float sum_reduce", sizeof(host), wrong);
}

/* ---- speed ---- */

__global__ void time_kernel(uint8_t *dst, const uint8_t *src, size_t n, int pe, int times, int stream,
			    long long *ns)
{
	unsigned long long t0, t1;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0)::"memory");
	for (int i = 0; i < times; i++) {
		if (!n)
			nvshmem_int_p((int *)dst, i, pe);
		else
			nvshmem_putmem_nbi(dst, src, n, pe);
		if (!stream)
			nvshmem_quiet();
	}
	nvshmem_quiet();
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1)::"memory");
	*ns = (long long)(t1 - t0);
}

static void time_one(const char *what, uint8_t *dst, uint8_t *src, size_t n, int times, int stream)
{
	long long *ns, host = 0;

	CUDA(cudaMalloc(&ns, 8));
	barrier();
	if (!me) {
		time_kernel<<<1, 1>>>(dst, src, n, 1 % n_pes, 3, stream, ns);
		time_kernel<<<1, 1>>>(dst, src, n, 1 % n_pes, times, stream, ns);
		CUDA(cudaMemcpy(&host, ns, 8, cudaMemcpyDeviceToHost));
		printf("[0] time %-20s %8zu B  %9.2f us each  %7.3f GB/s\n", what, n,
		       1e-3 * (double)host / times, (double)n * times / (double)(host ? host : 1));
		fflush(stdout);
	} else if (getenv("ONE_GPU")) {
		usleep(1500000); /* no kernel of ours takes turns with the one that is timed */
	}
	barrier();
	CUDA(cudaFree(ns));
}

static void times(uint8_t *dst, uint8_t *src)
{
	time_one("int_p + quiet", dst, src, 0, 200, 0);
	time_one("put + quiet", dst, src, 8, 200, 0);
	time_one("put + quiet", dst, src, 65536, 100, 0);
	time_one("put + quiet", dst, src, 1 << 20, 50, 0);
	time_one("int_p streaming", dst, src, 0, 20000, 1);
	time_one("put streaming", dst, src, 8, 5000, 1);
	time_one("put streaming", dst, src, 65536, 500, 1);
	time_one("put streaming", dst, src, 1 << 20, 200, 1);
}

/* ---- main ---- */

static void meet(nvshmemx_uniqueid_t *id)
{
	const char *name = getenv("MEET");
	char part[512];
	FILE *f;

	snprintf(part, sizeof(part), "%s.part", name);
	if (!me) {
		nvshmemx_get_uniqueid(id);
		f = fopen(part, "wb");
		fwrite(id, sizeof(*id), 1, f);
		fclose(f);
		rename(part, name);
		return;
	}
	for (double end = now() + 30; now() < end; usleep(10000)) {
		f = fopen(name, "rb");
		if (f && fread(id, sizeof(*id), 1, f) == 1) {
			fclose(f);
			return;
		}
		if (f)
			fclose(f);
	}
	printf("[%d] rank 0 does not come\n", me);
	exit(3);
}

/* What an application sees of an error completion: nothing. */
static void with_error(uint8_t *dst, uint8_t *src)
{
	for (int i = 0; i < 50 && !me; i++)
		put_kernel<<<1, 1>>>(dst, src, 8, 1, 0);
	printf("[%d] quiet returned: %s\n", me, cudaGetErrorString(cudaDeviceSynchronize()));
	fflush(stdout);
	nvshmem_barrier_all();
	printf("[%d] barrier passed\n", me);
}

int main(int argc, char **argv)
{
	nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
	nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
	const char *mode = argc > 1 ? argv[1] : "";
	uint8_t *src, *dst;
	uint64_t *wide;
	double t0;
	int gpus = 1, rc;

	me = atoi(getenv("RANK"));
	n_pes = atoi(getenv("NRANKS"));
	CUDA(cudaGetDeviceCount(&gpus));
	CUDA(cudaSetDevice(me % gpus));
	meet(&id);
	nvshmemx_set_attr_uniqueid_args(me, n_pes, &id, &attr);
	t0 = now();
	rc = nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr);
	printf("[%d] init %d in %.2f s, PE %d of %d\n", me, rc, now() - t0, nvshmem_my_pe(),
	       nvshmem_n_pes());
	fflush(stdout);
	if (rc)
		return 3;
	src = (uint8_t *)nvshmem_malloc(MOST);
	dst = (uint8_t *)nvshmem_malloc(MOST);
	wide = (uint64_t *)nvshmem_malloc(4096);
	CUDA(cudaMalloc(&counter, sizeof(*counter)));
	printf("[%d] the next PE is %s\n", me,
	       nvshmem_ptr(dst, (me + 1) % n_pes) ? "mapped" : "reached through the NIC");
	if (!strcmp(mode, "error")) {
		with_error(dst, src);
	} else {
		words(wide);
		moves(src, dst);
		atomics(wide);
		collectives((float *)src, (float *)dst);
		if (!strcmp(mode, "time"))
			times(dst, src);
		signals(src, dst, wide + 50);
	}
	barrier();
	nvshmem_free(wide);
	nvshmem_free(dst);
	nvshmem_free(src);
	nvshmem_finalize();
	printf("[%d] RESULT %s\n", me, bad ? "WRONG" : "ALL OK");
	return bad != 0;
}
