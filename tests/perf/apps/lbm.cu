/* SPDX-License-Identifier: BSD-3-Clause */
/* A lattice Boltzmann method (D3Q27) in slabs: a thread holds the 27 densities of a cell in registers, lets them
 * collide and moves each to a neighbouring cell, nine of them by nvshmem_double_p where that is the next PE's. Blocks
 * at a slab's end then signal the neighbour, whose blocks there wait for them before their next step. */
#include "app.h"

enum { Q = 27, THREADS = 256 };

/* densities: [27][nz][ny][nx], periodic. */
struct lbm {
	int nx, ny, nz, me, n_pes;
	uint64_t step;	   /* counts from 0 */
	double *from, *to; /* symmetric */
	uint64_t *signals; /* from below, from above */
};

/* Direction i goes by (i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1). */
__host__ __device__ static constexpr double weight(int i)
{
	int rest = (i % 3 == 1) + (i / 3 % 3 == 1) + (i / 9 == 1);

	return rest == 3 ? 8.0 / 27 : rest == 2 ? 2.0 / 27 : rest == 1 ? 1.0 / 54 : 1.0 / 216;
}

__host__ __device__ static inline void collide(double *f)
{
	double rho = 0, x = 0, y = 0, z = 0;

#pragma unroll
	for (int i = 0; i < Q; i++) {
		rho += f[i];
		x += (i % 3 - 1) * f[i], y += (i / 3 % 3 - 1) * f[i], z += (i / 9 - 1) * f[i];
	}
	x /= rho, y /= rho, z /= rho;
	double square = 1 - 1.5 * (x * x + y * y + z * z);
#pragma unroll
	for (int i = 0; i < Q; i++) {
		double u = (i % 3 - 1) * x + (i / 3 % 3 - 1) * y + (i / 9 - 1) * z;
		double rests = weight(i) * rho * (square + u * (3 + 4.5 * u));

		f[i] += (rests - f[i]) * 1.2;
	}
}

__global__ static void __launch_bounds__(THREADS, 2) lbm_step(struct lbm a)
{
	unsigned plane = a.nx * a.ny, blocks = plane / blockDim.x, cells = plane * a.nz;
	int z = blockIdx.x / blocks, in_plane = blockIdx.x % blocks * blockDim.x + threadIdx.x;
	int x = in_plane % a.nx, y = in_plane / a.nx;
	int below = (a.me + a.n_pes - 1) % a.n_pes, above = (a.me + 1) % a.n_pes;
	bool lowest = z == 0, highest = z == a.nz - 1;
	double f[Q];

	if ((lowest || highest) && threadIdx.x == 0) /* what went to this plane is there, what went from it was taken */
		nvshmem_signal_wait_until(&a.signals[highest], NVSHMEM_CMP_GE, a.step * blocks);
	__syncthreads();
#pragma unroll
	for (int i = 0; i < Q; i++)
		f[i] = a.from[i * (size_t)cells + (size_t)z * plane + in_plane];
	collide(f);
#pragma unroll
	for (int i = 0; i < Q; i++) {
		int to_x = x + i % 3 - 1, to_y = y + i / 3 % 3 - 1, to_z = z + i / 9 - 1;
		double *to = a.to + i * (size_t)cells;

		to_x = to_x < 0 ? a.nx - 1 : to_x == a.nx ? 0 : to_x;
		to_y = to_y < 0 ? a.ny - 1 : to_y == a.ny ? 0 : to_y;
		to += to_y * a.nx + to_x;
		if (i / 9 == 0 && lowest)
			nvshmem_double_p(to + (size_t)(a.nz - 1) * plane, f[i], below);
		else if (i / 9 == 2 && highest)
			nvshmem_double_p(to, f[i], above);
		else
			to[(size_t)to_z * plane] = f[i];
	}
	if (!lowest && !highest)
		return;
	nvshmem_quiet();
	__syncthreads();
	if (threadIdx.x == 0)
		nvshmemx_signal_op(&a.signals[lowest], 1, NVSHMEM_SIGNAL_ADD, lowest ? below : above);
}

static void step(struct lbm *a, cudaStream_t stream)
{
	launch(lbm_step, a->nx * a->ny / THREADS * a->nz, THREADS, stream, *a);
	a->step++;
	std::swap(a->from, a->to);
}

/* One step of all PEs' planes by one thread. */
static void serial(const struct lbm *a, std::vector<double> &from)
{
	int nz = a->nz * a->n_pes, cells = a->nx * a->ny * nz;
	std::vector<double> to(from.size());

	for (int c = 0; c < cells; c++) {
		int x = c % a->nx, y = c / a->nx % a->ny, z = c / a->nx / a->ny;
		double f[Q];

		for (int i = 0; i < Q; i++)
			f[i] = from[(size_t)i * cells + c];
		collide(f);
		for (int i = 0; i < Q; i++) {
			int to_x = (x + i % 3 - 1 + a->nx) % a->nx, to_y = (y + i / 3 % 3 - 1 + a->ny) % a->ny;
			int to_z = (z + i / 9 - 1 + nz) % nz;

			to[(size_t)i * cells + ((size_t)to_z * a->ny + to_y) * a->nx + to_x] = f[i];
		}
	}
	from.swap(to);
}

/* Steps of a lattice of n * n * nz cells a PE: compared with the serial ones, or timed. */
static bool run(int n, int nz, const char *name, cudaStream_t stream)
{
	struct lbm a = {n, n, nz, nvshmem_my_pe(), nvshmem_n_pes(), 0, NULL, NULL, NULL};
	size_t mine = (size_t)n * n * nz, all = mine * a.n_pes;
	std::vector<double> f(Q * all), part(Q * mine);
	bool right = true;

	for (size_t i = 0; i < Q * all; i++)
		f[i] = weight(i / all) * (1 + 0.02 * ((i % all * 2654435761u >> 8) % 16));
	for (size_t i = 0; i < Q * mine; i++)
		part[i] = f[i / mine * all + a.me * mine + i % mine];
	a.from = (double *)nvshmem_malloc(Q * mine * sizeof(double));
	a.to = (double *)nvshmem_malloc(Q * mine * sizeof(double));
	a.signals = (uint64_t *)nvshmem_calloc(2, sizeof(uint64_t));
	CUDA(cudaMemcpy(a.from, part.data(), Q * mine * sizeof(double), cudaMemcpyDefault));
	CUDA(cudaDeviceSynchronize());
	nvshmem_barrier_all();
	if (name != NULL) {
		say(name, time_us(stream, 50, 11, [] {}, [&] { step(&a, stream); }));
	} else {
		for (int s = 0; s < 10; s++) {
			serial(&a, f);
			step(&a, stream);
		}
		nvshmemx_barrier_all_on_stream(stream);
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(part.data(), a.from, Q * mine * sizeof(double), cudaMemcpyDefault));
		for (size_t i = 0; i < Q * mine; i++)
			right = right && fabs(part[i] - f[i / mine * all + a.me * mine + i % mine]) < 1e-13;
	}
	nvshmem_barrier_all();
	nvshmem_free(a.from), nvshmem_free(a.to), nvshmem_free(a.signals);
	return right;
}

int main(void)
{
	cudaStream_t stream;

	start();
	CUDA(cudaStreamCreate(&stream));
	bool right = run(16, 8, NULL, stream);
	run(64, 64, "lbm_64", stream);
	return finish(right);
}
