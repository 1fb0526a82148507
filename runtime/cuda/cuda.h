/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPU of this PE, through the driver API: context, memory that peers of the
 * node can map, copies. Copies go over a stream of the library's own, so that they
 * finish while kernels of the program spin. Functions may be called from any
 * thread; each makes the PE's context current and puts back what was. */
#ifndef GDRI_CUDA_H
#define GDRI_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdri_cuda;
struct CUmod_st; /* CUmodule */

/* The context that is current in the calling thread or, when there is none, the primary
 * context of device local_rank modulo their number, which then becomes current. -GDR_ENOTSUP
 * where there is no driver or device, or one that cannot share memory. GDRI_CUDA_CURRENT: -GDR_ESTATE, not logged,
 * where no context is current. handles: GDRI_HANDLE_.., what peers are to map memory by. */
#define GDRI_CUDA_CURRENT (~0u)
int gdri_cuda_open(struct gdri_cuda **out, unsigned local_rank, int handles);
/* NULL is a no-op. The context is given back when no thread is in the driver's wait any more. */
void gdri_cuda_close(struct gdri_cuda *c);
/* "NVIDIA H200 0000:1b:00.0", valid until close. */
const char *gdri_cuda_text(const struct gdri_cuda *c);

/* A range of addresses for memory of the GPU, of max bytes, and room behind it (cuda_map.h), unless there is none
 * for the own heap, which is the first one. size, of what goes there, and max are rounded up to what can be shared. */
int gdri_cuda_heap_reserve(struct gdri_cuda *c, bool own, uint64_t *size, uint64_t *max, uint8_t **base);
void gdri_cuda_heap_release(struct gdri_cuda *c, uint8_t *base, uint64_t max);
/* Memory of the GPU, at addresses of such a range; *fd is what peers map. */
int gdri_cuda_heap_create(struct gdri_cuda *c, uint8_t *at, uint64_t size, int *fd);
/* Maps memory of a peer, whose descriptor stays the caller's. */
int gdri_cuda_heap_import(struct gdri_cuda *c, int fd, uint8_t *at, uint64_t size, char *why, size_t room);
void gdri_cuda_heap_unmap(struct gdri_cuda *c, uint8_t *at, uint64_t size);

/* Zeroed memory of the GPU that a NIC may reach on every machine (gpuDirectRDMACapable, which cuMemAlloc's is not on
 * all); *size is rounded up. NULL, not logged: the driver has none. */
void *gdri_cuda_alloc_rdma(struct gdri_cuda *c, size_t *size);
void gdri_cuda_free_rdma(struct gdri_cuda *c, void *p, size_t size);

/* Zeroed memory of the GPU, and of the host at an address that is valid on both. _bare: not zeroed. */
void *gdri_cuda_alloc(struct gdri_cuda *c, size_t size);
void *gdri_cuda_alloc_bare(struct gdri_cuda *c, size_t size);
void gdri_cuda_free(struct gdri_cuda *c, void *p);
void *gdri_cuda_alloc_host(struct gdri_cuda *c, size_t size);
void gdri_cuda_free_host(struct gdri_cuda *c, void *p);

/* For copies of the library's own, and zeroing: far more than either takes of the whole memory of a GPU. */
#define GDRI_COPY_MS 10000

/* Complete when they return; between any two of GPU, peer and host memory. -GDR_ETIMEOUT after
 * timeout_ms: the copy is still on its way and may yet land; until it has, all others fail so at
 * once. */
int gdri_cuda_copy(struct gdri_cuda *c, void *dst, const void *src, size_t len, int timeout_ms);
/* Copies from memory of the GPU and to it, where the other end is the host's: by memory of the library's own, in
 * parts, each of which may take timeout_ms. One that is overdue neither writes to the caller's memory nor reads it. */
int gdri_cuda_peek(struct gdri_cuda *c, void *to, const void *gpu, size_t len, int timeout_ms);
int gdri_cuda_poke(struct gdri_cuda *c, void *gpu, const void *from, size_t len, int timeout_ms);
int gdri_cuda_zero(struct gdri_cuda *c, void *dst, size_t len, int timeout_ms);
/* Waits until the default stream is idle, at most limit_us. */
void gdri_cuda_default_stream(struct gdri_cuda *c, int limit_us);
/* Waits for one that may yet land; -GDR_ETIMEOUT: it may still. */
int gdri_cuda_settle(struct gdri_cuda *c, int timeout_ms);

/* Memory of a variable of a module; NULL when it has none of that name and size. */
void *gdri_cuda_variable(struct gdri_cuda *c, struct CUmod_st *module, const char *name, size_t size);

/* Waits for all kernels of the context. -GDR_ETIMEOUT: some still run. Other errors: none does, but
 * one ended with an error. */
int gdri_cuda_wait_kernels(struct gdri_cuda *c, int timeout_ms);

#endif
