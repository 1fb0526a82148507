// SPDX-License-Identifier: BSD-3-Clause
#include <gdr.h>

__global__ void put(int *dst, int pe)
{
	gdr_int_p(dst, 1, pe);
	gdr_quiet();
}

struct args {
	int *dst;
	int pe;
};

/* With launch bounds of 1024 threads. */
GDR_KERNEL(put_bound, struct args, a)
{
	gdr_put(a.dst, a.dst + 1, 4096, a.pe);
	gdr_quiet();
}

int main()
{
	struct args a = {};

	return gdr_init() || gdr_launch(put_bound, 1, 1, 0, NULL, &a);
}
