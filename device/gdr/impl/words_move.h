/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving data by words (words.h): broadcast, collect, alltoall. Most calls are one part of whole units that lie at
 * multiples of 8; what is not goes by gdri_words_exchange, the shortest by gdri_words_exchange_one. */
#ifndef GDRI_WORDS_MOVE_H
#define GDRI_WORDS_MOVE_H

#include <gdr/impl/words.h>

/* ---- moving: a few threads for each of the other members ---- */

struct gdri_word_move {
	uint8_t *dst;
	const uint8_t *src;
	size_t dst_step, src_step; /* from the block of a member to that of the next one */
	size_t out, in;		   /* bytes of a block to, and from, each */
	size_t most;		   /* of the longest one of any two */
	int root;		   /* only this member's holds something; -1: all do */
	int ragged;		   /* lengths and places are those of a collect, in gdri_chan */
	uint8_t *own_dst;	   /* the own block, of `own` bytes */
	const uint8_t *own_src;
	size_t own;
};

/* Units k, k + apart.. of n whole ones, wherever they lie. */
GDRI_NOINLINE void gdri_words_out_odd(uint64_t *p, const uint8_t *src, uint64_t seq, uint32_t k,
				      uint32_t n, uint32_t apart)
{
	GDRI_BY_ABI(gdri_words_out_odd);
	GDRI_NOT_UNROLLED
	for (; k < n; k += apart)
		gdri_word_send(p, k, seq, gdri_word_load(src, (size_t)k * 8, (size_t)n * 8));
}

GDRI_NOINLINE int gdri_words_in_odd(const struct gdri_coll *c, int from, uint8_t *dst,
				    const uint64_t *p, uint64_t seq, uint32_t k, uint32_t n,
				    uint32_t apart)
{
	uint64_t v;
	int ret = 0;

	GDRI_BY_ABI(gdri_words_in_odd);
	GDRI_NOT_UNROLLED
	for (; k < n && !ret; k += apart) {
		ret = gdri_word_take(c, from, p + 2 * (size_t)k, seq, &v);
		if (!ret)
			gdri_word_store(dst, (size_t)k * 8, (size_t)n * 8, v);
	}
	return ret;
}

/* Whole units to a member, by threads k of `apart`. */
GDR_DEVICE void gdri_words_out(const struct gdri_coll *c, const struct gdri_words *w,
			       const struct gdri_word_move *m, int to, size_t at, uint32_t k,
			       uint32_t apart)
{
	const uint8_t *src = m->src + m->src_step * (size_t)(uint32_t)to + at;
	uint32_t n = (uint32_t)(gdri_word_part(w, m->out, at) / 8);
	uint64_t *p = gdri_word_to(c, w, to);

	if (k >= n)
		return;
	if (gdri_likely(!((uintptr_t)src & 7)))
		gdri_words_out_rows(p + 2 * (size_t)k, (const uint64_t *)(const void *)src + k, w->seq,
				    (int)(n - k), (int)apart);
	else
		gdri_words_out_odd(p, src, w->seq, k, n, apart);
}

/* What a member sends, and where to. */
GDR_DEVICE size_t gdri_words_from(const struct gdri_coll *c, const struct gdri_word_move *m, int from,
				  uint8_t **dst)
{
	*dst = m->dst + m->dst_step * (size_t)(uint32_t)from;
	if (gdri_likely(!m->ragged))
		return m->root >= 0 && from != m->root ? 0 : m->in;
	*dst = m->dst + gdri_ld_relaxed_gpu_u64(&c->team->chan[from].at);
	return gdri_ld_relaxed_gpu_u64(&c->team->chan[from].len);
}

GDR_DEVICE int gdri_words_in(const struct gdri_coll *c, const struct gdri_words *w,
			     const struct gdri_word_move *m, int from, size_t at, uint32_t k,
			     uint32_t apart)
{
	const uint64_t *p = w->area + (size_t)(uint32_t)from * w->pitch;
	uint8_t *dst;
	uint32_t n = (uint32_t)(gdri_word_part(w, gdri_words_from(c, m, from, &dst), at) / 8);

	if (k >= n)
		return 0;
	dst += at;
	if (gdri_likely(!((uintptr_t)dst & 7)))
		return gdri_words_in_rows(c, from, (uint64_t *)(void *)dst + k, p + 2 * (size_t)k, w->seq,
					  (int)(n - k), (int)apart);
	return gdri_words_in_odd(c, from, dst, p, w->seq, k, n, apart);
}

/* What is less than a unit, a unit of nothing too: a thread for each member. */
GDR_DEVICE void gdri_words_out_rest(const struct gdri_coll *c, const struct gdri_words *w,
				    const struct gdri_word_move *m, size_t at)
{
	size_t part = gdri_word_part(w, m->out, at), whole = part & ~(size_t)7;
	int i, to, n = c->n, size = (int)gdri_scope_size(c->scope);

	if (part && part == whole)
		return;
	GDRI_NOT_UNROLLED
	for (i = (int)gdri_scope_rank(c->scope) + 1; i < n; i += size) {
		to = gdri_coll_after(c, i);
		gdri_word_send(gdri_word_to(c, w, to), (uint32_t)(whole / 8), w->seq,
			       gdri_word_load(m->src + m->src_step * (size_t)(uint32_t)to + at, whole, part));
	}
}

GDR_DEVICE int gdri_words_in_rest(const struct gdri_coll *c, const struct gdri_words *w,
				  const struct gdri_word_move *m, size_t at)
{
	int i, from, n = c->n, size = (int)gdri_scope_size(c->scope), ret = 0;
	size_t part, whole;
	uint8_t *dst;
	uint64_t v;

	GDRI_NOT_UNROLLED
	for (i = (int)gdri_scope_rank(c->scope) + 1; i < n && !ret; i += size) {
		from = gdri_coll_before(c, i);
		part = gdri_word_part(w, gdri_words_from(c, m, from, &dst), at);
		whole = part & ~(size_t)7;
		if (part && part == whole)
			continue;
		ret = gdri_word_take(c, from, w->area + (size_t)(uint32_t)from * w->pitch + whole / 4,
				     w->seq, &v);
		if (!ret)
			gdri_word_store(dst + at, whole, part, v);
	}
	return ret;
}

/* The shortest calls: there are threads enough for each unit of each member, own one included, so that none has
 * more than one to send and one to take. Little else is done, since that is what the time is. */
GDRI_NOINLINE int gdri_words_exchange_one(const struct gdri_coll *c, const struct gdri_word_move *m,
					  uint32_t shift)
{
	const struct gdri_team *t = c->team;
	uint32_t rank = gdri_scope_rank(c->scope), i = rank >> shift, k = rank & ((1u << shift) - 1);
	int n = c->n, me = c->me, to = me + 1 + (int)i, from = me - 1 - (int)i, ret = 0;
	uint64_t seq = c->seq + 1, v, *area;
	size_t in;

	to -= to >= n ? n : 0;
	from += from < 0 ? n : 0;
	area = t->words + (((uint32_t)seq & 1) * (uint32_t)n * (size_t)(t->word_size / 4) + 2 * k);
	in = m->root >= 0 && from != m->root ? 0 : m->in;
	if ((int)i < n - 1) {
		if ((size_t)k * 8 < m->out || !k) {
			uint64_t *p = area + (uint32_t)me * (size_t)(t->word_size / 4);

			v = gdri_word_load(m->src + m->src_step * (size_t)(uint32_t)to, (size_t)k * 8, m->out);
			gdri_word_send(gdri_word_peer(c, p, to), 0, seq, v);
		}
		if ((size_t)k * 8 < in || !k) {
			const uint64_t *p = area + (uint32_t)from * (size_t)(t->word_size / 4);

			ret = gdri_word_take(c, from, p, seq, &v);
			if (gdri_likely(!ret))
				gdri_word_store(m->dst + m->dst_step * (size_t)(uint32_t)from,
						(size_t)k * 8, in, v);
		}
	} else if ((int)i == n - 1 && m->own_dst != m->own_src && (size_t)k * 8 < m->own) {
		gdri_word_store(m->own_dst, (size_t)k * 8, m->own,
				gdri_word_load(m->own_src, (size_t)k * 8, m->own));
	}
	return gdri_words_end(c, seq, ret);
}

/* 1 + log2 of threads for each member, where all that is to be done fits into one step; else 0. */
GDR_DEVICE uint32_t gdri_words_fit(const struct gdri_coll *c, size_t len)
{
	uint32_t size = gdri_scope_size(c->scope), shift = 0;

	if (len > 4096 || len > c->team->word_size || !(uint32_t)(c->seq + 1))
		return 0;
	while ((size_t)8 << shift < len)
		shift++;
	return (uint32_t)c->n << shift <= size ? 1 + shift : 0;
}

/* log2 of how many members are served at a time, each by as many threads: more than one as long as a thread has
 * no more to do for its member than what is under way at once. */
GDR_DEVICE uint32_t gdri_words_groups(uint32_t size, int n, size_t units)
{
	uint32_t s = 0;

	while (1u << s < (uint32_t)n - 1 && !(size & ((2u << s) - 1)) &&
	       units << (s + 1) <= (size_t)GDRI_WORD_ROWS * size)
		s++;
	return s;
}

/* A block of each member to each. */
GDRI_NOINLINE int gdri_words_exchange(const struct gdri_coll *coll, struct gdri_word_move m)
{
	const struct gdri_coll *c = coll;
	uint32_t rank = gdri_scope_rank(c->scope), lanes = gdri_scope_size(c->scope), groups;
	int first = 0, step, i, n = c->n, ret;
	struct gdri_words w;
	size_t at = 0;

	if (n == 1) {
		gdri_coll_copy(c, m.own_dst, m.own_src, m.own);
		gdri_scope_sync(c->scope);
		return 0;
	}
	groups = gdri_words_groups(lanes, n, m.most / 8);
	step = 1 << groups;
	if (groups) {
		lanes >>= groups;
		first = (int)(rank / lanes);
		rank -= (uint32_t)first * lanes;
	}
	ret = gdri_words_begin(c, &w);
	while (!ret) {
		GDRI_NOT_UNROLLED
		for (i = first + 1; i < n; i += step)
			gdri_words_out(c, &w, &m, gdri_coll_after(c, i), at, rank, lanes);
		gdri_words_out_rest(c, &w, &m, at);
		if (!at)
			gdri_coll_copy(c, m.own_dst, m.own_src, m.own);
		GDRI_NOT_UNROLLED
		for (i = first + 1; i < n && !ret; i += step)
			ret = gdri_words_in(c, &w, &m, gdri_coll_before(c, i), at, rank, lanes);
		if (!ret)
			ret = gdri_words_in_rest(c, &w, &m, at);
		at += w.most;
		ret = gdri_words_next(c, &w, at < m.most, ret);
		if (at >= m.most)
			break;
	}
	return ret;
}

/* ---- moving what is one part, of whole units at multiples of 8: all threads serve all members in turn ---- */

struct gdri_word_blocks {
	uint64_t *dst;
	const uint64_t *src;
	uint32_t units;		   /* of a block */
	size_t dst_step, src_step; /* units; src_step 0: all are sent the same */
	int root;		   /* only this member's holds something; -1: all do */
};

/* Where the part of a call lies, for thread `rank`. */
struct gdri_word_place {
	uint64_t *area; /* its first unit of member 0 */
	uint32_t pitch;
	uint64_t seq;
	int left, size; /* units from there on; from one to the next */
};

GDR_DEVICE struct gdri_word_place gdri_words_place(const struct gdri_coll *c, uint32_t units)
{
	int rank = (int)gdri_scope_rank(c->scope);
	struct gdri_word_place p;

	p.seq = c->seq + 1;
	p.pitch = c->team->word_size / 4;
	p.area = c->team->words + ((uint32_t)p.seq & 1) * (uint32_t)c->n * (size_t)p.pitch + 2 * rank;
	p.left = (int)units - rank;
	p.size = (int)gdri_scope_size(c->scope);
	return p;
}

/* Unit `rank` of each of the other members: those of several are under way at a time. */
GDR_DEVICE int gdri_words_in_members(const struct gdri_coll *c, const struct gdri_word_blocks *b,
				     const struct gdri_word_place *w)
{
	uint64_t *dst = b->dst + gdri_scope_rank(c->scope), *area = w->area, v[GDRI_WORD_ROWS], seq = w->seq;
	int n = c->n, first, i, spins, all, ret;
	uint32_t pitch = w->pitch;

	if (w->left <= 0)
		return 0;
	GDRI_NOT_UNROLLED
	for (first = 1; first < n; first += GDRI_WORD_ROWS) {
		GDRI_NOT_UNROLLED
		for (spins = 0;; spins++) {
			all = 1;
			GDRI_UNROLLED
			for (i = 0; i < GDRI_WORD_ROWS; i++)
				if (first + i < n)
					all &= gdri_word_look(area + (uint32_t)gdri_coll_before(c, first + i) *
									     (size_t)pitch,
							      seq, &v[i]);
			if (gdri_likely(all))
				break;
			if (gdri_likely(spins < GDRI_SPINS))
				continue;
			for (i = first; i < n && i < first + GDRI_WORD_ROWS; i++) {
				ret = gdri_word_wait(c, gdri_coll_before(c, i),
						     area + (uint32_t)gdri_coll_before(c, i) * (size_t)pitch,
						     seq);
				if (ret)
					return ret;
			}
		}
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (first + i < n)
				dst[b->dst_step * (uint32_t)gdri_coll_before(c, first + i)] = v[i];
	}
	return 0;
}

/* The same to all, the own place among them. */
GDR_DEVICE void gdri_words_out_same(const struct gdri_coll *c, const struct gdri_word_blocks *b,
				    const struct gdri_word_place *w)
{
	uint32_t rank = gdri_scope_rank(c->scope);
	uint64_t *own = b->dst + b->dst_step * (uint32_t)c->me + rank, *p, seq = w->seq;
	uint64_t *mine = w->area + (uint32_t)c->me * (size_t)w->pitch, v[GDRI_WORD_ROWS];
	int size = w->size, left = w->left, n = c->n, i, to, k;
	const uint64_t *s = b->src + rank;

	GDRI_NOT_UNROLLED
	for (; left > 0; left -= GDRI_WORD_ROWS * size) {
		GDRI_UNROLLED
		for (k = 0; k < GDRI_WORD_ROWS; k++)
			v[k] = k * size < left ? s[k * size] : 0;
		GDRI_NOT_UNROLLED
		for (i = 1; i < n; i++) {
			to = gdri_coll_after(c, i);
			p = gdri_word_peer(c, mine, to);
			GDRI_UNROLLED
			for (k = 0; k < GDRI_WORD_ROWS; k++)
				if (k * size < left)
					gdri_word_send(p, (uint32_t)(k * size), seq, v[k]);
		}
		GDRI_UNROLLED
		for (k = 0; k < GDRI_WORD_ROWS; k++)
			if (k * size < left)
				own[k * size] = v[k]; /* in place: the same */
		s += GDRI_WORD_ROWS * size;
		own += GDRI_WORD_ROWS * size;
		mine += 2 * GDRI_WORD_ROWS * size;
	}
}

GDR_DEVICE void gdri_words_own_rows(uint64_t *d, const uint64_t *s, int left, int n)
{
	uint64_t v[GDRI_WORD_ROWS];
	int i;

	GDRI_NOT_UNROLLED
	for (; left > 0; left -= GDRI_WORD_ROWS * n) {
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			v[i] = i * n < left ? s[i * n] : 0;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (i * n < left)
				d[i * n] = v[i];
		s += GDRI_WORD_ROWS * n;
		d += GDRI_WORD_ROWS * n;
	}
}

/* A unit of nothing to each, or from each but `but`: a thread for each member. */
GDR_DEVICE int gdri_words_nothing(const struct gdri_coll *c, const struct gdri_word_place *w, int send,
				  int but)
{
	int rank = (int)gdri_scope_rank(c->scope), n = c->n, i, other, ret = 0;
	uint64_t *area = w->area - 2 * rank, v;

	GDRI_NOT_UNROLLED
	for (i = rank + 1; i < n && !ret; i += w->size) {
		other = gdri_coll_before(c, i);
		if (send)
			gdri_word_send(gdri_word_peer(c, area + (uint32_t)c->me * (size_t)w->pitch, other), 0,
				       w->seq, 0);
		else if (other != but)
			ret = gdri_word_take(c, other, area + (uint32_t)other * (size_t)w->pitch, w->seq, &v);
	}
	return ret;
}

/* The blocks of all others. */
GDR_DEVICE int gdri_words_in_all(const struct gdri_coll *c, const struct gdri_word_blocks *b,
				 const struct gdri_word_place *w)
{
	uint64_t *dst = b->dst + gdri_scope_rank(c->scope);
	int i, from, ret = 0;

	if (c->n > 2 && b->units <= (uint32_t)w->size)
		return gdri_words_in_members(c, b, w);
	GDRI_NOT_UNROLLED
	for (i = 1; i < c->n && !ret; i++) {
		from = gdri_coll_before(c, i);
		ret = gdri_words_in_rows(c, from, dst + b->dst_step * (uint32_t)from,
					 w->area + (uint32_t)from * (size_t)w->pitch, w->seq, w->left, w->size);
	}
	return ret;
}

/* The own block to all. */
GDRI_NOINLINE int gdri_words_gather(const struct gdri_coll *c, const struct gdri_word_blocks *b)
{
	const struct gdri_word_place w = gdri_words_place(c, b->units);

	gdri_words_out_same(c, b, &w);
	return gdri_words_end(c, w.seq, gdri_words_in_all(c, b, &w));
}

/* To each its own. */
GDRI_NOINLINE int gdri_words_scatter(const struct gdri_coll *c, const struct gdri_word_blocks *b)
{
	const struct gdri_word_place w = gdri_words_place(c, b->units);
	uint64_t *mine = w.area + (uint32_t)c->me * (size_t)w.pitch;
	uint64_t *own = b->dst + b->dst_step * (uint32_t)c->me + gdri_scope_rank(c->scope);
	const uint64_t *src = b->src + gdri_scope_rank(c->scope);
	int i, to;

	GDRI_NOT_UNROLLED
	for (i = 1; i < c->n; i++) {
		to = gdri_coll_after(c, i);
		gdri_words_out_rows(gdri_word_peer(c, mine, to), src + b->src_step * (uint32_t)to, w.seq,
				    w.left, w.size);
	}
	src += b->src_step * (uint32_t)c->me;
	if (own != src)
		gdri_words_own_rows(own, src, w.left, w.size);
	return gdri_words_end(c, w.seq, gdri_words_in_all(c, b, &w));
}

/* The root's to all. */
GDRI_NOINLINE int gdri_words_root(const struct gdri_coll *c, const struct gdri_word_blocks *b)
{
	const struct gdri_word_place w = gdri_words_place(c, b->units);
	int rank = (int)gdri_scope_rank(c->scope), ret = 0;

	if (c->me == b->root) {
		gdri_words_out_same(c, b, &w);
	} else {
		gdri_words_nothing(c, &w, 1, -1);
		ret = gdri_words_in_rows(c, b->root, b->dst + rank,
					 w.area + (uint32_t)b->root * (size_t)w.pitch, w.seq, w.left, w.size);
	}
	if (!ret)
		ret = gdri_words_nothing(c, &w, 0, b->root);
	return gdri_words_end(c, w.seq, ret);
}

/* ---- whole calls ---- */

/* len bytes to each member; what lies oddly goes by gdri_words_exchange. */
GDR_DEVICE int gdri_words_move(const struct gdri_coll *c, const struct gdri_word_move *m)
{
	uint32_t fit = c->n > 1 && !m->ragged ? gdri_words_fit(c, m->most) : 0;

	if (fit)
		return gdri_words_exchange_one(c, m, fit - 1);
	if (c->n > 1 && !m->ragged && m->most <= c->team->word_size && (uint32_t)(c->seq + 1) &&
	    !(((uintptr_t)m->dst | (uintptr_t)m->src | m->most | m->dst_step | m->src_step) & 7)) {
		const struct gdri_word_blocks b = {(uint64_t *)(void *)m->dst,
						   (const uint64_t *)(const void *)m->src,
						   (uint32_t)(m->most / 8), m->dst_step / 8, m->src_step / 8,
						   m->root};

		return m->root >= 0 ? gdri_words_root(c, &b)
		       : m->src_step ? gdri_words_scatter(c, &b)
				     : gdri_words_gather(c, &b);
	}
	return gdri_words_exchange(c, *m);
}

#endif
