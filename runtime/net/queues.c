// SPDX-License-Identifier: BSD-3-Clause
/* Where things lie in the one allocation of all queues: send queues first
 * (whole pages each), then completion queues, then doorbell records. What the
 * NIC writes (CQEs) and what device code writes (doorbell records) share no
 * 128-byte line, and no line belongs to two queue pairs. */
#include "runtime/net/queues.h"

#include <unistd.h>

#include "runtime/net/net.h"

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

void gdri_net_layout(const struct gdri_options *opt, int n_pes, struct gdri_net_layout *l)
{
	l->n_pes = n_pes;
	l->n_slots = (int)gdri_net_slots(opt);
	l->own = (int)opt->qps_per_pe;
	l->depth = opt->qp_depth;
	l->cq_mask = opt->cq == GDRI_CQ_RING ? l->depth - 1 : 0;
	l->n = (size_t)n_pes * (size_t)l->n_slots;
	l->sq = 0;
	l->sq_stride = (size_t)l->depth * GDRI_WQE_BLOCK;
	l->cq = l->n * l->sq_stride;
	l->cq_bytes = ((size_t)l->cq_mask + 1) * sizeof(struct gdri_cqe);
	l->cq_stride = round_up(l->cq_bytes, GDRI_LINE);
	l->dbrec = l->cq + l->n * l->cq_stride;
	l->dbrec_stride = GDRI_LINE;
	l->total = round_up(l->dbrec + l->n * l->dbrec_stride, (size_t)sysconf(_SC_PAGESIZE));
}

uint64_t gdri_net_largest_page(const struct gdri_net_layout *l)
{
	uint64_t places = l->sq | l->sq_stride | l->cq | l->cq_stride;

	return 64 * (places & -places);
}

size_t gdri_net_queue_bytes(const struct gdri_options *opt, int n_pes)
{
	struct gdri_net_layout l;

	gdri_net_layout(opt, n_pes, &l);
	return l.total;
}

void gdri_net_describe(const struct gdri_net_layout *l, int i, uint8_t *base, struct gdri_qp *q)
{
	size_t at = (size_t)i;

	q->sq = base + l->sq + at * l->sq_stride;
	q->cq = (struct gdri_cqe *)(void *)(base + l->cq + at * l->cq_stride);
	/* PRM: dword 0 counts receives, dword 1 sends */
	q->dbrec = (uint32_t *)(void *)(base + l->dbrec + at * l->dbrec_stride) + 1;
	q->depth = l->depth;
	q->cq_mask = l->cq_mask;
	q->peer = gdri_net_peer(l, i);
	q->slot = (uint32_t)gdri_net_slot(l, i);
}

void gdri_net_set_keys(const struct gdri_net_layout *l, int peer, const struct gdri_mr_keys *keys, struct gdri_qp *qps)
{
	for (int slot = 0; slot < l->n_slots; slot++) {
		struct gdri_qp *q = &qps[gdri_net_index(l, peer, slot)];

		/* contexts: no quiet tells gdri_put_rkey what of one is behind a fence */
		q->rkey_data = gdri_to_be32(slot < l->own ? keys->rkey_data : keys->rkey_sync);
		q->rkey_sync = gdri_to_be32(keys->rkey_sync);
	}
}
