/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of the emulated HCA, and the line between its two halves.
 *
 * Control half (what a kernel driver and firmware commands do): shim_*.c
 * answer the libc calls that rdma-core makes, uverbs_*.c the ioctls, prm_*.c
 * the DEVX mailboxes; objects.c owns the tables below.
 * Data half (what the silicon does): engine.c watches doorbells, wqe.c decodes
 * work requests, rc_*.c is the InfiniBand reliable connection, wire.c carries
 * packets, cq.c writes completions.
 *
 * One mutex, hca_lock, covers every object here. The engine thread holds it
 * while it works through one batch and lets waiting control calls go first.
 * Guest memory (rings, doorbell records, UAR pages, registered memory) is
 * shared with the program without that lock: guest.h has the accessors. */
#ifndef SOFTHCA_HCA_H
#define SOFTHCA_HCA_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_pd {
	uint32_t pdn;
};

/* ---- memory ---- */

enum { /* access bits: the IBV_ACCESS_ values of the uverbs ABI */
	HCA_LOCAL_WRITE = 1,
	HCA_REMOTE_WRITE = 2,
	HCA_REMOTE_READ = 4,
	HCA_REMOTE_ATOMIC = 8,
	HCA_MW_BIND = 16,
	HCA_ON_DEMAND = 64,
	HCA_RELAXED_ORDERING = 1 << 20,
	HCA_WRITES = HCA_LOCAL_WRITE | HCA_REMOTE_WRITE | HCA_REMOTE_ATOMIC,
};

/* A memory window is an entry of the same table; only its key lasts. So is an indirect key. */
enum hca_window { HCA_NO_WINDOW = 0, HCA_WINDOW_1, HCA_WINDOW_2, HCA_INDIRECT };

struct hca_layout; /* mkey.c */

struct hca_mr {
	uint32_t key; /* lkey == rkey: index << 8 | variant */
	uint32_t pdn;
	uint32_t access;
	uint64_t iova; /* first address as work requests name it */
	uint64_t len;
	uint8_t *va;	 /* where iova lives in this process */
	bool owns_map;	 /* va is our own mapping (dma-buf), unmapped with the MR */
	bool device;	 /* memory of a GPU, dma.h */
	bool memic;	 /* device memory: the program has no address of it */
	bool astray;	 /* its dma-buf holds another way than the device has: nothing arrives */

	enum hca_window window; /* access, iova and len are those of the binding */
	bool bound;
	uint32_t qpn;	 /* type 2: the one QP that has it */
	uint32_t region; /* key of what it is bound to, */
	uint64_t target; /* and the address there that iova stands for */

	struct hca_layout *layout; /* HCA_INDIRECT: what it holds, once that was said */
	uint32_t max_pieces;
	bool remote_inv; /* the peer may take it back */
};

/* On demand, of all addresses. */
static inline bool hca_mr_implicit(const struct hca_mr *mr)
{
	return mr->access & HCA_ON_DEMAND && !mr->va && mr->len == UINT64_MAX;
}

struct hca_umem {
	uint32_t id;
	uint8_t *va;
	uint64_t len;
	uint64_t page; /* queues begin at multiples of a 64th of it */
	uint32_t access;
};

/* ---- completion queues ---- */

struct hca_comp_channel; /* control half */

struct hca_cq {
	uint32_t cqn;
	uint8_t *buf;	   /* guest memory, 1 << log_size entries of cqe_size bytes */
	uint32_t log_size; /* entries */
	uint32_t cqe_size; /* 64 or 128; a 128-byte CQE uses its upper half */
	bool collapsed;	   /* cc: every CQE goes to entry 0 */
	bool overrun_ignore; /* oi */
	uint32_t *dbrec;   /* guest: [0] consumer index, [1] arm word, both be32; may be NULL */
	uint32_t pi;	   /* CQEs written so far, free-running */
	bool overrun;	   /* CQ is in error after an overrun with oi == 0 */
	bool waited;	   /* a WAIT wants its next CQE */
	uint32_t consumed; /* consumer index when it was last looked at */
	uint8_t last[56];  /* in memory of a GPU: the last entry but for its end, */
	uint32_t alike;	   /* and how many in a row are like it, up to the number of places */

	bool events; /* somebody wants to be told of completions */
	struct hca_comp_channel *channel; /* of plain verbs */
	uint64_t user_handle;
	uint32_t armed_word;	  /* last arm word acted upon, host order */
	uint32_t last_notified_pi;
	uint32_t solicited_pi;	  /* pi after the last solicited or error CQE */
	uint32_t comp_events;	  /* delivered so far */
};

/* ---- queue pairs ---- */

enum { HCA_LOG_MAX_MSG = 30 }; /* bytes of a message */

enum hca_qp_type { HCA_QP_RC = 0, HCA_QP_UC, HCA_QP_UD, HCA_QP_DCI, HCA_QP_DCT };

enum hca_qp_state { /* the PRM's numbers, reported by QUERY_QP */
	HCA_QPS_RST = 0,
	HCA_QPS_INIT = 1,
	HCA_QPS_RTR = 2,
	HCA_QPS_RTS = 3,
	HCA_QPS_SQER = 4, /* UC, UD: the send queue stopped at an error */
	HCA_QPS_ERR = 6,
};

enum hca_atomic_mode { /* the PRM's numbers; larger ones allow larger atomics, too */
	HCA_ATOMIC_NONE = 0,
	HCA_ATOMIC_IB_SPEC = 1,	  /* eight bytes, */
	HCA_ATOMIC_ONLY_8B = 2,	  /* eight bytes, */
	HCA_ATOMIC_UP_TO_8B = 3,  /* four as well */
};

enum hca_order { /* the PRM's numbers of dp_ordering */
	HCA_ORDER_IBTA = 0,
	HCA_ORDER_OOO_RW = 1, /* WRITEs in any order, atomics behind them */
};

struct hca_srq {
	uint32_t srqn, pdn;
	uint8_t *buf;
	uint32_t wqe_cnt, wqe_shift;
	uint32_t *dbrec;
	bool cyclic;   /* entries are used in turn; else they are a linked list */
	uint32_t head; /* WQE index to consume next */
	uint32_t consumed;
	uint32_t limit; /* fewer WQEs than this raise an event, once; 0: none */
	struct strict_recv *strict; /* strict mode, NULL until it looks */
};

/* Address and attributes of a connection, set by the modify commands. */
struct hca_path {
	struct in6_addr dgid; /* RoCE: the peer's GID, IPv4-mapped or IPv6 */
	uint16_t dlid;	      /* link layer InfiniBand (not routed by softhca) */
	uint8_t dmac[6];
	uint8_t sgid_index;
	uint8_t tclass, hop_limit, sl;
	uint16_t udp_sport; /* 0: derived from the QPNs */
	uint16_t pkey_index;
};

struct strict_qp; /* strict_impl.h */
struct hca_rc; /* data half: requester and responder state, rc.h */

/* What a work request touches comes first, in one cache line (ctl_qp sees to its place): with many
 * queue pairs it is in no near cache. */
struct hca_counters;

struct hca_qp {
	uint32_t qpn, pdn, user_index;
	uint32_t access;    /* HCA_REMOTE_* that the QP grants (rwe, rre, rae) */
	uint32_t dest_qpn;  /* DCI: that of the connection in use */
	uint16_t mtu;	    /* bytes: 256..4096; 256 until set */
	uint16_t sq_ci;	    /* next WQE block that the engine executes, modulo 2^16 */
	uint16_t sq_pi;	    /* blocks known to be posted, modulo 2^16 */
	enum hca_qp_type type : 8;
	enum hca_qp_state state : 8;
	uint8_t log_sq_size;
	bool sig_all;
	bool fatal : 1;	    /* lost a completion to an overrun: to end in error, reported once */
	bool record_old : 1; /* the record is as it was before the queue was ready: see look_at() */
	bool active;	    /* in the engine's list */
	uint8_t *sq;	    /* guest memory: 1 << log_sq_size blocks of 64 bytes; NULL: no SQ */
	uint32_t *dbrec;    /* guest: [0] RQ, [1] SQ counters, be32; NULL: none */
	struct hca_rc *rc;
	struct hca_cq *scq;

	struct hca_qp *next_active; /* engine's list of QPs with work; NULL: the last, or not there */
	struct hca_cq *rcq;
	struct hca_srq *srq;
	uint8_t *rq;	    /* guest memory: rq_cnt entries of 1 << rq_shift bytes; NULL: no RQ */
	uint32_t rq_cnt, rq_shift;
	uint16_t rq_ci;	    /* next receive to consume, modulo 2^16 */
	uint16_t record_before; /* what it held then */
	uint64_t record_since; /* since when the ring holds all that it covers; 0: it does not */
	uint16_t sq_first;  /* index of the first WQE after RST; 0 but by fault schedule */
	uint8_t cqe_req, cqe_res; /* scatter to CQE: answers and SENDs up to so long go there, */
	bool cqe_be;	    /* and those of atomics are big-endian there */
	uint8_t ack_timeout; /* 4.096 us << n; 0: no limit */
	uint8_t retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic; /* counts, not logarithms */

	uint8_t atomic_mode; /* what atomics it executes: enum hca_atomic_mode */
	uint8_t order;	    /* RC, of what is placed: enum hca_order, */
	bool order_force;   /* as the program, not the device, wants it */
	bool halves;	    /* RC: what it places comes to be seen by halves of 64 bytes */
	bool relaxed;	    /* RC: keys of relaxed order alone: WRITEs overtake, whatever order says */
	bool dc_drained;    /* DCT: takes no new requester */
	struct hca_counters *counters; /* NULL: of no set */
	uint32_t dc_violations;
	uint64_t dc_key;    /* DCT: what a requester has to know */
	uint32_t qkey;	    /* UD */
	uint32_t sq_psn, rq_psn;
	unsigned device;    /* number of the device that it is a queue pair of */
	uint32_t uar_page;  /* UAR page the QP was created with */
	uint64_t user_handle;
	struct hca_path path;
	struct strict_qp *strict; /* strict mode, NULL when off */
};

enum { HCA_QP_LINE = 64 };
_Static_assert(offsetof(struct hca_qp, next_active) == HCA_QP_LINE, "one line");

/* ---- tables (objects.c), hca_lock held ---- */

struct hca_qp *hca_find_qp(uint32_t qpn);
/* What happened to the packets of the queue pairs of a counter set. */
struct hca_counters {
	uint32_t out_of_sequence;	/* requests that came ahead of their turn */
	uint32_t packet_seq_err;	/* NAKs that said so */
	uint32_t local_ack_timeout_err;
};

struct hca_mr *hca_find_mr(uint32_t key);
struct hca_mr *hca_find_mr_by_index(uint32_t key); /* whatever the key's variant */
/* Calls fn for every live QP, for the doorbell-record sweep: continues after
 * the QP at which the last call stopped, at most n of them. */
void hca_sweep_qps(unsigned n, void (*fn)(struct hca_qp *qp));

void hca_lock(void);	  /* control calls: announces itself, so that the engine gives way */
bool hca_lock_within(unsigned seconds); /* hca_lock; false: not got in this time */
bool hca_trylock(void); /* a thread that polls: false where another has it, or wants it */
void hca_unlock(void);	  /* ends hca_lock and hca_lock_engine */
void hca_lock_engine(void);	/* engine: sleeps until no control call is waiting, then locks */
bool hca_lock_is_mine(void);	/* the calling thread has it */
bool hca_lock_wanted(void);	/* a control call waits: the engine should end its batch */

/* UAR pages: page i of the device file, mapped once, 4096 bytes behind the one
 * before; NULL beyond the last used. */
uint8_t *hca_uar_page(uint32_t page);
uint32_t hca_uar_pages_used(void); /* 1 + highest page handed out */
/* Calls fn for each range of addresses at which the program has such pages, until it returns
 * false. False then, or where not all of them are found, or something in this process forbids
 * to keep a thread from writing there. */
bool hca_uar_mappings(bool (*fn)(void *arg, uint64_t start, uint64_t end), void *arg);

/* ---- control half calls data half, hca_lock held ---- */

int engine_start(void);			    /* idempotent; at the first GET_CONTEXT */
int dp_qp_create(struct hca_qp *qp);	    /* allocates qp->rc */
void dp_qp_modified(struct hca_qp *qp, enum hca_qp_state from); /* state and attributes are set */
void dp_qp_destroy(struct hca_qp *qp);	    /* no packet or CQE of it after return */
void dp_cq_destroy(struct hca_cq *cq);
/* A region is as it says now: at offset of a file that other processes can map, whose descriptor
 * is the data half's from now on; fd -1: no such memory. */
void dp_mr_registered(const struct hca_mr *mr, int fd, uint64_t offset);
/* dp_mr_registered of memory of a GPU: takes what is shown of it from the answer. */
struct dma_answer;
void dp_mr_registered_gpu(const struct hca_mr *mr, struct dma_answer *a);
void dp_mr_gone(const struct hca_mr *mr);
void mkey_gone(struct hca_mr *m); /* what an indirect key holds */
/* Goes on in another ring behind a RESIZE_CQ entry in the present one. False, and nothing
 * done, when what is not consumed yet does not fit. */
bool dp_cq_resize(struct hca_cq *cq, uint8_t *buf, uint32_t log_size);
uint32_t dp_first_qpn(void); /* QPNs of this process are [first, first + count): the wire */
uint32_t dp_qpn_count(void); /* routes by the upper bits; valid after engine_start */
/* The GID table of a device: addresses of one interface, IPv4-mapped or IPv6; at least one
 * entry. Beside it those of the other devices: dp_gid takes HCA_GIDS * device + index, and
 * answers zero beyond a device's last. */
enum { HCA_GIDS = 16 };
unsigned dp_gid_count(unsigned device);
struct in6_addr dp_gid(unsigned index);
const char *dp_interface(unsigned device); /* its name */
uint32_t dp_mtu(unsigned device); /* the largest path MTU that its interface carries */

/* ---- data half calls control half ---- */

/* One completion event to the channel; called with hca_lock held. */
void hca_comp_event(struct hca_cq *cq);
/* Asynchronous events; type is the IBV_EVENT_ number. */
void hca_async_qp_event(struct hca_qp *qp, uint32_t type);
void hca_async_cq_event(struct hca_cq *cq, uint32_t type);
void hca_async_srq_event(struct hca_srq *srq, uint32_t type);
/* The port went down or came up: IBV_EVENT_PORT_ERR or IBV_EVENT_PORT_ACTIVE. */
enum hca_port_event { HCA_PORT_ACTIVE = 9, HCA_PORT_ERR = 10, HCA_GID_CHANGE = 18 }; /* enum ibv_event_type */
void hca_async_port_event(enum hca_port_event event);
/* Events that found no room in their channel are tried again; at deadlines. */
void hca_events_timer(void);

/* ---- counters and debug, any thread ---- */

struct hca_stats { /* printed at exit as one line each with SOFTHCA_STATS=1 */
	uint64_t wqes, wqe_bytes;	     /* executed to completion, by all QPs */
	uint64_t wqes_by_opcode[256];
	uint64_t pkts_tx, pkts_rx, pkts_dropped, pkts_forwarded;
	uint64_t pkts_shm, shm_wakes; /* of pkts_tx: through shared memory; peers woken */
	uint64_t shm_reads; /* payloads read where they lay in another process */
	uint64_t shm_mapped; /* or copied from there, where it is mapped here */
	uint64_t ack_timeouts; /* repetitions that nothing but silence asked for */
	uint64_t retransmits, naks_tx, naks_rx, rnr_tx, icrc_errors;
	uint64_t msg_parts_dropped; /* UC and UD packets that no message could take */
	uint64_t qkey_violations, pkey_violations;
	uint64_t ecn_marked; /* received with "congestion experienced" */
	uint64_t doorbells_uar, doorbells_sweep; /* first seen in the UAR / only by the sweep */
	uint64_t cqes, error_cqes;
	uint64_t engine_sleeps, engine_rests; /* of them long ones, with trapped pages */
	uint64_t doorbells_trapped, doorbells_missed; /* that ended such a rest, or should have */
	uint64_t poll_rounds, poll_takeovers; /* by threads that poll; ended by the engine */
	uint64_t dma_writes, dma_submissions, dma_batches; /* to memory of GPUs */
	uint64_t dma_reads, dma_bytes_between, dma_merged; /* writes that became part of others */
	uint64_t dma_kernel_items, dma_kernel_launches; /* of reads and writes; of the kernel */
};
extern struct hca_stats hca_stats;

#endif
