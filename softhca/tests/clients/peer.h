/* SPDX-License-Identifier: BSD-3-Clause */
/* The two processes of verbs_data: what they tell each other over TCP, and their queue pairs. */
#ifndef CLIENTS_PEER_H
#define CLIENTS_PEER_H

#include <infiniband/verbs.h>

#include "plan.h"

#define PEER_TIMEOUT 30 /* seconds, for whatever the other one has to do */

struct peer {
	const struct config *config;
	int side; /* 0: server, 1: client */
	int tcp;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[2]; /* sends, receives */
	struct ibv_srq *srq;
	struct ibv_qp **qp;
	struct ibv_qp **dct; /* dynamically connected: what the other side sends to */
	struct ibv_ah *ah;
	uint32_t *remote_dct;
	struct ibv_qp *first; /* idle, without the shared queue, of the same CQs */
	uint8_t *memory; /* the plan's, then the slots of the shared receive queue */
	size_t plan_size, size;
	struct ibv_mr *mr[2]; /* addressed by virtual address, and from 0 */
	struct {
		uint64_t address[2];
		uint32_t rkey[2];
	} remote;
};

/* Both print what failed and return nonzero. */
int peer_open(struct peer *p, const struct config *c);
int peer_barrier(struct peer *p); /* until the other one is here, too */

void peer_close(struct peer *p);
uint64_t peer_address(const struct peer *p, unsigned key, uint32_t at);
enum ibv_mtu peer_mtu(unsigned mtu);

#endif
