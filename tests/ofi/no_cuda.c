// SPDX-License-Identifier: BSD-3-Clause
/* What the transport asks of GPUs, where there are none. */
#include <stddef.h>

#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"

bool gdri_cuda_is_device(struct gdri_cuda *c, const void *p)
{
	(void)c, (void)p;
	return false;
}

void *gdri_cuda_alloc_host(struct gdri_cuda *c, size_t size)
{
	(void)c, (void)size;
	return NULL;
}

void gdri_cuda_free_host(struct gdri_cuda *c, void *p)
{
	(void)c, (void)p;
}
