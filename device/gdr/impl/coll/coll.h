/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that move data: collect, fcollect, alltoall, alltoalls. All are on bytes
 * and for every scope; which algorithm is used stands in the team's table (gdri_team.algo). */
#ifndef GDRI_COLL_H
#define GDRI_COLL_H

#include <gdr/impl/coll/alltoall_levels.h>
#include <gdr/impl/coll/ll/step.h>
#include <gdr/impl/coll/direct/grid.h>
#include <gdr/impl/coll/direct/one_cta.h>
#include <gdr/impl/coll/ll/epochs.h>

/* ---- every member to every other one ---- */

/* Part `at` of each other member's block of src, into its slot. 1: there are further parts. */
GDRI_NOINLINE int gdri_coll_send_parts(const struct gdri_coll *c, const uint8_t *src,
				       const struct gdri_blocks *sb, size_t at)
{
	size_t len, part;
	int to, ret, more = 0;

	for (int i = 1; i < c->n; i++) {
		to = gdri_coll_after(c, i);
		len = gdri_block_len(c, sb, to);
		if (at >= len)
			continue;
		part = gdri_coll_part(c, len - at);
		ret = gdri_chan_send(c, to, 0, src + gdri_block_at(c, sb, to) + at, part);
		if (ret)
			return ret;
		more |= at + part < len;
	}
	return more;
}

GDRI_NOINLINE int gdri_coll_recv_parts(const struct gdri_coll *c, uint8_t *dst,
				       const struct gdri_blocks *db, size_t at, int more)
{
	size_t len, part;
	int from, ret;

	for (int i = 1; i < c->n; i++) {
		from = gdri_coll_before(c, i);
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
		more |= at + part < len;
	}
	return more;
}

/* Nobody waits for ever: who is furthest behind finds its members' room free, since they took all
 * earlier parts, and their parts sent. */
GDRI_NOINLINE int gdri_coll_flat(const struct gdri_coll *c, uint8_t *dst,
				 const struct gdri_blocks *db, const uint8_t *src,
				 const struct gdri_blocks *sb)
{
	size_t at = 0;
	int ret;

	do {
		ret = gdri_coll_send_parts(c, src, sb, at);
		if (ret >= 0)
			ret = gdri_coll_recv_parts(c, dst, db, at, ret);
		at += c->team->slot_size;
	} while (ret > 0);
	return ret;
}

/* A block of each member came to where it belongs. */
GDRI_NOINLINE int gdri_coll_arrived(const struct gdri_coll *c, const struct gdri_blocks *db)
{
	int i, from, ret = 0;

	for (i = 1; i < c->n && !ret; i++) {
		from = gdri_coll_before(c, i);
		if (!gdri_block_len(c, db, from))
			continue;
		ret = gdri_chan_recv(c, from);
		if (!ret)
			ret = gdri_chan_taken(c, from);
	}
	return ret;
}

/* All members are known to be in the call. */
GDRI_NOINLINE int gdri_coll_linear(const struct gdri_coll *c, uint8_t *dst,
				   const struct gdri_blocks *db, const uint8_t *src,
				   const struct gdri_blocks *sb)
{
	size_t mine = gdri_block_at(c, db, c->me), len;
	int i, to, ret = 0;

	for (i = 1; i < c->n && !ret; i++) {
		to = gdri_coll_after(c, i);
		len = gdri_block_len(c, sb, to);
		if (len)
			ret = gdri_chan_send(c, to, dst + mine, src + gdri_block_at(c, sb, to), len);
	}
	return ret ? ret : gdri_coll_arrived(c, db);
}

/* Each has a block for all, src, which goes to where it belongs. All members are known to be in the call. */
GDRI_NOINLINE int gdri_coll_gather(const struct gdri_coll *c, uint8_t *dst, const struct gdri_blocks *db,
				   const uint8_t *src)
{
	size_t len = gdri_block_len(c, db, c->me);
	int i, ret = 0;

	for (i = 1; i < c->n && len && !ret; i++)
		ret = gdri_chan_send(c, gdri_coll_after(c, i), dst + gdri_block_at(c, db, c->me), src, len);
	return ret ? ret : gdri_coll_arrived(c, db);
}

/* Each block goes round, always to the next member. All are known to be in the call. */
GDRI_NOINLINE int gdri_coll_ring(const struct gdri_coll *c, uint8_t *dst,
				 const struct gdri_blocks *db, const uint8_t *src)
{
	int s, b, ret = 0, next = gdri_coll_after(c, 1), prev = gdri_coll_before(c, 1);
	uint8_t *at;

	for (s = 0; s < c->n - 1 && !ret; s++) {
		b = gdri_coll_before(c, s);
		at = dst + gdri_block_at(c, db, b);
		if (gdri_block_len(c, db, b))
			ret = gdri_chan_send(c, next, at, s ? at : src, gdri_block_len(c, db, b));
		b = gdri_coll_before(c, s + 1);
		if (ret || !gdri_block_len(c, db, b))
			continue;
		ret = gdri_chan_recv(c, prev);
		if (!ret)
			ret = gdri_chan_taken(c, prev);
	}
	return ret;
}

/* ---- every member to every other one, by both levels: each gives one block to all ---- */

struct gdri_relay {
	struct gdri_coll c, node;
	uint8_t *dst;
	const struct gdri_blocks *db;
	size_t at, most; /* part of each block under way */
	int slots;	 /* it takes slots, else it goes to where it belongs: all are in the call */
};

GDR_DEVICE size_t gdri_relay_part(const struct gdri_relay *y, int block)
{
	size_t len = gdri_block_len(&y->c, y->db, block);

	return y->at >= len ? 0 : len - y->at < y->most ? len - y->at : y->most;
}

/* From src, which is that part. */
GDR_DEVICE int gdri_relay_send(const struct gdri_relay *y, const struct gdri_coll *c, int to,
			       int block, const uint8_t *src)
{
	size_t part = gdri_relay_part(y, block);
	uint8_t *at = y->slots ? 0 : y->dst + gdri_block_at(&y->c, y->db, block) + y->at;

	return part ? gdri_chan_send(c, to, at, src, part) : 0;
}

GDR_DEVICE int gdri_relay_take(const struct gdri_relay *y, const struct gdri_coll *c, int from,
			       int block)
{
	size_t part = gdri_relay_part(y, block);
	int ret = part ? gdri_chan_recv(c, from) : 0;

	if (!part || ret)
		return ret;
	if (y->slots)
		gdri_coll_copy(c, y->dst + gdri_block_at(&y->c, y->db, block) + y->at,
			       gdri_chan_data(c, from), part);
	return gdri_chan_taken(c, from);
}

/* To all of the own node, and one of each other one. */
GDRI_NOINLINE int gdri_relay_own(const struct gdri_relay *y, const uint8_t *src)
{
	const struct gdri_team *t = y->c.team;
	int i, node, ret = 0;

	for (i = 1; i < t->nodes && !ret; i++) {
		node = (t->node + i) % t->nodes;
		ret = gdri_relay_send(y, &y->c,
				      gdri_node_member(t, node, t->local % gdri_node_size(t, node)),
				      t->me, src + y->at);
	}
	for (i = 1; i < y->node.n && !ret; i++)
		ret = gdri_relay_send(y, &y->node, gdri_coll_after(&y->node, i), t->me, src + y->at);
	for (i = 1; i < y->node.n && !ret; i++) {
		node = gdri_coll_before(&y->node, i);
		ret = gdri_relay_take(y, &y->node, node, gdri_coll_member(&y->node, node));
	}
	return ret;
}

/* Members first .. first + n - 1 of the node, of whose blocks each member of this PE's node gets and passes on one. */
GDRI_NOINLINE int gdri_relay_on(const struct gdri_relay *y, int node, int first)
{
	const struct gdri_team *t = y->c.team;
	int size = gdri_node_size(t, node), i, from, block, ret = 0;

	if (first + t->local < size) {
		block = gdri_node_member(t, node, first + t->local);
		ret = gdri_relay_take(y, &y->c, block, block);
		for (i = 1; i < y->node.n && !ret; i++)
			ret = gdri_relay_send(y, &y->node, gdri_coll_after(&y->node, i), block,
					      y->dst + gdri_block_at(&y->c, y->db, block) + y->at);
	}
	for (i = 1; i < y->node.n && !ret; i++) {
		from = gdri_coll_before(&y->node, i);
		if (first + from < size)
			ret = gdri_relay_take(y, &y->node, from,
					      gdri_node_member(t, node, first + from));
	}
	return ret;
}

/* In each step a member sends at most one message to each other one, then takes those of the step: whoever is
 * furthest behind finds room and data. Little goes through slots. */
GDRI_NOINLINE int gdri_coll_lanes(const struct gdri_coll *c, uint8_t *dst,
				  const struct gdri_blocks *db, const uint8_t *src)
{
	struct gdri_relay y = {*c, gdri_coll_node(c), dst, db, 0, ~(size_t)0, 0};
	size_t all = gdri_block_at(c, db, c->n - 1) + gdri_block_len(c, db, c->n - 1);
	int nodes = c->team->nodes, i, first, node, more, ret = 0;

	y.slots = all <= GDRI_CHAN_DEPTH * (size_t)c->team->slot_size;
	if (y.slots)
		y.most = c->team->slot_size;
	else
		ret = gdri_coll_sync(c);
	if (ret)
		return ret;
	do {
		ret = gdri_relay_own(&y, src);
		for (i = 1; i < nodes && !ret; i++) {
			node = (c->team->node + i) % nodes;
			for (first = 0; first < gdri_node_size(c->team, node) && !ret; first += y.node.n)
				ret = gdri_relay_on(&y, node, first);
		}
		for (i = more = 0; i < c->n && y.slots; i++)
			more |= gdri_block_len(c, db, i) > y.at + y.most;
		y.at += y.most;
	} while (more && !ret);
	return ret;
}

/* The own block is `src` where each gives one block to all (sb WHOLE). */
GDRI_NOINLINE int gdri_coll_exchange(const struct gdri_coll *c, int algo, uint8_t *dst,
				     const struct gdri_blocks *db, const uint8_t *src,
				     const struct gdri_blocks *sb)
{
	int me = c->me, leader = algo == GDRI_A_SINGLE_LEADER, packed, ret = 0;

	GDRI_BY_ABI(gdri_coll_exchange);
	packed = leader || (algo == GDRI_A_MULTI_RAIL && sb->layout == GDRI_EQUAL);
	if (packed && !gdri_packed_room(c, leader))
		algo = GDRI_A_ONE_SHOT;
	if (c->n > 1 && algo != GDRI_A_ONE_SHOT && algo != GDRI_A_MULTI_RAIL && !leader)
		ret = gdri_coll_sync(c);
	if (ret || c->n == 1)
		;
	else if (algo == GDRI_A_ONE_SHOT)
		ret = gdri_coll_flat(c, dst, db, src, sb);
	else if (packed)
		ret = gdri_alltoall_levels(c, leader, dst, src, db->len);
	else if (algo == GDRI_A_MULTI_RAIL)
		ret = gdri_coll_lanes(c, dst, db, src);
	else if (algo == GDRI_A_RING)
		ret = gdri_coll_ring(c, dst, db, src);
	else
		ret = gdri_coll_linear(c, dst, db, src, sb);
	if (!ret)
		gdri_coll_copy(c, dst + gdri_block_at(c, db, me), src + gdri_block_at(c, sb, me),
			       gdri_block_len(c, db, me));
	gdri_scope_sync(c->scope);
	return ret;
}

/* len bytes to each, from src + src_step * its number, by LL. */
GDR_DEVICE int gdri_exchange_ll(const struct gdri_coll *c, void *dst, const void *src, size_t len,
				size_t dst_step, size_t src_step)
{
	const struct gdri_ll_moves m = {
		{(uint8_t *)dst, (const uint8_t *)src, dst_step, src_step, len, 0, 0}, len, 0};

	return gdri_coll_end(c, gdri_ll_move(c, &m));
}

GDR_DEVICE int gdri_move_fits(const struct gdri_coll *c, size_t len)
{
	return gdri_ll_suits(c->scope, len) && gdri_ll_fits(c, len);
}

GDRI_NOINLINE int gdri_fcollect_all(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	const struct gdri_blocks db = {GDRI_EQUAL, len, 1, 0}, sb = {GDRI_WHOLE, len, 1, 0};
	struct gdri_coll c;
	int ret = gdri_coll_begin(&c, scope, team, GDRI_COLLECT), algo;

	if (ret || !len)
		return ret;
	algo = gdri_coll_algo(&c, GDRI_K_COLLECT, len * (size_t)c.n);
	if (algo == GDRI_A_GRID || (algo == GDRI_A_LL && !gdri_move_fits(&c, len)))
		return gdri_one_cta_spread(&c, (uint8_t *)dst + len * (size_t)(uint32_t)c.me, src, 0, len);
	if (algo == GDRI_A_LL)
		return gdri_exchange_ll(&c, dst, src, len, len, 0);
	ret = gdri_coll_exchange(&c, algo, (uint8_t *)dst, &db, (const uint8_t *)src, &sb);
	return gdri_coll_end(&c, ret);
}

GDR_DEVICE int gdri_fcollect_as(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	int ret = 1;

	if (gdri_ll_suits(scope, len))
		ret = gdri_ll_step_move(scope, team, GDRI_COLLECT, GDRI_K_COLLECT, dst, len, src, 0, len);
	return gdri_likely(ret <= 0) ? ret : gdri_fcollect_all(scope, team, dst, src, len);
}

GDR_DEVICE int gdri_fcollect(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	GDRI_BY_WARP(scope, gdri_few_moved(len, GDRI_FEW_MOVED), gdri_fcollect_as(GDRI_WARP, team, dst, src, len));
	return gdri_fcollect_as(scope, team, dst, src, len);
}

GDRI_NOINLINE int gdri_alltoall_all(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	const struct gdri_blocks b = {GDRI_EQUAL, len, 1, 0};
	struct gdri_coll c;
	int ret = gdri_coll_begin(&c, scope, team, GDRI_ALLTOALL), algo;

	if (ret || !len)
		return ret;
	algo = gdri_coll_algo(&c, GDRI_K_ALLTOALL, len * (size_t)c.n);
	if (algo == GDRI_A_GRID || (algo == GDRI_A_LL && !gdri_move_fits(&c, len)))
		return gdri_one_cta_spread(&c, (uint8_t *)dst + len * (size_t)(uint32_t)c.me, src, len, len);
	if (algo == GDRI_A_LL)
		return gdri_exchange_ll(&c, dst, src, len, len, len);
	ret = gdri_coll_exchange(&c, algo, (uint8_t *)dst, &b, (const uint8_t *)src, &b);
	return gdri_coll_end(&c, ret);
}

GDR_DEVICE int gdri_alltoall_as(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	int ret = 1;

	if (gdri_ll_suits(scope, len))
		ret = gdri_ll_step_move(scope, team, GDRI_ALLTOALL, GDRI_K_ALLTOALL, dst, len, src, len, len);
	return gdri_likely(ret <= 0) ? ret : gdri_alltoall_all(scope, team, dst, src, len);
}

GDR_DEVICE int gdri_alltoall(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	GDRI_BY_WARP(scope, gdri_few_moved(len, GDRI_FEW_MOVED), gdri_alltoall_as(GDRI_WARP, team, dst, src, len));
	return gdri_alltoall_as(scope, team, dst, src, len);
}

/* ---- collect: each brings as much as it likes ---- */

/* First thread: where each member's block goes. */
GDRI_NOINLINE void gdri_collect_places(const struct gdri_coll *c)
{
	uint64_t at = 0;

	for (int i = 0; i < c->team->n; i++) {
		/* pairs with nothing: read by the scope behind a sync */
		gdri_st_relaxed_gpu_u64(&c->team->chan[i].at, at);
		at += gdri_ld_relaxed_gpu_u64(&c->team->chan[i].len);
	}
}

GDR_DEVICE int gdri_collect_lengths_ll(const struct gdri_coll *c, uint8_t *all, const uint8_t *own)
{
	gdr_team_t team = (gdr_team_t)(c->team - gdri_k(c->dev, teams));
	int ret = gdri_ll_step_move(c->scope, team, c->op, GDRI_K_COLLECT, all, sizeof(struct gdri_chan), own, 0,
				  sizeof(uint64_t));

	return ret <= 0 ? ret : gdri_exchange_ll(c, all, own, sizeof(uint64_t), sizeof(struct gdri_chan), 0);
}

/* All lengths to all. */
GDRI_NOINLINE int gdri_collect_lengths(const struct gdri_coll *c, uint64_t len)
{
	const struct gdri_blocks db = {GDRI_PLACES, sizeof(len), 1, 0}, sb = {GDRI_WHOLE, sizeof(len), 1, 0};
	int algo = gdri_coll_algo(c, GDRI_K_COLLECT, sizeof(len) * (size_t)c->n), ret;
	uint8_t *all = (uint8_t *)&c->team->chan[0].len;
	int first = !gdri_scope_rank(c->scope);

	if (first)
		gdri_st_relaxed_gpu_u64(&c->team->chan[c->me].len, len);
	gdri_scope_sync(c->scope);
	/* jobs of many PEs have no LL memory, their small teams none either */
	if (c->team->ll_size && (algo == GDRI_A_LL || algo == GDRI_A_GRID))
		ret = gdri_collect_lengths_ll(c, all, all + gdri_block_at(c, &db, c->me));
	else
		ret = gdri_coll_exchange(c, algo == GDRI_A_MULTI_RAIL ? algo : GDRI_A_ONE_SHOT, all, &db,
					 all + gdri_block_at(c, &db, c->me), &sb);
	if (!ret && first)
		gdri_collect_places(c);
	gdri_scope_sync(c->scope);
	return ret;
}

/* Behind the lengths. */
GDRI_NOINLINE int gdri_collect_ll(const struct gdri_coll *c, uint8_t *dst, const uint8_t *src,
				     size_t len)
{
	struct gdri_ll_moves m = {{dst, src, 0, 0, len, 0, 0}, 0, 1};
	uint64_t one;

	for (int i = 0; i < c->n; i++) {
		one = gdri_ld_relaxed_gpu_u64(&c->team->chan[i].len);
		m.longest = one > m.longest ? one : m.longest;
	}
	return gdri_coll_end(c, gdri_ll_move(c, &m));
}

GDRI_NOINLINE int gdri_collect(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	const struct gdri_blocks db = {GDRI_RAGGED, 0, 1, 0}, sb = {GDRI_WHOLE, len, 1, 0};
	struct gdri_coll c;
	uint64_t sum;
	int ret = gdri_coll_begin(&c, scope, team, GDRI_COLLECT), algo;

	GDRI_BY_ABI(gdri_collect);
	if (ret)
		return ret;
	ret = gdri_collect_lengths(&c, len);
	if (!ret) {
		sum = gdri_block_at(&c, &db, c.n - 1) + gdri_block_len(&c, &db, c.n - 1);
		algo = gdri_coll_algo(&c, GDRI_K_COLLECT, sum);
		if (algo == GDRI_A_GRID)
			return gdri_one_cta_spread(
				&c, (uint8_t *)dst + gdri_ld_relaxed_gpu_u64(&c.team->chan[c.me].at), src, 0,
				len);
		if (algo == GDRI_A_LL)
			return gdri_collect_ll(&c, (uint8_t *)dst, (const uint8_t *)src, len);
		ret = gdri_coll_exchange(&c, algo, (uint8_t *)dst, &db, (const uint8_t *)src, &sb);
	}
	return gdri_coll_end(&c, ret);
}

/* ---- alltoalls: elements with gaps ---- */

/* The own elements for one member; the message behind them says so. */
GDRI_NOINLINE int gdri_strided_put(const struct gdri_coll *c, int to, uint8_t *dst, size_t dst_step,
				   const uint8_t *src, size_t src_step, size_t n, size_t elem)
{
	int pe = gdri_team_pe(c->team, to), first = !gdri_scope_rank(c->scope), ret = 0;
	uint8_t *p = gdri_chan_mapped(c, dst, pe);

	if (p) {
		for (size_t k = gdri_scope_rank(c->scope); k < n; k += gdri_scope_size(c->scope))
			gdri_ld_bytes(p + k * dst_step, src + k * src_step, elem);
	} else if (GDRI_QUEUES && first) {
		for (size_t k = 0; k < n && !ret; k++)
			ret = gdri_coll_post_element(c->dev, pe, c->team->queue, dst + k * dst_step, src + k * src_step,
						     elem);
	}
	ret = gdri_scope_bcast(c->scope, ret);
	return ret ? ret : gdri_chan_send(c, to, dst, 0, 0);
}

GDRI_NOINLINE int gdri_alltoalls_grid(const struct gdri_coll *c, void *dst, const void *src,
				      ptrdiff_t dst_step, ptrdiff_t src_step, size_t n, size_t elem)
{
	struct gdri_grid_job q;

	q.what = GDRI_RQ_ALLTOALLS;
	q.size = (uint32_t)elem;
	q.dst = dst;
	q.src = src;
	q.n = n;
	q.dst_step = dst_step;
	q.src_step = src_step;
	return gdri_grid_alone(c, &q);
}

/* Steps in elements. */
GDRI_NOINLINE int gdri_alltoalls(int scope, gdr_team_t team, void *dst, const void *src,
				 ptrdiff_t dst_step, ptrdiff_t src_step, size_t n, size_t elem)
{
	const struct gdri_blocks one = {GDRI_WHOLE, 1, 1, 0};
	size_t ds = (size_t)dst_step * elem, ss = (size_t)src_step * elem, k;
	uint8_t *d = (uint8_t *)dst;
	const uint8_t *s = (const uint8_t *)src;
	struct gdri_coll c;
	int i, me, to, ret = gdri_coll_begin(&c, scope, team, GDRI_ALLTOALL);

	GDRI_BY_ABI(gdri_alltoalls);
	if (ret || !n)
		return ret;
	if (gdri_unlikely(dst_step < 1 || src_step < 1))
		return gdri_coll_refuse(&c, dst, (uint64_t)(dst_step < 1 ? dst_step : src_step),
					(uint32_t)(dst_step < 1 ? GDRI_DEST : GDRI_SOURCE) | GDRI_ARG_STRIDE);
	me = c.team->me;
	i = gdri_coll_algo(&c, GDRI_K_ALLTOALL, n * elem * (size_t)c.n);
	if (i == GDRI_A_GRID || i == GDRI_A_LL)
		return gdri_alltoalls_grid(&c, dst, src, dst_step, src_step, n, elem);
	ret = gdri_coll_sync(&c);
	for (i = 1; i < c.team->n && !ret; i++) {
		to = gdri_coll_after(&c, i);
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
