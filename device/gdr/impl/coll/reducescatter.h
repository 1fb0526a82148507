/* SPDX-License-Identifier: BSD-3-Clause */
/* Reducescatter: block i of every member, added up, to member i. By both levels what a node has for a member of
 * another one is added up first. MULTI_RAIL: by the member of its number (from beyond the own node's size on, as if
 * that went round), which sends it there. SINGLE_LEADER: what it has for all of a node by one member, in one message
 * (a packed message) to one of that node, which deals it out. Everything goes through slots. */
#ifndef GDRI_REDUCESCATTER_H
#define GDRI_REDUCESCATTER_H

#include <gdr/impl/coll/reduce.h>

/* What the own node has for its member number first + i of `node` is added up by its own number i; into out, if the
 * caller has one. v: of the node. */
GDRI_NOINLINE int gdri_scatter_sum(const struct gdri_reduce *v, const struct gdri_packing *y, int node,
				   int first, uint8_t *out)
{
	const struct gdri_team *t = y->c.team;
	int i, to, size = gdri_node_size(t, node), ret = 0;

	for (i = 1; i < v->c.n && !ret; i++) {
		to = gdri_coll_after(&v->c, i);
		if (first + to < size)
			ret = gdri_chan_send(&v->c, to, 0,
					     y->src + gdri_packed_at(y, gdri_node_member(t, node, first + to)),
					     y->part);
	}
	if (ret || !out)
		return ret;
	return gdri_reduce_slots(v, out,
				 y->src + gdri_packed_at(y, gdri_node_member(t, node, first + t->local)),
				 y->part, 0, v->c.n);
}

/* MULTI_RAIL: to the members of the node `far` ahead, in turns of as many as the own one has. */
GDRI_NOINLINE int gdri_scatter_lanes(const struct gdri_reduce *v, struct gdri_packing *y, int far)
{
	const struct gdri_team *t = y->c.team;
	int node = (t->node + far) % t->nodes, size = gdri_node_size(t, node), first, mine, ret = 0;
	uint8_t *out;

	for (first = 0; first < size && !ret; first += v->c.n) {
		mine = first + t->local;
		out = 0;
		if (mine < size)
			ret = gdri_packed_paper(y, &out);
		if (!ret)
			ret = gdri_scatter_sum(v, y, node, first, out);
		gdri_scope_sync(v->c.scope);
		if (!ret && out)
			ret = gdri_chan_send(&y->c, gdri_node_member(t, node, mine), 0, out, y->part);
	}
	return ret;
}

/* SINGLE_LEADER: to the n nodes from the one `far` ahead on, of which each has another leader. */
GDRI_NOINLINE int gdri_scatter_leaders(const struct gdri_reduce *v, struct gdri_packing *y, int far,
				       int n)
{
	const struct gdri_team *t = y->c.team;
	int i, me = t->local, node = (t->node + far + me) % t->nodes, ret = 0;
	size_t len = y->part * (size_t)(uint32_t)gdri_node_size(t, node);
	uint8_t *out;

	for (i = 0; i < n && !ret; i++)
		if (i != me)
			ret = gdri_packed_give(y, i, (t->node + far + i) % t->nodes);
	if (!ret && me < n)
		ret = gdri_packed_paper(y, &out);
	if (ret || me >= n)
		return ret;
	gdri_packed_fill(y, node, out, y->part);
	gdri_scope_sync(v->c.scope); /* filled byte by byte, read by elements */
	ret = gdri_reduce_slots(v, out, out, len, 0, v->c.n);
	gdri_scope_sync(v->c.scope);
	return ret ? ret : gdri_chan_send(&y->c, gdri_node_member(t, node, me), 0, out, len);
}

/* A sum for this member, `skip` bytes behind the begin of the next message. */
GDRI_NOINLINE int gdri_scatter_take(const struct gdri_reduce *v, const struct gdri_coll *c, int from,
				    size_t skip, uint8_t *dst, size_t len)
{
	int ret = gdri_chan_recv(c, from);

	if (ret)
		return ret;
	gdri_reduce_apply(v->code, c->scope, dst, dst, gdri_chan_data(c, from) + skip, len / v->elem);
	return gdri_chan_taken(c, from);
}

/* SINGLE_LEADER: what the n nodes from the one `far` behind on have for the own one. */
GDRI_NOINLINE int gdri_scatter_dealt(const struct gdri_reduce *v, const struct gdri_packing *y, int far,
				     int n)
{
	const struct gdri_team *t = y->c.team;
	int i, to, me = t->local, from = 0, ret = 0;
	uint8_t *dst = y->dst + y->at;

	if (me < n) {
		from = gdri_node_member(t, (t->node + t->nodes - far - me) % t->nodes, me);
		ret = gdri_chan_recv(&y->c, from);
	}
	for (i = 1; i < v->c.n && me < n && !ret; i++) {
		to = gdri_coll_after(&v->c, i);
		ret = gdri_chan_send(&v->c, to, 0, gdri_chan_data(&y->c, from) + (size_t)(uint32_t)to * y->part,
				     y->part);
	}
	for (i = 0; i < n && !ret; i++)
		ret = i == me ? gdri_scatter_take(v, &y->c, from, (size_t)(uint32_t)me * y->part, dst, y->part)
			      : gdri_scatter_take(v, &v->c, i, 0, dst, y->part);
	return ret;
}

/* MULTI_RAIL: takes what one node has sent. */
GDRI_NOINLINE int gdri_scatter_sent(const struct gdri_reduce *v, const struct gdri_packing *y, int far)
{
	const struct gdri_team *t = y->c.team;
	int node = (t->node + t->nodes - far) % t->nodes;

	return gdri_scatter_take(v, &y->c,
				 gdri_node_member(t, node, t->local % gdri_node_size(t, node)), 0,
				 y->dst + y->at, y->part);
}

GDR_DEVICE int gdri_scatter_few(const struct gdri_team *t, int far, int step)
{
	return t->nodes - far < step ? t->nodes - far : step;
}

/* One part. The own node comes between what is sent and what is taken: then all of src's part has been used, so that
 * dst, which may be there, is written. In each step a member sends another one at most one message, before it
 * takes any: whoever is furthest behind finds room and data. step: nodes at a time. */
GDRI_NOINLINE int gdri_scatter_part(const struct gdri_reduce *v, struct gdri_packing *y, int leader,
				    int step)
{
	const struct gdri_team *t = y->c.team;
	int far, ret = 0;

	for (far = 1; far < t->nodes && !ret; far += step)
		ret = leader ? gdri_scatter_leaders(v, y, far, gdri_scatter_few(t, far, step))
			     : gdri_scatter_lanes(v, y, far);
	if (!ret)
		ret = gdri_scatter_sum(v, y, t->node, 0, y->dst + y->at);
	for (far = 1; far < t->nodes && !ret; far += step)
		ret = leader ? gdri_scatter_dealt(v, y, far, gdri_scatter_few(t, far, step))
			     : gdri_scatter_sent(v, y, far);
	return ret;
}

GDRI_NOINLINE int gdri_scatter_levels(const struct gdri_reduce *r, int leader, uint8_t *dst,
				      const uint8_t *src, size_t len)
{
	struct gdri_packing y = {r->c, gdri_coll_node(&r->c), dst, src, len, 0, 0, 0};
	size_t room = gdri_packed_room(&r->c, 0) / r->elem * r->elem;
	struct gdri_reduce v = *r;
	int ret = 0;

	GDRI_BY_ABI(gdri_scatter_levels);
	if (!leader || !room) { /* on all members */
		leader = 0;
		room = r->c.team->slot_size;
	}
	v.c = y.node;
	v.in_place = 0; /* nothing of src goes by a queue */
	for (; y.at < len && !ret; y.at += y.part) {
		y.part = len - y.at < room ? len - y.at : room;
		ret = gdri_scatter_part(&v, &y, leader, leader ? r->c.team->lanes : 1);
	}
	return ret;
}

/* Block i of every member to member i. */
GDRI_NOINLINE int gdri_reducescatter_all(int scope, gdr_team_t team, void *dst, const void *src,
				     size_t n, uint32_t code)
{
	struct gdri_reduce r;
	int ret = gdri_reduce_begin(&r, scope, team, GDRI_REDUCESCATTER, code), algo;
	size_t len = n * r.elem;

	if (ret || !n)
		return ret;
	r.in_place = gdri_overlap(dst, len, src, len * (size_t)r.c.n);
	algo = gdri_reduce_algo(&r, GDRI_K_REDUCE, len * (size_t)r.c.n, r.in_place);
	if (algo == GDRI_A_LL && !gdri_ll_fits(&r.c, len))
		algo = r.in_place ? GDRI_A_ONE_SHOT : GDRI_A_GRID;
	if (algo == GDRI_A_LL)
		return gdri_ll_sum(scope, r.c.team, GDRI_REDUCESCATTER, dst, src, len, len, code, r.c.n);
	if (algo == GDRI_A_GRID)
		return gdri_grid_do(&r.c, GDRI_RQ_REDUCESCATTER, dst, src, n, r.elem, 0, code);
	if (r.c.n == 1)
		gdri_reduce_copy(code, scope, dst, src, n);
	else if (algo == GDRI_A_SINGLE_LEADER || algo == GDRI_A_MULTI_RAIL)
		ret = gdri_scatter_levels(&r, algo == GDRI_A_SINGLE_LEADER, (uint8_t *)dst, (const uint8_t *)src,
					  len);
	else
		return gdri_reduce_by_slots(scope, r.c.team, GDRI_REDUCESCATTER, GDRI_A_ONE_SHOT, dst, src, len, code);
	gdri_scope_sync(scope);
	return gdri_coll_end(&r.c, ret);
}

GDR_DEVICE int gdri_reducescatter_as(int scope, gdr_team_t team, void *dst, const void *src, size_t n,
				     uint32_t code)
{
	size_t len = n << (code & 15u);
	int ret = 1;

	if (!gdri_sum_suits(scope, dst, src, len, code))
		ret = gdri_reduce_alone(team, GDRI_REDUCESCATTER, dst, src, len, code);
	else if (scope != GDRI_WARP || len <= 2 * GDRI_WARP_ADDED)
		ret = gdri_ll_step_sum(scope, team, GDRI_REDUCESCATTER, GDRI_K_REDUCE, dst, src, len, len, code,
				     GDRI_ALL);
	return gdri_likely(ret <= 0) ? ret : gdri_reducescatter_all(scope, team, dst, src, n, code);
}

GDR_DEVICE int gdri_reducescatter(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code)
{
	GDRI_BY_WARP(scope, n <= GDRI_FEW_ADDED, gdri_reducescatter_as(GDRI_WARP, team, dst, src, n, code));
	return gdri_reducescatter_as(scope, team, dst, src, n, code);
}

#endif
