// SPDX-License-Identifier: BSD-3-Clause
/* Host-initiated transfers: the device functions, called from a host thread;
 * where the device is a GPU, copies of its driver. */
#include <gdr/device.h>
#include <gdr/host.h>

#include "host/host.h"
#include "runtime/core/log.h"
#include "runtime/core/range.h"
#include "runtime/diag/fault.h"
#include "runtime/exec/staging.h"
#include "runtime/mem/window.h"
#include "runtime/path/ctx.h"

/* What device functions trust their caller with, and whether the peer is lost. *world: the number in the world of PE pe
 * of the context's team. */
static int rma_wrong(const char *call, gdr_ctx_t ctx, bool is_put, const void *sym, const void *local,
		     size_t len, int pe, int *world)
{
	const char *far = is_put ? "dst" : "src", *near = is_put ? "src" : "dst", *to = is_put ? "to" : "from";
	struct gdri_state *st = gdri_need_state(call);

	*world = pe;
	if (!st)
		return -GDR_ESTATE;
	if (ctx != GDR_CTX_DEFAULT)
		*world = gdri_ctx_world_pe(st, ctx, pe);
	else if (pe < 0 || pe >= st->n_pes)
		*world = -1;
	if (*world < 0 && ctx == GDR_CTX_DEFAULT)
		gdri_error("%s: there is no PE %d, the job has %d", call, pe, st->n_pes);
	else if (*world < 0)
		gdri_error("%s: context %d has no PE %d, or there is no such context", call, ctx, pe);
	else if (gdri_count_check(st, call, len, 1) || gdri_far_check(st, call, far, sym, len, pe) ||
		 gdri_near_check(st, call, near, local, len))
		return -GDR_EINVAL;
	else if (len && !local)
		gdri_error("%s: %s is NULL, with %zu bytes %s PE %d", call, near, len, to, pe);
	else if (*world == st->pe && !gdri_request_apart(sym, local, len))
		gdri_error("%s: dest %p and source %p, %zu bytes %s this PE, overlap", call, is_put ? sym : local,
			   is_put ? local : sym, len, to);
	else if (len && (uintptr_t)local + len < (uintptr_t)local)
		gdri_error("%s: %s %p, %zu bytes %s PE %d, wraps round", call, near, local, len, to, pe);
	else
		return len ? gdri_lost_peer(st, *world) : 0;
	return -GDR_EINVAL;
}

/* By way of the library's buffers, which takes nothing for granted of the pages at this end. */
static int rma_staged(const char *call, gdr_ctx_t ctx, bool is_put, void *dst, const void *src, size_t len, int pe,
		      int world)
{
	struct gdri_state *st = gdri_state_get();
	uint32_t q;
	int ret;

	gdri_ctx_pe(ctx, pe, &q);
	ret = is_put ? gdri_staging_put(st, gdri_window_offset(st, dst), src, len, world, q)
		     : gdri_staging_get(st, dst, gdri_window_offset(st, src), len, world, q);
	if (ret == -GDR_EINVAL && is_put)
		gdri_error("%s: src %p, %zu bytes to PE %d, is in pages that may not be read", call, src, len, pe);
	else if (ret == -GDR_EINVAL)
		gdri_error("%s: dst %p, %zu bytes from PE %d, is in pages that may not be written", call, dst, len, pe);
	return ret;
}

int gdri_rma_move(const char *call, gdr_ctx_t ctx, bool is_put, bool nbi, void *dst, const void *src, size_t len,
		  int pe)
{
	const void *sym = is_put ? dst : src, *local = is_put ? src : dst;
	struct gdri_state *st = gdri_state_get();
	int world, ret = rma_wrong(call, ctx, is_put, sym, local, len, pe, &world);

	GDRI_RANGE(st, GDRI_RANGE_TRANSFER, call);
	if (ret)
		return ret;
	if (gdri_host_cuda())
		return is_put ? gdri_cuda_put(dst, src, len, world) : gdri_cuda_get(dst, src, len, world);
	if (st && gdri_staging_needed(st, local, len, world, is_put))
		return rma_staged(call, ctx, is_put, dst, src, len, pe, world);
	if (is_put)
		return nbi ? gdr_ctx_put_nbi(ctx, dst, src, len, pe) : gdr_ctx_put(ctx, dst, src, len, pe);
	return nbi ? gdr_ctx_get_nbi(ctx, dst, src, len, pe) : gdr_ctx_get(ctx, dst, src, len, pe);
}

int gdr_host_put(void *dst, const void *src, size_t len, int pe)
{
	return gdri_rma_move("gdr_host_put", GDR_CTX_DEFAULT, true, false, dst, src, len, pe);
}

int gdr_host_get(void *dst, const void *src, size_t len, int pe)
{
	return gdri_rma_move("gdr_host_get", GDR_CTX_DEFAULT, false, false, dst, src, len, pe);
}

int gdr_host_put_nbi(void *dst, const void *src, size_t len, int pe)
{
	return gdri_rma_move("gdr_host_put_nbi", GDR_CTX_DEFAULT, true, true, dst, src, len, pe);
}

int gdr_host_get_nbi(void *dst, const void *src, size_t len, int pe)
{
	return gdri_rma_move("gdr_host_get_nbi", GDR_CTX_DEFAULT, false, true, dst, src, len, pe);
}

int gdr_host_ctx_put(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	return gdri_rma_move("gdr_host_ctx_put", ctx, true, false, dst, src, len, pe);
}

int gdr_host_ctx_get(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	return gdri_rma_move("gdr_host_ctx_get", ctx, false, false, dst, src, len, pe);
}

int gdr_host_ctx_put_nbi(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	return gdri_rma_move("gdr_host_ctx_put_nbi", ctx, true, true, dst, src, len, pe);
}

int gdr_host_ctx_get_nbi(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe)
{
	return gdri_rma_move("gdr_host_ctx_get_nbi", ctx, false, true, dst, src, len, pe);
}

int gdr_host_fence(void)
{
	if (!gdri_need_state("gdr_host_fence"))
		return -GDR_ESTATE;
	/* copies complete before they return */
	return gdri_host_cuda() ? gdri_lost_any(gdri_state_get()) : gdr_fence();
}

int gdr_host_quiet(void)
{
	struct gdri_state *st = gdri_need_state("gdr_host_quiet");

	if (!st)
		return -GDR_ESTATE;
	GDRI_RANGE(st, GDRI_RANGE_ORDER, "gdr_host_quiet");
	return gdri_host_cuda() ? gdri_cuda_quiet() : gdr_quiet();
}

/* GDR_CTX_INVALID: nothing to order or to complete. */
static int no_ctx(const char *call, gdr_ctx_t ctx)
{
	struct gdri_state *st = gdri_need_state(call);
	size_t first, n;

	if (!st)
		return -GDR_ESTATE;
	if (ctx == GDR_CTX_INVALID || !gdri_ctx_queues(st, ctx, &first, &n))
		return 0;
	return gdri_fail(-GDR_EINVAL, "%s: there is no context %d", call, ctx);
}

int gdr_host_ctx_fence(gdr_ctx_t ctx)
{
	int ret = no_ctx("gdr_host_ctx_fence", ctx);

	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_lost_any(gdri_state_get()) : gdr_ctx_fence(ctx);
}

int gdr_host_ctx_quiet(gdr_ctx_t ctx)
{
	int ret = no_ctx("gdr_host_ctx_quiet", ctx);

	if (ret)
		return ret;
	return gdri_host_cuda() ? gdri_cuda_ctx_quiet(ctx) : gdr_ctx_quiet(ctx);
}
