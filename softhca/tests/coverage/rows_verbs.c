/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of libibverbs.so.1. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_sa.h>
#include <infiniband/sa.h>

#include "coverage.h"

/* Of headers that are not installed with the library. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);

#define CHECK(fn, condition)                                                                       \
	static int fn(struct env *e)                                                               \
	{                                                                                          \
		(void)e;                                                                           \
		return (condition) ? 0 : WRONG;                                                    \
	}
#define RETURNS(fn, expr)                                                                          \
	static int fn(struct env *e)                                                               \
	{                                                                                          \
		(void)e;                                                                           \
		errno = 0;                                                                         \
		return int_result(expr);                                                           \
	}

CHECK(event_type_str, !strcmp(ibv_event_type_str(IBV_EVENT_PORT_ERR), "port error"))
CHECK(node_type_str, !strcmp(ibv_node_type_str(e->list[0]->node_type), "InfiniBand channel adapter"))
CHECK(port_state_str, !strcmp(ibv_port_state_str(IBV_PORT_ACTIVE), "active"))
CHECK(wc_status_str, !strcmp(ibv_wc_status_str(IBV_WC_SUCCESS), "success"))
CHECK(rate_to_mbps, ibv_rate_to_mbps(IBV_RATE_10_GBPS) == 10000)
CHECK(mbps_to_rate, mbps_to_ibv_rate(10000) == IBV_RATE_10_GBPS)
CHECK(rate_to_mult, ibv_rate_to_mult(IBV_RATE_10_GBPS) == 4)
CHECK(mult_to_rate, mult_to_ibv_rate(4) == IBV_RATE_10_GBPS)
CHECK(device_guid, ibv_get_device_guid(e->list[0]) != 0)
CHECK(device_index, ibv_get_device_index(e->list[0]) == -1) /* a number of netlink's */
CHECK(sysfs_path, ibv_get_sysfs_path() != NULL)
CHECK(fork_status, ibv_is_fork_initialized() == IBV_FORK_DISABLED ||
			   ibv_is_fork_initialized() == IBV_FORK_UNNEEDED)
CHECK(pkey_index, ibv_get_pkey_index(e->ctx, 1, htobe16(0xffff)) == 0)
CHECK(data_in_order, ibv_query_qp_data_in_order(e->qp, IBV_WR_RDMA_WRITE, 0) == 0)

RETURNS(attach_mcast, ibv_attach_mcast(e->qp, &(union ibv_gid){.raw = {0xff}}, 0xc001))
RETURNS(detach_mcast, ibv_detach_mcast(e->qp, &(union ibv_gid){.raw = {0xff}}, 0xc001))
RETURNS(dontfork, ibv_dontfork_range(e->buf, 4096) | ibv_dofork_range(e->buf, 4096))
RETURNS(query_ece, ibv_query_ece(e->qp, &(struct ibv_ece){0}))
RETURNS(query_port, ibv_query_port(e->ctx, 1, &(struct ibv_port_attr){0}))
RETURNS(query_pkey, ibv_query_pkey(e->ctx, 1, 0, &(__be16){0}))
RETURNS(query_gid, ibv_query_gid(e->ctx, 1, 0, &(union ibv_gid){0}))
RETURNS(query_gid_ex, ibv_query_gid_ex(e->ctx, 1, 0, &(struct ibv_gid_entry){0}, 0))

static int query_gid_table(struct env *e)
{
	struct ibv_gid_entry table[64];

	return ibv_query_gid_table(e->ctx, table, 64, 0) >= 1 ? 0 : WRONG;
}

static int query_device(struct env *e)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(e->ctx, &attr))
		return failed();
	return attr.phys_port_cnt >= 1 && attr.vendor_id == 0x2c9 ? 0 : WRONG;
}

static int read_sysfs(struct env *e)
{
	char text[64];

	return ibv_read_sysfs_file(e->list[0]->ibdev_path, "node_type", text, sizeof(text)) > 0 &&
			       text[0] == '1' ? 0 : WRONG;
}

static int open_close(struct env *e)
{
	struct ibv_context *ctx = ibv_open_device(e->list[0]);

	return ctx ? int_result(ibv_close_device(ctx)) : failed();
}

static int device_list(struct env *e)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	bool same;

	(void)e;
	if (!list)
		return failed();
	same = n >= 1 && !strcmp(ibv_get_device_name(list[0]), "mlx5_0");
	ibv_free_device_list(list);
	return same ? 0 : WRONG;
}

static int fork_init(struct env *e)
{
	(void)e; /* memory is registered already: too late, and said so */
	return ibv_fork_init() == EINVAL ? 0 : WRONG;
}

/* A received datagram, as a completion tells of it. */
static void datagram(struct env *e, struct ibv_wc *wc, struct ibv_grh *grh)
{
	memset(wc, 0, sizeof(*wc));
	memset(grh, 0, sizeof(*grh));
	wc->wc_flags = IBV_WC_GRH;
	wc->src_qp = 0x123;
	grh->sgid = grh->dgid = e->gid;
	/* An IPv4 header in the last 20 bytes, where the address is one. */
	if (e->gid.raw[10] == 0xff) {
		uint8_t *ip = (uint8_t *)grh + 20;
		uint32_t sum = 0;

		ip[0] = 0x45;
		ip[8] = 64;
		ip[9] = 17;
		memcpy(ip + 12, e->gid.raw + 12, 4);
		memcpy(ip + 16, e->gid.raw + 12, 4);
		for (int i = 0; i < 20; i += 2)
			sum += (uint32_t)ip[i] << 8 | ip[i + 1];
		sum = (sum & 0xffff) + (sum >> 16);
		sum = ~((sum & 0xffff) + (sum >> 16));
		ip[10] = (uint8_t)(sum >> 8);
		ip[11] = (uint8_t)sum;
	} else {
		grh->version_tclass_flow = htobe32(6u << 28);
	}
}

static int init_ah_from_wc(struct env *e)
{
	struct ibv_ah_attr attr;
	struct ibv_grh grh;
	struct ibv_wc wc;

	datagram(e, &wc, &grh);
	if (ibv_init_ah_from_wc(e->ctx, 1, &wc, &grh, &attr))
		return failed();
	return memcmp(&attr.grh.dgid, &e->gid, 16) ? WRONG : 0;
}

static int create_ah_from_wc(struct env *e)
{
	struct ibv_grh grh;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	datagram(e, &wc, &grh);
	errno = 0;
	ah = ibv_create_ah_from_wc(e->pd, &wc, &grh, 1);
	return ah ? int_result(ibv_destroy_ah(ah)) : failed();
}

static int resolve_l2(struct env *e)
{
	struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1, .grh.dgid = e->gid};
	uint8_t mac[6];
	uint16_t vlan;

	errno = 0;
	return int_result(ibv_resolve_eth_l2_from_gid(e->ctx, &attr, mac, &vlan));
}

static int copy_ah(struct env *e)
{
	struct ib_uverbs_ah_attr from = {.dlid = 7, .is_global = 1, .grh.hop_limit = 9};
	struct ibv_ah_attr to;

	(void)e;
	ibv_copy_ah_attr_from_kern(&to, &from);
	return to.dlid == 7 && to.grh.hop_limit == 9 ? 0 : WRONG;
}

static int copy_qp(struct env *e)
{
	struct ib_uverbs_qp_attr from = {.path_mtu = IBV_MTU_2048, .dest_qp_num = 77};
	struct ibv_qp_attr to;

	(void)e;
	ibv_copy_qp_attr_from_kern(&to, &from);
	return to.path_mtu == IBV_MTU_2048 && to.dest_qp_num == 77 ? 0 : WRONG;
}

static int copy_path(struct env *e)
{
	struct ibv_sa_path_rec path = {.hop_limit = 5, .sl = 3}, back;
	struct ib_user_path_rec kern;

	(void)e;
	ibv_copy_path_rec_to_kern(&kern, &path);
	ibv_copy_path_rec_from_kern(&back, &kern);
	return back.hop_limit == 5 && back.sl == 3 ? 0 : WRONG;
}

static int reg_mr_iova(struct env *e)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(e->pd, e->buf, 4096, 0, IBV_ACCESS_LOCAL_WRITE);

	if (!mr)
		return failed();
	if (ibv_dereg_mr(mr))
		return WRONG;
	mr = ibv_reg_mr_iova2(e->pd, e->buf, 4096, 0,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	return mr ? int_result(ibv_dereg_mr(mr)) : failed();
}

static int qp_to_ex(struct env *e)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC, .send_cq = e->cq,
					   .recv_cq = e->cq, .pd = e->pd,
					   .cap = {.max_send_wr = 4, .max_send_sge = 1},
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
	struct ibv_qp *qp = ibv_create_qp_ex(e->ctx, &attr);
	bool good;

	if (!qp)
		return failed();
	good = ibv_qp_to_qp_ex(qp) != NULL;
	ibv_destroy_qp(qp);
	return good ? 0 : WRONG;
}

static int set_ece(struct env *e)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .send_cq = e->cq, .recv_cq = e->cq,
					.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &attr);
	int rc;

	if (!qp)
		return WRONG;
	errno = 0;
	rc = int_result(ibv_set_ece(qp, &(struct ibv_ece){.vendor_id = 0x15b3, .options = 1u << 28}));
	ibv_destroy_qp(qp);
	return rc;
}

static int import_device(struct env *e)
{
	int fd = dup(e->ctx->cmd_fd);
	struct ibv_context *ctx;
	int rc;

	errno = 0;
	ctx = ibv_import_device(fd);
	if (ctx)
		return int_result(ibv_close_device(ctx));
	rc = failed();
	close(fd);
	return rc;
}

static int import_pd(struct env *e)
{
	struct ibv_pd *pd;

	errno = 0;
	pd = ibv_import_pd(e->ctx, e->pd->handle);
	if (!pd)
		return failed();
	ibv_unimport_pd(pd);
	return 0;
}

static int import_mr(struct env *e)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_import_mr(e->pd, e->mr->handle);
	if (!mr)
		return failed();
	ibv_unimport_mr(mr);
	return 0;
}

static int import_dm(struct env *e)
{
	struct ibv_dm *dm = ibv_alloc_dm(e->ctx, &(struct ibv_alloc_dm_attr){.length = 64}), *import;
	int rc = 0;

	errno = 0;
	import = dm ? ibv_import_dm(e->ctx, dm->handle) : NULL;
	if (import)
		ibv_unimport_dm(import);
	else
		rc = failed();
	if (dm)
		ibv_free_dm(dm);
	return rc;
}

#define LIVE(name, fn)	 {name, ROW_LIVE, NULL, fn}
#define TEST(name, test) {name, ROW_TEST, test, NULL}
#define NEEDS(name, of)	 {name, ROW_NEEDS, of, NULL}
#define BEHIND(name, of) {name, ROW_BEHIND, of, NULL}
#define OTHER(name)	 {name, ROW_OTHER, NULL, NULL}

const struct row rows_verbs[] = {
	OTHER("__ioctl_final_num_attrs"),
	OTHER("__verbs_log"),
	LIVE("_ibv_query_gid_ex", query_gid_ex),
	LIVE("_ibv_query_gid_table", query_gid_table),
	BEHIND("_verbs_init_and_alloc_context", "ibv_open_device"),
	BEHIND("execute_ioctl", "ibv_alloc_pd"),
	TEST("ibv_ack_async_event", "softhca.objects"),
	TEST("ibv_ack_cq_events", "softhca.verbs"),
	TEST("ibv_alloc_pd", "softhca.verbs"),
	LIVE("ibv_attach_mcast", attach_mcast),
	TEST("ibv_close_device", "softhca.devx"),
	BEHIND("ibv_cmd_advise_mr", "ibv_advise_mr"),
	BEHIND("ibv_cmd_alloc_dm", "ibv_alloc_dm"),
	BEHIND("ibv_cmd_alloc_mw", "ibv_alloc_mw"),
	BEHIND("ibv_cmd_alloc_pd", "ibv_alloc_pd"),
	BEHIND("ibv_cmd_attach_mcast", "ibv_attach_mcast"),
	BEHIND("ibv_cmd_close_xrcd", "ibv_open_xrcd"),
	BEHIND("ibv_cmd_create_ah", "ibv_create_ah"),
	BEHIND("ibv_cmd_create_counters", "ibv_create_counters"),
	OTHER("ibv_cmd_create_cq"),
	BEHIND("ibv_cmd_create_cq_ex", "ibv_create_cq"),
	BEHIND("ibv_cmd_create_flow", "ibv_create_flow"),
	BEHIND("ibv_cmd_create_flow_action_esp", "ibv_create_flow_action_esp"),
	OTHER("ibv_cmd_create_qp"),
	BEHIND("ibv_cmd_create_qp_ex", "ibv_create_qp"),
	BEHIND("ibv_cmd_create_qp_ex2", "ibv_create_qp_ex"),
	BEHIND("ibv_cmd_create_rwq_ind_table", "ibv_create_rwq_ind_table"),
	BEHIND("ibv_cmd_create_srq", "ibv_create_srq"),
	BEHIND("ibv_cmd_create_srq_ex", "ibv_create_srq_ex"),
	BEHIND("ibv_cmd_create_wq", "ibv_create_wq"),
	BEHIND("ibv_cmd_dealloc_mw", "ibv_alloc_mw"),
	BEHIND("ibv_cmd_dealloc_pd", "ibv_dealloc_pd"),
	BEHIND("ibv_cmd_dereg_mr", "ibv_dereg_mr"),
	BEHIND("ibv_cmd_destroy_ah", "ibv_destroy_ah"),
	BEHIND("ibv_cmd_destroy_counters", "ibv_create_counters"),
	BEHIND("ibv_cmd_destroy_cq", "ibv_destroy_cq"),
	BEHIND("ibv_cmd_destroy_flow", "ibv_create_flow"),
	BEHIND("ibv_cmd_destroy_flow_action", "ibv_create_flow_action_esp"),
	BEHIND("ibv_cmd_destroy_qp", "ibv_destroy_qp"),
	BEHIND("ibv_cmd_destroy_rwq_ind_table", "ibv_create_rwq_ind_table"),
	BEHIND("ibv_cmd_destroy_srq", "ibv_destroy_srq"),
	BEHIND("ibv_cmd_destroy_wq", "ibv_create_wq"),
	BEHIND("ibv_cmd_detach_mcast", "ibv_detach_mcast"),
	BEHIND("ibv_cmd_free_dm", "ibv_alloc_dm"),
	BEHIND("ibv_cmd_get_context", "ibv_open_device"),
	BEHIND("ibv_cmd_modify_cq", "ibv_modify_cq"),
	BEHIND("ibv_cmd_modify_flow_action_esp", "ibv_create_flow_action_esp"),
	BEHIND("ibv_cmd_modify_qp", "ibv_modify_qp"),
	BEHIND("ibv_cmd_modify_qp_ex", "ibv_modify_qp"),
	BEHIND("ibv_cmd_modify_srq", "ibv_modify_srq"),
	BEHIND("ibv_cmd_modify_wq", "ibv_create_wq"),
	BEHIND("ibv_cmd_open_qp", "ibv_open_qp"),
	BEHIND("ibv_cmd_open_xrcd", "ibv_open_xrcd"),
	OTHER("ibv_cmd_poll_cq"),
	OTHER("ibv_cmd_post_recv"),
	OTHER("ibv_cmd_post_send"),
	OTHER("ibv_cmd_post_srq_recv"),
	BEHIND("ibv_cmd_query_context", "ibv_import_device"),
	BEHIND("ibv_cmd_query_device_any", "ibv_query_device"),
	BEHIND("ibv_cmd_query_mr", "ibv_import_mr"),
	BEHIND("ibv_cmd_query_port", "ibv_query_port"),
	BEHIND("ibv_cmd_query_qp", "ibv_query_qp"),
	BEHIND("ibv_cmd_query_srq", "ibv_query_srq"),
	BEHIND("ibv_cmd_read_counters", "ibv_create_counters"),
	BEHIND("ibv_cmd_reg_dm_mr", "ibv_alloc_dm"),
	BEHIND("ibv_cmd_reg_dmabuf_mr", "ibv_reg_dmabuf_mr"),
	BEHIND("ibv_cmd_reg_mr", "ibv_reg_mr"),
	OTHER("ibv_cmd_req_notify_cq"),
	BEHIND("ibv_cmd_rereg_mr", "ibv_rereg_mr"),
	BEHIND("ibv_cmd_resize_cq", "ibv_resize_cq"),
	LIVE("ibv_copy_ah_attr_from_kern", copy_ah),
	LIVE("ibv_copy_path_rec_from_kern", copy_path),
	LIVE("ibv_copy_path_rec_to_kern", copy_path),
	LIVE("ibv_copy_qp_attr_from_kern", copy_qp),
	TEST("ibv_create_ah", "softhca.verbs"),
	LIVE("ibv_create_ah_from_wc", create_ah_from_wc),
	TEST("ibv_create_comp_channel", "softhca.verbs"),
	TEST("ibv_create_cq", "softhca.verbs"),
	TEST("ibv_create_qp", "softhca.verbs"),
	TEST("ibv_create_srq", "softhca.verbs"),
	TEST("ibv_dealloc_pd", "softhca.verbs"),
	TEST("ibv_dereg_mr", "softhca.verbs"),
	TEST("ibv_destroy_ah", "softhca.verbs"),
	TEST("ibv_destroy_comp_channel", "softhca.verbs"),
	TEST("ibv_destroy_cq", "softhca.verbs"),
	TEST("ibv_destroy_qp", "softhca.verbs"),
	TEST("ibv_destroy_srq", "softhca.verbs"),
	LIVE("ibv_detach_mcast", detach_mcast),
	LIVE("ibv_dofork_range", dontfork),
	LIVE("ibv_dontfork_range", dontfork),
	LIVE("ibv_event_type_str", event_type_str),
	LIVE("ibv_fork_init", fork_init),
	LIVE("ibv_free_device_list", device_list),
	TEST("ibv_get_async_event", "softhca.verbs"),
	TEST("ibv_get_cq_event", "softhca.verbs"),
	LIVE("ibv_get_device_guid", device_guid),
	LIVE("ibv_get_device_index", device_index),
	LIVE("ibv_get_device_list", device_list),
	LIVE("ibv_get_device_name", device_list),
	LIVE("ibv_get_pkey_index", pkey_index),
	LIVE("ibv_get_sysfs_path", sysfs_path),
	LIVE("ibv_import_device", import_device),
	LIVE("ibv_import_dm", import_dm),
	LIVE("ibv_import_mr", import_mr),
	LIVE("ibv_import_pd", import_pd),
	LIVE("ibv_init_ah_from_wc", init_ah_from_wc),
	LIVE("ibv_is_fork_initialized", fork_status),
	TEST("ibv_modify_qp", "softhca.verbs"),
	TEST("ibv_modify_srq", "softhca.verbs"),
	LIVE("ibv_node_type_str", node_type_str),
	LIVE("ibv_open_device", open_close),
	LIVE("ibv_port_state_str", port_state_str),
	LIVE("ibv_qp_to_qp_ex", qp_to_ex),
	LIVE("ibv_query_device", query_device),
	LIVE("ibv_query_ece", query_ece),
	LIVE("ibv_query_gid", query_gid),
	BEHIND("ibv_query_gid_type", "_ibv_query_gid_ex"),
	LIVE("ibv_query_pkey", query_pkey),
	LIVE("ibv_query_port", query_port),
	TEST("ibv_query_qp", "softhca.verbs"),
	LIVE("ibv_query_qp_data_in_order", data_in_order),
	TEST("ibv_query_srq", "softhca.verbs"),
	LIVE("ibv_rate_to_mbps", rate_to_mbps),
	LIVE("ibv_rate_to_mult", rate_to_mult),
	OTHER("ibv_read_ibdev_sysfs_file"),
	LIVE("ibv_read_sysfs_file", read_sysfs),
	TEST("ibv_reg_dmabuf_mr", "softhca.verbs"),
	TEST("ibv_reg_mr", "softhca.objects"),
	LIVE("ibv_reg_mr_iova", reg_mr_iova),
	LIVE("ibv_reg_mr_iova2", reg_mr_iova),
	OTHER("ibv_register_driver"),
	TEST("ibv_rereg_mr", "softhca.objects"),
	TEST("ibv_resize_cq", "softhca.objects"),
	LIVE("ibv_resolve_eth_l2_from_gid", resolve_l2),
	LIVE("ibv_set_ece", set_ece),
	LIVE("ibv_unimport_dm", import_dm),
	LIVE("ibv_unimport_mr", import_mr),
	LIVE("ibv_unimport_pd", import_pd),
	LIVE("ibv_wc_status_str", wc_status_str),
	LIVE("mbps_to_ibv_rate", mbps_to_rate),
	LIVE("mult_to_ibv_rate", mult_to_rate),
	BEHIND("verbs_allow_disassociate_destroy", "ibv_destroy_qp"),
	BEHIND("verbs_init_cq", "ibv_create_cq"),
	BEHIND("verbs_open_device", "ibv_open_device"),
	BEHIND("verbs_register_driver_34", "ibv_get_device_list"),
	BEHIND("verbs_set_ops", "ibv_open_device"),
	BEHIND("verbs_uninit_context", "ibv_close_device"),
	{0},
};
