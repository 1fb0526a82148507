/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a GPU that the program brings, as part of the symmetric heap. One distance leads from an address of this
 * PE's heap to the same one of a peer's, so it is mapped behind each heap, at the same place on all PEs: addresses
 * are reserved there. Where the NIC is in use its keys cover it as well, at this distance from the heap's begin. */
#ifndef GDRI_WINDOW_H
#define GDRI_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdri_state;
struct gdri_symmetric;

/* 0: no late copy of the library's can land in any of it. -GDR_ETIMEOUT, logged. */
int gdri_window_settle(struct gdri_state *st, const char *call);

/* NULL, or why [addr, addr + len) cannot be part of this heap. */
const char *gdri_window_refuse(struct gdri_state *st, const void *addr, size_t len);

/* What the next allocation takes of this PE's memory is there, before all agree on it; -GDR_ENOMEM, logged. */
int gdri_window_prepare(struct gdri_state *st);
/* Collective, with the same len and behind the same calls on all PEs. *out is the place, where nothing is yet. */
int gdri_window_alloc(struct gdri_state *st, size_t len, void **out);
int gdri_window_free(struct gdri_state *st, void *ptr);

/* Collective. An error is one on all PEs; what this PE alone cannot do becomes st->pending. */
int gdri_window_enter(struct gdri_state *st, void *addr, void *ptr, size_t len);
/* Unmaps it everywhere here. */
void gdri_window_leave(struct gdri_symmetric *s);
/* Collective: no PE reaches it through the NIC any more. */
int gdri_window_retire(struct gdri_state *st, void *ptr);

/* Is it in the heap, or in what the program brought? Any thread. */
bool gdri_window_has(const struct gdri_state *st, const void *ptr, uint64_t len);
/* Of what it has: where that is at a PE, NULL: by queue; and the offset by which queues know it. */
uint8_t *gdri_window_at(const struct gdri_state *st, const void *ptr, int pe);
uint64_t gdri_window_offset(const struct gdri_state *st, const void *ptr);
/* Memory of cudaMalloc (outside.h). */
bool gdri_window_is_outside(const struct gdri_state *st, const void *ptr);
/* Bytes from the heap's begin to the end of what may be behind it. */
uint64_t gdri_window_reach(const struct gdri_state *st);

#endif
