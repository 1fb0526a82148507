// SPDX-License-Identifier: BSD-3-Clause
/* Addresses out, addresses in, and the connection of the mesh. PE i's queue
 * pair (j, slot) and PE j's queue pair (i, slot) are the two ends of one
 * connection; the one to oneself is connected to itself. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/nic/address.h"
#include "runtime/nic/impl.h"

void gdri_nic_address(struct gdri_net *net, void *buf)
{
	const struct gdri_nic *nic = gdri_nic_of(net);
	struct gdri_nic_address *a = buf;

	memset(a, 0, net->address_bytes);
	a->magic = GDRI_NIC_ADDRESS_MAGIC;
	a->abi = GDR_ABI_VERSION;
	a->bytes = (uint32_t)net->address_bytes;
	a->n_pes = (uint32_t)nic->layout.n_pes;
	a->n_slots = (uint32_t)nic->layout.n_slots;
	a->psn = nic->psn;
	a->rkey_data = nic->keys.rkey_data;
	a->rkey_sync = nic->keys.rkey_sync;
	a->ece = nic->ece;
	a->lid = nic->lid;
	a->pkey = nic->pkey;
	a->link_layer = nic->link_layer;
	a->mtu = nic->mtu;
	a->log_responder = (uint8_t)nic->caps.log_responder;
	a->order = nic->order;
	memcpy(a->gid, nic->gid, sizeof(a->gid));
	snprintf(a->device, sizeof(a->device), "%.15s", nic->name);
	for (size_t i = 0; i < nic->layout.n; i++)
		a->qpn[i] = nic->qps[i].qpn;
}

/* Lets the kernel resolve the peer's MAC address (ARP, neighbour discovery, routing): an address
 * handle is the only way to ask for it. */
int gdri_nic_resolve_mac(struct gdri_nic *nic, int peer, struct gdri_nic_route *route)
{
	struct ibv_ah_attr attr = {0};
	struct mlx5dv_obj obj = {0};
	struct mlx5dv_ah dv = {0};
	char what[64];
	int err = 0;

	if (nic->link_layer != GDRI_LINK_ETHERNET)
		return 0;
	if (peer < 0)
		snprintf(what, sizeof(what), "resolving its own MAC address");
	else
		snprintf(what, sizeof(what), "resolving the MAC address of PE %d", peer);
	attr.is_global = 1;
	attr.port_num = nic->port;
	attr.sl = (uint8_t)nic->opt.service_level;
	memcpy(attr.grh.dgid.raw, route->remote->gid, 16);
	attr.grh.sgid_index = nic->gid_index;
	attr.grh.hop_limit = 64;
	attr.grh.traffic_class = (uint8_t)nic->opt.traffic_class;
	obj.ah.in = ibv_create_ah(nic->pd, &attr);
	if (!obj.ah.in)
		return gdri_nic_failed(nic->name, what, errno,
				       "is there a route to its address, and "
				       "does the network interface answer ARP? (ping it)");
	obj.ah.out = &dv;
	err = mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH);
	if (!err)
		memcpy(route->mac, dv.av->rmac, sizeof(route->mac));
	ibv_destroy_ah(obj.ah.in);
	return err ? gdri_nic_failed(nic->name, what, err, "report it") : 0;
}

static int nic_connect_peer(struct gdri_nic *nic, const struct gdri_nic_address *remote, int pe,
			    int peer)
{
	struct gdri_nic_route route = {.remote = remote, .self = peer == pe};
	int slot, ret;

	route.mtu = remote->mtu < nic->mtu ? remote->mtu : nic->mtu;
	ret = gdri_nic_resolve_mac(nic, peer, &route);
	for (slot = 0; slot < nic->layout.n_slots && !ret; slot++)
		ret = gdri_nic_qp_to_rts(nic, gdri_net_index(&nic->layout, peer, slot), &route,
					 remote->qpn[gdri_net_index(&nic->layout, pe, slot)]);
	if (!ret)
		gdri_debug("%s: %d queue pairs to PE %d connected, MTU %u, ECE options 0x%08x", nic->name,
			   nic->layout.n_slots, peer, 128u << route.mtu, gdri_nic_ece_with(nic, remote));
	return ret;
}

static int check_addresses(struct gdri_nic *nic, const void *addresses, int pe)
{
	size_t bytes = nic->net.address_bytes;
	struct gdri_nic_address *own = malloc(bytes);
	char why[320];
	int ret;

	if (!own)
		return gdri_nic_memory_failed(nic->name, "the address block", bytes, ENOMEM);
	gdri_nic_address(&nic->net, own);
	ret = gdri_nic_address_check(addresses, own, pe, why, sizeof(why));
	if (ret)
		gdri_error("%s", why);
	free(own);
	return ret;
}

int gdri_nic_connect(struct gdri_net *net, const void *addresses, int pe, int n_pes, struct gdri_qp *qps)
{
	struct gdri_nic *nic = gdri_nic_of(net);
	const struct gdri_nic_address *remote;
	struct gdri_mr_keys keys = {0};
	int peer, ret;

	if (!nic->qps || n_pes != nic->layout.n_pes || pe < 0 || pe >= n_pes)
		return -GDR_EINVAL;
	ret = check_addresses(nic, addresses, pe);
	if (!ret)
		ret = gdri_nic_order_agree(nic, addresses);
	if (!ret)
		gdri_nic_ece_say(nic, addresses);
	/* Every PE starts at another peer: address resolution is spread. */
	for (int i = 0; i < n_pes && !ret; i++) {
		peer = (pe + i) % n_pes;
		remote = gdri_nic_address_of(addresses, net->address_bytes, peer);
		ret = nic_connect_peer(nic, remote, pe, peer);
		keys.rkey_data = remote->rkey_data;
		keys.rkey_sync = remote->rkey_sync;
		if (!ret)
			gdri_net_set_keys(&nic->layout, peer, &keys, qps);
	}
	return ret;
}
