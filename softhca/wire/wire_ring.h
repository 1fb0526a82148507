/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of packets in shared memory: one process writes, one reads. The
 * memory is a sealed memfd that the writer makes; whoever gets its number over
 * a socket can map it, and it goes when the last of both has gone, however.
 * Nothing that the other side writes is trusted: a ring that does not make
 * sense is reported as broken.
 *
 *   offset 0     what never changes          writer, before it is passed on
 *          8     shown: messages that tell of memory   writer
 *          64    tail: bytes written         writer
 *          128   head: bytes read            reader
 *          192   asleep: wake me             reader sets, writer takes back
 *          256   reach: how the reader can have payload from the writer's memory   reader
 *   one page     the bytes, a power of two; each side maps them twice in a row,
 *                so that a packet is never cut
 */
#ifndef SOFTHCA_WIRE_RING_H
#define SOFTHCA_WIRE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_HIDDEN UINT32_MAX /* in place of how many messages */

enum { /* of reach */
	RING_READS = 1, /* whatever there is */
	RING_MAPS = 2,	/* what it was shown */
	RING_GPU = 4,	/* what it was shown in memory of a GPU */
};

struct ring_shared;

/* One side's end. */
struct ring {
	struct ring_shared *s; /* NULL: closed */
	uint8_t *bytes;
	uint64_t size;
	uint64_t head, tail; /* own index, and the other's as it was last seen */
	uint64_t published;  /* of the own index */
};

/* 0 or -errno. The caller closes *fd once it is passed on. */
int ring_create(struct ring *r, int *fd);
int ring_open(struct ring *r, int fd);
void ring_close(struct ring *r);

/* ---- writer ---- */

/* Bytes that fit now; asks the reader's index only when less than want fit. */
size_t ring_room(struct ring *r, size_t want);
/* Where the next n bytes go, there being room for them; ring_push() takes them. */
uint8_t *ring_at_tail(struct ring *r);
void ring_push(struct ring *r, size_t n);
/* Shows the reader what was pushed. True: it sleeps and has to be woken. */
bool ring_publish(struct ring *r);
/* Has the reader not taken all that it was shown? */
bool ring_unread(const struct ring *r);
/* From where in the writer's memory the reader takes payload: RING_READS, RING_MAPS. Both sides. */
unsigned ring_reach(const struct ring *r);
/* Another message about memory went to the reader; ahead of the packets that follow. */
void ring_count_shown(struct ring *r);
/* None can any more: what was told holds no longer. */
void ring_hide(struct ring *r);

/* ---- reader ---- */

/* Bytes that can be read, from *at on; -1 when the ring is broken. */
int64_t ring_readable(struct ring *r, const uint8_t **at);
void ring_pop(struct ring *r, size_t n);
void ring_release(struct ring *r); /* gives popped bytes back to the writer */
/* About to sleep; then ring_readable() has to be asked again. */
void ring_sleep(struct ring *r);
void ring_awake(struct ring *r);
void ring_set_reach(struct ring *r, unsigned reach);
/* How many messages about memory came ahead of what can be read. */
uint32_t ring_shown(const struct ring *r);

#endif
