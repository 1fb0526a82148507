/* SPDX-License-Identifier: BSD-3-Clause */
/* CREATE_CQ, QUERY_CQ and MODIFY_CQ. As the kernel does for DEVX users, the "umem valid"
 * bits are taken as set: there is no other way to give memory. */

#include "softhca/gpu/dma.h"
#include "softhca/faults/faults.h"
#include "softhca/firmware/prm.h"

/* The ring, at the same place in the create and the modify mailbox. */
static int cq_ring(struct prm_cmd *cmd, uint64_t bytes, struct ctl_umem **umem, uint8_t **buf)
{
	uint64_t offset = get_be64(cmd->in + CREATE_CQ_UMEM_OFFSET);

	*umem = umem_find(cmd->ctx, prm_get(cmd->in, CREATE_CQ_UMEM_ID));
	if (!*umem)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_UMEM_ID);
	return prm_umem_queue(cmd, *umem, offset, bytes, buf);
}

static int cq_memory(struct prm_cmd *cmd, const uint8_t *cqc, struct ctl_cq *cq)
{
	uint64_t dbr = get_be64(cqc + CQC_DBR_ADDR);
	int rc = cq_ring(cmd, (uint64_t)cq->cq.cqe_size << cq->cq.log_size, &cq->umem,
			 &cq->cq.buf);

	if (rc)
		return rc;
	rc = prm_umem_record(cmd, prm_get(cqc, CQC_DBR_UMEM_ID), dbr, &cq->dbr_umem, &cq->cq.dbrec);
	if (rc)
		return rc;
	cq->cq.dbrec = dma_record(cq->cq.dbrec);
	if (!cq->cq.dbrec)
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	cq->dbr_offset = dbr;
	return 0;
}

static int prm_cq_fill(struct prm_cmd *cmd, struct ctl_cq *cq)
{
	const uint8_t *cqc = cmd->in + CREATE_CQ_CQC;
	uint32_t cqe_sz = prm_get(cqc, CQC_CQE_SZ);

	cq->cq.log_size = prm_get(cqc, CQC_LOG_CQ_SIZE);
	if (cq->cq.log_size > HCA_LOG_MAX_CQ)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_LOG_SIZE);
	if (cqe_sz > 1)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_CQE_SIZE);
	if (prm_get(cqc, CQC_CQE_COMP_EN))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_CQE_COMPRESSION);
	cq->cq.cqe_size = cqe_sz ? 128 : 64;
	cq->cq.collapsed = prm_get(cqc, CQC_CC);
	cq->cq.overrun_ignore = prm_get(cqc, CQC_OI);
	cq->eqn = prm_get(cqc, CQC_C_EQN);
	if (cq->eqn && (cq->eqn < HCA_FIRST_EQN || cq->eqn >= HCA_FIRST_EQN + HCA_COMP_VECTORS))
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_EQN);
	cq->uar = uar_find(cmd->ctx, prm_get(cqc, CQC_UAR_PAGE));
	if (!cq->uar)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_UAR_PAGE);
	cq->uar_page = prm_get(cqc, CQC_UAR_PAGE);
	return cq_memory(cmd, cqc, cq);
}

int prm_create_cq(struct prm_cmd *cmd)
{
	struct ctl_cq *cq = obj_new(cmd->ctx, OBJ_CQ, sizeof(*cq));
	int rc;

	if (!cq)
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	rc = prm_cq_fill(cmd, cq);
	if (!rc && cq_number(cq))
		rc = prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	if (rc) {
		obj_free(&cq->obj);
		return rc;
	}
	cq->obj.devx = true;
	cq->umem->obj.refs++;
	cq->dbr_umem->obj.refs++;
	cq->uar->obj.refs++;
	cq->cq.pi = faults_first(FAULT_FIRST_CQE, 0);
	prm_set(cmd->out, CMD_OBJ_NUM, cq->cq.cqn);
	cmd->obj = &cq->obj;
	return 0;
}

enum { MODIFY_CQ_FIELDS = 0, MODIFY_CQ_RESIZE = 1 }; /* op_mod */
enum { FIELD_OVERRUN = 4 }; /* of modify_field_select; 1 and 2 are moderation */

static int cq_resize(struct prm_cmd *cmd, struct ctl_cq *cq)
{
	uint32_t log_size = prm_get(cmd->in + CREATE_CQ_CQC, CQC_LOG_CQ_SIZE);
	struct ctl_umem *umem;
	uint8_t *buf;
	int rc;

	if (log_size > HCA_LOG_MAX_CQ || cq->cq.collapsed)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_LOG_SIZE);
	rc = cq_ring(cmd, (uint64_t)cq->cq.cqe_size << log_size, &umem, &buf);
	if (rc)
		return rc;
	if (!dp_cq_resize(&cq->cq, buf, log_size))
		return prm_fail(cmd, PRM_BAD_RESOURCE_STATE, SYN_CQ_FULL);
	umem->obj.refs++;
	if (cq->umem)
		cq->umem->obj.refs--;
	cq->umem = umem;
	return 0;
}

int prm_modify_cq(struct prm_cmd *cmd)
{
	struct ctl_cq *cq = (struct ctl_cq *)cmd->obj;
	uint32_t select = prm_get(cmd->in, MODIFY_CQ_SELECT);

	/* The ring of a CQ that verbs made is libmlx5's. */
	if (prm_get(cmd->in, CMD_OP_MOD) == MODIFY_CQ_RESIZE)
		return cq->obj.devx ? cq_resize(cmd, cq)
				    : prm_fail(cmd, PRM_BAD_RESOURCE, SYN_OBJECT_ID);
	/* Moderation is not modelled: every event comes at once. */
	if (prm_get(cmd->in, CMD_OP_MOD) != MODIFY_CQ_FIELDS || select & ~(uint32_t)FIELD_OVERRUN)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_SELECT);
	if (select & FIELD_OVERRUN)
		cq->cq.overrun_ignore = prm_get(cmd->in + CREATE_CQ_CQC, CQC_OI);
	return 0;
}

enum { ST_SOLICITED_ARMED = 6, ST_ARMED = 9, ST_FIRED = 10 }; /* PRM, "CQ Context", st */

static uint32_t cq_state(const struct hca_cq *cq)
{
	uint32_t word = cq->dbrec ? guest_dbrec(cq->dbrec + 1) : 0;

	if (!cq->events || word == cq->armed_word)
		return ST_FIRED;
	return word >> 24 & 1 ? ST_SOLICITED_ARMED : ST_ARMED;
}

int prm_query_cq(struct prm_cmd *cmd)
{
	struct ctl_cq *cq = (struct ctl_cq *)cmd->obj;
	uint8_t *cqc = cmd->out + 0x10;

	prm_set(cqc, CQC_STATUS, cq->cq.overrun ? 9 : 0); /* 9: CQ overflow */
	prm_set(cqc, CQC_DBR_UMEM_VALID, cq->dbr_umem != NULL);
	prm_set(cqc, CQC_CQE_SZ, cq->cq.cqe_size == 128);
	prm_set(cqc, CQC_CC, cq->cq.collapsed);
	prm_set(cqc, CQC_OI, cq->cq.overrun_ignore);
	prm_set(cqc, CQC_ST, cq_state(&cq->cq));
	prm_set(cqc, CQC_LAST_NOTIFIED, cq->cq.last_notified_pi & 0xffffff);
	prm_set(cqc, CQC_LAST_SOLICITED, cq->cq.solicited_pi & 0xffffff);
	if (cq->dbr_umem)
		prm_set(cqc, CQC_DBR_UMEM_ID, cq->dbr_umem->umem.id);
	prm_set(cqc, CQC_LOG_CQ_SIZE, cq->cq.log_size);
	prm_set(cqc, CQC_UAR_PAGE, cq->uar_page);
	prm_set(cqc, CQC_C_EQN, cq->eqn);
	if (cq->cq.dbrec)
		prm_set(cqc, CQC_CONSUMER_COUNTER, guest_dbrec(cq->cq.dbrec) & 0xffffff);
	prm_set(cqc, CQC_PRODUCER_COUNTER, cq->cq.pi & 0xffffff);
	put_be64(cqc + CQC_DBR_ADDR, cq->dbr_offset);
	return 0;
}
