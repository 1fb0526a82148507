/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GDRI_LINK_CHECK_H
#define GDRI_LINK_CHECK_H

#include <gdr/impl/arch/abi.h>

/* Fills the area that peers will read; before any of them is connected. */
void gdri_link_prepare(struct gdri_ctl *ctl, int pe);

#endif
