/* SPDX-License-Identifier: BSD-3-Clause */
/* WAIT: the send queue goes on when another queue's CQ has had a certain CQE (PRM, "Cross
 * channel"). A device that polls for that would keep the engine awake: who waits is called. */
#include "softhca/transport/rc.h"

static struct hca_cq *rc_find_cq(uint32_t cqn)
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
	return rc_find_cq(w->cqn);
}

/* A CQ that has gone meanwhile has no CQE any more. An answer may still be on its way into memory of a
 * GPU when its CQE is. */
bool rc_wait_over(struct hca_qp *qp, struct wqe_wait *w)
{
	struct hca_cq *cq;

	if (!w->came) {
		cq = rc_find_cq(w->cqn);
		w->came = cq && (int32_t)(cq->pi - w->index) > 0;
		w->posted = w->came && dma_on ? dma_posted() : 0;
		if (cq && !w->came)
			cq->waited = true;
		qp->rc->waits = !w->came;
	}
	return w->came && !rc_placing(qp, w->posted);
}

void cq_waited(struct hca_cq *cq)
{
	struct hca_qp *qp;

	cq->waited = false;
	for (unsigned i = 0; (qp = engine_qp(i)) != NULL; i++)
		if (qp->rc->waits)
			engine_activate(qp);
}
