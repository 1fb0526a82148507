/* SPDX-License-Identifier: BSD-3-Clause */
/* QUERY_HCA_CAP and QUERY_ROCE_ADDRESS: what the device says it can do. A
 * capability is advertised only if it is modelled. */
#include <string.h>

#include "softhca/firmware/prm.h"
#include "softhca/tools/options.h"

enum { CAP_GENERAL = 0, CAP_ODP = 2, CAP_ATOMIC = 3, CAP_ROCE = 4, CAP_DEVICE_MEMORY = 0xf, CAP_GENERAL_2 = 0x20 };

#define CAP_AT 0x10u /* in the output mailbox */

struct cap {
	unsigned word, shift, width;
	uint32_t value;
};

/* General device capabilities, 0x100 bytes. */
static const struct cap general[] = {
	{0x04, 31, 1, 1},   /* hca_cap_2 */
	{0x10, 24, 8, 15},  /* log_max_srq_sz */
	{0x10, 16, 8, HCA_LOG_MAX_WQEBB}, /* log_max_qp_sz */
	{0x10, 0, 5, 18},   /* log_max_qp */
	{0x14, 16, 5, 23},  /* log_max_srq */
	{0x18, 16, 8, HCA_LOG_MAX_CQ}, /* log_max_cq_sz */
	{0x18, 0, 5, 24},   /* log_max_cq */
	{0x20, 23, 1, 1},   /* fixed_buffer_size */
	{0x1c, 23, 1, 1},   /* relaxed_ordering_write */
	{0x1c, 16, 6, 24},  /* log_max_mkey */
	{0x24, 16, 6, 4},   /* log_max_ra_req_dc */
	{0x24, 0, 6, 4},    /* log_max_ra_res_dc */
	{0x28, 16, 6, 4},   /* log_max_ra_req_qp */
	{0x28, 0, 6, 4},    /* log_max_ra_res_qp */
	{0x2c, 21, 1, 1},   /* rts2rts_qp_dscp */
	{0x2c, 0, 16, 1},   /* gid_table_size: 16 entries */
	{0x30, 0, 16, 0},   /* pkey_table_size: 128 entries */
	{0x34, 23, 1, 1},   /* device_memory */
	{0x34, 0, 8, 1},    /* num_ports */
	{0x38, 24, 5, 30},  /* log_max_msg */
	{0x3c, 0, 4, 1},    /* cqe_version */
	{0x40, 31, 1, 1},   /* compact_address_vector */
	{0x40, 5, 1, 1},    /* dct */
	{0x40, 1, 1, 1},    /* atomic */
	{0x44, 31, 1, 1},   /* cq_oi */
	{0x44, 30, 1, 1},   /* cq_resize */
	{0x44, 24, 1, 1},   /* pg: page faults */
	{0x44, 14, 1, 1},   /* imaicl: memory windows */
	{0x44, 0, 3, 7},    /* rc, uc, ud */
	{0x48, 31, 1, 1},   /* uar_4k */
	{0x4c, 31, 1, 1},   /* bf */
	{0x4c, 16, 5, 9},   /* log_bf_reg_size */
	{0x50, 0, 16, 1024}, /* max_wqe_sz_sq */
	{0x54, 0, 16, 512}, /* max_wqe_sz_rq */
	{0x58, 0, 16, 1024}, /* max_wqe_sz_sq_dc */
	{0x64, 16, 5, 24},  /* log_max_pd */
	{0x70, 24, 5, 23},  /* log_max_rmp */
};

/* Bits in the other direction than those of verbs. */
static const struct cap odp[] = {
	{0x10, 26, 6, 0x3f}, /* rc: send, receive, write, read, atomic, srq_receive */
	{0x18, 31, 1, 1},    /* ud: send */
	{0x20, 26, 6, 0x3f}, /* dc, as rc */
};

/* Sizes are a bit mask of powers of two: 4 and 8 bytes. Mode 1 gives the result
 * of an 8-byte atomic in host order. */
static const struct cap atomic[] = {
	{0x08, 30, 2, 1},   /* atomic_req_8B_endianness_mode */
	{0x08, 25, 1, 1},   /* supported_atomic_req_8B_endianness_mode_1 */
	{0x10, 0, 16, 0xf}, /* operations: CS, FA, masked CS, masked FA */
	{0x14, 0, 16, 0xc}, /* size_qp */
	{0x18, 0, 16, 0xc}, /* size_dc */
};

static const struct cap roce[] = {
	{0x10, 16, 4, 3},	/* l3_type: IPv4 and IPv6 */
	{0x10, 0, 8, 4},	/* roce_version: 2 */
	{0x14, 0, 16, 4791},	/* r_roce_dest_udp_port */
	{0x18, 16, 16, 0xffff}, /* r_roce_max_src_udp_port */
	{0x18, 0, 16, 0xc000},	/* r_roce_min_src_udp_port */
	{0x1c, 0, 16, HCA_GIDS}, /* roce_address_table_size */
};

/* Alignment counts in powers of two beyond the least, 64 bytes. No operations: loads and stores are all. */
static const struct cap device_memory[] = {
	{0x00, 31, 1, 1}, /* memic */
	{0x04, 16, 5, 6}, /* log_min_memic_alloc_size */
	{0x04, 0, 8, 6},  /* log_max_memic_addr_alignment */
	{0x10, 0, 32, HCA_DM_SIZE}, /* memic_bar_size */
	{0x14, 0, 32, HCA_DM_MOST}, /* max_memic_size */
};

/* The second page of general capabilities. */
static const struct cap general_2[] = {
	{0x5c, 30, 1, 1},  /* send_dbr_mode_no_dbr_ext */
	{0x5c, 24, 5, 11}, /* log_max_send_dbr_less_qp_sq: as many as there are UAR pages */
};

/* Of Ethernet, beside the general ones. */
static const struct cap ethernet[] = {
	{0x34, 8, 2, 1}, /* port_type */
	{0x40, 2, 1, 1}, /* roce */
};

static void prm_caps_put(struct prm_cmd *cmd, const struct cap *caps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (CAP_AT + caps[i].word + 4 <= cmd->out_len)
			prm_set(cmd->out + CAP_AT, caps[i].word, caps[i].shift, caps[i].width,
				caps[i].value);
}
#define prm_caps_fill(cmd, caps) prm_caps_put(cmd, caps, sizeof(caps) / sizeof((caps)[0]))

/* What SOFTHCA_DEVICE says, of the first page and of the second. */
static void fill_said(struct prm_cmd *cmd)
{
	const struct hca_device *d = &hca_options()->device;
	const struct cap said[] = {
		{0x14, 28, 1, d->ece != 0},	/* ece_support */
		{0x38, 21, 1, d->ooo},		/* dp_ordering_ooo_rw_rc */
		{0x20, 0, 6, d->klm_list},	/* log_max_klm_list_size */
		{0x40, 23, 1, !d->indirect_atomic}, /* umr_modify_atomic_disabled */
		{0x48, 23, 1, d->loopback},	/* fl_rc_qp_when_roce_disabled */
		{0x4c, 7, 1, d->lag > 1},	/* lag_tx_port_affinity */
		{0x4c, 0, 4, d->lag},		/* num_lag_ports */
		{0x74, 22, 1, d->relaxed_only}, /* mkc_order_write_after_write_ro_only */
	};

	prm_caps_fill(cmd, said);
}

static void fill_said_2(struct prm_cmd *cmd)
{
	const struct cap said[] = {{0x10, 23, 1, hca_options()->device.order_force}}; /* dp_ordering_force */

	prm_caps_fill(cmd, said);
}

static void fill_said_roce(struct prm_cmd *cmd)
{
	const struct cap said[] = {{0x00, 25, 1, hca_options()->device.loopback}}; /* fl_rc_qp_when_roce_enabled */

	prm_caps_fill(cmd, said);
}

/* Maximum and current values (op_mod bit 0) are the same; types that are not
 * listed have no capability set. */
int prm_query_hca_cap(struct prm_cmd *cmd)
{
	switch (prm_get(cmd->in, CMD_OP_MOD) >> 1) {
	case CAP_GENERAL:
		prm_caps_fill(cmd, general);
		if (!port_is_ib())
			prm_caps_fill(cmd, ethernet);
		fill_said(cmd);
		break;
	case CAP_ODP:
		prm_caps_fill(cmd, odp);
		break;
	case CAP_DEVICE_MEMORY:
		prm_caps_fill(cmd, device_memory);
		break;
	case CAP_ATOMIC:
		prm_caps_fill(cmd, atomic);
		break;
	case CAP_GENERAL_2:
		prm_caps_fill(cmd, general_2);
		fill_said_2(cmd);
		break;
	case CAP_ROCE:
		if (!port_is_ib()) {
			prm_caps_fill(cmd, roce);
			fill_said_roce(cmd);
		}
		break;
	default:
		break;
	}
	return 0;
}

/* Bonded by queue: port_select_mode 0. */
int prm_query_lag(struct prm_cmd *cmd)
{
	prm_set(cmd->out, 0x08, 0, 3, hca_options()->device.lag > 1); /* lag_state */
	return 0;
}

int prm_query_roce_address(struct prm_cmd *cmd)
{
	uint32_t index = prm_get(cmd->in, 0x08, 16, 16);
	uint8_t *layout = cmd->out + 0x10;
	uint8_t mac[6];
	bool v4;

	if (port_is_ib())
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_PORT);
	if (!port_gid(cmd->ctx->device, index, layout))
		return prm_fail(cmd, PRM_BAD_PARAM, SYN_GID_INDEX);
	v4 = !memcmp(layout, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	gid_to_mac(layout, mac);
	memcpy(layout + 0x12, mac, sizeof(mac));
	layout[0x1a] = v4 ? 0 : 1; /* roce_l3_type */
	layout[0x1b] = 2;	   /* roce_version: RoCEv2 */
	return 0;
}
