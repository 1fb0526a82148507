/* SPDX-License-Identifier: BSD-3-Clause */
/* One member comes to a collective of a team when the others have given it up: all of its members fail from there on,
 * at once, with one status and the name of that PE. Other teams, barriers of all PEs and the PE outside the team go on;
 * so does a team that is made anew, with the number of the broken one.
 *
 *	team_broken FORM CALL	host | device | stream, barrier | sync | reduce | fcollect | broadcast */
#include "tests/multi/multi.h"

#define N 4 /* elements of each member */

enum { BARRIER, SYNC, REDUCE, FCOLLECT, BROADCAST, CALLS };
static const char *const names[CALLS] = {"barrier", "sync", "reduce", "fcollect", "broadcast"};

struct broken {
	gdr_team_t team;
	uint64_t *gave_up; /* [n_pes]: at the PE that is late */
	long *dst, *src;   /* [n_pes * N] */
	int call, scope;
	int *got;
};

GDR_DEVICE int enter(const struct broken *a)
{
	switch (a->call) {
	case BARRIER:
		return a->scope ? gdr_barrier_block(a->team) : gdr_barrier(a->team);
	case SYNC:
		return a->scope ? gdr_team_sync_block(a->team) : gdr_team_sync(a->team);
	case REDUCE:
		return a->scope ? gdr_long_sum_reduce_block(a->team, a->dst, a->src, N)
				: gdr_long_sum_reduce(a->team, a->dst, a->src, N);
	case FCOLLECT:
		return a->scope ? gdr_long_fcollect_block(a->team, a->dst, a->src, N)
				: gdr_long_fcollect(a->team, a->dst, a->src, N);
	default:
		return a->scope ? gdr_long_broadcast_block(a->team, a->dst, a->src, N, 0)
				: gdr_long_broadcast(a->team, a->dst, a->src, N, 0);
	}
}

GDR_KERNEL(kernel, struct broken, a)
{
	int ret;

	if (!a.scope && gdr_thread_id())
		return;
	ret = enter(&a);
	if (!gdr_thread_id())
		*a.got = ret;
}

static int on_device(struct broken *a, int call, int scope)
{
	a->call = call;
	a->scope = scope;
	CHECK_OK(gdr_launch(kernel, 1, 32, 0, NULL, a));
	CHECK_OK(gdr_stream_sync(NULL));
	return *a->got;
}

static int on_stream(const struct broken *a, int call)
{
	int ret, status;

	(void)gdr_host_quiet(); /* forgets what was before */
	ret = call == BARRIER	 ? gdr_barrier_on_stream(a->team, NULL)
	      : call == SYNC	 ? gdr_team_sync_on_stream(a->team, NULL)
	      : call == REDUCE	 ? gdr_long_sum_reduce_on_stream(a->team, a->dst, a->src, N, NULL)
	      : call == FCOLLECT ? gdr_long_fcollect_on_stream(a->team, a->dst, a->src, N, NULL)
				 : gdr_long_broadcast_on_stream(a->team, a->dst, a->src, N, 0, NULL);
	CHECK_OK(ret);
	CHECK_OK(gdr_stream_sync(NULL));
	status = gdr_host_status();
	(void)gdr_host_quiet();
	return status;
}

static int on_host(const struct broken *a, int call)
{
	switch (call) {
	case BARRIER:
		return gdr_barrier(a->team);
	case SYNC:
		return gdr_team_sync(a->team);
	case REDUCE:
		return gdr_long_sum_reduce(a->team, a->dst, a->src, N);
	case FCOLLECT:
		return gdr_long_fcollect(a->team, a->dst, a->src, N);
	default:
		return gdr_long_broadcast(a->team, a->dst, a->src, N, 0);
	}
}

static int collective(struct broken *a, const char *form, int call)
{
	if (!strcmp(form, "device"))
		return on_device(a, call, 1);
	return strcmp(form, "stream") ? on_host(a, call) : on_stream(a, call);
}

/* Every form and call: one status, and no wait, which would leave a record. */
static void expect_broken(struct broken *a, int status)
{
	const int records = gdr_errors(NULL, 0);
	gdr_team_t none = GDR_TEAM_WORLD;

	CHECK_EQ(records, 1);
	for (int call = 0; call < CALLS; call++) {
		CHECK_EQ(on_device(a, call, 0), status);
		CHECK_EQ(on_device(a, call, 1), status);
		CHECK_EQ(on_host(a, call), status);
		CHECK_EQ(on_stream(a, call), status);
	}
#ifndef __CUDACC__ /* host threads of a job on GPUs have notes of their own */
	CHECK_EQ(gdr_team_split_strided(a->team, 0, 1, 1, NULL, 0, &none), status);
	CHECK_EQ(none, GDR_TEAM_INVALID);
#endif
	CHECK_EQ(gdr_errors(NULL, 0), records);
}

/* A call that the late PE has all words for may end well there, and a broadcast at its root, which waits for nobody
 * while there is room: a later one does not. */
static int give_up(struct broken *a, const char *form, int call, int late)
{
	int ret, tries = 0;

	do {
		ret = collective(a, form, call);
	} while (!ret && (multi_pe == late || call == BROADCAST) && call > SYNC && ++tries < 20);
	return ret;
}

static void member(struct broken *a, const char *form, int call, int late)
{
	uint64_t yes = 1;
	struct gdr_error e;
	int ret;

	for (int i = 0; i < 3; i++)
		CHECK_OK(collective(a, form, call));
	for (int i = 0; i < gdr_host_team_n_pes(a->team) && multi_pe == late; i++) {
		int pe = gdr_host_team_translate_pe(a->team, i, GDR_TEAM_WORLD);

		while (pe != late && !multi_u64(a->gave_up + pe))
			multi_sleep_us(1000);
	}
	ret = give_up(a, form, call, late);
	CHECK_EQ(ret, -GDR_ETIMEOUT);
	CHECK(gdr_errors(&e, 1) > 0);
	CHECK_EQ(e.status, ret);
	CHECK_EQ(e.peer, late);
	if (multi_pe == late)
		CHECK(!e.waited_ns && strstr(e.text, "gave up"));
	else
		CHECK_OK(gdr_host_put(a->gave_up + multi_pe, &yes, sizeof(yes), late));
	expect_broken(a, ret);
}

/* Whoever is outside the team waits meanwhile, in no call that would have a limit. */
static void join_again(const struct broken *a, int outside)
{
	uint64_t yes = 1;

	if (outside >= 0 && multi_pe != outside)
		CHECK_OK(gdr_host_put(a->gave_up + multi_pe, &yes, sizeof(yes), outside));
	for (int pe = 0; pe < multi_n && multi_pe == outside; pe++)
		while (pe != outside && !multi_u64(a->gave_up + pe))
			multi_sleep_us(1000);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_team_sync(GDR_TEAM_WORLD));
}

/* All but one PE, if more than two are left. */
static int make_team(struct broken *a, int outside)
{
	int n = 0;
	int *pes = (int *)calloc((size_t)multi_n, sizeof(*pes));

	CHECK(pes);
	for (int pe = 0; pe < multi_n; pe++)
		if (pe != outside)
			pes[n++] = pe;
	CHECK_OK(gdr_team_create(GDR_TEAM_WORLD, pes, n, NULL, 0, &a->team));
	free(pes);
	return multi_pe != outside;
}

int main(int argc, char **argv)
{
	struct broken a = {0};
	int call = CALLS, late, outside, in;
	gdr_team_t before;

	multi_begin();
	a.got = (int *)multi_shared_new(sizeof(int));
	a.gave_up = (uint64_t *)gdr_calloc((size_t)multi_n, sizeof(uint64_t));
	a.dst = (long *)gdr_calloc((size_t)multi_n * N, sizeof(long));
	a.src = (long *)gdr_calloc((size_t)multi_n * N, sizeof(long));
	CHECK(a.gave_up && a.dst && a.src && argc > 2);
	while (call && strcmp(argv[2], names[call - 1]))
		call--;
	CHECK(call--);
	late = multi_n - 1;
	outside = multi_n > 3 ? 0 : -1;
	in = make_team(&a, outside);
	before = a.team;
	if (in)
		member(&a, argv[1], call, late);
	join_again(&a, outside);
	if (in)
		CHECK_EQ(gdr_team_destroy(a.team), -GDR_ETIMEOUT);
	if (make_team(&a, outside)) {
		CHECK_EQ(a.team, before);
		for (call = 0; call < CALLS; call++)
			CHECK_OK(on_device(&a, call, 1));
	}
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(gdr_finalize(), in ? -GDR_ETIMEOUT : 0);
	if (multi_pe == 0)
		printf("team_broken: all right on %d PEs\n", multi_n);
	return 0;
}
