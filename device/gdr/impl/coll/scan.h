/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans: each member has what those below it bring added up, in the order of their numbers. */
#ifndef GDRI_SCAN_H
#define GDRI_SCAN_H

#include <gdr/impl/coll/reduce.h>

GDR_DEVICE void gdri_scan_zero(const struct gdri_reduce *r, uint8_t *dst, size_t len)
{
	for (size_t k = gdri_scope_rank(r->c.scope); k < len; k += gdri_scope_size(r->c.scope))
		dst[k] = 0;
}

/* To all members above; from all below. */
GDRI_NOINLINE int gdri_scan_flat(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				 size_t len, int exclusive)
{
	const struct gdri_coll *c = &r->c;
	int me = c->me, i, ret = 0;
	size_t part;

	GDRI_BY_ABI(gdri_scan_flat);
	for (size_t at = 0; at < len && !ret; at += part) {
		part = gdri_coll_part(c, len - at);
		for (i = me + 1; i < c->n && !ret; i++)
			ret = gdri_chan_send(c, i, 0, src + at, part);
		if (ret)
			break;
		if (exclusive && !me) {
			if (r->in_place)
				ret = gdri_coll_flush(c);
			gdri_scan_zero(r, dst + at, part);
		} else {
			ret = gdri_reduce_slots(r, dst + at, src + at, part, 0,
						exclusive ? me : me + 1);
		}
	}
	return ret;
}

/* From the member below, and with the own part added to the one above; dst holds what is sent, and
 * in an exclusive scan then what came. */
GDRI_NOINLINE int gdri_scan_pass(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				 size_t len, int exclusive)
{
	const struct gdri_coll *c = &r->c;
	int me = c->me, last = me == c->n - 1, ret = gdri_chan_recv(c, me - 1);
	const uint8_t *sum = gdri_chan_data(c, me - 1);

	if (ret)
		return ret;
	if (!last || !exclusive)
		gdri_reduce_apply(r->code, c->scope, dst, sum, src, len / r->elem);
	gdri_scope_sync(c->scope);
	if (!last)
		ret = gdri_chan_send(c, me + 1, 0, dst, len);
	if (!ret && !last && exclusive)
		ret = gdri_coll_flush(c);
	if (ret)
		return ret;
	if (exclusive)
		gdri_reduce_copy(r->code, c->scope, dst, sum, len / r->elem);
	return gdri_chan_taken(c, me - 1);
}

GDRI_NOINLINE int gdri_scan_chain(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				  size_t len, int exclusive)
{
	const struct gdri_coll *c = &r->c;
	size_t part;
	int ret = 0;

	GDRI_BY_ABI(gdri_scan_chain);
	for (size_t at = 0; at < len && !ret; at += part) {
		part = gdri_coll_part(c, len - at);
		if (c->me) {
			ret = gdri_scan_pass(r, dst + at, src + at, part, exclusive);
			continue;
		}
		if (c->n > 1)
			ret = gdri_chan_send(c, 1, 0, src + at, part);
		if (!ret && r->in_place && exclusive)
			ret = gdri_coll_flush(c);
		if (exclusive)
			gdri_scan_zero(r, dst + at, part);
		else
			gdri_reduce_copy(r->code, c->scope, dst + at, src + at, part / r->elem);
	}
	return ret;
}

/* The sums of all nodes below, from the last member of each to the first one of this node, which
 * gives what they add up to to its own. Where that is, until gdri_scan_left. */
GDRI_NOINLINE int gdri_scan_below(const struct gdri_reduce *r, size_t len, uint8_t **sum)
{
	const struct gdri_coll *c = &r->c, node = gdri_coll_node(c);
	const struct gdri_team *t = c->team;
	int i, from, ret = 0;

	for (i = 0; i < t->node && !t->local && !ret; i++) {
		from = gdri_node_member(t, i, gdri_node_size(t, i) - 1);
		ret = gdri_chan_recv(c, from);
		if (!i)
			*sum = gdri_chan_data(c, from);
		else if (!ret)
			gdri_reduce_apply(r->code, c->scope, *sum, *sum, gdri_chan_data(c, from),
					  len / r->elem);
	}
	gdri_scope_sync(c->scope);
	for (i = 1; i < node.n && !t->local && !ret; i++)
		ret = gdri_chan_send(&node, i, 0, *sum, len);
	if (!t->local)
		return ret;
	ret = gdri_chan_recv(&node, 0);
	*sum = gdri_chan_data(&node, 0);
	return ret;
}

GDRI_NOINLINE int gdri_scan_left(const struct gdri_reduce *r)
{
	const struct gdri_coll *c = &r->c, node = gdri_coll_node(c);
	const struct gdri_team *t = c->team;
	int i, ret = 0;

	if (t->local)
		return gdri_chan_taken(&node, 0);
	for (i = 0; i < t->node && !ret; i++)
		ret = gdri_chan_taken(c, gdri_node_member(t, i, gdri_node_size(t, i) - 1));
	return ret;
}

/* One part. Each node has a scan of its own, behind which its last member has the node's sum, for the
 * first one of each node above. */
GDRI_NOINLINE int gdri_scan_node(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				 size_t len, int exclusive)
{
	struct gdri_reduce v = *r;
	const struct gdri_coll *c = &r->c;
	const struct gdri_team *t = c->team;
	uint8_t *all = gdri_chan_slot(c, t->me, 0), *below = 0; /* all: nobody sends to itself */
	int i, last = t->local == gdri_node_size(t, t->node) - 1, ret;

	v.c = gdri_coll_node(c);
	v.in_place = 0; /* nothing of src goes by a queue */
	if (last && exclusive) {
		gdri_reduce_copy(r->code, c->scope, all, src, len / r->elem);
		gdri_scope_sync(c->scope); /* in place, a node's only member zeroes it next, byte by byte */
	}
	ret = gdri_scan_flat(&v, dst, src, len, exclusive);
	if (ret)
		return ret;
	if (last && !exclusive)
		gdri_reduce_copy(r->code, c->scope, all, dst, len / r->elem);
	else if (last && t->local)
		gdri_reduce_apply(r->code, c->scope, all, dst, all, len / r->elem);
	gdri_scope_sync(c->scope);
	for (i = t->node + 1; i < t->nodes && last && !ret; i++)
		ret = gdri_chan_send(c, gdri_node_member(t, i, 0), 0, all, len);
	if (ret || !t->node)
		return ret;
	ret = gdri_scan_below(r, len, &below);
	if (ret)
		return ret;
	if (exclusive && !t->local)
		gdri_reduce_copy(r->code, c->scope, dst, below, len / r->elem);
	else
		gdri_reduce_apply(r->code, c->scope, dst, below, dst, len / r->elem);
	return gdri_scan_left(r);
}

/* In teams each of whose nodes has members that follow each other. */
GDRI_NOINLINE int gdri_scan_levels(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				   size_t len, int exclusive)
{
	size_t part;
	int ret = 0;

	GDRI_BY_ABI(gdri_scan_levels);
	for (size_t at = 0; at < len && !ret; at += part) {
		part = gdri_coll_part(&r->c, len - at);
		if (at) /* the node's sum has left */
			ret = gdri_coll_flush(&r->c);
		if (!ret)
			ret = gdri_scan_node(r, dst + at, src + at, part, exclusive);
	}
	return ret;
}

GDRI_NOINLINE int gdri_scan_all(int scope, gdr_team_t team, void *dst, const void *src, size_t n,
			    uint32_t code, int exclusive)
{
	struct gdri_reduce r;
	int ret = gdri_reduce_begin(&r, scope, team, GDRI_SCAN, code), algo;
	size_t len = n * r.elem;

	if (ret || !n)
		return ret;
	r.in_place = gdri_overlap(dst, len, src, len);
	algo = gdri_reduce_algo(&r, GDRI_K_SCAN, len, r.in_place);
	if (algo == GDRI_A_LL)
		return gdri_ll_sum(scope, r.c.team, GDRI_SCAN, dst, src, len, 0, code, r.c.me + !exclusive);
	if (algo == GDRI_A_GRID)
		return gdri_grid_do(&r.c, exclusive ? GDRI_RQ_EXSCAN : GDRI_RQ_INSCAN, dst, src, n,
				    r.elem, 0, code);
	if (algo == GDRI_A_SINGLE_LEADER)
		ret = gdri_scan_levels(&r, (uint8_t *)dst, (const uint8_t *)src, len, exclusive);
	else if (algo == GDRI_A_RING)
		ret = gdri_scan_chain(&r, (uint8_t *)dst, (const uint8_t *)src, len, exclusive);
	else
		ret = gdri_scan_flat(&r, (uint8_t *)dst, (const uint8_t *)src, len, exclusive);
	gdri_scope_sync(scope);
	return gdri_coll_end(&r.c, ret);
}

GDR_DEVICE int gdri_scan_as(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code,
			    int exclusive)
{
	int ret = gdri_ll_step_sum(scope, team, GDRI_SCAN, GDRI_K_SCAN, dst, src, 0, n << (code & 15u), code,
				 exclusive ? GDRI_BELOW : GDRI_UP_TO);

	return gdri_likely(ret <= 0) ? ret : gdri_scan_all(scope, team, dst, src, n, code, exclusive);
}

GDR_DEVICE int gdri_scan(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code, int exclusive)
{
	GDRI_BY_WARP(scope, n <= GDRI_FEW_ADDED, gdri_scan_as(GDRI_WARP, team, dst, src, n, code, exclusive));
	return gdri_scan_as(scope, team, dst, src, n, code, exclusive);
}

#endif
