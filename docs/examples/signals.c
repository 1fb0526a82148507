/* SPDX-License-Identifier: BSD-3-Clause */
/* A number goes round: each PE waits for it, adds one and hands it on, data and signal in one call. */
#include <gdr.h>
#include <stdio.h>

struct args { long *number; uint64_t *arrived; };

GDR_KERNEL(round_trip, struct args, a)
{
	int me = gdr_my_pe(), next = (me + 1) % gdr_n_pes();
	long number = 1;

	if (me == 0)
		gdr_long_put_signal(a.number, &number, 1, a.arrived, 1, GDR_SIGNAL_ADD, next);
	gdr_signal_wait_until(a.arrived, GDR_CMP_GE, 1);
	number = *a.number + 1;
	if (me != 0)
		gdr_long_put_signal(a.number, &number, 1, a.arrived, 1, GDR_SIGNAL_ADD, next);
	gdr_quiet();
}

int main(void)
{
	long number;
	int want, wrong;
	struct args a;

	if (gdr_init())
		return 1;
	a.number = (long *)gdr_calloc(1, sizeof(long));
	a.arrived = (uint64_t *)gdr_calloc(1, sizeof(uint64_t));
	gdr_launch(round_trip, 1, 1, 0, NULL, &a);
	gdr_stream_sync(NULL);
	gdr_barrier_all();
	gdr_memcpy(&number, a.number, sizeof(number));
	want = gdr_host_my_pe() ? gdr_host_my_pe() : gdr_host_n_pes();
	wrong = number != want;
	printf("PE %d: %ld\n", gdr_host_my_pe(), number);
	return gdr_finalize() || wrong;
}
