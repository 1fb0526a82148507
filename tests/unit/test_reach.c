// SPDX-License-Identifier: BSD-3-Clause
/* By which address PEs meet, of those that they tell each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "bootstrap/boot.h"
#include "runtime/path/reach.h"

/* Of gdri_reach_look, which is not under test here. */
bool gdri_boot_hub(const struct gdr_bootstrap *b, struct gdri_inet *hub)
{
	(void)b;
	(void)hub;
	return false;
}

static struct gdri_inet at(const char *text, uint8_t prefix, uint8_t rank, uint32_t mbits)
{
	struct gdri_inet a = {.family = strchr(text, ':') ? 6 : 4, .prefix = prefix, .rank = rank, .mbits = mbits};

	assert_int_equal(inet_pton(a.family == 6 ? AF_INET6 : AF_INET, text, a.addr), 1);
	return a;
}

/* Ranks: of an interface as any, of a bridge, of loopback. */
#define ANY	6
#define BRIDGE	4
#define DOCKER	at("172.17.0.1", 16, BRIDGE, 0)
#define LOOP	at("127.0.0.1", 8, 2, 0)

/* What the kernel says, of any address, and how often it was asked. */
static struct gdri_inet way;
static int asked;
static bool route(const struct gdri_inet *to, struct gdri_inet *from)
{
	assert_true(to->family);
	asked++;
	*from = way;
	return way.family;
}

static void meets(const struct gdri_reach *all, int n, int pe, const char *text)
{
	struct gdri_inet from = gdri_reach_from(all, n, pe, route), want = {0};

	if (text)
		want = at(text, 0, 0, 0);
	assert_int_equal(from.family, want.family);
	assert_memory_equal(from.addr, want.addr, sizeof(want.addr));
}

static void one_machine(void **state)
{
	struct gdri_reach pes[2] = {{.at = {at("10.0.0.1", 24, ANY, 0), DOCKER, LOOP}}};
	struct gdri_reach bridge[2] = {{.at = {DOCKER, LOOP}}}, none[2] = {0};

	(void)state;
	pes[1] = pes[0];
	bridge[1] = bridge[0];
	for (int i = 0; i < 2; i++) {
		meets(pes, 2, i, "10.0.0.1");
		meets(bridge, 2, i, "172.17.0.1");
		meets(none, 2, i, NULL);
	}
	meets(pes, 1, 0, "10.0.0.1");
}

/* The bridge has a higher rank than it should, and the VPN comes first: neither leads to the other machine. */
static void one_network(void **state)
{
	struct gdri_reach pes[3] = {
		{.at = {at("172.18.0.1", 16, ANY, 10000), at("10.8.1.1", 24, ANY, 10000), at("10.0.0.1", 24, ANY, 0)}},
		{.at = {at("10.0.0.2", 24, ANY, 0), at("172.18.0.1", 16, ANY, 10000), at("10.8.2.1", 24, ANY, 10000)}},
	};

	(void)state;
	pes[2] = pes[1];
	asked = 0;
	meets(pes, 3, 0, "10.0.0.1");
	meets(pes, 3, 1, "10.0.0.2");
	meets(pes, 3, 2, "10.0.0.2");
	assert_int_equal(asked, 0);
}

/* The fastest, in whatever order each machine has them; not one that the third machine does not have. */
static void several_networks(void **state)
{
	struct gdri_reach pes[3] = {
		{.at = {at("10.0.0.1", 24, ANY, 1000), at("10.1.0.1", 24, ANY, 100000), DOCKER}},
		{.at = {at("10.1.0.2", 24, ANY, 100000), at("10.0.0.2", 24, ANY, 1000), DOCKER}},
		{.at = {at("10.0.0.3", 24, ANY, 1000), DOCKER}},
	};

	(void)state;
	meets(pes, 2, 0, "10.1.0.1");
	meets(pes, 2, 1, "10.1.0.2");
	meets(pes, 3, 0, "10.0.0.1");
	meets(pes, 3, 1, "10.0.0.2");
	meets(pes, 3, 2, "10.0.0.3");
}

/* A VPN leads to the hub, and both have a network at home whose addresses look as if it were one. */
static void hub(void **state)
{
	struct gdri_reach pes[3] = {
		{.at = {at("192.168.1.5", 24, ANY, 0), at("100.64.0.5", 32, ANY, 0)}},
		{.at = {at("192.168.1.6", 24, ANY, 0), at("100.64.0.6", 32, ANY, 0)}, .hub = at("100.64.0.5", 0, 0, 0)},
	};

	(void)state;
	way = at("100.64.0.6", 0, 0, 0);
	meets(pes, 2, 0, "100.64.0.5");
	meets(pes, 2, 1, "100.64.0.6");
	/* the hub is PE 2's, PE 1 as before */
	pes[2] = pes[0];
	pes[0] = pes[1];
	way = at("100.64.0.6", 0, 0, 0);
	meets(pes, 3, 0, "100.64.0.6");
	meets(pes, 3, 2, "100.64.0.5");
	/* an interface that says to be faster than one that does not is none */
	pes[2].at[0].mbits = 1000;
	meets(pes, 3, 2, "100.64.0.5");
	pes[2].at[1].mbits = 100;
	meets(pes, 3, 2, "192.168.1.5");
	meets(pes, 3, 0, "192.168.1.6");
	pes[2].at[0].rank = BRIDGE;
	meets(pes, 3, 2, "100.64.0.5");
}

/* Networks that are joined by routers. */
static void routed(void **state)
{
	struct gdri_reach pes[3] = {
		{.at = {at("10.8.1.1", 24, ANY, 0), at("10.0.1.1", 24, ANY, 0), DOCKER}},
		{.at = {at("10.8.2.1", 24, ANY, 0), at("10.0.2.1", 24, ANY, 0), DOCKER}},
	};

	(void)state;
	way = at("10.0.1.1", 0, 0, 0);
	meets(pes, 2, 0, "10.0.1.1");
	way = at("10.0.2.1", 0, 0, 0);
	meets(pes, 2, 1, "10.0.2.1");
	asked = 0;
	way = (struct gdri_inet){0};
	meets(pes, 2, 1, "10.8.2.1"); /* as nothing is known */
	assert_int_equal(asked, 2);   /* of the bridge nobody asks */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_machine), cmocka_unit_test(one_network), cmocka_unit_test(several_networks),
		cmocka_unit_test(hub),	       cmocka_unit_test(routed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
