/* SPDX-License-Identifier: BSD-3-Clause */
/* Alltoall by both levels, for short blocks: several travel between two nodes in one message, a
 * packed message. MULTI_RAIL: what a member has for another node goes to one member there, which deals it out.
 * SINGLE_LEADER: what a whole node has for another one is gathered by one of its members first. Everything
 * goes through slots. */
#ifndef GDRI_ALLTOALL_LEVELS_H
#define GDRI_ALLTOALL_LEVELS_H

#include <gdr/impl/coll/blocks.h>

struct gdri_packing {
	struct gdri_coll c, node;
	uint8_t *dst;
	const uint8_t *src;
	size_t len, at, part; /* of a block; of it, what is under way */
	uint32_t packed;      /* packed messages in the own slots so far: nobody sends to itself */
};

/* So much of each block goes at a time. 0: there is no room, on any member. */
GDR_DEVICE size_t gdri_packed_room(const struct gdri_coll *c, int leader)
{
	size_t most = (size_t)(uint32_t)c->team->most;

	return c->team->slot_size / (leader ? most * most : most);
}

GDR_DEVICE size_t gdri_packed_at(const struct gdri_packing *y, int member)
{
	return (size_t)(uint32_t)member * y->len + y->at;
}

/* The own part for each member of the node, `step` bytes apart. */
GDR_DEVICE void gdri_packed_fill(const struct gdri_packing *y, int node, uint8_t *out, size_t step)
{
	int j, n = gdri_node_size(y->c.team, node);

	for (j = 0; j < n; j++)
		gdri_coll_copy(&y->c, out + (size_t)j * step,
			       y->src + gdri_packed_at(y, gdri_node_member(y->c.team, node, j)), y->part);
}

/* Parts of n members of `node`, from its number `first` on, to where they belong. */
GDR_DEVICE void gdri_packed_open(const struct gdri_packing *y, int node, int first, int n,
				 const uint8_t *data)
{
	for (int i = 0; i < n; i++)
		gdri_coll_copy(&y->c,
			       y->dst + gdri_packed_at(y, gdri_node_member(y->c.team, node, first + i)),
			       data + (size_t)i * y->part, y->part);
}

/* Where to pack the next packed message: what was there is no longer under way. */
GDRI_NOINLINE int gdri_packed_paper(struct gdri_packing *y, uint8_t **out)
{
	int ret = 0;

	if (y->packed && y->packed % GDRI_CHAN_DEPTH == 0)
		ret = gdri_coll_flush(&y->c);
	*out = gdri_chan_slot(&y->c, y->c.team->me, y->packed++);
	return ret;
}

/* The parts of the own node, each straight to its member. */
GDRI_NOINLINE int gdri_packed_home(const struct gdri_packing *y)
{
	const struct gdri_coll *c = &y->node;
	int i, m, ret = 0;

	for (i = 1; i < c->n && !ret; i++) {
		m = gdri_coll_after(c, i);
		ret = gdri_chan_send(c, m, 0, y->src + gdri_packed_at(y, gdri_coll_member(c, m)), y->part);
	}
	for (i = 1; i < c->n && !ret; i++) {
		m = gdri_coll_before(c, i);
		ret = gdri_chan_recv(c, m);
		if (ret)
			break;
		gdri_packed_open(y, c->team->node, m, 1, gdri_chan_data(c, m));
		ret = gdri_chan_taken(c, m);
	}
	return ret;
}

/* To member `to` of the own node: the own parts for node `node`. */
GDRI_NOINLINE int gdri_packed_give(const struct gdri_packing *y, int to, int node)
{
	const struct gdri_coll *c = &y->node;
	int member = gdri_coll_member(c, to), ret = gdri_chan_room(c, member);
	uint8_t *slot;

	if (ret)
		return ret;
	slot = gdri_chan_slot(c, c->team->me, gdri_chan_count(&c->team->chan[member].sent) + 1);
	gdri_packed_fill(y, node, gdri_chan_mapped(c, slot, gdri_team_pe(c->team, member)), y->part);
	gdri_scope_sync(c->scope); /* all have written: before the release that tells so */
	return gdri_chan_send(c, to, 0, 0, 0);
}

/* SINGLE_LEADER: the own node's parts for `node`, by member there, then by member here, go there. */
GDRI_NOINLINE int gdri_packed_gather(struct gdri_packing *y, int node)
{
	const struct gdri_coll *c = &y->node;
	int i, j, n = gdri_node_size(c->team, node), ret;
	size_t part = y->part, step = (size_t)(uint32_t)c->n * part;
	uint8_t *out;

	ret = gdri_packed_paper(y, &out);
	if (!ret)
		gdri_packed_fill(y, node, out + (size_t)(uint32_t)c->me * part, step);
	for (i = 1; i < c->n && !ret; i++) {
		int from = gdri_coll_before(c, i);

		ret = gdri_chan_recv(c, from);
		for (j = 0; j < n && !ret; j++)
			gdri_coll_copy(c, out + (size_t)j * step + (size_t)from * part,
				       gdri_chan_data(c, from) + (size_t)j * part, part);
		if (!ret)
			ret = gdri_chan_taken(c, from);
	}
	gdri_scope_sync(c->scope);
	if (ret)
		return ret;
	return gdri_chan_send(&y->c, gdri_node_member(c->team, node, c->me), 0, out, (size_t)n * step);
}

/* MULTI_RAIL: the own parts for `node` to one of it, from where they are if they stand together. */
GDRI_NOINLINE int gdri_packed_own(struct gdri_packing *y, int node)
{
	const struct gdri_team *t = y->c.team;
	int n = gdri_node_size(t, node), first = gdri_node_member(t, node, 0), ret = 0;
	const uint8_t *from = y->src + gdri_packed_at(y, first);
	uint8_t *out;

	if (n > 1 && (y->part < y->len || gdri_node_member(t, node, n - 1) != first + n - 1)) {
		ret = gdri_packed_paper(y, &out);
		if (ret)
			return ret;
		gdri_packed_fill(y, node, out, y->part);
		gdri_scope_sync(y->c.scope);
		from = out;
	}
	return gdri_chan_send(&y->c, gdri_node_member(t, node, t->local % n), 0, from,
			      (size_t)n * y->part);
}

/* A packed message from member `from` of the team, with what n members of `node` from its number `first` on
 * have for the own node, to whom it is for. */
GDRI_NOINLINE int gdri_packed_deal(const struct gdri_packing *y, int from, int node, int first,
				   int n)
{
	const struct gdri_coll *c = &y->node;
	size_t step = (size_t)(uint32_t)n * y->part;
	int i, to, ret = gdri_chan_recv(&y->c, from);
	const uint8_t *data = gdri_chan_data(&y->c, from);

	for (i = 1; i < c->n && !ret; i++) {
		to = gdri_coll_after(c, i);
		ret = gdri_chan_send(c, to, 0, data + (size_t)to * step, step);
	}
	if (ret)
		return ret;
	gdri_packed_open(y, node, first, n, data + (size_t)(uint32_t)c->me * step);
	return gdri_chan_taken(&y->c, from);
}

/* What member `from` of the own node dealt out. */
GDRI_NOINLINE int gdri_packed_take(const struct gdri_packing *y, int from, int node, int first,
				   int n)
{
	int ret = gdri_chan_recv(&y->node, from);

	if (ret)
		return ret;
	gdri_packed_open(y, node, first, n, gdri_chan_data(&y->node, from));
	return gdri_chan_taken(&y->node, from);
}

/* To the n nodes from the one `far` ahead on, and from as many behind: each has another leader. */
GDRI_NOINLINE int gdri_packed_leaders(struct gdri_packing *y, int far, int n)
{
	const struct gdri_team *t = y->c.team;
	int i, node, me = t->local, ret = 0;

	for (i = 0; i < n && !ret; i++)
		if (i != me)
			ret = gdri_packed_give(y, i, (t->node + far + i) % t->nodes);
	if (!ret && me < n)
		ret = gdri_packed_gather(y, (t->node + far + me) % t->nodes);
	if (!ret && me < n) {
		node = (t->node + t->nodes - far - me) % t->nodes;
		ret = gdri_packed_deal(y, gdri_node_member(t, node, me), node, 0, gdri_node_size(t, node));
	}
	for (i = 0; i < n && !ret; i++) {
		node = (t->node + t->nodes - far - i) % t->nodes;
		if (i != me)
			ret = gdri_packed_take(y, i, node, 0, gdri_node_size(t, node));
	}
	return ret;
}

/* Members first .. of `node`, each of which sent a packed message to another one of the own node. */
GDRI_NOINLINE int gdri_packed_lanes(const struct gdri_packing *y, int node, int first)
{
	const struct gdri_team *t = y->c.team;
	int i, from, size = gdri_node_size(t, node), ret = 0;

	if (first + t->local < size)
		ret = gdri_packed_deal(y, gdri_node_member(t, node, first + t->local), node,
				       first + t->local, 1);
	for (i = 1; i < y->node.n && !ret; i++) {
		from = gdri_coll_before(&y->node, i);
		if (first + from < size)
			ret = gdri_packed_take(y, from, node, first + from, 1);
	}
	return ret;
}

/* A step is where all have sent what they send before they take any of it. In each a member sends at
 * most one message to each other one: whoever is furthest behind finds room and data. */
GDRI_NOINLINE int gdri_alltoall_levels(const struct gdri_coll *c, int leader, uint8_t *dst,
				       const uint8_t *src, size_t len)
{
	struct gdri_packing y = {*c, gdri_coll_node(c), dst, src, len, 0, 0, 0};
	const struct gdri_team *t = c->team;
	size_t room = gdri_packed_room(c, leader);
	int far, node, first, ret = 0;

	for (; y.at < len && !ret; y.at += y.part) {
		y.part = len - y.at < room ? len - y.at : room;
		ret = gdri_packed_home(&y);
		for (far = 1; leader && far < t->nodes && !ret; far += t->lanes)
			ret = gdri_packed_leaders(&y, far, t->nodes - far < t->lanes ? t->nodes - far
										   : t->lanes);
		for (far = 1; !leader && far < t->nodes && !ret; far++)
			ret = gdri_packed_own(&y, (t->node + far) % t->nodes);
		for (far = 1; !leader && far < t->nodes && !ret; far++) {
			node = (t->node + t->nodes - far) % t->nodes;
			for (first = 0; first < gdri_node_size(t, node) && !ret; first += y.node.n)
				ret = gdri_packed_lanes(&y, node, first);
		}
	}
	return ret;
}

#endif
