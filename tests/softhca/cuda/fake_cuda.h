/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test may ask of the driver in fake_cuda.c beyond the real one's functions. */
#ifndef TEST_FAKE_CUDA_H
#define TEST_FAKE_CUDA_H

#include <stdint.h>

/* Where a kernel would find memory of the GPU; NULL: it is none. */
void *fake_cuda_view(uint64_t device_address);

#endif
