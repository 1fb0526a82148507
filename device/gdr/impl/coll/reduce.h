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
	uint32_t code, elem;
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
	r->elem = 1u << (code & 15u);
	r->in_place = 0;
	return gdri_coll_begin(&r->c, scope, team, op);
}

/* What came from members lo .. hi - 1, the own part among them if it is, into dst in the order of
 * their numbers. What is added up before the own part has
 * its turn stays in the slot of member lo: dst may be the own part. */
GDR_DEVICE void gdri_reduce_add(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *own, size_t len, int lo,
				int hi)
{
	const struct gdri_coll *c = &r->c;
	int me = c->me, i;
	const uint8_t *first = lo == me ? own : lo < hi ? gdri_chan_data(c, lo) : 0, *x;
	uint8_t *acc = 0, *out;

	if (lo + 1 == hi)
		gdri_reduce_copy(r->code, c->scope, dst, first, len / r->elem);
	for (i = lo + 1; i < hi; i++) {
		x = i == me ? own : gdri_chan_data(c, i);
		out = i >= me || i == hi - 1 ? dst : gdri_chan_data(c, lo);
		gdri_reduce_many(r->code, c->scope, out, i == lo + 1 ? first : acc, x, len);
		acc = out;
	}
}

GDRI_NOINLINE void gdri_reduce_added(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *own, size_t len, int lo,
				     int hi)
{
	gdri_reduce_add(r, dst, own, len, lo, hi);
}

/* gdri_reduce_add, when all have sent a part of the same length. */
GDRI_NOINLINE int gdri_reduce_slots(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *own,
				    size_t len, int lo, int hi)
{
	const struct gdri_coll *c = &r->c;
	int me = c->me, i, ret = 0;

	for (i = lo; i < hi && !ret; i++)
		if (i != me)
			ret = gdri_chan_recv(c, i);
	if (!ret && r->in_place)
		ret = gdri_coll_flush(c);
	if (!ret)
		gdri_reduce_add(r, dst, own, len, lo, hi);
	for (i = lo; i < hi && !ret; i++)
		if (i != me)
			ret = gdri_chan_taken(c, i);
	return ret;
}

/* A call through slots goes by steps, a step by legs of messages, which share this: nothing stands on another one's
 * frame. */
enum gdri_reduce_does {
	GDRI_DOES_ADD,	  /* parts of blocks of src to all; the own block's from all, added up, to dst */
	GDRI_DOES_GATHER, /* each gives the others its block of dst, which is at src */
	GDRI_DOES_PASS,	  /* round the ring: a block goes on, another one comes */
	/* who takes first */
	GDRI_DOES_UP,	/* a part, up the tree of member 0, */
	GDRI_DOES_DOWN, /* and down again */
};

/* Of GDRI_DOES_ADD behind the first one, which sends; others take and send. */
enum gdri_reduce_leg { GDRI_LEG_RECV = 1, GDRI_LEG_ADD, GDRI_LEG_TAKEN };

struct gdri_reduce_way {
	struct gdri_reduce r; /* of the step */
	struct gdri_blocks b;
	uint8_t *dst;
	const uint8_t *src;
	size_t at; /* the part under way */
	/* the message under way; own: of what is added up here */
	uint8_t *out;
	const uint8_t *own;
	size_t part;
	/* of the call */
	uint8_t *to;
	const uint8_t *from;
	size_t len;
	int step; /* the next one */
	int i;	  /* the leg's next message, from 1 on */
	uint8_t algo, does, leg;
	uint8_t more; /* there are further parts */
};

/* Pieces of len bytes from src on: number `mine` is added up at its place in dst; then they are brought together. Who
 * brings a piece of the result has had everybody's part of it, so all are in the call; and a piece of src that is
 * overwritten (in place) has been used by the one that it was sent to. */
GDR_DEVICE int gdri_reduce_pieces(struct gdri_reduce_way *w, uint8_t *dst, const uint8_t *src, size_t len,
				  uint32_t elem, int n, int mine, int gathers)
{
	const struct gdri_blocks b = {GDRI_SPLIT, len, elem, n};
	uint8_t *piece = dst + gdri_block_at(&w->r.c, &b, mine);

	w->b = b;
	w->does = gathers ? GDRI_DOES_GATHER : GDRI_DOES_ADD;
	w->dst = gathers ? dst : piece;
	w->src = gathers ? piece : src;
	return 1;
}

/* Among the members of the view, by elements of rows where those are: gdri_reduce_many. */
GDR_DEVICE int gdri_reduce_two(struct gdri_reduce_way *w, uint8_t *dst, const uint8_t *src, size_t len, int gathers)
{
	return gdri_reduce_pieces(w, dst, src, len, w->r.c.team->mapped && !(len & 15) ? 16 : w->r.elem, w->r.c.n,
				  w->r.c.me, gathers);
}

/* A piece of the vector for each lane: each node adds up, each lane what its members have so far, which then
 * give it to their node. */
GDR_DEVICE int gdri_reduce_level(struct gdri_reduce_way *w, int step)
{
	const struct gdri_team *t = w->r.c.team;
	const struct gdri_blocks b = {GDRI_SPLIT, w->len, w->r.elem, w->algo == GDRI_A_MULTI_RAIL ? t->lanes : 1};
	uint8_t *mine = w->to + gdri_block_at(&w->r.c, &b, t->local);
	size_t len = gdri_block_len(&w->r.c, &b, t->local);
	int flat = t->nodes == 2 || len <= t->slot_size;

	if ((step == 1 || step == 2) && (!len || (flat && step == 2))) {
		step = 3;
		w->step = 4;
	}
	if (!step || step == 3) {
		w->r.c = gdri_coll_node(&w->r.c);
		return gdri_reduce_pieces(w, w->to, w->from, w->len, w->r.elem, b.pieces, t->local, step);
	}
	w->r.c = gdri_coll_lane(&w->r.c, t->local, -1);
	w->r.in_place = flat;
	if (!flat)
		return gdri_reduce_two(w, mine, mine, len, step == 2);
	w->b.layout = GDRI_WHOLE;
	w->b.len = len;
	w->dst = mine;
	w->src = mine;
	w->does = GDRI_DOES_ADD;
	return 1;
}

/* Pieces add up on their way round, then the results go round. What is sent is overwritten only with
 * what could not be there had the next member not used it. */
GDR_DEVICE int gdri_reduce_round(struct gdri_reduce_way *w, int step)
{
	const struct gdri_blocks b = {GDRI_SPLIT, w->len, w->r.elem, w->r.c.n};

	w->b = b;
	w->dst = w->to;
	w->src = step ? w->to : w->from;
	w->does = GDRI_DOES_PASS;
	return step < 2 * (w->r.c.n - 1);
}

/* Each part goes up, then down. */
GDR_DEVICE int gdri_reduce_tree(struct gdri_reduce_way *w, int step)
{
	size_t at = (size_t)(step / 2) * w->r.c.team->slot_size, left = at < w->len ? w->len - at : 0;

	w->dst = w->to + at;
	w->src = w->dst;
	w->b.len = gdri_coll_part(&w->r.c, left);
	w->does = step & 1 ? GDRI_DOES_DOWN : GDRI_DOES_UP;
	if (!(step & 1))
		gdri_reduce_copy(w->r.code, w->r.c.scope, w->dst, w->from + at, w->b.len / w->r.elem);
	return left != 0;
}

/* The next step of the call. 0: it was the last one. */
GDRI_NOINLINE int gdri_reduce_next(struct gdri_reduce_way *w)
{
	int step = w->step++;

	w->at = 0;
	switch (w->algo) {
	case GDRI_A_TREE:
		return gdri_reduce_tree(w, step);
	case GDRI_A_RING:
		return gdri_reduce_round(w, step);
	case GDRI_A_TWO_SHOT:
		return step < 2 && gdri_reduce_two(w, w->to, w->from, w->len, step);
	case GDRI_A_SINGLE_LEADER:
	case GDRI_A_MULTI_RAIL:
		return step < 4 && gdri_reduce_level(w, step);
	default: /* b is the caller's */
		w->dst = w->to;
		w->src = w->from;
		w->does = GDRI_DOES_ADD;
		return !step;
	}
}

/* Part `at` of so many bytes. */
GDR_DEVICE size_t gdri_reduce_part(struct gdri_reduce_way *w, size_t len)
{
	size_t part = w->at < len ? gdri_coll_part(&w->r.c, len - w->at) : 0;

	w->more |= w->at + part < len;
	return part;
}

GDR_DEVICE int gdri_reduce_child(const struct gdri_reduce_way *w, int k)
{
	return gdri_tree_child(w->r.c.me, w->r.c.n, 0, k);
}

/* The leg's next message, of `part` bytes, and to whom it goes; -1: there are no more. */
GDRI_NOINLINE int gdri_reduce_letter(struct gdri_reduce_way *w)
{
	const struct gdri_coll *c = &w->r.c;
	int i = w->i++, to = gdri_coll_after(c, i), block = to;

	if (w->does == GDRI_DOES_DOWN)
		to = gdri_reduce_child(w, i - 1);
	else if (w->does == GDRI_DOES_UP)
		to = c->me && i == 1 ? gdri_tree_parent(c->me, 0) : -1;
	else if (i >= c->n || (w->does == GDRI_DOES_PASS && i > 1))
		to = -1;
	if (to < 0)
		return to;
	w->out = 0;
	w->own = w->src;
	if (w->does == GDRI_DOES_GATHER) {
		w->out = w->dst + gdri_block_at(c, &w->b, c->me);
		w->part = gdri_block_len(c, &w->b, c->me);
		return to;
	}
	if (w->does == GDRI_DOES_PASS)
		block = gdri_coll_before(c, (w->step - 1) % c->n);
	w->own += gdri_block_at(c, &w->b, block) + w->at;
	w->part = gdri_reduce_part(w, gdri_block_len(c, &w->b, block));
	return to;
}

/* Whose message is the leg's next one; -1: there are no more. */
GDR_DEVICE int gdri_reduce_from(const struct gdri_reduce_way *w, int i)
{
	const struct gdri_coll *c = &w->r.c;
	int n = 0;

	if (w->does == GDRI_DOES_GATHER)
		return i < c->n ? gdri_coll_before(c, i) : -1;
	if (w->does == GDRI_DOES_PASS)
		return i == 1 ? gdri_coll_before(c, 1) : -1;
	if (w->does == GDRI_DOES_DOWN)
		return c->me && i == 1 ? gdri_tree_parent(c->me, 0) : -1;
	while (gdri_reduce_child(w, n) >= 0)
		n++;
	return i <= n ? gdri_reduce_child(w, n - i) : -1; /* the smallest trees are ready first */
}

/* What came is added to the own part, or is what there is. */
GDRI_NOINLINE void gdri_reduce_use(const struct gdri_reduce_way *w, const uint8_t *x, size_t part)
{
	const struct gdri_reduce *r = &w->r;
	const struct gdri_coll *c = &r->c;
	size_t at = w->at;

	if (w->does == GDRI_DOES_PASS)
		at += gdri_block_at(c, &w->b, gdri_coll_before(c, w->step % c->n));
	if (w->does == GDRI_DOES_UP)
		gdri_reduce_apply(r->code, c->scope, w->dst + at, w->dst + at, x, part / r->elem);
	else if (w->does == GDRI_DOES_PASS && w->step < c->n)
		gdri_reduce_apply(r->code, c->scope, w->dst + at, x, w->from + at, part / r->elem);
	else if (w->does != GDRI_DOES_GATHER)
		gdri_reduce_copy(r->code, c->scope, w->dst + at, x, part / r->elem);
}

/* The leg's next message comes, if there is something in it. 1: there are no more. */
GDRI_NOINLINE int gdri_reduce_take(struct gdri_reduce_way *w)
{
	const struct gdri_coll *c = &w->r.c;
	int from = gdri_reduce_from(w, w->i++), block = from, ret;
	size_t part;

	if (from < 0)
		return 1;
	if (w->does == GDRI_DOES_PASS)
		block = gdri_coll_before(c, w->step % c->n);
	part = gdri_block_len(c, &w->b, block);
	if (w->does != GDRI_DOES_GATHER)
		part = gdri_reduce_part(w, part);
	if (!part)
		return 0;
	ret = gdri_chan_recv(c, from);
	if (ret)
		return ret;
	gdri_reduce_use(w, gdri_chan_data(c, from), part);
	return gdri_chan_taken(c, from);
}

/* Of who adds up: whose part of the own block the leg's next message is; -1: there are no more. */
GDRI_NOINLINE int gdri_reduce_whose(struct gdri_reduce_way *w)
{
	const struct gdri_coll *c = &w->r.c;
	int i = w->i++ - 1;

	w->own = w->src + gdri_block_at(c, &w->b, c->me) + w->at;
	w->part = gdri_reduce_part(w, gdri_block_len(c, &w->b, c->me));
	if (!w->part || i >= (w->leg == GDRI_LEG_ADD ? 1 : c->n - 1))
		return -1;
	return i < c->me ? i : i + 1;
}

GDR_DEVICE int gdri_reduce_adds(struct gdri_reduce_way *w)
{
	int from = gdri_reduce_whose(w), ret;

	if (from < 0)
		return 1;
	if (w->leg == GDRI_LEG_RECV)
		return gdri_chan_recv(&w->r.c, from);
	if (w->leg == GDRI_LEG_TAKEN)
		return gdri_chan_taken(&w->r.c, from);
	ret = w->r.in_place ? gdri_coll_flush(&w->r.c) : 0;
	if (!ret)
		gdri_reduce_added(&w->r, w->dst + w->at, w->own, w->part, 0, w->r.c.n);
	return ret;
}

/* A message, or, behind the last one of a leg, 1. */
GDR_DEVICE int gdri_reduce_message(struct gdri_reduce_way *w)
{
	int to;

	if (w->leg != (w->does >= GDRI_DOES_UP))
		return w->does == GDRI_DOES_ADD ? gdri_reduce_adds(w) : gdri_reduce_take(w);
	to = gdri_reduce_letter(w);
	if (to < 0)
		return 1;
	return w->part ? gdri_chan_send(&w->r.c, to, w->out, w->own, w->part) : 0;
}

/* over: the leg is. 0: and the call. */
GDRI_NOINLINE int gdri_reduce_goes(struct gdri_reduce_way *w, int over)
{
	if (!over)
		return 1;
	gdri_scope_sync(w->r.c.scope);
	w->i = 1;
	w->leg = w->leg == (w->does == GDRI_DOES_ADD ? GDRI_LEG_TAKEN : 1) ? 0 : w->leg + 1;
	if (w->leg)
		return 1;
	if (!w->more)
		return gdri_reduce_next(w);
	w->more = 0;
	w->at += w->r.c.team->slot_size;
	return 1;
}

/* A call that has begun, of more members than one, through slots: reduce, and reducescatter in one step. len: bytes of
 * what each member gets. */
GDRI_NOINLINE int gdri_reduce_by_slots(int scope, struct gdri_team *t, uint32_t op, int algo, void *dst,
				       const void *src, size_t len, uint32_t code)
{
	int scatters = op == GDRI_REDUCESCATTER, ret = 1;
	struct gdri_reduce_way w;

	GDRI_BY_ABI(gdri_reduce_by_slots);
	w.r.c = gdri_coll_of(t, scope, op);
	w.r.code = code;
	w.r.elem = 1u << (code & 15u);
	w.r.in_place = algo == GDRI_A_ONE_SHOT && gdri_overlap(dst, len, src, scatters ? len * (uint32_t)t->n : len);
	w.b.layout = scatters ? GDRI_EQUAL : GDRI_WHOLE;
	w.b.len = len;
	w.to = (uint8_t *)dst;
	w.from = (const uint8_t *)src;
	w.at = 0;
	w.len = len;
	w.step = 0;
	w.algo = (uint8_t)algo;
	w.does = GDRI_DOES_GATHER;
	w.leg = 1; /* the last one of a step */
	w.more = 0;
	GDRI_NOT_UNROLLED
	while (ret >= 0 && gdri_reduce_goes(&w, ret))
		ret = gdri_reduce_message(&w);
	return gdri_coll_over(&w.r.c, ret < 0 ? ret : 0);
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

/* ---- one thread, by rows ---- */

/* One thread keeps no record of steps. A fence behind each wait empties the first-level cache, and each step would load
 * the record anew. Warps and blocks take slots where members are not mapped, and a message takes longer than that. */

/* Parts of blocks to all, and the own block's from all, added up. */
GDRI_NOINLINE int gdri_reduce_flat(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src,
				   const struct gdri_blocks *b)
{
	const struct gdri_coll *c = &r->c;
	size_t mine = gdri_block_len(c, b, c->me), at = 0, part;
	const uint8_t *own = src + gdri_block_at(c, b, c->me);
	int more, ret = 0;

	GDRI_BY_ABI(gdri_reduce_flat);
	do {
		more = gdri_coll_send_parts(c, src, b, at);
		if (more < 0)
			return more;
		if (at < mine) {
			part = gdri_coll_part(c, mine - at);
			ret = gdri_reduce_slots(r, dst + at, own + at, part, 0, c->n);
			more |= at + part < mine;
		}
		at += c->team->slot_size;
	} while (more && !ret);
	return ret;
}

/* Pieces of rows; what gdri_reduce_pieces says of them holds here. */
GDRI_NOINLINE int gdri_reduce_two_shots(const struct gdri_reduce *r, uint8_t *dst, const uint8_t *src, size_t len)
{
	const struct gdri_coll *c = &r->c;
	const struct gdri_blocks b = {GDRI_SPLIT, len, 16, c->n};
	uint8_t *piece = dst + gdri_block_at(c, &b, c->me);
	int ret = gdri_reduce_flat(r, piece, src, &b);

	GDRI_BY_ABI(gdri_reduce_two_shots);
	return ret ? ret : gdri_coll_gather(c, dst, &b, piece);
}

/* Through slots what else went by LL or directly: reduce and reducescatter. 1: another way is the team's. */
GDRI_NOINLINE int gdri_reduce_alone(gdr_team_t team, uint32_t op, void *dst, const void *src, size_t len, uint32_t code)
{
	struct gdri_reduce r;
	int ret = gdri_reduce_begin(&r, GDRI_THREAD, team, op, code), scatters = op == GDRI_REDUCESCATTER, algo;
	const struct gdri_blocks b = {scatters ? GDRI_EQUAL : GDRI_WHOLE, len, 1, 0};
	size_t all;

	if (ret)
		return ret;
	all = scatters ? len * (size_t)r.c.n : len;
	algo = gdri_reduce_algo(&r, GDRI_K_REDUCE, all, 0);
	if (algo != GDRI_A_LL && algo != GDRI_A_GRID)
		return 1;
	if (!scatters && len * (size_t)(r.c.n - 1) > GDRI_ALONE_FLAT)
		return gdri_coll_end(&r.c, gdri_reduce_two_shots(&r, (uint8_t *)dst, (const uint8_t *)src, len));
	r.in_place = gdri_overlap(dst, len, src, all);
	return gdri_coll_end(&r.c, gdri_reduce_flat(&r, (uint8_t *)dst, (const uint8_t *)src, &b));
}

/* ---- */

GDRI_NOINLINE int gdri_reduce_all(int scope, gdr_team_t team, void *dst, const void *src, size_t n,
			      uint32_t code)
{
	struct gdri_reduce r;
	int ret = gdri_reduce_begin(&r, scope, team, GDRI_REDUCE, code), algo;
	size_t len = n * r.elem;

	if (ret || !n)
		return ret;
	algo = gdri_reduce_algo(&r, GDRI_K_REDUCE, len, 0);
	if (algo == GDRI_A_LL && !(gdri_ll_fits(&r.c, len) && (scope != GDRI_WARP || len <= GDRI_WARP_ADDED)))
		algo = GDRI_A_GRID;
	if (algo == GDRI_A_LL)
		return gdri_ll_sum(scope, r.c.team, GDRI_REDUCE, dst, src, len, 0, code, r.c.n);
	if (algo == GDRI_A_GRID)
		return gdri_grid_do(&r.c, GDRI_RQ_REDUCE, dst, src, n, r.elem, 0, code);
	if (r.c.n > 1)
		return gdri_reduce_by_slots(scope, r.c.team, GDRI_REDUCE, algo, dst, src, len, code);
	gdri_reduce_copy(code, scope, dst, src, n);
	gdri_scope_sync(scope);
	return 0;
}

GDR_DEVICE int gdri_reduce_as(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code)
{
	size_t len = n << (code & 15u);
	int ret = 1;

	if (!gdri_sum_suits(scope, dst, src, len, code))
		ret = gdri_reduce_alone(team, GDRI_REDUCE, dst, src, len, code);
	else if (scope != GDRI_WARP || len <= GDRI_WARP_ADDED)
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
