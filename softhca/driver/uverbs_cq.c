/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues of plain verbs. */
#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "softhca/memory/guest.h"
#include "softhca/engine/poll_round.h"
#include "softhca/driver/uverbs.h"

static int uverbs_cq_fill(struct ctl_cq *cq, const struct mlx5_ib_create_cq *cmd, uint32_t cqe)
{
	struct hca_cq *c = &cq->cq;
	int rc;

	if (!cqe || cqe >= 1u << HCA_LOG_MAX_CQ)
		return EINVAL;
	if ((cmd->cqe_size != 64 && cmd->cqe_size != 128) || cmd->buf_addr % 64 ||
	    cmd->db_addr % 8 || cmd->cqe_comp_en)
		return EINVAL;
	c->log_size = log2_ceil(cqe + 1);
	c->cqe_size = cmd->cqe_size;
	rc = range_check(cmd->buf_addr, (uint64_t)c->cqe_size << c->log_size, true);
	if (!rc)
		rc = range_check(cmd->db_addr, 8, true);
	if (rc)
		return rc;
	c->buf = (uint8_t *)(uintptr_t)cmd->buf_addr;
	c->dbrec = (uint32_t *)(uintptr_t)cmd->db_addr;
	/* The first arm writes 0 where 0 may lie already: make it differ. */
	c->armed_word = HCA_NEVER_ARMED;
	put_be32((uint8_t *)(c->dbrec + 1), HCA_NEVER_ARMED);
	return 0;
}

int um_cq_create(struct uverbs_call *call)
{
	uint32_t cqe = (uint32_t)ua_in_u64(call, UVERBS_ATTR_CREATE_CQ_CQE);
	uint32_t flags = (uint32_t)ua_in_u64(call, UVERBS_ATTR_CREATE_CQ_FLAGS);
	struct mlx5_ib_create_cq_resp uhw = {0};
	struct hca_comp_channel *channel = NULL;
	struct mlx5_ib_create_cq cmd;
	struct ctl_uar *uar = NULL;
	struct ctl_cq *cq;
	int rc;

	if (flags & ~(uint32_t)IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)
		return EOPNOTSUPP; /* time stamps: there is no HCA clock */
	if (ua_in_u64(call, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR) >= HCA_COMP_VECTORS)
		return EINVAL;
	ua_in(call, UVERBS_ATTR_UHW_IN, &cmd, sizeof(cmd));
	if (cmd.flags & ~MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX)
		return EOPNOTSUPP;
	if (cmd.flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) {
		uar = uar_find(call->ctx, cmd.uar_page_index);
		if (!uar)
			return EINVAL;
	}
	if (ua_has(call, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL)) {
		channel = event_channel_find(call->ctx, (int)ua_in_u64(call,
						UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL), false);
		if (!channel)
			return EBADF;
	}
	cq = obj_new(call->ctx, OBJ_CQ, sizeof(*cq));
	if (!cq)
		return ENOMEM;
	rc = uverbs_cq_fill(cq, &cmd, cqe);
	if (!rc)
		rc = cq_number(cq);
	if (rc) {
		obj_free(&cq->obj);
		return rc;
	}
	cq->cq.overrun_ignore = flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
	cq->cq.user_handle = ua_in_u64(call, UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
	cq->cq.channel = channel;
	cq->cq.events = channel != NULL;
	if (channel)
		channel->cqs++;
	cq->uar = uar;
	cq->uar_page = uar ? cmd.uar_page_index : 0;
	if (uar)
		uar->obj.refs++;
	cqe = (1u << cq->cq.log_size) - 1;
	uhw.cqn = cq->cq.cqn;
	poll_adopt(call->ctx, cq->cq.user_handle);
	ua_out_handle(call, UVERBS_ATTR_CREATE_CQ_HANDLE, cq->obj.handle);
	ua_out(call, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
	return ua_out(call, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof(cqe));
}

int uw_resize_cq(struct uverbs_call *call)
{
	struct ib_uverbs_resize_cq_resp resp = {0};
	struct ib_uverbs_resize_cq cmd;
	struct mlx5_ib_resize_cq uhw;
	struct ctl_cq *cq;
	uint32_t log_size;
	int rc;

	if (!ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd)) ||
	    !ua_in(call, UVERBS_ATTR_UHW_IN, &uhw, sizeof(uhw)))
		return EINVAL;
	cq = obj_get(call->ctx, cmd.cq_handle, OBJ_CQ);
	if (!cq || cq->obj.devx || !cmd.cqe || cmd.cqe >= 1u << HCA_LOG_MAX_CQ)
		return EINVAL;
	if (uhw.cqe_size != cq->cq.cqe_size || uhw.buf_addr % 64)
		return EINVAL;
	log_size = log2_ceil(cmd.cqe + 1);
	rc = range_check(uhw.buf_addr, (uint64_t)uhw.cqe_size << log_size, true);
	if (rc)
		return rc;
	if (!dp_cq_resize(&cq->cq, (uint8_t *)(uintptr_t)uhw.buf_addr, log_size))
		return EINVAL;
	resp.cqe = (1u << log_size) - 1;
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

int um_cq_destroy(struct uverbs_call *call)
{
	struct ctl_cq *cq = ua_obj(call, UVERBS_ATTR_DESTROY_CQ_HANDLE, OBJ_CQ);
	struct ib_uverbs_destroy_cq_resp resp;
	struct hca_comp_channel *ch;

	if (!cq || cq->obj.devx)
		return ENOENT;
	if (cq->obj.refs)
		return EBUSY;
	/* libibverbs waits for this many acknowledgements. No event can follow:
	 * the lock is held until the CQ is gone. */
	ch = cq->cq.channel;
	resp.comp_events_reported = cq->cq.comp_events;
	if (ch && !ch->closed)
		resp.comp_events_reported -= event_drop_comp(ch, cq->cq.user_handle);
	resp.async_events_reported =
		cq->async_events - event_drop_async(call->ctx, cq->cq.user_handle);
	ua_out(call, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof(resp));
	return obj_destroy(&cq->obj);
}
