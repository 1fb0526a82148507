/* SPDX-License-Identifier: BSD-3-Clause */
/* What PEs tell each other before they open a transport: what each has and lacks, and where it can be reached. */
#ifndef GDRI_REACH_H
#define GDRI_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/core/inet.h"

struct gdr_bootstrap;

#define GDRI_REACH_AT 8

struct gdri_reach {
	uint32_t unmapped; /* peers */
	uint32_t present;  /* transports that this PE could open, where it needs one */
	/* The machine's, of the highest rank: PEs of a machine have the same. Behind the last one family is 0. */
	struct gdri_inet at[GDRI_REACH_AT];
	uint64_t pids;	      /* number of the PID namespace; 0: it cannot be seen */
	struct gdri_inet hub; /* on another machine, to which this PE has a connection; family 0: it has none */
};

/* Fills at, pids and hub. */
void gdri_reach_look(struct gdri_reach *r, const struct gdr_bootstrap *boot);

typedef bool gdri_reach_route(const struct gdri_inet *to, struct gdri_inet *from); /* gdri_inet_route */
/* By which of its addresses PE pe meets the others. All PEs have the same records, and so choose one network, if there
 * is one: that by which the others came to the hub, or where each machine has an address of its own; of several the one
 * of the highest rank, then the fastest. A faster one than the hub's counts where both say how fast they are. Without
 * any it is where the kernel sends what goes to the others. Family 0: nothing is known. */
struct gdri_inet gdri_reach_from(const struct gdri_reach *all, int n_pes, int pe, gdri_reach_route *route);

#endif
