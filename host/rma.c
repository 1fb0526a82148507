// SPDX-License-Identifier: BSD-3-Clause
/* Host-initiated transfers: the device functions, called from a host thread;
 * where the device is a GPU, copies of its driver. */
#include <gdr/device.h>
#include <gdr/host.h>

#include "host/cuda.h"

int gdr_host_put(void *dst, const void *src, size_t len, int pe)
{
	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, pe) : gdr_put(dst, src, len, pe);
}

int gdr_host_get(void *dst, const void *src, size_t len, int pe)
{
	return gdri_host_cuda() ? gdri_cuda_get(dst, src, len, pe) : gdr_get(dst, src, len, pe);
}

int gdr_host_put_nbi(void *dst, const void *src, size_t len, int pe)
{
	return gdri_host_cuda() ? gdri_cuda_put(dst, src, len, pe) : gdr_put_nbi(dst, src, len, pe);
}

int gdr_host_get_nbi(void *dst, const void *src, size_t len, int pe)
{
	return gdri_host_cuda() ? gdri_cuda_get(dst, src, len, pe) : gdr_get_nbi(dst, src, len, pe);
}

int gdr_host_fence(void)
{
	return gdri_host_cuda() ? 0 : gdr_fence(); /* copies complete before they return */
}

int gdr_host_quiet(void)
{
	return gdri_host_cuda() ? gdri_cuda_quiet() : gdr_quiet();
}
