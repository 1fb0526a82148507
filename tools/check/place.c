// SPDX-License-Identifier: BSD-3-Clause
/* Where the NIC is: its PCIe link, its NUMA node, what lies between it and memory, its ports. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "runtime/core/parse.h"
#include "runtime/nic/impl.h"
#include "runtime/path/topo.h"
#include "tools/check/acs.h"
#include "tools/check/check.h"
#include "tools/check/site.h"

#define DEVICE "/sys/class/infiniband/%s/device/"

static void check_link(struct checks *c)
{
	char now[64] = "", most[64] = "";
	const char *name = c->nic->name;
	long long width = site_number(DEVICE "current_link_width", name);
	long long widest = site_number(DEVICE "max_link_width", name);

	if (!site_line(now, sizeof(now), DEVICE "current_link_speed", name) ||
	    !site_line(most, sizeof(most), DEVICE "max_link_speed", name) || width < 0) {
		say(c, LINK, NONE, "sysfs does not say");
		return;
	}
	say(c, LINK, width < widest || strcmp(now, most) ? NOTE : GOOD, "%s x%lld of %s x%lld", now,
	    width, most, widest);
}

/* CPUs of the process that the node has not. */
static int numa_outside(const cpu_set_t *node, const cpu_set_t *set)
{
	cpu_set_t both;

	CPU_AND(&both, node, set);
	return CPU_COUNT(set) - CPU_COUNT(&both);
}

static void check_numa(struct checks *c)
{
	long long node = site_number(DEVICE "numa_node", c->nic->name);
	char online[256] = "0", list[1024] = "";
	cpu_set_t set, here;
	int outside;

	site_line(online, sizeof(online), "/sys/devices/system/node/online");
	if (!strpbrk(online, ",-")) {
		say(c, NUMA, GOOD, "one node");
		return;
	}
	if (node < 0 || sched_getaffinity(0, sizeof(set), &set) ||
	    !site_line(list, sizeof(list), "/sys/devices/system/node/node%lld/cpulist", node) ||
	    !gdri_parse_cpus(list, &here)) {
		say(c, NUMA, NONE, "nodes %s; the firmware does not say on which one the NIC is",
		    online);
		return;
	}
	outside = numa_outside(&here, &set);
	say(c, NUMA, outside ? NOTE : GOOD,
	    "nodes %s, the NIC is on %lld; of %d CPUs of this process %d are on others", online,
	    node, CPU_COUNT(&set), outside);
}

static void check_iommu(struct checks *c)
{
	char type[64];
	int groups = site_entries("/sys/kernel/iommu_groups");

	if (!site_line(type, sizeof(type), DEVICE "iommu_group/type", c->nic->name))
		say(c, IOMMU, GOOD, "the NIC is in no group; %d groups on this machine",
		    groups < 0 ? 0 : groups);
	else
		say(c, IOMMU, strcmp(type, "identity") ? NOTE : GOOD, "the NIC's group is %s",
		    type);
}

static enum acs place_acs(const char *bridge)
{
	char path[128];
	uint8_t config[4096];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.64s/config", bridge);
	f = fopen(path, "r");
	if (f) {
		n = fread(config, 1, sizeof(config), f);
		fclose(f);
	}
	return acs_of(config, n);
}

/* The bridges between host bridge and device: all components but the first and the last. */
static void check_acs(struct checks *c)
{
	struct gdri_topo_place place;
	char link[128], redirects[256] = "", *rest, *part, *next;
	int bridges = 0, unseen = 0;

	snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", c->nic->name);
	gdri_topo_locate("", link, &place);
	strtok_r(place.path, "/", &rest);
	for (part = strtok_r(NULL, "/", &rest); part && (next = strtok_r(NULL, "/", &rest));
	     part = next) {
		enum acs acs = place_acs(part);

		bridges++;
		unseen += acs == ACS_UNSEEN;
		if (acs == ACS_REDIRECTS)
			snprintf(redirects + strlen(redirects),
				 sizeof(redirects) - strlen(redirects), " %s", part);
	}
	if (*redirects)
		say(c, ACS, NOTE, "redirected by%s", redirects);
	else if (unseen)
		say(c, ACS, NONE,
		    "%d of %d bridges cannot be looked into: root sees it, lspci -vvv | grep "
		    "ACSCtl",
		    unseen, bridges);
	else
		say(c, ACS, GOOD, "none of %d bridges redirects", bridges);
}

static void check_lag(struct checks *c)
{
	if (c->nic->lag_ports)
		say(c, LAG, GOOD, "queue pairs take the %u ports of the bond in turn",
		    c->nic->lag_ports);
	else if (strstr(c->nic->name, "bond"))
		say(c, LAG, NOTE, "a bond whose queue pairs do not choose their port");
	else
		say(c, LAG, GOOD, "none that queue pairs could choose a port of");
}

void check_nic_place(struct checks *c)
{
	check_link(c);
	check_numa(c);
	check_iommu(c);
	check_acs(c);
	check_lag(c);
}
