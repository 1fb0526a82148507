/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast by LL (ll.h) in which the root waits for nobody: an epoch goes into the next one of GDRI_BCAST_DEPTH
 * places of memory of the library at each member, which its own number makes known there. A place is written again
 * when all members have said that they took what was in it (gdri_chan.bcast_taken); each says so for every half of the
 * places, and what it said last is looked at only then (docs/memory-model-internals.md, LL protocol).
 *
 * The number of the epoch is in its words, and the place is the number's rest. So calls of whatever root follow each
 * other, and epochs of a call as well. */
#ifndef GDRI_LL_BROADCAST_H
#define GDRI_LL_BROADCAST_H

#include <gdr/impl/coll/ll/step.h>

/* First thread of the root: all others took epoch `least`. Up to which they have in *known. Only the order of loads,
 * branch and stores is needed, as in ll.h; the member's store in gdri_ll_bcast_tell is behind its loads. */
GDRI_NOINLINE int gdri_ll_bcast_look(struct gdri_team *t, uint32_t op, uint64_t least, uint64_t *known)
{
	struct gdri_coll c = gdri_coll_of(t, GDRI_THREAD, op);
	uint64_t all = ~(uint64_t)0, one;
	const uint64_t *word;
	int ret;

	GDRI_BY_ABI(gdri_ll_bcast_look);
	GDRI_NOT_UNROLLED
	for (int i = 0; i < t->n; i++) {
		if (i == t->me)
			continue;
		word = &t->chan[i].bcast_taken;
		one = gdri_ld_relaxed_sys_u64(word); /* pairs with the store in gdri_ll_bcast_tell */
		if (one < least) {
			ret = gdri_team_hear(&c, i, word, least);
			if (ret)
				return ret;
			one = least;
		}
		all = one < all ? one : all;
	}
	*known = all;
	return 0;
}

/* Called by all threads of the root, with equal *known: returns when all others have taken at least `least`. How much
 * more in *known; -GDR_E*. */
GDR_DEVICE int gdri_ll_bcast_room(const struct gdri_ll *l, uint64_t least, uint64_t *known)
{
	uint64_t now = least;
	int ret = 0;

	if (!l->rank)
		ret = gdri_ll_bcast_look(l->team, l->op, least, &now);
	if (!ret)
		ret = (int)gdri_min_u64(now - least, GDRI_BCAST_DEPTH); /* no more are under way */
	ret = gdri_scope_bcast(l->scope, ret);
	if (gdri_unlikely(ret < 0))
		return ret;
	*known = least + (uint32_t)ret;
	return 0;
}

/* The first n threads, behind a sync of the scope: this member is done with all epochs up to this one. */
GDR_DEVICE void gdri_ll_bcast_tell(const struct gdri_ll *l, uint64_t seq)
{
	GDRI_NOT_UNROLLED
	for (int i = l->rank; i < l->n; i += l->size)
		if (i != l->me) /* pairs with the loads in gdri_ll_bcast_look */
			gdri_st_relaxed_sys_u64(gdri_ll_peer(l, &l->team->chan[l->me].bcast_taken, i), seq);
}

/* `at`: the root's elements, at each member. */
GDR_DEVICE int gdri_ll_bcast_rows(const struct gdri_ll *l, uint64_t *at, const struct gdri_ll_call *b, int root,
				  int rows, int apart)
{
	if (l->me != root)
		return gdri_ll_in_rows(l, root, at, b->dst, b->len, rows, apart);
	gdri_ll_out_rows(l, at, b, 1, rows, apart);
	return 0;
}

GDRI_NOINLINE int gdri_ll_bcast_odd(const struct gdri_ll *l, uint64_t *at, const struct gdri_ll_call *b, int root)
{
	GDRI_BY_ABI(gdri_ll_bcast_odd);
	if (l->me != root)
		return gdri_ll_in_odd(l, root, at, b->dst, b->len);
	gdri_ll_out_odd(l, at, b, 1);
	return 0;
}

/* An epoch. */
GDR_DEVICE int gdri_ll_bcast_step(const struct gdri_ll *l, uint64_t *at, uint8_t *dst, const uint8_t *src, size_t len,
				  int root)
{
	const struct gdri_ll_call b = {dst, src, 0, 0, len, 0, 0};

	if (gdri_ll_odd(dst, src, len)) {
		const struct gdri_ll lo = *l;
		const struct gdri_ll_call bo = b;

		return gdri_ll_bcast_odd(&lo, at, &bo, root);
	}
	return GDRI_LL_BY_ROWS(l, (int)(len / 8), gdri_ll_bcast_rows, l, at, &b, root);
}

/* ---- longer than a place: an epoch of step.h, in which nobody has to say what was taken ---- */

/* First threads: an element of nothing to all others, but the root, and from them. */
GDR_DEVICE void gdri_ll_bcast_greet(const struct gdri_ll *l)
{
	GDRI_NOT_UNROLLED
	for (int i = l->rank + 1; i < l->n; i += l->size)
		gdri_ll_send(gdri_ll_peer(l, gdri_ll_mine(l), gdri_ll_after(l, i)), 0, l->seq, 0);
}

GDR_DEVICE int gdri_ll_bcast_greeted(const struct gdri_ll *l, int root)
{
	uint64_t v[GDRI_LL_ALONE_ROWS];
	int i, from, ret = 0;

	GDRI_NOT_UNROLLED
	for (i = l->rank + 1; i < l->n && !ret; i += l->size) {
		from = gdri_ll_after(l, i);
		if (from != root)
			ret = gdri_ll_take_rows(l, from, gdri_ll_from(l, from), 1, 1, 1, v);
	}
	return ret;
}

GDR_DEVICE int gdri_ll_bcast_wide_as(int scope, gdr_team_t team, uint8_t *dst, const uint8_t *src, size_t len, int root)
{
	struct gdri_ll l;
	int ret;

	if (!gdri_ll_team(&l, scope, team, GDRI_BROADCAST) || root < 0 || root >= l.n ||
	    !gdri_ll_step_begin(&l, GDRI_K_BROADCAST, len, 1))
		return 1;
	if (l.me != root)
		gdri_ll_bcast_greet(&l);
	ret = gdri_ll_bcast_step(&l, gdri_ll_from(&l, root), dst, src, len, root);
	if (gdri_likely(!ret))
		ret = gdri_ll_bcast_greeted(&l, root);
	return gdri_ll_step_end(&l, ret);
}

/* 1: not so. */
GDRI_ALONE_OR_NOT(gdri_ll_bcast_wide, (int scope, gdr_team_t team, uint8_t *dst, const uint8_t *src, size_t len,
				       int root),
		  team, dst, src, len, root)

/* ---- what fits into a place ---- */

/* Behind the last epoch, and its number. */
GDR_DEVICE int gdri_ll_bcast_end(const struct gdri_ll *l, uint64_t known, int root, int ret)
{
	ret = gdri_ll_met(l, ret);
	if (gdri_unlikely(ret))
		return ret;
	if (!(l->seq % (GDRI_BCAST_DEPTH / 2)))
		gdri_ll_bcast_tell(l, l->seq);
	if (!l->rank) { /* carry no data: pair with nothing */
		gdri_st_relaxed_gpu_u64(&l->team->bcast_seq, l->seq);
		if (l->me == root)
			gdri_st_relaxed_gpu_u64(&l->team->bcast_known, known);
	}
	gdri_scope_sync(l->scope); /* as in gdri_ll_step_end */
	return 0;
}

/* any: however little the team's table has go so. 1: not so. */
GDR_DEVICE int gdri_ll_bcast_as(int scope, gdr_team_t team, uint8_t *dst, const uint8_t *src, size_t len, int root,
				int any)
{
	struct gdri_ll l;
	uint32_t most, err;
	uint64_t known;
	int ret = 0; /* of this thread */

	if (!gdri_ll_team(&l, scope, team, GDRI_BROADCAST))
		return 1;
	most = l.team->slot_size;
	gdri_scope_sync(scope); /* what the other threads wrote is there for those of this call */
	/* pair with nothing, as in gdri_ll_step_begin */
	l.seq = gdri_ld_relaxed_gpu_u64(&l.team->bcast_seq) + 1;
	known = gdri_ld_relaxed_gpu_u64(&l.team->bcast_known);
	err = gdri_ld_relaxed_gpu_u32((const uint32_t *)&l.team->err);
	if (l.n < 2 || !len || len > most || root < 0 || root >= l.n ||
	    (!any && len > l.team->ll_max[GDRI_K_BROADCAST]))
		return 1;
	if (gdri_unlikely(err)) /* any: behind gdri_coll_begin, which saw none */
		return any ? (int)err : 1;
	if (gdri_unlikely(!(uint32_t)l.seq)) {
		l.seq++;
		ret = gdri_ll_clean(l.team, scope, GDRI_BROADCAST, l.team->ll_bcast,
				    (size_t)GDRI_BCAST_DEPTH * (most / 8), 0);
	}
	l.area = l.team->ll_bcast + (uint32_t)(l.seq % GDRI_BCAST_DEPTH) * (size_t)(most / 4);
	if (gdri_unlikely(l.me == root && known + GDRI_BCAST_DEPTH < l.seq) && !ret)
		ret = gdri_ll_bcast_room(&l, l.seq - GDRI_BCAST_DEPTH, &known);
	if (gdri_likely(!ret))
		ret = gdri_ll_bcast_step(&l, l.area, dst, src, len, root);
	return gdri_ll_bcast_end(&l, known, root, ret);
}

/* From src of the root to dst of all. 1: not so. */
GDRI_ALONE_OR_NOT(gdri_ll_bcast, (int scope, gdr_team_t team, uint8_t *dst, const uint8_t *src, size_t len, int root,
				  int any),
		  team, dst, src, len, root, any)

/* gdri_ll_bcast for the general way, of any length: epoch for epoch. */
GDR_DEVICE int gdri_ll_bcast_any(const struct gdri_coll *c, gdr_team_t team, uint8_t *dst, const uint8_t *src,
				 size_t len, int root)
{
	size_t part;
	int ret = 0;

	GDRI_NOT_UNROLLED
	for (size_t at = 0; at < len && !ret; at += part) {
		part = gdri_coll_part(c, len - at);
		ret = gdri_ll_bcast(c->scope, team, dst + at, src + at, part, root, 1);
	}
	return ret;
}

#endif
