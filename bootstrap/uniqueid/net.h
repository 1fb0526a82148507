/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of jobs that meet at a hub. */
#ifndef GDRI_BOOTSTRAP_UID_NET_H
#define GDRI_BOOTSTRAP_UID_NET_H

#include <time.h>

#include "bootstrap/uniqueid/wire.h"

/* Family and address of `interface`, "": of the first that others can reach. 0 or -GDR_E* (logged). */
int gdri_uid_choose_address(const char *interface, struct gdri_uid *id);

/* A listening socket that does not block, at the address and port (0: a free one, which is filled in), or -errno. */
int gdri_uid_listen(struct gdri_uid *id);

/* A connection that does not block, or -errno. */
int gdri_uid_connect(const struct gdri_uid *id, const struct timespec *deadline);

/* Both ends: small frames go at once, a machine that is gone is noticed within half a minute. */
void gdri_uid_tune(int fd);

/* All of it: 0, -GDR_ETIMEOUT, or -GDR_EPEERLOST (the connection has ended). Does not log. */
int gdri_uid_send(int fd, const void *p, size_t n, const struct timespec *deadline);

/* Where the other end of a connection is, or "an unknown address". */
void gdri_uid_peer_text(int fd, char *out, size_t room);
void gdri_uid_address_text(const struct gdri_uid *id, char *out, size_t room);

#endif
