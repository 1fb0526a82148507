// SPDX-License-Identifier: BSD-3-Clause
/* A team of PEs that know of each other nothing but an id: each shows a record in its heap and looks at those of all
 * PEs, until it has seen the id as often as the team has members. No other PE takes part. Three steps, each over when
 * all have come to it: who is there, who maps whom, who has the team's record; a sync of the new team ends it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/device.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/mem/heap.h"
#include "runtime/path/hostq.h"
#include "runtime/team/team.h"

struct gdri_join {
	uint64_t id;   /* written last: the others hold for it; 0: none */
	uint64_t step; /* 1 to 3 | status << 8 | mapped << 16 | own number << 32: one store */
	uint64_t hash, free;
};
GDR_STATIC_ASSERT(2 * sizeof(struct gdri_join) <= GDRI_TEAM_JOIN_BYTES, "own, and the latest one read");

enum { COME = 1, KNOWN = 2, READY = 3 };
#define STEP(r) ((r)->step & 0xff)
#define STATUS(r) (-(int)((r)->step >> 8 & 0xff))
#define MAPPED(r) ((r)->step >> 16 & 1)
#define NUMBER(r) ((int)((r)->step >> 32))

struct joining {
	struct gdri_state *st;
	const struct gdri_team_plan *p;
	struct gdri_join mine;
	int *pes; /* [n], -1: not seen yet */
	uint64_t deadline, free_map;
	int behind; /* a member that was not at the step at the last look */
	int gone, lost; /* PEs that cannot come any more, at the last look, and one of them */
	bool mapped;
};

static struct gdri_join *join_record(const struct gdri_state *st)
{
	return (struct gdri_join *)(void *)(st->heap->base + st->teams->join);
}

/* ---- own record, and others' ---- */

static int show_word(struct gdri_state *st, uint64_t *at, uint64_t value)
{
	if (st->cuda)
		return gdri_cuda_poke(st->cuda, at, &value, sizeof(value), (int)st->opt.timeout_ms);
	/* release: pairs with the fence of join_look() between its two reads; a NIC reads what is visible */
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
	return 0;
}

static int show_step(struct joining *j, int step, int status, bool mapped, int me)
{
	j->mine.step = (uint64_t)step | (uint64_t)(-status & 0xff) << 8 | (uint64_t)mapped << 16 |
		       (uint64_t)(uint32_t)me << 32;
	return show_word(j->st, &join_record(j->st)->step, j->mine.step);
}

/* The first step's, with all that it brings. */
static int show_all(struct joining *j, int status, int me)
{
	struct gdri_join *r = join_record(j->st);
	int ret = show_word(j->st, &r->id, 0); /* that of an earlier team */

	ret = ret ? ret : show_step(j, COME, status, false, me);
	ret = ret ? ret : show_word(j->st, &r->hash, j->mine.hash);
	ret = ret ? ret : show_word(j->st, &r->free, j->mine.free);
	return ret ? ret : show_word(j->st, &r->id, j->mine.id);
}

static int read_once(struct gdri_state *st, int pe, struct gdri_join *out)
{
	struct gdri_join *r = join_record(st);
	uint8_t *base = st->peers[pe].base;
	int ret = 0;

	if (st->cuda)
		return base ? gdri_cuda_peek(st->cuda, out, base + st->teams->join, sizeof(*out),
					     (int)st->opt.timeout_ms)
			    : gdri_hostq_get(st, out, st->teams->join, sizeof(*out), pe);
	if (!base) { /* into memory that the NIC knows */
		ret = gdr_get(r + 1, r, sizeof(*out), pe);
		base = st->heap->base + sizeof(*out);
	}
	memcpy(out, base + st->teams->join, sizeof(*out));
	return ret;
}

static bool join_pe_lost(const struct joining *j, int pe)
{
	/* relaxed: nothing else is read through the flag */
	return __atomic_load_n(&j->st->peers[pe].lost, __ATOMIC_RELAXED);
}

/* Whether a read of pe's record failed because the PE is lost. */
static bool join_is_gone(const struct joining *j, int pe, int status)
{
	return status == -GDR_EPEERLOST || gdri_qp_lost_peer(status) || (status && join_pe_lost(j, pe));
}

/* What is read beside the id may be older than that: read again, it is not. 1: the PE is in the team. */
static int join_look(struct joining *j, int pe, struct gdri_join *out)
{
	int ret = read_once(j->st, pe, out);

	if (!ret && out->id == j->mine.id) {
		gdri_fence_sys(); /* pairs with the release in show_word */
		ret = read_once(j->st, pe, out);
	}
	if (!ret)
		return out->id == j->mine.id;
	if (join_is_gone(j, pe, ret)) /* said when it was lost */
		return ret;
	gdri_error("%s: whether PE %d is in the team with id 0x%llx cannot be read there: %s", j->p->what, pe,
		   (unsigned long long)j->mine.id, gdr_strerror(ret));
	return ret;
}

/* ---- a step ---- */

static int join_failed(const struct joining *j, int pe, int status)
{
	gdri_error("%s: PE %d, a member of the team with id 0x%llx, failed: %s; its own message says of what; join "
		   "with another id", j->p->what, pe, (unsigned long long)j->mine.id, gdr_strerror(status));
	return status;
}

/* The first look at a member. */
static int join_enter(struct joining *j, int pe, const struct gdri_join *r)
{
	int i = NUMBER(r);

	if (STATUS(r))
		return join_failed(j, pe, STATUS(r));
	if (r->hash != j->mine.hash)
		return gdri_fail(-GDR_EMISMATCH, "%s: PE %d makes a different call with this id", j->p->what, pe);
	if (i < 0 || i >= j->p->n || (j->pes[i] >= 0 && j->pes[i] != pe))
		return gdri_fail(-GDR_EINVAL, "%s: PE %d says that it is number %d, which %s", j->p->what, pe, i,
				 i < 0 || i >= j->p->n ? "there is not" : "another one is");
	j->pes[i] = pe;
	j->free_map &= r->free;
	return 1;
}

/* Who has come so far; < 0: an error. A PE that cannot be read because it is lost need not be a member. */
static int join_count(struct joining *j)
{
	struct gdri_join r;
	int pe, ret, n = 0;

	j->gone = 0;
	for (pe = 0; pe < j->st->n_pes; pe++) {
		ret = join_look(j, pe, &r);
		if (ret < 0 ? join_is_gone(j, pe, ret) : !ret && join_pe_lost(j, pe)) {
			j->gone++;
			j->lost = pe;
			continue;
		}
		if (ret > 0)
			ret = join_enter(j, pe, &r);
		if (ret < 0)
			return ret;
		n += ret;
	}
	return n;
}

/* Members that have come to the step; < 0: an error. */
static int count_at(struct joining *j, uint64_t step)
{
	struct gdri_join r;
	int i, ret, n = 0;

	j->mapped = true;
	for (i = 0; i < j->p->n; i++) {
		ret = join_look(j, j->pes[i], &r);
		if (ret < 0)
			return ret;
		if (ret && STATUS(&r))
			return join_failed(j, j->pes[i], STATUS(&r));
		if (!ret || STEP(&r) < step) {
			j->behind = j->pes[i];
			continue;
		}
		j->mapped &= MAPPED(&r);
		n++;
	}
	return n;
}

static int join_late(const struct joining *j, int step, int n)
{
	char perhaps[48] = "";
	int i = 0;

	if (j->gone)
		snprintf(perhaps, sizeof(perhaps), "; PE %d, which is lost, may be it", j->lost);
	while (step == COME && i < j->p->n - 1 && j->pes[i] >= 0)
		i++;
	if (step == COME)
		gdri_error("%s: of %d PEs with id 0x%llx %d came within GDR_TIMEOUT; nobody came as number %d%s",
			   j->p->what, j->p->n, (unsigned long long)j->mine.id, n, i, perhaps);
	else
		gdri_error("%s: of %d PEs with id 0x%llx, which all came, %d went on within GDR_TIMEOUT; PE %d did not",
			   j->p->what, j->p->n, (unsigned long long)j->mine.id, n, j->behind);
	return -GDR_ETIMEOUT;
}

/* A lost PE without which the team cannot be; -1: none. A member that has come, or, where fewer PEs live than the team
 * has members, one that has not: else nobody knows whether it is one, and the limit ends that. */
static int join_lost(const struct joining *j)
{
	for (int i = 0; i < j->p->n; i++) {
		if (j->pes[i] >= 0 && join_pe_lost(j, j->pes[i]))
			return j->pes[i];
	}
	return j->st->n_pes - j->gone < j->p->n ? j->lost : -1;
}

static int join_without(const struct joining *j, int n, int pe)
{
	gdri_error("%s: with %d of %d members of the team with id 0x%llx there: PE %d is lost, without which the team "
		   "cannot be", j->p->what, n, j->p->n, (unsigned long long)j->mine.id, pe);
	return -GDR_EPEERLOST;
}

/* Something else ended the wait, with a message of its own. */
static int join_stopped(const struct joining *j, int n, int status)
{
	gdri_error("%s: with %d of %d members of the team with id 0x%llx there: %s", j->p->what, n, j->p->n,
		   (unsigned long long)j->mine.id, gdr_strerror(status));
	return status;
}

static int join_wait_for(struct joining *j, int step)
{
	bool aborted, late;
	int n, lost;

	for (uint32_t round = 0;; round++) {
		/* before the look, which may have been long ago. relaxed: the flag carries nothing */
		aborted = __atomic_load_n(j->st->abort_word, __ATOMIC_RELAXED);
		late = gdri_now_ns() > j->deadline;
		n = step == COME ? join_count(j) : count_at(j, (uint64_t)step);
		if (n < 0 || n == j->p->n)
			return n < 0 ? n : 0;
		lost = join_lost(j);
		if (lost >= 0)
			return join_without(j, n, lost);
		if (aborted)
			return join_stopped(j, n, -GDR_EABORTED);
		if (late)
			return join_late(j, step, n);
		gdr_pause(round);
	}
}

/* ---- the call ---- */

/* Shows the own word and waits for all. Who cannot go on, for what reason ever, says so in it: the others hear it at
 * once, and not by their time limit. */
static int join_take(struct joining *j, int step, int status, bool mapped, int me)
{
	int ret = step == COME ? show_all(j, status, me) : show_step(j, step, status, mapped, me);

	if (status)
		return status;
	ret = ret ? ret : join_wait_for(j, step);
	if (ret)
		show_step(j, step, ret, mapped, me);
	return ret;
}

static int join_make(struct joining *j, int me, gdr_team_t *out)
{
	const uint64_t nothing[3] = {0, 0, 0};
	struct gdri_state *st = j->st;
	gdr_team_t id;
	int ret = join_take(j, COME, j->p->status, false, me), status;

	if (ret)
		return ret;
	if (!j->free_map) {
		gdri_error("%s: all teams are in use on some PE; raise GDR_TEAMS", j->p->what);
		return -GDR_ENOMEM; /* on all */
	}
	id = (gdr_team_t)gdri_ffs_u64(j->free_map);
	ret = join_take(j, KNOWN, 0, gdri_team_maps(st, j->p->n, j->pes), me);
	if (ret)
		return ret;
	status = gdri_team_install(st, id, j->p->n, j->pes, j->mapped);
	ret = join_take(j, READY, status, MAPPED(&j->mine), me);
	if (!ret) /* behind it nobody looks at this PE's record any more */
		ret = gdri_team_gather(st, id, j->p->what, nothing, NULL);
	if (!ret)
		ret = show_word(st, &join_record(st)->id, 0);
	if (ret && !status)
		gdri_team_clear(st, id);
	if (ret)
		return ret;
	st->teams->config[id] = j->p->config;
	*out = id;
	return 0;
}

int gdri_team_join(struct gdri_state *st, uint64_t id, int me, const struct gdri_team_plan *p, gdr_team_t *out)
{
	struct joining j = {
		.st = st,
		.p = p,
		.mine = {.id = id, .hash = p->hash, .free = gdri_team_free_map(st)},
		.deadline = gdri_deadline_ns((int)st->opt.timeout_ms),
		.free_map = ~0ull,
	};
	int ret;

	j.pes = calloc((size_t)(p->n > 0 ? p->n : 1), sizeof(*j.pes));
	if (!j.pes) {
		gdri_error("%s: out of memory", p->what);
		show_all(&j, -GDR_ENOMEM, me); /* or the others would wait for it */
		return -GDR_ENOMEM;
	}
	for (int i = 0; i < p->n; i++)
		j.pes[i] = -1;
	ret = join_make(&j, me, out);
	free(j.pes);
	return ret;
}
