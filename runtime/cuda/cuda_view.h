/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the GPU that the program made (cuMemCreate), seen at further addresses: this PE's, and those of the PEs
 * of its node. On failure `why` says what the driver did. */
#ifndef GDRI_CUDA_VIEW_H
#define GDRI_CUDA_VIEW_H

#include <stddef.h>
#include <stdint.h>

struct gdri_cuda;

/* Views begin and end at multiples of it; 0: the driver does not say. */
uint64_t gdri_cuda_grain(struct gdri_cuda *c);

/* *fd, which is the caller's then: the whole of the memory that is mapped at addr. */
int gdri_cuda_view_export(struct gdri_cuda *c, void *addr, int *fd, char *why, size_t room);
/* The first len bytes of it at `at`, which is reserved behind a heap. fd stays the caller's. */
int gdri_cuda_view_map(struct gdri_cuda *c, uint8_t *at, uint64_t len, int fd, char *why, size_t room);
void gdri_cuda_view_unmap(struct gdri_cuda *c, uint8_t *at, uint64_t len);

/* Bytes of addresses that are reserved behind each heap. */
uint64_t gdri_cuda_room(const struct gdri_cuda *c);

#endif
