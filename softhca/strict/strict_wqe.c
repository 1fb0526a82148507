/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict mode, a work request by itself: opcode, segments, inline data, keys.
 * Written a second time, and not over wqe.c: what decodes must not be what
 * judges the decoding. */
#include "softhca/memory/guest.h"
#include "softhca/strict/strict_impl.h"

enum { SEG = 16, FM_LAST = 4, DS_MAX = 63 };

/* Segments that an operation takes beside control and address vector. */
struct shape {
	bool known;
	uint8_t remote;	 /* remote address segments */
	uint8_t operand; /* of atomics */
	uint8_t data_min, data_max;
	uint8_t atomic; /* operand bytes */
	bool into;	/* local memory is written */
};

static struct shape shape_of(uint8_t opcode, uint8_t opmod)
{
	static const struct shape shapes[256] = {
		[WQE_NOP] = {true, 0, 0, 0, DS_MAX, 0, false},
		[WQE_DUMP] = {true, 0, 0, 1, 1, 0, false},
		[WQE_SEND] = {true, 0, 0, 0, DS_MAX, 0, false},
		[WQE_SEND_IMM] = {true, 0, 0, 0, DS_MAX, 0, false},
		[WQE_SEND_INV] = {true, 0, 0, 0, DS_MAX, 0, false},
		[WQE_WAIT] = {true, 0, 0, 1, 1, 0, false}, /* a segment of its own kind */
		[WQE_UMR] = {true, 0, 0, 7, DS_MAX, 0, false}, /* control, key, entries: 3, 4 and some fours */
		[WQE_WRITE] = {true, 1, 0, 0, DS_MAX, 0, false},
		[WQE_WRITE_IMM] = {true, 1, 0, 0, DS_MAX, 0, false},
		[WQE_READ] = {true, 1, 0, 0, DS_MAX, 0, true},
		[WQE_CMP_SWAP] = {true, 1, 1, 1, 1, 8, true},
		[WQE_FETCH_ADD] = {true, 1, 1, 1, 1, 8, true},
		[WQE_MASKED_CMP_SWAP] = {true, 1, 2, 1, 1, 8, true},
		[WQE_MASKED_FETCH_ADD] = {true, 1, 1, 1, 1, 8, true},
	};
	struct shape s = shapes[opcode];

	if (opcode >= WQE_MASKED_CMP_SWAP && s.atomic && opmod == 8) { /* of 4 bytes */
		s.operand = 1;
		s.atomic = 4;
	}
	return s;
}

static bool service_has(enum hca_qp_type type, uint8_t opcode, const struct shape *sh)
{
	if (opcode == WQE_WAIT)
		return type == HCA_QP_RC;
	if (type == HCA_QP_UD)
		return !sh->remote && opcode != WQE_DUMP && opcode != WQE_UMR &&
		       opcode != WQE_SEND_INV;
	if (type == HCA_QP_UC)
		return !sh->into && opcode != WQE_DUMP && opcode != WQE_SEND_INV;
	return type != HCA_QP_DCI || opcode != WQE_UMR;
}

/* Address vector in 16-byte segments: bit 31 of its third word says that it is whole. */
static size_t av_segments(const struct hca_qp *qp, const uint8_t *buf, size_t n)
{
	if (qp->type != HCA_QP_UD && qp->type != HCA_QP_DCI)
		return 0;
	return n >= 2 * SEG && get_be32(buf + SEG + 8) >> 31 ? 3 : 1;
}

static bool strict_wqe_tell(enum strict_rule rule, const struct strict_at *at, size_t mark, const char *text)
{
	struct strict_at a = *at;

	a.mark = mark;
	strict_report(rule, &a, "%s", text);
	return true;
}

/* ---- control segment ---- */

static bool check_opmod(const struct strict_at *at, uint8_t opcode, uint8_t opmod)
{
	bool masked = opcode == WQE_MASKED_CMP_SWAP || opcode == WQE_MASKED_FETCH_ADD;
	struct strict_at a = *at;

	if (masked ? opmod == 8 || opmod == 9 : !opmod)
		return false;
	a.mark = 0;
	strict_report(RULE_WQE_OPMOD, &a, "opmod of this %s is 0x%x", wqe_opcode_name(opcode),
		      opmod);
	return true;
}

static bool check_reserved(const struct strict_at *at, const uint8_t *buf)
{
	struct strict_at a = *at;
	uint8_t flags = buf[11];

	a.mark = 0;
	if (buf[7] & 0xc0) {
		strict_report(RULE_WQE_RESERVED, &a,
			      "byte 7 is 0x%02x: ds has six bits, the two above are reserved", buf[7]);
		return true;
	}
	if (flags >> 5 > FM_LAST || flags & 0x11) {
		strict_report(RULE_WQE_RESERVED, &a,
			      "fm_ce_se is 0x%02x: %s", flags,
			      flags & 0x11 ? "bits 0 and 4 are reserved"
					   : "fence modes above 4 are not defined");
		return true;
	}
	return false;
}

/* ---- data segments ---- */

static bool in_region(const struct hca_mr *mr, uint64_t addr, uint64_t len)
{
	return addr >= mr->iova && addr - mr->iova <= mr->len && len <= mr->len - (addr - mr->iova);
}

static bool strict_wqe_check_range(const struct strict_at *a, const struct hca_mr *mr, uint64_t addr,
				   uint32_t len)
{
	if (in_region(mr, addr, len))
		return false;
	if (in_region(mr, __builtin_bswap64(addr), len))
		strict_report(RULE_ENDIAN, a, "address 0x%llx lies in the region of lkey 0x%x with "
			      "its bytes swapped", (unsigned long long)addr, mr->key);
	else if (len > mr->len && in_region(mr, addr, __builtin_bswap32(len)))
		strict_report(RULE_ENDIAN, a, "byte count 0x%x fits with its bytes swapped: %u", len,
			      __builtin_bswap32(len));
	else
		strict_report(RULE_KEY_RANGE, a,
			      "0x%llx + %u is outside 0x%llx + %llu, the region of lkey 0x%x",
			      (unsigned long long)addr, len, (unsigned long long)mr->iova,
			      (unsigned long long)mr->len, mr->key);
	return true;
}

void strict_cqe_data(const struct hca_qp *qp, const struct wqe_sge *sge)
{
	const struct hca_mr *mr = hca_find_mr(sge->lkey);

	if (mr && mr->memic)
		strict_report(RULE_DM_CQE, &(struct strict_at){.qp = qp}, "lkey 0x%x is of device memory", mr->key);
}

static bool check_key(uint32_t pdn, const struct strict_at *a, uint32_t key, bool into,
		      const struct hca_mr **out)
{
	const struct hca_mr *mr = hca_find_mr(key);

	*out = mr;
	/* A window's key is for the peer, an indirect one for both once it is filled. */
	if (!mr || (mr->window && !(mr->window == HCA_INDIRECT && mr->bound))) {
		mr = hca_find_mr(__builtin_bswap32(key));
		if (mr)
			strict_report(RULE_ENDIAN, a, "lkey 0x%x is key 0x%x with its bytes swapped",
				      key, mr->key);
		else
			strict_report(RULE_KEY_UNKNOWN, a, "no region has the lkey 0x%x", key);
		return true;
	}
	if (mr->pdn != pdn) {
		strict_report(RULE_KEY_PD, a, "lkey 0x%x belongs to PD %u, the queue to PD %u", key,
			      mr->pdn, pdn);
		return true;
	}
	if (into && !(mr->access & HCA_LOCAL_WRITE)) {
		strict_report(RULE_KEY_ACCESS, a, "the region of lkey 0x%x lacks local write", key);
		return true;
	}
	return false;
}

bool strict_check_segment(uint32_t pdn, const struct strict_at *at, const uint8_t *seg, size_t off,
			  bool into)
{
	static const uint8_t zero[SEG];
	uint32_t len = get_be32(seg), key = get_be32(seg + 4);
	const struct hca_mr *mr;
	struct strict_at a = *at;

	a.mark = off;
	if (!at->is_recv && !memcmp(seg, zero, SEG)) {
		strict_report(RULE_WQE_DS, &a, "ds counts a segment that is all zero");
		return true;
	}
	if (!len) {
		strict_report(RULE_BYTE_COUNT_ZERO, &a, "byte count 0 with lkey 0x%x", key);
		return true;
	}
	if (check_key(pdn, &a, key, into, &mr))
		return true;
	return strict_wqe_check_range(&a, mr, get_be64(seg + 8), len);
}

/* Other segments may follow inline data, at the next multiple of 16. */
static bool check_inline(const struct strict_at *at, const uint8_t *buf, size_t off, size_t end)
{
	uint32_t len = get_be32(buf + off) & 0x7fffffff;
	struct strict_at a = *at;

	if (len <= end - off - 4)
		return false;
	a.mark = off;
	strict_report(RULE_INLINE_LENGTH, &a,
		      "%u bytes of inline data, but %zu to the end of the WQE (ds %zu)", len,
		      end - off - 4, end / SEG);
	return true;
}

static bool check_data(const struct hca_qp *qp, const struct strict_at *at, const uint8_t *buf,
		       size_t off, size_t end, const struct shape *sh)
{
	uint64_t total = 0;
	bool bad = false;

	while (off < end) {
		uint32_t word = get_be32(buf + off), len = word & 0x7fffffff;

		total += len;
		if (!(word >> 31)) {
			bad |= strict_check_segment(qp->pdn, at, buf + off, off, sh->into);
			off += SEG;
		} else if (sh->into) {
			return bad; /* inline where it cannot be: the device says so */
		} else if (check_inline(at, buf, off, end)) {
			return true;
		} else {
			off += (4 + len + SEG - 1) / SEG * SEG;
		}
	}
	if (bad || total <= 1u << HCA_LOG_MAX_MSG)
		return bad;
	return strict_wqe_tell(RULE_TOO_LONG, at, STRICT_NO_MARK, "the segments are longer in all");
}

/* ---- the whole ---- */

static bool check_ds(const struct strict_at *at, const struct shape *sh, uint8_t opcode, size_t ds,
		     size_t before, size_t n)
{
	struct strict_at a = *at;
	size_t min = before + sh->data_min, max = before + sh->data_max;

	a.mark = 0;
	if (ds * SEG > n)
		strict_report(RULE_WQE_DS, &a, "ds is %zu, more than the ring", ds);
	else if (ds < min || !ds)
		strict_report(RULE_WQE_DS, &a, "ds is %zu, %s takes at least %zu", ds,
			      wqe_opcode_name(opcode), min);
	else if (ds > max && opcode != WQE_NOP)
		strict_report(RULE_WQE_DS, &a, "ds is %zu, this %s takes %zu", ds,
			      wqe_opcode_name(opcode), max);
	else
		return false;
	return true;
}

/* A transfer without data whose data segment was written in this lap all the same. */
static bool data_left_out(struct hca_qp *qp, const uint8_t *buf, size_t off, size_t n)
{
	uint32_t len = n >= off + SEG ? get_be32(buf + off) : 0;
	const struct strict_qp *s = qp->strict;
	size_t slot = qp->sq_ci & (strict_ring_blocks(qp) - 1);
	const struct hca_mr *mr;

	if (!len || off + SEG > WQE_BLOCK || !s)
		return false;
	mr = hca_find_mr(get_be32(buf + off + 4));
	if (!mr || mr->pdn != qp->pdn || !in_region(mr, get_be64(buf + off + 8), len))
		return false;
	return !s->slot[slot].seen ||
	       memcmp(s->shadow + slot * WQE_BLOCK + off, buf + off, SEG) != 0;
}

static bool check_atomic(const struct strict_at *at, const uint8_t *raddr, size_t off, uint8_t size)
{
	struct strict_at a = *at;

	if (!size || !(get_be64(raddr) % size))
		return false;
	a.mark = off;
	strict_report(RULE_ATOMIC_ALIGN, &a, "0x%llx is not aligned to the %u bytes of the atomic",
		      (unsigned long long)get_be64(raddr), size);
	return true;
}

bool strict_check_wqe(struct hca_qp *qp, const struct strict_at *at, const uint8_t *buf, size_t n)
{
	uint8_t opcode = buf[3], opmod = buf[0];
	struct shape sh = shape_of(opcode, opmod);
	size_t ds = buf[7] & 0x3f, av, before;
	bool bad = check_reserved(at, buf);

	if (!sh.known || !service_has(qp->type, opcode, &sh)) {
		struct strict_at a = *at;

		a.mark = 0;
		strict_report(RULE_WQE_OPCODE, &a, "opcode 0x%02x (%s)", opcode,
			      wqe_opcode_name(opcode));
		return true;
	}
	bad |= check_opmod(at, opcode, opmod);
	av = opcode == WQE_NOP || opcode == WQE_DUMP ? 0 : av_segments(qp, buf, n);
	before = 1 + av + sh.remote + sh.operand;
	if (check_ds(at, &sh, opcode, ds, before, n))
		return true;
	if (opcode == WQE_NOP || opcode == WQE_UMR || opcode == WQE_WAIT)
		return bad;
	if (sh.remote)
		bad |= check_atomic(at, buf + (1 + av) * SEG, (1 + av) * SEG, sh.atomic);
	if (ds == before && data_left_out(qp, buf, before * SEG, n))
		return strict_wqe_tell(RULE_WQE_DS, at, before * SEG,
				       "ds leaves out a data segment that was written for it");
	return check_data(qp, at, buf, before * SEG, ds * SEG, &sh) || bad;
}
