/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs for NVSHMEM do with its names in files that nvcc compiles, where nvshmem.h alone is included. */
#include <nvshmem.h>

/* nvshmem.h brings the extensions and the groups of CUDA. */
__global__ void grouped(int *dst, const int *src, int n)
{
	namespace cg = cooperative_groups;

	nvshmemx_int_put_block(dst, src, n, 1);
	nvshmemx_float_put_nbi_warp((float *)dst, (const float *)src, n, 1);
	cg::this_thread_block().sync();
}

/* What returns nothing there returns nothing here. */
__device__ void wrapped_put(void *dst, const void *src, size_t n, int pe)
{
	return nvshmemx_putmem_nbi_block(dst, src, n, pe);
}

__device__ void wrapped_signal(uint64_t *sig, int pe)
{
	return nvshmemx_signal_op(sig, 1, NVSHMEM_SIGNAL_SET, pe);
}

/* What returns a status there returns one. */
__device__ int wrapped_sync(nvshmem_team_t team)
{
	return nvshmemx_team_sync_block(team);
}

template <typename T, void (*Put)(T *, const T *, size_t, int)> __global__ void put_by(T *dst, const T *src, size_t n)
{
	Put(dst, src, n, 1);
}

template <typename F> __device__ void call(F f, uint64_t *sig)
{
	f(sig, 1, NVSHMEM_SIGNAL_ADD, 0);
}

__global__ void callers(double *d, uint64_t *sig)
{
	nvshmemx_uint64_signal(sig, 1, 0); /* what came before: no operation to choose */
	call(&nvshmemx_signal_op, sig);
	::nvshmem_double_p(d, 1.0, ::nvshmem_my_pe());
	wrapped_put(d, d + 1, 8, 1);
	wrapped_signal(sig, 1);
	(void)wrapped_sync(NVSHMEM_TEAM_WORLD);
}

/* Names redefined in a namespace, and a method of that name. */
namespace own {
struct team {
	double *data;

	__device__ void nvshmem_double_put(size_t n, int pe)
	{
		::nvshmem_double_put(data, data + n, n, pe);
	}
};
void nvshmem_free(void *ptr)
{
	::nvshmem_free(ptr);
}
void nvshmemx_cumodule_init(uintptr_t module)
{
	(void)::nvshmemx_cumodule_init((CUmodule)module);
}
} // namespace own

__global__ void by_method(own::team t)
{
	t.nvshmem_double_put(1, 1);
}

int main()
{
	void *(*give)(size_t) = nvshmem_malloc;
	void (*take)(void *) = &nvshmem_free;
	int *p;

	nvshmem_init();
	p = (int *)give(64);
	if (nvshmemx_init_status() < NVSHMEM_STATUS_IS_INITIALIZED || nvshmemx_init_status() == NVSHMEM_STATUS_LIMITED_MPG ||
	    nvshmemx_init_status() == NVSHMEM_STATUS_FULL_MPG)
		return 1;
	grouped<<<1, 32>>>(p, p + 4, 4);
	put_by<int, nvshmem_int_put><<<1, 1>>>(p, p + 4, 4);
	callers<<<1, 1>>>((double *)p, (uint64_t *)p);
	by_method<<<1, 1>>>(own::team{(double *)p});
	own::nvshmem_free(nullptr);
	take(p);
	nvshmem_finalize();
	return 0;
}
