/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts the operations and receives of a round (round.h). */
#include "round.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "post.h"

static struct lane *make_lanes(const struct config *c, const struct plan *plan, bool receives)
{
	struct lane *lane = calloc(c->qps, sizeof(*lane));

	if (!lane)
		abort();
	for (unsigned q = 0; q < c->qps; q++) {
		lane[q].index = calloc(plan->n, sizeof(unsigned));
		if (!lane[q].index)
			abort();
	}
	for (unsigned i = 0; i < plan->n; i++) {
		struct lane *l = &lane[plan->op[i].qp];

		if (!receives || plan_receives(plan->op[i].kind))
			l->index[l->n++] = i;
	}
	return lane;
}

static unsigned lanes_total(const struct lane *lane, unsigned qps)
{
	unsigned n = 0;

	for (unsigned q = 0; q < qps; q++)
		n += lane[q].n;
	return n;
}

int round_begin(struct round *r, struct peer *p, struct memory *model, uint64_t *state)
{
	const struct config *c = p->config;

	memset(r, 0, sizeof(*r));
	r->peer = p;
	r->state = (uint64_t)getpid();
	for (int from = 0; from < 2; from++)
		plan_make(&r->plan[from], c, state, from, model);
	r->send = make_lanes(c, &r->plan[p->side], false);
	r->receive = make_lanes(c, &r->plan[!p->side], true);
	r->sends_left = lanes_total(r->send, c->qps);
	r->receives_left = lanes_total(r->receive, c->qps);
	if (c->srq)
		memset(p->memory + p->plan_size, 0xee, p->size - p->plan_size);
	return 0;
}

void round_end(struct round *r)
{
	for (unsigned q = 0; q < r->peer->config->qps; q++) {
		free(r->send[q].index);
		free(r->receive[q].index);
	}
	free(r->send);
	free(r->receive);
	plan_free(&r->plan[0]);
	plan_free(&r->plan[1]);
}

/* Posts the next receive; false when all are posted. */
static bool post_next_receive(struct round *r, int *rc)
{
	const struct config *c = r->peer->config;
	unsigned total = lanes_total(r->receive, c->qps);

	if (c->srq) {
		if (r->slots == total)
			return false;
		*rc |= post_slot(r->peer, r->slots++);
		return true;
	}
	for (unsigned i = 0, q = draw_below(&r->state, c->qps); i < c->qps; i++, q++) {
		struct lane *l = &r->receive[q % c->qps];

		if (l->posted == l->n)
			continue;
		*rc |= post_receive(r->peer, &r->plan[!r->peer->side].op[l->index[l->posted]],
				    l->index[l->posted]);
		l->posted++;
		return true;
	}
	return false;
}

/* Posts a list on some queue pair that has something left, and room. */
static int post_some(struct round *r, bool *posted)
{
	const struct config *c = r->peer->config;

	for (unsigned i = 0, q = draw_below(&r->state, c->qps); i < c->qps; i++, q++) {
		struct lane *l = &r->send[q % c->qps];
		unsigned n = l->n - l->posted, room = c->depth - (l->posted - l->done);
		unsigned list = 1 + draw_below(&r->state, c->list);

		n = n < list ? n : list;
		n = n < room ? n : room;
		if (!n)
			continue;
		if (post_ops(r->peer, &r->plan[r->peer->side], l->index + l->posted, n))
			return -1;
		l->posted += n;
		*posted = true;
		return 0;
	}
	return 0;
}

int round_run(struct round *r)
{
	const struct config *c = r->peer->config;
	int rc = 0;

	while (!c->late && !rc && post_next_receive(r, &rc))
		;
	if (rc || peer_barrier(r->peer))
		return -1;
	r->heard = now();
	while (r->sends_left || r->receives_left) {
		bool posted = false, more = false;

		if (post_some(r, &posted))
			return -1;
		if (c->late && draw_below(&r->state, 4) == 0)
			more = post_next_receive(r, &rc);
		if (c->late && !posted && !more)
			more = post_next_receive(r, &rc);
		if (rc || round_complete(r, !posted && !more))
			return -1;
	}
	return peer_barrier(r->peer);
}
