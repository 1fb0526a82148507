/* SPDX-License-Identifier: BSD-3-Clause */
/* What the NIC calls a local address: heap offset, or address in a registered
 * buffer. Anything else it cannot reach. */
#ifndef GDRI_LOCAL_H
#define GDRI_LOCAL_H

#include <gdr/impl/wait/error.h>

struct gdri_local {
	uint64_t addr;
	gdri_be32_t lkey;
};

/* 0, or -GDR_EINVAL with a record that names the address. */
GDRI_NOINLINE int gdri_local_buffer(struct gdri_dev *dev, const void *ptr, uint64_t len,
				    struct gdri_local *l, uint32_t op, int pe)
{
	uint64_t p = (uint64_t)(uintptr_t)ptr, size;
	uint32_t i, n = gdri_ld_acquire_sys_u32(&dev->n_buffers); /* pairs with the host's release */

	for (i = 0; i < n; i++) {
		const struct gdri_buffer *b = &dev->buffers[i];

		size = gdri_ld_acquire_sys_u64(&b->len); /* pairs with the host's release */
		if (!size || p - b->addr >= size || len > size - (p - b->addr) || (op == GDRI_GET && b->read_only))
			continue;
		l->addr = p;
		l->lkey = b->lkey;
		gdri_fence_sys(); /* it need not be the GPU's memory: payload before F1, as GDRI_DEV_ON_GPU says */
		return 0;
	}
	return gdri_error_arg(dev, op, pe, ptr, len, GDRI_ARG_LOCAL);
}

/* A range that starts in the heap and leaves it is the NIC's to refuse. */
GDRI_NAMESAKES_BEGIN
GDR_DEVICE int gdri_local(struct gdri_dev *dev, const void *ptr, uint64_t len, struct gdri_local *l,
			  uint32_t op, int pe)
{
	uint64_t off = gdri_heap_offset(dev, ptr);

	if (gdri_unlikely(off >= gdri_k(dev, heap_size)))
		return gdri_local_buffer(dev, ptr, len, l, op, pe);
	l->addr = off;
	l->lkey = dev->lkey;
	return 0;
}
GDRI_NAMESAKES_END

#endif
