/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's view of the queues that kernels on a GPU post to. */
#ifndef GDRI_CUDA_QUEUES_H
#define GDRI_CUDA_QUEUES_H

#include <stddef.h>

struct gdri_state;

/* Until everything that was published before the call on n queues, from number `first` on, is complete. 0, the
 * first error of a queue, or -GDR_ETIMEOUT. */
int gdri_cuda_queues_quiet(struct gdri_state *st, size_t first, size_t n, int timeout_ms);
/* gdri_cuda_queues_quiet without a message where it takes too long. */
int gdri_cuda_queues_test(struct gdri_state *st, size_t first, size_t n, int timeout_ms);

#endif
