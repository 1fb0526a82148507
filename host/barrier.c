// SPDX-License-Identifier: BSD-3-Clause
/* The exported barrier. Device code has an inline function of the same name, so
 * this file does not include gdr/device.h. */
#include "host/host.h"

int gdr_barrier_all(void)
{
	return gdri_host_barrier();
}
