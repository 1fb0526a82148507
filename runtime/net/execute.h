/* SPDX-License-Identifier: BSD-3-Clause */
/* For transports whose other end of the queues is a thread: entries and completions of net.h, as a processor reads,
 * executes and writes them. */
#ifndef GDRI_NET_EXECUTE_H
#define GDRI_NET_EXECUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gdr/impl/arch/abi.h>

enum gdri_net_syndrome { /* PRM, of completions with error */
			 GDRI_NET_LENGTH = 0x01,
			 GDRI_NET_REQUEST = 0x02,
			 GDRI_NET_LOCAL = 0x04,
			 GDRI_NET_INVALID = 0x12,
			 GDRI_NET_REMOTE = 0x13,
			 GDRI_NET_LOST = 0x15, /* retries exceeded */
};

#define GDRI_NET_WQE_MOST (2 * GDRI_WQE_BLOCK) /* of all that device code posts */

struct gdri_net_wqe {
	uint8_t bytes[GDRI_NET_WQE_MOST];
	uint32_t opcode, opmod, ds, blocks;
	uint16_t index;
	uint8_t fence; /* bits of GDRI_FM_STRONG */
	bool tells;    /* of success, too */
};

static inline uint32_t gdri_net_get32(const uint8_t *p)
{
	return gdri_bswap32((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			    (uint32_t)p[3] << 24);
}

static inline uint64_t gdri_net_get64(const uint8_t *p)
{
	return (uint64_t)gdri_net_get32(p) << 32 | gdri_net_get32(p + 4);
}

/* The entry whose first block has this index. */
void gdri_net_fetch(const struct gdri_qp *qp, uint16_t index, struct gdri_net_wqe *w);
/* The block behind the last that is published. */
uint16_t gdri_net_posted(const struct gdri_qp *qp);
/* syndrome 0: success. cq_pi: entries written, free-running. */
void gdri_net_complete(const struct gdri_qp *qp, uint64_t *cq_pi, uint16_t index, uint32_t opcode,
		       uint32_t syndrome);

/* Every atomic as one of three forms. */
struct gdri_net_atomic {
	uint64_t value, compare; /* to be added, or put in the place of `compare` */
	uint64_t value_mask, compare_mask;
	uint64_t boundary; /* of an addition: no carry leaves these bits */
	uint16_t size, compares;
	uint32_t code; /* not 0: value is combined with the word as coll/reduce_code.h says, which no mask touches */
};

/* Data segment of its result; NULL: it is none. */
const uint8_t *gdri_net_atomic(const struct gdri_net_wqe *w, struct gdri_net_atomic *a);
/* Whether gdri_net_atomic_run() takes it: of one that came from elsewhere. */
bool gdri_net_atomic_is(const struct gdri_net_atomic *a);
/* Whether it puts a value in the word's place whatever was there. */
static inline bool gdri_net_atomic_sets(const struct gdri_net_atomic *a)
{
	uint64_t all = a->size == 8 ? UINT64_MAX : UINT32_MAX;

	return a->compares && !a->code && !(a->compare_mask & all) && (a->value_mask & all) == all;
}
/* On the word at `at`, which is aligned. Returns the old value as it arrives. */
uint64_t gdri_net_atomic_run(void *at, const struct gdri_net_atomic *a);

/* Copies; words that are aligned at both ends go as a whole. */
void gdri_net_move(uint8_t *dst, const uint8_t *src, uint64_t len);

#endif
