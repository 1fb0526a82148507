/* SPDX-License-Identifier: BSD-3-Clause */
/* What the public entry points share. */
#ifndef GDRI_HOST_INTERNAL_H
#define GDRI_HOST_INTERNAL_H

#include "runtime/state.h"

/* The library's state, or NULL after logging that `call` came before gdr_init or after
 * gdr_finalize. */
struct gdri_state *gdri_need_state(const char *call);

/* Latches a status for gdr_host_status() unless an earlier one is there. */
void gdri_host_latch(struct gdri_state *st, int status);

#endif
