/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled only, for each GPU generation, warnings as errors: also that no kernel's stack is unbounded. */
#include "tests/device/every_function.h"

/* A source that is no memory of its own. */
__global__ void from_parameter(const __grid_constant__ struct every_args a)
{
	*a.out = gdr_put_bulk(a.dst, &a, sizeof(a), gdr_shared(), a.n, a.pe) + gdr_put(a.dst, &a, sizeof(a), a.pe);
}
