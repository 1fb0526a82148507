// SPDX-License-Identifier: BSD-3-Clause
/* Host-initiated transfers: the device functions, called from a host thread;
 * where the device is a GPU, copies of its driver. */
#include <gdr/device.h>
#include <gdr/host.h>

#include "host/cuda.h"
#include "host/host.h"
#include "runtime/range.h"

int gdr_host_put(void *dst, const void *src, size_t len, int pe)
{
	GDRI_RANGE(gdri_state_get(), GDRI_RANGE_TRANSFER, "gdr_host_put");

	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, pe) : gdr_put(dst, src, len, pe);
}

int gdr_host_get(void *dst, const void *src, size_t len, int pe)
{
	GDRI_RANGE(gdri_state_get(), GDRI_RANGE_TRANSFER, "gdr_host_get");

	return gdri_host_cuda() ? gdri_cuda_get(dst, src, len, pe) : gdr_get(dst, src, len, pe);
}

int gdr_host_put_nbi(void *dst, const void *src, size_t len, int pe)
{
	GDRI_RANGE(gdri_state_get(), GDRI_RANGE_TRANSFER, "gdr_host_put_nbi");

	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, pe) : gdr_put_nbi(dst, src, len, pe);
}

int gdr_host_get_nbi(void *dst, const void *src, size_t len, int pe)
{
	GDRI_RANGE(gdri_state_get(), GDRI_RANGE_TRANSFER, "gdr_host_get_nbi");

	return gdri_host_cuda() ? gdri_cuda_get(dst, src, len, pe) : gdr_get_nbi(dst, src, len, pe);
}

int gdr_host_fence(void)
{
	return gdri_host_cuda() ? 0 : gdr_fence(); /* copies complete before they return */
}

int gdr_host_quiet(void)
{
	GDRI_RANGE(gdri_state_get(), GDRI_RANGE_ORDER, "gdr_host_quiet");

	return gdri_host_cuda() ? gdri_cuda_quiet() : gdr_quiet();
}

/* ---- on a context ---- */

/* The call itself refuses -1. */
static int world_pe(gdr_ctx_t ctx, int pe)
{
	return gdri_ctx_world_pe(gdri_state_get(), ctx, pe);
}

int gdr_host_ctx_put(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, world_pe(ctx, pe))
				: gdr_ctx_put(ctx, dst, src, len, pe);
}

int gdr_host_ctx_get(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	return gdri_host_cuda() ? gdri_cuda_get(dst, src, len, world_pe(ctx, pe))
				: gdr_ctx_get(ctx, dst, src, len, pe);
}

int gdr_host_ctx_put_nbi(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, world_pe(ctx, pe))
				: gdr_ctx_put_nbi(ctx, dst, src, len, pe);
}

int gdr_host_ctx_get_nbi(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	return gdri_host_cuda() ? gdri_cuda_get(dst, src, len, world_pe(ctx, pe))
				: gdr_ctx_get_nbi(ctx, dst, src, len, pe);
}

int gdr_host_ctx_fence(gdr_ctx_t ctx)
{
	return gdri_host_cuda() ? 0 : gdr_ctx_fence(ctx);
}

int gdr_host_ctx_quiet(gdr_ctx_t ctx)
{
	return gdri_host_cuda() ? gdri_cuda_ctx_quiet(ctx) : gdr_ctx_quiet(ctx);
}
