/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of collectives share. */
#ifndef TESTS_MULTI_COLL_H
#define TESTS_MULTI_COLL_H

#include "tests/multi/multi.h"

#define COLL_MAX_PES 18
#ifndef COLL_AREA
#define COLL_AREA (128u * 1024u)
#endif

enum { SUM, PROD, MIN, MAX, AND, OR, XOR, OPS };
/* In place: from INSCAN on dst may be src. */
enum {
	BROADCAST,
	COLLECT,
	FCOLLECT,
	ALLTOALL,
	ALLTOALLS,
	INSCAN,
	EXSCAN,
	REDUCE,
	REDUCESCATTER = REDUCE + OPS,
	KINDS = REDUCESCATTER + OPS
};

struct coll_args {
	gdr_team_t team;
	int me, members, pes[COLL_MAX_PES]; /* pes: in the world */
	int type, kind, scope, root, in_place;
	size_t n;
	ptrdiff_t dst_step, src_step;
	void *dst;
	const void *src;
	struct multi_report *report;
};

/* All bits of whole numbers; small whole numbers as floating point, whose sums and products are
 * exact in any order. */
#define COLL_IS_FLOAT(T) ((T)0.5 != (T)0)
#define COLL_VALUE(T, hash) (COLL_IS_FLOAT(T) ? (T)((int)((hash) % 17) - 8) : (T)(hash))

/* Whole numbers wrap. */
#define COLL_ARITH(T, x, sign, y)                                                                  \
	(COLL_IS_FLOAT(T) ? (T)((x)sign(y))                                                        \
			  : (T)((unsigned long long)(x)sign(unsigned long long)(y)))
#define COLL_BITS(T, x, sign, y) ((T)((unsigned long long)(x)sign(unsigned long long)(y)))
#define COLL_OP(T, op, x, y)                                                                       \
	((op) == SUM	? COLL_ARITH(T, x, +, y)                                                   \
	 : (op) == PROD ? COLL_ARITH(T, x, *, y)                                                   \
	 : (op) == MIN	? ((x) < (y) ? (x) : (y))                                                  \
	 : (op) == MAX	? ((x) > (y) ? (x) : (y))                                                  \
	 : (op) == AND	? COLL_BITS(T, x, &, y)                                                    \
	 : (op) == OR	? COLL_BITS(T, x, |, y)                                                    \
			: COLL_BITS(T, x, ^, y))

/* Different numbers below max in random order, the same on all for the same seed; how many: `fixed`, or
 * random. */
__attribute__((unused)) static int coll_choose(uint64_t seed, int *list, int max, int fixed)
{
	int n = fixed ? fixed : 1 + (int)(multi_hash(seed * 77) % (uint64_t)max);
	uint64_t next = seed * 1000;

	for (int i = 0; i < n; i++) {
		int again;

		do {
			list[i] = (int)(multi_hash(next++) % (uint64_t)max);
			again = 0;
			for (int j = 0; j < i; j++)
				again |= list[j] == list[i];
		} while (again);
	}
	return n;
}

#endif
