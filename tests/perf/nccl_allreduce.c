// SPDX-License-Identifier: BSD-3-Clause
// The peer of samples/allreduce: NCCL's sum of floats on N GPUs, one process each, calls back to back
// in a stream. usage: nccl_allreduce N [symmetric]. Prints "bytes us" for each size; `symmetric`
// registers the buffers as symmetric windows. Compiled by nvcc (-x cu) against an installed NCCL.
#include "tests/perf/help.h"
#include "tests/perf/times.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

#define MUST(call)                                                                                 \
	do {                                                                                       \
		int r_ = (int)(call);                                                              \
		if (r_) {                                                                          \
			fprintf(stderr, "%s: %d\n", #call, r_);                                    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

struct meeting { /* shared by the processes */
	ncclUniqueId id;
	volatile int ready;
};

static double calls_us(float *buf, size_t count, int n, ncclComm_t comm, cudaStream_t s)
{
	double start = now_us();
	int i;

	for (i = 0; i < n; i++)
		MUST(ncclAllReduce(buf, buf + (64 << 20), count, ncclFloat, ncclSum, comm, s));
	MUST(cudaStreamSynchronize(s));
	return (now_us() - start) / n;
}

static void table(int rank, float *buf, ncclComm_t comm, cudaStream_t s)
{
	size_t bytes;
	double t[5];
	int i, n;

	for (bytes = 1024; bytes <= 256 << 20; bytes *= 4) {
		n = bytes <= 4 << 20 ? 200 : 20;
		calls_us(buf, bytes / 4, 5, comm, s);
		for (i = 0; i < 5; i++)
			t[i] = calls_us(buf, bytes / 4, n, comm, s);
		qsort(t, 5, sizeof(*t), by_value);
		if (!rank)
			printf("%zu %.2f [%.2f..%.2f]\n", bytes, t[2], t[0], t[4]);
		fflush(stdout);
	}
}

static int process(int rank, int n, int symmetric, struct meeting *m)
{
	ncclWindow_t wins[1];
	ncclComm_t comm;
	cudaStream_t s;
	void *buf = NULL;

	MUST(cudaSetDevice(rank));
	if (!rank) {
		MUST(ncclGetUniqueId(&m->id));
		__sync_synchronize(); /* the id before the flag */
		m->ready = 1;
	}
	while (!m->ready)
		usleep(1000);
	MUST(ncclCommInitRank(&comm, n, m->id, rank));
	MUST(cudaStreamCreate(&s));
	MUST(ncclMemAlloc(&buf, (size_t)512 << 20));
	MUST(cudaMemset(buf, 0, (size_t)512 << 20));
	if (symmetric)
		MUST(ncclCommWindowRegister(comm, buf, (size_t)512 << 20, wins,
					    NCCL_WIN_COLL_SYMMETRIC));
	table(rank, (float *)buf, comm, s);
	return 0;
}

int main(int argc, char **argv)
{
	int i, status, bad = 0, n = argc > 1 ? atoi(argv[1]) : 2;
	struct meeting *m;

	help_if_asked(argc, argv, "nccl_allreduce N [symmetric]");
	m = (struct meeting *)mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < n; i++)
		if (!fork())
			_exit(process(i, n, argc > 2 && !strcmp(argv[2], "symmetric"), m));
	for (i = 0; i < n; i++) {
		wait(&status);
		bad |= status;
	}
	return bad != 0;
}
