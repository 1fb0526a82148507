/* SPDX-License-Identifier: BSD-3-Clause */
/* This host's IP addresses: the GID table of the port, which are our own, and
 * what MTU the interface of the port leaves to InfiniBand packets.
 *
 * Each device has a table of the addresses of one interface, IPv4 (mapped) ahead of IPv6,
 * each once since every entry is RoCEv2. Where there are fewer interfaces than devices, the
 * others have one loopback address each, which reaches this host alone. A kernel driver reserves entry 0 for
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

#include "softhca/engine/dp.h"
#include "softhca/tools/log.h"
#include "softhca/tools/options.h"

enum { MAX_OWN = 64 };

static struct in6_addr own[MAX_OWN];
static unsigned n_own;

static struct table {
	struct in6_addr gids[HCA_GIDS];
	unsigned n;
	char interface[IF_NAMESIZE]; /* empty: loopback alone */
	uint32_t mtu;
} tables[HCA_MAX_DEVICES];

struct in6_addr address_from_v4(uint32_t v4)
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
		while (m > 256 && m + PKT_HEADROOM > (uint32_t)r.ifr_mtu)
			m /= 2;
	close(fd);
	return m;
}

static bool address_of_interface(const struct ifaddrs *i, struct in6_addr *a)
{
	if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
		*a = address_from_v4(((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr.s_addr);
	else if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6)
		*a = ((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;
	else
		return false;
	return true;
}

static void add_gid(struct table *t, const struct in6_addr *a)
{
	for (unsigned i = 0; i < t->n; i++)
		if (IN6_ARE_ADDR_EQUAL(&t->gids[i], a))
			return;
	if (t->n < HCA_GIDS)
		t->gids[t->n++] = *a;
}

/* The interface with the address asked for, else the first that is up and not
 * loopback and has an IPv4 address, else any address. */
static const char *choose_interface(const struct ifaddrs *list, const struct in6_addr *asked_for)
{
	const char *v4 = NULL, *v6 = NULL;
	struct in6_addr a;

	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		bool usable = (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK);

		if (!address_of_interface(i, &a))
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

static bool same_interface(const char *label, const char *name)
{
	size_t n = strcspn(name, ":");

	return !strncmp(label, name, n) && strcspn(label, ":") == n;
}

/* IPv4 addresses come first in the list, and labels like eth0:1 are theirs. What is link-local
 * means something on the first device's interface alone (address_scope). */
static void fill_table(struct table *t, const struct ifaddrs *list, const char *name)
{
	size_t n = strcspn(name, ":");
	struct in6_addr a;

	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (same_interface(i->ifa_name, name) && address_of_interface(i, &a) &&
		    (t == tables || !IN6_IS_ADDR_LINKLOCAL(&a)))
			add_gid(t, &a);
	if (t->n && n < sizeof(t->interface)) {
		memcpy(t->interface, name, n);
		t->mtu = mtu_of(t->interface);
	}
}

static bool is_taken(const char *name)
{
	for (unsigned d = 0; d < HCA_MAX_DEVICES; d++)
		if (tables[d].interface[0] && same_interface(name, tables[d].interface))
			return true;
	return false;
}

/* The other interfaces, in their order, those with an IPv4 address ahead. */
static void fill_other_tables(const struct ifaddrs *list)
{
	unsigned d = 1;
	struct in6_addr a;

	for (int v4 = 1; v4 >= 0; v4--) {
		for (const struct ifaddrs *i = list; i && d < HCA_MAX_DEVICES; i = i->ifa_next) {
			if (!(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK || !address_of_interface(i, &a) ||
			    (v4 && !address_is_v4(&a)) || is_taken(i->ifa_name))
				continue;
			fill_table(&tables[d], list, i->ifa_name);
			d += tables[d].n != 0;
		}
	}
}

static bool address_parse(const char *text, struct in6_addr *a)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) != 1)
		return inet_pton(AF_INET6, text, a) == 1;
	*a = address_from_v4(v4.s_addr);
	return true;
}

static void address_choose(void)
{
	const char *text = hca_options()->addr, *name;
	struct in6_addr wanted;
	bool asked_for = text && address_parse(text, &wanted), alone;
	struct ifaddrs *list = NULL, *i;

	if (asked_for)
		add_gid(tables, &wanted);
	if (getifaddrs(&list))
		list = NULL;
	for (i = list; i; i = i->ifa_next)
		if (n_own < MAX_OWN && address_of_interface(i, &own[n_own]))
			n_own++;
	name = choose_interface(list, asked_for ? &wanted : NULL);
	alone = asked_for && address_is_loopback(&wanted);
	if (name && !alone)
		fill_table(tables, list, name);
	if (!alone)
		fill_other_tables(list);
	if (list)
		freeifaddrs(list);
	for (uint32_t d = 0; d < HCA_MAX_DEVICES; d++) {
		struct in6_addr lo = address_from_v4(htonl(INADDR_LOOPBACK + d));

		if (!tables[d].mtu)
			tables[d].mtu = PKT_MAX_MTU;
		if (!tables[d].n)
			add_gid(&tables[d], &lo);
	}
}

static void choose_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, address_choose);
}

uint32_t address_scope(void)
{
	choose_once();
	return tables[0].interface[0] ? if_nametoindex(tables[0].interface) : 0;
}

bool address_is_own(const struct in6_addr *a)
{
	choose_once();
	for (unsigned i = 0; i < n_own; i++)
		if (IN6_ARE_ADDR_EQUAL(&own[i], a))
			return true;
	return address_is_loopback(a) || IN6_ARE_ADDR_EQUAL(&tables[0].gids[0], a);
}

const char *dp_interface(unsigned device)
{
	choose_once();
	return tables[device].interface[0] ? tables[device].interface : "lo";
}

unsigned dp_gid_count(unsigned device)
{
	choose_once();
	return tables[device].n;
}

struct in6_addr dp_gid(unsigned index)
{
	static const struct in6_addr none;

	choose_once();
	return index < HCA_PORTS ? tables[index / HCA_GIDS].gids[index % HCA_GIDS] : none;
}

uint32_t dp_mtu(unsigned device)
{
	choose_once();
	return tables[device].mtu;
}
