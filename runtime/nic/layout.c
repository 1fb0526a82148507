// SPDX-License-Identifier: BSD-3-Clause
/* Where things lie in the one allocation of all queues: send queues first
 * (whole pages each), then completion queues, then doorbell records. What the
 * NIC writes (CQEs) and what device code writes (doorbell records) share no
 * 128-byte line, and no line belongs to two queue pairs. */
#include "runtime/nic/impl.h"

#include <unistd.h>

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

void gdri_nic_layout(const struct gdri_options *opt, int n_pes, struct gdri_nic_layout *l)
{
	size_t depth = opt->qp_depth;

	l->n = (size_t)n_pes * gdri_nic_slots(opt);
	l->sq = 0;
	l->sq_stride = depth * GDRI_WQE_BLOCK;
	l->cq = l->n * l->sq_stride;
	l->cq_bytes = (opt->cq == GDRI_CQ_RING ? depth : 1) * sizeof(struct gdri_cqe);
	l->cq_stride = round_up(l->cq_bytes, GDRI_LINE);
	l->dbrec = l->cq + l->n * l->cq_stride;
	l->dbrec_stride = GDRI_LINE;
	l->total = round_up(l->dbrec + l->n * l->dbrec_stride, (size_t)sysconf(_SC_PAGESIZE));
}

size_t gdri_nic_queue_bytes(const struct gdri_options *opt, int n_pes)
{
	struct gdri_nic_layout l;

	gdri_nic_layout(opt, n_pes, &l);
	return l.total;
}
