/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive work requests, as the responders of all transports use them: take
 * one from the QP's or the shared queue, scatter into it, complete it. */
#ifndef SOFTHCA_RECV_H
#define SOFTHCA_RECV_H

#include "softhca/engine/dp.h"
#include "softhca/transport/wqe.h"

struct hca_recv { /* a receive WQE in use */
	struct wqe_sge sge[WQE_MAX_SGE];
	uint32_t nsge;
	uint16_t index;
	uint32_t off;  /* bytes placed */
	uint64_t room; /* bytes that fit */
	uint32_t inl_len; /* bytes that go to the CQE */
	uint8_t inl[64];
};

/* The next receive WQE of the QP or its SRQ; false when none is posted. */
bool recv_take(struct hca_qp *qp, struct hca_recv *r);
/* Places len more bytes of this packet's payload; 0, the syndrome of the completion error, or
 * RECV_UNREAD. */
enum { RECV_UNREAD = 0xff }; /* the payload could not be read, nothing has changed */
uint8_t recv_place(struct hca_qp *qp, struct hca_recv *r, const struct packet *p,
		   const struct iovec *pl, int npl, uint32_t len);
/* A whole message that the CQE has room for goes there, if the QP is made so:
 * whoever polls scatters it. */
bool recv_to_cqe(struct hca_qp *qp, struct hca_recv *r, const struct iovec *pl, int npl,
		 uint32_t len);
/* Completes it: what the caller has not set in c comes from the QP and r. */
void recv_cqe(struct hca_qp *qp, const struct hca_recv *r, struct cqe c);
/* A message that ends with this packet. type: its CQE_RESP_. */
void recv_done(struct hca_qp *qp, const struct hca_recv *r, const struct packet *p,
	       enum cqe_type type);
void recv_error(struct hca_qp *qp, const struct hca_recv *r, uint8_t syndrome, uint8_t vendor);
/* Flushes what is posted to the QP itself. */
void recv_flush(struct hca_qp *qp);

#endif
