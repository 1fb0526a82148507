/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.h once more for GPUs and for what is mostly asked: all PEs are mapped, objects lie at multiples of 16 bytes,
 * and sums are of one of a few types. A kernel that begins with cold caches takes as long as it has loads that wait
 * for each other, and code: what is to be known of the team stands in the request, thus in constant memory; nothing
 * on the way is called out of line but the sum, and nothing points to a struct. */
#ifndef GDRI_NEAR_H
#define GDRI_NEAR_H

#include <gdr/impl/coll/direct/grid.h>
#include <gdr/impl/coll/direct/near_any.h>

/* 0: there is none of this type and operation. */
GDR_DEVICE int gdri_near_sums(uint32_t code)
{
	code = gdri_reduce_fold(code);
	return code == GDRI_REDUCE_CODE(float, GDRI_SUM) || code == GDRI_REDUCE_CODE(double, GDRI_SUM) ||
	       code == GDRI_REDUCE_CODE(uint32_t, GDRI_SUM) || code == GDRI_CODE_half(GDRI_SUM) ||
	       code == GDRI_CODE_bfloat16(GDRI_SUM);
}

/* Decides alike on all members. */
GDR_DEVICE int gdri_near_fits(const struct gdri_request *q)
{
	size_t len = q->n * q->size;

	if (((uintptr_t)q->dst | (uintptr_t)q->src | len) & 15 || len >> 34)
		return 0;
	return q->what == GDRI_RQ_REDUCE || q->what == GDRI_RQ_REDUCESCATTER
		       ? gdri_near_sums(q->coll.code)
		       : q->what == GDRI_RQ_BROADCAST || q->what == GDRI_RQ_FCOLLECT || q->what == GDRI_RQ_ALLTOALL;
}

/* Rows of 16 bytes of each of so many pieces, but for the last ones: whole lines. */
GDRI_INLINE uint32_t gdri_near_each(uint32_t rows, uint32_t pieces)
{
	return ((rows + pieces - 1) / pieces + 7) & ~7u;
}

#ifdef __CUDACC__

#define GDRI_NEAR_ROWS 4 /* accesses of a thread in flight */

/* A thread's rows of 16 bytes: every `apart`th, those below `end`. */
struct gdri_near {
	uint32_t first, apart, end;
};

GDR_DEVICE void gdri_near_load(struct gdri_near g, const uint8_t *src, uint32_t at, uint4 v[GDRI_NEAR_ROWS])
{
	uint32_t k;

	GDRI_UNROLLED
	for (k = 0; k < GDRI_NEAR_ROWS; k++)
		v[k] = at + k * g.apart < g.end ? ((const uint4 *)src)[at + k * g.apart]
						: make_uint4(0, 0, 0, 0);
}

GDR_DEVICE void gdri_near_store(struct gdri_near g, uint8_t *dst, uint32_t at, const uint4 v[GDRI_NEAR_ROWS])
{
	uint32_t k;

	GDRI_UNROLLED
	for (k = 0; k < GDRI_NEAR_ROWS; k++)
		if (at + k * g.apart < g.end)
			((uint4 *)dst)[at + k * g.apart] = v[k];
}

/* ---- moving ---- */

GDR_DEVICE void gdri_near_copy(struct gdri_near g, uint8_t *dst, const uint8_t *src)
{
	uint4 v[GDRI_NEAR_ROWS];
	uint32_t at;

	GDRI_NOT_UNROLLED
	for (at = g.first; at < g.end && dst != src; at += GDRI_NEAR_ROWS * g.apart) {
		gdri_near_load(g, src, at, v);
		gdri_near_store(g, dst, at, v);
	}
}

/* Of len bytes a block: to each from src + step * its number; to oneself last. */
GDR_DEVICE void gdri_near_spread(const struct gdri_request *q, struct gdri_near g, size_t len, size_t step)
{
	const uint8_t *dst = (const uint8_t *)q->dst + len * (uint32_t)q->coll.member;
	int i, to;

	GDRI_NOT_UNROLLED
	for (i = 1; i <= q->coll.members; i++) {
		to = q->coll.member + i < q->coll.members ? q->coll.member + i : q->coll.member + i - q->coll.members;
		gdri_near_copy(g, gdri_near_at(q, dst, to), (const uint8_t *)q->src + step * (uint32_t)to);
	}
}

/* A piece of rows for each of `pieces`: that of number i; begin: its first row, relative to which the others are. */
GDR_DEVICE uint32_t gdri_near_piece(struct gdri_near *g, uint32_t pieces, uint32_t i)
{
	uint32_t each = gdri_near_each(g->end, pieces), begin = each * i;

	g->end = begin >= g->end ? 0 : g->end - begin < each ? g->end - begin : each;
	return begin;
}

/* Each takes all of it from the root, or, where blocks are many and members more than two, a piece, which it gives to
 * the others too. */
GDR_DEVICE void gdri_near_broadcast(const struct gdri_request *q, struct gdri_near g)
{
	uint8_t *dst = (uint8_t *)q->dst;
	const uint8_t *src = gdri_near_at(q, q->src, q->coll.root);
	int me = q->coll.member, n = q->coll.members, root = q->coll.root, i, to;
	uint4 v[GDRI_NEAR_ROWS];
	uint32_t at;

	if (n == 2 || me == root || gridDim.x <= GDRI_GRID_PULLS) {
		gdri_near_copy(g, dst, src);
		return;
	}
	at = gdri_near_piece(&g, (uint32_t)n - 1, (uint32_t)(me < root ? me : me - 1));
	dst += (size_t)at * 16;
	src += (size_t)at * 16;
	GDRI_NOT_UNROLLED
	for (at = g.first; at < g.end; at += GDRI_NEAR_ROWS * g.apart) {
		gdri_near_load(g, src, at, v);
		GDRI_NOT_UNROLLED
		for (i = 1; i <= n; i++) {
			to = me + i < n ? me + i : me + i - n;
			if (to != root)
				gdri_near_store(g, gdri_near_at(q, dst, to), at, v);
		}
	}
}

/* ---- computing ---- */

/* The vectors of all, in the members' order, to all, or to oneself alone. */
GDR_DEVICE void gdri_near_add(const struct gdri_request *q, struct gdri_near g, uint8_t *dst, const uint8_t *src,
			      int to_all, uint32_t code)
{
	size_t elems = (size_t)16 >> (code & 15u);
	uint4 acc[GDRI_NEAR_ROWS], x[GDRI_NEAR_ROWS];
	int i, to, n = q->coll.members;
	uint32_t at, k;

	GDRI_NOT_UNROLLED
	for (at = g.first; at < g.end; at += GDRI_NEAR_ROWS * g.apart) {
		gdri_near_load(g, gdri_near_at(q, src, 0), at, acc);
		GDRI_NOT_UNROLLED
		for (i = 1; i < n; i++) {
			gdri_near_load(g, gdri_near_at(q, src, i), at, x);
			GDRI_UNROLLED
			for (k = 0; k < GDRI_NEAR_ROWS; k++)
				gdri_reduce_apply_as(code, GDRI_THREAD, &acc[k], &acc[k], &x[k], elems);
		}
		GDRI_NOT_UNROLLED
		for (i = to_all && !q->coll.keep ? 1 : n; i <= n; i++) {
			to = q->coll.member + i < n ? q->coll.member + i : q->coll.member + i - n;
			gdri_near_store(g, gdri_near_at(q, dst, to), at, acc);
		}
	}
}

#define GDRI_NEAR_SUM(name, code)                                                                  \
	GDRI_NOINLINE void gdri_near_##name(const struct gdri_request *q, struct gdri_near g,      \
					    uint8_t *dst, const uint8_t *src, int to_all)          \
	{                                                                                          \
		gdri_near_add(q, g, dst, src, to_all, code);                                       \
	}
GDRI_NEAR_SUM(float, GDRI_REDUCE_CODE(float, GDRI_SUM))
GDRI_NEAR_SUM(double, GDRI_REDUCE_CODE(double, GDRI_SUM))
GDRI_NEAR_SUM(uint32, GDRI_REDUCE_CODE(uint32_t, GDRI_SUM))
GDRI_NEAR_SUM(half, GDRI_CODE_half(GDRI_SUM))
GDRI_NEAR_SUM(bfloat16, GDRI_CODE_bfloat16(GDRI_SUM))

GDR_DEVICE void gdri_near_reduce(const struct gdri_request *q, struct gdri_near g, size_t len)
{
	uint32_t code = gdri_reduce_fold(q->coll.code);
	int to_all = q->what == GDRI_RQ_REDUCE;
	/* a piece of the vector is this member's; or the block of its number */
	size_t at = to_all ? (size_t)gdri_near_piece(&g, (uint32_t)q->coll.members, (uint32_t)q->coll.member) * 16 : 0;
	uint8_t *dst = (uint8_t *)q->dst + at;
	const uint8_t *src = (const uint8_t *)q->src + (to_all ? at : len * (uint32_t)q->coll.member);

	if (code == GDRI_REDUCE_CODE(float, GDRI_SUM))
		gdri_near_float(q, g, dst, src, to_all);
	else if (code == GDRI_CODE_bfloat16(GDRI_SUM))
		gdri_near_bfloat16(q, g, dst, src, to_all);
	else if (code == GDRI_CODE_half(GDRI_SUM))
		gdri_near_half(q, g, dst, src, to_all);
	else if (code == GDRI_REDUCE_CODE(double, GDRI_SUM))
		gdri_near_double(q, g, dst, src, to_all);
	else
		gdri_near_uint32(q, g, dst, src, to_all);
}

/* ---- */

GDR_DEVICE void gdri_near_work(const struct gdri_request *q)
{
	size_t len = q->n * q->size;
	struct gdri_near g = {blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, (uint32_t)(len / 16)};

	if (q->what == GDRI_RQ_BROADCAST)
		gdri_near_broadcast(q, g);
	else if (q->what == GDRI_RQ_FCOLLECT)
		gdri_near_spread(q, g, len, 0);
	else if (q->what == GDRI_RQ_ALLTOALL)
		gdri_near_spread(q, g, len, len);
	else
		gdri_near_reduce(q, g, len);
}

/* What gdri_grid_between says: scans and reducescatters whose results lie where others read. Each round has a meeting
 * between its loads and its stores; behind the last one nobody reads any more. */
GDRI_NOINLINE int gdri_near_in_place(const struct gdri_request *q, uint32_t op)
{
	uint64_t *words = q->coll.words + (size_t)blockIdx.x * GDRI_FLAT_MAX, epoch = 0;
	int err = 0, ret;

	gdri_near_look(q);
	if ((int)threadIdx.x < q->coll.members) /* pairs with nothing, as in gdri_near_call */
		epoch = gdri_ld_relaxed_gpu_u64(&words[q->coll.member]);
	if (!threadIdx.x)
		err = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&gdri_constants_here.teams[q->coll.team].err);
	ret = gdri_near_meet(q, words, ++epoch, err, op);
	if (!ret)
		ret = gdri_any_sum(q, q->n * q->size, &epoch);
	if (!ret && !threadIdx.x) /* read by the next call */
		gdri_st_relaxed_gpu_u64(&words[q->coll.member], epoch);
	return ret;
}

/* All threads of one of the blocks, with a request that fits here or in near_any.h. */
GDR_DEVICE int gdri_near_call(const struct gdri_request *q, uint32_t op)
{
	uint64_t *words = q->coll.words + (size_t)blockIdx.x * GDRI_FLAT_MAX, epoch = 0;
	int err = 0, ret;

	gdri_near_look(q);
	if ((int)threadIdx.x < q->coll.members) /* pairs with nothing: calls of a team are behind each other */
		epoch = gdri_ld_relaxed_gpu_u64(&words[q->coll.member]);
	/* Another block of this call may set it amid the loads: the thread that returns it decides for the block. */
	if (!threadIdx.x)
		err = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&gdri_constants_here.teams[q->coll.team].err);
	ret = gdri_near_meet(q, words, epoch + 1, err, op);
	if (gdri_unlikely(ret))
		return ret;
	if (gdri_near_fits(q))
		gdri_near_work(q);
	else
		gdri_any_work(q);
	ret = gdri_near_meet(q, words, epoch + 2, 0, op);
	if (!ret && !threadIdx.x) /* read by the next call */
		gdri_st_relaxed_gpu_u64(&words[q->coll.member], epoch + 2);
	return ret;
}

#endif

#endif
