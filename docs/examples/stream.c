/* SPDX-License-Identifier: BSD-3-Clause */
/* A step of an iteration on one stream, without the host in between: a kernel, a halo to the neighbour, a
 * sum over all PEs, a kernel that uses both. */
#include <gdr.h>
#include <stdio.h>

struct args { int *mine, *halo, *sum; int me; };

GDR_KERNEL(compute, struct args, a)
{
	*a.mine = a.me + 1;
}

GDR_KERNEL(use, struct args, a)
{
	*a.mine = *a.sum - *a.halo;
}

int main(void)
{
	gdr_stream_t stream;
	struct args a;
	int n, wrong, left;

	if (gdr_init() || gdr_stream_create(&stream))
		return 1;
	a.me = gdr_host_my_pe();
	n = gdr_host_n_pes();
	a.mine = (int *)gdr_calloc(1, sizeof(int));
	a.halo = (int *)gdr_calloc(1, sizeof(int));
	a.sum = (int *)gdr_calloc(1, sizeof(int));
	gdr_launch(compute, 1, 1, 0, stream, &a);
	gdr_int_put_on_stream(a.halo, a.mine, 1, (a.me + 1) % n, stream);
	gdr_int_sum_reduce_on_stream(GDR_TEAM_WORLD, a.sum, a.mine, 1, stream);
	gdr_barrier_all_on_stream(stream);
	gdr_launch(use, 1, 1, 0, stream, &a);
	wrong = gdr_stream_sync(stream) || gdr_host_status();
	gdr_memcpy(&left, a.mine, sizeof(left));
	wrong |= left != n * (n + 1) / 2 - ((a.me + n - 1) % n + 1);
	printf("PE %d: %d\n", a.me, left);
	wrong |= gdr_stream_destroy(stream) != 0;
	return gdr_finalize() || wrong;
}
