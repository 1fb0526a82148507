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
GDRI_SLOW void gdri_strided_copy(int scope, uint8_t *dst, const uint8_t *src, int64_t dstep,
				  int64_t sstep, size_t len, size_t n)
{
	uint32_t rank = gdri_scope_rank(scope), size = gdri_scope_size(scope);

	gdri_scope_sync(scope); /* what other threads wrote to src */
	if (size > 1 && len >= (size_t)size * 16) { /* long blocks: one after the other, together */
		GDRI_NOT_UNROLLED
		for (int64_t i = 0; i < (int64_t)n; i++)
			gdri_copy_lean(dst + i * dstep, src + i * sstep, len, rank, size);
	} else if (len) {
		GDRI_NOT_UNROLLED
		for (int64_t i = rank; i < (int64_t)n; i += size)
			gdri_copy_block(dst + i * dstep, src + i * sstep, len);
	}
	gdri_scope_sync(scope); /* src may be reused, dst may be signalled */
}

/* n of them: the record is that of one. Steps in bytes, from one to the next. */
struct gdri_strides {
	struct gdri_operation o;
	int64_t remote_step, local_step;
	size_t n;
};

/* One queue executes them in order: the last one's completion is that of all. */
GDRI_SLOW int gdri_strided_post(struct gdri_dev *dev, const struct gdri_strides *s)
{
	struct gdri_operation o = s->o;
	int ret = gdri_xfer_refused(dev, &o);

	for (size_t i = 0; i < s->n && o.len && !ret; i++) {
		o.nbi = s->o.nbi || i + 1 < s->n;
		ret = gdri_post_memory(dev, &o);
		o.remote += s->remote_step;
		o.local += s->local_step;
	}
	return ret;
}

GDRI_NOINLINE int gdri_strided_blocks(const struct gdri_strides *s)
{
	const struct gdri_operation *o = &s->o;
	struct gdri_dev *dev = gdri_dev();
	uint8_t *p;
	int ret = 0;

	GDRI_BY_ABI(gdri_strided_blocks);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	p = gdri_mapped(dev, o->remote, o->pe);
	if (p) {
		if (o->op == GDRI_PUT)
			gdri_strided_copy(o->scope, p, o->local, s->remote_step, s->local_step, o->len, s->n);
		else
			gdri_strided_copy(o->scope, o->local, p, s->local_step, s->remote_step, o->len, s->n);
		return gdri_peer_status(dev, o->pe);
	}
	gdri_scope_sync(o->scope);
	if (GDRI_QUEUES && !gdri_scope_rank(o->scope))
		ret = gdri_strided_post(dev, s);
	return gdri_scope_bcast(o->scope, ret);
}

/* op: GDRI_PUT or GDRI_GET; n blocks of len bytes. */
GDR_DEVICE int gdri_strided(uint32_t op, int scope, int nbi, void *dst, const void *src, int64_t dstep, int64_t sstep,
			    size_t len, size_t n, int pe, uint32_t q)
{
	int put = op == GDRI_PUT;
	struct gdri_strides s;

	s.o = gdri_op_memory(op, scope, nbi, put ? dst : src, put ? src : dst, len, pe, q);
	s.remote_step = put ? dstep : sstep;
	s.local_step = put ? sstep : dstep;
	s.n = n;
	return gdri_strided_blocks(&s);
}

#endif
