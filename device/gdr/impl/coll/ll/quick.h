/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls by words (words.h) that are one part, as most are: begun with as few round trips as there must be, since these
 * are what a short call takes. What is to be known of the team stands in its first lines and is asked for at once with
 * the number of the part; all is kept in registers: no struct is pointed to. Any other call (1 is returned) goes
 * on in the general way, which finds out again what is to be done. */
#ifndef GDRI_QUICK_H
#define GDRI_QUICK_H

#include <gdr/impl/coll/reduce_op.h>
#include <gdr/impl/coll/ll/words.h>

#define GDRI_ALONE_ROWS 8 /* units that one thread has under way at a time */

/* A call out of line twice: one thread, which has more under way, and more of them. In one function what the other's
 * way needs would be in memory, and what both begin with, too. */
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

struct gdri_quick {
	struct gdri_team *team;
	uint64_t *area; /* of the part; member i's begins at i * pitch */
	uint64_t seq;	/* its number */
	uint32_t pitch, op;
	int n, me, start, stride;
	int scope, rank, size;
};

/* The team's number is right and it has members: what does not change. */
GDR_DEVICE int gdri_quick_team(struct gdri_quick *q, int scope, gdr_team_t team, uint32_t op)
{
	const struct gdri_dev *dev = gdri_dev();
	struct gdri_team *t;

	if (gdri_unlikely(!dev || (uint32_t)team >= gdri_k(dev, n_teams)))
		return 0;
	t = &gdri_k(dev, teams)[team];
	q->team = t;
	q->op = op;
	q->n = t->n;
	q->me = t->me;
	q->start = t->start;
	q->stride = t->stride;
	q->scope = scope;
	q->rank = (int)gdri_scope_rank(scope);
	q->size = (int)gdri_scope_size(scope);
	return 1;
}

/* 1: a call of so many blocks of len bytes of each member can be made so. */
GDR_DEVICE int gdri_quick_begin(struct gdri_quick *q, int kind, size_t len, int blocks)
{
	struct gdri_team *t = q->team;
	uint32_t most = t->quick[kind], err;

	q->pitch = t->word_size / 4;
	q->area = t->words;
	gdri_scope_sync(q->scope); /* what the other threads wrote is there for those of this call */
	/* pair with nothing: calls of a team are in the order of the program; both under way at once */
	q->seq = gdri_ld_relaxed_gpu_u64(&t->word_seq) + 1;
	err = gdri_ld_relaxed_gpu_u32((const uint32_t *)&t->err);
	if (q->n < 2 || !len || len > 4 * (size_t)q->pitch || len * (uint32_t)blocks > most)
		return 0;
	q->area += ((uint32_t)q->seq & 1) * (uint32_t)q->n * (size_t)q->pitch;
	return gdri_likely(!err && (uint32_t)q->seq);
}

/* Where p is at the member. */
GDR_DEVICE uint64_t *gdri_quick_peer(const struct gdri_quick *q, uint64_t *p, int to)
{
	int pe = q->stride ? q->start + to * q->stride : gdri_team_pe(q->team, to);

#ifdef __CUDACC__
	return (uint64_t *)gdri_direct_at(p, pe);
#else
	return (uint64_t *)(void *)gdri_mapped(gdri_dev(), p, pe);
#endif
}

/* Member i behind the own one. */
GDR_DEVICE int gdri_quick_after(const struct gdri_quick *q, int i)
{
	return q->me + i < q->n ? q->me + i : q->me + i - q->n;
}

/* A thread's next rows of a member, whose first unit is at p: 1, they are there. Rows behind the end are the first one
 * once more, not left out: each condition on its own would hold one of seven predicates, and loads wait for those; and
 * what may keep an older value lives in memory. */
GDR_DEVICE int gdri_quick_look(uint64_t seq, const uint64_t *p, int left, int rows, int apart,
			       uint64_t v[GDRI_ALONE_ROWS])
{
	int i, k, spins, all;

	GDRI_NOT_UNROLLED
	for (spins = 0; spins <= GDRI_SPINS; spins++) {
		all = 1;
		GDRI_UNROLLED
		for (i = 0; i < rows; i++) {
			k = i * apart < left ? i * apart : 0;
			all &= gdri_word_look(p + 2 * k, seq, &v[i]);
		}
		if (gdri_likely(all))
			return 1;
	}
	return 0;
}

/* gdri_quick_look, however long it takes. */
GDR_DEVICE int gdri_quick_take(const struct gdri_quick *q, int from, const uint64_t *p, int left,
			       int rows, int apart, uint64_t v[GDRI_ALONE_ROWS])
{
	int ret;

	while (gdri_unlikely(!gdri_quick_look(q->seq, p, left, rows, apart, v))) {
		ret = gdri_rows_wait(q->team, q->op, from, p, q->seq, left, apart, rows);
		if (ret)
			return ret;
	}
	return 0;
}

/* All threads have what was theirs: the status of any of them. */
GDR_DEVICE int gdri_quick_met(const struct gdri_quick *q, int ret)
{
	struct gdri_team *t = q->team;
	uint32_t none = 0;

	if (gdri_likely(!gdri_scope_any(q->scope, ret != 0)))
		return 0;
	if (ret) /* carries no data: pairs with nothing */
		gdri_cas_u32((uint32_t *)&t->err, &none, (uint32_t)ret);
	gdri_scope_sync(q->scope);
	return (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&t->err);
}

/* gdri_quick_met; and the number of the part is the last one. */
GDR_DEVICE int gdri_quick_end(const struct gdri_quick *q, int ret)
{
	ret = gdri_quick_met(q, ret);
	if (gdri_unlikely(ret))
		return ret;
	if (!q->rank)
		gdri_st_relaxed_gpu_u64(&q->team->word_seq, q->seq); /* carries no data: pairs with nothing */
	gdri_scope_sync(q->scope); /* as in gdri_words_end */
	return 0;
}

/* ---- moving ---- */

struct gdri_quick_blocks {
	uint8_t *dst;
	const uint8_t *src;
	size_t dst_step, src_step; /* from the block of a member to that of the next one */
	size_t len;		   /* of a block */
};

/* A thread's first unit where each warp has `rows` times as many beside each other as it has lanes: a thread's own are
 * a constant apart, so that one register holds all their addresses. */
GDR_DEVICE int gdri_quick_first(const struct gdri_quick *q, int rows)
{
	return rows == 1 ? q->rank : (q->rank & ~31) * rows + (q->rank & 31);
}

/* f(.., rows, apart): how so many units go to the threads. More than one each: a lone thread's, and those of whole
 * warps, several at a time. */
#define GDRI_QUICK_ROWS(q, units, f, ...)                                                          \
	((units) <= (q)->size || ((q)->scope != GDRI_THREAD && ((q)->size & 31)) ? f(__VA_ARGS__, 1, 1) \
	 : (q)->scope == GDRI_THREAD ? f(__VA_ARGS__, GDRI_ALONE_ROWS, 1)                          \
				     : f(__VA_ARGS__, GDRI_WORD_ROWS, 32))

/* Units at multiples of 8, `rows` at a time, which lie `apart` (constants). */
GDR_DEVICE void gdri_quick_out(const struct gdri_quick *q, const struct gdri_quick_blocks *b, int rows, int apart)
{
	int k, i, to, first = gdri_quick_first(q, rows), size = rows * q->size, n = q->n;
	int left = (int)(b->len / 8) - first;
	uint64_t v[GDRI_ALONE_ROWS], seq = q->seq, *p, *d = (uint64_t *)(void *)b->dst + first;
	uint64_t *mine = q->area + (uint32_t)q->me * (size_t)q->pitch + 2 * first;
	const uint64_t *s = (const uint64_t *)(const void *)b->src + first, *from;
	size_t step = b->src_step / 8;

	d += b->dst_step / 8 * (uint32_t)q->me;
	GDRI_NOT_UNROLLED
	for (; left > 0; left -= size) {
		GDRI_UNROLLED
		for (k = 0; k < rows; k++)
			v[k] = !step && k * apart < left ? s[k * apart] : 0;
		GDRI_NOT_UNROLLED
		for (i = 1; i <= n; i++) { /* the own one last */
			to = gdri_quick_after(q, i);
			from = s + step * (uint32_t)to;
			GDRI_UNROLLED
			for (k = 0; k < rows; k++)
				if (step && k * apart < left)
					v[k] = from[k * apart];
			if (i == n)
				break;
			p = gdri_quick_peer(q, mine, to);
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
		mine += 2 * size;
	}
}

GDR_DEVICE int gdri_quick_in(const struct gdri_quick *q, const struct gdri_quick_blocks *b, int rows, int apart)
{
	uint64_t v[GDRI_ALONE_ROWS], *d;
	int i, k, from, left, ret, first = gdri_quick_first(q, rows), size = rows * q->size;
	const uint64_t *p;

	GDRI_NOT_UNROLLED
	for (i = 1; i < q->n; i++) {
		from = gdri_quick_after(q, q->n - i);
		p = q->area + (uint32_t)from * (size_t)q->pitch + 2 * first;
		d = (uint64_t *)(void *)(b->dst + b->dst_step * (uint32_t)from) + first;
		GDRI_NOT_UNROLLED
		for (left = (int)(b->len / 8) - first; left > 0; left -= size) {
			ret = gdri_quick_take(q, from, p, left, rows, apart, v);
			if (gdri_unlikely(ret))
				return ret;
			GDRI_UNROLLED
			for (k = 0; k < rows; k++)
				if (k * apart < left)
					d[k * apart] = v[k];
			d += size;
			p += 2 * size;
		}
	}
	return 0;
}

/* A unit of each of the others, some of them at a time. */
GDR_DEVICE int gdri_quick_in_members(const struct gdri_quick *q, const struct gdri_quick_blocks *b)
{
	uint64_t v[GDRI_ALONE_ROWS], *area = q->area + 2 * q->rank, seq = q->seq;
	int n = q->n, first, i, m, spins, all, ret;
	uint8_t *d = b->dst + 8 * q->rank;

	if (q->rank * 8 >= (int)b->len)
		return 0;
	GDRI_NOT_UNROLLED
	for (first = 1; first < n; first += GDRI_WORD_ROWS) {
		GDRI_NOT_UNROLLED
		for (spins = 0;; spins++) {
			all = 1;
			GDRI_UNROLLED
			for (i = 0; i < GDRI_WORD_ROWS; i++) { /* behind the end as in gdri_quick_take */
				m = gdri_quick_after(q, first + i < n ? first + i : first);
				all &= gdri_word_look(area + (uint32_t)m * (size_t)q->pitch, seq, &v[i]);
			}
			if (gdri_likely(all))
				break;
			if (gdri_likely(spins < GDRI_SPINS))
				continue;
			GDRI_NOT_UNROLLED
			for (i = first; i < n && i < first + GDRI_WORD_ROWS; i++) {
				m = gdri_quick_after(q, i);
				ret = gdri_rows_wait(q->team, q->op, m, area + (uint32_t)m * (size_t)q->pitch,
						     seq, 1, 1, 1);
				if (ret)
					return ret;
			}
		}
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (first + i < n)
				*(uint64_t *)(void *)(d + b->dst_step * (uint32_t)gdri_quick_after(q, first + i)) =
					v[i];
	}
	return 0;
}

/* What lies oddly, or is no whole units. */
GDRI_NOINLINE int gdri_quick_odd(const struct gdri_quick *q, const struct gdri_quick_blocks *b)
{
	int k, i, to, n = (int)((b->len + 7) / 8), ret = 0;
	uint64_t v[GDRI_ALONE_ROWS], *mine = q->area + (uint32_t)q->me * (size_t)q->pitch;

	GDRI_BY_ABI(gdri_quick_odd);
	GDRI_NOT_UNROLLED
	for (k = q->rank; k < n; k += q->size)
		for (i = 1; i <= q->n; i++) { /* the own one last */
			to = gdri_quick_after(q, i);
			v[0] = gdri_word_load(b->src + b->src_step * (uint32_t)to, (size_t)k * 8, b->len);
			if (i < q->n)
				gdri_word_send(gdri_quick_peer(q, mine, to), (uint32_t)k, q->seq, v[0]);
			else if (b->dst + b->dst_step * (uint32_t)to != b->src + b->src_step * (uint32_t)to)
				gdri_word_store(b->dst + b->dst_step * (uint32_t)to, (size_t)k * 8, b->len, v[0]);
		}
	for (i = 1; i < q->n && !ret; i++) {
		to = gdri_quick_after(q, i);
		for (k = q->rank; k < n && !ret; k += q->size) {
			ret = gdri_quick_take(q, to, q->area + (uint32_t)to * (size_t)q->pitch + 2 * (size_t)k, 1, 1,
					      1, v);
			if (!ret)
				gdri_word_store(b->dst + b->dst_step * (uint32_t)to, (size_t)k * 8, b->len, v[0]);
		}
	}
	return ret;
}

GDR_DEVICE int gdri_quick_move_rows(const struct gdri_quick *q, const struct gdri_quick_blocks *b, int rows, int apart)
{
	gdri_quick_out(q, b, rows, apart);
	return rows == 1 && q->n > 2 && (int)(b->len / 8) <= q->size ? gdri_quick_in_members(q, b)
								     : gdri_quick_in(q, b, rows, apart);
}

GDR_DEVICE int gdri_quick_move_as(int scope, gdr_team_t team, uint32_t op, int kind, void *dst, size_t dst_step,
				  const void *src, size_t src_step, size_t len)
{
	const struct gdri_quick_blocks b = {(uint8_t *)dst, (const uint8_t *)src, dst_step, src_step, len};
	struct gdri_quick q;
	int ret;

	if (!gdri_quick_team(&q, scope, team, op) || !gdri_quick_begin(&q, kind, len, q.n))
		return 1;
	if (gdri_unlikely((((uintptr_t)dst | (uintptr_t)src | len) & 7) != 0)) {
		const struct gdri_quick qo = q;
		const struct gdri_quick_blocks bo = b;

		ret = gdri_quick_odd(&qo, &bo);
	} else {
		ret = GDRI_QUICK_ROWS(&q, (int)(len / 8), gdri_quick_move_rows, &q, &b);
	}
	return gdri_quick_end(&q, ret);
}

/* len bytes from src + src_step * its number to each member, to dst + dst_step * the own number. */
GDRI_ALONE_OR_NOT(gdri_quick_move, (int scope, gdr_team_t team, uint32_t op, int kind, void *dst, size_t dst_step,
				    const void *src, size_t src_step, size_t len),
		  team, op, kind, dst, dst_step, src, src_step, len)

#endif
