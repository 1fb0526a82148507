/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: what is read and written under them loses nothing, by all threads of all PEs; test_lock takes a
 * free one only. With the argument "holder" PE 1 keeps the lock, and the others' waits name it; with "unheld" others
 * than the holder clear it, and the holder while an error is latched. */
#include "tests/multi/multi.h"

enum { LOCKS = 3, ROUNDS = 5 };

struct lock {
	long *locks;
	uint64_t *counts; /* of PE 0: one for each lock */
	struct multi_report *report;
};

GDR_KERNEL(count, struct lock, a)
{
	int k, ret;

	for (int i = 0; i < ROUNDS; i++) {
		unsigned turn = 0;

		k = (int)((gdr_thread_id() + (unsigned)i) % LOCKS);
		if (i & 1) {
			while ((ret = gdr_test_lock(a.locks + k)) == 1)
				gdr_pause(turn++);
			EXPECT_OK(a.report, ret);
		} else {
			EXPECT_OK(a.report, gdr_set_lock(a.locks + k));
		}
		EXPECT_OK(a.report, gdr_uint64_p(a.counts + k, gdr_uint64_g(a.counts + k, 0) + 1, 0));
		EXPECT_OK(a.report, gdr_clear_lock(a.locks + k));
	}
	EXPECT_OK(a.report, gdr_status());
}

GDR_KERNEL(take, struct lock, a)
{
	EXPECT_OK(a.report, gdr_set_lock(a.locks));
	EXPECT_EQ(a.report, gdr_test_lock(a.locks), 1);
}

GDR_KERNEL(try_it, struct lock, a)
{
	EXPECT_EQ(a.report, gdr_test_lock(a.locks), 1);
	EXPECT_EQ(a.report, gdr_test_lock(a.locks + 1), 0);
	EXPECT_OK(a.report, gdr_clear_lock(a.locks + 1));
}

GDR_KERNEL(give, struct lock, a)
{
	EXPECT_OK(a.report, gdr_clear_lock(a.locks));
}

/* Of the locks at a.locks: of another PE, and of nobody. */
GDR_KERNEL(not_held, struct lock, a)
{
	EXPECT_EQ(a.report, gdr_clear_lock(a.locks), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr_clear_lock(a.locks + 1), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr_test_lock(a.locks), 1);
}

GDR_KERNEL(want, struct lock, a)
{
	EXPECT_EQ(a.report, gdr_set_lock(a.locks), -GDR_ETIMEOUT);
}

static void run_counts(struct lock *a, unsigned threads)
{
	uint64_t sum = 0;

	CHECK_OK(gdr_barrier_all());
	RUN(count, 1, threads, a);
	CHECK_OK(gdr_barrier_all());
	for (int k = 0; k < LOCKS; k++)
		sum += multi_u64(a->counts + k);
	if (multi_pe == 0)
		CHECK_EQ(sum, (uint64_t)multi_n * threads * ROUNDS);
	multi_fill(a->counts, 0, LOCKS * 8);
}

/* Whoever takes it is not told by chance: the lock is taken before the others ask. */
static void run_holder(struct lock *a)
{
	struct gdr_error e;

	if (multi_pe == 1)
		RUN(take, 1, 1, a);
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == 1) {
		multi_sleep_us(6000000);
		return;
	}
	RUN(want, 1, 1, a);
	CHECK(gdr_errors(&e, 1) > 0);
	CHECK_EQ(e.status, -GDR_ETIMEOUT);
	CHECK_EQ(e.peer, 1);
	CHECK(!strcmp(e.op, "lock"));
	if (multi_pe == 0)
		printf("lock: %s\n", e.text);
	multi_sleep_us(1000000); /* the others find the holder themselves */
}

/* What was latched before is told by the quiet in the call, and the lock is given on all the same: it is not held. */
GDR_KERNEL(give_latched, struct lock, a)
{
	EXPECT_EQ(a.report, gdr_uint64_wait_until_some_vector(a.counts, 1, (size_t *)a.counts, 0, 77, a.counts), 0);
	EXPECT_EQ(a.report, gdr_status(), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr_clear_lock(a.locks), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr_status(), 0);
	EXPECT_EQ(a.report, gdr_clear_lock(a.locks), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr_status(), 0);
	EXPECT_EQ(a.report, gdr_test_lock(a.locks), 0);
	EXPECT_EQ(a.report, gdr_clear_lock(a.locks), 0);
}

/* By another PE than the holder's: at once, and the lock is as it was. */
static void run_unheld(struct lock *a)
{
	struct gdr_error e;

	if (multi_pe == 1)
		RUN(take, 1, 1, a);
	CHECK_OK(gdr_barrier_all());
	if (multi_pe != 1) {
		RUN(not_held, 1, 1, a);
		CHECK_EQ(gdr_errors(&e, 1), 2);
		CHECK(strstr(e.text, "this PE does not hold the lock"));
	}
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == 1)
		RUN(give_latched, 1, 1, a);
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(multi_u64((uint64_t *)a->locks), 0);
}

int main(int argc, char **argv)
{
	struct lock a;

	multi_begin();
	memset(&a, 0, sizeof(a));
	a.report = multi_report_new();
	a.locks = (long *)gdr_calloc(LOCKS, sizeof(long));
	a.counts = (uint64_t *)gdr_calloc(LOCKS, 8);
	CHECK(a.locks && a.counts);
	if (argc > 1 && !strcmp(argv[1], "holder")) {
		run_holder(&a);
		(void)gdr_finalize(); /* after an error: does not wait for the others */
		multi_shared_free(a.report);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "unheld")) {
		run_unheld(&a);
		CHECK_OK(gdr_finalize()); /* a refused argument is no failure of a peer */
		multi_shared_free(a.report);
		return 0;
	}
	run_counts(&a, 1);
	run_counts(&a, 8);
	for (int pe = 0; pe < multi_n; pe++) {
		if (multi_pe == pe)
			RUN(take, 1, 1, &a);
		CHECK_OK(gdr_barrier_all());
		if (multi_pe == (pe + 1) % multi_n)
			RUN(try_it, 1, 1, &a);
		CHECK_OK(gdr_barrier_all());
		if (multi_pe == pe)
			RUN(give, 1, 1, &a);
		CHECK_OK(gdr_barrier_all());
	}
	for (int k = 0; k < LOCKS; k++)
		CHECK_EQ(multi_u64((uint64_t *)a.locks + k), 0);
	multi_shared_free(a.report);
	return multi_end("lock");
}
