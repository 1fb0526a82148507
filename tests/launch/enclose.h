/* SPDX-License-Identifier: BSD-3-Clause */
/* enclose: the parts of the program that bounds a test. */
#ifndef TESTS_LAUNCH_ENCLOSE_H
#define TESTS_LAUNCH_ENCLOSE_H

#include <stdbool.h>
#include <sys/types.h>

/* ---- enclosure.c: what a test is in */

/* The calling process, the first of a new PID and mount namespace, gets /proc, /dev/shm, /run/netns and a TMPDIR of
 * its own. False, with what is missing in errno: no. */
bool enclosure_mounts(void);

/* Where namespaces cannot be had: a directory for TMPDIR, and its removal. */
void enclosure_dir(void);
void enclosure_dir_remove(void);

/* Kills every descendant of the caller, a subreaper, that is left; a generation after the other. */
void enclosure_sweep(void);

/* ---- slow.c: how crowded the machine is */

/* How many times as long as a limit allows for something may take now, 1 to SLOW_MOST: limits allow for SLOW_FREE
 * threads of others on each core, as tests are that run beside each other. `inside`: threads of the test are all that
 * /proc shows, and are not counted. */
#define SLOW_MOST 16
#define SLOW_FREE 3
double slow_now(bool inside);

/* What runs in the test, for the log of one that hangs. */
void slow_report(void);

#endif
