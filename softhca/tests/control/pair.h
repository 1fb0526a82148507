/* SPDX-License-Identifier: BSD-3-Clause */
/* Two RC queue pairs of plain verbs in one process, connected to each other. */
#ifndef TEST_SOFTHCA_PAIR_H
#define TEST_SOFTHCA_PAIR_H

#include "common.h"

#define FULL_ACCESS                                                                                \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)

struct pair {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	uint8_t *buf;
};

#define BUF 65536u

/* As cmocka's setup and teardown; teardown fails where something does not go away. */
int pair_setup(void **state);
int pair_teardown(void **state);
/* RST to RTS. */
void connect_qp(struct ibv_context *ctx, struct ibv_qp *qp, uint32_t remote);
/* The same with room for so many READs and atomics on their way, not four. */
void connect_qp_reading(struct ibv_context *ctx, struct ibv_qp *qp, uint32_t remote, uint8_t reads);
/* The same with resources for so many of the peer's, not eight. */
void connect_qp_read(struct ibv_context *ctx, struct ibv_qp *qp, uint32_t remote, uint8_t resources);
/* The next completion; fails after some seconds. */
struct ibv_wc wait_wc(struct ibv_cq *cq);
/* By QP 0, from the front half of the buffer to the back half, unless said otherwise. */
void pair_post(struct pair *p, enum ibv_wr_opcode op, uint32_t len, unsigned flags, uint32_t rkey,
	       uint64_t add, uint64_t swap);
/* By QP 0, between these addresses; of atomics one is added. */
void pair_post_at(struct pair *p, enum ibv_wr_opcode op, void *local, uint32_t lkey, void *remote, uint32_t rkey,
		  uint32_t len);
/* It completes with success. */
void pair_ok(struct pair *p);
void pair_scramble(struct pair *p);

#endif
