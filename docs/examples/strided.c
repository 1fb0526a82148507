/* SPDX-License-Identifier: BSD-3-Clause */
/* Each PE puts a column of its 4 x 4 matrix into a row of the next PE's. */
#include <gdr.h>
#include <stdio.h>

struct args { double *to, *from; };

GDR_KERNEL(column_to_row, struct args, a)
{
	int next = (gdr_my_pe() + 1) % gdr_n_pes();

	gdr_double_iput(a.to + 4 * 2, a.from + 1, 1, 4, 4, next); /* row 2, column 1 */
	gdr_quiet();
}

int main(void)
{
	double from[16], to[16];
	int n, prev, wrong = 0;
	struct args a;

	if (gdr_init())
		return 1;
	n = gdr_host_n_pes();
	prev = (gdr_host_my_pe() + n - 1) % n;
	a.to = (double *)gdr_calloc(16, sizeof(double));
	a.from = (double *)gdr_calloc(16, sizeof(double));
	for (int i = 0; i < 16; i++)
		from[i] = 100 * gdr_host_my_pe() + i;
	gdr_memcpy(a.from, from, sizeof(from));
	gdr_launch(column_to_row, 1, 1, 0, NULL, &a);
	gdr_stream_sync(NULL);
	gdr_barrier_all();
	gdr_memcpy(to, a.to, sizeof(to));
	for (int i = 0; i < 16; i++)
		wrong |= to[i] != (i / 4 == 2 ? 100 * prev + 4 * (i % 4) + 1 : 0);
	printf("PE %d: %s\n", gdr_host_my_pe(), wrong ? "wrong" : "right");
	return gdr_finalize() || wrong;
}
