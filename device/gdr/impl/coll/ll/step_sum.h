/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of a single step (step.h) that compute: reduce, reducescatter, scans. Each thread has the elements of one
 * place of all members, and adds them up in the order of their numbers. */
#ifndef GDRI_LL_STEP_SUM_H
#define GDRI_LL_STEP_SUM_H

#include <gdr/impl/coll/ll/fold.h>
#include <gdr/impl/coll/ll/step.h>

/* acc = acc op v, `rows` (a constant) elements, of which the first `some` count: one choice for all. Across a call
 * they lie in memory, not in registers, and so do the own ones (`mine`). */
GDR_DEVICE void gdri_ll_ops(uint32_t code, uint64_t acc[GDRI_LL_ALONE_ROWS], const uint64_t v[GDRI_LL_ALONE_ROWS],
			    uint64_t mine[GDRI_LL_ALONE_ROWS], int rows, int some)
{
	uint64_t x[3 * GDRI_LL_ALONE_ROWS];

#ifdef __CUDACC__
	if (gdri_reduce_fold(code) == GDRI_REDUCE_CODE(float, GDRI_SUM)) {
		GDRI_UNROLLED
		for (int k = 0; k < rows; k++)
			acc[k] = gdri_ll_op_here(GDRI_REDUCE_CODE(float, GDRI_SUM), acc[k], v[k]);
		return;
	}
#endif
	if (gdri_ll_op_known(code)) {
		GDRI_UNROLLED
		for (int k = 0; k < rows; k++)
			acc[k] = gdri_ll_op_here(code, acc[k], v[k]);
		return;
	}
	GDRI_UNROLLED
	for (int k = 0; k < rows; k++) {
		x[k] = acc[k];
		x[rows + k] = v[k];
		x[2 * rows + k] = mine[k];
	}
	gdri_ll_each_any(code, x, x + rows, some < rows ? some : rows);
	GDRI_UNROLLED
	for (int k = 0; k < rows; k++) {
		acc[k] = x[k];
		mine[k] = x[2 * rows + k];
	}
}

/* A thread's next rows of all members, added up; `area`: of the first row. Else 1 + the member whose rows are late. */
GDR_DEVICE int gdri_ll_add_rows(const struct gdri_ll *l, const struct gdri_ll_call *b, const uint64_t *area,
				const uint64_t *own, uint64_t acc[GDRI_LL_ALONE_ROWS], int left, int rows, int apart)
{
	uint64_t v[GDRI_LL_ALONE_ROWS], mine[GDRI_LL_ALONE_ROWS], seq = l->seq;

	GDRI_UNROLLED
	for (int k = 0; k < rows; k++) { /* under way with the first member's */
		acc[k] = 0;
		mine[k] = k * apart < left ? own[k * apart] : 0;
	}
	GDRI_NOT_UNROLLED
	for (int m = 0; m < l->n; m++) {
		if (m == l->me) {
			GDRI_UNROLLED
			for (int k = 0; k < rows; k++)
				v[k] = mine[k];
		} else if (gdri_unlikely(!gdri_ll_look_rows(seq, area + (uint32_t)m * (size_t)l->pitch, left, rows,
							    apart, v))) {
			return 1 + m;
		}
		if (m >= b->hi)
			continue;
		if (m)
			gdri_ll_ops(b->code, acc, v, mine, rows, (left + apart - 1) / apart);
		GDRI_UNROLLED
		for (int k = 0; k < rows; k++)
			acc[k] = m ? acc[k] : v[k];
	}
	return 0;
}

/* dst may lie on a block of src: a thread has sent an element before it writes that. For rows that are late it waits
 * here, and begins them anew: a call amid the loop over the members would have all that is under way in registers of
 * its own kind. */
GDR_DEVICE int gdri_ll_fold_rows(const struct gdri_ll *l, const struct gdri_ll_call *b, int rows, int apart)
{
	int k, late, ret, first = gdri_ll_first(l, rows), left = (int)(b->len / 8) - first, size = rows * l->size;
	const uint64_t *area = l->area + 2 * first;
	const uint64_t *own = (const uint64_t *)(const void *)(b->src + b->src_step * (uint32_t)l->me) + first;
	uint64_t acc[GDRI_LL_ALONE_ROWS], *d = (uint64_t *)(void *)b->dst + first;

	GDRI_NOT_UNROLLED
	while (left > 0) {
		late = gdri_ll_add_rows(l, b, area, own, acc, left, rows, apart);
		if (gdri_unlikely(late)) {
			ret = gdri_ll_wait(l->team, l->op, late - 1, area + (uint32_t)(late - 1) * (size_t)l->pitch,
					   l->seq, left, apart, rows);
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

/* An element of each of the members to each thread. */
GDR_DEVICE int gdri_ll_fold_members(const struct gdri_ll *l, const struct gdri_ll_call *b)
{
	const uint64_t *own = (const uint64_t *)(const void *)(b->src + b->src_step * (uint32_t)l->me) + l->rank;
	uint64_t acc = 0; /* gcc -Og does not see that a fold without an error writes it */
	int ret;

	if (l->rank * 8 >= (int)b->len)
		return 0;
	ret = gdri_ll_fold(l, b, l->area + 2 * l->rank, *own, &acc);
	if (gdri_likely(!ret))
		*((uint64_t *)(void *)b->dst + l->rank) = acc;
	return ret;
}

GDR_DEVICE int gdri_ll_sum_rows(const struct gdri_ll *l, const struct gdri_ll_call *b, int rows, int apart)
{
	gdri_ll_out_rows(l, gdri_ll_mine(l), b, 0, rows, apart);
	return rows == 1 && l->n > 2 && (int)(b->len / 8) <= l->size ? gdri_ll_fold_members(l, b)
								     : gdri_ll_fold_rows(l, b, rows, apart);
}

/* What lies oddly, or is no whole elements. */
GDRI_NOINLINE int gdri_ll_sum_odd(const struct gdri_ll *l, const struct gdri_ll_call *b)
{
	const uint8_t *own = b->src + b->src_step * (uint32_t)l->me;
	int k, n = (int)((b->len + 7) / 8), ret = 0;
	uint64_t acc;

	GDRI_BY_ABI(gdri_ll_sum_odd);
	gdri_ll_out_odd(l, gdri_ll_mine(l), b, 0);
	for (k = l->rank; k < n && !ret; k += l->size) {
		ret = gdri_ll_fold(l, b, l->area + 2 * (size_t)(uint32_t)k, gdri_ll_load(own, (size_t)k * 8, b->len),
				   &acc);
		if (!ret)
			gdri_ll_store(b->dst, (size_t)k * 8, b->len, acc);
	}
	return ret;
}

/* Members whose vectors count: all, those below this one, and this one with them. */
enum gdri_ll_whose { GDRI_ALL, GDRI_BELOW, GDRI_UP_TO };

GDR_DEVICE int gdri_ll_step_sum_as(int scope, gdr_team_t team, uint32_t op, int kind, void *dst, const void *src,
				   size_t src_step, size_t len, uint32_t code, int whose)
{
	struct gdri_ll_call b = {(uint8_t *)dst, (const uint8_t *)src, 0, src_step, len, code, 0};
	struct gdri_ll l;
	int ret;

	if ((code & 15u) > 3 || !gdri_ll_team(&l, scope, team, op) ||
	    !gdri_ll_step_begin(&l, kind, len, src_step ? l.n - 1 : 1))
		return 1;
	b.hi = whose == GDRI_ALL ? l.n : whose == GDRI_BELOW ? l.me : l.me + 1;
	if (gdri_ll_odd(dst, src, len)) {
		const struct gdri_ll lo = l;
		const struct gdri_ll_call bo = b;

		ret = gdri_ll_sum_odd(&lo, &bo);
	} else {
		ret = GDRI_LL_BY_ROWS(&l, (int)(len / 8), gdri_ll_sum_rows, &l, &b);
	}
	return gdri_ll_step_end(&l, ret);
}

/* Blocks of len bytes; src_step: from a member's block of src to the next member's; 0: one block for all. */
GDRI_ALONE_OR_NOT(gdri_ll_step_sum, (int scope, gdr_team_t team, uint32_t op, int kind, void *dst, const void *src,
				     size_t src_step, size_t len, uint32_t code, int whose),
		  team, op, kind, dst, src, src_step, len, code, whose)

#endif
