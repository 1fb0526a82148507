/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: ordered subsets of the PEs, over which collectives (gdr/coll.h) work. A team is named
 * by a number that is the same on all its members. Members count from 0; where a function
 * takes a PE "of the team" it is that count, everywhere else the number in the world. */
#ifndef GDR_TEAM_H
#define GDR_TEAM_H

#include <gdr/macros.h>
#include <gdr/status.h>
/* Names a team of this PE. */
typedef int32_t gdr_team_t;

enum {
	GDR_TEAM_INVALID = -1,
	GDR_TEAM_WORLD = 0,  /* all PEs */
	GDR_TEAM_SHARED = 1, /* PEs whose memory is mapped here, and mine there: gdr_ptr is not NULL */
	GDR_TEAM_NODE = 2,   /* PEs of the node, mapped or not */
};

struct gdr_team_config {
	int num_contexts; /* how many contexts the team will have at most; a hint */
};
typedef struct gdr_team_config gdr_team_config_t;
#define GDR_TEAM_NUM_CONTEXTS 1L /* bit of config_mask: the field counts */

#ifndef __CUDACC_RTC__ /* which compiles device code alone */
GDR_EXTERN_C_BEGIN

/* Collective over the parent, one such call of a PE at a time, with the same arguments on all
 * its members: those that disagree get -GDR_EMISMATCH, on all of them. Fails on all or on none.
 * *new_team is GDR_TEAM_INVALID, with status 0, on PEs that are not in the new team. As with
 * every collective of a team, no other one of the parent may run at the same time; implies a
 * sync of the parent. -GDR_EPEERLOST where a member of the parent is lost, or has called gdr_finalize. At most
 * GDR_TEAMS exist at a time. config may be NULL. */

/* PEs start, start + stride, ... of the parent, `size` of them; stride may be negative, 0 only
 * with size 1. */
GDR_API int gdr_team_split_strided(gdr_team_t parent, int start, int stride, int size,
				   const gdr_team_config_t *config, long config_mask,
				   gdr_team_t *new_team);
/* PE i of the parent stands in column i % xrange and row i / xrange: its xaxis team is the row,
 * its yaxis team the column. xrange above the size counts as the size. */
GDR_API int gdr_team_split_2d(gdr_team_t parent, int xrange,
			      const gdr_team_config_t *xaxis_config, long xaxis_mask,
			      gdr_team_t *xaxis_team, const gdr_team_config_t *yaxis_config,
			      long yaxis_mask, gdr_team_t *yaxis_team);
/* The n PEs of the parent that pes lists, in that order, each once. */
GDR_API int gdr_team_create(gdr_team_t parent, const int *pes, int n,
			    const gdr_team_config_t *config, long config_mask,
			    gdr_team_t *new_team);
/* A team of PEs that know of each other nothing but an id, which one of them made: no other PE takes part. Collective
 * over its n members, with the same id, n and config on all; `me`: own number in it, from 0 on, each once. An id is for
 * one call of each, also where that fails: PEs that use it for two at the same time get -GDR_EINVAL where one of
 * them sees it, else -GDR_ETIMEOUT. -GDR_ETIMEOUT where not all of them come within GDR_TIMEOUT;
 * -GDR_EPEERLOST where a member that came is lost, or so many PEs are lost or in gdr_finalize that fewer than n can
 * come: the text names them. Another PE is not waited for, and its loss ends nothing. Whatever else one of them fails
 * of, those that have come or will get its status, unless it makes its next join before they look: then theirs ends at
 * the limit. */
GDR_API int gdr_team_join(uint64_t id, int n, int me, const gdr_team_config_t *config, long config_mask,
			  gdr_team_t *new_team);
/* An id that nobody else has got, nor will get: random, not 0. */
GDR_API int gdr_team_new_id(uint64_t *id);
/* Collective over the team, whose calls are over; its contexts go with it. The predefined teams stay: -GDR_EINVAL.
 * GDR_TEAM_INVALID is a no-op. */
GDR_API int gdr_team_destroy(gdr_team_t team);

/* What the team was made with; the predefined ones: num_contexts 0. */
GDR_API int gdr_team_get_config(gdr_team_t team, long config_mask, gdr_team_config_t *config);

/* Own number in the team, its size, and what PE src_pe of one team is in another: -1 when the
 * team is none of this PE's, or the PE not in it. In device code: gdr_team_my_pe, ... */
GDR_API int gdr_host_team_my_pe(gdr_team_t team);
GDR_API int gdr_host_team_n_pes(gdr_team_t team);
GDR_API int gdr_host_team_translate_pe(gdr_team_t src_team, int src_pe, gdr_team_t dest_team);
/* gdr_host_ptr of PE `pe` of the team. */
GDR_API void *gdr_host_team_ptr(gdr_team_t team, const void *dest, int pe);

GDR_EXTERN_C_END
#endif

#endif
