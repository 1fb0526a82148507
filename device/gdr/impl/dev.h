/* SPDX-License-Identifier: BSD-3-Clause */
/* Where device code finds its state, which queue a thread uses to a PE, and
 * the status that value-returning operations leave behind. */
#ifndef GDRI_DEV_H
#define GDRI_DEV_H

#include <gdr/impl/abi.h>
#include <gdr/impl/unit.h>
#include <gdr/simt.h>
#include <gdr/status.h>

#ifndef __CUDACC__ /* else: unit.h */
extern GDR_API struct gdri_dev *gdri_dev_state; /* libgdr; NULL before init */
#endif

/* NULL: not initialised. */
GDR_DEVICE struct gdri_dev *gdri_dev(void)
{
	return gdri_dev_state;
}

/* A fixed function of the block: all operations of a thread to one PE use one
 * queue, which executes them in order. Golden-ratio hash: even over runs of
 * block numbers for any n_slots, without a division. */
GDR_DEVICE uint32_t gdri_slot(const struct gdri_dev *dev)
{
	uint32_t h = (uint32_t)gdr_block_id() * 0x9e3779b1u;

	return (uint32_t)((uint64_t)h * dev->n_slots >> 32);
}

GDR_DEVICE struct gdri_qp *gdri_qp_to(const struct gdri_dev *dev, int pe)
{
	return &dev->qps[(uint32_t)pe * dev->n_slots + gdri_slot(dev)];
}

GDR_DEVICE uint64_t gdri_heap_offset(const struct gdri_dev *dev, const void *ptr)
{
	return (uint64_t)((const uint8_t *)ptr - dev->heap);
}

/* The first one stays until a quiet reports it. Carries no data: pairs with nothing. */
GDR_DEVICE_COLD void gdri_latch(struct gdri_dev *dev, int status)
{
	uint32_t none = 0;

	gdri_cas_u32((uint32_t *)&dev->latched, &none, (uint32_t)status);
}

#endif
