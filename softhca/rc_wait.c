/* SPDX-License-Identifier: BSD-3-Clause */
/* WAIT: the send queue goes on when another queue's CQ has had a certain CQE (PRM, "Cross
 * channel"). A device that polls for that would keep the engine awake: who waits is called. */
#include "softhca/rc_req.h"

static struct hca_cq *find(uint32_t cqn)
{
	struct hca_qp *qp;

	for (unsigned i = 0; (qp = engine_qp(i)) != NULL; i++) {
		if (qp->scq && qp->scq->cqn == cqn)
			return qp->scq;
		if (qp->rcq && qp->rcq->cqn == cqn)
			return qp->rcq;
	}
	return NULL;
}

bool rc_wait_known(const struct wqe_wait *w)
{
	return find(w->cqn);
}

/* A CQ that has gone meanwhile has no CQE any more. */
bool rc_wait_over(struct hca_rc *rc, const struct wqe_wait *w)
{
	struct hca_cq *cq = find(w->cqn);

	rc->waits = !cq || (int32_t)(cq->pi - w->index) <= 0;
	if (rc->waits && cq)
		cq->waited = true;
	return !rc->waits;
}

void cq_waited(struct hca_cq *cq)
{
	struct hca_qp *qp;

	cq->waited = false;
	for (unsigned i = 0; (qp = engine_qp(i)) != NULL; i++)
		if (qp->rc->waits)
			engine_activate(qp);
}
