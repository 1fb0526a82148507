/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the CUDA driver API that softhca calls or stands in front of. Types and values are
 * those of NVIDIA's cuda.h. Nothing here loads the driver: cuda_driver() finds it where the
 * program has loaded it. */
#ifndef SOFTHCA_CUDA_API_H
#define SOFTHCA_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int cu_result; /* 0: success */
typedef uint64_t cu_ptr;
typedef void *cu_ctx;
typedef void *cu_stream;
typedef void *cu_function;
typedef void *cu_module;
typedef uint64_t cu_mem; /* CUmemGenericAllocationHandle */

enum {
	CU_INVALID = 1,
	CU_DEINITIALIZED = 4, /* the process ends */
	CU_INVALID_HANDLE = 400,
	CU_ILLEGAL_STATE = 401,
	CU_NOT_SUPPORTED = 801,
	CU_CAPTURE_WRONG_THREAD = 908,
	CU_NOT_READY = 600,
	CU_CAPTURE_UNSUPPORTED = 900, /* while a stream of the program is being captured */
	CU_CAPTURE_IMPLICIT = 906,
	CU_CAPTURE_RELAXED = 2,
	CU_ATTR_CONTEXT = 1, /* of a pointer */
	CU_ATTR_MEMORY_TYPE = 2,
	CU_ATTR_SYNC_MEMOPS = 6,
	CU_ATTR_IS_MANAGED = 8,
	CU_ATTR_DEVICE = 9,
	CU_MEMORY_DEVICE = 2,
	CU_STREAM_IS_NON_BLOCKING = 1,
	CU_HOST_PORTABLE = 1,
	CU_REGISTER_IOMEMORY = 4,
	CU_RANGE_DMABUF_FD = 1,
	CU_RANGE_PCIE = 1, /* CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE */
	CU_HANDLE_FD = 1,	/* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
	CU_LOCATION_DEVICE = 1,
	CU_ACCESS_READWRITE = 3,
	CU_SRC_ORDER_STREAM = 1,
	CU_IPC_LAZY_PEER = 1,
	CU_WRITE_VALUE_32 = 2, /* CU_STREAM_MEM_OP_WRITE_VALUE_32 */
	CU_WRITE_VALUE_64 = 5,
	CU_PROC_PER_THREAD = 2, /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
};

#define CU_STREAM_LEGACY ((cu_stream)1)

struct cu_location {
	int type, id;
};

struct cu_access { /* CUmemAccessDesc */
	struct cu_location location;
	int flags;
};

struct cu_copy_attr { /* CUmemcpyAttributes */
	int src_order;
	struct cu_location src, dst;
	unsigned flags;
};

struct cu_mem_op { /* CUstreamBatchMemOpParams, of those that write */
	int operation;
	uint32_t pad;
	cu_ptr address;
	uint64_t value; /* of 32 bits: the lower ones */
	unsigned flags;
	uint32_t pad2;
	cu_ptr alias;
	uint64_t room;
};

struct cu_ipc { /* CUipcMemHandle */
	char bytes[64];
};

_Static_assert(sizeof(struct cu_access) == 12, "CUmemAccessDesc");
_Static_assert(sizeof(struct cu_mem_op) == 48, "CUstreamBatchMemOpParams");
_Static_assert(sizeof(struct cu_copy_attr) == 24, "CUmemcpyAttributes");

/* X(name in the table, symbol of libcuda, arguments) */
#define HCA_CUDA_FUNCTIONS(X)                                                                      \
	X(pointer, "cuPointerGetAttribute", (void *, int, cu_ptr))                                 \
	X(ctx_get, "cuCtxGetCurrent", (cu_ctx *))                                                  \
	X(ctx_set, "cuCtxSetCurrent", (cu_ctx))                                                    \
	X(ctx_device, "cuCtxGetDevice", (int *))                                                   \
	X(priorities, "cuCtxGetStreamPriorityRange", (int *, int *))                               \
	X(stream_create, "cuStreamCreateWithPriority", (cu_stream *, unsigned, int))               \
	X(ctx_wait, "cuCtxSynchronize", (void))                                                    \
	X(stream_wait, "cuStreamSynchronize", (cu_stream))                                         \
	X(capturing, "cuStreamIsCapturing", (cu_stream, int *))                                    \
	X(stream_query, "cuStreamQuery", (cu_stream))                                              \
	X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                               \
	X(to_device, "cuMemcpyHtoDAsync_v2", (cu_ptr, const void *, size_t, cu_stream))            \
	X(to_host, "cuMemcpyDtoHAsync_v2", (void *, cu_ptr, size_t, cu_stream))                    \
	X(between, "cuMemcpyDtoDAsync_v2", (cu_ptr, cu_ptr, size_t, cu_stream))                    \
	X(write32, "cuStreamWriteValue32_v2", (cu_stream, cu_ptr, uint32_t, unsigned))             \
	X(address_range, "cuMemGetAddressRange_v2", (cu_ptr *, size_t *, cu_ptr))                  \
	X(mem_retain, "cuMemRetainAllocationHandle", (cu_mem *, void *))                           \
	X(mem_release, "cuMemRelease", (cu_mem))                                                   \
	X(mem_export, "cuMemExportToShareableHandle", (void *, cu_mem, int, unsigned long long))   \
	X(mem_import, "cuMemImportFromShareableHandle", (cu_mem *, void *, int))                   \
	X(reserve, "cuMemAddressReserve", (cu_ptr *, size_t, size_t, cu_ptr, unsigned long long))  \
	X(unreserve, "cuMemAddressFree", (cu_ptr, size_t))                                         \
	X(map, "cuMemMap", (cu_ptr, size_t, size_t, cu_mem, unsigned long long))                   \
	X(unmap, "cuMemUnmap", (cu_ptr, size_t))                                                   \
	X(set_access, "cuMemSetAccess", (cu_ptr, size_t, const struct cu_access *, size_t))        \
	X(ipc_get, "cuIpcGetMemHandle", (struct cu_ipc *, cu_ptr))                                 \
	X(ipc_open, "cuIpcOpenMemHandle_v2", (cu_ptr *, struct cu_ipc, unsigned))                  \
	X(ipc_close, "cuIpcCloseMemHandle", (cu_ptr))

struct cuda_api {
#define CUDA_MEMBER(name, symbol, args) cu_result (*name) args;
	HCA_CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
	/* One of the two, or neither (before CUDA 12.8). */
	cu_result (*batch)(cu_ptr *dst, cu_ptr *src, size_t *len, size_t n,
			   struct cu_copy_attr *attr, size_t *attr_index, size_t n_attr,
			   cu_stream stream);
	cu_result (*batch_1)(cu_ptr *dst, cu_ptr *src, size_t *len, size_t n,
			     struct cu_copy_attr *attr, size_t *attr_index, size_t n_attr,
			     size_t *fail, cu_stream stream);
	/* Or none (before CUDA 12). */
	cu_result (*mem_ops)(cu_stream stream, unsigned n, struct cu_mem_op *op, unsigned flags);
	cu_result (*module_load)(cu_module *module, const void *image);
	cu_result (*module_function)(cu_function *f, cu_module module, const char *name);
	cu_result (*launch)(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			    unsigned bz, unsigned shared, cu_stream stream, void **args, void **extra);
	/* Or none (before CUDA 10.1). */
	cu_result (*capture_mode)(int *mode);
};

/* The driver that the program has loaded; NULL: none, or one too old. */
const struct cuda_api *cuda_driver(void);
/* cuda_driver() once it has been found; without a lock. */
const struct cuda_api *cuda_started(void);
/* Is there one? */
bool cuda_loaded(void);

/* Functions of the CUDA driver that softhca stands in front of. */

struct cuda_stand_in {
	const char *name;
	void *ours;
	void *behind; /* relaxed: whatever thread stores it, it is the driver's function */
};

/* Those that wait for the device with the driver's lock held, and captures (cuda_wait.c). */
extern struct cuda_stand_in cuda_waiting[];
extern const size_t n_cuda_waiting;

/* What stands behind it; NULL: there is no driver. */
void *cuda_behind(struct cuda_stand_in *s);
/* The driver's own function, not one of ours. */
void *cuda_real_symbol(void *lib, const char *name);

#endif
