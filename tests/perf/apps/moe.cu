/* SPDX-License-Identifier: BSD-3-Clause */
/* Tokens to experts on all PEs and back, as mixtures of experts send them: a block puts one token to the PE of one of
 * its experts, with a signal for that token; a block there waits for it, computes, and puts what came of it back; the
 * token's own block waits for all its experts and adds. */
#include "app.h"

enum { EXPERTS = 8, HIDDEN = 3584 /* uint32_t: 14336 bytes, a token of 7168 halves */ };

/* Copy c of a token is entry token * EXPERTS + c of its PE; on the expert's PE entry [source PE][entry]. */
struct moe {
	int tokens, me, n_pes, n_mine;
	uint64_t round; /* counts from 1 */
	const uint32_t *x;
	uint32_t *y;			  /* what is sent, what came of it */
	const int *mine;		  /* the n_mine entries whose expert is here */
	uint32_t *in, *computed, *back;	  /* symmetric: entries of HIDDEN numbers */
	uint64_t *dispatched, *combined; /* symmetric: a signal for each entry */
};

/* The PE of a token's expert, as a router may choose it. */
__host__ __device__ static int expert_pe(int source, int entry, int n_pes)
{
	uint32_t h = (source * 7919u + entry) * 2654435761u;

	return (int)((h >> 16) % n_pes);
}

__host__ __device__ static uint32_t expert(uint32_t x, int pe)
{
	return x * 3 + pe;
}

__global__ static void dispatch(struct moe m)
{
	int entry = blockIdx.x, pe = expert_pe(m.me, entry, m.n_pes);
	size_t there = (size_t)m.me * m.tokens * EXPERTS + entry;

	nvshmemx_putmem_signal_nbi_block(m.in + there * HIDDEN, m.x + (size_t)(entry / EXPERTS) * HIDDEN,
					 HIDDEN * sizeof(uint32_t), &m.dispatched[there], m.round,
					 NVSHMEM_SIGNAL_SET, pe);
}

__global__ static void compute(struct moe m)
{
	size_t at = m.mine[blockIdx.x], entries = (size_t)m.tokens * EXPERTS, entry = at % entries;

	if (threadIdx.x == 0)
		nvshmem_signal_wait_until(&m.dispatched[at], NVSHMEM_CMP_EQ, m.round);
	__syncthreads();
	for (int i = threadIdx.x; i < HIDDEN; i += blockDim.x)
		m.computed[at * HIDDEN + i] = expert(m.in[at * HIDDEN + i], m.me);
	__syncthreads();
	nvshmemx_putmem_signal_nbi_block(m.back + entry * HIDDEN, m.computed + at * HIDDEN, HIDDEN * sizeof(uint32_t),
					 &m.combined[entry], m.round, NVSHMEM_SIGNAL_SET, (int)(at / entries));
}

__global__ static void combine(struct moe m)
{
	size_t first = (size_t)blockIdx.x * EXPERTS;

	if (threadIdx.x < EXPERTS)
		nvshmem_signal_wait_until(&m.combined[first + threadIdx.x], NVSHMEM_CMP_EQ, m.round);
	__syncthreads();
	for (int i = threadIdx.x; i < HIDDEN; i += blockDim.x) {
		uint32_t sum = 0;

		for (int c = 0; c < EXPERTS; c++)
			sum += m.back[(first + c) * HIDDEN + i];
		m.y[(size_t)blockIdx.x * HIDDEN + i] = sum;
	}
}

static void step(struct moe *m, unsigned threads, cudaStream_t stream)
{
	m->round++;
	launch(dispatch, m->tokens * EXPERTS, threads, stream, *m);
	if (m->n_mine > 0)
		launch(compute, m->n_mine, threads, stream, *m);
	launch(combine, m->tokens, threads, stream, *m);
}

static uint32_t number(int pe, size_t i, int seed)
{
	return (uint32_t)(i * 2246822519u + pe * 3266489917u + seed);
}

/* Whether each token has what its experts make of it, also when other tokens go in the third round. Then the time. */
static bool run(int tokens, unsigned threads, const char *name, cudaStream_t stream)
{
	struct moe m = {};
	size_t numbers = (size_t)tokens * HIDDEN, entries = (size_t)tokens * EXPERTS;
	std::vector<uint32_t> x(numbers), y(numbers);
	std::vector<int> mine;
	uint32_t *from;
	int *list;
	bool right = true;

	m.tokens = tokens, m.me = nvshmem_my_pe(), m.n_pes = nvshmem_n_pes();
	for (int pe = 0; pe < m.n_pes; pe++)
		for (size_t e = 0; e < entries; e++)
			if (expert_pe(pe, e, m.n_pes) == m.me)
				mine.push_back(pe * entries + e);
	m.n_mine = mine.size();
	from = (uint32_t *)nvshmem_malloc(numbers * sizeof(uint32_t));
	m.in = (uint32_t *)nvshmem_malloc(m.n_pes * entries * HIDDEN * sizeof(uint32_t));
	m.computed = (uint32_t *)nvshmem_malloc(m.n_pes * entries * HIDDEN * sizeof(uint32_t));
	m.back = (uint32_t *)nvshmem_malloc(entries * HIDDEN * sizeof(uint32_t));
	m.dispatched = (uint64_t *)nvshmem_calloc(m.n_pes * entries, sizeof(uint64_t));
	m.combined = (uint64_t *)nvshmem_calloc(entries, sizeof(uint64_t));
	CUDA(cudaMalloc(&m.y, numbers * sizeof(uint32_t)));
	CUDA(cudaMalloc(&list, mine.size() * sizeof(int) + 1));
	CUDA(cudaMemcpy(list, mine.data(), mine.size() * sizeof(int), cudaMemcpyDefault));
	m.x = from, m.mine = list;
	for (int seed = 0; seed < 4; seed++) {
		for (size_t i = 0; i < numbers; i++)
			x[i] = number(m.me, i, seed);
		CUDA(cudaMemcpy(from, x.data(), numbers * sizeof(uint32_t), cudaMemcpyDefault));
		CUDA(cudaDeviceSynchronize());
		step(&m, threads, stream);
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(y.data(), m.y, numbers * sizeof(uint32_t), cudaMemcpyDefault));
		for (size_t i = 0; i < numbers; i++) {
			uint32_t want = 0;

			for (int c = 0; c < EXPERTS; c++)
				want += expert(x[i], expert_pe(m.me, i / HIDDEN * EXPERTS + c, m.n_pes));
			right = right && y[i] == want;
		}
	}
	say(name, time_us(stream, 20, 11, [] {}, [&] { step(&m, threads, stream); }));
	nvshmem_barrier_all();
	nvshmem_free(from), nvshmem_free(m.in), nvshmem_free(m.computed), nvshmem_free(m.back);
	nvshmem_free(m.dispatched), nvshmem_free(m.combined);
	CUDA(cudaFree(m.y));
	CUDA(cudaFree(list));
	return right;
}

int main(void)
{
	cudaStream_t stream;

	start();
	CUDA(cudaStreamCreate(&stream));
	bool right = run(8, 256, "moe_8_tokens_256_threads", stream);
	right = run(128, 256, "moe_128_tokens_256_threads", stream) && right;
	right = run(128, 1024, "moe_128_tokens_1024_threads", stream) && right;
	return finish(right);
}
