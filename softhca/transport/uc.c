/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connection. The requester is RC's without answers; the responder
 * takes whole messages only and drops the rest in silence. IBTA volume 1,
 * section 9.8.2; opcodes are those of RC with other upper bits. */
#include "softhca/transport/rc.h"

void unacked_sent(struct hca_qp *qp)
{
	struct hca_rc *rc = qp->rc;

	if (rc->psn_una == rc->psn_next)
		return;
	/* Packets inside the process still point to the program's memory,
	 * which a completion hands back. */
	wire_drain_local();
	rc->psn_una = rc->psn_next;
}

/* The receive WQE in use serves the next message: what is already placed there
 * is of no meaning. */
void uc_drop(struct rc_responder *rs)
{
	if (rs->in_send)
		rs->rx_held = true;
	rs->in_send = rs->in_write = false;
}

static bool starts_message(uint8_t op)
{
	return op == BTH_SEND_FIRST || op == BTH_SEND_ONLY || op == BTH_SEND_ONLY_IMM ||
	       op == BTH_WRITE_FIRST || op == BTH_WRITE_ONLY || op == BTH_WRITE_ONLY_IMM;
}

void uc_receive(struct hca_qp *qp, const struct packet *p, const struct iovec *pl, int npl)
{
	struct rc_responder *rs = &qp->rc->rs;
	uint8_t op = packet_op(p);

	/* A gap costs the message that it is in; the next one counts anew. */
	if (p->psn != rs->epsn || starts_message(op))
		uc_drop(rs);
	rs->epsn = psn_add(p->psn, 1);
	if (!starts_message(op) && !(op < BTH_WRITE_FIRST ? rs->in_send : rs->in_write)) {
		STAT_INC(msg_parts_dropped);
		return;
	}
	if (!rc_resp_data(qp, rs, p, pl, npl))
		STAT_INC(msg_parts_dropped);
}
