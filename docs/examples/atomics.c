/* SPDX-License-Identifier: BSD-3-Clause */
/* All threads of all PEs draw numbers from a counter of PE 0, and add to a sum there. */
#include <gdr.h>
#include <stdio.h>

struct args { int *counter; double *sum; int *drawn; };

GDR_KERNEL(draw, struct args, a)
{
	a.drawn[gdr_thread_id()] = gdr_int_atomic_fetch_add(a.counter, 1, 0);
	gdr_double_atomic_add(a.sum, 0.5, 0);
	gdr_quiet();
}

int main(void)
{
	int n, drawn[32], wrong = 0;
	double sum;
	struct args a;

	if (gdr_init())
		return 1;
	n = 32 * gdr_host_n_pes();
	a.counter = (int *)gdr_calloc(1, sizeof(int));
	a.sum = (double *)gdr_calloc(1, sizeof(double));
	a.drawn = (int *)gdr_calloc(32, sizeof(int));
	gdr_launch(draw, 1, 32, 0, NULL, &a);
	gdr_stream_sync(NULL);
	gdr_barrier_all();
	gdr_memcpy(drawn, a.drawn, sizeof(drawn));
	gdr_memcpy(&sum, a.sum, sizeof(sum));
	for (int i = 0; i < 32; i++)
		wrong |= drawn[i] < 0 || drawn[i] >= n;
	if (gdr_host_my_pe() == 0)
		wrong |= sum != 0.5 * n;
	printf("PE %d: %s\n", gdr_host_my_pe(), wrong ? "wrong" : "right");
	return gdr_finalize() || wrong;
}
