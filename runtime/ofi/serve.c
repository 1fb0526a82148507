// SPDX-License-Identifier: BSD-3-Clause
/* The target's side: executes the commands of requests in their order. What came from the network is checked. */
#include "runtime/ofi/ofi.h"

#include <string.h>

#include <gdr/impl/arch/arch.h>

#include "runtime/core/log.h"

#define CARRIED 256u /* most bytes of a reply behind a request: more is better sent while the request is copied */

/* The rest of a message. */
struct serve_input {
	const uint8_t *at;
	uint32_t left;
};

static uint32_t serve_key(const struct gdri_ofi_command *c)
{
	return c->flags & OFI_PAGE ? GDRI_OFI_KEY_PAGE : GDRI_OFI_KEY_HEAP;
}

/* NULL: it is shorter. */
static const void *serve_take(struct serve_input *in, uint32_t len)
{
	const void *at = in->at;

	if (len > in->left)
		return NULL;
	in->at += len;
	in->left -= len;
	return at;
}

static uint8_t *serve_answer(struct gdri_ofi_message *reply, uint32_t syndrome, uint32_t len,
			     uint32_t padded)
{
	struct gdri_ofi_answer a = {syndrome, len};

	memcpy(gdri_ofi_append(reply, sizeof(a)), &a, sizeof(a));
	return gdri_ofi_append(reply, padded);
}

static bool serve_put(struct gdri_ofi_proxy *t, const struct gdri_ofi_command *c,
		      struct serve_input *in, struct gdri_ofi_message *reply)
{
	const uint8_t *data =
		c->len <= t->net->message ? serve_take(in, gdri_ofi_padded(c->offset, c->len)) : NULL;
	bool is;

	if (!data)
		return false;
	is = gdri_ofi_store(&t->memory, serve_key(c), c->offset, data + (c->offset & 7), c->len);
	serve_answer(reply, is ? 0 : GDRI_NET_REMOTE, 0, 0);
	return true;
}

static bool serve_get(struct gdri_ofi_proxy *t, const struct gdri_ofi_command *c,
		      struct gdri_ofi_message *reply)
{
	uint32_t padded = gdri_ofi_padded(c->offset, c->len);
	struct gdri_ofi_answer *a;
	uint8_t *data;

	if (reply->used + sizeof(*a) + padded > t->net->message)
		return false;
	a = (struct gdri_ofi_answer *)(void *)((uint8_t *)reply->head + reply->used);
	data = serve_answer(reply, 0, c->len, padded);
	if (!gdri_ofi_load(&t->memory, serve_key(c), c->offset, data + (c->offset & 7), c->len))
		a->syndrome = GDRI_NET_REMOTE;
	return true;
}

static bool serve_amo(struct gdri_ofi_proxy *t, const struct gdri_ofi_command *c,
		      struct serve_input *in, struct gdri_ofi_message *reply)
{
	const void *operands = serve_take(in, sizeof(struct gdri_net_atomic));
	struct gdri_net_atomic a;
	uint32_t syndrome;
	uint64_t old = 0;

	if (!operands || reply->used + 2 * sizeof(old) > t->net->message)
		return false;
	memcpy(&a, operands, sizeof(a));
	if (!gdri_net_atomic_is(&a))
		return false;
	syndrome = gdri_ofi_atomic(&t->memory, serve_key(c), c->offset, &a, c->flags & OFI_BLIND ? NULL : &old);
	memcpy(serve_answer(reply, syndrome, a.size, sizeof(old)), &old, sizeof(old));
	return true;
}

static bool serve_list(struct gdri_ofi_proxy *t, struct gdri_ofi_message *reply)
{
	struct gdri_ofi_part parts[GDRI_OFI_PARTS];
	uint32_t n, list = gdri_ofi_memory_list(&t->memory, parts, &n);
	uint32_t len = n * gdri_ofi_part_bytes(&t->fabric);

	if (reply->used + sizeof(struct gdri_ofi_answer) + len > t->net->message)
		return false;
	gdri_ofi_parts_tell(&t->fabric, parts, n, serve_answer(reply, list, len, len));
	return true;
}

/* What is behind a command that failed, in its queue: a signal must not tell of bytes that are not there. */
static bool serve_flush(struct gdri_ofi_proxy *t, const struct gdri_ofi_command *c, struct serve_input *in,
			struct gdri_ofi_message *reply)
{
	uint32_t padded = gdri_ofi_padded(c->offset, c->len), takes = 0, gives = 0;

	if (c->verb == OFI_PUT)
		takes = padded;
	else if (c->verb == OFI_GET)
		gives = padded;
	else if (c->verb == OFI_AMO)
		takes = sizeof(struct gdri_net_atomic), gives = sizeof(uint64_t);
	else
		return false;
	if (!serve_take(in, takes) ||
	    reply->used + sizeof(struct gdri_ofi_answer) + gives > t->net->message)
		return false;
	memset(serve_answer(reply, GDRI_SYND_FLUSH, gives ? c->len : 0, gives), 0, gives);
	return true;
}

/* What came of the commands of a request. */
struct serve_answers {
	struct gdri_ofi_answer *at[OFI_COMMANDS];
	bool *refuses[OFI_COMMANDS]; /* of their queues */
	bool plain;		     /* all are puts that are done */
};

static bool serve_one(struct gdri_ofi_proxy *t, int pe, struct serve_input *in,
		      struct gdri_ofi_message *reply, struct serve_answers *all, uint32_t n)
{
	const struct gdri_ofi_command *c = serve_take(in, sizeof(*c));
	struct gdri_ofi_answer *a = (void *)((uint8_t *)reply->head + reply->used);
	bool is = false, *refuses;

	if (!c || c->slot >= (uint32_t)t->net->layout.n_slots || gdri_ofi_owner(t->net, c->slot) != t->index ||
	    reply->used + sizeof(*a) > t->net->message)
		return false;
	refuses = &t->net->refuses[gdri_net_index(&t->net->layout, pe, (int)c->slot)];
	if (*refuses && c->verb != OFI_LIST)
		is = serve_flush(t, c, in, reply);
	else if (c->verb == OFI_PUT)
		is = serve_put(t, c, in, reply);
	else if (c->verb == OFI_GET)
		is = serve_get(t, c, reply);
	else if (c->verb == OFI_AMO)
		is = serve_amo(t, c, in, reply);
	else if (c->verb == OFI_LIST)
		is = serve_list(t, reply);
	*refuses |= is && c->verb != OFI_LIST && a->syndrome;
	all->at[n] = c->verb == OFI_LIST ? NULL : a;
	all->refuses[n] = refuses;
	all->plain &= is && c->verb == OFI_PUT && !a->syndrome;
	/* commands in their order: pairs with the acquire of who waits for a word that the next one writes */
	gdri_fence_sys();
	return is;
}

/* A copy failed, and nobody knows whose: none of them is said to be done. */
static void serve_fails(struct serve_answers *all, uint32_t n)
{
	all->plain = false;
	while (n--) {
		if (all->at[n] && !all->at[n]->syndrome)
			all->at[n]->syndrome = GDRI_NET_REMOTE;
		*all->refuses[n] |= all->at[n] != NULL;
	}
}

/* Words in memory of a GPU that the next atomics change come together. How many of them do, up to the first other
 * command. */
static uint32_t serve_words(struct gdri_ofi_proxy *t, struct serve_input in, uint32_t left)
{
	const struct gdri_ofi_command *c;
	struct gdri_net_atomic a;
	const void *operands;
	uint32_t n;

	for (n = 0; n < left; n++) {
		c = serve_take(&in, sizeof(*c));
		operands = c && c->verb == OFI_AMO ? serve_take(&in, sizeof(a)) : NULL;
		if (!operands)
			break;
		memcpy(&a, operands, sizeof(a));
		if (!gdri_net_atomic_is(&a) ||
		    !gdri_ofi_words_want(&t->memory, serve_key(c), c->offset, a.size,
					 !(c->flags & OFI_BLIND) || !gdri_net_atomic_sets(&a)))
			break;
	}
	if (n)
		gdri_ofi_words_come(&t->memory);
	return n;
}

static void serve_request(struct gdri_ofi_proxy *t, int pe, const struct gdri_ofi_head *head,
			  struct gdri_ofi_message *reply)
{
	struct serve_input in = {(const uint8_t *)(head + 1), head->bytes};
	uint32_t i, words = 0, failures = t->memory.failures;
	uint32_t n = head->n < OFI_COMMANDS ? head->n : OFI_COMMANDS;
	struct serve_answers all;

	all.plain = head->n <= OFI_COMMANDS;
	gdri_ofi_clear(reply);
	for (i = 0; i < n; i++, words -= words != 0) {
		if (!words && t->memory.lane) {
			gdri_ofi_words_end(&t->memory);
			words = serve_words(t, in, n - i);
		}
		if (!serve_one(t, pe, &in, reply, &all, i))
			break;
	}
	gdri_ofi_words_end(&t->memory);
	if (gdri_ofi_settle(&t->memory) != failures)
		serve_fails(&all, i);
	if (i < head->n)
		gdri_error("ofi: PE %d: command %u of %u is none", pe, i, head->n);
	reply->head->n = i;
	if (all.plain)
		reply->used = sizeof(*reply->head);
}

void gdri_ofi_serve(struct gdri_ofi_proxy *t, int pe)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	struct gdri_ofi_message *m, *reply;
	uint32_t slot;

	for (;; p->due++) {
		slot = p->due % OFI_WINDOW;
		m = p->held[slot];
		reply = &p->replies[slot];
		if (!m || p->lost)
			return;
		if (reply->ready || reply->sent || reply->owed || !gdri_ofi_stage_begin(t)) {
			t->news = true;
			return;
		}
		p->held[slot] = NULL;
		serve_request(t, pe, m->head, reply);
		gdri_ofi_stage_end(t);
		gdri_ofi_seal(t, reply, OFI_REPLY, p->due);
		reply->owed = true;
		t->n_owed++;
		gdri_ofi_read(t, m);
	}
}

/* ---- replies ---- */

static void reply_settles(struct gdri_ofi_proxy *t, struct gdri_ofi_message *reply)
{
	reply->owed = false;
	t->n_owed--;
}

void gdri_ofi_carry(struct gdri_ofi_proxy *t, int pe, struct gdri_ofi_message *request)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	struct gdri_ofi_message *reply = p->replies;
	struct gdri_ofi_carried c;
	uint32_t i, bytes;

	for (i = 0; t->n_owed && i < OFI_WINDOW; i++, reply++) {
		if (!reply->owed)
			continue;
		bytes = reply->used - (uint32_t)sizeof(*reply->head);
		if (bytes > CARRIED || request->used + sizeof(c) + bytes > p->message)
			continue;
		c = (struct gdri_ofi_carried){reply->head->seq, (uint16_t)bytes, (uint16_t)reply->head->n};
		memcpy(gdri_ofi_append(request, sizeof(c)), &c, sizeof(c));
		if (bytes)
			memcpy(gdri_ofi_append(request, bytes), reply->head + 1, bytes);
		reply_settles(t, reply);
		t->n_carried++;
	}
}

void gdri_ofi_reply(struct gdri_ofi_proxy *t, int pe)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	uint32_t i;

	for (i = 0; t->n_owed && i < OFI_WINDOW && !p->lost; i++) {
		if (!p->replies[i].owed)
			continue;
		reply_settles(t, &p->replies[i]);
		gdri_ofi_send(t, &p->replies[i]);
	}
}

void gdri_ofi_owe_nothing(struct gdri_ofi_proxy *t, int pe)
{
	uint32_t i;

	for (i = 0; i < OFI_WINDOW; i++)
		if (t->peers[pe].replies[i].owed)
			reply_settles(t, &t->peers[pe].replies[i]);
}
