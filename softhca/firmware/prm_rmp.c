/* SPDX-License-Identifier: BSD-3-Clause */
/* CREATE_RMP: a shared receive queue by firmware command, whose entries are a list, as those of verbs, or are used in
 * turn. An entry of either begins with the 16 bytes that hold a list's link; basic_cyclic_rcv_wqe, which leaves them
 * out, is not advertised. */
#include "softhca/firmware/prm.h"

enum { WQ_LIST = 0, WQ_CYCLIC = 1 }; /* wq_type; those of several strides are not modelled */
enum { RMP_READY = 1, STRIDE_MIN = 5, STRIDE_MAX = 10 };

static int rmp_fill(struct prm_cmd *cmd, const uint8_t *wq, struct ctl_srq *c)
{
	uint32_t type = prm_get(wq, WQ_TYPE), log_size = prm_get(wq, WQ_LOG_SIZE), stride = prm_get(wq, WQ_LOG_STRIDE);
	int rc;

	if (type > WQ_CYCLIC || prm_get(cmd->in, CREATE_RMP_STATE) != RMP_READY || prm_get(cmd->in, CREATE_RMP_BASIC))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_RQ_TYPE);
	if (log_size > HCA_LOG_MAX_WQEBB || stride < STRIDE_MIN || stride > STRIDE_MAX)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_LOG_SIZE);
	c->pd = pd_find(cmd->ctx, prm_get(wq, WQ_PD));
	if (!c->pd)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_PD);
	c->umem = umem_find(cmd->ctx, prm_get(wq, WQ_UMEM_ID));
	if (!c->umem || c->umem->device) /* a GPU's memory holds no receives */
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_UMEM_ID);
	rc = prm_umem_queue(cmd, c->umem, get_be64(wq + WQ_UMEM_OFFSET), 1ull << (log_size + stride), &c->srq.buf);
	if (!rc)
		rc = prm_umem_record(cmd, prm_get(wq, WQ_DBR_UMEM_ID), get_be64(wq + WQ_DBR_ADDR), &c->dbr_umem,
				     &c->srq.dbrec);
	c->srq.cyclic = type == WQ_CYCLIC;
	c->srq.wqe_cnt = 1u << log_size;
	c->srq.wqe_shift = stride;
	c->srq.limit = prm_get(wq, WQ_LIMIT);
	c->srq.pdn = c->pd->pd.pdn;
	return rc;
}

int prm_create_rmp(struct prm_cmd *cmd)
{
	struct ctl_srq *c = obj_new(cmd->ctx, OBJ_SRQ, sizeof(*c));
	int rc;

	if (!c)
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	rc = rmp_fill(cmd, cmd->in + CREATE_RMP_WQ, c);
	if (!rc && srq_number(c))
		rc = prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	if (rc) {
		obj_free(&c->obj);
		return rc;
	}
	c->obj.devx = true;
	c->pd->obj.refs++;
	c->umem->obj.refs++;
	c->dbr_umem->obj.refs++;
	prm_set(cmd->out, CMD_OBJ_NUM, c->srq.srqn);
	cmd->obj = &c->obj;
	return 0;
}
