/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PE tells all others about its queues: one block of fixed size in the
 * allgather of init. It holds the queue pair numbers of all its queue pairs:
 * numbers are given by the device in no usable pattern, so they are listed
 * (4 bytes for each peer and slot). Host order; hosts are little-endian. */
#ifndef GDRI_NIC_ADDRESS_H
#define GDRI_NIC_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#include <gdr/macros.h>

#define GDRI_NIC_ADDRESS_MAGIC 0x43494e47u /* "GNIC" */

enum { GDRI_LINK_IB = 1, GDRI_LINK_ETHERNET = 2 }; /* IBV_LINK_LAYER_ */

enum { GDRI_NIC_ORDER_KEPT = 0, GDRI_NIC_ORDER_RELAXED = 1 };

struct gdri_nic_address {
	uint32_t magic;
	uint32_t abi;	/* GDR_ABI_VERSION */
	uint32_t bytes; /* of the whole block */
	uint32_t n_pes, n_slots;
	uint32_t psn; /* first packet sequence number of every send queue; 24 bits */
	uint32_t rkey_data, rkey_sync;
	uint32_t ece; /* options of enhanced connection establishment that all its queue pairs are offered */
	uint16_t lid; /* 0 on RoCE */
	uint16_t pkey;
	uint8_t link_layer;
	uint8_t mtu;	       /* 1..5: 128 << mtu bytes; what the PE is willing to use */
	uint8_t log_responder; /* incoming reads and atomics in flight */
	uint8_t order; /* GDRI_NIC_ORDER_ */
	uint8_t gid[16];
	char device[16]; /* name of the RDMA device, for messages; ends in 0 */
	uint32_t qpn[];	 /* [n_pes * n_slots], in the order of gdri_net_index */
};
GDR_STATIC_ASSERT(sizeof(struct gdri_nic_address) == 76, "no padding in the address block");
GDR_STATIC_ASSERT(offsetof(struct gdri_nic_address, qpn) == 76, "qpn follows at once");

/* Checks the blocks of all PEs, own->bytes each, as received, against `own`: the block that
 * this PE (number pe) sent, from its own memory. On failure -GDR_EVERSION, -GDR_EMISMATCH or
 * -GDR_ELINK, with the reason in `why`. */
int gdri_nic_address_check(const void *blocks, const struct gdri_nic_address *own, int pe,
			   char *why, size_t room);

/* The block of one PE after the check. */
static inline const struct gdri_nic_address *gdri_nic_address_of(const void *blocks, size_t bytes,
								 int pe)
{
	return (const struct gdri_nic_address *)((const uint8_t *)blocks + (size_t)pe * bytes);
}

#endif
