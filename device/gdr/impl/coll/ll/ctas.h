/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls by LL (ll.h) by many CTAs, the blocks of a kernel of the library. Each has a slice of the call, an area of
 * its own at each member and its own count of epochs there, so that no CTA waits for one of another number, and a
 * call meets nobody: data goes into memory of the library, whoever has ended the epoch before.
 *
 * What a thread sends to a member and what it takes from there are the same elements, so a thread that has taken
 * element k of an epoch knows that the member's thread has taken its element k of the epoch before: areas take turns
 * with no sync of the CTA between, but for the last one.
 *
 * All is by all threads of a block. What a call needs stands in a struct that nothing points to; what takes long
 * makes its own (gdri_ll_wait). */
#ifndef GDRI_LL_CTAS_H
#define GDRI_LL_CTAS_H

#include <gdr/impl/coll/ll/fold.h>
#include <gdr/impl/request/request.h>

struct gdri_ll_ctas {
	struct gdri_ll l;
	size_t most;	 /* bytes of an epoch */
	uint64_t *count; /* epochs so far of this CTA; of this PE alone. Behind it: its areas */
	uint32_t block, blocks;
	int err; /* the team's from before; looked at behind the first loads */
};

GDR_DEVICE void gdri_ll_ctas_turn(struct gdri_ll_ctas *p)
{
	p->l.area = p->count + GDRI_CTAS_HEAD + (size_t)(p->l.seq & 1) * (uint32_t)p->l.n * p->l.pitch;
}

GDR_DEVICE int gdri_ll_ctas_clean(struct gdri_ll_ctas *p)
{
	p->l.seq++;
	return gdri_ll_clean(p->l.team, p->l.scope, p->l.op, p->count + GDRI_CTAS_HEAD,
			     (size_t)(uint32_t)p->l.n * p->l.pitch, p->block);
}

/* By the request, where exec_plan.c says what there is to know of the team. */
GDR_DEVICE void gdri_ll_ctas_begin(struct gdri_ll_ctas *p, const struct gdri_request *q, struct gdri_team *t,
				   uint32_t op)
{
	p->l.team = t;
	p->l.start = q->coll.start;
	p->l.stride = q->coll.stride;
	p->l.op = op;
	p->l.scope = GDRI_BLOCK;
	p->l.rank = (int)gdr_thread_id();
	p->l.size = (int)gdr_block_size();
	p->block = gdr_block_id();
	p->blocks = gdr_grid_size();
	p->l.n = q->coll.members;
	p->l.me = q->coll.member;
	p->most = q->coll.ctas_size;
	p->l.pitch = q->coll.ctas_size / 4;
	p->count = q->coll.words + (GDRI_CTAS_HEAD + 2 * (size_t)(uint32_t)p->l.n * p->l.pitch) * p->block;
	/* pair with nothing: calls of a team are behind each other; both under way at once */
	p->l.seq = gdri_ld_relaxed_gpu_u64(p->count) + 1;
	p->err = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&t->err);
	gdri_ll_ctas_turn(p);
}

/* Does the CTA meet between the epoch that ends at `at` and the next one? In front of the last one, which may be
 * shorter: who has taken any element of that knows that all of the epoch before were taken, and so may begin the next
 * call. each: in front of all. */
GDR_DEVICE int gdri_ll_ctas_syncs(const struct gdri_ll_ctas *p, size_t len, size_t at, int each)
{
	return at < len && (each || len - at <= p->most);
}

/* Behind each epoch: the next one's number, which is none that words have when there is nothing. */
GDR_DEVICE int gdri_ll_ctas_next(struct gdri_ll_ctas *p, int ret)
{
	if (gdri_unlikely(!(uint32_t)++p->l.seq)) {
		if (!gdri_scope_any(p->l.scope, ret != 0))
			ret = gdri_ll_ctas_clean(p);
		else
			p->l.seq++;
	}
	gdri_ll_ctas_turn(p);
	return ret;
}

/* The status of any of the threads; those that failed give it the team. */
GDR_DEVICE int gdri_ll_ctas_end(const struct gdri_ll_ctas *p, int ret)
{
	ret = gdri_ll_met(&p->l, ret);
	if (gdri_unlikely(ret))
		return ret;
	if (!p->l.rank) /* read by the next call, another kernel's; carries no data: pairs with nothing */
		gdri_st_relaxed_gpu_u64(p->count, p->l.seq - 1);
	return 0;
}

/* ---- moving ---- */

/* Bytes of the epoch at `at` that member `from` sends; root: only this member holds something (-1: all do). */
GDR_DEVICE size_t gdri_ll_ctas_part(const struct gdri_ll_ctas *p, const struct gdri_ll_call *b, int root, int from,
				    size_t at)
{
	size_t left = (root >= 0 && from != root) || at >= b->len ? 0 : b->len - at;

	return left < p->most ? left : p->most;
}

/* Elements k, k + apart.. of len bytes; of nothing, too, there is one. */
GDR_DEVICE int gdri_ll_ctas_out(const struct gdri_ll_ctas *p, uint64_t *to, const uint8_t *src, size_t len, uint32_t k,
				 uint32_t apart)
{
	uint32_t n = len ? (uint32_t)((len + 7) / 8) : 1, i;
	uint64_t v[GDRI_LL_ROWS];

	GDRI_NOT_UNROLLED
	for (; k < n; k += GDRI_LL_ROWS * apart) {
		GDRI_UNROLLED
		for (i = 0; i < GDRI_LL_ROWS; i++)
			v[i] = k + i * apart < n ? gdri_ll_load(src, (size_t)(k + i * apart) * 8, len) : 0;
		if (gdri_unlikely(p->err))
			return p->err;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_LL_ROWS; i++)
			if (k + i * apart < n)
				gdri_ll_send(to, k + i * apart, p->l.seq, v[i]);
	}
	return p->err;
}

/* Those below n, some at a time. */
GDR_DEVICE int gdri_ll_ctas_take(const struct gdri_ll_ctas *p, int from, const uint64_t *at, uint32_t k,
				  uint32_t apart, uint32_t n, uint64_t v[GDRI_LL_ROWS])
{
	int i, spins, all = 0, ret;

	GDRI_NOT_UNROLLED
	for (spins = 0; !all; spins++) {
		if (gdri_unlikely(spins > GDRI_SPINS)) {
			ret = gdri_ll_wait(p->l.team, p->l.op, from, at + 2 * (size_t)k, p->l.seq, (int)(n - k),
					   (int)apart, GDRI_LL_ROWS);
			if (ret)
				return ret;
		}
		all = 1;
		GDRI_UNROLLED
		for (i = 0; i < GDRI_LL_ROWS; i++)
			if (k + (uint32_t)i * apart < n)
				all &= gdri_ll_look(at + 2 * (size_t)(k + (uint32_t)i * apart), p->l.seq, &v[i]);
	}
	return 0;
}

GDR_DEVICE int gdri_ll_ctas_in(const struct gdri_ll_ctas *p, int from, uint8_t *dst, size_t len, uint32_t k,
				uint32_t apart)
{
	uint32_t n = len ? (uint32_t)((len + 7) / 8) : 1, i;
	uint64_t v[GDRI_LL_ROWS] = {0}; /* gcc does not see that what is stored was taken */
	int ret = 0;

	GDRI_NOT_UNROLLED
	for (; k < n && !ret; k += GDRI_LL_ROWS * apart) {
		ret = gdri_ll_ctas_take(p, from, gdri_ll_from(&p->l, from), k, apart, n, v);
		GDRI_UNROLLED
		for (i = 0; i < GDRI_LL_ROWS; i++)
			if (k + i * apart < n && !ret)
				gdri_ll_store(dst, (size_t)(k + i * apart) * 8, len, v[i]);
	}
	return ret;
}

/* A block of each member to each. Who holds nothing tells in one element, and is told so: then an epoch must be all
 * threads' before the next one begins. The threads serve the other members at a time, each by as many. */
GDR_DEVICE int gdri_ll_ctas_move(struct gdri_ll_ctas *p, const struct gdri_ll_call *b, int root)
{
	uint32_t size = (uint32_t)p->l.size, rank = (uint32_t)p->l.rank, lanes = size, first = 0, step = 1;
	int n = p->l.n, me = p->l.me, i, to, ret = 0;
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
			to = gdri_ll_after(&p->l, i);
			ret = gdri_ll_ctas_out(p, gdri_ll_peer(&p->l, gdri_ll_mine(&p->l), to),
						b->src + b->src_step * (size_t)(uint32_t)to + at,
						gdri_ll_ctas_part(p, b, root, me, at), rank, lanes);
		}
		if (!at && (root < 0 || me == root))
			gdri_scope_copy(p->l.scope, own, mine, b->len);
		GDRI_NOT_UNROLLED
		for (i = (int)first + 1; i < n && first < step && !ret; i += (int)step) {
			to = gdri_ll_after(&p->l, i);
			ret = gdri_ll_ctas_in(p, to, b->dst + b->dst_step * (size_t)(uint32_t)to + at,
					      gdri_ll_ctas_part(p, b, root, to, at), rank, lanes);
		}
		at += p->most;
		if (gdri_ll_ctas_syncs(p, b->len, at, root >= 0) &&
		    gdri_scope_any(p->l.scope, ret != 0))
			break;
		ret = gdri_ll_ctas_next(p, ret);
	} while (at < b->len);
	return gdri_ll_ctas_end(p, ret);
}

/* ---- computing ---- */

/* Block i of src to member i; the own blocks of all added up into dst. A thread sends an element before it writes to
 * where that may have been. */
GDR_DEVICE int gdri_ll_ctas_sum(struct gdri_ll_ctas *p, const struct gdri_ll_call *b)
{
	uint32_t rank = (uint32_t)p->l.rank, step = (uint32_t)p->l.size, k, n;
	const uint8_t *mine = b->src + b->src_step * (size_t)(uint32_t)p->l.me;
	uint64_t v = 0, *to;
	int i, peer, ret = 0;
	size_t at = 0, first;

	do {
		n = b->len > at + p->most ? p->l.pitch / 2 : b->len > at ? (uint32_t)((b->len - at + 7) / 8) : 1;
		GDRI_NOT_UNROLLED
		for (i = 1; i < p->l.n && !ret; i++) {
			peer = gdri_ll_after(&p->l, i);
			to = gdri_ll_peer(&p->l, gdri_ll_mine(&p->l), peer);
			first = b->src_step * (size_t)(uint32_t)peer;
			GDRI_NOT_UNROLLED
			for (k = rank; k < n && !ret; k += step) {
				v = gdri_ll_load(b->src + first, at + (size_t)k * 8, b->len);
				if (gdri_likely(!p->err))
					gdri_ll_send(to, k, p->l.seq, v);
				ret = p->err;
			}
		}
		GDRI_NOT_UNROLLED
		for (k = rank; k < n && !ret; k += step) {
			v = gdri_ll_load(mine, at + (size_t)k * 8, b->len);
			ret = gdri_ll_fold(&p->l, b, p->l.area + 2 * (size_t)k, v, &v);
			if (!ret)
				gdri_ll_store(b->dst, at + (size_t)k * 8, b->len, v);
		}
		at += p->most;
		if (gdri_ll_ctas_syncs(p, b->len, at, 0) && gdri_scope_any(p->l.scope, ret != 0))
			break;
		ret = gdri_ll_ctas_next(p, ret);
	} while (at < b->len);
	return gdri_ll_ctas_end(p, ret);
}

/* ---- */

GDR_DEVICE int gdri_ll_ctas_call(struct gdri_ll_ctas *p, const struct gdri_request *q)
{
	size_t len = q->n * q->size, at, part = gdri_slice(p->block, p->blocks, len, &at);
	const uint8_t *src = (const uint8_t *)q->src + at;
	uint8_t *dst = (uint8_t *)q->dst + at;
	int root = q->what == GDRI_RQ_BROADCAST, me = p->l.me;

	if (root || q->what == GDRI_RQ_FCOLLECT || q->what == GDRI_RQ_ALLTOALL) {
		const struct gdri_ll_call b = {
			dst, src, root ? 0 : len, q->what == GDRI_RQ_ALLTOALL ? len : 0, part, 0, 0};

		return gdri_ll_ctas_move(p, &b, root ? q->coll.root : -1);
	} else {
		const struct gdri_ll_call b = {
			dst, src, 0, q->what == GDRI_RQ_REDUCESCATTER ? len : 0, part, q->coll.code,
			q->what == GDRI_RQ_EXSCAN ? me : q->what == GDRI_RQ_INSCAN ? me + 1 : p->l.n};

		return gdri_ll_ctas_sum(p, &b);
	}
}

#endif
