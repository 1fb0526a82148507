// SPDX-License-Identifier: BSD-3-Clause
/* Options of enhanced connection establishment (ECE): bits whose meaning is the vendor's (rdma-core names congestion
 * control). CREATE_QP answers with those that the device offers, the address blocks tell all PEs, and INIT2RTR of both
 * ends of a connection asks for what both are offered. NCCL and librdmacm have one end ask for the other's, and the
 * other then for what came of it: with one exchange both know as much. */

#include "runtime/core/log.h"
#include "runtime/nic/address.h"
#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

#define ECE_VERSION   0xf0000000u
#define ECE_VERSION_1 0x10000000u /* libmlx5, UCX: without it CREATE_QP offers nothing */

bool gdri_nic_ece_asks(const struct gdri_nic *nic)
{
	return nic->caps.ece && nic->opt.ece == GDRI_ECE_AUTO;
}

void gdri_nic_ece_ask(const struct gdri_nic *nic, void *create_in)
{
	gdri_prm_set(create_in, PRM_CREATE_QP_ECE, gdri_nic_ece_asks(nic) ? ECE_VERSION_1 : 0);
}

void gdri_nic_ece_offered(struct gdri_nic *nic, int i, const void *create_out)
{
	uint32_t offered = gdri_nic_ece_asks(nic) ? (uint32_t)gdri_prm_get(create_out, PRM_CREATE_QP_OUT_ECE) : 0;

	nic->ece = i ? nic->ece & offered : offered;
}

/* No source says that a bit means one thing in two versions. */
uint32_t gdri_nic_ece_with(const struct gdri_nic *nic, const struct gdri_nic_address *remote)
{
	return (nic->ece ^ remote->ece) & ECE_VERSION ? 0 : nic->ece & remote->ece;
}

void gdri_nic_ece_say(const struct gdri_nic *nic, const void *addresses)
{
	int n = nic->layout.n_pes, all = 0;

	for (int i = 0; i < n; i++)
		all += gdri_nic_ece_with(nic, gdri_nic_address_of(addresses, nic->net.address_bytes, i)) == nic->ece;
	if (nic->ece)
		gdri_info("%s: ECE options 0x%08x are offered, and on with %d of %d PEs%s", nic->name, nic->ece, all, n,
			  all < n ? "; with the others those that both have" : "");
	else
		gdri_info("%s: ECE options are off: %s", nic->name,
			  nic->opt.ece != GDRI_ECE_AUTO ? "GDR_ECE=off" :
			  nic->caps.ece ? "the device offers none" : "the device has none (ece_support is 0)");
}
