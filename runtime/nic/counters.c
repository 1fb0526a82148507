// SPDX-License-Identifier: BSD-3-Clause
/* The counter set of this PE's queue pairs. Firmware counts there what the network did to them, and nothing else tells:
 * queue pairs of DEVX that are created without one are in none of the port's counters in sysfs either. */
#include <inttypes.h>

#include "runtime/core/log.h"
#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

/* Devices have few: without one all works, and less is known. */
void gdri_nic_counters_create(struct gdri_nic *nic)
{
	uint8_t in[PRM_ALLOC_Q_COUNTER_IN_BYTES] = {0}, out[PRM_ALLOC_Q_COUNTER_OUT_BYTES] = {0};

	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_ALLOC_Q_COUNTER);
	nic->counters = mlx5dv_devx_obj_create(nic->ctx, in, sizeof(in), out, sizeof(out));
	if (nic->counters)
		nic->counter_set = (uint32_t)gdri_prm_get(out, PRM_ALLOC_Q_COUNTER_OUT_SET);
	else
		gdri_info("%s: no counter set is left for the queue pairs: what is repeated is not counted", nic->name);
}

/* What was lost on the way, or overtaken: nobody else notices as long as the retries last. */
static void nic_counters_say(const struct gdri_nic *nic)
{
	uint8_t in[PRM_QUERY_Q_COUNTER_IN_BYTES] = {0}, out[PRM_QUERY_Q_COUNTER_OUT_BYTES] = {0};
	uint64_t late, ahead, told;

	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_QUERY_Q_COUNTER);
	gdri_prm_set(in, PRM_QUERY_Q_COUNTER_SET, nic->counter_set);
	if (mlx5dv_devx_obj_query(nic->counters, in, sizeof(in), out, sizeof(out)))
		return;
	late = gdri_prm_get(out, PRM_Q_COUNTER_ACK_TIMEOUT);
	ahead = gdri_prm_get(out, PRM_Q_COUNTER_OUT_OF_SEQUENCE);
	told = gdri_prm_get(out, PRM_Q_COUNTER_PACKET_SEQ_ERR);
	if (late || ahead || told)
		gdri_info("%s: packets were repeated: %" PRIu64 " times an acknowledgement did not come in time "
			  "(local_ack_timeout_err), %" PRIu64 " times a peer missed one (packet_seq_err), %" PRIu64
			  " times this PE did (out_of_sequence). Is the network congested, or a cable bad?",
			  nic->name, late, told, ahead);
}

void gdri_nic_counters_destroy(struct gdri_nic *nic)
{
	if (!nic->counters)
		return;
	nic_counters_say(nic);
	mlx5dv_devx_obj_destroy(nic->counters);
	nic->counters = NULL;
	nic->counter_set = 0;
}
