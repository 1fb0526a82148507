/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs share: the device, mailbox fields by bit position as the
 * kernel's mlx5_ifc.h counts them, and a DEVX queue pair with its CQ. */
#ifndef TEST_SOFTHCA_COMMON_H
#define TEST_SOFTHCA_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* Bits are counted from the most significant bit of byte 0. */
void put_bits(void *mailbox, unsigned bit, unsigned width, uint64_t value);
uint64_t get_bits(const void *mailbox, unsigned bit, unsigned width);

struct ibv_context *open_device(void); /* with DEVX; skips nothing, fails */
uint32_t pd_number(struct ibv_pd *pd);
bool link_is_ib(struct ibv_context *ctx);
unsigned open_fds(void);

#define CQC  (0x80u)  /* bit of the CQ context in CREATE_CQ */
#define QPC  (0xc0u)  /* bit of the QP context in the QP commands */
#define PATH (QPC + 0xc0u)
#define MBOX 0x110u

/* One page each for CQ and SQ, doorbell records behind. */
struct dq {
	struct ibv_context *ctx;
	uint8_t *mem;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_obj *cq, *qp;
	uint32_t cqn, qpn;
	unsigned log_cq;
	bool collapsed;
	unsigned mtu; /* as the PRM counts; 0: 1024 */
	bool no_mac;  /* its path leads to a MAC address that nobody has */
};

#define DQ_SQ  0u
#define DQ_CQ  4096u
#define DQ_DBR 8192u /* QP: 8 bytes */
#define DQ_CQ_DBR 8200u
#define DQ_SIZE 12288u

void dq_memory(struct dq *q, struct ibv_context *ctx);
/* Mailboxes with everything right; the caller may spoil them. */
void dq_cq_mailbox(struct dq *q, uint8_t in[MBOX], unsigned log_size, bool collapsed, bool oi);
void dq_qp_mailbox(struct dq *q, uint8_t in[MBOX], uint32_t pdn);
/* CREATE_MKEY of KLMs, one piece, without atomics and relaxed order. */
#define KLM_MBOX (0x110 + 64)
void klm_mailbox(uint8_t in[KLM_MBOX], uint32_t pdn, uint32_t child, const void *mem, uint32_t len);
void dq_create(struct dq *q, struct ibv_context *ctx, uint32_t pdn, unsigned log_cq,
	       bool collapsed);
void dq_destroy(struct dq *q);
int dq_modify(struct dq *q, const uint8_t in[MBOX]);
/* RST to RTS, connected to the given QPN on this port. */
void dq_connect(struct dq *q, uint32_t remote_qpn);
/* The same with another QPC.atomic_mode than 3. */
void dq_connect_mode(struct dq *q, uint32_t remote_qpn, unsigned atomic_mode);
void dq_rtr_mailbox(struct dq *q, uint8_t in[MBOX], uint32_t remote_qpn);
uint32_t dq_state(struct dq *q);
/* Posts one 64-byte WQE at the index and rings. */
void dq_post(struct dq *q, uint16_t index, const void *wqe);
void dq_post_blocks(struct dq *q, uint16_t index, const void *wqe, unsigned blocks);
/* Its opcode, once entry n of the completion queue is written, within 5 s; else 15. */
uint8_t dq_completed(const struct dq *q, uint32_t n);

#endif
