/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of waits and tests on the own heap. */
#ifndef GDRI_WAIT_H
#define GDRI_WAIT_H

#include <gdr/impl/xfer.h>

/* After a word that a NIC wrote was seen: what it wrote before may still be on
 * its way on some machines. */
GDRI_GENERAL int gdri_wait_flush_any(struct gdri_dev *dev, uint32_t op)
{
	int me = gdri_k(dev, pe);

	if (!gdri_k(dev, n_slots) || !gdri_qp_to(dev, me)->sq)
		return 0;
	return gdri_read_flush(dev, gdri_qp_to(dev, me), op);
}

GDR_DEVICE int gdri_wait_flush(struct gdri_dev *dev, uint32_t op)
{
	if (!GDRI_QUEUES || gdri_likely(!(gdri_k(dev, flags) & GDRI_DEV_READ_FLUSH)))
		return 0;
	return gdri_wait_flush_any(dev, op);
}

/* a - b in the order of the type, as -1, 0, 1; compared with a mask per operator:
 * bit 0 less, bit 1 equal, bit 2 greater. Unknown operators never hold. */
GDR_DEVICE uint32_t gdri_cmp_mask(int cmp)
{
	return cmp == GDR_CMP_EQ   ? 2u
	       : cmp == GDR_CMP_NE ? 5u
	       : cmp == GDR_CMP_GT ? 4u
	       : cmp == GDR_CMP_GE ? 6u
	       : cmp == GDR_CMP_LT ? 1u
	       : cmp == GDR_CMP_LE ? 3u
				   : 0u;
}

/* v as it was loaded: 4 bytes are extended here. */
GDR_DEVICE int gdri_cmp_holds(uint64_t v, uint32_t size, int is_signed, int cmp, uint64_t value)
{
	uint64_t bias = is_signed ? 1ull << 63 : 0;
	uint32_t rel;

	if (size == 4 && is_signed)
		v = (uint64_t)(int64_t)(int32_t)v;
	v ^= bias; /* signed order as unsigned order */
	value ^= bias;
	rel = v < value ? 1u : v == value ? 2u : 4u;
	return (gdri_cmp_mask(cmp) & rel) != 0;
}

/* The loads are acquires: pair with the release of the signal, or with the NIC's
 * order of data before it. */
GDR_DEVICE int gdri_cmp_u64(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value)
{
	uint64_t v = size == 8 ? gdri_ld_acquire_sys_u64((const uint64_t *)p)
			       : gdri_ld_acquire_sys_u32((const uint32_t *)p);

	return gdri_cmp_holds(v, size, is_signed, cmp, value);
}

GDRI_NOINLINE int gdri_wait_long(struct gdri_dev *dev, const void *p, uint32_t size, int is_signed,
				 int cmp, uint64_t value, int peer, uint32_t op)
{
	struct gdri_waiter w;
	int ret;

	GDRI_BY_ABI(gdri_wait_long);
	gdri_wait_begin(&w, op, peer, gdri_heap_offset(dev, p));
	while (!gdri_cmp_u64(p, size, is_signed, cmp, value)) {
		ret = gdri_wait_step(dev, &w);
		if (gdri_unlikely(ret))
			return ret;
	}
	gdri_wait_end(dev, &w);
	return gdri_wait_flush(dev, op);
}

/* Looks for a while without a frame; the caller's fence makes what was seen an acquire. */
GDR_DEVICE int gdri_spin(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value)
{
	uint64_t v;
	int i;

	GDRI_NOT_UNROLLED
	for (i = 0; i < GDRI_SPINS; i++) {
		v = size == 8 ? gdri_ld_fenced_u64((const uint64_t *)p)
			      : gdri_ld_fenced_u32((const uint32_t *)p);
		if (gdri_cmp_holds(v, size, is_signed, cmp, value))
			return 1;
	}
	return 0;
}

/* 1 when the condition holds and nothing is left to do. */
GDR_DEVICE int gdri_wait_short(struct gdri_dev *dev, const void *p, uint32_t size, int is_signed,
			       int cmp, uint64_t value)
{
	/* read before, when its time does not count: what is seen later is for the next wait */
	uint32_t left = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed) |
			(GDRI_QUEUES ? gdri_k(dev, flags) & GDRI_DEV_READ_FLUSH : 0);

	if (gdri_unlikely(!gdri_spin(p, size, is_signed, cmp, value)))
		return 0;
	gdri_fence_acquire_sys(); /* makes the load one: as in gdri_cmp_u64 */
	return !left;
}

/* peer: who will write it, -1 unknown. */
GDR_DEVICE int gdri_wait_until(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value,
			       int peer, uint32_t op)
{
	struct gdri_dev *dev = gdri_dev();

	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	if (gdri_unlikely(!gdri_cmp_mask(cmp)))
		return gdri_error_arg(dev, op, -GDR_EINVAL, peer, p, (uint64_t)cmp, GDRI_ARG_OTHER,
				      0, 0);
	if (GDRI_SPINS && gdri_wait_short(dev, p, size, is_signed, cmp, value))
		return 0;
	return gdri_wait_long(dev, p, size, is_signed, cmp, value, peer, op);
}

GDR_DEVICE int gdri_test(const void *p, uint32_t size, int is_signed, int cmp, uint64_t value)
{
	struct gdri_dev *dev = gdri_dev();
	int ret;

	if (gdri_unlikely(!dev))
		return 0;
	if (!gdri_cmp_u64(p, size, is_signed, cmp, value))
		return 0;
	ret = gdri_wait_flush(dev, GDRI_WAIT_UNTIL);
	if (gdri_unlikely(ret))
		gdri_latch(dev, ret);
	return 1;
}

#define GDRI_WAIT_TYPE(name, T)                                                                    \
	GDR_DEVICE int gdr_##name##_wait_until(const T *ptr, int cmp, T value)                     \
	{                                                                                          \
		return gdri_wait_until(ptr, sizeof(T), (T)-1 < (T)1, cmp, (uint64_t)value, -1,     \
				       GDRI_WAIT_UNTIL);                                           \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_test(const T *ptr, int cmp, T value)                           \
	{                                                                                          \
		return gdri_test(ptr, sizeof(T), (T)-1 < (T)1, cmp, (uint64_t)value);              \
	}
GDR_AMO_TYPES(GDRI_WAIT_TYPE)

#endif
