// SPDX-License-Identifier: BSD-3-Clause
/* Contexts: the arguments of the public calls. */
#include "host/host.h"
#include "runtime/core/lock.h"
#include "runtime/core/log.h"
#include "runtime/path/ctx.h"
#include "runtime/team/team.h"

#define QUEUES(options) ((uint32_t)((options) >> 8 & 0xff))
#define MODES (GDR_CTX_GPU | GDR_CTX_BLOCK | GDR_CTX_THREAD)

/* A block uses one queue to a PE: more than one are for many blocks. */
static int wrong_options(const char *what, long options)
{
	long mode = options & MODES;

	if (options & ~(MODES | GDR_CTX_N_QUEUES(255)) || mode & (mode - 1))
		return gdri_fail(-GDR_EINVAL, "%s: options 0x%lx contradict each other, or are none", what, options);
	if (mode & (GDR_CTX_BLOCK | GDR_CTX_THREAD) && QUEUES(options) > 1)
		return gdri_fail(-GDR_EINVAL, "%s: one block, or thread, uses one queue to a PE, not %u", what,
				 QUEUES(options));
	return 0;
}

static int ctx_create(const char *what, gdr_team_t team, long options, gdr_ctx_t *ctx)
{
	struct gdri_state *st = gdri_need_state(what);
	uint32_t mode = (uint32_t)(options & MODES), n = QUEUES(options);
	int ret;

	if (ctx)
		*ctx = GDR_CTX_INVALID;
	if (!st)
		return -GDR_ESTATE;
	ret = wrong_options(what, options);
	if (ret || !ctx) {
		if (!ctx)
			gdri_error("%s: no place for the new context", what);
		return -GDR_EINVAL;
	}
	gdri_lock(&st->local_lock);
	if (gdri_team_find(st, team)) {
		ret = gdri_ctx_make(st, team, mode ? mode : GDR_CTX_GPU, n ? n : 1, ctx);
	} else {
		ret = gdri_fail(-GDR_EINVAL, "%s: this PE is in no team %d", what, team);
	}
	pthread_mutex_unlock(&st->local_lock);
	return ret;
}

int gdr_ctx_create(long options, gdr_ctx_t *ctx)
{
	return ctx_create("gdr_ctx_create", GDR_TEAM_WORLD, options, ctx);
}

int gdr_team_create_ctx(gdr_team_t team, long options, gdr_ctx_t *ctx)
{
	return ctx_create("gdr_team_create_ctx", team, options, ctx);
}

int gdr_ctx_destroy(gdr_ctx_t ctx)
{
	struct gdri_state *st = gdri_need_state("gdr_ctx_destroy");
	int ret;

	if (!st)
		return -GDR_ESTATE;
	if (ctx == GDR_CTX_INVALID)
		return 0;
	gdri_lock(&st->local_lock);
	if (ctx == GDR_CTX_DEFAULT || !gdri_ctx_find(st, ctx)) {
		ret = gdri_fail(-GDR_EINVAL, "gdr_ctx_destroy: %d is %s", ctx,
				ctx ? "no context" : "the default context");
	} else {
		ret = gdri_ctx_unmake(st, ctx);
	}
	pthread_mutex_unlock(&st->local_lock);
	return ret;
}

int gdr_ctx_get_team(gdr_ctx_t ctx, gdr_team_t *team)
{
	struct gdri_state *st = gdri_need_state("gdr_ctx_get_team");
	const struct gdri_ctx *c;

	if (team)
		*team = GDR_TEAM_INVALID;
	if (!st)
		return -GDR_ESTATE;
	pthread_mutex_lock(&st->ctxs->lock);
	c = gdri_ctx_find(st, ctx);
	if (c && team)
		*team = c->team;
	pthread_mutex_unlock(&st->ctxs->lock);
	if (c && team)
		return 0;
	return gdri_fail(-GDR_EINVAL, "gdr_ctx_get_team: %s",
			 team ? "there is no such context" : "no place for the team");
}

uint64_t gdri_ctx_serial(gdr_ctx_t ctx)
{
	struct gdri_state *st = gdri_state_get();
	uint64_t serial;

	if (!st)
		return 0;
	pthread_mutex_lock(&st->ctxs->lock);
	serial = gdri_ctx_find(st, ctx) ? st->ctxs->serials[ctx] : 0;
	pthread_mutex_unlock(&st->ctxs->lock);
	return serial;
}
