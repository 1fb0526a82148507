/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread per PE that looks after the job while kernels run: it logs error
 * records as they appear and what the launcher reports about peers. */
#ifndef GDRI_MONITOR_H
#define GDRI_MONITOR_H

struct gdri_monitor;
struct gdri_state;

int gdri_up_monitor(struct gdri_state *st);
void gdri_down_monitor(struct gdri_state *st);

/* Logs what has failed and is not logged yet, for a process that ends without gdr_finalize. Waits 1 s at most. */
void gdri_monitor_say(void);

#endif
