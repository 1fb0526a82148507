/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams as device code sees them: look-up, numbers of members, sync. */
#ifndef GDRI_TEAM_H
#define GDRI_TEAM_H

#include <gdr/impl/coll/chan.h>
#include <gdr/impl/api/order.h>
#include <gdr/team.h>

/* NULL: none of this PE's. */
GDR_DEVICE struct gdri_team *gdri_team_of(const struct gdri_dev *dev, gdr_team_t team)
{
	struct gdri_team *t;

	if (!dev || team < 0 || (uint32_t)team >= gdri_k(dev, n_teams))
		return 0;
	t = &gdri_k(dev, teams)[team];
	return t->n ? t : 0;
}

GDR_DEVICE int gdr_team_my_pe(gdr_team_t team)
{
	const struct gdri_team *t = gdri_team_of(gdri_dev(), team);

	return t ? t->me : -1;
}

GDR_DEVICE int gdr_team_n_pes(gdr_team_t team)
{
	const struct gdri_team *t = gdri_team_of(gdri_dev(), team);

	return t ? t->n : -1;
}

GDR_DEVICE int gdr_team_translate_pe(gdr_team_t src_team, int src_pe, gdr_team_t dest_team)
{
	const struct gdri_team *from = gdri_team_of(gdri_dev(), src_team);
	const struct gdri_team *to = gdri_team_of(gdri_dev(), dest_team);

	if (!from || !to || src_pe < 0 || src_pe >= from->n)
		return -1;
	return gdri_team_index(to, gdri_team_pe(from, src_pe));
}

GDR_DEVICE void *gdr_team_ptr(gdr_team_t team, const void *dest, int pe)
{
	const struct gdri_team *t = gdri_team_of(gdri_dev(), team);

	return t && pe >= 0 && pe < t->n ? gdr_ptr(dest, gdri_team_pe(t, pe)) : 0;
}

/* ---- a call, as each of its threads has it ---- */

GDR_DEVICE_COLD int gdri_coll_refuse(const struct gdri_coll *c, const void *ptr, uint64_t len,
				     uint32_t reason)
{
	if (!gdri_scope_rank(c->scope) && c->dev)
		gdri_error_arg(c->dev, c->op, -1, ptr, len, reason);
	return -GDR_EINVAL;
}

/* Of a call that has begun. */
GDR_DEVICE struct gdri_coll gdri_coll_of(struct gdri_team *t, int scope, uint32_t op)
{
	struct gdri_coll c = {gdri_dev(), t, scope, op, GDRI_V_TEAM, t->n, t->me, 0, 0, 0};

	return c;
}

GDR_DEVICE int gdri_coll_begin(struct gdri_coll *c, int scope, gdr_team_t team, uint32_t op)
{
	c->dev = gdri_dev();
	c->scope = scope;
	c->op = op;
	if (gdri_unlikely(!c->dev))
		return -GDR_ESTATE;
	c->team = gdri_team_of(c->dev, team);
	if (gdri_unlikely(!c->team))
		return gdri_coll_refuse(c, 0, (uint64_t)(int64_t)team, GDRI_ARG_TEAM);
	c->view = GDRI_V_TEAM;
	c->n = c->team->n;
	c->me = c->team->me;
	c->arrival = 0;
	gdri_scope_sync(scope); /* what the other threads wrote is there for those of this call */
	/* pairs with nothing: calls of a team are in the order of the program */
	return (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&c->team->err);
}

/* One thread: the members are no longer in step. The team keeps the status, and they hear of it where no wait has told
 * them. */
GDR_DEVICE_COLD void gdri_coll_give_up(const struct gdri_coll *c, int status)
{
	uint32_t none = 0;

	gdri_cas_u32((uint32_t *)&c->team->err, &none, (uint32_t)status); /* carries no data: pairs with nothing */
	gdri_broken_set(c->dev, gdri_coll_team(c), c->op, status, -1);
}

GDR_DEVICE_COLD int gdri_coll_fail(const struct gdri_coll *c, int status)
{
	if (!gdri_scope_rank(c->scope))
		gdri_coll_give_up(c, status);
	gdri_scope_sync(c->scope); /* or some threads would begin the next call without it */
	return status;
}

/* Everything of a call that the queues still hold: what was sent from may be reused. */
GDRI_NOINLINE int gdri_coll_flush(const struct gdri_coll *c)
{
	int i, pe, ret = 0;

	GDRI_BY_ABI(gdri_coll_flush);
	if (!gdri_n_slots(c->dev))
		return 0;
	if (!gdri_scope_rank(c->scope)) {
		for (i = 0; i < c->team->n && !ret; i++) {
			pe = gdri_team_pe(c->team, i);
			if (i != c->team->me)
				ret = gdri_coll_complete(c->dev, pe, c->team->queue, c->op);
		}
	}
	return gdri_scope_bcast(c->scope, ret);
}

GDR_DEVICE int gdri_coll_end(const struct gdri_coll *c, int ret)
{
	if (!ret)
		ret = gdri_coll_flush(c);
	return gdri_unlikely(ret) ? gdri_coll_fail(c, ret) : 0;
}

/* Out of line. */
GDRI_NOINLINE int gdri_coll_over(const struct gdri_coll *c, int ret)
{
	return gdri_coll_end(c, ret);
}

GDR_DEVICE int gdri_coll_algo(const struct gdri_coll *c, int kind, uint64_t len)
{
	const struct gdri_team *t = c->team;
	int k = 0;

	while (k < GDRI_CHOICES - 1 && len > t->max[kind][k])
		k++;
	return t->algo[kind][k];
}

/* ---- sync ---- */

/* Until the member's word, which only grows, is at least epoch. */
GDRI_NOINLINE int gdri_team_hear(const struct gdri_coll *c, int from, const uint64_t *word,
				 uint64_t epoch)
{
	struct gdri_waiter w;
	int ret;

	gdri_coll_wait_begin(c, &w, from, word);
	/* acquire: pairs with the member's release, or the NIC's order */
	while (gdri_ld_acquire_sys_u64(word) < epoch) {
		ret = gdri_wait_step(c->dev, &w);
		if (ret)
			return ret;
	}
	gdri_wait_end(c->dev, &w);
	return 0;
}

GDR_DEVICE int gdri_team_hear_sync(const struct gdri_coll *c, int from, uint64_t epoch)
{
	int member = gdri_coll_member(c, from);

	return gdri_team_hear(c, member, &c->team->chan[member].sync, epoch);
}

GDR_DEVICE int gdri_team_tell(const struct gdri_coll *c, int to, uint64_t epoch)
{
	return gdri_chan_signal(c, gdri_coll_member(c, to), &c->team->chan[c->team->me].sync, epoch);
}

GDRI_NOINLINE int gdri_team_hear_all(const struct gdri_coll *c, uint64_t epoch)
{
	int ret = 0;

	for (int i = 0; i < c->n && !ret; i++)
		if (i != c->me)
			ret = gdri_team_hear_sync(c, i, epoch);
	return ret;
}

/* One round among members that map each other, behind a fence of the caller's. */
GDRI_NOINLINE int gdri_team_sync_mapped(const struct gdri_coll *c, uint64_t epoch)
{
	struct gdri_chan *chan = c->team->chan;
	int i, ret = 0;

	GDRI_BY_ABI(gdri_team_sync_mapped);
	for (i = 0; i < c->n; i++)
		if (i != c->me) /* with that fence it pairs with the acquire below, at the member */
			gdri_st_fenced_u64((uint64_t *)gdri_chan_mapped(c, &chan[c->me].sync,
									gdri_team_pe(c->team, i)),
					   epoch);
	if (!gdri_spin_all(&chan[0].sync, sizeof(*chan) / sizeof(uint64_t), c->n, c->me, epoch))
		ret = gdri_team_hear_all(c, epoch);
	gdri_fence_acquire_sys();
	return ret;
}

/* Each begins with the one behind it, so that not all tell one member at once. */
GDRI_NOINLINE int gdri_team_tell_all(const struct gdri_coll *c, uint64_t epoch)
{
	int ret = 0;

	for (int step = 1; step < c->n && !ret; step++)
		ret = gdri_team_tell(c, (c->me + step) % c->n, epoch);
	return ret;
}

/* One round, or dissemination: in round k a member tells the one 2^k above it. */
GDRI_NOINLINE int gdri_team_sync_rounds(const struct gdri_coll *c, uint64_t epoch, int flat)
{
	int ret = flat ? gdri_team_tell_all(c, epoch) : 0;

	for (int step = 1; step < c->n && !ret; step = flat ? step + 1 : 2 * step) {
		if (!flat)
			ret = gdri_team_tell(c, (c->me + step) % c->n, epoch);
		if (!ret)
			ret = gdri_team_hear_sync(c, (c->me - step + c->n) % c->n, epoch);
	}
	return ret;
}

/* The first members of the nodes, when theirs have told them, then they those. */
GDRI_NOINLINE int gdri_team_sync_levels(const struct gdri_coll *c, uint64_t epoch)
{
	struct gdri_coll view = gdri_coll_node(c);
	int ret = view.me ? gdri_team_tell(&view, 0, epoch) : gdri_team_hear_all(&view, epoch);

	if (ret)
		return ret;
	if (view.me)
		return gdri_team_hear_sync(&view, 0, epoch);
	view = gdri_coll_lane(c, 0, -1);
	ret = gdri_team_sync_rounds(&view, epoch, 0);
	if (ret)
		return ret;
	view = gdri_coll_node(c);
	return gdri_team_tell_all(&view, epoch);
}

/* First thread. Each member tells another one at most once, so one word for each pair is enough; it
 * holds the number of the sync, which only grows: who is one sync ahead does no harm. */
GDRI_NOINLINE int gdri_team_sync(const struct gdri_coll *c)
{
	struct gdri_team *t = c->team;
	/* pairs with nothing: one caller at a time, each behind the one before by the program */
	uint64_t epoch = gdri_ld_relaxed_gpu_u64(&t->epoch) + 1;
	int algo = gdri_coll_algo(c, GDRI_K_SYNC, 0), id = gdri_coll_team(c), ret = 0;
	/* the half that is never 0: as in gdri_broken */
	uint32_t broken = gdri_ld_relaxed_sys_u32((const uint32_t *)&gdri_k(c->dev, ctl)->team_broken[id]);

	gdri_st_relaxed_gpu_u64(&t->epoch, epoch);
	/* the stores of the threads that this one speaks for; pairs with the acquire in hear */
	gdri_release_to_all(!c->arrival);
	if (gdri_unlikely(broken))
		ret = gdri_broken(c->dev, id, c->op);
	if (ret)
		return ret;
	if (algo == GDRI_A_ONE_SHOT && t->mapped)
		ret = gdri_team_sync_mapped(c, epoch);
	else
		ret = algo == GDRI_A_SINGLE_LEADER ? gdri_team_sync_levels(c, epoch)
					    : gdri_team_sync_rounds(c, epoch, algo == GDRI_A_ONE_SHOT);
	return ret || t->n == 1 ? ret : gdri_wait_flush(c->dev, c->op);
}

/* All threads of the call. */
GDRI_NOINLINE int gdri_coll_sync(const struct gdri_coll *c)
{
	int ret = 0;

	GDRI_BY_ABI(gdri_coll_sync);
	gdri_scope_sync(c->scope);
	if (!gdri_scope_rank(c->scope))
		ret = gdri_team_sync(c);
	return gdri_scope_bcast(c->scope, ret);
}

/* Tells all, the next member once more, and hears all, with a limit; what is then wrong is told as gdri_team_barrier
 * does. */
GDRI_NOINLINE int gdri_team_flat_others(gdr_team_t team)
{
	struct gdri_coll c;
	int ret = gdri_coll_begin(&c, GDRI_THREAD, team, GDRI_TEAM_SYNC);

	if (ret)
		return ret;
	/* the number that gdri_team_flat wrote: pairs with nothing; the stores pair as there */
	ret = gdri_team_sync_mapped(&c, gdri_ld_relaxed_gpu_u64(&c.team->epoch));
	return ret ? gdri_coll_fail(&c, ret) : 0;
}

/* What gdri_team_flat leaves: all, for something has to be looked at first, or another way is the team's; or what
 * gdri_team_flat_others does. */
enum { GDRI_FLAT_NOT = 1, GDRI_FLAT_OTHERS };

/* First thread, where all PEs are mapped: gdri_team_sync_mapped with what the team says loaded at once before the
 * fence, whose time hides that of the loads. It calls nothing: what it kept over a call would come from the stack
 * behind the fence, which empties the first-level cache. */
GDRI_NOINLINE int gdri_team_flat(gdr_team_t team, int quiet)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_team *t = gdri_team_of(dev, team);
	/* each alone: they pair with nothing */
	uint32_t odd = quiet ? gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->latched) : 0;
	uint64_t epoch = t ? gdri_ld_relaxed_gpu_u64(&t->epoch) + 1 : 0, *to, *from;
	int next, two;

	if (gdri_unlikely(!t))
		return GDRI_FLAT_NOT;
	odd |= !t->mapped | !t->stride | (t->algo[GDRI_K_SYNC][0] != GDRI_A_ONE_SHOT) |
	       gdri_ld_relaxed_gpu_u32((const uint32_t *)&t->err) |
	       gdri_ld_relaxed_sys_u32((const uint32_t *)&gdri_k(dev, ctl)->team_broken[team]);
	next = t->me + 1 < t->n ? t->me + 1 : 0;
	two = t->n <= 2;
	to = (uint64_t *)gdri_direct_at(&t->chan[t->me].sync, t->start + next * t->stride);
	from = &t->chan[next].sync;
	GDRI_FOUND(to);
	/* what this thread and those that it speaks for stored; pairs with the acquire fence below */
	gdri_release_to_all(quiet);
	if (gdri_unlikely(odd))
		return GDRI_FLAT_NOT;
	gdri_st_fenced_u64(to, epoch);
	gdri_st_relaxed_gpu_u64(&t->epoch, epoch);
	if (!two || gdri_unlikely(!gdri_spin(from, 8, 0, GDR_CMP_GE, epoch)))
		return GDRI_FLAT_OTHERS;
	gdri_fence_acquire_sys();
	return 0;
}

/* A failed quiet is the caller's to know; the members wait for each other none the less, unless
 * a wait was given up. */
GDRI_NOINLINE int gdri_team_barrier(int scope, gdr_team_t team, int quiet)
{
	struct gdri_coll c;
	int ret, failed = 0, latched = 0;

	GDRI_BY_ABI(gdri_team_barrier);
	if (gdri_direct()) {
		gdri_scope_sync(scope);
		ret = gdri_scope_rank(scope) ? 0 : gdri_team_flat(team, quiet);
		if (ret == GDRI_FLAT_OTHERS)
			ret = gdri_team_flat_others(team);
		ret = gdri_scope_bcast(scope, ret);
		if (gdri_likely(ret <= 0))
			return ret;
	}
	ret = gdri_coll_begin(&c, scope, team, GDRI_TEAM_SYNC);
	if (ret)
		return ret;
	if (quiet) {
		if (!gdri_scope_rank(scope)) {
			/* of before this call, and says nothing of it; pairs with nothing */
			latched = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&c.dev->latched);
			if (gdri_unlikely(latched))
				latched = gdri_take_latched(c.dev);
			failed = gdri_quiet(c.dev, 0, -1);
		}
		failed = gdri_scope_bcast(scope, failed);
		if (failed == -GDR_ETIMEOUT || failed == -GDR_EPEERLOST || failed == -GDR_EABORTED)
			return gdri_coll_fail(&c, failed);
	}
	c.arrival = !quiet;
	ret = gdri_coll_sync(&c);
	if (ret)
		gdri_coll_fail(&c, ret);
	ret = failed ? failed : ret;
	return quiet && !ret ? gdri_scope_bcast(scope, latched) : ret;
}

#endif
