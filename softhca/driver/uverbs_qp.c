/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of plain verbs: create and destroy. */
#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "softhca/engine/dp.h"
#include "softhca/driver/uverbs.h"

enum { QPT_RC = 2, QPT_UC = 3, QPT_UD = 4, QPT_DRIVER = 0xff }; /* the IBV_QPT_ values */

#define SQ_SIG_ALL  IB_UVERBS_QP_CREATE_SQ_SIG_ALL

#define FLAGS_KNOWN                                                                                \
	((uint32_t)(MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE |                    \
		    MLX5_QP_FLAG_BFREG_INDEX | MLX5_QP_FLAG_UAR_PAGE_INDEX |                       \
		    MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE | MLX5_QP_FLAG_TYPE_DCI |                \
		    MLX5_QP_FLAG_TYPE_DCT))

static int log2_exact(uint32_t n, uint8_t *log)
{
	*log = n ? (uint8_t)__builtin_ctz(n) : 0;
	return n & (n - 1) ? EINVAL : 0;
}

/* The receive ring lies first in the buffer, the send ring behind it. */
static int rings_fill(struct hca_qp *qp, const struct mlx5_ib_create_qp *cmd)
{
	uint64_t rq_bytes, sq_bytes = (uint64_t)cmd->sq_wqe_count << 6;
	int rc;

	if (cmd->sq_wqe_count > 1u << HCA_LOG_MAX_WQEBB || cmd->rq_wqe_count > 32768 ||
	    log2_exact(cmd->sq_wqe_count, &qp->log_sq_size) ||
	    (cmd->rq_wqe_count & (cmd->rq_wqe_count - 1)) ||
	    (cmd->rq_wqe_count && (cmd->rq_wqe_shift < 4 || cmd->rq_wqe_shift > 9)) ||
	    cmd->buf_addr % 64 || cmd->db_addr % 8)
		return EINVAL;
	rq_bytes = cmd->rq_wqe_count ? (uint64_t)cmd->rq_wqe_count << cmd->rq_wqe_shift : 0;
	rc = range_check(cmd->buf_addr, rq_bytes + sq_bytes, false);
	if (!rc)
		rc = range_check(cmd->db_addr, 8, false);
	if (rc)
		return rc;
	if (rq_bytes) {
		qp->rq = (uint8_t *)(uintptr_t)cmd->buf_addr;
		qp->rq_cnt = cmd->rq_wqe_count;
		qp->rq_shift = cmd->rq_wqe_shift;
	}
	if (sq_bytes)
		qp->sq = (uint8_t *)(uintptr_t)(cmd->buf_addr + rq_bytes);
	qp->dbrec = (uint32_t *)(uintptr_t)cmd->db_addr;
	return 0;
}

static int objects_fill(struct uverbs_call *call, struct ctl_qp *qp,
			const struct mlx5_ib_create_qp *cmd)
{
	struct ctl_cq *scq = ua_obj(call, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, OBJ_CQ);
	struct ctl_cq *rcq = ua_obj(call, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, OBJ_CQ);

	qp->pd = ua_obj(call, UVERBS_ATTR_CREATE_QP_PD_HANDLE, OBJ_PD);
	if (!qp->pd || !scq || !rcq)
		return EINVAL;
	qp->qp.scq = &scq->cq;
	qp->qp.rcq = &rcq->cq;
	if (ua_has(call, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE)) {
		struct ctl_srq *srq = ua_obj(call, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, OBJ_SRQ);

		if (!srq)
			return EINVAL;
		qp->qp.srq = &srq->srq;
	}
	if (cmd->flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) {
		qp->uar = uar_find(call->ctx, cmd->bfreg_index);
		if (!qp->uar || !uar_admits(cmd->bfreg_index, false))
			return EINVAL;
		qp->qp.uar_page = cmd->bfreg_index;
	}
	return 0;
}

/* Scatter to CQE, as the kernel driver grants it: SENDs of connected QPs, and
 * answers where every WQE has a CQE or the program takes care. Not answers in
 * CQEs of 128 bytes: libmlx5 up to 63 looks for them at the wrong place. */
static void scatter_to_cqe(struct hca_qp *qp, uint32_t flags)
{
	if (!(flags & MLX5_QP_FLAG_SCATTER_CQE))
		return;
	if (qp->type == HCA_QP_RC || qp->type == HCA_QP_UC)
		qp->cqe_res = qp->rcq->cqe_size == 128 ? 64 : 32;
	if (qp->type == HCA_QP_RC && qp->scq->cqe_size == 64 &&
	    (qp->sig_all || flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE))
		qp->cqe_req = 32;
}

static bool type_of(uint64_t verbs, uint32_t flags, enum hca_qp_type *type)
{
	flags &= MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_TYPE_DCT;
	if (verbs == QPT_DRIVER && flags == MLX5_QP_FLAG_TYPE_DCI)
		*type = HCA_QP_DCI;
	else if (verbs == QPT_DRIVER && flags == MLX5_QP_FLAG_TYPE_DCT)
		*type = HCA_QP_DCT;
	else if (verbs == QPT_RC)
		*type = HCA_QP_RC;
	else if (verbs == QPT_UC)
		*type = HCA_QP_UC;
	else if (verbs == QPT_UD)
		*type = HCA_QP_UD;
	else
		return false;
	return true;
}

/* Receives of a DCT come from its SRQ; a DCI has none. */
static int dc_check(const struct ctl_qp *qp)
{
	if (qp->qp.type == HCA_QP_DCT)
		return qp->qp.srq ? 0 : EINVAL;
	if (qp->qp.type == HCA_QP_DCI)
		return qp->cap.max_recv_wr || qp->cap.max_recv_sge ? EINVAL : 0;
	return 0;
}

/* A DCT has no rings; what it is asked for is in its context. */
static int queues_fill(struct ctl_qp *qp, const struct mlx5_ib_create_qp *cmd)
{
	int rc = dc_check(qp);

	if (rc || qp->qp.type != HCA_QP_DCT)
		return rc ? rc : rings_fill(&qp->qp, cmd);
	qp->qp.dc_key = cmd->access_key;
	qp->qp.max_dest_rd_atomic = HCA_MAX_RD_ATOMIC;
	return 0;
}

int um_qp_create(struct uverbs_call *call)
{
	uint32_t flags = (uint32_t)ua_in_u64(call, UVERBS_ATTR_CREATE_QP_FLAGS);
	struct mlx5_ib_create_qp_resp uhw = {0};
	struct mlx5_ib_create_qp cmd;
	enum hca_qp_type type;
	uint32_t number = 0;
	struct ctl_qp *qp;
	int rc;

	ua_in(call, UVERBS_ATTR_UHW_IN, &cmd, sizeof(cmd));
	if (!type_of(ua_in_u64(call, UVERBS_ATTR_CREATE_QP_TYPE), cmd.flags, &type) ||
	    flags & ~(uint32_t)SQ_SIG_ALL || cmd.flags & ~FLAGS_KNOWN)
		return EOPNOTSUPP;
	qp = obj_new(call->ctx, OBJ_QP, sizeof(*qp));
	if (!qp)
		return ENOMEM;
	ua_in(call, UVERBS_ATTR_CREATE_QP_CAP, &qp->cap, sizeof(qp->cap));
	qp->qp.type = type;
	rc = objects_fill(call, qp, &cmd);
	if (!rc)
		rc = queues_fill(qp, &cmd);
	if (rc) {
		obj_free(&qp->obj);
		return rc;
	}
	if (type != HCA_QP_DCT)
		uhw.ece_options = qp_ece_offered(cmd.ece_options);
	qp->qp.user_index = cmd.uidx;
	qp->qp.user_handle = ua_in_u64(call, UVERBS_ATTR_CREATE_QP_USER_HANDLE);
	qp->qp.sig_all = flags & SQ_SIG_ALL;
	scatter_to_cqe(&qp->qp, cmd.flags);
	rc = qp_activate(qp);
	if (rc)
		return rc;
	ua_out_handle(call, UVERBS_ATTR_CREATE_QP_HANDLE, qp->obj.handle);
	ua_out(call, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
	ua_out(call, UVERBS_ATTR_CREATE_QP_RESP_CAP, &qp->cap, sizeof(qp->cap));
	if (type != HCA_QP_DCT) /* its number is told when it is ready to receive */
		number = qp->qp.qpn;
	return ua_out(call, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &number, sizeof(number));
}

int um_qp_destroy(struct uverbs_call *call)
{
	struct ctl_qp *qp = ua_obj(call, UVERBS_ATTR_DESTROY_QP_HANDLE, OBJ_QP);
	struct ib_uverbs_destroy_qp_resp resp = {0};

	if (!qp || qp->obj.devx)
		return ENOENT;
	engine_begin_posted(&qp->qp);
	resp.events_reported =
		qp->async_events - event_drop_async(call->ctx, qp->qp.user_handle);
	ua_out(call, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
	return obj_destroy(&qp->obj);
}
