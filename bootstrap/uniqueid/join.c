// SPDX-License-Identifier: BSD-3-Clause
/* PEs that meet at a hub: each has a connection to it, for as long as the job lasts. */
#include "bootstrap/uniqueid/join.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "bootstrap/call.h"
#include "bootstrap/uniqueid/link.h"
#include "runtime/core/inet.h"
#include "runtime/core/log.h"

#define DIAGNOSE_MS 1000 /* at most, of a time limit: to ask who is missing */
#define ABORT_MS    2000
#define AGAIN_MS    50

struct uid_boot {
	struct gdr_bootstrap pub; /* first: the library casts */
	struct gdri_uid_link link;
	unsigned char token[GDRI_UID_TOKEN];
	const char *hub; /* whose process it is in, for messages */
	uint64_t served; /* the hub, where it is in this process */
	pid_t owner;
	uint64_t round;
	bool broken; /* a collective failed here: the PEs may no longer be in step */
	struct uid_boot *next; /* of those open */
};

/* A forked child must not keep connections of its parent: they would hide the parent's death. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uid_boot *open_boots; /* under open_lock */

static void join_before_fork(void)
{
	pthread_mutex_lock(&open_lock);
}

static void join_in_parent(void)
{
	pthread_mutex_unlock(&open_lock);
}

static void join_in_child(void)
{
	for (; open_boots; open_boots = open_boots->next)
		close(open_boots->link.fd);
	pthread_mutex_unlock(&open_lock);
}

static void join_register_fork(void)
{
	if (pthread_atfork(join_before_fork, join_in_parent, join_in_child))
		gdri_warn("pthread_atfork failed: the death of a PE that has forked may go unseen");
}

/* ---- waiting ---- */

/* Under link.lock: has what the caller waits for come, or can it not come any more? */
static bool join_settled(const struct gdri_uid_link *l)
{
	return l->ended || l->reason ||
	       (l->round ? l->done || l->gone != GDRI_UID_NOBODY : l->welcome);
}

/* Under link.lock. False: not by the deadline. */
static bool join_await(struct gdri_uid_link *l, const struct timespec *deadline)
{
	while (!join_settled(l)) {
		if (pthread_cond_timedwait(&l->changed, &l->lock, deadline) == ETIMEDOUT)
			return join_settled(l);
	}
	return true;
}

/* Whole numbers only: the begin of one is another PE's. */
static void join_name_missing(const struct gdri_uid_link *l, char *text, size_t room)
{
	const size_t most = sizeof(", 4294967295, ...");
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < l->n_names && at + most <= room; i++)
		at += (size_t)snprintf(text + at, room - at, "%s%u", i ? ", " : "", l->names[i]);
	if (!l->n_names)
		snprintf(text, room, "none (all have: the network or the machines are slow)");
	else if (i < l->n_names || i == GDRI_UID_NAMES)
		snprintf(text + at, room - at, ", ...");
}

/* Who has not come, or not entered the round? Under link.lock, which it leaves meanwhile. */
static void join_find_missing(struct uid_boot *b, const struct timespec *deadline, char *text, size_t room)
{
	struct gdri_uid_link *l = &b->link;
	struct gdri_uid_head who = {GDRI_UID_WHO, l->pe, 0, 0};

	l->answered = false;
	pthread_mutex_unlock(&l->lock);
	gdri_uid_link_send(l, &who, NULL, deadline);
	pthread_mutex_lock(&l->lock);
	while (!l->answered && !l->ended &&
	       pthread_cond_timedwait(&l->changed, &l->lock, deadline) != ETIMEDOUT)
		;
	if (l->answered)
		join_name_missing(l, text, room);
	else if (l->home == l->pe)
		snprintf(text, room, "unknown, for the job's hub, which is in this process, does not answer either");
	else if (l->home != GDRI_UID_NOBODY)
		snprintf(text, room, "unknown, for PE %u, whose process has the job's hub, does not answer either",
			 l->home);
	else
		snprintf(text, room, "unknown, for %s does not answer either", b->hub);
}

static void split_limit(int timeout_ms, struct timespec *limit, struct timespec *deadline)
{
	int reserve = timeout_ms / 4 < DIAGNOSE_MS ? timeout_ms / 4 : DIAGNOSE_MS;

	gdri_deadline_in(deadline, timeout_ms);
	gdri_deadline_in(limit, timeout_ms - reserve);
}

/* ---- a round ---- */

static int gone_in_round(const struct uid_boot *b)
{
	const struct gdri_uid_link *l = &b->link;
	char text[200];

	if (l->how == GDRI_UID_LEFT && l->n_names) {
		join_name_missing(l, text, sizeof(text));
		return gdri_fail(-GDR_ETIMEOUT,
				 "bootstrap: the collective cannot end: PE %u has given up and left; PEs that had not "
				 "entered it: %s; check whether they are stopped, have exited or are in another call",
				 l->gone, text);
	}
	if (l->gone == GDRI_UID_NOBODY)
		gdri_error("bootstrap: the collective cannot end: %s has ended or is cut off; it must stay until "
			   "all PEs have called gdr_finalize", b->hub);
	else
		gdri_error("bootstrap: the collective cannot end: PE %u %s", l->gone,
			   l->how == GDRI_UID_LEFT ? "has left the job"
						   : "is dead or cut off; see that PE's output");
	return -GDR_EPEERLOST;
}

static int round_expired(struct uid_boot *b, const struct timespec *deadline, int timeout_ms)
{
	char text[200];

	const char *waited = gdri_boot_waited(timeout_ms, gdri_limit_ms(deadline));

	join_find_missing(b, deadline, text, sizeof(text));
	if (b->link.done)
		return 0;
	return gdri_fail(-GDR_ETIMEOUT,
			 "bootstrap: a collective of %d PEs did not complete within %s; the rest went into asking why; "
			 "PEs that had not entered it: %s; check whether they are stopped, have exited, are in "
			 "another call, or are just slow (then raise the time limit)",
			 b->pub.n_pes, waited, text);
}

/* Under link.lock. */
static int join_judge(struct uid_boot *b, void *recv, size_t len)
{
	struct gdri_uid_link *l = &b->link;

	if (!l->done)
		return gone_in_round(b);
	if (l->unequal != GDRI_UID_NOBODY)
		return gdri_fail(-GDR_EMISMATCH,
				 "bootstrap: PE %u contributes another number of bytes to a collective than others "
				 "(%zu here); check that all PEs run the same program and library",
				 l->unequal, len);
	if (len)
		memcpy(recv, l->result, len * l->n);
	return 0;
}

static int join_run_round(struct uid_boot *b, const void *send, void *recv, size_t len, int timeout_ms)
{
	struct gdri_uid_link *l = &b->link;
	struct gdri_uid_head h = {GDRI_UID_GATHER, l->pe, (uint32_t)len, ++b->round};
	struct timespec limit, deadline;
	int rc;

	split_limit(timeout_ms, &limit, &deadline);
	pthread_mutex_lock(&l->lock);
	l->round = b->round;
	l->want = len * l->n;
	l->done = false;
	l->unequal = GDRI_UID_NOBODY;
	l->n_names = 0;
	pthread_mutex_unlock(&l->lock);
	rc = gdri_uid_link_send(l, &h, send, &limit);
	pthread_mutex_lock(&l->lock);
	if (rc == -GDR_ETIMEOUT || (!rc && !join_await(l, &limit)))
		rc = round_expired(b, &deadline, timeout_ms);
	else
		rc = 0; /* a connection that has ended shows below */
	if (rc == 0 && !join_settled(l))
		join_await(l, &deadline);
	if (!rc)
		rc = join_judge(b, recv, len);
	l->round = 0;
	free(l->result);
	l->result = NULL;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

static int uid_allgather(struct gdr_bootstrap *pub, const void *send, void *recv, size_t len,
			 int timeout_ms)
{
	struct uid_boot *b = (struct uid_boot *)pub;
	int rc = gdri_bootstrap_check(pub, send, recv, len, timeout_ms);

	if (rc)
		return rc;
	if (b->broken || b->owner != getpid())
		return gdri_fail(-GDR_ESTATE, "bootstrap: no more collectives %s",
				 b->broken ? "after one that failed: the PEs are out of step; end the job"
					   : "in a forked child of a PE");
	rc = join_run_round(b, send, recv, len, timeout_ms);
	b->broken = rc != 0;
	return rc;
}

/* ---- the rest of the contract ---- */

/* Returns: the hub sends it back, which ends this process like the others, but where the hub is gone. */
static int uid_abort(struct gdr_bootstrap *pub, int code, const char *text)
{
	struct uid_boot *b = (struct uid_boot *)pub;
	unsigned char body[4 + GDRI_UID_TEXT];
	struct gdri_uid_head h = {GDRI_UID_ABORT, b->link.pe, 4, 0};
	struct timespec deadline;
	size_t n = text ? strlen(text) : 0;

	n = n < GDRI_UID_TEXT ? n : GDRI_UID_TEXT - 1;
	gdri_uid_put32(body, (uint32_t)code);
	if (n)
		memcpy(body + 4, text, n);
	h.len += (uint32_t)n;
	gdri_error("abort of the job with status %d: %s", code, text ? text : "");
	gdri_deadline_in(&deadline, ABORT_MS);
	return b->owner == getpid() ? gdri_uid_link_send(&b->link, &h, body, &deadline) : -GDR_ESTATE;
}

static int uid_on_peer_lost(struct gdr_bootstrap *pub, void (*fn)(void *arg, int pe), void *arg)
{
	struct gdri_uid_link *l = &((struct uid_boot *)pub)->link;

	pthread_mutex_lock(&l->telling);
	l->lost = fn;
	l->arg = arg;
	pthread_mutex_unlock(&l->telling);
	return 0;
}

/* A connection within a machine has one address at both ends. */
bool gdri_boot_hub(const struct gdr_bootstrap *pub, struct gdri_inet *hub)
{
	struct sockaddr_storage own = {0}, other = {0};
	socklen_t own_len = sizeof(own), other_len = sizeof(other);
	struct gdri_inet from, to;
	int fd;

	if (pub->allgather != uid_allgather)
		return false;
	fd = ((const struct uid_boot *)pub)->link.fd;
	if (getsockname(fd, (struct sockaddr *)&own, &own_len) ||
	    getpeername(fd, (struct sockaddr *)&other, &other_len))
		return false;
	from = gdri_inet_of((struct sockaddr *)&own);
	to = gdri_inet_of((struct sockaddr *)&other);
	if (!to.family || gdri_inet_is(&from, &to))
		return false;
	*hub = to;
	return true;
}

static void join_forget(struct uid_boot *b)
{
	struct uid_boot **at = &open_boots;

	pthread_mutex_lock(&open_lock);
	while (*at && *at != b)
		at = &(*at)->next;
	if (*at)
		*at = b->next;
	pthread_mutex_unlock(&open_lock);
}

/* The hub's process waits for the others, which need it until they have left. */
static void uid_finalize(struct gdr_bootstrap *pub, int timeout_ms)
{
	struct uid_boot *b = (struct uid_boot *)pub;
	struct timespec deadline;

	if (b->owner != getpid())
		return; /* its threads are the parent's */
	join_forget(b);
	gdri_deadline_in(&deadline, timeout_ms);
	gdri_uid_link_close(&b->link, &deadline);
	if (b->served && !gdri_uid_await_end(b->served, &deadline))
		gdri_warn("bootstrap: other PEs have not left the job within %d ms; they need this "
			  "process, which has the job's hub, until they have", timeout_ms);
	free(b);
}

/* ---- opening ---- */

/* Of join_hub(): the hub closed the connection without a word, or has another job to end first. */
enum { COME_AGAIN = 1 };

static int join_refused(const struct uid_boot *b, const struct gdri_uid_meeting *m)
{
	const struct gdri_uid_link *l = &b->link;

	switch (l->reason) {
	case GDRI_UID_STRANGER:
		return gdri_fail(-GDR_EBOOTSTRAP, "bootstrap: %s", m->stranger);
	case GDRI_UID_N_PES:
		return gdri_fail(-GDR_EMISMATCH,
				 "bootstrap: this PE says that the job has %d PEs, another one says %u: give all the "
				 "same %s",
				 b->pub.n_pes, l->number, m->size);
	case GDRI_UID_TWICE:
		return gdri_fail(-GDR_EINVAL,
				 "bootstrap: PE %u has come already: two processes have this number; give each %s of "
				 "its own",
				 l->number, m->number);
	case GDRI_UID_RUNNING:
		return gdri_fail(-GDR_ESTATE,
				 "bootstrap: PE %d comes to a job that is complete and has begun: each PE comes once%s",
				 b->pub.pe,
				 m->in_turn ? ", and the job before this one has to end"
					    : ", and an id serves one job");
	case GDRI_UID_DEAD:
		return gdri_fail(-GDR_EPEERLOST,
				 "bootstrap: not all of the job's %d PEs can come: PE %u is dead or cut off, its "
				 "connection has ended without a farewell; see that PE's output",
				 b->pub.n_pes, l->number);
	default:
		return gdri_fail(-GDR_ENOMEM, "bootstrap: %s has no memory for %d PEs", b->hub, b->pub.n_pes);
	}
}

/* Closed without a word: as one of too many that have not said who they are, or by the hub's end. */
static bool join_unheard(const struct gdri_uid_link *l)
{
	return l->ended && !l->reason && !l->welcome && !l->n_names && !l->garbled;
}

/* Under link.lock. */
static int join_result(struct uid_boot *b, const struct gdri_uid_meeting *m, bool in_time,
		       const struct timespec *deadline, int timeout_ms)
{
	const char *waited = gdri_boot_waited(timeout_ms, in_time ? 0 : gdri_limit_ms(deadline));
	struct gdri_uid_link *l = &b->link;
	char text[200];

	if (!in_time)
		join_find_missing(b, deadline, text, sizeof(text));
	if (gdri_limit_ms(deadline) > AGAIN_MS && (join_unheard(l) || (m->in_turn && l->reason == GDRI_UID_RUNNING)))
		return COME_AGAIN;
	if (l->reason)
		return join_refused(b, m);
	if (l->welcome)
		return 0;
	if (l->ended) {
		if (!l->n_names)
			return gdri_fail(-GDR_EPEERLOST,
					 "bootstrap: %s has ended before all PEs had come; see its output", b->hub);
		join_name_missing(l, text, sizeof(text)); /* what the hub said before: its process has waited in vain */
		return gdri_fail(-GDR_ETIMEOUT,
				 "bootstrap: not all of the job's %d PEs came before %s gave up and ended; missing: "
				 "PE %s; check that as many processes were started, each with %s of its own",
				 b->pub.n_pes, b->hub, text, m->number);
	}
	return gdri_fail(-GDR_ETIMEOUT,
			 "bootstrap: not all of the job's %d PEs came within %s; the rest went into asking which; "
			 "missing: PE %s; check that as many processes were started, each with %s of its own, and that "
			 "they can reach %s",
			 b->pub.n_pes, waited, text, m->number, b->hub);
}

static int join_hub(struct uid_boot *b, const struct gdri_uid_meeting *m, int left_ms, int timeout_ms)
{
	struct gdri_uid_link *l = &b->link;
	struct gdri_uid_head h = {GDRI_UID_HELLO, l->pe, GDRI_UID_TOKEN + 8, 0};
	unsigned char body[GDRI_UID_TOKEN + 8];
	struct timespec limit, deadline;
	int rc;

	split_limit(left_ms, &limit, &deadline);
	memcpy(body, b->token, GDRI_UID_TOKEN);
	gdri_uid_put32(body + GDRI_UID_TOKEN, l->n);
	b->served = gdri_uid_served_here(b->token);
	gdri_uid_put32(body + GDRI_UID_TOKEN + 4, b->served != 0);
	rc = gdri_uid_link_send(l, &h, body, &limit);
	pthread_mutex_lock(&l->lock);
	rc = join_result(b, m, rc != -GDR_ETIMEOUT && join_await(l, &limit), &deadline, timeout_ms);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

static struct uid_boot *join_new_boot(const struct gdri_uid_meeting *m, int pe, int n_pes)
{
	struct uid_boot *b = calloc(1, sizeof(*b));

	if (!b)
		return gdri_fail(NULL, "bootstrap: no memory for %zu bytes", sizeof(*b));
	gdri_bootstrap_fill(&b->pub, m->name);
	b->pub.pe = pe;
	b->pub.n_pes = n_pes;
	b->pub.allgather = uid_allgather;
	b->pub.abort = uid_abort;
	b->pub.on_peer_lost = uid_on_peer_lost;
	b->pub.finalize = uid_finalize;
	b->owner = getpid();
	b->hub = m->hub;
	memcpy(b->token, m->token, GDRI_UID_TOKEN);
	return b;
}

static int connect_and_join(struct uid_boot *b, struct gdri_uid_meeting *m, bool again,
			    const struct timespec *deadline, int timeout_ms)
{
	int rc = m->connect(m, again, deadline);

	if (rc >= 0)
		rc = gdri_uid_link_open(&b->link, rc, (uint32_t)b->pub.pe, (uint32_t)b->pub.n_pes);
	if (rc)
		return rc;
	pthread_mutex_lock(&open_lock);
	b->next = open_boots;
	open_boots = b;
	pthread_mutex_unlock(&open_lock);
	rc = join_hub(b, m, gdri_limit_ms(deadline), timeout_ms);
	if (!rc)
		return 0;
	join_forget(b);
	gdri_uid_link_close(&b->link, deadline);
	return rc;
}

int gdri_uid_join(struct gdr_bootstrap **out, struct gdri_uid_meeting *m, int pe, int n_pes, int timeout_ms)
{
	static pthread_once_t first = PTHREAD_ONCE_INIT;
	static const struct timespec pause = {0, AGAIN_MS * 1000000L};
	struct uid_boot *b = join_new_boot(m, pe, n_pes);
	struct timespec deadline;
	int rc = b ? COME_AGAIN : -GDR_ENOMEM;

	pthread_once(&first, join_register_fork);
	gdri_deadline_in(&deadline, timeout_ms);
	for (bool again = false; rc == COME_AGAIN; again = true) {
		if (again)
			nanosleep(&pause, NULL);
		rc = connect_and_join(b, m, again, &deadline, timeout_ms);
	}
	if (rc) {
		free(b);
		return rc;
	}
	gdri_info("bootstrap: PE %d of %d on %s, by %s", pe, n_pes, b->pub.hostname, m->name);
	*out = &b->pub;
	return 0;
}
