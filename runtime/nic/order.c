// SPDX-License-Identifier: BSD-3-Clause
/* The order in which WRITEs of one queue pair are placed (docs/adr/0012-order-on-every-fabric.md). Where the network
 * routes adaptively firmware sets queue pairs to OOO_RW by itself (QPC.dp_ordering). A device with dp_ordering_force
 * can be told to keep the order; what another one does, a queue pair that has come to RTR shows. All PEs know of each
 * other, by their addresses, and take the weaker. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/nic/address.h"
#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

#define RELAXED_COSTS                                                                                      \
	"signals and p go as atomics, a fence has the queue wait for what is before it (docs/perf/order.md)"

bool gdri_nic_order_asks(const struct gdri_nic *nic)
{
	return nic->caps.order_force &&
	       (nic->opt.order == GDRI_ORDER_AUTO || nic->opt.order == GDRI_ORDER_STRICT);
}

static void order_say(struct gdri_nic *nic, bool relaxed, const char *why)
{
	nic->order = relaxed ? GDRI_NIC_ORDER_RELAXED : GDRI_NIC_ORDER_KEPT;
	snprintf(nic->order_text, sizeof(nic->order_text), "WRITEs of a queue are placed in %s: %s%s%s",
		 relaxed ? "any order" : "their order", why, relaxed ? "; " : "", relaxed ? RELAXED_COSTS : "");
}

static int order_is_relaxed(struct gdri_nic *nic, const char *why, const char *what_to_do)
{
	order_say(nic, true, why);
	if (nic->opt.order != GDRI_ORDER_STRICT)
		return 0;
	return gdri_fail(-GDR_ENOTSUP, "%s: GDR_ORDER=strict, but WRITEs are placed in any order: %s: %s", nic->name,
			 why, what_to_do);
}

/* The first queue pair goes to RTR, connected to itself, and back. */
static int order_look(struct gdri_nic *nic, bool *relaxed)
{
	struct gdri_nic_address *own = calloc(1, nic->net.address_bytes);
	struct gdri_nic_route route = {.remote = own, .mtu = nic->mtu};
	int ret;

	if (!own)
		return gdri_nic_memory_failed(nic->name, "the address block", nic->net.address_bytes, ENOMEM);
	gdri_nic_address(&nic->net, own);
	ret = gdri_nic_resolve_mac(nic, -1, &route);
	if (!ret)
		ret = gdri_nic_qp_probe(nic, 0, &route, relaxed);
	free(own);
	return ret;
}

static int order_found(struct gdri_nic *nic)
{
	bool relaxed = false;
	int ret = order_look(nic, &relaxed);

	if (ret)
		return ret;
	if (relaxed)
		return order_is_relaxed(nic,
					"the network routes adaptively, and the device cannot be told to keep the "
					"order (its capability dp_ordering_force is 0)",
					"switch adaptive routing off for this service level, see GDR_SERVICE_LEVEL, or "
					"set GDR_ORDER=auto");
	order_say(nic, false, "the device has set its queue pairs so");
	return 0;
}

int gdri_nic_order_find(struct gdri_nic *nic)
{
	int ret = 0;

	if (nic->opt.order == GDRI_ORDER_RELAXED)
		order_say(nic, true, "GDR_ORDER=relaxed");
	else if (nic->opt.order == GDRI_ORDER_ASSUMED)
		order_say(nic, false, "GDR_ORDER=assumed, nobody has looked");
	else if (nic->caps.relaxed_only)
		ret = order_is_relaxed(nic, "its memory keys have relaxed order alone",
				       "that is the device's, and nothing changes it: set GDR_ORDER=auto");
	else if (gdri_nic_order_asks(nic))
		order_say(nic, false, "the device was told to keep it");
	else if (!nic->caps.ooo)
		order_say(nic, false, "the device knows no other");
	else
		ret = order_found(nic);
	return ret;
}

void gdri_nic_order_set(const struct gdri_nic *nic, void *qpc)
{
	gdri_prm_set(qpc, PRM_QPC_DP_ORDERING_0, 0);
	gdri_prm_set(qpc, PRM_QPC_DP_ORDERING_1, 0);
	gdri_prm_set(qpc, PRM_QPC_DP_ORDERING_FORCE, gdri_nic_order_asks(nic));
}

int gdri_nic_order_agree(struct gdri_nic *nic, const void *addresses)
{
	int weak = -1;

	for (int i = nic->layout.n_pes; i-- > 0;)
		if (gdri_nic_address_of(addresses, nic->net.address_bytes, i)->order == GDRI_NIC_ORDER_RELAXED)
			weak = i;
	nic->net.relaxed = weak >= 0;
	if (weak >= 0 && nic->opt.order == GDRI_ORDER_STRICT)
		return gdri_fail(-GDR_EMISMATCH,
				 "%s: GDR_ORDER=strict, but for PE %d WRITEs are placed in any order: see its output, "
				 "and set GDR_ORDER the same on all",
				 nic->name, weak);
	if (weak >= 0 && nic->order != GDRI_NIC_ORDER_RELAXED)
		snprintf(nic->order_text, sizeof(nic->order_text),
			 "WRITEs of a queue are placed in any order: PE %d says so; %s", weak, RELAXED_COSTS);
	gdri_info("%s: %s", nic->name, nic->order_text);
	return 0;
}
