// SPDX-License-Identifier: BSD-3-Clause
#define _DEFAULT_SOURCE /* struct ifreq */
#include "runtime/core/inet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

union inet_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct gdri_inet gdri_inet_of(const struct sockaddr *a)
{
	const union inet_address *u = (const union inet_address *)(const void *)a;
	struct gdri_inet out = {0};

	if (a && a->sa_family == AF_INET) {
		out.family = 4;
		memcpy(out.addr, &u->v4.sin_addr, 4);
	} else if (a && a->sa_family == AF_INET6) {
		out.family = 6;
		memcpy(out.addr, &u->v6.sin6_addr, 16);
	}
	return out;
}

bool gdri_inet_is(const struct gdri_inet *a, const struct gdri_inet *b)
{
	return a->family && a->family == b->family && !memcmp(a->addr, b->addr, sizeof(a->addr));
}

bool gdri_inet_near(const struct gdri_inet *a, const struct gdri_inet *b)
{
	int bits = a->family == 4 ? 32 : 128, bytes; /* prefix is another PE's word */
	uint8_t mask;

	if (!a->family || a->family != b->family || !a->prefix)
		return false;
	bits = a->prefix < bits ? a->prefix : bits;
	bytes = bits / 8;
	mask = (uint8_t)(0xff00 >> bits % 8);
	return !memcmp(a->addr, b->addr, (size_t)bytes) &&
	       (bytes == sizeof(a->addr) || !((a->addr[bytes] ^ b->addr[bytes]) & mask));
}

/* ---- the interfaces ---- */

/* Those of one machine that others of the same name, on other machines, have too. */
static bool inet_only_here(const char *name)
{
	static const char *const prefixes[] = {"docker", "virbr", "veth", "br-", "cni", "podman",
					       "lxcbr", "lxdbr", "vboxnet", "vmnet"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

int gdri_inet_rank(const struct ifaddrs *i)
{
	const union inet_address *a = (const union inet_address *)(const void *)i->ifa_addr;
	int v4;

	if (!a || !(i->ifa_flags & IFF_UP))
		return 0;
	v4 = a->any.sa_family == AF_INET;
	if (!v4 && (a->any.sa_family != AF_INET6 || IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr)))
		return 0;
	if (i->ifa_flags & IFF_LOOPBACK)
		return 1 + v4;
	return (inet_only_here(i->ifa_name) || !(i->ifa_flags & IFF_RUNNING) ? 3 : 5) + v4;
}

static uint8_t inet_prefix(const struct sockaddr *mask)
{
	struct gdri_inet m = gdri_inet_of(mask);
	uint8_t bits = 0;

	while (bits < 128 && m.addr[bits / 8] >> (7 - bits % 8) & 1)
		bits++;
	return bits;
}

/* Of the socket's network namespace, as /sys is not in each container. */
static uint32_t inet_mbits(int s, const char *name)
{
	struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
	struct ifreq r = {.ifr_data = (void *)&cmd};
	uint32_t mbits;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (ioctl(s, SIOCETHTOOL, &r))
		return 0;
	mbits = (uint32_t)cmd.speed_hi << 16 | cmd.speed; /* the header's function shifts an int, out of its range */
	return mbits == (uint32_t)SPEED_UNKNOWN ? 0 : mbits;
}

static struct gdri_inet inet_describe(const struct ifaddrs *i, int s)
{
	struct gdri_inet out = gdri_inet_of(i->ifa_addr);

	out.rank = (uint8_t)gdri_inet_rank(i);
	out.prefix = inet_prefix(i->ifa_netmask);
	out.mbits = inet_mbits(s, i->ifa_name);
	return out;
}

int gdri_inet_list(const char *interface, struct gdri_inet *out, int room)
{
	struct ifaddrs *all, *i;
	int n = 0, at, rank, s;

	if (getifaddrs(&all))
		return -errno;
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* none: speeds stay unknown */
	for (i = all; i; i = i->ifa_next) {
		rank = gdri_inet_rank(i);
		if (!rank || (*interface && strcmp(i->ifa_name, interface) != 0))
			continue;
		for (at = n; at && out[at - 1].rank < rank; at--)
			if (at < room)
				out[at] = out[at - 1];
		if (at < room)
			out[at] = inet_describe(i, s);
		n += n < room;
	}
	if (s >= 0)
		close(s);
	freeifaddrs(all);
	return n;
}

/* By a datagram socket: connecting it chooses the way. Any port does. */
bool gdri_inet_route(const struct gdri_inet *to, struct gdri_inet *from)
{
	union inet_address a = {0};
	socklen_t len = sizeof(a);
	int s;

	if (to->family == 4) {
		a.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(9)};
		memcpy(&a.v4.sin_addr, to->addr, 4);
	} else {
		a.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(9)};
		memcpy(&a.v6.sin6_addr, to->addr, 16);
	}
	*from = (struct gdri_inet){0};
	s = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return false;
	if (!connect(s, &a.any, to->family == 4 ? sizeof(a.v4) : sizeof(a.v6)) && !getsockname(s, &a.any, &len))
		*from = gdri_inet_of(&a.any);
	close(s);
	return from->family;
}
