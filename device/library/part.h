/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning of each file of libgdr_device.a that holds functions: the bodies, as other programs have them, with the
 * constants of unit.cu. */
#ifndef GDRI_PART_H
#define GDRI_PART_H

#define GDR_MODULE /* device code alone */
#define GDRI_LIBRARY_PART
#define GDRI_OWN_OUTSIDE /* programs of NVSHMEM link it, too */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gdr/device.h>

#include <gdr/impl/arch/library.h>

#endif
