// SPDX-License-Identifier: BSD-3-Clause
/* What libnvshmem_device.a holds beside the device library, and without nvcc alone. */
#include <gdr/macros.h>

GDR_API extern const char gdri_nvshmem_device[];
const char gdri_nvshmem_device[] = "gdr";
