/* SPDX-License-Identifier: BSD-3-Clause */
/* Cost of gdr_pause where more threads spin than there are cores: a token goes
 * round a ring of processes through shared memory, each waits for it with
 * gdr_pause. A benchmark: prints figures, judges nothing.
 *
 *	pause_ring [SECONDS [PROCESSES [THREADS]]]
 *
 * THREADS 0: in plain host threads; else in kernels of one block of that size, of which
 * thread 0 passes the token on. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gdr/launch.h>
#include <gdr/simt.h>

struct ring {
	_Alignas(128) uint32_t token; /* number of hops so far */
	_Alignas(128) uint32_t stop;
};

struct args {
	struct ring *ring;
	unsigned me, n;
};

static void pass_tokens(struct args a)
{
	for (unsigned next = a.me;; next += a.n) {
		/* acquire: pairs with the release of the process before */
		for (unsigned round = 0;
		     __atomic_load_n(&a.ring->token, __ATOMIC_ACQUIRE) != next; round++) {
			if (__atomic_load_n(&a.ring->stop, __ATOMIC_RELAXED))
				return;
			gdr_pause(round);
		}
		__atomic_store_n(&a.ring->token, next + 1, __ATOMIC_RELEASE);
	}
}

GDR_KERNEL(pass_kernel, struct args, a)
{
	if (gdr_thread_id() == 0)
		pass_tokens(a);
	gdr_sync_block();
}

static int child(struct args a, unsigned threads)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!threads) {
		pass_tokens(a);
		return 0;
	}
	return gdr_launch(pass_kernel, 1, threads, 0, NULL, &a) || gdr_stream_sync(NULL);
}

static int measure(unsigned seconds, unsigned n, unsigned threads)
{
	struct ring *ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rusage before, after;
	unsigned i, hops;
	double cpu;

	if (ring == MAP_FAILED)
		return 1;
	ring->token = UINT32_MAX; /* nobody's, until all are there */
	getrusage(RUSAGE_CHILDREN, &before);
	for (i = 0; i < n; i++) {
		struct args a = {ring, i, n};
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid)
			_exit(child(a, threads));
	}
	sleep(1);
	__atomic_store_n(&ring->token, 0, __ATOMIC_RELEASE);
	sleep(seconds);
	hops = __atomic_load_n(&ring->token, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->stop, 1, __ATOMIC_RELAXED);
	while (wait(NULL) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &after);
	cpu = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
	      (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
	      1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
	      1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
	printf("RESULT pause_ring_p%u_t%u %.2f us/hop\n", n, threads,
	       1e6 * seconds / (hops ? hops : 1));
	printf("RESULT pause_ring_p%u_t%u_cpu %.2f cores\n", n, threads, cpu / (seconds + 1));
	munmap(ring, sizeof(*ring));
	return 0;
}

int main(int argc, char **argv)
{
	static const unsigned sizes[] = {2, 4, 8};
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	unsigned only = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	unsigned threads = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	int ret = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("cores %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
	for (unsigned i = 0; i < 3; i++)
		if (!only || only == sizes[i])
			ret |= measure(seconds, sizes[i], threads);
	return ret;
}
