/* SPDX-License-Identifier: BSD-3-Clause */
/* The path through the NIC: each primitive as WQEs on the queue to the PE. Called by one thread, or by several lanes at
 * once, whose WQEs then go out together (nic.h). Here: words, which are scalars and signals, and memory in both
 * directions. What fetches: fetch.h.
 *
 * Each has one function out of line. The host device has a short way in front of those that programs call most
 * (gdri_post_try), inline and without calls but in tail position. */
#ifndef GDRI_POST_H
#define GDRI_POST_H

#include <gdr/impl/queue/local.h>
#include <gdr/impl/queue/nic.h>
#include <gdr/impl/path/op.h>
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

/* gdri_put_rkey, by what was read before the reservation. */
GDR_DEVICE gdri_be32_t gdri_post_rkey(const struct gdri_post *p)
{
	return p->strict ? p->q.rkey_sync : p->q.rkey_data;
}

GDR_DEVICE uint64_t gdri_sink_offset(void)
{
	return offsetof(struct gdri_ctl, sink);
}

GDR_DEVICE struct gdri_qp *gdri_op_queue(const struct gdri_dev *dev, const struct gdri_operation *o)
{
	return gdri_qp_to(dev, o->pe, o->queue);
}

/* ---- a post in steps ---- */

/* Under CUDA reservation and publication are out of line. */
#if !GDRI_SHORT_WAYS
GDRI_NOINLINE int gdri_post_open_now(struct gdri_qp *qp, uint32_t blocks, uint32_t last2, struct gdri_post *p)
{
	GDRI_BY_ABI(gdri_post_open_now);
	return gdri_post_now(gdri_dev(), qp, blocks, last2, p);
}

GDR_DEVICE int gdri_post_open(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks, uint32_t last2,
			      struct gdri_post *p)
{
	return gdri_likely(gdri_post_open_now(qp, blocks, last2, p)) ? 0
								     : gdri_post_begin_any(dev, qp, blocks, last2, p);
}

/* 1: gdri_post_room is next, by who has less on its frame. */
GDR_DEVICE int gdri_post_try_open(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks, uint32_t last2,
				  struct gdri_post *p)
{
	if (gdri_likely(gdri_post_open_now(qp, blocks, last2, p)))
		return 0;
	gdri_post_group_any(dev, qp, blocks, last2, p);
	return 1;
}

GDRI_NOINLINE int gdri_post_close(struct gdri_dev *dev, struct gdri_qp *qp, const struct gdri_post *p)
{
	GDRI_BY_ABI(gdri_post_close);
	(void)dev; /* a constant, which takes no register */
	return gdri_post_end(gdri_dev(), qp, p);
}
#else
#define gdri_post_close gdri_post_end

/* A lone thread has nobody to post together with. */
GDR_DEVICE int gdri_post_open(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks, uint32_t last2,
			      struct gdri_post *p)
{
	uint64_t fences = gdri_ld_relaxed_gpu_u64(&dev->fence_done), seq;

	if (!gdri_alone() || gdri_unlikely(gdri_sq_fence_due(dev, qp, &seq)))
		return gdri_post_begin(dev, qp, blocks, last2, p);
	p->index = gdri_sq_reserve_now(qp, blocks);
	if (gdri_unlikely(p->index == GDRI_NO_ROOM))
		return gdri_post_begin(dev, qp, blocks, last2, p);
	p->n = (uint16_t)blocks;
	p->mask = 1;
	p->ce = GDRI_CE_ALWAYS;
	p->fm = 0;
	p->leader = 1;
	p->last2 = (uint8_t)last2;
	p->strict = seq != fences;
	p->ahead = GDRI_WINDOW;
	gdri_entries_set(&p->q, qp);
	return 0;
}

#define gdri_post_try_open gdri_post_open
#endif

/* ---- reads: their completion ---- */

GDRI_SLOW void gdri_write_dump(const struct gdri_dev *dev, const struct gdri_post *p)
{
	struct gdri_qp q;

	gdri_wqe_dump(gdri_post_q(p, &q), p->index, p->ce | GDRI_FM_FENCE, gdri_sink_offset(), dev->lkey, 1);
}

/* A DUMP: what to wait for, or (below 0) an error. */
GDR_DEVICE_COLD uint64_t gdri_post_dump(struct gdri_dev *dev, struct gdri_qp *qp)
{
	struct gdri_post p;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	ret = gdri_post_open(dev, qp, 1, 0, &p);
	if (ret)
		return (uint64_t)(int64_t)ret;
	gdri_write_dump(dev, &p);
	ret = gdri_post_close(dev, qp, &p);
	return ret ? (uint64_t)(int64_t)ret : p.index + 1;
}

/* Where the NIC's writes may still be on their way when the CQE is seen: a DUMP
 * behind the reads flushes them. */
GDRI_FRAMELESS int gdri_read_flush(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t op)
{
	uint64_t target = gdri_post_dump(dev, qp);

	return (int64_t)target < 0 ? (int)(int64_t)target : gdri_qp_wait(dev, qp, target, op);
}

/* Waits for a read and makes its data visible. */
GDR_DEVICE int gdri_read_wait(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t target, uint32_t op)
{
	int ret = gdri_qp_wait(dev, qp, target, op);

	if (!ret && gdri_unlikely(gdri_k(dev, flags) & GDRI_DEV_READ_FLUSH))
		ret = gdri_read_flush(dev, qp, op);
	return ret;
}

/* ---- words ---- */

GDR_DEVICE void gdri_wqe_word(const struct gdri_qp *q, uint64_t index, uint32_t ce, uint64_t off, gdri_be32_t rkey,
			      uint64_t value, uint32_t size)
{
	uint32_t v[3];

	v[0] = (uint32_t)value;
	v[1] = (uint32_t)(value >> 32);
	v[2] = 0;
	gdri_wqe_write_inline_12(q, index, ce, off, rkey, v, size);
}

/* Does the network place two WRITEs of a queue in any order? Then what may be a flag goes as an atomic, which waits for
 * the WRITEs before it. */
GDR_DEVICE uint32_t gdri_relaxed(const struct gdri_dev *dev)
{
	return gdri_k(dev, flags) & GDRI_DEV_RELAXED;
}

/* 4 or 8 bytes, aligned, which the atomic stores whatever there was. Of 8 bytes it takes two blocks. */
GDRI_SLOW void gdri_write_swap(const struct gdri_dev *dev, const struct gdri_post *p, uint64_t index, uint32_t ce,
			       uint64_t off, uint64_t value, uint32_t size)
{
	struct gdri_masked_cs m = {value, 0, ~0ull, 0};
	struct gdri_qp own;
	const struct gdri_qp *q = gdri_post_q(p, &own);

	if (size == 4)
		gdri_wqe_masked_cs4(q, index, ce, off, q->rkey_sync, gdri_sink_offset(), dev->lkey, &m);
	else
		gdri_wqe_masked_cs8(q, index, ce, off, q->rkey_sync, gdri_sink_offset(), dev->lkey, &m);
}

GDR_DEVICE void gdri_wqe_signal(const struct gdri_dev *dev, const struct gdri_qp *q, uint64_t index, uint32_t ce,
				uint64_t off, uint64_t value, int kind)
{
	if (kind == GDRI_AMO_ADD)
		gdri_wqe_fa(q, index, ce, off, q->rkey_sync, gdri_sink_offset(), dev->lkey, value);
	else
		gdri_wqe_word(q, index, ce, off, q->rkey_sync, value, 8);
}

/* What is posted for the one class of network or the other. Under CUDA one function does both. The host device has one
 * for each: for networks that keep the order blocks are constants, with no more than a test in front. */
#define GDRI_BY_CLASS(name)                                                                     \
	GDR_DEVICE_COLD int name##_relaxed(struct gdri_dev *dev, struct gdri_operation *o)       \
	{                                                                                        \
		return name##_as(dev, o, 1);                                                     \
	}                                                                                        \
	GDRI_NOINLINE int name(struct gdri_dev *dev, struct gdri_operation *o)                   \
	{                                                                                        \
		if (GDRI_SHORT_WAYS && gdri_unlikely(gdri_relaxed(dev)))                         \
			return name##_relaxed(dev, o);                                           \
		return name##_as(dev, o, !GDRI_SHORT_WAYS);                                      \
	}

/* Bytes of a flag that an atomic stores: 4 or 8, aligned. 0: fewer, or across words, and what is no flag. As part of an
 * atomic of 4 bytes a shorter one would take the target's own stores beside it away again. */
GDRI_SLOW uint32_t gdri_swap_size(const struct gdri_dev *dev, const struct gdri_operation *o)
{
	uint32_t size = o->op == GDRI_P ? o->size : 8;

	if (gdri_likely(!gdri_relaxed(dev)) || o->op == GDRI_PUT || (o->op != GDRI_P && o->kind == GDRI_AMO_ADD))
		return 0;
	return size < 4 || gdri_heap_offset(dev, gdri_op_word(o)) & (size - 1) ? 0 : size;
}

/* swap: gdri_swap_size. The strict key but for puts: a scalar may be a flag. No loop, no array, as a GPU's thread likes
 * it. */
GDRI_SLOW void gdri_write_word(const struct gdri_dev *dev, const struct gdri_post *p, const struct gdri_operation *o,
			       uint32_t swap, int relaxed)
{
	uint64_t off = gdri_heap_offset(dev, gdri_op_word(o));
	struct gdri_qp own;
	const struct gdri_qp *q = gdri_post_q(p, &own);

	if (gdri_unlikely(swap))
		gdri_write_swap(dev, p, p->index, p->ce | p->fm, off, o->value, swap);
	else if (o->op == GDRI_PUT)
		gdri_wqe_word(q, p->index, p->ce | p->fm, off, gdri_post_rkey(p), o->value, 8);
	else if (o->op == GDRI_P) /* one that no atomic stores waits, where it has to, for all that is before it */
		gdri_wqe_word(q, p->index, p->ce | p->fm | (relaxed && gdri_relaxed(dev) ? GDRI_FM_STRONG : 0), off,
			      q->rkey_sync, o->value, o->size);
	else
		gdri_wqe_signal(dev, q, p->index, p->ce | p->fm, off, o->value, o->kind);
}

/* A scalar; the signal of an operation. */
GDR_DEVICE int gdri_post_value_as(struct gdri_dev *dev, struct gdri_operation *o, int relaxed)
{
	struct gdri_qp *qp = gdri_op_queue(dev, o);
	struct gdri_post p;
	uint32_t swap;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	swap = relaxed ? gdri_swap_size(dev, o) : 0;
	ret = gdri_post_open(dev, qp, 1 + (swap == 8), swap == 8, &p);
	if (gdri_unlikely(ret))
		return ret;
	gdri_write_word(dev, &p, o, swap, relaxed);
	return gdri_post_close(dev, qp, &p);
}

/* ... and a put of 8 bytes. */
GDR_DEVICE int gdri_post_word_as(struct gdri_dev *dev, struct gdri_operation *o, int relaxed)
{
	if (o->op == GDRI_PUT)
		gdri_ld_bytes_8(&o->value, o->local);
	return gdri_post_value_as(dev, o, relaxed);
}

GDRI_BY_CLASS(gdri_post_word)

/* 1, 2, 4 or 8 bytes. */
GDR_DEVICE int gdri_post_store(struct gdri_dev *dev, struct gdri_operation *o)
{
	struct gdri_qp *qp = gdri_op_queue(dev, o);
	uint64_t index;

	if (!GDRI_SHORT_WAYS || gdri_unlikely(gdri_relaxed(dev)) || !gdri_post_try(dev, qp, &index))
		return gdri_op_away_scalar(gdri_post_word, dev, o);
	gdri_wqe_word(qp, index, GDRI_CE_ALWAYS, gdri_heap_offset(dev, o->remote), qp->rkey_sync, o->value, o->size);
	return gdri_sq_publish(dev, qp, index, 1, 0);
}

/* 8 bytes from anywhere; the source may be reused at once. */
GDR_DEVICE int gdri_post_write_8(struct gdri_dev *dev, struct gdri_operation *o)
{
	struct gdri_qp *qp = gdri_op_queue(dev, o);
	uint64_t index, value;

	if (!GDRI_SHORT_WAYS || !gdri_post_try(dev, qp, &index))
		return gdri_op_away_memory(gdri_post_word, dev, o);
	gdri_ld_bytes_8(&value, o->local);
	gdri_wqe_word(qp, index, GDRI_CE_ALWAYS, gdri_heap_offset(dev, o->remote), gdri_put_rkey(dev, qp), value, 8);
	return gdri_sq_publish(dev, qp, index, 1, 0);
}

/* ---- memory ---- */

/* What one message carries of an operation, and its post: its steps share it, none stands on another one's frame. */
struct gdri_message {
	struct gdri_post p; /* first: one address is kept for both */
	struct gdri_qp *qp;
	uint64_t at;	    /* of its first byte */
	uint32_t n;
	uint8_t in_entry; /* data stands in the WQE: a write of at most GDRI_INLINE_MAX bytes, whose source may be
			   * reused at once */
	uint8_t signal;	  /* blocks of the one behind the data, 0: none */
	uint8_t flush;	  /* it is a DUMP behind what was read, which carries nothing */
	struct gdri_local l;
};

GDR_DEVICE uint32_t gdri_message_blocks(const struct gdri_message *m)
{
	return 1u + m->signal;
}

/* What to wait for: a signal is a WQE of its own, see gdri_post_fetching. */
GDR_DEVICE uint64_t gdri_message_target(const struct gdri_message *m)
{
	return m->p.index + 1 + !!m->signal;
}

/* Of the data: the CQE is that of the signal, if there is one. */
GDR_DEVICE uint32_t gdri_message_ce(const struct gdri_message *m)
{
	return (m->signal ? GDRI_CE_ERROR_ONLY : m->p.ce) | m->p.fm;
}

GDRI_SLOW void gdri_message_inline(struct gdri_dev *dev, const struct gdri_operation *o, const struct gdri_message *m)
{
	uint32_t v[7] = {0, 0, 0, 0, 0, 0, 0};
	/* callers have no more; the compiler cannot know */
	uint32_t len = o->len < sizeof(v) ? (uint32_t)o->len : (uint32_t)sizeof(v);
	struct gdri_qp q;

	gdri_ld_bytes(v, o->local, len);
	gdri_wqe_write_inline(gdri_post_q(&m->p, &q), m->p.index, gdri_message_ce(m), gdri_heap_offset(dev, o->remote),
			      gdri_post_rkey(&m->p), v, len);
}

GDRI_SLOW void gdri_message_rdma(struct gdri_dev *dev, const struct gdri_operation *o, const struct gdri_message *m)
{
	int get = o->op == GDRI_GET;
	struct gdri_qp q;

	gdri_wqe_rdma(gdri_post_q(&m->p, &q), m->p.index, get ? GDRI_OP_READ : GDRI_OP_WRITE, gdri_message_ce(m),
		      gdri_heap_offset(dev, o->remote) + m->at, get ? m->p.q.rkey_data : gdri_post_rkey(&m->p),
		      m->l.addr + m->at, m->l.lkey, m->n);
}

GDRI_SLOW void gdri_message_signal(struct gdri_dev *dev, const struct gdri_operation *o, const struct gdri_message *m,
				   int relaxed)
{
	uint64_t off = gdri_heap_offset(dev, o->sig);
	struct gdri_qp q;

	if (relaxed && gdri_unlikely(m->signal == 2))
		gdri_write_swap(dev, &m->p, m->p.index + 1, m->p.ce, off, o->value, 8);
	else
		gdri_wqe_signal(dev, gdri_post_q(&m->p, &q), m->p.index + 1, m->p.ce, off, o->value, o->kind);
}

enum gdri_message_step {
	GDRI_MESSAGE_OVER,
	GDRI_MESSAGE_OPEN,
	GDRI_MESSAGE_ROOM, /* its blocks have to be waited for */
	GDRI_MESSAGE_WRITE,
	GDRI_MESSAGE_WAIT, /* all are posted */
};

/* The end of a step: what comes next, or an error. Who reads waits until it is here and visible; who writes until the
 * source may be reused. */
GDR_DEVICE int gdri_message_next(const struct gdri_operation *o, struct gdri_message *m)
{
	m->at += m->n;
	if (m->at < o->len)
		return GDRI_MESSAGE_OPEN;
	return o->nbi || m->in_entry ? GDRI_MESSAGE_OVER : GDRI_MESSAGE_WAIT;
}

GDRI_SLOW int gdri_message_first(struct gdri_dev *dev, const struct gdri_operation *o, struct gdri_message *m)
{
	int ret = 0;

	GDRI_DEV_CONSTANT(dev);
	m->at = m->flush = 0;
	m->in_entry = o->op != GDRI_GET && o->len <= GDRI_INLINE_MAX;
	if (!m->in_entry)
		ret = gdri_local(dev, o->local, o->len, &m->l, o->op, o->pe);
	return ret ? ret : GDRI_MESSAGE_OPEN;
}

GDR_DEVICE void gdri_message_shape(struct gdri_dev *dev, const struct gdri_operation *o, struct gdri_message *m,
				   int relaxed)
{
	uint64_t left = o->len - m->at;

	m->n = left < GDRI_MSG_MAX ? (uint32_t)left : GDRI_MSG_MAX;
	m->signal = o->op == GDRI_PUT_SIGNAL && left && left <= GDRI_MSG_MAX;
	if (relaxed && m->signal && gdri_swap_size(dev, o) == 8)
		m->signal = 2;
}

/* Data and signal on one queue, which executes them in order: one reservation, one doorbell, one CQE. */
GDRI_SLOW int gdri_message_open(struct gdri_dev *dev, const struct gdri_operation *o, struct gdri_message *m,
				int relaxed)
{
	int ret;

	GDRI_DEV_CONSTANT(dev);
	gdri_message_shape(dev, o, m, relaxed);
	m->qp = gdri_op_queue(dev, o);
	ret = gdri_post_try_open(dev, m->qp, gdri_message_blocks(m), relaxed && m->signal == 2, &m->p);
	return ret > 0 ? GDRI_MESSAGE_ROOM : ret ? ret : GDRI_MESSAGE_WRITE;
}

GDRI_SLOW int gdri_message_write(struct gdri_dev *dev, const struct gdri_operation *o, struct gdri_message *m,
				 int relaxed)
{
	int ret;

	GDRI_DEV_CONSTANT(dev);
	if (gdri_unlikely(m->flush))
		gdri_write_dump(dev, &m->p);
	else if (m->in_entry)
		gdri_message_inline(dev, o, m);
	else
		gdri_message_rdma(dev, o, m);
	if (m->signal)
		gdri_message_signal(dev, o, m, relaxed);
	ret = gdri_post_close(dev, m->qp, &m->p);
	return gdri_unlikely(ret) ? ret : gdri_message_next(o, m);
}

/* Behind the wait. */
GDRI_SLOW int gdri_message_waited(struct gdri_dev *dev, const struct gdri_operation *o, struct gdri_message *m)
{
	GDRI_DEV_CONSTANT(dev);
	if (o->op != GDRI_GET)
		return GDRI_MESSAGE_OVER;
	if (!m->flush && gdri_unlikely(gdri_k(dev, flags) & GDRI_DEV_READ_FLUSH)) {
		m->flush = 1;
		return GDRI_MESSAGE_OPEN;
	}
	if (gdri_unlikely(m->l.lkey.be != dev->lkey.be))
		gdri_fence_sys(); /* a buffer, perhaps the host's, beyond the scope of F4 */
	return GDRI_MESSAGE_OVER;
}

GDR_DEVICE int gdri_message_does(struct gdri_dev *dev, const struct gdri_operation *o, struct gdri_message *m, int step,
				 int relaxed)
{
	int ret;

	switch (step) {
	case GDRI_MESSAGE_OPEN:
		return gdri_message_open(dev, o, m, relaxed);
	case GDRI_MESSAGE_ROOM:
		ret = gdri_post_room(dev, m->qp, gdri_message_blocks(m), &m->p);
		return ret ? ret : GDRI_MESSAGE_WRITE;
	case GDRI_MESSAGE_WRITE:
		return gdri_message_write(dev, o, m, relaxed);
	default:
		ret = gdri_qp_wait(dev, m->qp, gdri_message_target(m), o->op);
		return ret ? ret : gdri_message_waited(dev, o, m);
	}
}

/* Put, get and put with signal, of any length but 0. */
GDR_DEVICE int gdri_post_messages_as(struct gdri_dev *dev, struct gdri_operation *o, int relaxed)
{
	struct gdri_message m;
	int step;

	GDRI_DEV_CONSTANT(dev);
	step = gdri_message_first(dev, o, &m);
	GDRI_NOT_UNROLLED
	while (step > GDRI_MESSAGE_OVER)
		step = gdri_message_does(dev, o, &m, step, relaxed);
	return step;
}

GDRI_BY_CLASS(gdri_post_messages)

GDR_DEVICE int gdri_post_is_word(const struct gdri_operation *o)
{
	return !o->len || (o->len == 8 && o->op == GDRI_PUT);
}

/* ... and of none. */
GDR_DEVICE int gdri_post_memory(struct gdri_dev *dev, struct gdri_operation *o)
{
	if (!o->len && o->op != GDRI_PUT_SIGNAL)
		return 0;
	return gdri_post_is_word(o) ? gdri_post_word(dev, o) : gdri_post_messages(dev, o);
}

/* From the heap, in one message, which is not waited for. */
GDR_DEVICE int gdri_post_write_nbi(struct gdri_dev *dev, struct gdri_operation *o, uint64_t src_off)
{
	struct gdri_qp *qp = gdri_op_queue(dev, o);
	uint64_t index;

	if (!GDRI_SHORT_WAYS || !gdri_post_try(dev, qp, &index))
		return gdri_op_away_memory(gdri_post_messages, dev, o);
	gdri_wqe_rdma(qp, index, GDRI_OP_WRITE, GDRI_CE_ALWAYS, gdri_heap_offset(dev, o->remote),
		      gdri_put_rkey(dev, qp), src_off, dev->lkey, (uint32_t)o->len);
	return gdri_sq_publish(dev, qp, index, 1, 0);
}

/* gdri_post_memory of a put, with its short ways. */
GDR_DEVICE int gdri_post_write(struct gdri_dev *dev, struct gdri_operation *o)
{
	uint64_t src_off = gdri_heap_offset(dev, o->local);

	if (o->len == 8)
		return gdri_post_write_8(dev, o);
	if (gdri_likely(o->len > GDRI_INLINE_MAX && o->nbi && src_off < dev->heap_size && o->len <= GDRI_MSG_MAX))
		return gdri_post_write_nbi(dev, o, src_off);
	return o->len ? gdri_op_away_memory(gdri_post_messages, dev, o) : 0;
}

#endif
