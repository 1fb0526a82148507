/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on a stream that is captured into a CUDA graph, which is then replayed: each replay moves
 * what the heap holds by then. Host calls of a CUDA program, and the largest grid of a collective
 * launch. For machines with GPUs (target cuda_tests). */
#include "tests/multi/multi.h"

#define REPLAYS 20
#define LONG (1u << 20) /* elements */

struct state {
	uint64_t *counter, *arrived, *sig;
	uint32_t *big[2];
};

GDR_KERNEL(step, struct state, s)
{
	size_t i = gdr_block_id() * gdr_block_size() + gdr_thread_id();

	if (!i)
		++*s.counter;
	for (; i < LONG; i += gdr_grid_size() * gdr_block_size())
		s.big[0][i] += (uint32_t)i;
}

#define CUDA(call)                                                                                 \
	do {                                                                                       \
		cudaError_t e_ = (call);                                                           \
		if (e_ != cudaSuccess)                                                             \
			multi_fail(__FILE__, __LINE__, "%s: %s", #call, cudaGetErrorString(e_));   \
	} while (0)

static void look(const struct state *s, uint32_t *host, uint64_t round)
{
	uint64_t v;

	CHECK_EQ(gdr_host_status(), 0);
	CHECK_OK(gdr_memcpy(&v, s->arrived, sizeof(v)));
	CHECK_EQ(v, round);
	CHECK_OK(gdr_memcpy(&v, s->sig, sizeof(v)));
	CHECK_EQ(v, round);
	CHECK_OK(gdr_memcpy(host, s->big[1], LONG * sizeof(*host)));
	for (size_t i = 0; i < LONG; i++)
		if (host[i] != (uint32_t)(i * round) * (uint32_t)multi_n)
			multi_fail(__FILE__, __LINE__, "replay %llu: element %zu is %u",
				   (unsigned long long)round, i, host[i]);
}

/* One step: the counter to the next PE, a signal behind it, a wait for it, a sum of much. */
static void put_step(const struct state *s, gdr_stream_t stream)
{
	int next = (multi_pe + 1) % multi_n;
	struct state arg = *s;

	CHECK_OK(gdr_launch(step, 64, 256, 0, stream, &arg));
	CHECK_OK(gdr_uint64_put_on_stream(s->arrived, s->counter, 1, next, stream));
	CHECK_OK(gdr_signal_op_on_stream(s->sig, 1, GDR_SIGNAL_ADD, next, stream));
	CHECK_OK(gdr_quiet_on_stream(stream));
	CHECK_OK(gdr_uint32_sum_reduce_on_stream(GDR_TEAM_WORLD, s->big[1], s->big[0], LONG, stream));
	CHECK_OK(gdr_barrier_all_on_stream(stream));
}

static void replay(const struct state *s, uint32_t *host)
{
	cudaGraphExec_t exec;
	gdr_stream_t stream;
	cudaGraph_t graph;
	uint64_t round;

	CHECK_OK(gdr_stream_create(&stream));
	put_step(s, stream);
	CHECK_OK(gdr_stream_sync(stream));
	look(s, host, 1);
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	put_step(s, stream);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CHECK_OK(gdr_barrier_all());
	for (round = 2; round < 2 + REPLAYS; round++) {
		CUDA(cudaGraphLaunch(exec, stream));
		if (round % 4)
			continue;
		CHECK_OK(gdr_stream_sync(stream));
		look(s, host, round);
		CHECK_OK(gdr_barrier_all());
	}
	CHECK_OK(gdr_stream_sync(stream));
	look(s, host, round - 1);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CHECK_OK(gdr_stream_destroy(stream));
}

/* ---- calls of a host thread ---- */

static void calls(const struct state *s)
{
	int next = (multi_pe + 1) % multi_n;
	int *ints = (int *)s->big[0];
	double *sums = (double *)s->big[1];
	double one = 1.5, got;
	uint64_t v;

	multi_set_u64(s->counter, 0);
	multi_set_u64(s->sig, 0);
	CHECK_OK(gdr_memcpy(sums, &one, sizeof(one)));
	CHECK_OK(gdr_barrier(GDR_TEAM_WORLD));
	CHECK_OK(gdr_uint64_atomic_add(s->counter, 2, 0));
	(void)gdr_uint64_atomic_fetch_add(s->counter, 3, 0);
	CHECK_OK(gdr_double_atomic_add(sums, 0.5, next));
	CHECK_OK(gdr_barrier(GDR_TEAM_WORLD));
	CHECK_EQ(gdr_uint64_atomic_fetch(s->counter, 0), 5ull * (unsigned)multi_n);
	CHECK(gdr_double_g(sums, multi_pe) == 2.0);
	CHECK_OK(gdr_double_sum_reduce(GDR_TEAM_WORLD, sums + 1, sums, 1));
	CHECK_OK(gdr_memcpy(&got, sums + 1, sizeof(got)));
	CHECK(got == 2.0 * multi_n);
	CHECK_OK(gdr_int_p(ints + 10, multi_pe + 7, next));
	CHECK_OK(gdr_int_put_signal(ints, ints + 10, 0, s->sig, 9, GDR_SIGNAL_SET, next));
	CHECK_OK(gdr_signal_wait_until(s->sig, GDR_CMP_EQ, 9));
	CHECK_EQ(gdr_signal_fetch(s->sig), 9);
	CHECK_OK(gdr_int_fcollect(GDR_TEAM_WORLD, ints, ints + 10, 1));
	CHECK_OK(gdr_sync_all());
	for (int i = 0; i < multi_n; i++)
		CHECK_EQ(gdr_int_g(ints + i, next), (i + multi_n - 1) % multi_n + 7);
	CHECK_OK(gdr_int_iput(ints + 20, ints, 2, 1, 1, next));
	CHECK_OK(gdr_int_wait_until(ints + 20, GDR_CMP_GE, 7));
	v = gdr_uint64_atomic_compare_swap(s->sig, 9, 4, multi_pe);
	CHECK_EQ(v, 9);
	CHECK_EQ(gdr_uint64_atomic_swap(s->sig, 0, multi_pe), 4);
	/* with the old value in memory: of the host, of the GPU */
	CHECK_OK(gdr_uint64_atomic_fetch_nbi(&v, s->counter, 0));
	CHECK_OK(gdr_double_atomic_fetch_add_nbi(&got, sums, 0.25, multi_pe));
	CHECK_OK(gdr_int_atomic_fetch_inc_nbi(ints + 30, ints + 20, multi_pe));
	CHECK_OK(gdr_host_quiet());
	CHECK_EQ(v, 5ull * (unsigned)multi_n);
	CHECK(got == 2.0 && gdr_double_g(sums, multi_pe) == 2.25);
	CHECK_EQ(gdr_int_g(ints + 30, multi_pe) + 1, gdr_int_g(ints + 20, multi_pe));
	CHECK_OK(gdr_barrier_all());
}

GDR_KERNEL(meet, struct state, s)
{
	/* all blocks of all PEs at once, or nobody gets on */
	if (!gdr_thread_id()) {
		gdr_uint64_atomic_add(s.counter, 1, 0);
		gdr_uint64_wait_until(s.sig, GDR_CMP_EQ, 1);
	}
	if (!gdr_block_id() && gdr_thread_id() == 32)
		while (gdr_uint64_atomic_fetch(s.counter, 0) != gdr_grid_size() * (uint64_t)gdr_n_pes())
			gdr_pause(9);
	if (!gdr_block_id() && gdr_thread_id() == 32)
		gdr_uint64_p(s.sig, 1, gdr_my_pe());
}

static void together(struct state *s)
{
	int grid = 0;

	CHECK_OK(gdr_collective_launch_query_gridsize(meet, 64, 0, &grid));
	CHECK(grid > 0);
	grid = grid > 4 ? 4 : grid;
	multi_set_u64(s->counter, 0);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_collective_launch(meet, (unsigned)grid, 64, 0, NULL, s));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_OK(gdr_barrier_all());
}

/* How long calls take one behind the other; nothing is judged. */
#define TIMES(what, n, call)                                                                       \
	do {                                                                                       \
		struct timespec a_, b_;                                                            \
                                                                                                   \
		CHECK_OK(gdr_barrier_all());                                                       \
		CHECK_OK((call));                                                                  \
		CHECK_OK(gdr_stream_sync(stream));                                                 \
		clock_gettime(CLOCK_MONOTONIC, &a_);                                               \
		for (int i_ = 0; i_ < (n); i_++)                                                   \
			CHECK_OK((call));                                                          \
		CHECK_OK(gdr_stream_sync(stream));                                                 \
		clock_gettime(CLOCK_MONOTONIC, &b_);                                               \
		if (!multi_pe)                                                                     \
			printf("%s: %.2f us\n", what,                                              \
			       ((double)(b_.tv_sec - a_.tv_sec) * 1e9 +                            \
				(double)(b_.tv_nsec - a_.tv_nsec)) / (n) / 1e3);                   \
	} while (0)

static void times(const struct state *s)
{
	int next = (multi_pe + 1) % multi_n;
	uint32_t *d = s->big[1], *a = s->big[0];
	gdr_stream_t stream;
	char what[64];

	CHECK_OK(gdr_stream_create(&stream));
	TIMES("put of 8 bytes on a stream", 1000, gdr_put_on_stream(d, a, 8, next, stream));
	TIMES("barrier_all on a stream", 200, gdr_barrier_all_on_stream(stream));
	TIMES("signal on a stream", 1000,
	      gdr_signal_op_on_stream(s->sig, 1, GDR_SIGNAL_SET, next, stream));
	for (size_t n = 2; n <= LONG; n *= 8) {
		snprintf(what, sizeof(what), "sum of %zu bytes on a stream", n * 4);
		TIMES(what, 50, gdr_uint32_sum_reduce_on_stream(GDR_TEAM_WORLD, d, a, n, stream));
	}
	TIMES("barrier of a host thread", 100, gdr_barrier(GDR_TEAM_WORLD));
	CHECK_OK(gdr_stream_destroy(stream));
}

int main(void)
{
	uint32_t *host = (uint32_t *)malloc(LONG * sizeof(*host));
	struct state s;

	multi_begin();
	s.counter = (uint64_t *)gdr_calloc(3, sizeof(uint64_t));
	s.arrived = s.counter + 1;
	s.sig = s.counter + 2;
	for (int i = 0; i < 2; i++)
		s.big[i] = (uint32_t *)gdr_calloc(LONG, sizeof(uint32_t));
	CHECK(host && s.counter && s.big[0] && s.big[1]);
	replay(&s, host);
	calls(&s);
	together(&s);
	times(&s);
	free(host);
	return multi_end("graph");
}
