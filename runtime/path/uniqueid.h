/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GDRI_UNIQUEID_H
#define GDRI_UNIQUEID_H

#include <gdr/host.h>

/* Before init: reads the options that it needs. */
int gdri_uniqueid_create(gdr_uniqueid_t *id);

#endif
