/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation of a PE that failed is every PE's business: the one that posted it tells all others
 * (gdri_ctl.fault), whose waits for others end, and whose quiet, barriers and finalize return
 * -GDR_EPEERFAILED and name it. What says that a peer is lost (retries exceeded) is not told: there the
 * chain of waits finds who is to blame. */
#ifndef GDRI_RUNTIME_FAULT_H
#define GDRI_RUNTIME_FAULT_H

#include <stdbool.h>

#include <gdr/host.h>

#include "runtime/core/state.h"

struct gdri_state;

/* Tells the others of this PE's first error, if there is one and they were not told; what another told, on. */
void gdri_fault_tell(struct gdri_state *st);

/* 0, or -GDR_EPEERFAILED, with a record of what another PE told. */
int gdri_fault_heard_of(struct gdri_state *st);

/* Behind a failure, before the others are told of gdr_finalize: because of whom this PE gave up, also where no wait of
 * its own did, so that waits for this PE end with that. What it posted has 50 ms to arrive. */
void gdri_fault_leave(struct gdri_state *st);

/* The first error completion of a queue of this PE: 1 and *e, or 0. */
bool gdri_fault_first(const struct gdri_state *st, struct gdr_error *e);

/* PEs that the launcher reports dead. The memory of one that is mapped stays, and every access to it succeeds: quiet,
 * fence, barrier and wait say that it is lost, gdr_status() does from then on, and transfers of host threads to it. */

/* Any thread. */
void gdri_lost_note(struct gdri_state *st, int pe);

/* -GDR_EPEERLOST once any PE is lost, or 0. */
static inline int gdri_lost_any(const struct gdri_state *st)
{
	/* relaxed: nothing else is read through it */
	return __atomic_load_n(&st->dev->lost, __ATOMIC_RELAXED) ? -GDR_EPEERLOST : 0;
}

/* What a transfer to pe or from there has to say of it: -GDR_EPEERLOST, or 0. */
static inline int gdri_lost_peer(const struct gdri_state *st, int pe)
{
	/* relaxed: nothing else is read through the peer's flag */
	return __atomic_load_n(&st->peers[pe].lost, __ATOMIC_RELAXED) ? -GDR_EPEERLOST : 0;
}

/* One thread per PE that looks after the job while kernels run: it logs error
 * records as they appear and what the launcher reports about peers. */

struct gdri_monitor;

int gdri_up_monitor(struct gdri_state *st);
void gdri_down_monitor(struct gdri_state *st);

/* Logs what has failed and is not logged yet, for a process that ends without gdr_finalize. Waits 1 s at most. */
void gdri_monitor_say(void);

/* By the monitor: tells waits of the PEs that have called gdr_finalize. */
void gdri_absent_look(struct gdri_state *st);

#endif
