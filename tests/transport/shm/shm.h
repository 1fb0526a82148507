/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport without a NIC: a thread of each PE reads what device code posts to the PE's queues and executes it, with
 * copies and atomics of the processor in the other PEs' heaps, which it maps. It shows what a transport has to bring,
 * and that device code and runtime need no more: the library that is built here has its row (CMakeLists.txt), and runs
 * the programs of tests/multi with GDR_TRANSPORTS=shm.
 *
 * For PEs of one node, in one PID namespace and of one user, on the host device. What it executes is the PRM's format,
 * as far as device code uses it (device/gdr/impl/queue/wqe.h). */
#ifndef TESTS_TRANSPORT_SHM_H
#define TESTS_TRANSPORT_SHM_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "runtime/core/options.h"
#include "runtime/net/net.h"
#include "runtime/net/queues.h"

#define SHM_REGIONS 128
#define SHM_BUFFERS 128
#define SHM_TOKEN   16

/* Keys: two of every heap, remote and local ones, whose addresses are offsets; then those of buffers. */
enum { SHM_KEY_DATA = 0x100, SHM_KEY_SYNC = 0x200, SHM_KEY_BUFFER = 0x10000 };

/* ---- memory.c: what a request may reach ---- */

/* Part of a heap. Others map it by its descriptor in /proc/<pid>/fd. Set once, in front of `live`. */
struct shm_region {
	uint64_t offset, len; /* in the heap */
	uint64_t at;	      /* in the file */
	int32_t fd;	      /* the owner's */
	uint32_t live;	      /* release; pairs with the acquire of a thread that looks for the region */
	uint8_t *own;	      /* the owner's address */
};

/* What a PE tells the others' threads of its heap, in a memfd that they map. A region that left does not come again. */
struct shm_share {
	uint8_t token[SHM_TOKEN]; /* that its address names: else the process is another one */
	struct shm_region regions[SHM_REGIONS];
};

struct shm_peer {
	pid_t pid;
	struct shm_share *share;
	uint8_t *mapped[SHM_REGIONS]; /* by the thread, when a request first reaches it */
};

struct shm_memory {
	int pe, n_pes;
	struct shm_share *share; /* own */
	int share_fd;
	int n; /* regions that there ever were */
	enum shm_change { SHM_STAYS, SHM_COMES, SHM_LEAVES } change[SHM_REGIONS]; /* by the last call */
	struct shm_peer *peers; /* [n_pes], from the connection on */

	pthread_mutex_t lock; /* of the buffers */
	struct shm_buffer {
		uint64_t addr, len; /* len 0: free */
	} buffers[SHM_BUFFERS];
};

/* Memory that a request names: an offset in the heap of `pe`, or, of a buffer (pe -1), an address. */
struct shm_place {
	int pe;
	uint64_t addr;
};

int shm_memory_open(struct shm_memory *m);
void shm_memory_close(struct shm_memory *m);
int shm_memory_connect(struct shm_memory *m, int peer, pid_t pid, int fd, const uint8_t *token);
int shm_memory_add(struct shm_memory *m, uint8_t *addr, size_t len, uint64_t offset);

/* Whether the key leads to len bytes at addr; *out then: where. */
bool shm_remote(struct shm_memory *m, int peer, uint32_t rkey, uint64_t addr, uint64_t len,
		   struct shm_place *out);
bool shm_local_end(struct shm_memory *m, uint32_t lkey, uint64_t addr, uint64_t len, struct shm_place *out);
/* Where the place is in this process, and how many bytes of it are there in a row; NULL: it is gone. */
uint8_t *shm_at(struct shm_memory *m, struct shm_place place, uint64_t *row);

/* ---- engine.c: the thread ---- */

struct shm_queue {
	const struct gdri_qp *qp;
	uint64_t rung;	 /* what the doorbell was when it was last looked at */
	uint64_t cq_pi;	 /* entries written, free-running */
	uint16_t ci;	 /* next block */
	bool is_broken;	 /* an operation failed: all others are flushed */
};

struct shm_net {
	struct gdri_net net;
	struct gdri_options opt;
	struct shm_memory memory;
	struct gdri_net_layout layout;
	uint8_t *ring;	 /* all queues */
	uint64_t *bells; /* [layout.n] doorbells */
	struct shm_queue *queues; /* [layout.n] */
	pthread_t thread;
	bool runs, stop;
};

int shm_engine_start(struct shm_net *t);
/* What was posted before is executed. */
void shm_engine_stop(struct shm_net *t);

#endif
