// SPDX-License-Identifier: BSD-3-Clause
// The peer of samples/moe: NCCL's all-to-all on N GPUs, one process each, as torch.distributed makes it: a group of
// sends and receives, without the part of a GPU for itself. usage: nccl_alltoall N BYTES...: what each GPU sends to all
// others together. Prints "bytes us [min..max]", of rank 0: each call by events, calls back to back in a stream.
// Compiled by nvcc (-x cu) against an installed NCCL, whose variables say how many blocks it takes.
#include "tests/perf/help.h"
#include "tests/perf/times.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cuda_runtime.h>
#include <nccl.h>

#define CALLS 50

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

struct process {
	int rank, n;
	ncclComm_t comm;
	cudaStream_t stream;
	char *from, *to;
};

static void all_to_all(const struct process *p, size_t each)
{
	MUST(ncclGroupStart());
	for (int i = 1; i < p->n; i++) {
		int next = (p->rank + i) % p->n, last = (p->rank + p->n - i) % p->n;

		MUST(ncclSend(p->from + (size_t)next * each, each, ncclChar, next, p->comm, p->stream));
		MUST(ncclRecv(p->to + (size_t)last * each, each, ncclChar, last, p->comm, p->stream));
	}
	MUST(ncclGroupEnd());
}

static void row(const struct process *p, size_t bytes)
{
	cudaEvent_t mark[CALLS + 1];
	double us[CALLS];
	float ms;

	for (int i = 0; i < 10; i++)
		all_to_all(p, bytes / (size_t)(p->n - 1));
	for (int i = 0; i <= CALLS; i++) {
		MUST(cudaEventCreate(&mark[i]));
		MUST(cudaEventRecord(mark[i], p->stream));
		if (i < CALLS)
			all_to_all(p, bytes / (size_t)(p->n - 1));
	}
	MUST(cudaStreamSynchronize(p->stream));
	for (int i = 0; i < CALLS; i++) {
		MUST(cudaEventElapsedTime(&ms, mark[i], mark[i + 1]));
		us[i] = (double)ms * 1e3;
	}
	qsort(us, CALLS, sizeof(*us), by_value);
	if (!p->rank)
		printf("%zu %.2f [%.2f..%.2f]\n", bytes, us[CALLS / 2], us[0], us[CALLS - 1]);
	fflush(stdout);
}

static int process(int rank, int n, char **sizes, struct meeting *m)
{
	struct process p = {rank, n};
	size_t most = 0;

	MUST(cudaSetDevice(rank));
	if (!rank) {
		MUST(ncclGetUniqueId(&m->id));
		__sync_synchronize(); /* the id before the flag */
		m->ready = 1;
	}
	while (!m->ready)
		usleep(1000);
	__sync_synchronize(); /* the flag before the id */
	MUST(ncclCommInitRank(&p.comm, n, m->id, rank));
	MUST(cudaStreamCreate(&p.stream));
	for (int i = 0; sizes[i]; i++)
		most = strtoull(sizes[i], NULL, 10) > most ? strtoull(sizes[i], NULL, 10) : most;
	MUST(ncclMemAlloc((void **)&p.from, 2 * most + 1));
	MUST(ncclMemAlloc((void **)&p.to, 2 * most + 1));
	for (int i = 0; sizes[i]; i++)
		row(&p, strtoull(sizes[i], NULL, 10));
	return 0;
}

int main(int argc, char **argv)
{
	int status, bad = 0, n = argc > 1 ? atoi(argv[1]) : 0;
	struct meeting *m;

	help_if_asked(argc, argv, "nccl_alltoall N BYTES...");
	if (argc < 3 || n < 2) {
		fprintf(stderr, "usage: nccl_alltoall N BYTES...\n");
		return 2;
	}
	m = (struct meeting *)mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < n; i++)
		if (!fork())
			_exit(process(i, n, argv + 2, m));
	for (int i = 0; i < n; i++) {
		wait(&status);
		bad |= status;
	}
	return bad != 0;
}
