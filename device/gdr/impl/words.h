/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of little data, whose data says itself that it has come: each 4 bytes travel in a word of 8, with
 * the number of the part that they belong to, into memory of the library at the member. Nobody tells
 * anything, and nothing is fenced: a word comes as a whole. All members map each other's memory.
 *
 * In each part each member sends something to each other one, if only a unit of nothing. So who ends a
 * part has heard of all that they had ended the part before, and two areas in turn are enough
 * (docs/memory-model.md, Words).
 *
 * What is short is short by its instructions: whatever the loops need is read before them, into variables
 * that nothing points to. */
#ifndef GDRI_WORDS_H
#define GDRI_WORDS_H

#include <gdr/impl/blocks.h>
#include <gdr/impl/reduce_op.h>

#define GDRI_WORD_ROWS 4 /* units whose loads are under way at a time */

struct gdri_words {
	uint64_t *area; /* of the part under way: member i's begins at i * pitch */
	uint64_t seq;	/* its number; the low half is in the words, never 0 */
	size_t most;	/* bytes of a part */
	uint32_t pitch;
	int n, me;
};

/* Behind gdri_coll_begin; -GDR_E*: of the sync that the numbers' beginning anew takes. */
GDR_DEVICE void gdri_words_turn(const struct gdri_coll *c, struct gdri_words *w)
{
	w->area = c->team->words + (size_t)(w->seq & 1) * (uint32_t)w->n * w->pitch;
}

/* The numbers in the words have begun anew: whatever is left from the last time is taken away, before
 * any other member sends words of this part. */
GDRI_NOINLINE int gdri_words_clean(const struct gdri_coll *c)
{
	const struct gdri_team *t = c->team;
	size_t k, n = (size_t)t->n * 2 * (t->word_size / 8);

	GDRI_BY_ABI(gdri_words_clean);
	for (k = gdri_scope_rank(c->scope); k < n; k += gdri_scope_size(c->scope))
		gdri_st_pair_sys(t->words + 2 * k, 0, 0); /* released by the sync */
	return gdri_coll_sync(c);
}

GDR_DEVICE int gdri_words_begin(const struct gdri_coll *c, struct gdri_words *w)
{
	const struct gdri_team *t = c->team;
	int ret = 0;

	w->seq = c->seq + 1;
	w->most = t->word_size;
	w->pitch = t->word_size / 4;
	w->n = c->n;
	w->me = c->me;
	if (gdri_unlikely(!(uint32_t)w->seq)) {
		w->seq++;
		ret = gdri_words_clean(c);
	}
	gdri_words_turn(c, w);
	return ret;
}

/* All threads have what was theirs of a part. */
GDR_DEVICE int gdri_words_met(const struct gdri_coll *c, int ret)
{
	struct gdri_team *t = c->team;
	uint32_t none = 0;

	if (gdri_likely(!gdri_scope_any(c->scope, ret != 0)))
		return 0;
	if (ret) /* behind that sync: all have read it in gdri_coll_begin. Carries no data: pairs with nothing */
		gdri_cas_u32((uint32_t *)&t->err, &none, (uint32_t)ret);
	gdri_scope_sync(c->scope);
	return (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&t->err);
}

/* The same of the last part. The next call may be another thread's, with no sync between: a second one here,
 * since the first thread may not write what others of this call have yet to read. */
GDR_DEVICE int gdri_words_end(const struct gdri_coll *c, uint64_t seq, int ret)
{
	ret = gdri_words_met(c, ret);
	if (gdri_unlikely(ret))
		return ret;
	if (!gdri_scope_rank(c->scope))
		gdri_st_relaxed_gpu_u64(&c->team->word_seq, seq); /* carries no data: pairs with nothing */
	gdri_scope_sync(c->scope);
	return 0;
}

/* The threads have what was theirs of the part. more: there is another one, which begins, unless one failed. */
GDR_DEVICE int gdri_words_next(const struct gdri_coll *c, struct gdri_words *w, int more, int ret)
{
	if (!more)
		return gdri_words_end(c, w->seq, ret);
	ret = gdri_words_met(c, ret);
	if (ret)
		return ret;
	w->seq++;
	if (gdri_unlikely(!(uint32_t)w->seq)) {
		w->seq++;
		ret = gdri_words_clean(c);
	}
	gdri_words_turn(c, w);
	return ret;
}

/* ---- units: 8 bytes of data in two words ---- */

GDRI_NOINLINE uint64_t gdri_word_load_odd(const uint8_t *p, uint32_t n)
{
	uint64_t v = 0;
	uint32_t i, v4;

	GDRI_BY_ABI(gdri_word_load_odd);
	if (n == 4 && !((uintptr_t)p & 3)) {
		gdri_ld_bytes(&v4, __builtin_assume_aligned(p, 4), 4);
		return v4;
	}
	GDRI_NOT_UNROLLED
	for (i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

/* Bytes at .. at + 7 of those at p, as far as there are `len`. */
GDR_DEVICE uint64_t gdri_word_load(const uint8_t *p, size_t at, size_t len)
{
	uint64_t v;

	p += at;
	if (gdri_likely(at + 8 <= len && !((uintptr_t)p & 7))) {
		gdri_ld_bytes(&v, __builtin_assume_aligned(p, 8), 8);
		return v;
	}
	return at >= len ? 0 : gdri_word_load_odd(p, len - at < 8 ? (uint32_t)(len - at) : 8);
}

GDRI_NOINLINE void gdri_word_store_odd(uint8_t *p, uint32_t n, uint64_t v)
{
	uint32_t i, v4 = (uint32_t)v;

	GDRI_BY_ABI(gdri_word_store_odd);
	if (n == 4 && !((uintptr_t)p & 3)) {
		gdri_ld_bytes(__builtin_assume_aligned(p, 4), &v4, 4);
		return;
	}
	GDRI_NOT_UNROLLED
	for (i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

GDR_DEVICE void gdri_word_store(uint8_t *p, size_t at, size_t len, uint64_t v)
{
	p += at;
	if (gdri_likely(at + 8 <= len && !((uintptr_t)p & 7)))
		gdri_ld_bytes(__builtin_assume_aligned(p, 8), &v, 8);
	else if (at < len)
		gdri_word_store_odd(p, len - at < 8 ? (uint32_t)(len - at) : 8, v);
}

/* Where p is at the member. */
GDR_DEVICE uint64_t *gdri_word_peer(const struct gdri_coll *c, uint64_t *p, int to)
{
#ifdef __CUDACC__
	return (uint64_t *)gdri_direct_at(p, gdri_team_pe(c->team, to));
#else
	return (uint64_t *)(void *)gdri_chan_mapped(c, p, gdri_team_pe(c->team, to));
#endif
}

/* Where the own units stand at the member. */
GDR_DEVICE uint64_t *gdri_word_to(const struct gdri_coll *c, const struct gdri_words *w, int to)
{
	return gdri_word_peer(c, w->area + (size_t)(uint32_t)w->me * w->pitch, to);
}

/* Pairs with the loads in gdri_word_look by what it holds. */
GDR_DEVICE void gdri_word_send(uint64_t *to, uint32_t k, uint64_t seq, uint64_t v)
{
	gdri_st_pair_sys(to + 2 * (size_t)k, seq << 32 | (uint32_t)v, seq << 32 | v >> 32);
}

/* 1: both words of the unit are there. */
GDR_DEVICE int gdri_word_look(const uint64_t *p, uint64_t seq, uint64_t *v)
{
	uint64_t a, b;

	gdri_ld_pair_sys(p, &a, &b);
	*v = (uint32_t)a | b << 32;
	return (uint32_t)(a >> 32) == (uint32_t)seq && (uint32_t)(b >> 32) == (uint32_t)seq;
}

/* When it takes long. */
GDRI_NOINLINE int gdri_word_wait(const struct gdri_coll *c, int from, const uint64_t *p, uint64_t seq)
{
	struct gdri_waiter x;
	uint64_t v;
	int ret;

	GDRI_BY_ABI(gdri_word_wait);
	gdri_wait_begin(&x, c->op, gdri_team_pe(c->team, from), gdri_heap_offset(c->dev, p));
	while (!gdri_word_look(p, seq, &v)) {
		ret = gdri_wait_step(c->dev, &x);
		if (ret)
			return ret;
	}
	gdri_wait_end(c->dev, &x);
	return 0;
}

/* One unit of member `from`. */
GDR_DEVICE int gdri_word_take(const struct gdri_coll *c, int from, const uint64_t *p, uint64_t seq,
			      uint64_t *v)
{
	int spins, ret;

	GDRI_NOT_UNROLLED
	for (spins = 0; spins <= GDRI_SPINS; spins++)
		if (gdri_likely(gdri_word_look(p, seq, v)))
			return 0;
	ret = gdri_word_wait(c, from, p, seq);
	gdri_word_look(p, seq, v);
	return ret;
}

/* Units k, k + apart.. of member `from`, those below n. */
GDR_DEVICE int gdri_words_take(const struct gdri_coll *c, const struct gdri_words *w, int from,
			       uint32_t k, uint32_t apart, uint32_t n, uint64_t v[GDRI_WORD_ROWS])
{
	const uint64_t *p = w->area + (size_t)(uint32_t)from * w->pitch;
	int i, spins, all = 0, ret = 0;

	GDRI_NOT_UNROLLED
	for (spins = 0; spins <= GDRI_SPINS && !all; spins++) {
		all = 1;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (k + (uint32_t)i * apart < n)
				all &= gdri_word_look(p + 2 * (size_t)(k + (uint32_t)i * apart), w->seq, &v[i]);
	}
	if (gdri_likely(all))
		return 0;
	for (i = 0; i < GDRI_WORD_ROWS && !ret; i++)
		if (k + (uint32_t)i * apart < n)
			ret = gdri_word_wait(c, from, p + 2 * (size_t)(k + (uint32_t)i * apart), w->seq);
	GDRI_UNROLLED
	for (i = 0; i < GDRI_WORD_ROWS; i++)
		if (k + (uint32_t)i * apart < n)
			gdri_word_look(p + 2 * (size_t)(k + (uint32_t)i * apart), w->seq, &v[i]);
	return ret;
}

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

/* Of nothing, too, there is a unit. */
GDR_DEVICE uint32_t gdri_word_units(const struct gdri_words *w, size_t len, size_t at)
{
	size_t left = len > at ? len - at : 0;

	left = left < w->most ? left : w->most;
	return left ? (uint32_t)((left + 7) / 8) : 1;
}

GDR_DEVICE void gdri_words_out(const struct gdri_coll *c, const struct gdri_words *w,
			       const struct gdri_word_move *m, int to, size_t at, uint32_t k,
			       uint32_t apart)
{
	const uint8_t *src = m->src + m->src_step * (size_t)(uint32_t)to + at;
	uint32_t n = gdri_word_units(w, m->out, at), i;
	size_t len = m->out > at ? m->out - at : 0;
	uint64_t *p = gdri_word_to(c, w, to), v[GDRI_WORD_ROWS];

	GDRI_NOT_UNROLLED
	for (; k < n; k += GDRI_WORD_ROWS * apart) {
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			v[i] = k + i * apart < n ? gdri_word_load(src, (size_t)(k + i * apart) * 8, len) : 0;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (k + i * apart < n)
				gdri_word_send(p, k + i * apart, w->seq, v[i]);
	}
}

GDR_DEVICE int gdri_words_in(const struct gdri_coll *c, const struct gdri_words *w,
			     const struct gdri_word_move *m, int from, size_t at, uint32_t k,
			     uint32_t apart)
{
	size_t len = m->root >= 0 && from != m->root ? 0 : m->in, place = m->dst_step * (size_t)(uint32_t)from;
	uint64_t v[GDRI_WORD_ROWS];
	uint32_t n, i;
	int ret = 0;

	if (gdri_unlikely(m->ragged)) {
		len = gdri_ld_relaxed_gpu_u64(&c->team->chan[from].len);
		place = gdri_ld_relaxed_gpu_u64(&c->team->chan[from].at);
	}
	n = gdri_word_units(w, len, at);
	len = len > at ? len - at : 0;
	GDRI_NOT_UNROLLED
	for (; k < n && !ret; k += GDRI_WORD_ROWS * apart) {
		ret = gdri_words_take(c, w, from, k, apart, n, v);
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (k + i * apart < n && !ret)
				gdri_word_store(m->dst + place + at, (size_t)(k + i * apart) * 8, len, v[i]);
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

/* A block of each member to each. */
GDRI_NOINLINE int gdri_words_exchange(const struct gdri_coll *coll, struct gdri_word_move m)
{
	const struct gdri_coll *c = coll;
	uint32_t size = gdri_scope_size(c->scope), rank = gdri_scope_rank(c->scope), lanes;
	int first, step, i, n = c->n, ret;
	struct gdri_words w;
	size_t at = 0;

	if (n == 1) {
		gdri_coll_copy(c, m.own_dst, m.own_src, m.own);
		gdri_scope_sync(c->scope);
		return 0;
	}
	lanes = size / (uint32_t)(n - 1);
	lanes = lanes >= 32 ? lanes & ~31u : lanes ? lanes : 1;
	first = (int)(rank / lanes);
	step = (int)(size / lanes);
	rank -= (uint32_t)first * lanes;
	ret = gdri_words_begin(c, &w);
	while (!ret) {
		GDRI_NOT_UNROLLED
		for (i = first + 1; i < n; i += step)
			gdri_words_out(c, &w, &m, w.me + i < n ? w.me + i : w.me + i - n, at, rank, lanes);
		if (!at)
			gdri_coll_copy(c, m.own_dst, m.own_src, m.own);
		GDRI_NOT_UNROLLED
		for (i = first + 1; i < n && !ret; i += step)
			ret = gdri_words_in(c, &w, &m, w.me >= i ? w.me - i : w.me - i + n, at, rank, lanes);
		at += w.most;
		ret = gdri_words_next(c, &w, at < m.most, ret);
		if (at >= m.most)
			break;
	}
	return ret;
}

/* ---- computing: each thread has the same units of all members ---- */

struct gdri_word_sum {
	uint8_t *dst;
	const uint8_t *src;
	size_t len, src_step; /* of a block, and from one member's to the next one's */
	uint32_t code;
	int lo, hi; /* members whose vectors are added up, in the order of their numbers; none: 0 */
};

GDRI_NOINLINE uint64_t gdri_word_op_any(uint32_t code, uint64_t a, uint64_t b)
{
	GDRI_BY_ABI(gdri_word_op_any);
	/* behind the end: 0 of what was loaded, which no operation minds */
	gdri_reduce_apply(code, GDRI_THREAD, &a, &a, &b, (size_t)8 >> (code & 15u));
	return a;
}

/* Sums of elements of 4 and 8 bytes make no call. */
GDR_DEVICE uint64_t gdri_word_op(uint32_t code, uint64_t a, uint64_t b)
{
#ifdef __CUDACC__
	uint32_t c = gdri_reduce_fold(code);

	if (c == GDRI_REDUCE_CODE(float, GDRI_SUM))
		return (uint64_t)gdri_bits_of(gdri_float_of((uint32_t)(a >> 32)) + gdri_float_of((uint32_t)(b >> 32)))
			       << 32 |
		       gdri_bits_of(gdri_float_of((uint32_t)a) + gdri_float_of((uint32_t)b));
	if (c == GDRI_REDUCE_CODE(double, GDRI_SUM))
		return (uint64_t)__double_as_longlong(__longlong_as_double((long long)a) +
						      __longlong_as_double((long long)b));
	if (c == GDRI_REDUCE_CODE(uint64_t, GDRI_SUM))
		return a + b;
#endif
	return gdri_word_op_any(code, a, b);
}

/* Unit k of all, added up; own: this member's. Loads of several members are under way at once. */
GDR_DEVICE int gdri_words_fold(const struct gdri_coll *c, const struct gdri_words *w,
			       const struct gdri_word_sum *s, uint32_t k, uint64_t own, uint64_t *out)
{
	uint64_t v[GDRI_WORD_ROWS], acc = 0, x;
	const uint64_t *p = w->area + 2 * (size_t)k;
	int first, i, m, spins, all, ret = 0;

	GDRI_NOT_UNROLLED
	for (first = 0; first < w->n && !ret; first += GDRI_WORD_ROWS) {
		GDRI_NOT_UNROLLED
		for (all = spins = 0; !all && spins <= GDRI_SPINS; spins++) {
			all = 1;
			GDRI_UNROLLED
			for (i = 0; i < GDRI_WORD_ROWS; i++)
				if (first + i < w->n && first + i != w->me)
					all &= gdri_word_look(p + (size_t)(uint32_t)(first + i) * w->pitch,
							      w->seq, &v[i]);
		}
		for (i = 0; i < GDRI_WORD_ROWS && gdri_unlikely(!all) && !ret; i++)
			if (first + i < w->n && first + i != w->me)
				ret = gdri_word_wait(c, first + i,
						     p + (size_t)(uint32_t)(first + i) * w->pitch, w->seq);
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++) {
			m = first + i;
			if (m < s->lo || m >= s->hi)
				continue;
			if (gdri_unlikely(!all) && m != w->me)
				gdri_word_look(p + (size_t)(uint32_t)m * w->pitch, w->seq, &v[i]);
			x = m == w->me ? own : v[i];
			acc = m == s->lo ? x : gdri_word_op(s->code, acc, x);
		}
	}
	*out = acc;
	return ret;
}

/* The shortest calls: a thread for each unit. */
GDRI_NOINLINE int gdri_words_sum_one(const struct gdri_coll *c, const struct gdri_word_sum *s)
{
	uint32_t k = gdri_scope_rank(c->scope), step = c->team->word_size / 4;
	uint64_t seq = c->seq + 1, own, v = 0, *area;
	size_t at = (size_t)k * 8;
	struct gdri_words w;
	int i, to, ret = 0;

	w.seq = seq;
	w.n = c->n;
	w.me = c->me;
	w.pitch = step;
	w.area = c->team->words + ((uint32_t)seq & 1) * (uint32_t)c->n * (size_t)step;
	area = w.area + (uint32_t)c->me * (size_t)step + 2 * k;
	if (at < s->len) {
		own = gdri_word_load(s->src + s->src_step * (size_t)(uint32_t)c->me, at, s->len);
		GDRI_NOT_UNROLLED
		for (i = 1; i < w.n; i++) {
			to = w.me + i < w.n ? w.me + i : w.me + i - w.n;
			v = s->src_step ? gdri_word_load(s->src + s->src_step * (size_t)(uint32_t)to, at, s->len)
					: own;
			gdri_word_send(gdri_word_peer(c, area, to), 0, seq, v);
		}
		ret = gdri_words_fold(c, &w, s, k, own, &v);
		if (gdri_likely(!ret))
			gdri_word_store(s->dst, at, s->len, v);
	}
	return gdri_words_end(c, seq, ret);
}

/* Block i of src to member i; the own blocks of all added up into dst, which may lie on a block of src: a thread
 * sends a unit before it writes that. */
GDRI_NOINLINE int gdri_words_sum(const struct gdri_coll *coll, struct gdri_word_sum s)
{
	const struct gdri_coll *c = coll;
	uint32_t rank = gdri_scope_rank(c->scope), step = gdri_scope_size(c->scope), k, n;
	size_t at = 0;
	struct gdri_words w;
	uint64_t v = 0;
	int i, to, ret;

	ret = gdri_words_begin(c, &w);
	while (!ret) {
		n = gdri_word_units(&w, s.len, at);
		GDRI_NOT_UNROLLED
		for (i = 1; i < w.n; i++) {
			uint64_t *p;

			to = w.me + i < w.n ? w.me + i : w.me + i - w.n;
			p = gdri_word_to(c, &w, to);
			GDRI_NOT_UNROLLED
			for (k = rank; k < n; k += step)
				gdri_word_send(p, k, w.seq,
					       gdri_word_load(s.src + s.src_step * (size_t)(uint32_t)to,
							      at + (size_t)k * 8, s.len));
		}
		GDRI_NOT_UNROLLED
		for (k = rank; k < n && !ret; k += step) {
			v = gdri_word_load(s.src + s.src_step * (size_t)(uint32_t)w.me, at + (size_t)k * 8, s.len);
			ret = gdri_words_fold(c, &w, &s, k, v, &v);
			if (!ret)
				gdri_word_store(s.dst, at + (size_t)k * 8, s.len, v);
		}
		at += w.most;
		ret = gdri_words_next(c, &w, at < s.len, ret);
		if (at >= s.len)
			break;
	}
	return ret;
}

/* ---- whole calls ---- */

GDR_DEVICE int gdri_words_move(const struct gdri_coll *c, const struct gdri_word_move *m)
{
	uint32_t fit = c->n > 1 && !m->ragged ? gdri_words_fit(c, m->most) : 0;

	return fit ? gdri_words_exchange_one(c, m, fit - 1) : gdri_words_exchange(c, *m);
}

GDR_DEVICE int gdri_words_add(const struct gdri_coll *c, const struct gdri_word_sum *s)
{
	uint32_t size = gdri_scope_size(c->scope);

	if (s->len <= (size_t)size * 8 && s->len <= c->team->word_size && (uint32_t)(c->seq + 1))
		return gdri_words_sum_one(c, s);
	return gdri_words_sum(c, *s);
}

#endif
