/* SPDX-License-Identifier: BSD-3-Clause */
/* The long rest of an idle engine: its process's doorbell pages are write-protected
 * (userfaultfd(2)), and the first store to one wakes it. */
#ifndef SOFTHCA_TRAP_H
#define SOFTHCA_TRAP_H

#include <poll.h>
#include <stdbool.h>

enum { TRAP_FDS = 2 };

/* The engine's thread, hca_lock held: from now on no store reaches a doorbell page; whoever
 * tries waits for trap_release(). What came before it has to look for afterwards. False: the
 * kernel, or something in this process, does not allow it, and nothing is protected. */
bool trap_set(void);
bool trap_is_set(void);
/* The engine's thread: the pages are as before, whoever waited goes on. */
void trap_release(void);
/* Fills in what to sleep on while it is set; how many. */
unsigned trap_poll(struct pollfd fds[TRAP_FDS]);

/* Any thread: there will be something to do that no doorbell tells of. */
void trap_wake(void);
/* Any thread: from now on there may be stores that meet no page protection. */
void trap_forbid(void);
void trap_forked(void); /* in the child */

#endif
