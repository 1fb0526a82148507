// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cuda/cuda_map.h"

#include <stdio.h>

#include "runtime/cuda/cuda_impl.h"

uint64_t gdri_cuda_room(const struct gdri_cuda *c)
{
	return c->room;
}

uint64_t gdri_cuda_grain(struct gdri_cuda *c)
{
	struct gdri_cu_prop prop = {
		.type = GDRI_CU_MEM_PINNED,
		.handles = c->handles,
		.location = {GDRI_CU_LOCATION_DEVICE, c->device},
	};
	size_t grain = 0;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.granularity(&grain, &prop, GDRI_CU_GRANULARITY_BEST);
	gdri_cuda_leave(c);
	return r ? 0 : grain;
}

int gdri_cuda_view_export(struct gdri_cuda *c, void *addr, int *fd, char *why, size_t room)
{
	gdri_cu_mem mem = 0;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.mem_retain(&mem, addr);
	if (r) {
		snprintf(why, room, "%s has no handle for it (%s): it has to come from cuMemCreate or "
			 "cudaMalloc", c->text, gdri_cuda_error_text(c, r));
	} else {
		r = gdri_cuda_export_foreign(c, mem, fd);
		if (r)
			snprintf(why, room, "%s gives neither a file descriptor for it nor a handle of the fabric "
				 "(%s): cuMemCreate has to be asked for one", c->text, gdri_cuda_error_text(c, r));
		c->api.mem_release(mem);
	}
	gdri_cuda_leave(c);
	return r ? -GDR_ENOTSUP : 0;
}

static gdri_cu_result cuda_view_map(struct gdri_cuda *c, gdri_cu_ptr at, uint64_t len, int fd)
{
	struct gdri_cu_access access = {{GDRI_CU_LOCATION_DEVICE, c->device}, GDRI_CU_ACCESS_READWRITE};
	gdri_cu_mem mem = 0;
	gdri_cu_result r = gdri_cuda_import(c, fd, &mem);

	if (r)
		return r;
	r = c->api.map(at, len, 0, mem, 0);
	c->api.mem_release(mem); /* the mapping keeps it */
	if (r)
		return r;
	r = c->api.set_access(at, len, &access, 1);
	if (r)
		c->api.unmap(at, len);
	return r;
}

int gdri_cuda_view_map(struct gdri_cuda *c, uint8_t *at, uint64_t len, int fd, char *why, size_t room)
{
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = cuda_view_map(c, (uintptr_t)at, len, fd);
	gdri_cuda_leave(c);
	if (r)
		snprintf(why, room, "%s cannot map %llu bytes of it: %s", c->text, (unsigned long long)len,
			 gdri_cuda_error_text(c, r));
	return r ? -GDR_ESYSTEM : 0;
}

void gdri_cuda_view_unmap(struct gdri_cuda *c, uint8_t *at, uint64_t len)
{
	gdri_cuda_enter(c);
	c->api.unmap((uintptr_t)at, len);
	gdri_cuda_leave(c);
}
