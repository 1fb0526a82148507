/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that lie a fixed step apart, at either side: mapped memory takes a loop, which the
 * threads of a scope share; a queue one entry for each block. */
#ifndef GDRI_STRIDED_H
#define GDRI_STRIDED_H

#include <gdr/impl/path/xfer.h>

/* One element, or a block of them. */
GDR_DEVICE void gdri_copy_block(uint8_t *d, const uint8_t *s, size_t len)
{
#ifdef __CUDACC__
	uint64_t at = (uint64_t)d | (uint64_t)s;

	if (len == 8 && !(at & 7))
		*(uint64_t *)d = *(const uint64_t *)s;
	else if (len == 4 && !(at & 3))
		*(uint32_t *)d = *(const uint32_t *)s;
	else if (len == 2 && !(at & 1))
		*(uint16_t *)d = *(const uint16_t *)s;
	else if (len == 1)
		*d = *s;
	else
#endif
		gdri_p2p_copy_alone(d, s, len);
}

/* All threads of the scope; done for all of them when it returns. Steps in bytes. */
GDRI_GENERAL void gdri_strided_copy(int scope, uint8_t *dst, const uint8_t *src, int64_t dstep,
				  int64_t sstep, size_t len, size_t n)
{
	uint32_t rank = gdri_scope_rank(scope), size = gdri_scope_size(scope);
	int64_t i;

	gdri_scope_sync(scope); /* what other threads wrote to src */
	if (size > 1 && len >= (size_t)size * 16) { /* long blocks: one after the other, together */
		GDRI_NOT_UNROLLED
		for (i = 0; i < (int64_t)n; i++)
			gdri_copy_lean(dst + i * dstep, src + i * sstep, len, rank, size);
	} else if (len) {
		GDRI_NOT_UNROLLED
		for (i = rank; i < (int64_t)n; i += size)
			gdri_copy_block(dst + i * dstep, src + i * sstep, len);
	}
	gdri_scope_sync(scope); /* src may be reused, dst may be signalled */
}

/* One queue executes them in order: the last one's completion is that of all. */
GDRI_GENERAL int gdri_strided_post(struct gdri_dev *dev, uint32_t op, int nbi, uint8_t *dst,
				 const uint8_t *src, int64_t dstep, int64_t sstep, size_t len,
				 size_t n, int pe, uint32_t q)
{
	int ret = 0, now;
	size_t i;

	for (i = 0; i < n && len && !ret; i++, dst += dstep, src += sstep) {
		now = nbi || i + 1 < n;
		if (op == GDRI_PUT)
			ret = gdri_post_write(dev, now, gdri_heap_offset(dev, dst), src, len, pe, q);
		else
			ret = gdri_post_read(dev, now, dst, gdri_heap_offset(dev, src), len, pe, q);
	}
	return ret;
}

/* op: GDRI_PUT or GDRI_GET; n blocks of len bytes. */
GDRI_NOINLINE int gdri_strided(uint32_t op, int scope, int nbi, void *dst, const void *src,
			       int64_t dstep, int64_t sstep, size_t len, size_t n, int pe, uint32_t q)
{
	struct gdri_dev *dev = gdri_dev();
	uint8_t *p;
	int ret = 0;

	GDRI_BY_ABI(gdri_strided);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	p = gdri_mapped(dev, op == GDRI_PUT ? dst : src, pe);
	if (p) {
		gdri_strided_copy(scope, op == GDRI_PUT ? p : (uint8_t *)dst,
				  op == GDRI_PUT ? (const uint8_t *)src : p, dstep, sstep, len, n);
		return gdri_peer_status(dev, pe);
	}
	gdri_scope_sync(scope);
	if (GDRI_QUEUES && !gdri_scope_rank(scope))
		ret = GDRI_BY_QUEUE(dev, op, pe, gdri_strided_post(dev, op, nbi, (uint8_t *)dst, (const uint8_t *)src,
								   dstep, sstep, len, n, pe, q));
	return gdri_scope_bcast(scope, ret);
}

#endif
