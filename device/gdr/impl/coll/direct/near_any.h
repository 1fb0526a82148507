/* SPDX-License-Identifier: BSD-3-Clause */
/* near.h for all else: any type and operation, scans, objects and lengths that are no multiples of 16 bytes. One
 * function for all types, and of each thing that it does one loop: accesses of 1 to 16 bytes fill the same registers,
 * and a switch around a row of them reckons. */
#ifndef GDRI_NEAR_ANY_H
#define GDRI_NEAR_ANY_H

#include <gdr/impl/coll/direct/grid.h>
#include <gdr/impl/coll/reduce_words.h>

#ifdef __CUDACC__

#define GDRI_ANY_WORDS 8 /* of 8 bytes: what a thread has under way */

#ifdef GDR_ANY_ADDRESS
/* How far dest and source of each member are from the own ones: looked up once a call. An access that looks for itself
 * loads four times, each behind the other, and a row has one for each member. */
struct gdri_near_far {
	uint64_t len; /* of dest */
	int64_t dst[GDRI_FLAT_MAX], src[GDRI_FLAT_MAX];
};
static __shared__ struct gdri_near_far gdri_near_far;

/* All threads; seen behind the next sync of the block. */
GDR_DEVICE void gdri_near_look(const struct gdri_request *q)
{
	int i = (int)threadIdx.x, pe = q->coll.start + i * q->coll.stride;
	uint64_t dst, src;

	if (!i && gdri_request_extent(q, (uint64_t)q->coll.members, &dst, &src))
		gdri_near_far.len = dst;
	if (i >= q->coll.members)
		return;
	gdri_near_far.dst[i] = gdri_direct_at(q->dst, pe) - (uint8_t *)q->dst;
	gdri_near_far.src[i] = gdri_direct_at(q->src, pe) - (const uint8_t *)q->src;
}

/* ptr: a place in dest or source, in which nothing but an access of no bytes begins at the end. */
GDR_DEVICE uint8_t *gdri_near_at(const struct gdri_request *q, const void *ptr, int member)
{
	uint64_t at = (uint64_t)((const uint8_t *)ptr - (const uint8_t *)q->dst);
	uint8_t *p = (uint8_t *)ptr + (at < gdri_near_far.len ? gdri_near_far.dst : gdri_near_far.src)[member];

	__builtin_assume(__isGlobal(p)); /* as in gdri_direct_at */
	return p;
}
#else
#define gdri_near_look(q) ((void)0)

GDR_DEVICE uint8_t *gdri_near_at(const struct gdri_request *q, const void *ptr, int member)
{
	return gdri_direct_at(ptr, q->coll.start + member * q->coll.stride);
}
#endif

/* First thread: what was not over soon, or the team's status from before. */
GDRI_NOINLINE int gdri_near_late(struct gdri_team *t, uint32_t op, const uint64_t *words, uint64_t epoch,
				 int err)
{
	struct gdri_coll c = {gdri_dev(), t, GDRI_BLOCK, op, GDRI_V_TEAM, t->n, t->me, 0, 0};
	uint32_t none = 0;

	GDRI_BY_ABI(gdri_near_late);
	if (!err)
		err = gdri_cta_wait(&c, words, epoch);
	if (err) /* carries no data: pairs with nothing */
		gdri_cas_u32((uint32_t *)&t->err, &none, (uint32_t)err);
	return err;
}

/* The blocks of this number of all members, as in gdri_grid_meet; err: what a thread knows by itself. */
GDR_DEVICE int gdri_near_meet(const struct gdri_request *q, uint64_t *words, uint64_t epoch, int err,
			      uint32_t op)
{
	int i = (int)threadIdx.x, late = err;
	/* What the block stored: before the release of who tells. Nobody tells where one thread knows of an error: a
	 * member that heard of a call that has ended would go on to store here. */
	int stop = __syncthreads_or(err);

	if (i < q->coll.members && i != q->coll.member && !stop) {
		gdri_fence_release_sys();
		/* with the fence it pairs with the acquire below, at the member */
		gdri_st_fenced_u64((uint64_t *)gdri_direct_at(&words[q->coll.member],
							      q->coll.start + i * q->coll.stride), epoch);
		late = !gdri_spin(&words[i], 8, 0, GDR_CMP_GE, epoch);
		gdri_fence_acquire_sys(); /* makes the loads acquires; the sync of the block passes that on */
	}
	if (gdri_likely(!__syncthreads_or(late)))
		return 0;
	if (!i)
		late = gdri_near_late(gdri_constants_here.teams + q->coll.team, op, words, epoch, err);
	return gdri_block_bcast(late);
}

struct gdri_any {
	uint32_t first, apart, end; /* a thread's accesses: every `apart`th, those below `end` */
	uint32_t width;		    /* bytes of each: 1, 2, 4, 8, 16 */
	uint32_t rows;		    /* at a time */
};

GDR_DEVICE uint32_t gdri_any_first(void)
{
	return blockIdx.x * blockDim.x + threadIdx.x;
}

/* The widest accesses that all of these are multiples of. Short ones: 16 bytes at a time, longer ones 64. */
GDR_DEVICE struct gdri_any gdri_any_of(uint64_t at, size_t len)
{
	uint32_t low = (uint32_t)at | 16, width = low & (0 - low);
	struct gdri_any a = {gdri_any_first(), gridDim.x * blockDim.x, (uint32_t)(len / width), width,
			     (width < 4 ? 16 : 64) / width};

	return a;
}

/* The registers that access k is in are known when this is compiled; those of accesses behind the end stay 0. */
#define GDRI_ANY_ROWS(T, count, then)                                                              \
	GDRI_UNROLLED                                                                              \
	for (uint32_t k = 0; k < (count); k++)                                                     \
		if (at + k * a.apart < a.end) {                                                    \
			T *p = (T *)base + (at + k * a.apart);                                     \
			then;                                                                      \
		}
#define GDRI_ANY_SHIFT(T) (k * sizeof(T) % 8 * 8)
#define GDRI_ANY_GET(T, count)                                                                     \
	GDRI_ANY_ROWS(const T, count, v[k * sizeof(T) / 8] |= (uint64_t)*p << GDRI_ANY_SHIFT(T))
#define GDRI_ANY_PUT(T, count)                                                                     \
	GDRI_ANY_ROWS(T, count, *p = (T)(v[k * sizeof(T) / 8] >> GDRI_ANY_SHIFT(T)))

GDR_DEVICE void gdri_any_load(struct gdri_any a, const uint8_t *base, uint32_t at, uint64_t (&v)[GDRI_ANY_WORDS])
{
	GDRI_UNROLLED
	for (int i = 0; i < GDRI_ANY_WORDS; i++)
		v[i] = 0;
	switch (a.width) {
	case 16:
		GDRI_ANY_ROWS(const ulonglong2, 4, ulonglong2 x = *p; v[2 * k] = x.x; v[2 * k + 1] = x.y)
		break;
	case 8:
		GDRI_ANY_GET(uint64_t, 8)
		break;
	case 4:
		GDRI_ANY_GET(uint32_t, 16)
		break;
	case 2:
		GDRI_ANY_GET(uint16_t, 8)
		break;
	default:
		GDRI_ANY_GET(uint8_t, 16)
		break;
	}
}

GDR_DEVICE void gdri_any_store(struct gdri_any a, uint8_t *base, uint32_t at, const uint64_t (&v)[GDRI_ANY_WORDS])
{
	switch (a.width) {
	case 16:
		GDRI_ANY_ROWS(ulonglong2, 4, *p = make_ulonglong2(v[2 * k], v[2 * k + 1]))
		break;
	case 8:
		GDRI_ANY_PUT(uint64_t, 8)
		break;
	case 4:
		GDRI_ANY_PUT(uint32_t, 16)
		break;
	case 2:
		GDRI_ANY_PUT(uint16_t, 8)
		break;
	default:
		GDRI_ANY_PUT(uint8_t, 16)
		break;
	}
}
#undef GDRI_ANY_GET
#undef GDRI_ANY_PUT

/* What goes where: those of members lo..hi - 1 (none: zeroes) from src to one's own dst, and to all others' but this
 * one's (-1: to all; one's own number: to no other). */
struct gdri_any_how {
	uint32_t code;
	int lo, hi, to_all, but;
	uint64_t *epoch; /* of the latest meeting, of which each round has one between (near.h, in place); else NULL */
};

/* Added up in the members' order. src may be dst: a thread reads what it writes, before. With meetings between: all
 * threads of the block, alike on all members. */
GDRI_NOINLINE int gdri_any_move(const struct gdri_request *q, struct gdri_any a, struct gdri_any_how how,
				uint8_t *dst, const uint8_t *src)
{
	uint64_t acc[GDRI_ANY_WORDS] = {0}, x[GDRI_ANY_WORDS];
	uint32_t at, all = how.epoch ? a.first : 0; /* who meets makes all rounds, if with nothing in the last one */
	int i, to, ret, n = q->coll.members;

	GDRI_NOT_UNROLLED
	for (at = a.first; at - all < a.end; at += a.rows * a.apart) {
		if (how.hi > how.lo)
			gdri_any_load(a, gdri_near_at(q, src, how.lo), at, acc);
		GDRI_NOT_UNROLLED
		for (i = how.lo + 1; i < how.hi; i++) {
			gdri_any_load(a, gdri_near_at(q, src, i), at, x);
			gdri_reduce_words(how.code, acc, x);
		}
		if (how.epoch) {
			ret = gdri_near_meet(q, q->coll.words + (size_t)blockIdx.x * GDRI_FLAT_MAX, ++*how.epoch, 0,
					     q->what == GDRI_RQ_REDUCESCATTER ? GDRI_REDUCESCATTER : GDRI_SCAN);
			if (gdri_unlikely(ret))
				return ret;
		}
		GDRI_NOT_UNROLLED
		for (i = how.to_all ? 1 : n; i <= n; i++) {
			to = q->coll.member + i < n ? q->coll.member + i : q->coll.member + i - n;
			if (to != how.but)
				gdri_any_store(a, gdri_near_at(q, dst, to), at, acc);
		}
	}
	return 0;
}

/* The piece of this number out of `pieces`: its first access, relative to which the others are. */
GDR_DEVICE uint32_t gdri_any_piece(struct gdri_any *a, uint32_t pieces, uint32_t i)
{
	uint32_t each = (a->end + pieces - 1) / pieces, begin = each * i;

	a->end = begin >= a->end ? 0 : a->end - begin < each ? a->end - begin : each;
	return begin;
}

/* Of len bytes what is left behind accesses of `width`: fewer, by the last threads, which have the least to do. */
GDR_DEVICE int gdri_any_tail(const struct gdri_request *q, struct gdri_any_how how, uint32_t width, size_t len)
{
	uint32_t left = (uint32_t)(len & (width - 1)), all = gridDim.x * blockDim.x;
	size_t at = len - left;
	struct gdri_any a = {all - 1 - gdri_any_first(), all, left / q->size, q->size, 1};

	if (!how.epoch && a.first >= a.end)
		return 0;
	return gdri_any_move(q, a, how, (uint8_t *)q->dst + at, (const uint8_t *)q->src + at);
}

GDR_DEVICE void gdri_any_broadcast(const struct gdri_request *q, size_t len)
{
	int me = q->coll.member, n = q->coll.members, root = q->coll.root;
	struct gdri_any a = gdri_any_of((uint64_t)q->dst | (uint64_t)q->src, len);
	struct gdri_any_how how = {0, root, root + 1, 0, -1, 0};

	gdri_any_tail(q, how, a.width, len);
	if (n > 2 && me != root && gridDim.x > GDRI_GRID_PULLS) { /* a piece, which the others are given, too */
		size_t at = (size_t)gdri_any_piece(&a, (uint32_t)n - 1, (uint32_t)(me < root ? me : me - 1)) * a.width;

		how.to_all = 1;
		how.but = root;
		gdri_any_move(q, a, how, (uint8_t *)q->dst + at, (const uint8_t *)q->src + at);
		return;
	}
	gdri_any_move(q, a, how, (uint8_t *)q->dst, (const uint8_t *)q->src);
}

/* A block of len bytes to each, from src + step * its number; to oneself last. */
GDR_DEVICE void gdri_any_spread(const struct gdri_request *q, size_t len, size_t step)
{
	const uint8_t *dst = (const uint8_t *)q->dst + len * (uint32_t)q->coll.member, *src;
	struct gdri_any a = gdri_any_of((uint64_t)dst | (uint64_t)q->src | len, len);
	struct gdri_any_how own = {0, q->coll.member, q->coll.member + 1, 0, -1, 0};
	int i, to;

	GDRI_NOT_UNROLLED
	for (i = 1; i <= q->coll.members; i++) {
		to = q->coll.member + i < q->coll.members ? q->coll.member + i : q->coll.member + i - q->coll.members;
		src = (const uint8_t *)q->src + step * (uint32_t)to;
		if (gdri_near_at(q, dst, to) != src)
			gdri_any_move(q, a, own, gdri_near_at(q, dst, to), src);
	}
}

/* epoch: as in gdri_any_how. */
GDR_DEVICE int gdri_any_sum(const struct gdri_request *q, size_t len, uint64_t *epoch)
{
	int me = q->coll.member, n = q->coll.members, to_all = q->what == GDRI_RQ_REDUCE;
	size_t blocks = q->what == GDRI_RQ_REDUCESCATTER ? len : 0, block = blocks * (uint32_t)me, at = 0;
	struct gdri_any a = gdri_any_of((uint64_t)q->dst | (uint64_t)q->src | blocks, len);
	struct gdri_any_how how = {q->coll.code, 0, q->what == GDRI_RQ_EXSCAN  ? me
					       : q->what == GDRI_RQ_INSCAN ? me + 1
									   : n, to_all, -1, epoch};
	int ret = 0;

	if (!to_all || me == n - 1)
		ret = gdri_any_tail(q, how, a.width, len); /* none, where there are blocks */
	if (to_all)
		at = (size_t)gdri_any_piece(&a, (uint32_t)n, (uint32_t)me) * a.width;
	return ret ? ret : gdri_any_move(q, a, how, (uint8_t *)q->dst + at, (const uint8_t *)q->src + block + at);
}

/* ---- */

/* Decides alike on all members. Pairs, whose elements are longer than a word, are reckoned with elsewhere. */
GDR_DEVICE int gdri_any_fits(const struct gdri_request *q)
{
	size_t len = q->n * q->size, low = (uint64_t)q->dst | (uint64_t)q->src | len | 16;

	if (len >> 29 >= (low & (0 - low)) || q->what == GDRI_RQ_ALLTOALLS)
		return 0; /* accesses are counted by 32 bits */
	return q->size <= 8 || q->what == GDRI_RQ_BROADCAST || q->what == GDRI_RQ_FCOLLECT ||
	       q->what == GDRI_RQ_ALLTOALL;
}

GDR_DEVICE void gdri_any_work(const struct gdri_request *q)
{
	size_t len = q->n * q->size;

	if (q->what == GDRI_RQ_BROADCAST)
		gdri_any_broadcast(q, len);
	else if (q->what == GDRI_RQ_FCOLLECT)
		gdri_any_spread(q, len, 0);
	else if (q->what == GDRI_RQ_ALLTOALL)
		gdri_any_spread(q, len, len);
	else
		gdri_any_sum(q, len, 0);
}

#endif

#endif
