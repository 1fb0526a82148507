/* SPDX-License-Identifier: BSD-3-Clause */
/* Computing by words (words.h) in several parts: reduce, reducescatter, scans. What is one part goes by quick_sum.h. */
#ifndef GDRI_WORDS_SUM_H
#define GDRI_WORDS_SUM_H

#include <gdr/impl/coll/reduce_op.h>
#include <gdr/impl/coll/ll/words.h>

/* ---- computing: each thread has the same units of all members ---- */

struct gdri_word_sum {
	uint8_t *dst;
	const uint8_t *src;
	size_t len, src_step; /* of a block, and from one member's to the next one's */
	uint32_t code;
	int hi; /* members below it are added up, in the order of their numbers; none: 0 */
};

GDRI_NOINLINE uint64_t gdri_word_op_any(uint32_t code, uint64_t a, uint64_t b)
{
	GDRI_BY_ABI(gdri_word_op_any);
	/* behind the end: 0 of what was loaded, which no operation minds */
	gdri_reduce_apply(code, GDRI_THREAD, &a, &a, &b, (size_t)8 >> (code & 15u));
	return a;
}

/* Sums of elements of 4 and 8 bytes make no call. */
GDR_DEVICE int gdri_word_op_known(uint32_t code)
{
#ifdef __CUDACC__
	code = gdri_reduce_fold(code);
	return code == GDRI_REDUCE_CODE(float, GDRI_SUM) || code == GDRI_REDUCE_CODE(double, GDRI_SUM) ||
	       code == GDRI_REDUCE_CODE(uint64_t, GDRI_SUM);
#else
	(void)code;
	return 0;
#endif
}

GDR_DEVICE uint64_t gdri_word_op_here(uint32_t code, uint64_t a, uint64_t b)
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
#endif
	(void)code;
	return a + b;
}

GDR_DEVICE uint64_t gdri_word_op(uint32_t code, uint64_t a, uint64_t b)
{
	return gdri_word_op_known(code) ? gdri_word_op_here(code, a, b) : gdri_word_op_any(code, a, b);
}

/* Others, of n values one after the other: these lie in memory, not in registers across the calls. */
GDRI_NOINLINE uint64_t gdri_word_chain_any(uint32_t code, uint64_t acc, const uint64_t *v, int n)
{
	int i;

	GDRI_BY_ABI(gdri_word_chain_any);
	GDRI_NOT_UNROLLED
	for (i = 0; i < n; i++)
		acc = gdri_word_op_any(code, acc, v[i]);
	return acc;
}

/* a[k] = a[k] op b[k], of n values each. */
GDRI_NOINLINE void gdri_word_each_any(uint32_t code, uint64_t *a, const uint64_t *b, int n)
{
	int k;

	GDRI_BY_ABI(gdri_word_each_any);
	GDRI_NOT_UNROLLED
	for (k = 0; k < n; k++)
		a[k] = gdri_word_op_any(code, a[k], b[k]);
}

/* v of members first, first + 1.., of which those below hi count, added to what those before came to. */
GDR_DEVICE uint64_t gdri_word_chain(const struct gdri_word_sum *s, int first, uint64_t acc,
				    const uint64_t v[GDRI_WORD_ROWS])
{
	int i, n = s->hi - first < GDRI_WORD_ROWS ? s->hi - first : GDRI_WORD_ROWS;

	if (n > 0 && !gdri_word_op_known(s->code)) {
		uint64_t x[GDRI_WORD_ROWS];

		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			x[i] = v[i];
		acc = first ? acc : v[0];
		i = first ? 0 : 1;
		return n > i ? gdri_word_chain_any(s->code, acc, x + i, n - i) : acc;
	}
	GDRI_UNROLLED
	for (i = 0; i < GDRI_WORD_ROWS; i++)
		if (i < n)
			acc = first + i ? gdri_word_op_here(s->code, acc, v[i]) : v[i];
	return acc;
}

/* Unit k of all, added up in the members' order; own: this member's. Loads of several are under way at once. */
GDR_DEVICE int gdri_words_fold(struct gdri_team *t, uint32_t op, const struct gdri_words *w,
			       const struct gdri_word_sum *s, uint32_t k, uint64_t own, uint64_t *out)
{
	uint64_t v[GDRI_WORD_ROWS], acc = 0;
	const uint64_t *p = w->area + 2 * (size_t)k;
	int first = 0, i, spins, all, ret;

	GDRI_NOT_UNROLLED
	while (first < w->n) {
		GDRI_NOT_UNROLLED
		for (all = spins = 0; !all && spins <= GDRI_SPINS; spins++) {
			all = 1;
			GDRI_UNROLLED
			for (i = 0; i < GDRI_WORD_ROWS; i++) {
				v[i] = own;
				if (first + i < w->n && first + i != w->me)
					all &= gdri_word_look(p + (size_t)(uint32_t)(first + i) * w->pitch,
							      w->seq, &v[i]);
			}
		}
		if (gdri_likely(all)) {
			acc = gdri_word_chain(s, first, acc, v);
			first += GDRI_WORD_ROWS;
			continue;
		}
		GDRI_NOT_UNROLLED
		for (i = first; i < w->n && i < first + GDRI_WORD_ROWS; i++) {
			ret = i == w->me ? 0
					 : gdri_rows_wait(t, op, i, p + (size_t)(uint32_t)i * w->pitch, w->seq, 1,
							  1, 1);
			if (ret)
				return ret;
		}
	}
	*out = acc;
	return 0;
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
			ret = gdri_words_fold(c->team, c->op, &w, &s, k, v, &v);
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

#endif
