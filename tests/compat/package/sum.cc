/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums the PEs' numbers, by NVSHMEM's names. */
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>

int main()
{
	nvshmem_init();
	int me = nvshmem_my_pe(), n = nvshmem_n_pes();
	int *numbers = static_cast<int *>(nvshmem_malloc(2 * sizeof(int)));

	numbers[0] = me + 1;
	if (nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, numbers + 1, numbers, 1))
		return 1;
	std::printf("PE %d of %d: sum %d\n", me, n, numbers[1]);
	nvshmem_free(numbers);
	nvshmem_finalize();
	return 0;
}
