/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr_finalize returns the status of the first operation that failed, whatever has gone well since, and nothing of
 * what was refused, tested or given a limit by the program.
 *
 *	finalize nothing	what is no failure
 *	finalize refused	gdr_malloc of too much is told once
 *	finalize device | host | stream		a wait that expires, and then succeeds, on every PE
 *	finalize team		a sync of a team to which its last member does not come
 *	finalize left		PE 0 does not come to a barrier, but leaves
 *	finalize kernel		gdr_init and gdr_finalize in a kernel of the host device
 *	finalize endless	a kernel of the host device that does not end, and another job behind it */
#include "tests/multi/multi.h"
#include "tests/multi/said.h"

#include <pthread.h>

struct fin {
	uint64_t *word;
	int *got;
	int from;
	struct multi_report *report;
};

GDR_KERNEL(wait_for_it, struct fin, a)
{
	*a.got = gdr_signal_wait_until_from(a.word, GDR_CMP_EQ, 77, a.from);
}

GDR_KERNEL(look_only, struct fin, a)
{
	const uint64_t values[2] = {77, 78};

	EXPECT_EQ(a.report, gdr_uint64_test(a.word, GDR_CMP_EQ, 77), 0);
	EXPECT_EQ(a.report, gdr_uint64_test_all(a.word, 2, 0, GDR_CMP_EQ, 77), 0);
	EXPECT_EQ(a.report, gdr_uint64_wait_until_for(a.word, GDR_CMP_EQ, 77, 3000000), -GDR_ETIMEOUT);
	EXPECT_EQ(a.report, gdr_uint64_wait_until_all_for(a.word, 2, 0, GDR_CMP_EQ, 77, 3000000), -GDR_ETIMEOUT);
	EXPECT_EQ(a.report, gdr_uint64_wait_until_any_vector_for(a.word, 2, 0, GDR_CMP_EQ, values, 3000000),
		  (size_t)-1);
	EXPECT_OK(a.report, gdr_status());
}

GDR_KERNEL(sync_team, struct fin, a)
{
	*a.got = gdr_team_sync(GDR_TEAM_WORLD);
}

static int nothing(struct fin *a)
{
	static uint64_t elsewhere[8];

	RUN(look_only, 1, 1, a);
	CHECK_EQ(gdr_host_put(a->word, elsewhere, 8, multi_n), -GDR_EINVAL);
	CHECK_EQ(gdr_host_get(elsewhere, elsewhere, 8, multi_pe), -GDR_EINVAL);
	CHECK_EQ(gdr_team_sync_on_stream(33, NULL), -GDR_EINVAL);
	CHECK_EQ(gdr_put64_on_stream(elsewhere, a->word, 1, 0, NULL), -GDR_EINVAL);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_finalize());
	return 0;
}

static int refused(void)
{
	for (int asked = 0; asked < 2; asked++) {
		CHECK(!gdr_malloc((size_t)1 << 50));
		if (asked)
			CHECK_EQ(gdr_host_status(), -GDR_ENOMEM);
		CHECK_OK(gdr_barrier_all());
		CHECK_OK(gdr_host_quiet());
		if (!asked)
			CHECK_EQ(gdr_host_status(), -GDR_ENOMEM); /* until somebody asks */
		CHECK_OK(gdr_host_status());
	}
	CHECK(!gdr_malloc((size_t)1 << 50));
	CHECK(gdr_malloc(8)); /* and no longer than it is of interest */
	CHECK_OK(gdr_host_status());
	CHECK_OK(gdr_finalize());
	return 0;
}

static int wait_by(struct fin *a, const char *form)
{
	int latched;

	if (!strcmp(form, "device")) {
		RUN(wait_for_it, 1, 1, a);
		return *a->got;
	}
	if (!strcmp(form, "host"))
		return gdr_signal_wait_until_from(a->word, GDR_CMP_EQ, 77, a->from);
	CHECK_OK(gdr_signal_wait_until_on_stream(a->word, GDR_CMP_EQ, 77, NULL));
	CHECK_OK(gdr_stream_sync(NULL));
	latched = gdr_host_status();
	if (latched)
		CHECK_EQ(gdr_host_quiet(), latched);
	return latched;
}

/* All wait in vain for their neighbours, and then not: the job is in step and ends as one. */
static int expires(struct fin *a, const char *form)
{
	uint64_t v = 77;
	int ret = wait_by(a, form);

	CHECK_EQ(ret, -GDR_ETIMEOUT);
	for (int pe = 0; pe < multi_n; pe++)
		CHECK_OK(gdr_host_put(a->word + 1 + multi_pe, &v, sizeof(v), pe));
	for (int pe = 0; pe < multi_n; pe++)
		while (!multi_u64(a->word + 1 + pe))
			multi_sleep_us(1000);
	CHECK_OK(gdr_host_put(a->word, &v, sizeof(v), (multi_pe + 1) % multi_n));
	while (multi_u64(a->word) != v)
		multi_sleep_us(1000);
	CHECK_OK(wait_by(a, form));
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(gdr_finalize(), ret);
	return 0;
}

static int team(struct fin *a)
{
	uint64_t yes = 1;

	RUN(sync_team, 1, 1, a);
	CHECK_OK(*a->got);
	if (multi_pe == multi_n - 1) {
		for (int pe = 0; pe < multi_n - 1; pe++)
			while (!multi_u64(a->word + pe))
				multi_sleep_us(1000);
		CHECK(gdr_finalize() <= 0); /* the others have left, or are about to */
		return 0;
	}
	said_begin();
	RUN(sync_team, 1, 1, a);
	CHECK(*a->got == -GDR_ETIMEOUT || *a->got == -GDR_EPEERLOST);
	CHECK_OK(gdr_host_put(a->word + multi_pe, &yes, sizeof(yes), multi_n - 1));
	CHECK_EQ(gdr_finalize(), *a->got);
	said_expect("gdr_team_sync or gdr_barrier", NULL);
	said_expect_not("a word of the library to PE"); /* what it tells others last, which may have left */
	return 0;
}

/* The others' barrier fails while PE 0 waits in gdr_finalize, or when it has gone: it is told, too. */
static int left(void)
{
	int ret;

	if (multi_pe == 0) {
		ret = gdr_finalize();
		CHECK(ret == -GDR_ETIMEOUT || ret == -GDR_EMISMATCH);
		return 0;
	}
	ret = gdr_barrier_all();
	CHECK(ret == -GDR_ETIMEOUT || ret == -GDR_EPEERLOST);
	if (gdr_host_status()) { /* it has gone; one that is in gdr_finalize is not lost */
		CHECK_EQ(gdr_host_status(), -GDR_EPEERLOST);
		CHECK(gdr_host_quiet() < 0);
		CHECK_EQ(gdr_host_status(), -GDR_EPEERLOST);
	}
	CHECK_EQ(gdr_barrier_all(), ret); /* whatever others that have left since gave up for */
	CHECK_EQ(gdr_finalize(), ret);
	return 0;
}

static void *wait_in_vain(void *arg)
{
	struct fin *a = (struct fin *)arg;

	*a->got = gdr_signal_wait_until(a->word, GDR_CMP_EQ, 77);
	return NULL;
}

static int waits(struct fin *a)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, wait_in_vain, a));
	multi_sleep_us(200000);
	CHECK_EQ(gdr_finalize(), -GDR_EABORTED);
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQ(*a->got, -GDR_EABORTED);
	return 0;
}

#ifndef __CUDACC__ /* which compiles no call of the host in a kernel */
GDR_KERNEL(finalizes, struct fin, a)
{
	a.got[0] = gdr_init();
	a.got[1] = gdr_finalize();
}

/* Refused at once, and the job goes on. */
static int in_kernel(struct fin *a)
{
	said_begin();
	RUN(finalizes, 1, 1, a);
	CHECK_EQ(a->got[0], -GDR_ENOTSUP);
	CHECK_EQ(a->got[1], -GDR_ENOTSUP);
	said_expect("gdr_finalize: not possible inside a kernel", NULL);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_finalize());
	return 0;
}
#else
static int in_kernel(const struct fin *a)
{
	(void)a;
	return 77; /* the test is skipped */
}
#endif

GDR_KERNEL(endless, struct fin, a)
{
	for (unsigned round = 0; !gdri_ld_acquire_gpu_u32((uint32_t *)a.got); round++) /* pairs with endless_kernels */
		gdr_pause(round);
	gdri_add_u32((uint32_t *)a.got, 1);
}

GDR_KERNEL(counts_itself, struct fin, a)
{
	*a.got += 1;
}

/* What runs on of a job is none of the next one's: that runs kernels on the same stream, and ends well. */
static int endless_kernels(struct fin *a)
{
	struct fin next = *a;

	next.got = (int *)multi_shared_new(sizeof(int));
	CHECK_OK(gdr_launch(endless, 1, 1, 0, NULL, a));
	CHECK_OK(gdr_launch(counts_itself, 1, 1, 0, NULL, &next)); /* never runs */
	said_begin();
	CHECK_EQ(gdr_finalize(), -GDR_ETIMEOUT);
	said_expect("2 kernels still run or are queued after", NULL);
	said_expect_not("more time");
	said_expect_not("outstanding operations failed");
	CHECK_EQ(gdr_stream_sync(NULL), -GDR_EABORTED);
	for (int job = 1; job <= 2; job++) {
		CHECK_OK(gdr_init());
		RUN(counts_itself, 1, 1, &next);
		CHECK_EQ(*next.got, job);
		if (job == 2) /* release: pairs with the acquire of the kernel that was left, which ends in this job */
			__atomic_store_n(a->got, 1, __ATOMIC_RELEASE);
		CHECK_OK(gdr_barrier_all());
		CHECK_OK(gdr_finalize());
	}
	while (__atomic_load_n(a->got, __ATOMIC_RELAXED) != 2) /* the number alone is of interest */
		multi_sleep_us(1000);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct fin a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.got = (int *)multi_shared_new(2 * sizeof(int));
	a.word = (uint64_t *)gdr_calloc((size_t)multi_n + 2, sizeof(uint64_t));
	a.from = (multi_pe + multi_n - 1) % multi_n;
	CHECK(a.word);
	CHECK_OK(gdr_barrier_all());
	if (!strcmp(what, "nothing"))
		return nothing(&a);
	if (!strcmp(what, "refused"))
		return refused();
	if (!strcmp(what, "team"))
		return team(&a);
	if (!strcmp(what, "waits"))
		return waits(&a);
	if (!strcmp(what, "left"))
		return left();
	if (!strcmp(what, "kernel"))
		return in_kernel(&a);
	if (!strcmp(what, "endless"))
		return endless_kernels(&a);
	return expires(&a, what);
}
