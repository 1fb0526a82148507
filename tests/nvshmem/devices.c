/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded below NVSHMEM's examples, which take the GPU of their number within the node: where there are
 * fewer GPUs than PEs, they go round. And its perftests print a pointer of malloc's that they never set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int cudaSetDevice(int device); /* of libcudart, whose header needs not be here */

int cudaSetDevice(int device)
{
	int (*set)(int) = (int (*)(int))dlsym(RTLD_NEXT, "cudaSetDevice");
	int (*count)(int *) = (int (*)(int *))dlsym(RTLD_NEXT, "cudaGetDeviceCount");
	int n = 0;

	if (!set)
		return 999; /* cudaErrorUnknown */
	if (count && !count(&n) && n > 0)
		device %= n;
	return set(device);
}

void *malloc(size_t size)
{
	return calloc(1, size);
}
