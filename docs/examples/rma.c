/* SPDX-License-Identifier: BSD-3-Clause */
/* Each PE puts eight numbers to the next one, and gets them back from there. */
#include <gdr.h>
#include <stdio.h>

struct args { int *to, *from, *back; int *status; };

GDR_KERNEL(there_and_back, struct args, a)
{
	int next = (gdr_my_pe() + 1) % gdr_n_pes(), ret;

	ret = gdr_int_put_block(a.to, a.from, 8, next);
	if (!ret)
		ret = gdr_barrier_all_block(); /* completes the puts of all PEs */
	if (!ret)
		ret = gdr_int_get_block(a.back, a.to, 8, next);
	if (gdr_thread_id() == 0)
		*a.status = ret;
}

int main(void)
{
	int from[8], back[8], status = -1;
	struct args a;

	if (gdr_init())
		return 1;
	a.to = (int *)gdr_calloc(8, sizeof(int));
	a.from = (int *)gdr_calloc(8, sizeof(int));
	a.back = (int *)gdr_calloc(8, sizeof(int));
	a.status = (int *)gdr_calloc(1, sizeof(int));
	for (int i = 0; i < 8; i++)
		from[i] = 10 * gdr_host_my_pe() + i;
	gdr_memcpy(a.from, from, sizeof(from));
	gdr_launch(there_and_back, 1, 64, 0, NULL, &a);
	gdr_stream_sync(NULL);
	gdr_memcpy(&status, a.status, sizeof(status));
	gdr_memcpy(back, a.back, sizeof(back));
	for (int i = 0; i < 8; i++)
		status |= back[i] != from[i];
	printf("PE %d: %s\n", gdr_host_my_pe(), status ? "wrong" : "right");
	return gdr_finalize() || status;
}
