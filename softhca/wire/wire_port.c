/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways to other hosts: sockets on the addresses of the GID table. That of
 * entry 0 is open from the start, others from the first use on. A process that
 * may open raw sockets receives by them (wire_raw.c), each the datagrams of its
 * slot; where it may not, the processes of a host bind the UDP port together. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/tools/log.h"
#include "softhca/wire/wire.h"

struct wire_port wire_ports[HCA_PORTS];
static unsigned ports_end; /* those in use lie below */

unsigned wire_ports_end(void)
{
	/* Relaxed: what it counts is told by in_use, which is set behind it. */
	return __atomic_load_n(&ports_end, __ATOMIC_RELAXED);
}

static void take_into_use(struct wire_port *p)
{
	unsigned end = (unsigned)(p - wire_ports) + 1;

	if (end > ports_end)
		__atomic_store_n(&ports_end, end, __ATOMIC_RELAXED); /* pairs with wire_ports_end() */
	/* Release: pairs with wire_port_in_use(), which the engine asks without the
	 * lock before it sleeps. Seen late it costs one sleep. */
	__atomic_store_n(&p->in_use, true, __ATOMIC_RELEASE);
}

static bool open_port(struct wire_port *p)
{
	static const struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog drop = { .len = 1, .filter = (struct sock_filter *)&nothing };
	char text[INET6_ADDRSTRLEN];

	p->fd = wire_sock_open(&p->addr, true);
	if (p->fd < 0) {
		hca_warn("UDP port %d of %s: %s; peers on other hosts are out of reach from there",
			 ROCE_PORT, inet_ntop(AF_INET6, &p->addr, text, sizeof(text)),
			 strerror(-p->fd));
		return false;
	}
	p->raw = wire_raw_open(&p->addr, wire_slot());
	p->no_raw = p->raw == -EPERM;
	/* Datagrams come by the raw socket; the UDP socket sends, and by being there
	 * keeps the kernel from answering them with "port unreachable". */
	if (p->raw >= 0)
		setsockopt(p->fd, SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop));
	else /* also brings what is for others */
		take_into_use(p);
	return true;
}

void wire_port_start(void)
{
	for (unsigned i = 0; i < HCA_PORTS; i++) {
		wire_ports[i].fd = wire_ports[i].raw = -1;
		wire_ports[i].addr = dp_gid(i);
	}
	if (!address_is_loopback(&wire_ports[0].addr))
		open_port(&wire_ports[0]);
}

bool wire_port_use(unsigned sgid)
{
	struct wire_port *p = &wire_ports[sgid % HCA_PORTS];
	static bool said;

	if (sgid >= HCA_PORTS || IN6_IS_ADDR_UNSPECIFIED(&p->addr) ||
	    address_is_loopback(&p->addr) ||
	    (p->fd < 0 && !open_port(p)))
		return false;
	if (p->no_raw && address_is_v4(&p->addr) && !said) {
		said = true;
		hca_warn("no CAP_NET_RAW: without the IPv4 identification the ICRC of packets from "
			 "other hosts is checked but for 16 bits");
	}
	take_into_use(p);
	return true;
}

/* A raw socket brings only what is for this process, so nothing as long as no QP
 * has a peer out there; asking it would double the calls. */
bool wire_port_in_use(const struct wire_port *p)
{
	/* Acquire: the descriptors were set before. */
	return __atomic_load_n(&p->in_use, __ATOMIC_ACQUIRE);
}

unsigned wire_port_poll(struct pollfd *fds)
{
	unsigned n = 0;

	for (unsigned i = 0; i < wire_ports_end(); i++) {
		const struct wire_port *p = &wire_ports[i];

		if (!wire_port_in_use(p))
			continue;
		fds[n].fd = p->raw >= 0 ? p->raw : p->fd;
		fds[n++].events = POLLIN;
	}
	return n;
}

void wire_port_close(void)
{
	for (unsigned i = 0; i < HCA_PORTS; i++) {
		struct wire_port *p = &wire_ports[i];

		if (p->fd >= 0)
			close(p->fd);
		if (p->raw >= 0)
			close(p->raw);
		p->fd = p->raw = -1;
		__atomic_store_n(&p->in_use, false, __ATOMIC_RELAXED); /* a child has no engine */
	}
}
