/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled only, for each GPU generation, warnings as errors. */
#define GDRI_CUDA_QUEUES 1
#include "tests/device/every_function.h"
