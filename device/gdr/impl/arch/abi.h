/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that the host library, device code and (struct gdri_ctl) remote
 * PEs share. Private: may change in any release, together with
 * GDR_ABI_VERSION; gdr_init refuses device code and peers of another one.
 *
 * Fields say who writes them: (host) before kernels run, (dev) device code by
 * atomics, (nic) the NIC, (peer) other PEs through the fabric. */
#ifndef GDRI_ABI_H
#define GDRI_ABI_H

#include <gdr/impl/arch/ops.h>
#include <gdr/impl/queue/mlx5_hw.h>
#include <gdr/version.h>

#define GDRI_LINE 128u /* cache line of a GPU, two of a CPU */
#define GDRI_ALIGNED __attribute__((aligned(128)))

#define GDRI_MAX_PES 1024	/* full mesh: a stated limit */
#define GDRI_BARRIER_ROUNDS 10	/* 2^10 = GDRI_MAX_PES */
#define GDRI_FLAT_MAX 16	/* PEs up to which a barrier through mapped memory takes one round */
#define GDRI_WAIT_RECORDS 16
#define GDRI_BLAME_SLOTS 16
#define GDRI_DEPTH_MIN 128u	/* blocks of the smallest send queue (GDR_QP_DEPTH) */
#define GDRI_MAX_BUFFERS 64	/* registered local buffers outside the heap */
#define GDRI_MAX_ERRORS 64
#define GDRI_INLINE_MAX 28u	/* what one block holds behind control and address segment */
#define GDRI_FETCH_SLOTS 4096u
#define GDRI_FETCH_SLOT_SIZE 16u

/* ------------------------------------------------------------------ queues */

/* One RC queue pair to one peer. Indexes count 64-byte blocks, are 64 bits
 * wide, never wrap, and are masked where they are used. */
#define GDRI_ROOM_BITS 40u			   /* of gdri_qp.room: blocks; above: less one for each that waits */
#define GDRI_ROOM_WAITER (1ull << GDRI_ROOM_BITS)
#define GDRI_ROOM_NONE (0 - (1ull << 62) - (1ull << 38)) /* both of it, whatever is yet put in or given back */
struct GDRI_ALIGNED gdri_qp {
	/* constants (host) */
	uint8_t *sq;		 /* depth blocks */
	uint64_t *db;		 /* doorbell register, or a word that a thread polls: one 8-byte store */
	uint32_t *dbrec;	 /* send doorbell record (the second dword), big-endian; NULL: the doorbell tells all */
	struct gdri_cqe *cq;	 /* cq_mask + 1 entries of 64 bytes */
	uint32_t qpn_shifted;	 /* qpn << 8, big-endian as it stands in WQE and doorbell */
	uint32_t qpn;
	uint32_t depth;		 /* blocks, a power of two, 128..32768 */
	uint32_t cq_mask;	 /* 0: one entry, overwritten (cc=1); else a ring of depth entries */
	int32_t peer;
	uint32_t slot;
	gdri_be32_t rkey_data;	 /* peer's heap, relaxed ordering: data */
	gdri_be32_t rkey_sync;	 /* peer's heap, strict ordering: signals, atomics, flags */
	uint32_t cq_far;	 /* 1: cq is memory of the host, and who looks at it a GPU: see gdri_look_begins */

	/* (dev) blocks reserved */
	GDRI_ALIGNED uint64_t rsvd;
	/* (dev) blocks below `limit` that nobody has taken: who takes some from here may reserve that many. A
	 * signed number: below 0 while somebody found too few and has not given them back, and, by GDRI_ROOM_WAITER for
	 * each, while somebody waits for room. 0 (initially) and GDRI_ROOM_NONE (after an error) send reservations to
	 * the slow path, which looks at err and marks the queue as used. */
	uint64_t room;
	uint64_t gate; /* (dev) who waits for room, and whose turn it is: gdri_gate_enter */

	/* (dev) blocks published, and the turn of publication: whoever reserved
	 * at `ready >> 1` may publish. index << 1 | last, where last says that the
	 * WQE before the index has two blocks: its CQE carries index - 2, so that
	 * a waiter waits for done >= index - last. */
	GDRI_ALIGNED uint64_t ready;
	/* (dev) bit i & 63: block i, one of the GDRI_WINDOW blocks from `ready` on, is written, and who holds
	 * it waits: whoever publishes up to it hands it on, too. 0 for all others. */
	uint64_t marks;

	/* (dev) completion */
	GDRI_ALIGNED uint64_t done; /* every block below is complete */
	uint64_t cq_ci;	  /* ring: next CQE to consume, free-running */
	int32_t err;	  /* 0, or the status of the first error: sticky */
	uint32_t err_rec; /* 1 + index in gdri_dev.errors; 0: none; GDRI_MAX_ERRORS + 1: no room for it */
	/* The end of what was ever put into `room`: done at some time + depth - 1; initially rsvd. */
	uint64_t limit;
	/* A block with the fence bit was reserved after gdri_dev.fence_seq was this: what
	 * is reserved after this was read is behind it. */
	uint64_t fenced;
	uint32_t looker; /* 1: a thread looks at cq (cq_far), and the others at what it finds */
};
GDR_STATIC_ASSERT(sizeof(struct gdri_qp) == 4 * GDRI_LINE, "lines of gdri_qp");
GDR_STATIC_ASSERT(offsetof(struct gdri_qp, rsvd) == 1 * GDRI_LINE, "lines of gdri_qp");
GDR_STATIC_ASSERT(offsetof(struct gdri_qp, ready) == 2 * GDRI_LINE, "lines of gdri_qp");
GDR_STATIC_ASSERT(offsetof(struct gdri_qp, done) == 3 * GDRI_LINE, "lines of gdri_qp");

/* ------------------------------------------------------------------- peers */

struct gdri_peer {
	uint8_t *base; /* (host) peer's heap mapped here, own heap for oneself; NULL: NIC only */
	uint32_t lost; /* (host, any time) 1: the launcher reports it dead */
	uint32_t finalizes; /* (host, any time) 1: it has called gdr_finalize, and what it sent before is here; 2:
			     * it had failed before; + 4: gdri_has_gone */
};

/* A registered buffer outside the heap. Published by writing `len` last
 * (release; pairs with the acquire in the look-up); len 0: free. */
struct gdri_buffer {
	uint64_t addr;
	uint64_t len;
	gdri_be32_t lkey;
	uint32_t read_only; /* 1: source of puts alone */
};

/* ---------------------------------- symmetric memory outside the heap's range */

/* Memory of cudaMalloc (GDR_ANY_ADDRESS), which has one address here and another one, which the driver chose, for each
 * peer that maps it. */
struct gdri_outside {
	uint64_t addr, len;
	uint64_t offset; /* from the heap's begin: by what keys know it, on all PEs the same */
	uint64_t rsvd;
};

/* (host) A table never changes: another one takes its place. Behind it struct gdri_outside [n], by address, and
 * [n][n_pes] int64_t: address at that PE minus own; what queues reach has none. */
struct gdri_outside_table {
	uint32_t n, n_pes;
	uint64_t rsvd;
};

/* ------------------------------------------------------------------ errors */

enum gdri_error_kind {
	GDRI_ERROR_CQE = 1,  /* completion with error */
	GDRI_ERROR_WAIT = 2, /* a wait expired or was ended */
	GDRI_ERROR_ARG = 3,  /* an argument was refused */
	GDRI_ERROR_TOLD = 4, /* another PE says that an operation of its own failed */
	GDRI_ERROR_LOST = 5, /* the launcher says that a PE is dead */
	GDRI_ERROR_BROKEN = 6, /* another PE says that it gave up a collective of all PEs */
	GDRI_ERROR_UNSEEN = 7, /* the first call that failed and returns nothing (compat/) */
};

#define GDRI_OPERATION_NUMBER(operation, number, name, call, nvshmem) GDRI_##operation = number,
enum gdri_op { /* what was under way: for messages and wait records */
	GDRI_OPERATIONS(GDRI_OPERATION_NUMBER)
	GDRI_N_OPS = 28,
	/* beside one of those, where a call is refused: which of its forms it is */
	GDRI_CALL_FROM = 1 << 8,
	GDRI_CALL_FOR = 2 << 8,
	GDRI_CALL_SEEN = 4 << 8,
	GDRI_CALL_ALL = 8 << 8, /* of waits and tests for several words */
	GDRI_CALL_ANY = 16 << 8,
	GDRI_CALL_SOME = 32 << 8,
	GDRI_CALL_VECTOR = 64 << 8,
	GDRI_CALL_TEST = 128 << 8,
};

enum gdri_arg_reason { /* why an argument was refused; value: gdri_error.len where nothing is said */
	/* of a lock: addr, that this PE does not hold; of a grid: len blocks; of a barrier or a collective: len calls
	 * at a time, the last one by thread high of block low */
	GDRI_ARG_OTHER = 0,
	GDRI_ARG_LOCAL = 1,  /* local memory that the NIC cannot reach: addr, len bytes */
	GDRI_ARG_CTX = 2,    /* no such context, or not for this thread */
	GDRI_ARG_PE = 3,     /* out of 0 .. high - 1 */
	GDRI_ARG_TEAM = 4,
	GDRI_ARG_ROOT = 5,   /* out of 0 .. high - 1, where that is not 0 */
	GDRI_ARG_CMP = 6,
	GDRI_ARG_SIGNAL_OP = 7,
	GDRI_ARG_ALIGN = 8,  /* addr is no multiple of high */
	GDRI_ARG_NULL = 9,   /* addr, in the page of NULL, len bytes */
	GDRI_ARG_HEAP = 10,  /* addr, len bytes: not in low .. high */
	GDRI_ARG_OWN = 11,   /* addr, len bytes: over the library's low .. high */
	GDRI_ARG_SIZE = 12,  /* len elements of low bytes are more than high bytes */
	GDRI_ARG_STRIDE = 13, /* over low blocks it leaves a heap of high bytes */
	GDRI_ARG_OVERLAP = 14, /* addr, len bytes, and low */
	GDRI_ARG_BLOCKS = 15, /* of a kernel of the library */
	/* of a collective, see struct gdri_match: the peer's line in qpn, the number of the call and the own PE in the
	 * halves of wqe_index, the team in waited_for */
	GDRI_ARG_MATCH = 16, /* addr and low, len and high: call and len, here and at the peer */
	GDRI_ARG_STEPS = 17, /* len and high: steps, here and there */
	GDRI_ARG_PEER = 18,  /* the peer's own arguments were refused there */
	GDRI_ARG_ELSEWHERE = 19, /* the peer is in another team's call: len */
	/* len threads of the high of block low, or of its warp addr - 1, make a call of all */
	GDRI_ARG_THREADS = 20,
	GDRI_ARG_OBJECT = 21, /* addr, len bytes: not within the object low .. high, the last one before its end */
	/* and beside it which argument; of one type, since C++20 joins no two */
	GDRI_DEST = 1 << 8,
	GDRI_SOURCE = 2 << 8,
	GDRI_SIG = 3 << 8,
	GDRI_FETCH_TO = 4 << 8,
	GDRI_WORD = 5 << 8, /* of a wait, a test, a lock */
	GDRI_STATUS = 6 << 8,
	GDRI_VALUES = 7 << 8,
	GDRI_INDICES = 8 << 8,
};

struct gdri_error { /* (dev) in memory that the host reads while kernels run */
	/* 0 free, 1 taken, 2 complete (release; pairs with the host's acquire), 3 not needed */
	uint32_t state;
	uint32_t kind;
	int32_t status; /* -GDR_E* */
	uint32_t op;	/* enum gdri_op */
	int32_t peer;	/* CQE: PE addressed. WAIT: end of the chain of waits, -1 unknown */
	int32_t waited_for; /* WAIT: PE waited for directly, -1 unknown */
	uint32_t qpn;
	uint32_t wqe_index; /* modulo 2^16 */
	uint8_t wqe_opcode, syndrome, vendor_syndrome;
	uint8_t is_cause; /* CQE: 1 first error of the queue; 0 the CQE may be a later flush */
	/* checked build: caller's source line; WAIT for a word that timed out: its size, sign and comparison
	 * (gdri_wait_form), the value that it is compared with in len, its own in local */
	uint32_t line;
	uint64_t addr;	  /* remote offset, or the argument refused */
	/* local address; ARG: low; TOLD, and WAIT with -GDR_EPEERFAILED: gdri_ctl.fault; BROKEN: gdri_ctl.broken,
	 * or team_broken */
	uint64_t local;
	uint64_t len;	  /* bytes */
	uint64_t time_ns; /* gdr_clock_ns */
	uint64_t waited_ns; /* ARG: high */
	/* ARG: enum gdri_arg_reason, argument, form of the call, GDRI_CALLED_AS; BROKEN: team + 1, 0: all; CQE of an
	 * atomic: opmod; WAIT: 1 peer has called gdr_finalize, says another PE; gdri_blame_circle */
	uint32_t reason;
	char file[44]; /* checked build: tail of the caller's file name; CQE of an atomic: 32 bytes of operands */
};
GDR_STATIC_ASSERT(sizeof(struct gdri_error) == 128, "gdri_error");

/* ------------------------------------- control area: first bytes of the heap */

enum { GDRI_WAIT_IDLE = 0, GDRI_WAIT_WAITING = 1, GDRI_WAIT_FAILED = 2, GDRI_WAIT_FILLING = 3 };

/* Whom this PE waits for (dev), read by peers that follow the chain. `heartbeat`
 * moves while the waiter polls: a stopped PE's stands still. FAILED stays until the
 * same wait, or a barrier, succeeds, with the culprit in `peer`, so that whoever
 * asks later is led past this PE: it is always record 0, which no waiter takes. */
struct gdri_wait {
	uint32_t state;
	int32_t peer; /* -1: unknown (a wait on memory that any PE may write) */
	uint32_t op;
	uint32_t heartbeat;
	uint64_t since_ns;
	uint64_t addr; /* heap offset waited on, or 0 */
};
GDR_STATIC_ASSERT(sizeof(struct gdri_wait) == 32, "gdri_wait");

/* What a PE tells all others when an operation of its own failed, or those that it was in a collective with when it
 * gave that up. */
struct gdri_fault {
	int32_t pe, peer; /* whose operation, and on whom */
	int32_t status;	  /* -GDR_E* */
	uint32_t op, syndrome, vendor;
};

#define GDRI_MAX_TEAMS 64

struct gdri_ctl {
	uint64_t magic; /* (host) GDRI_CTL_MAGIC: link check and mapping check */
	uint64_t pe;	/* (host) */
	uint64_t rsvd[14];
	/* (peer) dissemination barrier: epoch of the round's partner */
	uint64_t barrier[GDRI_BARRIER_ROUNDS];
	/* (peer) 1 + a PE that left after an error, from bit 16 on 1 + the PE because of which, GDRI_FAULT_LEFT; 0:
	 * none */
	uint64_t left;
	/* (peer) an operation of another PE failed, see gdri_fault_word; 0: none */
	uint64_t fault;
	/* (peer) a PE gave up a collective of all PEs, see broken.h and gdri_fault_word; 0: all are in step */
	uint64_t broken;
	uint64_t rsvd1[3];
	/* (peer) barriers of the host threads: two in turn, one word for each round */
	uint64_t host_barrier[2][GDRI_BARRIER_ROUNDS];
	uint64_t rsvd2[12];
	/* (peer) as broken, of the collectives of each team */
	uint64_t team_broken[GDRI_MAX_TEAMS];
	/* (peer) barrier in one round: epoch of PE i */
	GDRI_ALIGNED uint64_t flat[GDRI_FLAT_MAX];
	struct gdri_wait waits[GDRI_WAIT_RECORDS];
	/* (peer) scratch of the link check: written, read and added to at init */
	uint64_t link[GDRI_MAX_PES];
	/* (peer) what PE i found when a wait of its expired: culprit + 1, its status as in gdri_fault_word and
	 * GDRI_FAULT_LEFT; or 0 */
	uint64_t notice[GDRI_MAX_PES];
	/* (nic) results of fetching atomics and of g; sink for the others */
	uint8_t fetch[GDRI_FETCH_SLOTS * GDRI_FETCH_SLOT_SIZE];
	uint8_t sink[128];
	/* (peer) link check: one path-MTU message each way */
	uint8_t link_data[2][4096];
	/* (nic) other PEs' wait records, read when a wait of this PE expired */
	uint8_t blame[GDRI_BLAME_SLOTS][GDRI_WAIT_RECORDS * 32];
};
#define GDRI_CTL_MAGIC 0x3152445f5244474cull
#define GDRI_CTL_SIZE (128u * 1024u) /* the allocator starts here */
GDR_STATIC_ASSERT(sizeof(struct gdri_ctl) <= GDRI_CTL_SIZE, "control area");

/* ------------------------------------------------------------------- teams */

#define GDRI_CHAN_DEPTH 4u  /* messages to a member that it has not taken yet */
#define GDRI_CHAN_MIN 64u   /* bytes of a message: any element fits */

/* What a PE has of each member of a team, in the heap behind the control area: one
 * direction of a channel in each half. Counts of messages wrap and are compared by difference. */
struct gdri_chan {
	uint64_t word; /* (peer) messages it sent here | messages it took from here << 32 */
	uint64_t sync; /* (peer) the latest sync of the team that it told of */
	uint64_t note; /* (peer) the latest note, see struct gdri_note */
	uint64_t bcast_taken; /* (peer) epochs of LL broadcasts up to this one that it is done with */
	/* (dev) of this PE alone */
	uint32_t sent, got; /* messages to the member, and taken from it */
	uint32_t told;	    /* got, when the member was last told */
	uint32_t rsvd2;
	uint64_t len, at; /* what the member brings to a collect, and where it goes */
};
GDR_STATIC_ASSERT(sizeof(struct gdri_chan) == 64, "gdri_chan");

/* Checked build: what a member says of a call before it makes it. Two in turn. */
struct gdri_match {
	uint64_t call;	/* bytes as gdri_match_say writes them */
	uint64_t len;	/* bytes that each brings, where all have to bring as many */
	uint64_t steps; /* of alltoalls, low halves */
	uint64_t tag;	/* number of the call << 32 | line of the caller */
};

/* What the host threads of a team's members tell each other: two in turn. */
struct gdri_note {
	uint64_t v[3];
	uint64_t rsvd;
};

enum gdri_coll_kind { /* those with a choice of algorithms */
	GDRI_K_SYNC = 0,
	GDRI_K_BROADCAST = 1,
	GDRI_K_COLLECT = 2,
	GDRI_K_ALLTOALL = 3,
	GDRI_K_REDUCE = 4,
	GDRI_K_SCAN = 5,
	GDRI_N_KINDS = 6,
};

enum gdri_algo {
	GDRI_A_ONE_SHOT = 0, /* to all, through their slots */
	GDRI_A_TREE = 1, /* binomial, through slots */
	GDRI_A_RING = 2,
	GDRI_A_DIRECT = 3, /* after a sync, to where it belongs */
	GDRI_A_TWO_SHOT = 4, /* pieces to all, then gathered */
	GDRI_A_GRID = 5, /* straight through mapped memory; calls on streams: by many blocks */
	/* both levels: within the nodes through mapped memory, between them */
	GDRI_A_SINGLE_LEADER = 6, /* by one member of each */
	GDRI_A_MULTI_RAIL = 7, /* by as many as the smallest one has, a piece each */
	GDRI_A_LL = 8, /* LL protocol: to all, each 4 bytes in one word with their number */
	GDRI_A_LL_CTAS = 9, /* calls on streams: GDRI_A_LL by many blocks; others: GDRI_A_GRID */
	/* calls on streams, GPUs: pieces as GDRI_A_GRID, which the driver copies to all; others: GDRI_A_GRID */
	GDRI_A_COPIES = 10,
	GDRI_N_ALGOS = 11,
};
#define GDRI_CHOICES 4
#define GDRI_BCAST_DEPTH 8u /* epochs of LL broadcasts that the root may be ahead */
#define GDRI_CTAS_HEAD 16u /* words in front of what a block has of gdri_team.ctas */
#define GDRI_GRID_MAX 64u /* blocks that work on one collective */

/* One PE's view of a team. (host) but for what is said. */
struct GDRI_ALIGNED gdri_team {
	int32_t n;	       /* members; 0: no such team, or not with this PE */
	int32_t me;	       /* own number in it */
	int32_t start, stride; /* member i is PE start + i * stride; stride 0: pes[i] */
	uint32_t ll_size;   /* bytes of an LL epoch (coll/ll); 0: as grid_blocks, or the job has more PEs */
	uint32_t slot_size;    /* a power of two */
	/* (peer) [2][n][ll_size / 8][2], in the heap: LL epochs of member i, by parity */
	uint64_t *ll;
	uint32_t ll_max[GDRI_N_KINDS]; /* up to so many bytes a call goes by LL */
	int16_t *pes;	       /* [n] */
	struct gdri_chan *chan; /* [n] */
	uint8_t *slots;	       /* [n][GDRI_CHAN_DEPTH][slot_size]: messages of member i */
	uint32_t queue;	       /* slot of the queues that the team uses: one, so that all is in order */
	uint32_t mapped;       /* all members map each other's memory */
	/* [grid_blocks][GDRI_FLAT_MAX], in the heap: latest sync of that block of member i (peer), and of
	 * this PE's (dev) */
	uint64_t *grid;
	uint32_t grid_blocks; /* 0: the members do not map each other, or are too many */
	/* (peer) [GDRI_BCAST_DEPTH][slot_size / 8][2], in the heap: epochs of LL broadcasts, whoever is the root */
	uint64_t *ll_bcast;
	/* [ctas_blocks], in the heap: of each CTA its count of LL epochs (dev), then such words of its own, of
	 * ctas_size bytes (ll/ctas.h) */
	uint64_t *ctas;
	uint32_t ctas_blocks, ctas_size; /* 0: none */
	/* Two levels: nodes, whose members map each other. 0: just one, or one member on each. */
	int32_t nodes;
	int32_t node, local; /* the own one, and own number in it */
	int32_t lanes, most; /* members of the smallest node, and of the largest one */
	/* [n] members node by node, [n] node of each member, [n] its number there, [nodes + 1] where the
	 * members of a node begin */
	const int16_t *levels;
	/* Calls of up to max[k] bytes use algo[k]; the last one has no limit. */
	uint64_t max[GDRI_N_KINDS][GDRI_CHOICES];
	uint8_t algo[GDRI_N_KINDS][GDRI_CHOICES];
	/* (dev) What calls write, apart from what does not change; one caller at a time */
	uint64_t GDRI_ALIGNED ll_seq; /* LL epochs so far */
	uint64_t bcast_seq;   /* epochs of LL broadcasts so far */
	uint64_t bcast_known; /* up to which all others have taken them */
	uint64_t epoch;	     /* syncs so far */
	int32_t err;	     /* of a call that failed: the members are out of step */
	uint32_t broken;     /* 0; or -status with which the calls of the team end, from the first that was given up */
	/* Checked build */
	uint64_t match_seq;	  /* calls so far */
	struct gdri_match *match; /* (host) [2][n], in the heap: (peer) what member i says */
};

/* ---------------------------------------------------------------- contexts */

#define GDRI_MAX_CTXS 128

/* A context: whose PEs it counts, and which queues it uses. (host) but for what is said. */
struct gdri_ctx {
	uint32_t mode;	       /* enum gdr_ctx_option, which threads share it; 0: no such context */
	int32_t size;	       /* PEs of its team */
	int32_t start, stride; /* PE i of the team is start + i * stride; stride 0: pes[i] */
	const int16_t *pes;
	uint32_t first; /* of its queues in gdri_dev.qps: queue j to PE p is first + j * n_pes + p */
	uint32_t n;	/* queues to each PE; 0: those of the default context */
	uint64_t owner; /* (dev) checked build: who uses it, until the next quiet of it; 0: nobody */
	int32_t team;
	uint32_t rsvd[5];
};
GDR_STATIC_ASSERT(sizeof(struct gdri_ctx) == 64, "gdri_ctx");

/* ------------------------------------------------------------ device state */

enum { /* gdri_dev.flags (host) */
	GDRI_DEV_NIC_ATOMICS = 1, /* some PE is reached by NIC: all atomics and ADD signals are */
	GDRI_DEV_MIXED = 2,	  /* peers that are both mapped and have queues in use */
	GDRI_DEV_READ_FLUSH = 4,  /* reads need a DUMP before their data is visible */
	GDRI_DEV_ON_GPU = 8,	  /* heap and queues lie in the GPU's memory, and no other's is mapped */
	GDRI_DEV_HOST_RINGS = 16, /* doorbells are words of host memory, which a thread there carries over */
	GDRI_DEV_LOCAL_SYNC = 32, /* a sync shows the PEs what was stored in the own heap, no puts: as NVSHMEM's */
	GDRI_DEV_RELAXED = 64,	  /* the network may place two writes of a queue in any order */
	GDRI_DEV_COMBINES = 128,  /* queues carry GDRI_OPMOD_COMBINE */
	GDRI_DEV_EARLY = 256,	  /* doorbells are rung before the record is written, too */
	GDRI_DEV_NO_RECORD = 512, /* some queues have no doorbell record */
	GDRI_DEV_BELLS = GDRI_DEV_HOST_RINGS | GDRI_DEV_EARLY | GDRI_DEV_NO_RECORD,
};

/* A search for who is to blame for a wait (diag/blame.h), by who holds blame_lock: here, and not in local memory, of
 * which each thread of a GPU has as much as its deepest call may take. */
struct gdri_search {
	uint64_t deadline; /* of all of it */
	int32_t rec;	   /* record of the wait, whose heartbeat moves meanwhile */
	int32_t pe;	   /* who is looked at */
	int32_t next;	   /* whom that one waits for, or gave up for; -1: unknown */
	int32_t end;	   /* the culprit, as far as is known */
	int32_t hops;	   /* of the chain, so far; -1: it ended, all PEs are looked at */
	int32_t idle, gave; /* the first of all PEs that waits for nobody, the first that one gave up for; -1: none */
	int32_t found;	 /* what a PE was found to do */
	int32_t status;	 /* of the wait, at the end */
	uint32_t circle; /* gdri_blame_circle, if the chain is one and nobody else was found; 0 */
	/* a look */
	uint32_t op;	 /* of the oldest of the waits */
	int32_t waiting; /* number of waits */
	int32_t failed;	 /* 1: a wait failed */
	uint32_t looks;	 /* so far */
	uint64_t sum;	 /* changes when any heartbeat moves */
	uint64_t first;	 /* sum at the first look */
	uint64_t until;	 /* when it has rested long enough */
	/* a READ */
	uint32_t slot;	 /* of gdri_ctl.blame, to read the records into */
	uint32_t round;	 /* of the wait for it */
	uint64_t target; /* complete when the queue has come so far */
	uint64_t done, limit;
};

struct GDRI_ALIGNED gdri_dev {
	/* constants (host) */
	uint32_t abi_version; /* GDR_ABI_VERSION */
	uint32_t struct_size;
	int32_t pe, n_pes;
	uint32_t n_slots; /* queues per peer of the default context; 0: no queues at all */
	uint32_t flags;
	uint8_t *heap;
	uint64_t heap_size;
	struct gdri_ctl *ctl;	   /* == heap */
	struct gdri_peer *peers;   /* [n_pes]; in host memory also from -1 to GDRI_MAX_PES, not mapped */
	/* [n_queues]: n_pes * n_slots, peer by peer, then n_pes in each slot of those kept for contexts.
	 * sq NULL: none to that peer */
	struct gdri_qp *qps;
	uint64_t *used;		   /* (dev) bitmap of queues posted to; the link check clears it behind itself */
	gdri_be32_t lkey;	   /* own heap; addresses are heap offsets (iova 0) */
	uint32_t n_queues;
	uint64_t timeout_ns;	   /* of every wait */
	struct gdri_error *errors; /* [GDRI_MAX_ERRORS] */
	struct gdri_buffer *buffers; /* [GDRI_MAX_BUFFERS] */
	uint32_t *abort;	   /* host sets it to end every wait with -GDR_EABORTED */
	int32_t lost;		   /* (any time) 1 + first PE that is lost: says the launcher, a queue, a wait */
	uint32_t n_teams;
	struct gdri_team *teams; /* [n_teams] */
	struct gdri_ctx *ctxs;	 /* [GDRI_MAX_CTXS]; 0: the default one */
	uint64_t outside; /* (host, any time) address of a struct gdri_outside_table; 0: there is no such memory */
	uint64_t own_size; /* bytes of the heap that are the library's, in front of the first object */

	/* (dev) */
	GDRI_ALIGNED uint32_t n_errors; /* records taken; may pass GDRI_MAX_ERRORS: the rest is lost but counted */
	int32_t latched;	/* first status not yet reported by quiet; -GDR_EPEERLOST stays */
	int32_t failed;		/* 2 + culprit of the first wait given up; 0: none, or it is over */
	int32_t first;		/* status of the first operation that failed, for gdr_finalize; never cleared */
	uint32_t n_buffers;	/* (host) entries of buffers ever used; release */
	uint32_t broken;	/* 0; or -status with which barriers end, from the first that was given up */
	uint64_t barrier_epoch; /* of the PE's barriers: one caller at a time */
	uint64_t fence_seq;	/* fences called; see gdri_put_rkey, gdri_sq_fence_due */
	uint64_t fence_done;	/* value of fence_seq that the latest finished quiet covers */
	uint32_t blame_lock;	/* 1: a thread follows the chain of waits */
	uint32_t blame_bad;	/* bitmap of gdri_ctl.blame: a late read may still land there, */
	uint64_t blame_time;	/* when the latest finding was made, */
	int32_t blame_from;	/* for a wait for this PE (-1: unknown), */
	int32_t blame_end;	/* its culprit */
	int32_t blame_status;	/* and status */
	int32_t failed_for;	/* PE waited for directly by the wait that `failed` is about */
	uint64_t blame_late[GDRI_BLAME_SLOTS];	/* until this block of */
	uint32_t blame_late_qp[GDRI_BLAME_SLOTS]; /* this queue is complete */
	uint32_t any_turn; /* where the next look for any word of a set begins */
	uint32_t told;	   /* 1: there is a record of gdri_ctl.fault */
	uint32_t unseen;   /* calls that failed and return nothing (compat/) */
	struct gdri_search search;
	GDRI_ALIGNED uint64_t fetch_map[GDRI_FETCH_SLOTS / 64]; /* slots in use */
};
GDR_STATIC_ASSERT(offsetof(struct gdri_dev, n_errors) == 2 * GDRI_LINE, "lines of gdri_dev");

/* On a GPU the queues follow the state in one allocation (gdri_dev.qps), which saves a load of their address
 * before every post. */
#define GDRI_QPS_AT ((sizeof(struct gdri_dev) + GDRI_LINE - 1) / GDRI_LINE * GDRI_LINE)

/* What every call reads, under CUDA in constant memory of each module: no load from memory stands
 * before the access itself. Fields are those of gdri_dev; all are (host). */
struct gdri_constants {
	uint64_t abi_version; /* of the headers of the module: there before the library comes */
	struct gdri_dev *dev; /* NULL: the library is not there */
	uint8_t *heap;
	uint64_t heap_size;
	struct gdri_ctl *ctl;
	struct gdri_ctx *ctxs;
	struct gdri_team *teams;
	int32_t pe, n_pes;
	uint32_t n_slots, flags, n_teams, rsvd;
	uint32_t direct; /* 1: all PEs are mapped, there are no queues */
	uint32_t zero;	 /* 0: what the compiler does not know */
	int64_t none; /* GDRI_UNMAPPED, as behind the last PE: of PE -1 */
	int64_t delta[GDRI_MAX_PES]; /* gdri_peer.base - heap; GDRI_UNMAPPED */
};
#define GDRI_UNMAPPED 1 /* no distance of heaps, which start at pages */

#endif
