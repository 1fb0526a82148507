// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cuda/cuda_ipc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/cuda_impl.h"

/* An allocation of another process. Drivers count how often it is opened; those before 11.2 refuse the second time. */
struct gdri_cuda_opened {
	struct gdri_cuda_opened *next;
	struct gdri_cu_ipc handle;
	gdri_cu_ptr at;
	unsigned int refs;
};

bool gdri_cuda_is_plain(struct gdri_cuda *c, const void *addr)
{
	return (gdri_cuda_about(c, GDRI_CU_POINTER_IPC, addr) & 0xff) != 0;
}

bool gdri_cuda_is_pooled(struct gdri_cuda *c, const void *addr)
{
	return gdri_cuda_about(c, GDRI_CU_POINTER_POOL, addr) != 0;
}

static int ipc_check_range(struct gdri_cuda *c, const void *addr, size_t len, struct gdri_cuda_ipc *out, char *why,
			   size_t room)
{
	uint64_t begin = gdri_cuda_about(c, GDRI_CU_POINTER_BEGIN, addr);
	int device = (int)(uint32_t)gdri_cuda_about(c, GDRI_CU_POINTER_ORDINAL, addr);

	out->size = gdri_cuda_about(c, GDRI_CU_POINTER_SIZE, addr);
	out->offset = (uintptr_t)addr - begin;
	if (device != c->device) {
		snprintf(why, room, "it is memory of GPU %d, and this PE uses %d, %s", device, c->device, c->text);
		return -GDR_EINVAL;
	}
	if (out->offset < out->size && len <= out->size - out->offset)
		return 0;
	snprintf(why, room, "the allocation that it is in has %llu bytes from it on",
		 (unsigned long long)(out->offset < out->size ? out->size - out->offset : 0));
	return -GDR_EINVAL;
}

int gdri_cuda_ipc_export(struct gdri_cuda *c, const void *addr, size_t len, struct gdri_cuda_ipc *out, char *why,
			 size_t room)
{
	struct gdri_cu_ipc handle;
	gdri_cu_result r;
	int ret = ipc_check_range(c, addr, len, out, why, room);

	if (ret) {
		out->size = 0;
		return ret;
	}
	gdri_cuda_enter(c);
	r = c->api.ipc_get(&handle, (uintptr_t)addr - out->offset);
	gdri_cuda_leave(c);
	memcpy(out->handle, handle.data, sizeof(out->handle));
	if (!r)
		return 0;
	out->size = 0;
	snprintf(why, room, "%s gives no handle for memory of cudaMalloc (cuIpcGetMemHandle: %s): take memory of "
		 "cuMemCreate", c->text, gdri_cuda_error_text(c, r));
	return -GDR_ENOTSUP;
}

static struct gdri_cuda_opened *ipc_find(struct gdri_cuda *c, const struct gdri_cuda_ipc *of)
{
	struct gdri_cuda_opened *o = c->opened;

	while (o && memcmp(o->handle.data, of->handle, sizeof(of->handle)))
		o = o->next;
	return o;
}

static gdri_cu_result open_new(struct gdri_cuda *c, const struct gdri_cuda_ipc *of, struct gdri_cuda_opened *o)
{
	gdri_cu_result r;

	memcpy(o->handle.data, of->handle, sizeof(of->handle));
	gdri_cuda_enter(c);
	r = c->api.ipc_open(&o->at, o->handle, GDRI_CU_IPC_LAZY);
	gdri_cuda_leave(c);
	if (r)
		return r;
	o->next = c->opened;
	c->opened = o;
	return 0;
}

int gdri_cuda_ipc_open(struct gdri_cuda *c, const struct gdri_cuda_ipc *of, uint8_t **base, char *why, size_t room)
{
	struct gdri_cuda_opened *o = ipc_find(c, of);
	gdri_cu_result r = 0;

	if (!o) {
		o = calloc(1, sizeof(*o));
		r = o ? open_new(c, of, o) : 2; /* CUDA_ERROR_OUT_OF_MEMORY */
	}
	if (r) {
		free(o);
		snprintf(why, room, "%s cannot map it (cuIpcOpenMemHandle: %s): the PEs have to be processes of one "
			 "user whose GPUs reach each other (nvidia-smi topo -p2p rw); or take memory of cuMemCreate",
			 c->text, gdri_cuda_error_text(c, r));
		return -GDR_ESYSTEM;
	}
	o->refs++;
	*base = (uint8_t *)(uintptr_t)o->at;
	return 0;
}

void gdri_cuda_ipc_close(struct gdri_cuda *c, uint8_t *base)
{
	struct gdri_cuda_opened **at = &c->opened, *o;

	while (*at && (*at)->at != (uintptr_t)base)
		at = &(*at)->next;
	o = *at;
	if (!o || --o->refs)
		return;
	*at = o->next;
	gdri_cuda_enter(c);
	c->api.ipc_close(o->at);
	gdri_cuda_leave(c);
	free(o);
}
