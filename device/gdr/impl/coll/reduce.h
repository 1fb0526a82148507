/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that compute: reduce; reducescatter.h and scan.h have the others. All members add up in the same order,
 * that of their numbers where all come to one place, so that all have the same bits. */
#ifndef GDRI_REDUCE_H
#define GDRI_REDUCE_H

#include <gdr/impl/coll/broadcast.h>
#include <gdr/impl/coll/reduce_op.h>
#include <gdr/impl/coll/ll/epochs.h>

struct gdri_reduce {
	struct gdri_coll c;
	uint32_t code;
	size_t elem;
	int in_place; /* what is written may still be under way to others */
};

GDR_DEVICE int gdri_overlap(const void *a, size_t a_len, const void *b, size_t b_len)
{
	uint64_t x = (uint64_t)(uintptr_t)a, y = (uint64_t)(uintptr_t)b;

	return x < y + b_len && y < x + a_len;
}

GDR_DEVICE int gdri_reduce_begin(struct gdri_reduce *r, int scope, gdr_team_t team, uint32_t op,
				 uint32_t code)
{
	r->code = code;
	r->elem = (size_t)1 << (code & 15u);
	r->in_place = 0;
	return gdri_coll_begin(&r->c, scope, team, op);
}

/* What came from members lo .. hi - 1, the own part among them if it is, into dst in the order of
 * their numbers. All have sent a part of the same length. What is added up before the own part has
 * its turn stays in the slot of member lo: dst may be the own part. */
GDRI_NOINLINE int gdri_reduce_slots(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *own,
				    size_t len, int lo, int hi)
{
	const struct gdri_coll *c = &r->c;
	int me = c->me, i, ret = 0;
	const uint8_t *first, *x;
	uint8_t *acc = 0, *out;

	for (i = lo; i < hi && !ret; i++)
		if (i != me)
			ret = gdri_chan_recv(c, i);
	if (!ret && r->in_place)
		ret = gdri_coll_flush(c);
	first = lo == me ? own : lo < hi && !ret ? gdri_chan_data(c, lo) : 0;
	if (lo + 1 == hi && !ret)
		gdri_reduce_copy(r->code, c->scope, dst, first, len / r->elem);
	for (i = lo + 1; i < hi && !ret; i++) {
		x = i == me ? own : gdri_chan_data(c, i);
		out = i >= me || i == hi - 1 ? dst : gdri_chan_data(c, lo);
		gdri_reduce_many(r->code, c->scope, out, i == lo + 1 ? first : acc, x, len);
		acc = out;
	}
	for (i = lo; i < hi && !ret; i++)
		if (i != me)
			ret = gdri_chan_taken(c, i);
	return ret;
}

/* Parts of blocks to all, and the own block's from all, added up. */
GDRI_NOINLINE int gdri_reduce_flat(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				   const struct gdri_blocks *b)
{
	const struct gdri_coll *c = &r->c;
	size_t mine = gdri_block_len(c, b, c->me), at = 0, part;
	const uint8_t *own = src + gdri_block_at(c, b, c->me);
	int more, ret;

	GDRI_BY_ABI(gdri_reduce_flat);
	do {
		more = 0;
		ret = gdri_coll_send_parts(c, src, b, at, &more);
		if (!ret && at < mine) {
			part = gdri_coll_part(c, mine - at);
			ret = gdri_reduce_slots(r, dst + at, own + at, part, 0, c->n);
			more |= at + part < mine;
		}
		at += c->team->slot_size;
	} while (more && !ret);
	return ret;
}

/* Each member adds up one piece, then all exchange the pieces. Who brings a piece of the result has
 * had everybody's part of it, so all are in the call; and a piece of src that is overwritten (in
 * place) has been used by the one that it was sent to. */
GDRI_NOINLINE int gdri_reduce_two(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				  size_t len)
{
	const struct gdri_coll *c = &r->c;
	/* where rows are: gdri_reduce_many */
	const struct gdri_blocks b = {GDRI_SPLIT, len, c->team->mapped && !(len & 15) ? 16 : r->elem, c->n};
	const struct gdri_blocks mine = {GDRI_WHOLE, gdri_block_len(c, &b, c->me), 1, 0};
	uint8_t *piece = dst + gdri_block_at(c, &b, c->me);
	int ret = gdri_reduce_flat(r, piece, src, &b);

	GDRI_BY_ABI(gdri_reduce_two);
	gdri_scope_sync(c->scope);
	return ret ? ret : gdri_coll_linear(c, dst, &b, piece, &mine);
}

/* One step round the ring: block `out` of src goes to the next member's slots, block `in` comes and
 * is added to the own one of add, or (add NULL) copied. */
GDRI_NOINLINE int gdri_ring_step(const struct gdri_reduce *r, const struct gdri_blocks *b,
				 uint8_t *dst, const uint8_t *src, const uint8_t *add, int out,
				 int in)
{
	const struct gdri_coll *c = &r->c;
	int next = gdri_coll_after(c, 1), prev = gdri_coll_before(c, 1), ret = 0;
	size_t olen = gdri_block_len(c, b, out), ilen = gdri_block_len(c, b, in), at, part;
	size_t o = gdri_block_at(c, b, out), i = gdri_block_at(c, b, in);

	for (at = 0; (at < olen || at < ilen) && !ret; at += c->team->slot_size) {
		if (at < olen)
			ret = gdri_chan_send(c, next, 0, src + o + at, gdri_coll_part(c, olen - at));
		if (ret || at >= ilen)
			continue;
		part = gdri_coll_part(c, ilen - at);
		ret = gdri_chan_recv(c, prev);
		if (ret)
			break;
		if (add)
			gdri_reduce_apply(r->code, c->scope, dst + i + at, gdri_chan_data(c, prev),
					  add + i + at, part / r->elem);
		else
			gdri_reduce_copy(r->code, c->scope, dst + i + at, gdri_chan_data(c, prev),
					 part / r->elem);
		ret = gdri_chan_taken(c, prev);
	}
	return ret;
}

/* Pieces add up on their way round, then the results go round. What is sent is overwritten only with
 * what could not be there had the next member not used it. */
GDRI_NOINLINE int gdri_reduce_ring(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				   size_t len)
{
	const struct gdri_coll *c = &r->c;
	const struct gdri_blocks b = {GDRI_SPLIT, len, r->elem, c->n};
	int s, n = c->n, ret = 0;

	GDRI_BY_ABI(gdri_reduce_ring);
	for (s = 0; s < n - 1 && !ret; s++)
		ret = gdri_ring_step(r, &b, dst, s ? dst : src, src, gdri_coll_before(c, s),
				     gdri_coll_before(c, s + 1));
	for (s = 0; s < n - 1 && !ret; s++)
		ret = gdri_ring_step(r, &b, dst, dst, 0,
				     gdri_coll_before(c, (s + n - 1) % n),
				     gdri_coll_before(c, s));
	return ret;
}

/* Up the tree of member 0 and down again, part for part. */
GDRI_NOINLINE int gdri_reduce_tree(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				   size_t len)
{
	const struct gdri_coll *c = &r->c;
	int v = c->me, n = c->n, parent = gdri_tree_parent(v, 0), child, k, ret = 0;
	size_t part;

	GDRI_BY_ABI(gdri_reduce_tree);
	for (size_t at = 0; at < len && !ret; at += part) {
		part = gdri_coll_part(c, len - at);
		gdri_reduce_copy(r->code, c->scope, dst + at, src + at, part / r->elem);
		for (k = 0; gdri_tree_child(v, n, 0, k) >= 0; k++)
			;
		while (k-- && !ret) { /* the smallest trees are ready first */
			child = gdri_tree_child(v, n, 0, k);
			ret = gdri_chan_recv(c, child);
			if (ret)
				break;
			gdri_reduce_apply(r->code, c->scope, dst + at, dst + at,
					  gdri_chan_data(c, child), part / r->elem);
			ret = gdri_chan_taken(c, child);
		}
		gdri_scope_sync(c->scope);
		if (!ret && v)
			ret = gdri_chan_send(c, parent, 0, dst + at, part);
		if (!ret && v)
			ret = gdri_chan_recv(c, parent);
		if (ret)
			break;
		if (v) {
			gdri_reduce_copy(r->code, c->scope, dst + at, gdri_chan_data(c, parent),
					 part / r->elem);
			ret = gdri_chan_taken(c, parent);
		}
		if (!ret)
			ret = gdri_tree_down(c, 0, 0, dst + at, part);
	}
	return ret;
}

/* A piece of the vector for each lane: each node adds up, each lane what its members have so far, which then
 * give it to their node. Who brings a piece to a member has had that member's part of it. */
GDRI_NOINLINE int gdri_reduce_levels(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				     size_t len, int lanes)
{
	const struct gdri_coll *c = &r->c;
	const struct gdri_blocks b = {GDRI_SPLIT, len, r->elem, lanes};
	const struct gdri_blocks mine = {GDRI_WHOLE, gdri_block_len(c, &b, c->team->local), 1, 0};
	uint8_t *piece = dst + gdri_block_at(c, &b, c->team->local);
	struct gdri_reduce v = *r;
	int ret;

	GDRI_BY_ABI(gdri_reduce_levels);
	v.c = gdri_coll_node(c);
	ret = gdri_reduce_flat(&v, piece, src, &b);
	gdri_scope_sync(c->scope);
	if (!ret && mine.len) {
		v.c = gdri_coll_lane(c, c->team->local, -1);
		v.in_place = c->team->nodes == 2 || mine.len <= c->team->slot_size;
		ret = v.in_place ? gdri_reduce_flat(&v, piece, piece, &mine)
				 : gdri_reduce_two(&v, piece, piece, mine.len);
		gdri_scope_sync(c->scope);
	}
	v.c = gdri_coll_node(c);
	return ret ? ret : gdri_coll_linear(&v.c, dst, &b, piece, &mine);
}

/* By LL, what is added up being no longer than one of its elements: the vectors of members below hi. */
GDR_DEVICE int gdri_reduce_ll(const struct gdri_reduce *r, void *dst, const void *src, size_t len, size_t src_step,
			      int hi)
{
	const struct gdri_ll_call b = {(uint8_t *)dst, (const uint8_t *)src, 0, src_step, len, r->code, hi};

	return gdri_coll_end(&r->c, gdri_ll_sum(&r->c, &b));
}

/* Of a reduction or scan of len bytes; what the team's table says is not for all elements and places. */
GDR_DEVICE int gdri_reduce_algo(const struct gdri_reduce *r, int kind, size_t len, int in_the_way)
{
	int algo = gdri_coll_algo(&r->c, kind, len);

	if (r->c.n == 1 || (algo == GDRI_A_GRID && in_the_way))
		return GDRI_A_ONE_SHOT;
	return algo == GDRI_A_LL && r->elem > 8 ? GDRI_A_ONE_SHOT : algo;
}

/* 1: blocks of len bytes are short, or one thread does not compute them by rows of 16 bytes. Else it takes slots, not
 * LL: less to store, and what is to be added up is loaded from its own memory, not from a peer's. */
GDR_DEVICE int gdri_sum_suits(int scope, const void *dst, const void *src, size_t len, uint32_t code)
{
	return scope != GDRI_THREAD || len <= GDRI_ALONE_ADDED || !gdri_reduce_wide(code) ||
	       (((uintptr_t)dst | (uintptr_t)src | len) & 15) != 0;
}

GDRI_NOINLINE int gdri_reduce_all(int scope, gdr_team_t team, void *dst, const void *src, size_t n,
			      uint32_t code)
{
	struct gdri_reduce r;
	int ret = gdri_reduce_begin(&r, scope, team, GDRI_REDUCE, code), algo;
	size_t len = n * r.elem;
	const struct gdri_blocks whole = {GDRI_WHOLE, len, 1, 0};
	uint8_t *d = (uint8_t *)dst;
	const uint8_t *s = (const uint8_t *)src;

	if (ret || !n)
		return ret;
	algo = gdri_reduce_algo(&r, GDRI_K_REDUCE, len, 0);
	if ((algo == GDRI_A_LL || algo == GDRI_A_GRID) && !gdri_sum_suits(scope, d, s, len, code))
		algo = len * (size_t)(r.c.n - 1) > GDRI_ALONE_FLAT ? GDRI_A_TWO_SHOT : GDRI_A_ONE_SHOT;
	if (algo == GDRI_A_LL && !(gdri_ll_fits(&r.c, len) && (scope != GDRI_WARP || len <= GDRI_WARP_ADDED)))
		algo = GDRI_A_GRID;
	if (algo == GDRI_A_LL)
		return gdri_reduce_ll(&r, dst, src, len, 0, r.c.n);
	if (algo == GDRI_A_GRID)
		return gdri_grid_do(&r.c, GDRI_RQ_REDUCE, dst, src, n, r.elem, 0, code);
	r.in_place = algo == GDRI_A_ONE_SHOT && gdri_overlap(d, len, s, len);
	if (r.c.n == 1)
		gdri_reduce_copy(code, scope, d, s, n);
	else if (algo == GDRI_A_TREE)
		ret = gdri_reduce_tree(&r, d, s, len);
	else if (algo == GDRI_A_RING)
		ret = gdri_reduce_ring(&r, d, s, len);
	else if (algo == GDRI_A_SINGLE_LEADER || algo == GDRI_A_MULTI_RAIL)
		ret = gdri_reduce_levels(&r, d, s, len,
					 algo == GDRI_A_MULTI_RAIL ? r.c.team->lanes : 1);
	else if (algo == GDRI_A_TWO_SHOT)
		ret = gdri_reduce_two(&r, d, s, len);
	else
		ret = gdri_reduce_flat(&r, d, s, &whole);
	gdri_scope_sync(scope);
	return gdri_coll_end(&r.c, ret);
}

GDR_DEVICE int gdri_reduce_as(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code)
{
	size_t len = n << (code & 15u);
	int ret = 1;

	if (gdri_sum_suits(scope, dst, src, len, code) && (scope != GDRI_WARP || len <= GDRI_WARP_ADDED))
		ret = gdri_ll_step_sum(scope, team, GDRI_REDUCE, GDRI_K_REDUCE, dst, src, 0, len, code, GDRI_ALL);
	return gdri_likely(ret <= 0) ? ret : gdri_reduce_all(scope, team, dst, src, n, code);
}

GDRI_NAMESAKES_BEGIN
GDR_DEVICE int gdri_reduce(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code)
{
	GDRI_BY_WARP(scope, n <= GDRI_FEW_ADDED, gdri_reduce_as(GDRI_WARP, team, dst, src, n, code));
	return gdri_reduce_as(scope, team, dst, src, n, code);
}
GDRI_NAMESAKES_END

#endif
