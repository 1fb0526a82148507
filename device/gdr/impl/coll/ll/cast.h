/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast by words (words.h) in which the root waits for nobody: a part goes into the next one of GDRI_CAST_DEPTH
 * places of memory of the library at each member, which its own number makes known there. A place is written again
 * when all members have said that they took what was in it (gdri_chan.casts); each says so for every half of the
 * places, and what it said last is looked at only then (docs/memory-model.md, Words).
 *
 * The number of the part is in its words, and the place is the number's rest. So calls of whatever root follow
 * each other, and parts of a call as well. */
#ifndef GDRI_CAST_H
#define GDRI_CAST_H

#include <gdr/impl/coll/ll/quick.h>

/* The numbers in the words have begun anew: as in gdri_words_clean. */
GDRI_NOINLINE int gdri_cast_clean(struct gdri_team *t, int scope, uint32_t op)
{
	struct gdri_coll c = {gdri_dev(), t, scope, op, GDRI_V_TEAM, t->n, t->me, 0, 0, 0};
	size_t k, n = (size_t)GDRI_CAST_DEPTH * (t->slot_size / 8);

	GDRI_BY_ABI(gdri_cast_clean);
	gdri_scope_sync(scope); /* all threads took what was theirs of the part before */
	for (k = gdri_scope_rank(scope); k < n; k += gdri_scope_size(scope))
		gdri_st_pair_sys(t->casts + 2 * k, 0, 0); /* released by the sync */
	return gdri_coll_sync(&c);
}

/* First thread of the root: all others took part `least`. Up to which they have in *known. Only the order of loads,
 * branch and stores is needed, as for words; the member's store in gdri_cast_tell is behind its loads. */
GDRI_NOINLINE int gdri_cast_look(struct gdri_team *t, uint32_t op, uint64_t least, uint64_t *known)
{
	struct gdri_coll c = {gdri_dev(), t, GDRI_THREAD, op, GDRI_V_TEAM, t->n, t->me, 0, 0, 0};
	uint64_t all = ~(uint64_t)0, one;
	const uint64_t *word;
	int i, ret;

	GDRI_BY_ABI(gdri_cast_look);
	GDRI_NOT_UNROLLED
	for (i = 0; i < t->n; i++) {
		if (i == t->me)
			continue;
		word = &t->chan[i].casts;
		one = gdri_ld_relaxed_sys_u64(word); /* pairs with the store in gdri_cast_tell */
		if (one < least) {
			ret = gdri_team_hear(&c, i, word, least);
			if (ret)
				return ret;
			one = least;
		}
		all = one < all ? one : all;
	}
	*known = all;
	return 0;
}

/* All threads of the root, which know the same: what all others have taken is at least `least`. How much more in
 * *known; -GDR_E*. */
GDR_DEVICE int gdri_cast_room(const struct gdri_quick *q, uint64_t least, uint64_t *known)
{
	uint64_t now = least;
	int ret = 0;

	if (!q->rank)
		ret = gdri_cast_look(q->team, q->op, least, &now);
	if (!ret)
		ret = (int)(now - least < GDRI_CAST_DEPTH ? now - least : GDRI_CAST_DEPTH); /* no more are under way */
	ret = gdri_scope_bcast(q->scope, ret);
	if (gdri_unlikely(ret < 0))
		return ret;
	*known = least + (uint32_t)ret;
	return 0;
}

/* The first n threads, behind a sync of the scope: this member is done with all parts up to this one. */
GDR_DEVICE void gdri_cast_tell(const struct gdri_quick *q, uint64_t seq)
{
	int i;

	GDRI_NOT_UNROLLED
	for (i = q->rank; i < q->n; i += q->size)
		if (i != q->me) /* pairs with the loads in gdri_cast_room */
			gdri_st_relaxed_sys_u64(gdri_quick_peer(q, &q->team->chan[q->me].casts, i), seq);
}

/* Whole units at multiples of 8, `rows` at a time, which lie `apart` (constants), to all others and the own place. */
GDR_DEVICE void gdri_cast_out(const struct gdri_quick *q, uint64_t *d, const uint64_t *s, int left, int rows, int apart)
{
	int i, k, n = q->n, first = gdri_quick_first(q, rows), size = rows * q->size;
	uint64_t v[GDRI_ALONE_ROWS], seq = q->seq, *area = q->area + 2 * first, *p;

	s += first;
	d += first;
	GDRI_NOT_UNROLLED
	for (left -= first; left > 0; left -= size) {
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			v[k] = k * apart < left ? s[k * apart] : 0;
		GDRI_NOT_UNROLLED
		for (i = 1; i < n; i++) {
			p = gdri_quick_peer(q, area, gdri_quick_after(q, i));
			GDRI_UNROLLED
			for (k = 0; k < rows; k++)
				if (k * apart < left)
					gdri_word_send(p, (uint32_t)(k * apart), seq, v[k]);
		}
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			if (k * apart < left)
				d[k * apart] = v[k]; /* in place: no change */
		s += size;
		d += size;
		area += 2 * size;
	}
}

GDR_DEVICE int gdri_cast_in(const struct gdri_quick *q, uint64_t *d, int left, int root, int rows, int apart)
{
	int k, ret, first = gdri_quick_first(q, rows), size = rows * q->size;
	const uint64_t *p = q->area + 2 * first;
	uint64_t v[GDRI_ALONE_ROWS];

	d += first;
	left -= first;
	GDRI_NOT_UNROLLED
	while (left > 0) {
		if (gdri_unlikely(!gdri_quick_look(q->seq, p, left, rows, apart, v))) {
			ret = gdri_rows_wait(q->team, q->op, root, p, q->seq, left, apart, rows);
			if (ret)
				return ret;
			continue;
		}
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			if (k * apart < left)
				d[k * apart] = v[k];
		left -= size;
		d += size;
		p += 2 * size;
	}
	return 0;
}

GDR_DEVICE int gdri_cast_rows(const struct gdri_quick *q, uint64_t *d, const uint64_t *s, int left, int root, int rows,
			      int apart)
{
	if (q->me != root)
		return gdri_cast_in(q, d, left, root, rows, apart);
	gdri_cast_out(q, d, s, left, rows, apart);
	return 0;
}

/* len bytes that lie anywhere. */
GDRI_NOINLINE int gdri_cast_odd(const struct gdri_quick *q, uint8_t *dst, const uint8_t *src, size_t len, int root)
{
	int k, i, n = (int)((len + 7) / 8), ret = 0;
	uint64_t v[GDRI_ALONE_ROWS] = {0};

	GDRI_BY_ABI(gdri_cast_odd);
	GDRI_NOT_UNROLLED
	for (k = q->rank; k < n && !ret; k += q->size) {
		if (q->me == root)
			v[0] = gdri_word_load(src, (size_t)k * 8, len);
		else
			ret = gdri_quick_take(q, root, q->area + 2 * (size_t)(uint32_t)k, 1, 1, 1, v);
		for (i = 1; i < q->n && q->me == root; i++)
			gdri_word_send(gdri_quick_peer(q, q->area, gdri_quick_after(q, i)), (uint32_t)k, q->seq, v[0]);
		if (!ret && (q->me != root || dst != src))
			gdri_word_store(dst, (size_t)k * 8, len, v[0]);
	}
	return ret;
}

/* A part. */
GDR_DEVICE int gdri_cast_part(const struct gdri_quick *q, uint8_t *dst, const uint8_t *src, size_t len, int root)
{
	uint64_t *d = (uint64_t *)(void *)dst;
	const uint64_t *s = (const uint64_t *)(const void *)src;
	int units = (int)(len / 8);

	if (gdri_unlikely((((uintptr_t)dst | (uintptr_t)src | len) & 7) != 0)) {
		const struct gdri_quick qo = *q;

		return gdri_cast_odd(&qo, dst, src, len, root);
	}
	return GDRI_QUICK_ROWS(q, units, gdri_cast_rows, q, d, s, units, root);
}

/* Behind the last part, and its number. */
GDR_DEVICE int gdri_cast_end(const struct gdri_quick *q, uint64_t known, int root, int ret)
{
	ret = gdri_quick_met(q, ret);
	if (gdri_unlikely(ret))
		return ret;
	if (!(q->seq % (GDRI_CAST_DEPTH / 2)))
		gdri_cast_tell(q, q->seq);
	if (!q->rank) { /* carry no data: pair with nothing */
		gdri_st_relaxed_gpu_u64(&q->team->cast_seq, q->seq);
		if (q->me == root)
			gdri_st_relaxed_gpu_u64(&q->team->cast_known, known);
	}
	gdri_scope_sync(q->scope); /* as in gdri_words_end */
	return 0;
}

/* First threads: a unit of nothing to all others, but the root, and from them. */
GDR_DEVICE void gdri_cast_greet(const struct gdri_quick *q)
{
	uint64_t *mine = q->area + (uint32_t)q->me * (size_t)q->pitch;
	int i;

	GDRI_NOT_UNROLLED
	for (i = q->rank + 1; i < q->n; i += q->size)
		gdri_word_send(gdri_quick_peer(q, mine, gdri_quick_after(q, i)), 0, q->seq, 0);
}

GDR_DEVICE int gdri_cast_greeted(const struct gdri_quick *q, int root)
{
	uint64_t v[GDRI_ALONE_ROWS];
	int i, from, ret = 0;

	GDRI_NOT_UNROLLED
	for (i = q->rank + 1; i < q->n && !ret; i += q->size) {
		from = gdri_quick_after(q, i);
		if (from != root)
			ret = gdri_quick_take(q, from, q->area + (uint32_t)from * (size_t)q->pitch, 1, 1, 1, v);
	}
	return ret;
}

GDR_DEVICE int gdri_cast_wide_as(int scope, gdr_team_t team, uint8_t *dst, const uint8_t *src, size_t len, int root)
{
	struct gdri_quick q, data;
	int ret;

	if (!gdri_quick_team(&q, scope, team, GDRI_BROADCAST) || root < 0 || root >= q.n ||
	    !gdri_quick_begin(&q, GDRI_K_BROADCAST, len, 1))
		return 1;
	data = q;
	data.area += (uint32_t)root * (size_t)q.pitch;
	if (q.me != root)
		gdri_cast_greet(&q);
	ret = gdri_cast_part(&data, dst, src, len, root);
	if (gdri_likely(!ret))
		ret = gdri_cast_greeted(&q, root);
	return gdri_quick_end(&q, ret);
}

/* A part of words.h of which the root's has all data: longer than a place, and nobody has to say what was taken. 1: not
 * so. */
GDRI_ALONE_OR_NOT(gdri_cast_wide, (int scope, gdr_team_t team, uint8_t *dst, const uint8_t *src, size_t len, int root),
		  team, dst, src, len, root)

/* What fits into a place. any: however little the team's table has go so. 1: not so. */
GDR_DEVICE int gdri_cast_as(int scope, gdr_team_t team, uint8_t *dst, const uint8_t *src, size_t len, int root,
			    int any)
{
	struct gdri_quick q;
	uint32_t most, err;
	uint64_t known;
	int ret = 0; /* of this thread */

	if (!gdri_quick_team(&q, scope, team, GDRI_BROADCAST))
		return 1;
	most = q.team->slot_size;
	gdri_scope_sync(scope); /* what the other threads wrote is there for those of this call */
	/* pair with nothing, as in gdri_quick_begin */
	q.seq = gdri_ld_relaxed_gpu_u64(&q.team->cast_seq) + 1;
	known = gdri_ld_relaxed_gpu_u64(&q.team->cast_known);
	err = gdri_ld_relaxed_gpu_u32((const uint32_t *)&q.team->err);
	if (q.n < 2 || !len || len > most || root < 0 || root >= q.n ||
	    (!any && len > q.team->quick[GDRI_K_BROADCAST]))
		return 1;
	if (gdri_unlikely(err)) /* any: behind gdri_coll_begin, which saw none */
		return any ? (int)err : 1;
	if (gdri_unlikely(!(uint32_t)q.seq)) {
		q.seq++;
		ret = gdri_cast_clean(q.team, scope, GDRI_BROADCAST);
	}
	q.area = q.team->casts + (uint32_t)(q.seq % GDRI_CAST_DEPTH) * (size_t)(most / 4);
	if (gdri_unlikely(q.me == root && known + GDRI_CAST_DEPTH < q.seq) && !ret)
		ret = gdri_cast_room(&q, q.seq - GDRI_CAST_DEPTH, &known);
	if (gdri_likely(!ret))
		ret = gdri_cast_part(&q, dst, src, len, root);
	return gdri_cast_end(&q, known, root, ret);
}

/* From src of the root to dst of all. 1: not so. */
GDRI_ALONE_OR_NOT(gdri_cast, (int scope, gdr_team_t team, uint8_t *dst, const uint8_t *src, size_t len, int root,
			      int any),
		  team, dst, src, len, root, any)

/* gdri_cast for the general way, of any length: part for part. */
GDR_DEVICE int gdri_cast_any(const struct gdri_coll *c, gdr_team_t team, uint8_t *dst, const uint8_t *src, size_t len,
			     int root)
{
	size_t at, part;
	int ret = 0;

	GDRI_NOT_UNROLLED
	for (at = 0; at < len && !ret; at += part) {
		part = gdri_coll_part(c, len - at);
		ret = gdri_cast(c->scope, team, dst + at, src + at, part, root, 1);
	}
	return ret;
}

#endif
