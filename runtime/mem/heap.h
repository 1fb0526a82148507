/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the symmetric heap: a reserved range of addresses in each PE, of which parts are mapped, one
 * behind the other, as the heap grows. The first one starts with the control area (struct gdri_ctl). A peer's
 * heap has a range of the same size, with its parts at the same places. Memory from memfd_create belongs to
 * no name: it goes when the last process that maps it ends. */
#ifndef GDRI_HEAP_H
#define GDRI_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include <gdr/impl/arch/abi.h>

struct gdri_cuda;

#define GDRI_HEAP_PARTS 64
/* A heap begins at a multiple, a peer's mapping as well: reserve_host(), and the driver, which maps no less at once. */
#define GDRI_HEAP_ALIGN (2u << 20)

struct gdri_heap_part {
	uint64_t offset, size;
	int fd; /* what peers map. Host: memfd, sealed against change of size */
};

struct gdri_heap {
	struct gdri_cuda *cuda; /* memory of a GPU; NULL: of the host */
	struct gdri_cuda *seen_by; /* host memory that a GPU maps, at the same address */
	uint8_t *base;
	uint64_t size; /* of all parts; threads that look addresses up ask gdri_heap_size() */
	uint64_t max;  /* of the reserved range */
	int n;
	struct gdri_heap_part parts[GDRI_HEAP_PARTS];
};

/* While another thread may grow it. */
static inline uint64_t gdri_heap_size(const struct gdri_heap *heap)
{
	/* relaxed: who may use what is new learns so behind the collective call; pairs as set_size() */
	return __atomic_load_n(&heap->size, __ATOMIC_RELAXED);
}

/* Reserves `max` bytes of addresses (at least size), creates and maps the first `size` of them and prepares the control
 * area for PE `pe`. cuda: memory of this GPU, or, with in_host, memory of the host that it maps. */
int gdri_heap_open(struct gdri_heap *heap, struct gdri_cuda *cuda, bool in_host, uint64_t size, uint64_t max,
		   int pe);
/* Its two halves: all but the control area, and that. */
int gdri_heap_make(struct gdri_heap *heap, struct gdri_cuda *cuda, bool in_host, uint64_t size, uint64_t max);
int gdri_heap_mark(struct gdri_heap *heap, int pe);
void gdri_heap_close(struct gdri_heap *heap); /* also half-built or closed */

/* One part more, behind the others; -GDR_ENOMEM, logged: no room or no memory, and nothing has changed. _shrink takes
 * the last one back, which no peer may have mapped any more. */
int gdri_heap_grow(struct gdri_heap *heap, uint64_t size);
void gdri_heap_shrink(struct gdri_heap *heap);

/* Maps a peer's heap, which has the parts and kind of one's own, from the descriptor of its first part, which is
 * untrusted: checks size, seals and the mark of PE `pe` in the control area. On failure `why` says what. */
int gdri_heap_map_peer(const struct gdri_heap *own, int fd, int pe, uint8_t **base, char *why,
		       size_t room);
/* Maps the last part of a peer's heap, whose others are mapped at base. */
int gdri_heap_map_part(const struct gdri_heap *own, int fd, uint8_t *base, char *why, size_t room);
void gdri_heap_unmap_part(const struct gdri_heap *own, uint8_t *base);
void gdri_heap_unmap_peer(const struct gdri_heap *own, uint8_t *base);

/* The part that holds the byte at offset. */
const struct gdri_heap_part *gdri_heap_part_at(const struct gdri_heap *heap, uint64_t offset);

/* Zeroes bytes of this PE's heap from the host. */
int gdri_heap_zero(const struct gdri_heap *heap, void *at, size_t len, int timeout_ms);
/* From one place of it to another; they do not overlap. */
int gdri_heap_copy(const struct gdri_heap *heap, void *to, const void *from, size_t len, int timeout_ms);

/* The symmetric heap of all PEs gets one part more, when nothing of it has room for an object. */

struct gdri_state;

/* Whether the heap may grow by a part that holds so many bytes; the same on all PEs. */
bool gdri_grow_may(const struct gdri_state *st, uint64_t bytes);

/* Collective, under st->lock. 0, or the failure of any PE on all of them, and then the heaps are as they were; but
 * where a GPU does not take the new keys, or the launcher does not bring all together: then the PEs meet no more
 * (st->broken). */
int gdri_grow(struct gdri_state *st, uint64_t bytes);

#endif
