/* SPDX-License-Identifier: BSD-3-Clause */
/* RC requester: picks up send WQEs in order, cuts them into packets, keeps
 * them until they are acknowledged, sends again from the oldest unacknowledged
 * packet when something is lost (go-back-N), completes in order.
 * IBTA volume 1, sections 9.7.2 to 9.7.6 and 9.9.2. */
#include <stdlib.h>
#include <string.h>

#include "softhca/guest.h"
#include "softhca/log.h"
#include "softhca/rc.h"

enum { /* vendor syndromes beside the standard ones */
	VEND_FLUSH = 0xf9,
	VEND_RETRY = 0x81,
	VEND_RNR_RETRY = 0x87,
	VEND_LOCAL_PROT = 0x51,
	VEND_LOCAL_OP = 0x68,
	VEND_REMOTE_ACCESS = 0x88,
	VEND_REMOTE_INVAL = 0x8a,
	VEND_REMOTE_OP = 0x89,
};

static struct rc_req *req_at(struct hca_rc *rc, uint32_t i)
{
	return &rc->reqs[i % RC_MAX_REQS];
}

static void req_free(struct rc_req *r)
{
	if (r->sge != r->sge_keep)
		free(r->sge);
	if (r->inl != r->inl_keep)
		free(r->inl);
	r->sge = NULL;
	r->inl = NULL;
}

void rc_req_reset(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	for (; rc->head != rc->tail; rc->head++)
		req_free(req_at(rc, rc->head));
	rc->head = rc->cur = rc->tail = 0;
	rc->cur_off = 0;
	rc->psn_pick = rc->psn_next = rc->psn_una = rc->psn_max = 0;
	rc->window = RC_WINDOW_START;
	rc->acked_in_window = rc->since_ackreq = 0;
	rc->lost = false;
	rc->rd_head = rc->rd_tail = 0;
	rc->wqe_total = 0;
	rc->deadline = rc->rnr_until = 0;
	rc->retries = rc->rnr_retries = 0;
	rc->stalled_by_error = rc->flushing = rc->implied_nak = false;
}

/* ---- completion ---- */

static void complete(struct hca_qp *qp, const struct rc_req *r, uint8_t syndrome, uint8_t vendor)
{
	struct cqe c = {
		.type = syndrome ? CQE_REQ_ERR : CQE_REQ,
		.opcode = r->opcode,
		.syndrome = syndrome,
		.vendor = vendor,
		.wqe_counter = r->wqe_index,
		.qpn = qp->qpn,
		.user_index = qp->user_index,
		.byte_cnt = r->kind == REQ_READ || r->kind == REQ_ATOMIC ? r->len : 0,
	};

	if (!syndrome) {
		STAT_INC(wqes);
		STAT_ADD(wqe_bytes, r->len);
		STAT_INC(wqes_by_opcode[r->opcode]);
	}
	if ((r->signalled || syndrome) && qp->scq)
		cq_write(qp->scq, &c);
}

static void pop(struct hca_qp *qp, uint8_t syndrome, uint8_t vendor)
{
	struct hca_rc *rc = qp->rc;
	struct rc_req *r = req_at(rc, rc->head);

	complete(qp, r, syndrome, vendor);
	req_free(r);
	if (rc->cur == rc->head) {
		rc->cur++;
		rc->cur_off = 0;
	}
	rc->head++;
}

void rc_req_fail(struct hca_qp *qp, uint8_t syndrome, uint8_t vendor)
{
	qp->state = HCA_QPS_ERR;
	if (qp->rc->head != qp->rc->tail)
		pop(qp, syndrome, vendor);
	rc_to_error(qp);
}

/* The oldest request is finished when all its packets are acknowledged. */
static bool head_done(const struct hca_rc *rc, const struct rc_req *r)
{
	if (r->syndrome)
		return false;
	if (!r->npkts)
		return true;
	if (r->kind == REQ_ATOMIC && !r->done)
		return false;
	return psn_diff(rc->psn_una, psn_add(r->psn, r->npkts)) >= 0;
}

/* Completes what is finished, and the error that waits behind it. */
static void retire(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	while (rc->head != rc->tail) {
		struct rc_req *r = req_at(rc, rc->head);

		if (r->syndrome) {
			rc_req_fail(qp, r->syndrome, r->vendor);
			return;
		}
		if (!head_done(rc, r))
			return;
		pop(qp, 0, 0);
	}
}

/* ---- pick-up ---- */

/* Copies a WQE out of the ring; segments wrap at its end. */
static void fetch(const struct hca_qp *qp, uint16_t index, size_t len, uint8_t *buf)
{
	size_t size = (size_t)WQE_BLOCK << qp->log_sq_size;
	size_t off = ((size_t)index * WQE_BLOCK) & (size - 1);
	size_t first = size - off < len ? size - off : len;

	memcpy(buf, qp->sq + off, first);
	memcpy(buf + first, qp->sq, len - first);
}

static uint8_t local_error(struct rc_req *r, uint8_t syndrome, uint8_t vendor)
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

		if (mr_translate(s->lkey, qp->pdn, s->addr, s->len, access))
			continue;
		hca_debug(1, "QP 0x%x WQE %u: lkey 0x%x does not cover 0x%llx + %u for this use",
			  qp->qpn, w->index, s->lkey, (unsigned long long)s->addr, s->len);
		return SYND_LOCAL_PROT;
	}
	return 0;
}

static enum rc_req_kind kind_of(uint8_t opcode)
{
	switch (opcode) {
	case WQE_WRITE:
	case WQE_WRITE_IMM:
		return REQ_WRITE;
	case WQE_SEND:
	case WQE_SEND_IMM:
		return REQ_SEND;
	case WQE_READ:
		return REQ_READ;
	case WQE_NOP:
	case WQE_DUMP:
		return REQ_LOCAL;
	default:
		return REQ_ATOMIC;
	}
}

static bool keep_data(struct rc_req *r, const struct wqe *w, const uint8_t *buf)
{
	r->sge = r->sge_keep;
	r->inl = r->inl_keep;
	r->nsge = w->nsge;
	if (w->is_inline) {
		if (w->len > RC_INLINE_KEEP)
			r->inl = malloc(w->len);
		if (!r->inl)
			return false;
		memcpy(r->inl, buf + w->inline_off, w->len);
		return true;
	}
	if (w->nsge > RC_SGE_KEEP)
		r->sge = malloc(w->nsge * sizeof(*r->sge));
	if (!r->sge)
		return false;
	memcpy(r->sge, w->sge, w->nsge * sizeof(*r->sge));
	return true;
}

/* Checks that need the QP; fills r from the decoded WQE. */
static uint8_t accept_wqe(struct hca_qp *qp, struct rc_req *r, const struct wqe *w,
			  const uint8_t *buf)
{
	bool into = w->opcode == WQE_READ || kind_of(w->opcode) == REQ_ATOMIC;

	r->kind = kind_of(w->opcode);
	r->signalled = w->ce >= 2 || qp->sig_all;
	r->solicited = w->solicited;
	r->has_imm = w->opcode == WQE_WRITE_IMM || w->opcode == WQE_SEND_IMM;
	r->imm = w->imm;
	r->raddr = w->raddr;
	r->rkey = w->rkey;
	r->atomic = w->atomic;
	r->len = (uint32_t)w->len;
	if (w->len > 1u << HCA_LOG_MAX_MSG)
		return local_error(r, SYND_LOCAL_LENGTH, VEND_LOCAL_OP);
	if (check_sges(qp, w, into ? HCA_LOCAL_WRITE : 0))
		return local_error(r, SYND_LOCAL_PROT, VEND_LOCAL_PROT);
	if (into && !qp->max_rd_atomic)
		return local_error(r, SYND_LOCAL_QP_OP, VEND_LOCAL_OP);
	if (!keep_data(r, w, buf))
		return local_error(r, SYND_LOCAL_QP_OP, VEND_LOCAL_OP);
	if (r->kind == REQ_LOCAL)
		r->npkts = 0;
	else if (r->kind == REQ_ATOMIC || !r->len)
		r->npkts = 1;
	else
		r->npkts = (uint32_t)((w->len + qp->mtu - 1) / qp->mtu);
	return 0;
}

/* The WQE at sq_ci into the next free request; the error, if any, is in it. */
static void pick_up(struct hca_qp *qp)
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
	fetch(qp, qp->sq_ci, WQE_BLOCK, buf);
	wqe_decode_ctrl(buf, &w);
	len = (size_t)w.blocks * WQE_BLOCK < ring ? (size_t)w.blocks * WQE_BLOCK : ring;
	if (len > WQE_BLOCK)
		fetch(qp, qp->sq_ci, len, buf);
	syndrome = wqe_decode(buf, len, &w, &why);
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
	if (faults_active() &&
	    faults_wqe(qp->qpn, rc->wqe_total, w.blocks, &r->syndrome, &r->vendor))
		goto out;
	if (syndrome) {
		hca_warn("QP 0x%x WQE %u (%s, index %u, ds %u): %s", qp->qpn, qp->sq_ci,
			 wqe_opcode_name(w.opcode), w.index, w.ds, why);
		local_error(r, syndrome, VEND_LOCAL_OP);
		goto out;
	}
	accept_wqe(qp, r, &w, buf);
	if (w.fence)
		r->fence = true;
out:
	rc->stalled_by_error = r->syndrome != 0;
	rc->wqe_total += w.blocks;
	qp->sq_ci = (uint16_t)(qp->sq_ci + w.blocks);
	rc->psn_pick = psn_add(rc->psn_pick, r->npkts);
	rc->tail++;
}

/* ---- sending ---- */

static uint32_t reads_out(const struct hca_rc *rc)
{
	return rc->rd_tail - rc->rd_head;
}

/* IBTA 9.7.6.1.3 allows one to four times the configured time. A peer whose
 * engine waits for a core looks like a lost packet, so patience grows. */
static void arm_timer(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;
	unsigned patience = rc->retries / 2 < 2 ? rc->retries / 2 : 2;

	if (rc->psn_una == rc->psn_next || !qp->ack_timeout) {
		rc->deadline = 0;
		return;
	}
	rc->deadline = dp_now() + (4096ull << ((qp->ack_timeout & 31) + patience));
	engine_deadline(rc->deadline);
}

static uint8_t data_opcode(const struct rc_req *r, bool first, bool last)
{
	static const uint8_t send[] = { BTH_SEND_MIDDLE, BTH_SEND_LAST, BTH_SEND_FIRST,
					BTH_SEND_ONLY };
	static const uint8_t write[] = { BTH_WRITE_MIDDLE, BTH_WRITE_LAST, BTH_WRITE_FIRST,
					 BTH_WRITE_ONLY };
	uint8_t op = (r->kind == REQ_SEND ? send : write)[(first ? 2 : 0) + (last ? 1 : 0)];

	return (uint8_t)(op + (last && r->has_imm)); /* the _IMM forms follow */
}

/* One SEND or WRITE packet. False when local memory has become inaccessible. */
static bool send_data(struct hca_qp *qp, struct rc_req *r, bool ackreq)
{
	struct hca_rc *rc = qp->rc;
	uint64_t off = (uint64_t)rc->cur_off * qp->mtu;
	bool last = rc->cur_off + 1 == r->npkts;
	struct packet p = {
		.opcode = data_opcode(r, rc->cur_off == 0, last),
		.dqpn = qp->dest_qpn,
		.psn = rc->psn_next,
		.ackreq = ackreq,
		.solicited = last && r->solicited,
		.pkey = 0xffff,
		.va = r->raddr,
		.rkey = r->rkey,
		.dmalen = r->len,
		.imm = r->imm,
		.len = last ? (uint32_t)(r->len - off) : qp->mtu,
	};
	struct iovec iov[PKT_MAX_IOV];
	int n = 0;

	if (p.len && !r->nsge) {
		iov[0].iov_base = r->inl + off;
		iov[0].iov_len = p.len;
		n = 1;
	} else if (p.len) {
		n = rc_gather(qp, r->sge, r->nsge, off, p.len, 0, iov);
	}
	if (n < 0)
		return false;
	wire_send(qp, &p, iov, n);
	return true;
}

static void send_atomic(struct hca_qp *qp, struct rc_req *r)
{
	const struct wqe_atomic *a = &r->atomic;
	struct packet p = {
		.opcode = a->masked ? BTH_MASKED_ATOMIC : a->add ? BTH_FETCH_ADD : BTH_CMP_SWAP,
		.dqpn = qp->dest_qpn,
		.psn = qp->rc->psn_next,
		.ackreq = true,
		.pkey = 0xffff,
		.va = r->raddr,
		.rkey = r->rkey,
		.operand = a->operand,
		.compare = a->compare,
		.operand_mask = a->operand_mask,
		.compare_mask = a->compare_mask,
		.atomic_size = a->size,
		.atomic_add = a->add,
	};

	wire_send(qp, &p, NULL, 0);
}

/* A READ is asked for in pieces, so that the answers in flight stay bounded;
 * each piece is a READ request of its own to the responder. */
static uint32_t send_read(struct hca_qp *qp, struct rc_req *r)
{
	struct hca_rc *rc = qp->rc;
	uint64_t off = (uint64_t)rc->cur_off * qp->mtu;
	/* A repetition must not reach past what the first request covered, or
	 * the responder could take it neither for old nor for new: pieces end
	 * at multiples of their size. */
	uint32_t pkts = RC_READ_CHUNK - rc->cur_off % RC_READ_CHUNK;
	uint64_t len = (uint64_t)pkts * qp->mtu;
	struct packet p = {
		.opcode = BTH_READ_REQ,
		.dqpn = qp->dest_qpn,
		.psn = rc->psn_next,
		.ackreq = true,
		.pkey = 0xffff,
		.va = r->raddr + off,
		.rkey = r->rkey,
	};

	if (pkts >= r->npkts - rc->cur_off) {
		pkts = r->npkts - rc->cur_off;
		len = r->len - off;
	}
	p.dmalen = (uint32_t)len;
	wire_send(qp, &p, NULL, 0);
	return pkts;
}

/* May the request at the cursor start (or go on) now? */
static bool may_send(const struct hca_qp *qp, const struct rc_req *r)
{
	const struct hca_rc *rc = qp->rc;
	int32_t out = psn_diff(rc->psn_next, rc->psn_una);

	if (r->syndrome)
		return false;
	if (r->fence && rc->cur_off == 0 && reads_out(rc))
		return false;
	if (r->kind == REQ_LOCAL)
		return true;
	if (r->kind == REQ_READ || r->kind == REQ_ATOMIC) {
		uint32_t max = qp->max_rd_atomic < RC_MAX_READS ? qp->max_rd_atomic : RC_MAX_READS;

		if (reads_out(rc) >= max)
			return false;
		/* A READ takes its answers' packets at once: it may start when
		 * one fits, so that the window never blocks it for good. */
	}
	return out < (int32_t)rc->window;
}

/* Sends the next packet of the request at the cursor. */
static bool send_one(struct hca_qp *qp, struct rc_req *r)
{
	struct hca_rc *rc = qp->rc;
	uint32_t pkts = 1;

	if (r->kind == REQ_LOCAL) {
		rc->cur++;
		rc->cur_off = 0;
		return true;
	}
	if (r->kind == REQ_READ) {
		pkts = send_read(qp, r);
	} else if (r->kind == REQ_ATOMIC) {
		send_atomic(qp, r);
	} else {
		bool last = rc->cur_off + 1 == r->npkts;
		int32_t out = psn_diff(rc->psn_next, rc->psn_una);
		/* The responder coalesces, so asking often costs little. */
		bool ackreq = last || ++rc->since_ackreq >= RC_ACK_EVERY ||
			      out + 1 >= (int32_t)rc->window;

		if (ackreq)
			rc->since_ackreq = 0;
		if (!send_data(qp, r, ackreq)) {
			/* The region went away under the transfer. */
			local_error(r, SYND_LOCAL_PROT, VEND_LOCAL_PROT);
			rc->stalled_by_error = true;
			return false;
		}
	}
	if (psn_diff(rc->psn_next, rc->psn_max) < 0)
		STAT_INC(retransmits);
	rc->psn_next = psn_add(rc->psn_next, pkts);
	if (psn_diff(rc->psn_next, rc->psn_max) > 0)
		rc->psn_max = rc->psn_next;
	if (r->kind == REQ_READ || r->kind == REQ_ATOMIC)
		rc->rd_end[rc->rd_tail++ % RC_MAX_READS] = psn_add(rc->psn_next, PSN_MASK);
	rc->cur_off += pkts;
	if (rc->cur_off >= r->npkts) {
		rc->cur++;
		rc->cur_off = 0;
	}
	if (!rc->deadline)
		arm_timer(qp);
	return true;
}

bool rc_req_run(struct hca_qp *qp, unsigned *budget)
{
	struct hca_rc *rc = qp->rc;

	if (rc->flushing) {
		rc_req_flush(qp);
		return false;
	}
	if (qp->state != HCA_QPS_RTS)
		return false;
	if (rc->rnr_until) {
		if (dp_now() < rc->rnr_until)
			return false;
		rc->rnr_until = 0;
	}
	for (; *budget; --*budget) {
		struct rc_req *r;

		if (rc->cur == rc->tail) {
			if (qp->sq_ci == qp->sq_pi || rc->stalled_by_error ||
			    rc->tail - rc->head == RC_MAX_REQS)
				break;
			pick_up(qp);
		}
		r = req_at(rc, rc->cur);
		if (!may_send(qp, r) || !send_one(qp, r))
			break;
	}
	retire(qp);
	return !*budget && qp->state == HCA_QPS_RTS;
}

/* ---- acknowledgements ---- */

/* Next packet to send becomes una; the window shrinks, since a full receive
 * buffer is the usual reason for loss. */
static void go_back(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;
	uint32_t i;

	for (i = rc->head; i != rc->tail; i++) {
		const struct rc_req *r = req_at(rc, i);

		if (r->npkts && psn_diff(rc->psn_una, psn_add(r->psn, r->npkts)) < 0)
			break;
	}
	rc->cur = i;
	rc->cur_off = 0;
	if (i != rc->tail)
		rc->cur_off = (rc->psn_una - req_at(rc, i)->psn) & PSN_MASK;
	rc->psn_next = rc->psn_una;
	rc->rd_head = rc->rd_tail = 0;
	rc->since_ackreq = RC_ACK_EVERY; /* know soon whether it went through */
	rc->window = rc->window / 2 > RC_WINDOW_MIN ? rc->window / 2 : RC_WINDOW_MIN;
	rc->acked_in_window = 0;
	rc->lost = true;
	arm_timer(qp);
	engine_activate(qp);
}

static void progress(struct hca_qp *qp, uint32_t una)
{
	struct hca_rc *rc = qp->rc;
	uint32_t n = (una - rc->psn_una) & PSN_MASK;

	rc->psn_una = una;
	if (psn_diff(rc->psn_next, una) < 0) {
		/* An answer to an earlier transmission overtook the repetition. */
		uint32_t window = rc->window;
		bool lost = rc->lost;

		go_back(qp);
		rc->window = window;
		rc->lost = lost;
	}
	while (rc->rd_head != rc->rd_tail &&
	       psn_diff(una, rc->rd_end[rc->rd_head % RC_MAX_READS]) > 0)
		rc->rd_head++;
	rc->retries = rc->rnr_retries = 0;
	rc->implied_nak = false;
	rc->acked_in_window += n;
	if (!rc->lost) /* doubles each round trip until the first loss */
		rc->window = rc->window + n < RC_WINDOW_MAX ? rc->window + n : RC_WINDOW_MAX;
	if (rc->acked_in_window >= rc->window) {
		rc->acked_in_window = 0;
		if (rc->window < RC_WINDOW_MAX)
			rc->window++;
	}
	arm_timer(qp);
	engine_activate(qp);
}

/* Everything before psn is acknowledged, as far as that can be: a READ or an
 * atomic is finished only by its answer. False when one stands in the way. */
static bool ack_before(struct hca_qp *qp, uint32_t psn)
{
	struct hca_rc *rc = qp->rc;
	uint32_t una = psn;
	bool ok = true;

	for (uint32_t i = rc->head; i != rc->tail; i++) {
		const struct rc_req *r = req_at(rc, i);

		if (!r->npkts || psn_diff(psn, r->psn) <= 0)
			continue;
		if (r->kind == REQ_READ || (r->kind == REQ_ATOMIC && !r->done)) {
			uint32_t end = psn_add(r->psn, r->npkts);

			if (psn_diff(rc->psn_una, end) >= 0)
				continue;
			una = psn_diff(rc->psn_una, r->psn) > 0 ? rc->psn_una : r->psn;
			ok = una == psn;
			break;
		}
	}
	if (psn_diff(una, rc->psn_una) > 0)
		progress(qp, una);
	return ok;
}

/* A later answer came while an earlier one is missing: ask again, once; the
 * answers still on their way would otherwise ask many times over. */
static void implied_nak(struct hca_qp *qp)
{
	if (qp->rc->implied_nak)
		return;
	go_back(qp);
	qp->rc->implied_nak = true;
}

static void nak(struct hca_qp *qp, const struct packet *p)
{
	struct hca_rc *rc = qp->rc;
	bool ok = ack_before(qp, p->psn);

	STAT_INC(naks_rx);
	if (!ok) {
		implied_nak(qp);
		return;
	}
	retire(qp);
	if (qp->state != HCA_QPS_RTS || rc->psn_una != p->psn)
		return;
	switch (p->syndrome) {
	case AETH_NAK_SEQ:
		if (rc->retries++ >= qp->retry_cnt)
			rc_req_fail(qp, SYND_RETRY_EXC, VEND_RETRY);
		else
			go_back(qp);
		break;
	case AETH_NAK_INVAL:
		rc_req_fail(qp, SYND_REMOTE_INVAL_REQ, VEND_REMOTE_INVAL);
		break;
	case AETH_NAK_ACCESS:
		rc_req_fail(qp, SYND_REMOTE_ACCESS, VEND_REMOTE_ACCESS);
		break;
	case AETH_NAK_OP:
		rc_req_fail(qp, SYND_REMOTE_OP, VEND_REMOTE_OP);
		break;
	default:
		rc_req_fail(qp, SYND_BAD_RESP, 0);
	}
}

/* IBTA table 46, in units of 10 us. */
static const uint32_t rnr_10us[32] = { 65536, 1,    2,	  3,	4,    6,    8,	   12,
				       16,    24,   32,	  48,	64,   96,   128,   192,
				       256,   384,  512,  768,	1024, 1536, 2048,  3072,
				       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152 };

static void rnr_nak(struct hca_qp *qp, const struct packet *p)
{
	struct hca_rc *rc = qp->rc;
	uint8_t used;

	if (!ack_before(qp, p->psn) || rc->psn_una != p->psn)
		return;
	retire(qp);
	used = rc->rnr_retries;
	if (qp->state != HCA_QPS_RTS || rc->rnr_until)
		return;
	if (qp->rnr_retry != 7 && used >= qp->rnr_retry) {
		rc_req_fail(qp, SYND_RNR_RETRY_EXC, VEND_RNR_RETRY);
		return;
	}
	go_back(qp);
	rc->rnr_retries = (uint8_t)(used + 1);
	rc->rnr_until = dp_now() + rnr_10us[p->syndrome & 31] * 10000ull;
	rc->deadline = 0;
	engine_deadline(rc->rnr_until);
}

static void read_response(struct hca_qp *qp, struct rc_req *r, const struct packet *p,
			  const struct iovec *pl, int npl)
{
	uint32_t n = (p->psn - r->psn) & PSN_MASK;
	uint64_t off = (uint64_t)n * qp->mtu;
	uint32_t want = n + 1 == r->npkts ? (uint32_t)(r->len - off) : qp->mtu;
	struct iovec iov[PKT_MAX_IOV];
	int cnt = 0;

	if (p->len != want) {
		rc_req_fail(qp, SYND_BAD_RESP, 0);
		return;
	}
	if (want)
		cnt = rc_gather(qp, r->sge, r->nsge, off, want, HCA_LOCAL_WRITE, iov);
	if (cnt < 0) {
		rc_req_fail(qp, SYND_LOCAL_PROT, VEND_LOCAL_PROT);
		return;
	}
	iov_copy(iov, cnt, pl, npl);
	progress(qp, psn_add(p->psn, 1));
}

static void atomic_response(struct hca_qp *qp, struct rc_req *r, const struct packet *p)
{
	struct iovec iov[PKT_MAX_IOV], src;
	uint8_t result[8];
	int cnt = rc_gather(qp, r->sge, r->nsge, 0, r->atomic.size, HCA_LOCAL_WRITE, iov);

	if (cnt < 0) {
		rc_req_fail(qp, SYND_LOCAL_PROT, VEND_LOCAL_PROT);
		return;
	}
	/* Eight-byte results in host order, four-byte results big-endian. */
	if (r->atomic.size == 8)
		memcpy(result, &p->orig, 8);
	else
		put_be32(result, (uint32_t)p->orig);
	src.iov_base = result;
	src.iov_len = r->atomic.size;
	iov_copy(iov, cnt, &src, 1);
	r->done = true;
	progress(qp, psn_add(p->psn, 1));
}

/* READ data or an atomic's result: acknowledges all before it as well. */
static void data_response(struct hca_qp *qp, const struct packet *p, const struct iovec *pl,
			  int npl)
{
	struct hca_rc *rc = qp->rc;

	if (!ack_before(qp, p->psn)) {
		implied_nak(qp);
		return;
	}
	/* What came before succeeded, whatever becomes of this answer. */
	retire(qp);
	if (qp->state != HCA_QPS_RTS)
		return;
	for (uint32_t i = rc->head; i != rc->tail; i++) {
		struct rc_req *r = req_at(rc, i);

		if (!r->npkts || ((p->psn - r->psn) & PSN_MASK) >= r->npkts)
			continue;
		if (r->kind == REQ_READ && p->opcode != BTH_ATOMIC_ACK)
			read_response(qp, r, p, pl, npl);
		else if (r->kind == REQ_ATOMIC && p->opcode == BTH_ATOMIC_ACK)
			atomic_response(qp, r, p);
		return;
	}
}

void rc_req_response(struct hca_qp *qp, const struct packet *p, const struct iovec *pl, int npl)
{
	struct hca_rc *rc = qp->rc;

	/* Not sent yet or of an earlier life of this QP: a ghost. Acknowledged
	 * before: a double, which must not look like an answer that is missing. */
	if (psn_diff(p->psn, rc->psn_max) >= 0 || psn_diff(p->psn, rc->psn_una) < 0)
		return;
	if (p->opcode != BTH_ACK) {
		data_response(qp, p, pl, npl);
	} else if ((p->syndrome & AETH_KIND) == 0) {
		if (!ack_before(qp, psn_add(p->psn, 1)))
			implied_nak(qp);
	} else if ((p->syndrome & AETH_KIND) == AETH_RNR) {
		rnr_nak(qp, p);
	} else {
		nak(qp, p);
	}
	if (qp->state == HCA_QPS_RTS)
		retire(qp);
}

void rc_timer(struct hca_qp *qp, uint64_t now)
{
	struct hca_rc *rc = qp->rc;

	if (rc->rnr_until && now >= rc->rnr_until)
		engine_activate(qp);
	if (!rc->deadline || now < rc->deadline || qp->state != HCA_QPS_RTS)
		return;
	if (rc->retries++ >= qp->retry_cnt) {
		rc->deadline = 0;
		rc_req_fail(qp, SYND_RETRY_EXC, VEND_RETRY);
		return;
	}
	rc->implied_nak = false;
	go_back(qp);
}

/* ---- error state ---- */

void rc_req_flush(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	rc->deadline = rc->rnr_until = 0;
	while (rc->head != rc->tail)
		pop(qp, SYND_FLUSH, VEND_FLUSH);
	while (qp->sq && qp->sq_ci != qp->sq_pi) {
		struct rc_req r = { 0 };
		uint8_t buf[WQE_BLOCK];
		uint16_t left = (uint16_t)(qp->sq_pi - qp->sq_ci);
		struct wqe w;

		fetch(qp, qp->sq_ci, WQE_BLOCK, buf);
		wqe_decode_ctrl(buf, &w);
		r.opcode = w.opcode;
		r.wqe_index = qp->sq_ci;
		complete(qp, &r, SYND_FLUSH, VEND_FLUSH);
		qp->sq_ci = (uint16_t)(qp->sq_ci + (w.blocks < left ? w.blocks : left));
	}
}
