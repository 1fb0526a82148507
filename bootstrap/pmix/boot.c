// SPDX-License-Identifier: BSD-3-Clause
/* The bootstrap of a process that a PMIx launcher started: opening, abort and
 * finalize. PMIx counts its initialisations, so that other users of it in the
 * process (MPI) keep theirs; this file makes one at the first open and takes
 * it back when the process exits, not at finalize: once the last user has left,
 * servers count the process as gone for good, and a fence after a new PMIx_Init
 * ends with PARTIAL_SUCCESS (Open MPI 4.1 with PMIx 4.2.2). A finalize that comes
 * while the process exits (a destructor of a static object, of a library) takes it back itself. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "bootstrap/detect.h"
#include "bootstrap/pmix/job.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"

#define ABORT_MS 10000
#define EXIT_MS	 5000

/* One at a time in a process: the events' state and PMIx itself are the
 * process's. STUCK while a PMIx_Init is overdue. FAILED for good: after a PMIx_Init that
 * failed, PMIx 4.2.2 says that it is initialised and crashes in PMIx_Finalize. */
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static enum { IDLE, OPEN, STUCK, FAILED } state; /* guarded by state_lock */
static bool exiting; /* guarded by state_lock: leave_at_exit has run */

/* The one initialisation of PMIx; written while the state is OPEN or STUCK. */
static struct {
	pid_t owner; /* process that made it, 0: none yet; a forked child owns nothing */
	pmix_proc_t me;
	bool at_exit;
} held;

static void set_state(int to)
{
	pthread_mutex_lock(&state_lock);
	state = to;
	pthread_mutex_unlock(&state_lock);
}

static int pmix_claim(void)
{
	static const char *const why[] = {
		[OPEN] = "it is open already in this process",
		[STUCK] = "an earlier PMIx_Init of this process still has not returned; check the "
			  "launcher's daemon on this node",
		[FAILED] = "PMIx_Init failed earlier in this process, and cannot be called again; "
			   "start the program anew",
	};
	bool forked;
	int was;

	pthread_mutex_lock(&state_lock);
	was = state;
	forked = was != STUCK && held.owner && held.owner != getpid();
	if (was == IDLE && !forked)
		state = OPEN;
	pthread_mutex_unlock(&state_lock);
	if (forked)
		return gdri_fail(-GDR_ESTATE, "bootstrap: this process was forked from one that had opened PMIx, which "
					      "cannot be used across fork");
	if (was == IDLE)
		return 0;
	return gdri_fail(-GDR_ESTATE, "bootstrap: cannot open PMIx: %s", why[was]);
}

/* --- PMIx_Init, PMIx_Finalize and PMIx_Abort: helper threads --- */

struct process_call {
	struct gdri_call call;
	pmix_proc_t me; /* of init */
	int code;	/* of abort */
	char text[512];
};

static struct process_call *new_process_call(int (*run)(struct gdri_call *),
					     void (*late)(struct gdri_call *))
{
	struct process_call *p = gdri_call_new(sizeof(*p));

	if (!p)
		return NULL;
	p->call.run = run;
	p->call.late = late;
	return p;
}

static int run_init(struct gdri_call *c)
{
	struct process_call *p = (struct process_call *)c;

	return PMIx_Init(&p->me, NULL, 0);
}

static int run_finalize(struct gdri_call *c)
{
	(void)c;
	return PMIx_Finalize(NULL, 0);
}

static int run_abort(struct gdri_call *c)
{
	struct process_call *p = (struct process_call *)c;

	return PMIx_Abort(p->code, p->text, NULL, 0);
}

static void finalize_pmix(int timeout_ms)
{
	struct process_call *p = new_process_call(run_finalize, NULL);
	struct timespec deadline;
	int rc;

	if (!p)
		return;
	gdri_deadline_in(&deadline, timeout_ms);
	rc = gdri_call_run(&p->call, &deadline);
	if (rc == -GDR_ETIMEOUT)
		gdri_pmix_expired("PMIx_Finalize", timeout_ms);
	else if (!rc && gdri_pmix_code(p->call.status))
		gdri_warn("bootstrap: PMIx_Finalize: %s (%d)", PMIx_Error_string(p->call.status),
			  p->call.status);
	gdri_call_put(&p->call);
}

static void pmix_leave(void)
{
	if (held.owner != getpid())
		return;
	held.owner = 0;
	finalize_pmix(EXIT_MS);
}

/* A process that exits with its bootstrap open, and does not finalize it in a handler that runs later,
 * did not end well: without PMIx_Finalize the launcher sees this and ends the job. */
static void leave_at_exit(void)
{
	int now;

	pthread_mutex_lock(&state_lock);
	now = state;
	exiting = true;
	pthread_mutex_unlock(&state_lock);
	if (now == IDLE)
		pmix_leave();
}

static int pmix_hold(const pmix_proc_t *me)
{
	held.me = *me;
	held.owner = getpid();
	if (held.at_exit)
		return 0;
	if (atexit(leave_at_exit))
		return gdri_fail(-GDR_ENOMEM, "bootstrap: atexit: no memory for a handler");
	held.at_exit = true;
	return 0;
}

/* Kept for the next open. */
static void late_init(struct gdri_call *c)
{
	bool ok = c->status == PMIX_SUCCESS;

	if (ok)
		pmix_hold(&((struct process_call *)c)->me);
	set_state(ok ? IDLE : FAILED);
}

static int init_pmix(const struct timespec *deadline)
{
	struct process_call *p = new_process_call(run_init, late_init);
	int ms = gdri_limit_ms(deadline);
	int rc;

	if (!p)
		return -GDR_ENOMEM;
	set_state(STUCK); /* before the call: a late end sets another */
	rc = gdri_call_run(&p->call, deadline);
	if (rc == -GDR_ETIMEOUT)
		gdri_pmix_expired("PMIx_Init", ms);
	else
		set_state(!rc && p->call.status != PMIX_SUCCESS ? FAILED : OPEN);
	if (!rc && p->call.status != PMIX_SUCCESS)
		rc = gdri_pmix_failed("PMIx_Init", p->call.status);
	if (!rc)
		rc = pmix_hold(&p->me);
	gdri_call_put(&p->call);
	return rc;
}

/* --- the contract --- */

static int pmix_allgather(struct gdr_bootstrap *b, const void *send, void *recv, size_t len,
			  int timeout_ms)
{
	return gdri_pmix_round((struct gdri_pmix_boot *)b, send, recv, len, timeout_ms);
}

static int pmix_abort(struct gdr_bootstrap *b, int code, const char *text)
{
	struct process_call *p = new_process_call(run_abort, NULL);
	struct timespec deadline;
	int rc;

	(void)b;
	if (!p)
		return -GDR_ENOMEM;
	p->code = code;
	snprintf(p->text, sizeof(p->text), "%s", text ? text : "");
	gdri_error("abort of the job with status %d: %s", code, p->text);
	gdri_deadline_in(&deadline, ABORT_MS);
	rc = gdri_pmix_run(&p->call, "PMIx_Abort", &deadline);
	gdri_call_put(&p->call);
	return rc;
}

static int pmix_on_peer_lost(struct gdr_bootstrap *b, void (*fn)(void *arg, int pe), void *arg)
{
	(void)b;
	return gdri_pmix_events_notify(fn, arg);
}

static void pmix_finalize(struct gdr_bootstrap *b, int timeout_ms)
{
	struct timespec deadline;
	bool last;

	gdri_deadline_in(&deadline, timeout_ms);
	gdri_pmix_events_close(&deadline);
	free(b);
	pthread_mutex_lock(&state_lock);
	state = IDLE;
	last = exiting;
	pthread_mutex_unlock(&state_lock);
	if (last)
		pmix_leave();
}

static int describe_job(struct gdri_pmix_boot *b, const struct timespec *deadline)
{
	uint64_t n, node;
	int rc;

	rc = gdri_pmix_get_uint(&b->me, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, GDRI_JOB_MAX_PES, true,
				&n, deadline);
	if (rc)
		return rc;
	if (!n || b->me.rank >= n)
		return gdri_fail(-GDR_EBOOTSTRAP,
				 "bootstrap: the launcher says that this is PE %u of %llu; check that launcher and "
				 "program use matching PMIx versions",
				 b->me.rank, (unsigned long long)n);
	b->pub.pe = (int)b->me.rank;
	b->pub.n_pes = (int)n;
	if (!gdri_pmix_get_uint(&b->me, b->me.rank, PMIX_NODEID, INT32_MAX, false, &node, deadline))
		b->pub.node = (int)node;
	if (gdri_pmix_get_string(&b->me, b->me.rank, PMIX_HOSTNAME, b->pub.hostname,
				 sizeof(b->pub.hostname), deadline))
		gdri_info("bootstrap: the launcher gives no host name, using %s", b->pub.hostname);
	return 0;
}

/* The server names the stores that it offers in PMIX_GDS_MODULE: ds12 and ds21 are memory shared with clients. */
static bool shares_store(char *const *env)
{
	const char *offered = gdri_environ_get(env, "PMIX_GDS_MODULE");

	return offered && !strncmp(offered, "ds", 2) && !gdri_environ_get(env, "PMIX_MCA_gds");
}

static struct gdri_pmix_boot *pmix_new_boot(char *const *env)
{
	struct gdri_pmix_boot *b = calloc(1, sizeof(*b));

	if (!b)
		return gdri_fail(NULL, "bootstrap: no memory for %zu bytes", sizeof(*b));
	gdri_bootstrap_fill(&b->pub, "pmix");
	b->pub.allgather = pmix_allgather;
	b->pub.abort = pmix_abort;
	b->pub.on_peer_lost = pmix_on_peer_lost;
	b->pub.finalize = pmix_finalize;
	b->renews = shares_store(env);
	return b;
}

static int open_claimed(struct gdri_pmix_boot *b, const struct timespec *deadline)
{
	uint64_t begin = gdri_now_ns(), up, asked;
	int rc = 0;

	if (!held.owner)
		rc = init_pmix(deadline);
	if (rc)
		return rc;
	b->me = held.me;
	up = gdri_now_ns();
	rc = describe_job(b, deadline);
	asked = gdri_now_ns();
	if (!rc)
		rc = gdri_pmix_events_open(&b->me, b->pub.n_pes, deadline);
	gdri_debug("bootstrap: PMIx_Init %llu us, the job's description %llu us, events %llu us",
		   (unsigned long long)(up - begin) / 1000, (unsigned long long)(asked - up) / 1000,
		   (unsigned long long)(gdri_now_ns() - asked) / 1000);
	return rc;
}

bool gdri_boot_pmix_detect(const struct gdri_boot_how *how, const struct gdri_launcher *launcher)
{
	(void)how;
	return launcher->kind == GDRI_LAUNCHER_PMIX;
}

int gdri_boot_pmix_open(struct gdr_bootstrap **out, const struct gdri_boot_how *how,
			const struct gdri_launcher *launcher, int timeout_ms)
{
	struct gdri_pmix_boot *b;
	struct timespec deadline;
	int rc;

	(void)how;
	if (launcher->kind != GDRI_LAUNCHER_PMIX)
		return gdri_fail(-GDR_EBOOTSTRAP, "bootstrap: GDR_BOOTSTRAP=pmix, but no launcher that speaks PMIx has "
						  "started this process (it would set PMIX_NAMESPACE and PMIX_RANK): "
						  "start it with mpirun of Open MPI, prterun, or `srun --mpi=pmix`");
	rc = pmix_claim();
	if (rc)
		return rc;
	gdri_deadline_in(&deadline, timeout_ms);
	b = pmix_new_boot(launcher->env);
	rc = b ? open_claimed(b, &deadline) : -GDR_ENOMEM;
	if (rc) {
		free(b);
		pthread_mutex_lock(&state_lock);
		if (state == OPEN) /* else a PMIx_Init is still under way, or failed */
			state = IDLE;
		pthread_mutex_unlock(&state_lock);
		return rc;
	}
	gdri_info("bootstrap: PE %d of %d on %s (node %d)", b->pub.pe, b->pub.n_pes,
		  b->pub.hostname, b->pub.node);
	*out = &b->pub;
	return 0;
}
