/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that exercise what both worlds promise about the threads of a block.
 * kernels.c compiles for the host device and, as a check, with nvcc. */
#ifndef TESTS_HOSTDEV_KERNELS_H
#define TESTS_HOSTDEV_KERNELS_H

#include <gdr/launch.h>
#include <gdr/simt.h>

struct kernel_args {
	uint32_t *errors; /* wrong values seen */
	uint32_t *out;
	uint64_t *sum;
	uint32_t n; /* rounds, sizes: the kernel says */
	uint32_t id;
};

/* X(name): `int run_<name>(grid, block, shared, stream, args)` launches it. */
#define HD_KERNELS(X)                                                                              \
	X(reduce)	 /* sum[block] = sum of thread ids, by shuffles and shared memory */       \
	X(barriers)	 /* n rounds of write, barrier, read the neighbour's */                    \
	X(branches)	 /* half warps in different branches meet n times */                       \
	X(groups)	 /* n times gdri_group with three keys; sum counts the calls */            \
	X(ballots)	 /* votes under masks that overlap in nothing */                           \
	X(ping_pong)	 /* threads 0 and block size - 1 spin on each other n times */             \
	X(crowd)	 /* out[0] blocks at once, out[1] the most seen, out[2] all */             \
	X(early)	 /* some threads return before the barrier, some before a shuffle */       \
	X(shared_memory) /* fills n bytes and checks them */                                       \
	X(deep_stack)	 /* 32 KiB of stack in each thread, live across a barrier */               \
	X(append)	 /* sum[0] = sum[0] * 10 + id, after a while */                            \
	X(wait_flag)	 /* until out[0] == n */                                                   \
	X(set_flag)	 /* out[0] = n */                                                          \
	X(grid_barrier)	 /* n barriers of all blocks */                                            \
	X(lost_barrier)	 /* wrong: thread 0 waits for its warp, the others for the block */        \
	X(lost_lane)	 /* wrong: lane 1 never comes to the shuffle that lane 0 names it in */    \
	X(own_lane)	 /* wrong: names lanes without itself */                                   \
	X(hogs)		 /* wrong: the last but one of 3 threads spins without a pause until out[0] == n */ \
	X(one_fails)	 /* wrong in block 1; the others wait for ever */

#define HD_KERNEL_DECLARE(name)                                                                    \
	int run_##name(unsigned grid, unsigned block, size_t shared, gdr_stream_t stream,          \
		       const struct kernel_args *a);
HD_KERNELS(HD_KERNEL_DECLARE)

#endif
