/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place where the path to a PE is chosen: mapped heap (p2p.h) or queue
 * (post.h). Five primitives: write, read, atomic, signal, complete. */
#ifndef GDRI_XFER_H
#define GDRI_XFER_H

#include <gdr/impl/path/ctx.h>
#include <gdr/impl/path/p2p.h>
#include <gdr/impl/queue/post.h>
#include <gdr/impl/wait/watch.h>

/* Mapped address of the symmetric object, or NULL: by queue. */
GDR_DEVICE uint8_t *gdri_mapped(const struct gdri_dev *dev, const void *ptr, int pe)
{
	uint8_t *base = gdri_peer_base(dev, pe);

	return base ? gdri_mapped_at(dev, base, ptr, pe) : 0;
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

/* By queue, whose time hides the question whether there is such a PE: its number found no mapped heap. */
#define GDRI_OF_PE(dev, op, pe, call)                                                              \
	(gdri_likely((uint32_t)(pe) < (uint32_t)gdri_k(dev, n_pes)) ? (call) : gdri_no_pe(dev, op, pe))

/* An operation; none for a PE that is lost: it would fail when a whole time-out of the NIC has passed. */
#define GDRI_BY_QUEUE(dev, op, pe, call)                                                           \
	GDRI_OF_PE(dev, op, pe, gdri_peer_status(dev, pe) ? -GDR_EPEERLOST : (call))

/* Where one PE of the job is reached by queue, all atomics go that way: loads and
 * stores of a processor are not atomic to those of a NIC. */
GDR_DEVICE uint8_t *gdri_mapped_atomic(const struct gdri_dev *dev, const void *ptr, int pe)
{
	return gdri_unlikely(gdri_k(dev, flags) & GDRI_DEV_NIC_ATOMICS) ? 0 : gdri_mapped(dev, ptr, pe);
}

/* ---- write ---- */

/* Warp or block: all copy, or the first thread posts. */
GDRI_NOINLINE int gdri_xfer_write_scope(struct gdri_dev *dev, int scope, int nbi, void *dst,
					const void *src, size_t len, int pe, uint32_t q)
{
	uint8_t *p = gdri_mapped(dev, dst, pe);
	int ret = 0;

	if (p) {
		gdri_p2p_copy_any(scope, p, src, len);
		return gdri_peer_status(dev, pe);
	}
	gdri_scope_sync(scope);
	if (!gdri_scope_rank(scope))
		ret = GDRI_BY_QUEUE(dev, GDRI_PUT, pe, gdri_post_write(dev, nbi, gdri_heap_offset(dev, dst), src,
								       len, pe, q));
	return gdri_scope_bcast(scope, ret);
}

GDR_DEVICE int gdri_xfer_write(struct gdri_dev *dev, int scope, int nbi, void *dst, const void *src,
			       size_t len, int pe, uint32_t q)
{
	uint8_t *p;

	if (scope != GDRI_THREAD)
		return gdri_xfer_write_scope(dev, scope, nbi, dst, src, len, pe, q);
	p = gdri_mapped(dev, dst, pe);
	if (!p)
		return GDRI_BY_QUEUE(dev, GDRI_PUT, pe, gdri_post_write(dev, nbi, gdri_heap_offset(dev, dst), src,
									len, pe, q));
	gdri_p2p_copy_alone(p, src, len);
	return gdri_peer_status(dev, pe);
}

/* By way of shared memory of the scope's, where the path can. */
GDRI_NOINLINE int gdri_xfer_write_bulk(struct gdri_dev *dev, int scope, int nbi, void *dst, const void *src, size_t len,
				       void *stage, size_t bytes, int pe, uint32_t q)
{
	uint8_t *p = gdri_mapped(dev, dst, pe);

	if (p && gdri_p2p_by_engine(scope, 0, p, src, len, stage, bytes))
		return gdri_peer_status(dev, pe);
	return gdri_xfer_write(dev, scope, nbi, dst, src, len, pe, q);
}

GDR_DEVICE int gdri_xfer_store(struct gdri_dev *dev, void *dst, uint64_t value, uint32_t size,
			       int pe, uint32_t q)
{
	uint8_t *p = gdri_mapped(dev, dst, pe);

	if (!p)
		return GDRI_BY_QUEUE(dev, GDRI_P, pe, gdri_post_store(dev, gdri_heap_offset(dev, dst), value, size,
								      pe, q));
	gdri_p2p_store(p, value, size);
	return gdri_peer_status(dev, pe);
}

/* ---- read ---- */

GDRI_NOINLINE int gdri_xfer_read_scope(struct gdri_dev *dev, int scope, int nbi, void *dst,
				       const void *src, size_t len, int pe, uint32_t q)
{
	uint8_t *p = gdri_mapped(dev, src, pe);
	int ret = 0;

	if (p) {
		gdri_p2p_copy_any(scope, dst, p, len);
		return gdri_peer_status(dev, pe);
	}
	gdri_scope_sync(scope);
	if (!gdri_scope_rank(scope))
		ret = GDRI_BY_QUEUE(dev, GDRI_GET, pe, gdri_post_read(dev, nbi, dst, gdri_heap_offset(dev, src),
								      len, pe, q));
	return gdri_scope_bcast(scope, ret);
}

GDR_DEVICE int gdri_xfer_read(struct gdri_dev *dev, int scope, int nbi, void *dst, const void *src,
			      size_t len, int pe, uint32_t q)
{
	uint8_t *p;

	if (scope != GDRI_THREAD)
		return gdri_xfer_read_scope(dev, scope, nbi, dst, src, len, pe, q);
	p = gdri_mapped(dev, src, pe);
	if (!p)
		return GDRI_BY_QUEUE(dev, GDRI_GET, pe, gdri_post_read(dev, nbi, dst, gdri_heap_offset(dev, src),
								       len, pe, q));
	gdri_p2p_copy_alone(dst, p, len);
	return gdri_peer_status(dev, pe);
}

GDRI_NOINLINE int gdri_xfer_read_bulk(struct gdri_dev *dev, int scope, int nbi, void *dst, const void *src, size_t len,
				      void *stage, size_t bytes, int pe, uint32_t q)
{
	uint8_t *p = gdri_mapped(dev, src, pe);

	if (p && gdri_p2p_by_engine(scope, 1, dst, p, len, stage, bytes))
		return gdri_peer_status(dev, pe);
	return gdri_xfer_read(dev, scope, nbi, dst, src, len, pe, q);
}

GDR_DEVICE int gdri_xfer_load(struct gdri_dev *dev, const void *src, uint32_t size, int pe, uint32_t q,
			      uint64_t *value)
{
	uint8_t *p = gdri_mapped(dev, src, pe);

	if (!p)
		return GDRI_BY_QUEUE(dev, GDRI_G, pe, gdri_post_load(dev, gdri_heap_offset(dev, src), size, pe, q,
								     value));
	*value = gdri_p2p_load(p, size);
	return gdri_peer_status(dev, pe);
}

/* ---- atomic ---- */

GDR_DEVICE int gdri_xfer_atomic(struct gdri_dev *dev, int kind, uint32_t size, void *dst,
				uint64_t a, uint64_t b, int pe, uint32_t q)
{
	uint8_t *p = gdri_mapped_atomic(dev, dst, pe);

	if (!p)
		return GDRI_BY_QUEUE(dev, GDRI_AMO, pe, gdri_post_atomic(dev, kind, size, gdri_heap_offset(dev, dst),
									 a, b, pe, q));
	gdri_p2p_atomic(kind, size, p, a, b);
	return gdri_peer_status(dev, pe);
}

GDR_DEVICE int gdri_xfer_fetch_atomic(struct gdri_dev *dev, int kind, uint32_t size, void *dst,
				      uint64_t a, uint64_t b, int pe, uint32_t q, uint64_t *old)
{
	uint8_t *p = gdri_mapped_atomic(dev, dst, pe);

	if (!p)
		return GDRI_BY_QUEUE(dev, GDRI_FETCH_AMO, pe, gdri_post_fetch_atomic(dev, kind, size,
					      gdri_heap_offset(dev, dst), a, b, pe, q, old));
	*old = gdri_p2p_atomic(kind, size, p, a, b);
	return gdri_peer_status(dev, pe);
}

/* ---- signal ---- */

/* ADD is an atomic; SET is a store, which needs no such care. */
GDR_DEVICE uint8_t *gdri_mapped_signal(const struct gdri_dev *dev, const void *sig, int add, int pe)
{
	return add ? gdri_mapped_atomic(dev, sig, pe) : gdri_mapped(dev, sig, pe);
}

/* Ordered as gdri_p2p_signal_op. */
GDR_DEVICE int gdri_xfer_signal_op(struct gdri_dev *dev, uint64_t *sig, uint64_t value, int add,
				   int pe, uint32_t q)
{
	uint8_t *p = gdri_mapped_signal(dev, sig, add, pe);

	if (!p)
		return GDRI_BY_QUEUE(dev, GDRI_SIGNAL, pe, gdri_post_signal(dev, gdri_heap_offset(dev, sig), value,
									    add, pe, q));
	gdri_p2p_signal_op((uint64_t *)p, value, add);
	return gdri_peer_status(dev, pe);
}

/* Behind the data that the caller, or its scope, wrote before. */
GDR_DEVICE int gdri_xfer_signal(struct gdri_dev *dev, uint64_t *sig, uint64_t value, int add,
				int pe, uint32_t q)
{
	uint8_t *p = gdri_mapped_signal(dev, sig, add, pe);

	/* The doorbell's F1 puts earlier stores to mapped memory before it. */
	if (!p)
		return GDRI_BY_QUEUE(dev, GDRI_SIGNAL, pe, gdri_post_signal(dev, gdri_heap_offset(dev, sig), value,
									    add, pe, q));
	gdri_p2p_signal((uint64_t *)p, value, add);
	return gdri_peer_status(dev, pe);
}

GDRI_NOINLINE int gdri_xfer_write_signal(struct gdri_dev *dev, int scope, int nbi, void *dst,
				      const void *src, size_t len, uint64_t *sig, uint64_t value,
				      int add, int pe, uint32_t q)
{
	uint8_t *p = gdri_mapped(dev, dst, pe);
	int ret = 0;

	if (p)
		gdri_p2p_copy_any(scope, p, src, len);
	else
		gdri_scope_sync(scope);
	if (!gdri_scope_rank(scope)) {
		if (p)
			ret = gdri_xfer_signal(dev, sig, value, add, pe, q);
		else
			ret = GDRI_BY_QUEUE(dev, GDRI_PUT_SIGNAL, pe, gdri_post_write_signal(dev, nbi,
						gdri_heap_offset(dev, dst), src, len,
						gdri_heap_offset(dev, sig), value, add, pe, q));
	}
	return gdri_scope_bcast(scope, ret);
}

/* ---- complete ---- */

/* All that was published on the queue before now. */
GDR_DEVICE int gdri_qp_quiet(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t op)
{
	uint64_t ready = gdri_ld_acquire_gpu_u64(&qp->ready);
	uint64_t target = (ready >> 1) - (ready & 1u);
	int ret = gdri_qp_test(qp, target);

	if (ret <= 0)
		ret = gdri_qp_wait(dev, qp, target, op);
	else
		ret = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&qp->err);
	if (!ret && gdri_unlikely(gdri_k(dev, flags) & GDRI_DEV_READ_FLUSH))
		ret = gdri_read_flush(dev, qp, op);
	return ret;
}

/* Those of the queues first..end-1 that were ever used, of 64 from `at` on. */
GDR_DEVICE uint64_t gdri_used_of(const struct gdri_dev *dev, uint64_t at, uint64_t first, uint64_t end)
{
	uint64_t map = gdri_ld_relaxed_gpu_u64(&dev->used[at >> 6]);

	if (first > at)
		map &= ~0ull << (first - at);
	return end - at < 64 ? map & ((1ull << (end - at)) - 1) : map;
}

/* Queues first..first+n-1 that were ever used. Waits for all, returns the first error;
 * goes on after it unless every further wait would take its time too. */
GDRI_NOINLINE int gdri_quiet_queues(struct gdri_dev *dev, uint64_t first, uint64_t n, uint32_t op)
{
	uint64_t at, end = first + n, map;
	int ret, status = 0;

	for (at = first & ~63ull; at < end; at += 64) {
		for (map = gdri_used_of(dev, at, first, end); map; map &= map - 1) {
			ret = gdri_qp_quiet(dev, &dev->qps[at + gdri_ffs_u64(map)], op);
			if (ret && !status)
				status = ret;
			if (ret == -GDR_ETIMEOUT || ret == -GDR_EPEERLOST || ret == -GDR_EABORTED)
				return status;
		}
	}
	return status;
}

/* Everything that this PE's threads posted before: to one PE, or (pe -1) to all. */
GDR_DEVICE int gdri_xfer_complete(struct gdri_dev *dev, int pe, uint32_t op)
{
	gdri_fence_nic(); /* stores to mapped peers */
	if (!gdri_k(dev, n_slots))
		return 0;
	if (pe >= 0)
		return GDRI_OF_PE(dev, op, pe, gdri_quiet_queues(dev, (uint64_t)pe * gdri_k(dev, n_slots),
							 gdri_k(dev, n_slots), op));
	return gdri_quiet_queues(dev, 0, (uint64_t)gdri_k(dev, n_pes) * gdri_k(dev, n_slots), op);
}

/* gdri_xfer_complete on a context that has queues of its own. */
GDR_DEVICE int gdri_xfer_complete_ctx(struct gdri_dev *dev, const struct gdri_ctx *c, int pe,
				      uint32_t op)
{
	uint64_t n_pes = (uint64_t)gdri_k(dev, n_pes), i;
	int ret, status = 0;

	gdri_fence_nic(); /* stores to mapped peers */
	if (pe < 0)
		return gdri_quiet_queues(dev, c->first, c->n * n_pes, op);
	for (i = 0; i < c->n; i++) {
		ret = gdri_quiet_queues(dev, c->first + i * n_pes + (uint64_t)pe, 1, op);
		if (ret && !status)
			status = ret;
	}
	return status;
}

#endif
