// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmix/job.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "bootstrap/call.h"
#include "runtime/core/log.h"

#define REGISTER_MS 2000 /* for all registrations together */
#define NO_HANDLER  SIZE_MAX

enum { LOST_NONE = -2, LOST_LAUNCHER = -1 }; /* beside PE numbers */

/* PRRTE delivers these only to handlers that name them; a handler without
 * codes gets nothing. The lost connection has a registration of its own, as
 * servers refuse a set for the sake of one code. */
static pmix_status_t lost_codes[] = {PMIX_ERR_LOST_CONNECTION};
static pmix_status_t death_codes[] = {
	PMIX_ERR_PROC_ABORTED_BY_SIG, PMIX_ERR_PROC_TERM_WO_SYNC,    PMIX_ERR_EXIT_NONZERO_TERM,
	PMIX_ERR_PROC_KILLED_BY_CMD,  PMIX_ERR_PROC_REQUESTED_ABORT,
};

static struct {
	pmix_status_t *codes;
	size_t n;
	const char *what;
} const sets[] = {
	{lost_codes, sizeof(lost_codes) / sizeof(lost_codes[0]), "loss of the launcher"},
	{death_codes, sizeof(death_codes) / sizeof(death_codes[0]), "death of a PE"},
};
#define N_SETS (sizeof(sets) / sizeof(sets[0]))

static struct {
	pthread_mutex_t lock; /* guards all; held while fn runs, so that unregistering waits */
	bool open;
	pmix_proc_t me;
	int n_pes;
	unsigned char *told; /* n_pes + 1 flags, the last one for the launcher */
	unsigned char *lost; /* n_pes + 1 flags: the launcher has reported the loss */
	void (*fn)(void *arg, int pe);
	void *arg;
	size_t refs[N_SETS];
} ev = {.lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

/* Relaxed: a wait only asks it whether to give up; nothing else is published
 * through it. */
static int first_lost = LOST_NONE;

int gdri_pmix_events_lost(void)
{
	int lost = __atomic_load_n(&first_lost, __ATOMIC_RELAXED); /* see first_lost */

	if (lost == LOST_NONE)
		return 0;
	return lost == LOST_LAUNCHER ? -GDR_EBOOTSTRAP : -GDR_EPEERLOST;
}

int gdri_pmix_events_lost_pe(void)
{
	int lost = __atomic_load_n(&first_lost, __ATOMIC_RELAXED);

	return lost >= 0 ? lost : -1;
}

static bool in_job(const pmix_proc_t *p)
{
	return p && !strncmp(p->nspace, ev.me.nspace, sizeof(p->nspace)) &&
	       p->rank < (pmix_rank_t)ev.n_pes;
}

/* The process that an event is about: the launcher names it in the info, or
 * as the source. */
static const pmix_proc_t *event_affected(const pmix_proc_t *source, const pmix_info_t *info, size_t ninfo)
{
	for (size_t i = 0; info && i < ninfo; i++)
		if (!strncmp(info[i].key, PMIX_EVENT_AFFECTED_PROC, sizeof(info[i].key)) &&
		    info[i].value.type == PMIX_PROC && info[i].value.data.proc)
			return info[i].value.data.proc;
	return source;
}

static bool is_death(pmix_status_t status)
{
	for (size_t i = 0; i < sizeof(death_codes) / sizeof(death_codes[0]); i++)
		if (death_codes[i] == status)
			return true;
	return false;
}

static int event_classify(pmix_status_t status, const pmix_proc_t *who)
{
	if (is_death(status))
		return in_job(who) && who->rank != ev.me.rank ? (int)who->rank : LOST_NONE;
	if (status != PMIX_ERR_LOST_CONNECTION)
		return LOST_NONE;
	/* A lost connection to a peer is that peer's end; to oneself, or to
	 * anything outside the job, it is the server's. */
	return in_job(who) && who->rank != ev.me.rank ? (int)who->rank : LOST_LAUNCHER;
}

static size_t pmix_event_slot(int who)
{
	return who == LOST_LAUNCHER ? (size_t)ev.n_pes : (size_t)who;
}

static void pmix_tell_event(int who)
{
	size_t slot = pmix_event_slot(who);

	if (!ev.fn || ev.told[slot])
		return;
	ev.told[slot] = 1;
	ev.fn(ev.arg, who);
}

static void pmix_note_event(int who)
{
	int none = LOST_NONE;

	ev.lost[pmix_event_slot(who)] = 1;
	/* Relaxed: see first_lost. */
	__atomic_compare_exchange_n(&first_lost, &none, who, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	if (who == LOST_LAUNCHER)
		gdri_warn("bootstrap: the connection to the launcher's daemon is lost");
	else
		gdri_warn("bootstrap: the launcher reports PE %d dead", who);
	pmix_tell_event(who);
}

void gdri_pmix_event_handler(size_t id, pmix_status_t status, const pmix_proc_t *source,
			     pmix_info_t info[], size_t ninfo, pmix_info_t *results,
			     size_t nresults, pmix_event_notification_cbfunc_fn_t cbfunc,
			     void *cbdata)
{
	int who;

	(void)id;
	(void)results;
	(void)nresults;
	pthread_mutex_lock(&ev.lock);
	if (ev.open) {
		who = event_classify(status, event_affected(source, info, ninfo));
		if (who != LOST_NONE && !ev.lost[pmix_event_slot(who)])
			pmix_note_event(who);
	}
	pthread_mutex_unlock(&ev.lock);
	/* Success lets the handlers of others (MPI) have the event too. */
	if (cbfunc)
		cbfunc(PMIX_SUCCESS, NULL, 0, NULL, NULL, cbdata);
}

struct registration {
	struct gdri_call call;
	size_t ref;
};

static void event_registered(pmix_status_t status, size_t ref, void *cbdata)
{
	struct registration *r = cbdata;

	pthread_mutex_lock(&r->call.lock);
	r->ref = ref;
	pthread_mutex_unlock(&r->call.lock);
	gdri_call_finish(status, r);
}

static size_t register_set(size_t i, const struct timespec *deadline)
{
	struct registration *r = gdri_call_new(sizeof(*r));
	size_t ref = NO_HANDLER;
	pmix_status_t st;
	int rc;

	if (!r)
		return NO_HANDLER;
	gdri_call_get(&r->call); /* the callback's */
	st = PMIx_Register_event_handler(sets[i].codes, sets[i].n, NULL, 0, gdri_pmix_event_handler,
					 event_registered, r);
	if (st != PMIX_SUCCESS) /* no callback will come */
		gdri_call_finish(st, r);
	rc = gdri_call_wait(&r->call, deadline, NULL);
	if (!rc && r->call.status == PMIX_SUCCESS)
		ref = r->ref;
	else
		gdri_info("bootstrap: the launcher will not report the %s (%s %d)", sets[i].what,
			  rc ? "no answer to the registration," : "registration status",
			  rc ? rc : r->call.status);
	gdri_call_put(&r->call);
	return ref;
}

/* A handler that stays behind finds the state closed and does nothing. */
static void event_deregister(size_t ref, const struct timespec *deadline)
{
	struct gdri_call *c = gdri_call_new(sizeof(*c));

	if (!c)
		return;
	gdri_call_get(c); /* the callback's */
	if (PMIx_Deregister_event_handler(ref, gdri_call_finish, c) != PMIX_SUCCESS)
		gdri_call_finish(PMIX_SUCCESS, c); /* no callback will come */
	if (gdri_call_wait(c, deadline, NULL))
		gdri_debug("bootstrap: no answer to the removal of event handler %zu", ref);
	gdri_call_put(c);
}

static int event_reset(const pmix_proc_t *me, int n_pes)
{
	unsigned char *flags = calloc(2, (size_t)n_pes + 1);

	if (!flags)
		return gdri_fail(-GDR_ENOMEM, "bootstrap: no memory for the flags of %d PEs", n_pes);
	pthread_mutex_lock(&ev.lock);
	free(ev.told);
	ev.told = flags;
	ev.lost = flags + n_pes + 1;
	ev.me = *me;
	ev.n_pes = n_pes;
	ev.fn = NULL;
	ev.open = true;
	/* Relaxed: see first_lost. */
	__atomic_store_n(&first_lost, LOST_NONE, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&ev.lock);
	return 0;
}

int gdri_pmix_events_open(const pmix_proc_t *me, int n_pes, const struct timespec *deadline)
{
	struct timespec limit;
	size_t ref;
	int rc = event_reset(me, n_pes);

	if (rc)
		return rc;
	gdri_deadline_in(&limit, REGISTER_MS);
	gdri_deadline_min(&limit, deadline);
	for (size_t i = 0; i < N_SETS; i++) {
		ref = register_set(i, &limit);
		pthread_mutex_lock(&ev.lock);
		ev.refs[i] = ref;
		pthread_mutex_unlock(&ev.lock);
	}
	return 0;
}

void gdri_pmix_events_close(const struct timespec *deadline)
{
	size_t refs[N_SETS], i;

	pthread_mutex_lock(&ev.lock);
	ev.open = false;
	ev.fn = NULL;
	free(ev.told);
	ev.told = NULL;
	ev.lost = NULL;
	memcpy(refs, ev.refs, sizeof(refs));
	pthread_mutex_unlock(&ev.lock);
	for (i = 0; i < N_SETS; i++)
		if (refs[i] != NO_HANDLER)
			event_deregister(refs[i], deadline);
}

/* Deaths that were reported before anybody asked. */
static int event_deliver(struct gdri_call *c)
{
	(void)c;
	pthread_mutex_lock(&ev.lock);
	for (int i = 0; ev.open && i < ev.n_pes; i++)
		if (ev.lost[i])
			pmix_tell_event(i);
	if (ev.open && ev.lost[ev.n_pes])
		pmix_tell_event(LOST_LAUNCHER);
	pthread_mutex_unlock(&ev.lock);
	return 0;
}

static int deliver_pending(void)
{
	struct gdri_call *d = gdri_call_new(sizeof(*d));
	struct timespec deadline;
	int rc;

	if (!d)
		return -GDR_ENOMEM;
	d->run = event_deliver;
	gdri_deadline_in(&deadline, REGISTER_MS);
	rc = gdri_call_run(d, &deadline);
	gdri_call_put(d);
	return rc;
}

int gdri_pmix_events_notify(void (*fn)(void *arg, int pe), void *arg)
{
	bool pending;

	/* The error-checking mutex tells a call from within fn. */
	if (pthread_mutex_lock(&ev.lock))
		return gdri_fail(-GDR_ESTATE, "bootstrap: on_peer_lost was called from its own callback");
	ev.fn = fn;
	ev.arg = arg;
	pthread_mutex_unlock(&ev.lock);
	pending = fn && gdri_pmix_events_lost();
	return pending ? deliver_pending() : 0;
}
