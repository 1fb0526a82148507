/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled only, for each GPU generation, warnings as errors. */
#include "tests/device/every_function.h"
