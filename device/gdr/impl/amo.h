/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the atomics. Values travel as the low bits of 64. */
#ifndef GDRI_AMO_H
#define GDRI_AMO_H

#include <gdr/impl/xfer.h>

GDRI_GENERAL int gdri_atomic_any(int kind, uint32_t size, void *dst, uint64_t a, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	return gdri_likely(dev) ? gdri_xfer_atomic(dev, kind, size, dst, a, 0, pe) : -GDR_ESTATE;
}

GDR_DEVICE int gdri_atomic(int kind, uint32_t size, void *dst, uint64_t a, int pe)
{
	if (gdri_direct()) {
		gdri_p2p_red(kind, size, gdri_direct_at(dst, pe), a);
		return 0;
	}
	return GDRI_ELSE(gdri_atomic_any(kind, size, dst, a, pe));
}

/* Old value; 0 on failure, with the status latched. */
GDRI_GENERAL uint64_t gdri_fetch_atomic_any(int kind, uint32_t size, void *dst, uint64_t a,
					    uint64_t b, int pe)
{
	struct gdri_dev *dev = gdri_dev();
	uint64_t old = 0;
	int ret;

	if (gdri_unlikely(!dev))
		return 0;
	ret = gdri_xfer_fetch_atomic(dev, kind, size, dst, a, b, pe, &old);
	if (gdri_unlikely(ret))
		gdri_latch(dev, ret);
	return old;
}

GDR_DEVICE uint64_t gdri_fetch_atomic(int kind, uint32_t size, void *dst, uint64_t a, uint64_t b,
				      int pe)
{
	return gdri_direct() ? gdri_p2p_atomic(kind, size, gdri_direct_at(dst, pe), a, b)
			     : GDRI_ELSE_VALUE(gdri_fetch_atomic_any(kind, size, dst, a, b, pe));
}

#define GDRI_AMO_PLAIN(name, T, op, kind)                                                          \
	GDR_DEVICE int gdr_##name##_atomic_##op(T *dst, T value, int pe)                           \
	{                                                                                          \
		return gdri_atomic(kind, sizeof(T), dst, (uint64_t)value, pe);                     \
	}
#define GDRI_AMO_FETCHING(name, T, op, kind)                                                       \
	GDR_DEVICE T gdr_##name##_atomic_##op(T *dst, T value, int pe)                             \
	{                                                                                          \
		return (T)gdri_fetch_atomic(kind, sizeof(T), dst, (uint64_t)value, 0, pe);         \
	}

#define GDRI_AMO_TYPE(name, T)                                                                     \
	GDRI_AMO_PLAIN(name, T, set, GDRI_AMO_SET)                                                 \
	GDRI_AMO_PLAIN(name, T, add, GDRI_AMO_ADD)                                                 \
	GDRI_AMO_PLAIN(name, T, and, GDRI_AMO_AND)                                                 \
	GDRI_AMO_PLAIN(name, T, or, GDRI_AMO_OR)                                                   \
	GDRI_AMO_PLAIN(name, T, xor, GDRI_AMO_XOR)                                                 \
	GDRI_AMO_FETCHING(name, T, fetch_add, GDRI_AMO_ADD)                                        \
	GDRI_AMO_FETCHING(name, T, swap, GDRI_AMO_SWAP)                                            \
	GDRI_AMO_FETCHING(name, T, fetch_and, GDRI_AMO_AND)                                        \
	GDRI_AMO_FETCHING(name, T, fetch_or, GDRI_AMO_OR)                                          \
	GDRI_AMO_FETCHING(name, T, fetch_xor, GDRI_AMO_XOR)                                        \
	GDR_DEVICE int gdr_##name##_atomic_inc(T *dst, int pe)                                     \
	{                                                                                          \
		return gdri_atomic(GDRI_AMO_ADD, sizeof(T), dst, 1, pe);                           \
	}                                                                                          \
	GDR_DEVICE T gdr_##name##_atomic_fetch_inc(T *dst, int pe)                                 \
	{                                                                                          \
		return (T)gdri_fetch_atomic(GDRI_AMO_ADD, sizeof(T), dst, 1, 0, pe);               \
	}                                                                                          \
	GDR_DEVICE T gdr_##name##_atomic_fetch(const T *src, int pe)                               \
	{                                                                                          \
		return (T)gdri_fetch_atomic(GDRI_AMO_FETCH, sizeof(T), (void *)(uintptr_t)src, 0,  \
					    0, pe);                                                \
	}                                                                                          \
	GDR_DEVICE T gdr_##name##_atomic_compare_swap(T *dst, T cond, T value, int pe)             \
	{                                                                                          \
		return (T)gdri_fetch_atomic(GDRI_AMO_CSWAP, sizeof(T), dst, (uint64_t)value,       \
					    (uint64_t)cond, pe);                                   \
	}
GDR_AMO_TYPES(GDRI_AMO_TYPE)

#endif
