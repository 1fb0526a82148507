/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls by LL (ll.h) of a single step, that is of one epoch, as most are: begun with as few round trips as there
 * must be, since these are what a short call takes. What is to be known of the team stands in its first lines and is
 * asked for at once with the number of the epoch; all is kept in registers: no struct is pointed to. Any other call
 * (1 is returned) goes on in the general way, which finds out again what is to be done.
 *
 * Why epochs.h does not have these calls too: a function with both ways keeps in memory what the way not taken needs,
 * which took 2 to 6 us a call; so do lone threads and several in one function (docs/perf/collectives.md). */
#ifndef GDRI_LL_STEP_H
#define GDRI_LL_STEP_H

#include <gdr/impl/coll/ll/ll.h>

/* A call out of line twice: one thread, which has more under way, and more of them. */
#define GDRI_ALONE_OR_NOT(name, params, ...)                                                       \
	GDRI_NOINLINE int name##_alone params                                                      \
	{                                                                                          \
		(void)scope;                                                                       \
		return name##_as(GDRI_THREAD, __VA_ARGS__);                                        \
	}                                                                                          \
	GDRI_NOINLINE int name##_many params                                                       \
	{                                                                                          \
		return name##_as(scope == GDRI_WARP ? GDRI_WARP : GDRI_BLOCK, __VA_ARGS__);        \
	}                                                                                          \
	GDR_DEVICE int name params                                                                 \
	{                                                                                          \
		return scope == GDRI_THREAD ? name##_alone(scope, __VA_ARGS__) : name##_many(scope, __VA_ARGS__); \
	}

/* The team's number is right and it has members: what does not change. */
GDR_DEVICE int gdri_ll_team(struct gdri_ll *l, int scope, gdr_team_t team, uint32_t op)
{
	const struct gdri_dev *dev = gdri_dev();
	struct gdri_team *t;

	if (gdri_unlikely(!dev || (uint32_t)team >= gdri_k(dev, n_teams)))
		return 0;
	t = &gdri_k(dev, teams)[team];
	l->team = t;
	l->op = op;
	l->n = t->n;
	l->me = t->me;
	l->start = t->start;
	l->stride = t->stride;
	l->scope = scope;
	l->rank = (int)gdri_scope_rank(scope);
	l->size = (int)gdri_scope_size(scope);
	return 1;
}

/* 1: a call of so many blocks of len bytes of each member can be made so. */
GDR_DEVICE int gdri_ll_step_begin(struct gdri_ll *l, int kind, size_t len, int blocks)
{
	struct gdri_team *t = l->team;
	uint32_t most = t->ll_max[kind], err;

	l->pitch = t->ll_size / 4;
	l->area = t->ll;
	gdri_scope_sync(l->scope); /* what the other threads wrote is there for those of this call */
	/* pair with nothing: calls of a team are in the order of the program; both under way at once */
	l->seq = gdri_ld_relaxed_gpu_u64(&t->ll_seq) + 1;
	err = gdri_ld_relaxed_gpu_u32((const uint32_t *)&t->err);
	if (l->n < 2 || !len || len > 4 * (size_t)l->pitch || len * (uint32_t)blocks > most)
		return 0;
	l->area += ((uint32_t)l->seq & 1) * (uint32_t)l->n * (size_t)l->pitch;
	return gdri_likely(!err && (uint32_t)l->seq);
}

/* gdri_ll_met; and the number of the epoch is the last one. The next call may be another thread's, with no sync
 * between: a second one here, since the first thread may not write what others of this call have yet to read. */
GDR_DEVICE int gdri_ll_step_end(const struct gdri_ll *l, int ret)
{
	ret = gdri_ll_met(l, ret);
	if (gdri_unlikely(ret))
		return ret;
	if (!l->rank)
		gdri_st_relaxed_gpu_u64(&l->team->ll_seq, l->seq); /* carries no data: pairs with nothing */
	gdri_scope_sync(l->scope);
	return 0;
}

/* ---- rows: whole elements at multiples of 8, `rows` at a time, which lie `apart` (both constants) ---- */

/* A thread's first element where each warp has `rows` times as many beside each other as it has lanes: the
 * elements of a thread are a constant apart, so that one register holds all their addresses. */
GDR_DEVICE int gdri_ll_first(const struct gdri_ll *l, int rows)
{
	return rows == 1 ? l->rank : (l->rank & ~31) * rows + (l->rank & 31);
}

/* f(.., rows, apart): how so many elements go to the threads. More than one each: a lone thread's, and those of whole
 * warps, several at a time. */
#define GDRI_LL_BY_ROWS(l, elements, f, ...)                                                       \
	((elements) <= (l)->size || ((l)->scope != GDRI_THREAD && ((l)->size & 31)) ? f(__VA_ARGS__, 1, 1) \
	 : (l)->scope == GDRI_THREAD ? f(__VA_ARGS__, GDRI_LL_ALONE_ROWS, 1)                       \
				     : f(__VA_ARGS__, GDRI_LL_ROWS, 32))

/* A thread's next rows of a member, whose first element is at p: 1, they are there. Rows behind the end are the
 * first one once more, not left out: each condition on its own would hold one of seven predicates, and loads wait
 * for those; and what may keep an older value lives in memory. */
GDR_DEVICE int gdri_ll_look_rows(uint64_t seq, const uint64_t *p, int left, int rows, int apart,
				 uint64_t v[GDRI_LL_ALONE_ROWS])
{
	int k, all;

	GDRI_NOT_UNROLLED
	for (int spins = 0; spins <= GDRI_SPINS; spins++) {
		all = 1;
		GDRI_UNROLLED
		for (int i = 0; i < rows; i++) {
			k = i * apart < left ? i * apart : 0;
			all &= gdri_ll_look(p + 2 * k, seq, &v[i]);
		}
		if (gdri_likely(all))
			return 1;
	}
	return 0;
}

/* gdri_ll_look_rows, however long it takes. */
GDR_DEVICE int gdri_ll_take_rows(const struct gdri_ll *l, int from, const uint64_t *p, int left, int rows, int apart,
				 uint64_t v[GDRI_LL_ALONE_ROWS])
{
	int ret;

	while (gdri_unlikely(!gdri_ll_look_rows(l->seq, p, left, rows, apart, v))) {
		ret = gdri_ll_wait(l->team, l->op, from, p, l->seq, left, apart, rows);
		if (ret)
			return ret;
	}
	return 0;
}

/* Each member's block to `mine` there; own (a constant): the own one to dst, last. */
GDR_DEVICE void gdri_ll_out_rows(const struct gdri_ll *l, uint64_t *mine, const struct gdri_ll_call *b, int own,
				 int rows, int apart)
{
	int k, i, to, first = gdri_ll_first(l, rows), size = rows * l->size, n = l->n;
	int left = (int)(b->len / 8) - first;
	uint64_t v[GDRI_LL_ALONE_ROWS], seq = l->seq, *p, *d = (uint64_t *)(void *)b->dst + first;
	const uint64_t *s = (const uint64_t *)(const void *)b->src + first, *from;
	size_t step = b->src_step / 8;

	mine += 2 * first;
	d += b->dst_step / 8 * (uint32_t)l->me;
	GDRI_NOT_UNROLLED
	for (; left > 0; left -= size) {
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			v[k] = !step && k * apart < left ? s[k * apart] : 0;
		GDRI_NOT_UNROLLED
		for (i = 1; i < n + own; i++) {
			to = gdri_ll_after(l, i);
			from = s + step * (uint32_t)to;
			GDRI_UNROLLED
			for (k = 0; k < rows; k++)
				if (step && k * apart < left)
					v[k] = from[k * apart];
			if (own && i == n)
				break;
			p = gdri_ll_peer(l, mine, to);
			GDRI_UNROLLED
			for (k = 0; k < rows; k++)
				if (k * apart < left)
					gdri_ll_send(p, (uint32_t)(k * apart), seq, v[k]);
		}
		GDRI_UNROLLED
		for (k = 0; k < rows; k++) /* all were loaded before the first is stored, which may be any's source */
			if (own && k * apart < left)
				d[k * apart] = v[k]; /* in place: no change */
		s += size;
		d += size;
		mine += 2 * size;
	}
}

/* A member's block of len bytes, from p, to dst. */
GDR_DEVICE int gdri_ll_in_rows(const struct gdri_ll *l, int from, const uint64_t *p, uint8_t *dst, size_t len,
			       int rows, int apart)
{
	int k, ret, first = gdri_ll_first(l, rows), size = rows * l->size, left = (int)(len / 8) - first;
	uint64_t v[GDRI_LL_ALONE_ROWS], *d = (uint64_t *)(void *)dst + first;

	p += 2 * first;
	GDRI_NOT_UNROLLED
	while (left > 0) {
		if (gdri_unlikely(!gdri_ll_look_rows(l->seq, p, left, rows, apart, v))) {
			ret = gdri_ll_wait(l->team, l->op, from, p, l->seq, left, apart, rows);
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

/* ---- what lies oddly, or is no whole elements ---- */

/* As gdri_ll_out_rows; of nothing, too, there is an element. */
GDRI_NOINLINE void gdri_ll_out_odd(const struct gdri_ll *l, uint64_t *mine, const struct gdri_ll_call *b, int own)
{
	int k, i, to, n = b->len ? (int)((b->len + 7) / 8) : 1;
	const uint8_t *src;
	uint8_t *dst = b->dst + b->dst_step * (uint32_t)l->me;
	uint64_t v;

	GDRI_BY_ABI(gdri_ll_out_odd);
	GDRI_NOT_UNROLLED
	for (k = l->rank; k < n; k += l->size)
		for (i = 1; i < l->n + own; i++) {
			to = gdri_ll_after(l, i);
			src = b->src + b->src_step * (uint32_t)to;
			v = gdri_ll_load(src, (size_t)k * 8, b->len);
			if (i < l->n)
				gdri_ll_send(gdri_ll_peer(l, mine, to), (uint32_t)k, l->seq, v);
			else if (dst != src)
				gdri_ll_store(dst, (size_t)k * 8, b->len, v);
		}
}

/* As gdri_ll_in_rows. */
GDRI_NOINLINE int gdri_ll_in_odd(const struct gdri_ll *l, int from, const uint64_t *p, uint8_t *dst, size_t len)
{
	int k, n = len ? (int)((len + 7) / 8) : 1, ret = 0;
	uint64_t v[GDRI_LL_ALONE_ROWS];

	GDRI_BY_ABI(gdri_ll_in_odd);
	GDRI_NOT_UNROLLED
	for (k = l->rank; k < n && !ret; k += l->size) {
		ret = gdri_ll_take_rows(l, from, p + 2 * (size_t)(uint32_t)k, 1, 1, 1, v);
		if (!ret)
			gdri_ll_store(dst, (size_t)k * 8, len, v[0]);
	}
	return ret;
}

/* ---- moving ---- */

/* An element of each of the others to each thread, some of them at a time. */
GDR_DEVICE int gdri_ll_in_members(const struct gdri_ll *l, const struct gdri_ll_call *b)
{
	uint64_t v[GDRI_LL_ROWS];
	int first = 1, i, ret;
	const uint64_t *area = l->area + 2 * l->rank;
	uint8_t *d = b->dst + 8 * l->rank;

	if (l->rank * 8 >= (int)b->len)
		return 0;
	GDRI_NOT_UNROLLED
	while (first < l->n) {
		if (gdri_unlikely(!gdri_ll_look_members(l, area, first, 1, v))) {
			ret = gdri_ll_wait_members(l->team, l->op, area, l->pitch, l->seq, first, 1);
			if (ret)
				return ret;
			continue;
		}
		GDRI_UNROLLED
		for (i = 0; i < GDRI_LL_ROWS; i++)
			if (first + i < l->n)
				*(uint64_t *)(void *)(d + b->dst_step * (uint32_t)gdri_ll_after(l, first + i)) = v[i];
		first += GDRI_LL_ROWS;
	}
	return 0;
}

GDR_DEVICE int gdri_ll_move_rows(const struct gdri_ll *l, const struct gdri_ll_call *b, int rows, int apart)
{
	int i, from, ret = 0;

	gdri_ll_out_rows(l, gdri_ll_mine(l), b, 1, rows, apart);
	if (rows == 1 && l->n > 2 && (int)(b->len / 8) <= l->size)
		return gdri_ll_in_members(l, b);
	GDRI_NOT_UNROLLED
	for (i = 1; i < l->n && gdri_likely(!ret); i++) {
		from = gdri_ll_after(l, l->n - i);
		ret = gdri_ll_in_rows(l, from, gdri_ll_from(l, from), b->dst + b->dst_step * (uint32_t)from, b->len,
				      rows, apart);
	}
	return ret;
}

GDRI_NOINLINE int gdri_ll_move_odd(const struct gdri_ll *l, const struct gdri_ll_call *b)
{
	int i, from, ret = 0;

	GDRI_BY_ABI(gdri_ll_move_odd);
	gdri_ll_out_odd(l, gdri_ll_mine(l), b, 1);
	for (i = 1; i < l->n && !ret; i++) {
		from = gdri_ll_after(l, i);
		ret = gdri_ll_in_odd(l, from, gdri_ll_from(l, from), b->dst + b->dst_step * (uint32_t)from, b->len);
	}
	return ret;
}

GDR_DEVICE int gdri_ll_odd(const void *dst, const void *src, size_t len)
{
	return gdri_unlikely((((uintptr_t)dst | (uintptr_t)src | len) & 7) != 0);
}

GDR_DEVICE int gdri_ll_step_move_as(int scope, gdr_team_t team, uint32_t op, int kind, void *dst, size_t dst_step,
				    const void *src, size_t src_step, size_t len)
{
	const struct gdri_ll_call b = {(uint8_t *)dst, (const uint8_t *)src, dst_step, src_step, len, 0, 0};
	struct gdri_ll l;
	int ret;

	if (!gdri_ll_team(&l, scope, team, op) || !gdri_ll_step_begin(&l, kind, len, l.n))
		return 1;
	if (gdri_ll_odd(dst, src, len)) { /* copies are pointed to, which does not put these in memory */
		const struct gdri_ll lo = l;
		const struct gdri_ll_call bo = b;

		ret = gdri_ll_move_odd(&lo, &bo);
	} else {
		ret = GDRI_LL_BY_ROWS(&l, (int)(len / 8), gdri_ll_move_rows, &l, &b);
	}
	return gdri_ll_step_end(&l, ret);
}

/* len bytes from src + src_step * its number to each member, to dst + dst_step * the own number. */
GDRI_ALONE_OR_NOT(gdri_ll_step_move, (int scope, gdr_team_t team, uint32_t op, int kind, void *dst, size_t dst_step,
				      const void *src, size_t src_step, size_t len),
		  team, op, kind, dst, dst_step, src, src_step, len)

#endif
