/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the older write() interface, carried by the INVOKE_WRITE method.
 * CORE_IN starts behind the command header. */
#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>

#include "softhca/tools/log.h"
#include "softhca/driver/uverbs.h"

#define EX(cmd) (IB_USER_VERBS_CMD_FLAG_EXTENDED | (cmd))

static const struct {
	uint32_t cmd;
	uverbs_method *fn;
} commands[] = {
	{IB_USER_VERBS_CMD_QUERY_DEVICE, uw_query_device},
	{EX(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), uw_ex_query_device},
	{IB_USER_VERBS_CMD_ALLOC_PD, uw_alloc_pd},
	{IB_USER_VERBS_CMD_REG_MR, uw_reg_mr},
	{IB_USER_VERBS_CMD_REREG_MR, uw_rereg_mr},
	{IB_USER_VERBS_CMD_ALLOC_MW, uw_alloc_mw},
	{IB_USER_VERBS_CMD_RESIZE_CQ, uw_resize_cq},
	{IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, uw_create_comp_channel},
	{IB_USER_VERBS_CMD_CREATE_SRQ, uw_create_srq},
	{IB_USER_VERBS_CMD_MODIFY_SRQ, uw_modify_srq},
	{IB_USER_VERBS_CMD_QUERY_SRQ, uw_query_srq},
	{IB_USER_VERBS_CMD_CREATE_AH, uw_create_ah},
	{IB_USER_VERBS_CMD_QUERY_QP, uw_query_qp},
	{IB_USER_VERBS_CMD_MODIFY_QP, uw_modify_qp},
	{EX(IB_USER_VERBS_EX_CMD_MODIFY_QP), uw_ex_modify_qp},
};

int um_invoke_write(struct uverbs_call *call)
{
	uint32_t cmd = (uint32_t)ua_in_u64(call, UVERBS_ATTR_WRITE_CMD);

	/* libibverbs probes with a command that lacks its buffers, before
	 * GET_CONTEXT. ENOSPC tells it that INVOKE_WRITE exists. */
	if (!call->ctx->ready)
		return ENOSPC;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].cmd == cmd)
			return commands[i].fn(call);
	hca_debug(1, "write command 0x%x is not supported", cmd);
	return EOPNOTSUPP;
}

int uw_create_comp_channel(struct uverbs_call *call)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	struct hca_comp_channel *ch;
	int fd;

	if (ua_len(call, UVERBS_ATTR_CORE_OUT) < sizeof(resp))
		return ENOSPC;
	fd = event_channel_create(call->ctx, 0, &ch);
	if (fd < 0)
		return -fd;
	ch->next = call->ctx->channels;
	call->ctx->channels = ch;
	resp.fd = (uint32_t)fd;
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}
