/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with descriptors. */
#include "softhca/wire/wire_shm_impl.h"

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union passed_fd {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int))];
};

bool message_send(int sock, const void *bytes, size_t n, int fd)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, n };
	union passed_fd c = { 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	if (fd >= 0) {
		m.msg_control = c.buf;
		m.msg_controllen = sizeof(c.buf);
		cm = CMSG_FIRSTHDR(&m);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &fd, sizeof(int));
	}
	return sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

ssize_t message_receive(int sock, void *bytes, size_t size, int *fd)
{
	struct iovec iov = { bytes, size };
	union passed_fd c;
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.buf,
			    .msg_controllen = sizeof(c.buf) };
	ssize_t n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *cm = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;

	*fd = -1;
	if (cm && cm->cmsg_level == SOL_SOCKET && cm->cmsg_type == SCM_RIGHTS &&
	    cm->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(cm), sizeof(int));
	return n;
}
