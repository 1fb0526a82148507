/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of cudaMalloc, mapped by other processes through the driver's older way (cuIpc...), which chooses the address.
 * A handle is of a whole allocation. It cannot be opened in the process that made it, and an allocation must not be
 * freed while another process has it open. Callers see to it that calls do not meet (st->lock). On failure `why` says
 * what the driver did, and what to use. */
#ifndef GDRI_CUDA_IPC_H
#define GDRI_CUDA_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdri_cuda;

struct gdri_cuda_ipc { /* travels between PEs */
	uint8_t handle[64];
	uint64_t offset; /* of the memory in its allocation */
	uint64_t size;	 /* of that; 0: no handle */
};

/* Is it memory of cudaMalloc (cuMemAlloc)? */
bool gdri_cuda_is_plain(struct gdri_cuda *c, const void *addr);
/* From a memory pool (cudaMallocAsync)? */
bool gdri_cuda_is_pooled(struct gdri_cuda *c, const void *addr);

/* -GDR_E*: it is not all of one allocation on this GPU, or the driver gives no handle. */
int gdri_cuda_ipc_export(struct gdri_cuda *c, const void *addr, size_t len, struct gdri_cuda_ipc *out, char *why,
			 size_t room);
/* *base: where the driver mapped the allocation. Opened again, it is the same mapping, until all have closed it. */
int gdri_cuda_ipc_open(struct gdri_cuda *c, const struct gdri_cuda_ipc *of, uint8_t **base, char *why, size_t room);
void gdri_cuda_ipc_close(struct gdri_cuda *c, uint8_t *base);

#endif
