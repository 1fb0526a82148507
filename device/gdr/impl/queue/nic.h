/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol: reserve blocks (reserve.h), publish them in order with one doorbell (publish.h), learn of
 * completions (complete.h), wait for others (wait.h); here: posting, by the lanes that happen to be together. The
 * arguments why it is right are in docs/memory-model-internals.md, under the names used here. No locks: a thread that
 * holds blocks does bounded work until they are published. */
#ifndef GDRI_NIC_DEV_H
#define GDRI_NIC_DEV_H

#include <gdr/impl/path/op.h>
#include <gdr/impl/queue/wait.h>

/* Constants of the queue that entries need. */
struct gdri_entries {
	uint8_t *sq;
	uint32_t qpn_shifted, depth;
	gdri_be32_t rkey_data, rkey_sync;
};

/* Under CUDA its steps are out of line and share it in memory: none keeps the others' values in registers. */
struct gdri_post {
	uint64_t index; /* caller's first block; the leader's is the group's first */
	struct gdri_entries q;
	uint32_t mask;	 /* lanes of the group */
	uint16_t n;	 /* group's blocks */
	uint8_t ce;	 /* completion mode of the caller's last WQE */
	uint8_t fm;	 /* fence mode of the caller's first */
	uint8_t leader;	 /* the caller publishes */
	uint8_t last2;
	uint8_t strict; /* there are fences to be kept: see gdri_put_rkey */
	uint8_t ahead;	/* of the leader, by what it read before it reserved; 0: see gdri_sq_publish_first */
};

/* Known at compile time under CUDA, where calls by lone threads are not worth a path. */
GDR_DEVICE int gdri_alone(void)
{
#ifdef __CUDACC__
	return 0;
#else
	return gdr_block_size() == 1;
#endif
}

/* The lanes of mask whose rank in it is in the caller's run of `per`. */
GDR_DEVICE_COLD uint32_t gdri_group_part(uint32_t mask, uint32_t per)
{
	uint32_t mine = gdri_popc(mask & gdri_lanes_below()) / per, part = 0, rank = 0, m;

	for (m = mask; m; m &= m - 1, rank++)
		if (rank / per == mine)
			part |= m & -m;
	return part;
}

GDR_DEVICE int gdri_post_is_single(uint32_t mask)
{
	return gdri_likely(!(mask & (mask - 1)));
}

/* A GPU's thread would ask for each of them when it needs it, behind a fence that has emptied its cache. */
GDR_DEVICE void gdri_entries_set(struct gdri_entries *q, const struct gdri_qp *qp)
{
	uint8_t *sq = qp->sq; /* all before the first store, which might change them as the compiler sees it */
	uint32_t qpn_shifted = qp->qpn_shifted, depth = qp->depth;
	gdri_be32_t rkey_data = qp->rkey_data, rkey_sync = qp->rkey_sync;

	q->sq = sq;
	q->qpn_shifted = qpn_shifted;
	q->depth = depth;
	q->rkey_data = rkey_data;
	q->rkey_sync = rkey_sync;
}

/* As wqe.h takes them; q has room for that. */
GDR_DEVICE const struct gdri_qp *gdri_post_q(const struct gdri_post *p, struct gdri_qp *q)
{
	q->sq = p->q.sq;
	q->qpn_shifted = p->q.qpn_shifted;
	q->depth = p->q.depth;
	q->rkey_data = p->q.rkey_data;
	q->rkey_sync = p->q.rkey_sync;
	return q;
}

/* Lanes with equal keys post together: one queue, one shape, one way. way: 0 the short way, else 1 and whether a fence
 * is due. Lanes may come from different places. */
GDR_DEVICE uint64_t gdri_post_key(const struct gdri_qp *qp, uint32_t blocks, uint32_t last2, uint32_t way)
{
	return (uint64_t)(uintptr_t)qp + way * 32 + blocks * 2 + last2;
}

/* What the leader found, for all of the group. */
GDR_DEVICE uint64_t gdri_post_share(uint32_t mask, uint64_t base)
{
	if (gdri_post_is_single(mask))
		return base;
	base = gdr_shfl_u64(mask, base, gdri_ffs_u32(mask));
	gdr_sync_warp(mask); /* a shuffle orders no memory: the leader's look at limit before our WQEs */
	return base;
}

/* The caller's part of the group's blocks, but for where they begin: how far behind the group's first its own stand.
 * due: fence mode of the group's first. */
GDR_DEVICE uint32_t gdri_post_shape(struct gdri_post *p, uint32_t mask, uint32_t blocks, uint32_t last2, uint32_t due)
{
	uint32_t count = gdri_popc(mask), rank = gdri_popc(mask & gdri_lanes_below());

	p->mask = mask;
	p->n = (uint16_t)(count * blocks);
	p->ce = rank == count - 1 ? GDRI_CE_ALWAYS : GDRI_CE_ERROR_ONLY;
	p->fm = rank ? 0 : (uint8_t)due; /* the leader's stands before all */
	p->leader = !rank;
	p->last2 = (uint8_t)last2;
	return rank * blocks;
}

/* What a fence asks of the first block behind it: that it waits for READs and atomics, and where the network does not
 * keep WRITEs in order for those as well. */
GDR_DEVICE uint32_t gdri_fence_mode(const struct gdri_dev *dev)
{
	return gdri_k(dev, flags) & GDRI_DEV_RELAXED ? GDRI_FM_STRONG : GDRI_FM_FENCE;
}

/* Who posts together the long way, and whether a fence is due, which they keep. p->index, until they have blocks: what
 * to mark the queue with. */
GDRI_NOINLINE void gdri_post_group_any(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks, uint32_t last2,
				       struct gdri_post *p)
{
	uint64_t fences = gdri_ld_relaxed_gpu_u64(&dev->fence_done), seq;
	uint32_t due = (uint32_t)gdri_sq_fence_due(dev, qp, &seq), most = qp->depth / 4, mask;

	p->index = seq;
	p->strict = seq != fences;
	p->fm = due ? (uint8_t)gdri_fence_mode(dev) : 0;
	p->last2 = (uint8_t)last2;
	mask = gdri_group(gdri_post_key(qp, blocks, last2, 1 + due));
	if (gdri_unlikely(gdri_popc(mask) * blocks > most))
		mask = gdri_group_part(mask, most / blocks);
	p->mask = mask;
}

/* base: what the leader found, blocks or a status. */
GDRI_NOINLINE int gdri_post_take_any(struct gdri_post *p, struct gdri_qp *qp, uint64_t base, uint32_t blocks)
{
	if (gdri_unlikely(p->fm) && !(p->mask & gdri_lanes_below()) && (int64_t)base >= 0)
		gdri_sq_fenced(qp, p->index);
	base = gdri_post_share(p->mask, base);
	p->index = base + gdri_post_shape(p, p->mask, blocks, p->last2, p->fm);
	p->ahead = GDRI_WINDOW; /* many */
	return gdri_unlikely((int64_t)base < 0) ? (int)(int64_t)base : 0;
}

/* Blocks or a status, if the caller leads the group. */
GDRI_NOINLINE uint64_t gdri_post_reserve_any(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks,
					     const struct gdri_post *p)
{
	uint64_t base;
	int ret;

	GDRI_BY_ABI(gdri_post_reserve_any);
	GDRI_DEV_CONSTANT(dev);
	if (p->mask & gdri_lanes_below())
		return 0;
	ret = gdri_sq_reserve(dev, qp, gdri_popc(p->mask) * blocks, &base);
	return ret ? (uint64_t)(int64_t)ret : base;
}

/* Behind gdri_post_group_any. */
GDR_DEVICE int gdri_post_room(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks, struct gdri_post *p)
{
	uint64_t base = gdri_post_reserve_any(dev, qp, blocks, p);

	return gdri_post_take_any(p, qp, base, blocks);
}

/* What the short way below has no room for: a group that is larger than its share of the ring, a wait. Out of
 * line, and what it finds comes by memory: the short way is to keep no registers for it. Sets all but what is
 * constant. */
GDRI_FRAMELESS int gdri_post_begin_any(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks, uint32_t last2,
				       struct gdri_post *p)
{
	gdri_post_group_any(dev, qp, blocks, last2, p);
	return gdri_post_room(dev, qp, blocks, p);
}

/* On the host device p stays in registers as long as nobody is handed its address. */
GDR_DEVICE int gdri_post_begin_away(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks, uint32_t last2,
				    struct gdri_post *p)
{
	struct gdri_post away;
	int ret;

	if (!GDRI_SHORT_WAYS)
		return gdri_post_begin_any(dev, qp, blocks, last2, p);
	ret = gdri_post_begin_any(dev, qp, blocks, last2, &away);
	away.q = p->q;
	*p = away;
	return ret;
}

/* Reserves `blocks` (at most 8) for the caller, together with the lanes that are here with
 * the same queue and shape, both in the key. The lowest lane reserves for all; the
 * others wait for it in the shuffle, not in a spin. One doorbell and one CQE for the group.
 * On 0 the caller writes its WQEs from p->index on, the first one with p->fm, the last one with
 * p->ce, and calls gdri_post_end.
 *
 * All that is asked before the reservation is asked for at once: leave to reserve, too, though a fence may be due. */
GDR_DEVICE int gdri_post_now(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks, uint32_t last2,
			     struct gdri_post *p)
{
	/* A1, by F1 in gdri_sq_publish_first. If it is that far when the caller gets this block, nobody but the caller
	 * will move it. */
	uint64_t ready = gdri_ld_fenced_u64(&qp->ready);
	uint64_t fences = gdri_ld_relaxed_gpu_u64(&dev->fence_done), seq, base = GDRI_NO_ROOM, room = 0;
	uint32_t due, n, depth, at, mask = gdri_group(gdri_post_key(qp, blocks, last2, 0));
	int leads = !(mask & gdri_lanes_below());

	n = gdri_popc(mask) * blocks;
	if (leads)
		room = gdri_sq_take(qp, n);
	at = gdri_post_shape(p, mask, blocks, last2, 0); /* while the reservation is under way */
	depth = qp->depth;
	due = (uint32_t)gdri_sq_fence_due(dev, qp, &seq);
	if (!gdri_post_is_single(mask))
		due = gdr_ballot(mask, (int)due);
	p->strict = seq != fences;
	if (leads) {
		if (gdri_likely(gdri_sq_enough(room, n) && !due && n <= depth / 4))
			base = gdri_sq_next(qp, n);
		else
			gdri_sq_give_back(qp, n);
	}
	gdri_entries_set(&p->q, qp); /* while the reservation is under way */
	p->ahead = (uint8_t)gdri_sq_ahead(ready, base); /* many, where nothing was reserved */
	base = gdri_post_share(mask, base);
	if (gdri_unlikely(base == GDRI_NO_ROOM))
		return 0;
	p->index = base + at;
	return 1;
}

GDR_DEVICE int gdri_post_begin(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks,
			       uint32_t last2, struct gdri_post *p)
{
	return gdri_likely(gdri_post_now(dev, qp, blocks, last2, p)) ? 0
								     : gdri_post_begin_away(dev, qp, blocks, last2, p);
}

GDR_DEVICE int gdri_post_publish(struct gdri_dev *dev, struct gdri_qp *qp, const struct gdri_post *p)
{
	if (!GDRI_SPINS)
		return gdri_sq_publish(dev, qp, p->index, p->n, p->last2);
	if (gdri_unlikely(p->ahead))
		return gdri_sq_publish_later(dev, qp, p->index, p->n, p->last2, p->ahead);
	gdri_sq_publish_first(dev, qp, p->index, p->n, p->last2);
	return 0;
}

/* A failure to publish is the leader's to report; the others find it in the queue. None goes on before
 * all is published: a quiet takes what is published as its target, and covers the caller's own. */
GDR_DEVICE int gdri_post_end(struct gdri_dev *dev, struct gdri_qp *qp, const struct gdri_post *p)
{
	int ret;

	if (gdri_post_is_single(p->mask))
		return gdri_post_publish(dev, qp, p);
	gdr_sync_warp(p->mask); /* all blocks written; orders them before the leader's F1 */
	ret = p->leader ? gdri_post_publish(dev, qp, p) : 0;
	gdr_sync_warp(p->mask); /* orders `ready` before the others' looks at it */
	return ret;
}

/* The short way, without calls, of a block of one thread with room in the queue and no fence
 * due: 1 when it holds block *index and will call gdri_sq_publish. Else nothing happened, and the general
 * way is next; a warp's lanes always take the general way, together. */
GDR_DEVICE int gdri_post_try(const struct gdri_dev *dev, struct gdri_qp *qp, uint64_t *index)
{
	uint64_t seq;

	if (!gdri_alone() || gdri_unlikely(gdri_sq_fence_due(dev, qp, &seq)))
		return 0;
	*index = gdri_sq_reserve_now(qp, 1);
	return gdri_likely(*index != GDRI_NO_ROOM);
}

#endif
