/* SPDX-License-Identifier: BSD-3-Clause */
/* How a CPU thread waits when nothing in it can go on: see docs/host-device.md
 * for the measurements behind the figures. */
#ifndef GDRI_HOSTDEV_BACKOFF_H
#define GDRI_HOSTDEV_BACKOFF_H

/* One step of waiting, after `lookers` fibers (1 outside kernels) have each looked in vain
 * `round` times. */
void gdri_hd_backoff(unsigned round, unsigned lookers);
/* For threads that are the library's own: sleeps end on time from now on. */
void gdri_hd_backoff_own_thread(void);

#endif
