// SPDX-License-Identifier: BSD-3-Clause
/* Reads the capability groups and refuses a device that the device code would
 * misread, naming the capability as the PRM does. */
#include "runtime/nic/caps.h"

#include <stdio.h>

#include <gdr/status.h>

#include "runtime/nic/prm.h"

/* Largest WQE that device code builds: 19 segments of 16 bytes (a warp's scalars in line). */
#define WQE_BYTES_NEEDED 304u

/* atomic_operations: compare-swap, fetch-add, and both masked */
#define ATOMICS_NEEDED 0xfu
/* atomic_size_qp: bit n stands for 2^n bytes */
#define ATOMIC_SIZES_NEEDED (4u | 8u)

unsigned gdri_log2_floor(unsigned n)
{
	return n ? 31u - (unsigned)__builtin_clz(n) : 0;
}

static unsigned caps_field(const void *out, unsigned off, unsigned width)
{
	return (unsigned)gdri_prm_get((const uint8_t *)out + PRM_QUERY_HCA_CAP_OUT_CAP / 8, off,
				      width);
}

void gdri_nic_caps_parse(struct gdri_nic_caps *caps, const void *general, const void *atomic,
			 const void *roce)
{
	caps->log_max_qp_sz = caps_field(general, PRM_GENERAL_LOG_MAX_QP_SZ);
	caps->log_max_cq_sz = caps_field(general, PRM_GENERAL_LOG_MAX_CQ_SZ);
	caps->log_max_msg = caps_field(general, PRM_GENERAL_LOG_MAX_MSG);
	caps->cqe_version = caps_field(general, PRM_GENERAL_CQE_VERSION);
	caps->max_wqe_sz_sq = caps_field(general, PRM_GENERAL_MAX_WQE_SZ_SQ);
	caps->relaxed = caps_field(general, PRM_GENERAL_RELAXED);
	caps->ooo = caps_field(general, PRM_GENERAL_OOO_RW_RC) || caps_field(general, PRM_GENERAL_OOO_ALL_RC);
	caps->ece = caps_field(general, PRM_GENERAL_ECE);
	caps->cap_2 = caps_field(general, PRM_GENERAL_CAP_2);
	caps->order_force = caps->no_record = false;
	caps->atomic = caps_field(general, PRM_GENERAL_ATOMIC);
	caps->relaxed_only = caps_field(general, PRM_GENERAL_RELAXED_ONLY);
	caps->no_indirect_atomic = caps_field(general, PRM_GENERAL_NO_UMR_ATOMIC);
	if (caps_field(general, PRM_GENERAL_LAG_AFFINITY))
		caps->lag_ports = caps_field(general, PRM_GENERAL_LAG_PORTS);
	caps->log_max_klms = caps_field(general, PRM_GENERAL_LOG_MAX_KLMS);
	caps->operations = caps_field(atomic, PRM_ATOMIC_OPERATIONS);
	caps->size_qp = caps_field(atomic, PRM_ATOMIC_SIZE_QP);
	caps->endian_8b = caps_field(atomic, PRM_ATOMIC_8B_ENDIANNESS);
	if (!roce)
		return;
	caps->loopback = caps_field(roce, PRM_ROCE_FL);
	caps->qp_ts_format = caps_field(roce, PRM_ROCE_QP_TS_FORMAT);
	caps->sport_min = caps_field(roce, PRM_ROCE_MIN_SRC_UDP_PORT);
	caps->sport_max = caps_field(roce, PRM_ROCE_MAX_SRC_UDP_PORT);
}

void gdri_nic_caps_parse_2(struct gdri_nic_caps *caps, const void *general_2)
{
	caps->order_force = caps_field(general_2, PRM_GENERAL_2_ORDER_FORCE);
	caps->no_record = caps_field(general_2, PRM_GENERAL_2_NO_RECORD);
}

int gdri_nic_caps_check(const struct gdri_nic_caps *c, unsigned log_depth, char *why, size_t room)
{
	why[0] = '\0';
	if (c->cqe_version != 1)
		snprintf(why, room, "cqe_version is %u, needs 1", c->cqe_version);
	else if (!c->atomic)
		snprintf(why, room, "atomic is 0: the device does no atomics");
	else if ((c->operations & ATOMICS_NEEDED) != ATOMICS_NEEDED)
		snprintf(why, room,
			 "atomic_operations is 0x%x, needs 0x%x (compare-swap, "
			 "fetch-add, masked compare-swap, masked fetch-add)",
			 c->operations, ATOMICS_NEEDED);
	else if ((c->size_qp & ATOMIC_SIZES_NEEDED) != ATOMIC_SIZES_NEEDED)
		snprintf(why, room, "atomic_size_qp is 0x%x, needs 0x%x (4 and 8 bytes)",
			 c->size_qp, ATOMIC_SIZES_NEEDED);
	else if (c->endian_8b != 1)
		snprintf(why, room, "atomic_req_8B_endianness_mode is %u, needs 1 (host order)",
			 c->endian_8b);
	else if (c->log_max_qp_sz < log_depth)
		snprintf(why, room,
			 "log_max_qp_sz is %u: send queues of at most %u blocks; lower "
			 "GDR_QP_DEPTH",
			 c->log_max_qp_sz, 1u << (c->log_max_qp_sz & 31));
	else if (c->log_max_cq_sz < log_depth)
		snprintf(why, room,
			 "log_max_cq_sz is %u: completion queues of at most %u entries; "
			 "lower GDR_QP_DEPTH",
			 c->log_max_cq_sz, 1u << (c->log_max_cq_sz & 31));
	else if (c->max_wqe_sz_sq < WQE_BYTES_NEEDED)
		snprintf(why, room, "max_wqe_sz_sq is %u bytes, needs %u", c->max_wqe_sz_sq,
			 WQE_BYTES_NEEDED);
	return why[0] ? -GDR_ENOTSUP : 0;
}
