/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a GPU and something else share: host memory and doorbell pages that
 * kernels reach, memory of the GPU that a NIC reaches. */
#ifndef GDRI_CUDA_MAP_H
#define GDRI_CUDA_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdri_cuda;

enum gdri_cuda_map {
	GDRI_CUDA_MAP_MEMORY, /* of the host */
	GDRI_CUDA_MAP_IO,     /* of a device: a doorbell page, which an emulation may have in host memory */
};

/* Whole pages from p on; *at is where kernels find them. On failure `why` says what the driver did, and
 * what to do about it. Undone by gdri_cuda_unmap(p). */
int gdri_cuda_map(struct gdri_cuda *c, void *p, size_t len, enum gdri_cuda_map kind, void **at, char *why,
		  size_t room);
void gdri_cuda_unmap(struct gdri_cuda *c, void *p);

/* A descriptor for whole pages of the GPU's memory, which a NIC registers; the caller closes it. -1: `why`. It holds
 * one way to the memory: pcie is the one for a NIC that reaches the GPU by PCIe alone, where the GPU has two
 * (NVLink-C2C to the CPU, too), and any other NIC wants the other. The wrong one can be registered, and fails when it
 * is used. */
int gdri_cuda_dma_buf(struct gdri_cuda *c, void *p, size_t len, bool pcie, char *why, size_t room);

/* Has a blocking copy of the program's return when its data is there, also beside what a NIC writes (the context's flag
 * SYNC_MEMOPS). At init: later it could wait for a kernel. */
void gdri_cuda_sync_copies(struct gdri_cuda *c);

/* Is it memory of a GPU? */
bool gdri_cuda_is_device(struct gdri_cuda *c, const void *p);
/* Of which one, as the driver numbers them. */
int gdri_cuda_ordinal(struct gdri_cuda *c, const void *p);

/* gdri_cuda_copy where one end is any memory of the program's: _in from memory of the GPU, _out to it. A copy that is
 * overdue may yet land in memory that the driver knows, of a GPU or pinned, which waits for it when it is freed; other
 * memory is touched no more. */
int gdri_cuda_copy_in(struct gdri_cuda *c, void *to, const void *gpu, size_t len, int timeout_ms);
int gdri_cuda_copy_out(struct gdri_cuda *c, void *gpu, const void *from, size_t len, int timeout_ms);

/* Whether what a NIC wrote to the GPU's memory may be seen later than what it wrote behind that. */
bool gdri_cuda_late_writes(const struct gdri_cuda *c);
/* Whether the CPU has a way to the GPU's memory beside PCIe (NVLink-C2C). */
bool gdri_cuda_has_bridge(const struct gdri_cuda *c);

/* Where the GPU is in sysfs, for struct gdri_net_how. */
const char *gdri_cuda_sysfs(const struct gdri_cuda *c, char *buf, size_t room);

/* ---- cuda_view.c ---- */

/* Memory of the GPU that the program made (cuMemCreate), seen at further addresses: this PE's, and those of the PEs
 * of its node. On failure `why` says what the driver did. */

/* Views begin and end at multiples of it; 0: the driver does not say. */
uint64_t gdri_cuda_grain(struct gdri_cuda *c);

/* *fd, which is the caller's then: the whole of the memory that is mapped at addr. */
int gdri_cuda_view_export(struct gdri_cuda *c, void *addr, int *fd, char *why, size_t room);
/* The first len bytes of it at `at`, which is reserved behind a heap. fd stays the caller's. */
int gdri_cuda_view_map(struct gdri_cuda *c, uint8_t *at, uint64_t len, int fd, char *why, size_t room);
void gdri_cuda_view_unmap(struct gdri_cuda *c, uint8_t *at, uint64_t len);

/* Bytes of addresses that are reserved behind each heap. */
uint64_t gdri_cuda_room(const struct gdri_cuda *c);

#endif
