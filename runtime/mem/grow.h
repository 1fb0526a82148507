/* SPDX-License-Identifier: BSD-3-Clause */
/* The symmetric heap of all PEs gets one part more, when nothing of it has room for an object. */
#ifndef GDRI_GROW_H
#define GDRI_GROW_H

#include <stdbool.h>
#include <stdint.h>

struct gdri_state;

/* Whether the heap may grow by a part that holds so many bytes; the same on all PEs. */
bool gdri_grow_may(const struct gdri_state *st, uint64_t bytes);

/* Collective, under st->lock. 0, or the failure of any PE on all of them, and then the heaps are as they were; but
 * where a GPU does not take the new keys, or the launcher does not bring all together: then the PEs meet no more
 * (st->broken). */
int gdri_grow(struct gdri_state *st, uint64_t bytes);

#endif
