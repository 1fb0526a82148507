/* SPDX-License-Identifier: BSD-3-Clause */
/* The path through the NIC: each primitive as WQEs on the queue to the PE.
 * Called by one thread, or by several lanes at once, whose WQEs then go out
 * together (nic.h). `op` names the operation in messages. */
#ifndef GDRI_POST_H
#define GDRI_POST_H

#include <gdr/impl/queue/local.h>
#include <gdr/impl/queue/nic.h>
#include <gdr/impl/path/p2p.h>

/* Data may use the relaxed-ordering key as long as no fence has to be kept: after
 * a fence (of any thread) all go in order, until a quiet (of any thread) that
 * began after it is through. */
GDR_DEVICE gdri_be32_t gdri_put_rkey(const struct gdri_dev *dev, const struct gdri_qp *qp)
{
	return gdri_likely(gdri_ld_relaxed_gpu_u64(&dev->fence_seq) ==
			   gdri_ld_relaxed_gpu_u64(&dev->fence_done))
		       ? qp->rkey_data
		       : qp->rkey_sync;
}

GDR_DEVICE uint64_t gdri_sink_offset(void)
{
	return offsetof(struct gdri_ctl, sink);
}

/* ---- put ---- */

/* Each post has a short way (gdri_post_try), inline and without calls but in tail
 * position, and a general one out of line. */

enum gdri_key {
	GDRI_KEY_DATA, /* as gdri_put_rkey says */
	GDRI_KEY_SYNC, /* strict */
};

GDR_DEVICE gdri_be32_t gdri_post_rkey(const struct gdri_post *p, enum gdri_key key)
{
	return key == GDRI_KEY_DATA && !p->strict ? p->q.rkey_data : p->q.rkey_sync;
}

GDRI_NOINLINE int gdri_post_inline_any(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off,
				       enum gdri_key key, const void *src, size_t len)
{
	uint32_t v[7] = {0, 0, 0, 0, 0, 0, 0};
	struct gdri_post p;
	int ret = gdri_post_begin(dev, qp, 1, 0, &p);

	if (gdri_unlikely(ret))
		return ret;
	len = len < sizeof(v) ? len : sizeof(v); /* callers have no more; the compiler cannot know */
	gdri_ld_bytes(v, src, len);
	gdri_wqe_write_inline(&p.q, p.index, p.ce | p.fm, off, gdri_post_rkey(&p, key), v,
			      (uint32_t)len);
	return gdri_post_end(dev, qp, &p);
}

/* A value of up to 8 bytes: no loop, no array, as a GPU's thread likes it. */
GDRI_NOINLINE int gdri_post_value(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off,
				  enum gdri_key key, uint64_t value, uint32_t size)
{
	struct gdri_post p;
	int ret = gdri_post_begin(dev, qp, 1, 0, &p);
	uint32_t v[3];

	if (gdri_unlikely(ret))
		return ret;
	v[0] = (uint32_t)value;
	v[1] = (uint32_t)(value >> 32);
	v[2] = 0;
	gdri_wqe_write_inline_12(&p.q, p.index, p.ce | p.fm, off, gdri_post_rkey(&p, key), v, size);
	return gdri_post_end(dev, qp, &p);
}

/* 8 bytes from anywhere; src may be reused at once. */
GDR_DEVICE int gdri_post_inline_8(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off, const void *src)
{
	uint32_t v[3] = {0, 0, 0};
	uint64_t index, value;

	if (!gdri_post_try(dev, qp, &index)) {
		gdri_ld_bytes_8(&value, src);
		return gdri_post_value(dev, qp, off, GDRI_KEY_DATA, value, 8);
	}
	gdri_ld_bytes(v, src, 8); /* known length: the copy is a load */
	gdri_wqe_write_inline_12(qp, index, GDRI_CE_ALWAYS, off, gdri_put_rkey(dev, qp), v, 8);
	return gdri_sq_publish(dev, qp, index, 1, 0);
}

/* One WQE of RDMA, len <= GDRI_MSG_MAX; *target: what to wait for. */
GDRI_GENERAL int gdri_post_rdma(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t opcode,
				uint64_t off, gdri_be32_t rkey, struct gdri_local l, uint32_t len,
			      uint64_t *target)
{
	struct gdri_post p;
	int ret = gdri_post_begin(dev, qp, 1, 0, &p);

	if (gdri_unlikely(ret))
		return ret;
	gdri_wqe_rdma(&p.q, p.index, opcode, p.ce | p.fm, off, rkey, l.addr, l.lkey, len);
	*target = p.index + 1;
	return gdri_post_end(dev, qp, &p);
}

GDRI_NOINLINE int gdri_post_write_any(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off,
				      struct gdri_local l, uint32_t len)
{
	struct gdri_post p;
	int ret = gdri_post_begin(dev, qp, 1, 0, &p);

	if (gdri_unlikely(ret))
		return ret;
	gdri_wqe_rdma(&p.q, p.index, GDRI_OP_WRITE, p.ce | p.fm, off, gdri_post_rkey(&p, GDRI_KEY_DATA),
		      l.addr, l.lkey, len);
	return gdri_post_end(dev, qp, &p);
}

/* Splits at GDRI_MSG_MAX. */
GDR_DEVICE_COLD int gdri_post_big(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t opcode,
				  uint64_t off, gdri_be32_t rkey, struct gdri_local l, uint64_t len,
				  uint64_t *target)
{
	uint32_t part;
	int ret;

	for (; len; len -= part, off += part, l.addr += part) {
		part = len < GDRI_MSG_MAX ? (uint32_t)len : GDRI_MSG_MAX;
		ret = gdri_post_rdma(dev, qp, opcode, off, rkey, l, part, target);
		if (ret)
			return ret;
	}
	return 0;
}

/* A blocking put of what does not go inline, or any of a buffer or of more than
 * one message. */
GDRI_NOINLINE int gdri_post_write_long(struct gdri_dev *dev, struct gdri_qp *qp, int nbi,
				       uint64_t off, const void *src, size_t len, int pe)
{
	struct gdri_local l;
	uint64_t target = 0;
	int ret = gdri_local(dev, src, len, &l, GDRI_PUT, pe);

	if (!ret)
		ret = gdri_post_big(dev, qp, GDRI_OP_WRITE, off, gdri_put_rkey(dev, qp), l, len,
				    &target);
	if (nbi || ret)
		return ret;
	return gdri_qp_wait(dev, qp, target, GDRI_PUT);
}

/* From the heap, in one message. */
GDR_DEVICE int gdri_post_write_nbi(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off,
				   uint64_t src_off, uint32_t len)
{
	struct gdri_local l;
	uint64_t index;

	l.addr = src_off;
	l.lkey = dev->lkey;
	if (!gdri_post_try(dev, qp, &index))
		return gdri_post_write_any(dev, qp, off, l, len);
	gdri_wqe_rdma(qp, index, GDRI_OP_WRITE, GDRI_CE_ALWAYS, off, gdri_put_rkey(dev, qp), l.addr,
		      l.lkey, len);
	return gdri_sq_publish(dev, qp, index, 1, 0);
}

GDR_DEVICE int gdri_post_write(struct gdri_dev *dev, int nbi, uint64_t off, const void *src,
			       size_t len, int pe, uint32_t q)
{
	struct gdri_qp *qp = gdri_qp_to(dev, pe, q);
	uint64_t src_off = gdri_heap_offset(dev, src);

	if (len == 8)
		return gdri_post_inline_8(dev, qp, off, src);
	if (len <= GDRI_INLINE_MAX)
		return len ? gdri_post_inline_any(dev, qp, off, GDRI_KEY_DATA, src, len) : 0;
	if (gdri_likely(nbi && src_off < dev->heap_size && len <= GDRI_MSG_MAX))
		return gdri_post_write_nbi(dev, qp, off, src_off, (uint32_t)len);
	return gdri_post_write_long(dev, qp, nbi, off, src, len, pe);
}

/* A scalar of 1, 2, 4 or 8 bytes, with the strict key: it may be a flag. */
GDR_DEVICE int gdri_post_store(struct gdri_dev *dev, uint64_t off, uint64_t value, uint32_t size,
			       int pe, uint32_t q)
{
	struct gdri_qp *qp = gdri_qp_to(dev, pe, q);
	uint32_t v[3];
	uint64_t index;

	if (!gdri_post_try(dev, qp, &index))
		return gdri_post_value(dev, qp, off, GDRI_KEY_SYNC, value, size);
	v[0] = (uint32_t)value;
	v[1] = (uint32_t)(value >> 32);
	v[2] = 0;
	gdri_wqe_write_inline_12(qp, index, GDRI_CE_ALWAYS, off, qp->rkey_sync, v, size);
	return gdri_sq_publish(dev, qp, index, 1, 0);
}

/* ---- signals ---- */

GDR_DEVICE void gdri_wqe_signal(const struct gdri_dev *dev, const struct gdri_qp *qp,
				uint64_t index, uint32_t ce, uint64_t off, uint64_t value, int add)
{
	uint32_t v[3];

	if (add) {
		gdri_wqe_fa(qp, index, ce, off, qp->rkey_sync, gdri_sink_offset(), dev->lkey,
			    value);
		return;
	}
	v[0] = (uint32_t)value;
	v[1] = (uint32_t)(value >> 32);
	v[2] = 0;
	gdri_wqe_write_inline_12(qp, index, ce, off, qp->rkey_sync, v, 8);
}

GDRI_NOINLINE int gdri_post_signal_on(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off,
				      uint64_t value, int add)
{
	struct gdri_post p;
	int ret = gdri_post_begin(dev, qp, 1, 0, &p);

	if (gdri_unlikely(ret))
		return ret;
	gdri_wqe_signal(dev, &p.q, p.index, p.ce | p.fm, off, value, add);
	return gdri_post_end(dev, qp, &p);
}

GDR_DEVICE int gdri_post_signal(struct gdri_dev *dev, uint64_t off, uint64_t value, int add, int pe, uint32_t q)
{
	return gdri_post_signal_on(dev, gdri_qp_to(dev, pe, q), off, value, add);
}

/* Data and signal on one queue, which executes them in order; one reservation,
 * one doorbell, one CQE. */
GDRI_NOINLINE int gdri_post_write_signal_on(struct gdri_dev *dev, struct gdri_qp *qp, int nbi,
					    uint64_t off, const void *src, size_t len,
					    uint64_t sig_off, uint64_t value, int add)
{
	uint32_t v[7] = {0, 0, 0, 0, 0, 0, 0};
	struct gdri_local l = {(uint64_t)(uintptr_t)src, {0}}; /* inline: the address itself */
	struct gdri_post p;
	uint64_t target;
	uint32_t n;
	int ret;

#ifdef __CUDACC__
	dev = gdri_dev(); /* its own value; a constant takes no registers across calls */
#endif
	if (!len)
		return gdri_post_signal_on(dev, qp, sig_off, value, add);
	if (len > GDRI_INLINE_MAX) {
		ret = gdri_local(dev, src, len, &l, GDRI_PUT_SIGNAL, qp->peer);
		if (gdri_unlikely(ret))
			return ret;
	}
	if (gdri_unlikely(len > GDRI_MSG_MAX)) {
		ret = gdri_post_big(dev, qp, GDRI_OP_WRITE, off, gdri_put_rkey(dev, qp), l,
				    len - GDRI_MSG_MAX, &target);
		if (ret)
			return ret;
		off += len - GDRI_MSG_MAX;
		l.addr += len - GDRI_MSG_MAX;
		len = GDRI_MSG_MAX;
	}
	n = (uint32_t)len;
	ret = gdri_post_begin(dev, qp, 2, 0, &p);
	if (gdri_unlikely(ret))
		return ret;
	if (n <= GDRI_INLINE_MAX) {
		gdri_ld_bytes(v, (const void *)(uintptr_t)l.addr, n);
		gdri_wqe_write_inline(&p.q, p.index, GDRI_CE_ERROR_ONLY | p.fm, off,
				      gdri_post_rkey(&p, GDRI_KEY_DATA), v, n);
	} else {
		gdri_wqe_rdma(&p.q, p.index, GDRI_OP_WRITE, GDRI_CE_ERROR_ONLY | p.fm, off,
			      gdri_post_rkey(&p, GDRI_KEY_DATA), l.addr, l.lkey, n);
	}
	gdri_wqe_signal(dev, &p.q, p.index + 1, p.ce, sig_off, value, add);
	ret = gdri_post_end(dev, qp, &p);
	if (nbi || ret || n <= GDRI_INLINE_MAX)
		return ret;
	return gdri_qp_wait(dev, qp, p.index + 2, GDRI_PUT_SIGNAL);
}

GDR_DEVICE int gdri_post_write_signal(struct gdri_dev *dev, int nbi, uint64_t off, const void *src,
				      size_t len, uint64_t sig_off, uint64_t value, int add, int pe, uint32_t q)
{
	return gdri_post_write_signal_on(dev, gdri_qp_to(dev, pe, q), nbi, off, src, len, sig_off,
					 value, add);
}

/* ---- reads ---- */

/* Where the NIC's writes may still be on their way when the CQE is seen: a DUMP
 * behind the reads flushes them. */
GDR_DEVICE_COLD int gdri_read_flush(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t op)
{
	struct gdri_post p;
	int ret = gdri_post_begin(dev, qp, 1, 0, &p);

	if (ret)
		return ret;
	gdri_wqe_dump(&p.q, p.index, p.ce | GDRI_FM_FENCE, gdri_sink_offset(), dev->lkey, 1);
	ret = gdri_post_end(dev, qp, &p);
	return ret ? ret : gdri_qp_wait(dev, qp, p.index + 1, op);
}

/* Waits for a read and makes its data visible. */
GDR_DEVICE int gdri_read_wait(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target,
			      uint32_t op)
{
	int ret = gdri_qp_wait(dev, qp, target, op);

	if (!ret && gdri_unlikely(dev->flags & GDRI_DEV_READ_FLUSH))
		ret = gdri_read_flush(dev, qp, op);
	return ret;
}

GDRI_NOINLINE int gdri_post_read(struct gdri_dev *dev, int nbi, void *dst, uint64_t off, size_t len,
				 int pe, uint32_t q)
{
	struct gdri_qp *qp = gdri_qp_to(dev, pe, q);
	struct gdri_local l;
	uint64_t target = 0;
	int ret;

	if (!len)
		return 0;
	ret = gdri_local(dev, dst, len, &l, GDRI_GET, pe);
	if (gdri_unlikely(ret))
		return ret;
	ret = gdri_post_big(dev, qp, GDRI_OP_READ, off, qp->rkey_data, l, len, &target);
	if (nbi || ret)
		return ret;
	ret = gdri_read_wait(dev, qp, target, GDRI_GET);
	if (gdri_unlikely(l.lkey.be != dev->lkey.be)) /* a buffer, which may be the host's, beyond the scope of F4 */
		gdri_fence_sys();
	return ret;
}

/* ---- fetch slots: 16 bytes of the control area for one result ---- */

GDRI_NOINLINE int gdri_slot_take(struct gdri_dev *dev, uint32_t *slot, uint32_t op, int pe)
{
	uint32_t words = GDRI_FETCH_SLOTS / 64, i, word;
	struct gdri_waiter w;
	uint64_t map, bit;
	int ret;

	word = ((uint32_t)gdr_block_id() * 16 + (uint32_t)gdr_thread_id() / 32) % words;
	gdri_wait_begin(&w, op, pe, 0);
	for (;;) {
		for (i = 0; i < words; i++, word = (word + 1) % words) {
			map = ~gdri_ld_relaxed_gpu_u64(&dev->fetch_map[word]);
			if (!map)
				continue;
			bit = map & (~map + 1);
			/* acquire; pairs with the release in gdri_slot_give */
			if (gdri_or_u64(&dev->fetch_map[word], bit) & bit)
				continue;
			*slot = word * 64 + gdri_ffs_u64(bit);
			gdri_wait_end(dev, &w);
			return 0;
		}
		ret = gdri_wait_step(dev, &w);
		if (ret)
			return ret;
	}
}

/* Only when nothing can still be written to it: not after a timeout or an error. */
GDR_DEVICE void gdri_slot_give(struct gdri_dev *dev, uint32_t slot)
{
	gdri_fence_gpu(); /* the result was read before */
	gdri_and_u64(&dev->fetch_map[slot / 64], ~(1ull << (slot & 63u)));
}

GDR_DEVICE uint64_t gdri_slot_offset(uint32_t slot)
{
	return offsetof(struct gdri_ctl, fetch) + (uint64_t)slot * GDRI_FETCH_SLOT_SIZE;
}

GDR_DEVICE uint64_t gdri_slot_value(const struct gdri_dev *dev, uint32_t slot)
{
	return gdri_ld_relaxed_sys_u64((const uint64_t *)(dev->heap + gdri_slot_offset(slot)));
}

/* What was posted into the slot (ret: of the post) arrives; the slot is free again. */
GDR_DEVICE int gdri_slot_await(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t slot, int ret,
			       uint64_t target, uint32_t op, uint64_t *value)
{
	if (!ret) {
		ret = gdri_read_wait(dev, qp, target, op);
		if (ret)
			return ret; /* it may still be written to */
		*value = gdri_slot_value(dev, slot);
	}
	gdri_slot_give(dev, slot);
	return ret;
}

/* A scalar of size bytes, zero-extended. */
GDRI_NOINLINE int gdri_post_load(struct gdri_dev *dev, uint64_t off, uint32_t size, int pe, uint32_t q,
				 uint64_t *value)
{
	struct gdri_qp *qp = gdri_qp_to(dev, pe, q);
	struct gdri_local l;
	uint64_t target;
	uint32_t slot;
	int ret = gdri_slot_take(dev, &slot, GDRI_G, pe);

	if (ret)
		return ret;
	l.addr = gdri_slot_offset(slot);
	l.lkey = dev->lkey;
	ret = gdri_post_rdma(dev, qp, GDRI_OP_READ, off, qp->rkey_sync, l, size, &target);
	ret = gdri_slot_await(dev, qp, slot, ret, target, GDRI_G, value);
	if (!ret)
		*value &= ~0ull >> (64 - 8 * size);
	return ret;
}

/* ---- atomics ---- */

/* AND, OR, SET and SWAP as masked compare-and-swap that always matches. */
GDR_DEVICE void gdri_amo_masks(int kind, uint64_t a, uint64_t b, struct gdri_masked_cs *m)
{
	m->compare = 0;
	m->compare_mask = 0;
	m->swap = a;
	m->swap_mask = ~0ull;
	if (kind == GDRI_AMO_AND) { /* clear the bits that are not in a */
		m->swap = 0;
		m->swap_mask = ~a;
	} else if (kind == GDRI_AMO_OR) {
		m->swap_mask = a;
	} else if (kind == GDRI_AMO_CSWAP) {
		m->compare = b;
		m->compare_mask = ~0ull;
	}
}

GDR_DEVICE int gdri_amo_is_fa(int kind)
{
	return kind == GDRI_AMO_ADD || kind == GDRI_AMO_FETCH || kind == GDRI_AMO_XOR;
}

GDR_DEVICE void gdri_wqe_amo4(const struct gdri_qp *qp, const struct gdri_post *p, int kind,
			      uint64_t off, uint64_t a, uint64_t b, const struct gdri_local *l)
{
	uint32_t ce = p->ce | p->fm;
	struct gdri_masked_cs m;

	if (gdri_amo_is_fa(kind)) {
		gdri_wqe_masked_fa4(qp, p->index, ce, off, qp->rkey_sync, l->addr, l->lkey,
				    (uint32_t)a, kind == GDRI_AMO_XOR ? ~0u : 0);
		return;
	}
	gdri_amo_masks(kind, a, b, &m);
	gdri_wqe_masked_cs4(qp, p->index, ce, off, qp->rkey_sync, l->addr, l->lkey, &m);
}

GDR_DEVICE void gdri_wqe_amo8(const struct gdri_qp *qp, const struct gdri_post *p, int kind,
			      uint64_t off, uint64_t a, uint64_t b, const struct gdri_local *l)
{
	uint32_t ce = p->ce | p->fm;
	struct gdri_masked_cs m;

	if (kind == GDRI_AMO_XOR) { /* addition without any carry */
		gdri_wqe_masked_fa8(qp, p->index, ce, off, qp->rkey_sync, l->addr, l->lkey, a,
				    ~0ull);
	} else if (gdri_amo_is_fa(kind)) {
		gdri_wqe_fa(qp, p->index, ce, off, qp->rkey_sync, l->addr, l->lkey, a);
	} else if (kind == GDRI_AMO_CSWAP) {
		gdri_wqe_cs(qp, p->index, ce, off, qp->rkey_sync, l->addr, l->lkey, a, b);
	} else {
		gdri_amo_masks(kind, a, b, &m);
		gdri_wqe_masked_cs8(qp, p->index, ce, off, qp->rkey_sync, l->addr, l->lkey, &m);
	}
}

/* The old value goes to l. */
GDRI_GENERAL int gdri_post_amo(struct gdri_dev *dev, struct gdri_qp *qp, int kind, uint32_t size,
			       uint64_t off, uint64_t a, uint64_t b, struct gdri_local l,
			       uint64_t *target)
{
	int two = size == 8 && !gdri_amo_is_fa(kind) && kind != GDRI_AMO_CSWAP;
	struct gdri_post p;
	int ret;

	if (kind == GDRI_AMO_FETCH)
		a = 0;
	ret = gdri_post_begin(dev, qp, two ? 2 : 1, two, &p);
	if (gdri_unlikely(ret))
		return ret;
	if (size == 4)
		gdri_wqe_amo4(&p.q, &p, kind, off, a, b, &l);
	else
		gdri_wqe_amo8(&p.q, &p, kind, off, a, b, &l);
	*target = p.index + 1; /* a CQE carries the first block: enough, see gdri_qp.ready */
	return gdri_post_end(dev, qp, &p);
}

GDRI_NOINLINE int gdri_post_atomic(struct gdri_dev *dev, int kind, uint32_t size, uint64_t off,
				   uint64_t a, uint64_t b, int pe, uint32_t q)
{
	struct gdri_local l = {gdri_sink_offset(), dev->lkey};
	uint64_t target;

	return gdri_post_amo(dev, gdri_qp_to(dev, pe, q), kind, size, off, a, b, l, &target);
}

GDRI_NOINLINE int gdri_post_fetch_atomic(struct gdri_dev *dev, int kind, uint32_t size,
					 uint64_t off, uint64_t a, uint64_t b, int pe, uint32_t q,
					 uint64_t *old)
{
	struct gdri_qp *qp = gdri_qp_to(dev, pe, q);
	struct gdri_local l;
	uint64_t target;
	uint32_t slot;
	int ret = gdri_slot_take(dev, &slot, GDRI_FETCH_AMO, pe);

	GDRI_BY_ABI(gdri_post_fetch_atomic);
	if (ret)
		return ret;
	l.addr = gdri_slot_offset(slot);
	l.lkey = dev->lkey;
	ret = gdri_post_amo(dev, qp, kind, size, off, a, b, l, &target);
	ret = gdri_slot_await(dev, qp, slot, ret, target, GDRI_FETCH_AMO, old);
	if (!ret && size == 4) /* 4-byte results stand big-endian in memory, 8-byte ones do not */
		*old = gdri_bswap32((uint32_t)*old);
	return ret;
}

#endif
