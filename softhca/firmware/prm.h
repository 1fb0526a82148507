/* SPDX-License-Identifier: BSD-3-Clause */
/* Firmware commands in mailboxes: the layouts of the mlx5 Programmer's
 * Reference Manual as far as they are answered (the kernel's mlx5_ifc.h spells
 * the same tables as bit arrays).
 *
 * A field is given as: byte offset of its 32-bit word, shift from the word's
 * low end, width. prm_get and prm_set take such a triple, and refuse nothing:
 * prm_run has checked that the mailbox is long enough for the command. */
#ifndef SOFTHCA_PRM_H
#define SOFTHCA_PRM_H

#include "softhca/driver/control.h"
#include "softhca/memory/guest.h"

#define PRM_MIN_MAILBOX 16u
#define HCA_FIRST_EQN	7u

enum prm_kind { PRM_GENERAL, PRM_CREATE, PRM_MODIFY, PRM_QUERY };

struct prm_cmd {
	struct hca_ctx *ctx;
	enum prm_kind kind;
	uint8_t *in, *out; /* out is zeroed */
	size_t in_len, out_len;
	struct ctl_obj *obj; /* modify, query: which; create: set to the new one */
};

/* 0, an errno, or EREMOTEIO with status and syndrome in out. */
int prm_run(struct prm_cmd *cmd);

enum prm_status { /* PRM, "Command Delivery Status" */
	PRM_INTERNAL = 0x1,
	PRM_BAD_OP = 0x2,
	PRM_BAD_PARAM = 0x3,
	PRM_BAD_RESOURCE = 0x5,
	PRM_BUSY = 0x6,
	PRM_LIMIT = 0x8,
	PRM_BAD_RESOURCE_STATE = 0x9,
	PRM_NO_RESOURCES = 0xf,
	PRM_BAD_QP_STATE = 0x10,
	PRM_BAD_INPUT_LEN = 0x50,
	PRM_BAD_OUTPUT_LEN = 0x51,
};

/* Syndromes are the vendor's own numbers; these are softhca's, one for each
 * thing that can be wrong. docs/softhca.md has the list. */
enum prm_syndrome {
	SYN_OPCODE = 0x50fc0001,
	SYN_LENGTH,
	SYN_UMEM_ID,
	SYN_UMEM_RANGE,
	SYN_UMEM_ALIGN,
	SYN_DBR_UMEM_ID,
	SYN_DBR_RANGE,
	SYN_DBR_ALIGN,
	SYN_UAR_PAGE,
	SYN_PD,
	SYN_SEND_CQ,
	SYN_RECV_CQ,
	SYN_SRQ,
	SYN_LOG_SIZE,
	SYN_CQE_SIZE,
	SYN_SERVICE_TYPE,
	SYN_RQ_TYPE,
	SYN_QP_STATE,
	SYN_MTU,
	SYN_PORT,
	SYN_GID_INDEX,
	SYN_RD_ATOMIC,
	SYN_OBJECT_ID,
	SYN_DBR_MODE,
	SYN_MEMORY,
	SYN_EQN,
	SYN_CQE_COMPRESSION,
	SYN_SELECT,
	SYN_CQ_FULL,
	SYN_DBR_LESS,
	SYN_PKEY_INDEX,
	SYN_MKEY_MODE,
	SYN_ORDER,
	SYN_MKEY_ORDER,
	SYN_MKEY_CHILD,
	SYN_LAG_PORT,
	SYN_LOOPBACK,
	SYN_COUNTER_SET,
	SYN_ECE,
	SYN_MKEY_ATOMIC = 0x45d3a4, /* the vendor's own: UCX, pull request 8218 */
};

/* Fills out and returns EREMOTEIO. */
int prm_fail(struct prm_cmd *cmd, enum prm_status status, enum prm_syndrome syndrome);

static inline uint32_t prm_get(const uint8_t *base, unsigned word, unsigned shift, unsigned width)
{
	return get_be32(base + word) >> shift & (uint32_t)((1ull << width) - 1);
}

static inline void prm_set(uint8_t *base, unsigned word, unsigned shift, unsigned width,
			   uint32_t value)
{
	uint32_t mask = (uint32_t)((1ull << width) - 1) << shift;

	put_be32(base + word, (get_be32(base + word) & ~mask) | (value << shift & mask));
}

/* Every command. */
#define CMD_OPCODE  0x00, 16, 16
#define CMD_OP_MOD  0x04, 0, 16
#define CMD_OBJ_NUM 0x08, 0, 24 /* cqn or qpn, in and out */

enum prm_opcode {
	OP_QUERY_HCA_CAP = 0x100,
	OP_CREATE_MKEY = 0x200,
	OP_CREATE_CQ = 0x400,
	OP_DESTROY_CQ = 0x401,
	OP_QUERY_CQ = 0x402,
	OP_MODIFY_CQ = 0x403,
	OP_CREATE_QP = 0x500,
	OP_DESTROY_QP = 0x501,
	OP_RST2INIT = 0x502,
	OP_INIT2RTR = 0x503,
	OP_RTR2RTS = 0x504,
	OP_RTS2RTS = 0x505,
	OP_SQERR2RTS = 0x506,
	OP_2ERR = 0x507,
	OP_2RST = 0x50a,
	OP_QUERY_QP = 0x50b,
	OP_INIT2INIT = 0x50e,
	OP_CREATE_DCT = 0x710,
	OP_DRAIN_DCT = 0x712,
	OP_QUERY_DCT = 0x713,
	OP_QUERY_ROCE_ADDRESS = 0x760,
	OP_ALLOC_Q_COUNTER = 0x771,
	OP_QUERY_Q_COUNTER = 0x773,
	OP_QUERY_LAG = 0x842,
	OP_CREATE_RMP = 0x90c,
};

/* Counter sets of queue pairs. */
#define ALLOC_Q_COUNTER_SET	  0x08, 0, 8 /* out */
#define QUERY_Q_COUNTER_IN_LEN	  0x20
#define QUERY_Q_COUNTER_OUT_LEN	  0x100
#define QUERY_Q_COUNTER_CLEAR	  0x18, 31, 1
#define QUERY_Q_COUNTER_SET	  0x1c, 0, 8
#define Q_COUNTER_OUT_OF_SEQUENCE 0x38, 0, 32
#define Q_COUNTER_PACKET_SEQ_ERR  0x50, 0, 32
#define Q_COUNTER_ACK_TIMEOUT	  0x60, 0, 32

/* CREATE_MKEY: the key's context at 0x10, 64 bytes long; the number in out is the key's index. */
#define CREATE_MKEY_MKC		0x10u
#define CREATE_MKEY_IN_LEN	0x110u
#define MKC_FREE		0x00, 30, 1
#define MKC_ACCESS_MODE_HI	0x00, 26, 3
#define MKC_UMR_EN		0x00, 15, 1
#define MKC_ACCESS_MODE		0x00, 8, 2
#define MKC_VARIANT		0x04, 0, 8
#define MKC_BSF_EN		0x0c, 30, 1
#define MKC_EN_RINVAL		0x0c, 24, 1
#define MKC_PD			0x0c, 0, 24
#define MKC_OCTOWORDS		0x34, 0, 32
#define MKC_LOG_ENTITY		0x38, 0, 5
#define MKC_RELAXED_WRITE	0x00, 18, 1
#define MKC_ATOMIC		0x00, 14, 1
#define MKC_RW			0x00, 13, 1
#define MKC_RR			0x00, 12, 1
#define MKC_LW			0x00, 11, 1
#define CREATE_MKEY_ACTUAL	0x60, 0, 32 /* octowords behind the mailbox: a piece each */

/* CREATE_CQ: the CQ context at 0x10, 64 bytes long. */
#define CREATE_CQ_CQC		0x10u
#define CREATE_CQ_UMEM_OFFSET	0x50u /* be64 */
#define CREATE_CQ_UMEM_ID	0x58, 0, 32
#define CREATE_CQ_IN_LEN	0x110u
#define QUERY_CQ_OUT_LEN	0x110u
#define MODIFY_CQ_SELECT	0x0c, 0, 32 /* resize: log size, page offset, page size */
#define CQC_STATUS		0x00, 28, 4
#define CQC_DBR_UMEM_VALID	0x00, 25, 1
#define CQC_CQE_SZ		0x00, 21, 3
#define CQC_CC			0x00, 20, 1
#define CQC_OI			0x00, 17, 1
#define CQC_CQE_COMP_EN		0x00, 14, 1
#define CQC_ST			0x00, 8, 4
#define CQC_DBR_UMEM_ID		0x04, 0, 32
#define CQC_LOG_CQ_SIZE		0x0c, 24, 5
#define CQC_UAR_PAGE		0x0c, 0, 24
#define CQC_C_EQN		0x14, 0, 8
#define CQC_LAST_NOTIFIED	0x20, 0, 24
#define CQC_LAST_SOLICITED	0x24, 0, 24
#define CQC_CONSUMER_COUNTER	0x28, 0, 24
#define CQC_PRODUCER_COUNTER	0x2c, 0, 24
#define CQC_DBR_ADDR		0x38u /* be64 */

/* CREATE_QP and the modify commands: the QP context at 0x18, 232 bytes long. */
#define QP_CMD_OPT_MASK		0x10, 0, 32
#define QP_CMD_ECE		0x14, 0, 32 /* in; QUERY_QP: out */
#define QP_CMD_OUT_ECE		0x0c, 0, 32 /* of the others */
#define QP_CMD_QPC		0x18u
#define QPC_LEN			0xe8u
#define QP_CMD_LEN		0x110u
#define CREATE_QP_WQ_UMEM_OFFSET 0x100u /* be64 */
#define CREATE_QP_WQ_UMEM_ID	0x108, 0, 32
enum { ST_RC = 0, ST_UC = 1, ST_UD = 2, ST_DCI = 5 }; /* service types */
#define QPC_STATE		0x00, 28, 4
#define QPC_LAG_PORT		0x00, 24, 4
#define QPC_ST			0x00, 16, 8
#define QPC_PM_STATE		0x00, 11, 2
#define QPC_DP_ORDERING_0	0x04, 25, 1
#define QPC_DP_ORDERING_FORCE	0x04, 24, 1
#define QPC_PD			0x04, 0, 24
#define QPC_MTU			0x08, 29, 3
#define QPC_LOG_MSG_MAX		0x08, 24, 5
#define QPC_LOG_RQ_SIZE		0x08, 19, 4
#define QPC_LOG_RQ_STRIDE	0x08, 16, 3
#define QPC_NO_SQ		0x08, 15, 1
#define QPC_LOG_SQ_SIZE		0x08, 11, 4
#define QPC_UAR_PAGE		0x0c, 0, 24
#define QPC_COUNTER_SET		0x0c, 24, 8
#define QPC_USER_INDEX		0x10, 0, 24
#define QPC_REMOTE_QPN		0x14, 0, 24
#define QPC_PATH		0x18u
#define QPC_LOG_SRA_MAX		0x70, 21, 3
#define QPC_RETRY_COUNT		0x70, 16, 3
#define QPC_RNR_RETRY		0x70, 13, 3
#define QPC_NEXT_SEND_PSN	0x78, 0, 24
#define QPC_CQN_SND		0x7c, 0, 24
#define QPC_SEND_DBR_MODE	0x80, 30, 2
#define QPC_LOG_RRA_MAX		0x90, 21, 3
#define QPC_ATOMIC_MODE		0x90, 16, 4
#define QPC_RRE			0x90, 15, 1
#define QPC_RWE			0x90, 14, 1
#define QPC_RAE			0x90, 13, 1
#define QPC_PAGE_OFFSET		0x90, 6, 6
#define QPC_DP_ORDERING_1	0x90, 3, 1
#define QPC_MIN_RNR_NAK		0x94, 24, 5
#define QPC_NEXT_RCV_PSN	0x94, 0, 24
#define QPC_CQN_RCV		0x9c, 0, 24
#define QPC_DBR_ADDR		0xa0u /* be64 */
#define QPC_Q_KEY		0xa8, 0, 32
#define QPC_RQ_TYPE		0xac, 24, 3
#define QPC_SRQN		0xac, 0, 24
#define QPC_HW_SQ_COUNTER	0xb4, 16, 16
#define QPC_SW_SQ_COUNTER	0xb4, 0, 16
#define QPC_HW_RQ_COUNTER	0xb8, 0, 32
#define QPC_CS_REQ		0xc4, 8, 8
#define QPC_CS_RES		0xc4, 0, 8
#define QPC_DBR_UMEM_VALID	0xd0, 28, 1
#define QPC_DBR_UMEM_ID		0xe4, 0, 32

/* Address path, inside the QP context. */
#define PATH_FL			0x00, 31, 1
#define PATH_PKEY_INDEX		0x00, 0, 16
#define PATH_GRH		0x04, 23, 1
#define PATH_RLID		0x04, 0, 16
#define PATH_ACK_TIMEOUT	0x08, 27, 5
#define PATH_SRC_ADDR_INDEX	0x08, 16, 8
#define PATH_HOP_LIMIT		0x08, 0, 8
#define PATH_TCLASS		0x0c, 20, 8
#define PATH_FLOW_LABEL		0x0c, 0, 20
#define PATH_RGID		0x10u /* 16 bytes */
#define PATH_ECN		0x20, 22, 2
#define PATH_DSCP		0x20, 16, 6
#define PATH_UDP_SPORT		0x20, 0, 16
#define PATH_ETH_PRIO		0x24, 28, 3
#define PATH_SL			0x24, 24, 4
#define PATH_PORT		0x24, 16, 8
#define PATH_RMAC_HI		0x24, 0, 16
#define PATH_RMAC_LO		0x28, 0, 32

/* CREATE_DCT and QUERY_DCT: the DCT context at 0x10, 64 bytes long. */
#define DCT_CMD_DCTC		0x10u
#define DCT_CMD_LEN		0x80u
#define DCTC_STATE		0x00, 24, 4
#define DCTC_USER_INDEX		0x04, 0, 24
#define DCTC_CQN		0x08, 0, 24
#define DCTC_ATOMIC_MODE	0x0c, 20, 4
#define DCTC_RRE		0x0c, 19, 1
#define DCTC_RWE		0x0c, 18, 1
#define DCTC_RAE		0x0c, 17, 1
#define DCTC_CS_RES		0x10, 16, 8
#define DCTC_MIN_RNR_NAK	0x10, 8, 5
#define DCTC_SRQN		0x14, 0, 24
#define DCTC_PD			0x18, 0, 24
#define DCTC_TCLASS		0x1c, 24, 8
#define DCTC_FLOW_LABEL		0x1c, 0, 20
#define DCTC_ACCESS_KEY		0x20u /* be64 */
#define DCTC_MTU		0x28, 24, 3
#define DCTC_PORT		0x28, 16, 8
#define DCTC_PKEY_INDEX		0x28, 0, 16
#define DCTC_ADDR_INDEX		0x2c, 16, 8
#define DCTC_HOP_LIMIT		0x2c, 0, 8
#define DCTC_VIOLATIONS		0x30, 0, 32
#define DCTC_ETH_PRIO		0x34, 8, 3
#define DCTC_ECN		0x34, 6, 2
#define DCTC_DSCP		0x34, 0, 6

/* CREATE_RMP: the context at 0x20, and in it the work queue's. */
#define CREATE_RMP_STATE	0x20, 20, 4
#define CREATE_RMP_BASIC	0x24, 31, 1
#define CREATE_RMP_WQ		0x50u
#define CREATE_RMP_IN_LEN	0x110u
#define WQ_TYPE			0x00, 28, 4
#define WQ_LIMIT		0x04, 0, 16
#define WQ_PD			0x08, 0, 24
#define WQ_DBR_ADDR		0x10u /* be64 */
#define WQ_LOG_STRIDE		0x20, 16, 4
#define WQ_LOG_SIZE		0x20, 0, 5
#define WQ_DBR_UMEM_ID		0x28, 0, 32
#define WQ_UMEM_ID		0x2c, 0, 32
#define WQ_UMEM_OFFSET		0x30u /* be64 */

typedef int prm_command(struct prm_cmd *cmd);
prm_command prm_query_hca_cap, prm_query_roce_address, prm_query_lag, prm_create_mkey;
prm_command prm_create_cq, prm_query_cq, prm_modify_cq;
prm_command prm_alloc_q_counter, prm_query_q_counter;
prm_command prm_create_qp, prm_modify_qp, prm_query_qp, prm_create_dct, prm_drain_dct, prm_query_dct;
prm_command prm_create_rmp;
/* Behind its fields, whose status is given: a queue pair that works, or none, with the answer to the command. */
int prm_activate_qp(struct prm_cmd *cmd, struct ctl_qp *c, int status);
uint8_t prm_scatter_bytes(uint32_t mode, const struct hca_cq *cq);

/* A queue of these bytes at the offset: 0 and where it is, or the command's failure. */
int prm_umem_queue(struct prm_cmd *cmd, struct ctl_umem *umem, uint64_t offset, uint64_t bytes, uint8_t **at);
/* A doorbell record of two words: 0, which umem and where it is, or the command's failure. */
int prm_umem_record(struct prm_cmd *cmd, uint32_t id, uint64_t offset, struct ctl_umem **umem, uint32_t **word);
/* A part of a umem for hardware structures; NULL if it does not lie inside. */
uint8_t *prm_umem_range(struct ctl_umem *umem, uint64_t offset, uint64_t len);

#endif
