/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving data by words (words.h): collects and alltoalls that take several parts, and those whose lengths differ. What
 * is one part goes by quick.h, a broadcast by cast.h. */
#ifndef GDRI_WORDS_MOVE_H
#define GDRI_WORDS_MOVE_H

#include <gdr/impl/coll/ll/words.h>

/* ---- moving: a few threads for each of the other members ---- */

struct gdri_word_move {
	uint8_t *dst;
	const uint8_t *src;
	size_t dst_step, src_step; /* from the block of a member to that of the next one */
	size_t out, in;		   /* bytes of a block to, and from, each */
	size_t most;		   /* of the longest one of any two */
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
		return m->in;
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

/* `lanes` threads serve a member, this one as number `rank` every step-th member, from `first` on. */
struct gdri_word_lanes {
	uint32_t rank, lanes;
	int first, step;
};

GDR_DEVICE struct gdri_word_lanes gdri_words_lanes(const struct gdri_coll *c, size_t most)
{
	struct gdri_word_lanes l = {gdri_scope_rank(c->scope), gdri_scope_size(c->scope), 1, 1};
	uint32_t groups = gdri_words_groups(l.lanes, c->n, most / 8);

	if (groups) {
		l.lanes >>= groups;
		l.first = (int)(l.rank / l.lanes);
		l.rank -= (uint32_t)l.first * l.lanes;
		l.first++;
		l.step = 1 << groups;
	}
	return l;
}

/* A part to all others, and from them: out of line, where each has no more in registers than it needs. */
GDRI_NOINLINE void gdri_words_give(const struct gdri_coll *c, const struct gdri_words *words,
				   const struct gdri_word_move *move, struct gdri_word_lanes l, size_t at)
{
	const struct gdri_words w = *words;
	const struct gdri_word_move m = *move;
	int i;

	GDRI_NOT_UNROLLED
	for (i = l.first; i < w.n; i += l.step)
		gdri_words_out(c, &w, &m, gdri_coll_after(c, i), at, l.rank, l.lanes);
	gdri_words_out_rest(c, &w, &m, at);
}

GDRI_NOINLINE int gdri_words_get(const struct gdri_coll *c, const struct gdri_words *words,
				 const struct gdri_word_move *move, struct gdri_word_lanes l, size_t at)
{
	const struct gdri_words w = *words;
	const struct gdri_word_move m = *move;
	int i, ret = 0;

	GDRI_NOT_UNROLLED
	for (i = l.first; i < w.n && !ret; i += l.step)
		ret = gdri_words_in(c, &w, &m, gdri_coll_before(c, i), at, l.rank, l.lanes);
	return ret ? ret : gdri_words_in_rest(c, &w, &m, at);
}

/* A block of each member to each. By the ABI: what is one part goes by quick.h, but for collects, which come by the ABI
 * in any case. */
GDRI_NOINLINE int gdri_words_exchange(const struct gdri_coll *c, const struct gdri_word_move *m)
{
	const struct gdri_word_lanes l = gdri_words_lanes(c, m->most);
	struct gdri_words w;
	size_t at = 0;
	int ret;

	GDRI_BY_ABI(gdri_words_exchange);
	if (c->n == 1) {
		gdri_coll_copy(c, m->own_dst, m->own_src, m->own);
		gdri_scope_sync(c->scope);
		return 0;
	}
	ret = gdri_words_begin(c, &w);
	while (!ret) {
		gdri_words_give(c, &w, m, l, at);
		if (!at)
			gdri_coll_copy(c, m->own_dst, m->own_src, m->own);
		ret = gdri_words_get(c, &w, m, l, at);
		at += w.most;
		ret = gdri_words_next(c, &w, at < m->most, ret);
		if (at >= m->most)
			break;
	}
	return ret;
}

#endif
