/* SPDX-License-Identifier: BSD-3-Clause */
/* What the silicon defines: work queue entries, completion queue entries and
 * doorbells of ConnectX (mlx5). Source: the public Programmer's Reference
 * Manual and rdma-core's providers/mlx5/mlx5dv.h. Layout only; the code that
 * fills it is wqe.h.
 *
 * A work queue is a ring of 64-byte blocks (WQEBB). A WQE is a sequence of
 * 16-byte segments, starts at a block and takes whole blocks. */
#ifndef GDRI_MLX5_HW_H
#define GDRI_MLX5_HW_H

#include <gdr/impl/arch/be.h>

#define GDRI_WQE_BLOCK 64u
#define GDRI_WQE_SEG 16u

enum gdri_mlx5_opcode {
	GDRI_OP_NOP = 0x00,
	GDRI_OP_WRITE = 0x08,
	GDRI_OP_READ = 0x10,
	GDRI_OP_ATOMIC_CS = 0x11,
	GDRI_OP_ATOMIC_FA = 0x12,
	GDRI_OP_MASKED_CS = 0x14,
	GDRI_OP_MASKED_FA = 0x15,
	GDRI_OP_DUMP = 0x23,
};

/* opmod of the masked atomics: size of the operands */
#define GDRI_OPMOD_ATOMIC_4B 0x08u
#define GDRI_OPMOD_ATOMIC_8B 0x09u
/* No NIC has it: of MASKED_FA, the word is combined with `add` as the code of coll/reduce_code.h in `boundary` says.
 * Both have the 8-byte form, whatever size the code names. */
#define GDRI_OPMOD_COMBINE 0x80u

/* fm_ce_se: fence mode in bits 7:5, completion mode in bits 3:2 */
#define GDRI_FM_FENCE 0x40u	 /* wait for earlier reads and atomics of this queue */
#define GDRI_FM_STRONG 0x60u	 /* strong ordering: for all that is before it on the queue, writes too */
#define GDRI_CE_ERROR_ONLY 0x00u /* completion only on error */
#define GDRI_CE_ALWAYS 0x08u

#define GDRI_INLINE_BIT 0x80000000u /* in byte_count: data follows in the WQE */

struct gdri_wqe_ctrl {
	gdri_be32_t opmod_idx_opcode; /* 31:24 opmod, 23:8 block index, 7:0 opcode */
	gdri_be32_t qpn_ds;	      /* 31:8 QP number, 5:0 WQE length in segments */
	uint8_t signature;
	uint8_t rsvd[2];
	uint8_t fm_ce_se;
	gdri_be32_t imm;
};

struct gdri_wqe_raddr {
	gdri_be64_t addr;
	gdri_be32_t rkey;
	gdri_be32_t rsvd;
};

struct gdri_wqe_data {
	gdri_be32_t byte_count; /* 0 means 2 GiB: never emitted */
	gdri_be32_t lkey;
	gdri_be64_t addr;
};

struct gdri_wqe_atomic { /* plain 8-byte FA and CS */
	gdri_be64_t swap_add;
	gdri_be64_t compare;
};

struct gdri_wqe_masked_fa8 {
	gdri_be64_t add;
	gdri_be64_t boundary; /* the carry is cut above each set bit */
};

struct gdri_wqe_masked_fa4 {
	gdri_be32_t add;
	gdri_be32_t boundary;
	gdri_be64_t rsvd;
};

struct gdri_wqe_masked_cs4 {
	gdri_be32_t swap;
	gdri_be32_t compare;
	gdri_be32_t swap_mask;
	gdri_be32_t compare_mask;
};

/* masked 8-byte CS: a wqe_atomic {swap, compare}, then this; 5 segments in all */
struct gdri_wqe_masked_cs8_masks {
	gdri_be64_t swap_mask;
	gdri_be64_t compare_mask;
};

struct gdri_cqe {
	uint8_t rsvd0[32];
	gdri_be32_t user_index;
	gdri_be32_t imm;
	uint8_t rsvd1[4];
	gdri_be32_t byte_cnt;
	uint8_t rsvd2[6];
	uint8_t vendor_syndrome; /* 54, 55: error CQEs only */
	uint8_t syndrome;
	gdri_be32_t wqe_opcode_qpn; /* 56: 31:24 opcode of the WQE, 23:0 QP number */
	/* Byte 60: be16 wqe_counter (index of the WQE's first block), signature,
	 * op_own (opcode in the high nibble, owner bit 0). Read as one 32-bit word:
	 * index and opcode belong together. */
	uint32_t tail;
};

enum gdri_cqe_opcode {
	GDRI_CQE_REQ = 0,
	GDRI_CQE_REQ_ERR = 13,
	GDRI_CQE_RESP_ERR = 14,
	GDRI_CQE_INVALID = 15,
};

#define GDRI_SYND_FLUSH 0x05u

GDR_STATIC_ASSERT(sizeof(struct gdri_wqe_ctrl) == 16, "PRM: control segment");
GDR_STATIC_ASSERT(sizeof(struct gdri_wqe_raddr) == 16, "PRM: remote address segment");
GDR_STATIC_ASSERT(sizeof(struct gdri_wqe_data) == 16, "PRM: data segment");
GDR_STATIC_ASSERT(sizeof(struct gdri_wqe_atomic) == 16, "PRM: atomic segment");
GDR_STATIC_ASSERT(sizeof(struct gdri_wqe_masked_fa8) == 16, "PRM: masked atomic segment");
GDR_STATIC_ASSERT(sizeof(struct gdri_wqe_masked_fa4) == 16, "PRM: masked atomic segment");
GDR_STATIC_ASSERT(sizeof(struct gdri_wqe_masked_cs4) == 16, "PRM: masked atomic segment");
GDR_STATIC_ASSERT(sizeof(struct gdri_wqe_masked_cs8_masks) == 16, "PRM: masked atomic segment");
GDR_STATIC_ASSERT(sizeof(struct gdri_cqe) == 64, "PRM: CQE");
GDR_STATIC_ASSERT(offsetof(struct gdri_cqe, user_index) == 32, "PRM: CQE");
GDR_STATIC_ASSERT(offsetof(struct gdri_cqe, byte_cnt) == 44, "PRM: CQE");
GDR_STATIC_ASSERT(offsetof(struct gdri_cqe, vendor_syndrome) == 54, "PRM: error CQE");
GDR_STATIC_ASSERT(offsetof(struct gdri_cqe, wqe_opcode_qpn) == 56, "PRM: CQE");
GDR_STATIC_ASSERT(offsetof(struct gdri_cqe, tail) == 60, "PRM: CQE");

#endif
