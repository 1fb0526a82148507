/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of this folder share: start, launches, sums of threads, time. They call NVSHMEM's names alone, so
 * that one source is compiled against NVSHMEM and against gdr. */
#ifndef TESTS_PERF_APPS_APP_H
#define TESTS_PERF_APPS_APP_H

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>

#define CUDA(call)                                                                                                     \
	do {                                                                                                           \
		cudaError_t error_ = (call);                                                                           \
		if (error_ != cudaSuccess) {                                                                           \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));     \
			nvshmem_global_exit(1);                                                                        \
		}                                                                                                      \
	} while (0)

/* The GPU of the PE's number within its node. */
static inline void start(void)
{
	const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
	int n = 1;

	CUDA(cudaGetDeviceCount(&n));
	CUDA(cudaSetDevice(rank ? atoi(rank) % n : 0));
	nvshmem_init();
}

template <typename Arg> void launch(void (*kernel)(Arg), unsigned grid, unsigned block, cudaStream_t stream, Arg arg)
{
	kernel<<<grid, block, 0, stream>>>(arg);
	CUDA(cudaGetLastError());
}

/* As NVSHMEM asks of kernels that call collectives. */
template <typename Arg>
void launch_all(void (*kernel)(Arg), unsigned grid, unsigned block, cudaStream_t stream, Arg arg)
{
	void *args[] = {&arg};

	if (nvshmemx_collective_launch((const void *)kernel, grid, block, args, 0, stream) != 0) {
		fprintf(stderr, "nvshmemx_collective_launch failed: %s\n", cudaGetErrorString(cudaGetLastError()));
		nvshmem_global_exit(1);
	}
}

/* Adds the values of all threads of whole warps to *to. */
__device__ static inline void add_all(double *to, double value)
{
	for (int far = 16; far > 0; far /= 2)
		value += __shfl_down_sync(0xffffffffu, value, far);
	if (threadIdx.x % 32 == 0)
		atomicAdd(to, value);
}

/* The median time in us of one of `steps` calls of step, which puts its work on the stream. before(): what is not
 * timed. */
template <typename Before, typename Step>
double time_us(cudaStream_t stream, int steps, int times, Before before, Step step)
{
	std::vector<double> all;

	for (int t = 0; t < times + 2; t++) { /* two to warm up */
		before();
		CUDA(cudaStreamSynchronize(stream));
		nvshmem_barrier_all();
		auto begin = std::chrono::steady_clock::now();
		for (int s = 0; s < steps; s++)
			step();
		CUDA(cudaStreamSynchronize(stream));
		std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
		if (t >= 2)
			all.push_back(took.count() / steps);
	}
	std::sort(all.begin(), all.end());
	return all[all.size() / 2];
}

/* PE 0 says how long a step took. */
static inline void say(const char *name, double us)
{
	if (nvshmem_my_pe() == 0)
		printf("time_us %s %.3f\n", name, us);
}

/* Ends the program: 1 where the result of this PE was wrong. */
static inline int finish(bool right)
{
	int pe = nvshmem_my_pe();

	if (!right)
		fprintf(stderr, "PE %d: WRONG\n", pe);
	nvshmem_barrier_all();
	nvshmem_finalize();
	return right ? 0 : 1;
}

#endif
