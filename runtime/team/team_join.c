// SPDX-License-Identifier: BSD-3-Clause
/* A team of PEs that know of each other nothing but an id: each tells all PEs of a record of its own (join_record.h)
 * and waits until it has seen the id as often as the team has members. No other PE takes part. Three steps, each over
 * when all have come to it: who is there, who maps whom, who has the team's record; a sync of the new team ends it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/device.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/team/join_record.h"
#include "runtime/team/team.h"

enum { COME = 1, KNOWN = 2, READY = 3 };
#define STEP(r) ((r)->step & (GDRI_JOIN_GONE - 1))
#define MAPPED(r) ((r)->step >> 16 & 1)
#define NUMBER(r) ((int)((r)->step >> 19 & 0x1fff))
#define LIST(r) ((uint32_t)((r)->step >> 32))

struct joining {
	struct gdri_state *st;
	const struct gdri_team_plan *p;
	struct gdri_join mine;
	struct gdri_join_told *told;
	int *pes; /* [n], -1: not seen yet */
	uint64_t deadline, free_map;
	int behind; /* a member that was not at the step at the last look */
	int gone;   /* PEs that cannot come any more, at the last look */
	uint32_t list; /* hash of pes, once all have come; before that 0 */
	bool mapped;
};

/* A peer's word: of what is no status it failed all the same. */
static int join_status(const struct gdri_join *r)
{
	int status = -(int)(r->step >> 8 & 0xff);

	return !status || gdri_fault_known(status) ? status : -GDR_EPEERFAILED;
}

/* Tells from now on that this PE is at the step, or why it goes no further. */
static void join_show(struct joining *j, int step, int status, bool mapped, int me)
{
	j->mine.step = (uint64_t)step | (uint64_t)(-status & 0xff) << 8 | (uint64_t)mapped << 16 |
		       (uint64_t)(me & 0x1fff) << 19 | (uint64_t)j->list << 32;
	gdri_join_tell(j->st, &j->mine, j->told);
}

/* Whether the connection to pe broke, by any of the queues that were used. */
static bool join_queues_broke(struct gdri_dev *dev, int pe)
{
	struct gdri_qp *qp = &dev->qps[(uint32_t)pe * dev->n_slots];

	for (uint32_t i = 0; i < dev->n_slots; i++, qp++) {
		if (!gdri_qp_is_used(dev, qp))
			continue;
		gdri_poll(dev, qp);
		if (gdri_qp_broke(qp))
			return true;
	}
	return false;
}

/* Lost, or its queues are, or it has called gdr_finalize: nothing comes from there any more. */
static bool join_pe_gone(const struct joining *j, int pe)
{
	struct gdri_dev *dev = gdri_host_dev(j->st);

	/* relaxed: nothing else is read through the flag */
	if (__atomic_load_n(&j->st->peers[pe].lost, __ATOMIC_RELAXED))
		return true;
	if (gdri_join_finalizes(j->st, pe))
		return true;
	return pe != j->st->pe && !dev->peers[pe].base && join_queues_broke(dev, pe);
}

static bool join_is_here(const struct joining *j, int pe, struct gdri_join *r)
{
	return gdri_join_look(j->st, pe, r) && r->id == j->mine.id;
}

/* ---- a step ---- */

static int join_failed(const struct joining *j, int pe, int status)
{
	gdri_error("%s: PE %d, a member of the team with id 0x%llx, failed: %s; its own message says of what; join "
		   "with another id", j->p->what, pe, (unsigned long long)j->mine.id, gdr_strerror(status));
	return status;
}

static const char one_call[] =
	"an id is for one call, and in it each number for one PE; gdr_team_new_id makes another id";

/* A member that came is to have seen the same PEs: what comes with the id a second time, beside the first or behind it,
 * may have been seen by one of them alone. */
static int join_other_list(const struct joining *j, int pe)
{
	return gdri_fail(-GDR_EINVAL, "%s: id 0x%llx is used twice at the same time: PE %d makes a team with it, "
			 "and of other PEs than have come here; %s", j->p->what,
			 (unsigned long long)j->mine.id, pe, one_call);
}

/* The first look at a member. */
static int join_enter(struct joining *j, int pe, const struct gdri_join *r)
{
	int i = NUMBER(r);

	if (join_status(r))
		return join_failed(j, pe, join_status(r));
	if (r->hash != j->mine.hash)
		return gdri_fail(-GDR_EMISMATCH, "%s: PE %d calls with id 0x%llx and another n (here %d), config or "
				 "config_mask", j->p->what, pe, (unsigned long long)j->mine.id, j->p->n);
	if (i < 0 || i >= j->p->n)
		return gdri_fail(-GDR_EINVAL, "%s: PE %d says that it is number %d of %d", j->p->what, pe, i, j->p->n);
	if (j->pes[i] >= 0 && j->pes[i] != pe)
		return gdri_fail(-GDR_EINVAL, "%s: PE %d and PE %d both come with id 0x%llx as number %d; %s",
				 j->p->what, j->pes[i], pe, (unsigned long long)j->mine.id, i, one_call);
	j->pes[i] = pe;
	j->free_map &= r->free;
	return 1;
}

/* Who has come so far; < 0: an error. */
static int join_count(struct joining *j)
{
	struct gdri_join r;
	int ret, n = 0;

	j->gone = 0;
	for (int pe = 0; pe < j->st->n_pes; pe++) {
		bool gone = join_pe_gone(j, pe); /* before the look: it may have come, failed and gone */

		if (join_is_here(j, pe, &r)) {
			ret = join_enter(j, pe, &r);
			if (ret < 0)
				return ret;
			n++;
		} else {
			j->gone += gone;
		}
	}
	return n;
}

/* Members that have come to the step; < 0: an error. */
static int count_at(struct joining *j, uint64_t step)
{
	struct gdri_join r;
	int n = 0;

	j->mapped = true;
	for (int i = 0; i < j->p->n; i++) {
		bool here = join_is_here(j, j->pes[i], &r);

		if (here && join_status(&r))
			return join_failed(j, j->pes[i], join_status(&r));
		if (here && STEP(&r) >= KNOWN && LIST(&r) != j->list)
			return join_other_list(j, j->pes[i]);
		if (!here || STEP(&r) < step) {
			j->behind = j->pes[i];
			continue;
		}
		j->mapped &= MAPPED(&r);
		n++;
	}
	return n;
}

#define NAMED 8 /* PEs in a message, at most */

static bool join_came(const struct joining *j, int pe)
{
	for (int i = 0; i < j->p->n; i++) {
		if (j->pes[i] == pe)
			return true;
	}
	return false;
}

/* The PEs that did not come, with what is known of each; only_gone: those alone that cannot. */
static const char *join_absent(const struct joining *j, bool only_gone, char *text, size_t room)
{
	struct gdri_join r;
	int n = 0;

	*text = 0;
	for (int pe = 0; pe < j->st->n_pes; pe++) {
		size_t at = strlen(text);
		bool shows = gdri_join_look(j->st, pe, &r), gone = join_pe_gone(j, pe);

		if (join_came(j, pe) || (only_gone && !gone))
			continue;
		if (n++ == NAMED) {
			snprintf(text + at, room - at, ", ...");
			break;
		}
		at += (size_t)snprintf(text + at, room - at, "%sPE %d", at ? ", " : "", pe);
		if (gone)
			snprintf(text + at, room - at, " (%s)",
				 gdri_join_finalizes(j->st, pe) ? "has called gdr_finalize" : "lost");
		else if (j->told[pe].status)
			snprintf(text + at, room - at, " (cannot be told: %s)", gdr_strerror(j->told[pe].status));
		else if (shows)
			snprintf(text + at, room - at, " (in a call with id 0x%llx)", (unsigned long long)r.id);
	}
	return text;
}

/* Why the numbers are not all there: nobody came as one, or who did has left the call for another one. */
static const char *join_missing(const struct joining *j, char *text, size_t room)
{
	struct gdri_join r;
	int n = 0;

	*text = 0;
	for (int i = 0; i < j->p->n; i++) {
		size_t at = strlen(text);

		if (j->pes[i] >= 0 && join_is_here(j, j->pes[i], &r))
			continue;
		if (n++ == NAMED) {
			snprintf(text + at, room - at, ", ...");
			break;
		}
		if (j->pes[i] >= 0)
			snprintf(text + at, room - at, "%sPE %d came as number %d and has left this call",
				 at ? ", " : "", j->pes[i], i);
		else
			snprintf(text + at, room - at, "%snobody came as number %d", at ? ", " : "", i);
	}
	return text;
}

static int join_late(const struct joining *j, int step, int n)
{
	char absent[512], missing[512];

	join_absent(j, false, absent, sizeof(absent));
	if (step != COME)
		gdri_error("%s: of %d PEs with id 0x%llx, which all came, %d went on within GDR_TIMEOUT; PE %d did not",
			   j->p->what, j->p->n, (unsigned long long)j->mine.id, n, j->behind);
	else
		gdri_error("%s: of %d PEs with id 0x%llx %d are there at the end of GDR_TIMEOUT; %s%s%s",
			   j->p->what, j->p->n, (unsigned long long)j->mine.id, n,
			   join_missing(j, missing, sizeof(missing)), *absent ? "; not there: " : "", absent);
	return -GDR_ETIMEOUT;
}

/* Whether a PE is gone without which the team cannot be: a member that has come, *pe, or, where fewer PEs can come
 * than the team has members, one of those that have not, -1. Else nobody knows whether it is one, and the limit ends
 * that. */
static bool join_ended(const struct joining *j, int *pe)
{
	for (int i = 0; i < j->p->n; i++) {
		*pe = j->pes[i];
		if (*pe >= 0 && join_pe_gone(j, *pe))
			return true;
	}
	*pe = -1;
	return j->st->n_pes - j->gone < j->p->n;
}

/* A member may have failed since it was looked at, and gone then: its status says why. Where its next join took that
 * from here, those that cannot come are named beside it: it may have failed because of them. */
static int join_without(const struct joining *j, int n, int pe)
{
	char text[512], member[96] = "";
	struct gdri_join r;

	if (pe >= 0 && join_is_here(j, pe, &r) && join_status(&r))
		return join_failed(j, pe, join_status(&r));
	join_absent(j, true, text, sizeof(text));
	if (pe >= 0)
		snprintf(member, sizeof(member), "PE %d %s, without which the team cannot be%s", pe,
			 gdri_join_finalizes(j->st, pe) ? "has called gdr_finalize" : "is lost",
			 *text ? "; nor can come: " : "");
	gdri_error("%s: with %d of %d members of the team with id 0x%llx there: %s%s%s", j->p->what, n, j->p->n,
		   (unsigned long long)j->mine.id, member, text, pe < 0 ? "; too few others can come" : "");
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
		gdri_join_tell(j->st, &j->mine, j->told); /* what had to wait for room */
		n = step == COME ? join_count(j) : count_at(j, (uint64_t)step);
		if (n < 0 || n == j->p->n)
			return n < 0 ? n : 0;
		if (join_ended(j, &lost))
			return join_without(j, n, lost);
		if (aborted)
			return join_stopped(j, n, -GDR_EABORTED);
		if (late)
			return join_late(j, step, n);
		gdr_pause(round);
	}
}

/* ---- the call ---- */

/* Tells of the own step and waits for all. Who cannot go on, for what reason ever, says so: the others hear it at
 * once, and not by their time limit. */
static int join_take(struct joining *j, int step, int status, bool mapped, int me)
{
	int ret;

	join_show(j, step, status, mapped, me);
	if (status)
		return status;
	ret = join_wait_for(j, step);
	if (ret)
		join_show(j, step, ret, mapped, me);
	return ret;
}

/* FNV-1a, by members in their order. */
static uint32_t join_hash_list(const struct joining *j)
{
	uint32_t hash = 0x811c9dc5;

	for (int i = 0; i < j->p->n; i++)
		hash = (hash ^ (uint32_t)j->pes[i]) * 0x01000193u;
	return hash;
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
		gdri_error("%s: all teams are in use on some PE; destroy some, or raise GDR_TEAMS", j->p->what);
		return -GDR_ENOMEM; /* on all */
	}
	id = (gdr_team_t)gdri_ffs_u64(j->free_map);
	j->list = join_hash_list(j);
	ret = join_take(j, KNOWN, 0, gdri_team_maps(st, j->p->n, j->pes), me);
	if (ret)
		return ret;
	status = gdri_team_install(st, id, j->p->n, j->pes, j->mapped);
	ret = join_take(j, READY, status, MAPPED(&j->mine), me);
	if (!ret) /* behind it nobody looks at this PE's record any more */
		ret = gdri_team_gather(st, id, j->p->what, nothing, NULL);
	if (!ret)
		gdri_join_hide(st);
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
	j.told = calloc((size_t)st->n_pes, sizeof(*j.told));
	for (int i = 0; i < p->n && j.pes; i++)
		j.pes[i] = -1;
	if (j.pes && j.told) {
		ret = join_make(&j, me, out);
	} else {
		gdri_error("%s: out of memory", p->what);
		ret = -GDR_ENOMEM;
		join_show(&j, COME, ret, false, me); /* or the others would wait for it */
	}
	free(j.told);
	free(j.pes);
	return ret;
}
