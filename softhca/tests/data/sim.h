/* SPDX-License-Identifier: BSD-3-Clause */
/* Drives the data half of softhca without its control half: fills the objects
 * by hand, posts work requests as a program does, polls completions. */
#ifndef SIM_H
#define SIM_H

#include "softhca/engine/hca.h"
#include "softhca/transport/wqe.h"

enum sim_cq_mode { SIM_CQ_RING, SIM_CQ_COLLAPSED, SIM_CQ_ONE };

struct sim_qp {
	struct hca_qp qp;
	struct hca_cq scq, rcq;
	uint32_t *dbrec; /* [0] RQ, [1] SQ, [2..3] SCQ, [4..5] RCQ */
	uint8_t *uar;
	uint32_t pi;	   /* blocks posted, free-running */
	uint32_t rq_pi;
	uint32_t ci, rcq_ci;
	bool no_uar;	   /* only write the record: the sweep must find it */
	uint8_t fence;	   /* fm bits for the next WQEs */
	unsigned av;	   /* segments of the address vector in front of the others */
};

struct sim_cqe {
	uint8_t type, opcode, syndrome, vendor;
	uint16_t counter;
	uint32_t qpn, uidx, byte_cnt, imm; /* imm in host order */
	uint32_t flags_rqpn;
};

void sim_init(void);	  /* with the engine's thread */
void sim_init_idle(void); /* without: the test calls engine_round() */
uint32_t sim_mr(void *va, uint64_t len, uint32_t access, uint32_t pdn, uint64_t iova);
/* Zeroes at the begin of a page, registered at their address with these rights; ends the test when there are none. */
uint8_t *sim_memory(uint64_t len, uint32_t access, uint32_t *key);
void sim_mr_remove(uint32_t key);
uint32_t sim_window(enum hca_window type, uint32_t pdn);
struct sim_qp *sim_qp(unsigned log_sq, enum sim_cq_mode mode);
struct sim_qp *sim_qp_as(enum hca_qp_type type, unsigned log_sq, enum sim_cq_mode mode);
void sim_qp_free(struct sim_qp *q);
/* To RTS; attributes have been set in q->qp or are defaults. */
void sim_connect(struct sim_qp *q, uint32_t dest_qpn);
void sim_listen(struct sim_qp *q); /* a DCT: to RTR */
void sim_reset(struct sim_qp *q); /* what was posted is forgotten */
void sim_pair(struct sim_qp *a, struct sim_qp *b);

/* Each writes one WQE at the producer index; sim_ring() publishes. ce: 1 CQE. */
void sim_write(struct sim_qp *q, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len,
	       uint32_t lkey, int ce);
void sim_write_imm(struct sim_qp *q, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len,
		   uint32_t lkey, uint32_t imm, int ce);
void sim_inline(struct sim_qp *q, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len,
		int ce);
/* A header inline, the rest by address. */
void sim_mixed(struct sim_qp *q, uint64_t raddr, uint32_t rkey, const void *src, uint32_t head,
	       uint32_t len, uint32_t lkey, int ce);
void sim_read(struct sim_qp *q, uint64_t raddr, uint32_t rkey, void *dst, uint32_t len,
	      uint32_t lkey, int ce);
void sim_send(struct sim_qp *q, const void *src, uint32_t len, uint32_t lkey, int ce);
void sim_send_imm(struct sim_qp *q, const void *src, uint32_t len, uint32_t lkey, uint32_t imm,
		  int ce);
void sim_send_inv(struct sim_qp *q, const void *src, uint32_t len, uint32_t lkey, uint32_t rkey,
		  int ce);
/* Binds a window of type 2, whose key from now on this is, or takes it back. */
void sim_umr(struct sim_qp *q, uint32_t window, bool bind, uint32_t lkey, const void *at, uint64_t len,
	     uint32_t access);
/* Datagram: the next WQE's address vector, key as the WQE has it. */
void sim_to(struct sim_qp *q, uint32_t dqpn, uint64_t key);
void sim_nop(struct sim_qp *q, int ce);
/* Until that CQ has had the CQE of this number. */
void sim_wait(struct sim_qp *q, uint32_t cqn, uint32_t index, int ce);
void sim_dump(struct sim_qp *q, const void *src, uint32_t len, uint32_t lkey, int ce);
void sim_fetch_add(struct sim_qp *q, uint64_t raddr, uint32_t rkey, void *dst, uint32_t lkey,
		   uint64_t add, int ce);
void sim_cmp_swap(struct sim_qp *q, uint64_t raddr, uint32_t rkey, void *dst, uint32_t lkey,
		  uint64_t compare, uint64_t swap, int ce);
void sim_masked(struct sim_qp *q, bool add, unsigned size, uint64_t raddr, uint32_t rkey, void *dst,
		uint32_t lkey, const uint64_t operands[4], int ce);
void sim_raw(struct sim_qp *q, const uint8_t *bytes, unsigned segments);
void sim_recv(struct sim_qp *q, void *dst, uint32_t len, uint32_t lkey);
void sim_ring(struct sim_qp *q);

/* The next CQE, if it is there. */
bool sim_look(struct sim_qp *q, struct sim_cqe *c);
/* Next CQE; false after ms without one. */
bool sim_poll(struct sim_qp *q, struct sim_cqe *c, unsigned ms);
bool sim_poll_recv(struct sim_qp *q, struct sim_cqe *c, unsigned ms);
/* One-entry and collapsed CQs: waits until the entry shows this counter. */
bool sim_wait_counter(struct sim_qp *q, uint16_t counter, struct sim_cqe *c, unsigned ms);
uint64_t sim_now(void);
unsigned sim_async_events(void);
unsigned sim_port_events(bool down);

#endif
