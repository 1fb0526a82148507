// SPDX-License-Identifier: BSD-3-Clause
#include <gdr.h>

__global__ void put(int *dst, int pe)
{
	gdr_int_p(dst, 1, pe);
	gdr_quiet();
}

int main()
{
	return gdr_init() != 0;
}
