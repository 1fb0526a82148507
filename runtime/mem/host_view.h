/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's own view of a job on GPUs. The heap, control area included, is out of the processor's reach there: host
 * threads have a control area of their own, a page in memory of the host, which the PEs of a node map and
 * the others write by the host's queues. The struct gdri_dev over it takes what the host finds out itself, and lets
 * host threads wait as device code does: published, bounded, with the one who is to blame named. */
#ifndef GDRI_HOST_VIEW_H
#define GDRI_HOST_VIEW_H

#include <stddef.h>

struct gdri_state;

/* The page, part of the step "heap". */
int gdri_page_open(struct gdri_state *st);
void gdri_page_close(struct gdri_state *st);

/* That of a PE of the node, part of the step "p2p", from an untrusted descriptor. */
int gdri_page_map(struct gdri_state *st, int pe, int fd, char *why, size_t room);
void gdri_page_unmap(struct gdri_state *st);

/* The view, part of the step "device". */
int gdri_host_view_up(struct gdri_state *st);
void gdri_host_view_down(struct gdri_state *st);

#endif
