/* SPDX-License-Identifier: BSD-3-Clause */
/* RC requester, the beginning of a request: copies send WQEs out of the ring
 * in order, checks them, and keeps what sending them will need. */
#include <stdlib.h>
#include <string.h>

#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/transport/rc.h"
#include "softhca/strict/strict.h"

/* Copies a WQE out of the ring; segments wrap at its end. */
void rc_fetch(const struct hca_qp *qp, uint16_t index, size_t len, uint8_t *buf)
{
	size_t size = (size_t)WQE_BLOCK << qp->log_sq_size;
	size_t off = ((size_t)index * WQE_BLOCK) & (size - 1);
	size_t first = size - off < len ? size - off : len;

	memcpy(buf, qp->sq + off, first);
	memcpy(buf + first, qp->sq, len - first);
}

uint8_t rc_local_error(struct rc_req *r, uint8_t syndrome, uint8_t vendor)
{
	r->syndrome = syndrome;
	r->vendor = vendor;
	r->npkts = 0;
	return syndrome;
}

static uint8_t check_sges(const struct hca_qp *qp, const struct wqe *w, uint32_t access)
{
	for (unsigned i = 0; i < w->nsge; i++) {
		const struct wqe_sge *s = &w->sge[i];

		if (s->inlined || mr_translate(s->lkey, qp->pdn, s->addr, s->len, access) ||
		    mkey_pieces(s->lkey, qp->pdn, s->addr, s->len, access, NULL, 0) >= 0)
			continue;
		hca_debug(1, "QP 0x%x WQE %u: lkey 0x%x does not cover 0x%llx + %u for this use",
			  qp->qpn, w->index, s->lkey, (unsigned long long)s->addr, s->len);
		return SYND_LOCAL_PROT;
	}
	return 0;
}

static enum rc_req_kind rc_kind_of(uint8_t opcode)
{
	switch (opcode) {
	case WQE_WRITE:
	case WQE_WRITE_IMM:
		return REQ_WRITE;
	case WQE_SEND:
	case WQE_SEND_IMM:
	case WQE_SEND_INV:
		return REQ_SEND;
	case WQE_READ:
		return REQ_READ;
	case WQE_NOP:
	case WQE_DUMP:
	case WQE_UMR:
	case WQE_WAIT:
		return REQ_LOCAL;
	default:
		return REQ_ATOMIC;
	}
}

/* Inline data leaves the ring with its WQE: its segments point to a copy from here on. */
static bool keep_inline(struct rc_req *r, const uint8_t *buf)
{
	size_t len = 0;
	uint8_t *to;

	for (unsigned i = 0; i < r->nsge; i++)
		len += r->sge[i].inlined ? r->sge[i].len : 0;
	if (len > RC_INLINE_KEEP)
		r->inl = malloc(len);
	if (!r->inl)
		return false;
	to = r->inl;
	for (unsigned i = 0; i < r->nsge; i++) {
		struct wqe_sge *s = &r->sge[i];

		if (!s->inlined)
			continue;
		memcpy(to, buf + s->addr, s->len);
		s->addr = (uintptr_t)to;
		to += s->len;
	}
	return true;
}

/* Short payload in memory of a GPU is on its way from here on; it is sent from where it arrives.
 * Behind a fence it may be what an answer has yet to bring. */
static void fetch_payload(const struct hca_qp *qp, struct rc_req *r, const struct wqe *w)
{
	struct wqe_sge *s = r->sge;
	uint8_t *va, *to;

	if ((r->kind != REQ_WRITE && r->kind != REQ_SEND) || r->nsge != 1 || s->inlined || w->fence)
		return;
	va = mr_translate(s->lkey, qp->pdn, s->addr, s->len, 0);
	if (!va || !s->len || !dma_device(va) || wire_in_place(qp, va, s->len) ||
	    !(to = dma_buffer(s->len)))
		return;
	r->fetch = dma_fetch(to, va, s->len);
	if (!r->fetch) {
		dma_buffer_free(to);
		return;
	}
	r->inl = to;
	s->inlined = true;
	s->addr = (uintptr_t)to;
}

/* For who wants to know what posting costs: the request is done as soon as it is read. */
static bool moves_nothing(const struct wqe *w)
{
	uint32_t null = hca_options()->null;

	return null && w->opcode == WQE_WRITE && (null > 1 || !w->has_inline);
}

static bool keep_data(struct rc_req *r, const struct wqe *w, const uint8_t *buf)
{
	r->sge = r->sge_keep;
	r->inl = r->inl_keep;
	if (w->nsge > RC_SGE_KEEP)
		r->sge = malloc(w->nsge * sizeof(*r->sge));
	if (!r->sge)
		return false;
	r->nsge = w->nsge;
	memcpy(r->sge, w->sge, w->nsge * sizeof(*r->sge));
	return !w->has_inline || keep_inline(r, buf);
}

/* Packets that the request takes. */
static uint32_t rc_packets(const struct hca_qp *qp, const struct rc_req *r)
{
	if (r->kind == REQ_LOCAL)
		return 0;
	if (r->kind == REQ_ATOMIC || !r->len || qp->type == HCA_QP_UD)
		return 1;
	return (uint32_t)(((uint64_t)r->len + qp->mtu - 1) / qp->mtu);
}

/* Checks that need the QP; fills r from the decoded WQE. */
static uint8_t accept_wqe(struct hca_qp *qp, struct rc_req *r, const struct wqe *w,
			  const uint8_t *buf)
{
	bool into = w->opcode == WQE_READ || rc_kind_of(w->opcode) == REQ_ATOMIC;

	r->kind = rc_kind_of(w->opcode);
	r->signalled = w->ce >= 2 || qp->sig_all;
	r->solicited = w->solicited;
	r->has_imm = w->opcode == WQE_WRITE_IMM || w->opcode == WQE_SEND_IMM;
	r->imm = w->imm;
	r->raddr = w->raddr;
	r->rkey = w->rkey;
	if (w->opcode == WQE_UMR)
		r->umr = w->umr;
	else if (w->opcode == WQE_WAIT)
		r->wait = w->wait;
	else
		r->atomic = w->atomic;
	r->len = (uint32_t)w->len;
	r->av = w->av;
	if (w->opcode == WQE_WAIT && !rc_wait_known(&w->wait))
		return rc_local_error(r, SYND_LOCAL_QP_OP, VEND_LOCAL_OP);
	if (w->len > (qp->type == HCA_QP_UD ? qp->mtu : 1u << HCA_LOG_MAX_MSG))
		return rc_local_error(r, SYND_LOCAL_LENGTH, VEND_LOCAL_OP);
	if (w->opcode != WQE_UMR && check_sges(qp, w, into ? HCA_LOCAL_WRITE : 0))
		return rc_local_error(r, SYND_LOCAL_PROT, VEND_LOCAL_PROT);
	if (moves_nothing(w)) {
		r->kind = REQ_LOCAL;
		return 0;
	}
	if (!keep_data(r, w, buf))
		return rc_local_error(r, SYND_LOCAL_QP_OP, VEND_LOCAL_OP);
	if (__builtin_expect(dma_on, 0))
		fetch_payload(qp, r, w);
	r->to_cqe = into && r->signalled && r->len <= qp->cqe_req &&
		    rc_by_address(qp, qp->pdn, w->sge, w->nsge);
	r->npkts = rc_packets(qp, r);
	return 0;
}

static enum wqe_service service_of(enum hca_qp_type type)
{
	return type == HCA_QP_UC    ? WQE_SVC_UC
	       : type == HCA_QP_UD  ? WQE_SVC_UD
	       : type == HCA_QP_DCI ? WQE_SVC_DC
				    : WQE_SVC_RC;
}

/* The WQE at sq_ci into the next free request; the error, if any, is in it. */
void rc_fetch_next(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;
	struct rc_req *r = req_at(rc, rc->tail);
	size_t ring = (size_t)WQE_BLOCK << qp->log_sq_size;
	uint8_t buf[16 * WQE_BLOCK];
	const char *why = "";
	uint8_t syndrome;
	struct wqe w;

	size_t len;

	memset(r, 0, offsetof(struct rc_req, sge_keep));
	rc_fetch(qp, qp->sq_ci, WQE_BLOCK, buf);
	wqe_decode_ctrl(buf, &w);
	len = (size_t)w.blocks * WQE_BLOCK < ring ? (size_t)w.blocks * WQE_BLOCK : ring;
	if (len > WQE_BLOCK)
		rc_fetch(qp, qp->sq_ci, len, buf);
	syndrome = wqe_decode_as(service_of(qp->type), buf, len, &w, &why);
	w.blocks = w.blocks ? w.blocks : 1;
	r->opcode = w.opcode;
	r->wqe_index = qp->sq_ci;
	r->blocks = w.blocks;
	r->psn = rc->psn_pick;
	r->signalled = true;
	if (w.index != qp->sq_ci) {
		syndrome = SYND_LOCAL_QP_OP;
		why = "its index field does not match: the doorbell came before the WQE, or the "
		      "WQE is of an earlier lap";
	} else if (w.qpn != qp->qpn) {
		syndrome = SYND_LOCAL_QP_OP;
		why = "its QPN field names another QP";
	} else if ((size_t)w.blocks * WQE_BLOCK > ring ||
		   w.blocks > (uint16_t)(qp->sq_pi - qp->sq_ci)) {
		syndrome = SYND_LOCAL_QP_OP;
		why = "it reaches past what the doorbell covers";
		w.blocks = r->blocks = 1;
	}
	if (strict_on)
		strict_fetch(qp, buf, len, &w, syndrome ? why : NULL);
	if (faults_on &&
	    faults_wqe(qp, dp_now(), w.blocks, syndrome ? 0 : w.len, &r->syndrome, &r->vendor))
		goto out;
	if (syndrome) {
		if (!strict_on)
			hca_warn("QP 0x%x WQE %u (%s, index %u, ds %u): %s", qp->qpn, qp->sq_ci,
			 wqe_opcode_name(w.opcode), w.index, w.ds, why);
		rc_local_error(r, syndrome, VEND_LOCAL_OP);
		goto out;
	}
	accept_wqe(qp, r, &w, buf);
	if (w.fence)
		r->fence = true;
	r->strong = w.fence == WQE_STRONG_ORDER;
out:
	rc->stalled_by_error = r->syndrome != 0;
	qp->sq_ci = (uint16_t)(qp->sq_ci + w.blocks);
	rc->psn_pick = psn_add(rc->psn_pick, r->npkts);
	rc->tail++;
}
