/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that exists between gdr_init and gdr_finalize, and how it comes up:
 * a table of steps, executed in order and undone in reverse. A step that can go
 * differently on different PEs only notes its failure (`pending`); the next
 * collective step tells everybody, so that init fails on all PEs or on none. */
#ifndef GDRI_STATE_H
#define GDRI_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <gdr/bootstrap.h>
#include <gdr/host.h>
#include <gdr/impl/arch/abi.h>

#include "runtime/core/clock.h"
#include "runtime/core/inet.h"
#include "runtime/core/options.h"

/* Each subsystem's own: its header says what is in it. Pointers, so that who needs one need not read the others. */
struct gdri_coll_rules;
struct gdri_constants;
struct gdri_ctxs;
struct gdri_cuda;
struct gdri_dev;
struct gdri_prefetch;
struct gdri_heap;
struct gdri_hostq;
struct gdri_modules;
struct gdri_monitor;
struct gdri_mr_keys;
struct gdri_net;
struct gdri_outsides;
struct gdri_peer;
struct gdri_executor;
struct gdri_qp;
struct gdri_share;
struct gdri_staging;
struct gdri_suballoc;
struct gdri_symmetric;
struct gdri_teams;

struct gdri_reg { /* a registered buffer, beside its entry in gdri_dev.buffers */
	void *handle; /* of the NIC; NULL: no NIC in use */
};

/* The latest waits of one kind that device code carries out for a call of the host's: a record of one has the name of
 * device code's call. */
#define GDRI_WAIT_NAMES 16
struct gdri_wait_names {
	uint32_t n; /* ever */
	struct gdri_wait_name {
		uint64_t offset, len; /* of the words, in the heap */
		const char *call; /* a literal; NULL: none */
	} list[GDRI_WAIT_NAMES];
};

struct gdri_state {
	struct gdri_options opt;
	struct gdri_coll_rules *coll; /* opt.coll and opt.coll_table */
	const struct gdr_init_attr *attr; /* while init runs; NULL: none */
	struct gdr_bootstrap *boot;
	int pe, n_pes;
	uint64_t deadline_ns; /* of the init, finalize or collective call under way: gdri_limit_begin */
	bool limit_is_init;   /* the deadline comes from GDR_INIT_TIMEOUT, else from GDR_TIMEOUT */
	uint64_t finalize_ns; /* since when a wait of host threads is that of gdr_finalize; 0: none is */
	int pending;	      /* own failure that the next agreement will tell */

	/* nodes: who shares this PE's */
	bool *same_node; /* [n_pes] */
	int *node;	 /* [n_pes] first PE of each one's node, or itself where it does not share memory */
	int n_nodes;

	/* GPU: NULL on the host device */
	struct gdri_cuda *cuda;
	struct gdri_prefetch *prefetch;
	struct gdri_dev *dev_gpu; /* dev, in memory of the GPU */
	struct gdri_constants *constants; /* what all modules have */
	struct gdri_modules *modules;	  /* those loaded by hand */
	struct gdri_executor *executor; /* NULL: the library has no kernels for it */

	/* heap */
	struct gdri_heap *heap;
	struct gdri_suballoc *alloc; /* of [GDRI_CTL_SIZE + teams.bytes, heap.size) */
	struct gdri_symmetric *symmetric; /* what of it is the program's */
	/* Of that list, with `lock` for who changes it: who looks an address up does not wait for other PEs. */
	pthread_mutex_t symmetric_lock;
	struct gdri_outsides *outside;	  /* what of it is memory of cudaMalloc */
	struct gdri_suballoc *window; /* of the addresses behind it; NULL: nothing was ever there */
	struct gdri_share *share;
	struct gdri_peer *peers; /* [n_pes] */
	char (*reason)[160];	 /* [n_pes] why a peer of this node is not mapped */

	/* transport (runtime/net): NULL when every PE reaches every PE otherwise */
	bool any_net; /* equal on all PEs */
	struct gdri_inet from; /* this machine's address by which the other PEs are reached, as far as is known */
	int apart;    /* 1 + a PE in another PID namespace; 0: there is none */
	int key_sets; /* of a heap that changed: those in use and old ones; equal on all PEs */
	struct gdri_net *net;
	struct gdri_mr_keys *keys;
	struct gdri_qp *qps; /* [n_pes * gdri_net_slots(&opt)] */
	struct gdri_hostq *hostq; /* with a GPU: the host's own */
	struct gdri_reg regs[GDRI_MAX_BUFFERS];
	struct gdri_staging *staging; /* see staging.h; NULL: not needed so far */
	pthread_mutex_t staging_lock;

	/* device */
	struct gdri_dev *dev;
	struct gdri_dev *host_view; /* under CUDA, else NULL: see host_view.h */
	struct gdri_heap *page;
	struct gdri_peer *page_peers; /* [n_pes] */
	uint32_t *abort_word;
	int broken;	  /* what a collective ended with that left the PEs out of step; 0: they are in step */
	int refused;	  /* why the last call of the heap's returned NULL; 0: it was told, or did not */
	uint64_t host_barriers; /* see host_barrier.h */
	const char *call;	/* the latest collective call of host threads, for messages: gdri_call_begin */
	uint64_t call_ns;	/* since when; 0: there was none */
	struct gdri_wait_names stream_waits, host_waits; /* of any thread, for messages: gdri_wait_name_begin */
	bool nvshmem;	  /* init came by NVSHMEM's names */
	int more_users;	  /* than the one that gdr_init made: gdri_users */
	bool kernels_late; /* kernels did not end in time, and the log has said so */
	bool kernels_run; /* the host device could not be stopped: memory must stay */
	struct gdri_state *left; /* then: the one that was left so before */

	struct gdri_teams *teams;
	struct gdri_ctxs *ctxs;
	struct gdri_monitor *monitor;
	pthread_mutex_t fault_lock; /* of all here; held for no call of the program's */
	unsigned int fault_attempts;
	uint64_t fault_told;
	/* The one collective at a time, and what only it changes: boot calls, teams. Who holds it may wait for
	 * other PEs. */
	pthread_mutex_t lock;
	/* What calls of this PE alone change or look at: regs, contexts, modules, and the ranges of alloc, which change
	 * under both. Taken behind `lock`; who holds it waits for no PE, but for its own queues. */
	pthread_mutex_t local_lock;
};

/* Something that a host thread did failed for good: as gdri_note_failure, which see. 0: nothing. */
void gdri_failed(struct gdri_state *st, int status); /* fault.c */
/* What gdr_finalize returns of the time before it; 0: nothing failed. */
int gdri_first_failure(const struct gdri_state *st);

/* The first status counts; 0: all is well. */
static inline void gdri_break(struct gdri_state *st, int status)
{
	if (!st->broken) /* under st->lock; the store pairs with who looks without */
		__atomic_store_n(&st->broken, status, __ATOMIC_RELAXED);
	gdri_failed(st, status);
}

/* Under st->lock: a collective call begins, by a name that is a literal. Who describes a record of its waits looks
 * without the lock. */
static inline void gdri_call_begin(struct gdri_state *st, const char *call)
{
	__atomic_store_n(&st->call_ns, gdri_now_ns(), __ATOMIC_RELAXED); /* told with the name */
	__atomic_store_n(&st->call, call, __ATOMIC_RELEASE); /* pairs with the acquire in gdri_place_call */
}

/* A wait for words of the heap begins, by a call whose name is a literal. Who describes a record of it looks meanwhile:
 * a record that is half another wait's spoils a name in a message. */
static inline struct gdri_wait_name *gdri_wait_name_begin(struct gdri_wait_names *names, uint64_t offset, uint64_t len,
							  const char *call)
{
	/* relaxed, as the next ones: gives out places, and pairs with nothing */
	uint32_t i = __atomic_fetch_add(&names->n, 1, __ATOMIC_RELAXED) % GDRI_WAIT_NAMES;
	struct gdri_wait_name *w = &names->list[i];

	__atomic_store_n(&w->call, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&w->offset, offset, __ATOMIC_RELAXED);
	__atomic_store_n(&w->len, len, __ATOMIC_RELAXED);
	__atomic_store_n(&w->call, call, __ATOMIC_RELEASE); /* pairs with the acquire in place_wait_name */
	return w;
}

/* It left no record: the words may be waited for by others next. */
static inline void gdri_wait_name_end(struct gdri_wait_name *w, const char *call)
{
	/* relaxed: takes a name out, and nothing with it */
	__atomic_compare_exchange_n(&w->call, &call, NULL, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The initialised library, or NULL: before init, after finalize, in a forked child. */
struct gdri_state *gdri_state_get(void);
bool gdri_state_forked(void); /* this process is a child of a PE, and no PE */

/* With what host threads wait for and tell each other. */
static inline struct gdri_dev *gdri_host_dev(const struct gdri_state *st)
{
	return st->host_view ? st->host_view : st->dev;
}

/* From now on: GDR_INIT_TIMEOUT for init and finalize, else GDR_TIMEOUT. */
static inline void gdri_limit_begin(struct gdri_state *st, bool init)
{
	st->limit_is_init = init;
	st->deadline_ns = gdri_deadline_ns(init ? st->opt.init_timeout_ms : st->opt.timeout_ms);
}

/* abi_version: that of the program's headers. */
int gdri_state_up(const struct gdr_init_attr *attr, int abi_version);
/* Waits for the program's kernels on either kind of device. */
int gdri_end_kernels(struct gdri_state *st, int limit_ms);
/* status 0: waits for the peers; an error that one of them told is returned, or why one did not come. Else it is
 * what ended the job here. */
int gdri_state_down(struct gdri_state *st, int status);

/* Steps of the table (init/state.c) that live in files of their own: identity.c, paths.c, devstate.c, link_check.c. */
typedef int gdri_up_fn(struct gdri_state *st);
typedef void gdri_down_fn(struct gdri_state *st);
gdri_up_fn gdri_up_version, gdri_up_identity, gdri_up_p2p, gdri_up_reach, gdri_up_net, gdri_up_net_ready;
gdri_up_fn gdri_up_connect, gdri_up_device, gdri_up_link_out, gdri_up_link_in;
gdri_down_fn gdri_down_identity, gdri_down_p2p, gdri_down_net, gdri_down_device;

/* Which of the PEs of its node this one is. */
unsigned gdri_local_rank(const struct gdri_state *st);
/* Before init: reads the options that it needs. */
int gdri_uniqueid_create(gdr_uniqueid_t *id);

#endif
