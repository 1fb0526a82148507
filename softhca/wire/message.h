/* SPDX-License-Identifier: BSD-3-Clause */
/* One message on a Unix socket, and with it one descriptor. Neither call waits. */
#ifndef SOFTHCA_MESSAGE_H
#define SOFTHCA_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* fd -1: none. False: not sent. */
bool message_send(int sock, const void *bytes, size_t n, int fd);
/* Its length, or -1 with errno; *fd: what was passed with it, the caller's, or -1. */
ssize_t message_receive(int sock, void *bytes, size_t size, int *fd);

#endif
