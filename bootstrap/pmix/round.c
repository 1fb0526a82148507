// SPDX-License-Identifier: BSD-3-Clause
/* A round of exchange, which is allgather and barrier alike: each PE puts its
 * bytes under a key of this round, all fence, each reads all others. The
 * bytes of a PE exist only after it entered, so reading them proves the
 * barrier, which the status of a fence alone does not (Slurm 22.05 and Open
 * MPI 4.1 report success on other nodes when a PE died). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "bootstrap/pmix/job.h"
#include "bootstrap/pmix/value.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"

#define KEY_MAX	    32
#define DIAGNOSE_MS 500 /* kept back from the time limit to find out who is missing */
#define NAMED_MAX   8	/* PEs named in a message */
/* Up to so many PEs one is asked after the other's answer. PMIx 5 asks the server, by TCP: of answers that come in a
 * row the last ones wait for the acknowledgement of the one before, which the kernel delays by 40 ms. */
#define IN_TURN_MAX 128

/* Counts the process's rounds over all openings of the bootstrap. The same on
 * all PEs, because they make the same sequence of collective calls. */
static uint64_t round_counter;

/* PMIx cannot delete a key, and each fence carries all that were ever put. So two keys are put again in turn, with
 * values of one size (PMIx 4.2.2 loses one that is renewed with another), where peers read what the servers hold now:
 * the shared memory of PMIx 4. Two are enough: who puts in round r + 2 has ended round r + 1, which all entered after
 * they had read round r. A client that keeps what it once read (PMIx's hash) would find the old bytes: for the sake of
 * one such PE each round has a key of its own. */
#define N_KEYS 2
static bool no_renewal; /* a PE said so, in a round that all have read: the same on all PEs */

struct put {
	struct gdri_call call;
	char key[KEY_MAX];
	size_t size;
	unsigned char blob[];
};

/* Without it the fence of Slurm 22.05 waits for the own node only. */
static const pmix_info_t collect_data[1] = {
	{.key = PMIX_COLLECT_DATA, .value = {.type = PMIX_BOOL, .data = {.flag = true}}},
};

struct gather;

struct slot {
	struct gather *g;
	pmix_proc_t proc;
	bool asked, done;
	pmix_status_t status;
	enum gdri_blob_fault fault;
	unsigned type; /* as delivered */
	size_t size;
};

struct gather {
	struct gdri_call call;
	char key[KEY_MAX];
	uint64_t round;
	bool renewed;	     /* all that have answered renew their keys */
	unsigned char *recv; /* the caller's: not to be touched once abandoned; NULL: only check */
	size_t len;
	int pending; /* answers to come, and one for the issuer; guarded by call.lock */
	int n, me;
	bool in_turn;
	struct slot slots[];
};

static bool can_renew(const struct gdri_pmix_boot *b)
{
	return b->renews && !no_renewal;
}

/* Payloads that do not fit under a renewed key: see GDRI_BLOB_ROOM. */
static bool is_long(const struct gdri_pmix_boot *b, size_t len)
{
	return len > GDRI_BLOB_ROOM && can_renew(b);
}

/* Of each PE in a round; if its payload is long; and if its fence expired. */
enum round_key { KEY_HEAD, KEY_LONG, KEY_EXPIRED };

/* The first rounds have the keys that are renewed later: nobody has to know then who can renew them. */
static void write_key(const struct gdri_pmix_boot *b, char key[KEY_MAX], enum round_key kind, uint64_t round)
{
	static const char *const infix[] = {[KEY_HEAD] = "", [KEY_LONG] = "long.", [KEY_EXPIRED] = "expired."};
	uint64_t n = kind == KEY_HEAD && can_renew(b) ? (round - 1) % N_KEYS + 1 : round;

	snprintf(key, KEY_MAX, "gdr.%s%llx", infix[kind], (unsigned long long)n);
}

/* Blocking calls without an _nb form: in a helper thread. */
static int run_put(struct gdri_call *c)
{
	struct put *p = (struct put *)c;
	pmix_value_t v;
	pmix_status_t st;

	memset(&v, 0, sizeof(v));
	v.type = PMIX_BYTE_OBJECT;
	v.data.bo.bytes = (char *)p->blob;
	v.data.bo.size = p->size;
	st = PMIx_Put(PMIX_GLOBAL, p->key, &v);
	return st == PMIX_SUCCESS ? PMIx_Commit() : st;
}

/* n bytes of `send` behind the head, in `space` bytes. */
static int publish_blob(const struct gdri_pmix_boot *b, const struct gdri_blob_id *id, enum round_key kind,
			const void *send, size_t n, size_t space, const struct timespec *deadline)
{
	struct put *p = gdri_call_new(sizeof(*p) + GDRI_BLOB_HEAD + space);
	int rc;

	if (!p)
		return -GDR_ENOMEM;
	write_key(b, p->key, kind, id->round);
	gdri_blob_write_head(p->blob, id);
	if (n)
		memcpy(p->blob + GDRI_BLOB_HEAD, send, n);
	p->size = GDRI_BLOB_HEAD + space;
	p->call.run = run_put;
	rc = gdri_pmix_run(&p->call, "PMIx_Put and PMIx_Commit", deadline);
	gdri_call_put(&p->call);
	return rc;
}

static int pmix_publish(struct gdri_pmix_boot *b, uint64_t round, const void *send, size_t len,
			const struct timespec *deadline)
{
	struct gdri_blob_id id = {round, (uint32_t)b->pub.pe, (uint32_t)len, false};
	bool own_key = is_long(b, len);
	int rc = 0;

	if (own_key)
		rc = publish_blob(b, &id, KEY_LONG, send, len, len, deadline);
	id.renewed = can_renew(b);
	if (!rc)
		rc = publish_blob(b, &id, KEY_HEAD, send, own_key ? 0 : len, id.renewed ? GDRI_BLOB_ROOM : len,
				  deadline);
	return rc;
}

static struct gdri_call *start_fence(void)
{
	struct gdri_call *f = gdri_call_new(sizeof(*f));
	pmix_status_t st;

	if (!f)
		return NULL;
	gdri_call_get(f); /* the callback's */
	st = PMIx_Fence_nb(NULL, 0, collect_data, 1, gdri_call_finish, f);
	if (st != PMIX_SUCCESS) /* no callback will come */
		gdri_call_finish(st, f);
	return f;
}

/* Under the call's lock. */
static void parse_slot(struct gather *g, struct slot *s, const pmix_value_t *kv)
{
	struct gdri_blob_id id = {.round = g->round, .pe = s->proc.rank, .len = (uint32_t)g->len};
	const unsigned char *payload;

	s->type = kv ? kv->type : 0;
	s->size = kv && kv->type == PMIX_BYTE_OBJECT ? kv->data.bo.size : 0;
	s->fault = gdri_blob_parse(kv, &id, &payload);
	if (!s->fault && !gdri_blob_is_renewed(payload))
		g->renewed = false;
	else if (!s->fault && g->recv && g->len > GDRI_BLOB_ROOM)
		s->fault = GDRI_BLOB_SIZE; /* the bytes are elsewhere */
	if (!s->fault && g->recv && g->len)
		memcpy(g->recv + s->proc.rank * g->len, payload, g->len);
}

static void finish_one(struct gather *g)
{
	bool all;

	pthread_mutex_lock(&g->call.lock);
	all = !--g->pending;
	pthread_mutex_unlock(&g->call.lock);
	if (all)
		gdri_call_complete(&g->call, 0);
	gdri_call_put(&g->call);
}

static void start_slot(struct gather *g, struct slot *s);

/* The one after s, unless that is the own one: the last. */
static void ask_next(struct gather *g, const struct slot *s)
{
	int i = (int)((s - g->slots + 1) % g->n);

	if (g->in_turn && i != g->me)
		start_slot(g, &g->slots[i]);
}

static void pmix_got_bytes(pmix_status_t status, pmix_value_t *kv, void *cbdata)
{
	struct slot *s = cbdata;
	struct gather *g = s->g;
	bool abandoned;

	pthread_mutex_lock(&g->call.lock);
	if (!g->call.abandoned) {
		s->status = status;
		if (status == PMIX_SUCCESS)
			parse_slot(g, s, kv);
		s->done = true;
	}
	abandoned = g->call.abandoned;
	pthread_mutex_unlock(&g->call.lock);
	if (!abandoned)
		ask_next(g, s);
	finish_one(g);
}

static void start_slot(struct gather *g, struct slot *s)
{
	pmix_status_t st;

	gdri_call_get(&g->call); /* the callback's */
	pthread_mutex_lock(&g->call.lock);
	s->asked = true;
	pthread_mutex_unlock(&g->call.lock);
	st = PMIx_Get_nb(&s->proc, g->key, NULL, 0, pmix_got_bytes, s);
	if (st == PMIX_SUCCESS)
		return;
	/* No callback will come, and "operation succeeded" brings no value. */
	pmix_got_bytes(st == PMIX_OPERATION_SUCCEEDED ? PMIX_ERR_NOT_FOUND : st, NULL, s);
}

/* in_turn: in a round that the fence has ended, where nobody is expected to be missing. */
static struct gather *start_gather(struct gdri_pmix_boot *b, uint64_t round, enum round_key kind, void *recv,
				   size_t len, bool in_turn)
{
	size_t n = (size_t)b->pub.n_pes;
	struct gather *g = gdri_call_new(sizeof(*g) + n * sizeof(g->slots[0]));

	if (!g)
		return NULL;
	write_key(b, g->key, kind, round);
	g->round = round;
	g->recv = recv;
	g->len = len;
	g->n = b->pub.n_pes;
	g->me = b->pub.pe;
	g->in_turn = in_turn;
	g->renewed = can_renew(b);
	g->pending = b->pub.n_pes; /* the own slot stands for the issuer */
	for (size_t i = 0; i < n; i++) {
		g->slots[i].g = g;
		g->slots[i].proc = b->me;
		g->slots[i].proc.rank = (pmix_rank_t)i;
	}
	gdri_call_get(&g->call);
	for (size_t i = 1; i < n && (i == 1 || !in_turn); i++)
		start_slot(g, &g->slots[((size_t)g->me + i) % n]);
	g->slots[b->pub.pe].done = true;
	finish_one(g);
	return g;
}

/* "1, 4, 5 and 12 more": the PEs without an answer, or those with a bad one
 * where `answered`. Returns how many. Under the call's lock, or abandoned. */
static int pmix_name_missing(const struct gather *g, char *text, size_t room)
{
	size_t at = 0;
	int i, n = 0;

	text[0] = '\0';
	for (i = 0; i < g->n; i++) {
		if (i != g->me && !g->slots[i].asked)
			continue;
		if (g->slots[i].done && g->slots[i].status == PMIX_SUCCESS && g->slots[i].fault != GDRI_BLOB_OLD)
			continue;
		if (n++ < NAMED_MAX && at < room)
			at += (size_t)snprintf(text + at, room - at, "%s%d", at ? ", " : "", i);
	}
	if (n > NAMED_MAX && at < room)
		snprintf(text + at, room - at, " and %d more", n - NAMED_MAX);
	return n;
}

/* Before a fence has ended renewed keys of other nodes are old ones here, so those PEs are asked anew: their own fences
 * expire, too, at about the same time, and each says so under a key that nobody has read before. */
static void ask_expired(struct gdri_pmix_boot *b, struct gather *heads, const struct timespec *deadline)
{
	struct gdri_blob_id id = {heads->round, (uint32_t)b->pub.pe, 0, false};
	long ns = gdri_limit_ms(deadline) * (1000000L / 3);
	struct timespec a_while = {ns / 1000000000, ns % 1000000000};
	struct gather *g;

	if (publish_blob(b, &id, KEY_EXPIRED, NULL, 0, 0, deadline))
		return;
	nanosleep(&a_while, NULL); /* who asks too early gets no answer from Open MPI 4.1, later neither */
	g = start_gather(b, heads->round, KEY_EXPIRED, NULL, 0, false);
	if (!g)
		return;
	gdri_call_wait(&g->call, deadline, NULL);
	pthread_mutex_lock(&g->call.lock);
	for (int i = 0; i < g->n; i++)
		if (g->slots[i].done && g->slots[i].status == PMIX_SUCCESS && !g->slots[i].fault)
			heads->slots[i].fault = GDRI_BLOB_OK;
	pthread_mutex_unlock(&g->call.lock);
	gdri_call_put(&g->call);
}

/* After a fence that did not end: who has not published this round's bytes? */
static void pmix_find_missing(struct gdri_pmix_boot *b, uint64_t round, size_t len,
			      const struct timespec *deadline, char *text, size_t room)
{
	struct gather *g = start_gather(b, round, KEY_HEAD, NULL, len, false);

	snprintf(text, room, "unknown");
	if (!g)
		return;
	if (!gdri_call_wait(&g->call, deadline, NULL) && can_renew(b))
		ask_expired(b, g, deadline);
	pthread_mutex_lock(&g->call.lock);
	if (!pmix_name_missing(g, text, room))
		snprintf(text, room, "none (all had entered: the launcher is slow or stuck)");
	pthread_mutex_unlock(&g->call.lock);
	gdri_call_put(&g->call);
}

static int lost_in_round(int rc)
{
	if (rc == -GDR_EPEERLOST)
		gdri_error("bootstrap: the collective cannot end: the launcher reports PE %d dead; "
			   "see that PE's output",
			   gdri_pmix_events_lost_pe());
	else
		gdri_error("bootstrap: the collective cannot end: the connection to the launcher's "
			   "daemon is lost; %s",
			   gdri_pmix_advice(PMIX_ERR_LOST_CONNECTION));
	return rc;
}

static int fence_expired(struct gdri_pmix_boot *b, uint64_t round, size_t len,
			 const struct timespec *deadline, int timeout_ms)
{
	const char *waited = gdri_boot_waited(timeout_ms, gdri_limit_ms(deadline));
	char text[160];

	pmix_find_missing(b, round, len, deadline, text, sizeof(text));
	return gdri_fail(-GDR_ETIMEOUT,
			 "bootstrap: a collective of %d PEs did not complete within %s; the rest went into asking why; "
			 "PEs that had not entered it: %s; check whether they are stopped, have exited, are in "
			 "another call, or are just slow (then raise the time limit)",
			 b->pub.n_pes, waited, text);
}

static int pmix_fence(struct gdri_pmix_boot *b, uint64_t round, size_t len,
		      const struct timespec *deadline, int timeout_ms)
{
	struct timespec limit;
	struct gdri_call *f;
	int rc, left = gdri_limit_ms(deadline);

	gdri_deadline_in(&limit, left - (left / 4 < DIAGNOSE_MS ? left / 4 : DIAGNOSE_MS));
	f = start_fence();
	if (!f)
		return -GDR_ENOMEM;
	rc = gdri_call_wait(f, &limit, gdri_pmix_events_lost);
	if (rc == -GDR_ETIMEOUT)
		rc = fence_expired(b, round, len, deadline, timeout_ms);
	else if (rc)
		rc = lost_in_round(rc);
	else if (gdri_pmix_code(f->status))
		rc = gdri_pmix_failed("PMIx_Fence", f->status);
	gdri_call_put(f);
	return rc;
}

static int judge_slot(const struct gather *g, const struct slot *s)
{
	if (s->status != PMIX_SUCCESS) {
		gdri_error("bootstrap: PE %u contributed nothing to a collective that the launcher "
			   "calls complete (PMIx_Get of %s: %s, %d); %s",
			   s->proc.rank, g->key, PMIx_Error_string(s->status), s->status,
			   gdri_pmix_advice(s->status));
		return s->status == PMIX_ERR_NOT_FOUND ? -GDR_EPEERLOST : gdri_pmix_code(s->status);
	}
	if (!s->fault)
		return 0;
	if (s->fault == GDRI_BLOB_OLD)
		return gdri_fail(-GDR_EPEERLOST,
				 "bootstrap: PE %u contributed nothing to a collective that the launcher calls "
				 "complete; %s",
				 s->proc.rank, gdri_pmix_advice(PMIX_ERR_NOT_FOUND));
	gdri_error("bootstrap: cannot use what PE %u contributed: %s (key %s, PMIx type %u, %zu "
		   "bytes, %zu expected); check that all PEs run the same program and library",
		   s->proc.rank, gdri_blob_fault_text(s->fault), g->key, s->type, s->size,
		   g->len + GDRI_BLOB_HEAD);
	return s->fault == GDRI_BLOB_LEN || s->fault == GDRI_BLOB_ROUND ? -GDR_EMISMATCH
									: -GDR_EBOOTSTRAP;
}

/* The first fault decides: one line tells enough. */
static int pmix_judge_round(const struct gather *g)
{
	int i, rc = 0;

	for (i = 0; i < g->n && !rc; i++)
		rc = judge_slot(g, &g->slots[i]);
	return rc;
}

static int collect_from(struct gdri_pmix_boot *b, uint64_t round, enum round_key kind, void *recv, size_t len,
			const struct timespec *deadline, int timeout_ms)
{
	struct gather *g = start_gather(b, round, kind, recv, len, b->pub.n_pes <= IN_TURN_MAX);
	char text[160];
	int rc;

	if (!g)
		return -GDR_ENOMEM;
	rc = gdri_call_wait(&g->call, deadline, gdri_pmix_events_lost);
	pthread_mutex_lock(&g->call.lock);
	if (!rc) {
		rc = pmix_judge_round(g);
		if (!rc && !g->renewed && kind == KEY_HEAD)
			no_renewal = true;
	} else if (rc == -GDR_ETIMEOUT) {
		pmix_name_missing(g, text, sizeof(text));
		gdri_error("bootstrap: no answer within %s to the question for the contribution "
			   "of PE %s, though the launcher calls the collective complete; check "
			   "whether these PEs and the launcher's daemons on their nodes still run",
			   gdri_boot_waited(timeout_ms, 0), text);
	} else {
		rc = lost_in_round(rc);
	}
	pthread_mutex_unlock(&g->call.lock);
	gdri_call_put(&g->call);
	return rc;
}

/* Of long payloads the heads first: who called with another length has put nothing under the long key. */
static int pmix_collect(struct gdri_pmix_boot *b, uint64_t round, void *recv, size_t len,
			const struct timespec *deadline, int timeout_ms)
{
	int rc;

	if (!is_long(b, len))
		return collect_from(b, round, KEY_HEAD, recv, len, deadline, timeout_ms);
	rc = collect_from(b, round, KEY_HEAD, NULL, len, deadline, timeout_ms);
	return rc ? rc : collect_from(b, round, KEY_LONG, recv, len, deadline, timeout_ms);
}

static int round_steps(struct gdri_pmix_boot *b, const void *send, void *recv, size_t len,
		       int timeout_ms)
{
	uint64_t round = ++round_counter, begin = gdri_now_ns(), published, met;
	struct timespec deadline;
	int rc;

	gdri_deadline_in(&deadline, timeout_ms);
	rc = pmix_publish(b, round, send, len, &deadline);
	published = gdri_now_ns();
	if (!rc)
		rc = pmix_fence(b, round, len, &deadline, timeout_ms);
	met = gdri_now_ns();
	if (!rc)
		rc = pmix_collect(b, round, recv, len, &deadline, timeout_ms);
	gdri_debug("bootstrap: round %llu of %zu bytes: put %llu us, fence %llu us, get %llu us",
		   (unsigned long long)round, len, (unsigned long long)(published - begin) / 1000,
		   (unsigned long long)(met - published) / 1000,
		   (unsigned long long)(gdri_now_ns() - met) / 1000);
	if (!rc && len)
		memmove((unsigned char *)recv + (size_t)b->pub.pe * len, send, len);
	return rc;
}

int gdri_pmix_round(struct gdri_pmix_boot *b, const void *send, void *recv, size_t len,
		    int timeout_ms)
{
	int rc = gdri_bootstrap_check(&b->pub, send, recv, len, timeout_ms);

	if (rc)
		return rc;
	if (b->broken)
		return gdri_fail(-GDR_ESTATE, "bootstrap: no more collectives after one that failed: the PEs are out "
					      "of step; end the job");
	rc = round_steps(b, send, recv, len, timeout_ms);
	if (rc)
		b->broken = true;
	return rc;
}
