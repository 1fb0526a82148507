/* SPDX-License-Identifier: BSD-3-Clause */
/* The LL protocol: short collectives whose data says itself that it has come. Each 4 bytes travel in a word of 8,
 * beside the number of the epoch that they belong to, into memory of the library at the member. Nobody tells
 * anything, and nothing is fenced: a word comes as a whole. All members map each other's memory.
 *
 * In each epoch each member sends something to each other one, if only an element of nothing. So who ends an epoch
 * has heard of all that they had ended the epoch before, and two areas in turn, by the epoch's parity, are enough
 * (docs/memory-model-internals.md, LL protocol).
 *
 * step.h has calls of one epoch, step_sum.h those of them that compute, broadcast.h broadcasts whose root waits for
 * nobody, epochs.h calls of several epochs, ctas.h calls by many CTAs. What is short is short by its instructions:
 * whatever the loops need is read before them, into variables that nothing points to. */
#ifndef GDRI_LL_H
#define GDRI_LL_H

#include <gdr/impl/coll/blocks.h>
#include <gdr/impl/coll/direct/cta_barrier.h>

#define GDRI_LL_ROWS 4	     /* elements that each of several threads has under way at a time */
#define GDRI_LL_ALONE_ROWS 8 /* of a lone thread */

/* An epoch of a call, as each thread of the scope has it. */
struct gdri_ll {
	struct gdri_team *team;
	uint64_t *area; /* of the epoch; what member i sends begins at i * pitch */
	uint64_t seq;	/* its number; the low half is in the words, never 0 */
	uint32_t pitch, op;
	int n, me, start, stride;
	int scope, rank, size;
};

/* What is moved or added up. */
struct gdri_ll_call {
	uint8_t *dst;
	const uint8_t *src;
	size_t dst_step, src_step; /* from the block of a member to that of the next one */
	size_t len;		   /* of a block */
	uint32_t code;		   /* sums: what they do, */
	int hi;			   /* and below which member, in the order of their numbers; none: 0 */
};

/* Where p is at the member, which is mapped. */
GDR_DEVICE uint64_t *gdri_ll_peer(const struct gdri_ll *l, uint64_t *p, int to)
{
	int pe = l->stride ? l->start + to * l->stride : gdri_team_pe(l->team, to);

#ifdef __CUDACC__
	return (uint64_t *)gdri_direct_at(p, pe);
#else
	return (uint64_t *)(void *)gdri_mapped_at(gdri_dev(), gdri_peer_base(gdri_dev(), pe), p, pe);
#endif
}

/* Where the own elements stand, at each member. */
GDR_DEVICE uint64_t *gdri_ll_mine(const struct gdri_ll *l)
{
	return l->area + (uint32_t)l->me * (size_t)l->pitch;
}

GDR_DEVICE uint64_t *gdri_ll_from(const struct gdri_ll *l, int from)
{
	return l->area + (uint32_t)from * (size_t)l->pitch;
}

/* Member i behind the own one. */
GDR_DEVICE int gdri_ll_after(const struct gdri_ll *l, int i)
{
	return l->me + i < l->n ? l->me + i : l->me + i - l->n;
}

/* All threads have what was theirs of an epoch: the status of any of them. */
GDR_DEVICE int gdri_ll_met(const struct gdri_ll *l, int ret)
{
	struct gdri_team *t = l->team;
	uint32_t none = 0;

	if (gdri_likely(!gdri_scope_any(l->scope, ret != 0)))
		return 0;
	if (ret) /* behind that sync: all have read it when they began. Carries no data: pairs with nothing */
		gdri_cas_u32((uint32_t *)&t->err, &none, (uint32_t)ret);
	gdri_scope_sync(l->scope);
	return (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&t->err);
}

/* The numbers in the words begin anew: whatever is left in the area from the last time is taken away, before any other
 * member sends words of the next epoch. block: of the CTAs that meet, one of each member. */
GDRI_NOINLINE int gdri_ll_clean(struct gdri_team *t, int scope, uint32_t op, uint64_t *area, size_t elements,
				uint32_t block)
{
	struct gdri_coll c = gdri_coll_of(t, GDRI_THREAD, op);
	int ret = 0;

	GDRI_BY_ABI(gdri_ll_clean);
	gdri_scope_sync(scope); /* all threads took what was theirs of the epoch before */
	for (size_t k = gdri_scope_rank(scope); k < elements; k += gdri_scope_size(scope))
		gdri_st_pair_sys(area + 2 * k, 0, 0); /* released by the meeting */
	gdri_scope_sync(scope);
	if (!gdri_scope_rank(scope))
		ret = gdri_cta_alone(&c, block);
	return gdri_scope_bcast(scope, ret);
}

/* ---- elements: 8 bytes of data in two words ---- */

GDRI_NOINLINE uint64_t gdri_ll_load_odd(const uint8_t *p, uint32_t n)
{
	uint64_t v = 0;
	uint32_t v4;

	GDRI_BY_ABI(gdri_ll_load_odd);
	if (n == 4 && !((uintptr_t)p & 3)) {
		gdri_ld_bytes(&v4, __builtin_assume_aligned(p, 4), 4);
		return v4;
	}
	GDRI_NOT_UNROLLED
	for (uint32_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

/* Bytes at .. at + 7 of those at p, as far as there are `len`. */
GDR_DEVICE uint64_t gdri_ll_load(const uint8_t *p, size_t at, size_t len)
{
	uint64_t v;

	p += at;
	if (gdri_likely(at + 8 <= len && !((uintptr_t)p & 7))) {
		gdri_ld_bytes(&v, __builtin_assume_aligned(p, 8), 8);
		return v;
	}
	return at >= len ? 0 : gdri_ll_load_odd(p, len - at < 8 ? (uint32_t)(len - at) : 8);
}

GDRI_NOINLINE void gdri_ll_store_odd(uint8_t *p, uint32_t n, uint64_t v)
{
	uint32_t i, v4 = (uint32_t)v;

	GDRI_BY_ABI(gdri_ll_store_odd);
	if (n == 4 && !((uintptr_t)p & 3)) {
		gdri_ld_bytes(__builtin_assume_aligned(p, 4), &v4, 4);
		return;
	}
	GDRI_NOT_UNROLLED
	for (i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

GDR_DEVICE void gdri_ll_store(uint8_t *p, size_t at, size_t len, uint64_t v)
{
	p += at;
	if (gdri_likely(at + 8 <= len && !((uintptr_t)p & 7)))
		gdri_ld_bytes(__builtin_assume_aligned(p, 8), &v, 8);
	else if (at < len)
		gdri_ll_store_odd(p, len - at < 8 ? (uint32_t)(len - at) : 8, v);
}

/* Pairs with the loads in gdri_ll_look by what it holds. */
GDR_DEVICE void gdri_ll_send(uint64_t *to, uint32_t k, uint64_t seq, uint64_t v)
{
	gdri_st_pair_sys(to + 2 * (size_t)k, seq << 32 | (uint32_t)v, seq << 32 | v >> 32);
}

/* 1: both words of the element are there. */
GDR_DEVICE int gdri_ll_look(const uint64_t *p, uint64_t seq, uint64_t *v)
{
	uint64_t a, b;

	gdri_ld_pair_sys(p, &a, &b);
	*v = (uint32_t)a | b << 32;
	return (uint32_t)(a >> 32) == (uint32_t)seq && (uint32_t)(b >> 32) == (uint32_t)seq;
}

/* Until the member's element at p is there. */
GDR_DEVICE int gdri_ll_wait_one(struct gdri_coll *c, struct gdri_waiter *w, int from, const uint64_t *p, uint64_t seq)
{
	uint64_t v;
	int ret;

	gdri_coll_wait_begin(c, w, from, p);
	while (!gdri_ll_look(p, seq, &v)) {
		ret = gdri_wait_step(c->dev, w);
		if (ret)
			return ret;
	}
	gdri_wait_end(c->dev, w);
	return 0;
}

/* When it takes long: until `rows` elements at p, each `apart` from the one before, are there, as far as they are
 * `left`. */
GDRI_NOINLINE int gdri_ll_wait(struct gdri_team *t, uint32_t op, int from, const uint64_t *p, uint64_t seq,
			       int left, int apart, int rows)
{
	struct gdri_coll c = gdri_coll_of(t, GDRI_THREAD, op);
	struct gdri_waiter w;
	int ret = 0;

	GDRI_BY_ABI(gdri_ll_wait);
	for (int i = 0; i < rows && i * apart < left && !ret; i++, p += 2 * (size_t)(uint32_t)apart)
		ret = gdri_ll_wait_one(&c, &w, from, p, seq);
	return ret;
}

/* Which member's element is the one of number i: the next of the team or (behind) behind the own one. */
GDR_DEVICE int gdri_ll_member(int me, int n, int i, int behind)
{
	return !behind ? i : me + i < n ? me + i : me + i - n;
}

/* An element of each of GDRI_LL_ROWS members from number first on, all at the same place of what they send: `area`
 * has it of member 0. 1: they are there. Members that there are not, and the own one, are looked at as some other
 * one is: a condition on each look would take one of seven predicates. */
GDR_DEVICE int gdri_ll_look_members(const struct gdri_ll *l, const uint64_t *area, int first, int behind,
				    uint64_t v[GDRI_LL_ROWS])
{
	int n = l->n, other = behind ? gdri_ll_after(l, first) : l->me ? 0 : n > 1, i, m, spins, all, there, none;
	uint64_t seq = l->seq;

	GDRI_NOT_UNROLLED
	for (spins = 0; spins <= GDRI_SPINS; spins++) {
		all = 1;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_LL_ROWS; i++) {
			none = first + i >= n || (!behind && first + i == l->me);
			m = none ? other : gdri_ll_member(l->me, n, first + i, behind);
			there = gdri_ll_look(area + (uint32_t)m * (size_t)l->pitch, seq, &v[i]);
			all &= none | there;
		}
		if (gdri_likely(all))
			return 1;
	}
	return 0;
}

/* When it takes long. */
GDRI_NOINLINE int gdri_ll_wait_members(struct gdri_team *t, uint32_t op, const uint64_t *area, uint32_t pitch,
				       uint64_t seq, int first, int behind)
{
	struct gdri_coll c = gdri_coll_of(t, GDRI_THREAD, op);
	struct gdri_waiter w;
	int i, m, ret = 0;

	GDRI_BY_ABI(gdri_ll_wait_members);
	for (i = first; i < t->n && i < first + GDRI_LL_ROWS && !ret; i++) {
		m = gdri_ll_member(t->me, t->n, i, behind);
		if (m != t->me)
			ret = gdri_ll_wait_one(&c, &w, m, area + (uint32_t)m * (size_t)pitch, seq);
	}
	return ret;
}

#endif
