/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport without a NIC: a thread of each PE reads what device code posts to the PE's queues and executes it, with
 * copies and atomics of the processor in the other PEs' heaps, which it maps. It shows what a transport has to bring,
 * and that device code and runtime need no more: the library that is built here has its row (CMakeLists.txt), and runs
 * the programs of tests/multi with GDR_TRANSPORTS=thread.
 *
 * For PEs of one node, in one PID namespace and of one user, on the host device. What it executes is the PRM's format,
 * as far as device code uses it (device/gdr/impl/queue/wqe.h). */
#ifndef TESTS_TRANSPORT_THREAD_H
#define TESTS_TRANSPORT_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "runtime/core/options.h"
#include "runtime/net/net.h"
#include "runtime/net/queues.h"

#define THREAD_REGIONS 128
#define THREAD_BUFFERS 128
#define THREAD_TOKEN   16

/* Keys: two of every heap, remote and local ones, whose addresses are offsets; then those of buffers. */
enum { THREAD_KEY_DATA = 0x100, THREAD_KEY_SYNC = 0x200, THREAD_KEY_BUFFER = 0x10000 };

/* ---- memory.c: what a request may reach ---- */

/* Part of a heap. Others map it by its descriptor in /proc/<pid>/fd. Set once, in front of `live`. */
struct thread_region {
	uint64_t offset, len; /* in the heap */
	uint64_t at;	      /* in the file */
	int32_t fd;	      /* the owner's */
	uint32_t live;	      /* release; pairs with the acquire of a thread that looks for the region */
	uint8_t *own;	      /* the owner's address */
};

/* What a PE tells the others' threads of its heap, in a memfd that they map. A region that left does not come again. */
struct thread_share {
	uint8_t token[THREAD_TOKEN]; /* that its address names: else the process is another one */
	struct thread_region regions[THREAD_REGIONS];
};

struct thread_peer {
	pid_t pid;
	struct thread_share *share;
	uint8_t *mapped[THREAD_REGIONS]; /* by the thread, when a request first reaches it */
};

struct thread_memory {
	int pe, n_pes;
	struct thread_share *share; /* own */
	int share_fd;
	int n; /* regions that there ever were */
	enum thread_change { THREAD_STAYS, THREAD_COMES, THREAD_LEAVES } change[THREAD_REGIONS]; /* by the last call */
	struct thread_peer *peers; /* [n_pes], from the connection on */

	pthread_mutex_t lock; /* of the buffers */
	struct thread_buffer {
		uint64_t addr, len; /* len 0: free */
	} buffers[THREAD_BUFFERS];
};

/* Memory that a request names: an offset in the heap of `pe`, or, of a buffer (pe -1), an address. */
struct thread_place {
	int pe;
	uint64_t addr;
};

int thread_memory_open(struct thread_memory *m);
void thread_memory_close(struct thread_memory *m);
int thread_memory_connect(struct thread_memory *m, int peer, pid_t pid, int fd, const uint8_t *token);
int thread_memory_add(struct thread_memory *m, uint8_t *addr, size_t len, uint64_t offset);

/* Whether the key leads to len bytes at addr; *out then: where. */
bool thread_remote(struct thread_memory *m, int peer, uint32_t rkey, uint64_t addr, uint64_t len,
		   struct thread_place *out);
bool thread_local_end(struct thread_memory *m, uint32_t lkey, uint64_t addr, uint64_t len, struct thread_place *out);
/* Where the place is in this process, and how many bytes of it are there in a row; NULL: it is gone. */
uint8_t *thread_at(struct thread_memory *m, struct thread_place place, uint64_t *row);

/* ---- engine.c: the thread ---- */

struct thread_queue {
	const struct gdri_qp *qp;
	uint64_t rung;	 /* what the doorbell was when it was last looked at */
	uint64_t cq_pi;	 /* entries written, free-running */
	uint16_t ci;	 /* next block */
	bool is_broken;	 /* an operation failed: all others are flushed */
};

struct thread_net {
	struct gdri_net net;
	struct gdri_options opt;
	struct thread_memory memory;
	struct gdri_net_layout layout;
	uint8_t *ring;	 /* all queues */
	uint64_t *bells; /* [layout.n] doorbells */
	struct thread_queue *queues; /* [layout.n] */
	pthread_t thread;
	bool runs, stop;
};

int thread_engine_start(struct thread_net *t);
/* What was posted before is executed. */
void thread_engine_stop(struct thread_net *t);

#endif
