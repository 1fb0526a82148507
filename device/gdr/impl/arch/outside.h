/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a symmetric object is at a PE. In the heap's range one distance leads there from any address. What lies outside
 * is looked up, in code that was compiled with GDR_ANY_ADDRESS; in all other code that question does not exist. */
#ifndef GDRI_OUTSIDE_H
#define GDRI_OUTSIDE_H

#include <gdr/impl/arch/abi.h>
#include <gdr/impl/arch/arch.h>

#ifdef GDR_ANY_ADDRESS

/* Relaxed, the table itself plain: who may use what is new learns so behind the collective call that told of it, and
 * an older table stays whole (runtime/mem/outside.c). */
GDR_DEVICE const struct gdri_outside_table *gdri_outside_table(const struct gdri_dev *dev)
{
	return (const struct gdri_outside_table *)(uintptr_t)gdri_ld_relaxed_gpu_u64(&dev->outside);
}

GDR_DEVICE const struct gdri_outside *gdri_outside_list(const struct gdri_outside_table *t)
{
	return (const struct gdri_outside *)(const void *)(t + 1);
}

/* Number of the entry that ptr is in, or -1. */
GDR_DEVICE int gdri_outside_find(const struct gdri_outside_table *t, const void *ptr)
{
	uint32_t low = 0, high = t ? t->n : 0, mid;
	uint64_t at = (uint64_t)(uintptr_t)ptr;
	const struct gdri_outside *o;

	while (low < high) {
		mid = (low + high) / 2;
		if (gdri_outside_list(t)[mid].addr <= at)
			low = mid + 1;
		else
			high = mid;
	}
	o = low ? &gdri_outside_list(t)[low - 1] : 0;
	return o && at - o->addr < o->len ? (int)low - 1 : -1;
}

/* Offset of ptr. plain: its offset by the heap's distance, for what is no symmetric object at all. */
GDRI_NOINLINE uint64_t gdri_outside_offset(const struct gdri_dev *dev, const void *ptr, uint64_t plain)
{
	const struct gdri_outside_table *t = gdri_outside_table(dev);
	int i = gdri_outside_find(t, ptr);
	const struct gdri_outside *o;

	if (i < 0)
		return plain;
	o = &gdri_outside_list(t)[i];
	return o->offset + ((uint64_t)(uintptr_t)ptr - o->addr);
}

GDRI_NOINLINE uint8_t *gdri_outside_at(const struct gdri_dev *dev, const void *ptr, int pe, uint8_t *plain)
{
	const struct gdri_outside_table *t = gdri_outside_table(dev);
	int i = gdri_outside_find(t, ptr);
	const int64_t *delta;

	if (i < 0)
		return plain;
	delta = (const int64_t *)(const void *)(gdri_outside_list(t) + t->n) + (uint64_t)i * t->n_pes;
	return (uint8_t *)(uintptr_t)ptr + delta[pe];
}

#endif

#endif
