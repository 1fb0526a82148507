/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast: by a tree through slots, straight to where it belongs, by both levels. */
#ifndef GDRI_BROADCAST_H
#define GDRI_BROADCAST_H

#include <gdr/impl/coll/ll/broadcast.h>
#include <gdr/impl/coll/coll.h>

/* Members in the order of the root's tree: v 0 is the root. */
GDR_DEVICE int gdri_tree_member(const struct gdri_coll *c, int root, int v)
{
	return (root + v) % c->n;
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

/* To the children, from where it lies in the own memory, into their slots. */
GDRI_NOINLINE int gdri_tree_down(const struct gdri_coll *c, int root, int flat, const uint8_t *src,
				 size_t len)
{
	int v = gdri_coll_before(c, root), child, k, ret = 0;

	for (k = 0; !ret && (child = gdri_tree_child(v, c->n, flat, k)) >= 0; k++)
		ret = gdri_chan_send(c, gdri_tree_member(c, root, child), 0, src, len);
	return ret;
}

/* One part: from the parent to dst, and on; the root's from src. */
GDRI_NOINLINE int gdri_tree_pass(const struct gdri_coll *c, uint8_t *dst, const uint8_t *src,
				 size_t len, int root, int flat)
{
	int v = gdri_coll_before(c, root), parent, ret = 0;

	if (v) {
		parent = gdri_tree_member(c, root, gdri_tree_parent(v, flat));
		ret = gdri_chan_recv(c, parent);
		if (ret)
			return ret;
		gdri_coll_copy(c, dst, gdri_chan_data(c, parent), len);
		ret = gdri_chan_taken(c, parent);
	}
	return ret ? ret : gdri_tree_down(c, root, flat, v ? dst : src, len);
}

GDRI_NOINLINE int gdri_broadcast_slots(const struct gdri_coll *c, uint8_t *dst, const uint8_t *src,
				       size_t len, int root, int flat)
{
	size_t part;
	int ret = 0;

	for (size_t at = 0; at < len && !ret; at += part) {
		part = gdri_coll_part(c, len - at);
		ret = gdri_tree_pass(c, dst + at, src + at, part, root, flat);
	}
	return ret;
}

/* Of each node one member, of the root's the root, has it from those of other nodes and gives it to its own. */
GDRI_NOINLINE int gdri_broadcast_leader(const struct gdri_coll *c, uint8_t *dst, const uint8_t *src,
					size_t len, int root)
{
	const struct gdri_coll node = gdri_coll_node(c), lane = gdri_coll_lane(c, 0, root);
	const struct gdri_team *t = c->team;
	int home = gdri_node_of(t, root), ret = 0;
	int leader = home == t->node ? gdri_node_local(t, root) : 0;
	size_t part;

	for (size_t at = 0; at < len && !ret; at += part) {
		part = gdri_coll_part(c, len - at);
		if (t->local == leader)
			ret = gdri_tree_pass(&lane, dst + at, src + at, part, home, 0);
		if (!ret)
			ret = gdri_tree_pass(&node, dst + at, (c->me == root ? src : dst) + at,
					     part, leader, 1);
	}
	return ret;
}

/* A block to each member, to where it belongs. All are known to be in the call. */
GDRI_NOINLINE int gdri_coll_spread(const struct gdri_coll *c, uint8_t *dst, const uint8_t *src,
				   const struct gdri_blocks *b, int root)
{
	int i, to, ret = 0;
	size_t at;

	for (i = 1; c->me == root && i < c->n && !ret; i++) {
		to = gdri_coll_after(c, i);
		at = gdri_block_at(c, b, to);
		if (gdri_block_len(c, b, to))
			ret = gdri_chan_send(c, to, dst + at, src + at, gdri_block_len(c, b, to));
	}
	if (!ret && c->me != root && gdri_block_len(c, b, c->me)) {
		ret = gdri_chan_recv(c, root);
		if (!ret)
			ret = gdri_chan_taken(c, root);
	}
	return ret;
}

/* A piece to each member, which all then exchange (TWO_SHOT), or all to everybody. */
GDRI_NOINLINE int gdri_broadcast_shots(const struct gdri_coll *c, uint8_t *dst,
				       const uint8_t *src, size_t len, int root, int two)
{
	const struct gdri_blocks b = {two ? GDRI_SPLIT : GDRI_WHOLE, len, 1, c->n};
	int ret = gdri_coll_spread(c, dst, src, &b, root);

	if (ret || !two)
		return ret;
	return gdri_coll_gather(c, dst, &b, (c->me == root ? src : dst) + gdri_block_at(c, &b, c->me));
}

/* The root gives its node a piece each, which go to the members of the same number on the other
 * nodes; each node then exchanges its pieces. */
GDRI_NOINLINE int gdri_broadcast_lanes(const struct gdri_coll *c, uint8_t *dst, const uint8_t *src,
				       size_t len, int root)
{
	const struct gdri_team *t = c->team;
	const struct gdri_blocks b = {GDRI_SPLIT, len, 1, t->lanes};
	const struct gdri_coll node = gdri_coll_node(c), lane = gdri_coll_lane(c, t->local, -1);
	size_t at = gdri_block_at(c, &b, t->local), mine = gdri_block_len(c, &b, t->local);
	int home = gdri_node_of(t, root), ret = 0;
	const uint8_t *piece = (c->me == root ? src : dst) + at;

	if (home == t->node)
		ret = gdri_coll_spread(&node, dst, src, &b, gdri_node_local(t, root));
	if (!ret && mine)
		ret = gdri_broadcast_shots(&lane, dst + at, piece, mine, home, t->nodes > 2);
	return ret ? ret : gdri_coll_gather(&node, dst, &b, piece);
}

GDRI_NOINLINE int gdri_broadcast_by(const struct gdri_coll *c, uint8_t *dst, const uint8_t *src,
				    size_t len, int root, int algo)
{
	int ret;

	GDRI_BY_ABI(gdri_broadcast_by);
	if (algo == GDRI_A_ONE_SHOT || algo == GDRI_A_TREE)
		return gdri_broadcast_slots(c, dst, src, len, root, algo == GDRI_A_ONE_SHOT);
	if (algo == GDRI_A_SINGLE_LEADER)
		return gdri_broadcast_leader(c, dst, src, len, root);
	ret = gdri_coll_sync(c);
	if (ret)
		return ret;
	return algo == GDRI_A_MULTI_RAIL
		       ? gdri_broadcast_lanes(c, dst, src, len, root)
		       : gdri_broadcast_shots(c, dst, src, len, root, algo == GDRI_A_TWO_SHOT);
}

#define GDRI_LL_BCAST_MOST 4096u /* longer ones take step.h's areas, as long as they are one epoch */

GDRI_NOINLINE int gdri_broadcast_all(int scope, gdr_team_t team, void *dst, const void *src, size_t len,
				 int root)
{
	struct gdri_coll c;
	int ret = gdri_coll_begin(&c, scope, team, GDRI_BROADCAST), algo;

	if (ret || !len)
		return ret;
	if (gdri_unlikely(root < 0 || root >= c.n))
		return gdri_coll_refuse(&c, dst, (uint64_t)(int64_t)root, GDRI_ARG_ROOT);
	algo = gdri_coll_algo(&c, GDRI_K_BROADCAST, len);
	if (algo == GDRI_A_GRID || (algo == GDRI_A_LL && !(gdri_ll_bcast_suits(c.scope, len) && gdri_ll_fits(&c, len))))
		return gdri_one_cta_broadcast(&c, dst, src, len, root);
	if (algo == GDRI_A_LL && c.n > 1)
		return gdri_coll_end(&c, gdri_ll_bcast_any(&c, team, (uint8_t *)dst, (const uint8_t *)src, len, root));
	if (c.n > 1)
		ret = gdri_broadcast_by(&c, (uint8_t *)dst, (const uint8_t *)src, len, root, algo);
	if (!ret && c.me == root)
		gdri_coll_copy(&c, dst, src, len);
	gdri_scope_sync(scope);
	return gdri_coll_end(&c, ret);
}

GDR_DEVICE int gdri_broadcast_as(int scope, gdr_team_t team, void *dst, const void *src, size_t len, int root)
{
	int ret = 1;

	if (len <= GDRI_LL_BCAST_MOST && gdri_ll_bcast_suits(scope, len))
		ret = gdri_ll_bcast(scope, team, (uint8_t *)dst, (const uint8_t *)src, len, root, 0);
	else if (gdri_ll_bcast_suits(scope, len))
		ret = gdri_ll_bcast_wide(scope, team, (uint8_t *)dst, (const uint8_t *)src, len, root);
	return gdri_likely(ret <= 0) ? ret : gdri_broadcast_all(scope, team, dst, src, len, root);
}

GDR_DEVICE int gdri_broadcast(int scope, gdr_team_t team, void *dst, const void *src, size_t len, int root)
{
	GDRI_BY_WARP(scope, gdri_few_moved(len, GDRI_FEW_BCAST),
		     gdri_broadcast_as(GDRI_WARP, team, dst, src, len, root));
	return gdri_broadcast_as(scope, team, dst, src, len, root);
}

#endif
