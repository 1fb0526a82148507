/* SPDX-License-Identifier: BSD-3-Clause */
/* PEs that the launcher reports dead. The memory of one that is mapped stays, and every access to it succeeds: quiet,
 * fence, barrier and wait say that it is lost, gdr_status() does from then on, and transfers of host threads to it. */
#ifndef GDRI_LOST_H
#define GDRI_LOST_H

#include "runtime/core/state.h"

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

#endif
