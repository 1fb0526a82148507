/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of GPUs that processes of one host show each other (share.c): an allocation as a whole, by
 * descriptor (cuMemCreate) or by IPC handle (cuMemAlloc). Who it is shown to maps it, and has its own
 * GPU copy from there. */
#include <unistd.h>

#include "softhca/gpu/dma_impl.h"
#include "softhca/tools/log.h"

/* ---- the owner's side: without hca_lock ---- */

static bool show_one(const struct cuda_api *api, uint64_t addr, struct dma_shown *x)
{
	cu_ptr base = 0;
	cu_mem mem = 0;
	size_t size = 0;
	bool ok;

	if (api->address_range(&base, &size, addr) || !size)
		return false;
	*x = (struct dma_shown){ .at = base, .len = size, .fd = -1 };
	if (api->mem_retain(&mem, (void *)(uintptr_t)base))
		return !api->ipc_get(&x->ipc, base);
	ok = !api->mem_export(&x->fd, mem, CU_HANDLE_FD, 0);
	api->mem_release(mem);
	return ok;
}

void dma_show(struct dma_answer *a)
{
	const struct cuda_api *api = cuda_driver();
	uint64_t at = a->addr, end = a->addr + a->len;

	while (api && at < end && a->n_shown < DMA_SHOWN && show_one(api, at, &a->shown[a->n_shown])) {
		const struct dma_shown *x = &a->shown[a->n_shown++];

		if (x->at + x->len <= at)
			break;
		at = x->at + x->len;
	}
}

void dma_show_not(struct dma_answer *a)
{
	while (a->n_shown)
		if (a->shown[--a->n_shown].fd >= 0)
			close(a->shown[a->n_shown].fd);
}

/* ---- the other side ---- */

static cu_result dma_share_map(cu_mem mem, size_t size, cu_ptr *at)
{
	struct cu_access access = { { CU_LOCATION_DEVICE, 0 }, CU_ACCESS_READWRITE };
	cu_result rc = DMA_CALL(ctx_device, "cuCtxGetDevice", &access.location.id);

	if (!rc)
		rc = DMA_CALL(reserve, "cuMemAddressReserve", at, size, 0, 0, 0);
	if (rc)
		return rc;
	rc = DMA_CALL(map, "cuMemMap", *at, size, 0, mem, 0);
	if (!rc) {
		rc = DMA_CALL(set_access, "cuMemSetAccess", *at, size, &access, 1);
		if (rc)
			DMA_CALL(unmap, "cuMemUnmap", *at, size);
	}
	return rc;
}

static cu_result dma_share_import(const struct dma_shown *x, cu_ptr *at)
{
	cu_mem mem = 0;
	cu_result rc;

	if (x->fd < 0)
		return DMA_CALL(ipc_open, "cuIpcOpenMemHandle", at, x->ipc, CU_IPC_LAZY_PEER);
	rc = DMA_CALL(mem_import, "cuMemImportFromShareableHandle", &mem,
		      (void *)(intptr_t)x->fd, CU_HANDLE_FD);
	if (rc)
		return rc;
	rc = dma_share_map(mem, x->len, at);
	DMA_CALL(mem_release, "cuMemRelease", mem); /* the mapping keeps it */
	return rc;
}

uint8_t *dma_import(const struct dma_shown *x)
{
	cu_ptr at = 0;
	cu_result rc;
	cu_ctx before;

	if (!dma_on || dma_gpu.dead)
		return NULL;
	before = dma_enter();
	rc = dma_share_import(x, &at);
	dma_leave(before);
	hca_debug(1, "another process's memory of a GPU, %llu bytes: %d", (unsigned long long)x->len,
		  rc);
	if (rc || dma_add_range(at, at + x->len, -1))
		return NULL;
	return (uint8_t *)(uintptr_t)at;
}

/* cuMemAddressFree and cuIpcCloseMemHandle wait for kernels: addresses stay reserved, and memory behind
 * an IPC handle mapped, until the process ends. */
void dma_unimport(const struct dma_shown *x, uint8_t *at)
{
	cu_ptr p = (uintptr_t)at;
	cu_ctx before;

	dma_forget(p, x->len); /* waits for what is copied from there */
	if (x->fd < 0)
		return;
	before = dma_enter();
	DMA_CALL(unmap, "cuMemUnmap", p, x->len);
	dma_leave(before);
}
