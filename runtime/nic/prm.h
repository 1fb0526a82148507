/* SPDX-License-Identifier: BSD-3-Clause */
/* Firmware command mailboxes of ConnectX (mlx5), as far as the runtime fills
 * them. Source: the public Programmer's Reference Manual (chapters "Command
 * Reference" and "Object contexts"); names follow it. Mailboxes are big-endian
 * dwords, and a field is given as the PRM's tables do: bit offset from the
 * start of its structure (bit 0 is the top bit of the first dword), width.
 *
 *	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_CREATE_QP);
 *
 * Each PRM_* field expands to the two arguments "offset, width". Fields of 64
 * bits are aligned, no other crosses a dword. */
#ifndef GDRI_PRM_H
#define GDRI_PRM_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t gdri_prm_load(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void gdri_prm_store(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

/* Bits of `value` beyond the width are dropped: range checks are the caller's. */
static inline void gdri_prm_set(void *box, unsigned off, unsigned width, uint64_t value)
{
	uint8_t *p = (uint8_t *)box + off / 32 * 4;
	unsigned shift;
	uint32_t mask;

	if (width == 64) {
		gdri_prm_store(p, (uint32_t)(value >> 32));
		gdri_prm_store(p + 4, (uint32_t)value);
		return;
	}
	shift = 32 - width - off % 32;
	mask = (uint32_t)(((uint64_t)1 << width) - 1);
	gdri_prm_store(p, (gdri_prm_load(p) & ~(mask << shift)) |
				  (((uint32_t)value & mask) << shift));
}

static inline uint64_t gdri_prm_get(const void *box, unsigned off, unsigned width)
{
	const uint8_t *p = (const uint8_t *)box + off / 32 * 4;

	if (width == 64)
		return (uint64_t)gdri_prm_load(p) << 32 | gdri_prm_load(p + 4);
	return gdri_prm_load(p) >> (32 - width - off % 32) &
	       (uint32_t)(((uint64_t)1 << width) - 1);
}

/* A structure inside another one, at a bit offset. */
static inline void *gdri_prm_at(void *box, unsigned off)
{
	return (uint8_t *)box + off / 8;
}

enum {
	PRM_OP_QUERY_HCA_CAP = 0x100,
	PRM_OP_CREATE_MKEY = 0x200,
	PRM_OP_CREATE_CQ = 0x400,
	PRM_OP_CREATE_QP = 0x500,
	PRM_OP_RST2INIT_QP = 0x502,
	PRM_OP_INIT2RTR_QP = 0x503,
	PRM_OP_RTR2RTS_QP = 0x504,
	PRM_OP_2RST_QP = 0x50a,
	PRM_OP_QUERY_QP = 0x50b,
	PRM_OP_ALLOC_Q_COUNTER = 0x771,
	PRM_OP_QUERY_Q_COUNTER = 0x773,
	PRM_OP_QUERY_LAG = 0x842,
};

/* every command */
#define PRM_IN_OPCODE	 0x00, 16
#define PRM_IN_OP_MOD	 0x30, 16
#define PRM_OUT_STATUS	 0x00, 8
#define PRM_OUT_SYNDROME 0x20, 32

/* QUERY_HCA_CAP: op_mod = group << 1 | 1 for the current values */
enum { PRM_CAP_GENERAL = 0, PRM_CAP_ATOMIC = 3, PRM_CAP_ROCE = 4, PRM_CAP_GENERAL_2 = 0x20 };
#define PRM_QUERY_HCA_CAP_IN_BYTES  16
#define PRM_QUERY_HCA_CAP_OUT_BYTES (16 + 4096)
#define PRM_QUERY_HCA_CAP_OUT_CAP   0x80 /* offset of the group */

#define PRM_GENERAL_CAP_2	  0x020, 1 /* hca_cap_2: there is the group */
#define PRM_GENERAL_ECE		  0x0a3, 1 /* ece_support */
#define PRM_GENERAL_LOG_MAX_QP_SZ 0x088, 8
#define PRM_GENERAL_LOG_MAX_CQ_SZ 0x0c8, 8
#define PRM_GENERAL_RELAXED	  0x0e8, 1 /* relaxed_ordering_write */
#define PRM_GENERAL_LOG_MAX_KLMS  0x11a, 6 /* log_max_klm_list_size */
#define PRM_GENERAL_LOG_MAX_MSG	  0x1c3, 5
#define PRM_GENERAL_OOO_RW_RC	  0x1ca, 1 /* dp_ordering_ooo_rw_rc */
#define PRM_GENERAL_CQE_VERSION	  0x1fc, 4
#define PRM_GENERAL_NO_UMR_ATOMIC 0x208, 1 /* umr_modify_atomic_disabled */
#define PRM_GENERAL_ATOMIC	  0x21e, 1
#define PRM_GENERAL_LAG_AFFINITY  0x278, 1 /* lag_tx_port_affinity */
#define PRM_GENERAL_LAG_PORTS	  0x27c, 4 /* num_lag_ports */
#define PRM_GENERAL_MAX_WQE_SZ_SQ 0x290, 16
#define PRM_GENERAL_RELAXED_ONLY  0x3a9, 1 /* mkc_order_write_after_write_ro_only */
#define PRM_GENERAL_OOO_ALL_RC	  0x334, 1 /* dp_ordering_ooo_all_rc */

#define PRM_GENERAL_2_ORDER_FORCE 0x088, 1 /* dp_ordering_force */
#define PRM_GENERAL_2_NO_RECORD	  0x2e1, 1 /* send_dbr_mode_no_dbr_ext */

#define PRM_ATOMIC_8B_ENDIANNESS	   0x40, 2
#define PRM_ATOMIC_OPERATIONS		   0x90, 16
#define PRM_ATOMIC_SIZE_QP		   0xb0, 16

#define PRM_ROCE_FL		   0x06, 1 /* fl_rc_qp_when_roce_enabled */
#define PRM_ROCE_QP_TS_FORMAT	   0x1e, 2
#define PRM_ROCE_MAX_SRC_UDP_PORT  0xc0, 16
#define PRM_ROCE_MIN_SRC_UDP_PORT  0xd0, 16

/* QUERY_LAG */
#define PRM_QUERY_LAG_IN_BYTES	 16
#define PRM_QUERY_LAG_OUT_BYTES	 16
#define PRM_QUERY_LAG_OUT_SELECT 0x55, 3 /* port_select_mode; 0: queues have a port */
#define PRM_QUERY_LAG_OUT_STATE	 0x5d, 3 /* 0: no LAG */

/* CREATE_MKEY, memory key context; behind the mailbox what an indirect key holds, one entry for each piece */
#define PRM_CREATE_MKEY_IN_BYTES 0x110
#define PRM_CREATE_MKEY_OUT_BYTES 16
#define PRM_CREATE_MKEY_MKC	 0x080 /* offset of the context */
#define PRM_CREATE_MKEY_ACTUAL	 0x300, 32 /* octowords of the entries */
#define PRM_CREATE_MKEY_OUT_INDEX 0x048, 24

enum { PRM_MKC_KLM = 2 };
#define PRM_MKC_RELAXED	  0x0d, 1 /* writes */
#define PRM_MKC_A	  0x11, 1
#define PRM_MKC_RW	  0x12, 1
#define PRM_MKC_RR	  0x13, 1
#define PRM_MKC_LW	  0x14, 1
#define PRM_MKC_LR	  0x15, 1
#define PRM_MKC_MODE	  0x16, 2
#define PRM_MKC_QPN	  0x20, 24
#define PRM_MKC_PD	  0x68, 24
#define PRM_MKC_LEN	  0xc0, 64
#define PRM_MKC_OCTOWORDS 0x1a0, 32

#define PRM_KLM_BYTES	16
#define PRM_KLM_COUNT	0x00, 32
#define PRM_KLM_KEY	0x20, 32
#define PRM_KLM_ADDRESS 0x40, 64

/* CREATE_CQ, completion queue context */
#define PRM_CREATE_CQ_IN_BYTES	      0x110
#define PRM_CREATE_CQ_OUT_BYTES	      16
#define PRM_CREATE_CQ_CQC	      0x080 /* offset of the context */
#define PRM_CREATE_CQ_UMEM_OFFSET     0x280, 64
#define PRM_CREATE_CQ_UMEM_ID	      0x2c0, 32
#define PRM_CREATE_CQ_UMEM_VALID      0x2e0, 1
#define PRM_CREATE_CQ_OUT_CQN	      0x048, 24

#define PRM_CQC_DBR_UMEM_VALID 0x06, 1
#define PRM_CQC_CC	       0x0b, 1 /* collapsed: every CQE goes to entry 0 */
#define PRM_CQC_OI	       0x0e, 1 /* overrun ignore */
#define PRM_CQC_DBR_UMEM_ID    0x20, 32
#define PRM_CQC_LOG_CQ_SIZE    0x63, 5
#define PRM_CQC_UAR_PAGE       0x68, 24
#define PRM_CQC_C_EQN	       0xb8, 8
#define PRM_CQC_DBR_ADDR       0x1c0, 64

/* CREATE_QP and the modify commands, queue pair context */
#define PRM_QP_IN_QPC		   0x0c0 /* offset of the context, all QP commands */
#define PRM_CREATE_QP_IN_BYTES	   0x110
#define PRM_CREATE_QP_OUT_BYTES	   16
#define PRM_CREATE_QP_UMEM_OFFSET  0x800, 64
#define PRM_CREATE_QP_UMEM_ID	   0x840, 32
#define PRM_CREATE_QP_UMEM_VALID   0x860, 1
#define PRM_CREATE_QP_ECE	   0x0a0, 32 /* asks for options of enhanced connection establishment */
#define PRM_CREATE_QP_OUT_QPN	   0x048, 24
#define PRM_CREATE_QP_OUT_ECE	   0x060, 32 /* what is offered */
#define PRM_MODIFY_QP_IN_BYTES	   0x110
#define PRM_MODIFY_QP_OUT_BYTES	   16
#define PRM_MODIFY_QP_QPN	   0x048, 24
#define PRM_MODIFY_QP_ECE	   0x0a0, 32 /* what is to be on */
#define PRM_MODIFY_QP_OUT_ECE	   0x060, 32 /* what is */
#define PRM_ALLOC_Q_COUNTER_IN_BYTES  16
#define PRM_ALLOC_Q_COUNTER_OUT_BYTES 16
#define PRM_ALLOC_Q_COUNTER_OUT_SET   0x058, 8
#define PRM_QUERY_Q_COUNTER_IN_BYTES  32
#define PRM_QUERY_Q_COUNTER_OUT_BYTES 0x100
#define PRM_QUERY_Q_COUNTER_SET	      0x0f8, 8
#define PRM_Q_COUNTER_OUT_OF_SEQUENCE 0x1c0, 32
#define PRM_Q_COUNTER_PACKET_SEQ_ERR  0x280, 32
#define PRM_Q_COUNTER_ACK_TIMEOUT     0x300, 32
#define PRM_QUERY_QP_IN_BYTES	   16
#define PRM_QUERY_QP_OUT_BYTES	   0x110
#define PRM_QUERY_QP_OUT_ECE	   0x0a0, 32

enum { PRM_QP_ST_RC = 0, PRM_QP_PM_MIGRATED = 3, PRM_QP_RQ_ZERO_SIZE = 3 };
enum { PRM_QP_DBR_VALID = 0, PRM_QP_NO_DBR_EXT = 1 };
enum { PRM_QP_TS_FREE_RUNNING = 0, PRM_QP_TS_DEFAULT = 1 };
enum { PRM_QP_STATE_RTS = 3 };

#define PRM_QPC_LAG_PORT	0x004, 4 /* lag_tx_port_affinity: 0 none, else 1 and on */
#define PRM_QPC_ST		0x008, 8
#define PRM_QPC_PM_STATE	0x013, 2
#define PRM_QPC_DP_ORDERING_0	0x026, 1 /* lower bit: 0 in order, 1 OOO_RW, 2 OOO_ALL */
#define PRM_QPC_DP_ORDERING_FORCE 0x027, 1
#define PRM_QPC_PD		0x028, 24
#define PRM_QPC_MTU		0x040, 3
#define PRM_QPC_LOG_MSG_MAX	0x043, 5
#define PRM_QPC_LOG_SQ_SIZE	0x051, 4
#define PRM_QPC_TS_FORMAT	0x058, 2
#define PRM_QPC_COUNTER_SET	0x060, 8
#define PRM_QPC_UAR_PAGE	0x068, 24
#define PRM_QPC_USER_INDEX	0x088, 24
#define PRM_QPC_REMOTE_QPN	0x0a8, 24
#define PRM_QPC_ADS		0x0c0 /* offset of the primary address path */
#define PRM_QPC_LOG_ACK_REQ_FREQ 0x380, 4
#define PRM_QPC_LOG_SRA_MAX	0x388, 3
#define PRM_QPC_RETRY_COUNT	0x38d, 3
#define PRM_QPC_RNR_RETRY	0x390, 3
#define PRM_QPC_NEXT_SEND_PSN	0x3c8, 24
#define PRM_QPC_CQN_SND		0x3e8, 24
#define PRM_QPC_SEND_DBR_MODE	0x400, 2 /* 0: a record is valid */
#define PRM_QPC_LOG_RRA_MAX	0x488, 3
#define PRM_QPC_ATOMIC_MODE	0x48c, 4
#define PRM_QPC_RRE		0x490, 1
#define PRM_QPC_RWE		0x491, 1
#define PRM_QPC_RAE		0x492, 1
#define PRM_QPC_DP_ORDERING_1	0x49c, 1
#define PRM_QPC_MIN_RNR_NAK	0x4a3, 5
#define PRM_QPC_NEXT_RCV_PSN	0x4a8, 24
#define PRM_QPC_CQN_RCV		0x4e8, 24
#define PRM_QPC_DBR_ADDR	0x500, 64
#define PRM_QPC_RQ_TYPE		0x565, 3
#define PRM_QPC_DBR_UMEM_VALID	0x683, 1
#define PRM_QPC_DBR_UMEM_ID	0x720, 32

/* address path */
#define PRM_ADS_FL	       0x000, 1 /* force loopback */
#define PRM_ADS_PKEY_INDEX     0x010, 16
#define PRM_ADS_GRH	       0x028, 1
#define PRM_ADS_RLID	       0x030, 16
#define PRM_ADS_ACK_TIMEOUT    0x040, 5
#define PRM_ADS_SRC_ADDR_INDEX 0x048, 8
#define PRM_ADS_HOP_LIMIT      0x058, 8
#define PRM_ADS_TCLASS	       0x064, 8
#define PRM_ADS_RGID	       0x080 /* offset of 16 bytes */
#define PRM_ADS_DSCP	       0x10a, 6
#define PRM_ADS_UDP_SPORT      0x110, 16
#define PRM_ADS_ETH_PRIO       0x121, 3
#define PRM_ADS_SL	       0x124, 4
#define PRM_ADS_VHCA_PORT_NUM  0x128, 8
#define PRM_ADS_RMAC_47_32     0x130, 16
#define PRM_ADS_RMAC_31_0      0x140, 32

#endif
