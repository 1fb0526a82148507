// SPDX-License-Identifier: BSD-3-Clause
/* Teams: the arguments of the public calls, turned into lists of PEs. */
#include <stdlib.h>
#include <sys/random.h>

#include "host/host.h"
#include "runtime/core/lock.h"
#include "runtime/core/log.h"
#include "runtime/path/ctx.h"
#include "runtime/team/team.h"
#include <gdr/device.h>
#include <gdr/host.h>

static int wrong_list(const struct gdri_team *parent, const char *what, const int *members, int n)
{
	int j;

	for (int i = 0; i < n; i++) {
		if (members[i] < 0 || members[i] >= parent->n)
			return gdri_fail(-GDR_EINVAL, "%s: there is no PE %d in the team, it has %d", what, members[i],
					 parent->n);
		for (j = 0; j < i && members[j] != members[i]; j++)
			;
		if (j < i)
			return gdri_fail(-GDR_EINVAL, "%s: PE %d is named twice", what, members[i]);
	}
	return 0;
}

struct call {
	const char *what;
	uint64_t hash; /* of the arguments that are the same on all members of the parent */
	const gdr_team_config_t *config;
	long mask;
	struct gdri_team_told told;
};

/* members: numbers in the parent. status: what is wrong with the arguments; the others hear of it. */
static int team_make(struct gdri_state *st, gdr_team_t parent, const struct call *call,
		     const int *members, int n, int status, gdr_team_t *out)
{
	const struct gdri_team *t = gdri_team_find(st, parent);
	struct gdri_team_plan p = {.what = call->what, .told = call->told, .n = n, .status = status};
	int *pes = calloc((size_t)(n > 0 ? n : 1), sizeof(*pes)), i, ret;

	if (call->config && call->mask & GDR_TEAM_NUM_CONTEXTS)
		p.config.num_contexts = call->config->num_contexts;
	p.hash = gdri_hash(gdri_hash(call->hash, (uint64_t)call->mask), (uint64_t)p.config.num_contexts);
	if (!p.status)
		p.status = wrong_list(t, call->what, members, n);
	if (!p.status && !pes) {
		gdri_error("%s: out of memory", call->what);
		p.status = -GDR_ENOMEM;
	}
	for (i = 0; i < n && !p.status; i++)
		pes[i] = gdri_team_member(t, members[i]);
	p.pes = pes;
	if (p.status)
		p.n = 0;
	gdri_lock(&st->lock);
	ret = gdri_team_make(st, parent, &p, out);
	pthread_mutex_unlock(&st->lock);
	free(pes);
	return ret;
}

/* The parent's record; NULL after logging what is wrong. */
static const struct gdri_team *parent_of(const char *what, gdr_team_t parent, struct gdri_state **st, int *status)
{
	const struct gdri_team *t;

	*st = gdri_need_state(what);
	*status = -GDR_ESTATE;
	if (!*st)
		return NULL;
	*status = -GDR_EINVAL;
	t = gdri_team_find(*st, parent);
	if (!t)
		gdri_error("%s: this PE is in no team %d", what, parent);
	return t;
}

/* A caller that has no place for the new team takes part all the same: the others are to hear of it. */
static int place_for(const char *what, gdr_team_t **out, gdr_team_t *nowhere)
{
	int status = *out ? 0 : -GDR_EINVAL;

	if (status) {
		gdri_error("%s: no place for the new team", what);
		*out = nowhere;
	}
	**out = GDR_TEAM_INVALID;
	return status;
}

int gdr_team_split_strided(gdr_team_t parent, int start, int stride, int size,
			   const gdr_team_config_t *config, long config_mask, gdr_team_t *new_team)
{
	struct call call = {"gdr_team_split_strided", 0, config, config_mask,
			    {GDRI_TEAM_STRIDED, {start, stride, size}}};
	struct gdri_state *st;
	gdr_team_t nowhere;
	int i, ret, status = place_for(call.what, &new_team, &nowhere), *members;
	const struct gdri_team *t = parent_of(call.what, parent, &st, &ret);

	if (!t)
		return ret;
	call.hash = gdri_hash(gdri_hash(gdri_hash(1, (uint64_t)start), (uint64_t)stride), (uint64_t)size);
	if (size < 1 || size > t->n || (!stride && size > 1)) {
		status = gdri_fail(-GDR_EINVAL,
				   "%s: %d PEs with stride %d of a team of %d: 1 to %d PEs, and a stride that is not 0",
				   call.what, size, stride, t->n, t->n);
		size = 0;
	}
	members = calloc((size_t)size + 1, sizeof(*members));
	if (!members)
		status = gdri_fail(-GDR_ENOMEM, "%s: out of memory", call.what);
	for (i = 0; i < size && !status; i++) {
		int64_t at = start + (int64_t)i * stride;

		members[i] = (int)at;
		if (at < 0 || at >= t->n)
			status = gdri_fail(-GDR_EINVAL, "%s: start %d, stride %d, size %d: there is no PE %lld in the "
					   "team, it has 0 to %d", call.what, start, stride, size, (long long)at,
					   t->n - 1);
	}
	ret = team_make(st, parent, &call, members, status ? 0 : size, status, new_team);
	free(members);
	return ret;
}

int gdr_team_create(gdr_team_t parent, const int *pes, int n, const gdr_team_config_t *config,
		    long config_mask, gdr_team_t *new_team)
{
	struct call call = {"gdr_team_create", gdri_hash(2, (uint64_t)n), config, config_mask,
			    {GDRI_TEAM_CREATED, {n, 0, 0}}};
	struct gdri_state *st;
	gdr_team_t nowhere;
	int i, ret, status = place_for(call.what, &new_team, &nowhere);
	const struct gdri_team *t = parent_of(call.what, parent, &st, &ret);

	if (!t)
		return ret;
	if (n < 1 || n > t->n || !pes) {
		status = pes ? gdri_fail(-GDR_EINVAL, "%s: a list of %d PEs of a team of %d", call.what, n, t->n)
			     : gdri_fail(-GDR_EINVAL, "%s: the list of PEs is NULL", call.what);
		n = 0;
	}
	for (i = 0; i < n; i++)
		call.hash = gdri_hash(call.hash, (uint64_t)pes[i]);
	return team_make(st, parent, &call, pes, n, status, new_team);
}

int gdr_team_new_id(uint64_t *id)
{
	if (!gdri_need_state("gdr_team_new_id"))
		return -GDR_ESTATE;
	if (!id)
		return gdri_fail(-GDR_EINVAL, "gdr_team_new_id: no place for the id");
	do {
		if (getrandom(id, sizeof(*id), 0) != (ssize_t)sizeof(*id))
			return gdri_fail(-GDR_ESYSTEM, "gdr_team_new_id: getrandom: %m");
	} while (!*id || !~*id); /* the compat header's: none */
	return 0;
}

/* What is wrong with the arguments the others hear, as long as the id is right. */
int gdr_team_join(uint64_t id, int n, int me, const gdr_team_config_t *config, long config_mask,
		  gdr_team_t *new_team)
{
	gdr_team_t nowhere;
	struct gdri_team_plan p = {.what = "gdr_team_join", .n = n};
	struct gdri_state *st;
	int ret;

	p.status = place_for(p.what, &new_team, &nowhere);
	if (!parent_of(p.what, GDR_TEAM_WORLD, &st, &ret))
		return ret;
	if (!id)
		return gdri_fail(-GDR_EINVAL, "%s: 0 is no id", p.what);
	if (config && config_mask & GDR_TEAM_NUM_CONTEXTS)
		p.config.num_contexts = config->num_contexts;
	p.hash = gdri_hash(gdri_hash(gdri_hash(4, (uint64_t)n), (uint64_t)config_mask),
			   (uint64_t)p.config.num_contexts);
	if (n < 1 || n > st->n_pes)
		p.status = gdri_fail(-GDR_EINVAL, "%s: n is %d, and a team has 1 to %d PEs of this job", p.what, n,
				     st->n_pes);
	else if (me < 0 || me >= n)
		p.status = gdri_fail(-GDR_EINVAL, "%s: me is %d, and the numbers of %d PEs are 0 to %d", p.what, me, n,
				     n - 1);
	if (p.status)
		p.n = 0;
	gdri_lock(&st->lock);
	ret = gdri_team_join(st, id, me, &p, new_team);
	pthread_mutex_unlock(&st->lock);
	return ret;
}

/* The members of the parent whose numbers are first, first + step, ... below end. */
static int split_axis(struct gdri_state *st, gdr_team_t parent, const struct call *call, int first,
		      int step, int end, gdr_team_t *out)
{
	int n = (end - first + step - 1) / step, i, ret;
	int *members = calloc((size_t)n, sizeof(*members));

	for (i = 0; i < n && members; i++)
		members[i] = first + i * step;
	if (!members)
		gdri_error("%s: out of memory", call->what);
	ret = team_make(st, parent, call, members, members ? n : 0, members ? 0 : -GDR_ENOMEM, out);
	free(members);
	return ret;
}

int gdr_team_split_2d(gdr_team_t parent, int xrange, const gdr_team_config_t *xaxis_config,
		      long xaxis_mask, gdr_team_t *xaxis_team,
		      const gdr_team_config_t *yaxis_config, long yaxis_mask,
		      gdr_team_t *yaxis_team)
{
	struct call x = {"gdr_team_split_2d", 0, xaxis_config, xaxis_mask, {GDRI_TEAM_2D, {xrange, 0, 0}}}, y = x;
	struct gdri_state *st;
	gdr_team_t nowhere;
	int ret, row, end, status = place_for(x.what, &xaxis_team, &nowhere) | place_for(x.what, &yaxis_team, &nowhere);
	const struct gdri_team *t = parent_of(x.what, parent, &st, &ret);

	if (!t)
		return ret;
	x.hash = gdri_hash(gdri_hash(3, 0), (uint64_t)xrange);
	y.hash = gdri_hash(gdri_hash(3, 1), (uint64_t)xrange);
	y.told.args[1] = 1;
	y.config = yaxis_config;
	y.mask = yaxis_mask;
	if (xrange < 1)
		status = gdri_fail(-GDR_EINVAL, "%s: xrange is %d, and has to be 1 at least", x.what, xrange);
	if (status)
		return team_make(st, parent, &x, NULL, 0, status, xaxis_team);
	xrange = xrange < t->n ? xrange : t->n;
	row = t->me / xrange;
	end = (row + 1) * xrange < t->n ? (row + 1) * xrange : t->n;
	ret = split_axis(st, parent, &x, row * xrange, 1, end, xaxis_team);
	if (ret)
		return ret;
	ret = split_axis(st, parent, &y, t->me % xrange, xrange, t->n, yaxis_team);
	if (ret) {
		gdr_team_destroy(*xaxis_team);
		*xaxis_team = GDR_TEAM_INVALID;
	}
	return ret;
}

int gdr_team_destroy(gdr_team_t team)
{
	struct gdri_state *st = gdri_need_state("gdr_team_destroy");
	int ret, status;

	if (!st)
		return -GDR_ESTATE;
	if (team == GDR_TEAM_INVALID)
		return 0;
	if (team <= GDR_TEAM_NODE || !gdri_team_find(st, team))
		return gdri_fail(-GDR_EINVAL, "gdr_team_destroy: %d is %s", team,
				 team >= 0 && team <= GDR_TEAM_NODE ? "predefined" : "no team of this PE");
	gdri_lock(&st->lock);
	gdri_lock(&st->local_lock);
	status = gdri_ctx_unmake_team(st, team);
	pthread_mutex_unlock(&st->local_lock);
	ret = gdri_team_unmake(st, team);
	pthread_mutex_unlock(&st->lock);
	return ret ? ret : status;
}

int gdr_team_get_config(gdr_team_t team, long config_mask, gdr_team_config_t *config)
{
	struct gdri_state *st = gdri_need_state("gdr_team_get_config");

	if (!st)
		return -GDR_ESTATE;
	if (!gdri_team_find(st, team))
		return gdri_fail(-GDR_EINVAL, "gdr_team_get_config: there is no team %d", team);
	if (!config)
		return gdri_fail(-GDR_EINVAL, "gdr_team_get_config: config is NULL");
	if (config_mask & ~GDR_TEAM_NUM_CONTEXTS)
		return gdri_fail(-GDR_EINVAL, "gdr_team_get_config: mask 0x%lx: GDR_TEAM_NUM_CONTEXTS (0x%lx) is all "
				 "there is", config_mask, (long)GDR_TEAM_NUM_CONTEXTS);
	if (config_mask & GDR_TEAM_NUM_CONTEXTS)
		config->num_contexts = st->teams->config[team].num_contexts;
	return 0;
}

int gdr_host_team_my_pe(gdr_team_t team)
{
	const struct gdri_state *st = gdri_state_get();
	const struct gdri_team *t = st ? gdri_team_find(st, team) : NULL;

	return t ? t->me : -1;
}

int gdr_host_team_n_pes(gdr_team_t team)
{
	const struct gdri_state *st = gdri_state_get();
	const struct gdri_team *t = st ? gdri_team_find(st, team) : NULL;

	return t ? t->n : -1;
}

int gdr_host_team_translate_pe(gdr_team_t src_team, int src_pe, gdr_team_t dest_team)
{
	const struct gdri_state *st = gdri_state_get();
	const struct gdri_team *from = st ? gdri_team_find(st, src_team) : NULL;
	const struct gdri_team *to = st ? gdri_team_find(st, dest_team) : NULL;

	if (!from || !to || src_pe < 0 || src_pe >= from->n)
		return -1;
	return gdri_team_number(to, gdri_team_member(from, src_pe));
}

void *gdr_host_team_ptr(gdr_team_t team, const void *dest, int pe)
{
	const struct gdri_state *st = gdri_state_get();
	const struct gdri_team *t = st ? gdri_team_find(st, team) : NULL;

	return t && pe >= 0 && pe < t->n ? gdr_host_ptr(dest, gdri_team_member(t, pe)) : NULL;
}

/* The one barrier for host threads and, on the host device, for kernels. */

int gdr_barrier_all(void)
{
	if (!gdri_need_state("gdr_barrier_all"))
		return -GDR_ESTATE;
	return gdri_host_cuda() ? gdri_cuda_barrier_all() : gdri_thread_barrier_all();
}
