/* SPDX-License-Identifier: BSD-3-Clause */
/* The slot of this process and its sockets. A slot is the loopback address
 * 127.64.hi.lo with port 4791 that the process has bound, and the QPNs slot <<
 * 14 up to (slot + 1) << 14. So the QPN names the process, no registry is
 * needed, and the kernel gives the slot back when the process dies, however it
 * dies. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/udp.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/tools/log.h"
#include "softhca/engine/dp.h"
#include "softhca/wire/wire.h"

enum { SOCK_BUFFER = 32 << 20 };

struct wire_sock wire_host = { .fd = -1 };
static uint32_t slot;

uint32_t wire_slot_addr(uint32_t s)
{
	return htonl(0x7f400000u | s);
}

uint32_t wire_addr_slot(uint32_t addr)
{
	return ntohl(addr) & (SLOT_COUNT - 1);
}

uint32_t dp_first_qpn(void)
{
	return slot << SLOT_SHIFT;
}

uint32_t dp_qpn_count(void)
{
	return 1u << SLOT_SHIFT;
}

uint32_t wire_slot(void)
{
	return slot;
}

socklen_t wire_sockaddr(const struct in6_addr *addr, uint16_t port, union wire_sockaddr *a)
{
	memset(a, 0, sizeof(*a));
	if (address_is_v4(addr)) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(port);
		a->v4.sin_addr.s_addr = address_v4(addr);
		return sizeof(a->v4);
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons(port);
	a->v6.sin6_addr = *addr;
	if (IN6_IS_ADDR_LINKLOCAL(addr))
		a->v6.sin6_scope_id = address_scope();
	return sizeof(a->v6);
}

/* RoCEv2 leaves the UDP checksum zero: the ICRC covers more. Nobody fragments,
 * and with DF on an unconnected socket Linux sends identification 0, which the
 * ICRC has to know. */
static void set_options(int fd, bool v4)
{
	int size = SOCK_BUFFER, one = 1, df = v4 ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO;

	if (v4) {
		setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df));
		setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one));
	} else {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &df, sizeof(df));
		setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, &one, sizeof(one));
		setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &one, sizeof(one));
	}
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

int wire_sock_open(const struct in6_addr *addr, bool shared)
{
	bool v4 = address_is_v4(addr);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	union wire_sockaddr a;
	socklen_t len = wire_sockaddr(addr, ROCE_PORT, &a);
	int one = 1;

	if (fd < 0)
		return -errno;
	set_options(fd, v4);
	if (shared)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (bind(fd, &a.any, len)) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd;
}

static void sock_close_in_child(void)
{
	/* A forked child has no engine; were it to keep the sockets, the slot
	 * would outlive the process and packets would go to nobody. */
	if (wire_host.fd >= 0)
		close(wire_host.fd);
	wire_host.fd = -1;
	wire_port_close();
	wire_shm_forked();
	trap_forked();
}

static int take_slot(void)
{
	int fd = -EADDRINUSE;

	for (uint32_t s = SLOT_FIRST; s < SLOT_COUNT; s++) {
		struct in6_addr addr = address_from_v4(wire_slot_addr(s));

		fd = wire_sock_open(&addr, false);
		if (fd >= 0) {
			slot = s;
			wire_host.fd = fd;
			wire_host.addr = wire_slot_addr(s);
			return 0;
		}
		if (fd != -EADDRINUSE)
			break;
	}
	hca_warn("no UDP socket on 127.64.0.0/16 port %d: %s (is the loopback interface up?)",
		 ROCE_PORT, limits_text(-fd).s);
	return fd;
}

int wire_sock_start(void)
{
	int ret = take_slot();

	if (ret)
		return ret;
	wire_port_start();
	pthread_atfork(NULL, NULL, sock_close_in_child);
	return 0;
}

/* What the engine sleeps on: its thread's alone, but for begin and end. */
static struct {
	struct pollfd fds[2 + TRAP_FDS + HCA_PORTS];
	unsigned n;
} rest;

bool wire_sleep_begin(void)
{
	rest.fds[0] = (struct pollfd){ .fd = wire_host.fd, .events = POLLIN };
	/* There may be something, unless wire_sleep() finds that there is not. */
	rest.fds[1] = (struct pollfd){ .fd = wire_shm_fd(), .events = POLLIN, .revents = POLLIN };
	rest.n = 2 + trap_poll(rest.fds + 2);
	rest.n += wire_port_poll(rest.fds + rest.n);
	return wire_shm_sleep();
}

bool wire_sleep(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };

	return ppoll(rest.fds, rest.n, &t, NULL) != 0;
}

void wire_sleep_end(void)
{
	wire_shm_awake(rest.fds[1].revents != 0);
}
