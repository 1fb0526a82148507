/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective exchange that also tells who failed and why. */
#ifndef GDRI_AGREE_H
#define GDRI_AGREE_H

#include <stddef.h>

struct gdri_state;

/* Collective. Tells the others st->pending (with the text of the thread's last error) and,
 * when all PEs are well, gives each PE's `len` bytes in recv (n_pes * len; NULL with len 0).
 * Returns 0 on all PEs or an error on all: own, or that of the lowest PE that failed, named in the
 * log with its reason. Where the exchange itself fails the PEs are out of step: st->broken. `what` says in words what
 * was going on. */
int gdri_agree(struct gdri_state *st, const char *what, const void *send, void *recv, size_t len);

#endif
