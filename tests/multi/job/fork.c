/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that are run and processes that are forked between gdr_init and gdr_finalize: a program inherits nothing of
 * gdr's, a child is no PE, whichever way it ends, and transfers of its parent go on with the parent's memory. By
 * mpirun, srun, or unique id (tests/launch/plain). */
#include "tests/by_uid.h"
#include "tests/multi/multi.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define SIZE 65536

/* Descriptors that a program has which this one runs. */
static int inherited(void)
{
	FILE *f = popen("ls /proc/self/fd | wc -l", "r");
	int n = -1;

	CHECK(f && fscanf(f, "%d", &n) == 1);
	CHECK_EQ(pclose(f), 0);
	return n;
}

static char said[4096];
static pid_t pe_process;

static int says(const char *what)
{
	if (strstr(said, what))
		return 1;
	fprintf(stderr, "nothing says \"%s\": %s", what, said);
	return 0;
}

/* Its status is the number of the line that failed, below 256. */
#define CHILD(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			_exit(__LINE__);                                                           \
	} while (0)

static void child(uint64_t *word, const void *own, int pe)
{
	int texts = memfd_create("texts", 0), err = dup(2);

	CHILD(texts >= 0 && err >= 0 && dup2(texts, 2) == 2);
	CHILD(gdr_host_put(word, own, 8, pe) == -GDR_ESTATE);
	CHILD(gdr_uint64_p(word, 7, pe) == -GDR_ESTATE);
	CHILD(gdr_barrier_all() == -GDR_ESTATE && gdr_host_my_pe() == -GDR_ESTATE && !gdr_malloc(8));
	CHILD(gdr_init() == -GDR_ESTATE);
	CHILD(dup2(err, 2) == 2 && pread(texts, said, sizeof(said) - 1, 0) > 0);
	CHILD(says("gdr_host_put: this process was forked by a PE, and is none"));
	CHILD(says("gdr_init: this process was forked by a PE, and is none"));
	CHILD(!gdr_finalize());
	exit(0); /* with all handlers of the parent's */
}

/* A process that has been a PE may have been one of a launcher's, whose connection no child can use. */
static void later_child(void)
{
	int texts = memfd_create("texts", 0), err = dup(2);

	CHILD(texts >= 0 && err >= 0 && dup2(texts, 2) == 2);
	CHILD(gdr_init() == -GDR_ESTATE);
	CHILD(dup2(err, 2) == 2 && pread(texts, said, sizeof(said) - 1, 0) > 0);
	CHILD(says("this process was forked from one that had opened PMIx"));
	_exit(0);
}

static void finalize_at_exit(void)
{
	int status = 0;
	pid_t pid;

	if (gdr_finalize())
		_exit(3);
	if (!getenv("PMIX_NAMESPACE") || getpid() != pe_process)
		return;
	pid = fork();
	if (!pid)
		later_child();
	if (waitpid(pid, &status, 0) != pid || status)
		_exit(4);
}

/* Has what the parent had at the fork, for longer than the job. */
static void stay(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return;
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	sleep(30); /* what the test is in ends it */
	exit(0);
}

static void transfer(char *sym, char *own, int seed)
{
	int next = (multi_pe + 1) % multi_n, from = (multi_pe + multi_n - 1) % multi_n;
	const char *here = gdr_host_ptr(sym, multi_pe);

	memset(own, seed + multi_pe, SIZE);
	CHECK_OK(gdr_put(sym, own, SIZE, next));
	CHECK_OK(gdr_barrier_all());
	for (int i = 0; i < SIZE; i++)
		CHECK_EQ(here[i], seed + from);
	CHECK_OK(gdr_barrier_all());
}

GDR_KERNEL(nothing, int, unused)
{
	(void)unused;
}

static int ended;

static void *add(void *word)
{
	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) /* joined: needs no more order */
		CHECK_OK(gdr_uint64_atomic_add(word, 1, (multi_pe + 1) % multi_n));
	return NULL;
}

/* Children that launch kernels, and end, while a thread of the PE works: all can be reaped. */
static void children_launch(uint64_t *word)
{
	int unused = 0, status;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, add, word));
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			CHILD(!gdr_launch(nothing, 2, 40, 0, NULL, &unused) && !gdr_stream_sync(NULL));
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK_EQ(status, 0);
	}
	__atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
	CHECK(!pthread_join(thread, NULL));
}

int main(void)
{
	int before = inherited(), more, status = 0;
	const char *transports = getenv("GDR_TRANSPORTS");
	uint64_t *word;
	char *sym, *own;
	pid_t pid;

	CHECK_OK(getenv("ID_FILE") ? by_uid_init() : gdr_init());
	pe_process = getpid();
	multi_pe = gdr_host_my_pe();
	multi_n = gdr_host_n_pes();
	CHECK(!atexit(finalize_at_exit));
	sym = gdr_calloc(1, SIZE);
	word = gdr_calloc(1, sizeof(*word));
	own = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(sym && word && own != MAP_FAILED);
	CHECK_OK(gdr_buffer_register(own, SIZE));
	transfer(sym, own, 1);
	more = inherited() - before;
	/* PMIx's connection to its server, and PMIx 5's map of the node; of libfabric's sockets providers leave some */
	if (!transports || !strstr(transports, "ofi"))
		CHECK(more >= 0 && more <= (getenv("PMIX_NAMESPACE") ? 2 : 0));
	stay();
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		child(word, own, multi_pe);
	transfer(sym, own, 33); /* beside it */
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status)
		multi_fail(__FILE__, __LINE__, "the child ended with status 0x%x, line %d", (unsigned)status,
			   status >> 8);
	transfer(sym, own, 65);
	CHECK_EQ(multi_u64(word), 0);
	CHECK_OK(gdr_barrier_all()); /* all have looked at their word */
	children_launch(word);
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(gdr_host_status(), 0);
	printf("fork: PE %d of %d is as it was\n", multi_pe, multi_n);
	return 0; /* its handler finalizes */
}
