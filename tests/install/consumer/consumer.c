// SPDX-License-Identifier: BSD-3-Clause
/* Each PE's kernel puts its number to the next PE. */
#include <stdio.h>

#include <gdr.h>

struct args {
	int *box;
};

GDR_KERNEL(send, struct args, a)
{
	int me = gdr_my_pe();

	gdr_int_p(a.box, me, (me + 1) % gdr_n_pes());
	gdr_barrier_all();
}

int main(void)
{
	struct args a;
	int me, n, got;

	if (gdr_init())
		return 1;
	me = gdr_host_my_pe();
	n = gdr_host_n_pes();
	a.box = gdr_calloc(1, sizeof(int));
	if (!a.box || gdr_launch(send, 1, 1, 0, NULL, &a) || gdr_stream_sync(NULL))
		return 1;
	gdr_memcpy(&got, a.box, sizeof(got));
	printf("consumer: PE %d of %d got %d\n", me, n, got);
	gdr_free(a.box);
	return gdr_finalize() || got != (me + n - 1) % n;
}
