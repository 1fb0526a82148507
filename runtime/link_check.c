// SPDX-License-Identifier: BSD-3-Clause
/* Tries every pair before the program does: a write, a read and an atomic,
 * through the same device functions that kernels use. A pair that fails is
 * named; without this the first kernel would find out, after its time limit.
 *
 * All PEs do so at once, without turns. In a PE's control area link[i] belongs
 * to PE i; link_data[0] is prepared by the owner and read by all; link_data[1]
 * is written by all with the same bytes, which depend on the owner. */
#include <stdlib.h>
#include <string.h>

#include <gdr/device.h>

#include "runtime/clock.h"
#include "runtime/errors.h"
#include "runtime/link_check.h"
#include "runtime/log.h"
#include "runtime/state.h"

#define LEN sizeof(((struct gdri_ctl *)0)->link_data[0]) /* the largest path MTU */

static uint8_t pattern(int owner, unsigned int which, size_t i)
{
	return (uint8_t)((i * 31u) ^ (i >> 8) ^ ((unsigned int)owner * 7u + which * 101u + 1u));
}

void gdri_link_prepare(struct gdri_ctl *ctl, int pe)
{
	size_t i;

	for (i = 0; i < LEN; i++)
		ctl->link_data[0][i] = pattern(pe, 0, i);
	memset(ctl->link_data[1], 0, LEN);
}

/* First byte of data that is not the pattern, -1: all are. */
static long differs(const uint8_t *data, int owner, unsigned int which)
{
	size_t i;

	for (i = 0; i < LEN; i++) {
		if (data[i] != pattern(owner, which, i))
			return (long)i;
	}
	return -1;
}

struct scratch { /* in the heap: behind the control area, before anything is allocated */
	uint8_t out[4096], in[4096];
	uint64_t word;
};

/* The record that device code left about the peer, if it did, has more than the status. */
static int say(const struct gdri_state *st, int pe, const char *what, int status)
{
	struct gdr_error e[GDRI_MAX_ERRORS];
	int i = gdri_errors_copy(st->dev, e, GDRI_MAX_ERRORS);

	while (i > 0 && e[i - 1].peer != pe && e[i - 1].waited_for != pe)
		i--;
	gdri_error("link check with PE %d: %s: %s", pe, what,
		   i > 0 ? e[i - 1].text : gdr_strerror(status));
	return -GDR_ELINK;
}

static int check_write(struct gdri_state *st, struct scratch *s, int pe)
{
	struct gdri_ctl *ctl = st->dev->ctl;
	size_t i;
	int ret;

	for (i = 0; i < LEN; i++)
		s->out[i] = pattern(pe, 1, i);
	s->word = 0x1000u + (unsigned int)st->pe;
	ret = gdr_put(ctl->link_data[1], s->out, LEN, pe);
	if (!ret)
		ret = gdr_put(&ctl->link[st->pe], &s->word, sizeof(s->word), pe);
	if (!ret)
		ret = gdr_quiet_pe(pe);
	return ret ? say(st, pe, "write", ret) : 0;
}

static int check_read(struct gdri_state *st, struct scratch *s, int pe)
{
	struct gdri_ctl *ctl = st->dev->ctl;
	int ret;

	memset(s->in, 0, LEN);
	ret = gdr_get(s->in, ctl->link_data[0], LEN, pe);
	if (ret)
		return say(st, pe, "read", ret);
	if (differs(s->in, pe, 0) >= 0) {
		gdri_error("link check with PE %d: read: byte %ld is wrong", pe,
			   differs(s->in, pe, 0));
		return -GDR_ELINK;
	}
	return 0;
}

static int check_atomic(struct gdri_state *st, struct scratch *s, int pe)
{
	struct gdri_ctl *ctl = st->dev->ctl;
	uint64_t old = gdr_uint64_atomic_fetch_add(&ctl->link[st->pe], 5, pe);
	int ret = gdr_status();

	s->word = 0;
	if (!ret)
		ret = gdr_get(&s->word, &ctl->link[st->pe], sizeof(s->word), pe);
	if (ret)
		return say(st, pe, "atomic", ret);
	if (old != 0x1000u + (unsigned int)st->pe || s->word != old + 5) {
		gdri_error("link check with PE %d: fetch_add gave 0x%llx and left 0x%llx, expected 0x%x "
			   "and 0x%x", pe, (unsigned long long)old, (unsigned long long)s->word,
			   0x1000u + (unsigned int)st->pe, 0x1005u + (unsigned int)st->pe);
		return -GDR_ELINK;
	}
	return 0;
}

static int check_pair(struct gdri_state *st, struct scratch *s, int pe)
{
	int ret;

	st->dev->latched = 0; /* by the pair before; no kernel runs yet */
	ret = check_write(st, s, pe);
	if (!ret)
		ret = check_read(st, s, pe);
	if (!ret)
		ret = check_atomic(st, s, pe);
	return ret;
}

/* Goes on behind a failure, so that all broken pairs are named, while there is time. */
int gdri_up_link_out(struct gdri_state *st)
{
	struct scratch *s = (struct scratch *)(st->heap.base + GDRI_CTL_SIZE);
	uint64_t half = (uint64_t)gdri_left_ms(st->deadline_ns) * 500000u, limit;
	uint64_t end = gdri_now_ns() + half;
	int i, pe, ret = 0, rc;

	limit = half / 4 < st->dev->timeout_ns ? half / 4 : st->dev->timeout_ns;
	st->dev->timeout_ns = limit;
	for (i = 0; i < st->n_pes && gdri_now_ns() < end; i++) {
		pe = (st->pe + i) % st->n_pes;
		rc = check_pair(st, s, pe);
		ret = ret ? ret : rc;
	}
	if (i < st->n_pes && !ret) {
		gdri_error("link check: no time left after %d of %d PEs; raise GDR_INIT_TIMEOUT", i,
			   st->n_pes);
		ret = -GDR_ETIMEOUT;
	}
	st->dev->latched = 0;
	st->dev->timeout_ns = (uint64_t)st->opt.timeout_ms * 1000000u;
	memset(s, 0, sizeof(*s));
	return ret;
}

/* What the others wrote here, once all are done. The words first: each was the last that
 * its PE wrote, so that reading it orders what that PE wrote before. */
int gdri_up_link_in(struct gdri_state *st)
{
	struct gdri_ctl *ctl = st->dev->ctl;
	uint64_t word;
	long at;
	int i;

	for (i = 0; i < st->n_pes; i++) {
		/* acquire: pairs with the peer's atomic, or the NIC's order */
		word = __atomic_load_n(&ctl->link[i], __ATOMIC_ACQUIRE);
		if (word == 0x1005u + (unsigned int)i)
			continue;
		gdri_error("link check: PE %d left 0x%llx here, expected 0x%x", i,
			   (unsigned long long)word, 0x1005u + (unsigned int)i);
		return -GDR_ELINK;
	}
	at = differs(ctl->link_data[1], st->pe, 1);
	if (at >= 0) {
		gdri_error("link check: byte %ld of what the PEs wrote here is wrong", at);
		return -GDR_ELINK;
	}
	return 0;
}
