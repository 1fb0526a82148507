/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's kernels in the thread of the host that launches them, as compiled without and with GDR_ANY_ADDRESS. */
#ifndef TESTS_FAKE_KERNEL_H
#define TESTS_FAKE_KERNEL_H

/* arg: what the kernel of that name is passed. The state of the device is there (gdri_dev_state). */
void fake_kernel(const char *name, unsigned int blocks, const void *arg);
void fake_kernel_any(const char *name, unsigned int blocks, const void *arg);

#endif
