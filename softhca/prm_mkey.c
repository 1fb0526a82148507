/* SPDX-License-Identifier: BSD-3-Clause */
/* CREATE_MKEY: indirect keys that work requests fill (mkey.c), as libmlx5 makes them. Regions are made
 * by the verbs alone. */
#include "softhca/prm.h"

enum { MODE_KLMS = 2 };

static int mkey_fill(struct prm_cmd *cmd, const uint8_t *mkc, struct ctl_mr *c)
{
	struct ctl_pd *pd = pd_find(cmd->ctx, prm_get(mkc, MKC_PD));

	if (!pd)
		return prm_fail(cmd, PRM_BAD_RESOURCE, SYN_PD);
	/* Filled later: free, and open to UMR. */
	if (prm_get(mkc, MKC_ACCESS_MODE) != MODE_KLMS || prm_get(mkc, MKC_ACCESS_MODE_HI) ||
	    !prm_get(mkc, MKC_FREE) || !prm_get(mkc, MKC_UMR_EN) || prm_get(mkc, MKC_BSF_EN))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_MKEY_MODE);
	if (!prm_get(mkc, MKC_OCTOWORDS) || prm_get(mkc, MKC_OCTOWORDS) > MKC_MAX_OCTOWORDS)
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_LOG_SIZE);
	if (mr_number(c))
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	c->mr.key = (c->mr.key & ~0xffu) | prm_get(mkc, MKC_VARIANT);
	c->mr.pdn = pd->pd.pdn;
	c->mr.window = HCA_INDIRECT;
	c->mr.max_pieces = prm_get(mkc, MKC_OCTOWORDS);
	c->mr.remote_inv = prm_get(mkc, MKC_EN_RINVAL);
	c->pd = pd;
	pd->obj.refs++;
	return 0;
}

int prm_create_mkey(struct prm_cmd *cmd)
{
	struct ctl_mr *c = obj_new(cmd->ctx, OBJ_MW, sizeof(*c));
	int rc;

	if (!c)
		return prm_fail(cmd, PRM_NO_RESOURCES, SYN_MEMORY);
	c->obj.devx = true;
	rc = mkey_fill(cmd, cmd->in + CREATE_MKEY_MKC, c);
	if (rc) {
		obj_free(&c->obj);
		return rc;
	}
	prm_set(cmd->out, CMD_OBJ_NUM, c->mr.key >> 8);
	cmd->obj = &c->obj;
	return 0;
}
