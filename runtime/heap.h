/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the symmetric heap: one shared mapping per PE, that starts with
 * the control area (struct gdri_ctl). Memory from memfd_create belongs to no
 * name: it goes when the last process that maps it ends. */
#ifndef GDRI_HEAP_H
#define GDRI_HEAP_H

#include <stdint.h>

#include <gdr/impl/abi.h>

struct gdri_heap {
	int fd;		/* memfd of this PE; sealed against change of size */
	uint8_t *base;
	uint64_t size;
};

/* Creates and maps `size` bytes and prepares the control area for PE `pe`. */
int gdri_heap_open(struct gdri_heap *heap, uint64_t size, int pe);
void gdri_heap_close(struct gdri_heap *heap); /* also half-built or closed */

/* Maps a peer's heap from its descriptor, which is untrusted: checks size, seals
 * and the mark of PE `pe` in the control area. On failure `why` says what. */
int gdri_heap_map_peer(int fd, uint64_t size, int pe, uint8_t **base, char *why, size_t room);
void gdri_heap_unmap_peer(uint8_t *base, uint64_t size);

#endif
