/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of gdr_perf.c in those of NVSHMEM 3, so that one source measures both. For nvcc with
 * -rdc=true and the headers of an installed NVSHMEM; PEs come from mpirun (NVSHMEM_BOOTSTRAP=MPI). */
#ifndef TESTS_PERF_AS_NVSHMEM_H
#define TESTS_PERF_AS_NVSHMEM_H

#include <stdint.h>
#include <stdlib.h>

#include <nvshmem.h>
#include <nvshmemx.h>

#define GDR_DEVICE static __device__ __forceinline__
#define GDR_KERNEL(name, type, arg)                                                                \
	static __global__ void __launch_bounds__(GDR_KERNEL_THREADS) name(type arg)
#define gdr_launch(kernel, grid, block, shared, stream, argp)                                      \
	((void)((shared) > 48u * 1024 &&                                                           \
		cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(shared))), \
	 kernel<<<grid, block, shared, (cudaStream_t)stream>>>(*(argp)), (int)cudaGetLastError())
#define gdr_stream_sync(stream) ((int)cudaStreamSynchronize((cudaStream_t)stream))
#define gdr_memcpy(dst, src, len) ((int)cudaMemcpy(dst, src, len, cudaMemcpyDefault))
#define gdr_strerror(status) cudaGetErrorString((cudaError_t)(status))

enum { GDR_SIGNAL_SET = NVSHMEM_SIGNAL_SET };
enum { GDR_CMP_EQ = NVSHMEM_CMP_EQ };

struct gdr_init_attr {
	size_t size, heap_size;
};
#define GDR_INIT_ATTR_INITIALIZER {sizeof(struct gdr_init_attr), 0}

struct gdr_job_info {
	const char *device_kind;
	int n_p2p, n_nic;
};

static inline int gdr_init_attr(const struct gdr_init_attr *attr)
{
	const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");

	(void)attr; /* its heap grows */
	if (cudaSetDevice(rank ? atoi(rank) : 0) != cudaSuccess)
		return 1;
	nvshmem_init();
	return 0;
}

static inline int gdr_query(struct gdr_job_info *info)
{
	info->device_kind = "cuda, NVSHMEM " NVSHMEM_VENDOR_STRING;
	info->n_p2p = nvshmem_n_pes();
	info->n_nic = 0;
	return 0;
}

static inline int gdr_finalize(void)
{
	nvshmem_finalize();
	return 0;
}

#define gdr_host_my_pe() nvshmem_my_pe()
#define gdr_host_n_pes() nvshmem_n_pes()
#define gdr_calloc(n, size) nvshmem_calloc(n, size)
#define gdr_host_ptr(p, pe) nvshmem_ptr((void *)(p), pe)

static __host__ __device__ __forceinline__ int gdr_barrier_all(void)
{
	nvshmem_barrier_all();
	return 0;
}

GDR_DEVICE unsigned gdr_thread_id(void)
{
	return threadIdx.x;
}

GDR_DEVICE unsigned gdr_block_id(void)
{
	return blockIdx.x;
}

GDR_DEVICE unsigned gdr_grid_size(void)
{
	return gridDim.x;
}

GDR_DEVICE unsigned gdr_block_size(void)
{
	return blockDim.x;
}

GDR_DEVICE uint64_t gdr_clock_ns(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

#define gdr_sync_block() __syncthreads()
#define gdr_quiet() (nvshmem_quiet(), 0)
#define gdr_sync_all() (nvshmem_sync_all(), 0)
#define gdr_put_nbi(dst, src, len, pe) (nvshmem_putmem_nbi(dst, src, len, pe), 0)
#define gdr_put_nbi_block(dst, src, len, pe) (nvshmemx_putmem_nbi_block(dst, src, len, pe), 0)
#define gdr_get(dst, src, len, pe) (nvshmem_getmem(dst, src, len, pe), 0)
#define gdr_get_nbi(dst, src, len, pe) (nvshmem_getmem_nbi(dst, src, len, pe), 0)
#define gdr_get_nbi_block(dst, src, len, pe) (nvshmemx_getmem_nbi_block(dst, src, len, pe), 0)
#define gdr_uint64_p(dst, value, pe) (nvshmem_uint64_p(dst, value, pe), 0)
#define gdr_uint64_g(src, pe) nvshmem_uint64_g(src, pe)
#define gdr_uint64_atomic_inc(dst, pe) (nvshmem_uint64_atomic_inc(dst, pe), 0)
#define gdr_uint64_atomic_fetch_add(dst, value, pe) nvshmem_uint64_atomic_fetch_add(dst, value, pe)
#define gdr_signal_op(sig, value, op, pe) (nvshmemx_signal_op(sig, value, op, pe), 0)
#define gdr_put_signal_nbi(dst, src, len, sig, value, op, pe)                                      \
	(nvshmem_putmem_signal_nbi(dst, src, len, sig, value, op, pe), 0)
#define gdr_put_signal_nbi_block(dst, src, len, sig, value, op, pe)                                \
	(nvshmemx_putmem_signal_nbi_block(dst, src, len, sig, value, op, pe), 0)
#define gdr_signal_wait_until_from(sig, cmp, value, pe)                                            \
	((void)(pe), nvshmem_signal_wait_until(sig, cmp, value), 0)

#define GDR_TEAM_WORLD NVSHMEM_TEAM_WORLD
#define gdr_float_broadcast nvshmem_float_broadcast
#define gdr_float_fcollect nvshmem_float_fcollect
#define gdr_float_alltoall nvshmem_float_alltoall
#define gdr_float_sum_reduce nvshmem_float_sum_reduce
#define gdr_float_sum_reducescatter nvshmem_float_sum_reducescatter
#define gdr_float_broadcast_warp nvshmemx_float_broadcast_warp
#define gdr_float_fcollect_warp nvshmemx_float_fcollect_warp
#define gdr_float_alltoall_warp nvshmemx_float_alltoall_warp
#define gdr_float_sum_reduce_warp nvshmemx_float_sum_reduce_warp
#define gdr_float_sum_reducescatter_warp nvshmemx_float_sum_reducescatter_warp
#define gdr_float_broadcast_block nvshmemx_float_broadcast_block
#define gdr_float_fcollect_block nvshmemx_float_fcollect_block
#define gdr_float_alltoall_block nvshmemx_float_alltoall_block
#define gdr_float_sum_reduce_block nvshmemx_float_sum_reduce_block
#define gdr_float_sum_reducescatter_block nvshmemx_float_sum_reducescatter_block

/* From 3.7 on: by way of shared memory that the kernel gave. */
#define HAS_BULK (NVSHMEM_VENDOR_MAJOR_VERSION > 3 || NVSHMEM_VENDOR_MINOR_VERSION >= 7)
#define BULK_BEGIN nvshmemx_give_smem(gdr_shared(), w.stage)
#define BULK_END nvshmemx_release_smem()
#define gdr_put_bulk_nbi(dst, src, n, stage, bytes, pe) gdr_put_nbi(dst, src, n, pe)
#define gdr_get_bulk(dst, src, n, stage, bytes, pe) gdr_get(dst, src, n, pe)
#define gdr_put_bulk_nbi_block(dst, src, n, stage, bytes, pe) gdr_put_nbi_block(dst, src, n, pe)
#define gdr_get_bulk_nbi_block(dst, src, n, stage, bytes, pe) gdr_get_nbi_block(dst, src, n, pe)

GDR_DEVICE void *gdr_shared(void)
{
	extern __shared__ __align__(128) unsigned char shared_of_kernel[];

	return shared_of_kernel;
}

#endif
