/* SPDX-License-Identifier: BSD-3-Clause */
/* Short calls that compute (quick.h): reduce, reducescatter, scans. Each thread has the same units of all members, and
 * adds them up in the order of their numbers. */
#ifndef GDRI_QUICK_SUM_H
#define GDRI_QUICK_SUM_H

#include <gdr/impl/coll/ll/quick.h>
#include <gdr/impl/coll/ll/words_sum.h>

/* Units at multiples of 8, `rows` (a constant) at a time. */
GDR_DEVICE void gdri_quick_sum_out(const struct gdri_quick *q, const struct gdri_word_sum *s, int rows, int apart)
{
	int k, i, to, first = gdri_quick_first(q, rows), size = rows * q->size, n = q->n;
	int left = (int)(s->len / 8) - first;
	uint64_t v[GDRI_ALONE_ROWS], seq = q->seq, *p;
	uint64_t *mine = q->area + (uint32_t)q->me * (size_t)q->pitch + 2 * first;
	const uint64_t *src = (const uint64_t *)(const void *)s->src + first, *from;
	size_t step = s->src_step / 8;

	GDRI_NOT_UNROLLED
	for (; left > 0; left -= size) {
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			v[k] = !step && k * apart < left ? src[k * apart] : 0;
		GDRI_NOT_UNROLLED
		for (i = 1; i < n; i++) {
			to = gdri_quick_after(q, i);
			p = gdri_quick_peer(q, mine, to);
			from = src + step * (uint32_t)to;
			GDRI_UNROLLED
			for (k = 0; k < rows; k++)
				if (step && k * apart < left)
					v[k] = from[k * apart];
			GDRI_UNROLLED
			for (k = 0; k < rows; k++)
				if (k * apart < left)
					gdri_word_send(p, (uint32_t)(k * apart), seq, v[k]);
		}
		src += size;
		mine += 2 * size;
	}
}

/* acc = acc op v, `rows` (a constant) units, of which the first `some` count: one choice for all. Across a call they
 * lie in memory, not in registers, and so do the own ones (`mine`). */
GDR_DEVICE void gdri_quick_ops(uint32_t code, uint64_t acc[GDRI_ALONE_ROWS], const uint64_t v[GDRI_ALONE_ROWS],
			       uint64_t mine[GDRI_ALONE_ROWS], int rows, int some)
{
	uint64_t x[3 * GDRI_ALONE_ROWS];
	int k;

#ifdef __CUDACC__
	if (gdri_reduce_fold(code) == GDRI_REDUCE_CODE(float, GDRI_SUM)) {
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			acc[k] = gdri_word_op(GDRI_REDUCE_CODE(float, GDRI_SUM), acc[k], v[k]);
		return;
	}
#endif
	if (gdri_word_op_known(code)) {
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			acc[k] = gdri_word_op_here(code, acc[k], v[k]);
		return;
	}
	GDRI_UNROLLED
	for (k = 0; k < rows; k++) {
		x[k] = acc[k];
		x[rows + k] = v[k];
		x[2 * rows + k] = mine[k];
	}
	gdri_word_each_any(code, x, x + rows, some < rows ? some : rows);
	GDRI_UNROLLED
	for (k = 0; k < rows; k++) {
		acc[k] = x[k];
		mine[k] = x[2 * rows + k];
	}
}

/* A thread's next rows of all members, added up; `area`: the first one's. Else 1 + the member whose rows are late. */
GDR_DEVICE int gdri_quick_add(const struct gdri_quick *q, const struct gdri_word_sum *s, const uint64_t *area,
			      const uint64_t *own, uint64_t acc[GDRI_ALONE_ROWS], int left, int rows, int apart)
{
	uint64_t v[GDRI_ALONE_ROWS], mine[GDRI_ALONE_ROWS], seq = q->seq;
	int k, m;

	GDRI_UNROLLED
	for (k = 0; k < rows; k++) { /* under way with the first member's */
		acc[k] = 0;
		mine[k] = k * apart < left ? own[k * apart] : 0;
	}
	GDRI_NOT_UNROLLED
	for (m = 0; m < q->n; m++) {
		if (m == q->me) {
			GDRI_UNROLLED
			for (k = 0; k < rows; k++)
				v[k] = mine[k];
		} else if (gdri_unlikely(!gdri_quick_look(seq, area + (uint32_t)m * (size_t)q->pitch, left, rows,
							  apart, v))) {
			return 1 + m;
		}
		if (m >= s->hi)
			continue;
		if (m)
			gdri_quick_ops(s->code, acc, v, mine, rows, (left + apart - 1) / apart);
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			acc[k] = m ? acc[k] : v[k];
	}
	return 0;
}

/* dst may lie on a block of src: a thread has sent a unit before it writes that. For rows that are late it waits here,
 * and begins them anew: a call amid the loop over the members would have all that is under way in registers of its
 * own kind. */
GDR_DEVICE int gdri_quick_fold(const struct gdri_quick *q, const struct gdri_word_sum *s, int rows, int apart)
{
	int k, late, ret, first = gdri_quick_first(q, rows), left = (int)(s->len / 8) - first, size = rows * q->size;
	const uint64_t *area = q->area + 2 * first;
	const uint64_t *own = (const uint64_t *)(const void *)(s->src + s->src_step * (uint32_t)q->me) + first;
	uint64_t acc[GDRI_ALONE_ROWS], *d = (uint64_t *)(void *)s->dst + first;

	GDRI_NOT_UNROLLED
	while (left > 0) {
		late = gdri_quick_add(q, s, area, own, acc, left, rows, apart);
		if (gdri_unlikely(late)) {
			ret = gdri_rows_wait(q->team, q->op, late - 1, area + (uint32_t)(late - 1) * (size_t)q->pitch,
					     q->seq, left, apart, rows);
			if (ret)
				return ret;
			continue;
		}
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			if (k * apart < left)
				d[k * apart] = acc[k];
		left -= size;
		own += size;
		d += size;
		area += 2 * size;
	}
	return 0;
}

/* A unit of each of the members, some of which are under way at a time. */
GDR_DEVICE int gdri_quick_fold_members(const struct gdri_quick *q, const struct gdri_word_sum *s)
{
	uint64_t v[GDRI_ALONE_ROWS], acc = 0, *area = q->area + 2 * q->rank, seq = q->seq, v0;
	int n = q->n, other = q->me ? 0 : 1, first, i, m, spins, all, mine, there, ret;

	if (q->rank * 8 >= (int)s->len)
		return 0;
	v0 = *((const uint64_t *)(const void *)(s->src + s->src_step * (uint32_t)q->me) + q->rank);
	GDRI_NOT_UNROLLED
	for (first = 0; first < n; first += GDRI_WORD_ROWS) {
		GDRI_NOT_UNROLLED
		for (spins = 0;; spins++) {
			all = 1;
			GDRI_UNROLLED
			for (i = 0; i < GDRI_WORD_ROWS; i++) {
				mine = first + i == q->me || first + i >= n;
				m = mine ? other : first + i;
				there = gdri_word_look(area + (uint32_t)m * (size_t)q->pitch, seq, &v[i]);
				v[i] = mine ? v0 : v[i];
				all &= mine | there;
			}
			if (gdri_likely(all))
				break;
			if (gdri_likely(spins < GDRI_SPINS))
				continue;
			GDRI_NOT_UNROLLED
			for (i = first; i < n && i < first + GDRI_WORD_ROWS; i++) {
				ret = i == q->me ? 0
						 : gdri_rows_wait(q->team, q->op, i,
								   area + (uint32_t)i * (size_t)q->pitch, seq, 1, 1, 1);
				if (ret)
					return ret;
			}
		}
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (first + i < s->hi)
				acc = first + i ? gdri_word_op(s->code, acc, v[i]) : v[i];
	}
	*((uint64_t *)(void *)s->dst + q->rank) = acc;
	return 0;
}

GDR_DEVICE int gdri_quick_sum_rows(const struct gdri_quick *q, const struct gdri_word_sum *s, int rows, int apart)
{
	gdri_quick_sum_out(q, s, rows, apart);
	return rows == 1 && q->n > 2 && (int)(s->len / 8) <= q->size ? gdri_quick_fold_members(q, s)
								     : gdri_quick_fold(q, s, rows, apart);
}

/* What lies oddly, or is no whole units. */
GDRI_NOINLINE int gdri_quick_sum_odd(const struct gdri_quick *q, const struct gdri_word_sum *s)
{
	int k, m, n = (int)((s->len + 7) / 8), ret = 0;
	uint64_t v[GDRI_ALONE_ROWS] = {0}, acc, *mine = q->area + (uint32_t)q->me * (size_t)q->pitch;

	GDRI_BY_ABI(gdri_quick_sum_odd);
	for (k = q->rank; k < n; k += q->size)
		for (m = 0; m < q->n; m++)
			if (m != q->me)
				gdri_word_send(gdri_quick_peer(q, mine, m), (uint32_t)k, q->seq,
					       gdri_word_load(s->src + s->src_step * (uint32_t)m, (size_t)k * 8,
							      s->len));
	for (k = q->rank; k < n && !ret; k += q->size) {
		for (m = 0, acc = 0; m < q->n && !ret; m++) {
			if (m == q->me)
				v[0] = gdri_word_load(s->src + s->src_step * (uint32_t)m, (size_t)k * 8, s->len);
			else
				ret = gdri_quick_take(q, m, q->area + (uint32_t)m * (size_t)q->pitch + 2 * (size_t)k, 1,
						      1, 1, v);
			if (m < s->hi)
				acc = m ? gdri_word_op_any(s->code, acc, v[0]) : v[0];
		}
		if (!ret)
			gdri_word_store(s->dst, (size_t)k * 8, s->len, acc);
	}
	return ret;
}

/* Members whose vectors count: all, those below this one, and this one with them. */
enum gdri_quick_whose { GDRI_ALL, GDRI_BELOW, GDRI_UP_TO };

GDR_DEVICE int gdri_quick_sum_as(int scope, gdr_team_t team, uint32_t op, int kind, void *dst, const void *src,
				 size_t src_step, size_t len, uint32_t code, int whose)
{
	struct gdri_word_sum s = {(uint8_t *)dst, (const uint8_t *)src, len, src_step, code, 0};
	struct gdri_quick q;
	int ret;

	if ((code & 15u) > 3 || !gdri_quick_team(&q, scope, team, op) ||
	    !gdri_quick_begin(&q, kind, len, src_step ? q.n - 1 : 1))
		return 1;
	s.hi = whose == GDRI_ALL ? q.n : whose == GDRI_BELOW ? q.me : q.me + 1;
	if (gdri_unlikely((((uintptr_t)dst | (uintptr_t)src | len) & 7) != 0)) {
		const struct gdri_quick qo = q;
		const struct gdri_word_sum so = s;

		ret = gdri_quick_sum_odd(&qo, &so);
	} else {
		ret = GDRI_QUICK_ROWS(&q, (int)(len / 8), gdri_quick_sum_rows, &q, &s);
	}
	return gdri_quick_end(&q, ret);
}

/* Blocks of len bytes; src_step: of src for each member, or all of the same. */
GDRI_ALONE_OR_NOT(gdri_quick_sum, (int scope, gdr_team_t team, uint32_t op, int kind, void *dst, const void *src,
				   size_t src_step, size_t len, uint32_t code, int whose),
		  team, op, kind, dst, src, src_step, len, code, whose)

#endif
