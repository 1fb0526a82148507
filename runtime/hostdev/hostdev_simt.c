/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of the host device: barrier of the block, and among the lanes of
 * a warp sync, shuffle, ballot and grouping. A warp collective is known by its
 * kind and mask, so that lanes of different branches hold different ones at the
 * same time; it completes when all named lanes that have not returned are in
 * it. Only the synchronisations order memory, as in CUDA, and ThreadSanitizer
 * is told just that. */
#include "runtime/hostdev/hostdev_block.h"

#define LANE(f) ((f)->self.thread % GDRI_HD_WARP)

/* The last one to arrive goes on without a switch, but for tests that shake. */
GDRI_HD_SCHED static void arrive_last(struct gdri_hd_fiber *f)
{
	if (!f->block->shake) {
		f->op = GDRI_HD_RUNNABLE;
		return;
	}
	gdri_hd_block_fiber(f);
	gdri_hd_ready_fiber(f);
	gdri_hd_reschedule(f);
}

/* ------------------------------------------------------------------ barrier */

/* Those that count learn how many of them make the first one's call, and who is the first. */
GDRI_HD_SCHED static void barrier_count(struct gdri_hd_block *b)
{
	const struct gdri_hd_fiber *first = NULL;
	unsigned same = 0;

	for (unsigned i = 0; i < b->kernel->block; i++) {
		const struct gdri_hd_fiber *f = &b->fibers[i];

		if (f->op != GDRI_HD_COUNT_BLOCK)
			continue;
		first = first ? first : f;
		same += f->in == first->in;
	}
	for (unsigned i = 0; i < b->kernel->block; i++) {
		struct gdri_hd_fiber *f = &b->fibers[i];

		if (f->op != GDRI_HD_COUNT_BLOCK)
			continue;
		f->out = same;
		f->src = f == first;
	}
}

GDRI_HD_SCHED static void release_barrier(struct gdri_hd_block *b, const struct gdri_hd_fiber *last)
{
	if (b->in_count)
		barrier_count(b);
	b->in_barrier = b->in_count = 0;
	for (unsigned i = 0; i < b->kernel->block; i++) {
		struct gdri_hd_fiber *f = &b->fibers[i];

		if ((f->op == GDRI_HD_SYNC_BLOCK || f->op == GDRI_HD_COUNT_BLOCK) && f != last)
			gdri_hd_ready_fiber(f);
	}
}

GDRI_HD_SCHED static void meet_block(struct gdri_hd_fiber *f, enum gdri_hd_op op)
{
	struct gdri_hd_block *b = f->block;

	f->op = op;
	if (++b->in_barrier == b->live) {
		release_barrier(b, f);
		arrive_last(f);
	} else {
		gdri_hd_block_fiber(f);
		gdri_hd_reschedule(f);
	}
}

GDRI_HD_SCHED void gdri_hd_sync_block(void)
{
	struct gdri_hd_fiber *f = gdri_hd_running();

	gdri_hd_release(&f->block->in_barrier);
	meet_block(f, GDRI_HD_SYNC_BLOCK);
	gdri_hd_acquire(&f->block->in_barrier);
}

GDRI_HD_SCHED unsigned gdri_hd_callers(uint64_t call, int *first)
{
	struct gdri_hd_fiber *f = gdri_hd_running();

	f->in = call;
	f->block->in_count++;
	meet_block(f, GDRI_HD_COUNT_BLOCK);
	*first = (int)f->src;
	return (unsigned)f->out;
}

uint32_t *gdri_hd_grid_word(void)
{
	struct gdri_hd_kernel *k = gdri_hd_running()->block->kernel;

	return k->at_once ? &k->word : NULL;
}

/* --------------------------------------------------------- warp collectives */

GDRI_HD_SCHED static struct gdri_hd_pending *find_pending(struct gdri_hd_warp *w,
							  enum gdri_hd_op op, uint32_t mask)
{
	struct gdri_hd_pending *p;

	for (unsigned i = 0; i < w->n_pending; i++)
		if (w->pending[i].op == op && w->pending[i].mask == mask)
			return &w->pending[i];
	p = &w->pending[w->n_pending++]; /* at most one a lane */
	p->op = op;
	p->mask = mask;
	p->arrived = 0;
	return p;
}

GDRI_HD_SCHED static uint64_t simt_result(const struct gdri_hd_warp *w,
					  const struct gdri_hd_fiber *f,
					  const struct gdri_hd_pending *p, uint32_t votes)
{
	if (p->op == GDRI_HD_BALLOT)
		return votes;
	/* from a lane that is not named or has returned: undefined in CUDA, the own here */
	if (p->op == GDRI_HD_SHFL && p->arrived & 1u << f->src)
		return w->lanes[f->src].in;
	return f->in;
}

/* All of the mask have arrived: results, and everyone but `last` is queued. */
GDRI_HD_SCHED static void simt_complete(struct gdri_hd_warp *w, struct gdri_hd_pending *p,
					const struct gdri_hd_fiber *last)
{
	struct gdri_hd_pending done = {p->op, p->mask, p->arrived};
	uint32_t votes = 0, m;

	w->n_pending--;
	p->op = w->pending[w->n_pending].op;
	p->mask = w->pending[w->n_pending].mask;
	p->arrived = w->pending[w->n_pending].arrived;
	for (m = done.arrived; m; m &= m - 1) {
		unsigned lane = (unsigned)__builtin_ctz(m);

		votes |= w->lanes[lane].in ? 1u << lane : 0;
	}
	for (m = done.arrived; m; m &= m - 1) {
		struct gdri_hd_fiber *f = &w->lanes[__builtin_ctz(m)];

		f->out = simt_result(w, f, &done, votes);
		if (f != last)
			gdri_hd_ready_fiber(f);
	}
}

GDRI_HD_SCHED static uint64_t simt_rendezvous(enum gdri_hd_op op, uint32_t mask, uint64_t in, unsigned src)
{
	struct gdri_hd_fiber *f = gdri_hd_running();
	struct gdri_hd_warp *w = f->warp;
	struct gdri_hd_pending *p;

	f->op = op;
	f->mask = mask;
	f->in = in;
	f->src = src % GDRI_HD_WARP;
	if (!(mask & 1u << LANE(f)))
		gdri_hd_fail(f, GDRI_HD_BAD_MASK);
	p = find_pending(w, op, mask);
	p->arrived |= 1u << LANE(f);
	if (p->arrived == (mask & w->live)) {
		simt_complete(w, p, f);
		arrive_last(f);
	} else {
		gdri_hd_block_fiber(f);
		gdri_hd_reschedule(f);
	}
	return f->out;
}

GDRI_HD_SCHED void gdri_hd_sync_warp(uint32_t mask)
{
	struct gdri_hd_warp *w = gdri_hd_running()->warp;
	char *sync = &w->sync[mask ? __builtin_ctz(mask) : 0];

	gdri_hd_release(sync);
	simt_rendezvous(GDRI_HD_SYNC_WARP, mask, 0, 0);
	gdri_hd_acquire(sync);
}

GDRI_HD_SCHED uint64_t gdri_hd_shfl(uint32_t mask, uint64_t v, unsigned lane)
{
	return simt_rendezvous(GDRI_HD_SHFL, mask, v, lane);
}

GDRI_HD_SCHED uint32_t gdri_hd_ballot(uint32_t mask, int pred)
{
	return (uint32_t)simt_rendezvous(GDRI_HD_BALLOT, mask, pred != 0, 0);
}

/* ----------------------------------------------------------------- grouping */

GDRI_HD_SCHED void gdri_hd_release_groups(struct gdri_hd_block *b, struct gdri_hd_warp *w)
{
	while (w->group) {
		uint32_t first = w->group & -w->group, same = 0, m;
		uint64_t key = w->lanes[__builtin_ctz(first)].in;

		for (m = w->group; m; m &= m - 1)
			if (w->lanes[__builtin_ctz(m)].in == key)
				same |= m & -m;
		if (b->shake)
			same = first | (same & gdri_hd_random(b));
		w->group &= ~same;
		for (m = same; m; m &= m - 1) {
			struct gdri_hd_fiber *f = &w->lanes[__builtin_ctz(m)];

			f->out = same;
			gdri_hd_ready_fiber(f);
		}
	}
}

GDRI_HD_SCHED uint32_t gdri_hd_group(uint64_t key)
{
	struct gdri_hd_fiber *f = gdri_hd_running();

	f->op = GDRI_HD_GROUP;
	f->in = key;
	f->warp->group |= 1u << LANE(f);
	gdri_hd_block_fiber(f); /* releases the groups when f was the warp's last active lane */
	if (f->block->shake && f->warp->group && gdri_hd_random(f->block) % 4 == 0)
		gdri_hd_release_groups(f->block, f->warp);
	gdri_hd_reschedule(f);
	return (uint32_t)f->out;
}

/* -------------------------------------------------------------- early return */

GDRI_HD_SCHED void gdri_hd_fiber_gone(struct gdri_hd_fiber *f)
{
	struct gdri_hd_block *b = f->block;
	struct gdri_hd_warp *w = f->warp;

	for (unsigned i = 0; i < w->n_pending;) {
		struct gdri_hd_pending *p = &w->pending[i];

		if (p->arrived == (p->mask & w->live))
			simt_complete(w, p, NULL); /* another one takes its place in the array */
		else
			i++;
	}
	if (b->in_barrier && b->in_barrier == b->live)
		release_barrier(b, NULL);
}
