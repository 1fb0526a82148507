/* SPDX-License-Identifier: BSD-3-Clause */
/* Dynamically connected transport, the requester. A DCI is an RC requester whose
 * work requests name their target each. It is connected to one target at a time:
 * the next target, or this target again after a rest, begins a connection of its own, at the
 * PSN that is next. Nothing is exchanged for that; each request says it (packet.h). */
#include <string.h>

#include "softhca/transport/rc.h"

static bool same_target(const struct wqe_av *a, const struct wqe_av *b)
{
	return a->dqpn == b->dqpn && a->key == b->key && a->has_grh == b->has_grh &&
	       a->sgid_index == b->sgid_index && !memcmp(a->rgid, b->rgid, sizeof(a->rgid));
}

/* All that was ever sent is answered. Behind a loss it is not: what goes again is
 * of the connection that it was sent on, or it could be executed twice. */
static bool at_rest(const struct hca_rc *rc)
{
	return rc->psn_una == rc->psn_next && rc->psn_next == rc->psn_max;
}

bool dc_may_send(const struct hca_qp *qp, const struct rc_req *r)
{
	const struct hca_rc *rc = qp->rc;

	return rc->cur_off || at_rest(rc) || same_target(&rc->dc.av, &r->av);
}

void dc_connect(struct hca_qp *qp, const struct rc_req *r)
{
	struct hca_rc *rc = qp->rc;

	if (rc->cur_off || !at_rest(rc))
		return;
	rc->dc.av = r->av;
	rc->dc.first = rc->psn_next;
	qp->dest_qpn = r->av.dqpn;
	ud_aim(qp, &r->av);
}

void dc_header(const struct hca_qp *qp, struct packet *p)
{
	const struct hca_rc *rc = qp->rc;

	p->dc_key = rc->dc.av.key;
	p->sqpn = qp->qpn;
	p->first_psn = rc->dc.first;
	p->life = rc->dc.life;
}
