// SPDX-License-Identifier: BSD-3-Clause
#define GDR_ANY_ADDRESS
#define fake_kernel fake_kernel_any
#include "tests/unit/fake_kernel.c"
