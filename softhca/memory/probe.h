/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether registered memory is still mapped. */
#ifndef SOFTHCA_PROBE_H
#define SOFTHCA_PROBE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* False: a page of these bytes cannot be read. Of many pages the first ones and the last are looked at: who copies
 * asks again for each packet. */
bool probe_mapped(const uint8_t *va, uint64_t len);

/* Takes SIGSEGV and SIGBUS, which pass on to whose handlers were there: at each registration, since the program may
 * have put its own there meanwhile. */
void probe_arm(void);

/* Not to be blocked where memory is probed: the kernel would end the process. */
void probe_unblock(sigset_t *set);

#endif
