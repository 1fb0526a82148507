// SPDX-License-Identifier: BSD-3-Clause
/* What the transport asks of GPUs, where there are none. */
#include <stddef.h>

#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_lane.h"
#include "runtime/cuda/cuda_map.h"

bool gdri_cuda_is_device(struct gdri_cuda *c, const void *p)
{
	(void)c, (void)p;
	return false;
}

int gdri_cuda_ordinal(struct gdri_cuda *c, const void *p)
{
	(void)c, (void)p;
	return 0;
}

bool gdri_cuda_late_writes(const struct gdri_cuda *c)
{
	(void)c;
	return true;
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

int gdri_lane_open(struct gdri_cuda *c, size_t bytes, int limit_ms, struct gdri_lane **out)
{
	(void)c, (void)bytes, (void)limit_ms;
	*out = NULL;
	return 0;
}

void gdri_lane_close(struct gdri_lane *l)
{
	(void)l;
}

void gdri_lane_store(struct gdri_lane *l, void *gpu, const void *from, size_t len)
{
	(void)l, (void)gpu, (void)from, (void)len;
}

void gdri_lane_load(struct gdri_lane *l, void *to, const void *gpu, size_t len)
{
	(void)l, (void)to, (void)gpu, (void)len;
}

void gdri_lane_move(struct gdri_lane *l, void *gpu, const void *from, size_t len)
{
	(void)l, (void)gpu, (void)from, (void)len;
}

int gdri_lane_has_work(const struct gdri_lane *l)
{
	(void)l;
	return 0;
}

int gdri_lane_wait(struct gdri_lane *l)
{
	(void)l;
	return 0;
}

int gdri_lane_test(struct gdri_lane *l)
{
	(void)l;
	return 0;
}
