/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of put, get, p, g. */
#ifndef GDRI_RMA_H
#define GDRI_RMA_H

#include <gdr/impl/xfer.h>

GDRI_GENERAL int gdri_put_any(int scope, int nbi, void *dst, const void *src, size_t len, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	return gdri_likely(dev) ? gdri_xfer_write(dev, scope, nbi, dst, src, len, pe) : -GDR_ESTATE;
}

GDR_DEVICE int gdri_put(int scope, int nbi, void *dst, const void *src, size_t len, int pe)
{
	if (gdri_direct()) {
		gdri_p2p_copy(scope, gdri_direct_at(dst, pe), src, len);
		return 0;
	}
	return GDRI_ELSE(gdri_put_any(scope, nbi, dst, src, len, pe));
}

GDRI_GENERAL int gdri_get_any(int scope, int nbi, void *dst, const void *src, size_t len, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	return gdri_likely(dev) ? gdri_xfer_read(dev, scope, nbi, dst, src, len, pe) : -GDR_ESTATE;
}

GDR_DEVICE int gdri_get(int scope, int nbi, void *dst, const void *src, size_t len, int pe)
{
	if (gdri_direct()) {
		gdri_p2p_copy(scope, dst, gdri_direct_at(src, pe), len);
		return 0;
	}
	return GDRI_ELSE(gdri_get_any(scope, nbi, dst, src, len, pe));
}

GDRI_GENERAL int gdri_p_any(void *dst, uint64_t value, uint32_t size, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	return gdri_likely(dev) ? gdri_xfer_store(dev, dst, value, size, pe) : -GDR_ESTATE;
}

GDR_DEVICE int gdri_p(void *dst, uint64_t value, uint32_t size, int pe)
{
	if (gdri_direct()) {
		gdri_p2p_store(gdri_direct_at(dst, pe), value, size);
		return 0;
	}
	return GDRI_ELSE(gdri_p_any(dst, value, size, pe));
}

/* 0 on failure, with the status latched. */
GDRI_GENERAL uint64_t gdri_g_any(const void *src, uint32_t size, int pe)
{
	struct gdri_dev *dev = gdri_dev();
	uint64_t value = 0;
	int ret;

	if (gdri_unlikely(!dev))
		return 0;
	ret = gdri_xfer_load(dev, src, size, pe, &value);
	if (gdri_unlikely(ret))
		gdri_latch(dev, ret);
	return value;
}

GDR_DEVICE uint64_t gdri_g(const void *src, uint32_t size, int pe)
{
	return gdri_direct() ? gdri_p2p_load(gdri_direct_at(src, pe), size)
			     : GDRI_ELSE_VALUE(gdri_g_any(src, size, pe));
}

#define GDRI_RMA_BYTES(suffix, scope)                                                              \
	GDR_DEVICE int gdr_put##suffix(void *dst, const void *src, size_t len, int pe)             \
	{                                                                                          \
		return gdri_put(scope, 0, dst, src, len, pe);                                      \
	}                                                                                          \
	GDR_DEVICE int gdr_put_nbi##suffix(void *dst, const void *src, size_t len, int pe)         \
	{                                                                                          \
		return gdri_put(scope, 1, dst, src, len, pe);                                      \
	}                                                                                          \
	GDR_DEVICE int gdr_get##suffix(void *dst, const void *src, size_t len, int pe)             \
	{                                                                                          \
		return gdri_get(scope, 0, dst, src, len, pe);                                      \
	}                                                                                          \
	GDR_DEVICE int gdr_get_nbi##suffix(void *dst, const void *src, size_t len, int pe)         \
	{                                                                                          \
		return gdri_get(scope, 1, dst, src, len, pe);                                      \
	}
GDRI_RMA_BYTES(, GDRI_THREAD)
GDRI_RMA_BYTES(_warp, GDRI_WARP)
GDRI_RMA_BYTES(_block, GDRI_BLOCK)

#define GDRI_RMA_ELEMENTS(name, T, suffix, scope)                                                  \
	GDR_DEVICE int gdr_##name##_put##suffix(T *dst, const T *src, size_t nelems, int pe)       \
	{                                                                                          \
		return gdri_put(scope, 0, dst, src, nelems * sizeof(T), pe);                       \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_put_nbi##suffix(T *dst, const T *src, size_t nelems, int pe)   \
	{                                                                                          \
		return gdri_put(scope, 1, dst, src, nelems * sizeof(T), pe);                       \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_get##suffix(T *dst, const T *src, size_t nelems, int pe)       \
	{                                                                                          \
		return gdri_get(scope, 0, dst, src, nelems * sizeof(T), pe);                       \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_get_nbi##suffix(T *dst, const T *src, size_t nelems, int pe)   \
	{                                                                                          \
		return gdri_get(scope, 1, dst, src, nelems * sizeof(T), pe);                       \
	}

#define GDRI_RMA_TYPE(name, T)                                                                     \
	GDRI_RMA_ELEMENTS(name, T, , GDRI_THREAD)                                                  \
	GDRI_RMA_ELEMENTS(name, T, _warp, GDRI_WARP)                                               \
	GDRI_RMA_ELEMENTS(name, T, _block, GDRI_BLOCK)                                             \
	GDR_DEVICE int gdr_##name##_p(T *dst, T value, int pe)                                     \
	{                                                                                          \
		uint64_t bits = 0;                                                                 \
                                                                                                   \
		memcpy(&bits, &value, sizeof(T));                                                  \
		return gdri_p(dst, bits, sizeof(T), pe);                                           \
	}                                                                                          \
	GDR_DEVICE T gdr_##name##_g(const T *src, int pe)                                          \
	{                                                                                          \
		uint64_t bits = gdri_g(src, sizeof(T), pe);                                        \
		T value;                                                                           \
                                                                                                   \
		memcpy(&value, &bits, sizeof(T));                                                  \
		return value;                                                                      \
	}
GDR_RMA_TYPES(GDRI_RMA_TYPE)

#endif
