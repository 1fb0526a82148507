/* SPDX-License-Identifier: BSD-3-Clause */
/* GDR_CHECKED: before a collective its members tell each other what they are about to call (struct gdri_match), and
 * each compares that with its own call. When not all are alike, each member finds one that differs: all refuse the
 * call, none has begun it, and the team is in step for the next one.
 *
 * Who tells of call s + 2, in the room of call s, has heard of everybody's call s + 1, which they told of when they
 * were done with what was said of s. */
#ifndef GDRI_MATCH_H
#define GDRI_MATCH_H

#include <gdr/impl/api/check.h>
#include <gdr/impl/request/request.h>
#include <gdr/impl/coll/team.h>

#define GDRI_MATCH_REFUSED (1ull << 63) /* its own arguments are wrong */

/* Bytes, from the lowest: what, scope, size of an element; root in two; code in two.
 * runtime/diag/refusal.c reads it. */
GDRI_NOINLINE void gdri_match_say(struct gdri_match *m, const struct gdri_site *at, const struct gdri_request *q,
				  int bad)
{
	int steps = q->what == GDRI_RQ_ALLTOALLS, by_size = steps || q->coll.code;
	int scope = q->what < GDRI_RQ_COLLECTIVE ? 0 : at->scope; /* barriers are of any form on each */

	m->call = q->what | (uint64_t)scope << 8 | (uint64_t)(by_size ? q->size : 0) << 16 |
		  (uint64_t)(uint16_t)q->coll.root << 24 | (uint64_t)(q->coll.code & 0x7fff) << 40 |
		  (bad ? GDRI_MATCH_REFUSED : 0);
	m->len = q->what == GDRI_RQ_COLLECT ? 0 : q->n * q->size;
	m->steps = steps ? (uint64_t)q->coll.dst_step << 32 | (uint32_t)q->coll.src_step : 0;
}

GDRI_NOINLINE int gdri_match_tell(const struct gdri_coll *c, int to, struct gdri_match *at,
				  const struct gdri_match *mine)
{
	int pe = gdri_team_pe(c->team, to);
	struct gdri_match *p = (struct gdri_match *)(void *)gdri_chan_mapped(c, at, pe);
	struct gdri_operation o = gdri_coll_message(c->dev, GDRI_THREAD, pe, c->team->queue, at, mine,
						    offsetof(struct gdri_match, tag));

	if (p) {
		/* published by the tag, whose release pairs with the acquire in gdri_match_hear */
		gdri_st_relaxed_sys_u64(&p->call, mine->call);
		gdri_st_relaxed_sys_u64(&p->len, mine->len);
		gdri_st_relaxed_sys_u64(&p->steps, mine->steps);
	}
	o.sig = &at->tag;
	o.value = mine->tag;
	return gdri_coll_post(c->dev, &o);
}

GDRI_NOINLINE int gdri_match_hear(const struct gdri_coll *c, int from, const struct gdri_match *m, uint32_t seq)
{
	struct gdri_waiter w;
	int ret;

	gdri_coll_wait_begin(c, &w, from, &m->tag);
	/* acquire: pairs with the release in gdri_match_tell, or the NIC's order */
	while ((uint32_t)(gdri_ld_acquire_sys_u64(&m->tag) >> 32) != seq) {
		ret = gdri_wait_step(c->dev, &w);
		if (ret)
			return ret;
	}
	gdri_wait_end(c->dev, &w);
	return gdri_wait_flush(c->dev, c->op);
}

GDR_DEVICE_COLD int gdri_match_refuse(const struct gdri_coll *c, const struct gdri_site *at, int from,
				      const struct gdri_match *mine, const struct gdri_match *other)
{
	struct gdri_error *e;
	int steps = mine->call == other->call && mine->len == other->len;
	int status = other->call & GDRI_MATCH_REFUSED ? -GDR_EINVAL : -GDR_EMISMATCH;

	e = gdri_error_arg_take(c->dev, at->op, gdri_team_pe(c->team, from), 0, 0, 0);
	if (!e)
		return status;
	e->status = status;
	e->reason |= other->call & GDRI_MATCH_REFUSED ? GDRI_ARG_PEER : steps ? GDRI_ARG_STEPS : GDRI_ARG_MATCH;
	e->waited_for = (int32_t)(c->team - gdri_k(c->dev, teams));
	e->wqe_index = (uint32_t)(mine->tag >> 32) << 16 | (uint16_t)gdri_k(c->dev, pe);
	e->qpn = (uint32_t)other->tag;
	e->addr = mine->call;
	e->local = other->call;
	e->len = steps ? mine->steps : mine->len;
	e->waited_ns = steps ? other->steps : other->len;
	gdri_error_at(e, at);
	gdri_error_complete(e);
	return status;
}

/* Who did not come has told of a call of another team that this PE has not made: neither will end. */
GDR_DEVICE_COLD void gdri_match_elsewhere(const struct gdri_coll *c, const struct gdri_site *at, int from)
{
	int pe = gdri_team_pe(c->team, from), id, i, k;
	const struct gdri_team *t;
	const struct gdri_match *m;
	struct gdri_error *e;
	uint64_t tag;

	for (id = 0; id < (int)gdri_k(c->dev, n_teams); id++) {
		t = &gdri_k(c->dev, teams)[id];
		i = t->n && t != c->team ? gdri_team_index(t, pe) : -1;
		for (k = 0; i >= 0 && k < 2; k++) {
			m = &t->match[k * t->n + i];
			tag = gdri_ld_acquire_sys_u64(&m->tag); /* pairs with the tag's release */
			if (!tag || (int32_t)((uint32_t)(tag >> 32) - (uint32_t)t->match_seq) <= 0)
				continue;
			e = gdri_error_arg_take(c->dev, at->op, pe, 0, (uint64_t)id, GDRI_ARG_ELSEWHERE);
			if (!e)
				return;
			e->status = -GDR_EMISMATCH;
			e->waited_for = (int32_t)(c->team - gdri_k(c->dev, teams));
			e->qpn = (uint32_t)tag;
			e->local = m->call;
			gdri_error_at(e, at);
			gdri_error_complete(e);
			return;
		}
	}
}

/* First thread. */
GDRI_NOINLINE int gdri_match_all(const struct gdri_coll *c, const struct gdri_site *at, struct gdri_match *mine)
{
	struct gdri_team *t = c->team;
	/* calls of a team are in the order of the program, and this one is alone: see gdri_check_alone */
	uint64_t seq = (uint32_t)gdri_add_u64(&t->match_seq, 1) + 1u;
	struct gdri_match *said = t->match + (seq & 1) * (uint32_t)t->n, *m;
	int i, from = t->me, ret = 0, differs = -1;

	mine->tag = seq << 32 | at->line;
	for (i = 1; i < t->n && !ret; i++)
		ret = gdri_match_tell(c, (t->me + i) % t->n, &said[t->me], mine);
	for (i = 1; i < t->n && !ret; i++) {
		from = (t->me + i) % t->n;
		m = &said[from];
		ret = gdri_match_hear(c, from, m, (uint32_t)seq);
		if (!ret && (m->call != mine->call || m->len != mine->len || m->steps != mine->steps) &&
		    (differs < 0 || m->call & GDRI_MATCH_REFUSED))
			differs = from;
	}
	if (ret == -GDR_ETIMEOUT)
		gdri_match_elsewhere(c, at, from);
	if (ret) { /* the other threads learn it from the team, or from what this one says */
		gdri_coll_give_up(c, ret);
		return ret;
	}
	if (differs < 0 || mine->call & GDRI_MATCH_REFUSED)
		return 0; /* alike, or this PE has said what is wrong */
	return gdri_match_refuse(c, at, differs, mine, &said[differs]);
}

/* bad: what was found of the own arguments. All threads of the scope. */
GDRI_NOINLINE int gdri_check_match(const struct gdri_site *at, const struct gdri_request *q, int bad)
{
	struct gdri_match mine;
	struct gdri_coll c;
	int ret = 0;

	if (gdri_coll_begin(&c, at->scope, q->coll.team, at->op & 0xffu) || c.n < 2)
		return bad; /* the call itself says what became of the team */
	if (!gdri_scope_rank(at->scope)) {
		gdri_match_say(&mine, at, q, bad);
		ret = gdri_match_all(&c, at, &mine);
	}
	ret = gdri_scope_bcast(at->scope, ret);
	return bad ? bad : ret;
}

#endif
