/* SPDX-License-Identifier: BSD-3-Clause */
/* Host-initiated calls where the device is a GPU. */
#ifndef GDRI_HOST_CUDA_H
#define GDRI_HOST_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include <gdr/ctx.h>

/* Is the library up, with a GPU? */
bool gdri_host_cuda(void);

int gdri_cuda_put(void *dst, const void *src, size_t len, int pe);
int gdri_cuda_get(void *dst, const void *src, size_t len, int pe);
int gdri_cuda_quiet(void);
int gdri_cuda_ctx_quiet(gdr_ctx_t ctx);
int gdri_cuda_barrier_all(void);

#endif
