/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: uid_gdr jobs [small] | exit CODE [held] | kill
 * One of several plain processes (tests/launch/plain) that become PEs by unique id, or, without ID_FILE, by what
 * GDR_BOOTSTRAP says. jobs: again and again, by unique id with other numbers and of other sizes; what stays open
 * does not grow; small: stacks of threads have 16 KiB unless they say otherwise, as with ulimit -s 16, with which the
 * first thread may not start. exit: PE 1 ends the job, where each has written and a thread of PE 0 waits for input;
 * held: PE 2 holds its stream.
 * kill: PE 1 dies, the others hear it at once. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "tests/bootstrap/gdr_job.h"
#include "tests/by_uid.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap(void)
{
	struct timespec t = {0, 5000000};

	nanosleep(&t, NULL);
}

static void join(int job, int maker, int pe, int n)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	bool by_id = getenv("ID_FILE");
	gdr_uniqueid_t id;

	attr.heap_size = (size_t)(16 + 8 * (job & 1)) << 20;
	if (by_id) {
		CHECK(!by_uid_exchange(&id, job, rank, maker));
		attr.uniqueid = &id;
		attr.pe = pe;
		attr.n_pes = n;
	}
	CHECK(!gdr_init_attr(&attr));
	is_job(by_id ? "uniqueid" : n == 1 ? "single" : getenv("GDR_BOOTSTRAP"), pe, n);
}

/* Job by job: all in order, all reversed, without the first, the last alone. */
static int jobs(void)
{
	int files = 0, threads = 0, job, pe, n, first;

	for (job = 0; job < 12; job++) {
		n = n_ranks;
		first = 0;
		if (job % 4 == 2 && getenv("ID_FILE"))
			first = n_ranks > 1;
		if (job % 4 == 3 && getenv("ID_FILE"))
			first = n_ranks - 1;
		n -= first;
		if (rank < first)
			continue;
		pe = rank - first;
		if (job % 4 == 1 && getenv("ID_FILE"))
			pe = n - 1 - pe;
		join(job, first, pe, n);
		exchange(job * 100);
		CHECK(!gdr_finalize());
		if (job == 4) { /* the first ones make what stays */
			for (int i = 0; i < 20; i++)
				nap(); /* a thread that is joined or detached takes time to go */
			files = entries("/proc/self/fd");
			threads = entries("/proc/self/task");
		} else if (job > 4) {
			/* softhca closes what it had to the others a little later */
			for (int i = 0; i < 400 && (entries("/proc/self/task") > threads ||
						    entries("/proc/self/fd") > files); i++)
				nap();
			CHECK(entries("/proc/self/task") <= threads);
			CHECK(entries("/proc/self/fd") <= files);
		}
	}
	if (rank == n_ranks - 1)
		printf("uid_gdr: all right with %d processes\n", n_ranks);
	return 0;
}

static void *wait_for_input(void *unused)
{
	getchar();
	return unused;
}

/* A flush of all streams waits for the lock that such a thread holds. */
static void read_forever(void)
{
	pthread_t thread;
	int ends[2];

	CHECK(!pipe(ends) && dup2(ends[0], 0) == 0);
	CHECK(!pthread_create(&thread, NULL, wait_for_input, NULL));
	nap();
}

static int end_by_exit(int code, bool held)
{
	join(0, 0, rank, n_ranks);
	setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
	printf("last words\n"); /* of a stream that nobody flushed */
	if (rank == 0)
		read_forever();
	if (rank == 2 && held)
		flockfile(stdout);
	exchange(100);
	if (rank == 1)
		gdr_global_exit(code);
	gdr_barrier_all();
	return 1; /* PE 1 ends us there */
}

static int end_by_death(void)
{
	double begin;
	int ret;

	join(0, 0, rank, n_ranks);
	exchange(100);
	if (rank == 1)
		raise(SIGKILL);
	begin = now();
	ret = gdr_barrier_all();
	CHECK(ret == -GDR_EPEERLOST);
	CHECK(now() - begin < 6);
	gdr_finalize();
	CHECK(now() - begin < 10);
	printf("uid_gdr: process %d was told\n", rank);
	return 0;
}

static void small_stacks(void)
{
	pthread_attr_t attr;

	CHECK(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, 16384));
	CHECK(!pthread_setattr_default_np(&attr));
}

int main(int argc, char **argv)
{
	CHECK(argc > 1 && getenv("RANK") && getenv("WORLD_SIZE"));
	rank = atoi(getenv("RANK"));
	n_ranks = atoi(getenv("WORLD_SIZE"));
	if (!strcmp(argv[1], "jobs") && argc > 2)
		small_stacks();
	if (!strcmp(argv[1], "jobs"))
		return jobs();
	if (!strcmp(argv[1], "exit"))
		return end_by_exit(atoi(argv[2]), argc > 3);
	return end_by_death();
}
