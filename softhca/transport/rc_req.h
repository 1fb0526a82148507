/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the RC requester share: rc_fetch.c, rc_requester.c
 * (sending), rc_ack.c, rc_complete.c. */
#ifndef SOFTHCA_RC_REQ_H
#define SOFTHCA_RC_REQ_H

#include "softhca/transport/rc.h"

static inline struct rc_req *req_at(struct hca_rc *rc, uint32_t i)
{
	return &rc->reqs[i % RC_MAX_REQS];
}

/* Does the peer answer? */
static inline bool rc_acked(const struct hca_qp *qp)
{
	return qp->type != HCA_QP_UC && qp->type != HCA_QP_UD;
}

/* Copies a WQE out of the ring; segments wrap at its end. */
void rc_fetch(const struct hca_qp *qp, uint16_t index, size_t len, uint8_t *buf);
/* The WQE at sq_ci into the next free request; the error, if any, is in it. */
void rc_fetch_next(struct hca_qp *qp);
/* Carries out what needs no packets: rc_short.c. */
void rc_short_run(struct hca_qp *qp, unsigned *budget);
/* The request will end in this error when its turn comes; returns syndrome. */
uint8_t rc_local_error(struct rc_req *r, uint8_t syndrome, uint8_t vendor);
/* Pieces of a request's payload; -1 when a key no longer allows it. */
int rc_payload(const struct hca_qp *qp, const struct rc_req *r, uint64_t off, uint32_t len,
	       struct iovec *iov);
/* Completes what is finished, and the error that waits behind it. */
void rc_retire(struct hca_qp *qp);
/* WAIT: is there such a CQ, and has it had that CQE, with what that tells of? If not, the QP's turn comes. */
bool rc_wait_known(const struct wqe_wait *w);
bool rc_wait_over(struct hca_qp *qp, struct wqe_wait *w);
/* Starts the ack timer anew, or stops it when nothing is on its way. */
void rc_arm_timer(struct hca_qp *qp);

#endif
