// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/perform.h"

#include "runtime/coll.h"
#include "runtime/state.h"

#define BLOCK 512u	/* threads; what the image is compiled for (CMakeLists.txt) */
#define SHARE 8192u	/* bytes of the call for each block at least */
#define HOST_BLOCKS 4u	/* blocks of the host device at most */

/* -1: never by many blocks. What the members of a team decide must not depend on the member. */
static int kind_of(const struct gdri_request *q)
{
	switch (q->what) {
	case GDRI_RQ_BROADCAST:
		return GDRI_K_BROADCAST;
	case GDRI_RQ_FCOLLECT:
		return GDRI_K_COLLECT;
	case GDRI_RQ_ALLTOALL:
	case GDRI_RQ_ALLTOALLS:
		return GDRI_K_ALLTOALL;
	case GDRI_RQ_REDUCE:
	case GDRI_RQ_REDUCESCATTER:
		return GDRI_K_REDUCE;
	case GDRI_RQ_INSCAN:
	case GDRI_RQ_EXSCAN:
		return GDRI_K_SCAN;
	default:
		return -1;
	}
}

/* Others read there while this PE writes: the slots of one block keep them apart. On all members alike,
 * since dest and source are. */
static bool in_the_way(const struct gdri_request *q, uint64_t dlen, uint64_t slen)
{
	uintptr_t d = (uintptr_t)q->dst, s = (uintptr_t)q->src;

	if (q->what != GDRI_RQ_REDUCESCATTER && q->what < GDRI_RQ_INSCAN)
		return false;
	return d < s + slen && s < d + dlen;
}

static uint32_t grid_of(const struct gdri_state *st, const struct gdri_request *q)
{
	const struct gdri_team *t = gdri_team_find(st, q->team);
	uint64_t d, s, bytes, blocks, most = t->grid_blocks;
	int kind = kind_of(q);

	if (kind < 0 || !gdri_request_extent(q, (uint64_t)t->n, &d, &s) || in_the_way(q, d, s))
		return 0;
	bytes = d > s ? d : s;
	if (!gdri_coll_by_grid(t, kind, bytes, &st->coll))
		return 0;
	if (!st->cuda && most > HOST_BLOCKS)
		most = HOST_BLOCKS;
	blocks = bytes / SHARE;
	return (uint32_t)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

void gdri_perform_plan(const struct gdri_state *st, struct gdri_request *q, struct gdri_plan *p)
{
	uint64_t len = q->n * q->size;
	uint32_t grid;

	p->grid = 1;
	p->block = 1;
	q->by = GDRI_BY_THREAD;
	if (q->what < GDRI_RQ_BY_BLOCK)
		return;
	q->by = GDRI_BY_BLOCK;
	/* on the host device one CPU thread is a block: more threads of it are only slower */
	if (st->cuda)
		p->block = len <= 256 ? 128 : BLOCK;
	grid = q->what >= GDRI_RQ_COLLECTIVE ? grid_of(st, q) : 0;
	if (!grid)
		return;
	q->by = GDRI_BY_GRID;
	p->grid = grid;
}
