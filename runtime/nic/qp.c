// SPDX-License-Identifier: BSD-3-Clause
/* Creation of the firmware objects of one queue pair: CREATE_CQ and CREATE_QP
 * (PRM, "Command Reference"), with buffers and doorbell records at offsets in
 * the one umem. */

#include <stdio.h>

#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

/* PRM: the page size of a buffer is 2^(12 + log_page_size); 0 here, as all buffers of queue
 * pairs start at such a page, and one-entry CQs lie inside one. */

const char *gdri_nic_qp_name(const struct gdri_nic *nic, const char *command, int i, char *buf)
{
	snprintf(buf, GDRI_NIC_QP_NAME, "%s (queue pair %d to PE %d)", command,
		 gdri_net_slot(&nic->layout, i), gdri_net_peer(&nic->layout, i));
	return buf;
}

static size_t dbrec_offset(const struct gdri_nic *nic, int i)
{
	return nic->layout.dbrec + (size_t)i * nic->layout.dbrec_stride;
}

int gdri_nic_cq_create(struct gdri_nic *nic, int i)
{
	const struct gdri_net_layout *l = &nic->layout;
	uint8_t in[PRM_CREATE_CQ_IN_BYTES] = {0}, out[PRM_CREATE_CQ_OUT_BYTES];
	void *cqc = gdri_prm_at(in, PRM_CREATE_CQ_CQC);
	struct gdri_nic_qp *q = &nic->qps[i];
	char name[GDRI_NIC_QP_NAME];
	bool ring = nic->opt.cq == GDRI_CQ_RING;
	int ret;

	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_CREATE_CQ);
	gdri_prm_set(in, PRM_CREATE_CQ_UMEM_ID, nic->umem->umem_id);
	gdri_prm_set(in, PRM_CREATE_CQ_UMEM_VALID, 1);
	gdri_prm_set(in, PRM_CREATE_CQ_UMEM_OFFSET, l->cq + (size_t)i * l->cq_stride);
	gdri_prm_set(cqc, PRM_CQC_DBR_UMEM_ID, nic->umem->umem_id);
	gdri_prm_set(cqc, PRM_CQC_DBR_UMEM_VALID, 1);
	gdri_prm_set(cqc, PRM_CQC_DBR_ADDR, dbrec_offset(nic, i) + 8);
	gdri_prm_set(cqc, PRM_CQC_UAR_PAGE, q->uar->page_id);
	gdri_prm_set(cqc, PRM_CQC_C_EQN, nic->eqn);
	/* Nobody writes a consumer index. The ring cannot overrun: it has an entry for each block
	 * of the send queue. */
	gdri_prm_set(cqc, PRM_CQC_OI, 1);
	gdri_prm_set(cqc, PRM_CQC_CC, !ring);
	gdri_prm_set(cqc, PRM_CQC_LOG_CQ_SIZE, ring ? gdri_log2_floor(nic->opt.qp_depth) : 0);
	ret = gdri_nic_obj_create(nic, gdri_nic_qp_name(nic, "CREATE_CQ", i, name), in, sizeof(in),
				  out, sizeof(out), &q->cq);
	q->cqn = (uint32_t)gdri_prm_get(out, PRM_CREATE_CQ_OUT_CQN);
	return ret;
}

static void nic_qp_fill(const struct gdri_nic *nic, int i, uint8_t *in)
{
	const struct gdri_net_layout *l = &nic->layout;
	void *qpc = gdri_prm_at(in, PRM_QP_IN_QPC);
	const struct gdri_nic_qp *q = &nic->qps[i];

	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_CREATE_QP);
	gdri_prm_set(in, PRM_CREATE_QP_UMEM_ID, nic->umem->umem_id);
	gdri_prm_set(in, PRM_CREATE_QP_UMEM_VALID, 1);
	gdri_prm_set(in, PRM_CREATE_QP_UMEM_OFFSET, l->sq + (size_t)i * l->sq_stride);
	gdri_prm_set(qpc, PRM_QPC_ST, PRM_QP_ST_RC);
	gdri_prm_set(qpc, PRM_QPC_PM_STATE, PRM_QP_PM_MIGRATED);
	gdri_prm_set(qpc, PRM_QPC_PD, nic->pdn);
	gdri_prm_set(qpc, PRM_QPC_LOG_SQ_SIZE, gdri_log2_floor(nic->opt.qp_depth));
	gdri_prm_set(qpc, PRM_QPC_RQ_TYPE, PRM_QP_RQ_ZERO_SIZE);
	gdri_prm_set(qpc, PRM_QPC_CQN_SND, q->cqn);
	gdri_prm_set(qpc, PRM_QPC_CQN_RCV, q->cqn);
	gdri_prm_set(qpc, PRM_QPC_UAR_PAGE, q->uar->page_id);
	gdri_prm_set(qpc, PRM_QPC_USER_INDEX, (uint64_t)i);
	gdri_prm_set(qpc, PRM_QPC_DBR_UMEM_ID, nic->umem->umem_id);
	gdri_prm_set(qpc, PRM_QPC_DBR_UMEM_VALID, 1);
	gdri_prm_set(qpc, PRM_QPC_DBR_ADDR, dbrec_offset(nic, i));
	/* Devices that know several formats refuse free-running where it is not configured. */
	gdri_prm_set(qpc, PRM_QPC_TS_FORMAT,
		     nic->caps.qp_ts_format ? PRM_QP_TS_DEFAULT : PRM_QP_TS_FREE_RUNNING);
	if (q->no_record) /* the record's place stays named, as DOCA GPUNetIO has it */
		gdri_prm_set(qpc, PRM_QPC_SEND_DBR_MODE, PRM_QP_NO_DBR_EXT);
	gdri_nic_ece_ask(nic, in);
}

/* The queue pair has a record then, in its own page. */
static void nic_qp_refused(struct gdri_nic *nic, int i, uint8_t *in, const uint8_t *out)
{
	gdri_nic_bell_mode_refused(nic, i, (unsigned int)gdri_prm_get(out, PRM_OUT_STATUS),
				   (unsigned int)gdri_prm_get(out, PRM_OUT_SYNDROME));
	gdri_prm_set(gdri_prm_at(in, PRM_QP_IN_QPC), PRM_QPC_SEND_DBR_MODE, PRM_QP_DBR_VALID);
}

int gdri_nic_qp_create(struct gdri_nic *nic, int i)
{
	uint8_t in[PRM_CREATE_QP_IN_BYTES] = {0}, out[PRM_CREATE_QP_OUT_BYTES];
	struct gdri_nic_qp *q = &nic->qps[i];
	char name[GDRI_NIC_QP_NAME];
	int ret = 0;

	nic_qp_fill(nic, i, in);
	if (q->no_record && !gdri_nic_obj_try(nic, in, sizeof(in), out, sizeof(out), &q->qp))
		nic_qp_refused(nic, i, in, out);
	if (!q->no_record)
		ret = gdri_nic_obj_create(nic, gdri_nic_qp_name(nic, "CREATE_QP", i, name), in, sizeof(in), out,
					  sizeof(out), &q->qp);
	q->qpn = (uint32_t)gdri_prm_get(out, PRM_CREATE_QP_OUT_QPN);
	gdri_nic_ece_offered(nic, i, out);
	return ret;
}
