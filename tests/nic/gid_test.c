// SPDX-License-Identifier: BSD-3-Clause
/* Choice of the GID and the P_Key index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/nic/gid.h"

#define V1 GDRI_GID_ROCE_V1
#define V2 GDRI_GID_ROCE_V2
#define IB GDRI_GID_IB

static struct gdri_gid gid(int index, enum gdri_gid_type type, const char *text)
{
	struct gdri_gid g = {index, type, {0}};

	assert_int_equal(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

/* The table that Linux makes for an interface with a link-local, an IPv4 and an IPv6 address: each
 * address as v1 and v2, in the order in which they were configured. */
static int usual(struct gdri_gid *g)
{
	g[0] = gid(0, V1, "fe80::5aa2:e1ff:fe10:2030");
	g[1] = gid(1, V2, "fe80::5aa2:e1ff:fe10:2030");
	g[2] = gid(2, V1, "::ffff:10.1.2.3");
	g[3] = gid(3, V2, "::ffff:10.1.2.3");
	g[4] = gid(4, V1, "2001:db8::7");
	g[5] = gid(5, V2, "2001:db8::7");
	return 6;
}

static void test_preference(void **state)
{
	struct gdri_gid g[8];
	char why[256];
	int n = usual(g);

	(void)state;
	assert_int_equal(gdri_gid_choose(g, n, -1, why, sizeof(why)), 3);
	assert_non_null(strstr(why, "GID 3 (::ffff:10.1.2.3)"));
	assert_non_null(strstr(why, "IPv4"));
	g[3].type = V1; /* no IPv4 as v2: the routable IPv6 */
	assert_int_equal(gdri_gid_choose(g, n, -1, why, sizeof(why)), 5);
	g[3] = gid(3, V2, "::ffff:169.254.7.7"); /* link-local IPv4 is no better than that */
	assert_int_equal(gdri_gid_choose(g, n, -1, why, sizeof(why)), 5);
	g[5].type = V1;
	assert_int_equal(gdri_gid_choose(g, n, -1, why, sizeof(why)), 3);
	g[3].type = V1; /* only fe80:: is left */
	assert_int_equal(gdri_gid_choose(g, n, -1, why, sizeof(why)), 1);
	assert_non_null(strstr(why, "link-local IPv6"));
	g[1].type = V1;
	assert_int_equal(gdri_gid_choose(g, n, -1, why, sizeof(why)), -GDR_ENODEV);
	assert_non_null(strstr(why, "RoCE v2"));
	assert_int_equal(gdri_gid_choose(g, 0, -1, why, sizeof(why)), -GDR_ENODEV);
}

static void test_first_of_equals(void **state)
{
	struct gdri_gid g[2];
	char why[256];

	(void)state;
	g[0] = gid(9, V2, "::ffff:10.0.0.9");
	g[1] = gid(4, V2, "::ffff:10.0.0.4");
	assert_int_equal(gdri_gid_choose(g, 2, -1, why, sizeof(why)), 0);
}

static void test_override(void **state)
{
	struct gdri_gid g[8];
	char why[256];
	int n = usual(g);

	(void)state;
	assert_int_equal(gdri_gid_choose(g, n, 5, why, sizeof(why)), 5);
	assert_non_null(strstr(why, "GDR_GID_INDEX"));
	assert_int_equal(gdri_gid_choose(g, n, 1, why, sizeof(why)), 1);
	assert_int_equal(gdri_gid_choose(g, n, 2, why, sizeof(why)), -GDR_EOPTION);
	assert_non_null(strstr(why, "RoCE v1"));
	assert_int_equal(gdri_gid_choose(g, n, 6, why, sizeof(why)), -GDR_EOPTION);
	assert_non_null(strstr(why, "no GID at that index"));
	g[6] = gid(6, V2, "::");
	assert_int_equal(gdri_gid_choose(g, 7, 6, why, sizeof(why)), -GDR_EOPTION);
	g[6] = gid(6, IB, "fe80::1");
	assert_int_equal(gdri_gid_choose(g, 7, 6, why, sizeof(why)), -GDR_EOPTION);
}

/* A message that does not fit is cut, not written beyond. */
static void test_short_room(void **state)
{
	struct gdri_gid g[8];
	char why[16];
	int n = usual(g);

	(void)state;
	memset(why, 'x', sizeof(why));
	assert_int_equal(gdri_gid_choose(g, n, -1, why, 8), 3);
	assert_int_equal(why[7], 0);
	assert_int_equal(why[8], 'x');
}

static void test_pkey(void **state)
{
	static const uint16_t table[5] = {0xffff, 0x0000, 0x7abc, 0x8abc, 0x1234};
	char why[256];

	(void)state;
	assert_int_equal(gdri_pkey_index(table, 5, 0xffff, why, sizeof(why)), 0);
	assert_int_equal(gdri_pkey_index(table, 5, 0x7fff, why, sizeof(why)), 0);
	assert_int_equal(gdri_pkey_index(table, 5, 0x8abc, why, sizeof(why)), 3);
	assert_int_equal(gdri_pkey_index(table, 5, 0xfabc, why, sizeof(why)), 2);
	assert_int_equal(gdri_pkey_index(table, 5, 0x9234, why, sizeof(why)), 4);
	assert_int_equal(gdri_pkey_index(table, 5, 0x8000, why, sizeof(why)), -GDR_EOPTION);
	assert_int_equal(gdri_pkey_index(table, 5, 0x8077, why, sizeof(why)), -GDR_EOPTION);
	assert_non_null(strstr(why, "0x8077"));
	assert_non_null(strstr(why, "0x7abc"));
	assert_int_equal(gdri_pkey_index(table, 5, 0x8077, why, 8), -GDR_EOPTION);
	assert_int_equal(gdri_pkey_index(table, 0, 0xffff, why, sizeof(why)), -GDR_EOPTION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_preference), cmocka_unit_test(test_first_of_equals),
		cmocka_unit_test(test_override),   cmocka_unit_test(test_short_room),
		cmocka_unit_test(test_pkey),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
