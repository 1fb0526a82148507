/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that move data: broadcast, collect, fcollect, alltoall, alltoalls. All are on bytes
 * and for every scope; which algorithm is used stands in the team's table (gdri_team.algo). */
#ifndef GDRI_COLL_H
#define GDRI_COLL_H

#include <gdr/impl/team.h>

GDR_DEVICE int gdri_coll_algo(const struct gdri_coll *c, int kind, uint64_t len)
{
	const struct gdri_team *t = c->team;
	int k = 0;

	while (k < GDRI_CHOICES - 1 && len > t->max[kind][k])
		k++;
	return t->algo[kind][k];
}

GDR_DEVICE void gdri_coll_copy(const struct gdri_coll *c, void *dst, const void *src, size_t len)
{
	if (dst != src && len)
		gdri_copy(dst, src, len, gdri_scope_rank(c->scope), gdri_scope_size(c->scope));
}

/* The other members in turn, beginning behind the own one: i from 1 to n - 1. */
GDR_DEVICE int gdri_coll_after(const struct gdri_team *t, int i)
{
	return t->me + i < t->n ? t->me + i : t->me + i - t->n;
}

GDR_DEVICE int gdri_coll_before(const struct gdri_team *t, int i)
{
	return t->me >= i ? t->me - i : t->me - i + t->n;
}

GDR_DEVICE size_t gdri_coll_part(const struct gdri_coll *c, size_t left)
{
	return left < c->team->slot_size ? left : c->team->slot_size;
}

/* ---- blocks: which bytes of a buffer belong to member i ---- */

enum gdri_layout {
	GDRI_WHOLE,  /* all of them, for every member */
	GDRI_EQUAL,  /* len bytes each, one behind the other */
	GDRI_RAGGED, /* what a collect exchanged, in gdri_chan */
	GDRI_SPLIT,  /* len bytes in n pieces of about the same size, of whole elements */
};

struct gdri_blocks {
	int layout;
	size_t len;
	size_t elem; /* SPLIT: bytes of an element */
};

GDR_DEVICE size_t gdri_block_at(const struct gdri_coll *c, const struct gdri_blocks *b, int i)
{
	if (b->layout == GDRI_EQUAL)
		return b->len * (size_t)i;
	if (b->layout == GDRI_RAGGED)
		return gdri_ld_relaxed_gpu_u64(&c->team->chan[i].at);
	if (b->layout == GDRI_SPLIT) {
		size_t n = b->len / b->elem, each = n / (size_t)c->team->n, more = n % (size_t)c->team->n;

		return (each * (size_t)i + ((size_t)i < more ? (size_t)i : more)) * b->elem;
	}
	return 0;
}

GDR_DEVICE size_t gdri_block_len(const struct gdri_coll *c, const struct gdri_blocks *b, int i)
{
	if (b->layout == GDRI_RAGGED)
		return gdri_ld_relaxed_gpu_u64(&c->team->chan[i].len);
	if (b->layout == GDRI_SPLIT)
		return gdri_block_at(c, b, i + 1) - gdri_block_at(c, b, i);
	return b->len;
}

/* ---- every member to every other one ---- */

/* Part `at` of each other member's block of src, into its slot. *more: there are further parts. */
GDRI_NOINLINE int gdri_coll_send_parts(const struct gdri_coll *c, const uint8_t *src,
				       const struct gdri_blocks *sb, size_t at, int *more)
{
	size_t len, part;
	int i, to, ret;

	for (i = 1; i < c->team->n; i++) {
		to = gdri_coll_after(c->team, i);
		len = gdri_block_len(c, sb, to);
		if (at >= len)
			continue;
		part = gdri_coll_part(c, len - at);
		ret = gdri_chan_send(c, to, 0, src + gdri_block_at(c, sb, to) + at, part);
		if (ret)
			return ret;
		*more |= at + part < len;
	}
	return 0;
}

GDRI_NOINLINE int gdri_coll_recv_parts(const struct gdri_coll *c, uint8_t *dst,
				       const struct gdri_blocks *db, size_t at, int *more)
{
	size_t len, part;
	int i, from, ret;

	for (i = 1; i < c->team->n; i++) {
		from = gdri_coll_before(c->team, i);
		len = gdri_block_len(c, db, from);
		if (at >= len)
			continue;
		part = gdri_coll_part(c, len - at);
		ret = gdri_chan_recv(c, from);
		if (ret)
			return ret;
		gdri_coll_copy(c, dst + gdri_block_at(c, db, from) + at, gdri_chan_data(c, from),
			       part);
		ret = gdri_chan_taken(c, from);
		if (ret)
			return ret;
		*more |= at + part < len;
	}
	return 0;
}

/* Nobody waits for ever: who is furthest behind finds its members' room free, since they took all
 * earlier parts, and their parts sent. */
GDRI_NOINLINE int gdri_coll_flat(const struct gdri_coll *c, uint8_t *dst,
				 const struct gdri_blocks *db, const uint8_t *src,
				 const struct gdri_blocks *sb)
{
	size_t at = 0;
	int more, ret;

	do {
		more = 0;
		ret = gdri_coll_send_parts(c, src, sb, at, &more);
		if (!ret)
			ret = gdri_coll_recv_parts(c, dst, db, at, &more);
		at += c->team->slot_size;
	} while (more && !ret);
	return ret;
}

/* A block of each member came to where it belongs. */
GDRI_NOINLINE int gdri_coll_arrived(const struct gdri_coll *c, const struct gdri_blocks *db)
{
	int i, from, ret = 0;

	for (i = 1; i < c->team->n && !ret; i++) {
		from = gdri_coll_before(c->team, i);
		if (!gdri_block_len(c, db, from))
			continue;
		ret = gdri_chan_recv(c, from);
		if (!ret)
			ret = gdri_chan_taken(c, from);
	}
	return ret;
}

/* All members are known to be in the call. */
GDRI_NOINLINE int gdri_coll_straight(const struct gdri_coll *c, uint8_t *dst,
				     const struct gdri_blocks *db, const uint8_t *src,
				     const struct gdri_blocks *sb)
{
	size_t mine = gdri_block_at(c, db, c->team->me), len;
	int i, to, ret = 0;

	for (i = 1; i < c->team->n && !ret; i++) {
		to = gdri_coll_after(c->team, i);
		len = gdri_block_len(c, sb, to);
		if (len)
			ret = gdri_chan_send(c, to, dst + mine, src + gdri_block_at(c, sb, to), len);
	}
	return ret ? ret : gdri_coll_arrived(c, db);
}

/* Each block goes round, always to the next member. All are known to be in the call. */
GDRI_NOINLINE int gdri_coll_ring(const struct gdri_coll *c, uint8_t *dst,
				 const struct gdri_blocks *db, const uint8_t *src)
{
	int s, b, ret = 0, next = gdri_coll_after(c->team, 1), prev = gdri_coll_before(c->team, 1);
	uint8_t *at;

	for (s = 0; s < c->team->n - 1 && !ret; s++) {
		b = gdri_coll_before(c->team, s);
		at = dst + gdri_block_at(c, db, b);
		if (gdri_block_len(c, db, b))
			ret = gdri_chan_send(c, next, at, s ? at : src, gdri_block_len(c, db, b));
		b = gdri_coll_before(c->team, s + 1);
		if (ret || !gdri_block_len(c, db, b))
			continue;
		ret = gdri_chan_recv(c, prev);
		if (!ret)
			ret = gdri_chan_taken(c, prev);
	}
	return ret;
}

/* The own block is `src` where each gives all the same (sb WHOLE). */
GDRI_NOINLINE int gdri_coll_exchange(const struct gdri_coll *c, int algo, uint8_t *dst,
				     const struct gdri_blocks *db, const uint8_t *src,
				     const struct gdri_blocks *sb)
{
	int me = c->team->me, ret = 0;

	if (c->team->n > 1 && algo == GDRI_A_FLAT)
		ret = gdri_coll_flat(c, dst, db, src, sb);
	else if (c->team->n > 1)
		ret = gdri_coll_sync(c);
	if (!ret && c->team->n > 1 && algo == GDRI_A_RING)
		ret = gdri_coll_ring(c, dst, db, src);
	else if (!ret && c->team->n > 1 && algo != GDRI_A_FLAT)
		ret = gdri_coll_straight(c, dst, db, src, sb);
	if (!ret)
		gdri_coll_copy(c, dst + gdri_block_at(c, db, me), src + gdri_block_at(c, sb, me),
			       gdri_block_len(c, db, me));
	gdri_scope_sync(c->scope);
	return ret;
}

GDRI_NOINLINE int gdri_fcollect(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	const struct gdri_blocks db = {GDRI_EQUAL, len, 1}, sb = {GDRI_WHOLE, len, 1};
	struct gdri_coll c;
	int ret = gdri_coll_begin(&c, scope, team, GDRI_COLLECT);

	if (ret || !len)
		return ret;
	ret = gdri_coll_exchange(&c, gdri_coll_algo(&c, GDRI_K_COLLECT, len * (size_t)c.team->n),
				 (uint8_t *)dst, &db, (const uint8_t *)src, &sb);
	return gdri_coll_end(&c, ret);
}

GDRI_NOINLINE int gdri_alltoall(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	const struct gdri_blocks b = {GDRI_EQUAL, len, 1};
	struct gdri_coll c;
	int ret = gdri_coll_begin(&c, scope, team, GDRI_ALLTOALL);

	if (ret || !len)
		return ret;
	ret = gdri_coll_exchange(&c, gdri_coll_algo(&c, GDRI_K_ALLTOALL, len * (size_t)c.team->n),
				 (uint8_t *)dst, &b, (const uint8_t *)src, &b);
	return gdri_coll_end(&c, ret);
}

/* ---- collect: each brings as much as it likes ---- */

/* First thread: where each member's block goes; returns the sum. */
GDRI_NOINLINE uint64_t gdri_collect_places(const struct gdri_coll *c)
{
	uint64_t at = 0;
	int i;

	for (i = 0; i < c->team->n; i++) {
		/* pairs with nothing: read by the scope behind a sync */
		gdri_st_relaxed_gpu_u64(&c->team->chan[i].at, at);
		at += gdri_ld_relaxed_gpu_u64(&c->team->chan[i].len);
	}
	return at;
}

/* All lengths to all. */
GDRI_NOINLINE int gdri_collect_lengths(const struct gdri_coll *c, uint64_t len)
{
	int i, ret = 0, first = !gdri_scope_rank(c->scope);
	struct gdri_team *t = c->team;
	struct gdri_chan *mine = &t->chan[t->me];

	if (first)
		gdri_st_relaxed_gpu_u64(&mine->len, len);
	gdri_scope_sync(c->scope);
	for (i = 1; i < t->n && !ret; i++)
		ret = gdri_chan_send(c, gdri_coll_after(t, i), 0, &mine->len, sizeof(len));
	for (i = 1; i < t->n && !ret; i++) {
		int from = gdri_coll_before(t, i);

		ret = gdri_chan_recv(c, from);
		if (!ret && first)
			gdri_st_relaxed_gpu_u64(&t->chan[from].len,
						*(const uint64_t *)gdri_chan_data(c, from));
		if (!ret)
			ret = gdri_chan_taken(c, from);
	}
	if (!ret && first)
		gdri_collect_places(c);
	gdri_scope_sync(c->scope);
	return ret;
}

GDRI_NOINLINE int gdri_collect(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	const struct gdri_blocks db = {GDRI_RAGGED, 0, 1}, sb = {GDRI_WHOLE, len, 1};
	struct gdri_coll c;
	uint64_t sum;
	int ret = gdri_coll_begin(&c, scope, team, GDRI_COLLECT);

	if (ret)
		return ret;
	ret = gdri_collect_lengths(&c, len);
	if (!ret) {
		sum = gdri_block_at(&c, &db, c.team->n - 1) + gdri_block_len(&c, &db, c.team->n - 1);
		ret = gdri_coll_exchange(&c, gdri_coll_algo(&c, GDRI_K_COLLECT, sum),
					 (uint8_t *)dst, &db, (const uint8_t *)src, &sb);
	}
	return gdri_coll_end(&c, ret);
}

/* ---- broadcast ---- */

/* Members in the order of the root's tree: v 0 is the root. */
GDR_DEVICE int gdri_tree_member(const struct gdri_team *t, int root, int v)
{
	return (root + v) % t->n;
}

GDR_DEVICE int gdri_tree_parent(int v, int flat)
{
	return flat ? 0 : v & (v - 1);
}

/* Child k of v, the ones with the largest trees below them first; -1: no more. */
GDR_DEVICE int gdri_tree_child(int v, int n, int flat, int k)
{
	int low = v & -v, bit;

	if (flat)
		return v || k + 1 >= n ? -1 : k + 1;
	if (!v)
		for (low = 1; low < n; low *= 2)
			;
	for (bit = low / 2; bit && v + bit >= n; bit /= 2)
		;
	bit >>= k;
	return bit ? v + bit : -1;
}

/* To the children, from where it lies in the own memory. to: NULL, slots. */
GDRI_NOINLINE int gdri_tree_down(const struct gdri_coll *c, int root, int flat, uint8_t *to,
				 const uint8_t *src, size_t len)
{
	int v = gdri_coll_before(c->team, root), child, k, ret = 0;

	for (k = 0; !ret && (child = gdri_tree_child(v, c->team->n, flat, k)) >= 0; k++)
		ret = gdri_chan_send(c, gdri_tree_member(c->team, root, child), to, src, len);
	return ret;
}

/* Through the slots, part for part. */
GDRI_NOINLINE int gdri_broadcast_slots(const struct gdri_coll *c, uint8_t *dst, const uint8_t *src,
				       size_t len, int root, int flat)
{
	int v = gdri_coll_before(c->team, root), ret = 0;
	int parent = gdri_tree_member(c->team, root, gdri_tree_parent(v, flat));
	size_t at, part;

	for (at = 0; at < len && !ret; at += part) {
		part = gdri_coll_part(c, len - at);
		if (v) {
			ret = gdri_chan_recv(c, parent);
			if (ret)
				break;
			gdri_coll_copy(c, dst + at, gdri_chan_data(c, parent), part);
			ret = gdri_chan_taken(c, parent);
		}
		if (!ret)
			ret = gdri_tree_down(c, root, flat, 0, (v ? dst : src) + at, part);
	}
	return ret;
}

/* After a sync: a piece to each member, which all then exchange (TWO), or all to everybody. */
GDRI_NOINLINE int gdri_broadcast_straight(const struct gdri_coll *c, uint8_t *dst,
					  const uint8_t *src, size_t len, int root, int two)
{
	const struct gdri_blocks b = {two ? GDRI_SPLIT : GDRI_WHOLE, len, 1};
	const struct gdri_blocks mine = {GDRI_WHOLE, gdri_block_len(c, &b, c->team->me), 1};
	int me = c->team->me, i, to, ret = gdri_coll_sync(c);
	size_t at;

	for (i = 1; me == root && i < c->team->n && !ret; i++) {
		to = gdri_coll_after(c->team, i);
		at = gdri_block_at(c, &b, to);
		if (gdri_block_len(c, &b, to))
			ret = gdri_chan_send(c, to, dst + at, src + at, gdri_block_len(c, &b, to));
	}
	if (!ret && me != root && mine.len) {
		ret = gdri_chan_recv(c, root);
		if (!ret)
			ret = gdri_chan_taken(c, root);
	}
	if (ret || !two)
		return ret;
	at = gdri_block_at(c, &b, me);
	return gdri_coll_straight(c, dst, &b, (me == root ? src : dst) + at, &mine);
}

GDRI_NOINLINE int gdri_broadcast(int scope, gdr_team_t team, void *dst, const void *src, size_t len,
				 int root)
{
	struct gdri_coll c;
	int ret = gdri_coll_begin(&c, scope, team, GDRI_BROADCAST), algo;
	uint8_t *d = (uint8_t *)dst;
	const uint8_t *s = (const uint8_t *)src;

	if (ret || !len)
		return ret;
	if (gdri_unlikely(root < 0 || root >= c.team->n))
		return gdri_coll_refuse(&c, dst, (uint64_t)(int64_t)root);
	algo = gdri_coll_algo(&c, GDRI_K_BROADCAST, len);
	if (c.team->n > 1 && (algo == GDRI_A_FLAT || algo == GDRI_A_TREE))
		ret = gdri_broadcast_slots(&c, d, s, len, root, algo == GDRI_A_FLAT);
	else if (c.team->n > 1)
		ret = gdri_broadcast_straight(&c, d, s, len, root, algo == GDRI_A_TWO);
	if (!ret && c.team->me == root)
		gdri_coll_copy(&c, d, s, len);
	gdri_scope_sync(scope);
	return gdri_coll_end(&c, ret);
}

/* ---- alltoalls: elements with gaps ---- */

/* The own elements for one member; the message behind them says so. */
GDRI_NOINLINE int gdri_strided_put(const struct gdri_coll *c, int to, uint8_t *dst, size_t dst_step,
				   const uint8_t *src, size_t src_step, size_t n, size_t elem)
{
	int pe = gdri_team_pe(c->team, to), first = !gdri_scope_rank(c->scope), ret = 0;
	uint8_t *p = gdri_chan_mapped(c, dst, pe);
	struct gdri_qp *qp;
	size_t k;

	if (p) {
		for (k = gdri_scope_rank(c->scope); k < n; k += gdri_scope_size(c->scope))
			gdri_ld_bytes(p + k * dst_step, src + k * src_step, elem);
	} else if (GDRI_QUEUES && first) {
		qp = gdri_chan_queue(c, pe);
		for (k = 0; k < n && !ret; k++) /* an element goes inline */
			ret = gdri_post_inline_any(c->dev, qp,
						   gdri_heap_offset(c->dev, dst + k * dst_step),
						   gdri_put_rkey(c->dev, qp), src + k * src_step,
						   elem);
	}
	ret = gdri_scope_bcast(c->scope, ret);
	return ret ? ret : gdri_chan_send(c, to, dst, 0, 0);
}

/* Steps in elements. */
GDRI_NOINLINE int gdri_alltoalls(int scope, gdr_team_t team, void *dst, const void *src,
				 ptrdiff_t dst_step, ptrdiff_t src_step, size_t n, size_t elem)
{
	const struct gdri_blocks one = {GDRI_WHOLE, 1, 1};
	size_t ds = (size_t)dst_step * elem, ss = (size_t)src_step * elem, k;
	uint8_t *d = (uint8_t *)dst;
	const uint8_t *s = (const uint8_t *)src;
	struct gdri_coll c;
	int i, me, to, ret = gdri_coll_begin(&c, scope, team, GDRI_ALLTOALL);

	if (ret || !n)
		return ret;
	if (gdri_unlikely(dst_step < 1 || src_step < 1))
		return gdri_coll_refuse(&c, dst, (uint64_t)(dst_step < 1 ? dst_step : src_step));
	me = c.team->me;
	ret = gdri_coll_sync(&c);
	for (i = 1; i < c.team->n && !ret; i++) {
		to = gdri_coll_after(c.team, i);
		ret = gdri_strided_put(&c, to, d + (size_t)me * n * ds, ds,
				       s + (size_t)to * n * ss, ss, n, elem);
	}
	for (k = gdri_scope_rank(scope); k < n && !ret; k += gdri_scope_size(scope))
		gdri_ld_bytes(d + ((size_t)me * n + k) * ds, s + ((size_t)me * n + k) * ss, elem);
	if (!ret)
		ret = gdri_coll_arrived(&c, &one);
	gdri_scope_sync(scope);
	return gdri_coll_end(&c, ret);
}

#endif
