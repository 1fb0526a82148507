/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs include it by this name: all of it is in nvshmem.h. */
#include "../nvshmem.h"
