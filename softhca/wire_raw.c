/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving from other hosts through a raw socket: the kernel gives each
 * process the datagrams whose destination QPN has its slot, whatever the other
 * processes of the host are doing, and the IP header, which the ICRC covers. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/dp.h"
#include "softhca/guest.h"

enum { UDP_LEN = 8, RAW_BUFFER = 32 << 20 };

static int attach(int fd, uint32_t slot)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),	     /* X: IP header length */
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),	     /* UDP destination port */
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

int wire_raw_open(uint32_t addr, uint32_t slot)
{
	int fd = socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = addr };
	int size = RAW_BUFFER, df = IP_PMTUDISC_DO, ret;

	if (fd < 0)
		return -errno;
	/* The filter first: nothing of other programs gets into the buffer. */
	ret = attach(fd, slot);
	if (!ret && bind(fd, (struct sockaddr *)&a, sizeof(a)))
		ret = -errno;
	if (ret) {
		close(fd);
		return ret;
	}
	/* As on the UDP sockets: DF, and so identification 0. */
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return fd;
}

bool wire_raw_parse(const uint8_t *ip, size_t n, struct packet_addr *a, size_t *off, size_t *len)
{
	size_t hl;

	if (n < 20 || ip[0] >> 4 != 4)
		return false;
	hl = (size_t)(ip[0] & 15) * 4;
	/* Options or fragments: no RoCE packet that the ICRC here could match. */
	if (hl != 20 || n < hl + UDP_LEN || (get_be16(ip + 6) & 0x3fff))
		return false;
	*len = get_be16(ip + hl + 4);
	if (*len < UDP_LEN || hl + *len > n)
		return false;
	*len -= UDP_LEN;
	*off = hl + UDP_LEN;
	memcpy(&a->id, ip + 4, 2);
	memcpy(&a->saddr, ip + 12, 4);
	memcpy(&a->daddr, ip + 16, 4);
	memcpy(&a->sport, ip + hl, 2);
	memcpy(&a->dport, ip + hl + 2, 2);
	return true;
}
