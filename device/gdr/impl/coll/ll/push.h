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
 * its own (gdri_rows_wait). */
#ifndef GDRI_PUSH_H
#define GDRI_PUSH_H

#include <gdr/impl/coll/direct/grid.h>
#include <gdr/impl/coll/ll/words_sum.h>

struct gdri_push {
	struct gdri_team *team;
	int32_t start, stride; /* as in gdri_team */
	uint32_t op, block, blocks;
	int err;	 /* the team's from before; looked at behind the first loads */
	uint64_t *count; /* parts so far of this block; of this PE alone. Behind it: its areas */
	struct gdri_words w;
};

GDR_DEVICE void gdri_push_turn(struct gdri_push *p)
{
	p->w.area = p->count + GDRI_PUSH_HEAD + (size_t)(p->w.seq & 1) * (uint32_t)p->w.n * p->w.pitch;
}

/* By the request, where perform_plan.c says what there is to know of the team. */
GDR_DEVICE void gdri_push_begin(struct gdri_push *p, const struct gdri_request *q, struct gdri_team *t,
				uint32_t op)
{
	p->team = t;
	p->start = q->coll.start;
	p->stride = q->coll.stride;
	p->op = op;
	p->block = gdr_block_id();
	p->blocks = gdr_grid_size();
	p->w.n = q->coll.members;
	p->w.me = q->coll.member;
	p->w.most = q->coll.push_size;
	p->w.pitch = q->coll.push_size / 4;
	p->count = q->coll.words + (GDRI_PUSH_HEAD + 2 * (size_t)(uint32_t)p->w.n * p->w.pitch) * p->block;
	/* pair with nothing: calls of a team are behind each other; both under way at once */
	p->w.seq = gdri_ld_relaxed_gpu_u64(p->count) + 1;
	p->err = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&t->err);
	gdri_push_turn(p);
}

GDR_DEVICE int gdri_push_after(const struct gdri_push *p, int i)
{
	return p->w.me + i < p->w.n ? p->w.me + i : p->w.me + i - p->w.n;
}

/* Where the own units stand at the member. */
GDR_DEVICE uint64_t *gdri_push_to(const struct gdri_push *p, int to)
{
	uint64_t *own = p->w.area + (size_t)(uint32_t)p->w.me * p->w.pitch;
	int pe = p->stride ? p->start + to * p->stride : gdri_team_pe(p->team, to);

#ifdef __CUDACC__
	return (uint64_t *)gdri_direct_at(own, pe);
#else
	return (uint64_t *)(void *)gdri_mapped(gdri_dev(), own, pe);
#endif
}

/* All threads of the block, which have taken the last part before the numbers begin anew: what is left of the last
 * time is taken away before any member sends words of the next part. */
GDRI_NOINLINE int gdri_push_clean(struct gdri_team *t, uint32_t op, uint64_t *area, size_t units,
				  uint32_t block, uint32_t blocks)
{
	struct gdri_coll c = {gdri_dev(), t, GDRI_BLOCK, op, GDRI_V_TEAM, t->n, t->me, 0, 0, 0};
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
	return at < len && (each || len - at <= p->w.most);
}

/* Behind each part: the next one's number, which is none that words have when there is nothing. */
GDR_DEVICE int gdri_push_next(struct gdri_push *p, int ret)
{
	if (gdri_unlikely(!(uint32_t)(p->w.seq + 1))) {
		if (!gdri_block_any(ret != 0))
			ret = gdri_push_clean(p->team, p->op, p->count + GDRI_PUSH_HEAD,
					      (size_t)(uint32_t)p->w.n * p->w.pitch, p->block, p->blocks);
		p->w.seq++;
	}
	p->w.seq++;
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
		gdri_st_relaxed_gpu_u64(p->count, p->w.seq - 1);
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

	return left < p->w.most ? left : p->w.most;
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
				gdri_word_send(to, k + i * apart, p->w.seq, v[i]);
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
				all &= gdri_word_look(at + 2 * (size_t)(k + (uint32_t)i * apart), p->w.seq, &v[i]);
	}
	if (gdri_likely(all))
		return 0;
	GDRI_NOT_UNROLLED
	for (i = 0; i < GDRI_WORD_ROWS && !ret; i++)
		if (k + (uint32_t)i * apart < n)
			ret = gdri_rows_wait(p->team, p->op, from, at + 2 * (size_t)(k + (uint32_t)i * apart),
					     p->w.seq, 1, 1, 1);
	GDRI_UNROLLED
	for (i = 0; i < GDRI_WORD_ROWS; i++)
		if (k + (uint32_t)i * apart < n)
			gdri_word_look(at + 2 * (size_t)(k + (uint32_t)i * apart), p->w.seq, &v[i]);
	return ret;
}

GDR_DEVICE int gdri_push_in(const struct gdri_push *p, int from, uint8_t *dst, size_t len, uint32_t k,
			    uint32_t apart)
{
	const uint64_t *at = p->w.area + (size_t)(uint32_t)from * p->w.pitch;
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
	int n = p->w.n, me = p->w.me, i, to, ret = 0;
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
		at += p->w.most;
		if (gdri_push_meets(p, b->len, at, b->root >= 0) && gdri_block_any(ret != 0))
			break;
		ret = gdri_push_next(p, ret);
	} while (at < b->len);
	return gdri_push_end(p, ret);
}

/* ---- computing ---- */

/* Block i of src to member i; the own blocks of all added up into dst. A thread sends a unit before it writes to
 * where that may have been. */
GDR_DEVICE int gdri_push_sum(struct gdri_push *p, const struct gdri_word_sum *s)
{
	uint32_t rank = gdr_thread_id(), step = gdr_block_size(), k, n;
	const uint8_t *mine = s->src + s->src_step * (size_t)(uint32_t)p->w.me;
	uint64_t v = 0, *to;
	int i, peer, ret = 0;
	size_t at = 0, first;

	do {
		n = s->len > at + p->w.most ? p->w.pitch / 2 : s->len > at ? (uint32_t)((s->len - at + 7) / 8) : 1;
		GDRI_NOT_UNROLLED
		for (i = 1; i < p->w.n && !ret; i++) {
			peer = gdri_push_after(p, i);
			to = gdri_push_to(p, peer);
			first = s->src_step * (size_t)(uint32_t)peer;
			GDRI_NOT_UNROLLED
			for (k = rank; k < n && !ret; k += step) {
				v = gdri_word_load(s->src + first, at + (size_t)k * 8, s->len);
				if (gdri_likely(!p->err))
					gdri_word_send(to, k, p->w.seq, v);
				ret = p->err;
			}
		}
		GDRI_NOT_UNROLLED
		for (k = rank; k < n && !ret; k += step) {
			v = gdri_word_load(mine, at + (size_t)k * 8, s->len);
			ret = gdri_words_fold(p->team, p->op, &p->w, s, k, v, &v);
			if (!ret)
				gdri_word_store(s->dst, at + (size_t)k * 8, s->len, v);
		}
		at += p->w.most;
		if (gdri_push_meets(p, s->len, at, 0) && gdri_block_any(ret != 0))
			break;
		ret = gdri_push_next(p, ret);
	} while (at < s->len);
	return gdri_push_end(p, ret);
}

/* ---- */

GDR_DEVICE int gdri_push_call(struct gdri_push *p, const struct gdri_request *q)
{
	size_t len = q->n * q->size, at, part = gdri_slice(p->block, p->blocks, len, &at);
	const uint8_t *src = (const uint8_t *)q->src + at;
	uint8_t *dst = (uint8_t *)q->dst + at;
	int root = q->what == GDRI_RQ_BROADCAST, me = p->w.me;

	if (root || q->what == GDRI_RQ_FCOLLECT || q->what == GDRI_RQ_ALLTOALL) {
		const struct gdri_push_blocks b = {
			dst, src, root ? 0 : len, q->what == GDRI_RQ_ALLTOALL ? len : 0, part,
			root ? q->coll.root : -1};

		return gdri_push_move(p, &b);
	} else {
		const struct gdri_word_sum s = {
			dst, src, part, q->what == GDRI_RQ_REDUCESCATTER ? len : 0, q->coll.code,
			q->what == GDRI_RQ_EXSCAN ? me : q->what == GDRI_RQ_INSCAN ? me + 1 : p->w.n};

		return gdri_push_sum(p, &s);
	}
}

#endif
