/* SPDX-License-Identifier: BSD-3-Clause */
/* The hubs of this process: one thread each, from the making of the id until all of the job have left. */
#ifndef GDRI_BOOTSTRAP_UID_SERVE_H
#define GDRI_BOOTSTRAP_UID_SERVE_H

#include <time.h>

#include "bootstrap/uniqueid/wire.h"

/* A hub at the address of *u, for those that know its token; fills the port where that is 0. 0 or -GDR_E* (logged);
 * 1: the system's *err is why nobody can listen there (not logged). */
int gdri_uid_serve(struct gdri_uid *u, int *err);

/* The hub of this process that knows the token, 0: there is none. */
uint64_t gdri_uid_served_here(const unsigned char token[GDRI_UID_TOKEN]);

/* Waits until that hub's job is over. False: not by the deadline. */
bool gdri_uid_await_end(uint64_t hub, const struct timespec *deadline);

#endif
