/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the CUDA driver API that the library uses, called through a table
 * that is filled when libcuda.so.1 is opened: the library builds and runs where
 * there is no CUDA. Types and values are those of NVIDIA's cuda.h, to which
 * tests/unit/cuda_api.c holds them where that header is installed. */
#ifndef GDRI_CUDA_API_H
#define GDRI_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include <gdr/macros.h>

typedef int gdri_cu_result; /* 0: success */
typedef int gdri_cu_device;
typedef uint64_t gdri_cu_ptr;
typedef uint64_t gdri_cu_mem; /* CUmemGenericAllocationHandle */
typedef struct CUctx_st *gdri_cu_ctx;
typedef struct CUstream_st *gdri_cu_stream;
#define GDRI_CU_STREAM_LEGACY ((gdri_cu_stream)1)
struct CUmod_st;
struct CUfunc_st;

enum {
	GDRI_CU_DEINITIALIZED = 4, /* the process is ending */
	GDRI_CU_NOT_READY = 600,
	GDRI_CU_INVALID = 1,		 /* CUDA_ERROR_INVALID_VALUE */
	GDRI_CU_MEM_PINNED = 1,		 /* CU_MEM_ALLOCATION_TYPE_PINNED */
	GDRI_CU_OPERATING_SYSTEM = 304,	 /* CUDA_ERROR_OPERATING_SYSTEM */
	GDRI_CU_HANDLE_FABRIC = 8,	 /* CU_MEM_HANDLE_TYPE_FABRIC */
	GDRI_CU_ATTR_FABRIC = 128,	 /* ..._HANDLE_TYPE_FABRIC_SUPPORTED */
	GDRI_CU_HANDLE_FD = 1,		 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
	GDRI_CU_LOCATION_DEVICE = 1,	 /* CU_MEM_LOCATION_TYPE_DEVICE */
	GDRI_CU_ACCESS_READWRITE = 3,	 /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
	GDRI_CU_GRANULARITY_BEST = 1,	 /* CU_MEM_ALLOC_GRANULARITY_RECOMMENDED */
	GDRI_CU_HOST_PORTABLE = 1,	 /* CU_MEMHOSTALLOC_PORTABLE */
	GDRI_CU_HOST_MAPPED = 2,	 /* CU_MEMHOSTALLOC_DEVICEMAP */
	GDRI_CU_STREAM_NON_BLOCKING = 1, /* CU_STREAM_NON_BLOCKING */
	GDRI_CU_ATTR_MAJOR = 75,	 /* ..._COMPUTE_CAPABILITY_MAJOR */
	GDRI_CU_LAUNCH_EARLY = 6,	 /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
	GDRI_CU_ATTR_RDMA_VMM = 110,	 /* ..._GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED */
	GDRI_CU_ATTR_VMM = 102,		 /* ..._VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
	GDRI_CU_ATTR_FD = 103,		 /* ..._HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */
	GDRI_CU_HOST_IO = 4,		 /* CU_MEMHOSTREGISTER_IOMEMORY */
	GDRI_CU_RANGE_DMA_BUF = 1,	 /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */
	GDRI_CU_RANGE_PCIE = 1,		 /* CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE */
	GDRI_CU_CAPTURE_RELAXED = 2,	 /* CU_STREAM_CAPTURE_MODE_RELAXED */
	GDRI_CU_CTX_SYNC_MEMOPS = 0x80,	 /* CU_CTX_SYNC_MEMOPS */
	GDRI_CU_POINTER_TYPE = 2,	 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
	GDRI_CU_POINTER_DEVICE = 2,	 /* CU_MEMORYTYPE_DEVICE */
	GDRI_CU_POINTER_ORDINAL = 9,	 /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
	GDRI_CU_POINTER_IPC = 10,	 /* CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE */
	GDRI_CU_POINTER_BEGIN = 11,	 /* CU_POINTER_ATTRIBUTE_RANGE_START_ADDR */
	GDRI_CU_POINTER_SIZE = 12,	 /* CU_POINTER_ATTRIBUTE_RANGE_SIZE */
	GDRI_CU_POINTER_POOL = 17,	 /* CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE */
	GDRI_CU_IPC_LAZY = 1,		 /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
	GDRI_CU_ATTR_RDMA = 116,	 /* ..._GPU_DIRECT_RDMA_SUPPORTED */
	GDRI_CU_ATTR_RDMA_ORDER = 118,	 /* ..._GPU_DIRECT_RDMA_WRITES_ORDERING */
	GDRI_CU_RDMA_ORDER_OWNER = 100,	 /* CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER */
	GDRI_CU_ATTR_HOST_TABLES = 100, /* ..._PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES */
	GDRI_CU_ATTR_WRITE64 = 122,	 /* ..._CAN_USE_64_BIT_STREAM_MEM_OPS */
	GDRI_CU_ATTR_DMA_BUF = 124,	 /* ..._DMA_BUF_SUPPORTED */
};

struct gdri_cu_location {
	int type, id;
};

struct gdri_cu_prop { /* CUmemAllocationProp */
	int type, handles;
	struct gdri_cu_location location;
	void *win32;
	struct {
		unsigned char compression, rdma;
		unsigned short usage;
		unsigned char reserved[4];
	} flags;
};
GDR_STATIC_ASSERT(sizeof(struct gdri_cu_prop) == 32, "CUmemAllocationProp");

struct gdri_cu_fabric { /* CUmemFabricHandle */
	unsigned char data[64];
};

struct gdri_cu_ipc { /* CUipcMemHandle */
	unsigned char data[64];
};

struct gdri_cu_access { /* CUmemAccessDesc */
	struct gdri_cu_location location;
	int flags;
};

struct gdri_cu_launch_attribute { /* CUlaunchAttribute */
	int id, rsvd;
	union {
		int on;
		char all[64];
	} value;
};

struct gdri_cu_launch { /* CUlaunchConfig */
	unsigned int grid[3], block[3], shared;
	gdri_cu_stream stream;
	struct gdri_cu_launch_attribute *attributes;
	unsigned int n_attributes;
};

/* X(name in the table, symbol of libcuda, arguments) */
#define GDRI_CUDA_FUNCTIONS(X)                                                                     \
	X(error_string, "cuGetErrorString", (gdri_cu_result, const char **))                       \
	X(init, "cuInit", (unsigned int))                                                          \
	X(device_count, "cuDeviceGetCount", (int *))                                               \
	X(device_get, "cuDeviceGet", (gdri_cu_device *, int))                                      \
	X(device_name, "cuDeviceGetName", (char *, int, gdri_cu_device))                           \
	X(device_attribute, "cuDeviceGetAttribute", (int *, int, gdri_cu_device))                  \
	X(device_bus_id, "cuDeviceGetPCIBusId", (char *, int, gdri_cu_device))                     \
	X(primary_retain, "cuDevicePrimaryCtxRetain", (gdri_cu_ctx *, gdri_cu_device))             \
	X(primary_release, "cuDevicePrimaryCtxRelease_v2", (gdri_cu_device))                       \
	X(primary_state, "cuDevicePrimaryCtxGetState", (gdri_cu_device, unsigned int *, int *))    \
	X(ctx_get, "cuCtxGetCurrent", (gdri_cu_ctx *))                                             \
	X(ctx_set, "cuCtxSetCurrent", (gdri_cu_ctx))                                               \
	X(ctx_push, "cuCtxPushCurrent_v2", (gdri_cu_ctx))                                          \
	X(ctx_pop, "cuCtxPopCurrent_v2", (gdri_cu_ctx *))                                          \
	X(ctx_device, "cuCtxGetDevice", (gdri_cu_device *))                                        \
	X(ctx_sync, "cuCtxSynchronize", (void))                                                    \
	X(stream_create, "cuStreamCreate", (gdri_cu_stream *, unsigned int))                       \
	X(stream_query, "cuStreamQuery", (gdri_cu_stream))                                         \
	X(stream_capturing, "cuStreamIsCapturing", (gdri_cu_stream, int *))                        \
	X(stream_destroy, "cuStreamDestroy_v2", (gdri_cu_stream))                                  \
	X(copy, "cuMemcpyAsync", (gdri_cu_ptr, gdri_cu_ptr, size_t, gdri_cu_stream))               \
	X(copy_in, "cuMemcpyHtoDAsync_v2", (gdri_cu_ptr, const void *, size_t, gdri_cu_stream))    \
	X(copy_within, "cuMemcpyDtoDAsync_v2", (gdri_cu_ptr, gdri_cu_ptr, size_t, gdri_cu_stream)) \
	X(set, "cuMemsetD8Async", (gdri_cu_ptr, unsigned char, size_t, gdri_cu_stream))            \
	X(write64, "cuStreamWriteValue64_v2",                                                      \
	  (gdri_cu_stream, gdri_cu_ptr, uint64_t, unsigned int))                                   \
	X(alloc, "cuMemAlloc_v2", (gdri_cu_ptr *, size_t))                                         \
	X(free, "cuMemFree_v2", (gdri_cu_ptr))                                                     \
	X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned int))                           \
	X(host_free, "cuMemFreeHost", (void *))                                                    \
	X(host_register, "cuMemHostRegister_v2", (void *, size_t, unsigned int))                   \
	X(host_unregister, "cuMemHostUnregister", (void *))                                        \
	X(host_pointer, "cuMemHostGetDevicePointer_v2", (gdri_cu_ptr *, void *, unsigned int))     \
	X(pointer_attributes, "cuPointerGetAttributes",                                            \
	  (unsigned int, int *, void **, gdri_cu_ptr))                                             \
	X(ipc_get, "cuIpcGetMemHandle", (struct gdri_cu_ipc *, gdri_cu_ptr))                       \
	X(ipc_open, "cuIpcOpenMemHandle_v2", (gdri_cu_ptr *, struct gdri_cu_ipc, unsigned int))    \
	X(ipc_close, "cuIpcCloseMemHandle", (gdri_cu_ptr))                                         \
	X(range_handle, "cuMemGetHandleForAddressRange",                                           \
	  (void *, gdri_cu_ptr, size_t, int, unsigned long long))                                  \
	X(module_global, "cuModuleGetGlobal_v2",                                                    \
	  (gdri_cu_ptr *, size_t *, struct CUmod_st *, const char *))                               \
	X(module_load, "cuModuleLoadData", (struct CUmod_st **, const void *))                     \
	X(module_unload, "cuModuleUnload", (struct CUmod_st *))                                    \
	X(module_function, "cuModuleGetFunction",                                                  \
	  (struct CUfunc_st **, struct CUmod_st *, const char *))                                  \
	X(launch, "cuLaunchKernel",                                                                \
	  (struct CUfunc_st *, unsigned int, unsigned int, unsigned int, unsigned int,             \
	   unsigned int, unsigned int, unsigned int, gdri_cu_stream, void **, void **))            \
	X(launch_ex, "cuLaunchKernelEx",                                                           \
	  (const struct gdri_cu_launch *, struct CUfunc_st *, void **, void **))                   \
	X(granularity, "cuMemGetAllocationGranularity",                                            \
	  (size_t *, const struct gdri_cu_prop *, int))                                            \
	X(mem_create, "cuMemCreate",                                                               \
	  (gdri_cu_mem *, size_t, const struct gdri_cu_prop *, unsigned long long))                \
	X(mem_release, "cuMemRelease", (gdri_cu_mem))                                              \
	X(mem_retain, "cuMemRetainAllocationHandle", (gdri_cu_mem *, void *))                      \
	X(mem_export, "cuMemExportToShareableHandle",                                              \
	  (void *, gdri_cu_mem, int, unsigned long long))                                          \
	X(mem_import, "cuMemImportFromShareableHandle", (gdri_cu_mem *, void *, int))              \
	X(reserve, "cuMemAddressReserve",                                                          \
	  (gdri_cu_ptr *, size_t, size_t, gdri_cu_ptr, unsigned long long))                        \
	X(unreserve, "cuMemAddressFree", (gdri_cu_ptr, size_t))                                    \
	X(map, "cuMemMap", (gdri_cu_ptr, size_t, size_t, gdri_cu_mem, unsigned long long))         \
	X(unmap, "cuMemUnmap", (gdri_cu_ptr, size_t))                                              \
	X(set_access, "cuMemSetAccess",                                                            \
	  (gdri_cu_ptr, size_t, const struct gdri_cu_access *, size_t))

/* NULL in the table where the driver is older. */
#define GDRI_CUDA_FUNCTIONS_OF_LATE(X)                                                             \
	X(ctx_flags, "cuCtxGetFlags", (unsigned int *))                                            \
	X(ctx_set_flags, "cuCtxSetFlags", (unsigned int))                                          \
	X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *))

struct gdri_cuda_api {
#define GDRI_CUDA_MEMBER(name, symbol, args) gdri_cu_result (*name) args;
	GDRI_CUDA_FUNCTIONS(GDRI_CUDA_MEMBER)
	GDRI_CUDA_FUNCTIONS_OF_LATE(GDRI_CUDA_MEMBER)
#undef GDRI_CUDA_MEMBER
};

#endif
