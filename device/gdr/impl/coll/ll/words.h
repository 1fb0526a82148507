/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of little data (words_move.h, words_sum.h), whose data says itself that it has come: each 4 bytes
 * travel in a word of 8, with the number of the part that they belong to, into memory of the library at the
 * member. Nobody tells anything, and nothing is fenced: a word comes as a whole. All members map each other's
 * memory.
 *
 * In each part each member sends something to each other one, if only a unit of nothing. So who ends a
 * part has heard of all that they had ended the part before, and two areas in turn are enough
 * (docs/memory-model.md, Words).
 *
 * What is short is short by its instructions: whatever the loops need is read before them, into variables
 * that nothing points to. */
#ifndef GDRI_WORDS_H
#define GDRI_WORDS_H

#include <gdr/impl/coll/blocks.h>

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

/* gdri_words_met of the last part. The next call may be another thread's, with no sync between: a second one here,
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
	gdri_coll_wait_begin(c, &x, from, p);
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

/* Bytes of a block of len that are of the part at `at`. */
GDR_DEVICE size_t gdri_word_part(const struct gdri_words *w, size_t len, size_t at)
{
	size_t left = len > at ? len - at : 0;

	return left < w->most ? left : w->most;
}

/* Of nothing, too, there is a unit. */
GDR_DEVICE uint32_t gdri_word_units(const struct gdri_words *w, size_t len, size_t at)
{
	size_t part = gdri_word_part(w, len, at);

	return part ? (uint32_t)((part + 7) / 8) : 1;
}

/* ---- rows ---- */

/* A thread's whole units that lie at multiples of 8, some at a time: `left` of them from its first one on, where
 * n lie from one to the next. */
GDR_DEVICE void gdri_words_out_rows(uint64_t *p, const uint64_t *s, uint64_t seq, int left, int n)
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
				gdri_word_send(p, (uint32_t)(i * n), seq, v[i]);
		s += GDRI_WORD_ROWS * n;
		p += 2 * GDRI_WORD_ROWS * n;
	}
}

/* Until a thread's next rows are there. */
GDRI_NOINLINE int gdri_words_wait_rows(const struct gdri_coll *c, int from, const uint64_t *p,
				       uint64_t seq, int left, int n)
{
	int i, ret = 0;

	GDRI_BY_ABI(gdri_words_wait_rows);
	for (i = 0; i < GDRI_WORD_ROWS && i * n < left && !ret; i++)
		ret = gdri_word_wait(c, from, p + 2 * (size_t)(uint32_t)(i * n), seq);
	return ret;
}

/* A thread's next rows: 1, they are there. */
GDR_DEVICE int gdri_words_look_rows(const uint64_t *p, uint64_t seq, int left, int n, uint64_t v[GDRI_WORD_ROWS])
{
	int i, spins, all;

	GDRI_NOT_UNROLLED
	for (spins = 0; spins <= GDRI_SPINS; spins++) {
		all = 1;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++) {
			v[i] = 0;
			if (i * n < left)
				all &= gdri_word_look(p + 2 * (size_t)(uint32_t)(i * n), seq, &v[i]);
		}
		if (gdri_likely(all))
			return 1;
	}
	return 0;
}

/* As gdri_words_out_rows. */
GDR_DEVICE int gdri_words_in_rows(const struct gdri_coll *c, int from, uint64_t *d, const uint64_t *p,
				  uint64_t seq, int left, int n)
{
	uint64_t v[GDRI_WORD_ROWS];
	int i, ret;

	GDRI_NOT_UNROLLED
	while (left > 0) {
		if (gdri_unlikely(!gdri_words_look_rows(p, seq, left, n, v))) {
			ret = gdri_words_wait_rows(c, from, p, seq, left, n);
			if (ret)
				return ret;
			continue;
		}
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (i * n < left)
				d[i * n] = v[i];
		left -= GDRI_WORD_ROWS * n;
		d += GDRI_WORD_ROWS * n;
		p += 2 * GDRI_WORD_ROWS * n;
	}
	return 0;
}

/* Where what there is to know stands in registers: until `rows` units at p, each n from the one before, are there, as
 * far as they are `left`. */
GDRI_NOINLINE int gdri_rows_wait(struct gdri_team *t, uint32_t op, int from, const uint64_t *p,
				 uint64_t seq, int left, int n, int rows)
{
	struct gdri_coll c = {gdri_dev(), t, GDRI_THREAD, op, GDRI_V_TEAM, t->n, t->me, 0, 0, 0};
	int i, ret = 0;

	GDRI_BY_ABI(gdri_rows_wait);
	for (i = 0; i < rows && i * n < left && !ret; i++)
		ret = gdri_word_wait(&c, from, p + 2 * (size_t)(uint32_t)(i * n), seq);
	return ret;
}

#endif
