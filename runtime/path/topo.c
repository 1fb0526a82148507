// SPDX-License-Identifier: BSD-3-Clause
/* Distance between PCI devices by the components of their sysfs paths. A path
 * reads host bridge / root port / (switch upstream / switch downstream)* /
 * device, so two devices meet at their last common component:
 *
 *	none			different host bridges: NODE or SYS by numa_node
 *	the host bridge		PHB
 *	a root port or a	PIX, when below it at most one downstream port and
 *	switch's upstream port	the device are left on each side; else PXB */
#include "runtime/path/topo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The part of a resolved path that begins with "pciDDDD:BB". */
static const char *pci_part(const char *path)
{
	const char *p = path;

	while ((p = strstr(p, "/pci")) != NULL) {
		p++;
		if (strspn(p + 3, "0123456789abcdefABCDEF") >= 4)
			return p;
	}
	return NULL;
}

static int read_int(const char *dir, const char *name, int fallback)
{
	char path[PATH_MAX];
	int value;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return fallback;
	f = fopen(path, "r");
	if (!f)
		return fallback;
	if (fscanf(f, "%d", &value) != 1)
		value = fallback;
	fclose(f);
	return value;
}

void gdri_topo_locate(const char *root, const char *link, struct gdri_topo_place *out)
{
	char path[PATH_MAX], real[PATH_MAX];
	const char *pci;

	out->path[0] = '\0';
	out->numa = -1;
	if (snprintf(path, sizeof(path), "%s%s", root, link) >= (int)sizeof(path))
		return;
	if (!realpath(path, real))
		return;
	out->numa = read_int(real, "numa_node", -1);
	pci = pci_part(real);
	if (!pci || strlen(pci) >= sizeof(out->path))
		return;
	memcpy(out->path, pci, strlen(pci) + 1);
}

static int topo_components(const char *path)
{
	int n = path[0] != '\0';

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* Number of leading components that both paths have. */
static int common_components(const char *a, const char *b)
{
	int n = 0;

	while (*a && *a == *b) {
		n += *a == '/';
		a++;
		b++;
	}
	return n + ((*a == '\0' || *a == '/') && (*b == '\0' || *b == '/'));
}

enum gdri_topo_distance gdri_topo_between(const struct gdri_topo_place *a,
					  const struct gdri_topo_place *b)
{
	int shared, rest_a, rest_b;

	if (!a->path[0] || !b->path[0])
		return GDRI_TOPO_UNKNOWN;
	shared = common_components(a->path, b->path);
	if (shared == 0) /* numa -1 on both: firmware that describes no nodes, so there is one */
		return a->numa == b->numa ? GDRI_TOPO_NODE : GDRI_TOPO_SYS;
	if (shared == 1)
		return GDRI_TOPO_PHB;
	rest_a = topo_components(a->path) - shared;
	rest_b = topo_components(b->path) - shared;
	return rest_a <= 2 && rest_b <= 2 ? GDRI_TOPO_PIX : GDRI_TOPO_PXB;
}

int gdri_topo_choose(const struct gdri_topo_place *near, const struct gdri_topo_place *ports, int n,
		     unsigned turn, enum gdri_topo_distance *distance)
{
	enum gdri_topo_distance d, best = GDRI_TOPO_UNKNOWN;
	unsigned equals = 0, skip;

	for (int i = 0; i < n; i++) {
		d = near ? gdri_topo_between(near, &ports[i]) : GDRI_TOPO_UNKNOWN;
		if (d < best) {
			best = d;
			equals = 0;
		}
		equals += d == best;
	}
	*distance = best;
	skip = turn % equals;
	for (int i = 0; i < n; i++) {
		d = near ? gdri_topo_between(near, &ports[i]) : GDRI_TOPO_UNKNOWN;
		if (d == best && skip-- == 0)
			return i;
	}
	return 0; /* not reached: `equals` of them exist */
}

const char *gdri_topo_name(enum gdri_topo_distance d)
{
	static const char *const names[] = {"PIX", "PXB", "PHB", "NODE", "SYS", "unknown"};

	return (unsigned)d < sizeof(names) / sizeof(names[0]) ? names[d] : "unknown";
}
