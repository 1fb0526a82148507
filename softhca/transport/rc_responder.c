/* SPDX-License-Identifier: BSD-3-Clause */
/* RC responder: takes request packets in PSN order, checks and executes them,
 * and answers in PSN order: coalesced ACKs, NAKs, READ data, atomic results.
 * IBTA volume 1, sections 9.7.4 and 9.7.5. */
#include <endian.h>
#include <string.h>

#include "softhca/tools/log.h"
#include "softhca/transport/rc.h"

enum {
	EVENT_QP_REQ_ERR = 2,	 /* IBV_EVENT_QP_REQ_ERR */
	EVENT_QP_ACCESS_ERR = 3, /* IBV_EVENT_QP_ACCESS_ERR */
	ACKS_APART = 8, /* that wait for different writes to memory of a GPU */
};

void rc_resp_reset(struct rc_responder *rs, uint32_t epsn)
{
	memset(rs, 0, offsetof(struct rc_responder, resp));
	memset(rs->atomic_cache, 0, sizeof(rs->atomic_cache));
	rs->epsn = epsn;
	rs->data_psn = psn_add(epsn, PSN_MASK);
}

/* ---- answers ---- */

static struct rc_resp *resp_tail(struct rc_responder *rs)
{
	return &rs->resp[(rs->resp_tail - 1) % RC_RESP_QUEUE];
}

static bool resp_room(const struct rc_responder *rs)
{
	return rs->resp_tail - rs->resp_head < RC_RESP_QUEUE;
}

static struct rc_resp *queue_resp(struct hca_qp *qp, struct rc_responder *rs,
				  enum rc_resp_kind kind, uint32_t psn)
{
	struct rc_resp *r = &rs->resp[rs->resp_tail++ % RC_RESP_QUEUE];

	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->psn = psn;
	r->msn = rs->msn;
	r->placed = rs->placed;
	r->held = rc_order_last(qp);
	engine_activate(qp);
	return r;
}

/* Acknowledges everything up to the last SEND or WRITE: the PSN of a READ or an atomic belongs to its
 * answer. (Linux's rdma_rxe takes an ACK with the PSN of an atomic for the atomic's answer.) One ACK
 * not yet sent is enough. Where long writes follow each other on their way to a GPU, it does not wait for
 * what came behind it; short ones go quicker by the many, and so do their acknowledgements. */
static void queue_ack(struct hca_qp *qp, struct rc_responder *rs)
{
	uint32_t psn = rs->data_psn, queued = rs->resp_tail - rs->resp_head;

	if (queued && resp_tail(rs)->kind == RESP_ACK &&
	    (resp_tail(rs)->placed == rs->placed || queued > ACKS_APART || !dma_streams())) {
		resp_tail(rs)->placed = rs->placed;
		resp_tail(rs)->held = rc_order_last(qp);
		resp_tail(rs)->psn = psn;
		resp_tail(rs)->msn = rs->msn;
	} else if (resp_room(rs)) {
		queue_resp(qp, rs, RESP_ACK, psn)->syndrome = AETH_ACK;
	}
}

static void queue_nak(struct hca_qp *qp, struct rc_responder *rs, uint8_t syndrome)
{
	if (!resp_room(rs))
		return; /* the requester will time out and ask again */
	queue_resp(qp, rs, RESP_NAK, rs->epsn)->syndrome = syndrome;
	if ((syndrome & AETH_KIND) == AETH_RNR)
		STAT_INC(rnr_tx);
	else
		STAT_INC(naks_tx);
}

/* A DC target goes on with its other requesters. */
static void end_requester(struct hca_qp *qp, struct rc_responder *rs, uint8_t syndrome)
{
	rs->refused = syndrome;
	rc_resp_flush(qp, rs);
}

/* A request that cannot be executed: NAK, QP to the error state, event. The
 * answers queued are sent first; rc_resp_run() goes on in the error state. */
static void rc_refuse(struct hca_qp *qp, struct rc_responder *rs, uint8_t syndrome)
{
	if (qp->type == HCA_QP_UC) {
		uc_drop(rs);
		return;
	}
	hca_debug(1, "QP 0x%x refuses PSN 0x%x with NAK 0x%x", qp->qpn, rs->epsn, syndrome);
	queue_nak(qp, rs, syndrome);
	if (qp->type == HCA_QP_DCT) {
		end_requester(qp, rs, syndrome);
		return;
	}
	rc_to_error(qp);
	hca_async_qp_event(qp,
			   syndrome == AETH_NAK_ACCESS ? EVENT_QP_ACCESS_ERR : EVENT_QP_REQ_ERR);
}

/* How many of the answer's packets the next one stands for. */
static uint32_t rc_answer_bulk(const struct hca_qp *qp, const struct rc_responder *rs,
			       const struct rc_resp *r, unsigned budget)
{
	uint32_t n = r->npkts - r->sent, max;

	if (n == 1 || qp->type != HCA_QP_RC)
		return 1;
	max = wire_bulk(&rs->dest, qp->mtu);
	n = n < max ? n : max;
	return n < budget ? n : budget;
}

/* The region went away before all of it was read. The NAK takes the place of the answer that is next
 * and has its PSN: what was answered before counts, what was asked for behind it does not,
 * nor does the READ itself (9.7.7: the MSN is of requests completed). */
static void refuse_read(struct hca_qp *qp, struct rc_responder *rs, const struct rc_resp *r)
{
	rs->msn = r->again ? r->msn : psn_add(r->msn, PSN_MASK); /* 24 bits, too: one less */
	rs->epsn = psn_add(r->psn, r->sent);
	rs->resp_tail = rs->resp_head;
	rc_refuse(qp, rs, AETH_NAK_ACCESS);
}

/* True when it was the last one. */
static bool send_read_packet(struct hca_qp *qp, struct rc_responder *rs, struct rc_resp *r,
			     uint32_t pkts)
{
	bool first = r->sent == 0, last = r->sent + pkts == r->npkts;
	uint64_t off = (uint64_t)r->sent * qp->mtu;
	struct iovec iov[PKT_MAX_IOV];
	int n = 0;
	struct packet p = {
		.opcode = rc_class(qp) | (first && last ? BTH_READ_RESP_ONLY
					  : first	? BTH_READ_RESP_FIRST
					  : last	? BTH_READ_RESP_LAST
							: BTH_READ_RESP_MIDDLE),
		.dqpn = rs->dest_qpn,
		.psn = psn_add(r->psn, r->sent),
		.pkey = PKEY_DEFAULT,
		.syndrome = AETH_ACK,
		.msn = r->msn,
		.len = last ? (uint32_t)(r->len - off) : qp->mtu * pkts,
		.more = pkts - 1,
	};

	if (p.len) {
		n = mr_pieces_remote(qp, r->rkey, r->va + off, p.len, HCA_REMOTE_READ, iov,
				     PKT_MAX_IOV);
		if (n < 0) {
			refuse_read(qp, rs, r);
			return false;
		}
	}
	r->sent += pkts;
	wire_send_to(qp, &rs->dest, &p, iov, n);
	mr_accessed(r->rkey); /* behind the look at the data; the answer takes longer to matter */
	return last;
}

static void send_resp(struct hca_qp *qp, struct rc_responder *rs, const struct rc_resp *r)
{
	struct packet p = {
		.opcode = rc_class(qp) | (r->kind == RESP_ATOMIC ? BTH_ATOMIC_ACK : BTH_ACK),
		.dqpn = rs->dest_qpn,
		.psn = r->psn,
		.pkey = PKEY_DEFAULT,
		.syndrome = r->kind == RESP_ATOMIC ? AETH_ACK : r->syndrome,
		.msn = r->msn,
		.orig = r->orig,
	};

	wire_send_to(qp, &rs->dest, &p, NULL, 0);
}

bool rc_resp_run(struct hca_qp *qp, struct rc_responder *rs, unsigned *budget)
{
	while (rs->resp_head != rs->resp_tail && *budget) {
		struct rc_resp *r = &rs->resp[rs->resp_head % RC_RESP_QUEUE];

		if (rc_placing(qp, r->placed) || rc_order_holds(qp, r->held)) /* what is acknowledged has arrived */
			return false;
		if (r->kind == RESP_READ) {
			uint32_t pkts = rc_answer_bulk(qp, rs, r, *budget);

			*budget -= pkts;
			if (!send_read_packet(qp, rs, r, pkts))
				continue;
		} else {
			--*budget;
			send_resp(qp, rs, r);
		}
		rs->resp_head++;
	}
	return rs->resp_head != rs->resp_tail;
}

void rc_resp_flush(struct hca_qp *qp, struct rc_responder *rs)
{
	if (!rs->in_send && !rs->rx_held)
		return;
	rs->in_send = rs->rx_held = false;
	rs->rx.off = 0;
	recv_error(qp, &rs->rx, SYND_FLUSH, VEND_FLUSH);
}

/* ---- requests ---- */

/* Receive side error: completion, NAK, error state. */
static bool recv_fail(struct hca_qp *qp, struct rc_responder *rs, uint8_t syndrome)
{
	uint8_t nak = AETH_NAK_OP, vendor = VEND_LOCAL_PROT;

	if (syndrome == SYND_LOCAL_LENGTH) {
		nak = AETH_NAK_INVAL;
		vendor = VEND_LOCAL_LEN;
	} else if (syndrome == SYND_REMOTE_INVAL_REQ) { /* a key that cannot be invalidated */
		nak = AETH_NAK_ACCESS;
		vendor = VEND_REMOTE_ACCESS;
	}

	if (qp->type != HCA_QP_DCT)
		qp->state = HCA_QPS_ERR;
	rs->in_send = false;
	recv_error(qp, &rs->rx, syndrome, vendor);
	if (qp->type != HCA_QP_UC)
		queue_nak(qp, rs, nak);
	if (qp->type == HCA_QP_DCT)
		end_requester(qp, rs, nak);
	else
		rc_to_error(qp);
	return false;
}

static bool rc_answer_rnr(struct hca_qp *qp, struct rc_responder *rs)
{
	if (qp->type == HCA_QP_UC) {
		uc_drop(rs);
		return false;
	}
	queue_nak(qp, rs, AETH_RNR | (qp->min_rnr_timer & 31));
	rs->nak_sent = true; /* what follows in flight is dropped in silence */
	return false;
}

/* The payload of a bulk packet could not be read where it lies: asked for again, it comes in another
 * way. No other host is told so: only what came out of a ring leaves its payload elsewhere. */
static bool rc_unread(struct hca_qp *qp, struct rc_responder *rs)
{
	queue_nak(qp, rs, AETH_NAK_UNREAD);
	rs->nak_sent = true;
	return false;
}

/* First and middle packets are full, an end that follows them is not empty,
 * and none is longer than the path MTU (9.7.4.1.6). */
static bool length_ok(const struct hca_qp *qp, const struct packet *p, bool first, bool last)
{
	uint32_t before = qp->mtu * p->more;

	if (!last)
		return p->len == before + qp->mtu;
	return p->len <= before + qp->mtu && (p->len > before || (first && !p->more));
}

/* A receive WQE for a message that begins, or ends with an immediate. */
static bool rc_take_receive(struct hca_qp *qp, struct rc_responder *rs)
{
	if (!rs->rx_held)
		return recv_take(qp, &rs->rx);
	rs->rx_held = false;
	rs->rx.off = 0;
	return true;
}

static bool is_send(uint8_t op)
{
	return op <= BTH_SEND_ONLY_IMM || op == BTH_SEND_LAST_INV || op == BTH_SEND_ONLY_INV;
}

static bool do_send(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p,
		    const struct iovec *pl, int npl)
{
	uint8_t op = packet_op(p);
	bool first = op == BTH_SEND_FIRST || op == BTH_SEND_ONLY || op == BTH_SEND_ONLY_IMM ||
		     op == BTH_SEND_ONLY_INV;
	bool last = op >= BTH_SEND_LAST;
	bool imm = op == BTH_SEND_LAST_IMM || op == BTH_SEND_ONLY_IMM;
	uint8_t bad;

	if (first == rs->in_send || !length_ok(qp, p, first, last)) {
		rc_refuse(qp, rs, AETH_NAK_INVAL);
		return false;
	}
	if (first && !rc_take_receive(qp, rs))
		return rc_answer_rnr(qp, rs);
	rc_order_settle(qp);
	rs->in_send = true;
	bad = first && last && !p->peer && recv_to_cqe(qp, &rs->rx, pl, npl, p->len)
		      ? 0
		      : recv_place(qp, &rs->rx, p, pl, npl, p->len);
	if (bad == RECV_UNREAD) {
		rs->rx_held = first; /* this packet comes again */
		rs->in_send = !first;
		return rc_unread(qp, rs);
	}
	if (bad)
		return recv_fail(qp, rs, bad);
	if (!last)
		return true;
	/* What came is placed; the key is gone before its owner hears of it. */
	if (op >= BTH_SEND_LAST_INV && !window_invalidate(qp, be32toh(p->imm)))
		return recv_fail(qp, rs, SYND_REMOTE_INVAL_REQ);
	rs->in_send = false;
	recv_done(qp, &rs->rx, p,
		  op >= BTH_SEND_LAST_INV ? CQE_RESP_SEND_INV
		  : imm			  ? CQE_RESP_SEND_IMM
					  : CQE_RESP_SEND);
	return true;
}

/* Into how many pieces, at most room; < 0: not allowed. iov NULL: all that there are. */
static int rc_remote(struct hca_qp *qp, uint32_t rkey, uint64_t va, uint64_t len, uint32_t access,
		     struct iovec *iov, int room)
{
	return qp->access & access ? mr_pieces_remote(qp, rkey, va, len, access, iov, room) : -1;
}

static bool write_start(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p,
			bool last)
{
	rs->wr_va = p->va;
	rs->wr_rkey = p->rkey;
	rs->wr_left = rs->wr_total = p->dmalen;
	/* The whole range is checked at the first packet; length 0 names no memory, but is a WRITE. */
	if (!(qp->access & HCA_REMOTE_WRITE) ||
	    (p->dmalen && rc_remote(qp, p->rkey, p->va, p->dmalen, HCA_REMOTE_WRITE, NULL, 0) < 0)) {
		rc_refuse(qp, rs, AETH_NAK_ACCESS);
		return false;
	}
	rs->in_write = !last;
	return true;
}

static bool do_write(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p,
		     const struct iovec *pl, int npl)
{
	uint8_t op = packet_op(p);
	bool first = op == BTH_WRITE_FIRST || op >= BTH_WRITE_ONLY;
	bool last = op >= BTH_WRITE_LAST;
	bool imm = op == BTH_WRITE_LAST_IMM || op == BTH_WRITE_ONLY_IMM;
	struct iovec iov[PKT_MAX_IOV];
	int n = 0;

	if (first == rs->in_write || !length_ok(qp, p, first, last) ||
	    (first && (last ? p->len != p->dmalen : p->len >= p->dmalen)) ||
	    (first && p->dmalen > 1u << HCA_LOG_MAX_MSG)) {
		rc_refuse(qp, rs, AETH_NAK_INVAL);
		return false;
	}
	if (first && !write_start(qp, rs, p, last))
		return false;
	if (p->len > rs->wr_left || (last && p->len != rs->wr_left)) {
		rc_refuse(qp, rs, AETH_NAK_INVAL);
		return false;
	}
	if (p->len)
		n = rc_remote(qp, rs->wr_rkey, rs->wr_va, p->len, HCA_REMOTE_WRITE, iov, PKT_MAX_IOV);
	if (n < 0) {
		rc_refuse(qp, rs, AETH_NAK_ACCESS);
		return false;
	}
	if (imm && !rc_take_receive(qp, rs)) {
		rs->in_write = !first; /* this packet comes again */
		return rc_answer_rnr(qp, rs);
	}
	if (p->len) {
		if (imm)
			rc_order_settle(qp);
		if (!((rc_order_any(qp) || qp->halves) && !imm ? rc_order_place(qp, rs, p, iov, n, pl, npl)
					: rc_place(&rs->placed, rs->wr_rkey, p, iov, n, pl, npl))) {
			rs->rx_held = imm; /* this packet comes again */
			rs->in_write = !first;
			return rc_unread(qp, rs);
		}
		mr_accessed(rs->wr_rkey);
	}
	rs->wr_va += p->len;
	rs->wr_left -= p->len;
	if (last)
		rs->in_write = false;
	if (imm) {
		rs->rx.off = rs->wr_total;
		recv_done(qp, &rs->rx, p, CQE_RESP_WRITE_IMM);
	}
	return true;
}

bool rc_resp_data(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p,
		  const struct iovec *pl, int npl)
{
	return is_send(packet_op(p)) ? do_send(qp, rs, p, pl, npl)
				     : do_write(qp, rs, p, pl, npl);
}

static struct rc_resp *start_read(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p)
{
	struct rc_resp *r = queue_resp(qp, rs, RESP_READ, p->psn);

	if (qp->halves)
		rc_order_settle_all();
	r->va = p->va;
	r->rkey = p->rkey;
	r->len = p->dmalen;
	r->npkts = p->dmalen ? (uint32_t)(((uint64_t)p->dmalen + qp->mtu - 1) / qp->mtu) : 1;
	return r;
}

static bool is_atomic(const struct packet *p)
{
	return packet_headers(p->opcode) & (PKT_HAS_ATOMIC | PKT_HAS_MASKED);
}

/* Does the QP answer such requests? A READ of nothing, too, which names no memory. Granting atomics is
 * not all: it has to say which (PRM, "QPC.atomic_mode"). */
static bool rc_granted(const struct hca_qp *qp, const struct packet *p)
{
	if (packet_op(p) == BTH_READ_REQ)
		return qp->access & HCA_REMOTE_READ;
	return qp->access & HCA_REMOTE_ATOMIC &&
	       qp->atomic_mode >= (p->atomic_size == 4 ? HCA_ATOMIC_UP_TO_8B : HCA_ATOMIC_IB_SPEC);
}

/* Requests whose answers have not left against what the QP grants (IBTA 9.7.7.2). */
static bool too_many(const struct hca_qp *qp, const struct rc_responder *rs)
{
	unsigned n = 0;

	for (uint32_t i = rs->resp_head; i != rs->resp_tail; i++) {
		const struct rc_resp *r = &rs->resp[i % RC_RESP_QUEUE];

		n += (r->kind == RESP_READ || r->kind == RESP_ATOMIC) && !r->again;
	}
	return n >= qp->max_dest_rd_atomic;
}

static bool read_allowed(struct hca_qp *qp, const struct packet *p)
{
	return !p->dmalen || rc_remote(qp, p->rkey, p->va, p->dmalen, HCA_REMOTE_READ, NULL, 0) >= 0;
}

static bool do_atomic(struct hca_qp *qp, struct rc_responder *rs, const struct packet *in)
{
	struct rc_atomic_result *slot = &rs->atomic_cache[rs->atomic_next++ % RC_ATOMIC_CACHE];
	struct packet p = *in;
	struct iovec iov;
	uint8_t *mem;

	if (packet_op(&p) != BTH_MASKED_ATOMIC) {
		p.operand_mask = p.atomic_add ? 0 : UINT64_MAX;
		p.compare_mask = UINT64_MAX;
	}
	if ((p.atomic_size != 4 && p.atomic_size != 8) || (p.va & (p.atomic_size - 1u))) {
		rc_refuse(qp, rs, AETH_NAK_INVAL);
		return false;
	}
	if (rc_remote(qp, p.rkey, p.va, p.atomic_size, HCA_REMOTE_ATOMIC, &iov, 1) != 1) {
		rc_refuse(qp, rs, AETH_NAK_ACCESS);
		return false;
	}
	mem = iov.iov_base;
	if ((uintptr_t)mem & (p.atomic_size - 1u)) { /* iova aligned, memory not */
		rc_refuse(qp, rs, AETH_NAK_INVAL);
		return false;
	}
	if (qp->halves)
		rc_order_settle_all();
	rc_order_settle(qp);
	slot->valid = true;
	slot->psn = p.psn;
	if (dma_on)
		rc_place_settle(rs->placed, mem);
	slot->orig = atomic_execute(mem, &p);
	if (dma_device(mem))
		rs->placed = dma_posted();
	mr_accessed(p.rkey);
	rs->epsn = psn_add(rs->epsn, 1);
	rs->msn++;
	queue_resp(qp, rs, RESP_ATOMIC, p.psn)->orig = slot->orig;
	return true;
}

/* A request that was executed before: its answer was lost. */
static void rc_answer_duplicate(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p)
{
	struct rc_resp *r;

	if (packet_op(p) == BTH_READ_REQ) {
		/* Executed once more; must lie before epsn as a whole. */
		uint32_t n = (uint32_t)(((uint64_t)p->dmalen + qp->mtu - 1) / qp->mtu);

		if (p->dmalen <= 1u << HCA_LOG_MAX_MSG && read_allowed(qp, p) &&
		    psn_diff(psn_add(p->psn, n ? n : 1), rs->epsn) <= 0)
			start_read(qp, rs, p)->again = true;
	} else if (is_atomic(p)) {
		for (unsigned i = 1; i <= RC_ATOMIC_CACHE; i++) { /* newest first */
			const struct rc_atomic_result *a =
				&rs->atomic_cache[(rs->atomic_next - i) % RC_ATOMIC_CACHE];

			if (!a->valid || a->psn != p->psn)
				continue;
			r = queue_resp(qp, rs, RESP_ATOMIC, p->psn);
			r->orig = a->orig;
			r->again = true;
			return;
		}
	} else {
		queue_ack(qp, rs);
	}
}

static void read_request(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p)
{
	if (p->dmalen > 1u << HCA_LOG_MAX_MSG || !read_allowed(qp, p)) {
		rc_refuse(qp, rs,
			  p->dmalen > 1u << HCA_LOG_MAX_MSG ? AETH_NAK_INVAL : AETH_NAK_ACCESS);
		return;
	}
	rs->msn++;
	start_read(qp, rs, p);
	rs->epsn = psn_add(rs->epsn, resp_tail(rs)->npkts);
}

/* Writes and reads go where nothing is. */
static bool is_astray(const struct packet *p)
{
	const struct hca_mr *mr = dma_on && !is_send(packet_op(p)) ? hca_find_mr(p->rkey) : NULL;

	return mr && mr->astray;
}

void rc_resp_request(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p,
		     const struct iovec *pl, int npl)
{
	int32_t d = psn_diff(p->psn, rs->epsn);
	/* A repetition that is cut otherwise than the first time can begin with what is here and
	 * go on with what is not: as a gap it comes once more, cut at the right place. A NAK from
	 * before was lost, then. */
	bool overlap = d < 0 && (int32_t)p->more + d >= 0;
	uint8_t op = packet_op(p);

	if (!resp_room(rs) || is_astray(p))
		return; /* as if lost: the requester sends it again */
	if (d < 0 && !overlap) {
		rc_answer_duplicate(qp, rs, p);
		return;
	}
	if (rs->refused) {
		if (!d) /* the NAK was lost */
			queue_nak(qp, rs, rs->refused);
		return;
	}
	if (d) {
		if (qp->counters)
			qp->counters->out_of_sequence++;
		if (!rs->nak_sent || overlap)
			queue_nak(qp, rs, AETH_NAK_SEQ);
		rs->nak_sent = true;
		return;
	}
	rs->nak_sent = false;
	if ((rs->in_send && !is_send(op)) ||
	    (rs->in_write && (op < BTH_WRITE_MIDDLE || op > BTH_WRITE_LAST_IMM))) {
		rc_refuse(qp, rs, AETH_NAK_INVAL); /* a message was left unfinished */
		return;
	}
	if ((packet_op(p) == BTH_READ_REQ || is_atomic(p)) && (!rc_granted(qp, p) || too_many(qp, rs))) {
		rc_refuse(qp, rs, rc_granted(qp, p) ? AETH_NAK_INVAL : AETH_NAK_ACCESS);
		return;
	}
	if (op == BTH_READ_REQ) {
		read_request(qp, rs, p);
		return;
	}
	if (is_atomic(p)) {
		do_atomic(qp, rs, p);
		return;
	}
	if (!rc_resp_data(qp, rs, p, pl, npl))
		return;
	rs->data_psn = psn_add(rs->epsn, p->more);
	rs->epsn = psn_add(rs->data_psn, 1);
	if (!rs->in_send && !rs->in_write)
		rs->msn++;
	if (dma_on && is_send(op))
		rs->placed = dma_posted();
	if (p->ackreq)
		queue_ack(qp, rs);
}
