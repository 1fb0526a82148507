/* SPDX-License-Identifier: BSD-3-Clause */
/* One PE comes to a collective of all PEs when the others have given it up: all of them fail from there on, at once,
 * with one status and the name of that PE; none of them succeeds without all having come; gdr_finalize says it.
 *
 *	late FORM KIND [PE]	host | device | stream, barrier | sync; PE is late, else the last one
 *	late apart any	(host device) it allocates, the others are in a barrier: each is told what it calls itself
 *	late random SEED	host barriers and syncs, each PE at times about as late as the limit is long */
#include "tests/multi/multi.h"

enum { BARRIER, SYNC, BARRIER_WARP, SYNC_WARP, BARRIER_BLOCK, SYNC_BLOCK, KINDS };

struct late {
	uint64_t *round; /* [n_pes]: the last call that PE i has come to */
	uint64_t *gave_up; /* [n_pes]: at the PE that is late */
	int kind;
	int *got;
	struct multi_report *report;
};

GDR_DEVICE int enter(int kind)
{
	switch (kind) {
	case BARRIER:
		return gdr_barrier_all();
	case SYNC:
		return gdr_sync_all();
	case BARRIER_WARP:
		return gdr_barrier_all_warp();
	case SYNC_WARP:
		return gdr_sync_all_warp();
	case BARRIER_BLOCK:
		return gdr_barrier_all_block();
	default:
		return gdr_sync_all_block();
	}
}

GDR_KERNEL(call, struct late, a)
{
	unsigned callers = a.kind < BARRIER_WARP ? 1 : 32;
	int ret;

	if (gdr_thread_id() >= callers)
		return;
	ret = enter(a.kind); /* one call for all: a block meets at one instruction */
	if (!gdr_thread_id())
		*a.got = ret;
}

static int on_stream(int kind)
{
	int latched;

	CHECK_OK(kind == BARRIER ? gdr_barrier_all_on_stream(NULL) : gdr_sync_all_on_stream(NULL));
	CHECK_OK(gdr_stream_sync(NULL));
	latched = gdr_host_status();
	(void)gdr_host_quiet(); /* forgets it */
	return latched;
}

/* By the form's name. */
static int collective(struct late *a, const char *form, int kind)
{
	a->kind = kind;
	if (!strcmp(form, "device")) {
		CHECK_OK(gdr_launch(call, 1, 32, 0, NULL, a));
		CHECK_OK(gdr_stream_sync(NULL));
		return *a->got;
	}
	if (!strcmp(form, "stream"))
		return on_stream(kind);
	return kind == BARRIER ? gdr_barrier_all() : gdr_sync_all();
}

/* Behind a call that succeeded: all have come to it. */
static void expect_all(const struct late *a, uint64_t k)
{
	for (int pe = 0; pe < multi_n; pe++)
		if (multi_u64(a->round + pe) < k)
			multi_fail(__FILE__, __LINE__, "barrier %llu, but PE %d is at %llu", (unsigned long long)k, pe,
				   (unsigned long long)multi_u64(a->round + pe));
}

static void come(const struct late *a, uint64_t k)
{
	for (int pe = 0; pe < multi_n; pe++)
		CHECK_OK(gdr_host_put(a->round + multi_pe, &k, sizeof(k), pe));
	CHECK_OK(gdr_host_quiet());
}

/* Host threads of a job on GPUs meet in host memory: their collective calls and those of kernels break apart. */
#ifdef __CUDACC__
enum { HOSTS_APART = 1 };
#else
enum { HOSTS_APART = 0 };
#endif

/* What a record says of such a call. */
static int names_it(const struct gdr_error *e, const char *form, int kind)
{
	if (HOSTS_APART && !strcmp(form, "host"))
		return !strcmp(e->op, "collective call");
	return !strcmp(e->op, kind == SYNC ? "sync" : "barrier");
}

/* Waits of such calls that failed, or that others gave up. */
static int records(const char *form)
{
	struct gdr_error e[16];
	int i, n = gdr_errors(e, 16), found = 0;

	for (i = 0; i < n && i < 16; i++)
		found += names_it(&e[i], form, BARRIER) || names_it(&e[i], form, SYNC);
	return found;
}

/* Every form and kind, again and again: one status, and no wait. */
static void expect_broken(struct late *a, const char *form, int status)
{
	int hosts = !HOSTS_APART || !strcmp(form, "host"), kernels = !HOSTS_APART || !hosts;

	CHECK_EQ(records(form), 1);
	for (int i = 0; i < 3; i++) {
		for (int kind = 0; kind < KINDS && kernels; kind++)
			CHECK_EQ(collective(a, "device", kind), status);
		for (int kind = 0; kind < BARRIER_WARP && kernels; kind++)
			CHECK_EQ(collective(a, "stream", kind), status);
		for (int kind = 0; kind < BARRIER_WARP && hosts; kind++)
			CHECK_EQ(collective(a, "host", kind), status);
		if (!hosts)
			continue;
		CHECK(!gdr_malloc(64));
		CHECK_EQ(gdr_host_status(), status);
	}
	CHECK_EQ(records(form), 1);
}

static int once(struct late *a, const char *form, int kind, int late)
{
	uint64_t yes = 1;
	struct gdr_error e;
	int ret;

	for (uint64_t k = 1; k <= 3; k++) {
		come(a, k);
		CHECK_OK(collective(a, form, kind));
		expect_all(a, k);
	}
	for (int pe = 0; pe < multi_n && multi_pe == late; pe++) /* the others give up one after the other */
		while (pe != late && !multi_u64(a->gave_up + pe))
			multi_sleep_us(1000);
	ret = collective(a, form, kind);
	CHECK_EQ(ret, -GDR_ETIMEOUT);
	CHECK(gdr_errors(&e, 1) > 0);
	CHECK_EQ(e.status, ret);
	CHECK_EQ(e.peer, late);
	CHECK(names_it(&e, form, kind));
	if (multi_pe == late)
		CHECK(!e.waited_ns && strstr(e.text, "gave up") && strstr(e.text, "because of this one") &&
		      strstr(e.text, "teams go on"));
	else
		CHECK_OK(gdr_host_put(a->gave_up + multi_pe, &yes, sizeof(yes), late));
	expect_broken(a, form, ret);
	CHECK_EQ(gdr_finalize(), ret);
	return 0;
}

#ifndef __CUDACC__
static int apart(int late)
{
	struct gdr_error e;
	int status;

	if (multi_pe == late) {
		CHECK(!gdr_malloc(64));
		status = gdr_host_status();
	} else {
		status = gdr_barrier_all();
	}
	CHECK(status == -GDR_ETIMEOUT || status == -GDR_EPEERLOST);
	CHECK(gdr_errors(&e, 1) > 0);
	CHECK(!strncmp(e.text, multi_pe == late ? "gdr_malloc" : "gdr_barrier_all", multi_pe == late ? 10 : 15));
	multi_sleep_us(3000000); /* nobody is lost to others that still wait */
	CHECK_EQ(gdr_finalize(), status);
	return 0;
}
#endif

/* Limits expire here and there while the late ones come: whatever becomes of that, no call succeeds that not all have
 * come to, and behind one that fails none does. */
static int by_chance(struct late *a, uint64_t seed)
{
	int ret = 0, first = 0;

	for (uint64_t k = 1; k <= 60; k++) {
		uint64_t r = multi_hash(seed * 1000003 + k * 64 + (uint64_t)multi_pe);

		come(a, k);
		multi_sleep_us(!(r % 40) ? 950000 + (unsigned)(r >> 8) % 100000 : (unsigned)(r >> 8) % 3000);
		ret = k % 2 ? gdr_barrier_all() : gdr_sync_all();
		if (!ret)
			expect_all(a, k);
		if (first)
			CHECK_EQ(ret, first);
		first = ret;
		if (ret) /* others may still be on their way into it */
			k += 30;
	}
	if (first)
		CHECK(first == -GDR_ETIMEOUT || first == -GDR_EPEERLOST);
	multi_sleep_us(3000000); /* nobody is lost to others that still wait */
	ret = gdr_finalize();
	CHECK(first ? ret == first : ret <= 0);
	printf("PE %d of %d: seed %llu, %s\n", multi_pe, multi_n, (unsigned long long)seed, gdr_strerror(first));
	return 0;
}

int main(int argc, char **argv)
{
	struct late a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.got = (int *)multi_shared_new(sizeof(int));
	a.round = (uint64_t *)gdr_calloc((size_t)multi_n, sizeof(uint64_t));
	a.gave_up = (uint64_t *)gdr_calloc((size_t)multi_n, sizeof(uint64_t));
	CHECK(a.round && a.gave_up && argc > 2);
#ifndef __CUDACC__
	if (!strcmp(argv[1], "apart"))
		return apart(multi_n - 1);
#endif
	if (!strcmp(argv[1], "random"))
		return by_chance(&a, strtoull(argv[2], NULL, 0));
	return once(&a, argv[1], !strcmp(argv[2], "sync") ? SYNC : BARRIER, argc > 3 ? atoi(argv[3]) : multi_n - 1);
}
