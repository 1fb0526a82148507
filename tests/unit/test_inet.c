// SPDX-License-Identifier: BSD-3-Clause
/* Addresses of interfaces: which are of one network, and how they rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "runtime/core/inet.h"

static struct gdri_inet at(const char *text, uint8_t prefix)
{
	struct gdri_inet a = {.family = strchr(text, ':') ? 6 : 4, .prefix = prefix};

	assert_int_equal(inet_pton(a.family == 6 ? AF_INET6 : AF_INET, text, a.addr), 1);
	return a;
}

/* What other PEs say is bounded. */
static void prefixes(void **state)
{
	struct gdri_inet a = at("10.0.0.1", 8), b = at("10.9.9.9", 8), c = at("fd00::1", 255);

	(void)state;
	assert_true(gdri_inet_near(&a, &b));
	a.prefix = 15;
	assert_false(gdri_inet_near(&a, &b));
	b = at("10.1.0.1", 0);
	assert_true(gdri_inet_near(&a, &b));
	assert_false(gdri_inet_near(&b, &a)); /* it does not know its network */
	a.prefix = 255;
	assert_false(gdri_inet_near(&a, &b));
	b = c;
	assert_true(gdri_inet_near(&c, &b));
	b.addr[15] = 2;
	assert_false(gdri_inet_near(&c, &b));
	c.prefix = 126;
	assert_true(gdri_inet_near(&c, &b));
	assert_false(gdri_inet_near(&a, &c));
}

static int rank(const char *name, unsigned int flags, const char *address)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	bool six = strchr(address, ':');
	char copy[16];
	struct ifaddrs i = {.ifa_name = copy, .ifa_flags = flags,
			    .ifa_addr = six ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4};

	snprintf(copy, sizeof(copy), "%s", name);
	assert_int_equal(six ? inet_pton(AF_INET6, address, &v6.sin6_addr) : inet_pton(AF_INET, address, &v4.sin_addr),
			 1);
	return gdri_inet_rank(&i);
}

static void ranks(void **state)
{
	const unsigned int up = IFF_UP | IFF_RUNNING;
	/* each lower than the one before */
	const int falls[] = {
		rank("wlan0", up, "10.0.0.1"),		   rank("eth0", up, "fd00::1"),
		rank("docker0", up, "172.17.0.1"),	   rank("br-0123456789ab", up, "fd00::1"),
		rank("lo", up | IFF_LOOPBACK, "127.0.0.1"), rank("lo", up | IFF_LOOPBACK, "::1"),
		rank("eth0", IFF_RUNNING, "10.0.0.1"),
	};

	(void)state;
	for (size_t i = 1; i < sizeof(falls) / sizeof(falls[0]); i++)
		assert_true(falls[i] < falls[i - 1]);
	assert_int_equal(rank("br0", up, "10.0.0.1"), 6);
	assert_int_equal(rank("virbr0", up, "192.168.122.1"), 4);
	assert_int_equal(rank("eth1", IFF_UP, "10.0.0.1"), 4); /* no cable */
	assert_int_equal(rank("eth0", up, "fe80::1"), 0);
}

/* Of this machine, whatever it has beside loopback. */
static void own(void **state)
{
	struct gdri_inet loop = at("127.0.0.1", 8), list[8], one, from;
	int n = gdri_inet_list("", list, 8);

	(void)state;
	assert_in_range(n, 1, 8);
	for (int i = 1; i < n; i++)
		assert_true(list[i].rank <= list[i - 1].rank);
	assert_int_equal(gdri_inet_list("", &one, 1), 1);
	assert_true(gdri_inet_is(&one, &list[0]));
	assert_int_equal(gdri_inet_list("lo", &one, 1), 1);
	assert_true(gdri_inet_is(&one, &loop));
	assert_int_equal(one.prefix, 8);
	assert_int_equal(gdri_inet_list("no interface", &one, 1), 0);
	assert_true(gdri_inet_route(&loop, &from));
	assert_true(gdri_inet_is(&loop, &from));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes),
		cmocka_unit_test(ranks),
		cmocka_unit_test(own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
