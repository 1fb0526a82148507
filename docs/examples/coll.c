/* SPDX-License-Identifier: BSD-3-Clause */
/* The sum over all PEs, and each PE's share of the counting: an exclusive scan. */
#include <gdr.h>
#include <stdio.h>

struct args { int *mine, *sum, *before; };

GDR_KERNEL(sums, struct args, a)
{
	gdr_int_sum_reduce_block(GDR_TEAM_WORLD, a.sum, a.mine, 1);
	gdr_int_sum_exscan_block(GDR_TEAM_WORLD, a.before, a.mine, 1);
}

int main(void)
{
	int me, n, sum, before, wrong;
	struct args a;

	if (gdr_init())
		return 1;
	me = gdr_host_my_pe();
	n = gdr_host_n_pes();
	a.mine = (int *)gdr_calloc(1, sizeof(int));
	a.sum = (int *)gdr_calloc(1, sizeof(int));
	a.before = (int *)gdr_calloc(1, sizeof(int));
	gdr_memcpy(a.mine, &me, sizeof(me));
	gdr_launch(sums, 1, 32, 0, NULL, &a);
	gdr_stream_sync(NULL);
	gdr_memcpy(&sum, a.sum, sizeof(sum));
	gdr_memcpy(&before, a.before, sizeof(before));
	wrong = sum != n * (n - 1) / 2 || before != me * (me - 1) / 2;
	printf("PE %d: %d of %d\n", me, before, sum);
	return gdr_finalize() || wrong;
}
