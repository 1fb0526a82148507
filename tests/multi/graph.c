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
	free(host);
	return multi_end("graph");
}
