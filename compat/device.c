// SPDX-License-Identifier: BSD-3-Clause
/* libnvshmem_device.a, which holds no device code: that is in the headers. */
#include <gdr/macros.h>

GDR_API extern const char gdri_nvshmem_device[];
const char gdri_nvshmem_device[] = "gdr";
