// SPDX-License-Identifier: BSD-3-Clause
/* The constants of a linked image, and the entry by which gdr_init sets them. */
#define GDRI_LIBRARY_UNIT
#include <gdr/impl/arch/unit.h>
