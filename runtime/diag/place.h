/* SPDX-License-Identifier: BSD-3-Clause */
/* A place in the symmetric heap, or a PE, in the words of the program: which object, and where in it; which process. */
#ifndef GDRI_PLACE_H
#define GDRI_PLACE_H

#include <stddef.h>
#include <stdint.h>

/* " of PE 0: byte 72 of object 3 (256 bytes)"; numbers are those of gdr_heap_list now. Empty where there is no object,
 * or another thread is changing them. */
void gdri_place_text(uint64_t offset, char *buf, size_t room);

/* That it is lost, and who knows that: the launcher, or the connection to its process. */
void gdri_place_lost(int pe, char *buf, size_t room);

#endif
