// SPDX-License-Identifier: BSD-3-Clause
/* The full mesh of queue pairs: n_pes * slots of them, in the memory of nic/ring.c. */

#include <errno.h>
#include <stdlib.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/core/parse.h"
#include "runtime/nic/address.h"
#include "runtime/nic/impl.h"

/* Indexes of blocks are 16 bits wide in WQEs and CQEs; half of that keeps them apart. */
#define DEPTH_MIN 128u
#define DEPTH_MAX 32768u

static int check_limits(const struct gdri_nic *nic, int n_pes)
{
	unsigned limit = nic->opt.max_pes < GDRI_MAX_PES ? nic->opt.max_pes : GDRI_MAX_PES;
	unsigned slots = gdri_net_slots(&nic->opt), depth = nic->opt.qp_depth;
	char bytes[GDRI_SIZE_TEXT];

	if (n_pes < 1 || !nic->opt.qps_per_pe)
		return -GDR_EINVAL;
	if (depth < DEPTH_MIN || depth > DEPTH_MAX || (depth & (depth - 1)))
		return gdri_fail(-GDR_EOPTION, "GDR_QP_DEPTH=%u: must be a power of two from %u to %u", depth,
				 DEPTH_MIN, DEPTH_MAX);
	if ((unsigned)n_pes > limit) {
		gdri_size_text(gdri_net_queue_bytes(&nic->opt, n_pes), bytes);
		return gdri_fail(-GDR_ENOTSUP,
				 "%d PEs: queues to all of them (%u queue pairs of %u blocks to each) would take %s of "
				 "locked memory on every PE, and the limit is GDR_MAX_PES=%u: raise it (up to %u), or "
				 "lower GDR_QP_DEPTH, GDR_QPS_PER_PE and GDR_CTX_QUEUES too",
				 n_pes, slots, depth, bytes, limit, GDRI_MAX_PES);
	}
	return 0;
}

static void nic_describe_queue(const struct gdri_nic *nic, int i, struct gdri_qp *q)
{
	gdri_net_describe(&nic->layout, i, nic->ring_seen, q);
	q->db = gdri_nic_bell_of(nic, i);
	if (nic->qps[i].no_record)
		q->dbrec = NULL;
	q->qpn = nic->qps[i].qpn;
	q->qpn_shifted = gdri_to_be32(q->qpn << 8).be;
}

static int create_objects(struct gdri_nic *nic, struct gdri_qp *qps)
{
	int i, ret, n = (int)nic->layout.n;

	ret = gdri_nic_ring_create(nic);
	if (ret)
		return ret;
	ret = mlx5dv_devx_query_eqn(nic->ctx, 0, &nic->eqn);
	if (ret)
		return gdri_nic_failed(nic->name, "mlx5dv_devx_query_eqn", ret,
				       "see the kernel log (dmesg)");
	ret = gdri_nic_uar_create(nic, nic->qps, n);
	if (ret)
		return ret;
	gdri_nic_bell_mode_begin(nic);
	ret = gdri_nic_bell_create(nic);
	if (!ret)
		gdri_nic_counters_create(nic);
	for (i = 0; i < n && !ret; i++) {
		ret = gdri_nic_cq_create(nic, i);
		if (!ret)
			ret = gdri_nic_qp_create(nic, i);
		if (!ret)
			nic_describe_queue(nic, i, &qps[i]);
	}
	if (!ret)
		gdri_nic_bell_mode_end(nic);
	return ret;
}

int gdri_nic_create_queues(struct gdri_net *net, int n_pes, struct gdri_qp *qps)
{
	struct gdri_nic *nic = gdri_nic_of(net);
	int ret = check_limits(nic, n_pes);

	if (ret)
		return ret;
	if (nic->qps)
		return -GDR_ESTATE;
	gdri_net_layout(&nic->opt, n_pes, &nic->layout);
	net->address_bytes = sizeof(struct gdri_nic_address) + nic->layout.n * sizeof(uint32_t);
	nic->qps = calloc(nic->layout.n, sizeof(*nic->qps));
	if (!nic->qps)
		return gdri_nic_memory_failed(nic->name, "the list of queue pairs",
					      nic->layout.n * sizeof(*nic->qps), ENOMEM);
	ret = create_objects(nic, qps);
	if (!ret)
		ret = gdri_nic_order_find(nic);
	if (ret) {
		gdri_nic_queue_destroy(nic);
		return ret;
	}
	gdri_info("%s: %zu queue pairs of %u blocks, %s, %zu KiB of %s", nic->name, nic->layout.n,
		  nic->opt.qp_depth, nic->opt.cq == GDRI_CQ_RING ? "ring CQs" : "one-entry CQs",
		  nic->layout.total >> 10, nic->ring_text);
	return 0;
}

void gdri_nic_queue_destroy(struct gdri_nic *nic)
{
	int i, n = (int)nic->layout.n;

	gdri_nic_bell_destroy(nic); /* what was posted last is rung before its queue goes */
	for (i = 0; nic->qps && i < n; i++) {
		if (nic->qps[i].qp)
			mlx5dv_devx_obj_destroy(nic->qps[i].qp);
		if (nic->qps[i].cq)
			mlx5dv_devx_obj_destroy(nic->qps[i].cq);
	}
	if (nic->qps)
		gdri_nic_uar_destroy(nic->qps, n);
	gdri_nic_bell_mode_destroy(nic);
	free(nic->qps);
	nic->qps = NULL;
	gdri_nic_counters_destroy(nic);
	gdri_nic_ring_destroy(nic);
	nic->layout.n = 0;
}
