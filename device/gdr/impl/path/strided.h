/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that lie a fixed step apart, at either side: mapped memory takes a loop, which the
 * threads of a scope share; a queue one entry for each block. */
#ifndef GDRI_STRIDED_H
#define GDRI_STRIDED_H

#include <gdr/impl/path/xfer.h>

/* Of mapped memory: pieces of len bytes, `left` of them, each n-th one of them; steps in bytes. */
struct gdri_pieces {
	uint8_t *d;
	const uint8_t *s;
	int64_t dstep, sstep, left;
	size_t len;
	uint32_t rank, n;
};

/* By one thread, words without a call. */
GDRI_SLOW void gdri_pieces_alone(struct gdri_pieces *b)
{
#ifdef __CUDACC__
	uint32_t at = (uint32_t)((uint64_t)b->d | (uint64_t)b->s | (uint64_t)b->dstep | (uint64_t)b->sstep), n = b->n;
	int64_t left = b->left, dstep = b->dstep, sstep = b->sstep;
	const uint8_t *s = b->s;
	uint8_t *d = b->d;

#define GDRI_PIECES_WORDS(T)                                                                       \
	if (b->len == sizeof(T) && !(at & (sizeof(T) - 1))) {                                      \
		GDRI_NOT_UNROLLED                                                                  \
		for (; left > 0; left -= n, d += dstep, s += sstep)                                \
			*(T *)d = *(const T *)s;                                                   \
		return;                                                                            \
	}
	GDRI_PIECES_WORDS(uint64_t)
	GDRI_PIECES_WORDS(uint32_t)
	GDRI_PIECES_WORDS(uint16_t)
	GDRI_PIECES_WORDS(uint8_t)
#undef GDRI_PIECES_WORDS
#endif
	for (; b->left > 0; b->left -= b->n, b->d += b->dstep, b->s += b->sstep)
		gdri_p2p_copy_alone(b->d, b->s, b->len);
}

/* One after the other, by all of the scope. */
GDRI_SLOW void gdri_pieces_together(struct gdri_pieces *b)
{
	for (; b->left > 0; b->left--, b->d += b->dstep, b->s += b->sstep)
		gdri_copy_lean(b->d, b->s, b->len, b->rank, b->n);
}

/* All threads of the scope; done for all of them when it returns. Steps in bytes. */
GDRI_SLOW void gdri_strided_copy(int scope, uint8_t *d, const uint8_t *s, int64_t dstep, int64_t sstep, size_t len,
				 size_t n)
{
	struct gdri_pieces b = {d, s, dstep, sstep, (int64_t)n, len, gdri_scope_rank(scope), gdri_scope_size(scope)};

	GDRI_BY_ABI(gdri_strided_copy); /* or the record would lie in each kernel's frame that may come here */
	gdri_scope_sync(scope); /* what other threads wrote to src */
	if (b.n > 1 && len >= (size_t)b.n * 16) {
		gdri_pieces_together(&b);
	} else if (len) {
		b.d += b.rank * dstep;
		b.s += b.rank * sstep;
		b.dstep *= b.n;
		b.sstep *= b.n;
		b.left -= b.rank;
		gdri_pieces_alone(&b);
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
GDRI_SLOW int gdri_strided_post(struct gdri_dev *dev, struct gdri_strides *s)
{
	int nbi = s->o.nbi, ret = gdri_xfer_refused(dev, &s->o);

	for (; s->n && s->o.len && !ret; s->n--) {
		s->o.nbi = (uint8_t)(nbi || s->n > 1);
		ret = gdri_post_memory(dev, &s->o);
		s->o.remote += s->remote_step;
		s->o.local += s->local_step;
	}
	return ret;
}

GDRI_NOINLINE int gdri_strided_blocks(struct gdri_strides *s)
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
