// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/team/join_record.h"

#include <stddef.h>

#include <gdr/device.h>

#include "runtime/core/clock.h"
#include "runtime/core/host_barrier.h"
#include "runtime/core/state.h"
#include "runtime/mem/heap.h"
#include "runtime/team/team.h"

#define BLOCKS 4u /* of a queue, for a word, whichever network it is */
GDR_STATIC_ASSERT(GDRI_JOIN_IN_PAGE + GDRI_JOIN_BYTES(GDRI_MAX_PES) <= 2 * GDRI_CTL_SIZE, "the host's page");

/* Words in the order in which a record that is new is told. */
static const size_t order[] = {offsetof(struct gdri_join, id), offsetof(struct gdri_join, hash),
			       offsetof(struct gdri_join, free), offsetof(struct gdri_join, step),
			       offsetof(struct gdri_join, id)};
#define N_WORDS ((int)(sizeof(order) / sizeof(order[0])))

/* That of pe, at any PE. */
static struct gdri_join *join_slot(const struct gdri_state *st, int pe)
{
	return (struct gdri_join *)(void *)(gdri_host_dev(st)->heap + st->teams->join) + pe;
}

/* A word of the own record at pe, behind all words before: 1, 0 where it would have to wait, or < 0. */
static int join_tell_word(struct gdri_state *st, int pe, size_t field, uint64_t value)
{
	uint64_t *word = (uint64_t *)(void *)((uint8_t *)join_slot(st, st->pe) + field);
	struct gdri_operation o = gdri_op_scalar(GDRI_SIGNAL, GDRI_AMO_SET, 8, word, value, pe, 0);
	struct gdri_dev *dev = gdri_host_dev(st);
	struct gdri_qp *qp;
	int ret;

	if (pe == st->pe) {
		__atomic_store_n(word, value, __ATOMIC_RELEASE); /* pairs as the signal does */
		return 1;
	}
	if (!dev->peers[pe].base) {
		qp = dev->n_slots ? gdri_qp_to(dev, pe, 0) : NULL;
		if (!qp || !qp->sq)
			return -GDR_ESTATE;
		gdri_qp_mark_used(dev, qp);
		ret = gdri_sq_look(dev, qp, BLOCKS);
		if (ret <= 0)
			return ret;
	}
	ret = gdri_xfer_tell(dev, &o); /* pairs with the acquire in gdri_join_look */
	return ret ? ret : 1;
}

/* The next word that pe is to be told: 1: it was, 0: there is none, or it has to wait. < 0: it cannot be told. */
static int join_tell_next(struct gdri_state *st, int pe, const struct gdri_join *mine, struct gdri_join_told *t)
{
	size_t field = t->words < N_WORDS ? order[t->words] : offsetof(struct gdri_join, step);
	uint64_t value = t->words ? *(const uint64_t *)(const void *)((const uint8_t *)mine + field) : 0;
	int ret;

	if (t->words == N_WORDS && t->step == mine->step)
		return 0;
	ret = join_tell_word(st, pe, field, value);
	if (ret <= 0)
		return ret;
	t->words += t->words < N_WORDS;
	if (field == offsetof(struct gdri_join, step))
		t->step = mine->step;
	return 1;
}

void gdri_join_tell(struct gdri_state *st, const struct gdri_join *mine, struct gdri_join_told *told)
{
	struct gdri_join_told once;

	for (int i = 0; i < st->n_pes; i++) {
		int pe = (st->pe + i) % st->n_pes, ret = 0;
		struct gdri_join_told *t = told ? &told[pe] : &once;

		if (!told)
			once = (struct gdri_join_told){0};
		while (!t->status && (ret = join_tell_next(st, pe, mine, t)) > 0)
			;
		t->status = ret < 0 ? ret : t->status;
	}
}

void gdri_join_hide(struct gdri_state *st)
{
	for (int i = 0; i < st->n_pes; i++)
		join_tell_word(st, (st->pe + i) % st->n_pes, offsetof(struct gdri_join, id), 0);
}

bool gdri_join_look(const struct gdri_state *st, int pe, struct gdri_join *out)
{
	const struct gdri_join *r = join_slot(st, pe);

	/* acquire: pairs with the release of who tells, or the NIC's order */
	out->id = gdri_ld_acquire_sys_u64(&r->id);
	out->step = gdri_ld_relaxed_sys_u64(&r->step);
	out->hash = gdri_ld_relaxed_sys_u64(&r->hash);
	out->free = gdri_ld_relaxed_sys_u64(&r->free);
	/* a reader of a word of the next record sees that this id is gone: pairs with that word's release
	 * (join_tell_word), behind which it was told that id is 0 */
	gdri_fence_sys();
	return out->id && gdri_ld_relaxed_sys_u64(&r->id) == out->id;
}

/* Behind a full queue it waits for room; a queue that failed leads to nobody. */
static void join_tell_all(struct gdri_state *st, size_t field, uint64_t value, uint64_t deadline)
{
	uint32_t round = 0;
	int pe;

	for (int i = 0; i < st->n_pes; i++) {
		pe = (st->pe + i) % st->n_pes;
		while (!gdri_join_is_gone(st, pe) && !join_tell_word(st, pe, field, value) && gdri_now_ns() < deadline)
			gdr_pause(round++);
	}
}

static void join_tell_step(struct gdri_state *st, uint64_t bits)
{
	uint64_t step = gdri_ld_relaxed_sys_u64(&join_slot(st, st->pe)->step) | bits;

	join_tell_all(st, offsetof(struct gdri_join, step), step, gdri_deadline_ns(GDRI_SETTLE_MS));
	gdri_host_barrier_settle(st, GDRI_SETTLE_MS);
}

void gdri_join_finalize(struct gdri_state *st, bool failed)
{
	join_tell_all(st, offsetof(struct gdri_join, calls), st->host_barriers, gdri_deadline_ns(GDRI_SETTLE_MS));
	join_tell_step(st, GDRI_JOIN_FINALIZES | (failed ? GDRI_JOIN_FAILED : 0));
}

void gdri_join_gone(struct gdri_state *st)
{
	join_tell_step(st, GDRI_JOIN_GONE);
}

int gdri_join_finalizes(const struct gdri_state *st, int pe)
{
	/* acquire: pairs with the release of who tells, or the NIC's order */
	uint64_t step = gdri_ld_acquire_sys_u64(&join_slot(st, pe)->step);

	return !(step & GDRI_JOIN_FINALIZES) ? 0 : step & GDRI_JOIN_FAILED ? 2 : 1;
}

int gdri_join_absent(const struct gdri_state *st)
{
	for (int pe = 0; pe < st->n_pes; pe++) {
		/* relaxed: behind the acquire of the step, before which it was told */
		if (gdri_join_finalizes(st, pe) == 1 &&
		    gdri_ld_relaxed_sys_u64(&join_slot(st, pe)->calls) < st->host_barriers)
			return pe;
	}
	return -1;
}

bool gdri_join_is_gone(const struct gdri_state *st, int pe)
{
	/* acquire: as in gdri_join_finalizes */
	uint64_t step = gdri_ld_acquire_sys_u64(&join_slot(st, pe)->step);

	return pe != st->pe && step & GDRI_JOIN_FINALIZES && step & (GDRI_JOIN_FAILED | GDRI_JOIN_GONE);
}
