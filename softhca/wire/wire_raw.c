/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving from other hosts through a raw socket: the kernel gives each
 * process the datagrams whose destination QPN has its slot, whatever the other
 * processes of the host are doing, and the IP header, which the ICRC covers. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/wire/wire.h"

enum { UDP_LEN = 8, RAW_BUFFER = 32 << 20 };

static int raw_attach(int fd, bool v4, uint32_t slot)
{
	struct sock_filter code[] = {
		/* X: where UDP begins; behind the IPv4 header, at once with IPv6 */
		v4 ? (struct sock_filter)BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0)
		   : (struct sock_filter)BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2), /* UDP destination port */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_PORT, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, UDP_LEN + 4), /* BTH: destination QPN */
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 14),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, slot, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) ? -errno : 0;
}

int wire_raw_open(const struct in6_addr *addr, uint32_t slot)
{
	bool v4 = address_is_v4(addr);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			IPPROTO_UDP);
	union wire_sockaddr a;
	socklen_t len = wire_sockaddr(addr, 0, &a);
	int size = RAW_BUFFER, one = 1, df = v4 ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO, ret;

	if (fd < 0)
		return -errno;
	/* The filter first: nothing of other programs gets into the buffer. */
	ret = raw_attach(fd, v4, slot);
	if (!ret && bind(fd, &a.any, len))
		ret = -errno;
	if (ret) {
		close(fd);
		return ret;
	}
	/* As on the UDP sockets: DF, and so identification 0. */
	if (v4)
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df));
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &df, sizeof(df));
	/* An IPv4 header comes along; of IPv6 the traffic class is asked for. */
	if (!v4)
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &one, sizeof(one));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return fd;
}
