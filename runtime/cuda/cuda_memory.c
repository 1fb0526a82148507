// SPDX-License-Identifier: BSD-3-Clause
/* Memory of the GPU, which peers can map or not, and of the host for both. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cuda/cuda_impl.h"

/* ---- memory that can be shared ---- */

static struct gdri_cu_prop memory_property(const struct gdri_cuda *c)
{
	struct gdri_cu_prop p = {
		.type = GDRI_CU_MEM_PINNED,
		.handles = c->handles,
		.location = {GDRI_CU_LOCATION_DEVICE, c->device},
	};
	int rdma = 0;

	c->api.device_attribute(&rdma, GDRI_CU_ATTR_RDMA_VMM, c->device);
	p.flags.rdma = rdma != 0;
	return p;
}

/* Readable and writable by this PE's GPU. */
static gdri_cu_result cuda_map_memory(struct gdri_cuda *c, gdri_cu_mem mem, uint8_t *at, uint64_t size)
{
	struct gdri_cu_access access = {{GDRI_CU_LOCATION_DEVICE, c->device},
					GDRI_CU_ACCESS_READWRITE};
	gdri_cu_result r = c->api.map((uintptr_t)at, size, 0, mem, 0);

	if (r)
		return r;
	r = c->api.set_access((uintptr_t)at, size, &access, 1);
	if (r)
		c->api.unmap((uintptr_t)at, size);
	return r;
}

static uint64_t cuda_whole_grains(uint64_t size, uint64_t grain)
{
	return (size + grain - 1) / grain * grain;
}

int gdri_cuda_heap_reserve(struct gdri_cuda *c, bool own, uint64_t *size, uint64_t *max, uint8_t **base)
{
	struct gdri_cu_prop prop = memory_property(c);
	gdri_cu_ptr at = 0;
	gdri_cu_result r;
	size_t grain = 0;

	gdri_cuda_enter(c);
	r = c->api.granularity(&grain, &prop, GDRI_CU_GRANULARITY_BEST);
	if (!r) {
		*size = cuda_whole_grains(*size, grain);
		*max = cuda_whole_grains(*max, grain);
		r = c->api.reserve(&at, *max + c->room, 0, 0, 0);
		if (r && own && c->room) { /* the heap goes before what may come to it */
			c->room = 0;
			r = c->api.reserve(&at, *max, 0, 0, 0);
		}
	}
	gdri_cuda_leave(c);
	*base = (uint8_t *)(uintptr_t)at;
	return r ? gdri_cuda_refused(c, "reserving addresses for a heap", r) : 0;
}

void gdri_cuda_heap_release(struct gdri_cuda *c, uint8_t *base, uint64_t max)
{
	gdri_cuda_enter(c);
	c->api.unreserve((uintptr_t)base, max + c->room);
	gdri_cuda_leave(c);
}

int gdri_cuda_heap_create(struct gdri_cuda *c, uint8_t *at, uint64_t size, int *fd)
{
	struct gdri_cu_prop prop = memory_property(c);
	gdri_cu_mem mem = 0;
	gdri_cu_result r;

	*fd = -1;
	gdri_cuda_enter(c);
	r = c->api.mem_create(&mem, size, &prop, 0);
	if (!r) {
		r = cuda_map_memory(c, mem, at, size);
		if (!r) { /* not before: under compute-sanitizer's initcheck memsets of it would fail */
			r = gdri_cuda_export(c, mem, fd);
			if (r)
				c->api.unmap((uintptr_t)at, size);
		}
		c->api.mem_release(mem); /* mapping and descriptor keep it */
	}
	gdri_cuda_leave(c);
	if (!r)
		return 0;
	if (*fd >= 0)
		close(*fd);
	gdri_error("heap: %llu bytes of %s: %s; lower GDR_HEAP_SIZE or free memory of the GPU",
		   (unsigned long long)size, c->text, gdri_cuda_error_text(c, r));
	return r == 2 ? -GDR_ENOMEM : -GDR_ESYSTEM;
}

int gdri_cuda_heap_import(struct gdri_cuda *c, int fd, uint8_t *at, uint64_t size, char *why, size_t room)
{
	gdri_cu_mem mem = 0;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = gdri_cuda_import(c, fd, &mem);
	if (!r) {
		r = cuda_map_memory(c, mem, at, size);
		c->api.mem_release(mem);
	}
	gdri_cuda_leave(c);
	if (!r)
		return 0;
	snprintf(why, room, "%s cannot map its memory: %s", c->text, gdri_cuda_error_text(c, r));
	return -GDR_ESYSTEM;
}

void gdri_cuda_heap_unmap(struct gdri_cuda *c, uint8_t *at, uint64_t size)
{
	gdri_cuda_enter(c);
	c->api.unmap((uintptr_t)at, size);
	gdri_cuda_leave(c);
}

void *gdri_cuda_alloc_rdma(struct gdri_cuda *c, size_t *size)
{
	struct gdri_cu_prop prop = memory_property(c);
	gdri_cu_ptr at = 0;
	gdri_cu_mem mem = 0;
	gdri_cu_result r;
	size_t grain = 0;

	if (!prop.flags.rdma)
		return NULL;
	gdri_cuda_enter(c);
	r = c->api.granularity(&grain, &prop, GDRI_CU_GRANULARITY_BEST);
	if (!r) {
		*size = cuda_whole_grains(*size, grain);
		r = c->api.reserve(&at, *size, 0, 0, 0);
	}
	if (!r)
		r = c->api.mem_create(&mem, *size, &prop, 0);
	if (!r) {
		r = cuda_map_memory(c, mem, (uint8_t *)(uintptr_t)at, *size);
		c->api.mem_release(mem); /* the mapping keeps it */
	}
	if (r && at)
		c->api.unreserve(at, *size);
	gdri_cuda_leave(c);
	if (r || !gdri_cuda_zero(c, (void *)(uintptr_t)at, *size, 10000))
		return r ? NULL : (void *)(uintptr_t)at;
	gdri_cuda_free_rdma(c, (void *)(uintptr_t)at, *size);
	return NULL;
}

void gdri_cuda_free_rdma(struct gdri_cuda *c, void *p, size_t size)
{
	if (!p)
		return;
	gdri_cuda_enter(c);
	c->api.unmap((uintptr_t)p, size);
	c->api.unreserve((uintptr_t)p, size);
	gdri_cuda_leave(c);
}

/* ---- other memory ---- */

void *gdri_cuda_alloc_bare(struct gdri_cuda *c, size_t size)
{
	gdri_cu_ptr p = 0;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.alloc(&p, size);
	gdri_cuda_leave(c);
	if (r) {
		gdri_cuda_refused(c, "allocating memory of the GPU", r);
		return NULL;
	}
	return (void *)(uintptr_t)p;
}

void *gdri_cuda_alloc(struct gdri_cuda *c, size_t size)
{
	void *p = gdri_cuda_alloc_bare(c, size);

	if (p && gdri_cuda_zero(c, p, size, 10000)) {
		gdri_cuda_free(c, p);
		return NULL;
	}
	return p;
}

void gdri_cuda_free(struct gdri_cuda *c, void *p)
{
	if (!p)
		return;
	gdri_cuda_enter(c);
	c->api.free((uintptr_t)p);
	gdri_cuda_leave(c);
}

void *gdri_cuda_alloc_host(struct gdri_cuda *c, size_t size)
{
	void *p = NULL;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.host_alloc(&p, size, GDRI_CU_HOST_PORTABLE | GDRI_CU_HOST_MAPPED);
	gdri_cuda_leave(c);
	if (r) {
		gdri_cuda_refused(c, "allocating host memory that the GPU sees", r);
		return NULL;
	}
	memset(p, 0, size);
	return p;
}

void gdri_cuda_free_host(struct gdri_cuda *c, void *p)
{
	if (!p)
		return;
	gdri_cuda_enter(c);
	c->api.host_free(p);
	gdri_cuda_leave(c);
}
