/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs that verbs.h defines inline, which go to the provider by its table. Object
 * kinds and queue pair types are listed by the function that makes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"

#define MAKES(fn, type, expr, undo)                                                                \
	static int fn(struct env *e)                                                               \
	{                                                                                          \
		type *made;                                                                        \
		errno = 0;                                                                         \
		made = expr;                                                                       \
		if (!made)                                                                         \
			return failed();                                                           \
		undo;                                                                              \
		return 0;                                                                          \
	}
#define RETURNS(fn, expr)                                                                          \
	static int fn(struct env *e)                                                               \
	{                                                                                          \
		errno = 0;                                                                         \
		return int_result(expr);                                                           \
	}

#define QP_EX(t, ops)                                                                              \
	&(struct ibv_qp_init_attr_ex)                                                              \
	{                                                                                          \
		.qp_type = t, .send_cq = e->cq, .recv_cq = e->cq, .pd = e->pd,                     \
		.cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 4, .max_recv_sge = 1}, \
		.comp_mask = IBV_QP_INIT_ATTR_PD | ((ops) ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),  \
		.send_ops_flags = ops                                                              \
	}

MAKES(alloc_dm, struct ibv_dm, ibv_alloc_dm(e->ctx, &(struct ibv_alloc_dm_attr){.length = 64}),
      ibv_free_dm(made))
MAKES(alloc_mw, struct ibv_mw, ibv_alloc_mw(e->pd, IBV_MW_TYPE_1), ibv_dealloc_mw(made))
MAKES(alloc_mw_2, struct ibv_mw, ibv_alloc_mw(e->pd, IBV_MW_TYPE_2), ibv_dealloc_mw(made))
MAKES(null_mr, struct ibv_mr, ibv_alloc_null_mr(e->pd), ibv_dereg_mr(made))
MAKES(parent_domain, struct ibv_pd,
      ibv_alloc_parent_domain(e->ctx, &(struct ibv_parent_domain_init_attr){.pd = e->pd}),
      ibv_dealloc_pd(made))
MAKES(alloc_td, struct ibv_td, ibv_alloc_td(e->ctx, &(struct ibv_td_init_attr){0}),
      ibv_dealloc_td(made))
MAKES(counters, struct ibv_counters,
      ibv_create_counters(e->ctx, &(struct ibv_counters_init_attr){0}), ibv_destroy_counters(made))
MAKES(cq_ex, struct ibv_cq_ex,
      ibv_create_cq_ex(e->ctx, &(struct ibv_cq_init_attr_ex){.cqe = 8,
							     .wc_flags = IBV_WC_STANDARD_FLAGS}),
      ibv_destroy_cq(ibv_cq_ex_to_cq(made)))
MAKES(cq_ex_time, struct ibv_cq_ex,
      ibv_create_cq_ex(e->ctx, &(struct ibv_cq_init_attr_ex){
				       .cqe = 8, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP}),
      ibv_destroy_cq(ibv_cq_ex_to_cq(made)))
MAKES(flow, struct ibv_flow,
      ibv_create_flow(e->qp, &(struct ibv_flow_attr){.type = IBV_FLOW_ATTR_NORMAL,
						     .size = sizeof(struct ibv_flow_attr),
						     .port = 1}),
      ibv_destroy_flow(made))
MAKES(action_esp, struct ibv_flow_action,
      ibv_create_flow_action_esp(e->ctx, &(struct ibv_flow_action_esp_attr){0}),
      ibv_destroy_flow_action(made))
MAKES(qp_rc, struct ibv_qp, ibv_create_qp_ex(e->ctx, QP_EX(IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE)),
      ibv_destroy_qp(made))
MAKES(qp_uc, struct ibv_qp, ibv_create_qp_ex(e->ctx, QP_EX(IBV_QPT_UC, 0)), ibv_destroy_qp(made))
MAKES(qp_ud, struct ibv_qp, ibv_create_qp_ex(e->ctx, QP_EX(IBV_QPT_UD, 0)), ibv_destroy_qp(made))
MAKES(qp_raw, struct ibv_qp, ibv_create_qp_ex(e->ctx, QP_EX(IBV_QPT_RAW_PACKET, 0)),
      ibv_destroy_qp(made))
MAKES(qp_xrc, struct ibv_qp, ibv_create_qp_ex(e->ctx, QP_EX(IBV_QPT_XRC_SEND, 0)),
      ibv_destroy_qp(made))
MAKES(qp_dci, struct ibv_qp,
      mlx5dv_create_qp(e->ctx,
		       &(struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_DRIVER, .send_cq = e->cq,
						     .recv_cq = e->cq, .pd = e->pd,
						     .comp_mask = IBV_QP_INIT_ATTR_PD,
						     .cap = {.max_send_wr = 4, .max_send_sge = 1}},
		       &(struct mlx5dv_qp_init_attr){
			       .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
			       .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}}),
      ibv_destroy_qp(made))
MAKES(qp_dct, struct ibv_qp,
      mlx5dv_create_qp(e->ctx,
		       &(struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_DRIVER, .send_cq = e->cq,
						     .recv_cq = e->cq, .pd = e->pd, .srq = e->srq,
						     .comp_mask = IBV_QP_INIT_ATTR_PD},
		       &(struct mlx5dv_qp_init_attr){
			       .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
			       .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT,
						.dct_access_key = 1}}),
      ibv_destroy_qp(made))
static struct ibv_wq no_wq; /* a handle that is no queue's */
MAKES(ind_table, struct ibv_rwq_ind_table,
      ibv_create_rwq_ind_table(e->ctx, &(struct ibv_rwq_ind_table_init_attr){
					       .ind_tbl = &(struct ibv_wq *){&no_wq}}),
      ibv_destroy_rwq_ind_table(made))
MAKES(srq_ex, struct ibv_srq,
      ibv_create_srq_ex(e->ctx,
			&(struct ibv_srq_init_attr_ex){
				.attr = {.max_wr = 8, .max_sge = 1}, .pd = e->pd,
				.srq_type = IBV_SRQT_BASIC,
				.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD}),
      ibv_destroy_srq(made))
MAKES(srq_tm, struct ibv_srq,
      ibv_create_srq_ex(e->ctx,
			&(struct ibv_srq_init_attr_ex){
				.attr = {.max_wr = 8, .max_sge = 1}, .pd = e->pd,
				.srq_type = IBV_SRQT_TM, .cq = e->cq,
				.tm_cap = {.max_num_tags = 4, .max_ops = 4},
				.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
					     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM}),
      ibv_destroy_srq(made))
MAKES(create_wq, struct ibv_wq,
      ibv_create_wq(e->ctx, &(struct ibv_wq_init_attr){.wq_type = IBV_WQT_RQ, .max_wr = 4,
						       .max_sge = 1, .pd = e->pd, .cq = e->cq}),
      ibv_destroy_wq(made))
MAKES(xrcd, struct ibv_xrcd,
      ibv_open_xrcd(e->ctx,
		    &(struct ibv_xrcd_init_attr){.comp_mask = IBV_XRCD_INIT_ATTR_FD |
							      IBV_XRCD_INIT_ATTR_OFLAGS,
						 .fd = -1, .oflags = 0100}),
      ibv_close_xrcd(made))
MAKES(odp_mr, struct ibv_mr,
      ibv_reg_mr(e->pd, e->buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
      ibv_dereg_mr(made))

static int advise_mr(struct env *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf, 4096, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = 64, .lkey = mr ? mr->lkey : 0};
	int rc = mr ? ibv_advise_mr(e->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1) : failed();

	return mr && ibv_dereg_mr(mr) ? WRONG : int_result(rc);
}

RETURNS(modify_cq, ibv_modify_cq(e->cq, &(struct ibv_modify_cq_attr){
						.attr_mask = IBV_CQ_ATTR_MODERATE,
						.moderate = {.cq_count = 4, .cq_period = 4}}))
RETURNS(rate_limit, ibv_modify_qp_rate_limit(e->qp, &(struct ibv_qp_rate_limit_attr){
							   .rate_limit = 1000}))
RETURNS(device_ex, ibv_query_device_ex(e->ctx, NULL, &(struct ibv_device_attr_ex){0}))
RETURNS(rt_values, ibv_query_rt_values_ex(e->ctx, &(struct ibv_values_ex){
							.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}))
RETURNS(srq_ops, ibv_post_srq_ops(e->srq, &(struct ibv_ops_wr){.opcode = IBV_WR_TAG_SYNC},
				  &(struct ibv_ops_wr *){NULL}))
RETURNS(srq_num, ibv_get_srq_num(e->srq, &(uint32_t){0}))

#define LIVE(name, fn)	 {name, ROW_LIVE, NULL, fn}
#define TEST(name, test) {name, ROW_TEST, test, NULL}

const struct row rows_inline[] = {
	LIVE("ibv_advise_mr", advise_mr),
	LIVE("ibv_alloc_dm", alloc_dm),
	LIVE("ibv_alloc_mw", alloc_mw),
	LIVE("ibv_alloc_mw: type 2", alloc_mw_2),
	LIVE("ibv_alloc_null_mr", null_mr),
	LIVE("ibv_alloc_parent_domain", parent_domain),
	LIVE("ibv_alloc_td", alloc_td),
	LIVE("ibv_create_counters", counters),
	LIVE("ibv_create_cq_ex", cq_ex),
	LIVE("ibv_create_cq_ex: time stamps", cq_ex_time),
	LIVE("ibv_create_flow", flow),
	LIVE("ibv_create_flow_action_esp", action_esp),
	LIVE("ibv_create_qp_ex", qp_rc),
	LIVE("ibv_create_qp_ex: UC", qp_uc),
	LIVE("ibv_create_qp_ex: UD", qp_ud),
	LIVE("ibv_create_qp_ex: raw packet", qp_raw),
	LIVE("ibv_create_qp_ex: XRC", qp_xrc),
	LIVE("mlx5dv_create_qp: DCI", qp_dci),
	LIVE("mlx5dv_create_qp: DCT", qp_dct),
	LIVE("ibv_create_rwq_ind_table", ind_table),
	LIVE("ibv_create_srq_ex", srq_ex),
	LIVE("ibv_create_srq_ex: tag matching", srq_tm),
	LIVE("ibv_create_wq", create_wq),
	LIVE("ibv_get_srq_num", srq_num),
	LIVE("ibv_modify_cq", modify_cq),
	LIVE("ibv_modify_qp_rate_limit", rate_limit),
	{"ibv_open_qp", ROW_NEEDS, "ibv_open_xrcd", NULL},
	LIVE("ibv_open_xrcd", xrcd),
	LIVE("ibv_post_srq_ops", srq_ops),
	LIVE("ibv_query_device_ex", device_ex),
	LIVE("ibv_query_rt_values_ex", rt_values),
	LIVE("ibv_reg_mr: on demand", odp_mr),
	{0},
};
