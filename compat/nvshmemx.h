/* SPDX-License-Identifier: BSD-3-Clause */
/* The extensions of NVSHMEM: see nvshmem.h. */
#ifndef GDR_COMPAT_NVSHMEMX_H
#define GDR_COMPAT_NVSHMEMX_H

#include "nvshmem.h"

#ifndef __CUDACC_RTC__
#define nvshmemx_buffer_register(addr, len) gdr_buffer_register(addr, len)
#define nvshmemx_buffer_unregister(addr) gdr_buffer_unregister(addr)
#define nvshmemx_cumodule_init(module) gdr_module_init(module)
#define nvshmemx_cumodule_finalize(module) gdr_module_finalize(module)
#define NVSHMEM_STATUS_NOT_INITIALIZED 0
#define NVSHMEM_STATUS_IS_INITIALIZED 2

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
	return gdr_init_attr(&a) ? NVSHMEMX_ERROR_INTERNAL : NVSHMEMX_SUCCESS;
}
#define nvshmemx_hostlib_init_attr(flags, attr) nvshmemx_init_attr(flags, attr)
#define nvshmemx_hostlib_finalize() ((void)gdr_finalize())

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
#define nvshmemx_buffer_unregister_all() ((void)gdr_buffer_unregister_all())

static inline void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch)
{
	*major = GDR_VERSION_MAJOR;
	*minor = GDR_VERSION_MINOR;
	*patch = GDR_VERSION_PATCH;
}
#endif

#ifndef __CUDACC_RTC__
#define nvshmemx_barrier_all_on_stream(stream) ((void)gdr_barrier_all_on_stream(stream))
#define nvshmemx_sync_all_on_stream(stream) ((void)gdr_sync_all_on_stream(stream))
#define nvshmemx_barrier_on_stream(team, stream) gdr_barrier_on_stream(team, stream)
#define nvshmemx_team_sync_on_stream(team, stream) gdr_team_sync_on_stream(team, stream)
#define nvshmemx_quiet_on_stream(stream) ((void)gdr_quiet_on_stream(stream))
#define nvshmemx_signal_op_on_stream(sig, value, op, pe, stream)                                   \
	((void)gdr_signal_op_on_stream(sig, value, op, pe, stream))
#define nvshmemx_signal_wait_until_on_stream(sig, cmp, value, stream)                              \
	((void)gdr_signal_wait_until_on_stream(sig, cmp, value, stream))
#endif

#define nvshmemx_barrier_all_warp() ((void)gdrc_said(gdr_barrier_all_warp()))
#define nvshmemx_barrier_all_block() ((void)gdrc_said(gdr_barrier_all_block()))
#define nvshmemx_sync_all_warp() ((void)gdrc_said(gdr_sync_all_warp()))
#define nvshmemx_sync_all_block() ((void)gdrc_said(gdr_sync_all_block()))
#define nvshmemx_barrier_warp(team) gdrc_said(gdr_barrier_warp(team))
#define nvshmemx_barrier_block(team) gdrc_said(gdr_barrier_block(team))
#define nvshmemx_team_sync_warp(team) gdrc_said(gdr_team_sync_warp(team))
#define nvshmemx_team_sync_block(team) gdrc_said(gdr_team_sync_block(team))
#define nvshmemx_signal_op(sig, value, op, pe) ((void)gdrc_said(gdr_signal_op(sig, value, op, pe)))

#endif
