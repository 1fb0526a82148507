/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations and their effect (plan.h). */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#define SLICE 8u /* times the largest message: slice of a direction of a queue pair */

uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint32_t draw_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((draw(state) >> 32) * n >> 32);
}

/* Room for an atomic's alignment beside the messages. */
static uint32_t slice_size(const struct config *c)
{
	return SLICE * ((c->size + 63) & ~63u) + 64;
}

size_t plan_memory(const struct config *c)
{
	return (size_t)slice_size(c) * 2 * c->qps;
}

bool plan_sends(enum plan_kind kind)
{
	return kind == PLAN_SEND || kind == PLAN_SEND_IMM;
}

bool plan_receives(enum plan_kind kind)
{
	return plan_sends(kind) || kind == PLAN_WRITE_IMM;
}

static bool is_atomic(enum plan_kind kind)
{
	return kind == PLAN_ADD || kind == PLAN_SWAP;
}

static bool reads(enum plan_kind kind)
{
	return kind == PLAN_READ || is_atomic(kind);
}

/* Small ones often, those around a packet's size sometimes, none at times. */
static uint32_t draw_length(const struct config *c, uint64_t *s)
{
	uint32_t mtu = c->mtu, n;

	switch (draw_below(s, 8)) {
	case 0:
		n = draw_below(s, 9);
		break;
	case 1:
	case 2:
		n = 1 + draw_below(s, 300);
		break;
	case 3:
		n = mtu * (1 + draw_below(s, 3)) - 1 + draw_below(s, 3);
		break;
	case 4:
		n = c->size;
		break;
	default:
		n = draw_below(s, c->size + 1);
	}
	return n > c->size ? c->size : n;
}

/* Cuts `length` bytes into pieces that do not touch, somewhere in the slice, in any order. */
static void draw_pieces(struct pieces *p, const struct config *c, uint64_t *s, uint32_t slice,
			uint32_t length)
{
	uint32_t left = length, at, gap = slice_size(c) - length;
	unsigned n = 1 + draw_below(s, c->sges);

	at = slice + draw_below(s, gap / 2);
	gap /= 2 * n;
	for (p->n = 0; p->n < n && (left || !p->n); p->n++) {
		uint32_t part = p->n + 1 == n ? left : draw_below(s, left) + (left != 0);

		p->p[p->n] = (struct piece){at, part};
		at += part + draw_below(s, gap);
		left -= part;
	}
	for (unsigned i = p->n; i > 1; i--) {
		unsigned j = draw_below(s, i);
		struct piece t = p->p[i - 1];

		p->p[i - 1] = p->p[j];
		p->p[j] = t;
	}
	if (!length) /* a piece of length 0 would stand for 2 GiB */
		p->n = 0;
}

static bool overlap(uint32_t a, uint32_t a_length, uint32_t b, uint32_t b_length)
{
	return a < b + b_length && b < a + a_length;
}

static bool pieces_overlap(const struct pieces *a, const struct pieces *b)
{
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned j = 0; j < b->n; j++)
			if (overlap(a->p[i].at, a->p[i].length, b->p[j].at, b->p[j].length))
				return true;
	return false;
}

/* Does `op` change what the earlier `read` reads? A repeated READ would see the change. */
static bool spoils(const struct op *op, const struct op *read)
{
	if (reads(op->kind) && !is_atomic(op->kind))
		return false;
	if (plan_sends(op->kind)) {
		const struct pieces at = {{{read->remote, read->length}}, 1};

		return pieces_overlap(&op->receive, &at);
	}
	return overlap(op->remote, op->length, read->remote, read->length);
}

/* Data that a READ or atomic of this round brings is there after a fence, for an inline copy, which
 * is made while posting, not even then. */
static void set_fence(struct op *op, const struct plan *plan, uint64_t *s)
{
	bool open = true; /* no fence between here and `op` */

	op->fence = draw_below(s, 10) == 0;
	for (unsigned i = plan->n; i-- > 0;) {
		const struct op *r = &plan->op[i];

		if (r->qp != op->qp)
			continue;
		if (reads(r->kind) && pieces_overlap(&op->local, &r->local)) {
			op->inlined = false;
			op->fence |= open;
		}
		if (open && reads(r->kind) && spoils(op, r))
			op->fence = true;
		open &= !r->fence;
	}
}

/* Small messages may come inside their completion (scatter to CQE), and are in memory when that was
 * polled: until then, nothing else may touch the buffer. */
static bool too_early(const struct op *op, const struct plan *plan)
{
	const struct pieces range = {{{op->remote, op->length}}, 1};
	const struct pieces *target = plan_sends(op->kind) ? &op->receive : &range;

	for (unsigned i = 0; i < plan->n; i++)
		if (plan->op[i].qp == op->qp && pieces_overlap(target, &plan->op[i].receive))
			return true;
	return false;
}

static void draw_op(struct op *op, const struct config *c, uint64_t *s, int from)
{
	uint32_t size = slice_size(c), slice;

	memset(op, 0, sizeof(*op));
	op->kind = (enum plan_kind)draw_below(s, c->unreliable ? PLAN_READ : PLAN_KINDS);
	op->qp = draw_below(s, c->qps);
	slice = (op->qp * 2 + (unsigned)from) * size;
	op->length = is_atomic(op->kind) ? 8 : draw_length(c, s);
	op->remote = slice + draw_below(s, size - op->length + 1);
	op->imm = (uint32_t)draw(s);
	op->operand = draw(s);
	op->compare = draw(s);
	op->local_key = draw_below(s, 2);
	op->remote_key = draw_below(s, 2);
	op->signalled = draw_below(s, 3) == 0;
	op->inlined = !reads(op->kind) && op->length <= c->inline_size && draw_below(s, 2);
	draw_pieces(&op->local, c, s, slice, op->length);
	if (is_atomic(op->kind)) {
		op->remote &= ~7u;
		op->local = (struct pieces){{{op->local.p[0].at, 8}}, 1};
	}
	if (plan_sends(op->kind)) {
		uint32_t room = op->length + draw_below(s, 100);

		draw_pieces(&op->receive, c, s, slice, room < c->size ? room : c->size);
	}
}

static void gather(uint8_t *to, const uint8_t *memory, const struct pieces *p, uint32_t length)
{
	for (unsigned i = 0; i < p->n && length; i++) {
		uint32_t n = p->p[i].length < length ? p->p[i].length : length;

		memcpy(to, memory + p->p[i].at, n);
		to += n;
		length -= n;
	}
}

static void scatter(uint8_t *memory, const struct pieces *p, const uint8_t *from, uint32_t length)
{
	for (unsigned i = 0; i < p->n && length; i++) {
		uint32_t n = p->p[i].length < length ? p->p[i].length : length;

		memcpy(memory + p->p[i].at, from, n);
		from += n;
		length -= n;
	}
}

static void apply_atomic(const struct op *op, uint8_t *local, uint8_t *remote)
{
	uint64_t old, new;

	memcpy(&old, remote + op->remote, 8);
	new = op->kind == PLAN_ADD ? old + op->operand : old == op->compare ? op->operand : old;
	memcpy(remote + op->remote, &new, 8);
	memcpy(local + op->local.p[0].at, &old, 8);
}

static void apply(struct op *op, const struct config *c, struct memory *model, int from)
{
	uint8_t *local = model->side[from], *remote = model->side[!from];
	uint8_t *data;

	if (is_atomic(op->kind)) {
		if (op->kind == PLAN_SWAP && op->imm & 1) /* every second one succeeds */
			memcpy(&op->compare, remote + op->remote, 8);
		apply_atomic(op, local, remote);
		return;
	}
	data = malloc(op->length + 1u);
	if (!data)
		abort();
	if (op->kind == PLAN_READ) {
		scatter(local, &op->local, remote + op->remote, op->length);
	} else {
		gather(data, local, &op->local, op->length);
		if (!plan_sends(op->kind))
			memcpy(remote + op->remote, data, op->length);
		else if (!c->srq)
			scatter(remote, &op->receive, data, op->length);
	}
	if (c->srq && plan_sends(op->kind))
		op->payload = data;
	else
		free(data);
}

/* The last of each queue pair is signalled, and enough on the way that its ring never fills. */
static void set_signals(struct plan *plan, const struct config *c)
{
	unsigned quiet[PLAN_QPS] = {0};
	bool seen[PLAN_QPS] = {false};

	for (unsigned i = plan->n; i-- > 0;) {
		struct op *op = &plan->op[i];

		op->signalled |= !seen[op->qp] || ++quiet[op->qp] >= c->depth / 4;
		if (op->signalled)
			quiet[op->qp] = 0;
		seen[op->qp] = true;
	}
}

void plan_make(struct plan *plan, const struct config *c, uint64_t *state, int from,
	       struct memory *model)
{
	plan->op = calloc(c->ops, sizeof(*plan->op));
	if (!plan->op)
		abort();
	for (plan->n = 0; plan->n < c->ops; plan->n++) {
		struct op *op = &plan->op[plan->n];

		for (unsigned tries = 0; tries < 8; tries++) {
			draw_op(op, c, state, from);
			if (c->srq || !too_early(op, plan))
				break;
		}
		if (!c->srq && too_early(op, plan))
			*op = (struct op){.kind = PLAN_WRITE, .qp = op->qp, .remote = op->remote};
		set_fence(op, plan, state);
		apply(op, c, model, from);
	}
	set_signals(plan, c);
}

void plan_free(struct plan *plan)
{
	for (unsigned i = 0; i < plan->n; i++)
		free(plan->op[i].payload);
	free(plan->op);
	memset(plan, 0, sizeof(*plan));
}
