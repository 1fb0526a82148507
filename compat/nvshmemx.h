/* SPDX-License-Identifier: BSD-3-Clause */
/* The extensions of NVSHMEM: see nvshmem.h. */
#ifndef GDR_COMPAT_NVSHMEMX_H
#define GDR_COMPAT_NVSHMEMX_H

#include "nvshmem.h"

#ifndef __CUDACC_RTC__
#include <stdlib.h>
#endif

GDR_EXTERN_C_BEGIN

/* No multicast memory: as where NVSHMEM finds none. */
GDRC_FN void *nvshmemx_mc_ptr(nvshmem_team_t team, const void *ptr)
{
	(void)team, (void)ptr;
	return NULL;
}

#ifndef __CUDACC_RTC__
static inline int nvshmemx_buffer_register(void *addr, size_t len)
{
	return gdr_buffer_register(addr, len);
}

static inline int nvshmemx_buffer_unregister(void *addr)
{
	return gdr_buffer_unregister(addr);
}

static inline int nvshmemx_cumodule_init(struct CUmod_st *module)
{
	return gdr_module_init(module);
}

static inline int nvshmemx_cumodule_finalize(struct CUmod_st *module)
{
	return gdr_module_finalize(module);
}

/* PEs that share a GPU are not told apart: of initialized ones the third is returned, and the two of LIMITED_MPG and
 * FULL_MPG, which mean initialized too, never. */
typedef enum {
	NVSHMEM_STATUS_NOT_INITIALIZED,
	NVSHMEM_STATUS_IS_BOOTSTRAPPED,
	NVSHMEM_STATUS_IS_INITIALIZED,
	NVSHMEM_STATUS_LIMITED_MPG,
	NVSHMEM_STATUS_FULL_MPG,
	NVSHMEM_STATUS_INVALID = 0x7fffffff,
} nvshmemx_init_status_t;

static inline int nvshmemx_init_status(void)
{
	return gdr_host_my_pe() < 0 ? NVSHMEM_STATUS_NOT_INITIALIZED
				    : NVSHMEM_STATUS_IS_INITIALIZED;
}

enum nvshmemx_status {
	NVSHMEMX_SUCCESS,
	NVSHMEMX_ERROR_INVALID_VALUE,
	NVSHMEMX_ERROR_OUT_OF_MEMORY,
	NVSHMEMX_ERROR_NOT_SUPPORTED,
	NVSHMEMX_ERROR_SYMMETRY,
	NVSHMEMX_ERROR_GPU_NOT_SELECTED,
	NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED,
	NVSHMEMX_ERROR_INTERNAL,
};

#ifdef CUDA_VERSION
/* Of CUlibrary, whose module in the current context is meant; for programs that link libcuda. */
static inline int nvshmemx_culibrary_init(CUlibrary library)
{
	CUmodule module;

	return cuLibraryGetModule(&module, library) ? NVSHMEMX_ERROR_INVALID_VALUE : gdr_module_init(module);
}

static inline int nvshmemx_culibrary_finalize(CUlibrary library)
{
	CUmodule module;

	return cuLibraryGetModule(&module, library) ? NVSHMEMX_ERROR_INVALID_VALUE : gdr_module_finalize(module);
}
#endif

/* As there: PEs and GPUs need not be the same number; MPI's ranks or those of OpenSHMEM are the PEs. */
enum {
	NVSHMEMX_INIT_THREAD_PES = 1,
	NVSHMEMX_INIT_WITH_MPI_COMM = 1 << 1,
	NVSHMEMX_INIT_WITH_SHMEM = 1 << 2,
	NVSHMEMX_INIT_WITH_UNIQUEID = 1 << 3,
};
typedef gdr_uniqueid_t nvshmemx_uniqueid_t;
#define NVSHMEMX_UNIQUEID_INITIALIZER GDR_UNIQUEID_INITIALIZER
typedef struct {
	nvshmemx_uniqueid_t *id; /* stays the program's */
	int myrank, nranks;
} nvshmemx_uniqueid_args_t;
typedef struct {
	nvshmemx_uniqueid_args_t uid_args;
} nvshmemx_init_args_t;
typedef struct {
	void *mpi_comm; /* of an MPI_Comm; libgdr_mpi */
	nvshmemx_init_args_t args;
} nvshmemx_init_attr_t;
#define NVSHMEMX_INIT_ATTR_INITIALIZER {0, {{0, 0, 0}}}

static inline int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t *id)
{
	return gdr_get_uniqueid(id) ? NVSHMEMX_ERROR_INTERNAL : NVSHMEMX_SUCCESS;
}

static inline int nvshmemx_set_attr_uniqueid_args(int rank, int n, const nvshmemx_uniqueid_t *id,
						  nvshmemx_init_attr_t *attr)
{
	attr->args.uid_args.id = (nvshmemx_uniqueid_t *)id;
	attr->args.uid_args.myrank = rank;
	attr->args.uid_args.nranks = n;
	return NVSHMEMX_SUCCESS;
}

static inline int nvshmemx_set_attr_mpi_comm_args(void *comm, nvshmemx_init_attr_t *attr)
{
	attr->mpi_comm = comm;
	return NVSHMEMX_SUCCESS;
}

/* Without the unique id and without a communicator the launcher brings the PEs together
 * (docs/bootstrap.md). */
static inline int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t *attr)
{
	struct gdr_init_attr a = GDR_INIT_ATTR_INITIALIZER;

	if (attr && (flags & NVSHMEMX_INIT_WITH_MPI_COMM))
		a.mpi_comm = attr->mpi_comm;
	if (attr && (flags & NVSHMEMX_INIT_WITH_UNIQUEID)) {
		a.uniqueid = attr->args.uid_args.id;
		a.pe = attr->args.uid_args.myrank;
		a.n_pes = attr->args.uid_args.nranks;
	}
	return gdrc_init(&a) ? NVSHMEMX_ERROR_INTERNAL : NVSHMEMX_SUCCESS;
}

static inline int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t *attr)
{
	return nvshmemx_init_attr(flags, attr);
}

static inline void nvshmemx_hostlib_finalize(void)
{
	nvshmem_finalize();
}

/* flags has to be 0, as there. Memory of the host (docs/nvshmem.md). */
static inline void *nvshmemx_buffer_register_symmetric(void *addr, size_t size, int flags)
{
	return flags ? 0 : gdr_symmetric_register(addr, size);
}

static inline int nvshmemx_buffer_unregister_symmetric(void *ptr, size_t size)
{
	(void)size;
	return gdr_symmetric_unregister(ptr) ? NVSHMEMX_ERROR_INVALID_VALUE : NVSHMEMX_SUCCESS;
}

static inline void nvshmemx_buffer_unregister_all(void)
{
	(void)GDRC_TOLD(nvshmemx_buffer_unregister_all, -1, gdr_buffer_unregister_all());
}

/* Not of its interface, but of its perftests. */
#define NVSHMEMI_ERROR_PRINT(...)                                                                  \
	do {                                                                                       \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                    \
		fprintf(stderr, __VA_ARGS__);                                                      \
	} while (0)

static inline void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch)
{
	*major = NVSHMEM_VENDOR_MAJOR_VERSION;
	*minor = NVSHMEM_VENDOR_MINOR_VERSION;
	*patch = NVSHMEM_VENDOR_PATCH_VERSION;
}
#endif

#if defined(__CUDACC__) && GDRI_HAS_HOST
static inline int nvshmemx_collective_launch(const void *kernel, dim3 grid, dim3 block, void **args,
					     size_t shared, cudaStream_t stream)
{
	return gdri_collective_launch(kernel, "nvshmemx_collective_launch", grid, block, args, shared,
				      stream);
}

static inline int nvshmemx_collective_launch_query_gridsize(const void *kernel, dim3 block, void **args,
							    size_t shared, int *grid)
{
	(void)args;
	return gdri_collective_grid(kernel, (int)(block.x * block.y * block.z), shared, grid);
}
#elif !defined(__CUDACC__)
#define nvshmemx_collective_launch(...)                                                            \
	gdr_has_no_nvshmemx_collective_launch_in_C_call_gdr_collective_launch
#define nvshmemx_collective_launch_query_gridsize(...)                                             \
	gdr_has_no_nvshmemx_collective_launch_query_gridsize_in_C
#endif

#if GDRI_HAS_HOST
static inline void nvshmemx_barrier_all_on_stream(gdr_stream_t stream)
{
	(void)GDRC_TOLD(nvshmemx_barrier_all_on_stream, -1, gdr_barrier_all_on_stream(stream));
}

static inline void nvshmemx_sync_all_on_stream(gdr_stream_t stream)
{
	(void)GDRC_TOLD(nvshmemx_sync_all_on_stream, -1, gdr_sync_all_on_stream(stream));
}

static inline int nvshmemx_barrier_on_stream(nvshmem_team_t team, gdr_stream_t stream)
{
	return gdr_barrier_on_stream(team, stream);
}

static inline int nvshmemx_team_sync_on_stream(nvshmem_team_t team, gdr_stream_t stream)
{
	return gdr_team_sync_on_stream(team, stream);
}

static inline void nvshmemx_quiet_on_stream(gdr_stream_t stream)
{
	(void)GDRC_TOLD(nvshmemx_quiet_on_stream, -1, gdr_quiet_on_stream(stream));
}

static inline void nvshmemx_signal_op_on_stream(uint64_t *sig, uint64_t value, int op, int pe, gdr_stream_t stream)
{
	(void)GDRC_TOLD(nvshmemx_signal_op_on_stream, pe, gdr_signal_op_on_stream(sig, value, op, pe, stream));
}

static inline void nvshmemx_signal_wait_until_on_stream(uint64_t *sig, int cmp, uint64_t value, gdr_stream_t stream)
{
	(void)GDRC_TOLD(nvshmemx_signal_wait_until_on_stream, -1,
			gdr_signal_wait_until_on_stream(sig, cmp, value, stream));
}
#endif

/* The greatest first number of a pair, and the second that belongs to it. Of equal ones that with the lowest
 * second, where NVSHMEM says nothing. */
GDR_DEVICE int nvshmemx_double2_maxloc_reduce_block(nvshmem_team_t team, gdr_complexd_t *dest,
						    const gdr_complexd_t *source, size_t nreduce)
{
	return gdri_reduce(GDRI_BLOCK, team, dest, source, nreduce, GDRI_CODE_PAIR);
}

/* ---- queue pairs: contexts ---- */

typedef gdr_ctx_t nvshmemx_qp_handle_t;
enum {
	NVSHMEMX_QP_DEFAULT = GDR_CTX_DEFAULT,
	NVSHMEMX_QP_ANY = -2,
	NVSHMEMX_QP_ALL = NVSHMEMX_QP_ANY,
	NVSHMEMX_PE_ALL = -1,
	NVSHMEMX_PE_ANY = NVSHMEMX_PE_ALL,
};

GDR_DEVICE gdr_ctx_t gdrc_qp(nvshmemx_qp_handle_t qp)
{
	return qp == NVSHMEMX_QP_ANY ? GDR_CTX_DEFAULT : qp;
}

GDR_DEVICE void nvshmemx_qp_signal_op(uint64_t *sig, uint64_t value, int op, int pe, nvshmemx_qp_handle_t qp)
{
	(void)gdrc_unseen(gdr_ctx_signal_op(gdrc_qp(qp), sig, value, op, pe));
}

GDR_DEVICE int gdrc_qp_one(int quiet, int pe, gdr_ctx_t ctx)
{
	if (pe == NVSHMEMX_PE_ALL)
		return quiet ? gdr_ctx_quiet(ctx) : gdr_ctx_fence(ctx);
	return quiet ? gdr_ctx_quiet_pe(ctx, pe) : gdr_ctx_fence_pe(ctx, pe);
}

GDR_DEVICE int gdrc_qp_each(int quiet, int pe, nvshmemx_qp_handle_t qp)
{
	int ctx, ret, status = 0;

	if (qp != NVSHMEMX_QP_ALL)
		return gdrc_qp_one(quiet, pe, qp);
	for (ctx = 0; gdri_dev() && ctx < GDRI_MAX_CTXS; ctx++) {
		ret = gdri_ctx_at(gdri_dev(), ctx)->mode ? gdrc_qp_one(quiet, pe, ctx) : 0;
		status = status ? status : ret;
	}
	return status;
}

/* The first thread of the scope, for what all of them did. */
GDR_DEVICE void gdrc_qp_order(int scope, int quiet, int pe, const nvshmemx_qp_handle_t *qps, int n)
{
	gdri_scope_sync(scope);
	for (int i = 0; i < n && !gdri_scope_rank(scope); i++)
		(void)gdrc_unseen(gdrc_qp_each(quiet, pe, qps[i]));
	gdri_scope_sync(scope);
}

GDR_DEVICE void nvshmemx_qp_quiet(int pe, nvshmemx_qp_handle_t *qps, int n)
{
	gdrc_qp_order(GDRI_THREAD, 1, pe, qps, n);
}

GDR_DEVICE void nvshmemx_qp_quiet_warp(int pe, nvshmemx_qp_handle_t *qps, int n)
{
	gdrc_qp_order(GDRI_WARP, 1, pe, qps, n);
}

GDR_DEVICE void nvshmemx_qp_quiet_block(int pe, nvshmemx_qp_handle_t *qps, int n)
{
	gdrc_qp_order(GDRI_BLOCK, 1, pe, qps, n);
}

GDR_DEVICE void nvshmemx_qp_fence(int pe, nvshmemx_qp_handle_t *qps, int n)
{
	gdrc_qp_order(GDRI_THREAD, 0, pe, qps, n);
}

GDR_DEVICE void nvshmemx_qp_fence_warp(int pe, nvshmemx_qp_handle_t *qps, int n)
{
	gdrc_qp_order(GDRI_WARP, 0, pe, qps, n);
}

GDR_DEVICE void nvshmemx_qp_fence_block(int pe, nvshmemx_qp_handle_t *qps, int n)
{
	gdrc_qp_order(GDRI_BLOCK, 0, pe, qps, n);
}

#ifndef __CUDACC_RTC__
/* The program frees the list. */
static inline int nvshmemx_qp_create(int n, nvshmemx_qp_handle_t **out)
{
	struct gdr_job_info info;
	int i, ret = gdr_query(&info);

	*out = (nvshmemx_qp_handle_t *)(ret || n < 1 ? NULL : calloc((size_t)n, sizeof(**out)));
	if (!*out)
		return 1;
	for (i = 0; i < n && info.n_queues && !ret; i++)
		ret = gdr_ctx_create(GDR_CTX_GPU, &(*out)[i]);
	if (!ret)
		return 0;
	while (i > 0)
		gdr_ctx_destroy((*out)[--i]);
	free(*out);
	*out = NULL;
	return 1;
}
#endif

GDR_DEVICE void nvshmemx_barrier_all_warp(void)
{
	(void)gdrc_unseen(gdr_barrier_all_warp());
}

GDR_DEVICE void nvshmemx_sync_all_warp(void)
{
	(void)gdrc_unseen(gdr_sync_all_warp());
}

GDR_DEVICE void nvshmemx_barrier_all_block(void)
{
	(void)gdrc_unseen(gdr_barrier_all_block());
}

GDR_DEVICE void nvshmemx_sync_all_block(void)
{
	(void)gdrc_unseen(gdr_sync_all_block());
}

GDR_DEVICE int nvshmemx_barrier_warp(nvshmem_team_t team)
{
	return gdr_barrier_warp(team);
}

GDR_DEVICE int nvshmemx_team_sync_warp(nvshmem_team_t team)
{
	return gdr_team_sync_warp(team);
}

GDR_DEVICE int nvshmemx_barrier_block(nvshmem_team_t team)
{
	return gdr_barrier_block(team);
}

GDR_DEVICE int nvshmemx_team_sync_block(nvshmem_team_t team)
{
	return gdr_team_sync_block(team);
}

#ifdef __CUDACC__
/* All threads of a warp group: 128 in a row. Takes the named barriers 8 to 15 of the block, one for each group. */
GDR_DEVICE int nvshmemx_barrier_warpgroup(nvshmem_team_t team)
{
	__shared__ int status[8];
	unsigned int group = gdr_thread_id() / 128;

	asm volatile("barrier.sync %0, 128;" ::"r"(8 + group) : "memory");
	if (!(gdr_thread_id() % 128))
		status[group] = gdr_barrier(team);
	asm volatile("barrier.sync %0, 128;" ::"r"(8 + group) : "memory");
	return status[group];
}
#else
#define nvshmemx_barrier_warpgroup(...) gdr_has_no_nvshmemx_barrier_warpgroup_without_CUDA
#endif

GDR_BOTH void nvshmemx_signal_op(uint64_t *sig, uint64_t value, int op, int pe)
{
	GDRC_VOID(nvshmemx_signal_op, pe, gdr_signal_op(sig, value, op, pe),
		  gdr_host_signal_op(sig, value, op, pe));
}

/* What there was before it: a store, without an operation to choose. */
GDR_BOTH void nvshmemx_uint64_signal(uint64_t *sig, uint64_t value, int pe)
{
	nvshmemx_signal_op(sig, value, NVSHMEM_SIGNAL_SET, pe);
}

/* Elements of the work arrays that reductions of older releases took. Programs still size their own by them; no
 * call here looks at such an array. */
#define NVSHMEMI_REDUCE_SYNC_SIZE 1
#define NVSHMEMI_REDUCE_MIN_WRKDATA_SIZE 1

#include "nvshmemx_later.h"

#ifdef __CUDACC__
#define GDRC_G(T, bytes, call) return call
#else
#define GDRC_G(T, bytes, call)                                                                     \
	T out;                                                                                     \
                                                                                                   \
	if (gdri_dev())                                                                            \
		return call;                                                                       \
	gdri_value_get(&out, src, bytes, pe);                                                      \
	return out
#endif

/* The typed names. In the checked build they are functions that take file and line, behind macros of the names. */
#ifdef GDR_CHECKED
#define GDRC_AT(name) gdrc_at_##name
#define GDRC_PARAMS(...) (const char *file, uint32_t line, __VA_ARGS__)
#undef GDRI_HERE
#define GDRI_HERE file, line,
#else
#define GDRC_AT(name) name
#define GDRC_PARAMS(...) (__VA_ARGS__)
#endif
#include <gdr/compat/nvshmem_names.h>
#ifdef GDR_CHECKED
#undef GDRI_HERE
#define GDRI_HERE __FILE__, __LINE__,
#include <gdr/compat/nvshmem_checked.h>
#endif

GDR_EXTERN_C_END

#include "nvshmemx_tile.h"

#endif
