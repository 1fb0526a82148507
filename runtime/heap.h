/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the symmetric heap: one shared mapping per PE, that starts with
 * the control area (struct gdri_ctl). Memory from memfd_create belongs to no
 * name: it goes when the last process that maps it ends. */
#ifndef GDRI_HEAP_H
#define GDRI_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include <gdr/impl/abi.h>

struct gdri_cuda;

struct gdri_heap {
	struct gdri_cuda *cuda; /* memory of a GPU; NULL: of the host */
	struct gdri_cuda *seen_by; /* host memory that a GPU maps, at the same address */
	int fd;		/* what peers map. Host: memfd, sealed against change of size */
	uint8_t *base;
	uint64_t size;
};

/* Creates and maps `size` bytes and prepares the control area for PE `pe`. cuda: memory of this GPU, or, with
 * in_host, memory of the host that it maps. */
int gdri_heap_open(struct gdri_heap *heap, struct gdri_cuda *cuda, bool in_host, uint64_t size, int pe);
void gdri_heap_close(struct gdri_heap *heap); /* also half-built or closed */

/* Maps a peer's heap, which has the size and kind of one's own, from its descriptor, which is
 * untrusted: checks size, seals and the mark of PE `pe` in the control area. On failure `why` says what. */
int gdri_heap_map_peer(const struct gdri_heap *own, int fd, int pe, uint8_t **base, char *why,
		       size_t room);
void gdri_heap_unmap_peer(const struct gdri_heap *own, uint8_t *base);

/* Zeroes bytes of this PE's heap from the host. */
int gdri_heap_zero(const struct gdri_heap *heap, void *at, size_t len);

#endif
