/* SPDX-License-Identifier: BSD-3-Clause */
/* Where device code finds its state, which queue a thread uses to a PE, and
 * the status that value-returning operations leave behind. */
#ifndef GDRI_DEV_H
#define GDRI_DEV_H

#include <gdr/impl/arch/abi.h>
#include <gdr/impl/arch/unit.h>
#include <gdr/impl/arch/outside.h>
#include <gdr/simt.h>
#include <gdr/status.h>

/* Whether PEs may be reached by queue. A CUDA program whose PEs are all mapped may leave out the code that
 * posts; gdr_init refuses it where queues are needed (unit.h). */
#if defined(__CUDACC__) && defined(GDR_NO_QUEUES)
#define GDRI_QUEUES 0
#else
#define GDRI_QUEUES 1
#endif
#define gdri_n_slots(dev) (GDRI_QUEUES ? gdri_k(dev, n_slots) : 0u)
/* The status of an operation: that of `direct` where all PEs are mapped, else that of the slow path. Without queues
 * there is none: then the library is not there. */
#define GDRI_DIRECT_OR(direct, slow) (gdri_direct() ? (direct) : GDRI_QUEUES ? (slow) : -GDR_ESTATE)

/* gdri_dev(): NULL when not initialised. gdri_k(dev, field): a field of struct gdri_constants. */
#ifdef __CUDACC__
GDR_DEVICE struct gdri_dev *gdri_dev(void)
{
	return gdri_constants_here.dev;
}

/* The PE's heap mapped here, or NULL: by queue. */
GDR_DEVICE uint8_t *gdri_peer_base(const struct gdri_dev *dev, int pe)
{
	int64_t delta = gdri_constants_here.delta[pe];

	(void)dev;
	return delta == GDRI_UNMAPPED ? 0 : gdri_constants_here.heap + delta;
}

/* The library is there and all PEs are mapped: an operation is an access at gdri_direct_at(). The slow path
 * (GDRI_SLOW) is out of line, so that it takes no registers where it is not taken. */
#define gdri_direct() gdri_likely(gdri_constants_here.direct)

GDR_DEVICE uint8_t *gdri_direct_at(const void *ptr, int pe)
{
	uint8_t *p = (uint8_t *)ptr + gdri_constants_here.delta[pe];

#ifdef GDR_ANY_ADDRESS
	if (gdri_unlikely((uint64_t)((const uint8_t *)ptr - gdri_constants_here.heap) >= gdri_constants_here.heap_size))
		p = gdri_outside_at(gdri_constants_here.dev, ptr, pe, p);
#endif
	__builtin_assume(__isGlobal(p)); /* or accesses in C would look which memory it is */
	return p;
}

#define GDRI_SLOW GDRI_NOINLINE
/* What little more than hands on to others: its frame would stand below theirs. Out of line on the host device. */
#define GDRI_FRAMELESS GDR_DEVICE

#define gdri_k(dev, field) ((void)(dev), gdri_constants_here.field)
/* At the head of a function out of line: as a parameter dev would be kept over each call. */
#define GDRI_DEV_CONSTANT(dev) ((dev) = gdri_dev())
#else
extern GDR_API struct gdri_dev *gdri_dev_state; /* libgdr; NULL before init */

GDRI_NAMESAKES_BEGIN
GDR_DEVICE struct gdri_dev *gdri_dev(void)
{
	return gdri_dev_state;
}
GDRI_NAMESAKES_END

GDR_DEVICE uint8_t *gdri_peer_base(const struct gdri_dev *dev, int pe)
{
	return dev->peers[pe].base;
}

#define gdri_direct() 0

GDR_DEVICE uint8_t *gdri_direct_at(const void *ptr, int pe)
{
	(void)pe;
	return (uint8_t *)(uintptr_t)ptr;
}

#define GDRI_SLOW GDR_DEVICE
#define GDRI_FRAMELESS GDRI_NOINLINE

#define gdri_k(dev, field) ((dev)->field)
#define GDRI_DEV_CONSTANT(dev) ((void)0) /* tests have several */
#endif

/* GDRI_DEV_ON_GPU: all that the GPU's threads and the NIC both touch lies in memory of this GPU, whose second-level
 * cache also NICs read and write by. */
GDR_DEVICE int gdri_all_on_gpu(void)
{
#ifdef __CUDACC__
	return gdri_likely(gdri_constants_here.flags & GDRI_DEV_ON_GPU);
#else
	return 0;
#endif
}

/* Between the GPU's threads and a NIC: fences F1 to F4. In general of system scope; near, the scope of the
 * GPU is enough (docs/memory-model-internals.md, Scopes), a quarter of the time. */
GDR_DEVICE void gdri_fence_nic(void)
{
	if (gdri_all_on_gpu())
		gdri_fence_gpu();
	else
		gdri_fence_sys();
}

/* F2 needs no more: what the thread loads next may be in its first-level cache. */
GDR_DEVICE void gdri_fence_release_nic(void)
{
	if (gdri_all_on_gpu())
		gdri_fence_release_gpu();
	else
		gdri_fence_release_sys();
}

/* Before all PEs are told that this one has come, where all are mapped. NVSHMEM's sync shows them no puts, only what
 * was stored in the own heap: the other GPUs read that through this GPU's second-level cache, where a fence of the
 * GPU's scope leaves it. Pairs with the acquire of who hears. */
GDR_DEVICE void gdri_release_to_all(int puts)
{
	if (!puts && gdri_k(gdri_dev(), flags) & GDRI_DEV_LOCAL_SYNC)
		gdri_fence_release_gpu();
	else
		gdri_fence_release_sys();
}

/* A fixed function of the block: all operations of a thread to one PE use one
 * queue, which executes them in order. Golden-ratio hash: even over runs of
 * block numbers for any n, without a division. */
GDR_DEVICE uint32_t gdri_slot_of(uint32_t n)
{
	uint32_t h = (uint32_t)gdr_block_id() * 0x9e3779b1u;

	return (uint32_t)((uint64_t)h * n >> 32);
}

GDR_DEVICE uint32_t gdri_slot(const struct gdri_dev *dev)
{
	return gdri_slot_of(gdri_k(dev, n_slots));
}

/* Number of the default context's queue to pe. */
GDR_DEVICE uint32_t gdri_queue_of(const struct gdri_dev *dev, int pe)
{
	return (uint32_t)pe * gdri_k(dev, n_slots) + gdri_slot(dev);
}

/* q: how far behind the default context's queue (modulo 2^32) that of the operation's context stands (ctx.h). q is
 * 0, known to the compiler, in the forms without a context. */
GDR_DEVICE struct gdri_qp *gdri_qp_to(const struct gdri_dev *dev, int pe, uint32_t q)
{
#ifdef __CUDACC__
	struct gdri_qp *qps = (struct gdri_qp *)(void *)((uint8_t *)gdri_constants_here.dev + GDRI_QPS_AT);
#else
	struct gdri_qp *qps = dev->qps;
#endif

	return &qps[gdri_queue_of(dev, pe) + q];
}

/* By what keys know it. At or behind heap_size: it is no symmetric object. */
GDR_DEVICE uint64_t gdri_heap_offset(const struct gdri_dev *dev, const void *ptr)
{
	uint64_t offset = (uint64_t)((const uint8_t *)ptr - gdri_k(dev, heap));

#ifdef GDR_ANY_ADDRESS
	if (gdri_unlikely(offset >= gdri_k(dev, heap_size)))
		offset = gdri_outside_offset(dev, ptr, offset);
#endif
	return offset;
}

/* At a PE whose heap is mapped here at base. By numbers: ptr of no bytes may be any address. */
GDR_DEVICE uint8_t *gdri_mapped_at(const struct gdri_dev *dev, uint8_t *base, const void *ptr, int pe)
{
	uint64_t offset = (uintptr_t)ptr - (uintptr_t)gdri_k(dev, heap);
	uint8_t *plain = (uint8_t *)((uintptr_t)base + offset);

	(void)pe;
#ifdef GDR_ANY_ADDRESS
	if (gdri_unlikely(offset >= gdri_k(dev, heap_size)))
		return gdri_outside_at(dev, ptr, pe, plain);
#endif
	return plain;
}

/* The first one stays until a quiet reports it. Carries no data: pairs with nothing. */
GDR_DEVICE void gdri_latch_now(struct gdri_dev *dev, int status)
{
	uint32_t none = 0;

	gdri_cas_u32((uint32_t *)&dev->latched, &none, (uint32_t)status);
}

GDR_DEVICE_COLD void gdri_latch(struct gdri_dev *dev, int status)
{
	gdri_latch_now(dev, status);
}

/* A queue or a wait found that pe does not answer: from then on gdr_status() and each quiet, fence and barrier say so,
 * as where the launcher reports it (runtime/diag/fault.c). The first one stays; carries no data. */
GDR_DEVICE void gdri_lost_found_now(struct gdri_dev *dev, int pe)
{
	uint32_t none = 0;

	gdri_cas_u32((uint32_t *)&dev->lost, &none, (uint32_t)(pe + 1));
	gdri_fence_sys(); /* `lost` before `latched`: pairs with the fence in gdri_take_latched */
	gdri_latch_now(dev, -GDR_EPEERLOST);
}

GDR_DEVICE_COLD void gdri_lost_found(struct gdri_dev *dev, int pe)
{
	gdri_lost_found_now(dev, pe);
}

/* An operation failed: gdr_finalize returns the first one's status. Called where it is decided; not for what was
 * refused before a peer was touched, nor for a limit of the caller's own. Carries no data: pairs with nothing. */
GDR_DEVICE void gdri_note_failure_now(struct gdri_dev *dev, int status)
{
	uint32_t none = 0;

	gdri_cas_u32((uint32_t *)&dev->first, &none, (uint32_t)status);
}

GDR_DEVICE_COLD void gdri_note_failure(struct gdri_dev *dev, int status)
{
	gdri_note_failure_now(dev, status);
}

#endif
