/* SPDX-License-Identifier: BSD-3-Clause */
/* PE 0 takes up what the others send in the order in which it comes. */
#include <gdr.h>
#include <stdio.h>

struct args { int *inbox, *sum; };

GDR_KERNEL(gather, struct args, a)
{
	int me = gdr_my_pe(), n = gdr_n_pes(), done[64] = {1}; /* nothing comes from PE 0 */

	if (me) {
		gdr_int_p(a.inbox + me, me, 0);
		gdr_quiet();
		return;
	}
	for (int i = 1; i < n; i++) {
		size_t pe = gdr_int_wait_until_any(a.inbox, (size_t)n, done, GDR_CMP_NE, 0);

		done[pe] = 1;
		*a.sum += a.inbox[pe];
	}
}

int main(void)
{
	int sum, n, wrong;
	struct args a;

	if (gdr_init())
		return 1;
	n = gdr_host_n_pes();
	a.inbox = (int *)gdr_calloc(64, sizeof(int));
	a.sum = (int *)gdr_calloc(1, sizeof(int));
	gdr_launch(gather, 1, 1, 0, NULL, &a);
	gdr_stream_sync(NULL);
	gdr_memcpy(&sum, a.sum, sizeof(sum));
	wrong = gdr_host_my_pe() == 0 && sum != n * (n - 1) / 2;
	printf("PE %d: %s\n", gdr_host_my_pe(), wrong ? "wrong" : "right");
	return gdr_finalize() || wrong;
}
