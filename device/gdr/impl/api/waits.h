/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for all, any or some of several words, and tests of them; also the waits whose caller
 * brings a limit of its own. */
#ifndef GDRI_WAITS_H
#define GDRI_WAITS_H

#include <gdr/impl/api/cmp.h>
#include <gdr/impl/path/slow.h>

#if !GDRI_LINKED
/* After a word that a NIC wrote was seen: what it wrote before may still be on
 * its way on some machines. */
GDRI_SLOW int gdri_wait_flush_any(struct gdri_dev *dev, uint32_t op)
{
	GDRI_BY_ABI(gdri_wait_flush_any);
	return gdri_xfer_flush(dev, op);
}
#endif

GDR_DEVICE int gdri_wait_flush(struct gdri_dev *dev, uint32_t op)
{
	if (!GDRI_QUEUES || gdri_likely(!(gdri_k(dev, flags) & GDRI_DEV_READ_FLUSH)))
		return 0;
	return gdri_wait_flush_any(dev, op);
}

#define GDRI_NO_LIMIT (~0ull)
#define GDRI_NONE_HOLDS ((size_t)-1) /* no index */

enum gdri_set_mode { GDRI_SET_ALL, GDRI_SET_ANY, GDRI_SET_SOME };

struct gdri_set {
	const uint8_t *ptrs;
	size_t n;
	const int *status;     /* not 0: that word does not count; NULL: all do */
	const uint8_t *values; /* one for each word, or NULL: */
	uint64_t value;
	uint32_t size; /* bytes of a word */
	int is_signed, cmp;
	size_t *indices; /* SOME: of the words that hold */
	size_t first;	 /* ANY: looked at first */
	size_t at;	 /* ALL: those before it held; ANY: which holds */
	int mode;	 /* both kept here: a wait has few registers */
	uint64_t deadline;
};

#define GDRI_AT_LIMIT 1 /* the caller's own, which is no error: nothing is recorded */

#if !GDRI_LINKED /* else they are in the library */
/* When a limit of the caller's is over. */
GDR_DEVICE uint64_t gdri_wait_deadline(uint64_t limit_ns)
{
	return limit_ns == GDRI_NO_LIMIT ? GDRI_NO_LIMIT : gdr_clock_ns() + gdri_min_u64(limit_ns, GDRI_NO_LIMIT / 2);
}

GDR_DEVICE int gdri_wait_past(uint64_t deadline)
{
	return deadline != GDRI_NO_LIMIT && gdr_clock_ns() >= deadline;
}

/* The size of a word, whether it has a sign, and the comparison, in one register. */
GDR_DEVICE uint32_t gdri_wait_form(uint32_t size, int is_signed, int cmp)
{
	return size | (uint32_t)!!is_signed << 8 | (uint32_t)cmp << 16;
}

/* Completes the record of a wait that failed; of one that timed out it says which word was compared with what, and
 * what was found. form 0: no single word. Returns the wait's status. */
GDRI_SLOW int gdri_wait_record_word(struct gdri_dev *dev, const struct gdri_waiter *w, const void *p, uint32_t form,
				    uint64_t value)
{
	struct gdri_error *e;

	GDRI_DEV_CONSTANT(dev);
	if (!w->error)
		return w->found;
	e = &dev->errors[w->error - 1];
	if (form && w->found == -GDR_ETIMEOUT) {
		e->addr = gdri_heap_offset(dev, p);
		e->line = form;
		e->len = value;
		e->local = gdri_ld_word(p, form & 0xffu);
	}
	gdri_error_complete(e);
	return w->found;
}

GDR_DEVICE int gdri_set_counts(const struct gdri_set *s, size_t i)
{
	return !s->status || !s->status[i];
}

/* The value to compare word i with, extended as the words are. */
GDR_DEVICE uint64_t gdri_set_value(const struct gdri_set *s, size_t i)
{
	uint64_t v = 0;

	if (!s->values)
		return s->value;
	memcpy(&v, s->values + i * s->size, s->size);
	if (s->is_signed && s->size == 4)
		v = (uint64_t)(int64_t)(int32_t)v;
	if (s->is_signed && s->size == 2)
		v = (uint64_t)(int64_t)(int16_t)v;
	return v;
}

/* ALL: the first word that does not hold. */
GDRI_SLOW int gdri_set_record(struct gdri_dev *dev, const struct gdri_set *s, const struct gdri_waiter *w)
{
	size_t i = s->mode == GDRI_SET_ALL ? s->at : 0;
	uint32_t form = s->mode == GDRI_SET_ALL || s->n == 1 ? gdri_wait_form(s->size, s->is_signed, s->cmp) : 0;

	return gdri_wait_record_word(dev, w, s->ptrs + i * s->size, form, gdri_set_value(s, i));
}

/* Looks once: how many hold; ALL: 1 when all did, each at some time. */
GDRI_SLOW size_t gdri_set_look(struct gdri_set *s)
{
	size_t i, k, n = 0;
	int mode = s->mode;

	GDRI_NOT_UNROLLED
	for (k = mode == GDRI_SET_ALL ? s->at : 0; k < s->n; k++) {
		i = k < s->n - s->first ? k + s->first : k - (s->n - s->first);
		if (!gdri_set_counts(s, i))
			continue;
		if (gdri_cmp_u64(s->ptrs + i * s->size, s->size, s->is_signed, s->cmp,
				 gdri_set_value(s, i)) != (mode != GDRI_SET_ALL))
			continue;
		s->at = i;
		if (mode == GDRI_SET_ALL)
			return 0;
		if (mode == GDRI_SET_SOME)
			s->indices[n] = i;
		n++;
		if (mode == GDRI_SET_ANY)
			break;
	}
	return mode == GDRI_SET_ALL ? 1 : n;
}

GDRI_SLOW int gdri_set_is_empty(const struct gdri_set *s)
{
	GDRI_NOT_UNROLLED
	for (size_t i = 0; i < s->n; i++)
		if (gdri_set_counts(s, i))
			return 0;
	return 1;
}

/* Which call it is. Of one word the caller's is taken for the one that takes no array. */
GDR_DEVICE_COLD uint32_t gdri_set_call(const struct gdri_set *s, int mode, uint64_t limit_ns)
{
	uint32_t call = GDRI_WAIT_UNTIL | (limit_ns == GDRI_NO_LIMIT ? 0 : GDRI_CALL_FOR) |
			(s->values ? GDRI_CALL_VECTOR : 0);

	if (mode == GDRI_SET_ALL)
		return s->n == 1 && !s->status && !s->values ? call : call | GDRI_CALL_ALL;
	return call | (mode == GDRI_SET_ANY ? GDRI_CALL_ANY : GDRI_CALL_SOME);
}

/* 1: an empty set. Out of line, for the registers of the wait. */
GDRI_SLOW int gdri_set_begin(struct gdri_dev *dev, struct gdri_set *s, int mode, uint64_t limit_ns)
{
	if (gdri_unlikely(!gdri_cmp_mask(s->cmp)))
		return gdri_error_arg(dev, gdri_set_call(s, mode, limit_ns), -1, s->ptrs, (uint64_t)(int64_t)s->cmp,
				      GDRI_ARG_CMP);
	s->mode = mode;
	s->deadline = gdri_wait_deadline(limit_ns);
	return gdri_set_is_empty(s);
}

/* *n: as gdri_set_look; 0 of an empty set. Returns a status, or GDRI_AT_LIMIT. */
GDRI_NOINLINE int gdri_set_wait(struct gdri_set *s, int mode, uint64_t limit_ns, size_t *n)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_waiter w;
	int ret;

	GDRI_BY_ABI(gdri_set_wait);
	*n = 0;
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	ret = gdri_set_begin(dev, s, mode, limit_ns);
	if (ret)
		return ret < 0 ? ret : 0;
	gdri_wait_begin(&w, GDRI_WAIT_UNTIL, -1, gdri_heap_offset(dev, s->ptrs));
	w.team = GDRI_WAITS_FOR_WORD;
	while (!(*n = gdri_set_look(s))) {
		if (gdri_wait_past(s->deadline)) {
			*n = gdri_set_look(s); /* what came between the look and the clock's */
			if (*n)
				break;
			GDRI_DEV_CONSTANT(dev);
			gdri_wait_leave(dev, &w);
			return GDRI_AT_LIMIT;
		}
		GDRI_DEV_CONSTANT(dev);
		if (gdri_unlikely(gdri_wait_step(dev, &w)))
			return gdri_set_record(dev, s, &w);
	}
	GDRI_DEV_CONSTANT(dev);
	gdri_wait_end(dev, &w);
	return gdri_wait_flush(dev, GDRI_WAIT_UNTIL);
}

/* As gdri_set_wait without waiting; a failure is latched. */
GDRI_NOINLINE size_t gdri_set_test(struct gdri_set *s, int mode)
{
	struct gdri_dev *dev = gdri_dev();
	size_t n;
	int ret;

	GDRI_BY_ABI(gdri_set_test);
	if (gdri_unlikely(!dev))
		return 0;
	s->mode = mode;
	n = gdri_set_look(s);
	ret = n ? gdri_wait_flush(dev, GDRI_WAIT_UNTIL) : 0;
	if (gdri_unlikely(ret))
		gdri_latch(dev, ret);
	return n;
}

/* For those that return no status. */
GDRI_NOINLINE size_t gdri_set_wait_value(struct gdri_set *s, int mode, uint64_t limit_ns)
{
	size_t n;
	int ret = gdri_set_wait(s, mode, limit_ns, &n);

	GDRI_BY_ABI(gdri_set_wait_value);
	if (gdri_unlikely(ret < 0) && gdri_dev())
		gdri_latch(gdri_dev(), ret);
	return ret ? 0 : n;
}
#endif

#define GDRI_SET_PARAMS                                                                            \
	const int *status, const void *values, uint64_t value, uint32_t size, int is_signed, int cmp
#define GDRI_SET_OF(indices)                                                                       \
	struct gdri_set s = {(const uint8_t *)ptrs, n,	       status, (const uint8_t *)values,    \
			     value,		    size,      is_signed, cmp, indices, 0, 0, 0, 0}

/* ANY begins elsewhere in each call, or a word that always holds would hide those behind it for
 * ever. Hashed, so that any subsequence of the calls sees all beginnings. */
GDR_DEVICE size_t gdri_set_first(size_t n)
{
	struct gdri_dev *dev = gdri_dev();

	if (!dev || n < 2)
		return 0;
	return (size_t)(gdri_add_u32(&dev->any_turn, 1) * 0x9e3779b1u * (uint64_t)(uint32_t)n >> 32) % n;
}

GDR_DEVICE int gdri_wait_all(const void *ptrs, size_t n, GDRI_SET_PARAMS, uint64_t limit_ns)
{
	GDRI_SET_OF(0);
	size_t all;
	int ret = gdri_set_wait(&s, GDRI_SET_ALL, limit_ns, &all);

	return ret == GDRI_AT_LIMIT ? -GDR_ETIMEOUT : ret;
}

GDR_DEVICE size_t gdri_wait_any(const void *ptrs, size_t n, GDRI_SET_PARAMS, uint64_t limit_ns)
{
	GDRI_SET_OF(0);

	s.first = gdri_set_first(n);
	return gdri_set_wait_value(&s, GDRI_SET_ANY, limit_ns) ? s.at : GDRI_NONE_HOLDS;
}

GDR_DEVICE size_t gdri_wait_some(const void *ptrs, size_t n, size_t *indices, GDRI_SET_PARAMS,
				 uint64_t limit_ns)
{
	GDRI_SET_OF(indices);

	return gdri_set_wait_value(&s, GDRI_SET_SOME, limit_ns);
}

GDR_DEVICE int gdri_test_all(const void *ptrs, size_t n, GDRI_SET_PARAMS)
{
	GDRI_SET_OF(0);

	return gdri_set_test(&s, GDRI_SET_ALL) != 0;
}

GDR_DEVICE size_t gdri_test_any(const void *ptrs, size_t n, GDRI_SET_PARAMS)
{
	GDRI_SET_OF(0);

	s.first = gdri_set_first(n);
	return gdri_set_test(&s, GDRI_SET_ANY) ? s.at : GDRI_NONE_HOLDS;
}

GDR_DEVICE size_t gdri_test_some(const void *ptrs, size_t n, size_t *indices, GDRI_SET_PARAMS)
{
	GDRI_SET_OF(indices);

	return gdri_set_test(&s, GDRI_SET_SOME);
}

#endif
