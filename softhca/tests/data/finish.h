/* SPDX-License-Identifier: BSD-3-Clause */
/* Until queue pairs have done what was posted, on the wire for tests. */
#ifndef SOFTHCA_TEST_FINISH_H
#define SOFTHCA_TEST_FINISH_H

#include "fakewire.h"
#include "softhca/transport/rc.h"

static inline bool fake_at_work(const struct sim_qp *q)
{
	return q->qp.state == HCA_QPS_RTS &&
	       (q->qp.sq_ci != (uint16_t)q->pi || q->qp.rc->head != q->qp.rc->tail);
}

/* Both sides; time passes whenever nothing else happens. */
static inline bool fake_finish(struct sim_qp *a, struct sim_qp *b)
{
	for (int waits = 0; waits < 400; waits++) {
		if (!fake_settle())
			return false;
		if (!fake_at_work(a) && !fake_at_work(b))
			return true;
		rc_timer(&a->qp, UINT64_MAX);
		rc_timer(&b->qp, UINT64_MAX);
	}
	return false;
}

#endif
