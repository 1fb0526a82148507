/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: made and taken away here, bound by work requests (window.c). */
#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>

#include "softhca/driver/uverbs.h"

int uw_alloc_mw(struct uverbs_call *call)
{
	struct ib_uverbs_alloc_mw_resp resp = {0};
	struct ib_uverbs_alloc_mw cmd;
	struct ctl_pd *pd;
	struct ctl_mr *mw;
	int rc;

	ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	pd = obj_get(call->ctx, cmd.pd_handle, OBJ_PD);
	if (!pd || (cmd.mw_type != 1 && cmd.mw_type != 2))
		return EINVAL;
	mw = obj_new(call->ctx, OBJ_MW, sizeof(*mw));
	if (!mw)
		return ENOMEM;
	mw->mr.pdn = pd->pd.pdn;
	mw->mr.window = cmd.mw_type == 1 ? HCA_WINDOW_1 : HCA_WINDOW_2;
	rc = mr_number(mw);
	if (rc) {
		obj_free(&mw->obj);
		return rc;
	}
	mw->pd = pd;
	pd->obj.refs++;
	resp.mw_handle = mw->obj.handle;
	resp.rkey = mw->mr.key;
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}
