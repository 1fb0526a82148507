/* SPDX-License-Identifier: BSD-3-Clause */
/* Distance between PCI devices, read from sysfs, and the choice of a NIC by
 * it. Pure functions over a tree whose root is an argument ("" for the
 * machine's own /sys), so that trees of other machines can be tested. */
#ifndef GDRI_TOPO_H
#define GDRI_TOPO_H

#include <stddef.h>

/* Nearest first; the names are those that nvidia-smi topo -m prints. */
enum gdri_topo_distance {
	GDRI_TOPO_PIX,	   /* at most one PCIe switch between */
	GDRI_TOPO_PXB,	   /* several PCIe switches, no host bridge */
	GDRI_TOPO_PHB,	   /* a PCIe host bridge */
	GDRI_TOPO_NODE,	   /* several host bridges of one NUMA node */
	GDRI_TOPO_SYS,	   /* the link between NUMA nodes */
	GDRI_TOPO_UNKNOWN, /* no PCI path known for one of the two */
};

#define GDRI_TOPO_PATH_MAX 512

struct gdri_topo_place {
	char path[GDRI_TOPO_PATH_MAX]; /* "pci0000:17/0000:17:01.0/0000:18:00.0"; "": unknown */
	int numa;		       /* -1: unknown */
};

/* Finds where `link` (a path below root, such as /sys/class/infiniband/mlx5_0/device or
 * /sys/bus/pci/devices/0000:17:00.0) lies. Never fails: a place that is not found is unknown. */
void gdri_topo_locate(const char *root, const char *link, struct gdri_topo_place *out);

enum gdri_topo_distance gdri_topo_between(const struct gdri_topo_place *a,
					  const struct gdri_topo_place *b);

/* Index of the port for the turn-th user: the nearest ones to `near` (NULL: all are
 * equally near) taken in turn. n >= 1. */
int gdri_topo_choose(const struct gdri_topo_place *near, const struct gdri_topo_place *ports, int n,
		     unsigned turn, enum gdri_topo_distance *distance);

const char *gdri_topo_name(enum gdri_topo_distance d);

#endif
