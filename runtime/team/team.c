// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/team/team.h"

#include <stdlib.h>
#include <string.h>

#include <gdr/device.h>

#include "runtime/core/agree.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/mem/heap.h"
#include "runtime/team/coll.h"
#include "runtime/team/join_record.h"

/* The predefined teams and the first ones made: their LL epochs are long, and they have areas for LL by many CTAs.
 * Where there is less room than for areas of CTAS_LEAST in all of them, fewer teams have such areas. */
#define FIRST_TEAMS 8u
#define CTAS_TEAMS_LEAST 4u
#define CTAS_LEAST 2048u
#define LL_SLOTS 16 /* data of an LL epoch, in messages */

static uint64_t chan_bytes(uint64_t n_pes) /* channels, notes */
{
	return n_pes * (sizeof(struct gdri_chan) + 2 * sizeof(struct gdri_note));
}

static uint64_t match_bytes(uint64_t n_pes)
{
	return n_pes * 2 * sizeof(struct gdri_match);
}

static uint32_t ll_size(const struct gdri_teams *ts, uint32_t id)
{
	return id < FIRST_TEAMS ? ts->ll_size : ts->later_ll_size;
}

/* And what the checked build tells, the grid's words, LL areas. */
static uint64_t head_bytes(const struct gdri_teams *ts, uint64_t n_pes, uint32_t id)
{
	return chan_bytes(n_pes) + match_bytes(n_pes) + ts->grid_blocks * GDRI_FLAT_MAX * sizeof(uint64_t) +
	       n_pes * 2 * 2 * ll_size(ts, id) + (ts->ll_size ? (uint64_t)GDRI_BCAST_DEPTH * 2 * ts->slot_size : 0);
}

static uint64_t ctas_bytes(const struct gdri_teams *ts, uint64_t n_pes) /* of one of the first teams */
{
	return ts->ctas_blocks * (GDRI_CTAS_HEAD * sizeof(uint64_t) + n_pes * 2 * 2 * ts->ctas_size);
}

static uint64_t team_bytes(const struct gdri_teams *ts, uint64_t n_pes, uint32_t id)
{
	uint64_t bytes = head_bytes(ts, n_pes, id) + n_pes * GDRI_CHAN_DEPTH * ts->slot_size;

	return (bytes + GDRI_LINE - 1) / GDRI_LINE * GDRI_LINE;
}

/* Of all teams below this one. */
static uint64_t teams_bytes(const struct gdri_teams *ts, uint64_t n_pes, uint32_t id)
{
	uint32_t first = id < FIRST_TEAMS ? id : FIRST_TEAMS;

	return first * team_bytes(ts, n_pes, 0) + (id - first) * team_bytes(ts, n_pes, FIRST_TEAMS);
}

/* Areas of LL by many CTAs for so many teams: as long as there is room for, `least` at least; false: there is not. */
static bool fit_ctas(struct gdri_teams *ts, uint64_t n_pes, uint64_t room, uint32_t teams, uint32_t least)
{
	ts->ctas_teams = teams;
	ts->ctas_size = ts->slot_size;
	while (teams * ctas_bytes(ts, n_pes) > room && ts->ctas_size / 2 >= least)
		ts->ctas_size /= 2;
	return teams * ctas_bytes(ts, n_pes) <= room;
}

/* What is left of that eighth, and the default needs. On the host device few blocks work on a call. */
static void plan_ctas(struct gdri_state *st, uint64_t room)
{
	struct gdri_teams *ts = st->teams;
	uint64_t n_pes = (uint64_t)st->n_pes;

	ts->ctas_blocks = st->cuda || ts->grid_blocks < HOST_BLOCKS ? ts->grid_blocks : HOST_BLOCKS;
	if (n_pes > GDRI_FLAT_MAX || (!fit_ctas(ts, n_pes, room, FIRST_TEAMS, CTAS_LEAST) &&
				      !fit_ctas(ts, n_pes, room, CTAS_TEAMS_LEAST, GDRI_CHAN_MIN)))
		ts->ctas_teams = ts->ctas_size = 0;
	ts->ctas_stride = ts->ctas_size ? ctas_bytes(ts, n_pes) : 0;
}

/* LL areas: as long as all teams take no more than a sixteenth of the heap, or epochs have two messages; those of the
 * first teams above all. Where even these are more than an eighth, shorter ones, behind fewer blocks. */
static void plan_ll(struct gdri_teams *ts, uint64_t n_pes, uint64_t heap_size)
{
	uint32_t least = 2 * ts->slot_size;

	ts->ll_size = ts->later_ll_size = n_pes <= GDRI_FLAT_MAX ? LL_SLOTS * ts->slot_size : 0;
	while (ts->later_ll_size > least && teams_bytes(ts, n_pes, ts->n) > heap_size / 16)
		ts->later_ll_size /= 2;
	while (ts->ll_size > least && teams_bytes(ts, n_pes, ts->n) > heap_size / 16)
		ts->ll_size /= 2;
	while (ts->grid_blocks > 1 && teams_bytes(ts, n_pes, ts->n) > heap_size / 8)
		ts->grid_blocks /= 2;
	while (ts->ll_size > GDRI_CHAN_MIN && teams_bytes(ts, n_pes, ts->n) > heap_size / 8)
		ts->ll_size = ts->later_ll_size = ts->ll_size / 2;
}

/* At most an eighth of the heap: shorter parts first, then fewer blocks, smaller messages, fewer teams. */
int gdri_teams_plan(struct gdri_state *st, uint64_t heap_size)
{
	struct gdri_teams *ts = st->teams;
	uint64_t n_pes = (uint64_t)st->n_pes, all;

	ts->n = st->opt.teams;
	ts->slot_size = (uint32_t)st->opt.coll_slot;
	ts->grid_blocks = st->opt.coll_blocks;
	plan_ll(ts, n_pes, heap_size);
	while (ts->slot_size > GDRI_CHAN_MIN && teams_bytes(ts, n_pes, ts->n) > heap_size / 8)
		ts->slot_size /= 2;
	while (ts->n > 4 && teams_bytes(ts, n_pes, ts->n) > heap_size / 8)
		ts->n--;
	all = teams_bytes(ts, n_pes, ts->n);
	plan_ctas(st, all < heap_size / 8 ? heap_size / 8 - all : 0);
	all += ts->ctas_teams * ts->ctas_stride;
	ts->join = st->cuda ? GDRI_JOIN_IN_PAGE : GDRI_CTL_SIZE + all;
	all += st->cuda ? 0 : GDRI_JOIN_BYTES(n_pes);
	/* whole control areas: what is behind keeps its alignment */
	ts->bytes = (all + GDRI_CTL_SIZE - 1) / GDRI_CTL_SIZE * GDRI_CTL_SIZE;
	if (ts->bytes > heap_size / 2)
		return -GDR_EINVAL;
	if (ts->n < st->opt.teams || ts->slot_size < st->opt.coll_slot)
		gdri_info("a heap of %llu bytes has room for %u teams, with messages of %u bytes",
			  (unsigned long long)heap_size, ts->n, ts->slot_size);
	return 0;
}

/* Words of the lists of a team: of its PEs, and of gdri_team.levels. */
static size_t list_room(const struct gdri_state *st)
{
	return 5 * (size_t)st->n_pes + 1;
}

int gdri_up_teams(struct gdri_state *st)
{
	struct gdri_teams *ts = st->teams;
	size_t lists = (size_t)ts->n * list_room(st) * sizeof(*ts->lists);
	size_t list = ts->n * sizeof(*ts->list);
	uint8_t *gpu = NULL;

	ts->list = aligned_alloc(GDRI_LINE, list);
	ts->lists = calloc(1, lists);
	ts->config = calloc(ts->n, sizeof(*ts->config));
	ts->notes = calloc(ts->n, sizeof(*ts->notes));
	if (st->cuda)
		gpu = gdri_cuda_alloc_bare(st->cuda, list + lists); /* filled by team_predefine() */
	ts->gpu = (struct gdri_team *)gpu;
	if (!ts->list || !ts->lists || !ts->config || !ts->notes || (st->cuda && !gpu))
		return gdri_fail(-GDR_ENOMEM, "out of memory for %u teams", ts->n);
	memset(ts->list, 0, list);
	st->dev->n_teams = ts->n;
	st->dev->teams = ts->list;
	return 0;
}

void gdri_down_teams(struct gdri_state *st)
{
	struct gdri_teams *ts = st->teams;

	free(ts->list);
	free(ts->lists);
	free(ts->config);
	free(ts->notes);
	if (ts->gpu)
		gdri_cuda_free(st->cuda, ts->gpu);
	*ts = (struct gdri_teams){.bytes = ts->bytes};
}

/* ---- records ---- */

struct gdri_team *gdri_team_find(const struct gdri_state *st, gdr_team_t team)
{
	if (team < 0 || (uint32_t)team >= st->teams->n || !st->teams->list[team].n)
		return NULL;
	return &st->teams->list[team];
}

int gdri_team_member(const struct gdri_team *t, int i)
{
	return gdri_team_pe(t, i);
}

int gdri_team_number(const struct gdri_team *t, int pe)
{
	return gdri_team_index(t, pe);
}

static uint8_t *team_area(const struct gdri_state *st, gdr_team_t id)
{
	return st->heap->base + GDRI_CTL_SIZE + teams_bytes(st->teams, (uint64_t)st->n_pes, (uint32_t)id);
}

static uint8_t *ctas_area(const struct gdri_state *st, gdr_team_t id)
{
	return team_area(st, (gdr_team_t)st->teams->n) + (uint64_t)id * st->teams->ctas_stride;
}

static int16_t *lists_of_gpu(const struct gdri_state *st, gdr_team_t id)
{
	return (int16_t *)(st->teams->gpu + st->teams->n) + (size_t)id * list_room(st);
}

const int16_t *gdri_team_pes_seen(const struct gdri_state *st, gdr_team_t team)
{
	return st->cuda ? lists_of_gpu(st, team) : st->teams->list[team].pes;
}

/* On the GPU everything is as here but for where the lists are. */
static struct gdri_team as_seen(const struct gdri_state *st, gdr_team_t id)
{
	struct gdri_team copy = st->teams->list[id];

	copy.pes = lists_of_gpu(st, id);
	copy.levels = copy.pes + st->n_pes;
	return copy;
}

/* All of them, in one copy. */
static int push_all(struct gdri_state *st)
{
	struct gdri_teams *ts = st->teams;
	size_t list = ts->n * sizeof(*ts->list), lists = ts->n * list_room(st) * sizeof(*ts->lists);
	size_t whole = (list + lists + GDRI_LINE - 1) / GDRI_LINE * GDRI_LINE;
	struct gdri_team *all = st->cuda ? aligned_alloc(GDRI_LINE, whole) : NULL;
	int ret;

	if (!st->cuda)
		return 0;
	if (!all)
		return gdri_fail(-GDR_ENOMEM, "out of memory for %u teams", ts->n);
	for (uint32_t i = 0; i < ts->n; i++)
		all[i] = as_seen(st, (gdr_team_t)i);
	memcpy(all + ts->n, ts->lists, lists);
	ret = gdri_cuda_poke(st->cuda, ts->gpu, all, list + lists, GDRI_COPY_MS);
	free(all);
	return ret;
}

static int team_ctas(struct gdri_state *st, gdr_team_t id)
{
	struct gdri_teams *ts = st->teams;
	struct gdri_team copy;
	int ret;

	if (!st->cuda)
		return 0;
	copy = as_seen(st, id);
	ret = gdri_cuda_poke(st->cuda, copy.pes, ts->list[id].pes, list_room(st) * sizeof(*copy.pes),
			     gdri_cuda_copy_ms(st));
	return ret ? ret : gdri_cuda_poke(st->cuda, ts->gpu + id, &copy, sizeof(copy), gdri_cuda_copy_ms(st));
}

/* Start and stride where the PEs have them. */
static void find_stride(struct gdri_team *t)
{
	int i, stride = t->n > 1 ? t->pes[1] - t->pes[0] : 1;

	t->start = t->pes[0];
	for (i = 2; i < t->n && t->pes[i] - t->pes[i - 1] == stride; i++)
		;
	t->stride = i < t->n ? 0 : stride;
}

/* Who shares memory with whom: nodes in the order of their first members. The same on all members. */
static void find_levels(const struct gdri_state *st, struct gdri_team *t, int16_t *levels)
{
	int16_t *order = levels, *of = order + t->n, *local = of + t->n, *first = local + t->n;
	int i, j, nodes = 0, at = 0;

	t->levels = levels;
	for (i = 0; i < t->n; i++) {
		for (j = 0; st->node[t->pes[j]] != st->node[t->pes[i]]; j++)
			;
		of[i] = j < i ? of[j] : (int16_t)nodes++;
	}
	t->lanes = t->n;
	for (i = 0; i < nodes; i++) {
		first[i] = (int16_t)at;
		for (j = 0; j < t->n; j++) {
			if (of[j] != i)
				continue;
			local[j] = (int16_t)(at - first[i]);
			order[at++] = (int16_t)j;
		}
		t->lanes = t->lanes < at - first[i] ? t->lanes : at - first[i];
		t->most = t->most > at - first[i] ? t->most : at - first[i];
	}
	first[nodes] = (int16_t)at;
	t->node = of[t->me];
	t->local = local[t->me];
	t->nodes = nodes > 1 && t->most > 1 ? nodes : 0;
}

/* The record of a team that this PE is in; it was unused. */
static void team_enter(struct gdri_state *st, gdr_team_t id, int n, const int *pes, bool mapped)
{
	struct gdri_teams *ts = st->teams;
	struct gdri_team *t = &ts->list[id];

	memset(t, 0, sizeof(*t));
	t->pes = ts->lists + (size_t)id * list_room(st);
	for (int i = 0; i < n; i++) {
		t->pes[i] = (int16_t)pes[i];
		if (pes[i] == st->pe)
			t->me = i;
	}
	t->chan = (struct gdri_chan *)team_area(st, id);
	t->match = (struct gdri_match *)(void *)(team_area(st, id) + chan_bytes((uint64_t)st->n_pes));
	t->grid = (uint64_t *)(void *)((uint8_t *)t->match + match_bytes((uint64_t)st->n_pes));
	t->ll = t->grid + ts->grid_blocks * GDRI_FLAT_MAX;
	t->ll_bcast = t->ll + (uint64_t)st->n_pes * 2 * 2 * ll_size(ts, (uint32_t)id) / sizeof(uint64_t);
	t->slots = team_area(st, id) + head_bytes(ts, (uint64_t)st->n_pes, (uint32_t)id);
	t->slot_size = ts->slot_size;
	t->queue = st->dev->n_slots ? (uint32_t)id % st->dev->n_slots : 0;
	t->mapped = mapped;
	t->grid_blocks = mapped && n <= GDRI_FLAT_MAX ? ts->grid_blocks : 0;
	t->ll_size = mapped && n <= GDRI_FLAT_MAX ? ll_size(ts, (uint32_t)id) : 0;
	if ((uint32_t)id < ts->ctas_teams && mapped && n > 1 && n <= GDRI_FLAT_MAX) {
		t->ctas = (uint64_t *)(void *)ctas_area(st, id);
		t->ctas_blocks = ts->ctas_blocks;
		t->ctas_size = ts->ctas_size;
	}
	t->n = n;
	find_stride(t);
	find_levels(st, t, t->pes + st->n_pes);
	gdri_coll_choose(t, st->coll);
	ts->notes[id] = 0;
}

/* Enters a team here and on the GPU. Nobody writes to the team's areas yet. */
int gdri_team_install(struct gdri_state *st, gdr_team_t id, int n, const int *pes, bool mapped)
{
	const struct gdri_teams *ts = st->teams;
	int limit = gdri_cuda_copy_ms(st) / 2, ret; /* the others wait meanwhile */

	team_enter(st, id, n, pes, mapped);
	ret = gdri_heap_zero(st->heap, team_area(st, id), head_bytes(ts, (uint64_t)st->n_pes, (uint32_t)id), limit);
	if (!ret) /* what an earlier team of this number was told */
		ret = gdri_heap_zero(st->heap, &st->dev->ctl->team_broken[id], sizeof(uint64_t), limit);
	if (!ret && ts->list[id].ctas_size)
		ret = gdri_heap_zero(st->heap, ctas_area(st, id), ts->ctas_stride, limit);
	if (!ret)
		ret = team_ctas(st, id);
	if (ret)
		st->teams->list[id].n = 0;
	return ret;
}

void gdri_team_clear(struct gdri_state *st, gdr_team_t id)
{
	st->teams->list[id].n = 0;
	team_ctas(st, id);
}

uint64_t gdri_team_free_map(const struct gdri_state *st)
{
	uint64_t map = 0;

	for (uint32_t i = 0; i < st->teams->n; i++) {
		if (!st->teams->list[i].n)
			map |= 1ull << i;
	}
	return map;
}

/* ---- the predefined ones ---- */

bool gdri_team_maps(const struct gdri_state *st, int n, const int *pes)
{
	int i;

	for (i = 0; i < n && st->peers[pes[i]].base; i++)
		;
	return i == n;
}

/* The PEs of a node of which one does not map all others are nodes of their own. */
static void part_nodes(struct gdri_state *st, const uint8_t *mapped)
{
	int node;

	for (int i = 0; i < st->n_pes; i++) {
		node = st->node[i];
		for (int j = 0; j < st->n_pes && !mapped[i]; j++)
			st->node[j] = st->node[j] == node ? j : st->node[j];
	}
}

/* Their areas are zeroes from the beginning. */
static int team_predefine(struct gdri_state *st, const uint8_t *mapped, int *pes)
{
	bool all = true;
	int n = 0;

	part_nodes(st, mapped);
	for (int i = 0; i < st->n_pes; i++)
		pes[i] = i;
	team_enter(st, GDR_TEAM_WORLD, st->n_pes, pes, !st->any_net);
	for (int i = 0; i < st->n_pes; i++) {
		if (!st->same_node[i])
			continue;
		pes[n++] = i;
		all &= mapped[i];
	}
	team_enter(st, GDR_TEAM_NODE, n, pes, all);
	if (!all) { /* some of the node do not map each other: nobody shares anything */
		pes[0] = st->pe;
		n = 1;
	}
	team_enter(st, GDR_TEAM_SHARED, n, pes, gdri_team_maps(st, n, pes));
	return push_all(st);
}

/* What every PE says: whether it maps all PEs of its node. */
int gdri_up_world(struct gdri_state *st)
{
	uint8_t *all = calloc((size_t)st->n_pes, 1), mine = 1;
	int *pes = calloc((size_t)st->n_pes, sizeof(*pes)), i, ret;

	for (i = 0; i < st->n_pes && st->same_node && st->peers; i++)
		mine &= !st->same_node[i] || st->peers[i].base;
	if (!st->pending && (!all || !pes))
		st->pending = gdri_fail(-GDR_ENOMEM, "out of memory");
	ret = gdri_agree(st, "init", &mine, all, sizeof(mine));
	if (!ret)
		st->pending = team_predefine(st, all, pes); /* told by the next agreement */
	free(all);
	free(pes);
	return ret;
}
