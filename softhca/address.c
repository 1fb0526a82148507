/* SPDX-License-Identifier: BSD-3-Clause */
/* This host's IP addresses: the GID table of the port, which are our own, and
 * what MTU the interface of the port leaves to InfiniBand packets.
 *
 * The table has the addresses of one interface, IPv4 (mapped) ahead of IPv6,
 * each once since every entry is RoCEv2. A kernel driver reserves entry 0 for
 * the link-local GID that the MAC address gives, whether the interface has that
 * address or not; packets can only be sent from an address that it has, so here
 * it comes with the others. Read once: a process keeps its table. */
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

static struct in6_addr own[MAX_OWN];
static unsigned n_own;
static struct in6_addr gids[HCA_GIDS];
static unsigned n_gids;
static char interface[IF_NAMESIZE]; /* empty: loopback alone */
static uint32_t mtu;

static struct in6_addr mapped(uint32_t v4)
{
	struct in6_addr a = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	memcpy(&a.s6_addr[12], &v4, 4);
	return a;
}

bool address_is_v4(const struct in6_addr *a)
{
	return IN6_IS_ADDR_V4MAPPED(a);
}

uint32_t address_v4(const struct in6_addr *a)
{
	uint32_t v4;

	memcpy(&v4, &a->s6_addr[12], 4);
	return v4;
}

bool address_is_loopback(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) || (address_is_v4(a) && a->s6_addr[12] == 127);
}

/* The largest path MTU whose packets fit the interface. */
static uint32_t mtu_of(const char *name)
{
	struct ifreq r = { 0 };
	uint32_t m = PKT_MAX_MTU;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return m;
	memcpy(r.ifr_name, name, strnlen(name, sizeof(r.ifr_name) - 1));
	if (!ioctl(fd, SIOCGIFMTU, &r) && r.ifr_mtu > 0)
		while (m > 256 && m + HEADROOM > (uint32_t)r.ifr_mtu)
			m /= 2;
	close(fd);
	return m;
}

static bool get(const struct ifaddrs *i, struct in6_addr *a)
{
	if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
		*a = mapped(((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr.s_addr);
	else if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6)
		*a = ((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;
	else
		return false;
	return true;
}

static void add_gid(const struct in6_addr *a)
{
	for (unsigned i = 0; i < n_gids; i++)
		if (IN6_ARE_ADDR_EQUAL(&gids[i], a))
			return;
	if (n_gids < HCA_GIDS)
		gids[n_gids++] = *a;
}

/* The interface with the address asked for, else the first that is up and not
 * loopback and has an IPv4 address, else any address. */
static const char *choose_interface(const struct ifaddrs *list, const struct in6_addr *asked_for)
{
	const char *v4 = NULL, *v6 = NULL;
	struct in6_addr a;

	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		bool usable = (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK);

		if (!get(i, &a))
			continue;
		if (asked_for && IN6_ARE_ADDR_EQUAL(asked_for, &a))
			return i->ifa_name;
		if (usable && address_is_v4(&a) && !v4)
			v4 = i->ifa_name;
		if (usable && !v6)
			v6 = i->ifa_name;
	}
	return asked_for ? NULL : v4 ? v4 : v6;
}

/* IPv4 addresses come first in the list, and labels like eth0:1 are theirs. */
static void fill_table(const struct ifaddrs *list, const char *name)
{
	size_t n = strcspn(name, ":");
	struct in6_addr a;

	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (!strncmp(i->ifa_name, name, n) && strcspn(i->ifa_name, ":") == n && get(i, &a))
			add_gid(&a);
	if (n < sizeof(interface))
		memcpy(interface, name, n);
}

static bool parse(const char *text, struct in6_addr *a)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) != 1)
		return inet_pton(AF_INET6, text, a) == 1;
	*a = mapped(v4.s_addr);
	return true;
}

static void choose(void)
{
	const char *text = hca_options()->addr, *name;
	struct in6_addr wanted, lo = mapped(htonl(INADDR_LOOPBACK));
	bool asked_for = text && parse(text, &wanted);
	struct ifaddrs *list = NULL, *i;

	mtu = PKT_MAX_MTU;
	if (text && !asked_for)
		hca_warn("SOFTHCA_ADDR=%s is no IP address, taking the first one found", text);
	if (asked_for)
		add_gid(&wanted);
	if (getifaddrs(&list))
		list = NULL;
	for (i = list; i; i = i->ifa_next)
		if (n_own < MAX_OWN && get(i, &own[n_own]))
			n_own++;
	name = choose_interface(list, asked_for ? &wanted : NULL);
	if (name && !(asked_for && address_is_loopback(&wanted))) {
		fill_table(list, name);
		mtu = mtu_of(interface);
	}
	if (list)
		freeifaddrs(list);
	if (!n_gids)
		add_gid(&lo);
}

static void choose_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose);
}

uint32_t address_scope(void)
{
	choose_once();
	return interface[0] ? if_nametoindex(interface) : 0;
}

bool address_is_own(const struct in6_addr *a)
{
	choose_once();
	for (unsigned i = 0; i < n_own; i++)
		if (IN6_ARE_ADDR_EQUAL(&own[i], a))
			return true;
	return address_is_loopback(a) || IN6_ARE_ADDR_EQUAL(&gids[0], a);
}

const char *dp_interface(void)
{
	choose_once();
	return interface[0] ? interface : "lo";
}

unsigned dp_gid_count(void)
{
	choose_once();
	return n_gids;
}

struct in6_addr dp_gid(unsigned index)
{
	static const struct in6_addr none;

	choose_once();
	return index < n_gids ? gids[index] : none;
}

uint32_t dp_mtu(void)
{
	choose_once();
	return mtu;
}
