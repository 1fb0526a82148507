// SPDX-License-Identifier: BSD-3-Clause
// nccl_gin N: kernels on N GPUs, one process each, put into each other's memory by NCCL's GIN device
// interface; all words are compared. Whether kernels write work queues themselves (GDAKI) or ask a
// thread of the host for it (proxy) is NCCL's choice or NCCL_GIN_TYPE's; made for running below softhca
// (script nccl). Wants NCCL 2.28.7 or later. GIN_PARTS, words: puts (a signal with each), values (carried in
// the request), counters (the sender counts what has left); unset: all.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_device.h>

#define MUST(call)                                                                                 \
	do {                                                                                       \
		int r_ = (int)(call);                                                              \
		if (r_) {                                                                          \
			fprintf(stderr, "%s: %d\n", #call, r_);                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { MOST = 1 << 18, /* words for each peer */ THREADS = 128, SMALL = 64 };

struct meeting { /* shared by the processes */
	ncclUniqueId id;
	volatile int ready;
};

static __host__ __device__ uint32_t value(int from, int to, size_t i)
{
	return (uint32_t)(i * 2654435761u) + (uint32_t)from * 77777u + (uint32_t)to * 999331u;
}

/* A part of `count` words to each peer, and a sum of arrivals there: the peers' parts are complete with it. */
__global__ void all_to_all(ncclWindow_t in, ncclWindow_t out, size_t count, ncclDevComm comm)
{
	ncclGin gin(comm, 0);
	uint64_t before = gin.readSignal(0);
	ncclGinBarrierSession<ncclCoopCta> bar(ncclCoopCta(), gin, ncclTeamWorld(comm),
					       comm.railGinBarrier, blockIdx.x);
	int to;

	bar.sync(ncclCoopCta(), cuda::memory_order_relaxed, ncclGinFenceLevel::Relaxed);
	for (to = (int)threadIdx.x; to < comm.nRanks; to += (int)blockDim.x)
		gin.put(ncclTeamWorld(comm), to, out, (size_t)comm.rank * count * 4, in,
			(size_t)to * count * 4, count * 4, ncclGin_SignalInc{0});
	gin.waitSignal(ncclCoopCta(), 0, before + (uint64_t)comm.nRanks);
	gin.flush(ncclCoopCta());
}

/* Words carried in the work queue entry, each by a thread of its own. */
__global__ void words(ncclWindow_t out, ncclDevComm comm)
{
	ncclGin gin(comm, 0);
	uint64_t before = gin.readSignal(0);
	ncclGinBarrierSession<ncclCoopCta> bar(ncclCoopCta(), gin, ncclTeamWorld(comm),
					       comm.railGinBarrier, blockIdx.x);
	int to;

	bar.sync(ncclCoopCta(), cuda::memory_order_relaxed, ncclGinFenceLevel::Relaxed);
	for (to = 0; to < comm.nRanks; to++)
		if (threadIdx.x < SMALL)
			gin.putValue(ncclTeamWorld(comm), to, out,
				     ((size_t)comm.rank * SMALL + threadIdx.x) * 4,
				     value(comm.rank, to, threadIdx.x), ncclGin_SignalInc{0});
	gin.waitSignal(ncclCoopCta(), 0, before + (uint64_t)comm.nRanks * SMALL);
	gin.flush(ncclCoopCta());
}

/* The same as all_to_all, and what was sent is counted here when it has left. */
__global__ void counted(ncclWindow_t in, ncclWindow_t out, size_t count, ncclDevComm comm)
{
	ncclGin gin(comm, 0);
	uint64_t before = gin.readSignal(0), left = gin.readCounter(0);
	ncclGinBarrierSession<ncclCoopCta> bar(ncclCoopCta(), gin, ncclTeamWorld(comm),
					       comm.railGinBarrier, blockIdx.x);
	int to;

	bar.sync(ncclCoopCta(), cuda::memory_order_relaxed, ncclGinFenceLevel::Relaxed);
	for (to = (int)threadIdx.x; to < comm.nRanks; to += (int)blockDim.x)
		gin.put(ncclTeamWorld(comm), to, out, (size_t)comm.rank * count * 4, in,
			(size_t)to * count * 4, count * 4, ncclGin_SignalInc{0}, ncclGin_CounterInc{0});
	gin.waitCounter(ncclCoopCta(), 0, left + (uint64_t)comm.nRanks);
	gin.waitSignal(ncclCoopCta(), 0, before + (uint64_t)comm.nRanks);
	gin.flush(ncclCoopCta());
}

struct rank {
	int me, n;
	cudaStream_t stream;
	void *in, *out; /* of the GPU, windows */
	ncclWindow_t in_window, out_window;
	ncclDevComm dev;
	uint32_t *host;
};

static int check(struct rank *r, const char *what, size_t count)
{
	size_t i;
	int from;

	MUST(cudaMemcpy(r->host, r->out, (size_t)r->n * count * 4, cudaMemcpyDefault));
	for (from = 0; from < r->n; from++)
		for (i = 0; i < count; i++)
			if (r->host[(size_t)from * count + i] != value(from, r->me, i)) {
				fprintf(stderr, "rank %d: %s of %zu words: word %zu from rank %d is %#x, not %#x\n",
					r->me, what, count, i, from, r->host[(size_t)from * count + i],
					value(from, r->me, i));
				return 1;
			}
	return 0;
}

static int puts_of(struct rank *r, size_t count, bool counting)
{
	size_t i;
	int to;

	for (to = 0; to < r->n; to++)
		for (i = 0; i < count; i++)
			r->host[(size_t)to * count + i] = value(r->me, to, i);
	MUST(cudaMemcpy(r->in, r->host, (size_t)r->n * count * 4, cudaMemcpyDefault));
	MUST(cudaMemset(r->out, 0xee, (size_t)r->n * count * 4));
	MUST(cudaDeviceSynchronize());
	if (counting)
		counted<<<1, THREADS, 0, r->stream>>>(r->in_window, r->out_window, count, r->dev);
	else
		all_to_all<<<1, THREADS, 0, r->stream>>>(r->in_window, r->out_window, count, r->dev);
	MUST(cudaGetLastError());
	MUST(cudaStreamSynchronize(r->stream));
	return check(r, counting ? "counted put" : "put", count);
}

static int words_of(struct rank *r)
{
	MUST(cudaMemset(r->out, 0xee, (size_t)r->n * SMALL * 4));
	MUST(cudaDeviceSynchronize());
	words<<<1, THREADS, 0, r->stream>>>(r->out_window, r->dev);
	MUST(cudaGetLastError());
	MUST(cudaStreamSynchronize(r->stream));
	return check(r, "value", SMALL);
}

/* All sizes of a part; the first wrong one is the last. */
static int part(struct rank *r, const char *name)
{
	const char *only = getenv("GIN_PARTS");
	size_t count;
	int bad = 0;

	if (only && !strstr(only, name))
		return 0;
	for (count = 1; count <= MOST && !bad; count *= 8) {
		bad = !strcmp(name, "values") ? words_of(r) : puts_of(r, count, !strcmp(name, "counters"));
		if (r->me == 0)
			printf("%s, %zu words: %s\n", name, count, bad ? "WRONG" : "right");
		fflush(stdout);
	}
	return bad;
}

static int one(struct rank *r, struct meeting *m)
{
	ncclDevCommRequirements want;
	size_t bytes = (size_t)r->n * MOST * 4;
	ncclComm_t comm;
	int bad = 0;

	MUST(cudaSetDevice(r->me));
	if (r->me == 0) {
		MUST(ncclGetUniqueId(&m->id));
		__sync_synchronize();
		m->ready = 1;
	}
	while (!m->ready)
		usleep(1000);
	MUST(ncclCommInitRank(&comm, r->n, m->id, r->me));
	MUST(cudaStreamCreate(&r->stream));
	MUST(ncclMemAlloc(&r->in, bytes));
	MUST(ncclMemAlloc(&r->out, bytes));
	MUST(ncclCommWindowRegister(comm, r->in, bytes, &r->in_window, NCCL_WIN_COLL_SYMMETRIC));
	MUST(ncclCommWindowRegister(comm, r->out, bytes, &r->out_window, NCCL_WIN_COLL_SYMMETRIC));
	memset(&want, 0, sizeof(want));
	want.railGinBarrierCount = 1;
	want.ginSignalCount = 1;
	want.ginCounterCount = 1;
	MUST(ncclDevCommCreate(comm, &want, &r->dev));
	r->host = (uint32_t *)malloc(bytes);
	bad = part(r, "puts");
	bad = bad || part(r, "values") || part(r, "counters");
	MUST(ncclDevCommDestroy(comm, &r->dev));
	MUST(ncclCommWindowDeregister(comm, r->in_window));
	MUST(ncclCommWindowDeregister(comm, r->out_window));
	MUST(ncclCommDestroy(comm));
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
