// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cuda/cuda_map.h"

#include <ctype.h>
#include <stdio.h>

#include "runtime/cuda/cuda_impl.h"

static gdri_cu_result cuda_map_host(struct gdri_cuda *c, void *p, size_t len, unsigned int flags, void **at)
{
	gdri_cu_ptr device = 0;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.host_register(p, len, flags);
	if (!r) {
		r = c->api.host_pointer(&device, p, 0);
		if (r)
			c->api.host_unregister(p);
	}
	gdri_cuda_leave(c);
	*at = (void *)(uintptr_t)device;
	return r;
}

int gdri_cuda_map(struct gdri_cuda *c, void *p, size_t len, enum gdri_cuda_map kind, void **at, char *why,
		  size_t room)
{
	unsigned int flags = GDRI_CU_HOST_PORTABLE | GDRI_CU_HOST_MAPPED;
	gdri_cu_result r, plain;

	if (kind == GDRI_CUDA_MAP_MEMORY) {
		r = cuda_map_host(c, p, len, flags, at);
		if (!r)
			return 0;
		snprintf(why, room, "%s cannot map %zu bytes of host memory: %s (%d); see ulimit -l and free "
			 "memory", c->text, len, gdri_cuda_error_text(c, r), r);
		return -GDR_ESYSTEM;
	}
	r = cuda_map_host(c, p, len, flags | GDRI_CU_HOST_IO, at);
	/* invalid argument: no memory of a device at all. An emulated NIC has its page in memory. */
	plain = r == GDRI_CU_INVALID ? cuda_map_host(c, p, len, flags, at) : r;
	if (!plain)
		return 0;
	snprintf(why, room, "%s cannot map the doorbell page: %s (%d); set NVreg_RegistryDwords="
		 "\"PeerMappingOverride=1;\" as option of the kernel module nvidia and load it anew", c->text,
		 gdri_cuda_error_text(c, plain), plain);
	return -GDR_ENOTSUP;
}

void gdri_cuda_unmap(struct gdri_cuda *c, void *p)
{
	gdri_cuda_enter(c);
	c->api.host_unregister(p);
	gdri_cuda_leave(c);
}

static int cuda_map_attribute(const struct gdri_cuda *c, int what)
{
	int value = 0;

	return c->api.device_attribute(&value, what, c->device) ? 0 : value;
}

int gdri_cuda_dma_buf(struct gdri_cuda *c, void *p, size_t len, bool pcie, char *why, size_t room)
{
	gdri_cu_result r = GDRI_CU_INVALID;
	int fd = -1;

	if (!cuda_map_attribute(c, GDRI_CU_ATTR_DMA_BUF)) {
		snprintf(why, room, "the driver has no dma-buf for %s: it takes the open kernel modules of "
			 "version 515 or later and Linux 5.12 or later", c->text);
		return -1;
	}
	gdri_cuda_enter(c);
	if (pcie)
		r = c->api.range_handle(&fd, (uintptr_t)p, len, GDRI_CU_RANGE_DMA_BUF, GDRI_CU_RANGE_PCIE);
	if (r) /* drivers before 12.8 know no other way, nor do GPUs that have one */
		r = c->api.range_handle(&fd, (uintptr_t)p, len, GDRI_CU_RANGE_DMA_BUF, 0);
	gdri_cuda_leave(c);
	if (!r && fd >= 0)
		return fd;
	snprintf(why, room, "%s gives no dma-buf for %zu bytes: %s (%d)", c->text, len,
		 gdri_cuda_error_text(c, r), r);
	return -1;
}

/* Not cuPointerGetAttribute, to which memory that CUDA does not know is an error, seen by tools. One at a time: an
 * attribute that the driver does not know must not take the others with it. */
uint64_t gdri_cuda_about(struct gdri_cuda *c, int what, const void *p)
{
	uint64_t value = 0; /* some are of 4 bytes */
	void *to = &value;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.pointer_attributes(1, &what, &to, (uintptr_t)p);
	gdri_cuda_leave(c);
	return r ? 0 : value;
}

bool gdri_cuda_is_device(struct gdri_cuda *c, const void *p)
{
	return gdri_cuda_about(c, GDRI_CU_POINTER_TYPE, p) == GDRI_CU_POINTER_DEVICE;
}

int gdri_cuda_ordinal(struct gdri_cuda *c, const void *p)
{
	return (int)gdri_cuda_about(c, GDRI_CU_POINTER_ORDINAL, p);
}

static bool cuda_map_is_known(struct gdri_cuda *c, const void *p)
{
	return gdri_cuda_about(c, GDRI_CU_POINTER_TYPE, p) != 0;
}

int gdri_cuda_copy_in(struct gdri_cuda *c, void *to, const void *gpu, size_t len, int timeout_ms)
{
	return cuda_map_is_known(c, to) ? gdri_cuda_copy(c, to, gpu, len, timeout_ms)
			       : gdri_cuda_peek(c, to, gpu, len, timeout_ms);
}

int gdri_cuda_copy_out(struct gdri_cuda *c, void *gpu, const void *from, size_t len, int timeout_ms)
{
	return cuda_map_is_known(c, from) ? gdri_cuda_copy(c, gpu, from, len, timeout_ms)
				 : gdri_cuda_poke(c, gpu, from, len, timeout_ms);
}

void gdri_cuda_sync_copies(struct gdri_cuda *c)
{
	unsigned int flags = 0;
	gdri_cu_result r = GDRI_CU_INVALID;

	gdri_cuda_enter(c);
	if (c->api.ctx_flags && c->api.ctx_set_flags)
		r = c->api.ctx_flags(&flags);
	if (!r && !(flags & GDRI_CU_CTX_SYNC_MEMOPS))
		r = c->api.ctx_set_flags(flags | GDRI_CU_CTX_SYNC_MEMOPS);
	gdri_cuda_leave(c);
	if (r)
		gdri_info("%s: the driver does not take SYNC_MEMOPS (CUDA 12.1 does): a blocking cudaMemcpy may return "
			  "before its data is there for a NIC", c->text);
}

bool gdri_cuda_has_bridge(const struct gdri_cuda *c)
{
	return cuda_map_attribute(c, GDRI_CU_ATTR_HOST_TABLES);
}

bool gdri_cuda_late_writes(const struct gdri_cuda *c)
{
	return cuda_map_attribute(c, GDRI_CU_ATTR_RDMA_ORDER) < GDRI_CU_RDMA_ORDER_OWNER;
}

const char *gdri_cuda_sysfs(const struct gdri_cuda *c, char *buf, size_t room)
{
	char *s;

	snprintf(buf, room, "/sys/bus/pci/devices/%s", c->pci);
	for (s = buf; *s; s++) /* the driver writes capitals, the kernel does not */
		*s = (char)tolower((unsigned char)*s);
	return buf;
}
