/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the firmware command of a mailbox and checks lengths. Which opcodes
 * each DEVX method takes, and that the object named in the mailbox has to be
 * the one of the handle, is the kernel's rule (mlx5 devx.c). */
#include "softhca/firmware/prm.h"

#include <errno.h>

#include "softhca/strict/strict.h"
#include "softhca/tools/log.h"

static const struct command {
	uint16_t opcode;
	enum prm_kind kind;
	enum obj_type type; /* of the object, for modify and query */
	uint16_t min_in, min_out;
	prm_command *fn;
} commands[] = {
	{OP_QUERY_HCA_CAP, PRM_GENERAL, 0, 0x10, 0x10, prm_query_hca_cap},
	{OP_QUERY_ROCE_ADDRESS, PRM_GENERAL, 0, 0x10, 0x30, prm_query_roce_address},
	{OP_QUERY_LAG, PRM_GENERAL, 0, 0x10, 0x10, prm_query_lag},
	{OP_CREATE_MKEY, PRM_CREATE, OBJ_MW, CREATE_MKEY_IN_LEN, 0x10, prm_create_mkey},
	{OP_ALLOC_Q_COUNTER, PRM_CREATE, OBJ_COUNTERS, 0x10, 0x10, prm_alloc_q_counter},
	{OP_QUERY_Q_COUNTER, PRM_QUERY, OBJ_COUNTERS, QUERY_Q_COUNTER_IN_LEN, QUERY_Q_COUNTER_OUT_LEN,
	 prm_query_q_counter},
	{OP_CREATE_CQ, PRM_CREATE, OBJ_CQ, CREATE_CQ_IN_LEN, 0x10, prm_create_cq},
	{OP_QUERY_CQ, PRM_QUERY, OBJ_CQ, 0x10, QUERY_CQ_OUT_LEN, prm_query_cq},
	{OP_MODIFY_CQ, PRM_MODIFY, OBJ_CQ, CREATE_CQ_IN_LEN, 0x10, prm_modify_cq},
	{OP_CREATE_QP, PRM_CREATE, OBJ_QP, QP_CMD_LEN, 0x10, prm_create_qp},
	{OP_RST2INIT, PRM_MODIFY, OBJ_QP, QP_CMD_LEN, 0x10, prm_modify_qp},
	{OP_INIT2RTR, PRM_MODIFY, OBJ_QP, QP_CMD_LEN, 0x10, prm_modify_qp},
	{OP_RTR2RTS, PRM_MODIFY, OBJ_QP, QP_CMD_LEN, 0x10, prm_modify_qp},
	{OP_RTS2RTS, PRM_MODIFY, OBJ_QP, QP_CMD_LEN, 0x10, prm_modify_qp},
	{OP_INIT2INIT, PRM_MODIFY, OBJ_QP, QP_CMD_LEN, 0x10, prm_modify_qp},
	{OP_SQERR2RTS, PRM_MODIFY, OBJ_QP, QP_CMD_LEN, 0x10, prm_modify_qp},
	{OP_2ERR, PRM_MODIFY, OBJ_QP, 0x10, 0x10, prm_modify_qp},
	{OP_2RST, PRM_MODIFY, OBJ_QP, 0x10, 0x10, prm_modify_qp},
	{OP_QUERY_QP, PRM_QUERY, OBJ_QP, 0x10, QP_CMD_LEN, prm_query_qp},
	{OP_CREATE_DCT, PRM_CREATE, OBJ_QP, DCT_CMD_LEN, 0x10, prm_create_dct},
	{OP_DRAIN_DCT, PRM_MODIFY, OBJ_QP, 0x10, 0x10, prm_drain_dct},
	{OP_CREATE_RMP, PRM_CREATE, OBJ_SRQ, CREATE_RMP_IN_LEN, 0x10, prm_create_rmp},
	{OP_QUERY_DCT, PRM_QUERY, OBJ_QP, 0x10, DCT_CMD_LEN, prm_query_dct},
};

int prm_fail(struct prm_cmd *cmd, enum prm_status status, enum prm_syndrome syndrome)
{
	hca_debug(1, "command 0x%x: status 0x%x syndrome 0x%x", prm_get(cmd->in, CMD_OPCODE),
		  (unsigned)status, (unsigned)syndrome);
	cmd->out[0] = (uint8_t)status;
	put_be32(cmd->out + 4, syndrome);
	return EREMOTEIO;
}

static bool names_object(struct prm_cmd *cmd, enum obj_type type)
{
	uint32_t number = prm_get(cmd->in, CMD_OBJ_NUM), opcode = prm_get(cmd->in, CMD_OPCODE);
	bool dct = opcode == OP_DRAIN_DCT || opcode == OP_QUERY_DCT;
	const struct hca_qp *qp;

	if (!cmd->obj || cmd->obj->type != type)
		return false;
	if (type == OBJ_COUNTERS) /* which lies where not every mailbox reaches */
		return cmd->in_len >= QUERY_Q_COUNTER_IN_LEN &&
		       ((struct ctl_counters *)cmd->obj)->id == prm_get(cmd->in, QUERY_Q_COUNTER_SET);
	if (type == OBJ_CQ)
		return ((struct ctl_cq *)cmd->obj)->cq.cqn == number;
	qp = &((struct ctl_qp *)cmd->obj)->qp;
	/* Commands of queue pairs are not for DC targets, nor the other way round. */
	return qp->qpn == number && (qp->type == HCA_QP_DCT) == dct;
}

int prm_run(struct prm_cmd *cmd)
{
	uint32_t opcode = prm_get(cmd->in, CMD_OPCODE);

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *c = &commands[i];

		if (c->opcode != opcode || c->kind != cmd->kind)
			continue;
		if ((c->kind == PRM_MODIFY || c->kind == PRM_QUERY) && !names_object(cmd, c->type))
			return EINVAL;
		if (cmd->in_len < c->min_in)
			return prm_fail(cmd, PRM_BAD_INPUT_LEN, SYN_LENGTH);
		if (cmd->out_len < c->min_out)
			return prm_fail(cmd, PRM_BAD_OUTPUT_LEN, SYN_LENGTH);
		return c->fn(cmd);
	}
	return prm_fail(cmd, PRM_BAD_OP, SYN_OPCODE);
}

int prm_umem_queue(struct prm_cmd *cmd, struct ctl_umem *umem, uint64_t offset, uint64_t bytes, uint8_t **at)
{
	uint64_t page = umem->umem.page;

	if (((uintptr_t)umem->umem.va % page + offset) % (page / 64)) {
		strict_command(RULE_UMEM_OFFSET,
			       "command 0x%x: offset 0x%llx of a umem of %llu KiB whose pages are of %llu KiB",
			       prm_get(cmd->in, CMD_OPCODE), (unsigned long long)offset,
			       (unsigned long long)umem->umem.len >> 10, (unsigned long long)page >> 10);
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_UMEM_ALIGN);
	}
	*at = prm_umem_range(umem, offset, bytes);
	return *at ? 0 : prm_fail(cmd, PRM_BAD_PARAM, SYN_UMEM_RANGE);
}

int prm_umem_record(struct prm_cmd *cmd, uint32_t id, uint64_t offset, struct ctl_umem **umem, uint32_t **word)
{
	*umem = umem_find(cmd->ctx, id);
	if (!*umem)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_DBR_UMEM_ID);
	if (((uintptr_t)(*umem)->umem.va + offset) % 8)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_DBR_ALIGN);
	*word = (uint32_t *)(void *)prm_umem_range(*umem, offset, 8);
	return *word ? 0 : prm_fail(cmd, PRM_BAD_PARAM, SYN_DBR_RANGE);
}

uint8_t *prm_umem_range(struct ctl_umem *umem, uint64_t offset, uint64_t len)
{
	if (offset > umem->umem.len || len > umem->umem.len - offset)
		return NULL;
	return umem->umem.va + offset;
}
