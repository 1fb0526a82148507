/* SPDX-License-Identifier: BSD-3-Clause */
/* On-demand paging: a region's memory is looked at when it is used, not when it is registered. The engine goes by the
 * program's addresses, so what lies there at that time is what it finds, and it takes no page fault of its own: the
 * kernel brings pages as for any thread. The rules are those of Linux's mlx5_ib, its files
 * odp and mr. */
#include <errno.h>
#include <stdlib.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>

#include "softhca/driver/uverbs.h"
#include "softhca/memory/probe.h"
#include "softhca/tools/options.h"

int odp_check(const struct hca_mr *mr)
{
	if (hca_mr_implicit(mr) && mr->iova)
		return EINVAL;
	range_on_demand();
	return 0;
}

/* The region that an entry of advice names, or why not. */
static int odp_region(const struct ctl_pd *pd, const struct ib_uverbs_sge *sge, bool write, const struct hca_mr **out)
{
	const struct hca_mr *mr = hca_find_mr(sge->lkey);

	if (!mr || mr->window || !(mr->access & HCA_ON_DEMAND))
		return ENOENT;
	if (mr->pdn != pd->pd.pdn || (write && !(mr->access & HCA_LOCAL_WRITE)))
		return EPERM;
	if (sge->addr < mr->iova || sge->addr - mr->iova > mr->len ||
	    sge->length > mr->len - (sge->addr - mr->iova))
		return EFAULT;
	*out = mr;
	return 0;
}

/* Brings the pages. */
static int odp_prefetch(const uint8_t *va, uint64_t len, bool write)
{
	const uint64_t page = (uint64_t)host_page();

	for (uint64_t at = 0; at < len; at += page - ((uintptr_t)va + at) % page)
		if (!probe_mapped(va + at, 1, write))
			return EFAULT;
	return 0;
}

static int odp_advise(const struct ctl_pd *pd, unsigned advice, bool wait, const struct ib_uverbs_sge *sge, size_t n)
{
	bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const struct hca_mr *mr;
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		rc = odp_region(pd, &sge[i], write, &mr);
		if (!rc && wait && advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			rc = odp_prefetch(mr->va + (sge[i].addr - mr->iova), sge[i].length, write);
	}
	return rc;
}

/* Without IB_UVERBS_ADVISE_MR_FLAG_FLUSH nobody waits for the pages: the first use brings them. */
int um_mr_advise(struct uverbs_call *call)
{
	struct ctl_pd *pd = ua_obj(call, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, OBJ_PD);
	uint64_t advice = ua_in_u64(call, UVERBS_ATTR_ADVISE_MR_ADVICE);
	uint64_t flags = ua_in_u64(call, UVERBS_ATTR_ADVISE_MR_FLAGS);
	size_t size = ua_len(call, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
	struct ib_uverbs_sge *sge;
	int rc;

	if (!pd)
		return ENOENT;
	if (flags & ~(uint64_t)IB_UVERBS_ADVISE_MR_FLAG_FLUSH || !size || size % sizeof(*sge))
		return EINVAL;
	if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	sge = malloc(size);
	if (!sge)
		return ENOMEM;
	rc = EFAULT;
	if (ua_in(call, UVERBS_ATTR_ADVISE_MR_SGE_LIST, sge, size))
		rc = odp_advise(pd, (unsigned)advice, flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH, sge,
				size / sizeof(*sge));
	free(sge);
	return rc;
}
