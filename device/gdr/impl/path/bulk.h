/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy by the bulk copy engine, by way of shared memory: one thread has the engine fill pieces of it from the source
 * and empty them into the destination. What the engine does is another proxy than what threads do:
 * docs/memory-model-internals.md, The bulk copy engine. Its words (gdri_mbar_*, gdri_bulk_*, gdri_fence_engine) are
 * those of arch_cuda.h; tests/device has an engine of its own. Addresses of shared memory are numbers of 32 bits. */
#ifndef GDRI_BULK_H
#define GDRI_BULK_H

#include <gdr/impl/arch/arch.h>

#define GDRI_BULK_PIECES 4u /* on their way */
#define GDRI_BULK_PIECE_MAX 32768u
#define GDRI_BULK_PIECE_MIN 4096u
#define GDRI_BULK_ALIGN 128u /* of a piece in shared memory: at other multiples of 16 the engine is slower */
#define GDRI_BULK_HEAD (8 * GDRI_BULK_PIECES) /* before the pieces: a barrier for each */
#define GDRI_BULK_STAGE_MIN 512u	      /* wherever it begins: one piece of some length */
#define GDRI_BULK_STAGE_MAX (1u << 20)

/* Barriers, then pieces, in shared memory. */
struct gdri_stage {
	uint32_t bars, data, piece, pieces;
};

/* The part of the `bytes` at `at` that a copy of len uses. What is short is one piece: each costs instructions, of one
 * thread. Of what is longer there are two at least, to have loads and stores under way together. */
GDR_DEVICE struct gdri_stage gdri_stage_of(uint32_t at, uint32_t bytes, size_t len)
{
	uint32_t data = (at + GDRI_BULK_HEAD + GDRI_BULK_ALIGN - 1) & ~(GDRI_BULK_ALIGN - 1);
	uint32_t room = (at + bytes - data) & ~15u, least = room / 2 & ~(GDRI_BULK_ALIGN - 1);
	struct gdri_stage g = {data - GDRI_BULK_HEAD, data, room, 1};

	if (len <= room && len <= GDRI_BULK_PIECE_MAX)
		return g;
	least = least < GDRI_BULK_PIECE_MIN ? least : GDRI_BULK_PIECE_MIN;
	g.piece = room / GDRI_BULK_PIECES & ~(GDRI_BULK_ALIGN - 1);
	g.piece = g.piece < GDRI_BULK_PIECE_MAX ? g.piece : GDRI_BULK_PIECE_MAX;
	g.piece = g.piece > least ? g.piece : least;
	g.pieces = room / g.piece;
	g.pieces = g.pieces < GDRI_BULK_PIECES ? g.pieces : GDRI_BULK_PIECES;
	return g;
}

/* A call waits until the engine is done, a round trip and more, where threads go on behind their stores, but wait for
 * their loads. With fewer bytes for each of n threads these are quicker (docs/performance.md, By the bulk copy
 * engine). */
GDR_DEVICE int gdri_bulk_pays(uint32_t n, int get, size_t len)
{
	if (n == 1)
		return len >= (get ? 256 : 1536);
	return len >= (size_t)(get ? 512 : 2048) * n;
}

#ifndef GDRI_HAS_BULK
#define GDRI_HAS_BULK 0 /* the host device has no engine */
#endif
#if GDRI_HAS_BULK
GDR_DEVICE uint32_t gdri_bulk_piece(const struct gdri_stage *g, size_t left)
{
	return left < g->piece ? (uint32_t)left : g->piece;
}

/* Has the next piece come into place i. Returns its length. */
GDR_DEVICE uint32_t gdri_bulk_fill(const struct gdri_stage *g, uint32_t i, const uint8_t *s, size_t left)
{
	uint32_t n = gdri_bulk_piece(g, left);

	gdri_bulk_load(g->data + i * g->piece, s, n, g->bars + 8 * i);
	return n;
}

/* No longer than a load of the thread's own, which has no limit either: a bad address ends the kernel. Acquires: pairs
 * with the engine's completion. */
GDR_DEVICE void gdri_bulk_filled(uint32_t bar, uint32_t parity)
{
	GDRI_NOT_UNROLLED
	while (!gdri_mbar_try(bar, parity))
		;
}

/* One thread; s, d and len are multiples of 16. */
GDR_DEVICE void gdri_bulk_through(uint8_t *d, const uint8_t *s, size_t len, uint32_t at, uint32_t bytes)
{
	struct gdri_stage g = gdri_stage_of(at, bytes, len);
	uint32_t i, n, parity = 0, last = GDRI_BULK_PIECES;
	size_t left = len; /* to be asked for */

	for (i = 0; i < g.pieces; i++)
		gdri_mbar_init(g.bars + 8 * i);
	gdri_fence_engine(); /* the barriers; what this thread did with stage, source and destination */
	for (i = 0; i < g.pieces && left; i++, s += n, left -= n)
		n = gdri_bulk_fill(&g, i, s, left);
	for (i = 0; len; len -= n, d += n) {
		n = gdri_bulk_piece(&g, len);
		gdri_bulk_filled(g.bars + 8 * i, parity);
		gdri_bulk_store(d, g.data + i * g.piece, n);
		if (last < GDRI_BULK_PIECES && left) {
			uint32_t more;

			gdri_bulk_wait_read(); /* the place before this one is free */
			more = gdri_bulk_fill(&g, last, s, left);
			s += more;
			left -= more;
		}
		last = i++;
		if (i == g.pieces) {
			i = 0;
			parity ^= 1;
		}
	}
	gdri_bulk_wait();
	for (i = 0; i < g.pieces; i++) /* the memory is the caller's again */
		gdri_mbar_inval(g.bars + 8 * i);
}
#endif

#endif
