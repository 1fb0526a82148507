// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/uniqueid/hub.h"

#include <stdlib.h>
#include <string.h>

#include "bootstrap/uniqueid/net.h"
#include "runtime/core/log.h"

/* Where a PE that has entered the round with no bytes points. */
static unsigned char nothing[1];

/* ---- sending ---- */

static void put_blob(struct gdri_uid_blob *b)
{
	if (b && !--b->refs)
		free(b);
}

/* Then a connection ends, and its PE sees the hub lost: why, is said here. Returns what malloc did. */
static void *hub_need_memory(void *p, size_t size)
{
	if (!p)
		gdri_error("bootstrap: no memory for %zu bytes of the job's hub: a PE loses its connection to it",
			   size);
	return p;
}

static void hub_queue(struct gdri_uid_conn *c, struct gdri_uid_blob *b)
{
	struct gdri_uid_out *o = b ? hub_need_memory(malloc(sizeof(*o)), sizeof(*o)) : NULL;

	if (!o) {
		c->bad = true;
		return;
	}
	b->refs++;
	*o = (struct gdri_uid_out){NULL, b};
	*c->last = o;
	c->last = &o->next;
}

/* One reference, the caller's; the bytes behind the head are the caller's to fill. */
static struct gdri_uid_blob *new_blob(uint32_t type, uint32_t pe, uint64_t round, size_t len)
{
	struct gdri_uid_head h = {type, pe, (uint32_t)len, round};
	struct gdri_uid_blob *b = hub_need_memory(malloc(sizeof(*b) + GDRI_UID_HEAD + len), GDRI_UID_HEAD + len);

	if (!b)
		return NULL;
	b->refs = 1;
	b->len = GDRI_UID_HEAD + len;
	gdri_uid_head_write(b->bytes, &h);
	return b;
}

static struct gdri_uid_blob *new_words(uint32_t type, uint32_t pe, uint64_t round, const uint32_t *words,
				       size_t n)
{
	struct gdri_uid_blob *b = new_blob(type, pe, round, 4 * n);

	for (size_t i = 0; b && i < n; i++)
		gdri_uid_put32(b->bytes + GDRI_UID_HEAD + 4 * i, words[i]);
	return b;
}

static void hub_tell(struct gdri_uid_conn *c, uint32_t type, uint32_t pe, const uint32_t *words, size_t n)
{
	struct gdri_uid_blob *b = new_words(type, pe, 0, words, n);

	hub_queue(c, b);
	put_blob(b);
}

static void queue_all(struct gdri_uid_hub *hub, struct gdri_uid_blob *b)
{
	for (uint32_t i = 0; i < hub->n; i++) {
		if (hub->of[i])
			hub_queue(hub->of[i], b);
	}
	put_blob(b);
}

static void hub_tell_all(struct gdri_uid_hub *hub, uint32_t type, uint32_t pe, const uint32_t *words, size_t n)
{
	for (uint32_t i = 0; i < hub->n; i++) {
		if (hub->of[i])
			hub_tell(hub->of[i], type, pe, words, n);
	}
}

const unsigned char *gdri_uid_hub_out(const struct gdri_uid_conn *c, size_t *n)
{
	*n = c->first ? c->first->blob->len - c->sent : 0;
	return c->first ? c->first->blob->bytes + c->sent : NULL;
}

void gdri_uid_hub_sent(struct gdri_uid_conn *c, size_t n)
{
	struct gdri_uid_out *o = c->first;

	c->sent += n;
	if (!o || c->sent < o->blob->len)
		return;
	c->first = o->next;
	if (!c->first)
		c->last = &c->first;
	c->sent = 0;
	put_blob(o->blob);
	free(o);
}

/* ---- coming ---- */

static void hub_refuse(struct gdri_uid_conn *c, uint32_t reason, uint32_t number)
{
	hub_tell(c, GDRI_UID_REFUSED, GDRI_UID_NOBODY, (uint32_t[]){reason, number}, 2);
	c->bad = true;
}

/* No PE has come any more: the next may name another number of PEs. */
static void hub_empty(struct gdri_uid_hub *hub)
{
	free(hub->of);
	free(hub->in);
	free(hub->came);
	hub->of = NULL;
	hub->in = NULL;
	hub->came = NULL;
	hub->n = 0;
	hub->home = GDRI_UID_NOBODY;
}

/* The first one's number of PEs counts. */
static bool make_room(struct gdri_uid_hub *hub, uint32_t n)
{
	if (hub->n)
		return true;
	hub->of = calloc(n, sizeof(*hub->of));
	hub->in = calloc(n, sizeof(*hub->in));
	hub->came = calloc(n, sizeof(*hub->came));
	if (!hub->of || !hub->in || !hub->came) {
		hub_need_memory(NULL, n * sizeof(*hub->of));
		hub_empty(hub);
		return false;
	}
	hub->n = n;
	return true;
}

static void hub_refuse_all(struct gdri_uid_hub *hub, uint32_t reason, uint32_t number)
{
	for (uint32_t i = 0; i < hub->n; i++) {
		if (hub->of[i])
			hub_refuse(hub->of[i], reason, number);
	}
}

/* PEs that disagree on the job's size never become one: all that are here hear it. */
static void refuse_size(struct gdri_uid_hub *hub, struct gdri_uid_conn *c, uint32_t n)
{
	hub_refuse(c, GDRI_UID_N_PES, hub->n);
	hub_refuse_all(hub, GDRI_UID_N_PES, n);
}

static void hub_begin_round(struct gdri_uid_hub *hub)
{
	hub->running = true;
	hub->round = 1;
	hub_tell_all(hub, GDRI_UID_WELCOME, hub->home, NULL, 0);
}

static void unlink_conn(struct gdri_uid_hub *hub, const struct gdri_uid_conn *c)
{
	struct gdri_uid_conn **at = &hub->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
}

/* A stranger becomes a PE, and is before all strangers from now on. */
static void hub_know_pe(struct gdri_uid_hub *hub, struct gdri_uid_conn *c, uint32_t pe)
{
	unlink_conn(hub, c);
	c->next = hub->conns;
	hub->conns = c;
	hub->n_strangers--;
	c->stranger = false;
	c->pe = pe;
	hub->dead = GDRI_UID_NOBODY;
	hub->of[pe] = c;
	hub->came[pe] = true;
	hub->n_here++;
}

/* The job goes on with the first; which of the two is wrong, only the user knows: the hub says it, too. */
static void refuse_twice(struct gdri_uid_hub *hub, struct gdri_uid_conn *c, uint32_t pe)
{
	char first[80], second[80];

	gdri_uid_peer_text(hub->of[pe]->fd, first, sizeof(first));
	gdri_uid_peer_text(c->fd, second, sizeof(second));
	gdri_warn("bootstrap: two processes have the number %u (RANK=%u where GDR_BOOTSTRAP=env): the one at %s is in "
		  "the job, the one at %s is refused", pe, pe, first, second);
	hub_refuse(c, GDRI_UID_TWICE, pe);
}

static void hub_hello(struct gdri_uid_hub *hub, struct gdri_uid_conn *c)
{
	uint32_t pe = c->h.pe, n = gdri_uid_get32(c->body + GDRI_UID_TOKEN);

	if (!gdri_uid_same_token(c->body, hub->token)) {
		hub_refuse(c, GDRI_UID_STRANGER, 0);
	} else if (hub->running) {
		hub_refuse(c, GDRI_UID_RUNNING, 0);
	} else if (!n || n > GDRI_BOOT_MAX_PES || pe >= n) {
		c->bad = true; /* the library checks this before it comes */
	} else if (hub->dead != GDRI_UID_NOBODY && hub->dead != pe) {
		hub_refuse(c, GDRI_UID_DEAD, hub->dead);
	} else if (!make_room(hub, n)) {
		hub_refuse(c, GDRI_UID_FULL, 0);
	} else if (n != hub->n) {
		refuse_size(hub, c, n);
	} else if (hub->of[pe]) {
		refuse_twice(hub, c, pe);
	} else {
		hub_know_pe(hub, c, pe);
		if (gdri_uid_get32(c->body + GDRI_UID_TOKEN + 4) & 1)
			hub->home = pe;
		if (hub->n_here == hub->n)
			hub_begin_round(hub);
	}
}

/* ---- rounds ---- */

static void end_round(struct gdri_uid_hub *hub)
{
	struct gdri_uid_blob *b;
	size_t len = hub->len;

	if (hub->unequal != GDRI_UID_NOBODY)
		b = new_blob(GDRI_UID_UNEQUAL, hub->unequal, hub->round, 0);
	else
		b = new_blob(GDRI_UID_RESULT, GDRI_UID_NOBODY, hub->round, len * hub->n);
	for (uint32_t i = 0; i < hub->n; i++) {
		if (b && len && hub->unequal == GDRI_UID_NOBODY)
			memcpy(b->bytes + GDRI_UID_HEAD + i * len, hub->in[i], len);
		if (hub->in[i] != nothing)
			free(hub->in[i]);
		hub->in[i] = NULL;
	}
	hub->round++;
	hub->n_in = 0;
	if (b)
		queue_all(hub, b);
	else
		for (uint32_t i = 0; i < hub->n; i++)
			if (hub->of[i])
				hub->of[i]->bad = true;
}

/* A round that a PE has left or was lost from never ends: GONE has told all. */
static void hub_gather(struct gdri_uid_hub *hub, struct gdri_uid_conn *c)
{
	if (!hub->running || c->h.round != hub->round || hub->in[c->pe]) {
		c->bad = true;
		return;
	}
	if (!hub->n_in) {
		hub->len = c->h.len;
		hub->unequal = GDRI_UID_NOBODY;
	} else if (c->h.len != hub->len && hub->unequal == GDRI_UID_NOBODY) {
		hub->unequal = c->pe;
	}
	hub->in[c->pe] = c->h.len ? c->body : nothing;
	if (c->h.len)
		c->body = NULL;
	if (++hub->n_in == hub->n)
		end_round(hub);
}

/* All that wait hear it: the next thing may be that the asker, or the hub's process, gives up. */
static void hub_answer_who(struct gdri_uid_hub *hub, struct gdri_uid_conn *c)
{
	uint32_t names[GDRI_UID_NAMES], n = 0, i;
	struct gdri_uid_blob *b;

	for (i = 0; i < hub->n && n < GDRI_UID_NAMES; i++) {
		if (hub->running ? !hub->in[i] : !hub->came[i])
			names[n++] = i;
	}
	b = new_words(GDRI_UID_MISSING, c->pe, hub->running ? hub->round : 0, names, n);
	for (i = 0; i < hub->n; i++) {
		if (hub->of[i] && (!hub->running || hub->in[i] || i == c->pe))
			hub_queue(hub->of[i], b);
	}
	put_blob(b);
}

/* ---- going ---- */

static void hub_pe_gone(struct gdri_uid_hub *hub, struct gdri_uid_conn *c, uint32_t left)
{
	uint32_t pe = c->pe;

	if (pe == GDRI_UID_NOBODY)
		return;
	c->pe = GDRI_UID_NOBODY;
	hub->of[pe] = NULL;
	hub->n_here--;
	if (!hub->running) {
		if (!left && !c->bad) { /* else it may come again */
			hub->dead = pe;
			hub_refuse_all(hub, GDRI_UID_DEAD, pe);
		}
		if (!hub->n_here)
			hub_empty(hub);
		return;
	}
	hub->n_gone++;
	hub_tell_all(hub, GDRI_UID_GONE, pe, &left, 1);
}

static void end_all(struct gdri_uid_hub *hub, struct gdri_uid_conn *c)
{
	struct gdri_uid_blob *b = new_blob(GDRI_UID_ABORT, c->pe, 0, c->h.len);

	if (b) {
		memcpy(b->bytes + GDRI_UID_HEAD, c->body, c->h.len);
		queue_all(hub, b);
		hub->ending = true;
	}
}

/* ---- receiving ---- */

static void hub_frame(struct gdri_uid_hub *hub, struct gdri_uid_conn *c)
{
	/* Strangers say hello, and PEs do not. */
	if ((c->h.type == GDRI_UID_HELLO) != (c->pe == GDRI_UID_NOBODY) ||
	    (c->pe != GDRI_UID_NOBODY && c->h.pe != c->pe)) {
		c->bad = true;
		return;
	}
	switch (c->h.type) {
	case GDRI_UID_HELLO:
		hub_hello(hub, c);
		break;
	case GDRI_UID_GATHER:
		hub_gather(hub, c);
		break;
	case GDRI_UID_WHO:
		hub_answer_who(hub, c);
		break;
	case GDRI_UID_LEAVE:
		hub_pe_gone(hub, c, 1);
		c->bad = true;
		break;
	case GDRI_UID_ABORT:
		end_all(hub, c);
		break;
	default:
		c->bad = true;
		break;
	}
}

/* Strangers may not make the hub allocate. */
static bool take_head(struct gdri_uid_hub *hub, struct gdri_uid_conn *c)
{
	if (!gdri_uid_head_parse(c->head, true, hub->n, &c->h) ||
	    (c->pe == GDRI_UID_NOBODY && c->h.type != GDRI_UID_HELLO))
		return false;
	c->n_body = 0;
	c->body = c->h.len ? hub_need_memory(malloc(c->h.len), c->h.len) : NULL;
	return c->body || !c->h.len;
}

static size_t hub_take_bytes(unsigned char *to, size_t *have, size_t want, const unsigned char *p, size_t n)
{
	size_t part = want - *have < n ? want - *have : n;

	if (part)
		memcpy(to + *have, p, part);
	*have += part;
	return part;
}

void gdri_uid_hub_feed(struct gdri_uid_hub *hub, struct gdri_uid_conn *c, const unsigned char *p,
		       size_t n)
{
	size_t part;

	while (n && !c->bad) {
		if (c->n_head < GDRI_UID_HEAD) {
			part = hub_take_bytes(c->head, &c->n_head, GDRI_UID_HEAD, p, n);
			p += part;
			n -= part;
			if (c->n_head < GDRI_UID_HEAD)
				return;
			if (!take_head(hub, c)) {
				c->bad = true;
				return;
			}
		}
		part = hub_take_bytes(c->body, &c->n_body, c->h.len, p, n);
		p += part;
		n -= part;
		if (c->n_body < c->h.len)
			return;
		hub_frame(hub, c);
		free(c->body);
		c->body = NULL;
		c->n_head = 0;
	}
}

/* ---- connections ---- */

void gdri_uid_hub_init(struct gdri_uid_hub *hub, const unsigned char token[GDRI_UID_TOKEN])
{
	memset(hub, 0, sizeof(*hub));
	memcpy(hub->token, token, GDRI_UID_TOKEN);
	hub->home = hub->dead = GDRI_UID_NOBODY;
}

struct gdri_uid_conn *gdri_uid_hub_accept(struct gdri_uid_hub *hub, int fd, uint64_t now)
{
	struct gdri_uid_conn *c = hub_need_memory(calloc(1, sizeof(*c)), sizeof(*c)), **end = &hub->conns;

	if (!c)
		return NULL;
	c->fd = fd;
	c->since = now;
	c->pe = GDRI_UID_NOBODY;
	c->stranger = true;
	c->last = &c->first;
	while (*end)
		end = &(*end)->next;
	*end = c;
	hub->n_strangers++;
	return c;
}

struct gdri_uid_conn *gdri_uid_hub_oldest(const struct gdri_uid_hub *hub)
{
	struct gdri_uid_conn *c = hub->conns;

	while (c && !c->stranger)
		c = c->next;
	return c;
}

void gdri_uid_hub_drop(struct gdri_uid_hub *hub, struct gdri_uid_conn *c)
{
	struct gdri_uid_out *o;

	hub_pe_gone(hub, c, 0);
	hub->n_strangers -= c->stranger;
	unlink_conn(hub, c);
	while ((o = c->first)) {
		c->first = o->next;
		put_blob(o->blob);
		free(o);
	}
	free(c->body);
	free(c);
}

void gdri_uid_hub_clear(struct gdri_uid_hub *hub)
{
	while (hub->conns)
		gdri_uid_hub_drop(hub, hub->conns);
	for (uint32_t i = 0; i < hub->n; i++) {
		if (hub->in[i] != nothing)
			free(hub->in[i]);
	}
	hub_empty(hub);
	memset(hub, 0, sizeof(*hub));
}

struct gdri_uid_conn *gdri_uid_hub_home(const struct gdri_uid_hub *hub)
{
	return hub->home < hub->n ? hub->of[hub->home] : NULL;
}

bool gdri_uid_hub_idle(const struct gdri_uid_hub *hub)
{
	return !hub->running && !hub->n_here;
}

bool gdri_uid_hub_done(const struct gdri_uid_hub *hub)
{
	return hub->running && hub->n_gone == hub->n;
}
