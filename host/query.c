// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include <gdr/device.h>

#include "host/host.h"
#include "runtime/core/log.h"
#include "runtime/mem/heap.h"
#include "runtime/net/net.h"

struct gdri_state *gdri_need_state(const char *call)
{
	struct gdri_state *st = gdri_state_get();

	if (st)
		return st;
	if (gdri_state_forked())
		gdri_error("%s: this process was forked by a PE, and is none: only that PE can make the call", call);
	else
		gdri_error("%s: the library is not initialised, or already finalised", call);
	return NULL;
}

/* Of host threads. In the checked build functions have names of their own. */
int gdri_hd_no_library(const char *call)
{
	static const char checked[] = "gdri_at_";

	if (!strncmp(call, checked, sizeof(checked) - 1))
		call += sizeof(checked) - 1;
	if (gdri_need_state(call))
		gdri_error("%s: kernels of this job run on a GPU: compile the call with nvcc, or use its gdr_host_ "
			   "form (gdr/host_ops.h)", call);
	return -GDR_ESTATE;
}

int gdr_host_my_pe(void)
{
	const struct gdri_state *st = gdri_state_get();

	return st ? st->pe : -GDR_ESTATE;
}

int gdr_host_n_pes(void)
{
	const struct gdri_state *st = gdri_state_get();

	return st ? st->n_pes : -GDR_ESTATE;
}

int gdr_version(void)
{
	return GDR_VERSION_MAJOR * 10000 + GDR_VERSION_MINOR * 100 + GDR_VERSION_PATCH;
}

int gdr_query(struct gdr_job_info *info)
{
	const struct gdri_state *st = gdri_need_state("gdr_query");

	if (!st)
		return -GDR_ESTATE;
	if (!info)
		return gdri_fail(-GDR_EINVAL, "gdr_query: info is NULL");
	memset(info, 0, sizeof(*info));
	info->device_kind = st->cuda ? "cuda" : "host device";
	info->bootstrap = st->boot->name;
	for (int i = 0; i < st->n_pes; i++) {
		if (st->peers[i].base)
			info->n_p2p++;
		else
			info->n_nic++;
	}
	info->n_nodes = st->n_nodes;
	info->heap_size = gdri_heap_size(st->heap);
	if (st->net) {
		info->nic = st->net->name;
		info->nic_text = st->net->text;
		info->n_queues = st->dev->n_queues;
		info->queue_depth = st->opt.qp_depth;
		info->heap_memory = st->net->heap_text;
		info->queue_memory = st->net->queue_text;
		info->doorbell = st->net->bell_text;
	}
	return 0;
}
