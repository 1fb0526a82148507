// SPDX-License-Identifier: BSD-3-Clause
/* The PMIx bootstrap over a PMIx that misbehaves: each call site in each way.
 * Each case is a process of its own, as PMIx is initialised once in a process;
 * a case that hangs is killed and fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "fake_pmix.h"
#include "runtime/core/log.h"
#include "runtime/core/options.h"

/* The tests must hold on a machine with ten times as many runnable threads as
 * cores: a long limit where success is expected, a short one to let expire. */
#define LONG_MS	 8000
#define SHORT_MS 1000
#define SLACK_S	 4.0

static int limit_ms = LONG_MS;
static struct gdri_options opt;
static const struct gdri_boot_how automatic = {.opt = &opt};

#define REQUIRE(ok)                                                                           \
	do {                                                                                  \
		if (!(ok)) {                                                                  \
			fprintf(stderr, "test_fake: line %d: not true: %s\n", __LINE__, #ok); \
			_exit(1);                                                             \
		}                                                                             \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap_ms(long ms)
{
	struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};

	nanosleep(&t, NULL);
}

static struct gdr_bootstrap *open_ok(void)
{
	struct gdr_bootstrap *b = NULL;

	REQUIRE(!gdri_bootstrap_open(&b, &automatic, limit_ms));
	REQUIRE(b->pe == FAKE_ME && b->n_pes == FAKE_PES);
	return b;
}

static int gather(struct gdr_bootstrap *b, size_t len)
{
	unsigned char send[64], recv[64 * FAKE_PES];
	double begin = now();
	size_t i;
	int rc;

	memset(send, FAKE_ME, sizeof(send));
	memset(recv, 0xee, sizeof(recv));
	rc = b->allgather(b, send, recv, len, limit_ms);
	REQUIRE(now() - begin < limit_ms / 1000.0 + SLACK_S);
	for (i = 0; !rc && i < len * FAKE_PES; i++)
		REQUIRE(recv[i] == i / len);
	for (i = len * FAKE_PES; i < sizeof(recv); i++)
		REQUIRE(recv[i] == 0xee);
	return rc;
}

struct row {
	enum fake_site site;
	enum fake_how how;
	pmix_status_t status;
	int open;   /* expected codes */
	int gather; /* of the first collective, when open succeeds */
};

#define E(name) (-GDR_##name)

static const struct row rows[] = {
	{FAKE_NONE, FAKE_OK, 0, 0, 0},
	{FAKE_INIT, FAKE_RETURN, PMIX_ERR_UNREACH, E(EBOOTSTRAP), 0},
	{FAKE_INIT, FAKE_RETURN, PMIX_ERR_INIT, E(EBOOTSTRAP), 0},
	{FAKE_INIT, FAKE_RETURN, PMIX_ERR_NOMEM, E(ENOMEM), 0},
	{FAKE_INIT, FAKE_RETURN, 12345, E(EBOOTSTRAP), 0},
	{FAKE_INIT, FAKE_NEVER, 0, E(ETIMEOUT), 0},

	{FAKE_GET_SIZE, FAKE_RETURN, PMIX_ERR_NOT_FOUND, E(EBOOTSTRAP), 0},
	{FAKE_GET_SIZE, FAKE_RETURN, PMIX_OPERATION_SUCCEEDED, E(EBOOTSTRAP), 0},
	{FAKE_GET_SIZE, FAKE_CALLBACK, PMIX_ERR_TIMEOUT, E(ETIMEOUT), 0},
	{FAKE_GET_SIZE, FAKE_INSIDE, 0, 0, 0},
	{FAKE_GET_SIZE, FAKE_NEVER, 0, E(ETIMEOUT), 0},
	{FAKE_GET_SIZE, FAKE_NULL, 0, E(EBOOTSTRAP), 0},
	{FAKE_GET_SIZE, FAKE_TYPE, 0, E(EBOOTSTRAP), 0},
	{FAKE_GET_SIZE, FAKE_HUGE, 0, E(EBOOTSTRAP), 0},
	{FAKE_GET_SIZE, FAKE_NEGATIVE, 0, E(EBOOTSTRAP), 0},
	{FAKE_GET_SIZE, FAKE_SHORT, 0, E(EBOOTSTRAP), 0},

	/* Without these two the job still runs. */
	{FAKE_GET_NODE, FAKE_RETURN, PMIX_ERR_NOT_FOUND, 0, 0},
	{FAKE_GET_NODE, FAKE_CALLBACK, PMIX_ERR_NOT_FOUND, 0, 0},
	{FAKE_GET_NODE, FAKE_NEGATIVE, 0, 0, 0},
	{FAKE_GET_NODE, FAKE_NULL, 0, 0, 0},
	{FAKE_GET_HOST, FAKE_RETURN, PMIX_ERR_NOT_FOUND, 0, 0},
	{FAKE_GET_HOST, FAKE_TYPE, 0, 0, 0},
	{FAKE_GET_HOST, FAKE_HUGE, 0, 0, 0},
	{FAKE_GET_HOST, FAKE_NULL, 0, 0, 0},
	{FAKE_REGISTER, FAKE_RETURN, PMIX_ERR_NOT_SUPPORTED, 0, 0},
	{FAKE_REGISTER, FAKE_CALLBACK, PMIX_ERR_SERVER_FAILED_REQUEST, 0, 0},
	{FAKE_REGISTER, FAKE_INSIDE, 0, 0, 0},
	{FAKE_REGISTER, FAKE_NEVER, 0, 0, 0},
	{FAKE_DEREGISTER, FAKE_RETURN, PMIX_ERR_NOT_FOUND, 0, 0},
	{FAKE_DEREGISTER, FAKE_RETURN, PMIX_OPERATION_SUCCEEDED, 0, 0},
	{FAKE_DEREGISTER, FAKE_INSIDE, 0, 0, 0},
	{FAKE_DEREGISTER, FAKE_NEVER, 0, 0, 0},

	{FAKE_PUT, FAKE_RETURN, PMIX_ERR_OUT_OF_RESOURCE, 0, E(ENOMEM)},
	{FAKE_PUT, FAKE_NEVER, 0, 0, E(ETIMEOUT)},
	{FAKE_COMMIT, FAKE_RETURN, PMIX_ERR_LOST_CONNECTION, 0, E(EBOOTSTRAP)},
	{FAKE_COMMIT, FAKE_RETURN, PMIX_OPERATION_SUCCEEDED, 0, 0},
	{FAKE_COMMIT, FAKE_NEVER, 0, 0, E(ETIMEOUT)},
	{FAKE_FENCE, FAKE_RETURN, PMIX_ERR_BAD_PARAM, 0, E(EBOOTSTRAP)},
	{FAKE_FENCE, FAKE_RETURN, PMIX_OPERATION_SUCCEEDED, 0, 0},
	{FAKE_FENCE, FAKE_CALLBACK, PMIX_ERR_PARTIAL_SUCCESS, 0, E(EPEERLOST)},
	{FAKE_FENCE, FAKE_CALLBACK, PMIX_ERR_TIMEOUT, 0, E(ETIMEOUT)},
	{FAKE_FENCE, FAKE_CALLBACK, PMIX_ERR_LOST_CONNECTION, 0, E(EBOOTSTRAP)},
	{FAKE_FENCE, FAKE_CALLBACK, PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER, 0, E(EBOOTSTRAP)},
	{FAKE_FENCE, FAKE_INSIDE, 0, 0, 0},
	{FAKE_FENCE, FAKE_NEVER, 0, 0, E(ETIMEOUT)},

	{FAKE_GET_BLOB, FAKE_RETURN, PMIX_ERR_NOT_FOUND, 0, E(EPEERLOST)},
	{FAKE_GET_BLOB, FAKE_RETURN, PMIX_OPERATION_SUCCEEDED, 0, E(EPEERLOST)},
	{FAKE_GET_BLOB, FAKE_CALLBACK, PMIX_ERR_NOT_FOUND, 0, E(EPEERLOST)},
	{FAKE_GET_BLOB, FAKE_CALLBACK, PMIX_ERR_UNPACK_FAILURE, 0, E(EBOOTSTRAP)},
	{FAKE_GET_BLOB, FAKE_INSIDE, 0, 0, 0},
	{FAKE_GET_BLOBS, FAKE_INSIDE, 0, 0, 0},
	{FAKE_GET_BLOB, FAKE_NEVER, 0, 0, E(ETIMEOUT)},
	{FAKE_GET_BLOBS, FAKE_NEVER, 0, 0, E(ETIMEOUT)},
	{FAKE_GET_BLOB, FAKE_NULL, 0, 0, E(EBOOTSTRAP)},
	{FAKE_GET_BLOB, FAKE_TYPE, 0, 0, E(EBOOTSTRAP)},
	{FAKE_GET_BLOB, FAKE_SHORT, 0, 0, E(EBOOTSTRAP)},
	{FAKE_GET_BLOB, FAKE_LONG, 0, 0, E(EBOOTSTRAP)},
	{FAKE_GET_BLOB, FAKE_SWAPPED, 0, 0, E(EBOOTSTRAP)},
	{FAKE_GET_BLOB, FAKE_HUGE, 0, 0, E(EMISMATCH)},
	{FAKE_GET_BLOB, FAKE_OLD, 0, 0, E(EPEERLOST)},
	{FAKE_GET_BLOBS, FAKE_LONG, 0, 0, E(EBOOTSTRAP)},

	{FAKE_FINALIZE, FAKE_RETURN, PMIX_ERR_LOST_CONNECTION, 0, 0},
};

static void leave(struct gdr_bootstrap *b)
{
	double begin = now();

	b->finalize(b, limit_ms);
	REQUIRE(now() - begin < limit_ms / 1000.0 + SLACK_S);
}

static void collectives(struct gdr_bootstrap *b, int want)
{
	REQUIRE(gather(b, 16) == want);
	REQUIRE(b->barrier(b, limit_ms) == (want ? -GDR_ESTATE : 0));
	REQUIRE(gather(b, 1) == (want ? -GDR_ESTATE : 0));
	REQUIRE(!fake_fences_without_collect);
}

static void run_row(const void *arg)
{
	const struct row *r = arg;
	struct gdr_bootstrap *b = NULL;
	double begin = now();
	int rc;

	fake_plan = (struct fake_plan){r->site, r->how, r->status};
	limit_ms = r->how == FAKE_NEVER ? SHORT_MS : LONG_MS;
	rc = gdri_bootstrap_open(&b, &automatic, limit_ms);
	REQUIRE(rc == r->open);
	REQUIRE(now() - begin < limit_ms / 1000.0 + SLACK_S);
	REQUIRE(!rc == !!b);
	if (!rc) {
		collectives(b, r->gather);
		leave(b);
	}
	fake_release(); /* what comes late must find its arguments */
	nap_ms(30);
	REQUIRE(!fake_notifies);
}

static void bad_arguments(const void *arg)
{
	struct gdr_bootstrap *b, *second;
	char c = 0;

	(void)arg;
	REQUIRE(gdri_bootstrap_open(NULL, &automatic, limit_ms) == -GDR_EINVAL);
	REQUIRE(gdri_bootstrap_open(&b, &automatic, 0) == -GDR_EINVAL);
	REQUIRE(gdri_bootstrap_open(&b, &automatic, -1) == -GDR_EINVAL);
	b = open_ok();
	REQUIRE(gdri_bootstrap_open(&second, &automatic, limit_ms) == -GDR_ESTATE && !second);
	REQUIRE(b->allgather(b, NULL, &c, 1, limit_ms) == -GDR_EINVAL);
	REQUIRE(b->allgather(b, &c, NULL, 1, limit_ms) == -GDR_EINVAL);
	REQUIRE(b->allgather(b, &c, &c, GDRI_ALLGATHER_MAX + 1, limit_ms) == -GDR_EINVAL);
	REQUIRE(b->barrier(b, 0) == -GDR_EINVAL);
	REQUIRE(!gather(b, 8)); /* none of these put the PEs out of step */
	leave(b);
}

static void stuck_init_is_kept(const void *arg)
{
	struct gdr_bootstrap *b;

	(void)arg;
	fake_plan = (struct fake_plan){FAKE_INIT, FAKE_NEVER, 0};
	limit_ms = SHORT_MS;
	REQUIRE(gdri_bootstrap_open(&b, &automatic, limit_ms) == -GDR_ETIMEOUT);
	REQUIRE(gdri_bootstrap_open(&b, &automatic, limit_ms) == -GDR_ESTATE);
	fake_release();
	limit_ms = LONG_MS;
	nap_ms(500);
	b = open_ok(); /* the late one serves */
	REQUIRE(!gather(b, 8));
	leave(b);
	REQUIRE(__atomic_load_n(&fake_inits, __ATOMIC_SEQ_CST) == 1); /* with PMIx_Init */
}

static void failed_init_is_final(const void *arg)
{
	struct gdr_bootstrap *b;

	(void)arg;
	fake_plan = (struct fake_plan){FAKE_INIT, FAKE_RETURN, PMIX_ERR_UNREACH};
	REQUIRE(gdri_bootstrap_open(&b, &automatic, limit_ms) == -GDR_EBOOTSTRAP);
	REQUIRE(gdri_bootstrap_open(&b, &automatic, limit_ms) == -GDR_ESTATE);
	REQUIRE(fake_inits == 1 && fake_finalizes == 0);
}

static void reopen_keeps_pmix(const void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 5; i++) {
		struct gdr_bootstrap *b = open_ok();

		REQUIRE(!gather(b, 8));
		leave(b);
	}
	REQUIRE(fake_inits == 1 && fake_finalizes == 0);
}

static void rounds_of_many_openings(void)
{
	int i;

	for (i = 0; i < 10; i++) {
		struct gdr_bootstrap *b = open_ok();

		REQUIRE(!gather(b, 16 + 16 * ((size_t)i % 4)));
		REQUIRE(!b->barrier(b, limit_ms));
		leave(b);
	}
}

/* With the store of `arg`, as the server names it. */
static void keys_are_renewed(const void *arg)
{
	setenv("PMIX_GDS_MODULE", arg, 1);
	rounds_of_many_openings();
	REQUIRE(fake_keys == 2);
}

static void keys_are_never_renewed(const void *arg)
{
	setenv("PMIX_GDS_MODULE", arg, 1);
	rounds_of_many_openings();
	REQUIRE(fake_keys == 20);
}

/* One PE whose store keeps what was read: all change over with it. */
static void a_peer_never_renews(const void *arg)
{
	fake_peers_never_renew = true;
	keys_are_never_renewed(arg);
}

static int want_finalizes; /* how often PMIx_Finalize must have been called at the end */

static struct gdr_bootstrap *at_exit; /* open or not, it stays reachable: no leak */

static void check_finalizes(void)
{
	if (!at_exit || fake_finalizes != want_finalizes)
		_exit(1);
}

static void exit_leaves_pmix(const void *arg)
{
	struct gdr_bootstrap *b;

	/* Registered before the bootstrap's own handler: runs after it. */
	atexit(check_finalizes);
	b = open_ok();
	at_exit = b;
	want_finalizes = arg ? 1 : 0;
	if (arg)
		leave(b);
	/* else: exits with the bootstrap open, and the launcher must notice */
}

static void exit_with_stuck_finalize(const void *arg)
{
	struct gdr_bootstrap *b;

	(void)arg;
	fake_plan = (struct fake_plan){FAKE_FINALIZE, FAKE_NEVER, 0};
	b = open_ok();
	leave(b);
}

static void aborts(const void *arg)
{
	struct gdr_bootstrap *b = open_ok();

	(void)arg;
	REQUIRE(b->abort(b, 7, "text") == 0);
	REQUIRE(b->abort(b, 7, NULL) == 0);
	fake_plan = (struct fake_plan){FAKE_ABORT, FAKE_RETURN, PMIX_ERR_NOT_SUPPORTED};
	REQUIRE(b->abort(b, 7, "text") == -GDR_EBOOTSTRAP);
	REQUIRE(fake_aborts == 3);
	leave(b);
}

struct seen {
	int calls[FAKE_PES + 1]; /* [FAKE_PES]: the launcher */
	struct gdr_bootstrap *b;
	int nested;
};

static void on_lost(void *arg, int pe)
{
	struct seen *s = arg;

	s->calls[pe < 0 ? FAKE_PES : pe]++;
	s->nested = s->b->on_peer_lost(s->b, NULL, NULL);
}

static pmix_proc_t proc(const char *ns, pmix_rank_t rank)
{
	pmix_proc_t p;

	memset(&p, 0, sizeof(p));
	snprintf(p.nspace, sizeof(p.nspace), "%s", ns);
	p.rank = rank;
	return p;
}

static void deaths_are_told_once(const void *arg)
{
	struct gdr_bootstrap *b = open_ok();
	struct seen s = {.b = b};
	pmix_proc_t dead = proc("fake@1", 2), other = proc("other", 0), far = proc("fake@1", 77),
		    server = proc("fake", 0), wild = proc("fake@1", PMIX_RANK_WILDCARD);

	(void)arg;
	REQUIRE(!b->on_peer_lost(b, on_lost, &s));
	fake_event(PMIX_ERR_PROC_ABORTED_BY_SIG, &other, NULL);
	fake_event(PMIX_ERR_PROC_ABORTED_BY_SIG, &far, NULL);
	fake_event(PMIX_ERR_PROC_ABORTED_BY_SIG, &wild, NULL);
	fake_event(PMIX_ERR_PROC_ABORTED_BY_SIG, NULL, NULL);
	fake_event(PMIX_ERR_DEBUGGER_RELEASE, &dead, NULL);
	REQUIRE(!s.calls[0] && !s.calls[2] && !s.calls[FAKE_PES]);
	REQUIRE(!gather(b, 4));
	fake_event(PMIX_ERR_PROC_ABORTED_BY_SIG, &server, &dead);
	fake_event(PMIX_ERR_PROC_TERM_WO_SYNC, &dead, NULL);
	REQUIRE(s.calls[2] == 1 && !s.calls[0] && s.nested == -GDR_ESTATE);
	fake_event(PMIX_ERR_LOST_CONNECTION, &server, NULL);
	fake_event(PMIX_ERR_LOST_CONNECTION, NULL, NULL);
	REQUIRE(s.calls[FAKE_PES] == 1);
	REQUIRE(!b->on_peer_lost(b, NULL, NULL));
	leave(b);
	fake_event(PMIX_ERR_LOST_CONNECTION, &server, NULL);
	REQUIRE(s.calls[FAKE_PES] == 1);
}

static void early_death_is_delivered(const void *arg)
{
	struct gdr_bootstrap *b = open_ok();
	struct seen s = {.b = b};
	pmix_proc_t dead = proc("fake@1", 0);

	(void)arg;
	fake_event(PMIX_ERR_EXIT_NONZERO_TERM, &dead, NULL);
	REQUIRE(!b->on_peer_lost(b, on_lost, &s));
	REQUIRE(s.calls[0] == 1);
	REQUIRE(!b->on_peer_lost(b, on_lost, &s));
	REQUIRE(s.calls[0] == 1);
	leave(b);
}

static void death_ends_a_wait(const void *arg)
{
	struct gdr_bootstrap *b = open_ok();
	pmix_proc_t dead = proc("fake@1", 2);
	double begin = now();

	(void)arg;
	fake_plan = (struct fake_plan){FAKE_FENCE, FAKE_NEVER, 0};
	fake_event(PMIX_ERR_PROC_ABORTED_BY_SIG, &dead, NULL);
	REQUIRE(b->barrier(b, 30000) == -GDR_EPEERLOST);
	REQUIRE(now() - begin < SLACK_S);
	leave(b);
	fake_release();
}

static void lost_launcher_ends_a_wait(const void *arg)
{
	struct gdr_bootstrap *b = open_ok();

	(void)arg;
	fake_plan = (struct fake_plan){FAKE_GET_BLOBS, FAKE_NEVER, 0};
	fake_event(PMIX_ERR_LOST_CONNECTION, NULL, NULL);
	REQUIRE(b->barrier(b, 30000) == -GDR_EBOOTSTRAP);
	leave(b);
	fake_release();
}

/* The child's exit goes through exit(), so that leaks are looked for. */
static int in_child(void (*fn)(const void *), const void *arg, unsigned limit_s)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(limit_s);
		fn(arg);
		exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void every_site_in_every_way(void **state)
{
	size_t i, bad = 0;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (in_child(run_row, &rows[i], 40)) {
			fprintf(stderr, "row %zu failed: site %d how %d status %d\n", i,
				rows[i].site, rows[i].how, rows[i].status);
			bad++;
		}
	assert_int_equal(bad, 0);
}

#define CASE(fn)                                             \
	static void case_##fn(void **state)                  \
	{                                                    \
		(void)state;                                 \
		assert_int_equal(in_child(fn, NULL, 40), 0); \
	}

CASE(bad_arguments)
CASE(stuck_init_is_kept)
CASE(failed_init_is_final)
CASE(reopen_keeps_pmix)
CASE(exit_with_stuck_finalize)
CASE(aborts)
CASE(deaths_are_told_once)
CASE(early_death_is_delivered)
CASE(death_ends_a_wait)
CASE(lost_launcher_ends_a_wait)

static void case_exit_leaves_pmix(void **state)
{
	(void)state;
	assert_int_equal(in_child(exit_leaves_pmix, "closed", 20), 0);
	assert_int_equal(in_child(exit_leaves_pmix, NULL, 20), 0);
}

static void keys_are_few(void **state)
{
	(void)state;
	assert_int_equal(in_child(keys_are_renewed, "ds21,ds12,hash", 40), 0);
	assert_int_equal(in_child(keys_are_never_renewed, "hash", 40), 0);
	assert_int_equal(in_child(keys_are_never_renewed, "shmem2,hash", 40), 0);
	assert_int_equal(in_child(a_peer_never_renews, "ds21,ds12,hash", 40), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_site_in_every_way),
		cmocka_unit_test(case_bad_arguments),
		cmocka_unit_test(case_stuck_init_is_kept),
		cmocka_unit_test(case_failed_init_is_final),
		cmocka_unit_test(case_reopen_keeps_pmix),
		cmocka_unit_test(case_exit_leaves_pmix),
		cmocka_unit_test(case_exit_with_stuck_finalize),
		cmocka_unit_test(keys_are_few),
		cmocka_unit_test(case_aborts),
		cmocka_unit_test(case_deaths_are_told_once),
		cmocka_unit_test(case_early_death_is_delivered),
		cmocka_unit_test(case_death_ends_a_wait),
		cmocka_unit_test(case_lost_launcher_ends_a_wait),
	};

	if (gdri_options_read(&opt, NULL))
		return 1;
	/* The launcher's own variables, if there are any, are not wanted. */
	setenv("PMIX_NAMESPACE", "fake@1", 1);
	setenv("PMIX_RANK", "1", 1);
	unsetenv("PMIX_GDS_MODULE");
	unsetenv("PMIX_MCA_gds");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
