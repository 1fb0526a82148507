/* SPDX-License-Identifier: BSD-3-Clause */
/* Translation units with CUDA kernels. Each has a copy of the pointer by which its
 * device code finds the library (gdr/impl/dev.h), and announces itself before main. */
#ifndef GDRI_UNITS_H
#define GDRI_UNITS_H

#include <stdbool.h>

#include <gdr/impl/unit.h>

/* Does the program have CUDA kernels? */
bool gdri_units_exist(void);
/* Lets the device code of all units find dev, memory of the current context's GPU (NULL: hides the
 * library). */
int gdri_units_set(struct gdri_dev *dev);

#endif
