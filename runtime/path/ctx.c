// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/path/ctx.h"

#include <stdlib.h>
#include <string.h>

#include <gdr/device.h>

#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/team/team.h"

static int ctx_push_record(struct gdri_state *st, gdr_ctx_t ctx)
{
	struct gdri_ctx copy = st->ctxs->list[ctx];

	if (!st->cuda)
		return 0;
	copy.pes = gdri_team_pes_seen(st, copy.team);
	return gdri_cuda_poke(st->cuda, st->ctxs->gpu + ctx, &copy, sizeof(copy), gdri_cuda_copy_ms(st));
}

/* Over all jobs: one of a later job is told from one of an earlier one. One job at a time makes contexts. */
static uint64_t ctx_count(void)
{
	static uint64_t made;

	return ++made;
}

/* The team's record of the world comes later; all of it that counts is known. */
static void set_default(struct gdri_state *st)
{
	struct gdri_ctx *c = &st->ctxs->list[GDR_CTX_DEFAULT];

	c->mode = GDR_CTX_GPU;
	c->size = st->n_pes;
	c->stride = 1;
	c->team = GDR_TEAM_WORLD;
	st->ctxs->serials[GDR_CTX_DEFAULT] = ctx_count();
}

int gdri_up_ctxs(struct gdri_state *st)
{
	struct gdri_ctxs *cs = st->ctxs;
	size_t bytes = GDRI_MAX_CTXS * sizeof(*cs->list);

	pthread_mutex_init(&cs->lock, NULL);
	cs->list = calloc(1, bytes);
	cs->slots = calloc(st->opt.ctx_queues + 1u, sizeof(*cs->slots));
	cs->serials = calloc(GDRI_MAX_CTXS, sizeof(*cs->serials));
	if (st->cuda)
		cs->gpu = gdri_cuda_alloc_bare(st->cuda, bytes);
	if (!cs->list || !cs->slots || !cs->serials || (st->cuda && !cs->gpu))
		return gdri_fail(-GDR_ENOMEM, "out of memory for contexts");
	set_default(st);
	st->dev->ctxs = cs->list;
	return st->cuda ? gdri_cuda_poke(st->cuda, cs->gpu, cs->list, bytes, GDRI_COPY_MS) : 0;
}

void gdri_down_ctxs(struct gdri_state *st)
{
	struct gdri_ctxs *cs = st->ctxs;

	free(cs->list);
	free(cs->slots);
	free(cs->serials);
	if (cs->gpu)
		gdri_cuda_free(st->cuda, cs->gpu);
	*cs = (struct gdri_ctxs){0};
}

struct gdri_ctx *gdri_ctx_find(const struct gdri_state *st, gdr_ctx_t ctx)
{
	if (ctx < 0 || ctx >= GDRI_MAX_CTXS || !st->ctxs->list[ctx].mode)
		return NULL;
	return &st->ctxs->list[ctx];
}

int gdri_ctx_world_pe(struct gdri_state *st, gdr_ctx_t ctx, int pe)
{
	const struct gdri_ctx *c;
	int found = -1;

	pthread_mutex_lock(&st->ctxs->lock);
	c = gdri_ctx_find(st, ctx);
	if (c && pe >= 0 && pe < c->size)
		found = c->stride ? c->start + pe * c->stride : c->pes[pe];
	pthread_mutex_unlock(&st->ctxs->lock);
	return found;
}

int gdri_ctx_queues(struct gdri_state *st, gdr_ctx_t ctx, size_t *first, size_t *n)
{
	const struct gdri_ctx *c;

	pthread_mutex_lock(&st->ctxs->lock);
	c = gdri_ctx_find(st, ctx);
	*first = c ? c->first : 0;
	*n = c ? (size_t)c->n * (size_t)st->n_pes : 0;
	pthread_mutex_unlock(&st->ctxs->lock);
	return c ? 0 : -GDR_EINVAL;
}

/* From now on it is found, or no more. */
static void set_mode(struct gdri_state *st, struct gdri_ctx *c, uint32_t mode)
{
	pthread_mutex_lock(&st->ctxs->lock);
	c->mode = mode;
	pthread_mutex_unlock(&st->ctxs->lock);
}

/* ---- queues ---- */

static void ctx_mark(struct gdri_state *st, const struct gdri_ctx *c, enum gdri_ctx_slot as)
{
	memset(st->ctxs->slots + c->first / (uint32_t)st->n_pes - st->opt.qps_per_pe, as, c->n);
}

/* The first n slots in a row that are free. That there are none is for the program to decide about: no error yet. */
static int take_queues(struct gdri_state *st, struct gdri_ctx *c, uint32_t n)
{
	uint32_t i, run, all = st->opt.ctx_queues;

	for (i = run = 0; i < all && run < n; i++)
		run = st->ctxs->slots[i] == GDRI_CTX_FREE ? run + 1 : 0;
	if (!all)
		gdri_warn("no queues are kept for contexts: set GDR_CTX_QUEUES");
	else if (run < n)
		gdri_warn("GDR_CTX_QUEUES=%u queues to each PE are kept for contexts, and %u in a row are not free: "
			  "raise it",
			  all, n);
	if (run < n)
		return -GDR_ENOQUEUE;
	c->first = (st->opt.qps_per_pe + i - n) * (uint32_t)st->n_pes;
	c->n = n;
	ctx_mark(st, c, GDRI_CTX_TAKEN);
	return 0;
}

/* Of n queues from `first` on. */
static int ctx_quiet_queues(struct gdri_state *st, uint32_t first, uint32_t n)
{
	gdri_fence_sys(); /* stores to mapped peers */
	if (!n)
		return 0;
	if (st->cuda)
		return gdri_cuda_queues_quiet(st, first, n, (int)st->opt.timeout_ms);
	return gdri_quiet_queues(st->dev, first, n, GDRI_QUIET);
}

int gdri_ctxs_quiet(struct gdri_state *st)
{
	uint32_t first = (uint32_t)st->n_pes * st->dev->n_slots;

	return ctx_quiet_queues(st, first, st->dev->n_queues - first);
}

/* ---- making and unmaking ---- */

int gdri_ctx_make(struct gdri_state *st, gdr_team_t team, uint32_t mode, uint32_t n, gdr_ctx_t *ctx)
{
	const struct gdri_team *t = gdri_team_find(st, team);
	struct gdri_ctx *c;
	gdr_ctx_t i;
	int ret = 0;

	for (i = 0; i < GDRI_MAX_CTXS && st->ctxs->list[i].mode; i++)
		;
	if (i == GDRI_MAX_CTXS) {
		gdri_warn("all %d contexts of a PE are in use", GDRI_MAX_CTXS - 1);
		return -GDR_ENOQUEUE;
	}
	c = &st->ctxs->list[i];
	pthread_mutex_lock(&st->ctxs->lock);
	memset(c, 0, sizeof(*c));
	st->ctxs->serials[i] = ctx_count();
	pthread_mutex_unlock(&st->ctxs->lock);
	if (st->dev->n_slots) /* else all PEs are mapped */
		ret = take_queues(st, c, n);
	if (ret)
		return ret;
	c->size = t->n;
	c->start = t->start;
	c->stride = t->stride;
	c->pes = t->pes;
	c->team = team;
	set_mode(st, c, mode);
	ret = ctx_push_record(st, i);
	if (!ret) {
		*ctx = i;
		return 0;
	}
	if (c->n)
		ctx_mark(st, c, GDRI_CTX_FREE);
	set_mode(st, c, 0);
	return ret;
}

int gdri_ctx_unmake(struct gdri_state *st, gdr_ctx_t ctx)
{
	struct gdri_ctx *c = &st->ctxs->list[ctx];
	int status = ctx_quiet_queues(st, c->first, c->n * (uint32_t)st->n_pes), ret;

	/* What is still under way would be the next one's, and so would an error. */
	if (c->n)
		ctx_mark(st, c, status ? GDRI_CTX_BROKEN : GDRI_CTX_FREE);
	if (status)
		gdri_error("context %d: %s; its queues are not used again", ctx, gdr_strerror(status));
	set_mode(st, c, 0);
	c->owner = 0;
	ret = ctx_push_record(st, ctx);
	return status ? status : ret;
}

int gdri_ctx_unmake_team(struct gdri_state *st, gdr_team_t team)
{
	int ret, status = 0;
	gdr_ctx_t i;

	for (i = GDR_CTX_DEFAULT + 1; i < GDRI_MAX_CTXS; i++) {
		if (!st->ctxs->list[i].mode || st->ctxs->list[i].team != team)
			continue;
		ret = gdri_ctx_unmake(st, i);
		status = status ? status : ret;
	}
	return status;
}
