// SPDX-License-Identifier: BSD-3-Clause
/* Host-initiated transfers: the device functions, called from a host thread;
 * where the device is a GPU, copies of its driver. */
#include <gdr/device.h>
#include <gdr/host.h>

#include "host/cuda.h"
#include "host/host.h"
#include "runtime/log.h"
#include "runtime/range.h"
#include "runtime/window.h"

/* What device functions trust their caller with. Outside of a job the call itself says so. */
static int wrong(const char *call, const void *ptr, size_t len, int pe)
{
	const struct gdri_state *st = gdri_state_get();

	if (!st)
		return 0;
	if (pe < 0 || pe >= st->n_pes)
		gdri_error("%s: there is no PE %d, the job has %d", call, pe, st->n_pes);
	else if (len && !gdri_window_has(st, ptr, len))
		gdri_error("%s: %p with %zu bytes is not in the symmetric heap", call, ptr, len);
	else
		return 0;
	return -GDR_EINVAL;
}

int gdr_host_put(void *dst, const void *src, size_t len, int pe)
{
	int ret = wrong("gdr_host_put", dst, len, pe);

	GDRI_RANGE(gdri_state_get(), GDRI_RANGE_TRANSFER, "gdr_host_put");
	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, pe) : gdr_put(dst, src, len, pe);
}

int gdr_host_get(void *dst, const void *src, size_t len, int pe)
{
	int ret = wrong("gdr_host_get", src, len, pe);

	GDRI_RANGE(gdri_state_get(), GDRI_RANGE_TRANSFER, "gdr_host_get");
	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_cuda_get(dst, src, len, pe) : gdr_get(dst, src, len, pe);
}

int gdr_host_put_nbi(void *dst, const void *src, size_t len, int pe)
{
	int ret = wrong("gdr_host_put_nbi", dst, len, pe);

	GDRI_RANGE(gdri_state_get(), GDRI_RANGE_TRANSFER, "gdr_host_put_nbi");
	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, pe) : gdr_put_nbi(dst, src, len, pe);
}

int gdr_host_get_nbi(void *dst, const void *src, size_t len, int pe)
{
	int ret = wrong("gdr_host_get_nbi", src, len, pe);

	GDRI_RANGE(gdri_state_get(), GDRI_RANGE_TRANSFER, "gdr_host_get_nbi");
	if (ret)
		return ret;
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

/* The same, and *world: the number in the world of PE pe of the context's team. */
static int wrong_on(const char *call, gdr_ctx_t ctx, const void *ptr, size_t len, int pe, int *world)
{
	struct gdri_state *st = gdri_state_get();

	*world = st ? gdri_ctx_world_pe(st, ctx, pe) : 0;
	if (*world >= 0)
		return wrong(call, ptr, len, *world);
	gdri_error("%s: context %d has no PE %d, or there is no such context", call, ctx, pe);
	return -GDR_EINVAL;
}

int gdr_host_ctx_put(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	int world, ret = wrong_on("gdr_host_ctx_put", ctx, dst, len, pe, &world);

	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, world) : gdr_ctx_put(ctx, dst, src, len, pe);
}

int gdr_host_ctx_get(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	int world, ret = wrong_on("gdr_host_ctx_get", ctx, src, len, pe, &world);

	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_cuda_get(dst, src, len, world) : gdr_ctx_get(ctx, dst, src, len, pe);
}

int gdr_host_ctx_put_nbi(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	int world, ret = wrong_on("gdr_host_ctx_put_nbi", ctx, dst, len, pe, &world);

	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, world) : gdr_ctx_put_nbi(ctx, dst, src, len, pe);
}

int gdr_host_ctx_get_nbi(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	int world, ret = wrong_on("gdr_host_ctx_get_nbi", ctx, src, len, pe, &world);

	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_cuda_get(dst, src, len, world) : gdr_ctx_get_nbi(ctx, dst, src, len, pe);
}

/* GDR_CTX_INVALID: nothing to order or to complete. */
static int no_ctx(const char *call, gdr_ctx_t ctx)
{
	struct gdri_state *st = gdri_state_get();
	size_t first, n;

	if (!st || ctx == GDR_CTX_INVALID || !gdri_ctx_queues(st, ctx, &first, &n))
		return 0;
	gdri_error("%s: there is no context %d", call, ctx);
	return -GDR_EINVAL;
}

int gdr_host_ctx_fence(gdr_ctx_t ctx)
{
	int ret = no_ctx("gdr_host_ctx_fence", ctx);

	if (ret)
		return ret;
	return gdri_host_cuda() ? 0 : gdr_ctx_fence(ctx);
}

int gdr_host_ctx_quiet(gdr_ctx_t ctx)
{
	int ret = no_ctx("gdr_host_ctx_quiet", ctx);

	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_cuda_ctx_quiet(ctx) : gdr_ctx_quiet(ctx);
}
