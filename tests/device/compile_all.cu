/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled only, for each GPU generation, warnings as errors: also that no kernel's stack is unbounded. */
#include "tests/device/every_function.h"
