/* SPDX-License-Identifier: BSD-3-Clause */
/* A barrier of host threads over the heap's control area, on GPUs over that of a page of host memory (host_view.h), by
 * the paths that device code uses: cheaper than an exchange through the launcher. It compares one word of each PE. */
#ifndef GDRI_HOST_BARRIER_H
#define GDRI_HOST_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

struct gdri_state;

#define GDRI_HOST_BARRIER_DIFFER 1

/* Collective, under st->lock. 0: all PEs came, with the same word. GDRI_HOST_BARRIER_DIFFER, on all PEs: not all
 * with the same, or one with GDRI_HOST_BARRIER_TROUBLE. < 0: not all came within dev->timeout_ns, one has
 * left after an error, or there is no way to one; logged with st->call. */
#define GDRI_HOST_BARRIER_TROUBLE (~0ull)
int gdri_host_barrier(struct gdri_state *st, uint64_t word);

/* Until what this PE told is complete, or failed, or the time is over: a queue is not to go with an operation under
 * way, for so long. false: the time is over. */
#define GDRI_SETTLE_MS 500
bool gdri_host_barrier_settle(struct gdri_state *st, int ms);
/* It calls look(st) where a queue has failed, before that is told: who has told meanwhile that it leaves? And, while it
 * waits, absent(st): the PE that has called gdr_finalize and does not come to this barrier, or -1. Once, before the
 * first use. */
void gdri_host_barrier_looks(void (*look)(struct gdri_state *st), int (*absent)(const struct gdri_state *st));

/* Whether a PE has told that it left, after an error: it answers no more. */
bool gdri_host_barrier_left(const struct gdri_state *st);

/* Tells the others that this PE goes and comes to no barrier again; takes 0.5 s at most. */
void gdri_host_barrier_leave(struct gdri_state *st);

#endif
