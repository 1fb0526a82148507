/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions and windows, DEVX umems, address handles. */
#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "softhca/tools/options.h"
#include "softhca/driver/uverbs.h"

#define UMEM_PAGE 4096u /* the least that the device translates */
/* Flags that a device may ignore, and those that change nothing here: memory
 * windows, zero based, on huge pages. */
#define ACCESS_KNOWN                                                                               \
	(HCA_LOCAL_WRITE | HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC | 1u << 4 |      \
	 1u << 5 | 1u << 7 | IB_UVERBS_ACCESS_OPTIONAL_RANGE)

/* ---- protection domains ---- */

int uw_alloc_pd(struct uverbs_call *call)
{
	struct ctl_pd *pd = obj_new(call->ctx, OBJ_PD, sizeof(*pd));
	struct ib_uverbs_alloc_pd_resp resp;
	struct mlx5_ib_alloc_pd_resp uhw;
	int rc;

	if (!pd)
		return ENOMEM;
	rc = pd_number(pd);
	if (rc) {
		obj_free(&pd->obj);
		return rc;
	}
	resp.pd_handle = pd->obj.handle;
	uhw.pdn = pd->pd.pdn;
	ua_out(call, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

int um_pd_query(struct uverbs_call *call)
{
	struct ctl_pd *pd = ua_obj(call, MLX5_IB_ATTR_QUERY_PD_HANDLE, OBJ_PD);

	if (!pd)
		return ENOENT;
	return ua_out(call, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &pd->pd.pdn, sizeof(pd->pd.pdn));
}

/* ---- memory regions ---- */

int access_check(uint32_t access)
{
	if (access & ~(uint32_t)ACCESS_KNOWN)
		return EINVAL;
	/* IBTA 10.6.3.1: remote write and atomic need local write. */
	if ((access & (HCA_REMOTE_WRITE | HCA_REMOTE_ATOMIC)) && !(access & HCA_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

/* Of a region; a umem has no order of its own. */
static int access_check_mr(uint32_t access)
{
	int rc = access_check(access);

	if (!rc && hca_options()->device.relaxed_only && !(access & HCA_RELAXED_ORDERING))
		rc = EINVAL;
	return rc;
}

int mr_create(struct hca_ctx *ctx, struct ctl_pd *pd, const struct hca_mr *what, struct ctl_mr **out)
{
	uint64_t most = hca_options()->max_mr;
	struct ctl_mr *mr;
	int rc;

	if (most && what->len > most && !hca_mr_implicit(what))
		return EINVAL;
	mr = obj_new(ctx, OBJ_MR, sizeof(*mr));
	if (!mr)
		return ENOMEM;
	mr->mr = *what;
	mr->mr.pdn = pd->pd.pdn;
	rc = mr_number(mr);
	if (rc) {
		obj_free(&mr->obj);
		return rc;
	}
	mr->pd = pd;
	pd->obj.refs++;
	*out = mr;
	return 0;
}

/* Of a region on demand what lies there at each use counts, so nothing is shown. */
static void mr_show(const struct hca_mr *mr)
{
	uint64_t offset = 0;
	int fd = mr->access & HCA_ON_DEMAND ? -1 : range_file((uintptr_t)mr->va, mr->len, &offset);

	if (!hca_mr_implicit(mr))
		dp_mr_registered(mr, fd, offset);
}

int uw_reg_mr(struct uverbs_call *call)
{
	struct ib_uverbs_reg_mr cmd;
	struct ib_uverbs_reg_mr_resp resp;
	struct hca_mr what = {0};
	struct ctl_pd *pd;
	struct ctl_mr *mr;
	int rc;

	if (!ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd)))
		return EINVAL;
	/* Hardware translates whole pages: both addresses have one offset. */
	if ((cmd.start ^ cmd.hca_va) % hca_page())
		return EINVAL;
	if (!cmd.length || cmd.start + cmd.length < cmd.start)
		return EINVAL;
	rc = access_check_mr(cmd.access_flags & ~(uint32_t)HCA_ON_DEMAND);
	if (rc)
		return rc;
	pd = obj_get(call->ctx, cmd.pd_handle, OBJ_PD);
	if (!pd)
		return EINVAL;
	what.access = cmd.access_flags;
	what.iova = cmd.hca_va;
	what.len = cmd.length;
	what.va = (uint8_t *)(uintptr_t)cmd.start;
	rc = what.access & HCA_ON_DEMAND ? odp_check(&what)
					 : range_take(&call->gpu, cmd.start, cmd.length,
						      what.access & HCA_LOCAL_WRITE, &what.device);
	if (rc)
		return rc;
	rc = mr_create(call->ctx, pd, &what, &mr);
	if (rc) {
		range_give_back(what.va, what.len, what.device, false);
		return rc;
	}
	if (what.device)
		dp_mr_registered_gpu(&mr->mr, &call->gpu);
	else
		mr_show(&mr->mr);
	resp.mr_handle = mr->obj.handle;
	resp.lkey = resp.rkey = mr->mr.key;
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

enum { REREG_TRANSLATION = 1, REREG_PD = 2, REREG_ACCESS = 4 };

/* What the region will be; nothing is changed unless all of it is right. */
static int rereg_check(struct uverbs_call *call, const struct ib_uverbs_rereg_mr *cmd,
		       const struct ctl_mr *mr, struct hca_mr *to, struct ctl_pd **pd)
{
	int rc = 0;

	*to = mr->mr;
	*pd = mr->pd;
	if (cmd->flags & REREG_PD)
		*pd = obj_get(call->ctx, cmd->pd_handle, OBJ_PD);
	if (!*pd)
		return EINVAL;
	if (cmd->flags & REREG_ACCESS) {
		rc = access_check_mr(cmd->access_flags & ~(uint32_t)HCA_ON_DEMAND);
		to->access = cmd->access_flags;
	}
	if (!rc && cmd->flags & REREG_TRANSLATION) {
		if (!cmd->length || cmd->start + cmd->length < cmd->start ||
		    (cmd->start ^ cmd->hca_va) % hca_page())
			return EINVAL;
		to->iova = cmd->hca_va;
		to->len = cmd->length;
		to->va = (uint8_t *)(uintptr_t)cmd->start;
	}
	if (!rc && cmd->flags & (REREG_TRANSLATION | REREG_ACCESS))
		rc = to->access & HCA_ON_DEMAND ? odp_check(to)
						: range_check((uintptr_t)to->va, to->len,
							      to->access & HCA_LOCAL_WRITE);
	to->pdn = (*pd)->pd.pdn;
	return rc;
}

/* The keys stay: what refers to them finds the region as it is now. */
int uw_rereg_mr(struct uverbs_call *call)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ib_uverbs_rereg_mr cmd;
	struct ctl_mr *mr;
	struct ctl_pd *pd;
	struct hca_mr to;
	int rc;

	if (!ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd)))
		return EINVAL;
	if (!cmd.flags || cmd.flags & ~(uint32_t)(REREG_TRANSLATION | REREG_PD | REREG_ACCESS))
		return EINVAL;
	mr = obj_get(call->ctx, cmd.mr_handle, OBJ_MR);
	if (!mr)
		return EINVAL;
	if (mr->mr.owns_map || mr->mr.device || mr->dm)
		return EOPNOTSUPP; /* a dma-buf, device memory, or memory of a GPU */
	rc = rereg_check(call, &cmd, mr, &to, &pd);
	if (rc)
		return rc;
	pd->obj.refs++;
	mr->pd->obj.refs--;
	mr->pd = pd;
	mr->mr = to;
	dp_mr_gone(&mr->mr);
	mr_show(&mr->mr);
	resp.lkey = resp.rkey = mr->mr.key;
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

/* The device cannot tell: it is an address as any other, until it is used. */
static bool dmabuf_is_astray(int fd)
{
	enum { ANY, PCIE } way = hca_options()->device.dmabuf;

	return way != ANY && (way == PCIE) != cuda_dmabuf_by_pcie(fd);
}

int um_mr_reg_dmabuf(struct uverbs_call *call)
{
	uint32_t access = (uint32_t)ua_in_u64(call, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS);
	uint64_t offset = ua_in_u64(call, UVERBS_ATTR_REG_DMABUF_MR_OFFSET);
	struct ctl_pd *pd = ua_obj(call, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, OBJ_PD);
	struct hca_mr what = {.access = access};
	struct ctl_mr *mr;
	int rc = access_check_mr(access);

	if (rc)
		return rc;
	if (!pd)
		return ENOENT;
	what.iova = ua_in_u64(call, UVERBS_ATTR_REG_DMABUF_MR_IOVA);
	what.len = ua_in_u64(call, UVERBS_ATTR_REG_DMABUF_MR_LENGTH);
	if ((offset ^ what.iova) % hca_page())
		return EINVAL;
	rc = range_take_fd(&call->gpu, (int)ua_in_u64(call, UVERBS_ATTR_REG_DMABUF_MR_FD), offset,
			   what.len, access & HCA_LOCAL_WRITE, &what.va, &what.device);
	if (rc)
		return rc;
	what.owns_map = !what.device;
	what.astray = what.device && dmabuf_is_astray((int)ua_in_u64(call, UVERBS_ATTR_REG_DMABUF_MR_FD));
	rc = mr_create(call->ctx, pd, &what, &mr);
	if (rc) {
		range_give_back(what.va, what.len, what.device, what.owns_map);
		return rc;
	}
	if (what.device)
		dp_mr_registered_gpu(&mr->mr, &call->gpu);
	else /* mapped where something shown may have been */
		dp_mr_registered(&mr->mr, -1, 0);
	ua_out_handle(call, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, mr->obj.handle);
	ua_out(call, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &mr->mr.key, sizeof(mr->mr.key));
	return ua_out(call, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &mr->mr.key, sizeof(mr->mr.key));
}

int um_mr_query(struct uverbs_call *call)
{
	struct ctl_mr *mr = ua_obj(call, UVERBS_ATTR_QUERY_MR_HANDLE, OBJ_MR);

	if (!mr)
		return ENOENT;
	ua_out(call, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &mr->mr.key, sizeof(mr->mr.key));
	ua_out(call, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &mr->mr.key, sizeof(mr->mr.key));
	ua_out(call, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &mr->mr.len, sizeof(mr->mr.len));
	return ua_out(call, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr->mr.iova, sizeof(mr->mr.iova));
}

/* ---- DEVX umems ---- */

/* Linux, mlx5 devx.c: the largest page of the bitmap that begins and ends with the umem, or the host's. Memory is taken
 * to be contiguous, as it may be. */
static uint64_t umem_page(uint64_t va, uint64_t len, uint64_t bitmap)
{
	uint64_t least = hca_page(), page;

	while (bitmap & (bitmap - 1) && (1ull << (63 - __builtin_clzll(bitmap))) / 2 >= len)
		bitmap &= ~(1ull << (63 - __builtin_clzll(bitmap)));
	page = 1ull << (63 - __builtin_clzll(bitmap));
	while ((va % page || len % page) && page > least)
		page /= 2;
	return page;
}

int um_umem_reg(struct uverbs_call *call)
{
	uint64_t addr = ua_in_u64(call, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
	uint64_t len = ua_in_u64(call, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
	uint32_t access = (uint32_t)ua_in_u64(call, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS);
	struct ctl_umem *umem;
	uint64_t bitmap = ua_has(call, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP)
				  ? ua_in_u64(call, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP) & ~(uint64_t)(UMEM_PAGE - 1)
				  : ~(uint64_t)(UMEM_PAGE - 1);
	uint8_t *va = (uint8_t *)(uintptr_t)addr;
	bool dmabuf = ua_has(call, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD), device = false;
	int rc = access_check(access);

	if (rc)
		return rc;
	if (!len || addr + len < addr || !bitmap)
		return EINVAL;
	if (dmabuf)
		rc = range_take_fd(&call->gpu,
				   (int)ua_in_u64(call, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD), addr,
				   len, access & HCA_LOCAL_WRITE, &va, &device);
	else
		rc = range_take(&call->gpu, addr, len, access & HCA_LOCAL_WRITE, &device);
	if (rc)
		return rc;
	umem = obj_new(call->ctx, OBJ_UMEM, sizeof(*umem));
	rc = umem ? umem_number(umem) : ENOMEM;
	if (rc) {
		range_give_back(va, len, device, dmabuf && !device);
		if (umem)
			obj_free(&umem->obj);
		return rc;
	}
	umem->umem.va = va;
	umem->umem.len = len;
	umem->umem.page = umem_page((uintptr_t)va, len, bitmap);
	umem->umem.access = access;
	umem->owns_map = dmabuf && !device;
	umem->device = device;
	ua_out_handle(call, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, umem->obj.handle);
	return ua_out(call, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, &umem->umem.id,
		      sizeof(umem->umem.id));
}

/* ---- address handles ---- */

int uw_create_ah(struct uverbs_call *call)
{
	struct ib_uverbs_create_ah cmd;
	struct ib_uverbs_create_ah_resp resp;
	struct mlx5_ib_create_ah_resp uhw = {.response_length = sizeof(uhw)};
	struct ctl_pd *pd;
	struct ctl_ah *ah;
	uint8_t gid[16];

	if (!ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd)))
		return EINVAL;
	pd = obj_get(call->ctx, cmd.pd_handle, OBJ_PD);
	if (!pd || cmd.attr.port_num != 1)
		return EINVAL;
	/* RoCE has no other address than the GID. */
	if (!port_is_ib() && !cmd.attr.is_global)
		return EINVAL;
	if (cmd.attr.is_global && !port_gid(call->ctx->device, cmd.attr.grh.sgid_index, gid))
		return EINVAL;
	ah = obj_new(call->ctx, OBJ_AH, sizeof(*ah));
	if (!ah)
		return ENOMEM;
	ah->pd = pd;
	pd->obj.refs++;
	gid_to_mac(cmd.attr.grh.dgid, uhw.dmac);
	resp.ah_handle = ah->obj.handle;
	ua_out(call, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

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
