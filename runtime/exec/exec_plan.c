// SPDX-License-Identifier: BSD-3-Clause

#include <gdr/device.h>
#include <gdr/impl/coll/direct/aligned.h>

#include "runtime/core/state.h"
#include "runtime/exec/exec.h"
#include "runtime/team/coll.h"
#include "runtime/team/team.h"

#define BLOCK 512u	/* threads; what the image is compiled for (CMakeLists.txt) */
#define SHARE 8192u	/* bytes of the call for each block at least */
#define CTA_THREADS 256u /* of LL by many CTAs, each thread with an element or more */

/* -1: never by many blocks. What the members of a team decide must not depend on the member. */
static int plan_kind_of(const struct gdri_request *q)
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

/* LL elements that have a thread in LL by many CTAs: of all members where data is moved, else one for those of all. */
static uint64_t ctas_elements(const struct gdri_request *q, const struct gdri_team *t)
{
	uint64_t each = (q->n * q->size + 7) / 8;

	return plan_kind_of(q) == GDRI_K_REDUCE || plan_kind_of(q) == GDRI_K_SCAN ? each : each * (uint64_t)(t->n - 1);
}

/* Pairs of MAXLOC are longer than the LL elements that are reckoned with; what is only moved may be of any size. */
static bool by_ctas(const struct gdri_request *q, const struct gdri_team *t, int algo)
{
	bool fits = q->size <= 8 || (plan_kind_of(q) != GDRI_K_REDUCE && plan_kind_of(q) != GDRI_K_SCAN);

	if (!t->ctas_size || !fits || q->what == GDRI_RQ_ALLTOALLS)
		return false;
	return algo == GDRI_A_LL_CTAS || algo == GDRI_A_LL;
}

static uint32_t plan_bounded(uint64_t n, uint64_t most)
{
	return (uint32_t)(n < 1 ? 1 : n > most ? most : n);
}

static void plan_ll_ctas(const struct gdri_state *st, const struct gdri_team *t, struct gdri_request *q,
			 struct gdri_plan *p)
{
	uint64_t elements = ctas_elements(q, t);

	q->by = GDRI_BY_CTAS;
	q->coll.words = t->ctas;
	if (st->cuda)
		p->block = plan_bounded((elements + 31) / 32, CTA_THREADS / 32) * 32;
	p->grid = plan_bounded((elements + CTA_THREADS - 1) / CTA_THREADS, t->ctas_blocks);
}

/* By many blocks, where the table says so. */
static void plan_spread(const struct gdri_state *st, struct gdri_request *q, struct gdri_plan *p)
{
	const struct gdri_team *t = gdri_team_find(st, q->coll.team);
	uint64_t d, s, bytes, most = t->grid_blocks;
	int kind = plan_kind_of(q), algo;

	if (kind < 0 || !gdri_request_extent(q, (uint64_t)t->n, &d, &s))
		return;
	q->coll.members = t->n;
	q->coll.member = t->me;
	q->coll.start = t->start;
	q->coll.stride = t->stride;
	q->coll.ctas_size = t->ctas_size;
	q->coll.words = t->grid;
	bytes = d > s ? d : s;
	algo = gdri_coll_on_stream(t, kind, bytes, st->coll);
	if (by_ctas(q, t, algo)) {
		plan_ll_ctas(st, t, q, p);
		return;
	}
	if (algo != GDRI_A_GRID && !gdri_coll_streams_only(algo))
		return;
	if (!st->cuda && most > HOST_BLOCKS)
		most = HOST_BLOCKS;
	q->by = GDRI_BY_GRID;
	q->coll.keep = algo == GDRI_A_COPIES && q->what == GDRI_RQ_REDUCE && st->cuda && st->constants &&
		  st->constants->direct && q->coll.stride && gdri_aligned_fits(q);
	p->grid = plan_bounded(bytes / SHARE, most);
}

void gdri_exec_plan(const struct gdri_state *st, struct gdri_request *q, struct gdri_plan *p)
{
	uint64_t len = q->n * q->size;

	p->grid = 1;
	p->block = 1;
	q->by = GDRI_BY_THREAD;
	if (q->what < GDRI_RQ_BY_BLOCK)
		return;
	q->by = GDRI_BY_BLOCK;
	/* on the host device one CPU thread is a block: more threads of it are only slower */
	if (st->cuda)
		p->block = len <= 256 ? 128 : BLOCK;
	if (q->what >= GDRI_RQ_COLLECTIVE) {
		q->coll.keep = 0; /* whatever the caller left there */
		plan_spread(st, q, p);
	}
}
