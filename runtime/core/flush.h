/* SPDX-License-Identifier: BSD-3-Clause */
/* For the two places that end a process. */
#ifndef GDRI_FLUSH_H
#define GDRI_FLUSH_H

/* What the program has written to its streams, as exit() would. A stream that another thread holds, or whose
 * reader stands still, is not waited for longer than 2 s: then the caller has to leave by _exit. */
void gdri_flush_streams(void);

#endif
