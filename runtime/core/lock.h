/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks whose holder may wait for another PE, as those of the calls that all PEs make. In a kernel of the host device
 * the holder may be another thread of the caller's block: both share a CPU thread, so the caller has to let the holder
 * run. Who waits here waits as long as holders do, and GDR_TIMEOUT bounds each of their waits. */
#ifndef GDRI_HOST_LOCK_H
#define GDRI_HOST_LOCK_H

#include <pthread.h>

#include <gdr/simt.h>

static inline void gdri_lock(pthread_mutex_t *lock)
{
	unsigned round = 0;

	if (!gdri_hd_self->in_kernel) {
		pthread_mutex_lock(lock);
		return;
	}
	while (pthread_mutex_trylock(lock)) /* pairs with the unlock of who had it */
		gdr_pause(round++);
}

#endif
