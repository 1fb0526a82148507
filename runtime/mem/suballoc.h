/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocator of ranges [0, size) inside the symmetric heap. Pure: works on
 * offsets, never touches the memory, and gives the same offsets for the same
 * sequence of calls, so that all PEs agree without talking. First fit over an
 * address-ordered list; neighbouring free ranges are merged, but for those that were added. Not
 * thread-safe, but for gdri_suballoc_within. */
#ifndef GDRI_SUBALLOC_H
#define GDRI_SUBALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GDRI_SUBALLOC_GRAIN 256u /* every range starts and ends at a multiple */
#define GDRI_SUBALLOC_NONE UINT64_MAX

struct gdri_suballoc;

struct gdri_suballoc_info {
	uint64_t size, used, largest_free;
	size_t objects;
};

/* size is rounded down to the grain. phase: how far offset 0 lies behind an address of any alignment that will be asked
 * for, a multiple of the grain. NULL: no memory. */
struct gdri_suballoc *gdri_suballoc_create(uint64_t size, uint64_t phase);
void gdri_suballoc_destroy(struct gdri_suballoc *a);

/* size more behind what there is, rounded down to the grain: a range of its own, so that no object lies in both.
 * -GDR_ENOMEM: nothing has changed. */
int gdri_suballoc_grow(struct gdri_suballoc *a, uint64_t size);

/* alignment: a power of two; len > 0. GDRI_SUBALLOC_NONE when nothing fits (or the
 * bookkeeping has no memory, which says nothing of other PEs: callers make sure
 * with gdri_suballoc_reserve first). */
uint64_t gdri_suballoc_alloc(struct gdri_suballoc *a, uint64_t len, uint64_t alignment);

/* Makes sure that the next alloc or resize needs no memory: 0 or -GDR_ENOMEM. */
int gdri_suballoc_reserve(struct gdri_suballoc *a);

/* 0, or -GDR_EINVAL when no object starts at `offset`: nothing is changed then. */
int gdri_suballoc_free(struct gdri_suballoc *a, uint64_t offset);

/* The object that starts at `offset` gets len > 0 bytes where it is. -GDR_ENOMEM: what follows it is not free, or the
 * bookkeeping has no memory (as for alloc); -GDR_EINVAL: no object starts there: nothing is changed then. */
int gdri_suballoc_resize(struct gdri_suballoc *a, uint64_t offset, uint64_t len);

/* Bytes of the object that starts at `offset`, 0: none does. */
uint64_t gdri_suballoc_size(const struct gdri_suballoc *a, uint64_t offset);

/* The first object at or behind *offset: its bytes, and *offset where it starts. 0: there is none. */
uint64_t gdri_suballoc_next(const struct gdri_suballoc *a, uint64_t *offset);

/* Does [offset, offset + len) lie within one object? *begin and *end: of the last object that begins at offset or
 * before it; 0: there is none. Any thread, beside others that look and the one that changes it. */
bool gdri_suballoc_within(struct gdri_suballoc *a, uint64_t offset, uint64_t len, uint64_t *begin, uint64_t *end);

void gdri_suballoc_query(const struct gdri_suballoc *a, struct gdri_suballoc_info *info);

/* Number that differs between allocators of different history, with high probability. */
uint64_t gdri_suballoc_history(const struct gdri_suballoc *a);

#endif
