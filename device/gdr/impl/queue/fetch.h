/* SPDX-License-Identifier: BSD-3-Clause */
/* What brings a value back, and atomics, by queue: loads of scalars, atomics with and without the old value. */
#ifndef GDRI_FETCH_H
#define GDRI_FETCH_H

#include <gdr/impl/queue/post.h>

/* ---- fetch slots: 16 bytes of the control area for one result ---- */

/* One look at all of them. 1: *slot is the caller's. */
GDRI_NOINLINE int gdri_slot_find(struct gdri_dev *dev, uint32_t *slot)
{
	uint32_t words = GDRI_FETCH_SLOTS / 64, i, word;
	uint64_t map, bit;

	word = ((uint32_t)gdr_block_id() * 16 + (uint32_t)gdr_thread_id() / 32) % words;
	GDRI_NOT_UNROLLED
	for (i = 0; i < words; i++, word = (word + 1) % words) {
		map = ~gdri_ld_relaxed_gpu_u64(&dev->fetch_map[word]);
		if (!map)
			continue;
		bit = map & (~map + 1);
		/* acquire; pairs with the release in gdri_slot_give */
		if (gdri_or_u64(&dev->fetch_map[word], bit) & bit)
			continue;
		*slot = word * 64 + gdri_ffs_u64(bit);
		return 1;
	}
	return 0;
}

GDRI_NOINLINE int gdri_slot_wait(struct gdri_dev *dev, uint32_t *slot, uint32_t op, int pe)
{
	struct gdri_waiter w;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	gdri_wait_begin(&w, op, pe, 0);
	do {
		ret = gdri_wait_step(dev, &w);
		if (ret)
			return ret;
	} while (!gdri_slot_find(dev, slot));
	gdri_wait_end(dev, &w);
	return 0;
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

GDR_DEVICE int gdri_amo_has_masks(int kind)
{
	return !gdri_amo_is_fa(kind) && kind != GDRI_AMO_CSWAP && kind != (int)GDRI_AMO_COMBINED;
}

/* A fetch adds nothing. */
GDR_DEVICE uint64_t gdri_amo_operand(const struct gdri_operation *o)
{
	return o->kind == GDRI_AMO_FETCH ? 0 : o->value;
}

GDRI_SLOW void gdri_write_amo4(const struct gdri_dev *dev, const struct gdri_post *p,
			       const struct gdri_operation *o, const struct gdri_local *l)
{
	uint64_t off = gdri_heap_offset(dev, o->remote);
	uint32_t ce = p->ce | p->fm;
	struct gdri_masked_cs m;
	struct gdri_qp own;
	const struct gdri_qp *q = gdri_post_q(p, &own);

	if (gdri_amo_is_fa(o->kind)) {
		gdri_wqe_masked_fa4(q, p->index, ce, off, q->rkey_sync, l->addr, l->lkey,
				    (uint32_t)gdri_amo_operand(o), o->kind == GDRI_AMO_XOR ? ~0u : 0);
		return;
	}
	gdri_amo_masks(o->kind, o->value, o->compare, &m);
	gdri_wqe_masked_cs4(q, p->index, ce, off, q->rkey_sync, l->addr, l->lkey, &m);
}

GDRI_SLOW void gdri_write_masked8(const struct gdri_dev *dev, const struct gdri_post *p,
				  const struct gdri_operation *o, const struct gdri_local *l)
{
	uint64_t off = gdri_heap_offset(dev, o->remote);
	struct gdri_masked_cs m;
	struct gdri_qp q;

	gdri_amo_masks(o->kind, o->value, o->compare, &m);
	gdri_wqe_masked_cs8(gdri_post_q(p, &q), p->index, p->ce | p->fm, off, p->q.rkey_sync, l->addr, l->lkey, &m);
}

GDRI_SLOW void gdri_write_amo8(const struct gdri_dev *dev, const struct gdri_post *p,
			       const struct gdri_operation *o, const struct gdri_local *l)
{
	uint64_t off = gdri_heap_offset(dev, o->remote);
	uint32_t ce = p->ce | p->fm;
	struct gdri_qp own;
	const struct gdri_qp *q = gdri_post_q(p, &own);

	if (o->kind == GDRI_AMO_XOR) { /* addition without any carry */
		gdri_wqe_masked_fa8(q, p->index, ce, off, q->rkey_sync, l->addr, l->lkey, o->value, ~0ull);
	} else if (gdri_amo_is_fa(o->kind)) {
		gdri_wqe_fa(q, p->index, ce, off, q->rkey_sync, l->addr, l->lkey, gdri_amo_operand(o));
	} else if (o->kind == GDRI_AMO_CSWAP) {
		gdri_wqe_cs(q, p->index, ce, off, q->rkey_sync, l->addr, l->lkey, o->value, o->compare);
	} else {
		gdri_write_masked8(dev, p, o, l);
	}
}

GDRI_SLOW void gdri_write_combine(const struct gdri_dev *dev, const struct gdri_post *p,
				  const struct gdri_operation *o, const struct gdri_local *l)
{
	uint64_t off = gdri_heap_offset(dev, o->remote);
	struct gdri_qp q;

	gdri_wqe_combine(gdri_post_q(p, &q), p->index, p->ce | p->fm, off, p->q.rkey_sync, l->addr, l->lkey, o->value,
			 (uint32_t)o->compare);
}

GDRI_SLOW void gdri_write_g(const struct gdri_dev *dev, const struct gdri_post *p,
			    const struct gdri_operation *o, const struct gdri_local *l)
{
	uint64_t off = gdri_heap_offset(dev, o->remote);
	struct gdri_qp q;

	gdri_wqe_rdma(gdri_post_q(p, &q), p->index, GDRI_OP_READ, p->ce | p->fm, off, p->q.rkey_sync, l->addr, l->lkey,
		      o->size);
}

GDRI_SLOW void gdri_write_fetching(const struct gdri_dev *dev, const struct gdri_post *p,
				   const struct gdri_operation *o, const struct gdri_local *l)
{
	if (o->op == GDRI_G)
		gdri_write_g(dev, p, o, l);
	else if (o->kind == GDRI_AMO_COMBINED)
		gdri_write_combine(dev, p, o, l);
	else if (o->size == 4)
		gdri_write_amo4(dev, p, o, l);
	else
		gdri_write_amo8(dev, p, o, l);
}

/* A load or an atomic; what it brings goes to l. What to wait for, or (below 0) an error. */
GDRI_NOINLINE uint64_t gdri_post_fetching(struct gdri_dev *dev, const struct gdri_operation *o,
					  const struct gdri_local *l)
{
	uint32_t two = o->op != GDRI_G && o->size == 8 && gdri_amo_has_masks(o->kind);
	struct gdri_qp *qp = gdri_op_queue(dev, o);
	struct gdri_post p;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	ret = gdri_post_open(dev, qp, 1 + two, two, &p);
	if (gdri_unlikely(ret))
		return (uint64_t)(int64_t)ret;
	gdri_write_fetching(dev, &p, o, l);
	ret = gdri_post_close(dev, qp, &p);
	/* a CQE carries the first block: enough, see gdri_qp.ready */
	return gdri_unlikely(ret) ? (uint64_t)(int64_t)ret : p.index + 1;
}

/* Atomics whose old value nobody wants, or 8 bytes of it in memory of the caller's by the next quiet. */
GDRI_NOINLINE int gdri_post_atomic(struct gdri_dev *dev, struct gdri_operation *o)
{
	struct gdri_local l = {gdri_sink_offset(), dev->lkey};
	int ret = o->op == GDRI_AMO ? 0 : gdri_local(dev, o->local, 8, &l, o->op, o->pe);
	uint64_t target = ret ? (uint64_t)(int64_t)ret : gdri_post_fetching(dev, o, &l);

	return gdri_unlikely((int64_t)target < 0) ? (int)(int64_t)target : 0;
}

/* 4-byte results of atomics stand big-endian in memory, 8-byte ones do not. What is loaded is zero-extended. */
GDR_DEVICE uint64_t gdri_fetched(const struct gdri_operation *o, uint64_t value)
{
	if (o->op != GDRI_G)
		return o->size == 4 ? gdri_bswap32((uint32_t)value) : value;
	return value & ~0ull >> (64 - 8 * o->size);
}

GDRI_SLOW void gdri_fetch_take(struct gdri_dev *dev, struct gdri_operation *o, uint32_t slot)
{
	GDRI_DEV_CONSTANT(dev);
	o->result = gdri_fetched(o, gdri_slot_value(dev, slot));
}

/* Loads, and atomics whose old value is waited for: o->result. */
GDRI_NOINLINE int gdri_post_fetch(struct gdri_dev *dev, struct gdri_operation *o)
{
	struct gdri_local l;
	uint64_t target;
	uint32_t slot;
	int ret;

	GDRI_BY_ABI(gdri_post_fetch);
	GDRI_DEV_CONSTANT(dev);
	if (gdri_unlikely(!gdri_slot_find(dev, &slot))) {
		ret = gdri_slot_wait(dev, &slot, o->op, o->pe);
		if (ret)
			return ret;
	}
	l.addr = gdri_slot_offset(slot);
	l.lkey = dev->lkey;
	target = gdri_post_fetching(dev, o, &l);
	ret = (int64_t)target < 0 ? (int)(int64_t)target : 0;
	if (!ret) {
		ret = gdri_read_wait(dev, gdri_op_queue(dev, o), target, o->op);
		if (ret)
			return ret; /* the slot may still be written to */
		gdri_fetch_take(dev, o, slot);
	}
	gdri_slot_give(dev, slot);
	return ret;
}

#endif
