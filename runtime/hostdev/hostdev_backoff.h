/* SPDX-License-Identifier: BSD-3-Clause */
/* How a CPU thread waits when nothing in it can go on: see docs/host-device.md
 * for the measurements behind the figures. */
#ifndef GDRI_HOSTDEV_BACKOFF_H
#define GDRI_HOSTDEV_BACKOFF_H

#include <stdint.h>

/* One step of waiting, after `lookers` fibers (1 outside kernels) have each looked in vain
 * `round` times. */
void gdri_hd_backoff(unsigned round, unsigned lookers);
/* For threads that are the library's own: sleeps end on time from now on. */
void gdri_hd_backoff_own_thread(void);
/* Names the set of cores that this process may use: equal sets, equal names. */
uint64_t gdri_hd_backoff_cores(void);
/* How many PEs of the node share this set, and that a block started (1) or ended (-1): where all
 * that may wait have a core each, waiting spins longer. */
void gdri_hd_backoff_pes(int n);
void gdri_hd_backoff_blocks(int more);

#endif
