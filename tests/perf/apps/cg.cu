/* SPDX-License-Identifier: BSD-3-Clause */
/* Conjugate gradients for Poisson's equation on a square grid in bands of rows: two sums over all PEs in each
 * iteration, by the host on the stream, by a kernel of one block or of one thread; rows at a band's end go to the
 * neighbours by nvshmem_double_p. */
#include "app.h"

enum { THREADS = 256 };
enum how { ON_STREAM, BLOCK, THREAD };

/* Vectors of rows * n numbers; p has a row of halo below and above. */
struct gradients {
	int n, rows, me, n_pes, odd;
	double *x, *r, *q;
	double *p, *part, *sum; /* symmetric; part: p q, r r of this PE; sum: p q, and r r of even and odd iterations */
};

/* Sum `to` of all PEs' part `from`. */
struct sum {
	double *to, *from;
};

/* A thread's share of the cells. */
#define CELLS(a, i)                                                                                                    \
	size_t i = blockIdx.x * blockDim.x + threadIdx.x;                                                              \
	i < (size_t)(a).rows * (a).n;                                                                                  \
	i += gridDim.x * blockDim.x

__host__ __device__ static double times_a(const double *p, size_t i, int n)
{
	int x = i % n;

	return 4 * p[i] - p[i - n] - p[i + n] - (x > 0 ? p[i - 1] : 0) - (x < n - 1 ? p[i + 1] : 0);
}

__global__ static void __launch_bounds__(THREADS) multiply(struct gradients a)
{
	double dot = 0;

	for (CELLS(a, i)) {
		a.q[i] = times_a(a.p + a.n, i, a.n);
		dot += a.p[a.n + i] * a.q[i];
	}
	add_all(&a.part[0], dot);
}

__global__ static void __launch_bounds__(THREADS) advance(struct gradients a)
{
	double alpha = a.sum[1 + a.odd] / a.sum[0], dot = 0;

	for (CELLS(a, i)) {
		a.x[i] += alpha * a.p[a.n + i];
		a.r[i] -= alpha * a.q[i];
		dot += a.r[i] * a.r[i];
	}
	add_all(&a.part[1], dot);
}

__global__ static void __launch_bounds__(THREADS) turn(struct gradients a)
{
	double beta = a.sum[2 - a.odd] / a.sum[1 + a.odd];
	size_t last = (size_t)(a.rows - 1) * a.n;

	for (CELLS(a, i)) {
		double p = a.r[i] + beta * a.p[a.n + i];

		a.p[a.n + i] = p;
		if (i < (size_t)a.n && a.me > 0)
			nvshmem_double_p(&a.p[a.n + last + a.n + i], p, a.me - 1);
		if (i >= last && a.me < a.n_pes - 1)
			nvshmem_double_p(&a.p[i - last], p, a.me + 1);
	}
	if (blockIdx.x == 0 && threadIdx.x < 2)
		a.part[threadIdx.x] = 0;
}

__global__ static void sum_block(struct sum s)
{
	nvshmemx_double_sum_reduce_block(NVSHMEM_TEAM_WORLD, s.to, s.from, 1);
}

__global__ static void sum_thread(struct sum s)
{
	nvshmem_double_sum_reduce(NVSHMEM_TEAM_WORLD, s.to, s.from, 1);
}

static void sum_of(enum how how, double *to, double *from, cudaStream_t stream)
{
	if (how == ON_STREAM)
		nvshmemx_double_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, to, from, 1, stream);
	else
		launch_all(how == BLOCK ? sum_block : sum_thread, 1, how == BLOCK ? 32 : 1, stream, sum{to, from});
}

static void step(struct gradients *a, enum how how, cudaStream_t stream)
{
	unsigned grid = std::min(a->rows * a->n / THREADS, 528);

	launch(multiply, grid, THREADS, stream, *a);
	sum_of(how, &a->sum[0], &a->part[0], stream);
	launch(advance, grid, THREADS, stream, *a);
	sum_of(how, &a->sum[2 - a->odd], &a->part[1], stream);
	launch(turn, grid, THREADS, stream, *a);
	nvshmemx_barrier_all_on_stream(stream);
	a->odd = 1 - a->odd;
}

/* Cell i of the whole grid's solution. */
static double solution(int n, size_t i)
{
	return sin(0.01 * (i % n)) + 0.5 * cos(0.02 * (i / n));
}

/* x = 0, r = p = A times the solution. */
static void restart(struct gradients *a)
{
	size_t mine = (size_t)a->rows * a->n, all = mine * a->n_pes;
	std::vector<double> s(all + 2 * a->n), b(all + 2 * a->n), zero(mine);
	double first[3] = {0, 0, 0};

	for (size_t i = 0; i < all; i++)
		s[a->n + i] = solution(a->n, i);
	for (size_t i = 0; i < all; i++) {
		b[a->n + i] = times_a(s.data() + a->n, i, a->n);
		first[1] += b[a->n + i] * b[a->n + i];
	}
	a->odd = 0;
	CUDA(cudaMemcpy(a->x, zero.data(), mine * sizeof(double), cudaMemcpyDefault));
	CUDA(cudaMemcpy(a->r, &b[a->n + a->me * mine], mine * sizeof(double), cudaMemcpyDefault));
	CUDA(cudaMemcpy(a->p, &b[a->me * mine], (mine + 2 * a->n) * sizeof(double), cudaMemcpyDefault));
	CUDA(cudaMemcpy(a->part, zero.data(), 2 * sizeof(double), cudaMemcpyDefault));
	CUDA(cudaMemcpy(a->sum, first, sizeof(first), cudaMemcpyDefault));
	CUDA(cudaDeviceSynchronize());
	nvshmem_barrier_all();
}

/* Whether it found the solution of a grid of n columns, n rows a PE; or times the iterations. */
static bool run(int n, enum how how, const char *name, cudaStream_t stream)
{
	size_t mine = (size_t)n * n;
	struct gradients a = {n, n, nvshmem_my_pe(), nvshmem_n_pes(), 0, NULL, NULL, NULL, NULL, NULL, NULL};
	std::vector<double> x(mine);
	bool right = true;

	CUDA(cudaMalloc(&a.x, mine * sizeof(double)));
	CUDA(cudaMalloc(&a.r, mine * sizeof(double)));
	CUDA(cudaMalloc(&a.q, mine * sizeof(double)));
	a.p = (double *)nvshmem_malloc((mine + 2 * n) * sizeof(double));
	a.part = (double *)nvshmem_calloc(2, sizeof(double));
	a.sum = (double *)nvshmem_calloc(3, sizeof(double));
	if (name != NULL) {
		say(name, time_us(stream, 100, 11, [&] { restart(&a); }, [&] { step(&a, how, stream); }));
	} else {
		restart(&a);
		for (int s = 0; s < 5 * n; s++)
			step(&a, how, stream);
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(x.data(), a.x, mine * sizeof(double), cudaMemcpyDefault));
		for (size_t i = 0; i < mine; i++)
			right = right && fabs(x[i] - solution(n, a.me * mine + i)) < 1e-6;
	}
	nvshmem_barrier_all();
	nvshmem_free(a.p), nvshmem_free(a.part), nvshmem_free(a.sum);
	CUDA(cudaFree(a.x));
	CUDA(cudaFree(a.r));
	CUDA(cudaFree(a.q));
	return right;
}

int main(void)
{
	cudaStream_t stream;
	bool right = true;

	start();
	CUDA(cudaStreamCreate(&stream));
	for (enum how how : {ON_STREAM, BLOCK, THREAD})
		right = run(32, how, NULL, stream) && right;
	run(512, ON_STREAM, "cg_512_on_stream", stream);
	run(512, BLOCK, "cg_512_block", stream);
	run(512, THREAD, "cg_512_thread", stream);
	return finish(right);
}
