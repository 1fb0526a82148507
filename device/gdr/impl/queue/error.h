/* SPDX-License-Identifier: BSD-3-Clause */
/* How an error completion becomes an error record, and the error of its queue. */
#ifndef GDRI_QUEUE_ERROR_H
#define GDRI_QUEUE_ERROR_H

#include <gdr/impl/queue/wqe.h>
#include <gdr/impl/wait/error.h>

/* Syndromes of the PRM, "Completion With Error Syndrome". */
GDR_DEVICE_COLD int gdri_syndrome_status(uint32_t syndrome)
{
	switch (syndrome) {
	case 0x01:
		return -GDR_ELOCALLEN;
	case 0x02:
		return -GDR_ELOCALQP;
	case 0x04:
		return -GDR_ELOCALPROT;
	case 0x05:
		return -GDR_EFLUSHED;
	case 0x06:
		return -GDR_EBIND;
	case 0x10:
		return -GDR_EBADRESP;
	case 0x11:
		return -GDR_ELOCALACCESS;
	case 0x12:
		return -GDR_EREMOTEINV;
	case 0x13:
		return -GDR_EREMOTEACCESS;
	case 0x14:
		return -GDR_EREMOTEOP;
	case 0x15:
		return -GDR_ERETRY;
	case 0x16:
		return -GDR_ERNR;
	case 0x22:
		return -GDR_EREMOTEABORT;
	default:
		return -GDR_ECQE;
	}
}

/* Whether err, a queue's, says that the peer no longer answers. A flush does not: any error may be its cause. */
GDR_DEVICE int gdri_qp_lost_peer(int err)
{
	return err == -GDR_ERETRY || err == -GDR_ERNR;
}

GDR_DEVICE uint32_t gdri_ld_be32(const uint8_t *p)
{
	return gdri_bswap32(*(const uint32_t *)p);
}

GDR_DEVICE uint64_t gdri_ld_be64(const uint8_t *p)
{
	return gdri_bswap64(*(const uint64_t *)p);
}

GDR_DEVICE uint32_t gdri_opcode_op(uint32_t opcode)
{
	switch (opcode) {
	case GDRI_OP_WRITE:
		return GDRI_PUT;
	case GDRI_OP_READ:
		return GDRI_GET;
	case GDRI_OP_ATOMIC_CS:
	case GDRI_OP_ATOMIC_FA:
	case GDRI_OP_MASKED_CS:
	case GDRI_OP_MASKED_FA:
		return GDRI_AMO;
	default:
		return GDRI_NONE;
	}
}

/* What the WQE at `index` asked for. It still stands in the ring: blocks from the
 * failed one on are never complete, so nobody may reserve them again. */
GDR_DEVICE void gdri_error_wqe(const struct gdri_qp *qp, uint32_t index, struct gdri_error *e)
{
	const uint8_t *w = gdri_sq_block(qp, index), *data = w + 32;
	uint32_t ds = w[7] & 0x3fu;

	e->wqe_opcode = w[3];
	e->op = gdri_opcode_op(w[3]);
	if (e->wqe_opcode == GDRI_OP_NOP || e->wqe_opcode == GDRI_OP_DUMP)
		return;
	e->addr = gdri_ld_be64(w + 16);
	if (e->op == GDRI_GET && e->addr == offsetof(struct gdri_ctl, waits))
		e->op = GDRI_BLAME; /* the user reads no control area */
	if (e->op == GDRI_AMO) {
		data = ds == 5 ? gdri_sq_block(qp, (uint64_t)index + 1) : w + 48;
		e->reason = w[0];
		memcpy(e->file, w + 32, 32); /* as many as there can be */
	}
	e->len = gdri_ld_be32(data);
	if (e->len & GDRI_INLINE_BIT)
		e->len &= ~(uint64_t)GDRI_INLINE_BIT;
	else
		e->local = gdri_ld_be64(data + 8);
}

/* A queue to oneself is flushed by its other end, which refuses, before the refusal has come back: the cause stands in
 * the entry. */
GDR_DEVICE int gdri_flush_cause(const struct gdri_dev *dev, const struct gdri_qp *qp, const struct gdri_error *e)
{
	if (qp->peer != dev->pe || !qp->cq_mask || e->op == GDRI_NONE)
		return -GDR_EFLUSHED;
	if (e->op == GDRI_AMO && (e->addr & (e->len - 1)))
		return -GDR_EREMOTEINV;
	return e->addr <= dev->heap_size && e->len <= dev->heap_size - e->addr ? -GDR_EFLUSHED : -GDR_EREMOTEACCESS;
}

/* What an entry of an error says, in one value: index << 16 | syndrome << 8 | vendor. Blocks below index are complete
 * when it is the cause; its low 16 bits are the entry's; as a signed number it may be below 0. */
GDR_DEVICE uint64_t gdri_cqe_error_index(uint64_t said)
{
	return (uint64_t)((int64_t)said >> 16);
}

GDR_DEVICE uint32_t gdri_cqe_error_syndrome(uint64_t said)
{
	return (uint32_t)said >> 8 & 0xffu;
}

/* Reads the fields of an error CQE that the NIC may be overwriting with a later
 * flush: the tail read before the fields must equal the tail read behind them. rsvd
 * first, see gdri_poll_one. */
GDRI_FRAMELESS uint64_t gdri_cqe_read_error(const struct gdri_qp *qp)
{
	/* alone: an entry of an error stays, cq_ci with it */
	const struct gdri_cqe *cqe = &qp->cq[gdri_ld_relaxed_gpu_u64(&qp->cq_ci) & qp->cq_mask];
	uint32_t tries = 0, tail, word;
	uint64_t r;

	/* the caller's look at the tail before rsvd, which else may be one of before the failed block was reserved;
	 * pairs with F1 of who posted that, through the NIC */
	gdri_fence_acquire_sys();
	do { /* acquires: each load before the next; the tails pair with the NIC's order of a CQE */
		r = gdri_ld_acquire_gpu_u64(&qp->rsvd);
		tail = gdri_ld_acquire_sys_u32(&cqe->tail);
		word = gdri_ld_acquire_sys_u32((const uint32_t *)((const uint8_t *)cqe + 52));
	} while (gdri_ld_relaxed_sys_u32(&cqe->tail) != tail && ++tries < 8);
	return (r - ((r - gdri_bswap16((uint16_t)tail)) & 0xffffu)) << 16 | (uint64_t)(word >> 16);
}

/* The record, if one is free (e), says what the entry and its WQE say. status: that of the syndrome. Returns the
 * queue's. */
GDR_DEVICE_COLD int gdri_error_entry(const struct gdri_dev *dev, const struct gdri_qp *qp, uint64_t said,
				     struct gdri_error *e, int status)
{
	uint32_t index = (uint32_t)gdri_cqe_error_index(said), syndrome = gdri_cqe_error_syndrome(said);

	GDRI_DEV_CONSTANT(dev);
	if (!e)
		return status;
	e->peer = qp->peer;
	e->qpn = qp->qpn;
	e->wqe_index = index & 0xffffu;
	e->syndrome = (uint8_t)syndrome;
	e->vendor_syndrome = (uint8_t)said;
	e->is_cause = qp->cq_mask || syndrome != GDRI_SYND_FLUSH;
	gdri_error_wqe(qp, index, e);
	if (syndrome == GDRI_SYND_FLUSH)
		e->status = status = gdri_flush_cause(dev, qp, e);
	return status;
}

/* Whether an entry begins at the block, which is published and not complete: it has its own number there, and the
 * queue's. The second block of an atomic has a length and a key. */
GDR_DEVICE int gdri_wqe_begins(const struct gdri_qp *qp, uint64_t at)
{
	const uint8_t *w = gdri_sq_block(qp, at);

	return (gdri_ld_be32(w) >> 8 & 0xffffu) == (at & 0xffffu) && gdri_ld_be32(w + 4) >> 8 == qp->qpn;
}

/* Whether the entries from block `at` on, which are published and not complete, have nothing but words of the library,
 * and its READs of waits. An entry begins at `at`. */
GDR_DEVICE int gdri_qp_needless(const struct gdri_dev *dev, const struct gdri_qp *qp, uint64_t at, uint64_t target)
{
	uint64_t to;
	const uint8_t *w;

	GDRI_NOT_UNROLLED
	for (; at < target; at += ((w[7] & 0x3fu) + 3) / 4) {
		w = gdri_sq_block(qp, at);
		to = gdri_ld_be64(w + 16);
		if (!gdri_wqe_begins(qp, at) || to >= dev->own_size ||
		    (w[3] == GDRI_OP_READ && to != offsetof(struct gdri_ctl, waits)))
			return 0;
	}
	return 1;
}

/* Whether nobody needs what failed, and what is flushed behind it: words of the library for a PE that has called
 * gdr_finalize, which may be gone. */
GDR_DEVICE_COLD int gdri_cqe_needless(const struct gdri_dev *dev, const struct gdri_qp *qp, uint64_t said)
{
	GDRI_DEV_CONSTANT(dev);
	/* below 0: no block of the queue is the cause */
	if (gdri_likely(!gdri_has_left(dev, qp->peer)) || (int64_t)gdri_cqe_error_index(said) < 0)
		return 0;
	/* the blocks below it were written before: pairs with R1 of who published them (A1) */
	return gdri_qp_needless(dev, qp, gdri_cqe_error_index(said), gdri_ld_acquire_gpu_u64(&qp->ready) >> 1);
}

/* It is complete; the user is told, but of what a wait posted, which says itself how it ended. */
GDR_DEVICE_COLD void gdri_cqe_tell(struct gdri_dev *dev, struct gdri_qp *qp, struct gdri_error *e, int status)
{
	int told = !e || e->op != GDRI_BLAME;

	GDRI_DEV_CONSTANT(dev);
	if (e) {
		gdri_st_relaxed_gpu_u32(&qp->err_rec, 1 + (uint32_t)(e - dev->errors));
		gdri_error_complete(e);
	}
	if (told) {
		gdri_note_failure_now(dev, status);
		gdri_latch_now(dev, status);
	}
}

/* RC completes in order: all before the cause is done. Says nothing for a flush that hides the cause. */
GDR_DEVICE void gdri_cqe_done(struct gdri_qp *qp, uint64_t said)
{
	uint64_t index = gdri_cqe_error_index(said);

	if ((gdri_cqe_error_syndrome(said) == GDRI_SYND_FLUSH && !qp->cq_mask) || (int64_t)index <= 0)
		return;
	gdri_fence_sys();
	gdri_max_u64(&qp->done, index);
}

GDR_DEVICE_COLD void gdri_cqe_close(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t said, int status)
{
	GDRI_DEV_CONSTANT(dev);
	if (gdri_qp_lost_peer(status) && !gdri_has_left(dev, qp->peer))
		gdri_lost_found_now(dev, qp->peer);
	gdri_cqe_done(qp, said);
	/* release: whoever acquires err sees done and the record (gdri_qp_wait) */
	gdri_st_release_gpu_u32((uint32_t *)&qp->err, (uint32_t)status);
	gdri_st_relaxed_gpu_u64(&qp->room, GDRI_ROOM_NONE);
}

/* What the entry says, if the caller is the one who latches the error; what it finds is published by err,
 * gdri_cqe_close. Else 0, which is no syndrome. */
GDR_DEVICE_COLD uint64_t gdri_cqe_claim(struct gdri_qp *qp)
{
	uint64_t said;
	uint32_t none = 0;

	if (gdri_ld_relaxed_gpu_u32(&qp->err_rec))
		return 0;
	said = gdri_cqe_read_error(qp);
	return gdri_cas_u32(&qp->err_rec, &none, GDRI_MAX_ERRORS + 1) ? said : 0;
}

/* Latches the first error of a queue: record first, then err, so that whoever
 * is told of the error finds the record. One thread wins err_rec; the others see
 * err a moment later. */
GDR_DEVICE_COLD void gdri_cqe_latch(struct gdri_dev *dev, struct gdri_qp *qp)
{
	uint64_t said = gdri_cqe_claim(qp);
	struct gdri_error *e;
	int status;

	GDRI_DEV_CONSTANT(dev);
	if (!said)
		return;
	status = gdri_syndrome_status(gdri_cqe_error_syndrome(said));
	e = gdri_error_take(dev, GDRI_ERROR_CQE, status);
	status = gdri_error_entry(dev, qp, said, e, status);
	if (gdri_likely(!gdri_cqe_needless(dev, qp, said)))
		gdri_cqe_tell(dev, qp, e, status);
	else if (e)
		gdri_error_void(dev, e);
	gdri_cqe_close(dev, qp, said, status);
}

#endif
