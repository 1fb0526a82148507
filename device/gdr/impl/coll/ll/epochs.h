/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls by LL (ll.h) of one scope that step.h does not have: of several epochs, collects, whose lengths differ, and
 * what the team's table gives to LL behind another algorithm. Each epoch is a step, whose parts are called by the
 * ABI: for them the registers of a caller do not count. */
#ifndef GDRI_LL_EPOCHS_H
#define GDRI_LL_EPOCHS_H

#include <gdr/impl/coll/ll/step_sum.h>

/* Behind gdri_coll_begin, or the epoch before. -GDR_E*: of the meeting that the numbers' beginning anew takes. */
GDR_DEVICE int gdri_ll_epoch(struct gdri_ll *l, struct gdri_team *t, int scope, uint32_t op)
{
	int ret = 0;

	l->team = t;
	l->op = op;
	l->n = t->n;
	l->me = t->me;
	l->start = t->start;
	l->stride = t->stride;
	l->scope = scope;
	l->rank = (int)gdri_scope_rank(scope);
	l->size = (int)gdri_scope_size(scope);
	l->pitch = t->ll_size / 4;
	l->seq = gdri_ld_relaxed_gpu_u64(&t->ll_seq) + 1; /* pairs with nothing, as in gdri_ll_step_begin */
	if (gdri_unlikely(!(uint32_t)l->seq)) {
		l->seq++;
		ret = gdri_ll_clean(t, scope, op, t->ll, (size_t)(uint32_t)t->n * l->pitch, 0);
	}
	l->area = t->ll + ((uint32_t)l->seq & 1) * (uint32_t)l->n * (size_t)l->pitch;
	return ret;
}

/* ---- moving ---- */

/* Whole elements at multiples of 8 by rows, the rest one by one; of nothing, too, there is one. */
GDRI_NOINLINE void gdri_ll_out(const struct gdri_ll *epoch, const struct gdri_ll_call *call)
{
	size_t whole = ((uintptr_t)call->src | call->src_step) & 7 ? 0 : call->len & ~(size_t)7;
	const struct gdri_ll l = *epoch;
	struct gdri_ll_call b = *call;

	GDRI_BY_ABI(gdri_ll_out);
	b.len = whole;
	GDRI_LL_BY_ROWS(&l, (int)(whole / 8), gdri_ll_out_rows, &l, gdri_ll_mine(&l), &b, 0);
	if (!whole || whole < call->len) {
		struct gdri_ll_call rest = *call;

		rest.src += whole;
		rest.len -= whole;
		gdri_ll_out_odd(epoch, gdri_ll_mine(&l) + whole / 4, &rest, 0);
	}
}

GDRI_NOINLINE int gdri_ll_in(const struct gdri_ll *epoch, int from, uint8_t *dst, size_t len)
{
	size_t whole = (uintptr_t)dst & 7 ? 0 : len & ~(size_t)7;
	const struct gdri_ll l = *epoch;
	const uint64_t *p = gdri_ll_from(&l, from);
	int ret;

	GDRI_BY_ABI(gdri_ll_in);
	ret = GDRI_LL_BY_ROWS(&l, (int)(whole / 8), gdri_ll_in_rows, &l, from, p, dst, whole);
	if (!ret && (!whole || whole < len))
		ret = gdri_ll_in_odd(epoch, from, p + whole / 4, dst + whole, len - whole);
	return ret;
}

/* A block of each member to each. */
struct gdri_ll_moves {
	struct gdri_ll_call b;
	size_t longest; /* bytes of a block of any two members */
	int ragged;	/* lengths and places are those of a collect, in gdri_chan */
};

/* Where a member's block goes. */
GDR_DEVICE uint8_t *gdri_ll_moves_to(const struct gdri_ll *l, const struct gdri_ll_moves *m, int from)
{
	return m->b.dst + (m->ragged ? (size_t)gdri_ld_relaxed_gpu_u64(&l->team->chan[from].at)
				     : m->b.dst_step * (size_t)(uint32_t)from);
}

/* Bytes of a block of len that are of the epoch at `at`. */
GDR_DEVICE size_t gdri_ll_part(const struct gdri_ll *l, size_t len, size_t at)
{
	size_t left = len > at ? len - at : 0, most = 4 * (size_t)l->pitch;

	return left < most ? left : most;
}

GDR_DEVICE int gdri_ll_moves_epoch(const struct gdri_ll *l, const struct gdri_ll_moves *m, size_t at)
{
	struct gdri_ll_call b = m->b;
	size_t len = b.len;
	int i, from, ret = 0;

	b.src += at;
	b.len = gdri_ll_part(l, len, at);
	gdri_ll_out(l, &b);
	if (!at)
		gdri_scope_copy(l->scope, gdri_ll_moves_to(l, m, l->me),
				b.src + b.src_step * (size_t)(uint32_t)l->me, len);
	for (i = 1; i < l->n && !ret; i++) {
		from = gdri_ll_after(l, i);
		if (m->ragged)
			len = gdri_ld_relaxed_gpu_u64(&l->team->chan[from].len);
		ret = gdri_ll_in(l, from, gdri_ll_moves_to(l, m, from) + at, gdri_ll_part(l, len, at));
	}
	return ret;
}

GDRI_NOINLINE int gdri_ll_move(const struct gdri_coll *c, const struct gdri_ll_moves *m)
{
	struct gdri_ll l;
	size_t at = 0;
	int ret;

	GDRI_BY_ABI(gdri_ll_move);
	do {
		ret = gdri_ll_epoch(&l, c->team, c->scope, c->op);
		if (!ret)
			ret = gdri_ll_moves_epoch(&l, m, at);
		ret = gdri_ll_step_end(&l, ret);
		at += c->team->ll_size;
	} while (!ret && at < m->longest);
	return ret;
}

/* ---- computing ---- */

/* The end of a call, of which ret is the status so far. */
GDRI_NOINLINE int gdri_ll_over(struct gdri_team *t, int scope, uint32_t op, int ret)
{
	struct gdri_coll c = gdri_coll_of(t, scope, op);

	return gdri_coll_end(&c, ret);
}

/* Block i of src to member i; the own blocks of all added up into dst, which may lie on a block of src. In a call that
 * has begun; members below hi count. src_step 0: one block for all. */
GDRI_NOINLINE int gdri_ll_sum(int scope, struct gdri_team *t, uint32_t op, void *dst, const void *src, size_t len,
			      size_t src_step, uint32_t code, int hi)
{
	struct gdri_ll_call b = {(uint8_t *)dst, (const uint8_t *)src, 0, src_step, 0, code, hi};
	struct gdri_ll l;
	size_t left = len;
	int ret;

	GDRI_BY_ABI(gdri_ll_sum);
	do {
		ret = gdri_ll_epoch(&l, t, scope, op);
		b.len = gdri_ll_part(&l, left, 0);
		if (!ret)
			ret = gdri_ll_sum_odd(&l, &b);
		ret = gdri_ll_step_end(&l, ret);
		b.dst += b.len;
		b.src += b.len;
		left -= b.len;
	} while (!ret && left);
	return gdri_ll_over(t, scope, op, ret);
}

#endif
