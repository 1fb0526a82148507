/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place where the path to a PE is chosen: mapped heap (p2p.h) or queue (post.h, fetch.h). Five primitives:
 * write and read (of memory and of scalars), atomic, signal, complete. */
#ifndef GDRI_XFER_H
#define GDRI_XFER_H

#include <gdr/impl/path/ctx.h>
#include <gdr/impl/path/p2p.h>
#include <gdr/impl/queue/fetch.h>

/* This PE's own memory outside the heap, which no key names: the address itself. NULL for all else, and in programs of
 * gdr, to which the NIC says that such an address is wrong; libgdr_device.a, which both link, has it. */
GDR_DEVICE uint8_t *gdri_own_outside(const struct gdri_dev *dev, const void *ptr, int pe)
{
#ifndef GDRI_OWN_OUTSIDE
	(void)dev, (void)ptr, (void)pe;
	return 0;
#else
	if (gdri_likely(pe != gdri_k(dev, pe)) || gdri_heap_offset(dev, ptr) < gdri_k(dev, heap_size))
		return 0;
	return (uint8_t *)(uintptr_t)ptr;
#endif
}

/* Mapped address of the symmetric object, or NULL: by queue. */
GDR_DEVICE uint8_t *gdri_mapped(const struct gdri_dev *dev, const void *ptr, int pe)
{
	uint8_t *base = gdri_peer_base(dev, pe);

	return base ? gdri_mapped_at(dev, base, ptr, pe) : gdri_own_outside(dev, ptr, pe);
}

/* What an operation on pe says of it beside its own success. A GPU's threads look at nothing: the next quiet, fence,
 * barrier or wait says that a PE is lost. Host threads make the calls of the host device's kernels. */
GDR_DEVICE int gdri_peer_status(const struct gdri_dev *dev, int pe)
{
#ifdef __CUDACC__
	(void)dev;
	(void)pe;
	return 0;
#else
	/* alone: pairs with nothing */
	return gdri_unlikely(gdri_ld_relaxed_sys_u32(&dev->peers[pe].lost)) ? -GDR_EPEERLOST : 0;
#endif
}

/* By queue, whose time hides the question whether there is such a PE: its number found no mapped heap. Nothing is
 * posted for a PE that is lost: it would fail when a whole time-out of the NIC has passed. */
GDR_DEVICE int gdri_xfer_refused(struct gdri_dev *dev, const struct gdri_operation *o)
{
	if (gdri_unlikely((uint32_t)o->pe >= (uint32_t)gdri_k(dev, n_pes)))
		return gdri_no_pe(dev, o->op, o->pe);
	return gdri_peer_status(dev, o->pe);
}

/* Where one PE of the job is reached by queue, all atomics go that way: loads and
 * stores of a processor are not atomic to those of a NIC. No NIC reaches what is outside the heap. */
GDR_DEVICE uint8_t *gdri_mapped_atomic(const struct gdri_dev *dev, const void *ptr, int pe)
{
	if (gdri_unlikely(gdri_k(dev, flags) & GDRI_DEV_NIC_ATOMICS))
		return gdri_own_outside(dev, ptr, pe);
	return gdri_mapped(dev, ptr, pe);
}

/* ADD is an atomic; SET is a store, which needs no such care. */
GDR_DEVICE uint8_t *gdri_mapped_signal(const struct gdri_dev *dev, const void *sig, int kind, int pe)
{
	return kind == GDRI_AMO_ADD ? gdri_mapped_atomic(dev, sig, pe) : gdri_mapped(dev, sig, pe);
}

/* ---- write, read: memory ---- */

GDRI_SLOW int gdri_xfer_bcast(int scope, int ret)
{
	return gdri_scope_bcast(scope, ret);
}

/* By all threads of the scope, where the PE is mapped. 1: more is to be done. */
GDRI_SLOW int gdri_xfer_copied(struct gdri_dev *dev, const struct gdri_operation *o)
{
	uint8_t *p = gdri_mapped(dev, o->remote, o->pe);
	int get = o->op == GDRI_GET;

	GDRI_DEV_CONSTANT(dev);
	if (!p) {
		gdri_scope_sync(o->scope);
		return 1;
	}
	gdri_p2p_copy_any(o->scope, get ? o->local : p, get ? p : o->local, o->len);
	return o->op == GDRI_PUT_SIGNAL ? 1 : gdri_peer_status(dev, o->pe);
}

enum { GDRI_XFER_WORD = 1, GDRI_XFER_MEMORY = 2 }; /* is to be posted */

/* First thread. Behind the data that the caller, or its scope, wrote before; by queue the doorbell's F1 puts stores to
 * mapped memory before it. */
GDRI_SLOW int gdri_xfer_signal_behind(struct gdri_dev *dev, const struct gdri_operation *o)
{
	uint8_t *p = gdri_mapped_signal(dev, gdri_op_word(o), o->kind, o->pe);
	int ret;

	if (!p) {
		ret = gdri_xfer_refused(dev, o);
		return ret ? ret : GDRI_XFER_WORD;
	}
	gdri_p2p_signal((uint64_t *)p, o->value, o->kind == GDRI_AMO_ADD);
	return gdri_peer_status(dev, o->pe);
}

/* For threads of the host: and posts. */
GDR_DEVICE int gdri_xfer_tell(struct gdri_dev *dev, struct gdri_operation *o)
{
	int ret = gdri_xfer_signal_behind(dev, o);

	return ret == GDRI_XFER_WORD ? gdri_post_word(dev, o) : ret;
}

/* First thread: behind what all copied. */
GDRI_SLOW int gdri_xfer_first(struct gdri_dev *dev, const struct gdri_operation *o)
{
	int ret;

	GDRI_DEV_CONSTANT(dev);
	if (gdri_mapped(dev, o->remote, o->pe))
		return gdri_xfer_signal_behind(dev, o);
	ret = gdri_xfer_refused(dev, o);
	if (gdri_unlikely(ret) || (!o->len && o->op != GDRI_PUT_SIGNAL))
		return ret;
	return gdri_post_is_word(o) ? GDRI_XFER_WORD : GDRI_XFER_MEMORY;
}

/* All copy, or the first one posts: the one stands behind the other. */
GDRI_FRAMELESS int gdri_xfer_by_scope(struct gdri_dev *dev, struct gdri_operation *o)
{
	int ret = gdri_xfer_copied(dev, o);

	GDRI_DEV_CONSTANT(dev);
	if (ret != 1)
		return ret;
	ret = gdri_scope_rank(o->scope) ? 0 : gdri_xfer_first(dev, o);
	if (ret == GDRI_XFER_WORD)
		ret = gdri_post_word(dev, o);
	else if (ret == GDRI_XFER_MEMORY)
		ret = gdri_post_messages(dev, o);
	return gdri_xfer_bcast(o->scope, ret);
}

/* Put, get, put with signal. */
GDR_DEVICE int gdri_xfer_memory(struct gdri_dev *dev, struct gdri_operation *o)
{
	uint8_t *p;
	int ret;

	if (!GDRI_SHORT_WAYS || o->scope != GDRI_THREAD || o->op == GDRI_PUT_SIGNAL)
		return gdri_op_away_memory(gdri_xfer_by_scope, dev, o);
	p = gdri_mapped(dev, o->remote, o->pe);
	if (p && o->op == GDRI_GET) {
		gdri_p2p_copy_alone(o->local, p, o->len);
		return gdri_peer_status(dev, o->pe);
	}
	if (p) {
		gdri_p2p_copy_alone(p, o->local, o->len);
		return gdri_peer_status(dev, o->pe);
	}
	ret = gdri_xfer_refused(dev, o);
	if (gdri_unlikely(ret))
		return ret;
	if (o->op == GDRI_PUT)
		return gdri_post_write(dev, o);
	return o->len ? gdri_op_away_memory(gdri_post_messages, dev, o) : 0;
}

/* By way of shared memory of the scope's, where the path can. */
GDR_DEVICE int gdri_xfer_bulk(struct gdri_dev *dev, struct gdri_operation *o, void *stage, size_t bytes)
{
	uint8_t *p = gdri_mapped(dev, o->remote, o->pe);
	int get = o->op == GDRI_GET;

	if (p && gdri_p2p_by_engine(o->scope, get, get ? o->local : p, get ? p : o->local, o->len, stage, bytes))
		return gdri_peer_status(dev, o->pe);
	return gdri_xfer_memory(dev, o);
}

/* ---- write, read: scalars ---- */

GDR_DEVICE int gdri_xfer_store(struct gdri_dev *dev, struct gdri_operation *o)
{
	uint8_t *p = gdri_mapped(dev, o->remote, o->pe);
	int ret;

	if (p) {
		gdri_p2p_store(p, o->value, o->size);
		return gdri_peer_status(dev, o->pe);
	}
	ret = gdri_xfer_refused(dev, o);
	return gdri_unlikely(ret) ? ret : gdri_post_store(dev, o);
}

/* A scalar or a signal, if it goes to mapped memory or to no PE; 1: by queue. */
GDRI_SLOW int gdri_xfer_word_mapped(struct gdri_dev *dev, const struct gdri_operation *o)
{
	uint8_t *p = o->op == GDRI_P ? gdri_mapped(dev, o->remote, o->pe)
				     : gdri_mapped_signal(dev, o->remote, o->kind, o->pe);
	int ret;

	if (p && o->op == GDRI_P)
		gdri_p2p_store(p, o->value, o->size);
	else if (p)
		gdri_p2p_signal_op((uint64_t *)p, o->value, o->kind == GDRI_AMO_ADD);
	if (p)
		return gdri_peer_status(dev, o->pe);
	ret = gdri_xfer_refused(dev, o);
	return gdri_unlikely(ret) ? ret : 1;
}

/* A scalar or a signal, whose ways are out of line, each on this frame. */
GDR_DEVICE int gdri_xfer_word(struct gdri_dev *dev, struct gdri_operation *o)
{
	int ret = gdri_xfer_word_mapped(dev, o);

	return ret > 0 ? gdri_post_value_as(dev, o, 1) : ret;
}

/* To o->result. */
GDR_DEVICE int gdri_xfer_load(struct gdri_dev *dev, struct gdri_operation *o)
{
	uint8_t *p = gdri_mapped(dev, o->remote, o->pe);
	int ret;

	if (p) {
		o->result = gdri_p2p_load(p, o->size);
		return gdri_peer_status(dev, o->pe);
	}
	ret = gdri_xfer_refused(dev, o);
	return gdri_unlikely(ret) ? ret : gdri_op_away_scalar(gdri_post_fetch, dev, o);
}

/* ---- atomic ---- */

GDR_DEVICE void gdri_xfer_bring(const struct gdri_operation *o)
{
	uint32_t low = (uint32_t)o->result;

	if (o->size == 8)
		memcpy(o->local, &o->result, 8);
	else
		memcpy(o->local, &low, 4);
}

/* What was prepared for a PE that is not mapped: len bytes, and the word behind them, or a word alone. */
GDR_DEVICE int gdri_xfer_post_memory(struct gdri_dev *dev, struct gdri_operation *o)
{
	return GDRI_QUEUES ? gdri_post_memory(dev, o) : 0;
}

GDR_DEVICE int gdri_xfer_post_word(struct gdri_dev *dev, struct gdri_operation *o)
{
	return GDRI_QUEUES ? gdri_post_word(dev, o) : 0;
}

/* A NIC brings 8 bytes to o->local itself. 4 bytes are waited for: what it writes of them stands the wrong way
 * round. */
GDR_DEVICE int gdri_xfer_post_atomic(struct gdri_dev *dev, struct gdri_operation *o)
{
	int ret = gdri_xfer_refused(dev, o);

	if (gdri_unlikely(ret))
		return ret;
	if (o->op == GDRI_AMO || (o->nbi && o->size == 8))
		return gdri_op_away_scalar(gdri_post_atomic, dev, o);
	ret = gdri_op_away_scalar(gdri_post_fetch, dev, o);
	if (!ret && o->nbi)
		gdri_xfer_bring(o);
	return ret;
}

GDRI_SLOW void gdri_xfer_atomic_mapped(struct gdri_operation *o, uint8_t *p)
{
	o->result = gdri_p2p_atomic(o->kind, o->size, p, o->value, o->compare);
}

/* GDRI_FETCH_AMO: the old value is in o->result, or (o->nbi) in o->local by the next quiet. */
GDR_DEVICE int gdri_xfer_atomic(struct gdri_dev *dev, struct gdri_operation *o)
{
	uint8_t *p = gdri_mapped_atomic(dev, o->remote, o->pe);

	if (!p)
		return gdri_xfer_post_atomic(dev, o);
	gdri_xfer_atomic_mapped(o, p);
	if (o->nbi)
		gdri_xfer_bring(o);
	return gdri_peer_status(dev, o->pe);
}

/* Of a scalar or an atomic what it brings, if it comes from mapped memory or from no PE; 1: by queue. */
GDRI_SLOW int gdri_xfer_fetch_mapped(struct gdri_dev *dev, struct gdri_operation *o)
{
	uint8_t *p = o->op == GDRI_G ? gdri_mapped(dev, o->remote, o->pe) : gdri_mapped_atomic(dev, o->remote, o->pe);
	int ret;

	if (p && o->op == GDRI_G)
		o->result = gdri_p2p_load(p, o->size);
	else if (p)
		gdri_xfer_atomic_mapped(o, p);
	if (p)
		return gdri_peer_status(dev, o->pe);
	ret = gdri_xfer_refused(dev, o);
	return gdri_unlikely(ret) ? ret : 1;
}

/* As gdri_xfer_word. */
GDR_DEVICE int gdri_xfer_fetch(struct gdri_dev *dev, struct gdri_operation *o)
{
	int ret = gdri_xfer_fetch_mapped(dev, o);

	return ret > 0 ? gdri_post_fetch(dev, o) : ret;
}

/* ---- signal ---- */

/* Ordered as gdri_p2p_signal_op. */
GDR_DEVICE int gdri_xfer_signal(struct gdri_dev *dev, struct gdri_operation *o)
{
	uint8_t *p = gdri_mapped_signal(dev, o->remote, o->kind, o->pe);
	int ret;

	if (p) {
		gdri_p2p_signal_op((uint64_t *)p, o->value, o->kind == GDRI_AMO_ADD);
		return gdri_peer_status(dev, o->pe);
	}
	ret = gdri_xfer_refused(dev, o);
	return gdri_unlikely(ret) ? ret : gdri_op_away_scalar(gdri_post_word, dev, o);
}

/* ---- of barriers and collectives ---- */

/* They name a slot, the same one whichever block calls, so that what they send is in order, and learn from their waits
 * what became of a PE. One thread. */
GDR_DEVICE uint32_t gdri_slot_queue(const struct gdri_dev *dev, uint32_t slot)
{
	return slot - gdri_slot(dev);
}

/* Mapped address of the symmetric object, or NULL: by queue. */
GDR_DEVICE uint8_t *gdri_coll_mapped(const struct gdri_dev *dev, const void *ptr, int pe)
{
	return GDRI_QUEUES ? gdri_mapped(dev, ptr, pe) : gdri_direct_at(ptr, pe);
}

GDRI_NOINLINE int gdri_coll_post_word(struct gdri_dev *dev, int pe, uint32_t slot, uint64_t *word, uint64_t value)
{
	struct gdri_operation o;

	o = gdri_op_scalar(GDRI_SIGNAL, GDRI_AMO_SET, 8, word, value, pe, gdri_slot_queue(dev, slot));
	return GDRI_SHORT_WAYS ? gdri_post_word(dev, &o) : gdri_post_value_as(dev, &o, 1);
}

/* Signal: a word behind what the caller, or its scope, wrote before. Pairs with the acquire of who waits for it. */
GDR_DEVICE int gdri_coll_tell(struct gdri_dev *dev, int pe, uint32_t slot, uint64_t *word, uint64_t value)
{
	uint8_t *p = gdri_coll_mapped(dev, word, pe);

	if (GDRI_QUEUES && !p)
		return gdri_coll_post_word(dev, pe, slot, word, value);
	gdri_p2p_signal((uint64_t *)p, value, 0);
	return 0;
}

/* A write, behind which stands a word, as the caller sets it. */
GDR_DEVICE struct gdri_operation gdri_coll_message(const struct gdri_dev *dev, int scope, int pe, uint32_t slot,
						   void *dst, const void *src, size_t len)
{
	struct gdri_operation o = gdri_op_memory(GDRI_PUT_SIGNAL, scope, 1, dst, src, len, pe,
						 gdri_slot_queue(dev, slot));

	o.kind = GDRI_AMO_SET;
	return o;
}

/* Write and word, or, where the PE is mapped and the write was stored, the word alone. */
GDRI_FRAMELESS int gdri_coll_post(struct gdri_dev *dev, struct gdri_operation *o)
{
	if (GDRI_QUEUES && !gdri_peer_base(dev, o->pe))
		return gdri_post_memory(dev, o);
	gdri_p2p_signal((uint64_t *)(void *)gdri_coll_mapped(dev, o->sig, o->pe), o->value, 0);
	return 0;
}

/* Write, to a PE that is not mapped, of an element of up to GDRI_INLINE_MAX bytes. */
GDR_DEVICE int gdri_coll_post_element(struct gdri_dev *dev, int pe, uint32_t slot, void *dst, const void *src,
				      size_t len)
{
	struct gdri_operation o;

	o = gdri_op_memory(GDRI_PUT, GDRI_THREAD, 1, dst, src, len, pe, gdri_slot_queue(dev, slot));
	return gdri_post_memory(dev, &o);
}

/* ---- complete ---- */

/* All that was published on the queue before now. */
GDRI_FRAMELESS int gdri_qp_quiet(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t op)
{
	uint64_t target = gdri_published(gdri_ld_acquire_gpu_u64(&qp->ready));
	int ret = gdri_qp_test(qp, target);

	GDRI_DEV_CONSTANT(dev);
	if (ret <= 0)
		ret = gdri_qp_wait(dev, qp, target, op);
	else
		ret = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&qp->err);
	if (!ret && gdri_unlikely(gdri_k(dev, flags) & GDRI_DEV_READ_FLUSH))
		ret = gdri_read_flush(dev, qp, op);
	return ret;
}

/* Those of the queues at..end-1 that were ever used, of the 64 that begin at a multiple of that. */
GDR_DEVICE uint64_t gdri_used_of(const struct gdri_dev *dev, uint32_t at, uint32_t end)
{
	uint64_t map = gdri_ld_relaxed_gpu_u64(&dev->used[at >> 6]) & ~0ull << (at & 63u);
	uint32_t left = end - (at & ~63u);

	return left < 64 ? map & ((1ull << left) - 1) : map;
}

/* Queues first..first+n-1 that were ever used. Waits for all, returns the first error;
 * goes on after it unless every further wait would take its time too. */
GDRI_NOINLINE int gdri_quiet_queues(struct gdri_dev *dev, uint32_t first, uint32_t n, uint32_t op)
{
	uint32_t at, end = first + n;
	int ret, status = 0;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (at = first; at < end; at = (at | 63u) + 1) {
		GDRI_NOT_UNROLLED
		for (uint64_t map = gdri_used_of(dev, at, end); map; map &= map - 1) {
			ret = gdri_qp_quiet(dev, &dev->qps[(at & ~63u) + gdri_ffs_u64(map)], op);
			if (ret && !status)
				status = ret;
			if (ret == -GDR_ETIMEOUT || ret == -GDR_EPEERLOST || ret == -GDR_EABORTED)
				return status;
		}
	}
	return status;
}

/* Everything that this PE's threads posted before: to one PE, or (pe -1) to all. */
GDR_DEVICE int gdri_xfer_complete_all(struct gdri_dev *dev, int pe, uint32_t op)
{
	if (!gdri_k(dev, n_slots))
		return 0;
	return gdri_quiet_queues(dev, pe < 0 ? 0 : (uint32_t)pe * gdri_k(dev, n_slots),
				 (pe < 0 ? (uint32_t)gdri_k(dev, n_pes) : 1u) * gdri_k(dev, n_slots), op);
}

/* On a context that has queues of its own, or (c NULL) on all the others. */
GDRI_FRAMELESS int gdri_xfer_complete(struct gdri_dev *dev, const struct gdri_ctx *c, int pe, uint32_t op)
{
	uint32_t n_pes = (uint32_t)gdri_k(dev, n_pes), i;
	int ret, status = 0;

	GDRI_DEV_CONSTANT(dev);
	gdri_fence_nic(); /* stores to mapped peers */
	if (gdri_unlikely(pe >= (int)n_pes) && gdri_k(dev, n_slots))
		return gdri_no_pe(dev, op, pe);
	if (!c)
		return gdri_xfer_complete_all(dev, pe, op);
	if (pe < 0)
		return gdri_quiet_queues(dev, c->first, c->n * n_pes, op);
	GDRI_NOT_UNROLLED
	for (i = 0; i < c->n; i++) {
		ret = gdri_quiet_queues(dev, c->first + i * n_pes + (uint32_t)pe, 1, op);
		if (ret && !status)
			status = ret;
	}
	return status;
}

/* The calling block's queue to pe on the context; c NULL: on the default one. */
GDR_DEVICE struct gdri_qp *gdri_ctx_qp(const struct gdri_dev *dev, const struct gdri_ctx *c, int pe)
{
	return c ? &dev->qps[gdri_ctx_queue(dev, c, pe)] : gdri_qp_to(dev, pe, 0);
}

/* That queue, where pe is also mapped: a store could overtake what was posted. */
GDRI_SLOW int gdri_xfer_complete_mixed(struct gdri_dev *dev, const struct gdri_ctx *c, int pe, uint32_t op)
{
	struct gdri_qp *qp = gdri_ctx_qp(dev, c, pe);

	return dev->peers[pe].base && gdri_qp_is_used(dev, qp) ? gdri_qp_quiet(dev, qp, op) : 0;
}

/* What a collective posted to a PE. */
GDR_DEVICE int gdri_coll_complete(struct gdri_dev *dev, int pe, uint32_t slot, uint32_t op)
{
	return gdri_peer_base(dev, pe) ? 0 : gdri_qp_quiet(dev, gdri_qp_to(dev, pe, gdri_slot_queue(dev, slot)), op);
}

/* What NICs wrote before a word that was seen: it may still be on its way. */
GDR_DEVICE int gdri_xfer_flush(struct gdri_dev *dev, uint32_t op)
{
	struct gdri_qp *qp = gdri_qp_to(dev, gdri_k(dev, pe), 0);

	return gdri_k(dev, n_slots) && qp->sq ? gdri_read_flush(dev, qp, op) : 0;
}

#endif
