/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: which queue an operation on one uses, and who may use it. A context is a row of
 * gdri_dev.ctxs; the data path knows nothing of it but the distance q from the queue that it would use
 * without (gdri_qp_to). */
#ifndef GDRI_CTX_H
#define GDRI_CTX_H

#include <gdr/ctx.h>
#include <gdr/impl/arch/dev.h>

GDR_DEVICE struct gdri_ctx *gdri_ctx_at(const struct gdri_dev *dev, gdr_ctx_t ctx)
{
	return &gdri_k(dev, ctxs)[ctx];
}

/* Number in the world of PE i of its team. */
GDR_DEVICE int gdri_ctx_member(const struct gdri_ctx *c, int i)
{
	return gdri_likely(c->stride) ? c->start + i * c->stride : c->pes[i];
}

/* Its queue to pe for this block: as gdri_slot, so that a thread's operations to a PE use one. */
GDR_DEVICE uint32_t gdri_ctx_queue(const struct gdri_dev *dev, const struct gdri_ctx *c, int pe)
{
	uint32_t slot = gdri_slot_of(c->n);

	return c->first + slot * (uint32_t)gdri_k(dev, n_pes) + (uint32_t)pe;
}

/* PE pe of the context's team: its number in the world, and what gdri_qp_to takes for q. */
GDR_DEVICE int gdri_ctx_pe(gdr_ctx_t ctx, int pe, uint32_t *q)
{
	const struct gdri_dev *dev = gdri_dev();
	const struct gdri_ctx *c;

	*q = 0;
	if (gdri_unlikely(!dev))
		return pe; /* the operation itself says so */
	c = gdri_ctx_at(dev, ctx);
	pe = gdri_ctx_member(c, pe);
	if (GDRI_QUEUES && !gdri_direct() && c->n)
		*q = gdri_ctx_queue(dev, c, pe) - gdri_queue_of(dev, pe);
	return pe;
}

/* Who the caller is for a context that not all threads share. */
GDR_DEVICE uint64_t gdri_ctx_caller(uint32_t mode)
{
#ifndef __CUDACC__
	if (!gdri_hd_self->in_kernel) /* a thread of the host */
		return 1ull << 63 | (uint64_t)(uintptr_t)&gdri_hd_self;
#endif
	return ((uint64_t)gdr_block_id() + 1) << 32 |
	       (mode == GDR_CTX_THREAD ? (uint64_t)gdr_thread_id() + 1 : 0);
}

#endif
