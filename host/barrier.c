// SPDX-License-Identifier: BSD-3-Clause
/* The one barrier for host threads and, on the host device, for kernels. */
#include <gdr/device.h>
#include <gdr/host.h>

int gdr_barrier_all(void)
{
	return gdri_thread_barrier_all();
}
