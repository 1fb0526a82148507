// SPDX-License-Identifier: BSD-3-Clause
/* Teams made of a parent, whose members agree by notes (team_gather.c), and unmade. */

#include <stdio.h>
#include <stdlib.h>

#include <gdr/device.h>

#include "runtime/core/log.h"
#include "runtime/core/host_barrier.h"
#include "runtime/core/state.h"
#include "runtime/team/team.h"

/* What the members of the parent tell each other first. */
enum { HASH, FREE, STATE };
#define MAPPED 0x100u /* beside the status: this PE maps all PEs of the team to be; above it struct gdri_team_told: */
#define KIND_AT 10
#define ARG_AT(i) (16 + 16 * (i))

static int first_status(const struct gdri_team *t, const struct gdri_team_plan *p,
			uint64_t (*all)[3])
{
	int status;

	for (int i = 0; i < t->n; i++) {
		status = -(int)(all[i][STATE] & 0xff); /* a peer's to write: some error, in any case */
		if (!status)
			continue;
		if (i != t->me)
			gdri_error("%s: PE %d failed: %s", p->what, gdri_team_pe(t, i),
				   gdr_strerror(status));
		return status;
	}
	return 0;
}

static uint64_t told_word(const struct gdri_team_told *told)
{
	uint64_t word = (uint64_t)told->kind << KIND_AT;

	for (int i = 0; i < 3; i++)
		word |= (uint64_t)(uint16_t)told->args[i] << ARG_AT(i);
	return word;
}

/* What two members' words say that is not the same. */
static void add_difference(char *text, size_t room, uint64_t a, uint64_t b)
{
	static const char *const calls[] = {"another", "gdr_team_split_strided", "gdr_team_create",
					    "gdr_team_split_2d"};
	static const char *const args[][3] = {[GDRI_TEAM_STRIDED] = {"start", "stride", "size"},
					      [GDRI_TEAM_CREATED] = {"n", "", ""},
					      [GDRI_TEAM_2D] = {"xrange", "axis", ""}};
	unsigned one = a >> KIND_AT & 3, other = b >> KIND_AT & 3;

	if (one != other || !one) {
		snprintf(text, room, "%s and %s", calls[one], calls[other]);
		return;
	}
	for (int i = 0; i < 3; i++) {
		int x = (int16_t)(a >> ARG_AT(i)), y = (int16_t)(b >> ARG_AT(i));

		if (x == y)
			continue;
		snprintf(text, room, "%s is %d and %d", args[one][i], x, y);
		return;
	}
	snprintf(text, room, "%s", one == GDRI_TEAM_CREATED ? "other PEs, or another config" : "another config");
}

static int agree_on(const struct gdri_team *t, const struct gdri_team_plan *p, uint64_t (*all)[3],
		    gdr_team_t *id, bool *mapped)
{
	uint64_t free_map = ~0ull;
	char what[100];
	int i, ret = first_status(t, p, all);

	if (ret)
		return ret;
	*mapped = true;
	for (i = 0; i < t->n; i++) {
		if (all[i][HASH] != all[0][HASH]) {
			add_difference(what, sizeof(what), all[0][STATE], all[i][STATE]);
			return gdri_fail(-GDR_EMISMATCH,
					 "%s: PE %d and PE %d make different calls (%s): all members of a team make "
					 "the same",
					 p->what, gdri_team_pe(t, 0), gdri_team_pe(t, i), what);
		}
		free_map &= all[i][FREE];
	}
	for (i = 0; i < p->n; i++)
		*mapped &= (all[gdri_team_index(t, p->pes[i])][STATE] & MAPPED) != 0;
	if (!free_map)
		return gdri_fail(-GDR_ENOMEM, "%s: all teams are in use on some PE; destroy some, or raise GDR_TEAMS",
				 p->what);
	*id = (gdr_team_t)gdri_ffs_u64(free_map);
	return 0;
}

static uint64_t state_word(int status)
{
	return (uint64_t)-status & 0xff;
}

int gdri_team_make(struct gdri_state *st, gdr_team_t parent, const struct gdri_team_plan *p,
		   gdr_team_t *out)
{
	struct gdri_team *t = gdri_team_find(st, parent);
	uint64_t mine[3] = {p->hash, gdri_team_free_map(st), state_word(p->status) | told_word(&p->told)}, (*all)[3];
	int i, in = 0, ret, status;
	bool mapped = false;
	gdr_team_t id;

	all = calloc((size_t)t->n, sizeof(*all));
	if (!all && !p->status) {
		gdri_error("%s: out of memory", p->what);
		mine[STATE] = GDR_ENOMEM;
	}
	if (!p->status && gdri_team_maps(st, p->n, p->pes))
		mine[STATE] |= MAPPED;
	for (i = 0; i < p->n && !p->status; i++)
		in |= p->pes[i] == st->pe;
	ret = gdri_team_gather(st, parent, p->what, mine, all);
	if (!all)
		ret = -GDR_ENOMEM;
	if (!ret)
		ret = agree_on(t, p, all, &id, &mapped);
	if (ret)
		goto out;
	status = in ? gdri_team_install(st, id, p->n, p->pes, mapped) : 0;
	mine[STATE] = state_word(status);
	ret = gdri_team_gather(st, parent, p->what, mine, all);
	if (!ret)
		ret = first_status(t, p, all);
	if (ret && in)
		gdri_team_clear(st, id);
	if (!ret && in) {
		st->teams->config[id] = p->config;
		*out = id;
	}
out:
	free(all);
	return ret;
}

/* All messages to this PE are there when all have come: a member's own ones are before its note, on
 * one queue. What this PE told when it gave the team up has arrived before its number can be another team's. */
int gdri_team_unmake(struct gdri_state *st, gdr_team_t team)
{
	struct gdri_team *t = gdri_team_find(st, team);
	uint64_t mine[3] = {0, 0, 0}, (*all)[3] = calloc((size_t)t->n, sizeof(*all));
	int ret;

	if (!all)
		gdri_error("gdr_team_destroy: out of memory");
	ret = gdri_team_gather(st, team, "gdr_team_destroy", mine, all);
	if (ret)
		gdri_host_barrier_settle(st, GDRI_SETTLE_MS);
	if (!all)
		ret = -GDR_ENOMEM;
	free(all);
	gdri_team_clear(st, team);
	return ret;
}
