// SPDX-License-Identifier: BSD-3-Clause
/* The source's side: fills requests with commands, sends them, takes their replies. */
#include "runtime/ofi/ofi.h"

#include <string.h>

#include "runtime/core/log.h"

static uint32_t command_data(const struct gdri_ofi_command *c)
{
	if (c->verb == OFI_AMO)
		return sizeof(struct gdri_net_atomic);
	return c->verb == OFI_PUT ? gdri_ofi_padded(c->offset, c->len) : 0;
}

static uint32_t command_answer(const struct gdri_ofi_fabric *f, const struct gdri_ofi_command *c)
{
	uint32_t n = sizeof(struct gdri_ofi_answer);

	if (c->verb == OFI_AMO)
		return n + 8;
	if (c->verb == OFI_GET)
		return n + gdri_ofi_padded(c->offset, c->len);
	return c->verb == OFI_LIST ? n + gdri_ofi_part_bytes(f) * (uint32_t)gdri_ofi_most_parts(f) : n;
}

struct gdri_ofi_request *gdri_ofi_room(struct gdri_ofi_proxy *t, int pe,
				       const struct gdri_ofi_command *c)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	uint32_t len = (uint32_t)sizeof(*c) + command_data(c), answer = command_answer(&t->fabric, c);
	struct gdri_ofi_request *r;

	for (;;) {
		r = &p->requests[p->seq % OFI_WINDOW];
		if (p->lost || r->waits || r->out.ready || r->out.sent)
			return NULL;
		if (!r->n) {
			gdri_ofi_clear(&r->out);
			r->answer = sizeof(struct gdri_ofi_head);
		}
		if (r->n < OFI_COMMANDS && r->out.used + len <= p->message &&
		    r->answer + answer <= p->message)
			return r;
		gdri_ofi_flush(t, pe);
	}
}

void *gdri_ofi_command(struct gdri_ofi_proxy *t, int pe, struct gdri_ofi_request *r,
		       const struct gdri_ofi_command *c, struct gdri_ofi_op *op)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	uint32_t padded = command_data(c);
	uint8_t *data;

	memcpy(gdri_ofi_append(&r->out, sizeof(*c)), c, sizeof(*c));
	data = gdri_ofi_append(&r->out, padded);
	if (padded) /* no byte goes out that nobody wrote */
		memset(data, 0, 8), memset(data + padded - 8, 0, 8);
	r->asked[r->n++] = (struct gdri_ofi_asked){.op = op, .offset = c->offset, .len = c->len, .verb = c->verb};
	r->answer += command_answer(&t->fabric, c);
	t->news = true;
	if (!p->under_way++)
		p->progress = t->now;
	return data + (c->verb == OFI_PUT ? c->offset & 7 : 0);
}

void gdri_ofi_command_from(struct gdri_ofi_proxy *t, struct gdri_ofi_request *r, uint32_t lkey, uint64_t addr,
			   void *data, uint32_t len)
{
	/* who posts has seen that it is there: no copy of others has to come before */
	if (!r->stages) {
		r->failures = t->memory.failures;
		r->source = gdri_ofi_source_take(&t->memory);
	}
	r->stages = true;
	if (r->source)
		gdri_ofi_source_load(&t->memory, r->source, lkey, addr, data, len);
	else
		gdri_ofi_load(&t->memory, lkey, addr, data, len);
}

/* The GPU did not give what it was to carry. */
static void request_fails(struct gdri_ofi_peer *p, struct gdri_ofi_request *r)
{
	uint32_t i, n = r->n;

	r->n = 0;
	p->under_way -= n;
	for (i = 0; i < n; i++) {
		if (r->asked[i].op)
			gdri_ofi_ended(r->asked[i].op, GDRI_NET_LOCAL);
		else
			p->asks = false;
	}
}

static void request_goes(struct gdri_ofi_proxy *t, struct gdri_ofi_request *r)
{
	r->stages = false;
	r->out.head->n = r->n;
	gdri_ofi_seal(t, &r->out, OFI_REQUEST, r->seq);
	gdri_ofi_carry(t, r->out.ctx.peer, &r->out);
	gdri_ofi_send(t, &r->out);
}

/* Its number is given out, and the target waits for it: without commands it goes, too. */
static void request_lands(struct gdri_ofi_proxy *t, int pe, struct gdri_ofi_request *r)
{
	bool failed;

	if (!gdri_ofi_source_ends(r->source, false, &failed))
		return;
	r->source = NULL;
	if (failed) {
		request_fails(&t->peers[pe], r);
		gdri_ofi_clear(&r->out);
	}
	request_goes(t, r);
}

void gdri_ofi_land(struct gdri_ofi_proxy *t, int pe)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	uint32_t i;

	for (i = 0; i < OFI_WINDOW && !p->lost; i++)
		if (p->requests[i].source && p->requests[i].waits)
			request_lands(t, pe, &p->requests[i]);
}

void gdri_ofi_drop(struct gdri_ofi_proxy *t, int pe)
{
	struct gdri_ofi_request *r = t->peers[pe].requests;
	bool failed;
	uint32_t i;

	for (i = 0; i < OFI_WINDOW; i++, r++) {
		if (r->source)
			gdri_ofi_source_ends(r->source, true, &failed);
		r->source = NULL;
		r->waits = r->stages = false;
	}
}

void gdri_ofi_flush(struct gdri_ofi_proxy *t, int pe)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	struct gdri_ofi_request *r = &p->requests[p->seq % OFI_WINDOW];

	if (p->lost || r->waits || !r->n)
		return;
	if (r->stages && !r->source && gdri_ofi_settle(&t->memory) != r->failures) {
		r->stages = false;
		request_fails(p, r);
		return;
	}
	r->waits = true;
	r->seq = p->seq++;
	if (r->source)
		request_lands(t, pe, r);
	else
		request_goes(t, r);
}

void gdri_ofi_ask(struct gdri_ofi_proxy *t, int pe, uint32_t list)
{
	struct gdri_ofi_command c = {.verb = OFI_LIST, .slot = (uint32_t)t->index};
	struct gdri_ofi_peer *p = &t->peers[pe];
	struct gdri_ofi_part own[GDRI_OFI_PARTS];
	struct gdri_ofi_request *r;
	uint32_t n;

	if (pe == t->net->pe) {
		p->list = gdri_ofi_memory_list(&t->memory, own, &n);
		gdri_ofi_parts_take(&t->fabric, p, own, n);
		p->asked = list;
		return;
	}
	r = p->asks ? NULL : gdri_ofi_room(t, pe, &c);
	if (!r)
		return;
	gdri_ofi_command(t, pe, r, &c, NULL);
	p->asks = true;
	p->asked = list;
}

/* ---- replies ---- */

static void reply_list(const struct gdri_ofi_fabric *f, struct gdri_ofi_peer *p, const struct gdri_ofi_answer *a,
		       const uint8_t *data)
{
	uint32_t n = a->len / gdri_ofi_part_bytes(f);

	p->asks = false;
	if (n > GDRI_OFI_PARTS)
		return;
	gdri_ofi_parts_take_list(f, p, data, n);
	p->list = a->syndrome;
}

/* Of a command's answer, whatever it says. */
static uint32_t reply_data(const struct gdri_ofi_asked *k, const struct gdri_ofi_answer *a)
{
	if (k->verb == OFI_AMO)
		return 8;
	if (k->verb == OFI_GET)
		return gdri_ofi_padded(k->offset, k->len);
	return k->verb == OFI_LIST ? gdri_ofi_padded(0, a->len) : 0;
}

static bool reply_lands(struct gdri_ofi_proxy *t, const struct gdri_ofi_asked *k, const uint8_t *data)
{
	uint64_t skip = k->verb == OFI_GET ? k->offset & 7 : 0;

	return gdri_ofi_store(&t->memory, k->op->lkey, k->op->local + (k->offset - k->op->offset), data + skip, k->len);
}

/* Bytes that the answer takes; 0: it is none. */
static uint32_t reply_one(struct gdri_ofi_proxy *t, struct gdri_ofi_peer *p, struct gdri_ofi_asked *k,
			  const uint8_t *at, uint32_t left)
{
	const struct gdri_ofi_answer *a = (const struct gdri_ofi_answer *)(const void *)at;
	uint32_t padded;

	if (left < sizeof(*a) || a->len > p->message)
		return 0;
	padded = reply_data(k, a);
	if (left < sizeof(*a) + padded || (k->op && k->op->lands && a->len != k->len))
		return 0;
	if (!k->op)
		reply_list(&t->fabric, p, a, at + sizeof(*a));
	k->syndrome = a->syndrome & 0xff;
	if (k->op && k->op->lands && !k->syndrome && !reply_lands(t, k, at + sizeof(*a)))
		k->syndrome = GDRI_NET_LOCAL;
	return (uint32_t)sizeof(*a) + padded;
}

/* All that the reply brought is in its place. */
static void reply_ends(struct gdri_ofi_peer *p, struct gdri_ofi_request *r, bool landed)
{
	struct gdri_ofi_asked *k;
	uint32_t i, n = r->n;

	r->waits = false;
	r->n = 0;
	p->under_way -= n;
	for (i = 0; i < n; i++) {
		k = &r->asked[i];
		if (k->op)
			gdri_ofi_ended(k->op, !landed && k->op->lands && !k->syndrome ? GDRI_NET_LOCAL : k->syndrome);
	}
}

/* Of puts that are all done there are no answers. */
static bool reply_is_plain(const struct gdri_ofi_request *r, uint32_t n, uint32_t bytes)
{
	uint32_t i;

	if (bytes || n != r->n)
		return false;
	for (i = 0; i < r->n && r->asked[i].verb == OFI_PUT; i++)
		;
	return i == r->n;
}

void gdri_ofi_replied(struct gdri_ofi_proxy *t, int pe, uint32_t seq, uint32_t n, const uint8_t *at, uint32_t left)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	struct gdri_ofi_request *r = &p->requests[seq % OFI_WINDOW];
	uint32_t i, len, failures = t->memory.failures;

	if (!r->waits || r->source || r->seq != seq)
		return;
	if (reply_is_plain(r, n, left)) {
		reply_ends(p, r, true);
		return;
	}
	for (i = 0; i < r->n && i < n; i++, at += len, left -= len) {
		len = reply_one(t, p, &r->asked[i], at, left);
		if (!len)
			break;
	}
	if (i < r->n)
		gdri_ofi_lost(t, pe, "its reply is none");
	else
		reply_ends(p, r, gdri_ofi_settle(&t->memory) == failures);
}
