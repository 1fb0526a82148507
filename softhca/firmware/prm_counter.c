/* SPDX-License-Identifier: BSD-3-Clause */
/* Counter sets: queue pairs that are created with one count there what happened to their packets. */
#include <string.h>

#include "softhca/firmware/prm.h"

int prm_alloc_q_counter(struct prm_cmd *cmd)
{
	struct ctl_counters *c = obj_new(cmd->ctx, OBJ_COUNTERS, sizeof(*c));

	if (!c)
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	if (counters_number(c)) {
		obj_free(&c->obj);
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	}
	c->obj.devx = true;
	prm_set(cmd->out, ALLOC_Q_COUNTER_SET, c->id);
	cmd->obj = &c->obj;
	return 0;
}

int prm_query_q_counter(struct prm_cmd *cmd)
{
	struct hca_counters *c = &((struct ctl_counters *)cmd->obj)->counters;

	prm_set(cmd->out, Q_COUNTER_OUT_OF_SEQUENCE, c->out_of_sequence);
	prm_set(cmd->out, Q_COUNTER_PACKET_SEQ_ERR, c->packet_seq_err);
	prm_set(cmd->out, Q_COUNTER_ACK_TIMEOUT, c->local_ack_timeout_err);
	if (prm_get(cmd->in, QUERY_Q_COUNTER_CLEAR))
		memset(c, 0, sizeof(*c));
	return 0;
}
