/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding of send work requests as the mlx5 PRM lays them out ("Send WQE
 * Format"): control segment, then segments of 16 bytes by opcode. Pure
 * functions over a linearised copy of the WQE; never read past its end. */
#ifndef SOFTHCA_WQE_H
#define SOFTHCA_WQE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WQE_BLOCK = 64,
	WQE_MAX_BYTES = 63 * 16, /* ds is six bits wide */
	WQE_MAX_SGE = 62,
};

enum wqe_opcode {
	WQE_NOP = 0x00,
	WQE_SEND_INV = 0x01,
	WQE_WRITE = 0x08,
	WQE_WRITE_IMM = 0x09,
	WQE_SEND = 0x0a,
	WQE_SEND_IMM = 0x0b,
	WQE_WAIT = 0x0f,
	WQE_READ = 0x10,
	WQE_CMP_SWAP = 0x11,
	WQE_FETCH_ADD = 0x12,
	WQE_MASKED_CMP_SWAP = 0x14,
	WQE_MASKED_FETCH_ADD = 0x15,
	WQE_DUMP = 0x23,
	WQE_UMR = 0x25,
};

/* Completion syndromes, PRM "Error CQE". */
enum cqe_syndrome {
	SYND_NONE = 0x00,
	SYND_LOCAL_LENGTH = 0x01,
	SYND_LOCAL_QP_OP = 0x02,
	SYND_LOCAL_PROT = 0x04,
	SYND_FLUSH = 0x05,
	SYND_MW_BIND = 0x06,
	SYND_BAD_RESP = 0x10,
	SYND_LOCAL_ACCESS = 0x11,
	SYND_REMOTE_INVAL_REQ = 0x12,
	SYND_REMOTE_ACCESS = 0x13,
	SYND_REMOTE_OP = 0x14,
	SYND_RETRY_EXC = 0x15,
	SYND_RNR_RETRY_EXC = 0x16,
};

struct wqe_sge {
	uint64_t addr; /* inlined: offset of the bytes in the linearised WQE */
	uint32_t len;  /* as decoded: 0 in the WQE is 2 GiB here */
	uint32_t lkey;
	uint16_t stride; /* UMR */
	bool inlined;
};

struct wqe_atomic {
	uint8_t size;	 /* 4 or 8 */
	bool masked;
	bool add;	 /* fetch-and-add, else compare-and-swap */
	uint64_t operand; /* add or swap value */
	uint64_t compare;
	uint64_t operand_mask; /* swap mask, or field boundary of the add */
	uint64_t compare_mask;
};

/* A UMR as far as it binds a memory window, fills an indirect key, or takes one back. What they are
 * to hold is in the WQE's segments. */
struct wqe_umr {
	bool free;	  /* take it back */
	bool by_qpn;	  /* the binding is this QP's (type 2) */
	bool new_free, new_key, new_access, new_start, new_len; /* of these fields there are new values */
	uint8_t variant;  /* new_key: lower byte of the key from now on */
	uint32_t access;  /* HCA_LOCAL_WRITE, HCA_REMOTE_*, HCA_RELAXED_ORDERING */
	uint32_t key;	  /* its lower byte does not count */
	uint32_t repeat;  /* of interleaved pieces: how often, each a stride further on; 0: once */
	uint64_t start;	  /* how work requests will name the first byte */
	uint64_t len;
};

static inline uint32_t umr_key(const struct wqe_umr *u, uint32_t key)
{
	return u->new_key ? (key & ~0xffu) | u->variant : key;
}

/* WAIT, PRM "Wait segment": until the CQ has had the CQE of this number, counted from 0. */
struct wqe_wait {
	uint32_t index, cqn;
	bool came;	 /* kept by who waits: it has, and */
	uint64_t posted; /* the last write to memory of a GPU then */
};

/* Address vector of a datagram segment, PRM "UD/DC address segment". */
struct wqe_av {
	uint64_t key;	 /* DC access key; Q_Key in the upper 32 bits */
	uint32_t dqpn;	 /* QPN or DCT number */
	bool has_grh;	 /* the long form: the fields below are there */
	uint8_t sl, tclass, hop_limit, sgid_index;
	uint16_t rlid;	 /* RoCE: UDP source port */
	uint8_t rgid[16];
};

/* Which opcodes there are and where the segments lie. */
enum { WQE_STRONG_ORDER = 3 }; /* fence mode */

enum wqe_service { WQE_SVC_RC, WQE_SVC_UC, WQE_SVC_UD, WQE_SVC_DC };

struct wqe {
	uint8_t opcode;	 /* enum wqe_opcode */
	uint8_t opmod;
	uint8_t ds;	 /* 16-byte segments, 1..63 */
	uint8_t blocks;	 /* 64-byte blocks */
	uint8_t fence;	 /* FM bits, fm_ce_se >> 5; WQE_STRONG_ORDER waits for WRITEs, too */
	uint8_t ce;	 /* 0 on error, 1 first error, 2 always, 3 with event */
	bool solicited;
	uint16_t index;
	uint32_t qpn;
	uint32_t imm;	 /* network order, as it came */
	uint64_t raddr;
	uint32_t rkey;
	struct wqe_atomic atomic;
	struct wqe_umr umr;
	struct wqe_wait wait;
	struct wqe_av av; /* UD, DC */
	bool has_inline; /* among the segments */
	uint16_t nsge;
	uint64_t len;	 /* payload bytes in all */
	struct wqe_sge sge[WQE_MAX_SGE];
};

/* Control segment only: ds and blocks are always set to something a caller
 * can step by (at least one block). False when ds is zero. */
bool wqe_decode_ctrl(const uint8_t *buf, struct wqe *w);

/* The whole WQE out of n bytes at buf. Returns 0 or the completion syndrome,
 * and then *why says what is wrong. */
uint8_t wqe_decode_as(enum wqe_service service, const uint8_t *buf, size_t n, struct wqe *w,
		      const char **why);

static inline uint8_t wqe_decode(const uint8_t *buf, size_t n, struct wqe *w, const char **why)
{
	return wqe_decode_as(WQE_SVC_RC, buf, n, w, why);
}

/* Scatter list of a receive WQE, n bytes at buf. Returns the number of entries
 * written to sge (at most max), ends at the invalid-lkey terminator. */
unsigned rwqe_decode(const uint8_t *buf, size_t n, struct wqe_sge *sge, unsigned max);

const char *wqe_opcode_name(uint8_t opcode);

#endif
