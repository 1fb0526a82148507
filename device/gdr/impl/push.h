/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of the library's kernels by words (words.h) and many blocks. Each block has a slice of the call, an
 * area of its own at each member and its own count of parts there, so that no block waits for one of another number,
 * and a call meets nobody: data goes into memory of the library, whoever has ended the part before.
 *
 * What a thread sends to a member and what it takes from there are the same units, so a thread that has taken unit k
 * of a part knows that the member's thread has taken its unit k of the part before: areas take turns
 * with no sync of the block between, but for the last one.
 *
 * All is by all threads of a block. What a call needs stands in a struct that nothing points to; what takes long makes
 * its own (gdri_push_wait). */
#ifndef GDRI_PUSH_H
#define GDRI_PUSH_H

#include <gdr/impl/grid.h>
#include <gdr/impl/words_sum.h>

struct gdri_push {
	struct gdri_team *team;
	int32_t start, stride; /* as in gdri_team */
	uint32_t op, block, blocks;
	int err;	 /* the team's from before; looked at behind the first loads */
	uint64_t *count; /* parts so far of this block; of this PE alone. Behind it: its areas */
	uint64_t *area;	 /* of the part under way: member i's begins at i * pitch */
	uint64_t seq;	 /* its number; the low half is in the words, never 0 */
	size_t most;	 /* bytes of a part */
	uint32_t pitch;
	int n, me;
};

GDR_DEVICE void gdri_push_turn(struct gdri_push *p)
{
	p->area = p->count + GDRI_PUSH_HEAD + (size_t)(p->seq & 1) * (uint32_t)p->n * p->pitch;
}

/* By the request, where perform_plan.c says what there is to know of the team. */
GDR_DEVICE void gdri_push_begin(struct gdri_push *p, const struct gdri_request *q, struct gdri_team *t,
				uint32_t op)
{
	p->team = t;
	p->start = q->start;
	p->stride = q->stride;
	p->op = op;
	p->block = gdr_block_id();
	p->blocks = gdr_grid_size();
	p->n = q->members;
	p->me = q->member;
	p->most = q->part;
	p->pitch = q->part / 4;
	p->count = q->words + (GDRI_PUSH_HEAD + 2 * (size_t)(uint32_t)p->n * p->pitch) * p->block;
	/* pair with nothing: calls of a team are behind each other; both under way at once */
	p->seq = gdri_ld_relaxed_gpu_u64(p->count) + 1;
	p->err = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&t->err);
	gdri_push_turn(p);
}

GDR_DEVICE int gdri_push_after(const struct gdri_push *p, int i)
{
	return p->me + i < p->n ? p->me + i : p->me + i - p->n;
}

/* Where the own units stand at the member. */
GDR_DEVICE uint64_t *gdri_push_to(const struct gdri_push *p, int to)
{
	uint64_t *own = p->area + (size_t)(uint32_t)p->me * p->pitch;
	int pe = p->stride ? p->start + to * p->stride : gdri_team_pe(p->team, to);

#ifdef __CUDACC__
	return (uint64_t *)gdri_direct_at(own, pe);
#else
	return (uint64_t *)(void *)gdri_mapped(gdri_dev(), own, pe);
#endif
}

GDR_DEVICE struct gdri_coll gdri_push_coll(struct gdri_team *t, uint32_t op)
{
	struct gdri_coll c = {gdri_dev(), t, GDRI_BLOCK, op, GDRI_V_TEAM, t->n, t->me, 0, 0, 0};

	return c;
}

/* When it takes long. */
GDRI_NOINLINE int gdri_push_wait(struct gdri_team *t, uint32_t op, int from, const uint64_t *at,
				 uint64_t seq)
{
	struct gdri_coll c = gdri_push_coll(t, op);

	GDRI_BY_ABI(gdri_push_wait);
	return gdri_word_wait(&c, from, at, seq);
}

/* All threads of the block, which have taken the last part before the numbers begin anew: what is left of the last
 * time is taken away before any member sends words of the next part. */
GDRI_NOINLINE int gdri_push_clean(struct gdri_team *t, uint32_t op, uint64_t *area, size_t units,
				  uint32_t block, uint32_t blocks)
{
	struct gdri_coll c = gdri_push_coll(t, op);
	struct gdri_grid g;
	size_t k;

	GDRI_BY_ABI(gdri_push_clean);
	gdr_sync_block();
	for (k = gdr_thread_id(); k < units; k += gdr_block_size())
		gdri_st_pair_sys(area + 2 * k, 0, 0); /* released by the meeting */
	gdri_grid_begin(&g, &c, block, blocks);
	return gdri_grid_meet(&g);
}

/* Does the block meet between the part that ends at `at` and the next one? In front of the last one, which may be
 * shorter: who has taken any unit of that knows that all of the part before were taken, and so may begin the next
 * call. */
GDR_DEVICE int gdri_push_meets(const struct gdri_push *p, size_t len, size_t at, int each)
{
	return at < len && (each || len - at <= p->most);
}

/* Behind each part: the next one's number, which is none that words have when there is nothing. */
GDR_DEVICE int gdri_push_next(struct gdri_push *p, int ret)
{
	if (gdri_unlikely(!(uint32_t)(p->seq + 1))) {
		if (!gdri_block_any(ret != 0))
			ret = gdri_push_clean(p->team, p->op, p->count + GDRI_PUSH_HEAD,
					      (size_t)(uint32_t)p->n * p->pitch, p->block, p->blocks);
		p->seq++;
	}
	p->seq++;
	gdri_push_turn(p);
	return ret;
}

/* The status of any of the threads; those that failed give it the team. */
GDR_DEVICE int gdri_push_end(const struct gdri_push *p, int ret)
{
	uint32_t none = 0;

	if (gdri_unlikely(ret)) /* carries no data: pairs with nothing */
		gdri_cas_u32((uint32_t *)&p->team->err, &none, (uint32_t)ret);
	if (gdri_unlikely(gdri_block_any(ret != 0)))
		return (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&p->team->err);
	if (!gdr_thread_id()) /* read by the next call */
		gdri_st_relaxed_gpu_u64(p->count, p->seq - 1);
	return 0;
}

/* ---- moving ---- */

struct gdri_push_blocks {
	uint8_t *dst;
	const uint8_t *src;
	size_t dst_step, src_step; /* from the block of a member to that of the next one */
	size_t len;		   /* of a block */
	int root;		   /* only this member's holds something; -1: all do */
};

/* Bytes of the part at `at` that member `from` sends. */
GDR_DEVICE size_t gdri_push_part(const struct gdri_push *p, const struct gdri_push_blocks *b, int from,
				 size_t at)
{
	size_t left = (b->root >= 0 && from != b->root) || at >= b->len ? 0 : b->len - at;

	return left < p->most ? left : p->most;
}

/* Units k, k + apart.. of len bytes; of nothing, too, there is one. */
GDR_DEVICE int gdri_push_out(const struct gdri_push *p, uint64_t *to, const uint8_t *src, size_t len,
			     uint32_t k, uint32_t apart)
{
	uint32_t n = len ? (uint32_t)((len + 7) / 8) : 1, i;
	uint64_t v[GDRI_WORD_ROWS];

	GDRI_NOT_UNROLLED
	for (; k < n; k += GDRI_WORD_ROWS * apart) {
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			v[i] = k + i * apart < n ? gdri_word_load(src, (size_t)(k + i * apart) * 8, len) : 0;
		if (gdri_unlikely(p->err))
			return p->err;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (k + i * apart < n)
				gdri_word_send(to, k + i * apart, p->seq, v[i]);
	}
	return p->err;
}

/* Those below n, some at a time. */
GDR_DEVICE int gdri_push_take(const struct gdri_push *p, int from, const uint64_t *at, uint32_t k,
			      uint32_t apart, uint32_t n, uint64_t v[GDRI_WORD_ROWS])
{
	int i, spins, all = 0, ret = 0;

	GDRI_NOT_UNROLLED
	for (spins = 0; spins <= GDRI_SPINS && !all; spins++) {
		all = 1;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (k + (uint32_t)i * apart < n)
				all &= gdri_word_look(at + 2 * (size_t)(k + (uint32_t)i * apart), p->seq, &v[i]);
	}
	if (gdri_likely(all))
		return 0;
	GDRI_NOT_UNROLLED
	for (i = 0; i < GDRI_WORD_ROWS && !ret; i++)
		if (k + (uint32_t)i * apart < n)
			ret = gdri_push_wait(p->team, p->op, from, at + 2 * (size_t)(k + (uint32_t)i * apart),
					     p->seq);
	GDRI_UNROLLED
	for (i = 0; i < GDRI_WORD_ROWS; i++)
		if (k + (uint32_t)i * apart < n)
			gdri_word_look(at + 2 * (size_t)(k + (uint32_t)i * apart), p->seq, &v[i]);
	return ret;
}

GDR_DEVICE int gdri_push_in(const struct gdri_push *p, int from, uint8_t *dst, size_t len, uint32_t k,
			    uint32_t apart)
{
	const uint64_t *at = p->area + (size_t)(uint32_t)from * p->pitch;
	uint32_t n = len ? (uint32_t)((len + 7) / 8) : 1, i;
	uint64_t v[GDRI_WORD_ROWS];
	int ret = 0;

	GDRI_NOT_UNROLLED
	for (; k < n && !ret; k += GDRI_WORD_ROWS * apart) {
		ret = gdri_push_take(p, from, at, k, apart, n, v);
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++)
			if (k + i * apart < n && !ret)
				gdri_word_store(dst, (size_t)(k + i * apart) * 8, len, v[i]);
	}
	return ret;
}

/* A block of each member to each. Those who are not the root tell in one unit, and are told so: then a part must be
 * all threads' before the next one begins. */
GDR_DEVICE int gdri_push_move(struct gdri_push *p, const struct gdri_push_blocks *b)
{
	uint32_t size = gdr_block_size(), rank = gdr_thread_id(), lanes = size, first = 0, step = 1;
	int n = p->n, me = p->me, i, to, ret = 0;
	uint8_t *own = b->dst + b->dst_step * (size_t)(uint32_t)me;
	const uint8_t *mine = b->src + b->src_step * (size_t)(uint32_t)me;
	size_t at = 0;

	if (n > 2) {
		lanes = size / (uint32_t)(n - 1);
		lanes = lanes >= 32 ? lanes & ~31u : lanes ? lanes : 1;
		first = rank / lanes;
		step = size / lanes;
		rank -= first * lanes;
	}
	do {
		GDRI_NOT_UNROLLED
		for (i = (int)first + 1; i < n && first < step && !ret; i += (int)step) {
			to = gdri_push_after(p, i);
			ret = gdri_push_out(p, gdri_push_to(p, to), b->src + b->src_step * (size_t)(uint32_t)to + at,
					    gdri_push_part(p, b, me, at), rank, lanes);
		}
		if (!at && (b->root < 0 || me == b->root) && own != mine && b->len)
			gdri_copy(own, mine, b->len, gdr_thread_id(), size);
		GDRI_NOT_UNROLLED
		for (i = (int)first + 1; i < n && first < step && !ret; i += (int)step) {
			to = gdri_push_after(p, i);
			ret = gdri_push_in(p, to, b->dst + b->dst_step * (size_t)(uint32_t)to + at,
					   gdri_push_part(p, b, to, at), rank, lanes);
		}
		at += p->most;
		if (gdri_push_meets(p, b->len, at, b->root >= 0) && gdri_block_any(ret != 0))
			break;
		ret = gdri_push_next(p, ret);
	} while (at < b->len);
	return gdri_push_end(p, ret);
}

/* ---- computing ---- */

struct gdri_push_vectors {
	uint8_t *dst;
	const uint8_t *src;
	size_t len, src_step; /* of a block, and from one member's to the next one's */
	uint32_t code;
	int lo, hi; /* members whose vectors are added up, in the order of their numbers; none: 0 */
};

/* Unit k of all, added up in the members' order; own: this member's. Loads of several are under way at once. */
GDR_DEVICE int gdri_push_fold(const struct gdri_push *p, const struct gdri_push_vectors *s, uint32_t k,
			      uint64_t own, uint64_t *out)
{
	uint64_t v[GDRI_WORD_ROWS], acc = 0, x;
	const uint64_t *at = p->area + 2 * (size_t)k;
	int first, i, m, spins, all, ret = 0;

	GDRI_NOT_UNROLLED
	for (first = 0; first < p->n && !ret; first += GDRI_WORD_ROWS) {
		GDRI_NOT_UNROLLED
		for (all = spins = 0; !all && spins <= GDRI_SPINS; spins++) {
			all = 1;
			GDRI_UNROLLED
			for (i = 0; i < GDRI_WORD_ROWS; i++)
				if (first + i < p->n && first + i != p->me)
					all &= gdri_word_look(at + (size_t)(uint32_t)(first + i) * p->pitch,
							      p->seq, &v[i]);
		}
		GDRI_NOT_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS && gdri_unlikely(!all) && !ret; i++)
			if (first + i < p->n && first + i != p->me)
				ret = gdri_push_wait(p->team, p->op, first + i,
						     at + (size_t)(uint32_t)(first + i) * p->pitch, p->seq);
		GDRI_UNROLLED
		for (i = 0; i < GDRI_WORD_ROWS; i++) {
			m = first + i;
			if (m < s->lo || m >= s->hi)
				continue;
			if (gdri_unlikely(!all) && m != p->me)
				gdri_word_look(at + (size_t)(uint32_t)m * p->pitch, p->seq, &v[i]);
			x = m == p->me ? own : v[i];
			acc = m == s->lo ? x : gdri_word_op(s->code, acc, x);
		}
	}
	*out = acc;
	return ret;
}

/* Block i of src to member i; the own blocks of all added up into dst. A thread sends a unit before it writes to
 * where that may have been. */
GDR_DEVICE int gdri_push_sum(struct gdri_push *p, const struct gdri_push_vectors *s)
{
	uint32_t rank = gdr_thread_id(), step = gdr_block_size(), k, n;
	const uint8_t *mine = s->src + s->src_step * (size_t)(uint32_t)p->me;
	uint64_t v = 0, *to;
	int i, peer, ret = 0;
	size_t at = 0, first;

	do {
		n = s->len > at + p->most ? p->pitch / 2 : s->len > at ? (uint32_t)((s->len - at + 7) / 8) : 1;
		GDRI_NOT_UNROLLED
		for (i = 1; i < p->n && !ret; i++) {
			peer = gdri_push_after(p, i);
			to = gdri_push_to(p, peer);
			first = s->src_step * (size_t)(uint32_t)peer;
			GDRI_NOT_UNROLLED
			for (k = rank; k < n && !ret; k += step) {
				v = gdri_word_load(s->src + first, at + (size_t)k * 8, s->len);
				if (gdri_likely(!p->err))
					gdri_word_send(to, k, p->seq, v);
				ret = p->err;
			}
		}
		GDRI_NOT_UNROLLED
		for (k = rank; k < n && !ret; k += step) {
			v = gdri_word_load(mine, at + (size_t)k * 8, s->len);
			ret = gdri_push_fold(p, s, k, v, &v);
			if (!ret)
				gdri_word_store(s->dst, at + (size_t)k * 8, s->len, v);
		}
		at += p->most;
		if (gdri_push_meets(p, s->len, at, 0) && gdri_block_any(ret != 0))
			break;
		ret = gdri_push_next(p, ret);
	} while (at < s->len);
	return gdri_push_end(p, ret);
}

/* ---- */

/* This block's share of len bytes: whole lines, but for the end. */
GDR_DEVICE size_t gdri_push_slice(const struct gdri_push *p, size_t len, size_t *at)
{
	size_t each = (len / p->blocks + 128) / 128 * 128;

	*at = each * p->block;
	if (*at >= len)
		return *at = 0;
	return len - *at < each ? len - *at : each;
}

GDR_DEVICE int gdri_push_call(struct gdri_push *p, const struct gdri_request *q)
{
	size_t len = q->n * q->size, at, part = gdri_push_slice(p, len, &at);
	const uint8_t *src = (const uint8_t *)q->src + at;
	uint8_t *dst = (uint8_t *)q->dst + at;
	int root = q->what == GDRI_RQ_BROADCAST, me = p->me;

	if (root || q->what == GDRI_RQ_FCOLLECT || q->what == GDRI_RQ_ALLTOALL) {
		const struct gdri_push_blocks b = {
			dst, src, root ? 0 : len, q->what == GDRI_RQ_ALLTOALL ? len : 0, part, root ? q->pe : -1};

		return gdri_push_move(p, &b);
	} else {
		const struct gdri_push_vectors s = {
			dst, src, part, q->what == GDRI_RQ_REDUCESCATTER ? len : 0, q->code, 0,
			q->what == GDRI_RQ_EXSCAN ? me : q->what == GDRI_RQ_INSCAN ? me + 1 : p->n};

		return gdri_push_sum(p, &s);
	}
}

#endif
