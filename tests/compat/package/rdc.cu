// SPDX-License-Identifier: BSD-3-Clause
/* A program for NVSHMEM as its build systems compile it: -rdc=true, -lnvshmem_host -lnvshmem_device. */
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void __launch_bounds__(1024) shift(float *dst, float value, int pe)
{
	nvshmem_float_p(dst, value, pe);
	nvshmem_quiet();
	nvshmemx_barrier_all_block();
	nvshmemx_double_sum_reduce_block(NVSHMEM_TEAM_WORLD, (double *)dst, (double *)dst, 1);
}

int main()
{
	nvshmem_init();
	float *dst = (float *)nvshmem_malloc(8);
	shift<<<1, 1024>>>(dst, 1, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
	cudaDeviceSynchronize();
	nvshmem_free(dst);
	nvshmem_finalize();
}
