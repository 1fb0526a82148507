// SPDX-License-Identifier: BSD-3-Clause
// nccl_data N: NCCL on N GPUs, one process each: sums, gathered parts and messages to the next rank, every
// byte compared. Made for running below softhca with NCCL's own ways between GPUs of a host off (script nccl).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

#define MUST(call)                                                                                 \
	do {                                                                                       \
		int r_ = (int)(call);                                                              \
		if (r_) {                                                                          \
			fprintf(stderr, "%s: %d\n", #call, r_);                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { MOST = 1 << 20 }; /* words of a message */

struct meeting { /* shared by the processes */
	ncclUniqueId id;
	volatile int ready;
};

static uint32_t value(int rank, size_t i) { return (uint32_t)(i * 2654435761u) + (uint32_t)rank * 77777u; }

struct rank {
	int me, n;
	ncclComm_t comm;
	cudaStream_t stream;
	uint32_t *in, *out; /* of the GPU */
	uint32_t *host;
};

static void fill(struct rank *r, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		r->host[i] = value(r->me, i);
	MUST(cudaMemcpy(r->in, r->host, count * 4, cudaMemcpyDefault));
	MUST(cudaMemset(r->out, 0xee, (size_t)r->n * MOST * 4));
}

static int wrong(struct rank *r, const char *what, size_t count, size_t i, uint32_t want)
{
	fprintf(stderr, "rank %d: %s of %zu words: word %zu is %#x, not %#x\n", r->me, what, count, i,
		r->host[i], want);
	return 1;
}

static int sum(struct rank *r, size_t count)
{
	size_t i;
	int j;

	fill(r, count);
	MUST(ncclAllReduce(r->in, r->out, count, ncclUint32, ncclSum, r->comm, r->stream));
	MUST(cudaStreamSynchronize(r->stream));
	MUST(cudaMemcpy(r->host, r->out, count * 4, cudaMemcpyDefault));
	for (i = 0; i < count; i++) {
		uint32_t want = 0;

		for (j = 0; j < r->n; j++)
			want += value(j, i);
		if (r->host[i] != want)
			return wrong(r, "sum", count, i, want);
	}
	return 0;
}

static int gather(struct rank *r, size_t count)
{
	size_t i;

	fill(r, count);
	MUST(ncclAllGather(r->in, r->out, count, ncclUint32, r->comm, r->stream));
	MUST(cudaStreamSynchronize(r->stream));
	MUST(cudaMemcpy(r->host, r->out, (size_t)r->n * count * 4, cudaMemcpyDefault));
	for (i = 0; i < count * (size_t)r->n; i++)
		if (r->host[i] != value((int)(i / count), i % count))
			return wrong(r, "gathered part", count, i, value((int)(i / count), i % count));
	return 0;
}

static int next(struct rank *r, size_t count)
{
	int from = (r->me + r->n - 1) % r->n;
	size_t i;

	fill(r, count);
	MUST(ncclGroupStart());
	MUST(ncclSend(r->in, count, ncclUint32, (r->me + 1) % r->n, r->comm, r->stream));
	MUST(ncclRecv(r->out, count, ncclUint32, from, r->comm, r->stream));
	MUST(ncclGroupEnd());
	MUST(cudaStreamSynchronize(r->stream));
	MUST(cudaMemcpy(r->host, r->out, count * 4, cudaMemcpyDefault));
	for (i = 0; i < count; i++)
		if (r->host[i] != value(from, i))
			return wrong(r, "message", count, i, value(from, i));
	return 0;
}

static int one(struct rank *r, struct meeting *m)
{
	struct timespec a, b;
	size_t count;
	int bad = 0;

	MUST(cudaSetDevice(r->me));
	if (r->me == 0) {
		MUST(ncclGetUniqueId(&m->id));
		__sync_synchronize();
		m->ready = 1;
	}
	while (!m->ready)
		usleep(1000);
	MUST(ncclCommInitRank(&r->comm, r->n, m->id, r->me));
	MUST(cudaStreamCreate(&r->stream));
	MUST(cudaMalloc((void **)&r->in, (size_t)MOST * 4));
	MUST(cudaMalloc((void **)&r->out, (size_t)r->n * MOST * 4));
	r->host = (uint32_t *)malloc((size_t)r->n * MOST * 4);
	for (count = 1; count <= MOST && !bad; count *= 8) {
		clock_gettime(CLOCK_MONOTONIC, &a);
		bad += sum(r, count) + gather(r, count) + next(r, count);
		bad += sum(r, count + 1 > MOST ? MOST : count + 1);
		clock_gettime(CLOCK_MONOTONIC, &b);
		if (r->me == 0)
			printf("%zu words: %s, %.1f ms\n", count, bad ? "WRONG" : "right",
			       (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6);
		fflush(stdout);
	}
	MUST(ncclCommDestroy(r->comm));
	return bad != 0;
}

int main(int argc, char **argv)
{
	struct meeting *m = (struct meeting *)mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
						   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rank r = {};
	int i, status, bad = 0;

	r.n = argc > 1 ? atoi(argv[1]) : 2;
	for (i = 0; i < r.n; i++)
		if (fork() == 0) {
			r.me = i;
			exit(one(&r, m)); /* softhca reports at exit */
		}
	for (i = 0; i < r.n; i++) {
		wait(&status);
		bad += status != 0;
	}
	puts(bad ? "FAILED" : "all bytes right");
	return bad != 0;
}
