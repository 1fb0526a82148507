/* SPDX-License-Identifier: BSD-3-Clause */
/* A job whose PEs meet at a hub, however they know where that is: by unique id, by environment. */
#ifndef GDRI_BOOTSTRAP_UID_JOIN_H
#define GDRI_BOOTSTRAP_UID_JOIN_H

#include <time.h>

#include "bootstrap/uniqueid/wire.h"

struct gdri_uid_meeting {
	unsigned char token[GDRI_UID_TOKEN];
	const char *name;     /* of the bootstrap */
	const char *number;   /* what gives a PE its number, with its article; what gives the job its size */
	const char *size;
	const char *hub;      /* whose process the hub is in, for messages */
	const char *stranger; /* what it means that the hub does not know the token */
	bool in_turn;	      /* jobs follow each other at its address: the next waits until the last has ended */
	/* A connection to the hub, or -GDR_E* (logged). `again`: an earlier one was closed before the PE was let in. */
	int (*connect)(struct gdri_uid_meeting *m, bool again, const struct timespec *deadline);
};

/* PE pe of n_pes comes to the hub. m is not kept. */
int gdri_uid_join(struct gdr_bootstrap **out, struct gdri_uid_meeting *m, int pe, int n_pes, int timeout_ms);

/* The hubs of this process: one thread each, from the making of the id until all of the job have left. */

/* A hub at the address of *u, for those that know its token; fills the port where that is 0. 0 or -GDR_E* (logged);
 * 1: the system's *err is why nobody can listen there (not logged). */
int gdri_uid_serve(struct gdri_uid *u, int *err);

/* The hub of this process that knows the token, 0: there is none. */
uint64_t gdri_uid_served_here(const unsigned char token[GDRI_UID_TOKEN]);

/* Waits until that hub's job is over. False: not by the deadline. */
bool gdri_uid_await_end(uint64_t hub, const struct timespec *deadline);

#endif
