// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* cpu_set_t */
#include "runtime/ofi/place.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/parse.h"
#include "runtime/core/text.h"
#include "runtime/path/topo.h"

/* ---- what there is ---- */

static cpu_set_t place_at_load;

/* Before the program pins the thread that calls gdr_init, and with it those that it starts. */
__attribute__((constructor)) static void place_loaded(void)
{
	if (sched_getaffinity(0, sizeof(place_at_load), &place_at_load))
		CPU_ZERO(&place_at_load);
}

void gdri_ofi_place_look(struct gdri_ofi_cpus *cpus)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	cpu_set_t one;
	pid_t thread;

	cpus->allowed = place_at_load;
	CPU_ZERO(&cpus->pinned);
	while (d && (e = readdir(d))) {
		thread = (pid_t)strtol(e->d_name, NULL, 10); /* 0: "." */
		if (thread <= 0 || sched_getaffinity(thread, sizeof(one), &one))
			continue;
		CPU_OR(&cpus->allowed, &cpus->allowed, &one);
		if (CPU_COUNT(&one) == 1)
			CPU_OR(&cpus->pinned, &cpus->pinned, &one);
	}
	if (d)
		closedir(d);
}

static bool place_list(const char *root, const char *dir, int n, const char *file, cpu_set_t *out)
{
	char path[512], line[1024] = "";
	FILE *f;

	CPU_ZERO(out);
	if (snprintf(path, sizeof(path), "%s/sys/devices/system/%s%d/%s", root, dir, n, file) >= (int)sizeof(path))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = 0;
	fclose(f);
	return gdri_parse_cpus(line, out);
}

/* ---- the NIC ---- */

static int place_of(const char *root, const char *link)
{
	struct gdri_topo_place place;

	gdri_topo_locate(root, link, &place);
	return place.numa;
}

int gdri_ofi_place_node(const char *root, const struct fi_info *info)
{
	const struct fi_bus_attr *bus = info->nic ? info->nic->bus_attr : NULL;
	const char *name = info->domain_attr->name;
	static const char *const classes[] = {"net", "infiniband"};
	char link[256];
	int node = -1;

	if (bus && bus->bus_type == FI_BUS_PCI) {
		snprintf(link, sizeof(link), "/sys/bus/pci/devices/%04x:%02x:%02x.%x", bus->attr.pci.domain_id,
			 bus->attr.pci.bus_id, bus->attr.pci.device_id, bus->attr.pci.function_id);
		node = place_of(root, link);
	}
	for (size_t i = 0; node < 0 && name && i < sizeof(classes) / sizeof(classes[0]); i++) {
		snprintf(link, sizeof(link), "/sys/class/%s/%.128s/device", classes[i], name);
		node = place_of(root, link);
	}
	return node;
}

/* ---- the choice ---- */

/* Takes out of *set what is in `out`, if any is left then. */
static bool place_without(cpu_set_t *set, const cpu_set_t *out)
{
	cpu_set_t left;

	CPU_AND(&left, set, out);
	CPU_XOR(&left, set, &left);
	if (!CPU_COUNT(&left) || CPU_EQUAL(&left, set))
		return false;
	*set = left;
	return true;
}

static bool place_within(cpu_set_t *set, const cpu_set_t *in)
{
	cpu_set_t both;

	CPU_AND(&both, set, in);
	if (!CPU_COUNT(&both))
		return false;
	*set = both;
	return true;
}

/* The cores of these CPUs: all their threads. */
static void place_cores(const char *root, const cpu_set_t *of, cpu_set_t *out)
{
	cpu_set_t core;

	*out = *of;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET((size_t)i, of) && place_list(root, "cpu/cpu", i, "topology/thread_siblings_list", &core))
			CPU_OR(out, out, &core);
}

/* "0-3,8" */
static void place_text(struct text *t, const cpu_set_t *set)
{
	const char *comma = "";

	for (size_t first = 0, last; first < CPU_SETSIZE; first = last + 1) {
		last = first;
		if (!CPU_ISSET(first, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
			last++;
		text_add(t, last > first ? "%s%zu-%zu" : "%s%zu", comma, first, last);
		comma = ",";
	}
}

void gdri_ofi_place_choose(const char *root, const char *option, const struct gdri_ofi_cpus *cpus, int node,
			   struct gdri_ofi_place *out)
{
	struct text t = {out->text, sizeof(out->text), 0};
	cpu_set_t cores, near;
	bool off, by_node;

	*out = (struct gdri_ofi_place){.set = true, .cpus = cpus->allowed};
	if (gdri_parse_cpus(option, &out->cpus)) {
		out->demanded = true;
		text_add(&t, "CPUs ");
		place_text(&t, &out->cpus);
		text_add(&t, ", by GDR_PROXY_CPUS");
		return;
	}
	if (!strcmp(option, "any") || !CPU_COUNT(&cpus->allowed)) {
		out->set = false;
		text_add(&t, "the CPUs of who calls gdr_init");
		return;
	}
	place_cores(root, &cpus->pinned, &cores);
	off = place_without(&out->cpus, &cores) || place_without(&out->cpus, &cpus->pinned);
	by_node = node >= 0 && place_list(root, "node/node", node, "cpulist", &near) && place_within(&out->cpus, &near);
	text_add(&t, "CPUs ");
	place_text(&t, &out->cpus);
	if (off)
		text_add(&t, ", off %d of pinned threads", CPU_COUNT(&cpus->pinned));
	else if (CPU_COUNT(&cpus->pinned))
		text_add(&t, ", all of which have pinned threads");
	if (by_node)
		text_add(&t, ", near NUMA node %d", node);
}
