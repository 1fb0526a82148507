/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's view of the queues that kernels on a GPU post to. */
#ifndef GDRI_CUDA_QUEUES_H
#define GDRI_CUDA_QUEUES_H

struct gdri_state;

/* Until everything that was published before the call is complete. 0, the first error of a queue, or
 * -GDR_ETIMEOUT. */
int gdri_cuda_queues_quiet(struct gdri_state *st, int timeout_ms);

#endif
