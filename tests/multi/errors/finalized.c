/* SPDX-License-Identifier: BSD-3-Clause */
/* The last PE calls gdr_finalize, in which it waits for the others. Those make a call that needs it, and hear at once
 * that it does not come: GDR_TIMEOUT is longer than the test.
 *
 *	finalized join | split | malloc | barrier
 *	finalized search	behind a barrier they wait for they know not whom, while it is gone (GDR_TIMEOUT 4 s)
 *	finalized from | lock | team	waits of kernels that name it
 *	finalized malloc | split late	PE 0 comes when the others have heard
 *	finalized fewer		gdr_team_join of the others alone is none of its business */
#include "tests/multi/multi.h"
#include "tests/multi/said.h"

#include <gdr/host_ops.h>

#define ID 0x66696e61

static int join(int n)
{
	gdr_team_t team = GDR_TEAM_WORLD;
	int ret = gdr_team_join(ID, n, multi_pe, NULL, 0, &team);

	CHECK_EQ(gdr_host_team_n_pes(team), ret ? -1 : n);
	return ret;
}

static int split(void)
{
	gdr_team_t team = GDR_TEAM_WORLD;
	int ret = gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_n - 1, NULL, 0, &team);

	CHECK_EQ(team, GDR_TEAM_INVALID);
	return ret;
}

/* A kernel's wait: for a signal of the last PE, for its lock, in a collective of a team. */
struct waits {
	uint64_t *sig;
	long *lock;
	int what, *got;
};
enum { FROM, LOCK, TEAM, QUIET };

GDR_KERNEL(wait_in_kernel, struct waits, a)
{
	*a.got = a.what == FROM ? gdr_signal_wait_until_from(a.sig, GDR_CMP_EQ, 1, gdr_n_pes() - 1)
		 : a.what == LOCK ? gdr_set_lock(a.lock)
		 : a.what == TEAM ? gdr_team_sync(GDR_TEAM_WORLD) : gdr_quiet();
}

static struct waits waits;

static int in_kernel(int what)
{
	waits.what = what;
	CHECK_OK(gdr_launch(wait_in_kernel, 1, 1, 0, NULL, &waits));
	CHECK_OK(gdr_stream_sync(NULL));
	return *waits.got;
}

static int is_barrier(const char *form)
{
	return !strcmp(form, "barrier") || !strcmp(form, "search");
}

static int call(const char *form)
{
	if (!strcmp(form, "from"))
		return in_kernel(FROM);
	if (!strcmp(form, "lock"))
		return in_kernel(LOCK);
	if (!strcmp(form, "team"))
		return in_kernel(TEAM);

	if (!strcmp(form, "join"))
		return join(multi_n);
	if (!strcmp(form, "split"))
		return split();
	if (is_barrier(form))
		return gdr_barrier_all();
	CHECK(!gdr_malloc(64));
	return gdr_host_status();
}

/* The PE that all others wait for. Those gave a wait up, and leave without this PE: it is told that it is the one. */
static int leave(const char *form)
{
	int waited = is_barrier(form) || !strcmp(form, "from") || !strcmp(form, "lock") ||
		      !strcmp(form, "team");
	int ret;

	said_begin();
	ret = gdr_finalize();
	if (ret)
		said_expect("before gdr_finalize", "all PEs make the same calls");
	else
		CHECK(dup2(said_stderr, 2) == 2);
	if (waited || !strcmp(form, "malloc"))
		CHECK_EQ(ret, -GDR_EMISMATCH);
	else if (strcmp(form, "split") || ret != -GDR_EMISMATCH) /* or it meets one that heard of it by another */
		CHECK_EQ(ret, 0);
	return 0;
}

/* Who is in gdr_finalize is not lost, whether this PE found that, or was told: the status of the calls behind. What the
 * library told it meanwhile, which may have left, breaks no queue for the program. */
static int is_lost(void)
{
	int ret = gdr_host_quiet(), quiet = in_kernel(QUIET);

	usleep(200000);
	ret = ret ? ret : quiet ? quiet : in_kernel(QUIET);
	return ret ? ret : gdr_host_status();
}

/* Behind a broken barrier teams go on, and end in the same way. */
static int teams_too(const char *form)
{
	int ret = !is_barrier(form) ? -GDR_EPEERLOST : in_kernel(TEAM);

	return ret != -GDR_EPEERLOST || !is_barrier(form) ? ret : split();
}

static void expect_said(const char *form)
{
	char text[64], or[64];

	snprintf(text, sizeof(text), strcmp(form, "join") ? "PE %d has called gdr_finalize" :
		 "PE %d (has called gdr_finalize)", multi_n - 1);
	snprintf(or, sizeof(or), "PE %d, which has called gdr_finalize", multi_n - 1); /* as another PE tells it */
	said_expect(text, strcmp(form, "join") ? or : "failed: a peer is lost; its own message says of what");
}

/* Those between PE 0 and the last one. */
static void await_others(const uint64_t *done)
{
	for (int pe = 1; pe < multi_n - 1; pe++)
		while (!__atomic_load_n(&done[pe], __ATOMIC_ACQUIRE)) /* pairs with that PE's put */
			usleep(1000);
}

int main(int argc, char **argv)
{
	const char *form = argc > 1 ? argv[1] : "";
	int late = argc > 2, called, searched = -GDR_ETIMEOUT, lost, behind, ret;
	uint64_t *done, one = 1;

	multi_begin();
	done = (uint64_t *)gdr_calloc((size_t)multi_n, sizeof(*done));
	waits.sig = (uint64_t *)gdr_calloc(1, sizeof(*waits.sig));
	waits.lock = (long *)gdr_calloc(1, sizeof(*waits.lock));
	waits.got = (int *)multi_shared_new(sizeof(*waits.got));
	CHECK(waits.sig && waits.lock && done);
	if (multi_pe == multi_n - 1 && !strcmp(form, "lock"))
		CHECK_OK(in_kernel(LOCK));
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == multi_n - 1) {
		if (late)
			usleep(300000); /* the others are in their call, and wait for PE 0 */
		return leave(form);
	}
	if (!strcmp(form, "fewer")) {
		CHECK_OK(join(multi_n - 1));
		CHECK_OK(gdr_finalize());
		return 0;
	}
	said_begin();
	if (late && multi_pe == 0)
		await_others(done);
	called = call(form);
	if (!strcmp(form, "search")) {
		multi_sleep_us(500000); /* it has left gdr_finalize, too */
		searched = gdr_host_signal_wait_until(waits.sig, GDR_CMP_EQ, 2);
	}
	if (late && multi_pe)
		CHECK_OK(gdr_host_put(&done[multi_pe], &one, sizeof(one), 0));
	lost = is_lost();
	behind = teams_too(form);
	ret = gdr_finalize();
	expect_said(form);
	CHECK_EQ(called, -GDR_EPEERLOST);
	CHECK_EQ(searched, -GDR_ETIMEOUT);
	CHECK_EQ(lost, 0);
	CHECK_EQ(behind, -GDR_EPEERLOST);
	CHECK_EQ(ret, strcmp(form, "join") ? -GDR_EPEERLOST : 0);
	if (multi_pe == 0)
		printf("finalized: %s on %d PEs\n", form, multi_n);
	return 0;
}
