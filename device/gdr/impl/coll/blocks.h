/* SPDX-License-Identifier: BSD-3-Clause */
/* What the algorithms of collectives share: the other members in turn, and which bytes of a buffer belong to
 * which of them. */
#ifndef GDRI_BLOCKS_H
#define GDRI_BLOCKS_H

#include <gdr/impl/coll/team.h>

/* Up to so much a block leaves to its first warp: bytes for all other PEs of the job together, elements of a sum. */
#define GDRI_FEW_MOVED 512u
#define GDRI_FEW_BCAST 1024u
#define GDRI_FEW_ADDED 64u

/* len bytes for each member, of which there may be `most` for all. */
GDR_DEVICE int gdri_few_moved(size_t len, size_t most)
{
	const struct gdri_dev *dev = gdri_dev();

	return len <= 64 || (len <= most && dev && len * (size_t)(gdri_k(dev, n_pes) - 1) <= most);
}

/* One thread is quicker directly, and meets twice, than by LL words of 8 bytes beyond so much; a warp beyond more. A
 * broadcast by LL meets nobody. */
#define GDRI_ALONE_MOVED 256u
#define GDRI_WARP_MOVED 8192u
#define GDRI_ALONE_BCAST 512u
#define GDRI_WARP_BCAST 32768u
#define GDRI_WARP_ADDED 16384u
/* One thread that adds up is quicker by slots, rows of 16 bytes at a time, beyond so much; and in pieces where it would
 * send more than this. */
#define GDRI_ALONE_ADDED 512u
#define GDRI_ALONE_FLAT 4096u
/* What is more than one epoch of LL is quicker directly, but for little. */
#define GDRI_LL_STEPS 16384u

GDR_DEVICE int gdri_ll_suits(int scope, size_t len)
{
	return scope == GDRI_BLOCK || len <= (scope == GDRI_WARP ? GDRI_WARP_MOVED : GDRI_ALONE_MOVED);
}

GDR_DEVICE int gdri_ll_bcast_suits(int scope, size_t len)
{
	return scope == GDRI_BLOCK || len <= (scope == GDRI_WARP ? GDRI_WARP_BCAST : GDRI_ALONE_BCAST);
}

GDR_DEVICE int gdri_ll_fits(const struct gdri_coll *c, size_t len)
{
	return len <= c->team->ll_size || len <= GDRI_LL_STEPS;
}

GDR_DEVICE void gdri_scope_copy(int scope, void *dst, const void *src, size_t len)
{
	if (dst == src || !len)
		return;
	if (scope == GDRI_THREAD)
		gdri_copy_thread_coll(dst, src, len);
	else
		gdri_copy(dst, src, len, gdri_scope_rank(scope), gdri_scope_size(scope));
}

GDR_DEVICE void gdri_coll_copy(const struct gdri_coll *c, void *dst, const void *src, size_t len)
{
	gdri_scope_copy(c->scope, dst, src, len);
}

/* The other members in turn, beginning behind the own one: i from 1 to n - 1. */
GDR_DEVICE int gdri_coll_after(const struct gdri_coll *c, int i)
{
	return c->me + i < c->n ? c->me + i : c->me + i - c->n;
}

GDR_DEVICE int gdri_coll_before(const struct gdri_coll *c, int i)
{
	return c->me >= i ? c->me - i : c->me - i + c->n;
}

GDR_DEVICE size_t gdri_coll_part(const struct gdri_coll *c, size_t left)
{
	return left < c->team->slot_size ? left : c->team->slot_size;
}

/* The share of this block, of so many, of len bytes: whole lines, but for the end. */
GDR_DEVICE size_t gdri_slice(uint32_t block, uint32_t blocks, size_t len, size_t *at)
{
	size_t each = (len / blocks + 128) / 128 * 128;

	*at = each * block;
	if (*at >= len)
		return *at = 0;
	return len - *at < each ? len - *at : each;
}

/* ---- blocks: which bytes of a buffer belong to member i ---- */

enum gdri_layout {
	GDRI_WHOLE,  /* all of them, for every member */
	GDRI_EQUAL,  /* len bytes each, one behind the other */
	GDRI_RAGGED, /* what a collect exchanged, in gdri_chan */
	GDRI_SPLIT,  /* len bytes in pieces of about the same size, of whole elements; then nothing */
	GDRI_PLACES, /* len bytes each, in gdri_chan */
};

struct gdri_blocks {
	int layout;
	size_t len;
	uint32_t elem; /* SPLIT: bytes of an element */
	int pieces;
};

/* Out of line: what it divides by is kept by no caller. */
GDRI_NOINLINE size_t gdri_split_at(const struct gdri_blocks *b, int i)
{
	size_t n = b->len / b->elem, p = (size_t)b->pieces, each = n / p, more = n % p;

	p = (size_t)i < p ? (size_t)i : p;
	return (each * p + (p < more ? p : more)) * b->elem;
}

GDR_DEVICE size_t gdri_block_at(const struct gdri_coll *c, const struct gdri_blocks *b, int i)
{
	if (b->layout == GDRI_EQUAL)
		return b->len * (size_t)i;
	if (b->layout == GDRI_RAGGED)
		return gdri_ld_relaxed_gpu_u64(&c->team->chan[i].at);
	if (b->layout == GDRI_SPLIT)
		return gdri_split_at(b, i);
	return b->layout == GDRI_PLACES ? sizeof(struct gdri_chan) * (size_t)i : 0;
}

GDR_DEVICE size_t gdri_block_len(const struct gdri_coll *c, const struct gdri_blocks *b, int i)
{
	if (b->layout == GDRI_RAGGED)
		return gdri_ld_relaxed_gpu_u64(&c->team->chan[i].len);
	if (b->layout == GDRI_SPLIT)
		return gdri_block_at(c, b, i + 1) - gdri_block_at(c, b, i);
	return b->len;
}

#endif
