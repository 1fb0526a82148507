/* SPDX-License-Identifier: BSD-3-Clause */
/* The short way of a WRITE to a queue pair of the same process: copies and completes at
 * pick-up, and leaves both ends as requester and responder would after the packets and
 * their acknowledgement. Taken only where nothing else is under way between the two and
 * where the work request is of the plain kind and faultless; everything else, errors
 * above all, is left untouched to rc_fetch.c and its followers. */
#include <string.h>

#include "softhca/memory/guest.h"
#include "softhca/tools/options.h"
#include "softhca/transport/rc.h"
#include "softhca/strict/strict.h"

enum {
	DS_POINTER = 3,	 /* control, remote address, one data segment by address */
	DS_INLINE = 4,	 /* or inline, in the rest of one block */
	INLINE_AT = 36,
	SHORT_MAX = 128 << 10, /* bytes: other queue pairs wait for so much copying */
	AT_ONCE = 64,	 /* packets of a queue pair at a turn */
};

/* A decoded work request; src is its data. */
struct short_write {
	const uint8_t *src;
	uint8_t *dst;
	uint32_t len, rkey, npkts;
	bool signalled, inlined;
};

/* Nothing on its way, nothing to be answered, both at the same PSN. */
static struct hca_qp *idle_peer(const struct hca_qp *qp)
{
	const struct hca_rc *rc = qp->rc;
	struct hca_qp *peer;
	struct rc_responder *rs;

	if (qp->type != HCA_QP_RC || rc->head != rc->tail || rc->psn_una != rc->psn_next ||
	    !(peer = wire_own_peer(qp)))
		return NULL;
	rs = &peer->rc->rs;
	if (rc_order_any(peer) || peer->halves || peer->type != HCA_QP_RC || peer->state < HCA_QPS_RTR ||
	    peer->state > HCA_QPS_RTS || peer->mtu != qp->mtu || !(peer->access & HCA_REMOTE_WRITE) ||
	    rs->epsn != rc->psn_next || rs->in_send || rs->in_write || rs->rx_held ||
	    rs->nak_sent || rs->resp_head != rs->resp_tail)
		return NULL;
	return peer;
}

/* b: a copy of the block at sq_ci. */
static bool rc_short_decode(const struct hca_qp *qp, const struct hca_qp *peer, const uint8_t *b,
			    struct short_write *w)
{
	uint32_t ds = get_be32(b + 4) & 0xff, len = get_be32(b + 32);

	/* opmod 0, its own index, WRITE; its own QPN */
	if (get_be32(b) != ((uint32_t)qp->sq_ci << 8 | WQE_WRITE) ||
	    get_be32(b + 4) >> 8 != qp->qpn)
		return false;
	w->len = len & 0x7fffffff;
	w->inlined = len >> 31;
	if (!w->len || w->len > SHORT_MAX)
		return false;
	if (w->inlined) {
		if (ds > DS_INLINE || (INLINE_AT + w->len + 15) / 16 != ds)
			return false;
		w->src = b + INLINE_AT;
	} else {
		if (ds != DS_POINTER)
			return false;
		w->src = mr_translate(get_be32(b + 36), qp->pdn, get_be64(b + 40), w->len, 0);
	}
	w->rkey = get_be32(b + 24);
	w->dst = mr_translate(w->rkey, peer->pdn, get_be64(b + 16), w->len, HCA_REMOTE_WRITE);
	w->signalled = b[11] & 8 || qp->sig_all; /* ce 2 or 3 */
	w->npkts = w->len <= qp->mtu ? 1 : (w->len + qp->mtu - 1) / qp->mtu;
	/* Memory of GPUs takes the long way. */
	return w->src && w->dst && !dma_device(w->src) && !dma_device(w->dst);
}

static void rc_short_execute(struct hca_qp *qp, struct hca_qp *peer, const struct short_write *w)
{
	struct hca_rc *rc = qp->rc;
	struct rc_responder *rs = &peer->rc->rs;

	if (w->inlined && w->len <= 8)
		guest_store_small(w->dst, w->src, w->len); /* out of a copy of our own */
	else
		guest_copy(w->dst, w->src, w->len);
	mr_accessed(w->rkey);
	rs->epsn = psn_add(rs->epsn, w->npkts);
	rs->data_psn = psn_add(rs->epsn, PSN_MASK);
	rs->msn++;
	rc->psn_pick = rc->psn_next = rc->psn_una = rc->psn_max = rs->epsn;
	STAT_ADD(pkts_tx, w->npkts);
	STAT_ADD(pkts_rx, w->npkts);
	STAT_INC(wqes);
	STAT_ADD(wqe_bytes, w->len);
	STAT_INC(wqes_by_opcode[WQE_WRITE]);
}

void rc_short_run(struct hca_qp *qp, unsigned *budget)
{
	struct hca_qp *peer = idle_peer(qp);
	uint32_t mask = (1u << qp->log_sq_size) - 1;
	struct short_write w;
	uint8_t b[WQE_BLOCK];

	if (!peer || hca_options()->null)
		return;
	while (*budget && qp->sq_ci != qp->sq_pi && !qp->fatal) {
		uint16_t index = qp->sq_ci;

		memcpy(b, qp->sq + (size_t)(index & mask) * WQE_BLOCK, WQE_BLOCK);
		if (!rc_short_decode(qp, peer, b, &w))
			return;
		if (strict_on)
			strict_fetch(qp, b, WQE_BLOCK, NULL, NULL);
		rc_short_execute(qp, peer, &w);
		qp->sq_ci++;
		if (strict_on)
			strict_completed(qp, index, 1, w.signalled && qp->scq);
		if (w.signalled && qp->scq)
			cq_write_done(qp->scq, qp, WQE_WRITE, index);
		*budget -= w.npkts < *budget ? w.npkts : *budget;
	}
}

bool rc_at_once(struct hca_qp *qp)
{
	const struct hca_rc *rc = qp->rc;
	unsigned budget = AT_ONCE;

	if (rc->dest.kind != WIRE_LOCAL || qp->type != HCA_QP_RC || qp->state != HCA_QPS_RTS ||
	    qp->fatal || rc->flushing || rc->rnr_until || rc->rs.resp_head != rc->rs.resp_tail ||
	    __builtin_expect(dma_on, 0))
		return false;
	rc_short_run(qp, &budget);
	return qp->sq_ci == qp->sq_pi && rc->head == rc->tail && !qp->fatal;
}
