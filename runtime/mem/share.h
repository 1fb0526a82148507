/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes heap memory between the PEs of a node: file descriptors over abstract
 * unix sockets. Names and tokens are 128 random bits each, both ends check
 * that the other has the same user, every wait is bounded. */
#ifndef GDRI_SHARE_H
#define GDRI_SHARE_H

#include <stdint.h>

#include "runtime/mem/heap.h"

#define GDRI_SHARE_NAME 16
#define GDRI_SHARE_TOKEN 16

/* What a PE publishes through the bootstrap: where it listens and what its
 * visitors must say. */
struct gdri_share_address {
	uint8_t name[GDRI_SHARE_NAME];
	uint8_t token[GDRI_SHARE_TOKEN];
};

struct gdri_share {
	int listener;
	struct gdri_share_address address;
};

/* One same-node peer: `fd` is its memory, -1 with the reason in `why`; `page` what it gave beside it,
 * -1: nothing. Both are the caller's to close. */
struct gdri_share_peer {
	int pe;
	struct gdri_share_address address;
	int fd, page;
	char why[160];
};

/* Listens. From the return on peers can connect. */
int gdri_share_open(struct gdri_share *s);
void gdri_share_close(struct gdri_share *s); /* also when not open */

/* Trades descriptors with n peers: gives own_fd, and own_page if not -1, to each and takes theirs, until all are
 * done or timeout_ms is over. Peers that cannot be reached have fd -1 afterwards. All
 * peers must call it at about the same time, after all have called gdri_share_open. Not 0 where this process may not
 * open as many files: logged; the peers see at once that nothing more comes from here. */
int gdri_share_exchange(struct gdri_share *s, int pe, int own_fd, int own_page,
		      struct gdri_share_peer *peers, int n, int timeout_ms);

#endif
