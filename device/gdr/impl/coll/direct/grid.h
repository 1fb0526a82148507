/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives straight through memory that all members map, by the one block, warp or thread that calls, or by
 * the many blocks of a kernel of the library. Each block has a
 * slice of the work and meets the blocks of its number of the other members only: blocks of a PE do
 * not wait for each other, so a GPU, or the host device, may run them in turns. First all blocks of a number
 * meet: the members are in the call. Then they read from and write to each other's objects, and meet
 * again: what they wrote is there, what they read from may be reused.
 *
 * All threads of all blocks call with the same arguments, and with as many blocks on each member. */
#ifndef GDRI_GRID_H
#define GDRI_GRID_H

#include <gdr/impl/coll/direct/cta_barrier.h>
#include <gdr/impl/coll/reduce_op.h>
#include <gdr/impl/request/request.h>
#include <gdr/impl/path/strided.h>

/* What of a request (request.h) they need. */
struct gdri_grid_job {
	uint32_t what, size;
	int32_t root;
	uint32_t code;
	void *dst;
	const void *src;
	uint64_t n;
	int64_t dst_step, src_step;
};

struct gdri_grid {
	struct gdri_coll c;
	uint32_t block, blocks;
	uint64_t *words; /* where this block's meetings are told of; own number among them: the latest */
	uint64_t epoch;	 /* the latest; only those threads know it that tell and hear */
};

/* Of a call that has begun. */
GDR_DEVICE void gdri_grid_begin(struct gdri_grid *g, const struct gdri_coll *c, uint32_t block,
				uint32_t blocks)
{
	g->c = *c;
	g->block = block;
	g->blocks = blocks;
	g->words = gdri_cta_words(c->team, block);
	/* of this PE and block alone; written behind the next sync */
	g->epoch = (int)gdri_scope_rank(c->scope) < c->n ? gdri_ld_relaxed_gpu_u64(&g->words[c->me]) : 0;
}

GDR_DEVICE uint8_t *gdri_grid_at(const struct gdri_grid *g, const void *ptr, int member)
{
	const struct gdri_team *t = g->c.team;

	return member == t->me ? (uint8_t *)(uintptr_t)ptr
			       : gdri_chan_mapped(&g->c, ptr, gdri_team_pe(t, member));
}

/* One of the first n threads, with a member or more to tell and to hear. 1: it takes longer. */
GDRI_NOINLINE int gdri_grid_greet(const struct gdri_grid *g)
{
	gdri_cta_tell(&g->c, g->words, g->epoch);
	return gdri_cta_hear(&g->c, g->words, g->epoch);
}

/* The blocks of this number of all members. */
GDR_DEVICE int gdri_grid_barrier(struct gdri_grid *g)
{
	int late = 0;

	g->epoch++;
	gdri_scope_sync(g->c.scope); /* what the block stored: before the release of who tells */
	if ((int)gdri_scope_rank(g->c.scope) < g->c.n)
		late = gdri_grid_greet(g);
	return gdri_cta_end(&g->c, g->words, g->epoch, late);
}

GDR_DEVICE void gdri_grid_copy(const struct gdri_grid *g, uint8_t *dst, const uint8_t *src, size_t len)
{
	gdri_coll_copy(&g->c, dst, src, len);
}

/* ---- moving ---- */

/* The slice of a block of len bytes at dst of each member, from src + step * member. */
GDR_DEVICE void gdri_grid_spread(const struct gdri_grid *g, uint8_t *dst, const uint8_t *src,
				 size_t step, size_t len)
{
	size_t at, part = gdri_slice(g->block, g->blocks, len, &at);
	int to;

	for (int i = 1; i <= g->c.team->n; i++) { /* the own one last */
		to = i < g->c.team->n ? gdri_coll_after(&g->c, i) : g->c.team->me;
		gdri_grid_copy(g, gdri_grid_at(g, dst, to) + at, src + step * (size_t)to + at, part);
	}
}

GDR_DEVICE void gdri_grid_strided(const struct gdri_grid *g, const struct gdri_grid_job *q)
{
	const struct gdri_team *t = g->c.team;
	int64_t ds = q->dst_step * (int64_t)q->size, ss = q->src_step * (int64_t)q->size;
	size_t each = (q->n + g->blocks - 1) / g->blocks, first = each * g->block;
	size_t count = first >= q->n ? 0 : q->n - first < each ? q->n - first : each;
	int to;

	for (int i = 1; i <= t->n; i++) {
		to = i < t->n ? gdri_coll_after(&g->c, i) : t->me;
		gdri_strided_copy(g->c.scope,
				  gdri_grid_at(g, q->dst, to) +
					  ((int64_t)t->me * (int64_t)q->n + (int64_t)first) * ds,
				  (const uint8_t *)q->src +
					  ((int64_t)to * (int64_t)q->n + (int64_t)first) * ss,
				  ds, ss, q->size, count);
	}
}

/* ---- computing ---- */

#ifdef __CUDACC__
#define GDRI_GRID_ROWS 4 /* accesses of a thread in flight */
#define GDRI_GRID_ALONE 6 /* of one that is alone: a round trip for each so many; eight take 132 registers */
#else
#define GDRI_GRID_ROWS 64
#endif

struct gdri_grid_sum {
	uint32_t code;
	size_t elem;
	int lo, hi;  /* members whose source counts */
	int to_all;  /* the result goes to dst of all members, */
	int but;     /* except this member; -1: no exception */
};

/* One access of w bytes: 16, or an element. */
GDR_DEVICE void gdri_grid_move(uint8_t *d, const uint8_t *s, size_t w)
{
	switch (w) {
#ifdef __CUDACC__
	case 16:
		*(uint4 *)d = *(const uint4 *)s;
		break;
#else
	case 16:
		memcpy(d, s, 16);
		break;
#endif
	case 8:
		*(uint64_t *)d = *(const uint64_t *)s;
		break;
	case 4:
		*(uint32_t *)d = *(const uint32_t *)s;
		break;
	case 2:
		*(uint16_t *)d = *(const uint16_t *)s;
		break;
	default:
		*d = *s;
		break;
	}
}

/* Rows k * step of w bytes each, of which there are `rows`, at most `most` (a constant). */
GDR_DEVICE void gdri_grid_some(uint8_t *d, size_t dstep, const uint8_t *s, size_t sstep, size_t w, size_t rows,
			       size_t most)
{
	GDRI_UNROLLED
	for (size_t k = 0; k < most; k++)
		if (k < rows)
			gdri_grid_move(d + k * dstep, s + k * sstep, w);
}

GDR_DEVICE void gdri_grid_rows(uint8_t *d, size_t dstep, const uint8_t *s, size_t sstep, size_t w,
			       size_t rows)
{
	gdri_grid_some(d, dstep, s, sstep, w, rows, GDRI_GRID_ROWS);
}

/* What a thread has under way of all members' src, added up in their order. */
GDR_DEVICE void gdri_grid_added(const struct gdri_grid *g, const struct gdri_grid_sum *s, const uint8_t *src, size_t w,
				size_t apart, size_t rows, uint64_t acc[GDRI_GRID_ROWS * 2])
{
	uint64_t x[GDRI_GRID_ROWS * 2];

	gdri_grid_rows((uint8_t *)acc, w, gdri_grid_at(g, src, s->lo), apart, w, rows);
	for (int i = s->lo + 1; i < s->hi; i++) {
		gdri_grid_rows((uint8_t *)x, w, gdri_grid_at(g, src, i), apart, w, rows);
		gdri_reduce_apply(s->code, GDRI_THREAD, acc, acc, x, rows * w / s->elem);
	}
}

/* len bytes at dst and src, in accesses of w, which divides len. Each thread has one place in all members' vectors,
 * and reads all before it writes any: dst may be src. The order is that of the members. */
GDR_DEVICE void gdri_grid_fold_any(const struct gdri_grid *g, const struct gdri_grid_sum *s,
				   uint8_t *dst, const uint8_t *src, size_t len, size_t w)
{
	uint32_t rank = gdri_scope_rank(g->c.scope), apart = gdri_scope_size(g->c.scope) * (uint32_t)w;
	uint64_t acc[GDRI_GRID_ROWS * 2];
	size_t at, rows;
	int i, n = g->c.team->n;

	for (at = rank * w; at < len; at += GDRI_GRID_ROWS * (size_t)apart) {
		rows = (len - at + apart - 1) / apart;
		rows = rows < GDRI_GRID_ROWS ? rows : GDRI_GRID_ROWS;
		gdri_grid_added(g, s, src + at, w, apart, rows, acc);
		for (i = 1; i < n && s->to_all; i++)
			if (gdri_coll_after(&g->c, i) != s->but)
				gdri_grid_rows(gdri_grid_at(g, dst, gdri_coll_after(&g->c, i)) + at,
					       apart, (const uint8_t *)acc, w, w, rows);
		gdri_grid_rows(dst + at, apart, (const uint8_t *)acc, w, w, rows);
	}
}

/* By the ABI, so that what it adds up in memory is not on the kernel's frame. */
GDRI_NOINLINE void gdri_grid_fold_16(const struct gdri_grid *g, const struct gdri_grid_sum *s, uint8_t *dst,
				     const uint8_t *src, size_t len)
{
	GDRI_BY_ABI(gdri_grid_fold_16);
	gdri_grid_fold_any(g, s, dst, src, len, 16);
}

GDRI_NOINLINE void gdri_grid_fold(const struct gdri_grid *g, const struct gdri_grid_sum *s, uint8_t *dst,
				  const uint8_t *src, size_t len, size_t w)
{
	GDRI_BY_ABI(gdri_grid_fold);
	gdri_grid_fold_any(g, s, dst, src, len, w);
}

#ifdef __CUDACC__
/* gdri_grid_fold in accesses of 16 bytes, `most` (a constant) at a time, with an operation that the compiler knows:
 * all that is under way is in registers, but for rows behind the end, which are computed and not stored. */
GDR_DEVICE void gdri_grid_fold_as(const struct gdri_grid *g, const struct gdri_grid_sum *s, uint8_t *dst,
				  const uint8_t *src, size_t len, uint32_t code, size_t most)
{
	size_t rank = gdri_scope_rank(g->c.scope), apart = gdri_scope_size(g->c.scope) * (size_t)16;
	size_t at, rows, k, elems = (size_t)16 >> (code & 15u);
	uint4 acc[GDRI_GRID_ALONE], x[GDRI_GRID_ALONE];
	int i, n = g->c.team->n;

	for (at = rank * 16; at < len; at += most * apart) {
		rows = (len - at + apart - 1) / apart;
		GDRI_UNROLLED
		for (k = 0; k < most; k++)
			acc[k] = x[k] = make_uint4(0, 0, 0, 0);
		gdri_grid_some((uint8_t *)acc, 16, gdri_grid_at(g, src, s->lo) + at, apart, 16, rows, most);
		for (i = s->lo + 1; i < s->hi; i++) {
			gdri_grid_some((uint8_t *)x, 16, gdri_grid_at(g, src, i) + at, apart, 16, rows, most);
			GDRI_UNROLLED
			for (k = 0; k < most; k++)
				gdri_reduce_apply_as(code, GDRI_THREAD, &acc[k], &acc[k], &x[k], elems);
		}
		for (i = 1; i < n && s->to_all; i++)
			if (gdri_coll_after(&g->c, i) != s->but)
				gdri_grid_some(gdri_grid_at(g, dst, gdri_coll_after(&g->c, i)) + at, apart,
					       (const uint8_t *)acc, 16, 16, rows, most);
		gdri_grid_some(dst + at, apart, (const uint8_t *)acc, 16, 16, rows, most);
	}
}

#define GDRI_GRID_FOLD(name, code)                                                                 \
	GDRI_NOINLINE void gdri_grid_fold_##name(const struct gdri_grid *g,                        \
						 const struct gdri_grid_sum *s, uint8_t *dst,      \
						 const uint8_t *src, size_t len)                   \
	{                                                                                          \
		if (g->c.scope == GDRI_THREAD)                                                     \
			gdri_grid_fold_as(g, s, dst, src, len, code, GDRI_GRID_ALONE);             \
		else                                                                               \
			gdri_grid_fold_as(g, s, dst, src, len, code, GDRI_GRID_ROWS);              \
	}
GDRI_GRID_FOLD(float, GDRI_REDUCE_CODE(float, GDRI_SUM))
GDRI_GRID_FOLD(half, GDRI_CODE_half(GDRI_SUM))
GDRI_GRID_FOLD(bfloat16, GDRI_CODE_bfloat16(GDRI_SUM))

/* Sums of these are most of what there is. */
GDR_DEVICE void gdri_grid_fold_wide(const struct gdri_grid *g, const struct gdri_grid_sum *s,
				    uint8_t *dst, const uint8_t *src, size_t len)
{
	if (s->code == GDRI_REDUCE_CODE(float, GDRI_SUM))
		gdri_grid_fold_float(g, s, dst, src, len);
	else if (s->code == GDRI_CODE_half(GDRI_SUM))
		gdri_grid_fold_half(g, s, dst, src, len);
	else if (s->code == GDRI_CODE_bfloat16(GDRI_SUM))
		gdri_grid_fold_bfloat16(g, s, dst, src, len);
	else
		gdri_grid_fold_16(g, s, dst, src, len);
}
#else
GDR_DEVICE void gdri_grid_fold_wide(const struct gdri_grid *g, const struct gdri_grid_sum *s,
				    uint8_t *dst, const uint8_t *src, size_t len)
{
	gdri_grid_fold_16(g, s, dst, src, len);
}
#endif

/* In accesses of 16 bytes as far as that goes. */
GDR_DEVICE void gdri_grid_reduce(const struct gdri_grid *g, const struct gdri_grid_sum *s, uint8_t *dst,
				 const uint8_t *src, size_t len)
{
	size_t wide = ((uint64_t)(uintptr_t)dst | (uint64_t)(uintptr_t)src) & 15 ? 0 : len & ~(size_t)15;

	gdri_grid_fold_wide(g, s, dst, src, wide);
	gdri_grid_fold(g, s, dst + wide, src + wide, len - wide, s->elem);
}

#define GDRI_GRID_PULLS 4u /* blocks that do not fill the root's link */

/* Few blocks: each member takes all of it from the root. Else each a piece, which it gives to the others too. */
GDR_DEVICE void gdri_grid_broadcast(const struct gdri_grid *g, const struct gdri_grid_job *q)
{
	/* a sum of one member's, of elements as wide as the objects' places allow */
	struct gdri_grid_sum s = {
		GDRI_REDUCE_CODE(float, GDRI_SUM), 1, q->root, q->root + 1, 1, q->root};
	size_t slice, len = gdri_slice(g->block, g->blocks, q->n * q->size, &slice), at, part, each;
	uint8_t *dst = (uint8_t *)q->dst + slice;
	const uint8_t *src = (const uint8_t *)q->src + slice;
	int me = g->c.me, n = g->c.n;

	if (g->blocks <= GDRI_GRID_PULLS || me == q->root || n == 2) {
		gdri_grid_copy(g, dst, gdri_grid_at(g, src, q->root), len);
		return;
	}
	while (s.elem < 8 && !(((uintptr_t)dst | (uintptr_t)src | len) & (2 * s.elem - 1)))
		s.elem *= 2;
	each = (len / (size_t)(n - 1) + 16) / 16 * 16;
	at = each * (size_t)(me < q->root ? me : me - 1);
	part = at >= len ? 0 : len - at < each ? len - at : each;
	gdri_grid_reduce(g, &s, dst + at, src + at, part);
}

GDR_DEVICE void gdri_grid_sums(const struct gdri_grid *g, const struct gdri_grid_job *q)
{
	const struct gdri_team *t = g->c.team;
	struct gdri_grid_sum s = {q->code, q->size, 0, t->n, q->what == GDRI_RQ_REDUCE, -1};
	size_t len = q->n * q->size, first = 0, at;
	const uint8_t *src = (const uint8_t *)q->src;
	uint8_t *dst = (uint8_t *)q->dst;

	if (s.to_all) { /* a piece of the vector is this member's */
		size_t each = (len / (size_t)t->n + 128) / 128 * 128;

		first = each * (size_t)t->me;
		len = first >= len ? 0 : len - first < each ? len - first : each;
		dst += first;
		src += first;
	} else if (q->what == GDRI_RQ_REDUCESCATTER) {
		src += len * (size_t)t->me;
	} else {
		s.hi = t->me + (q->what == GDRI_RQ_INSCAN);
	}
	len = gdri_slice(g->block, g->blocks, len, &at);
	if (s.hi > s.lo) {
		gdri_grid_reduce(g, &s, dst + at, src + at, len);
		return;
	}
	for (first = gdri_scope_rank(g->c.scope); first < len; first += gdri_scope_size(g->c.scope))
		dst[at + first] = 0;
}

/* ---- */

GDR_DEVICE void gdri_grid_work(const struct gdri_grid *g, const struct gdri_grid_job *q)
{
	size_t len = q->n * q->size;
	uint8_t *dst = (uint8_t *)q->dst;
	const uint8_t *src = (const uint8_t *)q->src;

	switch (q->what) {
	case GDRI_RQ_BROADCAST:
		gdri_grid_broadcast(g, q);
		break;
	case GDRI_RQ_FCOLLECT:
		gdri_grid_spread(g, dst + len * (size_t)g->c.team->me, src, 0, len);
		break;
	case GDRI_RQ_ALLTOALL:
		gdri_grid_spread(g, dst + len * (size_t)g->c.team->me, src, len, len);
		break;
	case GDRI_RQ_ALLTOALLS:
		gdri_grid_strided(g, q);
		break;
	default:
		gdri_grid_sums(g, q);
		break;
	}
}

/* A call that has begun. */
GDRI_NOINLINE int gdri_grid_call(struct gdri_grid *g, const struct gdri_grid_job *q)
{
	int ret = gdri_grid_barrier(g);

	if (!ret) {
		gdri_grid_work(g, q);
		ret = gdri_grid_barrier(g);
	}
	return gdri_unlikely(ret) ? gdri_coll_fail(&g->c, ret) : 0;
}

/* gdri_grid_call by the one scope that calls. */
GDR_DEVICE int gdri_grid_alone(const struct gdri_coll *c, const struct gdri_grid_job *q)
{
	struct gdri_grid g;

	gdri_grid_begin(&g, c, 0, 1);
	return gdri_grid_call(&g, q);
}

/* n elements of `size` bytes. */
GDR_DEVICE int gdri_grid_do(const struct gdri_coll *c, uint32_t what, void *dst, const void *src,
			    size_t n, size_t size, int root, uint32_t code)
{
	struct gdri_grid_job q;

	q.what = what;
	q.root = root;
	q.code = code;
	q.size = (uint32_t)size;
	q.dst = dst;
	q.src = src;
	q.n = n;
	return gdri_grid_alone(c, &q);
}

GDR_DEVICE struct gdri_grid_job gdri_grid_job_of(const struct gdri_request *q)
{
	struct gdri_grid_job job = {q->what, q->size, q->coll.root, q->coll.code, q->dst, q->src, q->n,
				    q->coll.dst_step, q->coll.src_step};

	return job;
}

/* ---- in place ---- */

/* Others read where this PE's results go: scans and reducescatters in place. */
GDR_DEVICE int gdri_grid_between(const struct gdri_request *q, int members)
{
	uint64_t d = (uint64_t)(uintptr_t)q->dst, s = (uint64_t)(uintptr_t)q->src, len = q->n * q->size;

	if (q->what == GDRI_RQ_REDUCESCATTER)
		return d + len > s && d < s + len * (uint32_t)members;
	return q->what >= GDRI_RQ_INSCAN && d == s;
}

/* Such a call that has begun: each round has a meeting between its loads and its stores, behind the last of which
 * nobody reads any more. The accesses are alike on all members, and so the rounds. */
GDRI_NOINLINE int gdri_grid_in_place(struct gdri_grid *g, const struct gdri_grid_job *q)
{
	const struct gdri_team *t = g->c.team;
	int scatter = q->what == GDRI_RQ_REDUCESCATTER, ret;
	const struct gdri_grid_sum s = {
		q->code, q->size, 0, scatter ? t->n : t->me + (q->what == GDRI_RQ_INSCAN), 0, -1};
	size_t len = q->n * q->size, w = ((uintptr_t)q->dst | (uintptr_t)q->src | len) & 15 ? q->size : 16;
	size_t apart = gdri_scope_size(g->c.scope) * w, first, begin, at, rows;
	const uint8_t *src = (const uint8_t *)q->src + (scatter ? len * (uint32_t)t->me : 0);
	uint64_t acc[GDRI_GRID_ROWS * 2] = {0};

	len = gdri_slice(g->block, g->blocks, len, &first);
	ret = gdri_grid_barrier(g);
	for (begin = 0; begin < len && !ret; begin += GDRI_GRID_ROWS * apart) {
		at = begin + gdri_scope_rank(g->c.scope) * w;
		rows = at < len ? (len - at + apart - 1) / apart : 0;
		rows = rows < GDRI_GRID_ROWS ? rows : GDRI_GRID_ROWS;
		at += first;
		if (s.hi > s.lo)
			gdri_grid_added(g, &s, src + at, w, apart, rows, acc);
		ret = gdri_grid_barrier(g);
		if (!ret)
			gdri_grid_rows((uint8_t *)q->dst + at, apart, (const uint8_t *)acc, w, w, rows);
	}
	return gdri_unlikely(ret) ? gdri_coll_fail(&g->c, ret) : 0;
}

#endif
