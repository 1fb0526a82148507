// SPDX-License-Identifier: BSD-3-Clause
/* Bring-up on GPUs: from a CUDA context that is there to the end of init, and to that of a first kernel. All PEs start
 * their clocks together (INIT_GPU_FILE: an empty file that they share; INIT_GPU_N PEs). Each prints
 * "init_ms kernel_ms finalize_ms". The same source measures NVSHMEM (-DAS_NVSHMEM). */
#include "tests/perf/help.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime.h>
#ifdef AS_NVSHMEM
#include <nvshmem.h>
#include <nvshmemx.h>
#define INIT() (nvshmem_init(), 0)
#define FINALIZE() (nvshmem_finalize(), 0)
#define MY_PE() nvshmem_my_pe()
#else
#include <gdr.h>
#define INIT() gdr_init()
#define FINALIZE() gdr_finalize()
#define MY_PE() gdr_my_pe()
#endif

__global__ void first(int *out)
{
	*out = MY_PE();
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int start_together(void)
{
	const char *path = getenv("INIT_GPU_FILE"), *n = getenv("INIT_GPU_N");
	int fd = path ? open(path, O_RDWR) : -1;
	uint32_t *count;

	if (fd < 0 || !n || ftruncate(fd, 4096))
		return 1;
	count = (uint32_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (count == MAP_FAILED)
		return 1;
	__atomic_add_fetch(count, 1, __ATOMIC_RELAXED); /* a count alone: pairs with the loads below */
	while (__atomic_load_n(count, __ATOMIC_RELAXED) < (uint32_t)atoi(n))
		usleep(100); /* bounded by whoever starts this program */
	return 0;
}

int main(int argc, char **argv)
{
	const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
	double t[4];
	int *out, seen = -1, n = 0;

	help_if_asked(argc, argv, "init_gpu, as each PE of a job: prints init_ms kernel_ms finalize_ms");
	if (cudaGetDeviceCount(&n) || cudaSetDevice(rank ? atoi(rank) % n : 0) || cudaMalloc(&out, sizeof(*out)))
		return 1;
	if (start_together())
		return 1;
	t[0] = now_ms();
	if (INIT())
		return 1;
	t[1] = now_ms();
	first<<<1, 1>>>(out);
	if (cudaMemcpy(&seen, out, sizeof(seen), cudaMemcpyDefault) || seen < 0)
		return 1;
	t[2] = now_ms();
	if (FINALIZE())
		return 1;
	t[3] = now_ms();
	printf("%.1f %.1f %.1f\n", t[1] - t[0], t[2] - t[0], t[3] - t[2]);
	return 0;
}
