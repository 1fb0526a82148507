/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between memory of the host and of the GPU for a thread that carries operations of others: many under way, in
 * the order in which they were asked for, by a stream and pinned memory of their own. They wait for no kernel. One
 * thread at a time. */
#ifndef GDRI_CUDA_LANE_H
#define GDRI_CUDA_LANE_H

#include <stddef.h>

struct gdri_cuda;
struct gdri_lane;

/* bytes: of pinned memory, for what is under way. limit_ms: how long copies may take until those that wait for them
 * give up. */
int gdri_lane_open(struct gdri_cuda *c, size_t bytes, int limit_ms, struct gdri_lane **out);
/* NULL is a no-op. */
void gdri_lane_close(struct gdri_lane *l);

/* Begin, and take effect one behind the other. store: `from` is the caller's again; an aligned word lands as a whole.
 * load: `to` is written by gdri_lane_wait. move: both ends are of GPUs. */
void gdri_lane_store(struct gdri_lane *l, void *gpu, const void *from, size_t len);
void gdri_lane_load(struct gdri_lane *l, void *to, const void *gpu, size_t len);
void gdri_lane_move(struct gdri_lane *l, void *gpu, const void *from, size_t len);

/* Whether anything has begun since the last wait. */
int gdri_lane_has_work(const struct gdri_lane *l);
/* All that has begun is complete: 0. -GDR_ETIMEOUT: within limit_ms it is not; what is stored may yet land, no load
 * does, and until the GPU is through with them all others fail so at once. Logged. */
int gdri_lane_wait(struct gdri_lane *l);
/* As gdri_lane_wait, but it does not wait: GDRI_LANE_COPIES while not all is complete, for limit_ms at most. */
int gdri_lane_test(struct gdri_lane *l);
#define GDRI_LANE_COPIES 1

#endif
