/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers of host threads to PEs that a PE with a GPU reaches by queue. The queues of its kernels are out of the
 * host's reach, so it has one more to each PE, in host memory, of a device context of its own. One transfer at
 * a time, through a bounce buffer: any memory will do at this end. */
#ifndef GDRI_HOSTQ_H
#define GDRI_HOSTQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdri_state;
struct gdri_hostq;

/* Parts of the steps "transport" and "connect": before and behind the exchange of addresses. */
int gdri_hostq_open(struct gdri_state *st, const char *near);
struct gdri_net *gdri_hostq_net(const struct gdri_hostq *q);
struct gdri_qp *gdri_hostq_qps(const struct gdri_hostq *q);
bool gdri_hostq_is_late(const struct gdri_hostq *q); /* a transfer that ran out of time may be under way */
void gdri_hostq_close(struct gdri_state *st);

/* What posts to the page of another PE (see host_view.h) needs of them. */
struct gdri_dev;
void gdri_hostq_show(const struct gdri_hostq *q, struct gdri_dev *host_view);

/* Complete when they return. */
int gdri_hostq_put(struct gdri_state *st, uint64_t offset, const void *src, size_t len, int pe);
int gdri_hostq_get(struct gdri_state *st, void *dst, uint64_t offset, size_t len, int pe);

/* A word of pe's control area, without a message: posted, behind no transfer and no copy; then until it is there. */
int gdri_hostq_tell(struct gdri_state *st, uint64_t offset, uint64_t word, int pe);
int gdri_hostq_told(struct gdri_state *st, int pe, uint64_t deadline);

#endif
