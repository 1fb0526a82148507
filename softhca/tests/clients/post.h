/* SPDX-License-Identifier: BSD-3-Clause */
/* Planned operations as verbs have them, through either posting interface. */
#ifndef CLIENTS_POST_H
#define CLIENTS_POST_H

#include "peer.h"

/* Posts op[0..n), all of one queue pair, in one call. wr_id is the operation's index in the plan. */
int post_ops(struct peer *p, const struct plan *plan, const unsigned *index, unsigned n);

/* The receive that the operation of the other side needs, in the queue pair's own queue. */
int post_receive(struct peer *p, const struct op *op, uint64_t wr_id);

/* Slot `slot` of the shared queue, cut in pieces. */
int post_slot(struct peer *p, unsigned slot);
#define SLOT_AT(p, slot) ((uint32_t)((p)->plan_size + (size_t)(slot) * (p)->config->size))

#endif
