// SPDX-License-Identifier: BSD-3-Clause
/* Datagrams between endpoints: reliable and ordered, refused where nobody is, and few fit in. */
#define _GNU_SOURCE
#include "tests/ofi/provider/fake.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* In the abstract name space: it ends with the process. */
static socklen_t socket_address(struct fake_name name, struct sockaddr_un *a)
{
	int n;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "gdrfake.%d.%u", name.pid, name.n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int gdr_fake_socket_open(struct fake_name name)
{
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	socklen_t len = socket_address(name, &a);

	if (s >= 0 && bind(s, (struct sockaddr *)&a, len)) {
		close(s);
		return -1;
	}
	return s;
}

int gdr_fake_socket_send(int s, struct fake_name to, const void *data, size_t len)
{
	struct sockaddr_un a;
	socklen_t n = socket_address(to, &a);

	return sendto(s, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, n) < 0
		       ? errno
		       : 0;
}
