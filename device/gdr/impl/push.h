/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of the library's kernels by words (words.h) and many blocks. Each block has a slice of the call, an
 * area of its own at each member and its own count of parts there, so that no block waits for one of another number,
 * and a call meets nobody: data goes into memory of the library, whoever has ended the part before.
 *
 * What a thread sends to a member and what it takes from there are the same units, so a thread that has taken unit k
 * of a part knows that the member's thread has taken its unit k of the part before: areas take turns
 * with no sync of the block between, but for the last one. */
#ifndef GDRI_PUSH_H
#define GDRI_PUSH_H

#include <gdr/impl/grid.h>
#include <gdr/impl/words_sum.h>

struct gdri_push {
	struct gdri_words w;
	uint64_t *count; /* parts so far of this block; of this PE alone. Behind it: its areas */
	uint32_t block, blocks;
};

GDR_DEVICE void gdri_push_turn(struct gdri_push *p)
{
	p->w.area = p->count + GDRI_PUSH_HEAD + (size_t)(p->w.seq & 1) * (uint32_t)p->w.n * p->w.pitch;
}

/* Of a call that has begun. */
GDR_DEVICE void gdri_push_begin(struct gdri_push *p, const struct gdri_coll *c, uint32_t block,
				uint32_t blocks)
{
	const struct gdri_team *t = c->team;

	p->block = block;
	p->blocks = blocks;
	p->w.n = c->n;
	p->w.me = c->me;
	p->w.most = t->push_size;
	p->w.pitch = t->push_size / 4;
	p->count = t->push + (GDRI_PUSH_HEAD + 2 * (size_t)(uint32_t)c->n * p->w.pitch) * block;
	/* pairs with nothing: calls of a team are behind each other */
	p->w.seq = gdri_ld_relaxed_gpu_u64(p->count) + 1;
	gdri_push_turn(p);
}

/* All threads of the block, which have taken the last part before the numbers begin anew: what is left of the last
 * time is taken away before any member sends words of the next part. */
GDRI_NOINLINE int gdri_push_clean(const struct gdri_push *p, const struct gdri_coll *c)
{
	uint64_t *area = p->count + GDRI_PUSH_HEAD;
	size_t k, units = (size_t)(uint32_t)p->w.n * p->w.pitch;
	struct gdri_grid g;

	gdri_scope_sync(c->scope);
	for (k = gdri_scope_rank(c->scope); k < units; k += gdri_scope_size(c->scope))
		gdri_st_pair_sys(area + 2 * k, 0, 0); /* released by the meeting */
	gdri_grid_begin(&g, c, p->block, p->blocks);
	return gdri_grid_meet(&g);
}

/* Does the block meet between the part that ends at `at` and the next one? In front of the last one, which may be
 * shorter: who has taken any unit of that knows that all of the part before were taken, and so may begin the next
 * call. */
GDR_DEVICE int gdri_push_meets(const struct gdri_push *p, size_t len, size_t at, int each)
{
	return at < len && (each || len - at <= p->w.most);
}

/* Behind each part: the next one's number, which is none that words have when there is nothing. */
GDR_DEVICE int gdri_push_next(struct gdri_push *p, const struct gdri_coll *c, int ret)
{
	if (gdri_unlikely(!(uint32_t)(p->w.seq + 1))) {
		ret = gdri_scope_any(c->scope, ret != 0) ? ret : gdri_push_clean(p, c);
		p->w.seq++;
	}
	p->w.seq++;
	gdri_push_turn(p);
	return ret;
}

/* The status of any of the threads; those that failed give it the team. */
GDR_DEVICE int gdri_push_end(const struct gdri_push *p, const struct gdri_coll *c, int ret)
{
	uint32_t none = 0;

	if (gdri_unlikely(ret)) /* carries no data: pairs with nothing */
		gdri_cas_u32((uint32_t *)&c->team->err, &none, (uint32_t)ret);
	if (gdri_unlikely(gdri_scope_any(c->scope, ret != 0)))
		return (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&c->team->err);
	if (!gdri_scope_rank(c->scope)) /* read by the next call */
		gdri_st_relaxed_gpu_u64(p->count, p->w.seq - 1);
	return 0;
}

/* ---- moving ---- */

struct gdri_push_blocks {
	uint8_t *dst;
	const uint8_t *src;
	size_t dst_step, src_step; /* from the block of a member to that of the next one */
	size_t len;		   /* of a block */
	int root;		   /* only this member's holds something; -1: all do */
};

/* Bytes of the part at `at` that member `from` sends. */
GDR_DEVICE size_t gdri_push_part(const struct gdri_push *p, const struct gdri_push_blocks *b, int from,
				 size_t at)
{
	size_t left = (b->root >= 0 && from != b->root) || at >= b->len ? 0 : b->len - at;

	return left < p->w.most ? left : p->w.most;
}

/* Units k, k + apart.. of len bytes; of nothing, too, there is one. */
GDR_DEVICE void gdri_push_out(const struct gdri_push *p, uint64_t *to, const uint8_t *src, size_t len,
			      uint32_t k, uint32_t apart)
{
	uint32_t n = len ? (uint32_t)((len + 7) / 8) : 1, i;
	uint64_t v[GDRI_WORD_ROWS];

	GDRI_NOT_UNROLLED
	for (; k < n; k += GDRI_WORD_ROWS * apart) {
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			v[i] = k + i * apart < n ? gdri_word_load(src, (size_t)(k + i * apart) * 8, len) : 0;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (k + i * apart < n)
				gdri_word_send(to, k + i * apart, p->w.seq, v[i]);
	}
}

/* Those below n, some at a time. */
GDR_DEVICE int gdri_push_take(const struct gdri_coll *c, const struct gdri_push *p, int from,
			      const uint64_t *at, uint32_t k, uint32_t apart, uint32_t n,
			      uint64_t v[GDRI_WORD_ROWS])
{
	int i, spins, all = 0, ret = 0;

	GDRI_NOT_UNROLLED
	for (spins = 0; spins <= GDRI_SPINS && !all; spins++) {
		all = 1;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (k + (uint32_t)i * apart < n)
				all &= gdri_word_look(at + 2 * (size_t)(k + (uint32_t)i * apart), p->w.seq, &v[i]);
	}
	if (gdri_likely(all))
		return 0;
	for (i = 0; i < GDRI_WORD_ROWS && !ret; i++)
		if (k + (uint32_t)i * apart < n)
			ret = gdri_word_wait(c, from, at + 2 * (size_t)(k + (uint32_t)i * apart), p->w.seq);
	GDRI_UNROLLED
	for (i = 0; i < GDRI_WORD_ROWS; i++)
		if (k + (uint32_t)i * apart < n)
			gdri_word_look(at + 2 * (size_t)(k + (uint32_t)i * apart), p->w.seq, &v[i]);
	return ret;
}

GDR_DEVICE int gdri_push_in(const struct gdri_coll *c, const struct gdri_push *p, int from, uint8_t *dst,
			    size_t len, uint32_t k, uint32_t apart)
{
	const uint64_t *at = p->w.area + (size_t)(uint32_t)from * p->w.pitch;
	uint32_t n = len ? (uint32_t)((len + 7) / 8) : 1, i;
	uint64_t v[GDRI_WORD_ROWS];
	int ret = 0;

	GDRI_NOT_UNROLLED
	for (; k < n && !ret; k += GDRI_WORD_ROWS * apart) {
		ret = gdri_push_take(c, p, from, at, k, apart, n, v);
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (k + i * apart < n && !ret)
				gdri_word_store(dst, (size_t)(k + i * apart) * 8, len, v[i]);
	}
	return ret;
}

/* A block of each member to each. Those who are not the root tell in one unit, and are told so: then a part must be
 * all threads' before the next one begins. */
GDR_DEVICE int gdri_push_move(struct gdri_push *p, const struct gdri_coll *c,
			      const struct gdri_push_blocks *b)
{
	uint32_t size = gdri_scope_size(c->scope), rank = gdri_scope_rank(c->scope), lanes;
	int n = p->w.n, me = p->w.me, first, step, i, to, ret = 0;
	uint8_t *own = b->dst + b->dst_step * (size_t)(uint32_t)me;
	size_t at = 0;

	lanes = size / (uint32_t)(n - 1);
	lanes = lanes >= 32 ? lanes & ~31u : lanes ? lanes : 1;
	first = (int)(rank / lanes);
	step = (int)(size / lanes);
	rank -= (uint32_t)first * lanes;
	do {
		GDRI_NOT_UNROLLED
		for (i = first + 1; i < n && first < step && !ret; i += step) {
			to = gdri_coll_after(c, i);
			gdri_push_out(p, gdri_word_to(c, &p->w, to), b->src + b->src_step * (size_t)(uint32_t)to + at,
				      gdri_push_part(p, b, me, at), rank, lanes);
		}
		if (!at && (b->root < 0 || me == b->root))
			gdri_coll_copy(c, own, b->src + b->src_step * (size_t)(uint32_t)me, b->len);
		GDRI_NOT_UNROLLED
		for (i = first + 1; i < n && first < step && !ret; i += step) {
			to = gdri_coll_after(c, i);
			ret = gdri_push_in(c, p, to, b->dst + b->dst_step * (size_t)(uint32_t)to + at,
					   gdri_push_part(p, b, to, at), rank, lanes);
		}
		at += p->w.most;
		if (gdri_push_meets(p, b->len, at, b->root >= 0) && gdri_scope_any(c->scope, ret != 0))
			break;
		ret = gdri_push_next(p, c, ret);
	} while (at < b->len);
	return gdri_push_end(p, c, ret);
}

/* ---- computing ---- */

/* Block i of src to member i; the own blocks of all added up into dst. A thread sends a unit before it writes to
 * where that may have been. */
GDR_DEVICE int gdri_push_sum(struct gdri_push *p, const struct gdri_coll *c,
				const struct gdri_word_sum *s)
{
	uint32_t rank = gdri_scope_rank(c->scope), step = gdri_scope_size(c->scope), k, n;
	size_t at = 0, first;
	uint64_t v = 0, *to;
	int i, peer, ret = 0;

	do {
		n = gdri_word_units(&p->w, s->len, at);
		GDRI_NOT_UNROLLED
		for (i = 1; i < p->w.n && !ret; i++) {
			peer = p->w.me + i < p->w.n ? p->w.me + i : p->w.me + i - p->w.n;
			to = gdri_word_to(c, &p->w, peer);
			first = s->src_step * (size_t)(uint32_t)peer;
			GDRI_NOT_UNROLLED
			for (k = rank; k < n; k += step)
				gdri_word_send(to, k, p->w.seq,
					       gdri_word_load(s->src + first, at + (size_t)k * 8, s->len));
		}
		first = s->src_step * (size_t)(uint32_t)p->w.me;
		GDRI_NOT_UNROLLED
		for (k = rank; k < n && !ret; k += step) {
			v = gdri_word_load(s->src + first, at + (size_t)k * 8, s->len);
			ret = gdri_words_fold(c, &p->w, s, k, v, &v);
			if (!ret)
				gdri_word_store(s->dst, at + (size_t)k * 8, s->len, v);
		}
		at += p->w.most;
		if (gdri_push_meets(p, s->len, at, 0) && gdri_scope_any(c->scope, ret != 0))
			break;
		ret = gdri_push_next(p, c, ret);
	} while (at < s->len);
	return gdri_push_end(p, c, ret);
}

/* ---- */

/* This block's share of len bytes: whole lines, but for the end. */
GDR_DEVICE size_t gdri_push_slice(const struct gdri_push *p, size_t len, size_t *at)
{
	size_t each = (len / p->blocks + 128) / 128 * 128;

	*at = each * p->block;
	if (*at >= len)
		return *at = 0;
	return len - *at < each ? len - *at : each;
}

GDR_DEVICE int gdri_push_call(struct gdri_push *p, const struct gdri_coll *c, const struct gdri_request *q)
{
	size_t len = q->n * q->size, at, part = gdri_push_slice(p, len, &at);
	const uint8_t *src = (const uint8_t *)q->src + at;
	uint8_t *dst = (uint8_t *)q->dst + at;
	int root = q->what == GDRI_RQ_BROADCAST;

	if (root || q->what == GDRI_RQ_FCOLLECT || q->what == GDRI_RQ_ALLTOALL) {
		const struct gdri_push_blocks b = {
			dst, src, root ? 0 : len, q->what == GDRI_RQ_ALLTOALL ? len : 0, part, root ? q->pe : -1};

		return gdri_push_move(p, c, &b);
	} else {
		const struct gdri_word_sum s = {
			dst, src, part, q->what == GDRI_RQ_REDUCESCATTER ? len : 0, q->code, 0,
			q->what == GDRI_RQ_EXSCAN ? c->me : q->what == GDRI_RQ_INSCAN ? c->me + 1 : c->n};

		return gdri_push_sum(p, c, &s);
	}
}

#endif
