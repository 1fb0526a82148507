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

/* Bootstrap is chosen by the launcher (docs/bootstrap.md), whatever the program asks for. */
enum {
	NVSHMEMX_INIT_THREAD_PES = 1,
	NVSHMEMX_INIT_WITH_MPI_COMM = 2,
	NVSHMEMX_INIT_WITH_SHMEM = 4,
};
typedef struct {
	void *mpi_comm; /* the ranks of the job are its PEs, in the launcher's order */
} nvshmemx_init_attr_t;

static inline int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t *attr)
{
	(void)flags;
	(void)attr;
	return gdr_init();
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
