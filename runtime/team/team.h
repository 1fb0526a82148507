/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams between gdr_init and gdr_finalize: their records for device code, their area in the heap
 * (behind the control area), and how the members agree on new ones. */
#ifndef GDRI_TEAM_STATE_H
#define GDRI_TEAM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <gdr/impl/arch/abi.h>
#include <gdr/team.h>

struct gdri_state;

#define HOST_BLOCKS 4u	/* blocks of the host device at most, of a kernel of the library */

struct gdri_teams {
	uint32_t n, slot_size, grid_blocks, ctas_blocks, ctas_size, ctas_teams;
	uint32_t ll_size, later_ll_size; /* data of an LL epoch: of the first teams, and of those behind them */
	/* of the area behind gdri_ctl; behind those of all teams in it, of LL by many CTAs of one of the first ones */
	uint64_t bytes, ctas_stride;
	uint64_t join; /* where the records of gdr_team_join are: join_record.h */
	struct gdri_team *list;	 /* [n]; on the host device what device code uses */
	struct gdri_team *gpu;	 /* list's copy in memory of the GPU */
	int16_t *lists;		 /* [n]: pes[n_pes], levels[4 * n_pes + 1] of each */
	gdr_team_config_t *config; /* [n] */
	uint64_t *notes;	 /* [n] exchanges of the host threads */
};

/* What of the heap teams take: sets all up to the list. heap_size is that of the heap as it was
 * made. -GDR_EINVAL: it is too small for them. */
int gdri_teams_plan(struct gdri_state *st, uint64_t heap_size);

int gdri_up_teams(struct gdri_state *st);   /* records, all unused */
void gdri_down_teams(struct gdri_state *st);
int gdri_up_world(struct gdri_state *st);   /* collective: the predefined teams */

/* NULL: none of this PE's. */
struct gdri_team *gdri_team_find(const struct gdri_state *st, gdr_team_t team);
int gdri_team_member(const struct gdri_team *t, int i); /* its number in the world */
int gdri_team_number(const struct gdri_team *t, int pe); /* and back; -1: not in it */
/* Its list of PEs, where device code finds it. */
const int16_t *gdri_team_pes_seen(const struct gdri_state *st, gdr_team_t team);

/* What making one takes, each PE for itself: of this PE's numbers those unused, as bits; whether all of pes are
 * mapped here; the record, zeroed, to which nobody writes yet; and without it again. */
uint64_t gdri_team_free_map(const struct gdri_state *st);
bool gdri_team_maps(const struct gdri_state *st, int n, const int *pes);
int gdri_team_install(struct gdri_state *st, gdr_team_t id, int n, const int *pes, bool mapped);
void gdri_team_clear(struct gdri_state *st, gdr_team_t id);

/* Collective over the team, under st->lock: three words of each member. */
int gdri_team_gather(struct gdri_state *st, gdr_team_t team, const char *what,
		     const uint64_t mine[3], uint64_t (*all)[3]);

/* Which call, and the arguments that name it where members differ, cut to 16 bits: what is told costs no words. */
enum gdri_team_kind { GDRI_TEAM_NO_KIND, GDRI_TEAM_STRIDED, GDRI_TEAM_CREATED, GDRI_TEAM_2D };
struct gdri_team_told {
	enum gdri_team_kind kind;
	int args[3];
};

/* A team to be made: of the n PEs (numbers in the world) in `pes`. */
struct gdri_team_plan {
	const char *what;
	uint64_t hash; /* of the call's arguments */
	struct gdri_team_told told;
	int status;    /* own trouble */
	int n;
	const int *pes;
	gdr_team_config_t config;
};

/* Collective over the parent, under st->lock. *out: GDR_TEAM_INVALID where this PE is not in pes. */
int gdri_team_make(struct gdri_state *st, gdr_team_t parent, const struct gdri_team_plan *p,
		   gdr_team_t *out);
/* Collective over p->n PEs that know of each other nothing but the id, under st->lock; `me`: own number; p->pes is not
 * looked at. */
int gdri_team_join(struct gdri_state *st, uint64_t id, int me, const struct gdri_team_plan *p, gdr_team_t *out);
int gdri_team_unmake(struct gdri_state *st, gdr_team_t team);

#endif
