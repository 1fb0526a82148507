/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that joins or leaves what PEs reach of each other behind init: what they tell each other, and the keys by
 * which they then reach it. */
#ifndef GDRI_RKEYS_H
#define GDRI_RKEYS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/cuda/cuda_ipc.h"
#include "runtime/mem/outside.h"
#include "runtime/mem/share.h"
#include "runtime/net/net.h"

struct gdri_state;

/* Where the memory is to be had, and by which keys all that the PE has is reached from then on, also by the queues of
 * host threads. Without a NIC there are no keys. */
struct gdri_rkeys {
	struct gdri_share_address address;
	struct gdri_cuda_ipc ipc; /* memory of cudaMalloc: instead, and what is seen where it is mapped */
	uint8_t mark[GDRI_OUTSIDE_MARK];
	struct gdri_mr_keys keys, host;
	uint32_t idle; /* nothing that the PE posted before the call is under way; not asked while old keys are few */
};

/* Own memory joins, or leaves: new keys. -GDR_E*, logged, and nothing has changed. _undo: nobody has used them. */
int gdri_rkeys_join(struct gdri_state *st, void *at, size_t len, uint64_t offset, struct gdri_rkeys *o);
int gdri_rkeys_leave(struct gdri_state *st, uint64_t offset, size_t len, struct gdri_rkeys *o);
void gdri_rkeys_undo(struct gdri_state *st);
/* What has left can no longer be reached: all PEs use other keys. */
void gdri_rkeys_drop(struct gdri_state *st);

/* Collective, until st->deadline_ns: from now on all PEs use the keys of all. An error leaves them out of step
 * (st->broken): who failed is told. */
int gdri_rkeys_use(struct gdri_state *st, const char *what, const struct gdri_rkeys *all);

#endif
