/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of fence, quiet and status. */
#ifndef GDRI_ORDER_H
#define GDRI_ORDER_H

#include <gdr/impl/api/define.h>
#include <gdr/impl/path/slow.h>
#if !GDRI_LINKED
#include <gdr/impl/wait/fault.h>
#endif

/* Stores to mapped memory of a PE that is lost succeed: fence and quiet say that one is, without a cost. Read before a
 * fence, whose time hides that of the load; alone, pairs with nothing. */
GDR_DEVICE int gdri_fence_lost(const struct gdri_dev *dev)
{
	return gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->lost) ? -GDR_EPEERLOST : 0;
}

#if !GDRI_LINKED /* else they are in the library */
/* PEs that are also mapped, or one of them: a store could overtake what was posted. */
GDRI_NOINLINE int gdri_fence_mixed(struct gdri_dev *dev, const struct gdri_ctx *c, int only)
{
	int pe, ret, status = 0;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (pe = only < 0 ? 0 : only; pe < (only < 0 ? dev->n_pes : only + 1); pe++) {
		ret = gdri_xfer_complete_mixed(dev, c, pe, GDRI_FENCE);
		if (ret && !status)
			status = ret;
	}
	return status;
}

/* Queues: a thread's operations to a PE use one, in order. What is left is that
 * from here on data may not overtake (gdri_put_rkey), and that what is posted next may not
 * overtake atomics (gdri_sq_fence_due). The number is one for all contexts and PEs: a fence orders at
 * least what it promises. */
GDRI_SLOW int gdri_slow_fence(const struct gdri_ctx *c, int pe)
{
	struct gdri_dev *dev = gdri_dev();
	int ret = 0, lost;

	GDRI_BY_ABI(gdri_slow_fence);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	lost = gdri_fence_lost(dev);
	/* Stores to mapped peers: pairs with the acquire of their waits. Own reservations before
	 * the number: pairs with the acquire of fence_seq. */
	gdri_fence_nic();
	if (!gdri_k(dev, n_slots))
		return lost;
	if (gdri_unlikely(pe >= gdri_k(dev, n_pes)))
		return gdri_no_pe(dev, GDRI_FENCE, pe);
	gdri_add_u64(&dev->fence_seq, 1);
	if (gdri_unlikely(gdri_k(dev, flags) & GDRI_DEV_MIXED))
		ret = gdri_fence_mixed(dev, c, pe);
	return ret ? ret : lost;
}

/* The latched status, which is cleared, unless a PE is lost: from then on every quiet says so. */
GDR_DEVICE_COLD int gdri_take_latched(struct gdri_dev *dev)
{
	uint32_t latched = gdri_exch_u32((uint32_t *)&dev->latched, 0), none = 0;

	GDRI_BY_ABI(gdri_take_latched);
	/* Pairs with the fence in runtime/diag/fault.c between `lost` and `latched`: who is late with the one sees the
	 * other. */
	gdri_fence_sys();
	if (gdri_ld_relaxed_sys_u32((const uint32_t *)&dev->lost))
		/* as gdri_latch, but no call: quiet keeps its registers and stack */
		gdri_cas_u32((uint32_t *)&dev->latched, &none, (uint32_t)-GDR_EPEERLOST);
	return (int)latched;
}

/* With something to say beside its own status: what another PE told, what is latched. */
GDR_DEVICE_COLD int gdri_quiet_odd(struct gdri_dev *dev, int ret, uint32_t latched)
{
	if (!ret)
		ret = gdri_fault_told(dev);
	if (latched)
		latched = (uint32_t)gdri_take_latched(dev);
	return ret ? ret : (int)latched;
}

/* c NULL: the default context. Only a quiet of all its queues tells gdri_put_rkey: those of other
 * contexts have one key. */
GDRI_NOINLINE int gdri_slow_quiet(struct gdri_dev *dev, const struct gdri_ctx *c, int pe)
{
	uint64_t fences = gdri_ld_relaxed_gpu_u64(&dev->fence_seq);
	uint32_t latched, buffers;
	uint64_t fault, fence_done;
	int all = !c && pe < 0, ret;

	GDRI_BY_ABI(gdri_slow_quiet);
	GDRI_DEV_CONSTANT(dev);
	ret = gdri_xfer_complete(dev, c, pe, GDRI_QUIET);
	latched = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->latched); /* all four at once */
	/* pairs with nothing: whoever posted a get to a buffer, before, has seen it */
	buffers = gdri_ld_relaxed_gpu_u32(&dev->n_buffers);
	fault = gdri_ld_relaxed_sys_u64(&gdri_k(dev, ctl)->fault); /* as in gdri_fault_heard */
	fence_done = gdri_ld_relaxed_gpu_u64(&dev->fence_done);
	if (gdri_unlikely(buffers)) /* gets into one may have gone to the host, beyond the scope of F4 */
		gdri_fence_sys();
	if (all && !ret && !fault && fences != fence_done)
		gdri_max_u64(&dev->fence_done, fences); /* a hint to gdri_put_rkey, which may miss it */
	return gdri_unlikely(fault || latched) ? gdri_quiet_odd(dev, ret, latched) : ret;
}
#endif

GDR_DEVICE int gdri_direct_fence(void)
{
	int lost = gdri_fence_lost(gdri_dev());

	gdri_fence_release_sys(); /* pairs with the acquire of their waits */
	return lost;
}

GDR_DEVICE int gdri_fence(const struct gdri_ctx *c, int pe)
{
	return GDRI_DIRECT_OR(gdri_direct_fence(), gdri_slow_fence(c, pe));
}

GDR_DEVICE int gdr_fence(void)
{
	GDRI_NEED_LIBRARY(gdr_fence)
	return gdri_fence(0, -1);
}

GDR_DEVICE int gdri_direct_quiet(struct gdri_dev *dev)
{
	/* before the fence, whose time hides that of the load */
	uint32_t latched = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->latched);

	gdri_fence_release_sys();
	return gdri_unlikely(latched) ? gdri_take_latched(dev) : 0;
}

GDR_DEVICE int gdri_quiet(struct gdri_dev *dev, const struct gdri_ctx *c, int pe)
{
	return GDRI_DIRECT_OR(gdri_direct_quiet(dev), gdri_slow_quiet(dev, c, pe));
}

GDR_DEVICE int gdr_quiet(void)
{
	struct gdri_dev *dev = gdri_dev();

	GDRI_NEED_LIBRARY(gdr_quiet)
	return gdri_likely(dev) ? gdri_quiet(dev, 0, -1) : -GDR_ESTATE;
}

/* ---- of a PE, of a context ---- */

/* The context, or NULL where it uses the queues of the default one. */
GDR_DEVICE const struct gdri_ctx *gdri_ctx_own(const struct gdri_dev *dev, gdr_ctx_t ctx)
{
	const struct gdri_ctx *c = gdri_ctx_at(dev, ctx);

	return c->n ? c : 0;
}

/* pe: of the context's team; -1: all. */
GDR_DEVICE int gdri_ctx_fence(gdr_ctx_t ctx, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	if (ctx == GDR_CTX_INVALID)
		return 0;
	return gdri_fence(gdri_ctx_own(dev, ctx),
			  pe < 0 ? -1 : gdri_ctx_member(gdri_ctx_at(dev, ctx), pe));
}

GDR_DEVICE int gdri_ctx_quiet(gdr_ctx_t ctx, int pe)
{
	struct gdri_dev *dev = gdri_dev();
	int ret;

	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	if (ctx == GDR_CTX_INVALID)
		return 0;
	ret = gdri_quiet(dev, gdri_ctx_own(dev, ctx),
			 pe < 0 ? -1 : gdri_ctx_member(gdri_ctx_at(dev, ctx), pe));
#ifdef GDR_CHECKED
	if (pe < 0 && ctx != GDR_CTX_DEFAULT) /* the next one may use it; carries no data */
		gdri_st_relaxed_gpu_u64(&gdri_ctx_at(dev, ctx)->owner, 0);
#endif
	return ret;
}

GDRI_SINGLE
GDRI_FN(int, GDRI_PLAIN(fence_pe), (int pe), (GDRI_CALLED(GDRI_FENCE, FENCE_PE), GDRI_THREAD), gdri_check_pe(&at, pe),
	gdri_fence(0, pe))
GDRI_FN(int, GDRI_PLAIN(quiet_pe), (int pe), (GDRI_CALLED(GDRI_QUIET, QUIET_PE), GDRI_THREAD), gdri_check_pe(&at, pe),
	gdri_likely(gdri_dev()) ? gdri_quiet(gdri_dev(), 0, pe) : -GDR_ESTATE)
GDRI_FN(int, GDRI_PLAIN(ctx_fence), (gdr_ctx_t ctx), (GDRI_CALLED(GDRI_FENCE, CTX), GDRI_THREAD),
	gdri_check_fence(&at, ctx, 0), gdri_ctx_fence(ctx, -1))
GDRI_FN(int, GDRI_PLAIN(ctx_quiet), (gdr_ctx_t ctx), (GDRI_CALLED(GDRI_QUIET, CTX), GDRI_THREAD),
	gdri_check_quiet(&at, ctx, 0), gdri_ctx_quiet(ctx, -1))
GDRI_FN(int, GDRI_PLAIN(ctx_fence_pe), (gdr_ctx_t ctx, int pe),
	(GDRI_SITE_CTX(GDRI_CALLED(GDRI_FENCE, FENCE_PE), GDRI_THREAD)),
	gdri_check_fence(&at, ctx, pe), gdri_ctx_fence(ctx, pe))
GDRI_FN(int, GDRI_PLAIN(ctx_quiet_pe), (gdr_ctx_t ctx, int pe),
	(GDRI_SITE_CTX(GDRI_CALLED(GDRI_QUIET, QUIET_PE), GDRI_THREAD)),
	gdri_check_quiet(&at, ctx, pe), gdri_ctx_quiet(ctx, pe))

GDR_DEVICE int gdr_status(void)
{
	struct gdri_dev *dev = gdri_dev();

	return gdri_likely(dev) ? (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->latched)
				: -GDR_ESTATE;
}

GDR_DEVICE int gdr_my_pe(void)
{
	struct gdri_dev *dev = gdri_dev();

	return gdri_likely(dev) ? gdri_k(dev, pe) : -GDR_ESTATE;
}

GDR_DEVICE int gdr_n_pes(void)
{
	struct gdri_dev *dev = gdri_dev();

	return gdri_likely(dev) ? gdri_k(dev, n_pes) : -GDR_ESTATE;
}

GDR_DEVICE void *gdr_ptr(const void *ptr, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	if (!dev || pe < 0 || pe >= gdri_k(dev, n_pes) ||
	    gdri_heap_offset(dev, ptr) >= gdri_k(dev, heap_size))
		return 0;
	return gdri_mapped(dev, ptr, pe);
}

#endif
