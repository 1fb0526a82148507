/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding of send and receive work requests. The byte offsets are those of
 * the PRM; structures of the library that builds WQEs are not used here, so
 * that a mistake there is not repeated in what judges it. */
#include "softhca/transport/wqe.h"

#include "softhca/memory/guest.h"
#include "softhca/engine/hca.h"

enum {
	SEG = 16,
	INLINE_FLAG = 1,		 /* bit 31 of byte_count */
	LKEY_END = 0x100,		 /* ends a receive scatter list */
};

#define SGE_2GIB 0x80000000u

bool wqe_decode_ctrl(const uint8_t *buf, struct wqe *w)
{
	uint32_t op = get_be32(buf);
	uint32_t qd = get_be32(buf + 4);

	w->opmod = (uint8_t)(op >> 24);
	w->index = (uint16_t)(op >> 8);
	w->opcode = (uint8_t)op;
	w->qpn = qd >> 8;
	w->ds = (uint8_t)(qd & 0x3f);
	w->blocks = (uint8_t)(w->ds ? (w->ds + 3) / 4 : 1);
	w->fence = buf[11] >> 5;
	w->ce = (buf[11] >> 2) & 3;
	w->solicited = (buf[11] >> 1) & 1;
	memcpy(&w->imm, buf + 12, sizeof(w->imm));
	return w->ds != 0;
}

static uint8_t wqe_bad(const char **why, uint8_t syndrome, const char *text)
{
	*why = text;
	return syndrome;
}

/* An inline segment: byte count, data, filled up to 16 bytes. Moves *off behind it. */
static uint8_t decode_inline(const uint8_t *buf, size_t *off, size_t n, struct wqe *w,
			     const char **why)
{
	uint32_t len = get_be32(buf + *off) & 0x7fffffff;

	if (len > n - *off - 4)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "inline data runs past the end of the WQE");
	w->has_inline = true;
	w->len += len;
	if (len)
		w->sge[w->nsge++] = (struct wqe_sge){
			.addr = *off + 4, .len = len, .inlined = true,
		};
	*off += (4 + len + SEG - 1) / SEG * SEG;
	return 0;
}

/* Data segments from off to the end, inline ones and pointers in any order. */
static uint8_t decode_data(const uint8_t *buf, size_t off, size_t n, struct wqe *w,
			   const char **why)
{
	while (off < n) {
		uint32_t len = get_be32(buf + off);
		uint8_t ret;

		if (len >> 31 & INLINE_FLAG) {
			ret = decode_inline(buf, &off, n, w, why);
			if (ret)
				return ret;
			continue;
		}
		w->sge[w->nsge] = (struct wqe_sge){
			.addr = get_be64(buf + off + 8),
			.len = len ? len : SGE_2GIB,
			.lkey = get_be32(buf + off + 4),
		};
		w->len += w->sge[w->nsge++].len;
		off += SEG;
	}
	if (w->len > SGE_2GIB)
		return wqe_bad(why, SYND_LOCAL_LENGTH, "message longer than 2 GiB");
	return 0;
}

static uint8_t decode_masked(const uint8_t *seg, size_t room, struct wqe *w, const char **why)
{
	struct wqe_atomic *a = &w->atomic;

	a->masked = true;
	if (a->size == 4) {
		a->operand = get_be32(seg);
		if (a->add) {
			a->operand_mask = get_be32(seg + 4);
		} else {
			a->compare = get_be32(seg + 4);
			a->operand_mask = get_be32(seg + 8);
			a->compare_mask = get_be32(seg + 12);
		}
		return 0;
	}
	a->operand = get_be64(seg);
	if (a->add) {
		a->operand_mask = get_be64(seg + 8);
		return 0;
	}
	if (room < 2 * SEG)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "masked 8-byte compare-and-swap without masks");
	a->compare = get_be64(seg + 8);
	a->operand_mask = get_be64(seg + SEG);
	a->compare_mask = get_be64(seg + SEG + 8);
	return 0;
}

/* off: of the segment behind the remote address. */
static uint8_t wqe_decode_atomic(const uint8_t *buf, size_t off, size_t n, struct wqe *w,
				 const char **why)
{
	struct wqe_atomic *a = &w->atomic;
	uint8_t ret;

	if (n < off + 2 * SEG)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "ds too small for an atomic");
	a->add = w->opcode == WQE_FETCH_ADD || w->opcode == WQE_MASKED_FETCH_ADD;
	a->size = 8;
	if (w->opcode == WQE_CMP_SWAP || w->opcode == WQE_FETCH_ADD) {
		if (w->opmod)
			return wqe_bad(why, SYND_LOCAL_QP_OP, "opmod of a plain atomic is not 0");
		a->operand = get_be64(buf + off);
		a->compare = get_be64(buf + off + 8);
		off += SEG;
	} else {
		if (w->opmod != 8 && w->opmod != 9)
			return wqe_bad(why, SYND_LOCAL_QP_OP, "opmod of a masked atomic is not 8 or 9");
		a->size = w->opmod == 8 ? 4 : 8;
		ret = decode_masked(buf + off, n - off, w, why);
		if (ret)
			return ret;
		off += !a->add && a->size == 8 ? 2 * SEG : SEG;
	}
	if (off >= n)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "atomic without a data segment");
	ret = decode_data(buf, off, n, w, why);
	if (ret)
		return ret;
	if (w->has_inline)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "atomic result cannot be inline");
	if (w->len < a->size)
		return wqe_bad(why, SYND_LOCAL_LENGTH, "result buffer smaller than the operand");
	w->len = a->size;
	return 0;
}

static uint8_t decode_rdma(const uint8_t *buf, size_t off, size_t n, struct wqe *w,
			   const char **why)
{
	uint8_t ret;

	if (n < off + SEG)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "ds too small for a remote address segment");
	w->raddr = get_be64(buf + off);
	w->rkey = get_be32(buf + off + 8);
	off += SEG;
	if (w->opcode != WQE_WRITE && w->opcode != WQE_WRITE_IMM && w->opcode != WQE_READ)
		return wqe_decode_atomic(buf, off, n, w, why);
	ret = decode_data(buf, off, n, w, why);
	if (!ret && w->opcode == WQE_READ && w->has_inline)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "READ into inline data");
	return ret;
}

/* Address vector at one segment behind the control segment: 48 bytes, or with
 * bit 31 of the destination clear the first 16 of them. Sets *off behind it. */
static uint8_t decode_av(const uint8_t *buf, size_t n, struct wqe *w, size_t *off,
			 const char **why)
{
	struct wqe_av *av = &w->av;
	const uint8_t *s = buf + SEG;

	if (n < 2 * SEG)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "ds too small for an address vector");
	av->key = get_be64(s);
	av->dqpn = get_be32(s + 8) & 0xffffff;
	av->has_grh = s[8] >> 7;
	av->sl = s[12] & 0xf;
	av->rlid = get_be16(s + 14);
	*off = 2 * SEG;
	if (!av->has_grh)
		return 0;
	if (n < 4 * SEG)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "ds too small for a long address vector");
	av->sgid_index = (uint8_t)(get_be32(s + 28) >> 20);
	av->tclass = s[26];
	av->hop_limit = s[27];
	memcpy(av->rgid, s + 32, 16);
	*off = 4 * SEG;
	return 0;
}

enum { /* PRM "UMR control segment" and "mkey context segment" */
	UMR_INLINE = 0x80,
	UMR_MKEY_SEG = 4 * SEG,
	UMR_DATA_SEG = 8 * SEG,
	UMR_REPEAT = 0x400, /* where the first entry would have its key */
	MKEY_FREE = 0x40,
	MKEY_ATOMIC = 0x40, /* access flags */
	MKEY_REMOTE_WRITE = 0x20,
	MKEY_REMOTE_READ = 0x10,
	MKEY_LOCAL_WRITE = 0x08,
};

/* Fields of the key that change: free, key, QPN, length, start, access. */
#define UMR_MASK_QPN	(1ull << 14)
#define UMR_MASK_START	(1ull << 6)
#define UMR_MASK_ACCESS (0xfull << 18)
#define UMR_MASK_FREE	(1ull << 29)
#define UMR_MASK_KEY	(1ull << 13)
#define UMR_MASK_LEN	1ull
#define UMR_MASK_KNOWN                                                                             \
	(UMR_MASK_FREE | UMR_MASK_KEY | UMR_MASK_QPN | UMR_MASK_LEN | UMR_MASK_START | UMR_MASK_ACCESS)

static uint8_t umr_access(uint8_t flags)
{
	return (uint8_t)((flags & MKEY_LOCAL_WRITE ? HCA_LOCAL_WRITE : 0) |
			 (flags & MKEY_REMOTE_WRITE ? HCA_REMOTE_WRITE : 0) |
			 (flags & MKEY_REMOTE_READ ? HCA_REMOTE_READ : 0) |
			 (flags & MKEY_ATOMIC ? HCA_REMOTE_ATOMIC : 0));
}

/* Pieces one behind the other, or a head and interleaved ones; what is left of the last four is zero. */
static bool decode_pieces(const uint8_t *data, size_t n, struct wqe *w)
{
	bool repeat = n && get_be32(data + 4) == UMR_REPEAT;
	size_t count = repeat ? get_be16(data + 14) : n / SEG;

	if (repeat) {
		w->umr.repeat = get_be32(data + 8);
		data += SEG;
		if (!w->umr.repeat || !count || (count + 1) * SEG > n)
			return false;
	}
	for (size_t i = 0; i < count && w->nsge < WQE_MAX_SGE; i++, data += SEG) {
		struct wqe_sge s = { .addr = get_be64(data + 8), .lkey = get_be32(data + 4),
				     .len = repeat ? get_be16(data + 2) : get_be32(data),
				     .stride = repeat ? get_be16(data) : 0 };

		if (s.len)
			w->sge[w->nsge++] = s;
	}
	return w->nsge;
}

/* Control, three segments of UMR control, four of the key's context, and then entries, in fours. */
static uint8_t decode_umr(const uint8_t *buf, size_t n, struct wqe *w, const char **why)
{
	const uint8_t *mkey = buf + UMR_MKEY_SEG;
	struct wqe_umr *u = &w->umr;
	uint64_t mask;

	if (n < UMR_DATA_SEG)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "ds too small for a UMR");
	mask = get_be64(buf + SEG + 8);
	u->new_free = mask & UMR_MASK_FREE;
	u->free = u->new_free && mkey[0] & MKEY_FREE;
	if (!(buf[SEG] & UMR_INLINE) || mask & ~UMR_MASK_KNOWN || w->opmod)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "a UMR of other fields than windows and lists have");
	u->by_qpn = mask & UMR_MASK_QPN;
	u->new_access = mask & UMR_MASK_ACCESS;
	u->new_start = mask & UMR_MASK_START;
	u->new_len = mask & UMR_MASK_LEN;
	u->new_key = mask & UMR_MASK_KEY;
	u->key = get_be32(buf + 12);
	u->variant = mkey[7];
	u->access = umr_access(mkey[2]);
	u->start = get_be64(mkey + 16);
	u->len = get_be64(mkey + 24);
	n -= UMR_DATA_SEG;
	if (n % (4 * SEG) || (u->free && n) || (n && !decode_pieces(buf + UMR_DATA_SEG, n, w)))
		return wqe_bad(why, SYND_LOCAL_QP_OP, "a UMR whose entries do not fit");
	return 0;
}

/* For a CQ's producer index, which is opmod 0. */
static uint8_t decode_wait(const uint8_t *buf, struct wqe *w, const char **why)
{
	if (w->ds != 2 || w->opmod)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "a WAIT is for a CQ's index and has two segments");
	w->wait.index = get_be32(buf + SEG + 8);
	w->wait.cqn = get_be32(buf + SEG + 12) & 0xffffff;
	return 0;
}

static bool opcode_of(enum wqe_service service, uint8_t opcode)
{
	switch (opcode) {
	case WQE_NOP:
	case WQE_SEND:
	case WQE_SEND_IMM:
		return true;
	case WQE_WRITE:
	case WQE_WRITE_IMM:
		return service != WQE_SVC_UD;
	case WQE_UMR:
		return service == WQE_SVC_RC || service == WQE_SVC_UC;
	case WQE_WAIT:
		return service == WQE_SVC_RC;
	case WQE_SEND_INV:
	case WQE_DUMP:
	case WQE_READ:
	case WQE_CMP_SWAP:
	case WQE_FETCH_ADD:
	case WQE_MASKED_CMP_SWAP:
	case WQE_MASKED_FETCH_ADD:
		return service == WQE_SVC_RC || service == WQE_SVC_DC;
	default:
		return false;
	}
}

uint8_t wqe_decode_as(enum wqe_service service, const uint8_t *buf, size_t n, struct wqe *w,
		      const char **why)
{
	static const char *const unsupported[] = {
		"opcode not supported on an RC queue", "opcode not supported on a UC queue",
		"opcode not supported on a UD queue", "opcode not supported on a DCI"
	};
	size_t off = SEG;
	uint8_t ret;

	memset(w, 0, offsetof(struct wqe, sge));
	if (n < SEG)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "no control segment");
	if (!wqe_decode_ctrl(buf, w))
		return wqe_bad(why, SYND_LOCAL_QP_OP, "ds is 0");
	if ((size_t)w->ds * SEG > n)
		return wqe_bad(why, SYND_LOCAL_QP_OP, "ds runs past the ring");
	n = (size_t)w->ds * SEG;
	if (!opcode_of(service, w->opcode))
		return wqe_bad(why, SYND_LOCAL_QP_OP, unsupported[service]);
	if (w->opcode == WQE_NOP)
		return 0;
	if (w->opcode == WQE_DUMP) {
		if (w->ds != 2)
			return wqe_bad(why, SYND_LOCAL_QP_OP, "DUMP takes one data segment");
		return decode_data(buf, SEG, n, w, why);
	}
	if (w->opcode == WQE_UMR)
		return decode_umr(buf, n, w, why);
	if (w->opcode == WQE_WAIT)
		return decode_wait(buf, w, why);
	if (service == WQE_SVC_UD || service == WQE_SVC_DC) {
		ret = decode_av(buf, n, w, &off, why);
		if (ret)
			return ret;
	}
	if (w->opcode == WQE_SEND || w->opcode == WQE_SEND_IMM || w->opcode == WQE_SEND_INV)
		return decode_data(buf, off, n, w, why);
	return decode_rdma(buf, off, n, w, why);
}

unsigned rwqe_decode(const uint8_t *buf, size_t n, struct wqe_sge *sge, unsigned max)
{
	unsigned count = 0;

	for (size_t off = 0; off + SEG <= n && count < max; off += SEG) {
		uint32_t len = get_be32(buf + off);
		uint32_t lkey = get_be32(buf + off + 4);

		if (lkey == LKEY_END && !len)
			break;
		sge[count++] = (struct wqe_sge){
			.addr = get_be64(buf + off + 8),
			.len = len ? len : SGE_2GIB,
			.lkey = lkey,
		};
	}
	return count;
}

const char *wqe_opcode_name(uint8_t opcode)
{
	switch (opcode) {
	case WQE_NOP:
		return "NOP";
	case WQE_WRITE:
		return "RDMA_WRITE";
	case WQE_WRITE_IMM:
		return "RDMA_WRITE_IMM";
	case WQE_SEND:
		return "SEND";
	case WQE_SEND_IMM:
		return "SEND_IMM";
	case WQE_SEND_INV:
		return "SEND_INVAL";
	case WQE_UMR:
		return "UMR";
	case WQE_READ:
		return "RDMA_READ";
	case WQE_CMP_SWAP:
		return "ATOMIC_CS";
	case WQE_FETCH_ADD:
		return "ATOMIC_FA";
	case WQE_MASKED_CMP_SWAP:
		return "ATOMIC_MASKED_CS";
	case WQE_MASKED_FETCH_ADD:
		return "ATOMIC_MASKED_FA";
	case WQE_DUMP:
		return "DUMP";
	case WQE_WAIT:
		return "WAIT";
	default:
		return "unknown opcode";
	}
}
