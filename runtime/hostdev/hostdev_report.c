/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a block was ended, in words. Runs on the CPU thread's own stack after
 * the fibers were left. */

#include <stdio.h>

#include "runtime/core/log.h"
#include "runtime/hostdev/hostdev_block.h"

static const char *hostdev_op_name(enum gdri_hd_op op)
{
	switch (op) {
	case GDRI_HD_SYNC_BLOCK:
		return "gdr_sync_block";
	case GDRI_HD_COUNT_BLOCK:
		return "a call of all threads";
	case GDRI_HD_SYNC_WARP:
		return "gdr_sync_warp";
	case GDRI_HD_SHFL:
		return "gdr_shfl";
	case GDRI_HD_BALLOT:
		return "gdr_ballot";
	case GDRI_HD_GROUP:
		return "a device operation";
	case GDRI_HD_RUNNABLE:
		break;
	}
	return "nothing";
}

/* "5 in gdr_sync_block (first: thread 3)" */
static int describe_op(const struct gdri_hd_block *b, enum gdri_hd_op op, char *buf, size_t len)
{
	const struct gdri_hd_fiber *first = NULL;
	unsigned n = 0;
	int out;

	for (unsigned i = 0; i < b->kernel->block; i++) {
		const struct gdri_hd_fiber *f = &b->fibers[i];

		if (f->op != op || !(f->warp->live >> (f->self.thread % GDRI_HD_WARP) & 1))
			continue;
		n++;
		if (!first)
			first = f;
	}
	if (!n)
		return 0;
	if (op <= GDRI_HD_COUNT_BLOCK)
		out = snprintf(buf, len, "; %u in %s (first: thread %u)", n, hostdev_op_name(op),
			       first->self.thread);
	else
		out = snprintf(buf, len, "; %u in %s (first: thread %u, lanes 0x%08x)", n,
			       hostdev_op_name(op), first->self.thread, first->mask);
	return out > 0 && (size_t)out < len ? out : 0;
}

static void report_stuck(const struct gdri_hd_block *b)
{
	char text[512] = "";
	int used = 0;

	for (int op = GDRI_HD_SYNC_BLOCK; op <= GDRI_HD_GROUP; op++)
		used += describe_op(b, (enum gdri_hd_op)op, text + used,
				    sizeof(text) - (size_t)used);
	gdri_error("host device: kernel %s, block %u: its %u threads that have not returned wait "
		   "for each other in calls that cannot complete%s; every thread of the block, or "
		   "every lane named, must make the same call; the kernel was ended",
		   b->kernel->name, b->index, b->live, text);
}

void gdri_hd_report(const struct gdri_hd_block *b)
{
	const struct gdri_hd_fiber *f = &b->fibers[b->failed_thread];

	if (b->failure == GDRI_HD_STUCK)
		report_stuck(b);
	else if (b->failure == GDRI_HD_BAD_MASK)
		gdri_error("host device: kernel %s, block %u: thread %u (lane %u) called %s with "
			   "lanes 0x%08x, which lack its own; the kernel was ended",
			   b->kernel->name, b->index, b->failed_thread,
			   b->failed_thread % GDRI_HD_WARP, hostdev_op_name(f->op), f->mask);
	else if (b->failure == GDRI_HD_EXITED)
		gdri_error("host device: kernel %s, block %u: thread %u has ended the CPU thread of its block "
			   "(pthread_exit, or pthread_cancel): a thread of a kernel returns from it; the kernel was "
			   "ended",
			   b->kernel->name, b->index, b->failed_thread);
}
