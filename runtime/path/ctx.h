/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts between gdr_init and gdr_finalize: their records for device code, and which of the queues that are
 * kept for them each one has. All calls under st->local_lock, but for those that say
 * otherwise. */
#ifndef GDRI_CTX_STATE_H
#define GDRI_CTX_STATE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <gdr/ctx.h>
#include <gdr/impl/arch/abi.h>

struct gdri_state;

enum gdri_ctx_slot { GDRI_CTX_FREE, GDRI_CTX_TAKEN, GDRI_CTX_BROKEN };

struct gdri_ctxs {
	struct gdri_ctx *list; /* [GDRI_MAX_CTXS]; on the host device what device code uses */
	struct gdri_ctx *gpu;  /* list's copy in memory of the GPU */
	uint8_t *slots;	       /* [opt.ctx_queues] enum gdri_ctx_slot: of the queues to each PE */
	uint64_t *serials;     /* [GDRI_MAX_CTXS]: how many this process had made, of all jobs, when it made this one */
	/* Of what stands in the list, with st->local_lock for who changes it: who looks a context up does not wait for
	 * a GPU. */
	pthread_mutex_t lock;
};

int gdri_up_ctxs(struct gdri_state *st); /* the default one, all others unused */
void gdri_down_ctxs(struct gdri_state *st);

/* NULL: there is no such context. */
struct gdri_ctx *gdri_ctx_find(const struct gdri_state *st, gdr_ctx_t ctx);

/* Any thread, without st->local_lock. Number in the world of PE pe of the context's team; -1: there is none. */
int gdri_ctx_world_pe(struct gdri_state *st, gdr_ctx_t ctx, int pe);
/* Any thread: the first of the context's queues in all, and how many; -GDR_EINVAL: there is no such context. */
int gdri_ctx_queues(struct gdri_state *st, gdr_ctx_t ctx, size_t *first, size_t *n);

/* A context of n queues to each PE; the team is one of this PE's. 0, or < 0 after logging why. */
int gdri_ctx_make(struct gdri_state *st, gdr_team_t team, uint32_t mode, uint32_t n, gdr_ctx_t *ctx);
/* Completes what is outstanding on it; with or without success there is no such context any more. */
int gdri_ctx_unmake(struct gdri_state *st, gdr_ctx_t ctx);
/* Those of a team that is about to go. */
int gdri_ctx_unmake_team(struct gdri_state *st, gdr_team_t team);
/* What is outstanding on all of them. */
int gdri_ctxs_quiet(struct gdri_state *st);

#endif
