/* SPDX-License-Identifier: BSD-3-Clause */
/* What hostile bytes do to both ends of a job by unique id. An input is a byte string that steers: which
 * connection says what, cut how, frames near to right ones or noise. See fuzz_uid.h. */
#include "fuzz_uid.h"

#include <stdlib.h>
#include <string.h>

#include "bootstrap/uniqueid/hub.h"
#include "bootstrap/uniqueid/link.h"
#include "tests/fuzz_input.h"

enum { N = 4, CONNS = 8 };

static const unsigned char token[GDRI_UID_TOKEN] = "a secret of ours";

struct fuzz_uid_stats fuzz_uid_stats;

/* Instead of bootstrap/uniqueid/end.c. */
void gdri_uid_end_process(uint32_t pe, uint32_t status, const char *text)
{
	if (pe >= N || strlen(text) >= GDRI_UID_TEXT)
		abort();
	(void)status;
	fuzz_uid_stats.aborts++;
}

/* Mostly a number that is right. */
static uint32_t near(uint32_t right)
{
	uint8_t how = byte();

	if (how < 250)
		return right;
	return how < 254 ? right + (how & 3) - 1 : word();
}

/* A frame of `type`, of PE pe in round `round`; returns its bytes. */
static size_t frame(unsigned char *out, size_t room, uint32_t type, uint32_t pe, uint64_t round, uint32_t len)
{
	struct gdri_uid_head h = {near(type), near(pe), near(len), round + (byte() > 252)};
	size_t i;

	gdri_uid_head_write(out, &h);
	if (byte() > 252)
		out[byte() % GDRI_UID_HEAD] ^= byte();
	for (i = 0; i < len && GDRI_UID_HEAD + i < room; i++)
		out[GDRI_UID_HEAD + i] = byte();
	return GDRI_UID_HEAD + i;
}

/* ---- the hub ---- */

static size_t to_hub(unsigned char *out, size_t room, const struct gdri_uid_hub *hub,
		     const struct gdri_uid_conn *c, uint32_t pe)
{
	uint8_t how = byte();
	size_t n;

	if (how > 253) {
		for (n = 0; n < 40; n++)
			out[n] = byte();
		return n;
	}
	if (c->pe == GDRI_UID_NOBODY ? how < 240 : how < 3) {
		n = frame(out, room, GDRI_UID_HELLO, pe, 0, GDRI_UID_TOKEN + 8);
		if (byte() < 250)
			memcpy(out + GDRI_UID_HEAD, token, GDRI_UID_TOKEN);
		gdri_uid_put32(out + GDRI_UID_HEAD + GDRI_UID_TOKEN, near(N));
		return n;
	}
	if (how < 225)
		return frame(out, room, GDRI_UID_GATHER, pe, hub->round, byte() < 250 ? 8 : byte());
	if (how < 230)
		return frame(out, room, GDRI_UID_ABORT, pe, 0, 4 + byte() % 8);
	return frame(out, room, how < 250 ? GDRI_UID_WHO : GDRI_UID_LEAVE, pe, 0, 0);
}

/* What the hub queues is what its own PEs understand. */
static void drain(struct gdri_uid_conn *c)
{
	struct gdri_uid_head h;
	size_t n;
	const unsigned char *p = gdri_uid_hub_out(c, &n);

	while ((p = gdri_uid_hub_out(c, &n))) {
		if (n < GDRI_UID_HEAD || !gdri_uid_head_parse(p, false, N, &h) ||
		    n != GDRI_UID_HEAD + h.len)
			abort();
		fuzz_uid_stats.welcomes += h.type == GDRI_UID_WELCOME;
		fuzz_uid_stats.results += h.type == GDRI_UID_RESULT;
		gdri_uid_hub_sent(c, n);
	}
}

static void speak(struct gdri_uid_hub *hub, struct gdri_uid_conn *c, uint32_t pe)
{
	unsigned char bytes[400];
	size_t n = to_hub(bytes, sizeof(bytes), hub, c, pe), at = 0, part;

	while (at < n) {
		part = byte() < 128 ? n - at : 1 + byte() % (n - at);
		/* Exactly these bytes, so that reading one too many shows. */
		unsigned char *copy = malloc(part);

		if (!copy)
			abort();
		memcpy(copy, bytes + at, part);
		gdri_uid_hub_feed(hub, c, copy, part);
		free(copy);
		at += part;
	}
}

/* hub->n is the first one's: with another than N the hub is not of this job, and all start anew. */
static void fuzz_hub(void)
{
	struct gdri_uid_conn *c[CONNS] = {0};
	struct gdri_uid_hub hub;

	gdri_uid_hub_init(&hub, token);
	while (in_left) {
		uint32_t i = byte() % CONNS;

		if (!c[i])
			c[i] = gdri_uid_hub_accept(&hub, -1, 0);
		if (!c[i])
			abort();
		speak(&hub, c[i], i % N); /* two claim to be each PE */
		for (i = 0; i < CONNS; i++) {
			bool end = c[i] && (c[i]->bad || byte() > 254);

			if (c[i] && (hub.n == N || !hub.n))
				drain(c[i]);
			if (!end)
				continue;
			gdri_uid_hub_drop(&hub, c[i]);
			c[i] = NULL;
		}
		fuzz_uid_stats.done += gdri_uid_hub_done(&hub);
	}
	gdri_uid_hub_clear(&hub);
}

/* ---- a PE ---- */

static size_t right_len(uint32_t type)
{
	switch (type) {
	case GDRI_UID_REFUSED:
		return 8;
	case GDRI_UID_RESULT:
		return 8 * N;
	case GDRI_UID_GONE:
		return 4;
	case GDRI_UID_MISSING:
		return 4u * (byte() % (GDRI_UID_NAMES + 1));
	case GDRI_UID_ABORT:
		return 4 + byte();
	default:
		return 0;
	}
}

static void one_frame(struct gdri_uid_link *l)
{
	unsigned char bytes[GDRI_UID_HEAD + 400], *body;
	uint32_t type = GDRI_UID_WELCOME + byte() % (GDRI_UID_ABORT - GDRI_UID_WELCOME + 1);
	size_t n = frame(bytes, sizeof(bytes), type, byte() % N, l->round, (uint32_t)right_len(type));
	struct gdri_uid_head h;

	if (!gdri_uid_head_parse(bytes, false, N, &h) || h.len > n - GDRI_UID_HEAD)
		return;
	body = malloc(h.len + 1u);
	if (!body)
		abort();
	memcpy(body, bytes + GDRI_UID_HEAD, h.len);
	fuzz_uid_stats.taken += gdri_uid_link_take(l, &h, &body);
	free(body);
	if (l->n_names > GDRI_UID_NAMES || (l->gone != GDRI_UID_NOBODY && l->gone >= N) ||
	    (l->result && !l->done))
		abort();
}

static void fuzz_pe(void)
{
	struct gdri_uid_link l = {.fd = -1, .pe = 1, .n = N, .home = GDRI_UID_NOBODY,
				  .gone = GDRI_UID_NOBODY, .unequal = GDRI_UID_NOBODY};

	pthread_mutex_init(&l.lock, NULL);
	pthread_mutex_init(&l.telling, NULL);
	pthread_cond_init(&l.changed, NULL);
	while (in_left) {
		if (!l.round || l.done) { /* the caller's next round */
			free(l.result);
			l.result = NULL;
			l.round++;
			l.done = false;
			l.want = 8 * N;
		}
		one_frame(&l);
	}
	free(l.result);
	pthread_cond_destroy(&l.changed);
	pthread_mutex_destroy(&l.telling);
	pthread_mutex_destroy(&l.lock);
}

void fuzz_uid(const uint8_t *data, size_t n)
{
	struct gdri_uid id;

	in = data;
	in_left = n;
	if (n >= GDRI_UID_BYTES)
		gdri_uid_parse(data, &id);
	if (byte() & 1)
		fuzz_hub();
	else
		fuzz_pe();
}
