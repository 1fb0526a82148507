// SPDX-License-Identifier: BSD-3-Clause
/* Opening: port, GID, P_Key, MTU, protection domain, capabilities. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/nic/address.h"
#include "runtime/nic/find.h"
#include "runtime/nic/gid.h"
#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

#define MAX_GIDS  256 /* the index is 8 bits wide in the queue pair's address path */
#define MAX_PKEYS 256

static int read_gids(struct gdri_nic *nic, int n, struct gdri_gid *gids)
{
	struct ibv_gid_entry e;
	int i, err, found = 0;

	for (i = 0; i < n && i < MAX_GIDS; i++) {
		err = ibv_query_gid_ex(nic->ctx, nic->port, (uint32_t)i, &e, 0);
		if (err == ENODATA) /* an empty place in the table */
			continue;
		if (err)
			return gdri_nic_failed(nic->name, "ibv_query_gid_ex", err,
					       "see the port's gids in sysfs");
		gids[found].index = i;
		gids[found].type = e.gid_type == IBV_GID_TYPE_ROCE_V2	? GDRI_GID_ROCE_V2
				   : e.gid_type == IBV_GID_TYPE_ROCE_V1 ? GDRI_GID_ROCE_V1
									: GDRI_GID_IB;
		memcpy(gids[found++].raw, e.gid.raw, 16);
	}
	return found;
}

static int choose_gid(struct gdri_nic *nic, int table_len)
{
	struct gdri_gid gids[MAX_GIDS];
	int at, n = read_gids(nic, table_len, gids);
	char why[256];

	if (n < 0)
		return n;
	if (nic->link_layer == GDRI_LINK_IB) { /* goes by LID; GID 0 is the port's own */
		if (n > 0)
			memcpy(nic->gid, gids[0].raw, 16);
		return 0;
	}
	at = gdri_gid_choose(gids, n, nic->opt.gid_index, why, sizeof(why));
	if (at < 0) {
		gdri_error("%s port %u: %s", nic->name, nic->port, why);
		return at;
	}
	gdri_info("%s port %u: %s", nic->name, nic->port, why);
	nic->gid_index = (uint8_t)gids[at].index;
	memcpy(nic->gid, gids[at].raw, 16);
	return 0;
}

static int choose_pkey(struct gdri_nic *nic, int table_len)
{
	uint16_t table[MAX_PKEYS];
	__be16 pkey;
	char why[256];
	int i, at, n = table_len < MAX_PKEYS ? table_len : MAX_PKEYS;

	for (i = 0; i < n; i++) {
		errno = 0;
		if (ibv_query_pkey(nic->ctx, nic->port, i, &pkey))
			break;
		table[i] = be16toh(pkey);
	}
	if (!i)
		return gdri_fail(-GDR_ESYSTEM, "%s port %u: the table of partition keys cannot be read: %s", nic->name,
				 nic->port, gdri_errno_text(errno ? errno : EIO));
	at = gdri_pkey_index(table, i, (uint16_t)nic->opt.pkey, why, sizeof(why));
	if (at < 0) {
		gdri_error("%s port %u: %s", nic->name, nic->port, why);
		return at;
	}
	nic->pkey_index = (uint16_t)at;
	nic->pkey = table[at];
	return 0;
}

static int choose_mtu(struct gdri_nic *nic, unsigned active)
{
	unsigned wanted = nic->opt.mtu;

	if (active < 1 || active > 5)
		active = 1;
	if (wanted > 128u << active)
		return gdri_fail(-GDR_EOPTION,
				 "%s port %u: GDR_MTU=%u, but the port's active MTU is %u (RoCE: raise the network "
				 "interface's MTU)",
				 nic->name, nic->port, wanted, 128u << active);
	if (wanted && (wanted < 256 || (wanted & (wanted - 1))))
		return gdri_fail(-GDR_EOPTION, "GDR_MTU=%u: must be 256, 512, 1024, 2048 or 4096", wanted);
	nic->mtu = (uint8_t)(wanted ? gdri_log2_floor(wanted) - 7 : active);
	return 0;
}

/* The RoCE priority is that of a VLAN tag: 3 bits (IEEE 802.1Q), not IBTA's 4. */
static int check_service_level(const struct gdri_nic *nic)
{
	if (nic->link_layer == GDRI_LINK_IB || nic->opt.service_level <= 7)
		return 0;
	return gdri_fail(-GDR_EOPTION, "%s port %u: GDR_SERVICE_LEVEL=%u, but RoCE takes a priority from 0 to 7",
			 nic->name, nic->port, nic->opt.service_level);
}

static int query_group(struct gdri_nic *nic, unsigned group, void *out)
{
	uint8_t in[PRM_QUERY_HCA_CAP_IN_BYTES] = {0};
	int err;

	memset(out, 0, PRM_QUERY_HCA_CAP_OUT_BYTES);
	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_QUERY_HCA_CAP);
	gdri_prm_set(in, PRM_IN_OP_MOD, group << 1 | 1);
	err = mlx5dv_devx_general_cmd(nic->ctx, in, sizeof(in), out, PRM_QUERY_HCA_CAP_OUT_BYTES);
	return err ? gdri_nic_command_failed(nic->name, "QUERY_HCA_CAP", err, out) : 0;
}

/* Ports that are one bond: where it goes by queue, firmware would put many queues on one port. */
static void query_lag(struct gdri_nic *nic)
{
	uint8_t in[PRM_QUERY_LAG_IN_BYTES] = {0}, out[PRM_QUERY_LAG_OUT_BYTES] = {0};

	if (nic->caps.lag_ports < 2)
		return;
	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_QUERY_LAG);
	if (mlx5dv_devx_general_cmd(nic->ctx, in, sizeof(in), out, sizeof(out)) ||
	    !gdri_prm_get(out, PRM_QUERY_LAG_OUT_STATE) || gdri_prm_get(out, PRM_QUERY_LAG_OUT_SELECT))
		return;
	nic->lag_ports = nic->caps.lag_ports;
	gdri_info("%s: queue pairs take the %u ports of the bond in turn", nic->name, nic->lag_ports);
}

static int query_caps(struct gdri_nic *nic)
{
	uint8_t general[PRM_QUERY_HCA_CAP_OUT_BYTES], atomic[PRM_QUERY_HCA_CAP_OUT_BYTES],
		roce[PRM_QUERY_HCA_CAP_OUT_BYTES], general_2[PRM_QUERY_HCA_CAP_OUT_BYTES];
	bool eth = nic->link_layer == GDRI_LINK_ETHERNET;
	char why[256];
	int ret = query_group(nic, PRM_CAP_GENERAL, general);

	if (!ret)
		ret = query_group(nic, PRM_CAP_ATOMIC, atomic);
	if (!ret && eth)
		ret = query_group(nic, PRM_CAP_ROCE, roce);
	if (ret)
		return ret;
	gdri_nic_caps_parse(&nic->caps, general, atomic, eth ? roce : NULL);
	if (nic->caps.cap_2)
		ret = query_group(nic, PRM_CAP_GENERAL_2, general_2);
	if (ret)
		return ret;
	if (nic->caps.cap_2)
		gdri_nic_caps_parse_2(&nic->caps, general_2);
	ret = gdri_nic_caps_check(&nic->caps, gdri_log2_floor(nic->opt.qp_depth), why, sizeof(why));
	if (ret)
		gdri_error("%s cannot be used: its capability %s", nic->name, why);
	else
		query_lag(nic);
	return ret;
}

static int query_limits(struct gdri_nic *nic)
{
	struct ibv_device_attr dev;
	int err = ibv_query_device(nic->ctx, &dev);

	if (err)
		return gdri_nic_failed(nic->name, "ibv_query_device", err, "see the kernel log");
	snprintf(nic->firmware, sizeof(nic->firmware), "%.31s", dev.fw_ver);
	nic->max_mr_size = dev.max_mr_size;
	/* Fields of 3 bits: at most 2^7. Rounded down: a device must not be told to hold more
	 * than it can. */
	nic->caps.log_initiator = gdri_log2_floor((unsigned)dev.max_qp_init_rd_atom & 0xff);
	nic->caps.log_responder = gdri_log2_floor((unsigned)dev.max_qp_rd_atom & 0xff);
	return 0;
}

static int alloc_pd(struct gdri_nic *nic)
{
	struct mlx5dv_obj obj = {0};
	struct mlx5dv_pd pd = {0};
	int err;

	nic->pd = ibv_alloc_pd(nic->ctx);
	if (!nic->pd)
		return gdri_nic_failed(nic->name, "ibv_alloc_pd", errno, "see the kernel log");
	obj.pd.in = nic->pd;
	obj.pd.out = &pd;
	err = mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD);
	if (err)
		return gdri_nic_failed(nic->name, "mlx5dv_init_obj(PD)", err, "report it");
	nic->pdn = pd.pdn;
	return 0;
}

/* Random: packets of an earlier connection with the same numbers are not mistaken for ours. */
static int draw_psn(struct gdri_nic *nic)
{
	if (getrandom(&nic->psn, sizeof(nic->psn), 0) != (ssize_t)sizeof(nic->psn))
		return gdri_nic_failed(nic->name, "getrandom", errno, "report it");
	nic->psn &= 0xffffff;
	return 0;
}

static void nic_describe_device(struct gdri_nic *nic, const struct gdri_nic_found *f)
{
	char gid[64], where[96], far[64] = "";

	gdri_gid_text(nic->gid, gid, sizeof(gid));
	if (nic->link_layer == GDRI_LINK_IB)
		snprintf(where, sizeof(where), "InfiniBand, LID 0x%04x", nic->lid);
	else
		snprintf(where, sizeof(where), "RoCE v2, GID %u (%s)", nic->gid_index, gid);
	if (f->distance != GDRI_TOPO_UNKNOWN)
		snprintf(far, sizeof(far), ", distance to the GPU %s", gdri_topo_name(f->distance));
	snprintf(nic->text, sizeof(nic->text),
		 "%s port %u (one of %d usable), firmware %s, %s, MTU %u%s%s%s", nic->name, nic->port,
		 f->n_ports, nic->firmware, where, 128u << nic->mtu, far,
		 nic->caps.relaxed_only ? ", memory keys of relaxed order alone" : "",
		 gdri_nic_ece_asks(nic) ? ", ECE" : "");
	gdri_info("%s", nic->text);
}

static int set_up(struct gdri_nic *nic, const struct gdri_nic_found *f)
{
	int ret;

	nic->ctx = f->ctx;
	nic->port = f->port;
	nic->lid = f->attr.lid;
	nic->link_layer =
		f->attr.link_layer == IBV_LINK_LAYER_ETHERNET ? GDRI_LINK_ETHERNET : GDRI_LINK_IB;
	nic->beside = f->distance <= GDRI_TOPO_PXB;
	nic->grh_required = f->attr.flags & IBV_QPF_GRH_REQUIRED;
	memcpy(nic->name, f->name, sizeof(nic->name));
	ret = check_service_level(nic);
	if (!ret)
		ret = query_caps(nic);
	if (!ret)
		ret = query_limits(nic);
	if (!ret)
		ret = choose_gid(nic, f->attr.gid_tbl_len);
	if (!ret)
		ret = choose_pkey(nic, f->attr.pkey_tbl_len);
	if (!ret)
		ret = choose_mtu(nic, f->attr.active_mtu);
	if (!ret)
		ret = alloc_pd(nic);
	if (!ret)
		ret = draw_psn(nic);
	nic->net.relaxed_only = nic->caps.relaxed_only;
	if (!ret)
		nic_describe_device(nic, f);
	return ret;
}

const struct gdri_net_ops gdri_nic_ops = {
	.takes = "a ConnectX",
	.present = gdri_nic_present,
	.open = gdri_nic_open,
	.close = gdri_nic_close,
	.register_heap = gdri_nic_register_heap,
	.register_buffer = gdri_nic_register_buffer,
	.deregister = gdri_nic_deregister,
	.grow = gdri_nic_grow,
	.leave = gdri_nic_leave,
	.undo = gdri_nic_undo,
	.drop_left = gdri_nic_drop_left,
	.drop_keys = gdri_nic_drop_keys,
	.create_queues = gdri_nic_create_queues,
	.address = gdri_nic_address,
	.connect = gdri_nic_connect,
	.look = gdri_nic_look,
};

static struct gdri_nic *nic_make(const struct gdri_net_how *how)
{
	struct gdri_nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->net = (struct gdri_net){.ops = &gdri_nic_ops, .name = nic->name, .text = nic->text,
				     .patience = "GDR_ACK_TIMEOUT", .heap_text = nic->heap_text,
				     .queue_text = nic->ring_text, .bell_text = nic->bell_text,
				     .order_text = nic->order_text};
	nic->opt = *how->opt;
	nic->cuda = how->cuda;
	nic->poster = how->host_posts ? NULL : how->cuda;
	pthread_mutex_init(&nic->mr_lock, NULL);
	return nic;
}

int gdri_nic_open(const struct gdri_net_how *how, struct gdri_net **out)
{
	struct gdri_nic_found found;
	struct gdri_nic *nic;
	int ret;

	*out = NULL;
	ret = gdri_nic_find(how->opt->nic, how->near, how->turn, &found);
	if (ret)
		return ret;
	nic = nic_make(how);
	if (!nic) {
		ibv_close_device(found.ctx);
		return gdri_fail(-GDR_ENOMEM, "out of memory for the state of the NIC");
	}
	ret = set_up(nic, &found);
	if (ret) {
		gdri_nic_close(&nic->net);
		return ret;
	}
	*out = &nic->net;
	return 0;
}

/* Queues first: they use the memory regions' keys and the domain. */
void gdri_nic_close(struct gdri_net *net)
{
	struct gdri_nic *nic = gdri_nic_of(net);

	if (!nic)
		return;
	gdri_nic_queue_destroy(nic);
	gdri_nic_mr_destroy(nic);
	if (nic->pd)
		ibv_dealloc_pd(nic->pd);
	if (nic->ctx)
		ibv_close_device(nic->ctx);
	pthread_mutex_destroy(&nic->mr_lock);
	free(nic);
}
