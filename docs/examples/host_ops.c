/* SPDX-License-Identifier: BSD-3-Clause */
/* Host threads alone: each PE puts a message into the memory of the next one and signals it, and all count on PE 0. */
#include <gdr/host_ops.h>
#include <stdio.h>

int main(void)
{
	double text[3], got[3], *to;
	int n, me, next, wrong;
	uint64_t *sig;
	long *count;

	if (gdr_init())
		return 1;
	me = gdr_host_my_pe();
	n = gdr_host_n_pes();
	next = (me + 1) % n;
	to = (double *)gdr_calloc(3, sizeof(double));
	sig = (uint64_t *)gdr_calloc(1, sizeof(*sig));
	count = (long *)gdr_calloc(1, sizeof(*count));
	text[0] = me;
	text[1] = text[2] = 0.5;
	gdr_host_double_put_signal(to, text, 3, sig, 1, GDR_SIGNAL_SET, next);
	wrong = gdr_host_signal_wait_until(sig, GDR_CMP_EQ, 1) != 0;
	gdr_host_double_get(got, to, 3, me); /* own memory, which may be a GPU's */
	wrong |= got[0] != (me + n - 1) % n || got[2] != 0.5;
	gdr_host_long_atomic_inc(count, 0);
	gdr_barrier_all();
	wrong |= gdr_host_long_g(count, 0) != n;
	printf("PE %d: %s\n", me, wrong ? "wrong" : "right");
	return gdr_finalize() || wrong;
}
