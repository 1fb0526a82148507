/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: created by the write command, because the ioctl method
 * is answered with EPROTONOSUPPORT as by kernels that lack it. */
#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "softhca/driver/uverbs.h"

#define SRQ_MAX_WR (1u << 0)
#define SRQ_LIMIT  (1u << 1)

static int srq_fill(struct ctl_srq *srq, const struct ib_uverbs_create_srq *cmd,
		    const struct mlx5_ib_create_srq *uhw)
{
	struct hca_srq *s = &srq->srq;
	int rc;

	/* The limit comes by modify; the command's own limit is overlooked, as the driver does. */
	if (cmd->max_wr > 32767 || cmd->max_sge > 31 || uhw->flags || uhw->buf_addr % 64 || uhw->db_addr % 4)
		return EINVAL;
	s->wqe_cnt = 1u << log2_ceil(cmd->max_wr + 1);
	/* Not passed by the provider: a next segment of 16 bytes and the scatter entries, rounded up to a power
	 * of two, at least 32 (rdma-core mlx5/srq.c). */
	s->wqe_shift = log2_ceil(cmd->max_sge ? 16 + 16 * cmd->max_sge : 32);
	rc = range_check(uhw->buf_addr, (uint64_t)s->wqe_cnt << s->wqe_shift, true);
	if (!rc)
		rc = range_check(uhw->db_addr, 4, false);
	if (rc)
		return rc;
	s->buf = (uint8_t *)(uintptr_t)uhw->buf_addr;
	s->dbrec = (uint32_t *)(uintptr_t)uhw->db_addr;
	srq->user_handle = cmd->user_handle;
	srq->max_wr = s->wqe_cnt - 1;
	srq->max_sge = cmd->max_sge;
	return 0;
}

int uw_create_srq(struct uverbs_call *call)
{
	struct ib_uverbs_create_srq cmd;
	struct mlx5_ib_create_srq uhw_in;
	struct mlx5_ib_create_srq_resp uhw = {0};
	struct ib_uverbs_create_srq_resp resp = {0};
	struct ctl_pd *pd;
	struct ctl_srq *srq;
	int rc;

	ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	ua_in(call, UVERBS_ATTR_UHW_IN, &uhw_in, sizeof(uhw_in));
	pd = obj_get(call->ctx, cmd.pd_handle, OBJ_PD);
	if (!pd)
		return EINVAL;
	srq = obj_new(call->ctx, OBJ_SRQ, sizeof(*srq));
	if (!srq)
		return ENOMEM;
	rc = srq_fill(srq, &cmd, &uhw_in);
	if (!rc)
		rc = srq_number(srq);
	if (rc) {
		obj_free(&srq->obj);
		return rc;
	}
	srq->srq.pdn = pd->pd.pdn;
	srq->pd = pd;
	pd->obj.refs++;
	resp.srq_handle = srq->obj.handle;
	resp.max_wr = srq->max_wr;
	resp.max_sge = srq->max_sge;
	resp.srqn = uhw.srqn = srq->srq.srqn;
	ua_out(call, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

int uw_modify_srq(struct uverbs_call *call)
{
	struct ib_uverbs_modify_srq cmd;
	struct ctl_srq *srq;

	ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	srq = obj_get(call->ctx, cmd.srq_handle, OBJ_SRQ);
	if (!srq)
		return EINVAL;
	if (cmd.attr_mask & SRQ_MAX_WR)
		return EINVAL; /* mlx5 does not resize SRQs */
	if (cmd.attr_mask & SRQ_LIMIT) {
		if (cmd.srq_limit > srq->max_wr)
			return EINVAL;
		srq->srq.limit = cmd.srq_limit;
	}
	return 0;
}

int uw_query_srq(struct uverbs_call *call)
{
	struct ib_uverbs_query_srq cmd;
	struct ib_uverbs_query_srq_resp resp = {0};
	struct ctl_srq *srq;

	ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	srq = obj_get(call->ctx, cmd.srq_handle, OBJ_SRQ);
	if (!srq)
		return EINVAL;
	resp.max_wr = srq->max_wr;
	resp.max_sge = srq->max_sge;
	resp.srq_limit = srq->srq.limit; /* 0 once the event was raised */
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

int um_srq_destroy(struct uverbs_call *call)
{
	struct ctl_srq *srq = ua_obj(call, UVERBS_ATTR_DESTROY_SRQ_HANDLE, OBJ_SRQ);
	struct ib_uverbs_destroy_srq_resp resp = {0};

	if (!srq || srq->obj.devx)
		return ENOENT;
	if (srq->obj.refs)
		return EBUSY;
	resp.events_reported = srq->async_events - event_drop_async(call->ctx, srq->user_handle);
	ua_out(call, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp, sizeof(resp));
	return obj_destroy(&srq->obj);
}
