/* SPDX-License-Identifier: BSD-3-Clause */
/* One block of a kernel on one CPU thread: its fibers, the queue of those that
 * can run, and the warps in which they meet. hostdev_block.c schedules,
 * hostdev_simt.c has the collectives. Nothing here is shared between CPU
 * threads but gdri_hd_kernel.status, and what hostdev_watch.c looks at. */
#ifndef GDRI_HOSTDEV_BLOCK_H
#define GDRI_HOSTDEV_BLOCK_H

#include <gdr/launch.h>
#include <gdr/simt.h>
#include "runtime/hostdev/hostdev_fiber.h"

#define GDRI_HD_WARP 32u
#define GDRI_HD_MAX_WARPS (GDR_MAX_BLOCK / GDRI_HD_WARP)

struct gdri_hd_kernel { /* constants, but for status */
	void (*fn)(const void *arg);
	const char *name;
	const char *call; /* that launched it, for messages; NULL: `name` is that call */
	const void *arg;
	unsigned grid, block;
	struct gdri_hd_extents of; /* whose products these are */
	size_t shared;
	/* 0 or the first error, atomic, relaxed (says only "stop"): blocks give up when they see
	 * it. The last word is read under the launch lock, after all blocks have ended. */
	int status;
	int at_once;   /* all blocks run at once */
	uint32_t word; /* atomic, of blocks that meet: gdri_grid_word */
};

enum gdri_hd_op { /* what a fiber waits in */
	GDRI_HD_RUNNABLE,
	GDRI_HD_SYNC_BLOCK,
	GDRI_HD_COUNT_BLOCK, /* meets them */
	GDRI_HD_SYNC_WARP,
	GDRI_HD_SHFL,
	GDRI_HD_BALLOT,
	GDRI_HD_GROUP,
};

struct gdri_hd_fiber {
	struct gdri_hd_thread self; /* first: gdri_hd_self points here while the fiber runs */
	struct gdri_hd_ctx ctx;
	struct gdri_hd_block *block;
	struct gdri_hd_warp *warp;
	uint64_t in, out; /* of the collective: value or key, result */
	uint32_t mask;	  /* lanes named in it */
	unsigned src;	  /* GDRI_HD_SHFL: lane asked for; GDRI_HD_COUNT_BLOCK: 1 for the first */
	enum gdri_hd_op op;
	unsigned idle_pass; /* == block's: has spun in vain in this pass */
};

struct gdri_hd_pending { /* a collective for which lanes have arrived */
	enum gdri_hd_op op;
	uint32_t mask, arrived;
};

struct gdri_hd_warp {
	struct gdri_hd_fiber *lanes;
	uint32_t live;	 /* lanes that have not returned */
	unsigned active; /* of them: neither blocked nor in a pause */
	uint32_t group;	 /* in gdri_group */
	unsigned n_pending;
	struct gdri_hd_pending pending[GDRI_HD_WARP];
	char sync[GDRI_HD_WARP]; /* addresses for ThreadSanitizer, by lowest lane of the mask */
};

enum gdri_hd_failure {
	GDRI_HD_NO_FAILURE,
	GDRI_HD_STUCK,	  /* all live threads wait for each other */
	GDRI_HD_BAD_MASK, /* lacks the caller */
	GDRI_HD_EXITED,	  /* a thread of the kernel has ended the CPU thread */
};

struct gdri_hd_block {
	struct gdri_hd_kernel *kernel;
	unsigned index;
	struct gdri_hd_ctx main; /* the CPU thread itself */

	unsigned live, in_barrier, in_count; /* in_count: of those in the barrier */
	struct gdri_hd_warp warps[GDRI_HD_MAX_WARPS];
	struct gdri_hd_fiber *queue[GDR_MAX_BLOCK]; /* ring of those that can run */
	unsigned head, tail;
	unsigned alone; /* pauses of the only one that is left */

	/* A pass ends when every live fiber has spun in vain or is blocked: then the CPU
	 * thread backs off. */
	unsigned pass, spun, blocked, blocked_unspun, min_round;
	struct gdri_hd_fiber *pauses; /* the CPU thread makes this one's pause and switches back; NULL: it is done */
	unsigned pause_round, pause_lookers;

	enum gdri_hd_failure failure;
	unsigned failed_thread;
	uint64_t shake; /* state of the generator, 0: off */
	void *shared;

	struct gdri_hd_fiber *fibers; /* [stacks.count] */
	struct gdri_hd_stacks stacks;
	size_t stack_size; /* asked for */
	int tainted;	   /* fibers were abandoned in the last block */
};

/* Runs block `index` of k to its end on the calling thread; b is zeroed before first use
 * and kept for the next block of the same thread. An error goes to k->status. */
void gdri_hd_block_run(struct gdri_hd_block *b, struct gdri_hd_kernel *k, unsigned index,
		       size_t stack_size);
void gdri_hd_block_free(struct gdri_hd_block *b);
/* The running fiber has ended the CPU thread (pthread_exit), which is on its own stack by now: the block ends with an
 * error. */
void gdri_hd_block_exited(struct gdri_hd_block *b);

/* ---- for hostdev_simt.c: all called on the running fiber f ---- */

struct gdri_hd_fiber *gdri_hd_running(void);
/* f stops running and waits in f->op. */
void gdri_hd_block_fiber(struct gdri_hd_fiber *f);
/* f can run again. */
void gdri_hd_ready_fiber(struct gdri_hd_fiber *f);
/* f is blocked or queued: runs others until it is f's turn. */
void gdri_hd_reschedule(struct gdri_hd_fiber *f);
_Noreturn void gdri_hd_fail(struct gdri_hd_fiber *f, enum gdri_hd_failure failure);
uint32_t gdri_hd_random(struct gdri_hd_block *b);

/* ---- of hostdev_simt.c ---- */

/* No lane of the warp is active: lanes in gdri_group go on. */
void gdri_hd_release_groups(struct gdri_hd_block *b, struct gdri_hd_warp *w);
/* f has returned: whoever waited for it may go on. */
void gdri_hd_fiber_gone(struct gdri_hd_fiber *f);

/* hostdev_report.c: says on the log why the block failed. */
void gdri_hd_report(const struct gdri_hd_block *b);

#endif
