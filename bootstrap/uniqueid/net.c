// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/uniqueid/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/call.h"
#include "runtime/core/inet.h"
#include "runtime/core/log.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t to_sockaddr(const struct gdri_uid *id, union address *a)
{
	memset(a, 0, sizeof(*a));
	if (id->family == 4) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(id->port);
		memcpy(&a->v4.sin_addr, id->addr, 4);
		return sizeof(a->v4);
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons(id->port);
	memcpy(&a->v6.sin6_addr, id->addr, 16);
	return sizeof(a->v6);
}

void gdri_uid_address_text(const struct gdri_uid *id, char *out, size_t room)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(id->family == 4 ? AF_INET : AF_INET6, id->addr, text, sizeof(text));
	snprintf(out, room, id->family == 4 ? "%s:%u" : "[%s]:%u", text, id->port);
}

void gdri_uid_peer_text(int fd, char *out, size_t room)
{
	union address a = {0};
	socklen_t len = sizeof(a);
	struct gdri_uid at = {.family = 4};

	snprintf(out, room, "an unknown address");
	if (getpeername(fd, &a.any, &len) || (a.any.sa_family != AF_INET && a.any.sa_family != AF_INET6))
		return;
	if (a.any.sa_family == AF_INET) {
		memcpy(at.addr, &a.v4.sin_addr, 4);
		at.port = ntohs(a.v4.sin_port);
	} else {
		at.family = 6;
		memcpy(at.addr, &a.v6.sin6_addr, 16);
		at.port = ntohs(a.v6.sin6_port);
	}
	gdri_uid_address_text(&at, out, room);
}

/* ---- which address ---- */

int gdri_uid_choose_address(const char *interface, struct gdri_uid *id)
{
	struct gdri_inet best;
	int n = gdri_inet_list(interface, &best, 1);

	if (n < 0)
		return gdri_fail(-GDR_ESYSTEM, "bootstrap: cannot list the network interfaces: %s",
				 gdri_errno_text(-n));
	if (!n && *interface)
		return gdri_fail(-GDR_ESYSTEM,
				 "bootstrap: GDR_UID_INTERFACE=%s: no interface of this name is up with an address "
				 "(see `ip address`)",
				 interface);
	if (!n)
		return gdri_fail(-GDR_ESYSTEM, "bootstrap: no network interface has an address, not even loopback "
					       "(see `ip address`)");
	id->family = best.family;
	memcpy(id->addr, best.addr, sizeof(id->addr));
	return 0;
}

int gdri_uid_listen(struct gdri_uid *id)
{
	static const int on = 1, off = 0;
	union address a;
	socklen_t len = to_sockaddr(id, &a);
	int err, fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* beside what is left of a job that ended */
	if (id->family == 6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)); /* [::]: IPv4, too */
	if (bind(fd, &a.any, len) || listen(fd, SOMAXCONN) || getsockname(fd, &a.any, &len)) {
		err = errno;
		close(fd);
		return -err;
	}
	id->port = ntohs(id->family == 4 ? a.v4.sin_port : a.v6.sin6_port);
	return fd;
}

/* ---- connections ---- */

void gdri_uid_tune(int fd)
{
	const int on = 1, idle = 10, interval = 3, count = 5, user_ms = 25000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof(user_ms));
}

/* False: not within the time. */
static bool wait_writable(int fd, const struct timespec *deadline)
{
	struct pollfd p = {fd, POLLOUT, 0};

	while (!gdri_deadline_passed(deadline)) {
		if (poll(&p, 1, gdri_limit_ms(deadline)) > 0)
			return true;
	}
	return false;
}

/* Where nobody listens at a port that the system may choose for us, we may meet ourselves. */
static bool is_own_end(int fd)
{
	union address a = {0}, b = {0};
	socklen_t la = sizeof(a), lb = sizeof(b);

	return !getsockname(fd, &a.any, &la) && !getpeername(fd, &b.any, &lb) && la == lb && !memcmp(&a, &b, la);
}

int gdri_uid_connect(const struct gdri_uid *id, const struct timespec *deadline)
{
	union address a;
	socklen_t len = to_sockaddr(id, &a), size = sizeof(int);
	int err = 0, fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, &a.any, len) && errno != EINPROGRESS && errno != EINTR)
		err = errno;
	else if (!wait_writable(fd, deadline))
		err = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size))
		err = errno;
	else if (!err && is_own_end(fd))
		err = ECONNREFUSED;
	if (err) {
		close(fd);
		return -err;
	}
	gdri_uid_tune(fd);
	return fd;
}

int gdri_uid_send(int fd, const void *p, size_t n, const struct timespec *deadline)
{
	const unsigned char *at = p;
	ssize_t done;

	while (n) {
		done = send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (done >= 0) {
			at += done;
			n -= (size_t)done;
		} else if (errno == EAGAIN) {
			if (!wait_writable(fd, deadline))
				return -GDR_ETIMEOUT;
		} else if (errno != EINTR) {
			return -GDR_EPEERLOST;
		}
	}
	return 0;
}
