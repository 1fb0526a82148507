/* SPDX-License-Identifier: BSD-3-Clause */
/* The device state on a GPU: struct gdri_dev and what it points to lie in GPU
 * memory, but error records, registered buffers and the abort word in host
 * memory that both see. st->dev is then the host's copy: constants equal, what
 * device code changes as of the latest pull. */
#ifndef GDRI_CUDA_STATE_H
#define GDRI_CUDA_STATE_H

#include <stddef.h>

#include "runtime/core/state.h"

/* Step of init: st->cuda, where the program has CUDA kernels. */
int gdri_up_cuda(struct gdri_state *st);
void gdri_down_cuda(struct gdri_state *st);

/* Copies st->dev and its tables to the GPU and shows them to device code. */
int gdri_cuda_state_up(struct gdri_state *st);
void gdri_cuda_state_down(struct gdri_state *st);

/* To device code that was loaded since, as that of a library which initialises again (gdri_users). */
int gdri_cuda_state_show(struct gdri_state *st);

/* For a copy of a call's: no longer than the user's limit of a wait. */
int gdri_cuda_copy_ms(const struct gdri_state *st);

/* Where the queues begin, behind st->dev_gpu. */
size_t gdri_cuda_state_qps(const struct gdri_state *st);

/* Refreshes in st->dev what device code changes: latched, failed. No-op without CUDA. When it
 * fails they are old. */
int gdri_cuda_state_pull(struct gdri_state *st);
/* Writes a 32-bit field that the host changes in st->dev (lost, n_buffers, latched) to the GPU. */
int gdri_cuda_state_push(struct gdri_state *st, const void *field);
/* That pe is lost; that it has called gdr_finalize. */
int gdri_cuda_state_push_lost(struct gdri_state *st, int pe);
int gdri_cuda_state_push_finalizes(struct gdri_state *st, int pe);

/* ---- cuda_queues.c: the queues that kernels on a GPU post to ---- */

struct gdri_state;

/* Until everything that was published before the call on n queues, from number `first` on, is complete. 0, the
 * first error of a queue, or -GDR_ETIMEOUT. */
int gdri_cuda_queues_quiet(struct gdri_state *st, size_t first, size_t n, int timeout_ms);
/* gdri_cuda_queues_quiet without a message where it takes too long. */
int gdri_cuda_queues_test(struct gdri_state *st, size_t first, size_t n, int timeout_ms);

#endif
