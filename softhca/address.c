/* SPDX-License-Identifier: BSD-3-Clause */
/* This host's IPv4 addresses: which one is the port's, which are our own, and
 * what MTU the interface of the port leaves to InfiniBand packets. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/dp.h"
#include "softhca/log.h"
#include "softhca/options.h"

enum {
	MAX_OWN = 64,
	/* What the kernel's RoCE drivers keep free beside the payload: room
	 * for a GRH, UDP, BTH, the longest extended headers, ICRC. */
	HEADROOM = 40 + 8 + 12 + 4 + 28 + 4,
};

static uint32_t own[MAX_OWN]; /* network order */
static unsigned n_own;
static uint32_t port_addr;
static uint32_t mtu;

/* The largest path MTU whose packets fit the interface. */
static uint32_t mtu_of(const char *name)
{
	struct ifreq r = { 0 };
	uint32_t m = PKT_MAX_MTU;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return m;
	strncpy(r.ifr_name, name, sizeof(r.ifr_name) - 1);
	if (!ioctl(fd, SIOCGIFMTU, &r) && r.ifr_mtu > 0)
		while (m > 256 && m + HEADROOM > (uint32_t)r.ifr_mtu)
			m /= 2;
	close(fd);
	return m;
}

static bool loopback(uint32_t addr)
{
	return ntohl(addr) >> 24 == 127;
}

/* The port's address is the one asked for, else the first of an interface
 * that is up and not loopback. */
static void look_at(const struct ifaddrs *i, bool asked_for)
{
	uint32_t a;

	if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
		return;
	a = ((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr.s_addr;
	if (n_own < MAX_OWN)
		own[n_own++] = a;
	if (!asked_for && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK) &&
	    loopback(port_addr))
		port_addr = a;
	if (a == port_addr && !loopback(a))
		mtu = mtu_of(i->ifa_name);
}

static void choose(void)
{
	const char *text = hca_options()->addr;
	struct ifaddrs *list, *i;
	bool asked_for = text && inet_pton(AF_INET, text, &port_addr) == 1;

	mtu = PKT_MAX_MTU;
	if (!asked_for)
		port_addr = htonl(INADDR_LOOPBACK);
	if (text && !asked_for)
		hca_warn("SOFTHCA_ADDR=%s is not an IPv4 address, taking the first one found",
			 text);
	if (getifaddrs(&list))
		return;
	for (i = list; i; i = i->ifa_next)
		look_at(i, asked_for);
	freeifaddrs(list);
}

static void choose_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose);
}

uint32_t address_port(void)
{
	choose_once();
	return port_addr;
}

bool address_is_own(uint32_t addr)
{
	choose_once();
	for (unsigned i = 0; i < n_own; i++)
		if (own[i] == addr)
			return true;
	return loopback(addr) || addr == port_addr;
}

struct in6_addr dp_gid(void)
{
	struct in6_addr gid = { 0 };

	choose_once();
	gid.s6_addr[10] = gid.s6_addr[11] = 0xff;
	memcpy(&gid.s6_addr[12], &port_addr, 4);
	return gid;
}

uint32_t dp_mtu(void)
{
	choose_once();
	return mtu;
}
