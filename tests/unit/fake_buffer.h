/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a program makes with cuMemCreate, of the fake driver. */
#ifndef TESTS_FAKE_BUFFER_H
#define TESTS_FAKE_BUFFER_H

#include <stdint.h>

#include "runtime/cuda/cuda_api.h"

gdri_cu_result cuMemCreate(gdri_cu_mem *mem, size_t size, const struct gdri_cu_prop *prop, unsigned long long flags);
gdri_cu_result cuMemAddressReserve(gdri_cu_ptr *at, size_t size, size_t align, gdri_cu_ptr hint,
				   unsigned long long flags);
gdri_cu_result cuMemAddressFree(gdri_cu_ptr at, size_t size);
gdri_cu_result cuMemMap(gdri_cu_ptr at, size_t size, size_t offset, gdri_cu_mem mem, unsigned long long flags);
gdri_cu_result cuMemUnmap(gdri_cu_ptr at, size_t size);
gdri_cu_result cuMemSetAccess(gdri_cu_ptr at, size_t size, const struct gdri_cu_access *access, size_t n);
gdri_cu_result cuMemRelease(gdri_cu_mem mem);

#define FAKE_BUFFER ((size_t)4 << 20)

/* handles: GDRI_CU_HANDLE_.., what it can be shared by. NULL: the driver refused. */
static inline uint8_t *fake_buffer_by(int handles)
{
	struct gdri_cu_prop prop = {.handles = handles};
	struct gdri_cu_access access = {.flags = GDRI_CU_ACCESS_READWRITE};
	gdri_cu_ptr at;
	gdri_cu_mem mem;

	if (cuMemCreate(&mem, FAKE_BUFFER, &prop, 0) || cuMemAddressReserve(&at, FAKE_BUFFER, 0, 0, 0) ||
	    cuMemMap(at, FAKE_BUFFER, 0, mem, 0) || cuMemSetAccess(at, FAKE_BUFFER, &access, 1) || cuMemRelease(mem))
		return NULL;
	return (uint8_t *)(uintptr_t)at;
}

static inline uint8_t *fake_buffer(void)
{
	return fake_buffer_by(GDRI_CU_HANDLE_FD);
}

static inline int fake_buffer_end(uint8_t *at)
{
	return cuMemUnmap((uintptr_t)at, FAKE_BUFFER) || cuMemAddressFree((uintptr_t)at, FAKE_BUFFER);
}

#endif
