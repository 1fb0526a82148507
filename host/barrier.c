// SPDX-License-Identifier: BSD-3-Clause
/* The one barrier for host threads and, on the host device, for kernels. */
#include <gdr/device.h>
#include <gdr/host.h>

#include "host/cuda.h"
#include "host/host.h"

int gdr_barrier_all(void)
{
	if (!gdri_need_state("gdr_barrier_all"))
		return -GDR_ESTATE;
	return gdri_host_cuda() ? gdri_cuda_barrier_all() : gdri_thread_barrier_all();
}
