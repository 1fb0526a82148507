/* SPDX-License-Identifier: BSD-3-Clause */
/* All PEs meet over the heap's control area, on GPUs over that of a page of host memory (host_view.h), by
 * the paths that device code uses: cheaper than an exchange through the launcher. They compare one word. */
#ifndef GDRI_MEET_H
#define GDRI_MEET_H

#include <stdint.h>

struct gdri_state;

#define GDRI_MEET_DIFFER 1

/* Collective, under st->lock. 0: all PEs came, with the same word. GDRI_MEET_DIFFER, on all PEs: not all
 * with the same, or one with GDRI_MEET_TROUBLE. < 0: not all came within dev->timeout_ns, one has
 * left after an error, or there is no way to one; logged with `what`. */
#define GDRI_MEET_TROUBLE (~0ull)
int gdri_meet(struct gdri_state *st, const char *what, uint64_t word);

/* Until what this PE told is complete, or failed: a queue is not to go with an operation under way. 0.5 s at most. */
void gdri_meet_settle(struct gdri_state *st);

/* Tells the others that this PE goes without meeting them again; takes 0.5 s at most. */
void gdri_meet_leave(struct gdri_state *st);

#endif
