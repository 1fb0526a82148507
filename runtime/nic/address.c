// SPDX-License-Identifier: BSD-3-Clause
/* Checks of received address blocks: every value that goes into a firmware
 * command or an index is confined here, whoever sent it. */
#include "runtime/nic/address.h"

#include <stdio.h>
#include <string.h>

#include <gdr/status.h>
#include <gdr/version.h>

struct report {
	char *why;
	size_t room;
	int pe, own;
};

#define FAIL(r, code, ...)                                  \
	do {                                                \
		snprintf((r)->why, (r)->room, __VA_ARGS__); \
		return -(code);                             \
	} while (0)

static int check_header(const struct gdri_nic_address *a, const struct gdri_nic_address *own,
			const struct report *r)
{
	if (a->magic != GDRI_NIC_ADDRESS_MAGIC)
		FAIL(r, GDR_EVERSION,
		     "PE %d sent no network address (word 0x%08x): another "
		     "version of the library",
		     r->pe, a->magic);
	if (a->abi != own->abi)
		FAIL(r, GDR_EVERSION,
		     "PE %d has ABI version %u, this PE %d has %u: install one "
		     "version everywhere",
		     r->pe, a->abi, r->own, own->abi);
	if (a->n_slots != own->n_slots)
		FAIL(r, GDR_EMISMATCH,
		     "PE %d has %u queue pairs to each PE, this PE %d has %u: set "
		     "GDR_QPS_PER_PE and GDR_CTX_QUEUES the same on all",
		     r->pe, a->n_slots, r->own, own->n_slots);
	if (a->bytes != own->bytes || a->n_pes != own->n_pes)
		FAIL(r, GDR_EMISMATCH,
		     "PE %d sent an address of %u bytes for %u PEs, expected %u "
		     "bytes for %u PEs",
		     r->pe, a->bytes, a->n_pes, own->bytes, own->n_pes);
	return 0;
}

static int check_port(const struct gdri_nic_address *a, const struct gdri_nic_address *own,
		      const struct report *r)
{
	static const char *const layers[] = {"?", "InfiniBand", "Ethernet (RoCE)"};

	if (a->link_layer != GDRI_LINK_IB && a->link_layer != GDRI_LINK_ETHERNET)
		FAIL(r, GDR_EMISMATCH, "PE %d sent the unknown link layer %u", r->pe,
		     a->link_layer);
	if (a->link_layer != own->link_layer)
		FAIL(r, GDR_ELINK,
		     "PE %d uses %.15s with link layer %s, this PE %d uses %.15s "
		     "with %s: choose ports of one network by GDR_NIC",
		     r->pe, a->device, layers[a->link_layer], r->own, own->device,
		     layers[own->link_layer]);
	if (a->mtu < 1 || a->mtu > 5)
		FAIL(r, GDR_EMISMATCH, "PE %d sent the unknown MTU code %u", r->pe, a->mtu);
	if (a->link_layer == GDRI_LINK_IB && (a->lid == 0 || a->lid >= 0xc000))
		FAIL(r, GDR_ELINK,
		     "PE %d sent LID 0x%04x, which is no unicast LID: is a subnet "
		     "manager running?",
		     r->pe, a->lid);
	if (a->link_layer == GDRI_LINK_IB && memcmp(a->gid, own->gid, 8))
		FAIL(r, GDR_ELINK,
		     "PE %d is in another InfiniBand subnet than this PE %d: routing "
		     "between subnets is not supported",
		     r->pe, r->own);
	if (((a->pkey ^ own->pkey) & 0x7fff) || !((a->pkey | own->pkey) & 0x8000))
		FAIL(r, GDR_ELINK,
		     "PE %d uses P_Key 0x%04x, this PE %d 0x%04x: they cannot "
		     "exchange packets (set GDR_PKEY)",
		     r->pe, a->pkey, r->own, own->pkey);
	return 0;
}

static int address_check_queues(const struct gdri_nic_address *a, const struct report *r)
{
	size_t i, n = (size_t)a->n_pes * a->n_slots;

	if (a->psn >> 24)
		FAIL(r, GDR_EMISMATCH,
		     "PE %d sent the packet sequence number 0x%08x of more than "
		     "24 bits",
		     r->pe, a->psn);
	if (a->log_responder > 7)
		FAIL(r, GDR_EMISMATCH, "PE %d sent 2^%u reads in flight", r->pe, a->log_responder);
	if (a->order > GDRI_NIC_ORDER_RELAXED)
		FAIL(r, GDR_EMISMATCH, "PE %d sent the unknown order of WRITEs %u", r->pe, a->order);
	for (i = 0; i < n; i++) {
		/* 0 and 1 are the management queue pairs, 0xffffff is multicast. */
		if (a->qpn[i] < 2 || a->qpn[i] >= 0xffffff)
			FAIL(r, GDR_EMISMATCH, "PE %d sent 0x%08x as the number of a queue pair",
			     r->pe, a->qpn[i]);
	}
	return 0;
}

int gdri_nic_address_check(const void *blocks, const struct gdri_nic_address *own, int pe,
			   char *why, size_t room)
{
	struct report r = {why, room, 0, pe};
	const struct gdri_nic_address *a;
	int ret;

	for (r.pe = 0; r.pe < (int)own->n_pes; r.pe++) {
		a = gdri_nic_address_of(blocks, own->bytes, r.pe);
		ret = check_header(a, own, &r);
		if (!ret)
			ret = check_port(a, own, &r);
		if (!ret)
			ret = address_check_queues(a, &r);
		if (ret)
			return ret;
	}
	if (memcmp(gdri_nic_address_of(blocks, own->bytes, pe), own, own->bytes))
		FAIL(&r, GDR_EMISMATCH,
		     "PE %d received its own network address changed: the "
		     "launcher's exchange mixes up PEs",
		     pe);
	return 0;
}
