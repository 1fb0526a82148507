/* SPDX-License-Identifier: BSD-3-Clause */
/* RC requester: cuts requests into packets and sends them, as far as the
 * window and the READs in flight allow. IBTA volume 1, sections 9.7.2 to
 * 9.7.4. Pick-up, acknowledgement and completion are files of their own. */
#include "softhca/transport/rc.h"

/* Packets that may be on their way. */
static uint32_t window_of(const struct hca_rc *rc)
{
	return rc->probing ? RC_WINDOW_MIN : rc->window;
}

static uint32_t reads_out(const struct hca_rc *rc)
{
	return rc->rd_tail - rc->rd_head;
}

/* IBTA 9.7.6.1.3 allows one to four times the configured time. A peer whose
 * engine waits for a core looks like a lost packet, so patience grows. */
void rc_arm_timer(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;
	unsigned patience = rc->retries / 2 < 2 ? rc->retries / 2 : 2;

	if (rc->psn_una == rc->psn_next || !qp->ack_timeout || !rc_acked(qp)) {
		rc->deadline = 0;
		return;
	}
	if (!rc->deadline && !rc->retries)
		rc->progress_at = dp_now(); /* of what is sent after a rest */
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

	if (last && r->opcode == WQE_SEND_INV)
		return first ? BTH_SEND_ONLY_INV : BTH_SEND_LAST_INV;
	return (uint8_t)(op + (last && r->has_imm)); /* the _IMM forms follow */
}

int rc_payload(const struct hca_qp *qp, const struct rc_req *r, uint64_t off, uint32_t len,
	       struct iovec *iov)
{
	return len ? rc_gather(qp->pdn, r->sge, r->nsge, off, len, 0, iov) : 0;
}

/* Fills in what the transport wants beside the operation, and sends. */
static void send_packet(struct hca_qp *qp, struct packet *p, const struct iovec *iov, int n)
{
	p->opcode = packet_opcode(rc_class(qp), p->opcode);
	p->dqpn = qp->dest_qpn;
	p->psn = qp->rc->psn_next;
	p->pkey = PKEY_DEFAULT;
	if (qp->type == HCA_QP_DCI)
		dc_header(qp, p);
	wire_send(qp, p, iov, n);
}

/* How many packets of the request at the cursor the next one may stand for. */
static uint32_t rc_request_bulk(const struct hca_qp *qp, const struct rc_req *r, unsigned budget)
{
	const struct hca_rc *rc = qp->rc;
	uint32_t left = r->npkts - rc->cur_off, n;

	if (left == 1 || qp->type != HCA_QP_RC)
		return 1;
	n = window_of(rc) - (uint32_t)psn_diff(rc->psn_next, rc->psn_una);
	n = left < n ? left : n;
	/* Neither old nor new to the responder: what is repeated and what is not are apart. */
	left = (uint32_t)psn_diff(rc->psn_max, rc->psn_next);
	if (psn_diff(rc->psn_next, rc->psn_max) < 0)
		n = left < n ? left : n;
	left = wire_bulk(&rc->dest, qp->mtu);
	n = left < n ? left : n;
	return budget < n ? budget : n;
}

/* One SEND or WRITE packet that stands for pkts. False when local memory has become
 * inaccessible. */
static bool send_data(struct hca_qp *qp, struct rc_req *r, uint32_t pkts, bool ackreq)
{
	struct hca_rc *rc = qp->rc;
	uint64_t off = (uint64_t)rc->cur_off * qp->mtu;
	bool last = rc->cur_off + pkts == r->npkts;
	struct packet p = {
		.opcode = data_opcode(r, rc->cur_off == 0, last),
		.ackreq = ackreq,
		.solicited = last && r->solicited,
		.va = r->raddr,
		.rkey = r->rkey,
		.dmalen = r->len,
		.imm = r->imm,
		.len = last ? (uint32_t)(r->len - off) : qp->mtu * pkts,
		.more = pkts - 1,
	};
	struct iovec iov[PKT_MAX_IOV];
	int n = rc_payload(qp, r, off, p.len, iov);

	if (n < 0)
		return false;
	send_packet(qp, &p, iov, n);
	return true;
}

static void send_atomic(struct hca_qp *qp, struct rc_req *r)
{
	const struct wqe_atomic *a = &r->atomic;
	struct packet p = {
		.opcode = a->masked ? BTH_MASKED_ATOMIC : a->add ? BTH_FETCH_ADD : BTH_CMP_SWAP,
		.ackreq = true,
		.va = r->raddr,
		.rkey = r->rkey,
		.operand = a->operand,
		.compare = a->compare,
		.operand_mask = a->operand_mask,
		.compare_mask = a->compare_mask,
		.atomic_size = a->size,
		.atomic_add = a->add,
	};

	send_packet(qp, &p, NULL, 0);
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
		.ackreq = true,
		.va = r->raddr + off,
		.rkey = r->rkey,
	};

	if (pkts >= r->npkts - rc->cur_off) {
		pkts = r->npkts - rc->cur_off;
		len = r->len - off;
	}
	p.dmalen = (uint32_t)len;
	send_packet(qp, &p, NULL, 0);
	return pkts;
}

/* May the request at the cursor start (or go on) now? */
static bool may_send(const struct hca_qp *qp, struct rc_req *r)
{
	const struct hca_rc *rc = qp->rc;
	int32_t out = psn_diff(rc->psn_next, rc->psn_una);

	if (r->syndrome)
		return false;
	if (r->fence && rc->cur_off == 0 && reads_out(rc))
		return false;
	if (r->strong && rc->cur_off == 0 && out)
		return false;
	/* Nor is an answer on its way into memory of a GPU, from where the peer may copy it. */
	if (__builtin_expect(dma_on, 0) && r->fence && rc_placing((struct hca_qp *)qp, rc->placed))
		return false;
	if (r->kind == REQ_LOCAL)
		return r->opcode != WQE_WAIT || r->done || rc_wait_over((struct hca_qp *)qp, &r->wait);
	if (qp->type == HCA_QP_DCI && !dc_may_send(qp, r))
		return false;
	if (r->kind == REQ_READ || r->kind == REQ_ATOMIC) {
		uint32_t max = qp->max_rd_atomic < RC_MAX_READS ? qp->max_rd_atomic : RC_MAX_READS;

		if (reads_out(rc) >= max)
			return false;
		/* A READ takes its answers' packets at once: it may start when
		 * one fits, so that the window never blocks it for good. */
	}
	return out < (int32_t)window_of(rc);
}

/* The region went away under the transfer. */
static unsigned cannot_send(struct hca_rc *rc, struct rc_req *r)
{
	rc_local_error(r, SYND_LOCAL_PROT, VEND_LOCAL_PROT);
	rc->stalled_by_error = true;
	return 0;
}

/* Twice in a window at least: where one request's packet or ACK is lost, the second request tells, and nobody waits
 * for the ack timer. The responder coalesces, so asking often costs little. */
static bool wants_ack(struct hca_rc *rc, const struct rc_req *r, uint32_t pkts)
{
	uint32_t out = (uint32_t)psn_diff(rc->psn_next, rc->psn_una), window = window_of(rc);

	rc->since_ackreq += pkts;
	return rc->cur_off + pkts == r->npkts || rc->since_ackreq >= RC_ACK_EVERY ||
	       2 * rc->since_ackreq >= window || out + pkts >= window;
}

/* Sends the next packet of the request at the cursor. What that takes of the budget; 0:
 * it could not. */
static unsigned send_one(struct hca_qp *qp, struct rc_req *r, unsigned budget)
{
	struct hca_rc *rc = qp->rc;
	uint32_t pkts = 1;
	unsigned cost = 1;

	if (r->kind == REQ_LOCAL) {
		if (r->opcode == WQE_UMR && !r->done && !window_update(qp, &r->umr, r->sge, r->nsge)) {
			rc_local_error(r, SYND_MW_BIND, VEND_LOCAL_OP);
			rc->stalled_by_error = true;
			return 0;
		}
		if (r->opcode == WQE_DUMP && qp->halves)
			rc_order_settle_all();
		r->done = true;
		rc->cur++;
		rc->cur_off = 0;
		return 1;
	}
	if (qp->type == HCA_QP_DCI)
		dc_connect(qp, r);
	if (qp->type == HCA_QP_UD) {
		if (!ud_send(qp, r))
			return cannot_send(rc, r);
	} else if (r->kind == REQ_READ) {
		pkts = send_read(qp, r);
	} else if (r->kind == REQ_ATOMIC) {
		send_atomic(qp, r);
	} else {
		bool ackreq;

		pkts = cost = rc_request_bulk(qp, r, budget);
		ackreq = rc_acked(qp) && wants_ack(rc, r, pkts);
		if (ackreq)
			rc->since_ackreq = 0;
		if (!send_data(qp, r, pkts, ackreq))
			return cannot_send(rc, r);
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
		rc_arm_timer(qp);
	return cost;
}

/* What stands behind it is not looked at before. */
static bool ends_in_wait(struct hca_rc *rc)
{
	const struct rc_req *last = req_at(rc, rc->tail - 1);

	return rc->tail != rc->head && last->opcode == WQE_WAIT && !last->done;
}

/* PSNs have an order as long as those under way are less than half of all (9.7.2), and one request may take
 * a quarter. */
static bool psns_left(const struct hca_rc *rc)
{
	return psn_diff(rc->psn_pick, rc->psn_una) < (1 << 22);
}

/* Payload in memory of a GPU is asked for together. */
static void fetch_next(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	dma_fetch_begin();
	while (qp->sq_ci != qp->sq_pi && !rc->stalled_by_error && !ends_in_wait(rc) &&
	       rc->tail - rc->head != RC_MAX_REQS && psns_left(rc))
		rc_fetch_next(qp);
	dma_fetch_end();
}

/* What was carried out here made room for more, and no acknowledgement will call for it. */
static bool room_again(const struct hca_qp *qp)
{
	const struct hca_rc *rc = qp->rc;

	return qp->sq_ci != qp->sq_pi && rc->cur == rc->tail && !rc->stalled_by_error &&
	       rc->tail - rc->head != RC_MAX_REQS && !faults_on;
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
	rc_short_run(qp, budget);
	if (__builtin_expect(dma_on, 0) && !faults_on)
		fetch_next(qp);
	while (*budget) {
		struct rc_req *r;
		unsigned cost;

		if (rc->cur == rc->tail) {
			if (qp->sq_ci == qp->sq_pi || rc->stalled_by_error ||
			    rc->tail - rc->head == RC_MAX_REQS)
				break;
			if (faults_on && !faults_may_pick(qp, dp_now()))
				break;
			rc_fetch_next(qp);
		}
		r = req_at(rc, rc->cur);
		if (r->fetch && !dma_fetched(r->fetch)) {
			dma_wait(qp);
			break;
		}
		cost = may_send(qp, r) ? send_one(qp, r, *budget) : 0;
		if (!cost)
			break;
		*budget -= cost;
	}
	if (!rc_acked(qp))
		unacked_sent(qp);
	rc_retire(qp);
	return (!*budget || room_again(qp)) && qp->state == HCA_QPS_RTS;
}
