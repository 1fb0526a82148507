/* SPDX-License-Identifier: BSD-3-Clause */
/* State of the host device that CPU threads share: launches, streams, workers.
 * One lock; it is taken once a block and once a launch, never by a running
 * kernel. */
#ifndef GDRI_HOSTDEV_LAUNCH_H
#define GDRI_HOSTDEV_LAUNCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <gdr/local.h>
#include "runtime/hostdev/hostdev_block.h"
#include "runtime/hostdev/hostdev_event.h"

struct gdri_hd_run { /* a kernel that was launched, or a place of an event */
	struct gdri_hd_kernel k; /* of a place: its name alone */
	struct gdri_hd_record *record; /* NULL: a kernel */
	bool waits; /* goes on when the record is done; else it makes the record */
	gdr_stream_t stream;
	unsigned next_block, ended_blocks;
	struct gdri_hd_run *next_in_stream;
	struct gdri_hd_run *next_ready;
	_Alignas(64) unsigned char arg[]; /* the copy that k.arg points to */
};

struct CUstream_st { /* gdr_stream_t */
	struct gdri_hd_run *head, *tail; /* head: running */
	uint64_t launched, ended;	 /* runs */
	int status;			 /* first error since the last sync */
	gdr_stream_t next;
};

struct gdri_hd {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a block may be started, or stop */
	pthread_cond_t done; /* a kernel ended */
	unsigned max_blocks;
	size_t stack_size;
	unsigned timeout_ms;
	unsigned long_waits; /* lines of the log about them, since gdri_hd_init */

	struct CUstream_st default_stream;
	gdr_stream_t streams; /* the others */
	gdr_event_t events;

	struct gdri_hd_run *ready_head, *ready_tail; /* with blocks that were not started */
	uint64_t unstarted;			     /* blocks of those */
	unsigned running;			     /* blocks */
	uint64_t runs;				     /* queued or running */

	struct gdri_hd_worker *workers;
	unsigned n_workers, n_idle;
	int stop;

	struct gdri_hd_run *left_runs; /* gdri_hd_leave: for good; leak checkers find them here */
	struct gdri_hd_worker *left_workers;
	unsigned waiting; /* threads of the host in gdri_hd_wait_done */
};

struct gdri_hd_worker {
	pthread_t thread;
	struct gdri_hd *hd;
	struct gdri_hd_worker *next;
	struct gdri_hd_block block;
	/* for hostdev_watch.c; with the lock held: */
	struct gdri_hd_run *run; /* it runs block `index` of; NULL: none */
	unsigned index;
	const struct gdri_hd_thread *const *self; /* its thread's gdri_hd_self */
	uint64_t seen; /* switches of the block when it was looked at last */
	uint64_t seen_ns, still_ns; /* when that was; how long there has been none */
	bool told;
	bool left; /* by gdri_hd_leave, in a block: behind it the thread ends, and touches nothing of the others' */
	char overflow_room[GDRI_HD_OVERFLOW_ROOM];
};

/* hostdev_launch.c. The lock is initialised at the first call. */
struct gdri_hd *gdri_hd_lock(void);
void gdri_hd_unlock(struct gdri_hd *hd);

/* A thread of the host waits until a kernel ends, with the lock held; end NULL: without a limit. 0 or ETIMEDOUT. */
int gdri_hd_wait_done(struct gdri_hd *hd, const struct timespec *end);

/* hostdev_watch.c. As gdri_hd_wait_done without a limit. What a kernel waits for in the library ends by GDR_TIMEOUT, so
 * each one more that the same kernel has been the first of the stream (NULL: of any) is said, a few times. */
struct gdri_hd_long_wait {
	const char *who; /* the call; the rest 0 at first */
	uint64_t since_ns, ended;
	unsigned lines;
};
void gdri_hd_wait_long(struct gdri_hd *hd, struct gdri_hd_long_wait *w, gdr_stream_t s);

/* hostdev_worker.c; all with the lock held. */
int gdri_hd_workers_wake(struct gdri_hd *hd); /* starts and wakes as many as there is work for */
void gdri_hd_workers_stop(struct gdri_hd *hd); /* none may be running a block */
void gdri_hd_workers_leave(struct gdri_hd *hd); /* those that run a block */
void gdri_hd_workers_forget(struct gdri_hd *hd); /* in a forked child: frees their memory */

/* hostdev_stream.c; with the lock held. */
int gdri_hd_stream_push(struct gdri_hd *hd, gdr_stream_t s, struct gdri_hd_run *run);
void gdri_hd_run_ended(struct gdri_hd *hd, struct gdri_hd_run *run); /* frees it */
/* NULL: the default one; NULL when there is no such stream. */
gdr_stream_t gdri_hd_stream_find(struct gdri_hd *hd, gdr_stream_t s);
void gdri_hd_streams_leave(struct gdri_hd *hd); /* what runs or is queued is none of theirs any more */
void gdri_hd_streams_begin(struct gdri_hd *hd); /* statuses of what was left are over */
void gdri_hd_streams_forget(struct gdri_hd *hd); /* in a forked child */

#endif
