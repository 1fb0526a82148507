// SPDX-License-Identifier: BSD-3-Clause
/* Tries every pair before the program does: a write, a read and an atomic of each
 * queue between the two, and the mapped heap where there is one, by the device
 * code that kernels use. A pair that fails is named; without this the first
 * kernel would find out, after its time limit.
 *
 * All PEs do so at once, without turns; a PE posts to several queues before it
 * waits. In a PE's control area link[i] is added to by PE i; link_data[0] is
 * prepared by the owner and read by all; link_data[1] is written by all with the
 * same bytes, which depend on the owner. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <gdr/device.h>
#include <gdr/impl/queue/named.h>

#include "runtime/path/devstate.h"
#include "bootstrap/boot.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/diag/errors.h"
#include "runtime/mem/heap.h"
#include "runtime/net/net.h"
#include "runtime/team/team.h"

#define LEN sizeof(((struct gdri_ctl *)0)->link_data[0]) /* the largest path MTU */
#define LINK_WAY 560 /* bytes of a text */
#define LANES 16u /* queues that are tried at a time */
#define TELL_MOST_NS 2000000000u
#define SILENT_NS 5000000000u /* or half of the limit: then a PE that does not answer is named */

static uint8_t link_pattern(int owner, unsigned int which, size_t i)
{
	return (uint8_t)((i * 31u) ^ (i >> 8) ^ ((unsigned int)owner * 7u + which * 101u + 1u));
}

static void link_fill(uint8_t *data, int owner, unsigned int which)
{
	for (size_t i = 0; i < LEN; i++)
		data[i] = link_pattern(owner, which, i);
}

void gdri_link_prepare(struct gdri_ctl *ctl, int pe)
{
	link_fill(ctl->link_data[0], pe, 0);
	memset(ctl->link_data[1], 0, LEN);
}

/* First byte of data that is not the pattern, -1: all are. */
static long link_differs(const uint8_t *data, int owner, unsigned int which)
{
	for (size_t i = 0; i < LEN; i++) {
		if (data[i] != link_pattern(owner, which, i))
			return (long)i;
	}
	return -1;
}

struct lane { /* in the heap: behind control area and teams, before anything is allocated */
	uint8_t out[LEN], in[LEN];
	uint64_t old; /* of the atomic */
	struct gdri_qp *qp;
	uint64_t target;
	int failed; /* the trial under way: status of the device */
	int status; /* of the whole check */
};

/* Of the whole check. */
struct link_limit {
	uint64_t silent, end;
	bool said;
};

static struct lane *lanes_of(const struct gdri_state *st)
{
	return (struct lane *)(st->heap->base + GDRI_CTL_SIZE + st->teams->bytes);
}

/* What PE pe adds to link[pe], for each queue, or once where there are none. */
static uint64_t link_step(int pe)
{
	return 0x1000u + (unsigned int)pe;
}

static unsigned int link_steps(const struct gdri_state *st)
{
	return st->dev->n_queues ? st->dev->n_queues / (unsigned int)st->n_pes : 1;
}

/* Since init began. Some of the limit is kept back (gdri_up_link_out). */
static const char *link_waited(const struct gdri_state *st)
{
	return gdri_boot_waited(st->opt.init_timeout_ms, gdri_left_ms(st->deadline_ns));
}

/* softhca lets another process in by two descriptors at a time: without them that one's messages wait. */
static bool link_files_end(void)
{
	int one = dup(STDERR_FILENO), two = dup(STDERR_FILENO);
	bool end = two < 0 && errno == EMFILE;

	if (one >= 0)
		close(one);
	if (two >= 0)
		close(two);
	return end;
}

/* What is to be done about a PE that does not answer, if the machine is not just busy. */
static const char *link_way(const struct gdri_state *st, int pe, char *text, size_t room)
{
	if (link_files_end())
		snprintf(text, room, "this process has no file descriptor left: raise `ulimit -n` for all PEs");
	else if (st->net->ops->way)
		st->net->ops->way(st->net, pe, text, room);
	else
		snprintf(text, room, "%s is stuck", st->net->name);
	return text;
}

/* Long before the limit: whoever waits in front of it may want to know. */
static void link_silent(const struct gdri_state *st, struct link_limit *limit, int pe)
{
	char way[LINK_WAY];

	limit->said = true;
	gdri_warn("link check with PE %d: no answer within %s, which is waited for; where the machine is busy it will "
		  "come, else %s", pe, link_waited(st), link_way(st, pe, way, sizeof(way)));
}

/* The record that device code left about the queue, if it did, has more than the status. */
static int say_failed(const struct gdri_state *st, const struct lane *l, const char *what)
{
	struct gdr_error e[GDRI_MAX_ERRORS];
	int i = gdri_errors_copy(st->dev, e, GDRI_MAX_ERRORS);
	char way[LINK_WAY];

	if (l->failed == -GDR_ETIMEOUT) { /* of link_await() */
		return gdri_fail(-GDR_ELINK,
				 "link check with PE %d: queue %u: %s: not complete within %s; raise the option where "
				 "the machine is busy, else %s",
				 l->qp->peer, l->qp->slot, what, link_waited(st),
				 link_way(st, l->qp->peer, way, sizeof(way)));
	}
	while (i > 0 && (e[i - 1].peer != l->qp->peer || e[i - 1].qpn != l->qp->qpn))
		i--;
	if (l->failed == -GDR_ERETRY && st->net->ops->way)
		return gdri_fail(-GDR_ELINK, "link check with PE %d: queue %u: %s: %s: %s", l->qp->peer, l->qp->slot,
				 what, gdr_strerror(l->failed), link_way(st, l->qp->peer, way, sizeof(way)));
	return gdri_fail(-GDR_ELINK, "link check with PE %d: queue %u: %s: %s", l->qp->peer, l->qp->slot, what,
			 i > 0 ? e[i - 1].text : gdr_strerror(l->failed));
}

static int read_is_right(int pe, const uint8_t *in)
{
	long at = link_differs(in, pe, 0);

	if (at >= 0)
		gdri_error("link check with PE %d: read: byte %ld is wrong", pe, at);
	return at < 0;
}

/* Loads, stores and, where no atomic goes through a NIC, the processor's atomics. */
static int link_check_mapped(struct gdri_state *st, int pe)
{
	struct gdri_ctl *ctl = st->dev->ctl;
	struct lane *l = lanes_of(st);

	link_fill(l->out, pe, 1);
	memset(l->in, 0, LEN);
	if (gdr_put(ctl->link_data[1], l->out, LEN, pe) ||
	    gdr_get(l->in, ctl->link_data[0], LEN, pe))
		return -GDR_ELINK;
	if (!st->dev->n_slots)
		gdr_uint64_atomic_add(&ctl->link[st->pe], link_step(st->pe), pe);
	return read_is_right(pe, l->in) ? 0 : -GDR_ELINK;
}

enum trial { WRITE, READ, ATOMIC, DONE };
static const char *const names[] = {"write", "read", "atomic"};

/* One queue entry: where a CQ has one entry, the error of a second one would hide the first's. */
static int link_post(struct gdri_state *st, struct lane *l, enum trial trial)
{
	struct gdri_dev *dev = st->dev;
	struct gdri_local out = {gdri_heap_offset(dev, l->out), dev->lkey};
	struct gdri_local in = {gdri_heap_offset(dev, l->in), dev->lkey};
	struct gdri_local old = {gdri_heap_offset(dev, &l->old), dev->lkey};
	uint64_t word = offsetof(struct gdri_ctl, link) + (uint64_t)st->pe * 8;

	if (trial == WRITE) {
		link_fill(l->out, l->qp->peer, 1);
		return gdri_post_rdma(dev, l->qp, GDRI_OP_WRITE,
				      offsetof(struct gdri_ctl, link_data[1]), l->qp->rkey_data,
				      out, LEN, &l->target);
	}
	if (trial == READ) {
		memset(l->in, 0, LEN);
		return gdri_post_rdma(dev, l->qp, GDRI_OP_READ,
				      offsetof(struct gdri_ctl, link_data[0]), l->qp->rkey_sync, in,
				      LEN, &l->target);
	}
	return gdri_post_add(dev, l->qp, word, link_step(st->pe), old, &l->target);
}

/* Until what the lane posted is complete. */
static int link_await(struct gdri_state *st, struct lane *l, struct link_limit *limit)
{
	uint64_t now;
	bool late;
	int done;

	for (uint32_t round = 0;; round++) {
		now = gdri_now_ns();
		late = now > limit->end; /* before the look, which may have been long ago */
		gdri_poll(st->dev, l->qp);
		done = gdri_qp_test(l->qp, l->target);
		if (done)
			return done < 0 ? done : 0;
		if (late)
			return -GDR_ETIMEOUT;
		if (now > limit->silent && !limit->said)
			link_silent(st, limit, l->qp->peer);
		gdr_pause(round);
	}
}

/* The queues of a PE add at the same time: any multiple of the step may have been there. */
static int link_verify(const struct gdri_state *st, const struct lane *l)
{
	uint64_t one = link_step(st->pe);

	if (!read_is_right(l->qp->peer, l->in))
		return -GDR_ELINK;
	if (l->old % one == 0 && l->old / one < link_steps(st))
		return 0;
	return gdri_fail(-GDR_ELINK,
			 "link check with PE %d: queue %u: fetch_add gave 0x%llx, expected less than %u times 0x%llx",
			 l->qp->peer, l->qp->slot, (unsigned long long)l->old, link_steps(st), (unsigned long long)one);
}

/* Whether another queue to its PE ran out of time before: that is said once. */
static bool link_was_late(const struct lane *l, unsigned int i)
{
	for (unsigned int j = 0; j < i; j++) {
		if (l[j].failed == -GDR_ETIMEOUT && l[j].qp->peer == l[i].qp->peer)
			return true;
	}
	return false;
}

/* Posts to all lanes, then waits for all; one that fails is left out from then on. */
static void try_all(struct gdri_state *st, struct lane *l, unsigned int n, enum trial trial, struct link_limit *limit)
{
	for (unsigned int i = 0; i < n; i++) {
		if (!l[i].status)
			l[i].failed = link_post(st, &l[i], trial);
	}
	for (unsigned int i = 0; i < n; i++) {
		if (l[i].status)
			continue;
		if (!l[i].failed)
			l[i].failed = link_await(st, &l[i], limit);
		if (l[i].failed == -GDR_ETIMEOUT && link_was_late(l, i))
			l[i].status = -GDR_ELINK;
		else if (l[i].failed)
			l[i].status = say_failed(st, &l[i], names[trial]);
	}
}

/* Nobody else is to blame for what comes behind a PE that took all the time. */
static bool link_is_over(const struct lane *l, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (l[i].failed == -GDR_ETIMEOUT)
			return true;
	}
	return false;
}

/* Up to LANES queues from number `first` on, counted from the ones to oneself. */
static int link_check_queues(struct gdri_state *st, unsigned int first, unsigned int n, struct link_limit *limit)
{
	unsigned int own = (unsigned int)st->pe * st->dev->n_slots, all = st->dev->n_queues, i;
	struct lane *l = lanes_of(st);
	enum trial trial;
	int ret = 0;

	for (i = 0; i < n; i++) {
		l[i].qp = &st->dev->qps[(own + first + i) % all];
		l[i].status = l[i].failed = 0;
	}
	for (trial = WRITE; trial < DONE && !link_is_over(l, n); trial++)
		try_all(st, l, n, trial, limit);
	for (i = 0; i < n; i++) {
		if (!l[i].status && trial == DONE)
			l[i].status = link_verify(st, &l[i]);
		ret = ret ? ret : l[i].status;
	}
	return ret;
}

static int check_all(struct gdri_state *st, uint64_t end)
{
	uint64_t now = gdri_now_ns(), half = end > now ? (end - now) / 2 : 0;
	struct link_limit limit = {.silent = now + (half < SILENT_NS ? half : SILENT_NS), .end = end};
	unsigned int i, all = st->dev->n_queues, n;
	int pe, ret = 0, rc;

	for (pe = 0; pe < st->n_pes; pe++) {
		rc = st->peers[pe].base ? link_check_mapped(st, pe) : 0;
		ret = ret ? ret : rc;
	}
	for (i = 0; i < all && gdri_now_ns() < end; i += n) {
		n = all - i < LANES ? all - i : LANES;
		rc = link_check_queues(st, i, n, &limit);
		ret = ret ? ret : rc;
	}
	if (i == all)
		return ret;
	if (ret) {
		gdri_info("link check: no time left to try the last %u of %u queues", all - i, all);
		return ret;
	}
	return gdri_fail(-GDR_ETIMEOUT, "link check: ended after %u of %u queues and %s; raise the option", i, all,
			 link_waited(st));
}

/* The program finds the queues unused: those that it does not use cost it nothing. */
static void link_forget(struct gdri_state *st)
{
	struct gdri_dev *dev = st->dev;

	memset(dev->used, 0, (dev->n_queues + 63) / 64 * sizeof(*dev->used));
	for (uint32_t i = 0; i < dev->n_queues; i++) { /* no room: sends the first post to where it is marked */
		dev->qps[i].room = 0;
		dev->qps[i].limit = dev->qps[i].rsvd;
	}
	dev->latched = 0;
	memset(lanes_of(st), 0, LANES * sizeof(struct lane));
}

/* Goes on behind a failure, so that all broken pairs are named, while there is time. A slow NIC has all of it, but
 * what the PEs need to tell each other how it ended. */
int gdri_up_link_out(struct gdri_state *st)
{
	uint64_t tell = (uint64_t)gdri_left_ms(st->deadline_ns) * 1000000u / 8;
	int ret;

	if (st->cuda) /* mapped only; the mark of each heap was read through its mapping */
		return 0;
	if (tell > TELL_MOST_NS)
		tell = TELL_MOST_NS;
	ret = check_all(st, st->deadline_ns - tell);
	link_forget(st);
	return ret;
}

/* What the others wrote here, once all are done. The words first: each was the last that
 * its PE wrote, so that reading it orders what that PE wrote before. */
int gdri_up_link_in(struct gdri_state *st)
{
	struct gdri_ctl *ctl = st->dev->ctl;
	uint64_t word, expected;
	long at;

	if (st->cuda)
		return 0;
	for (int i = 0; i < st->n_pes; i++) {
		/* acquire: pairs with the peer's atomic, or the NIC's order */
		word = __atomic_load_n(&ctl->link[i], __ATOMIC_ACQUIRE);
		expected = link_step(i) * link_steps(st);
		if (word == expected)
			continue;
		return gdri_fail(-GDR_ELINK, "link check: PE %d left 0x%llx here, expected 0x%llx", i,
				 (unsigned long long)word, (unsigned long long)expected);
	}
	at = link_differs(ctl->link_data[1], st->pe, 1);
	if (at >= 0)
		return gdri_fail(-GDR_ELINK, "link check: byte %ld of what the PEs wrote here is wrong", at);
	return 0;
}
