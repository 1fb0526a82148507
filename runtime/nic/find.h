/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for a device and port. */
#ifndef GDRI_NIC_FIND_H
#define GDRI_NIC_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "runtime/net/net.h"
#include "runtime/path/topo.h"

struct gdri_nic_found {
	struct ibv_context *ctx; /* open for DEVX; the caller's */
	char name[64];
	uint8_t port;
	struct ibv_port_attr attr;
	enum gdri_topo_distance distance; /* to `near`; unknown without one */
	int n_ports; /* usable ports that were looked at */
};

/* Opens the device that GDR_NIC (`wanted`: "", "mlx5_0", "mlx5_0:1") allows, whose port is
 * active and nearest to the PCI device `near` (a sysfs path, or NULL). 0 or -GDR_E*, logged. */
int gdri_nic_find(const char *wanted, const char *near, unsigned turn, struct gdri_nic_found *out);

/* Whether this machine has such a device at all, usable or not, or GDR_NIC names one. */
bool gdri_nic_present(const struct gdri_net_how *how);

/* Does "mlx5_0:1" or "mlx5_0" or "" name this device and port? port 0: any port of it. */
bool gdri_nic_wanted(const char *wanted, const char *device, unsigned port);

#endif
