/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.h once more for GPUs all of whose PEs are mapped: accesses as wide as objects and lengths allow, 1 to 16
 * bytes, and all types and operations. A kernel that begins with cold caches takes as long as it has loads that wait
 * for each other, and code: what is to be known of the team stands in the request, thus in constant memory, and
 * nothing points to a struct.
 *
 * There is one loop over accesses. It is compiled twice: for any width and operation, with a switch around a row of
 * accesses, out of line; and with 16 bytes as a constant, for moving in the kernel itself, and for each of the sums
 * that are mostly asked. */
#ifndef GDRI_ALIGNED_H
#define GDRI_ALIGNED_H

#include <gdr/impl/coll/direct/grid.h>
#include <gdr/impl/coll/reduce_words.h>

/* 0: there is none of this type and operation. */
GDR_DEVICE int gdri_aligned_sums(uint32_t code)
{
	code = gdri_reduce_fold(code);
	return code == GDRI_REDUCE_CODE(float, GDRI_SUM) || code == GDRI_REDUCE_CODE(double, GDRI_SUM) ||
	       code == GDRI_REDUCE_CODE(uint32_t, GDRI_SUM) || code == GDRI_CODE_half(GDRI_SUM) ||
	       code == GDRI_CODE_bfloat16(GDRI_SUM);
}

/* Decides alike on all members. */
GDR_DEVICE int gdri_aligned_fits(const struct gdri_request *q)
{
	size_t len = q->n * q->size;

	if (((uintptr_t)q->dst | (uintptr_t)q->src | len) & 15 || len >> 34)
		return 0;
	return q->what == GDRI_RQ_REDUCE || q->what == GDRI_RQ_REDUCESCATTER
		       ? gdri_aligned_sums(q->coll.code)
		       : q->what == GDRI_RQ_BROADCAST || q->what == GDRI_RQ_FCOLLECT || q->what == GDRI_RQ_ALLTOALL;
}

/* Rows of 16 bytes of each of so many pieces, but for the last ones: whole lines. */
GDRI_INLINE uint32_t gdri_aligned_each(uint32_t rows, uint32_t pieces)
{
	return ((rows + pieces - 1) / pieces + 7) & ~7u;
}

#ifdef __CUDACC__

#define GDRI_ACCESS_WORDS 8 /* of 8 bytes: what a thread has under way */

#ifdef GDR_ANY_ADDRESS
/* How far dest and source of each member are from the own ones: looked up once a call. An access that looks for itself
 * loads four times, each behind the other, and a row has one for each member. */
struct gdri_aligned_far {
	uint64_t len; /* of dest */
	int64_t dst[GDRI_FLAT_MAX], src[GDRI_FLAT_MAX];
};
static __shared__ struct gdri_aligned_far gdri_aligned_far;

/* All threads; seen behind the next sync of the block. */
GDR_DEVICE void gdri_aligned_look(const struct gdri_request *q)
{
	int i = (int)threadIdx.x, pe = q->coll.start + i * q->coll.stride;
	uint64_t dst, src;

	if (!i && gdri_request_extent(q, (uint64_t)q->coll.members, &dst, &src))
		gdri_aligned_far.len = dst;
	if (i >= q->coll.members)
		return;
	gdri_aligned_far.dst[i] = gdri_direct_at(q->dst, pe) - (uint8_t *)q->dst;
	gdri_aligned_far.src[i] = gdri_direct_at(q->src, pe) - (const uint8_t *)q->src;
}

/* ptr: a place in dest or source, in which nothing but an access of no bytes begins at the end. */
GDR_DEVICE uint8_t *gdri_aligned_at(const struct gdri_request *q, const void *ptr, int member)
{
	uint64_t at = (uint64_t)((const uint8_t *)ptr - (const uint8_t *)q->dst);
	uint8_t *p = (uint8_t *)ptr + (at < gdri_aligned_far.len ? gdri_aligned_far.dst : gdri_aligned_far.src)[member];

	__builtin_assume(__isGlobal(p)); /* as in gdri_direct_at */
	return p;
}
#else
#define gdri_aligned_look(q) ((void)0)

GDR_DEVICE uint8_t *gdri_aligned_at(const struct gdri_request *q, const void *ptr, int member)
{
	return gdri_direct_at(ptr, q->coll.start + member * q->coll.stride);
}
#endif

/* First thread: what was not over soon, or the team's status from before. */
GDRI_NOINLINE int gdri_aligned_late(struct gdri_team *t, uint32_t op, const uint64_t *words, uint64_t epoch,
				 int err)
{
	struct gdri_coll c = gdri_coll_of(t, GDRI_BLOCK, op);
	uint32_t none = 0;

	GDRI_BY_ABI(gdri_aligned_late);
	if (!err)
		err = gdri_cta_wait(&c, words, epoch);
	if (err) /* carries no data: pairs with nothing */
		gdri_cas_u32((uint32_t *)&t->err, &none, (uint32_t)err);
	return err;
}

/* The blocks of this number of all members, as in gdri_grid_barrier; err: what a thread knows by itself. */
GDR_DEVICE int gdri_aligned_barrier(const struct gdri_request *q, uint64_t *words, uint64_t epoch, int err,
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
		late = gdri_aligned_late(gdri_constants_here.teams + q->coll.team, op, words, epoch, err);
	return gdri_block_bcast(late);
}

struct gdri_access {
	uint32_t first, apart, end; /* a thread's accesses: every `apart`th, those below `end` */
	uint32_t width;		    /* bytes of each: 1, 2, 4, 8, 16 */
	uint32_t rows;		    /* at a time */
};

GDR_DEVICE uint32_t gdri_access_first(void)
{
	return blockIdx.x * blockDim.x + threadIdx.x;
}

/* The widest accesses that all of these are multiples of. Short ones: 16 bytes at a time, longer ones 64. */
GDR_DEVICE struct gdri_access gdri_access_of(uint64_t at, size_t len)
{
	uint32_t low = (uint32_t)at | 16, width = low & (0 - low);
	struct gdri_access a = {gdri_access_first(), gridDim.x * blockDim.x, (uint32_t)(len / width), width,
			     (width < 4 ? 16 : 64) / width};

	return a;
}

/* The registers that access k is in are known when this is compiled; those of accesses behind the end stay 0. */
#define GDRI_ACCESS_ROWS(T, count, then)                                                              \
	GDRI_UNROLLED                                                                              \
	for (uint32_t k = 0; k < (count); k++)                                                     \
		if (at + k * a.apart < a.end) {                                                    \
			T *p = (T *)base + (at + k * a.apart);                                     \
			then;                                                                      \
		}
#define GDRI_ACCESS_SHIFT(T) (k * sizeof(T) % 8 * 8)
#define GDRI_ACCESS_GET(T, count)                                                                     \
	GDRI_ACCESS_ROWS(const T, count, v[k * sizeof(T) / 8] |= (uint64_t)*p << GDRI_ACCESS_SHIFT(T))
#define GDRI_ACCESS_PUT(T, count)                                                                     \
	GDRI_ACCESS_ROWS(T, count, *p = (T)(v[k * sizeof(T) / 8] >> GDRI_ACCESS_SHIFT(T)))

GDR_DEVICE void gdri_access_load(struct gdri_access a, const uint8_t *base, uint32_t at,
				 uint64_t (&v)[GDRI_ACCESS_WORDS])
{
	GDRI_UNROLLED
	for (int i = 0; i < GDRI_ACCESS_WORDS; i++)
		v[i] = 0;
	switch (a.width) {
	case 16:
		GDRI_ACCESS_ROWS(const ulonglong2, 4, ulonglong2 x = *p; v[2 * k] = x.x; v[2 * k + 1] = x.y)
		break;
	case 8:
		GDRI_ACCESS_GET(uint64_t, 8)
		break;
	case 4:
		GDRI_ACCESS_GET(uint32_t, 16)
		break;
	case 2:
		GDRI_ACCESS_GET(uint16_t, 8)
		break;
	default:
		GDRI_ACCESS_GET(uint8_t, 16)
		break;
	}
}

GDR_DEVICE void gdri_access_store(struct gdri_access a, uint8_t *base, uint32_t at,
				  const uint64_t (&v)[GDRI_ACCESS_WORDS])
{
	switch (a.width) {
	case 16:
		GDRI_ACCESS_ROWS(ulonglong2, 4, *p = make_ulonglong2(v[2 * k], v[2 * k + 1]))
		break;
	case 8:
		GDRI_ACCESS_PUT(uint64_t, 8)
		break;
	case 4:
		GDRI_ACCESS_PUT(uint32_t, 16)
		break;
	case 2:
		GDRI_ACCESS_PUT(uint16_t, 8)
		break;
	default:
		GDRI_ACCESS_PUT(uint8_t, 16)
		break;
	}
}
#undef GDRI_ACCESS_GET
#undef GDRI_ACCESS_PUT

/* What goes where: those of members lo..hi - 1 (none: zeroes) from src to one's own dst, and to all others' but this
 * one's (-1: to all; one's own number: to no other). */
struct gdri_access_how {
	uint32_t code;
	int lo, hi, to_all, but;
	uint64_t *epoch; /* of the latest meeting, of which each round has one between (in place, below); else NULL */
};

/* Added up in the members' order. src may be dst: a thread reads what it writes, before. With meetings between: all
 * threads of the block, alike on all members. */
GDR_DEVICE int gdri_access_move_as(const struct gdri_request *q, struct gdri_access a, struct gdri_access_how how,
				uint8_t *dst, const uint8_t *src)
{
	uint64_t acc[GDRI_ACCESS_WORDS] = {0}, x[GDRI_ACCESS_WORDS];
	uint32_t at, all = how.epoch ? a.first : 0; /* who meets makes all rounds, if with nothing in the last one */
	int i, to, ret, n = q->coll.members;

	GDRI_NOT_UNROLLED
	for (at = a.first; at - all < a.end; at += a.rows * a.apart) {
		if (how.hi > how.lo)
			gdri_access_load(a, gdri_aligned_at(q, src, how.lo), at, acc);
		GDRI_NOT_UNROLLED
		for (i = how.lo + 1; i < how.hi; i++) {
			gdri_access_load(a, gdri_aligned_at(q, src, i), at, x);
			gdri_reduce_words(how.code, acc, x);
		}
		if (how.epoch) {
			ret = gdri_aligned_barrier(q, q->coll.words + (size_t)blockIdx.x * GDRI_FLAT_MAX,
						   ++*how.epoch, 0,
						   q->what == GDRI_RQ_REDUCESCATTER ? GDRI_REDUCESCATTER : GDRI_SCAN);
			if (gdri_unlikely(ret))
				return ret;
		}
		GDRI_NOT_UNROLLED
		for (i = how.to_all ? 1 : n; i <= n; i++) {
			to = q->coll.member + i < n ? q->coll.member + i : q->coll.member + i - n;
			if (to != how.but)
				gdri_access_store(a, gdri_aligned_at(q, dst, to), at, acc);
		}
	}
	return 0;
}

GDRI_NOINLINE int gdri_access_move(const struct gdri_request *q, struct gdri_access a, struct gdri_access_how how,
				uint8_t *dst, const uint8_t *src)
{
	return gdri_access_move_as(q, a, how, dst, src);
}

/* wide (a constant): accesses of 16 bytes. */
GDR_DEVICE int gdri_access_do(const struct gdri_request *q, struct gdri_access a, struct gdri_access_how how,
			      uint8_t *dst, const uint8_t *src, int wide)
{
	if (!wide)
		return gdri_access_move(q, a, how, dst, src);
	a.width = 16;
	a.rows = 4;
	return gdri_access_move_as(q, a, how, dst, src);
}

#define GDRI_ALIGNED_SUM(name, of)                                                                 \
	GDRI_NOINLINE int gdri_aligned_##name(const struct gdri_request *q, struct gdri_access a,     \
					      struct gdri_access_how how, uint8_t *dst, const uint8_t *src) \
	{                                                                                          \
		how.code = of;                                                                     \
		how.lo = 0;                                                                        \
		how.but = -1;                                                                      \
		how.epoch = 0;                                                                     \
		return gdri_access_do(q, a, how, dst, src, 1);                                        \
	}
GDRI_ALIGNED_SUM(float, GDRI_REDUCE_CODE(float, GDRI_SUM))
GDRI_ALIGNED_SUM(double, GDRI_REDUCE_CODE(double, GDRI_SUM))
GDRI_ALIGNED_SUM(uint32, GDRI_REDUCE_CODE(uint32_t, GDRI_SUM))
GDRI_ALIGNED_SUM(half, GDRI_CODE_half(GDRI_SUM))
GDRI_ALIGNED_SUM(bfloat16, GDRI_CODE_bfloat16(GDRI_SUM))

/* Of one of gdri_aligned_sums. */
GDR_DEVICE int gdri_aligned_sum(const struct gdri_request *q, struct gdri_access a, struct gdri_access_how how,
				uint8_t *dst, const uint8_t *src)
{
	uint32_t code = gdri_reduce_fold(how.code);

	if (code == GDRI_REDUCE_CODE(float, GDRI_SUM))
		return gdri_aligned_float(q, a, how, dst, src);
	if (code == GDRI_CODE_bfloat16(GDRI_SUM))
		return gdri_aligned_bfloat16(q, a, how, dst, src);
	if (code == GDRI_CODE_half(GDRI_SUM))
		return gdri_aligned_half(q, a, how, dst, src);
	if (code == GDRI_REDUCE_CODE(double, GDRI_SUM))
		return gdri_aligned_double(q, a, how, dst, src);
	return gdri_aligned_uint32(q, a, how, dst, src);
}

/* The piece of this number out of `pieces`, whole lines of accesses: its first one, relative to which the others
 * are. */
GDR_DEVICE uint32_t gdri_access_piece(struct gdri_access *a, uint32_t pieces, uint32_t i)
{
	uint32_t each = gdri_aligned_each(a->end, pieces), begin = each * i;

	a->end = begin >= a->end ? 0 : a->end - begin < each ? a->end - begin : each;
	return begin;
}

/* Of len bytes what is left behind accesses of `width`: fewer, by the last threads, which have the least to do. */
GDR_DEVICE int gdri_access_tail(const struct gdri_request *q, struct gdri_access_how how, uint32_t width, size_t len)
{
	uint32_t left = (uint32_t)(len & (width - 1)), all = gridDim.x * blockDim.x;
	size_t at = len - left;
	struct gdri_access a = {all - 1 - gdri_access_first(), all, left / q->size, q->size, 1};

	if (!how.epoch && a.first >= a.end)
		return 0;
	return gdri_access_move(q, a, how, (uint8_t *)q->dst + at, (const uint8_t *)q->src + at);
}

/* Each takes all of it from the root, or, where blocks are many and members more than two, a piece, which it gives to
 * the others too. */
GDR_DEVICE void gdri_access_broadcast(const struct gdri_request *q, size_t len, int wide)
{
	int me = q->coll.member, n = q->coll.members, root = q->coll.root;
	struct gdri_access a = gdri_access_of(wide ? 0 : (uint64_t)q->dst | (uint64_t)q->src, len);
	struct gdri_access_how how = {0, root, root + 1, 0, -1, 0};
	size_t at = 0;

	if (me == root && q->dst == q->src)
		return;
	if (!wide)
		gdri_access_tail(q, how, a.width, len);
	if (n > 2 && me != root && gridDim.x > GDRI_GRID_PULLS) {
		at = (size_t)gdri_access_piece(&a, (uint32_t)n - 1, (uint32_t)(me < root ? me : me - 1)) * a.width;
		how.to_all = 1;
		how.but = root;
	}
	gdri_access_do(q, a, how, (uint8_t *)q->dst + at, (const uint8_t *)q->src + at, wide);
}

/* A block of len bytes to each, from src + step * its number; to oneself last. */
GDR_DEVICE void gdri_access_spread(const struct gdri_request *q, size_t len, size_t step, int wide)
{
	const uint8_t *dst = (const uint8_t *)q->dst + len * (uint32_t)q->coll.member, *src;
	struct gdri_access a = gdri_access_of(wide ? 0 : (uint64_t)dst | (uint64_t)q->src | len, len);
	struct gdri_access_how own = {0, q->coll.member, q->coll.member + 1, 0, -1, 0};
	int to;

	GDRI_NOT_UNROLLED
	for (int i = 1; i <= q->coll.members; i++) {
		to = q->coll.member + i < q->coll.members ? q->coll.member + i : q->coll.member + i - q->coll.members;
		src = (const uint8_t *)q->src + step * (uint32_t)to;
		if (gdri_aligned_at(q, dst, to) != src)
			gdri_access_do(q, a, own, gdri_aligned_at(q, dst, to), src, wide);
	}
}

/* epoch: as in gdri_access_how. */
GDR_DEVICE int gdri_access_sum(const struct gdri_request *q, size_t len, uint64_t *epoch, int wide)
{
	int me = q->coll.member, n = q->coll.members, to_all = q->what == GDRI_RQ_REDUCE;
	size_t blocks = q->what == GDRI_RQ_REDUCESCATTER ? len : 0, at = 0;
	struct gdri_access a = gdri_access_of(wide ? 0 : (uint64_t)q->dst | (uint64_t)q->src | blocks, len);
	struct gdri_access_how how = {q->coll.code, 0, q->what == GDRI_RQ_EXSCAN  ? me
					       : q->what == GDRI_RQ_INSCAN ? me + 1
									   : n, to_all, -1, epoch};
	const uint8_t *src = (const uint8_t *)q->src + blocks * (uint32_t)me;
	int ret = 0;

	if (!wide && (!to_all || me == n - 1))
		ret = gdri_access_tail(q, how, a.width, len); /* none, where there are blocks */
	if (to_all)
		at = (size_t)gdri_access_piece(&a, (uint32_t)n, (uint32_t)me) * a.width;
	if (ret || !wide)
		return ret ? ret : gdri_access_move(q, a, how, (uint8_t *)q->dst + at, src + at);
	how.to_all = to_all && !q->coll.keep;
	return gdri_aligned_sum(q, a, how, (uint8_t *)q->dst + at, src + at);
}

/* ---- */

/* Decides alike on all members. Pairs, whose elements are longer than a word, are reckoned with elsewhere. */
GDR_DEVICE int gdri_access_fits(const struct gdri_request *q)
{
	size_t len = q->n * q->size, low = (uint64_t)q->dst | (uint64_t)q->src | len | 16;

	if (len >> 29 >= (low & (0 - low)) || q->what == GDRI_RQ_ALLTOALLS)
		return 0; /* accesses are counted by 32 bits */
	return q->size <= 8 || q->what == GDRI_RQ_BROADCAST || q->what == GDRI_RQ_FCOLLECT ||
	       q->what == GDRI_RQ_ALLTOALL;
}

GDR_DEVICE void gdri_access_work(const struct gdri_request *q, int wide)
{
	size_t len = q->n * q->size;

	if (q->what == GDRI_RQ_BROADCAST)
		gdri_access_broadcast(q, len, wide);
	else if (q->what == GDRI_RQ_FCOLLECT || q->what == GDRI_RQ_ALLTOALL)
		gdri_access_spread(q, len, q->what == GDRI_RQ_ALLTOALL ? len : 0, wide);
	else
		gdri_access_sum(q, len, 0, wide);
}

/* What gdri_grid_between says: scans and reducescatters whose results lie where others read. Each round has a meeting
 * between its loads and its stores; behind the last one nobody reads any more. */
GDRI_NOINLINE int gdri_aligned_in_place(const struct gdri_request *q, uint32_t op)
{
	uint64_t *words = q->coll.words + (size_t)blockIdx.x * GDRI_FLAT_MAX, epoch = 0;
	int err = 0, ret;

	gdri_aligned_look(q);
	if ((int)threadIdx.x < q->coll.members) /* pairs with nothing, as in gdri_aligned_call */
		epoch = gdri_ld_relaxed_gpu_u64(&words[q->coll.member]);
	if (!threadIdx.x)
		err = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&gdri_constants_here.teams[q->coll.team].err);
	ret = gdri_aligned_barrier(q, words, ++epoch, err, op);
	if (!ret)
		ret = gdri_access_sum(q, q->n * q->size, &epoch, 0);
	if (!ret && !threadIdx.x) /* read by the next call */
		gdri_st_relaxed_gpu_u64(&words[q->coll.member], epoch);
	return ret;
}

/* All threads of one of the blocks, with a request that gdri_aligned_fits or gdri_access_fits. */
GDR_DEVICE int gdri_aligned_call(const struct gdri_request *q, uint32_t op)
{
	uint64_t *words = q->coll.words + (size_t)blockIdx.x * GDRI_FLAT_MAX, epoch = 0;
	int err = 0, ret;

	gdri_aligned_look(q);
	if ((int)threadIdx.x < q->coll.members) /* pairs with nothing: calls of a team are behind each other */
		epoch = gdri_ld_relaxed_gpu_u64(&words[q->coll.member]);
	/* Another block of this call may set it amid the loads: the thread that returns it decides for the block. */
	if (!threadIdx.x)
		err = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&gdri_constants_here.teams[q->coll.team].err);
	ret = gdri_aligned_barrier(q, words, epoch + 1, err, op);
	if (gdri_unlikely(ret))
		return ret;
	if (gdri_aligned_fits(q))
		gdri_access_work(q, 1);
	else
		gdri_access_work(q, 0);
	ret = gdri_aligned_barrier(q, words, epoch + 2, 0, op);
	if (!ret && !threadIdx.x) /* read by the next call */
		gdri_st_relaxed_gpu_u64(&words[q->coll.member], epoch + 2);
	return ret;
}

#endif

#endif
