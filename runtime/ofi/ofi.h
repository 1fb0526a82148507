/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport over libfabric (docs/ofi.md): a thread of each PE, its proxy, reads what device code posts and executes
 * it by messages to the target's proxy, or by RMA. GDR_PROXY_THREADS makes them several, each with queues of its own.
 * All that a proxy has but its gdri_ofi_memory is its alone while it runs; threads of the program that wait take its
 * part (gdri_ofi_proxy.engine). */
#ifndef GDRI_OFI_H
#define GDRI_OFI_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/core/options.h"
#include "runtime/net/execute.h"
#include "runtime/net/net.h"
#include "runtime/net/queues.h"
#include "runtime/ofi/lib.h"
#include "runtime/ofi/memory.h"
#include "runtime/ofi/place.h"

#define OFI_MESSAGE  8192u	/* bytes, all told; where memory of GPUs is staged, up to */
#define OFI_MESSAGE_MOST 65536u
#define OFI_WINDOW   4u		/* requests to a PE that are without reply */
#define OFI_MARK     64u	/* bytes behind the longest message: its mark is in the last eight */
#define OFI_LANDING  (2 * OFI_WINDOW) /* of a PE: its requests, then its replies, by number */
#define OFI_IS_MARK  (1ull << 63) /* in the byte that comes last */
#define OFI_COMMANDS 128u	/* in a request */
#define OFI_SHORT    2048u	/* bytes of reads and writes that go as commands */
#define OFI_OPS	     64u	/* entries of a queue that are under way; a power of two */
#define OFI_XFERS    256u	/* RMA under way, of all queues */
#define OFI_TO_ONE   64u	/* and to one PE: if it died unnoticed, they may stay under way */
#define GDRI_OFI_NAME 1024u /* most bytes of an address, and of those of all proxies of a PE */
#define OFI_PROXIES  8	   /* most of a PE: options.def, PROXY_THREADS */
#define OFI_AHEAD    (128u << 10) /* writes by RMA pass an atomic that is held while fewer bytes are under way, and */
#define OFI_AHEAD_ROUND 4u	 /* so many of a queue in a round */
#define OFI_PIECE    (1u << 20) /* of RMA: what a lost peer leaves under way is short */

/* ---- messages ---- */

enum gdri_ofi_kind { OFI_REQUEST = 1, OFI_REPLY, OFI_PROBE, OFI_LEAVES };

/* In front of each. Behind it: commands or answers, each with its data, at multiples of 8; no answers of puts that are
 * all done. Behind the commands of a request may be replies, each behind a gdri_ofi_carried. */
struct gdri_ofi_head {
	uint64_t token; /* the receiver's: what others send is dropped */
	uint32_t seq;	/* of requests to this PE; a reply has its request's */
	uint32_t bytes; /* behind the head */
	uint16_t pe, kind;
	uint32_t n; /* commands or answers */
};

/* In place of its head, of which the request's says the rest. */
struct gdri_ofi_carried {
	uint32_t seq;
	uint16_t bytes, n;
};

enum gdri_ofi_verb { OFI_PUT = 1, OFI_GET, OFI_AMO, OFI_LIST };
enum { OFI_PAGE = 1, /* of the page, not of the heap */
       OFI_BLIND = 2 /* AMO: the old value is not wanted */ };

struct gdri_ofi_command {
	uint64_t offset;
	uint16_t
		len; /* PUT: bytes that follow, from offset & 7 on. AMO: a struct gdri_net_atomic follows */
	uint8_t verb, flags;
	uint32_t slot; /* of the queue, among those to the target; LIST: one of the proxy's */
};

struct gdri_ofi_answer {
	uint32_t syndrome;
	uint32_t len; /* bytes that follow; of GET from offset & 7 on */
};

struct gdri_ofi_ctx {
	struct fi_context2 fi; /* the provider's, while it has the operation */
	/* LANDS: another PE writes it here */
	enum gdri_ofi_what { OFI_RECEIVES, OFI_SENDS, OFI_MOVES, OFI_LANDS } what;
	int peer;
};

struct gdri_ofi_message {
	struct gdri_ofi_ctx ctx;
	struct gdri_ofi_head *head; /* gdri_ofi_net.message bytes; of one that lands, where it begins */
	uint32_t used;		    /* of them; of one that came all of them */
	struct gdri_ofi_message *next; /* that came: gdri_ofi_proxy.read */
	bool ready, sent;	    /* to be sent; the provider has it */
	bool owed;		    /* a reply that goes with the next request to the PE, or alone */
};

/* ---- source ---- */

struct gdri_ofi_queue;

/* An entry under way. */
struct gdri_ofi_op {
	struct gdri_ofi_queue *q;
	uint16_t index;
	uint8_t opcode;
	bool tells, by_commands; /* by_commands: of a long one */
	bool lands; /* the answers' data goes to the local end */
	bool held;  /* an atomic whose command goes when the writes by RMA in front of it are delivered */
	uint32_t
		pending; /* commands and pieces of RMA without end, and 1 while not all is posted */
	uint32_t syndrome;
	uint32_t *kind; /* the queue's count of its like */
	uint32_t lkey, len;
	uint64_t local, offset; /* of the entry */
};

struct gdri_ofi_xfer {
	struct gdri_ofi_ctx ctx;
	struct gdri_ofi_op *op;	    /* NULL: it was given up */
	struct gdri_ofi_xfer *next; /* free */
};

struct gdri_ofi_queue {
	const struct gdri_qp *qp;
	const uint64_t *bell;
	uint64_t rung;	  /* what the doorbell was when it was last looked at */
	uint64_t cq_pi;	  /* entries written, free-running */
	uint16_t ci, end; /* next block; behind the last posted one */
	bool is_broken,
		has_failed; /* an operation failed: nothing is executed; its completion is written, too */
	uint32_t first, next; /* of ops: oldest under way, next free; free-running */
	uint64_t moved;	      /* bytes of the entry at ci that RMA has taken */
	uint32_t
		open_blocks; /* of that entry, which is the newest of ops; 0: it has not been begun */
	uint32_t n_writes, n_reads; /* by RMA, under way */
	/* Commands under way: writes; atomics without data in the answer; what has data there. */
	uint32_t n_puts, n_sinks, n_fetches;
	uint32_t n_held, written; /* atomics that are held; of ops: in front of it no write by RMA is under way */
	uint64_t n_bytes;   /* of writes by RMA under way */
	uint32_t n_ahead;   /* of these, those of this round that went past atomics that are held */
	bool is_cut; /* something in front of `written` failed */
	struct gdri_ofi_op ops[OFI_OPS];
};

struct gdri_ofi_request {
	struct gdri_ofi_message out;
	bool waits;	    /* for its reply */
	bool stages;	    /* data of its commands comes from memory of a GPU, and may not be there yet, */
	struct gdri_ofi_source *source; /* by this; NULL: by the lane of all others, and */
	uint32_t failures;  /* of its copies (memory.h), when the first of them began */
	uint32_t seq;	    /* once it is full: it goes when its data is there */
	uint32_t n, answer; /* commands; bytes of the reply */
	struct gdri_ofi_asked {
		struct gdri_ofi_op *op; /* NULL: the proxy's own */
		uint64_t offset;	/* as the command's */
		uint32_t len, syndrome;
		uint8_t verb;
	} asked[OFI_COMMANDS];
};

/* Where messages land, by RMA, if the provider's writes come as gdri_ofi_fabric.lands says: of each other PE the
 * requests of a window and the replies to one. A message ends where its place ends, with a mark: how many bytes it has,
 * and OFI_IS_MARK. */
struct gdri_ofi_landing {
	uint64_t addr, key; /* for RMA */
	uint32_t place;	    /* bytes of one; 0: it has none, and receives */
};

struct gdri_ofi_peer {
	fi_addr_t addr;
	uint64_t token;
	struct gdri_ofi_landing landing; /* its, for this PE */
	uint32_t message; /* bytes of one, either way */
	uint32_t list, asked; /* number of its list of parts; of the list that was asked for */
	bool asks;	      /* the answer is to come */
	uint32_t n_parts;
	struct gdri_ofi_part parts[GDRI_OFI_PARTS];
	uint32_t n_gone, gone_room;
	uint64_t *gone; /* mapped keys of parts that left while RMA was under way */

	bool lost;
	uint32_t under_way;	   /* commands and pieces of RMA */
	uint32_t n_moves;	   /* pieces that the provider has, also of one that is lost */
	uint64_t progress, probed; /* when (ns) */
	uint32_t seq;		   /* of the request that is being filled */
	struct gdri_ofi_request requests[OFI_WINDOW];
	struct gdri_ofi_message word; /* OFI_PROBE, OFI_LEAVES */

	/* As a target. */
	uint32_t due;				   /* number of the next request to execute */
	struct gdri_ofi_message *held[OFI_WINDOW]; /* requests that came, by number */
	struct gdri_ofi_message replies[OFI_WINDOW];
};

/* One of the PE's proxies: its queues, and an endpoint in a domain of its own, whose peers are the proxies of its
 * number at other PEs. Provider tcp takes one lock for all of a domain, and some bind memory to an endpoint. */
struct gdri_ofi_proxy {
	struct gdri_ofi_net *net;
	int index;
	uint64_t token; /* the PE's, and index more */
	struct gdri_ofi_fabric fabric;
	struct gdri_ofi_memory memory;
	size_t n_queues;
	struct gdri_ofi_queue *queues; /* [n_queues] */
	struct gdri_ofi_peer *peers;   /* [net->n_pes] */

	uint32_t n_received;
	struct gdri_ofi_message *received; /* [n_received] */
	uint8_t *landing;		   /* NULL: all is received */
	struct fid_mr *landing_mr;
	struct gdri_ofi_message *landed;   /* [n_pes - 1][OFI_LANDING] */
	struct gdri_ofi_message *read;	   /* of these what the provider has to get again */
	uint32_t n_unsent;		   /* for which the provider had no room */
	uint8_t *space;			   /* of all messages */
	struct fid_mr *space_mr;	   /* NULL: the provider needs none */
	struct gdri_ofi_xfer xfers[OFI_XFERS], *free_xfers;

	pthread_t thread;
	uint64_t now;	 /* when the round began (ns); gdri_ofi_proxy_watch reads it meanwhile */
	bool news;	 /* a PE has requests that are to go, or to be executed */
	uint32_t n_owed; /* replies of all PEs that are owed */
	uint64_t n_carried; /* replies that went with requests */
	uint64_t n_ahead;   /* writes by RMA that passed an atomic which waited for others */
	uint64_t looked; /* at the peers, when (ns) */
	bool runs;
	char engine_apart[64]; /* the thread looks at what follows while others make rounds: a cache line of its own */
	uint64_t driven; /* when such a thread last did (ns), or a little later */
	uint64_t owing;	 /* when it left replies behind (ns); 0: it left none */
	bool spare;	 /* there is a core for each such thread and for those of the proxies */
	bool watched;	 /* the proxy's thread is awake, and sends what others leave behind */
	char thread_apart[64];
	pthread_mutex_t engine; /* of all that is the proxy's: its thread, or one that waits, has it for a round */
	struct gdri_ofi_tried { /* what a connection of this PE's own showed, once: it may take its time */
		int pe;
		char what[120]; /* empty: none was tried */
	} tried;
	struct gdri_ofi_watched {
		uint64_t round, since, looked; /* gdri_ofi_proxy.now, seen first, and last looked at, when (ns) */
		bool said; /* once */
	} seen;
	bool stuck; /* a call of the provider does not return; who has the engine may be any thread */
};

/* What the proxies of a PE share. While they run each changes what is of its queues, and `warned`. */
struct gdri_ofi_net {
	struct gdri_net net;
	struct gdri_options opt;
	struct gdri_net_layout layout;
	char name[64], text[400];
	uint64_t token;
	uint32_t message; /* bytes that one may have, which this PE receives */
	int pe, n_pes;
	uint8_t *ring;		       /* all queues */
	size_t ring_len;
	uint64_t *bells;	       /* [layout.n] doorbells, behind them */
	struct gdri_cuda *poster;      /* whose threads post; NULL: threads of the host */
	bool *refuses; /* [layout.n] as a target, of the other PEs' queues: a command failed here */
	bool *warned;  /* [n_pes] that the PE is lost: by the first proxy that lost it */
	struct gdri_ofi_place place; /* of the threads */
	pthread_mutex_t changes; /* of the memories of all proxies, which have everything at equal places */
	pthread_mutex_t staged;	 /* operations in memory of a GPU: an atomic there is a copy, a change, and a copy */
	bool stop;
	bool apart; /* threads that wait stay out of the provider's calls */
	int n_proxies; /* from connect on, equal on all PEs */
	struct gdri_ofi_proxy *proxies[OFI_PROXIES];
};

/* Whose a queue is, at both ends: what it carries stays between two proxies, and in its order. */
static inline int gdri_ofi_owner(const struct gdri_ofi_net *net, uint32_t slot)
{
	return (int)(slot % (uint32_t)net->n_proxies);
}

/* Its calls take locks in memory that the processes of a node share. */
static inline bool gdri_ofi_is_shm(const struct gdri_ofi_proxy *t)
{
	return !strcmp(t->fabric.info->fabric_attr->prov_name, "shm");
}

/* Operations in the memory of GPUs are one proxy's at a time; false: another one's, not now. */
static inline bool gdri_ofi_stage_begin(struct gdri_ofi_proxy *t)
{
	/* pairs with its unlock: the copies of who had it have ended */
	return !t->memory.lane || !pthread_mutex_trylock(&t->net->staged);
}

static inline void gdri_ofi_stage_end(struct gdri_ofi_proxy *t)
{
	if (t->memory.lane)
		pthread_mutex_unlock(&t->net->staged);
}

/* message.c: sending, receiving */
int gdri_ofi_messages_open(struct gdri_ofi_proxy *t);
void gdri_ofi_messages_close(struct gdri_ofi_proxy *t);
/* For the record that PEs exchange. */
struct gdri_ofi_landing gdri_ofi_landing(const struct gdri_ofi_proxy *t);
/* This PE's part of the other one's, which told it. */
struct gdri_ofi_landing gdri_ofi_landing_of(const struct gdri_ofi_proxy *t, int pe, struct gdri_ofi_landing told);
/* The next that has landed, from place *from on, and its bytes; NULL: none. A request stays there until its reply goes,
 * a reply until the next request of its place goes. */
struct gdri_ofi_message *gdri_ofi_landed(struct gdri_ofi_proxy *t, uint32_t *from, size_t *len);
/* It is read, and stays as it is until the next round, which gives it to the provider, unless it landed. */
static inline void gdri_ofi_read(struct gdri_ofi_proxy *t, struct gdri_ofi_message *m)
{
	if (m->ctx.what == OFI_LANDS)
		return;
	m->next = t->read;
	t->read = m;
}
/* Gives the provider all that is read. */
void gdri_ofi_receive(struct gdri_ofi_proxy *t);
/* Fills the head. */
void gdri_ofi_seal(struct gdri_ofi_proxy *t, struct gdri_ofi_message *m, enum gdri_ofi_kind kind, uint32_t seq);
/* What is sealed. What the provider has no room for stays ready, for the next call. */
void gdri_ofi_send(struct gdri_ofi_proxy *t, struct gdri_ofi_message *m);
/* OFI_PROBE, OFI_LEAVES, unless one is under way. */
void gdri_ofi_tell(struct gdri_ofi_proxy *t, int pe, enum gdri_ofi_kind kind);
/* Begins a message. */
void gdri_ofi_clear(struct gdri_ofi_message *m);
/* Room for len bytes, a multiple of 8, behind what is there; the caller knows that there is. */
static inline void *gdri_ofi_append(struct gdri_ofi_message *m, size_t len)
{
	void *at = (uint8_t *)m->head + m->used;

	m->used += (uint32_t)len;
	return at;
}
/* What data takes whose words lie in the message as they lie in the heap. */
static inline uint32_t gdri_ofi_padded(uint64_t offset, uint32_t len)
{
	return ((uint32_t)(offset & 7) + len + 7) & ~7u;
}

/* serve.c: the target's side */
/* Executes the PE's requests that are due; their replies are owed. */
void gdri_ofi_serve(struct gdri_ofi_proxy *t, int pe);
/* Appends what is owed to a sealed request to that PE, as far as there is room. */
void gdri_ofi_carry(struct gdri_ofi_proxy *t, int pe, struct gdri_ofi_message *request);
/* Sends what is owed. */
void gdri_ofi_reply(struct gdri_ofi_proxy *t, int pe);
/* It will not be sent. */
void gdri_ofi_owe_nothing(struct gdri_ofi_proxy *t, int pe);

/* parts.c: what other PEs' heaps consist of */
/* Writes a list, of gdri_ofi_part_bytes each. */
void gdri_ofi_parts_tell(const struct gdri_ofi_fabric *f, const struct gdri_ofi_part *parts, uint32_t n, uint8_t *list);
/* These are the peer's parts now. */
void gdri_ofi_parts_take(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p, const struct gdri_ofi_part *parts,
			 uint32_t n);
void gdri_ofi_parts_take_list(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p, const uint8_t *list,
			      uint32_t n);

/* request.c: the source's side */
/* The request to the PE that has room for the command and its answer; NULL: not now. */
struct gdri_ofi_request *gdri_ofi_room(struct gdri_ofi_proxy *t, int pe,
				       const struct gdri_ofi_command *c);
/* Appends it; returns where its data goes. */
void *gdri_ofi_command(struct gdri_ofi_proxy *t, int pe, struct gdri_ofi_request *r,
		       const struct gdri_ofi_command *c, struct gdri_ofi_op *op);
/* Its data comes from this place in memory of a GPU, and is there when the request is sent. */
void gdri_ofi_command_from(struct gdri_ofi_proxy *t, struct gdri_ofi_request *r, uint32_t lkey, uint64_t addr,
			   void *data, uint32_t len);
/* Asks for the list of parts. */
void gdri_ofi_ask(struct gdri_ofi_proxy *t, int pe, uint32_t list);
/* Sends what is filled, or has it go when its data is there. */
void gdri_ofi_flush(struct gdri_ofi_proxy *t, int pe);
/* Sends those of which that is so. */
void gdri_ofi_land(struct gdri_ofi_proxy *t, int pe);
/* They will not be sent. */
void gdri_ofi_drop(struct gdri_ofi_proxy *t, int pe);
/* To this request; n answers, all in `left` bytes. */
void gdri_ofi_replied(struct gdri_ofi_proxy *t, int pe, uint32_t seq, uint32_t n, const uint8_t *at, uint32_t left);

/* queue.c: entries */
/* Takes what is posted as far as there is room; whether it took any. */
bool gdri_ofi_run(struct gdri_ofi_proxy *t, struct gdri_ofi_queue *q);
/* One command or piece of the operation came to its end. */
void gdri_ofi_ended(struct gdri_ofi_op *op, uint32_t syndrome);
/* All that is under way did. */
void gdri_ofi_give_up(struct gdri_ofi_queue *q, uint32_t syndrome);

/* move.c: what is long: RMA, or commands of so many bytes at most */
static inline uint32_t gdri_ofi_piece(uint32_t message)
{
	return message / 8 > OFI_SHORT ? message / 8 : OFI_SHORT;
}
/* Whether it goes by commands. */
bool gdri_ofi_moves_by_commands(struct gdri_ofi_proxy *t, int pe, bool writes, uint32_t lkey, uint64_t local,
				uint64_t offset, uint64_t len);
/* Posts what is left of the entry at the queue's ci; false: not all of it, not now. The peer may be lost then. */
bool gdri_ofi_move(struct gdri_ofi_proxy *t, struct gdri_ofi_op *op);
void gdri_ofi_moved(struct gdri_ofi_proxy *t, struct gdri_ofi_xfer *x, uint32_t syndrome);

/* way.c: in words, how the PE is looked for, and what to change */
void gdri_ofi_way(struct gdri_ofi_proxy *t, int pe, char *text, size_t room);

/* proxy.c: the thread */
int gdri_ofi_proxy_start(struct gdri_ofi_proxy *t);
/* A round by another thread, if nobody makes one; whether there was something to do. spare: net.h. */
bool gdri_ofi_proxy_drive(struct gdri_ofi_proxy *t, bool spare);
/* Says so where no round has begun for twice GDR_TIMEOUT: by one thread at a time. */
void gdri_ofi_proxy_watch(struct gdri_ofi_proxy *t);
/* What was posted before is executed, if it can be soon: net->stop is set. false: the thread does not end. */
bool gdri_ofi_proxy_stop(struct gdri_ofi_proxy *t);
/* Ends all that is under way to the PE. */
void gdri_ofi_lost(struct gdri_ofi_proxy *t, int pe, const char *why);

#endif
