/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds runtime/cuda_api.h to NVIDIA's header: compiled only, where that is installed. */
#include <cuda.h>

#include "runtime/cuda_api.h"

#define SAME(ours, theirs) GDR_STATIC_ASSERT((int)(ours) == (int)(theirs), #theirs)
#define SAME_FIELD(ours, field, theirs, their_field)                                               \
	GDR_STATIC_ASSERT(offsetof(struct ours, field) == offsetof(theirs, their_field), #their_field)

SAME(GDRI_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(GDRI_CU_MEM_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(GDRI_CU_HANDLE_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(GDRI_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(GDRI_CU_ACCESS_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(GDRI_CU_GRANULARITY_BEST, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(GDRI_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(GDRI_CU_HOST_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(GDRI_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(GDRI_CU_ATTR_RDMA_VMM, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME(GDRI_CU_ATTR_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(GDRI_CU_ATTR_FD, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
GDR_STATIC_ASSERT(sizeof(struct gdri_cu_prop) == sizeof(CUmemAllocationProp), "size");
SAME_FIELD(gdri_cu_prop, handles, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(gdri_cu_prop, location, CUmemAllocationProp, location);
SAME_FIELD(gdri_cu_prop, win32, CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(gdri_cu_prop, flags.rdma, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
GDR_STATIC_ASSERT(sizeof(struct gdri_cu_access) == sizeof(CUmemAccessDesc), "size");
SAME_FIELD(gdri_cu_access, flags, CUmemAccessDesc, flags);
