/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_data over the dynamically connected transport of mlx5: each of its queue pairs is a
 * target (DCT) of its own on both sides; two share an initiator (DCI), which goes from one to the
 * other with each list that is posted. */
#ifndef CLIENTS_DYNAMIC_H
#define CLIENTS_DYNAMIC_H

#include "peer.h"

/* In place of the queue pairs: p->qp[] and p->dct[]; the targets can be heard from here on. */
int dynamic_open(struct peer *p);
/* The initiators become ready for the targets of the other side. */
int dynamic_connect(struct peer *p, const struct ibv_ah_attr *to, uint32_t psn);
/* Of the request that is being built: where it goes. */
void dynamic_address(const struct peer *p, struct ibv_qp_ex *qp, unsigned lane);
int dynamic_close(struct peer *p);

#endif
