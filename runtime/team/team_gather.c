// SPDX-License-Identifier: BSD-3-Clause
/* How the host threads of a team's members tell each other a few words: each puts them into every
 * member's area, and behind them the number of the exchange. Two areas in turn: whoever begins
 * exchange k + 2 has heard of all in k + 1, who had read what k brought. */

#include <string.h>

#include <gdr/device.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/hostdev/hostdev_fiber.h"
#include "runtime/mem/heap.h"
#include "runtime/path/hostq.h"
#include "runtime/team/coll.h"
#include "runtime/team/join_record.h"
#include "runtime/team/team.h"

#define SILENT_ROUNDS 64u /* pauses between two looks at all members */

static struct gdri_note *note_of(const struct gdri_state *st, const struct gdri_team *t,
				 uint64_t seq, int member)
{
	struct gdri_note *notes = (struct gdri_note *)(t->chan + st->n_pes);

	return notes + (seq & 1) * (uint64_t)st->n_pes + member;
}

static int gather_look(struct gdri_state *st, void *to, const void *gpu, size_t len)
{
	return gdri_cuda_peek(st->cuda, to, gpu, len, (int)st->opt.timeout_ms);
}

static int gather_store(struct gdri_state *st, void *gpu, const void *from, size_t len)
{
	return gdri_cuda_poke(st->cuda, gpu, from, len, (int)st->opt.timeout_ms);
}

/* Complete when it returns. The member's heap is a GPU's. */
static int put_cuda(struct gdri_state *st, int pe, const void *dst, const void *src, size_t len)
{
	uint64_t offset = (uint64_t)((const uint8_t *)dst - st->heap->base);
	uint8_t *base = st->peers[pe].base;

	return base ? gather_store(st, base + offset, src, len) : gdri_hostq_put(st, offset, src, len, pe);
}

static int gather_tell(struct gdri_state *st, const struct gdri_coll *c, int to, const uint64_t v[3],
		       uint64_t seq)
{
	struct gdri_note *note = note_of(st, c->team, seq, c->team->me);
	uint64_t *word = &c->team->chan[c->team->me].note;
	int pe = gdri_team_pe(c->team, to), ret;
	struct gdri_operation o = gdri_coll_message(st->dev, GDRI_THREAD, pe, c->team->queue, note, v, sizeof(note->v));
	uint8_t *base = st->peers[pe].base;

	if (st->cuda) {
		ret = put_cuda(st, pe, note, v, sizeof(note->v));
		return ret ? ret : put_cuda(st, pe, word, &seq, sizeof(seq));
	}
	if (base)
		memcpy(base + ((uint8_t *)note - st->heap->base), v, sizeof(note->v));
	o.sig = word;
	o.value = seq;
	return gdri_coll_post(st->dev, &o); /* a release: pairs with the acquire in hear */
}

/* Whether a member is lost: without it the call cannot end, whichever member this PE waits for. */
static bool gather_lost(const struct gdri_state *st, const struct gdri_team *t)
{
	for (int i = 0; i < t->n; i++) {
		/* relaxed: the monitor's flag carries nothing with it */
		if (__atomic_load_n(&st->peers[gdri_team_pe(t, i)].lost, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* Why a wait for the team is to end; 0: it isn't. */
static int gather_reason(const struct gdri_state *st, const struct gdri_team *t, uint64_t deadline)
{
	if (gather_lost(st, t))
		return -GDR_EPEERLOST;
	/* relaxed: the flag carries nothing */
	if (__atomic_load_n(st->abort_word, __ATOMIC_RELAXED))
		return -GDR_EABORTED;
	return gdri_now_ns() > deadline ? -GDR_ETIMEOUT : 0;
}

/* A member that has called gdr_finalize without a word of this exchange; -1: none. */
static int gather_silent(struct gdri_state *st, const struct gdri_team *t, uint64_t seq)
{
	const uint64_t *word;
	uint64_t value;

	for (int i = 0; i < t->n; i++) {
		if (i == t->me || !gdri_join_finalizes(st, gdri_team_pe(t, i)))
			continue;
		word = &t->chan[i].note;
		value = 0;
		if (st->cuda && gather_look(st, &value, word, sizeof(value)))
			continue;
		/* acquire: as in gather_hear */
		if ((st->cuda ? value : gdri_ld_acquire_sys_u64(word)) < seq)
			return i;
	}
	return -1;
}

/* From the GPU's memory, by copies. *from: the member that is heard, or because of whom it is not. */
static int hear_cuda(struct gdri_state *st, const struct gdri_coll *c, int *from, uint64_t seq,
		     uint64_t deadline)
{
	const uint64_t *word = &c->team->chan[*from].note;
	uint64_t value = 0;
	int ret, why, silent;

	for (uint32_t round = 0;; round++) {
		why = gather_reason(st, c->team, deadline); /* before the look: the word may have come before it */
		silent = gather_silent(st, c->team, seq);
		ret = gather_look(st, &value, word, sizeof(value));
		if (ret || value >= seq)
			return ret;
		if (!why && silent >= 0) {
			*from = silent;
			why = -GDR_EPEERLOST;
		}
		if (why)
			return why;
		gdr_pause(round);
	}
}

static int gather_hear(struct gdri_state *st, const struct gdri_coll *c, int *from, uint64_t seq)
{
	const uint64_t *word = &c->team->chan[*from].note;
	struct gdri_waiter w;
	int ret, silent;

	gdri_coll_wait_begin(c, &w, *from, word);
	for (;;) {
		silent = w.round % SILENT_ROUNDS ? -1 : gather_silent(st, c->team, seq);
		/* acquire: pairs with the member's release, or the NIC's order */
		if (gdri_ld_acquire_sys_u64(word) >= seq)
			break;
		if (silent >= 0) {
			*from = silent;
			gdri_wait_leave(c->dev, &w);
			ret = gdri_broken(c->dev, gdri_coll_team(c), c->op); /* which it may have told before */
			return ret ? ret : -GDR_EPEERLOST;
		}
		ret = gdri_wait_step(c->dev, &w);
		if (ret)
			return ret;
	}
	gdri_wait_end(c->dev, &w);
	return gdri_wait_flush(c->dev, c->op);
}

static int gather_take(struct gdri_state *st, const struct gdri_coll *c, int from, uint64_t seq,
		       uint64_t *v)
{
	const struct gdri_note *note = note_of(st, c->team, seq, from);

	if (st->cuda)
		return gather_look(st, v, note->v, sizeof(note->v));
	memcpy(v, note->v, sizeof(note->v));
	return 0;
}

/* A member that has called gdr_finalize. One that failed before may have done so because of another PE. */
static void gather_say(const struct gdri_state *st, const char *what, int pe, int culprit, int ret)
{
	if (!gdri_join_finalizes(st, pe))
		gdri_error("%s: PE %d: %s", what, pe, gdr_strerror(ret));
	else if (culprit != pe)
		gdri_error("%s: PE %d gave up because of PE %d, and has called gdr_finalize", what, pe, culprit);
	else
		gdri_error("%s: PE %d has called gdr_finalize: it takes no part", what, pe);
}

static int gather_failed(struct gdri_state *st, const struct gdri_coll *c, const char *what, int peer, int ret)
{
	struct gdri_team *t = c->team;
	int pe = gdri_team_pe(t, peer), how = gdri_join_finalizes(st, pe), culprit = pe;
	uint64_t word = st->cuda ? 0 : gdri_ld_relaxed_sys_u64(gdri_broken_word(c->dev, gdri_coll_team(c)));

	if (word && gdri_fault_pe(word) != st->pe && gdri_broken(c->dev, gdri_coll_team(c), c->op)) {
		t->err = gdri_broken_first_status(c->dev, gdri_coll_team(c));
		gdri_error("%s: given up because of PE %d: %s", what, gdri_fault_peer(word), gdr_strerror(t->err));
		return t->err;
	}
	if (how == 2 && gdri_blame_notice(gdri_host_dev(st), pe) >= 0)
		culprit = gdri_blame_notice(gdri_host_dev(st), pe);
	gather_say(st, what, pe, culprit, ret);
	t->err = ret; /* the members are out of step */
	if (st->cuda)
		gather_store(st, &st->teams->gpu[t - st->teams->list].err, &t->err, sizeof(t->err));
	else if (gdri_broken_mark(c->dev, gdri_coll_team(c), c->op, ret, culprit, how == 1))
		gdri_tell_each(c->dev, gdri_coll_team(c));
	return ret;
}

/* A member that takes no part any more; -1: none. What is sent to it would never be complete. */
static int gather_absent(const struct gdri_state *st, const struct gdri_team *t)
{
	for (int i = 0; i < t->n; i++) {
		if (i != t->me && gdri_join_finalizes(st, gdri_team_pe(t, i)))
			return i;
	}
	return -1;
}

int gdri_team_gather(struct gdri_state *st, gdr_team_t team, const char *what,
		     const uint64_t mine[3], uint64_t (*all)[3])
{
	struct gdri_team *t = &st->teams->list[team];
	struct gdri_coll c = {.dev = st->dev, .team = t, .scope = GDRI_THREAD, .op = GDRI_HOST_CALL};
	uint64_t seq = ++st->teams->notes[team], v[3];
	uint64_t deadline = gdri_deadline_ns(st->opt.timeout_ms);
	int absent = gather_absent(st, t), i, from, ret = t->err; /* before the look at what it told: acquires */

	gdri_call_begin(st, what);
	if (!ret && !st->cuda)
		ret = t->err = gdri_broken(st->dev, team, GDRI_HOST_CALL);
	if (ret) {
		gdri_error("%s: an earlier call on the team failed: %s", what, gdr_strerror(ret));
		return ret;
	}
	if (absent >= 0)
		return gather_failed(st, &c, what, absent, -GDR_EPEERLOST);
	/* As in gdri_host_barrier: what comes before on any PE is behind this for ThreadSanitizer. */
	if (!st->cuda)
		gdri_hd_release(st->heap->base);
	gdri_fence_sys(); /* the stores of all threads that this one speaks for; pairs as in gather_hear */
	for (i = 1; i < t->n; i++) {
		ret = gather_tell(st, &c, (t->me + i) % t->n, mine, seq);
		if (ret)
			return gather_failed(st, &c, what, (t->me + i) % t->n, ret);
	}
	for (i = from = 0; i < t->n; from = ++i) {
		memcpy(v, mine, sizeof(v));
		if (i != t->me) {
			ret = st->cuda ? hear_cuda(st, &c, &from, seq, deadline) : gather_hear(st, &c, &from, seq);
			if (!ret)
				ret = gather_take(st, &c, i, seq, v);
		}
		if (ret)
			return gather_failed(st, &c, what, from, ret);
		if (all)
			memcpy(all[i], v, sizeof(v));
	}
	if (!st->cuda)
		gdri_hd_acquire(st->heap->base);
	return 0;
}
