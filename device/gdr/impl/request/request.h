/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation as data: what a host thread asks for, on a stream or at once, and a kernel of the
 * library executes (exec.h). */
#ifndef GDRI_REQUEST_H
#define GDRI_REQUEST_H

#include <gdr/impl/arch/ops.h>
#include <gdr/macros.h>
#ifndef __CUDACC_RTC__ /* has no headers */
#include <string.h>
#endif

#define GDRI_REQUEST_NUMBER(request, number, prefix, rest, operation) GDRI_RQ_##request = number,
enum gdri_what {
	GDRI_REQUESTS_THREAD(GDRI_REQUEST_NUMBER)
	GDRI_RQ_BY_BLOCK = 12, /* those from here on: by a block, or many */
	GDRI_REQUESTS_BLOCK(GDRI_REQUEST_NUMBER)
	GDRI_RQ_COLLECTIVE = 17, /* those from here on: of a team */
	GDRI_REQUESTS_TEAM(GDRI_REQUEST_NUMBER)
	GDRI_RQ_END = 26,
};

/* op of a signal: GDR_SIGNAL_SET, for those who know no device.h */
enum { GDRI_SIGNAL_SETS = 0 };

enum gdri_by { GDRI_BY_THREAD = 0, GDRI_BY_BLOCK = 1, GDRI_BY_GRID = 2, GDRI_BY_CTAS = 3, GDRI_BY_NONE = 4 };

/* What became of a call that is waited for; its caller's memory, also that of a GPU. */
struct gdri_answer {
	int32_t status, rsvd;
	uint64_t value[2];
};

/* PUT, GET */
struct gdri_rq_transfer {
	uint32_t nbi; /* it need not be waited for */
};

/* SIGNAL; PUT_SIGNAL: after the data of dst and src */
struct gdri_rq_signal {
	uint64_t *word;
	uint64_t value;
	uint32_t op;  /* enum gdr_signal */
	uint32_t nbi; /* PUT_SIGNAL: it need not be waited for */
};

/* IPUT, IGET: elements from one to the next; n blocks of gdr/host_ops.h, or elements */
struct gdri_rq_strided {
	int64_t dst_step, src_step;
	uint64_t block; /* elements of a block; 0: there are none */
};

/* AMO, FETCH_AMO: on dst. src of FETCH_AMO by gdr/host_ops.h: where the old value goes by the next quiet; NULL: it is
 * waited for. */
struct gdri_rq_atomic {
	uint64_t operand, compare; /* bits */
	uint32_t kind; /* enum gdri_amo */
};

/* WAIT for several words by gdr/host_ops.h: which of them, and by which names it was called. Of ANY the call brings the
 * index, of SOME the number of the indices that it writes to dst: a size_t. */
enum gdri_words {
	GDRI_WORDS_ALL = 1,
	GDRI_WORDS_ANY = 2,
	GDRI_WORDS_SOME = 3,
	GDRI_WORDS_WHICH = 3, /* mask */
	GDRI_WORDS_VECTOR = 4,
	GDRI_WORDS_TEST = 8, /* it looks once */
};

/* WAIT: of n words, or of one where n is 0 */
struct gdri_rq_wait {
	const void *words;
	const int *skip;    /* [n] not 0: that word is not waited for; NULL: all are */
	const void *values; /* [n] to compare with; NULL: all with value */
	uint64_t value;
	uint32_t cmp; /* enum gdr_cmp */
	uint32_t is_signed;
	uint32_t from_pe; /* pe is who writes it; 0: any PE may */
	uint32_t set;	  /* enum gdri_words; 0: another call */
};

/* LOCK: dst; TEST brings 1 where it does not get it. */
enum gdri_lock_call { GDRI_LOCK_CALL_SET = 0, GDRI_LOCK_CALL_TEST = 1, GDRI_LOCK_CALL_CLEAR = 2 };
struct gdri_rq_lock {
	uint32_t call; /* enum gdri_lock_call */
};

/* BARRIER, SYNC: the team alone; and collectives */
struct gdri_rq_coll {
	int32_t team;
	int32_t root;  /* BROADCAST: its number in the team */
	uint32_t code; /* GDRI_REDUCE_CODE of reductions and scans */
	/* set by the library */
	uint32_t keep; /* GRID, REDUCE: each member has the results of its piece alone; copies follow */
	int64_t dst_step, src_step; /* ALLTOALLS: elements from one to the next */
	/* set by the library; GRID, PUSH: as in gdri_team */
	int32_t members, member, start, stride;
	uint64_t *words; /* grid, push */
	uint32_t ctas_size;
};

struct gdri_request {
	uint32_t what; /* enum gdri_what, which says what of the union there is */
	uint32_t by;   /* enum gdri_by: set by the library */
	uint32_t size; /* bytes of an element */
	int32_t pe;    /* that is addressed, or waited for; a call of a team has none */
	void *dst;
	const void *src;
	uint64_t n;		    /* elements */
	struct gdri_answer *answer; /* NULL: an error is latched */
	GDRI_UNNAMED union {
		uint64_t value[2]; /* P: its bits */
		struct gdri_rq_transfer transfer;
		struct gdri_rq_signal signal;
		struct gdri_rq_strided strided;
		struct gdri_rq_atomic atomic;
		struct gdri_rq_wait wait;
		struct gdri_rq_lock lock;
		struct gdri_rq_coll coll;
	};
};

/* A value's bytes as the low ones of 64 bits, and back. */
GDRI_INLINE uint64_t gdri_bits(const void *p, size_t size)
{
	uint64_t bits = 0;

	memcpy(&bits, p, size < 8 ? size : 8);
	return bits;
}

GDRI_INLINE void gdri_unbits(void *p, uint64_t bits, size_t size)
{
	memcpy(p, &bits, size < 8 ? size : 8);
}

/* Bytes that lie together in a strided transfer. */
GDRI_INLINE uint64_t gdri_request_piece(const struct gdri_request *q)
{
	return (q->strided.block ? q->strided.block : 1) * q->size;
}

/* Bytes of dest and source that a collective of a team of `members` touches at a PE; 0: more than
 * there can be. A collect's dest: what the own part takes at least. */
GDRI_INLINE int gdri_request_extent(const struct gdri_request *q, uint64_t members, uint64_t *dst,
				    uint64_t *src)
{
	uint64_t len = q->n * q->size, most = ~0ull >> 1, step;

	*dst = *src = 0;
	if (!q->n)
		return 1;
	if (q->n > most / q->size / members)
		return 0;
	*dst = *src = len;
	if (q->what == GDRI_RQ_FCOLLECT || q->what == GDRI_RQ_ALLTOALL)
		*dst = len * members;
	if (q->what == GDRI_RQ_ALLTOALL || q->what == GDRI_RQ_REDUCESCATTER)
		*src = len * members;
	if (q->what == GDRI_RQ_ALLTOALLS) {
		step = (uint64_t)(q->coll.dst_step > q->coll.src_step ? q->coll.dst_step : q->coll.src_step);
		if (q->coll.dst_step < 1 || q->coll.src_step < 1 || step > most / q->size / (q->n * members))
			return 0;
		*dst = ((q->n * members - 1) * (uint64_t)q->coll.dst_step + 1) * q->size;
		*src = ((q->n * members - 1) * (uint64_t)q->coll.src_step + 1) * q->size;
	}
	return 1;
}

/* Source and dest of len bytes, both of one PE, lie apart, or are one. */
GDRI_INLINE int gdri_request_apart(const void *dst, const void *src, uint64_t len)
{
	uint64_t d = (uint64_t)(uintptr_t)dst, s = (uint64_t)(uintptr_t)src;

	return d == s || (d > s ? d - s : s - d) >= len;
}

/* May dest and source of `dlen` and `slen` bytes lie as they do? (gdr/coll.h says which may overlap.) */
GDRI_INLINE int gdri_request_overlap(const struct gdri_request *q, uint64_t me, uint64_t dlen,
				     uint64_t slen)
{
	uint64_t d = (uint64_t)(uintptr_t)q->dst, s = (uint64_t)(uintptr_t)q->src;
	uint64_t len = q->n * q->size;

	if (d >= s + slen || s >= d + dlen)
		return 1;
	switch (q->what) {
	case GDRI_RQ_BROADCAST:
	case GDRI_RQ_REDUCE:
	case GDRI_RQ_INSCAN:
	case GDRI_RQ_EXSCAN:
		return d == s;
	case GDRI_RQ_FCOLLECT:
		return s == d + me * len;
	case GDRI_RQ_REDUCESCATTER:
		return d == s || d == s + me * len;
	default:
		return 0;
	}
}

#endif
