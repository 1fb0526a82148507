/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program's that the device uses and that need not be mapped any more. */
#ifndef SOFTHCA_PROBE_H
#define SOFTHCA_PROBE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* False: a page of these bytes cannot be read, or not be written where that is asked. Of many pages the first ones and
 * the last are looked at: who copies asks again for each packet. */
bool probe_mapped(const uint8_t *va, uint64_t len, bool write);

/* Whether the host's page that begins there has some of these bytes. */
bool page_has(uintptr_t page, const void *start, uint64_t len);

/* Takes SIGSEGV and SIGBUS, which pass on to whose handlers were there: at each registration, since the program may
 * have put its own there meanwhile. held: whether the calling thread works for the device, which holds this page: then
 * there are zeroes where nothing is mapped. */
void probe_arm(bool (*held)(uintptr_t page));

/* Not to be blocked where memory is probed: the kernel would end the process. */
void probe_unblock(sigset_t *set);

#endif
