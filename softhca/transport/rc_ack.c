/* SPDX-License-Identifier: BSD-3-Clause */
/* RC requester, the answers: acknowledgements, READ data and atomic results;
 * sends again from the oldest unacknowledged packet when something is lost
 * (go-back-N). IBTA volume 1, sections 9.7.5 and 9.7.6. */
#include <string.h>

#include "softhca/memory/guest.h"
#include "softhca/tools/log.h"
#include "softhca/transport/rc.h"
#include "softhca/strict/strict.h"

/* Next packet to send becomes una. */
static void rewind_to_una(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;
	uint32_t i;

	for (i = rc->head; i != rc->tail; i++) {
		const struct rc_req *r = req_at(rc, i);

		if (r->npkts ? psn_diff(rc->psn_una, psn_add(r->psn, r->npkts)) < 0 : !r->done)
			break;
	}
	rc->cur = i;
	rc->cur_off = 0;
	if (i != rc->tail)
		rc->cur_off = (rc->psn_una - req_at(rc, i)->psn) & PSN_MASK;
	rc->psn_next = rc->psn_una;
	rc->rd_head = rc->rd_tail = 0;
	rc->since_ackreq = RC_ACK_EVERY; /* know soon whether it went through */
	rc_arm_timer(qp);
	engine_activate(qp);
}

/* The window shrinks, too: a full receive buffer is the usual reason for loss. */
static void go_back(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	rc->window = rc->window / 2 > RC_WINDOW_MIN ? rc->window / 2 : RC_WINDOW_MIN;
	rc->acked_in_window = 0;
	rc->lost = true;
	rewind_to_una(qp);
}

/* Retries are exhausted. For how long tells a dead peer from one that had no
 * core: the host's processes share few of them. */
static void rc_give_up(struct hca_qp *qp, const char *why)
{
	struct hca_rc *rc = qp->rc;

	hca_debug(1,
		  "QP 0x%x: gives up after %u repetitions, the last for %s: PSN 0x%x to QP 0x%x not "
		  "acknowledged, no progress for %llu ms%s",
		  qp->qpn, qp->retry_cnt, why, rc->psn_una, qp->dest_qpn,
		  (unsigned long long)(dp_now() - rc->progress_at) / 1000000,
		  wire_unread(&rc->dest) ? "; packets to its process wait unread" : "");
	rc_req_fail(qp, SYND_RETRY_EXC, VEND_RETRY);
}

static void rc_progress(struct hca_qp *qp, uint32_t una)
{
	struct hca_rc *rc = qp->rc;
	uint32_t n = (una - rc->psn_una) & PSN_MASK;
	uint32_t max = wire_bulk(&rc->dest, qp->mtu) > 1 ? RC_WINDOW_BULK : RC_WINDOW_MAX;

	rc->psn_una = una;
	rc->progress_at = dp_now();
	if (psn_diff(rc->psn_next, una) < 0) {
		/* An answer to an earlier transmission overtook the repetition. */
		rewind_to_una(qp);
		rc->acked_in_window = 0;
	}
	while (rc->rd_head != rc->rd_tail &&
	       psn_diff(una, rc->rd_end[rc->rd_head % RC_MAX_READS]) > 0)
		rc->rd_head++;
	rc->retries = rc->rnr_retries = rc->backoffs = rc->unread = 0;
	rc->implied_nak = rc->probing = false;
	rc->acked_in_window += n;
	if (!rc->lost) /* doubles each round trip until the first loss */
		rc->window = rc->window + n < max ? rc->window + n : max;
	if (rc->acked_in_window >= rc->window) {
		rc->acked_in_window = 0;
		if (rc->window < max)
			rc->window++;
	}
	rc_arm_timer(qp);
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
		rc_progress(qp, una);
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

/* Payload was not read where it lies. Nothing was lost, and whoever sends it learns that from the
 * ring: it goes again in another way, and that is no retry. False when it was so too often. */
static bool another_way(struct hca_qp *qp)
{
	if (qp->rc->unread == RC_UNREAD)
		return false;
	qp->rc->unread++;
	rewind_to_una(qp);
	return true;
}

static void rc_take_nak(struct hca_qp *qp, const struct packet *p)
{
	struct hca_rc *rc = qp->rc;
	uint8_t code = p->syndrome;
	bool ok = ack_before(qp, p->psn);

	STAT_INC(naks_rx);
	if (!ok) {
		implied_nak(qp);
		return;
	}
	rc_retire(qp);
	if (qp->state != HCA_QPS_RTS || rc->psn_una != p->psn)
		return;
	/* From another host this code is what the standard says: reserved. */
	if (code == AETH_NAK_UNREAD && rc->dest.kind == WIRE_HOST) {
		if (another_way(qp))
			return;
		code = AETH_NAK_SEQ;
	}
	switch (code) {
	case AETH_NAK_SEQ:
		/* Some responders (Linux's rdma_rxe) say so of every packet behind one that
		 * found no receive. It goes again when its time has come. */
		if (rc->rnr_until)
			break;
		if (qp->counters)
			qp->counters->packet_seq_err++;
		if (rc->retries++ >= qp->retry_cnt)
			rc_give_up(qp, "a gap");
		else
			go_back(qp);
		break;
	case AETH_NAK_INVAL:
		rc_req_fail(qp, SYND_REMOTE_INVAL_REQ, VEND_REMOTE_INVAL);
		break;
	case AETH_NAK_ACCESS:
		if (strict_on && rc->head != rc->tail)
			strict_remote_access(qp, req_at(rc, rc->head)->wqe_index,
					     req_at(rc, rc->head)->raddr, req_at(rc, rc->head)->rkey);
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
	rc_retire(qp);
	used = rc->rnr_retries;
	if (qp->state != HCA_QPS_RTS || rc->rnr_until)
		return;
	if (qp->rnr_retry != 7 && used >= qp->rnr_retry) {
		rc_req_fail(qp, SYND_RNR_RETRY_EXC, VEND_RNR_RETRY);
		return;
	}
	rewind_to_una(qp);
	rc->probing = true;
	rc->retries = 0; /* somebody is there */
	rc->rnr_retries = (uint8_t)(used + 1);
	rc->rnr_until = dp_clock() + rnr_10us[p->syndrome & 31] * 10000ull;
	rc->deadline = 0;
	engine_deadline(rc->rnr_until);
}

/* Where [off, off + len) of the answer goes; -1 when a key no longer allows it. */
static int answer_place(const struct hca_qp *qp, struct rc_req *r, uint64_t off, uint32_t len,
			struct iovec *iov)
{
	if (!r->to_cqe)
		return rc_gather(qp->pdn, r->sge, r->nsge, off, len, HCA_LOCAL_WRITE, iov);
	iov[0].iov_base = r->inl_keep + off;
	iov[0].iov_len = len;
	return 1;
}

static void read_response(struct hca_qp *qp, struct rc_req *r, const struct packet *p,
			  const struct iovec *pl, int npl)
{
	uint32_t n = (p->psn - r->psn) & PSN_MASK;
	uint64_t off = (uint64_t)n * qp->mtu;
	uint32_t pkts = 1 + p->more;
	uint32_t want = n + pkts == r->npkts ? (uint32_t)(r->len - off) : qp->mtu * pkts;
	struct iovec iov[PKT_MAX_IOV];
	int cnt = 0;

	if (n + pkts > r->npkts || p->len != want) {
		rc_req_fail(qp, SYND_BAD_RESP, 0);
		return;
	}
	if (want)
		cnt = answer_place(qp, r, off, want, iov);
	if (cnt < 0) {
		rc_req_fail(qp, SYND_LOCAL_PROT, VEND_LOCAL_PROT);
		return;
	}
	if (rc_place(&qp->rc->placed, r->nsge ? r->sge[0].lkey : 0, p, iov, cnt, pl, npl))
		rc_progress(qp, psn_add(p->psn, pkts));
	else if (another_way(qp))
		qp->rc->implied_nak = true; /* what else is on its way does not ask again */
	else
		implied_nak(qp);
}

static void atomic_response(struct hca_qp *qp, struct rc_req *r, const struct packet *p)
{
	struct iovec iov[PKT_MAX_IOV], src;
	uint8_t result[8];
	int cnt = answer_place(qp, r, 0, r->atomic.size, iov);

	if (cnt < 0) {
		rc_req_fail(qp, SYND_LOCAL_PROT, VEND_LOCAL_PROT);
		return;
	}
	/* Eight-byte results in host order, four-byte results big-endian. */
	if (r->atomic.size != 8)
		put_be32(result, (uint32_t)p->orig);
	else if (r->to_cqe && qp->cqe_be)
		put_be64(result, p->orig);
	else
		memcpy(result, &p->orig, 8);
	src.iov_base = result;
	src.iov_len = r->atomic.size;
	iov_copy(iov, cnt, &src, 1);
	if (dma_on)
		qp->rc->placed = dma_posted();
	r->done = true;
	rc_progress(qp, psn_add(p->psn, 1));
}

/* READ data or an atomic's result: acknowledges all before it as well. */
static void data_response(struct hca_qp *qp, const struct packet *p, const struct iovec *pl,
			  int npl)
{
	bool atomic = packet_op(p) == BTH_ATOMIC_ACK;
	struct hca_rc *rc = qp->rc;

	if (!ack_before(qp, p->psn)) {
		implied_nak(qp);
		return;
	}
	/* What came before succeeded, whatever becomes of this answer. */
	rc_retire(qp);
	if (qp->state != HCA_QPS_RTS)
		return;
	for (uint32_t i = rc->head; i != rc->tail; i++) {
		struct rc_req *r = req_at(rc, i);

		if (!r->npkts || ((p->psn - r->psn) & PSN_MASK) >= r->npkts)
			continue;
		if (r->kind == REQ_READ && !atomic)
			read_response(qp, r, p, pl, npl);
		else if (r->kind == REQ_ATOMIC && atomic)
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
	if (packet_op(p) != BTH_ACK) {
		data_response(qp, p, pl, npl);
	} else if ((p->syndrome & AETH_KIND) == 0) {
		if (!ack_before(qp, psn_add(p->psn, 1)))
			implied_nak(qp);
	} else if ((p->syndrome & AETH_KIND) == AETH_RNR) {
		rnr_nak(qp, p);
	} else {
		rc_take_nak(qp, p);
	}
	if (qp->state == HCA_QPS_RTS)
		rc_retire(qp);
}

void rc_was_late(struct hca_qp *qp, uint64_t ns)
{
	if (qp->rc->deadline)
		qp->rc->deadline += ns;
}

/* What the peer's process has not taken is not lost: on hardware the adapter would
 * have answered for it. A process that takes nothing for good is lost all the same. */
static bool peer_waits(struct hca_rc *rc)
{
	if (rc->backoffs == RC_BACKOFFS || !wire_unread(&rc->dest)) {
		rc->backoffs = 0;
		return false;
	}
	rc->backoffs++;
	return true;
}

void rc_timer(struct hca_qp *qp, uint64_t now)
{
	struct hca_rc *rc = qp->rc;

	if (rc->rnr_until && now >= rc->rnr_until)
		engine_activate(qp);
	if (!rc->deadline || now < rc->deadline || qp->state != HCA_QPS_RTS)
		return;
	if (peer_waits(rc)) {
		rc_arm_timer(qp);
		return;
	}
	if (rc->retries++ >= qp->retry_cnt) {
		rc->deadline = 0;
		rc_give_up(qp, "silence");
		return;
	}
	STAT_INC(ack_timeouts);
	if (qp->counters)
		qp->counters->local_ack_timeout_err++;
	rc->implied_nak = false;
	go_back(qp);
}
