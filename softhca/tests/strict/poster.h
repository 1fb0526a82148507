/* SPDX-License-Identifier: BSD-3-Clause */
/* A builder of WQEs as a GPU runtime has it, and the mistakes that it can make
 * on request (mistakes.def). */
#ifndef TEST_STRICT_POSTER_H
#define TEST_STRICT_POSTER_H

#include "softhca/tests/control/common.h"

enum mistake {
#define MISTAKE(id, text, op, from, rule) M_##id,
#include "mistakes.def"
#undef MISTAKE
	M_COUNT
};

/* The operations, in the order in which they are posted over and over: ten blocks. */
enum op {
	OP_WRITE,
	OP_INLINE,	/* 12 bytes */
	OP_INLINE_LONG, /* 28 bytes */
	OP_FETCH_ADD,
	OP_READ,
	OP_CMP_SWAP,
	OP_MASKED_FA, /* 4 bytes */
	OP_MASKED_CS, /* 8 bytes: two blocks */
	OP_NOP,
	OP_COUNT,
	OP_NONE
};

enum {
	RING = 16,
	LOG_RING_MOST = 15,
	RING_MOST = 1 << LOG_RING_MOST,
	BUFFER = 65536,
	BLOCK = 64,
	TAIL = 29 /* one byte in the second block */
};

struct poster {
	struct dq q, peer;
	uint8_t *sq, *buf;
	uint32_t blocks; /* of the ring: RING, or RING_MOST */
	struct ibv_mr *mr, *other_pd, *read_only, *huge;
	uint32_t stale_key;
	enum mistake mistake;
	bool now;	   /* this post has it */
	uint32_t begun;	   /* index of the first block */
	uint32_t posted;   /* blocks, without wrap */
	uint32_t consumed; /* CQEs */
	uint32_t expected; /* CQEs asked for */
	bool failed;	   /* an error CQE */
};

static inline bool makes(const struct poster *p, enum mistake m)
{
	return p->now && p->mistake == m;
}

static inline bool has_record(const struct poster *p)
{
	return p->mistake < M_RIGHT_NO_RECORD;
}

/* Fills two blocks at wqe; returns how many count. */
unsigned build(struct poster *p, uint8_t wqe[2 * BLOCK], enum op op, bool signalled);

#endif
