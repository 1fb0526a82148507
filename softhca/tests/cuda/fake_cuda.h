/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test may ask of the driver in fake_cuda.c beyond the real one's functions. */
#ifndef TEST_FAKE_CUDA_H
#define TEST_FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

/* Where a kernel would find memory of the GPU; NULL: it is none. */
void *fake_cuda_view(uint64_t device_address);

/* Copies that the driver was asked for, each of a batch. */
unsigned fake_cuda_copies(void);
/* Items that softhca's kernel has carried out (fake_cuda_kernel.c). */
unsigned fake_cuda_kernel_items(void);
/* A kernel in the default stream runs from now on, or has ended. */
void fake_cuda_kernel(bool runs);
/* Calls of a function that waits for the device which are doing so now. */
unsigned fake_cuda_waiting(void);
/* Calls of cuCtxSynchronize. */
unsigned fake_cuda_ctx_waits(void);
/* The driver's lock, as if another thread were in a long call. */
void fake_cuda_hold(bool held);

/* ---- between the files of the driver ---- */

void fake_driver_enter(void);
void fake_driver_leave(void);
void fake_driver_wait(void); /* for the kernel, with the lock held */

#endif
