/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the host device. A record is a place in a stream; an event names its last one. All with the lock of
 * hostdev_launch.h held. */
#ifndef GDRI_HOSTDEV_EVENT_H
#define GDRI_HOSTDEV_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct gdri_hd_record {
	unsigned refs; /* the event, and what stands in streams */
	bool done;
	uint64_t ns; /* of CLOCK_MONOTONIC, when done */
};

void gdri_hd_record_done(struct gdri_hd_record *r);
void gdri_hd_record_drop(struct gdri_hd_record *r); /* one reference; NULL is none */

#endif
