/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol: reserve blocks (reserve.h), publish them in order with one doorbell (publish.h), learn of
 * completions (complete.h), wait for others (wait.h); here: posting, by the lanes that happen to be together. The
 * arguments why it is right are in docs/memory-model.md, under the names used here. No locks: a thread that
 * holds blocks does bounded work until they are published. */
#ifndef GDRI_NIC_DEV_H
#define GDRI_NIC_DEV_H

#include <gdr/impl/queue/wait.h>

struct gdri_post {
	uint64_t index;	 /* caller's first block */
	uint64_t base;	 /* group's first block */
	uint32_t n;	 /* group's blocks */
	uint32_t mask;	 /* lanes of the group */
	uint32_t ce;	 /* completion mode of the caller's last WQE */
	uint32_t fm;	 /* fence mode of the caller's first */
	uint32_t leader; /* the caller publishes */
	uint32_t last2;
	uint32_t strict; /* there are fences to be kept: see gdri_put_rkey */
	uint32_t ahead;	 /* of the leader, by what it read before it reserved; 0: see gdri_sq_publish_first */
	struct gdri_qp q; /* constants of the queue that entries need, no more */
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
GDR_DEVICE void gdri_qp_constants(struct gdri_qp *q, const struct gdri_qp *qp)
{
	q->sq = qp->sq;
	q->qpn_shifted = qp->qpn_shifted;
	q->depth = qp->depth;
	q->rkey_data = qp->rkey_data;
	q->rkey_sync = qp->rkey_sync;
}

/* Who posts together: the same queue, the same shape, the same way. way: 0 the short one, else 1 and whether a fence is
 * due. Lanes may come from different places. */
GDR_DEVICE uint64_t gdri_post_key(const struct gdri_qp *qp, uint32_t blocks, uint32_t last2, uint32_t way)
{
	return (uint64_t)(uintptr_t)qp + way * 32 + blocks * 2 + last2;
}

/* What the leader found, for all of the group. */
GDR_DEVICE void gdri_post_share(const struct gdri_post *p, uint64_t *base)
{
	if (gdri_post_is_single(p->mask))
		return;
	*base = gdr_shfl_u64(p->mask, *base, gdri_ffs_u32(p->mask));
	gdr_sync_warp(p->mask); /* a shuffle orders no memory: the leader's look at limit before our WQEs */
}

/* The caller's part of the group's blocks. */
GDR_DEVICE void gdri_post_take(struct gdri_post *p, uint64_t base, uint32_t blocks, uint32_t last2,
				uint32_t due)
{
	uint32_t count = gdri_popc(p->mask), rank = gdri_popc(p->mask & gdri_lanes_below());

	p->base = base;
	p->n = count * blocks;
	p->index = base + (uint64_t)rank * blocks;
	p->ce = rank == count - 1 ? GDRI_CE_ALWAYS : GDRI_CE_ERROR_ONLY;
	p->fm = due && !rank ? GDRI_FM_FENCE : 0; /* the leader's stands before all */
	p->leader = !rank;
	p->last2 = last2;
}

/* What the short way below has no room for: a group that is larger than its share of the ring, a wait. Out of
 * line, and what it finds comes by memory: the short way is to keep no registers for it. */
struct gdri_post_place { /* of a post, all but what is constant */
	uint64_t index, base;
	uint32_t n, mask, ce, fm, leader, strict;
};

GDRI_NOINLINE int gdri_post_begin_any(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks,
				      uint32_t last2, struct gdri_post_place *at)
{
	struct gdri_post here, *p = &here;
	uint64_t fences = gdri_ld_relaxed_gpu_u64(&dev->fence_done), seq, base = 0;
	uint32_t due, count, rank;
	int ret;

	GDRI_BY_ABI(gdri_post_begin_any);
	p->q.depth = qp->depth;
	due = gdri_sq_fence_due(dev, qp, &seq);
	p->strict = seq != fences;
	p->mask = gdri_group(gdri_post_key(qp, blocks, last2, 1 + due));
	count = gdri_popc(p->mask);
	if (gdri_unlikely(count * blocks > p->q.depth / 4)) {
		p->mask = gdri_group_part(p->mask, p->q.depth / 4 / blocks);
		count = gdri_popc(p->mask);
	}
	rank = gdri_popc(p->mask & gdri_lanes_below());
	if (!rank) {
		ret = gdri_sq_reserve(dev, qp, count * blocks, &base);
		if (gdri_unlikely(ret))
			base = (uint64_t)(int64_t)ret;
		else if (gdri_unlikely(due))
			gdri_sq_fenced(qp, seq);
	}
	gdri_post_share(p, &base);
	gdri_post_take(p, base, blocks, last2, due);
	at->index = p->index;
	at->base = p->base;
	at->n = p->n;
	at->mask = p->mask;
	at->ce = p->ce;
	at->fm = p->fm;
	at->leader = p->leader;
	at->strict = p->strict;
	return gdri_unlikely((int64_t)base < 0) ? (int)(int64_t)base : 0;
}

/* Reserves `blocks` (at most 8) for the caller, together with the lanes that are here with
 * the same queue and shape, both in the key. The lowest lane reserves for all; the
 * others wait for it in the shuffle, not in a spin. One doorbell and one CQE for the group.
 * On 0 the caller writes its WQEs from p->index on, the first one with p->fm, the last one with
 * p->ce, and calls gdri_post_end.
 *
 * All that is asked before the reservation is asked for at once: leave to reserve, too, though a fence may be due. */
GDR_DEVICE int gdri_post_begin(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t blocks,
			       uint32_t last2, struct gdri_post *p)
{
	/* A1, by F1 in gdri_sq_publish_first. If it is that far when the caller gets this block, nobody but the caller
	 * will move it. */
	uint64_t ready = gdri_ld_fenced_u64(&qp->ready);
	uint64_t fences = gdri_ld_relaxed_gpu_u64(&dev->fence_done), seq, base = GDRI_NO_ROOM, room = 0;
	struct gdri_post_place any;
	uint32_t due, n;
	int ret, leads;

	p->mask = gdri_group(gdri_post_key(qp, blocks, last2, 0));
	n = gdri_popc(p->mask) * blocks;
	leads = !(p->mask & gdri_lanes_below());
	if (leads)
		room = gdri_sq_take(qp, n);
	gdri_qp_constants(&p->q, qp);
	due = gdri_sq_fence_due(dev, qp, &seq);
	if (!gdri_post_is_single(p->mask))
		due = gdr_ballot(p->mask, (int)due);
	p->strict = seq != fences;
	if (leads) {
		if (gdri_likely(gdri_sq_enough(room, n) && !due && n <= p->q.depth / 4))
			base = gdri_sq_next(qp, n);
		else
			gdri_sq_give_back(qp, n);
	}
	p->ahead = gdri_sq_ahead(ready, base); /* many, where nothing was reserved */
	gdri_post_share(p, &base);
	if (gdri_unlikely(base == GDRI_NO_ROOM)) {
		ret = gdri_post_begin_any(dev, qp, blocks, last2, &any);
		p->index = any.index;
		p->base = any.base;
		p->n = any.n;
		p->mask = any.mask;
		p->ce = any.ce;
		p->fm = any.fm;
		p->leader = any.leader;
		p->last2 = last2;
		p->strict = any.strict;
		return ret;
	}
	gdri_post_take(p, base, blocks, last2, 0);
	return 0;
}

GDR_DEVICE int gdri_post_publish(struct gdri_dev *dev, struct gdri_qp *qp, const struct gdri_post *p)
{
	if (!GDRI_SPINS)
		return gdri_sq_publish(dev, qp, p->base, p->n, p->last2);
	if (gdri_unlikely(p->ahead))
		return gdri_sq_publish_later(dev, qp, p->base, p->n, p->last2, p->ahead);
	gdri_sq_publish_first(dev, qp, p->base, p->n, p->last2);
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
 * way is next; a warp's lanes always take that one, together. */
GDR_DEVICE int gdri_post_try(const struct gdri_dev *dev, struct gdri_qp *qp, uint64_t *index)
{
	uint64_t seq;

	if (!gdri_alone() || gdri_unlikely(gdri_sq_fence_due(dev, qp, &seq)))
		return 0;
	*index = gdri_sq_reserve_now(qp, 1);
	return gdri_likely(*index != GDRI_NO_ROOM);
}

#endif
