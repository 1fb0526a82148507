// SPDX-License-Identifier: BSD-3-Clause
/* Where the proxy runs, over a sysfs tree in a temporary folder: two NUMA nodes of four cores with two threads each
 * (CPU n + 8 is the second one of n), a NIC at the second node. */
#define _GNU_SOURCE /* CPU_SET */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/parse.h"
#include "runtime/ofi/place.h"

static char root[64];

static void put(const char *path, const char *text)
{
	char cmd[600];

	snprintf(cmd, sizeof(cmd), "mkdir -p $(dirname %s/sys/%s) && echo '%s' >%s/sys/%s", root, path, text, root,
		 path);
	assert_int_equal(system(cmd), 0);
}

static int setup(void **state)
{
	char path[100], text[16], cmd[600];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/gdr-place-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	for (int i = 0; i < 16; i++) {
		snprintf(path, sizeof(path), "devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
		snprintf(text, sizeof(text), "%d,%d", i % 8, i % 8 + 8);
		put(path, text);
	}
	put("devices/system/node/node0/cpulist", "0-3,8-11");
	put("devices/system/node/node1/cpulist", "4-7,12-15");
	put("devices/system/node/node2/cpulist", ""); /* memory alone */
	put("devices/pci0000:80/0000:80:01.0/0000:81:00.1/numa_node", "1");
	put("devices/pci0000:00/0000:01:00.0/numa_node", "-1");
	snprintf(cmd, sizeof(cmd),
		 "cd %s/sys && mkdir -p bus/pci/devices class/net/eth1 class/net/eth0 class/net/lo "
		 "class/infiniband/x0 && "
		 "ln -s ../../../devices/pci0000:80/0000:80:01.0/0000:81:00.1 bus/pci/devices/ && "
		 "ln -s ../../../devices/pci0000:80/0000:80:01.0/0000:81:00.1 class/net/eth1/device && "
		 "ln -s ../../../devices/pci0000:80/0000:80:01.0/0000:81:00.1 class/infiniband/x0/device && "
		 "ln -s ../../../devices/pci0000:00/0000:01:00.0 class/net/eth0/device", root);
	return system(cmd);
}

static int teardown(void **state)
{
	char cmd[100];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	return system(cmd);
}

static int node_of(const char *domain, struct fi_bus_attr *bus)
{
	struct fi_domain_attr d = {.name = (char *)(uintptr_t)domain};
	struct fid_nic nic = {.bus_attr = bus};
	struct fi_info info = {.domain_attr = &d, .nic = bus ? &nic : NULL};

	return gdri_ofi_place_node(root, &info);
}

static void the_node_of_a_domain(void **state)
{
	struct fi_bus_attr bus = {.bus_type = FI_BUS_PCI, .attr.pci = {0, 0x81, 0, 1}};
	struct fi_bus_attr none = {.bus_type = FI_BUS_UNKNOWN};

	(void)state;
	assert_int_equal(node_of("what-rdm", &bus), 1);
	assert_int_equal(node_of("what-rdm", &none), -1);
	assert_int_equal(node_of("eth1", &none), 1);
	assert_int_equal(node_of("eth1", NULL), 1);
	assert_int_equal(node_of("x0", NULL), 1);
	assert_int_equal(node_of("eth0", NULL), -1); /* firmware that describes no nodes */
	assert_int_equal(node_of("lo", NULL), -1);
	assert_int_equal(node_of("shm", NULL), -1);
	assert_int_equal(node_of(NULL, NULL), -1);
	bus.attr.pci.bus_id = 0x99;
	assert_int_equal(node_of("eth1", &bus), 1);
}

static void the_choice(void **state)
{
	static const struct {
		const char *option, *allowed, *pinned;
		int node;
		const char *cpus, *text;
	} rows[] = {
		{"auto", "0-15", NULL, -1, "0-15", "CPUs 0-15"},
		{"auto", "0-15", "0", -1, "1-7,9-15", "CPUs 1-7,9-15, off 1 of pinned threads"},
		{"auto", "0-15", "4-5", 1, "6-7,14-15", "CPUs 6-7,14-15, off 2 of pinned threads, near NUMA node 1"},
		{"auto", "0-15", "4-7", 1, "0-3,8-11", "CPUs 0-3,8-11, off 4 of pinned threads"}, /* no core is left */
		{"auto", "0,8", "0", -1, "8", "CPUs 8, off 1 of pinned threads"}, /* beside it in its core */
		{"auto", "0-7", "0-7", 1, "4-7", "CPUs 4-7, all of which have pinned threads, near NUMA node 1"},
		{"auto", "3", "3", 1, "3", "CPUs 3, all of which have pinned threads"}, /* others' of the node */
		{"auto", "0-15", NULL, 2, "0-15", "CPUs 0-15"},
		{"auto", "0-15", NULL, 3, "0-15", "CPUs 0-15"},
		{"any", "0-15", "0", 1, NULL, "the CPUs of who calls gdr_init"},
		{"4,6-7", "0-3", "0", 0, "4,6-7", "CPUs 4,6-7, by GDR_PROXY_CPUS"},
	};
	struct gdri_ofi_place place;
	struct gdri_ofi_cpus cpus;
	cpu_set_t set;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(gdri_parse_cpus(rows[i].allowed, &cpus.allowed));
		CPU_ZERO(&cpus.pinned);
		assert_true(!rows[i].pinned || gdri_parse_cpus(rows[i].pinned, &cpus.pinned));
		gdri_ofi_place_choose(root, rows[i].option, &cpus, rows[i].node, &place);
		assert_string_equal(place.text, rows[i].text);
		assert_int_equal(place.set, rows[i].cpus != NULL);
		assert_int_equal(place.demanded, strspn(rows[i].option, "0123456789") != 0);
		assert_true(!rows[i].cpus || (gdri_parse_cpus(rows[i].cpus, &set) && CPU_EQUAL(&set, &place.cpus)));
	}
	CPU_ZERO(&cpus.allowed); /* the kernel did not say */
	gdri_ofi_place_choose(root, "auto", &cpus, 1, &place);
	assert_false(place.set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_node_of_a_domain),
		cmocka_unit_test(the_choice),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
