/* SPDX-License-Identifier: BSD-3-Clause */
/* What LL sums do to elements (ll.h), and an element of all members added up in the order of their numbers. */
#ifndef GDRI_LL_FOLD_H
#define GDRI_LL_FOLD_H

#include <gdr/impl/coll/ll/ll.h>
#include <gdr/impl/coll/reduce_op.h>

GDRI_NOINLINE uint64_t gdri_ll_op_any(uint32_t code, uint64_t a, uint64_t b)
{
	GDRI_BY_ABI(gdri_ll_op_any);
	/* behind the end: 0 of what was loaded, which no operation minds */
	gdri_reduce_apply(code, GDRI_THREAD, &a, &a, &b, (size_t)8 >> (code & 15u));
	return a;
}

/* Sums of elements of 4 and 8 bytes make no call. */
GDR_DEVICE int gdri_ll_op_known(uint32_t code)
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

GDR_DEVICE uint64_t gdri_ll_op_here(uint32_t code, uint64_t a, uint64_t b)
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

/* Others, of n values one after the other: these lie in memory, not in registers across the calls. */
GDRI_NOINLINE uint64_t gdri_ll_chain_any(uint32_t code, uint64_t acc, const uint64_t *v, int n)
{
	GDRI_BY_ABI(gdri_ll_chain_any);
	GDRI_NOT_UNROLLED
	for (int i = 0; i < n; i++)
		acc = gdri_ll_op_any(code, acc, v[i]);
	return acc;
}

/* a[k] = a[k] op b[k], of n values each. */
GDRI_NOINLINE void gdri_ll_each_any(uint32_t code, uint64_t *a, const uint64_t *b, int n)
{
	GDRI_BY_ABI(gdri_ll_each_any);
	GDRI_NOT_UNROLLED
	for (int k = 0; k < n; k++)
		a[k] = gdri_ll_op_any(code, a[k], b[k]);
}

/* v of members first, first + 1.., of which those below hi count, added to what those before came to. */
GDR_DEVICE uint64_t gdri_ll_chain(const struct gdri_ll_call *b, int first, uint64_t acc,
				  const uint64_t v[GDRI_LL_ROWS])
{
	int i, n = b->hi - first < GDRI_LL_ROWS ? b->hi - first : GDRI_LL_ROWS;

	if (n > 0 && !gdri_ll_op_known(b->code)) {
		uint64_t x[GDRI_LL_ROWS];

		GDRI_UNROLLED
		for (i = 0; i < GDRI_LL_ROWS; i++)
			x[i] = v[i];
		acc = first ? acc : v[0];
		i = first ? 0 : 1;
		return n > i ? gdri_ll_chain_any(b->code, acc, x + i, n - i) : acc;
	}
	GDRI_UNROLLED
	for (i = 0; i < GDRI_LL_ROWS; i++)
		if (i < n)
			acc = first + i ? gdri_ll_op_here(b->code, acc, v[i]) : v[i];
	return acc;
}

/* Element `area` of all, some of them under way at a time; own: this member's. */
GDR_DEVICE int gdri_ll_fold(const struct gdri_ll *l, const struct gdri_ll_call *b, const uint64_t *area, uint64_t own,
			    uint64_t *out)
{
	uint64_t v[GDRI_LL_ROWS], acc = 0;
	int first = 0, i, ret;

	GDRI_NOT_UNROLLED
	while (first < l->n) {
		if (gdri_unlikely(!gdri_ll_look_members(l, area, first, 0, v))) {
			ret = gdri_ll_wait_members(l->team, l->op, area, l->pitch, l->seq, first, 0);
			if (ret)
				return ret;
			continue;
		}
		GDRI_UNROLLED
		for (i = 0; i < GDRI_LL_ROWS; i++)
			v[i] = first + i == l->me ? own : v[i];
		acc = gdri_ll_chain(b, first, acc, v);
		first += GDRI_LL_ROWS;
	}
	*out = acc;
	return 0;
}

#endif
