/* SPDX-License-Identifier: BSD-3-Clause */
/* Translation units with CUDA kernels. Each has constants of its own, by which its
 * device code finds the library (gdr/impl/arch/dev.h), and announces itself before main. */
#ifndef GDRI_UNITS_H
#define GDRI_UNITS_H

#include <stdbool.h>

#include <gdr/impl/arch/unit.h>

/* Does the program have CUDA kernels? */
bool gdri_units_exist(void);
/* Can the kernels of all of them post to queues (no GDR_NO_QUEUES)? */
bool gdri_units_have_queues(void);
/* Do those of all find symmetric memory outside the heap (GDR_ANY_ADDRESS)? */
bool gdri_units_have_any_address(void);
/* Writes c into the constant memory of all units, on the current context's GPU (NULL: hides the
 * library from them). */
int gdri_units_set(const struct gdri_constants *c);
/* gdri_units_set for the units that were added since. */
int gdri_units_set_late(const struct gdri_constants *c);

#endif
