/* SPDX-License-Identifier: BSD-3-Clause */
/* A number of PE 0 that all PEs read, change and write back, one at a time. */
#include <gdr.h>
#include <stdio.h>

struct args { long *lock; int *number; };

GDR_KERNEL(change, struct args, a)
{
	for (int i = 0; i < 10; i++) {
		gdr_set_lock(a.lock);
		gdr_int_p(a.number, 3 + gdr_int_g(a.number, 0), 0);
		gdr_clear_lock(a.lock); /* completes the p first */
	}
}

int main(void)
{
	int number, wrong;
	struct args a;

	if (gdr_init())
		return 1;
	a.lock = (long *)gdr_calloc(1, sizeof(long));
	a.number = (int *)gdr_calloc(1, sizeof(int));
	gdr_launch(change, 1, 1, 0, NULL, &a);
	gdr_stream_sync(NULL);
	gdr_barrier_all();
	gdr_memcpy(&number, a.number, sizeof(number));
	wrong = gdr_host_my_pe() == 0 && number != 30 * gdr_host_n_pes();
	printf("PE %d: %s\n", gdr_host_my_pe(), wrong ? "wrong" : "right");
	return gdr_finalize() || wrong;
}
