/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that throw, in a program in C++: see exceptions.hpp. */
#include <cstdio>

#include <gdr.h>

#include "tests/hostdev/exceptions.hpp"

int main()
{
	int ret = gdr_init();

	if (ret)
		return 1;
	ret = exceptions_run();
	if (ret)
		printf("cpp_exceptions: %d\n", ret);
	return gdr_finalize() || ret;
}
