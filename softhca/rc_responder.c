/* SPDX-License-Identifier: BSD-3-Clause */
/* RC responder: takes request packets in PSN order, checks and executes them,
 * and answers in PSN order: coalesced ACKs, NAKs, READ data, atomic results.
 * IBTA volume 1, sections 9.7.4 and 9.7.5. */
#include <string.h>

#include "softhca/guest.h"
#include "softhca/log.h"
#include "softhca/rc.h"

enum {
	VEND_FLUSH = 0xf9,
	VEND_LOCAL_PROT = 0x51,
	VEND_LOCAL_LEN = 0x6a,
	EVENT_QP_REQ_ERR = 2,	 /* IBV_EVENT_QP_REQ_ERR */
	EVENT_QP_ACCESS_ERR = 3, /* IBV_EVENT_QP_ACCESS_ERR */
};

void rc_resp_reset(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	rc->epsn = rc->msn = 0;
	rc->nak_sent = rc->in_send = rc->in_write = false;
	rc->resp_head = rc->resp_tail = 0;
	rc->atomic_next = 0;
	memset(rc->atomic_cache, 0, sizeof(rc->atomic_cache));
}

/* ---- answers ---- */

static struct rc_resp *resp_tail(struct hca_rc *rc)
{
	return &rc->resp[(rc->resp_tail - 1) % RC_RESP_QUEUE];
}

static bool resp_room(const struct hca_rc *rc)
{
	return rc->resp_tail - rc->resp_head < RC_RESP_QUEUE;
}

static struct rc_resp *queue_resp(struct hca_qp *qp, enum rc_resp_kind kind, uint32_t psn)
{
	struct hca_rc *rc = qp->rc;
	struct rc_resp *r = &rc->resp[rc->resp_tail++ % RC_RESP_QUEUE];

	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->psn = psn;
	r->msn = rc->msn;
	engine_activate(qp);
	return r;
}

/* Acknowledges everything before epsn; one ACK not yet sent is enough. */
static void queue_ack(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;
	uint32_t psn = psn_add(rc->epsn, PSN_MASK);

	if (rc->resp_head != rc->resp_tail && resp_tail(rc)->kind == RESP_ACK) {
		resp_tail(rc)->psn = psn;
		resp_tail(rc)->msn = rc->msn;
	} else if (resp_room(rc)) {
		queue_resp(qp, RESP_ACK, psn)->syndrome = AETH_ACK;
	}
}

static void queue_nak(struct hca_qp *qp, uint8_t syndrome)
{
	if (!resp_room(qp->rc))
		return; /* the requester will time out and ask again */
	queue_resp(qp, RESP_NAK, qp->rc->epsn)->syndrome = syndrome;
	if ((syndrome & AETH_KIND) == AETH_RNR)
		STAT_INC(rnr_tx);
	else
		STAT_INC(naks_tx);
}

/* A request that cannot be executed: NAK, QP to the error state, event. The
 * answers queued are sent first; rc_resp_run() goes on in the error state. */
static void refuse(struct hca_qp *qp, uint8_t syndrome)
{
	hca_debug(1, "QP 0x%x refuses PSN 0x%x with NAK 0x%x", qp->qpn, qp->rc->epsn, syndrome);
	queue_nak(qp, syndrome);
	rc_to_error(qp);
	hca_async_qp_event(qp, syndrome == AETH_NAK_ACCESS ? EVENT_QP_ACCESS_ERR
							   : EVENT_QP_REQ_ERR);
}

static void send_read_packet(struct hca_qp *qp, struct rc_resp *r)
{
	bool first = r->sent == 0, last = r->sent + 1 == r->npkts;
	uint64_t off = (uint64_t)r->sent * qp->mtu;
	struct iovec iov = { 0 };
	struct packet p = {
		.opcode = first && last ? BTH_READ_RESP_ONLY
			  : first	? BTH_READ_RESP_FIRST
			  : last	? BTH_READ_RESP_LAST
					: BTH_READ_RESP_MIDDLE,
		.dqpn = qp->dest_qpn,
		.psn = psn_add(r->psn, r->sent),
		.pkey = 0xffff,
		.syndrome = AETH_ACK,
		.msn = r->msn,
		.len = last ? (uint32_t)(r->len - off) : qp->mtu,
	};

	r->sent++;
	if (p.len) {
		iov.iov_base = mr_translate(r->rkey, qp->pdn, r->va + off, p.len, HCA_REMOTE_READ);
		iov.iov_len = p.len;
		if (!iov.iov_base) { /* deregistered meanwhile */
			r->sent = r->npkts;
			refuse(qp, AETH_NAK_ACCESS);
			return;
		}
	}
	wire_send(qp, &p, &iov, p.len ? 1 : 0);
	mr_accessed(r->rkey); /* behind the look at the data; the answer takes longer to matter */
}

static void send_resp(struct hca_qp *qp, const struct rc_resp *r)
{
	struct packet p = {
		.opcode = r->kind == RESP_ATOMIC ? BTH_ATOMIC_ACK : BTH_ACK,
		.dqpn = qp->dest_qpn,
		.psn = r->psn,
		.pkey = 0xffff,
		.syndrome = r->kind == RESP_ATOMIC ? AETH_ACK : r->syndrome,
		.msn = r->msn,
		.orig = r->orig,
	};

	wire_send(qp, &p, NULL, 0);
}

bool rc_resp_run(struct hca_qp *qp, unsigned *budget)
{
	struct hca_rc *rc = qp->rc;

	while (rc->resp_head != rc->resp_tail && *budget) {
		struct rc_resp *r = &rc->resp[rc->resp_head % RC_RESP_QUEUE];

		--*budget;
		if (r->kind == RESP_READ) {
			send_read_packet(qp, r);
			if (r->sent < r->npkts)
				continue;
		} else {
			send_resp(qp, r);
		}
		rc->resp_head++;
	}
	return rc->resp_head != rc->resp_tail;
}

/* ---- receive work requests ---- */

static void recv_cqe(struct hca_qp *qp, const struct packet *p, enum cqe_type type,
		     uint8_t syndrome, uint8_t vendor)
{
	struct hca_rc *rc = qp->rc;
	struct cqe c = {
		.type = syndrome ? CQE_RESP_ERR : type,
		.syndrome = syndrome,
		.vendor = vendor,
		.wqe_counter = rc->rx_index,
		.qpn = qp->qpn,
		.user_index = qp->srq ? qp->srq->user_index : qp->user_index,
		.byte_cnt = rc->rx_off,
		.have_imm = type != CQE_RESP_SEND && !syndrome,
		.imm = p ? p->imm : 0,
		.solicited = p && p->solicited,
	};

	if (qp->rcq)
		cq_write(qp->rcq, &c);
}

static bool take_srq(struct hca_qp *qp)
{
	struct hca_srq *srq = qp->srq;
	struct hca_rc *rc = qp->rc;
	const uint8_t *wqe;

	/* Acquire in guest_dbrec: the WQEs it counts are seen whole. */
	if (!srq->dbrec || (uint16_t)(guest_dbrec(srq->dbrec) - srq->consumed) == 0)
		return false;
	if (srq->head >= srq->wqe_cnt) {
		hca_warn("SRQ 0x%x: link to WQE %u of %u", srq->srqn, srq->head, srq->wqe_cnt);
		return false;
	}
	wqe = srq->buf + ((size_t)srq->head << srq->wqe_shift);
	rc->rx_index = (uint16_t)srq->head;
	rc->rx_nsge = rwqe_decode(wqe + 16, ((size_t)1 << srq->wqe_shift) - 16, rc->rx_sge,
				  WQE_MAX_SGE);
	srq->head = get_be16(wqe + 2);
	srq->consumed++;
	return true;
}

static bool take_rq(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;
	const uint8_t *wqe;

	if (!qp->rq || !qp->rq_cnt || !qp->dbrec ||
	    (uint16_t)(guest_dbrec(&qp->dbrec[0]) - qp->rq_ci) == 0)
		return false;
	wqe = qp->rq + ((size_t)(qp->rq_ci % qp->rq_cnt) << qp->rq_shift);
	rc->rx_index = qp->rq_ci;
	rc->rx_nsge = rwqe_decode(wqe, (size_t)1 << qp->rq_shift, rc->rx_sge, WQE_MAX_SGE);
	qp->rq_ci++;
	return true;
}

/* Next receive WQE of the QP or its SRQ; false when none is posted. */
static bool take_recv(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	if (!(qp->srq ? take_srq(qp) : take_rq(qp)))
		return false;
	rc->rx_off = 0;
	rc->rx_room = 0;
	for (unsigned i = 0; i < rc->rx_nsge; i++)
		rc->rx_room += rc->rx_sge[i].len;
	return true;
}

void rc_resp_flush(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	if (rc->in_send) {
		rc->in_send = false;
		recv_cqe(qp, NULL, CQE_RESP_ERR, SYND_FLUSH, VEND_FLUSH);
	}
	if (qp->srq)
		return; /* what is posted there belongs to the SRQ */
	while (take_rq(qp)) {
		rc->rx_off = 0;
		recv_cqe(qp, NULL, CQE_RESP_ERR, SYND_FLUSH, VEND_FLUSH);
	}
}

/* ---- requests ---- */

/* Receive side error: completion, NAK, error state. */
static bool recv_fail(struct hca_qp *qp, uint8_t syndrome, uint8_t vendor, uint8_t nak)
{
	qp->state = HCA_QPS_ERR;
	qp->rc->in_send = false;
	recv_cqe(qp, NULL, CQE_RESP_ERR, syndrome, vendor);
	queue_nak(qp, nak);
	rc_to_error(qp);
	return false;
}

static bool rnr(struct hca_qp *qp)
{
	queue_nak(qp, AETH_RNR | (qp->min_rnr_timer & 31));
	qp->rc->nak_sent = true; /* what follows in flight is dropped in silence */
	return false;
}

/* First and middle packets are full, an end that follows them is not empty,
 * and none is longer than the path MTU (9.7.4.1.6). */
static bool length_ok(const struct hca_qp *qp, const struct packet *p, bool first, bool last)
{
	if (!last)
		return p->len == qp->mtu;
	return p->len <= qp->mtu && (first || p->len);
}

static bool do_send(struct hca_qp *qp, const struct packet *p, const struct iovec *pl, int npl)
{
	struct hca_rc *rc = qp->rc;
	bool first = p->opcode == BTH_SEND_FIRST || p->opcode >= BTH_SEND_ONLY;
	bool last = p->opcode >= BTH_SEND_LAST;
	bool imm = p->opcode == BTH_SEND_LAST_IMM || p->opcode == BTH_SEND_ONLY_IMM;
	struct iovec iov[PKT_MAX_IOV];
	int n;

	if (first == rc->in_send || !length_ok(qp, p, first, last)) {
		refuse(qp, AETH_NAK_INVAL);
		return false;
	}
	if (first && !take_recv(qp))
		return rnr(qp);
	rc->in_send = true;
	if (rc->rx_off + (uint64_t)p->len > rc->rx_room ||
	    rc->rx_off + p->len > 1u << HCA_LOG_MAX_MSG)
		return recv_fail(qp, SYND_LOCAL_LENGTH, VEND_LOCAL_LEN, AETH_NAK_INVAL);
	n = rc_gather(qp, rc->rx_sge, rc->rx_nsge, rc->rx_off, p->len, HCA_LOCAL_WRITE, iov);
	if (n < 0)
		return recv_fail(qp, SYND_LOCAL_PROT, VEND_LOCAL_PROT, AETH_NAK_OP);
	iov_copy(iov, n, pl, npl);
	rc->rx_off += p->len;
	if (last) {
		rc->in_send = false;
		recv_cqe(qp, p, imm ? CQE_RESP_SEND_IMM : CQE_RESP_SEND, 0, 0);
	}
	return true;
}

static uint8_t *remote(struct hca_qp *qp, uint32_t rkey, uint64_t va, uint64_t len,
		       uint32_t access)
{
	if (!(qp->access & access))
		return NULL;
	return mr_translate(rkey, qp->pdn, va, len, access);
}

static bool write_start(struct hca_qp *qp, const struct packet *p, bool last)
{
	struct hca_rc *rc = qp->rc;

	rc->wr_va = p->va;
	rc->wr_rkey = p->rkey;
	rc->wr_left = rc->wr_total = p->dmalen;
	/* The whole range is checked at the first packet; length 0 names no memory. */
	if (p->dmalen && !remote(qp, p->rkey, p->va, p->dmalen, HCA_REMOTE_WRITE)) {
		refuse(qp, AETH_NAK_ACCESS);
		return false;
	}
	rc->in_write = !last;
	return true;
}

static bool do_write(struct hca_qp *qp, const struct packet *p, const struct iovec *pl, int npl)
{
	struct hca_rc *rc = qp->rc;
	bool first = p->opcode == BTH_WRITE_FIRST || p->opcode >= BTH_WRITE_ONLY;
	bool last = p->opcode >= BTH_WRITE_LAST;
	bool imm = p->opcode == BTH_WRITE_LAST_IMM || p->opcode == BTH_WRITE_ONLY_IMM;
	struct iovec iov;

	if (first == rc->in_write || !length_ok(qp, p, first, last) ||
	    (first && (last ? p->len != p->dmalen : p->len >= p->dmalen)) ||
	    (first && p->dmalen > 1u << HCA_LOG_MAX_MSG)) {
		refuse(qp, AETH_NAK_INVAL);
		return false;
	}
	if (first && !write_start(qp, p, last))
		return false;
	if (p->len > rc->wr_left || (last && p->len != rc->wr_left)) {
		refuse(qp, AETH_NAK_INVAL);
		return false;
	}
	if (imm && !take_recv(qp)) {
		rc->in_write = !first; /* this packet comes again */
		return rnr(qp);
	}
	if (p->len) {
		iov.iov_base = remote(qp, rc->wr_rkey, rc->wr_va, p->len, HCA_REMOTE_WRITE);
		iov.iov_len = p->len;
		if (!iov.iov_base) {
			refuse(qp, AETH_NAK_ACCESS);
			return false;
		}
		iov_copy(&iov, 1, pl, npl);
		mr_accessed(rc->wr_rkey);
	}
	rc->wr_va += p->len;
	rc->wr_left -= p->len;
	if (last)
		rc->in_write = false;
	if (imm) {
		rc->rx_off = rc->wr_total;
		recv_cqe(qp, p, CQE_RESP_WRITE_IMM, 0, 0);
	}
	return true;
}

static void start_read(struct hca_qp *qp, const struct packet *p)
{
	struct rc_resp *r = queue_resp(qp, RESP_READ, p->psn);

	r->va = p->va;
	r->rkey = p->rkey;
	r->len = p->dmalen;
	r->npkts = p->dmalen ? (uint32_t)(((uint64_t)p->dmalen + qp->mtu - 1) / qp->mtu) : 1;
}

static bool read_allowed(struct hca_qp *qp, const struct packet *p)
{
	return !p->dmalen || remote(qp, p->rkey, p->va, p->dmalen, HCA_REMOTE_READ);
}

static bool do_atomic(struct hca_qp *qp, const struct packet *in)
{
	struct hca_rc *rc = qp->rc;
	struct rc_atomic_result *slot = &rc->atomic_cache[rc->atomic_next++ % RC_ATOMIC_CACHE];
	struct packet p = *in;
	uint8_t *mem;

	if (p.opcode != BTH_MASKED_ATOMIC) {
		p.operand_mask = p.atomic_add ? 0 : UINT64_MAX;
		p.compare_mask = UINT64_MAX;
	}
	if ((p.atomic_size != 4 && p.atomic_size != 8) || (p.va & (p.atomic_size - 1u))) {
		refuse(qp, AETH_NAK_INVAL);
		return false;
	}
	mem = remote(qp, p.rkey, p.va, p.atomic_size, HCA_REMOTE_ATOMIC);
	if (!mem) {
		refuse(qp, AETH_NAK_ACCESS);
		return false;
	}
	if ((uintptr_t)mem & (p.atomic_size - 1u)) { /* iova aligned, memory not */
		refuse(qp, AETH_NAK_INVAL);
		return false;
	}
	slot->valid = true;
	slot->psn = p.psn;
	slot->orig = atomic_execute(mem, &p);
	mr_accessed(p.rkey);
	rc->epsn = psn_add(rc->epsn, 1);
	rc->msn++;
	queue_resp(qp, RESP_ATOMIC, p.psn)->orig = slot->orig;
	return true;
}

/* A request that was executed before: its answer was lost. */
static void duplicate(struct hca_qp *qp, const struct packet *p)
{
	struct hca_rc *rc = qp->rc;

	if (p->opcode == BTH_READ_REQ) {
		/* Executed once more; must lie before epsn as a whole. */
		uint32_t n = (uint32_t)(((uint64_t)p->dmalen + qp->mtu - 1) / qp->mtu);

		if (read_allowed(qp, p) && psn_diff(psn_add(p->psn, n ? n : 1), rc->epsn) <= 0)
			start_read(qp, p);
	} else if (packet_headers(p->opcode) & (PKT_HAS_ATOMIC | PKT_HAS_MASKED)) {
		for (unsigned i = 1; i <= RC_ATOMIC_CACHE; i++) { /* newest first */
			const struct rc_atomic_result *a =
				&rc->atomic_cache[(rc->atomic_next - i) % RC_ATOMIC_CACHE];

			if (!a->valid || a->psn != p->psn)
				continue;
			queue_resp(qp, RESP_ATOMIC, p->psn)->orig = a->orig;
			return;
		}
	} else {
		queue_ack(qp);
	}
}

static void read_request(struct hca_qp *qp, const struct packet *p)
{
	struct hca_rc *rc = qp->rc;

	if (p->dmalen > 1u << HCA_LOG_MAX_MSG || !read_allowed(qp, p)) {
		refuse(qp, p->dmalen > 1u << HCA_LOG_MAX_MSG ? AETH_NAK_INVAL : AETH_NAK_ACCESS);
		return;
	}
	rc->msn++;
	start_read(qp, p);
	rc->epsn = psn_add(rc->epsn, resp_tail(rc)->npkts);
}

void rc_resp_request(struct hca_qp *qp, const struct packet *p, const struct iovec *pl, int npl)
{
	struct hca_rc *rc = qp->rc;
	int32_t d = psn_diff(p->psn, rc->epsn);
	bool ok;

	if (!resp_room(rc))
		return; /* as if lost: the requester sends it again */
	if (d < 0) {
		duplicate(qp, p);
		return;
	}
	if (d > 0) {
		if (!rc->nak_sent)
			queue_nak(qp, AETH_NAK_SEQ);
		rc->nak_sent = true;
		return;
	}
	rc->nak_sent = false;
	if ((rc->in_send && p->opcode > BTH_SEND_LAST_IMM) ||
	    (rc->in_write && (p->opcode < BTH_WRITE_MIDDLE || p->opcode > BTH_WRITE_LAST_IMM))) {
		refuse(qp, AETH_NAK_INVAL); /* a message was left unfinished */
		return;
	}
	if (p->opcode == BTH_READ_REQ) {
		read_request(qp, p);
		return;
	}
	if (packet_headers(p->opcode) & (PKT_HAS_ATOMIC | PKT_HAS_MASKED)) {
		do_atomic(qp, p);
		return;
	}
	ok = p->opcode <= BTH_SEND_ONLY_IMM ? do_send(qp, p, pl, npl) : do_write(qp, p, pl, npl);
	if (!ok)
		return;
	rc->epsn = psn_add(rc->epsn, 1);
	if (!rc->in_send && !rc->in_write)
		rc->msn++;
	if (p->ackreq)
		queue_ack(qp);
}
