/* SPDX-License-Identifier: BSD-3-Clause */
/* The slot of this process and its sockets. A slot is the loopback address
 * 127.64.hi.lo with port 4791 that the process has bound, and the QPNs slot <<
 * 14 up to (slot + 1) << 14. So the QPN names the process, no registry is
 * needed, and the kernel gives the slot back when the process dies, however it
 * dies. Beside it the way to other hosts, where there is one. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/log.h"
#include "softhca/wire.h"

enum { SOCK_BUFFER = 32 << 20 };

struct wire_sock wire_host = { .fd = -1 }, wire_port = { .fd = -1 };
int wire_raw_fd = -1;
static bool remote_peers;
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

void wire_sock_remote(void)
{
	/* Relaxed: read by the engine before it sleeps, without the lock; seen
	 * late it costs one sleep. */
	__atomic_store_n(&remote_peers, true, __ATOMIC_RELAXED);
}

static int open_socket(uint32_t addr, bool shared)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(ROCE_PORT),
				 .sin_addr.s_addr = addr };
	int size = SOCK_BUFFER, one = 1, df = IP_PMTUDISC_DO;

	if (fd < 0)
		return -errno;
	if (shared)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	/* With DF on an unconnected socket Linux sends identification 0, which
	 * the ICRC has to know. */
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df));
	/* RoCEv2 leaves the UDP checksum zero: the ICRC covers more. */
	setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a))) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd;
}

static void close_in_child(void)
{
	/* A forked child has no engine; were it to keep the sockets, the slot
	 * would outlive the process and packets would go to nobody. */
	if (wire_host.fd >= 0)
		close(wire_host.fd);
	if (wire_port.fd >= 0)
		close(wire_port.fd);
	if (wire_raw_fd >= 0)
		close(wire_raw_fd);
	wire_host.fd = wire_port.fd = wire_raw_fd = -1;
	wire_shm_forked();
}

static int take_slot(void)
{
	int fd = -EADDRINUSE;

	for (uint32_t s = SLOT_FIRST; s < SLOT_COUNT; s++) {
		fd = open_socket(wire_slot_addr(s), false);
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
		 ROCE_PORT, strerror(-fd));
	return fd;
}

/* The way to other hosts, where there is a network interface. */
static void open_port(void)
{
	static const struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog drop = { .len = 1, .filter = (struct sock_filter *)&nothing };
	uint32_t port_addr = address_port();
	int fd;

	if (ntohl(port_addr) >> 24 == 127)
		return;
	fd = open_socket(port_addr, true);
	if (fd < 0) {
		hca_warn("UDP port %d of %s: %s; peers on other hosts are out of reach", ROCE_PORT,
			 inet_ntoa((struct in_addr){ port_addr }), strerror(-fd));
		return;
	}
	wire_port.fd = fd;
	wire_port.addr = port_addr;
	wire_raw_fd = wire_raw_open(port_addr, slot);
	if (wire_raw_fd < 0)
		return;
	/* Datagrams come by the raw socket; this one sends, and by being there
	 * keeps the kernel from answering them with "port unreachable". */
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop));
}

int wire_sock_start(void)
{
	int ret = take_slot();

	if (ret)
		return ret;
	open_port();
	pthread_atfork(NULL, NULL, close_in_child);
	return 0;
}

/* The raw socket brings only what is for this process, so nothing as long as
 * no QP has a peer outside; asking it would double the calls. The shared one
 * also brings what is for others. */
bool wire_port_in_use(void)
{
	/* Relaxed: pairs with wire_sock_remote(). */
	return wire_raw_fd >= 0 ? __atomic_load_n(&remote_peers, __ATOMIC_RELAXED)
			   : wire_port.fd >= 0;
}

void wire_wait(uint64_t ns)
{
	int port = wire_raw_fd >= 0 ? wire_raw_fd : wire_port.fd;
	struct pollfd p[3] = { { .fd = wire_host.fd, .events = POLLIN },
			       { .fd = wire_shm_fd(), .events = POLLIN },
			       { .fd = wire_port_in_use() ? port : -1, .events = POLLIN } };
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };

	if (wire_shm_sleep())
		ppoll(p, 3, &t, NULL);
	wire_shm_awake(p[1].revents != 0);
}
