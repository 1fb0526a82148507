/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of a queue pair, common to verbs and DEVX. */

#include "softhca/driver/control.h"
#include "softhca/tools/options.h"

int qp_activate(struct ctl_qp *qp)
{
	int rc;

	qp->qp.pdn = qp->pd->pd.pdn;
	qp->qp.device = qp->obj.ctx->device;
	qp->qp.state = HCA_QPS_RST;
	qp->port = 1; /* QUERY_QP shows it before a path has named one, too */
	/* QUERY_QP must never report 0; datagrams are as long as the port carries. */
	qp->qp.mtu = qp->qp.type == HCA_QP_UD ? port_mtu(qp->qp.device) : 256;
	if (qp->qp.type == HCA_QP_RC)
		qp->qp.order = (uint8_t)hca_options()->device.ooo;
	qp->qp.halves = qp->qp.type == HCA_QP_RC && hca_options()->device.halves;
	qp->qp.relaxed = qp->qp.type == HCA_QP_RC && hca_options()->device.relaxed_only;
	rc = qp_number(qp);
	if (rc) {
		obj_free(&qp->obj);
		return rc;
	}
	/* From here on obj_destroy undoes everything. */
	qp_refs(qp, 1);
	if (qp->counters)
		qp->qp.counters = &qp->counters->counters;
	if (qp->uar)
		uar_qp_added(qp->qp.uar_page, qp->dbr_less);
	rc = dp_qp_create(&qp->qp);
	if (rc)
		obj_destroy(&qp->obj);
	return rc < 0 ? -rc : rc;
}

void qp_set_state(struct ctl_qp *qp, enum hca_qp_state to)
{
	enum hca_qp_state from = qp->qp.state;

	qp->qp.state = to;
	if (to == HCA_QPS_RST)
		qp->ece = 0;
	if (to == HCA_QPS_RST && qp->dbr_less)
		uar_clear(qp->qp.uar_page);
	dp_qp_modified(&qp->qp, from);
}

uint32_t qp_ece_offered(uint32_t options)
{
	return options ? hca_options()->device.ece : 0;
}

/* Linux's patch "Add ability to read and write ECE options": a transition answers with what is enabled; an unconnected
 * queue pair takes its options once. */
bool qp_ece_ask(struct ctl_qp *qp, uint32_t options)
{
	bool connected = qp->qp.type == HCA_QP_RC || qp->qp.type == HCA_QP_UC;
	uint32_t on = options & hca_options()->device.ece;

	if (!options)
		return true;
	if (!hca_options()->device.ece || (!connected && qp->ece && qp->ece != on))
		return false;
	qp->ece = on;
	return true;
}
