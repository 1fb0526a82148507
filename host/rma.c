// SPDX-License-Identifier: BSD-3-Clause
/* Host-initiated transfers: the device functions, called from a host thread. */
#include <gdr/device.h>
#include <gdr/host.h>

int gdr_host_put(void *dst, const void *src, size_t len, int pe)
{
	return gdr_put(dst, src, len, pe);
}

int gdr_host_get(void *dst, const void *src, size_t len, int pe)
{
	return gdr_get(dst, src, len, pe);
}

int gdr_host_put_nbi(void *dst, const void *src, size_t len, int pe)
{
	return gdr_put_nbi(dst, src, len, pe);
}

int gdr_host_get_nbi(void *dst, const void *src, size_t len, int pe)
{
	return gdr_get_nbi(dst, src, len, pe);
}

int gdr_host_fence(void)
{
	return gdr_fence();
}

int gdr_host_quiet(void)
{
	return gdr_quiet();
}
