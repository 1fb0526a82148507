/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks of host threads (gdr/host_ops.h): what threads of all PEs, and kernels, read and write under them loses
 * nothing; test takes a free one only; what is refused. "unheld": clear of what is not held. "holder": PE 1 keeps the
 * lock, and the others' waits name it. C and C++. */
#include "tests/multi/multi.h"
#include "tests/multi/said.h"

#include <gdr/host_ops.h>
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 8 };

static long *lock; /* [2] */
static uint64_t *counter; /* PE 0's counts */

struct beside_args {
	long *lock;
	uint64_t *counter;
	struct multi_report *report;
};

GDR_KERNEL(beside, struct beside_args, a)
{
	for (int i = 0; i < ROUNDS; i++) {
		EXPECT_OK(a.report, gdr_set_lock(a.lock));
		EXPECT_OK(a.report, gdr_uint64_p(a.counter, gdr_uint64_g(a.counter, 0) + 1, 0));
		EXPECT_OK(a.report, gdr_clear_lock(a.lock));
	}
}

static void *count(void *unused)
{
	int ret;

	for (int i = 0; i < ROUNDS; i++) {
		if (i & 1) {
			while ((ret = gdr_host_test_lock(lock)) == 1)
				multi_sleep_us(50);
			CHECK_OK(ret);
		} else {
			CHECK_OK(gdr_host_set_lock(lock));
		}
		CHECK_OK(gdr_host_uint64_p(counter, gdr_host_uint64_g(counter, 0) + 1, 0));
		CHECK_OK(gdr_host_clear_lock(lock));
	}
	return unused;
}

/* Threads of all PEs, and a kernel of each. */
static void together(void)
{
	struct beside_args a = {lock, counter, multi_report_new()};
	pthread_t threads[THREADS];

	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_launch(beside, 1, 1, 0, NULL, &a));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(threads + i, NULL, count, NULL));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(a.report->line, 0);
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(gdr_host_uint64_g(counter, 0), (uint64_t)multi_n * (THREADS + 1) * ROUNDS);
	CHECK_EQ(multi_u64((uint64_t *)(void *)lock), 0);
	multi_shared_free(a.report);
}

/* Of each PE in turn: nobody gets what it holds, nor can give it. */
static void held(void)
{
	for (int pe = 0; pe < multi_n; pe++) {
		CHECK_OK(gdr_barrier_all());
		if (multi_pe == pe)
			CHECK_OK(gdr_host_set_lock(lock));
		CHECK_OK(gdr_barrier_all());
		CHECK_EQ(gdr_host_test_lock(lock), 1);
		CHECK_OK(gdr_barrier_all());
		if (multi_pe == pe)
			CHECK_OK(gdr_host_clear_lock(lock));
	}
	CHECK_OK(gdr_barrier_all());
	if (!multi_pe) {
		CHECK_EQ(gdr_host_test_lock(lock + 1), 0);
		CHECK_OK(gdr_host_clear_lock(lock + 1));
	}
	CHECK_OK(gdr_barrier_all());
}

/* In every build. Of what this PE does not hold there is a record. */
static void refused(void)
{
	long own = 0, *odd = (long *)(void *)((char *)lock + 4);

	said_begin();
	CHECK_EQ(gdr_host_set_lock(&own), -GDR_EINVAL);
	CHECK_EQ(gdr_host_test_lock(odd), -GDR_EINVAL);
	CHECK_EQ(gdr_host_clear_lock(NULL), -GDR_EINVAL);
	said_expect("gdr_host_test_lock: ", NULL);
	CHECK(strstr(said_buf, "gdr_host_set_lock: ") && strstr(said_buf, "gdr_host_clear_lock: "));
	CHECK_OK(gdr_host_quiet());
	CHECK_EQ(gdr_errors(NULL, 0), 0);
}

static int unheld(void)
{
	struct gdr_error e;

	CHECK_EQ(gdr_host_clear_lock(lock), -GDR_EINVAL);
	CHECK_EQ(gdr_errors(&e, 1), 1);
	CHECK(strstr(e.text, "this PE does not hold the lock"));
	CHECK_OK(gdr_host_set_lock(lock));
	CHECK_OK(gdr_host_clear_lock(lock));
	CHECK_OK(gdr_finalize());
	return 0;
}

static int holder(void)
{
	struct gdr_error e;

	if (multi_pe == 1)
		CHECK_OK(gdr_host_set_lock(lock));
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == 1) {
		multi_sleep_us(6000000);
	} else {
		CHECK_EQ(gdr_host_set_lock(lock), -GDR_ETIMEOUT);
		CHECK(gdr_errors(&e, 1) > 0);
		CHECK_EQ(e.status, -GDR_ETIMEOUT);
		CHECK_EQ(e.peer, 1);
		multi_sleep_us(1000000); /* the others find the holder themselves */
	}
	(void)gdr_finalize(); /* after an error: does not wait for the others */
	return 0;
}

int main(int argc, char **argv)
{
	CHECK_EQ(gdr_host_set_lock(NULL), -GDR_ESTATE);
	multi_begin();
	lock = (long *)gdr_calloc(2, sizeof(long));
	counter = (uint64_t *)gdr_calloc(1, 8);
	CHECK(lock && counter);
	if (argc > 1)
		return strcmp(argv[1], "unheld") ? holder() : unheld();
	together();
	held();
	refused();
	CHECK_OK(gdr_free(counter));
	CHECK_OK(gdr_free(lock));
	return multi_end("host_lock");
}
