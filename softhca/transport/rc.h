/* SPDX-License-Identifier: BSD-3-Clause */
/* State of a reliable connection, beside struct hca_qp. The requester turns
 * send WQEs into packets and completes them; the responder executes what the
 * peer asks for. IBTA volume 1, section 9.7. */
#ifndef SOFTHCA_RC_H
#define SOFTHCA_RC_H

#include "softhca/engine/dp.h"
#include "softhca/gpu/dma.h"
#include "softhca/transport/wqe.h"

/* Receive work requests, as the responders of all transports use them: take
 * one from the QP's or the shared queue, scatter into it, complete it. */

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

enum {
	RC_MAX_REQS = 128,	/* WQEs picked up and not completed, power of two */
	RC_WINDOW_MAX = 512,	/* packets on their way, in all, */
	RC_WINDOW_BULK = 2048,	/* and where one can stand for many */
	RC_WINDOW_START = 64,
	RC_WINDOW_MIN = 4,
	RC_ACK_EVERY = 16,	/* acknowledgement requested at least so often */
	RC_READ_CHUNK = 16,	/* packets asked for by one READ request */
	RC_MAX_READS = 64,	/* outstanding READ and atomic requests, power of two */
	RC_RESP_QUEUE = 64,	/* responses not yet sent, power of two */
	RC_ATOMIC_CACHE = 64,	/* results kept for duplicates, power of two */
	RC_INLINE_KEEP = 64,
	RC_BACKOFFS = 4,		/* times that a repetition waits for a peer without a core */
	RC_UNREAD = 4,		/* ways that payload may go before one that is not read counts as lost */
	RC_SGE_KEEP = 2,
};

enum { /* vendor syndromes beside the standard ones */
	VEND_FLUSH = 0xf9,
	VEND_RETRY = 0x81,
	VEND_RNR_RETRY = 0x87,
	VEND_LOCAL_PROT = 0x51,
	VEND_LOCAL_OP = 0x68,
	VEND_LOCAL_LEN = 0x6a,
	VEND_REMOTE_ACCESS = 0x88,
	VEND_REMOTE_INVAL = 0x8a,
	VEND_REMOTE_OP = 0x89,
};

enum rc_req_kind { REQ_LOCAL, REQ_SEND, REQ_WRITE, REQ_READ, REQ_ATOMIC };

/* A send WQE between pick-up and completion. */
struct rc_req {
	enum rc_req_kind kind;
	uint8_t opcode;
	uint8_t syndrome, vendor; /* set at pick-up: ends in this error, in order */
	uint8_t blocks;
	bool signalled, solicited, has_imm, fence, done;
	bool strong; /* waits for all before it, WRITEs too */
	bool to_cqe; /* the answer goes to the CQE, by way of inl_keep */
	uint64_t fetch; /* number of the read that brings its payload from a GPU, 0: none */
	uint16_t wqe_index;
	uint32_t psn, npkts; /* npkts 0: nothing on the wire */
	uint32_t len;
	uint32_t imm, rkey;
	uint64_t raddr;
	union {
		struct wqe_atomic atomic;
		struct wqe_wait wait;
		struct wqe_umr umr; /* done: not once more when packets before it go again */
	};
	struct wqe_av av; /* UD, DC */
	uint32_t nsge;
	struct wqe_sge *sge;
	uint8_t *inl; /* where inlined segments point */
	struct wqe_sge sge_keep[RC_SGE_KEEP];
	uint8_t inl_keep[RC_INLINE_KEEP];
};

enum rc_resp_kind { RESP_ACK, RESP_NAK, RESP_READ, RESP_ATOMIC };

struct rc_resp {
	enum rc_resp_kind kind;
	uint8_t syndrome;
	uint32_t psn, msn;
	uint64_t orig; /* atomic result */
	uint64_t placed; /* number of the last write to memory of a GPU that it covers */
	uint64_t held; /* rc_order_last() */
	uint64_t va;   /* READ */
	uint32_t rkey, len, npkts, sent;
	bool again; /* of a duplicate: takes none of the max_dest_rd_atomic resources */
};

struct rc_atomic_result {
	bool valid;
	uint32_t psn;
	uint64_t orig;
};

/* What a responder knows about one requester. An RC QP has one of these. */
struct rc_responder {
	uint32_t epsn, msn;
	uint32_t data_psn;	/* of the last SEND or WRITE packet before epsn */
	bool nak_sent;		/* silent until the expected PSN comes */
	uint8_t refused;	/* DC: the NAK that ended the connection, 0: none */
	bool in_send, in_write; /* in the middle of a message */
	bool rx_held;		/* UC: rx was taken for a message that was lost */
	uint64_t wr_va;
	uint32_t wr_rkey, wr_left, wr_total;
	uint32_t resp_head, resp_tail;
	uint32_t atomic_next;
	uint64_t placed; /* number of the last write to memory of a GPU */
	struct rc_resp resp[RC_RESP_QUEUE]; /* from here on not cleared by a reset */
	struct rc_atomic_result atomic_cache[RC_ATOMIC_CACHE];
	struct hca_recv rx;
	struct wire_dest dest; /* where answers go */
	uint32_t dest_qpn;
};

/* What every message touches comes first, in three cache lines, what a write inside the process
 * touches in the first and the third: with many queue pairs none of
 * them is in a near cache, and they are asked for at once (engine_prefetch()). */
struct hca_rc {
	/* requester: reqs[head..tail) in WQE order, [head..cur) sent at least in part */
	_Alignas(64) uint32_t head;
	uint32_t tail, cur;
	uint32_t psn_pick;	/* PSN of the next WQE that is picked up */
	uint32_t psn_next;	/* next PSN to put on the wire */
	uint32_t psn_una;	/* oldest PSN not acknowledged */
	uint32_t psn_max;	/* highest PSN ever sent, plus one */
	bool lost;		/* something was lost: the window grows slowly from now on */
	bool probing;		/* since an RNR NAK nothing was acknowledged: few packets go */
	bool stalled_by_error;	/* a request with a local error waits at the tail */
	bool flushing;		/* state ERR: everything posted is flushed */
	struct dma_ring *ring;	/* the send ring, where it is in memory of a GPU */
	uint64_t rnr_until;	/* no sending before, 0: free */
	uint64_t deadline;	/* ack timer, 0: off */
	uint32_t cur_off;	/* packets of reqs[cur] sent */
	struct wire_dest dest;	/* its kind is in the first line */
	uint32_t live_index;	/* engine.c */
	uint32_t window;	/* packets allowed between una and next */
	uint32_t acked_in_window;
	uint32_t since_ackreq;
	uint32_t rd_head, rd_tail; /* of rd_end */
	uint8_t retries, rnr_retries;
	uint8_t backoffs;	/* times since the last repetition, or progress */
	uint8_t unread;		/* times since the last progress that payload was not read in place */
	bool implied_nak;	/* went back for a missing answer, no progress since */
	bool dma_waits;		/* in dma.c's list */
	bool waits;		/* at a WAIT */

	_Alignas(64)
	struct rc_responder rs;

	struct rc_req *reqs;
	uint32_t rd_end[RC_MAX_READS]; /* last PSN of each outstanding READ/atomic request */
	struct in6_addr ud_gid;	/* UD, DC: where dest leads, and until when that is believed */
	uint8_t ud_sgid;
	uint32_t ud_dqpn;
	uint64_t ud_until;
	uint64_t progress_at;	/* last acknowledgement, or first packet after a rest */
	uint64_t placed;	/* number of the last write of an answer to memory of a GPU */
	struct {		/* DCI: the connection in use */
		struct wqe_av av;
		uint32_t first;	/* its first PSN */
		uint8_t life;	/* counts the times that the queue became ready to send */
	} dc;
	struct dc_target *target; /* DCT: its requesters, in place of rs */
	struct rc_order *order; /* rc_order.c; NULL: nothing was ever held back */
};

enum { RC_HOT = 192 }; /* bytes */
_Static_assert(offsetof(struct hca_rc, dest.kind) == 60, "in the first line");
_Static_assert(offsetof(struct hca_rc, rs) == 128, "requester: two lines");
_Static_assert(offsetof(struct rc_responder, resp) <= 64, "responder: one");

/* engine -> rc; rc_run returns true while there is more to do now */
bool rc_run(struct hca_qp *qp, unsigned budget);
/* Carries out what is posted where that needs no packets (rc_short.c). False: there is more to do, by
 * rc_run(). */
bool rc_at_once(struct hca_qp *qp);
void rc_receive(struct hca_qp *qp, const struct wire_dest *from, const struct packet *p,
		const struct iovec *pl, int npl);
void rc_timer(struct hca_qp *qp, uint64_t now);
void rc_was_late(struct hca_qp *qp, uint64_t ns); /* time that its ack timer is not charged */

/* requester */
void rc_req_reset(struct hca_qp *qp);
bool rc_req_run(struct hca_qp *qp, unsigned *budget);
void rc_req_response(struct hca_qp *qp, const struct packet *p, const struct iovec *pl, int npl);
/* Completes the oldest request with an error and flushes the rest. */
void rc_req_fail(struct hca_qp *qp, uint8_t syndrome, uint8_t vendor);
/* State is ERR: flushes what is in flight and what is posted. */
void rc_req_flush(struct hca_qp *qp);

/* responder */
void rc_resp_reset(struct rc_responder *rs, uint32_t epsn);
bool rc_resp_run(struct hca_qp *qp, struct rc_responder *rs, unsigned *budget);
void rc_resp_request(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p,
		     const struct iovec *pl, int npl);
/* The receive that is in use, if any. */
void rc_resp_flush(struct hca_qp *qp, struct rc_responder *rs);

/* UDP source port of a connection whose path names none. */
uint16_t rc_sport(uint32_t qpn, uint32_t dqpn);
/* A SEND or WRITE packet whose turn it is. False when it was refused. */
bool rc_resp_data(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p,
		  const struct iovec *pl, int npl);

/* ---- rc_place.c ---- */

/* payload_copy() with what memory of a GPU needs: the number of the last write is kept in
 * *placed, its order follows the key. */
bool rc_place_gpu(uint64_t *placed, uint32_t key, const struct packet *p, const struct iovec *dst,
		  int ndst, const struct iovec *src, int nsrc);
/* A store of the CPU comes behind what was placed before. */
void rc_place_settle(uint64_t placed, const void *mem);

static inline bool rc_place(uint64_t *placed, uint32_t key, const struct packet *p,
			    const struct iovec *dst, int ndst, const struct iovec *src, int nsrc)
{
	return __builtin_expect(dma_on, 0) ? rc_place_gpu(placed, key, p, dst, ndst, src, nsrc)
					   : payload_copy(p, dst, ndst, src, nsrc);
}

/* Is that write still on its way? Then the QP's turn comes when it has arrived. */
static inline bool rc_placing(struct hca_qp *qp, uint64_t placed)
{
	if (__builtin_expect(!dma_on, 1) || dma_done(placed))
		return false;
	dma_wait(qp);
	return true;
}

/* ---- rc_order.c ---- */

/* Do WRITEs overtake each other? */
static inline bool rc_order_any(const struct hca_qp *qp)
{
	return qp->order || qp->relaxed;
}

/* rc_place() of a WRITE on a queue pair that places out of order. */
bool rc_order_place(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p, const struct iovec *iov, int n,
		    const struct iovec *pl, int npl);
void rc_order_settle(struct hca_qp *qp); /* places what is held */
void rc_order_end(struct hca_qp *qp);	 /* and forgets the queue pair */
/* What was held back so far, as a number; is something of that held still? */
uint64_t rc_order_last(const struct hca_qp *qp);
bool rc_order_holds(const struct hca_qp *qp, uint64_t last);
void rc_order_timer(struct hca_qp *qp, uint64_t now); /* where order is not NULL */

/* QP to the error state: both sides flush. */
void rc_to_error(struct hca_qp *qp);

/* The transport bits of the packets that a QP sends. */
static inline uint8_t rc_class(const struct hca_qp *qp)
{
	switch (qp->type) {
	case HCA_QP_UC:
		return BTH_UC;
	case HCA_QP_UD:
		return BTH_UD;
	case HCA_QP_DCI:
	case HCA_QP_DCT:
		return BTH_DC;
	default:
		return BTH_RC;
	}
}

/* ---- uc.c, ud.c ---- */

/* UC and UD: nothing answers, so what has left is done. */
void unacked_sent(struct hca_qp *qp);
void uc_receive(struct hca_qp *qp, const struct packet *p, const struct iovec *pl, int npl);
/* The rest of the message in progress will not come. */
void uc_drop(struct rc_responder *rs);
bool ud_send(struct hca_qp *qp, struct rc_req *r);
/* Turns dest to where an address vector leads. */
void ud_aim(struct hca_qp *qp, const struct wqe_av *av);
void ud_receive(struct hca_qp *qp, const struct wire_dest *from, const struct packet *p,
		const struct iovec *pl, int npl);

/* ---- dc_initiator.c, dc_target.c ---- */

/* May the request start, or go on: is its target the one that is connected, or can that
 * be changed? */
bool dc_may_send(const struct hca_qp *qp, const struct rc_req *r);
/* A packet of the request is next: connects where nothing is. */
void dc_connect(struct hca_qp *qp, const struct rc_req *r);
void dc_header(const struct hca_qp *qp, struct packet *p);
int dc_target_create(struct hca_qp *qp);
void dc_target_destroy(struct hca_qp *qp);
void dc_target_reset(struct hca_qp *qp); /* all requesters are forgotten */
bool dc_target_run(struct hca_qp *qp, unsigned budget);
void dc_target_receive(struct hca_qp *qp, const struct wire_dest *from, const struct packet *p,
		       const struct iovec *pl, int npl);

/* Are all pieces of a scatter list where their addresses say, in this process?
 * Only then the program can scatter for itself, as it is about to be asked to. */
bool rc_by_address(const struct hca_qp *qp, uint32_t pdn, const struct wqe_sge *sge, unsigned nsge);

/* Pieces of memory behind [off, off + len) of a scatter list; -1 when a key
 * does not allow it. iov has room for PKT_MAX_IOV. */
int rc_gather(uint32_t pdn, const struct wqe_sge *sge, unsigned nsge, uint64_t off,
	      uint64_t len, uint32_t access, struct iovec *iov);

/* What the files of the RC requester share: rc_fetch.c, rc_requester.c
 * (sending), rc_ack.c, rc_complete.c. */

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
