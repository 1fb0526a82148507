/* SPDX-License-Identifier: BSD-3-Clause */
/* A 7-point stencil in three dimensions, whose cubes exchange six faces: a block packs a slice of a face, puts it with
 * a signal, waits for the slice that comes from the other side and unpacks it. The cube at (i, j, k) of a periodic
 * lattice is that of PE i + j + k modulo their number, so all six neighbours of a PE are other PEs, however few there
 * are. */
#include "app.h"

enum { SLICES = 8, THREADS = 256 };

/* Cells of a cube have a layer of halo around them; faces go by double buffers, [parity][face][n * n]. */
struct halo3d {
	int n, me, n_pes;
	uint64_t step; /* counts from 1 */
	float *from, *to, *sent, *came;
	uint64_t *signals; /* [face][SLICES] */
};

__host__ __device__ static size_t cell(int n, int x, int y, int z)
{
	return ((size_t)z * (n + 2) + y) * (n + 2) + x;
}

/* Cell u, v of a layer: face 2 * axis is that at its low end. */
__device__ static size_t on_face(int n, int face, int layer, int u, int v)
{
	return face / 2 == 0 ? cell(n, layer, u, v) : face / 2 == 1 ? cell(n, u, layer, v) : cell(n, u, v, layer);
}

__host__ __device__ static float next_of(const float *f, size_t at, int n)
{
	size_t row = n + 2, plane = row * row;

	return (2.0f * f[at] + f[at - 1] + f[at + 1] + f[at - row] + f[at + row] + f[at - plane] + f[at + plane]) *
	       0.125f;
}

__global__ static void __launch_bounds__(THREADS) exchange(struct halo3d h)
{
	int face = blockIdx.x / SLICES, slice = blockIdx.x % SLICES, n = h.n, many = n * n / SLICES;
	int peer = (h.me + (face % 2 ? 1 : h.n_pes - 1)) % h.n_pes, high = face % 2;
	size_t parity = (h.step % 2) * 6;
	float *mine = h.sent + (parity + face) * n * n + slice * many;
	float *theirs = h.came + (parity + (face ^ 1)) * n * n + slice * many; /* on the peer, its other side */
	const float *came = h.came + (parity + face) * n * n + slice * many;

	for (int i = threadIdx.x; i < many; i += blockDim.x) {
		int c = slice * many + i;

		mine[i] = h.from[on_face(n, face, high ? n : 1, 1 + c % n, 1 + c / n)];
	}
	__syncthreads();
	nvshmemx_float_put_signal_nbi_block(theirs, mine, many, &h.signals[(face ^ 1) * SLICES + slice], h.step,
					    NVSHMEM_SIGNAL_SET, peer);
	if (threadIdx.x == 0)
		nvshmem_signal_wait_until(&h.signals[face * SLICES + slice], NVSHMEM_CMP_GE, h.step);
	__syncthreads();
	for (int i = threadIdx.x; i < many; i += blockDim.x) {
		int c = slice * many + i;

		h.from[on_face(n, face, high ? n + 1 : 0, 1 + c % n, 1 + c / n)] = came[i];
	}
}

__global__ static void __launch_bounds__(THREADS) stencil(struct halo3d h)
{
	size_t n = h.n, all = n * n * n;

	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (size_t)gridDim.x * blockDim.x) {
		size_t at = cell(h.n, 1 + i % n, 1 + i / n % n, 1 + i / n / n);

		h.to[at] = next_of(h.from, at, h.n);
	}
}

static void step(struct halo3d *h, cudaStream_t stream)
{
	h->step++;
	launch(exchange, 6 * SLICES, THREADS, stream, *h);
	launch(stencil, std::min(h->n * h->n * h->n / THREADS, 1056), THREADS, stream, *h);
	std::swap(h->from, h->to);
}

static float first(int pe, int x, int y, int z)
{
	return (float)((x * 7 + y * 13 + z * 29 + pe * 31) % 64);
}

/* One step by one thread: PE after PE, its halo from its neighbours' cells. */
static void serial(int n, int n_pes, std::vector<std::vector<float>> &f)
{
	for (int pe = 0; pe < n_pes; pe++)
		for (int v = 1; v <= n; v++)
			for (int u = 1; u <= n; u++) {
				const float *low = f[(pe + n_pes - 1) % n_pes].data();
				const float *high = f[(pe + 1) % n_pes].data();
				float *me = f[pe].data();

				me[cell(n, 0, u, v)] = low[cell(n, n, u, v)];
				me[cell(n, u, 0, v)] = low[cell(n, u, n, v)];
				me[cell(n, u, v, 0)] = low[cell(n, u, v, n)];
				me[cell(n, n + 1, u, v)] = high[cell(n, 1, u, v)];
				me[cell(n, u, n + 1, v)] = high[cell(n, u, 1, v)];
				me[cell(n, u, v, n + 1)] = high[cell(n, u, v, 1)];
			}
	auto before = f;
	for (int pe = 0; pe < n_pes; pe++)
		for (int z = 1; z <= n; z++)
			for (int y = 1; y <= n; y++)
				for (int x = 1; x <= n; x++)
					f[pe][cell(n, x, y, z)] = next_of(before[pe].data(), cell(n, x, y, z), n);
}

/* Whether 9 steps give what a serial computation gives, to the last bit. Times the steps then. */
static bool run(int n, const char *name, cudaStream_t stream)
{
	size_t cells = (size_t)(n + 2) * (n + 2) * (n + 2), faces = (size_t)n * n * 12;
	struct halo3d h = {n, nvshmem_my_pe(), nvshmem_n_pes(), 0, NULL, NULL, NULL, NULL, NULL};
	std::vector<std::vector<float>> f(h.n_pes, std::vector<float>(cells));
	std::vector<float> got(cells);
	bool right = true;

	for (int pe = 0; pe < h.n_pes; pe++)
		for (size_t i = 0; i < cells; i++)
			f[pe][i] = first(pe, i % (n + 2), i / (n + 2) % (n + 2), i / (n + 2) / (n + 2));
	CUDA(cudaMalloc(&h.from, cells * sizeof(float)));
	CUDA(cudaMalloc(&h.to, cells * sizeof(float)));
	h.sent = (float *)nvshmem_malloc(faces * sizeof(float));
	h.came = (float *)nvshmem_malloc(faces * sizeof(float));
	h.signals = (uint64_t *)nvshmem_calloc(6 * SLICES, sizeof(uint64_t));
	CUDA(cudaMemcpy(h.from, f[h.me].data(), cells * sizeof(float), cudaMemcpyDefault));
	for (int s = 0; n <= 64 && s < 9; s++) {
		serial(n, h.n_pes, f);
		step(&h, stream);
	}
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(got.data(), h.from, cells * sizeof(float), cudaMemcpyDefault));
	for (size_t i = 0; i < (size_t)n * n * n; i++) {
		size_t at = cell(n, 1 + i % n, 1 + i / n % n, 1 + i / n / n);

		right = right && got[at] == f[h.me][at];
	}
	say(name, time_us(stream, 100, 11, [] {}, [&] { step(&h, stream); }));
	nvshmem_barrier_all();
	nvshmem_free(h.sent), nvshmem_free(h.came), nvshmem_free(h.signals);
	CUDA(cudaFree(h.from));
	CUDA(cudaFree(h.to));
	return right;
}

int main(void)
{
	cudaStream_t stream;

	start();
	CUDA(cudaStreamCreate(&stream));
	bool right = run(64, "halo3d_64", stream);
	right = run(256, "halo3d_256", stream) && right;
	return finish(right);
}
