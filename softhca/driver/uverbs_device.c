/* SPDX-License-Identifier: BSD-3-Clause */
/* Device, port and context: what ibv_open_device and the query calls ask. */
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/driver/shim.h"
#include "softhca/driver/uverbs.h"

/* Where enum ib_device_cap_flags of the kernel meets what is modelled. */
#define DEVICE_CAPS (1u << 10 /* port active event */ | 1u << 11 /* system image GUID */ |         \
		     1u << 12 /* RNR NAK generation */ | 1u << 17 /* memory windows, */ |          \
		     1u << 21 /* invalidated by SEND and locally, */ | 1u << 24 /* type 2B */)
#define ODP_EXPLICIT_AND_IMPLICIT 3u
#define ATOMIC_HCA  1u /* IB_ATOMIC_HCA: atomic among the device's operations */

int um_get_context(struct uverbs_call *call)
{
	/* tot_bfregs 0: every UAR page is allocated by its own ioctl.
	 * clock_info_versions 0: no clock pages to map. */
	struct mlx5_ib_alloc_ucontext_resp resp = {
		.qp_tab_size = 1 << 18,
		.bf_reg_size = 512,
		.cache_line_size = 64,
		.max_sq_desc_sz = 1024,
		.max_rq_desc_sz = 512,
		.max_send_wqebb = 1u << HCA_LOG_MAX_WQEBB,
		.max_recv_wr = 32768,
		.max_srq_recv_wr = 32767,
		.num_ports = 1,
		.response_length = sizeof(resp),
		.cqe_version = 1, /* CQEs carry the user index */
		.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE |
				 MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
		.eth_min_inline = MLX5_USER_INLINE_MODE_NONE,
		.log_uar_size = 12,
		.num_uars_per_page = (uint32_t)(hca_page() >> 12),
		.num_dyn_bfregs = 1024,
		.comp_mask = hca_options()->device.ece ? MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_ECE : 0,
	};
	uint32_t vectors = HCA_COMP_VECTORS;
	uint64_t core_support = 1; /* IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS */
	int rc;

	if (call->ctx->ready)
		return EINVAL;
	rc = engine_start();
	if (rc) {
		hca_warn("the device cannot start: %s", limits_text(rc < 0 ? -rc : rc).s);
		return rc < 0 ? -rc : rc;
	}
	shim_host_check();
	ua_out(call, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof(vectors));
	ua_out(call, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &core_support, sizeof(core_support));
	call->ctx->ready = true;
	return ua_out(call, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
}

static void fill_device(const struct hca_ctx *ctx, struct ib_uverbs_query_device_resp *r)
{

	*r = (struct ib_uverbs_query_device_resp){
		.fw_ver = hca_options()->device.firmware,
		.max_mr_size = hca_options()->max_mr ? hca_options()->max_mr : UINT64_MAX,
		.page_size_cap = 0xfffffffffffff000ull,
		.vendor_id = 0x2c9,
		.vendor_part_id = hca_options()->device.part,
		.max_qp = 1 << 17,
		.max_qp_wr = 32768,
		.device_cap_flags = DEVICE_CAPS,
		.max_sge = 30,
		.max_sge_rd = 30,
		.max_cq = 1 << 24,
		.max_cqe = (1 << HCA_LOG_MAX_CQ) - 1,
		.max_mr = 1 << 24,
		.max_mw = 1 << 24,
		.max_pd = 1 << 24,
		.max_qp_rd_atom = HCA_MAX_RD_ATOMIC,
		.max_res_rd_atom = HCA_MAX_RD_ATOMIC << 17,
		.max_qp_init_rd_atom = HCA_MAX_RD_ATOMIC,
		.atomic_cap = ATOMIC_HCA,
		.max_ah = INT32_MAX,
		.max_srq = 1 << 23,
		.max_srq_wr = 32767,
		.max_srq_sge = 31,
		.max_pkeys = 128,
		.local_ca_ack_delay = 16,
		.phys_port_cnt = 1,
	};
	r->node_guid = htobe64(port_guid(ctx->device));
	r->sys_image_guid = htobe64(port_guid(0)); /* one card */
}

int uw_query_device(struct uverbs_call *call)
{
	struct ib_uverbs_query_device_resp r;

	fill_device(call->ctx, &r);
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &r, sizeof(r));
}

int uw_ex_query_device(struct uverbs_call *call)
{
	struct ib_uverbs_ex_query_device_resp r = {0};
	struct mlx5_ib_query_device_resp uhw = {0};
	size_t room = ua_len(call, UVERBS_ATTR_CORE_OUT);
	size_t uhw_room = ua_len(call, UVERBS_ATTR_UHW_OUT);

	fill_device(call->ctx, &r.base);
	r.response_length = (uint32_t)(room < sizeof(r) ? room : sizeof(r));
	r.device_cap_flags_ex = DEVICE_CAPS;
	r.max_dm_size = HCA_DM_MOST;
	r.odp_caps.general_caps = ODP_EXPLICIT_AND_IMPLICIT;
	r.odp_caps.per_transport_caps.rc_odp_caps = HCA_ODP_RC;
	r.odp_caps.per_transport_caps.ud_odp_caps = HCA_ODP_UD;
	uhw.response_length = (uint32_t)(uhw_room < sizeof(uhw) ? uhw_room : sizeof(uhw));
	ua_out(call, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
	return ua_out(call, UVERBS_ATTR_CORE_OUT, &r, sizeof(r));
}

int um_query_port(struct uverbs_call *call)
{
	struct ib_uverbs_query_port_resp_ex r = {
		.legacy_resp =
			{
				.port_cap_flags = 1u << 16, /* communication management */
				.max_msg_sz = 1u << 30,
				.gid_tbl_len = HCA_GIDS,
				.pkey_tbl_len = 1,
				.lid = port_lid(call->ctx->device),
				.state = port_is_down() ? 1 : 4, /* down, active */
				.max_mtu = 5,
				.active_mtu = (uint8_t)mtu_code(port_mtu(call->ctx->device)),
				.max_vl_num = 1,
				.active_width = 2,  /* 4X */
				.active_speed = 128, /* NDR */
				.phys_state = port_is_down() ? 2 : 5, /* polling, link up */
				.link_layer = port_is_ib() ? 1 : 2,
				.flags = port_is_ib() ? 0 : 1, /* a GRH is required */
			},
	};

	if (ua_in_u64(call, UVERBS_ATTR_QUERY_PORT_PORT_NUM) != 1)
		return EINVAL;
	return ua_out(call, UVERBS_ATTR_QUERY_PORT_RESP, &r, sizeof(r));
}

/* False where the table is empty. */
static bool fill_gid(const struct hca_ctx *ctx, unsigned index, struct ib_uverbs_gid_entry *e)
{
	memset(e, 0, sizeof(*e));
	if (!port_gid(ctx->device, index, (uint8_t *)e->gid))
		return false;
	e->gid_index = index;
	e->port_num = 1;
	e->gid_type = port_is_ib() ? IB_UVERBS_GID_TYPE_IB : IB_UVERBS_GID_TYPE_ROCE_V2;
	e->netdev_ifindex = port_is_ib() ? 0 : if_nametoindex(dp_interface(ctx->device));
	return true;
}

int um_query_gid_table(struct uverbs_call *call)
{
	uint64_t count = 0, size = ua_in_u64(call, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
	size_t room = ua_len(call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	uint8_t table[HCA_GIDS * sizeof(struct ib_uverbs_gid_entry)] = {0};
	struct ib_uverbs_gid_entry e;

	/* An older program's entries may be shorter; none are longer. */
	if (size < sizeof(e.gid) || size > sizeof(e) || size % 8 || room < size)
		return EINVAL;
	for (unsigned i = 0; i < HCA_GIDS && (count + 1) * size <= room; i++)
		if (fill_gid(call->ctx, i, &e))
			memcpy(table + count++ * size, &e, size);
	ua_out(call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, table, count * size);
	return ua_out(call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &count, sizeof(count));
}

int um_query_gid_entry(struct uverbs_call *call)
{
	struct ib_uverbs_gid_entry e;

	if (ua_in_u64(call, UVERBS_ATTR_QUERY_GID_ENTRY_PORT) != 1)
		return EINVAL;
	/* ENODATA is an empty entry of the table: libibverbs answers a zero GID. */
	if (!fill_gid(call->ctx, (unsigned)ua_in_u64(call, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX),
		      &e))
		return ENODATA;
	return ua_out(call, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &e, sizeof(e));
}

/* The async fd is a pipe's reading end. */
int um_async_alloc(struct uverbs_call *call)
{
	int fd;

	if (call->ctx->async)
		return EOPNOTSUPP; /* libibverbs makes one per context */
	fd = event_channel_create(call->ctx, 0, &call->ctx->async);
	if (fd < 0)
		return -fd;
	ua_out_handle(call, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, (uint64_t)fd);
	return 0;
}
