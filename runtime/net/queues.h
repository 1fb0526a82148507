/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues of a PE as device code expects them: how many, in which order, and where they lie in one allocation. */
#ifndef GDRI_NET_QUEUES_H
#define GDRI_NET_QUEUES_H

#include <stddef.h>
#include <stdint.h>

#include <gdr/impl/arch/abi.h>

#include "runtime/core/options.h"

struct gdri_mr_keys;

/* Queue pairs to each PE: those of the default context and those kept for others. */
static inline unsigned gdri_net_slots(const struct gdri_options *opt)
{
	return opt->qps_per_pe + opt->ctx_queues;
}

/* Offsets in the allocation. */
struct gdri_net_layout {
	int n_pes, n_slots;
	int own;       /* slots of the default context */
	uint32_t depth; /* blocks */
	uint32_t cq_mask;
	size_t n; /* queue pairs */
	size_t sq, sq_stride;
	size_t cq, cq_stride, cq_bytes;
	size_t dbrec, dbrec_stride; /* queue pair's record, then the CQ's */
	size_t total;		    /* whole pages */
};

void gdri_net_layout(const struct gdri_options *opt, int n_pes, struct gdri_net_layout *out);

/* Bytes that a PE's queues to n_pes peers take. */
size_t gdri_net_queue_bytes(const struct gdri_options *opt, int n_pes);

/* The largest page by which a device may know the memory of queues: it counts in 64ths of a page where one begins. */
uint64_t gdri_net_largest_page(const struct gdri_net_layout *l);

/* What every byte of the completion queues holds at first: opcode 15 (invalid), owner bit 1, index 0xffff: "nothing
 * completed" in both kinds of CQ. */
#define GDRI_NET_CQ_NOTHING 0xff

/* Fills the constants of queue pair i, but for its number, its doorbell and the keys. base: of the allocation, where
 * device code finds it. */
void gdri_net_describe(const struct gdri_net_layout *l, int i, uint8_t *base, struct gdri_qp *q);
/* The keys of all queue pairs to the peer. */
void gdri_net_set_keys(const struct gdri_net_layout *l, int peer, const struct gdri_mr_keys *keys, struct gdri_qp *qps);

/* Queue pair `slot` to the peer. Those of the default context stand PE by PE; the slots above, which are kept for
 * contexts, one by one, so that all queues of a context are one range. */
static inline int gdri_net_index(const struct gdri_net_layout *l, int peer, int slot)
{
	return slot < l->own ? peer * l->own + slot : slot * l->n_pes + peer;
}

static inline int gdri_net_peer(const struct gdri_net_layout *l, int i)
{
	return i < l->n_pes * l->own ? i / l->own : i % l->n_pes;
}

static inline int gdri_net_slot(const struct gdri_net_layout *l, int i)
{
	return i < l->n_pes * l->own ? i % l->own : i / l->n_pes;
}

#endif
