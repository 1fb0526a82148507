/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of libmlx5.so.1. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coverage.h"

/* A function that makes an object: refused, or made and taken away. */
#define MAKES(fn, type, expr, undo)                                                                \
	static int fn(struct env *e)                                                               \
	{                                                                                          \
		type *made;                                                                        \
		(void)e;                                                                           \
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
		(void)e;                                                                           \
		errno = 0;                                                                         \
		return int_result(expr);                                                           \
	}

/* Of a key without signatures, which there are none of. */
static int check_mkey(struct env *e)
{
	struct mlx5dv_mkey *made = mlx5dv_create_mkey(&(struct mlx5dv_mkey_init_attr){
		.pd = e->pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 1});
	struct mlx5dv_mkey_err err;
	int rc;

	if (!made)
		return errno;
	rc = mlx5dv_mkey_check(made, &err);
	mlx5dv_destroy_mkey(made);
	return int_result(rc);
}
MAKES(create_flow_matcher, struct mlx5dv_flow_matcher,
      mlx5dv_create_flow_matcher(e->ctx,
				 &(struct mlx5dv_flow_matcher_attr){
					 .type = IBV_FLOW_ATTR_NORMAL,
					 .match_mask = (struct mlx5dv_flow_match_parameters *)
						 &(uint64_t[3]){16}}),
      mlx5dv_destroy_flow_matcher(made))
MAKES(create_flow_action_esp, struct ibv_flow_action,
      mlx5dv_create_flow_action_esp(e->ctx, &(struct ibv_flow_action_esp_attr){0},
				    &(struct mlx5dv_flow_action_esp){0}),
      ibv_destroy_flow_action(made))
MAKES(create_modify_header, struct ibv_flow_action,
      mlx5dv_create_flow_action_modify_header(e->ctx, 8, &(uint64_t){0},
					      MLX5DV_FLOW_TABLE_TYPE_NIC_RX),
      ibv_destroy_flow_action(made))
MAKES(create_packet_reformat, struct ibv_flow_action,
      mlx5dv_create_flow_action_packet_reformat(
	      e->ctx, 0, NULL, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2,
	      MLX5DV_FLOW_TABLE_TYPE_NIC_RX),
      ibv_destroy_flow_action(made))
MAKES(create_steering_anchor, struct mlx5dv_steering_anchor,
      mlx5dv_create_steering_anchor(e->ctx, &(struct mlx5dv_steering_anchor_attr){0}),
      mlx5dv_destroy_steering_anchor(made))
MAKES(alloc_dm, struct ibv_dm,
      mlx5dv_alloc_dm(e->ctx, &(struct ibv_alloc_dm_attr){.length = 64},
		      &(struct mlx5dv_alloc_dm_attr){0}),
      ibv_free_dm(made))
static int dm_map_op(struct env *e)
{
	struct ibv_dm *dm = ibv_alloc_dm(e->ctx, &(struct ibv_alloc_dm_attr){.length = 64});
	int rc = WRONG;

	errno = 0;
	if (dm && !mlx5dv_dm_map_op_addr(dm, 0))
		rc = failed();
	if (dm)
		ibv_free_dm(dm);
	return rc;
}
MAKES(alloc_var, struct mlx5dv_var, mlx5dv_alloc_var(e->ctx, 0), mlx5dv_free_var(made))
MAKES(pp_alloc, struct mlx5dv_pp, mlx5dv_pp_alloc(e->ctx, 8, &(uint64_t){0}, 0),
      mlx5dv_pp_free(made))
MAKES(dek_create, struct mlx5dv_dek,
      mlx5dv_dek_create(e->ctx, &(struct mlx5dv_dek_init_attr){.pd = e->pd}),
      mlx5dv_dek_destroy(made))
MAKES(crypto_login_create, struct mlx5dv_crypto_login_obj,
      mlx5dv_crypto_login_create(e->ctx, &(struct mlx5dv_crypto_login_attr_ex){0}),
      mlx5dv_crypto_login_destroy(made))
MAKES(sched_node_create, struct mlx5dv_sched_node,
      mlx5dv_sched_node_create(e->ctx, &(struct mlx5dv_sched_attr){0}),
      mlx5dv_sched_node_destroy(made))
MAKES(sched_leaf_create, struct mlx5dv_sched_leaf,
      mlx5dv_sched_leaf_create(e->ctx, &(struct mlx5dv_sched_attr){0}),
      mlx5dv_sched_leaf_destroy(made))
MAKES(cmd_comp, struct mlx5dv_devx_cmd_comp, mlx5dv_devx_create_cmd_comp(e->ctx),
      mlx5dv_devx_destroy_cmd_comp(made))
MAKES(msi_vector, struct mlx5dv_devx_msi_vector, mlx5dv_devx_alloc_msi_vector(e->ctx),
      mlx5dv_devx_free_msi_vector(made))
MAKES(create_eq, struct mlx5dv_devx_eq,
      mlx5dv_devx_create_eq(e->ctx, &(uint64_t[8]){0}, 64, &(uint64_t[2]){0}, 16),
      mlx5dv_devx_destroy_eq(made))
MAKES(dr_drop, struct mlx5dv_dr_action, mlx5dv_dr_action_create_drop(),
      mlx5dv_dr_action_destroy(made))
MAKES(dr_default_miss, struct mlx5dv_dr_action, mlx5dv_dr_action_create_default_miss(),
      mlx5dv_dr_action_destroy(made))
MAKES(dr_tag, struct mlx5dv_dr_action, mlx5dv_dr_action_create_tag(1),
      mlx5dv_dr_action_destroy(made))
MAKES(dr_pop_vlan, struct mlx5dv_dr_action, mlx5dv_dr_action_create_pop_vlan(),
      mlx5dv_dr_action_destroy(made))
MAKES(dr_dest_qp, struct mlx5dv_dr_action, mlx5dv_dr_action_create_dest_ibv_qp(e->qp),
      mlx5dv_dr_action_destroy(made))
MAKES(create_wq, struct ibv_wq,
      mlx5dv_create_wq(e->ctx,
		       &(struct ibv_wq_init_attr){.wq_type = IBV_WQT_RQ, .max_wr = 4,
						  .max_sge = 1, .pd = e->pd, .cq = e->cq},
		       &(struct mlx5dv_wq_init_attr){0}),
      ibv_destroy_wq(made))
MAKES(vfio_list, struct ibv_device *,
      mlx5dv_get_vfio_device_list(
	      &(struct mlx5dv_vfio_context_attr){.pci_name = "50fc:01:00.0"}),
      ibv_free_device_list(made))
MAKES(umem_reg_ex, struct mlx5dv_devx_umem,
      mlx5dv_devx_umem_reg_ex(e->ctx, &(struct mlx5dv_devx_umem_in){
					      .addr = e->buf, .size = 4096, .pgsz_bitmap = ~0ull,
					      .access = IBV_ACCESS_LOCAL_WRITE}),
      mlx5dv_devx_umem_dereg(made))

RETURNS(crypto_login, mlx5dv_crypto_login(e->ctx, &(struct mlx5dv_crypto_login_attr){0}))
RETURNS(crypto_state, mlx5dv_crypto_login_query_state(
			      e->ctx, &(enum mlx5dv_crypto_login_state){0}))
RETURNS(crypto_logout, mlx5dv_crypto_logout(e->ctx))
RETURNS(clock_info, mlx5dv_get_clock_info(e->ctx, &(struct mlx5dv_clock_info){0}))
RETURNS(query_port, _mlx5dv_query_port(e->ctx, 1, &(struct mlx5dv_port){0},
				       sizeof(struct mlx5dv_port)))
RETURNS(query_lag_port, mlx5dv_query_qp_lag_port(e->qp, &(uint8_t){0}, &(uint8_t){0}))
RETURNS(modify_lag_port, mlx5dv_modify_qp_lag_port(e->qp, 1))
RETURNS(udp_sport, mlx5dv_modify_qp_udp_sport(e->qp, 0xc001))
RETURNS(stream_reset, mlx5dv_dci_stream_id_reset(e->qp, 1))
RETURNS(sched_elem, mlx5dv_modify_qp_sched_elem(e->qp, NULL, NULL))
RETURNS(qpn_alloc, mlx5dv_reserved_qpn_alloc(e->ctx, &(uint32_t){0}))
RETURNS(qpn_dealloc, mlx5dv_reserved_qpn_dealloc(e->ctx, 77))
RETURNS(context_attr, mlx5dv_set_context_attr(e->ctx, MLX5DV_CTX_ATTR_BUF_ALLOCATORS,
					      &(struct mlx5dv_ctx_allocators){0}))
RETURNS(srq_query, mlx5dv_devx_srq_query(e->srq, &(uint64_t[2]){htobe64(0x702ull << 48)}, 16,
					 &(uint64_t[34]){0}, 272))
RETURNS(srq_modify, mlx5dv_devx_srq_modify(e->srq, &(uint64_t[2]){htobe64(0x703ull << 48)}, 16,
					   &(uint64_t[2]){0}, 16))

static int query_device(struct env *e)
{
	struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_DC_ODP_CAPS};

	if (mlx5dv_query_device(e->ctx, &dv))
		return failed();
	return dv.flags & MLX5DV_CONTEXT_FLAGS_CQE_V1 ? 0 : WRONG;
}

static int create_cq(struct env *e)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
					 .cqe_size = 128};
	struct ibv_cq_ex *cq = mlx5dv_create_cq(e->ctx, &attr, &dv);
	struct mlx5dv_cq out = {0};
	struct mlx5dv_obj obj = {.cq = {.out = &out}};

	if (!cq)
		return failed();
	obj.cq.in = ibv_cq_ex_to_cq(cq);
	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) || out.cqe_size != 128)
		return WRONG;
	return int_result(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

static int create_qp(struct env *e)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC, .send_cq = e->cq,
					   .recv_cq = e->cq, .pd = e->pd,
					   .cap = {.max_send_wr = 4, .max_send_sge = 1},
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
	struct ibv_qp *qp = mlx5dv_create_qp(e->ctx, &attr, &(struct mlx5dv_qp_init_attr){0});

	if (!qp)
		return failed();
	if (!mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp)))
		return WRONG;
	return int_result(ibv_destroy_qp(qp));
}

/* Works on queue pairs made for pipelined signatures, which need an mkey. */
static int cancel_posted(struct env *e)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC, .send_cq = e->cq,
					   .recv_cq = e->cq, .pd = e->pd,
					   .cap = {.max_send_wr = 4, .max_send_sge = 1},
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
	struct ibv_qp *qp = mlx5dv_create_qp(e->ctx, &attr, &(struct mlx5dv_qp_init_attr){0});
	int rc;

	if (!qp)
		return WRONG;
	rc = mlx5dv_qp_cancel_posted_send_wrs(mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp)), 1);
	ibv_destroy_qp(qp);
	return rc < 0 ? -rc : WRONG;
}

static int open_twice(struct env *e)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_context *ctx;

	if (!mlx5dv_is_supported(e->list[0]))
		return WRONG;
	ctx = mlx5dv_open_device(e->list[0], &attr);
	if (!ctx)
		return failed();
	return int_result(ibv_close_device(ctx));
}

static int cq_query(struct env *e)
{
	uint8_t in[16] = {0x04, 0x02}, out[0x110] = {0};
	struct mlx5dv_cq dv;
	struct mlx5dv_obj obj = {.cq = {.in = e->cq, .out = &dv}};
	int rc;

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ))
		return WRONG;
	memcpy(in + 8, &(uint32_t){htobe32(dv.cqn)}, 4);
	rc = int_result(mlx5dv_devx_cq_query(e->cq, in, sizeof(in), out, sizeof(out)));
	return rc ? rc : (out[0x1c] & 0x1f) == (uint8_t)__builtin_ctz(dv.cqe_cnt) ? 0 : WRONG;
}

static int cq_modify(struct env *e)
{
	uint8_t in[0x110] = {0x04, 0x03}, out[16] = {0};
	struct mlx5dv_cq dv;
	struct mlx5dv_obj obj = {.cq = {.in = e->cq, .out = &dv}};

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ))
		return WRONG;
	memcpy(in + 8, &(uint32_t){htobe32(dv.cqn)}, 4);
	in[0x0f] = 4; /* overrun ignore */
	return int_result(mlx5dv_devx_cq_modify(e->cq, in, sizeof(in), out, sizeof(out)));
}

static int qp_query(struct env *e)
{
	uint8_t in[16] = {0x05, 0x0b}, out[0x110] = {0};
	int rc;

	memcpy(in + 8, &(uint32_t){htobe32(e->qp->qp_num)}, 4);
	rc = int_result(mlx5dv_devx_qp_query(e->qp, in, sizeof(in), out, sizeof(out)));
	return rc ? rc : out[0x18] >> 4 == 3 ? 0 : WRONG; /* RTS */
}

static int qp_modify(struct env *e)
{
	uint8_t in[0x110] = {0x05, 0x05}, out[16] = {0}; /* RTS2RTS */

	memcpy(in + 8, &(uint32_t){htobe32(e->qp->qp_num)}, 4);
	return int_result(mlx5dv_devx_qp_modify(e->qp, in, sizeof(in), out, sizeof(out)));
}

static int map_ah(struct env *e)
{
	struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1, .grh.dgid = e->gid};
	struct ibv_ah *ah = ibv_create_ah(e->pd, &attr);
	int rc;

	if (!ah)
		return failed();
	errno = 0;
	rc = int_result(mlx5dv_map_ah_to_qp(ah, e->qp->qp_num));
	ibv_destroy_ah(ah);
	return rc;
}

/* ---- steering: domains and their root tables are libmlx5's own, what is put into
 * them is the device's ---- */

typedef void *(*dr_make)(struct mlx5dv_dr_domain *domain, struct mlx5dv_dr_table *table);

static int dr_do(struct env *e, dr_make make, int (*undo)(void *))
{
	struct mlx5dv_dr_domain *domain =
		mlx5dv_dr_domain_create(e->ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	struct mlx5dv_dr_table *table = domain ? mlx5dv_dr_table_create(domain, 0) : NULL;
	void *made;
	int rc = 0;

	if (!table)
		return failed();
	errno = 0;
	made = make(domain, table);
	if (!made)
		rc = failed();
	else if (undo && undo(made))
		rc = WRONG;
	if (mlx5dv_dr_table_destroy(table) || mlx5dv_dr_domain_destroy(domain))
		return WRONG;
	return rc;
}

static int undo_action(void *action)
{
	return mlx5dv_dr_action_destroy(action);
}

static int undo_matcher(void *matcher)
{
	return mlx5dv_dr_matcher_destroy(matcher);
}

/* Something that is not NULL, for what worked and made nothing; NULL and errno else. */
static void *done(int rc)
{
	static int something;

	if (rc)
		errno = rc < 0 ? -rc : rc;
	return rc ? NULL : &something;
}

#define DR(fn, undo, expr)                                                                         \
	static void *fn##_make(struct mlx5dv_dr_domain *domain, struct mlx5dv_dr_table *table)     \
	{                                                                                          \
		(void)domain;                                                                      \
		(void)table;                                                                       \
		return expr;                                                                       \
	}                                                                                          \
	static int fn(struct env *e)                                                               \
	{                                                                                          \
		return dr_do(e, fn##_make, undo);                                                  \
	}

static uint64_t dr_mask[9] = {64}; /* struct mlx5dv_flow_match_parameters: a size, then bytes */

static int dump(int (*fn)(FILE *, void *), void *what)
{
	FILE *f = fopen("/dev/null", "w");
	int rc = f ? fn(f, what) : ENOENT;

	if (f)
		fclose(f);
	return rc;
}

static int dump_domain(FILE *f, void *domain)
{
	return mlx5dv_dump_dr_domain(f, domain);
}

static int dump_table(FILE *f, void *table)
{
	return mlx5dv_dump_dr_table(f, table);
}

static void *reclaim(struct mlx5dv_dr_domain *domain)
{
	mlx5dv_dr_domain_set_reclaim_device_memory(domain, true);
	mlx5dv_dr_domain_allow_duplicate_rules(domain, true);
	return domain;
}

DR(dr_table, NULL, table)
DR(dr_switches, NULL, reclaim(domain))
DR(dr_sync, NULL, done(mlx5dv_dr_domain_sync(domain, MLX5DV_DR_DOMAIN_SYNC_FLAGS_SW)))
DR(dr_dump_domain, NULL, done(dump(dump_domain, domain)))
DR(dr_dump_table, NULL, done(dump(dump_table, table)))
DR(dr_matcher, undo_matcher, mlx5dv_dr_matcher_create(table, 0, 1, (void *)dr_mask))
DR(dr_dest_table, undo_action, mlx5dv_dr_action_create_dest_table(table))
DR(dr_dest_root, undo_action, mlx5dv_dr_action_create_dest_root_table(table, 0))
DR(dr_dest_vport, undo_action, mlx5dv_dr_action_create_dest_vport(domain, 1))
DR(dr_dest_port, undo_action, mlx5dv_dr_action_create_dest_ib_port(domain, 1))
DR(dr_dest_array, undo_action,
   mlx5dv_dr_action_create_dest_array(domain, 1,
				      &(struct mlx5dv_dr_action_dest_attr *){
					      &(struct mlx5dv_dr_action_dest_attr){0}}))
DR(dr_push_vlan, undo_action, mlx5dv_dr_action_create_push_vlan(domain, 0))
DR(dr_reformat, undo_action,
   mlx5dv_dr_action_create_packet_reformat(
	   domain, MLX5DV_DR_ACTION_FLAGS_ROOT_LEVEL,
	   MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2, 0, NULL))
DR(dr_modify_header, undo_action,
   mlx5dv_dr_action_create_modify_header(domain, MLX5DV_DR_ACTION_FLAGS_ROOT_LEVEL, 8,
					 &(__be64){0}))
DR(dr_meter, undo_action,
   mlx5dv_dr_action_create_flow_meter(&(struct mlx5dv_dr_flow_meter_attr){.next_table = table}))
DR(dr_sampler, undo_action,
   mlx5dv_dr_action_create_flow_sampler(&(struct mlx5dv_dr_flow_sampler_attr){
	   .sample_ratio = 2, .default_next_table = table}))

#define LIVE(name, fn)	 {name, ROW_LIVE, NULL, fn}
#define TEST(name, test) {name, ROW_TEST, test, NULL}
#define NEEDS(name, of)	 {name, ROW_NEEDS, of, NULL}
#define MATCHER(name)	 NEEDS(name, "mlx5dv_dr_matcher_create")

const struct row rows_mlx5[] = {
	LIVE("_mlx5dv_mkey_check", check_mkey),
	LIVE("_mlx5dv_query_port", query_port),
	LIVE("mlx5dv_alloc_dm", alloc_dm),
	LIVE("mlx5dv_alloc_var", alloc_var),
	LIVE("mlx5dv_create_cq", create_cq),
	NEEDS("mlx5dv_create_flow", "mlx5dv_create_flow_matcher"),
	LIVE("mlx5dv_create_flow_action_esp", create_flow_action_esp),
	LIVE("mlx5dv_create_flow_action_modify_header", create_modify_header),
	LIVE("mlx5dv_create_flow_action_packet_reformat", create_packet_reformat),
	LIVE("mlx5dv_create_flow_matcher", create_flow_matcher),
	TEST("mlx5dv_create_mkey", "softhca.mkeys"),
	LIVE("mlx5dv_create_qp", create_qp),
	LIVE("mlx5dv_create_steering_anchor", create_steering_anchor),
	LIVE("mlx5dv_create_wq", create_wq),
	LIVE("mlx5dv_crypto_login", crypto_login),
	LIVE("mlx5dv_crypto_login_create", crypto_login_create),
	NEEDS("mlx5dv_crypto_login_destroy", "mlx5dv_crypto_login_create"),
	NEEDS("mlx5dv_crypto_login_query", "mlx5dv_crypto_login_create"),
	LIVE("mlx5dv_crypto_login_query_state", crypto_state),
	LIVE("mlx5dv_crypto_logout", crypto_logout),
	LIVE("mlx5dv_dci_stream_id_reset", stream_reset),
	LIVE("mlx5dv_dek_create", dek_create),
	NEEDS("mlx5dv_dek_destroy", "mlx5dv_dek_create"),
	NEEDS("mlx5dv_dek_query", "mlx5dv_dek_create"),
	NEEDS("mlx5dv_destroy_flow_matcher", "mlx5dv_create_flow_matcher"),
	TEST("mlx5dv_destroy_mkey", "softhca.mkeys"),
	NEEDS("mlx5dv_destroy_steering_anchor", "mlx5dv_create_steering_anchor"),
	LIVE("mlx5dv_devx_alloc_msi_vector", msi_vector),
	TEST("mlx5dv_devx_alloc_uar", "softhca.devx"),
	LIVE("mlx5dv_devx_cq_modify", cq_modify),
	LIVE("mlx5dv_devx_cq_query", cq_query),
	LIVE("mlx5dv_devx_create_cmd_comp", cmd_comp),
	LIVE("mlx5dv_devx_create_eq", create_eq),
	TEST("mlx5dv_devx_create_event_channel", "softhca.events"),
	NEEDS("mlx5dv_devx_destroy_cmd_comp", "mlx5dv_devx_create_cmd_comp"),
	NEEDS("mlx5dv_devx_destroy_eq", "mlx5dv_devx_create_eq"),
	TEST("mlx5dv_devx_destroy_event_channel", "softhca.events"),
	NEEDS("mlx5dv_devx_free_msi_vector", "mlx5dv_devx_alloc_msi_vector"),
	TEST("mlx5dv_devx_free_uar", "softhca.devx"),
	TEST("mlx5dv_devx_general_cmd", "softhca.devx"),
	NEEDS("mlx5dv_devx_get_async_cmd_comp", "mlx5dv_devx_create_cmd_comp"),
	TEST("mlx5dv_devx_get_event", "softhca.events"),
	NEEDS("mlx5dv_devx_ind_tbl_modify", "ibv_create_rwq_ind_table"),
	NEEDS("mlx5dv_devx_ind_tbl_query", "ibv_create_rwq_ind_table"),
	TEST("mlx5dv_devx_obj_create", "softhca.devx"),
	TEST("mlx5dv_devx_obj_destroy", "softhca.devx"),
	TEST("mlx5dv_devx_obj_modify", "softhca.devx"),
	TEST("mlx5dv_devx_obj_query", "softhca.devx"),
	NEEDS("mlx5dv_devx_obj_query_async", "mlx5dv_devx_create_cmd_comp"),
	LIVE("mlx5dv_devx_qp_modify", qp_modify),
	LIVE("mlx5dv_devx_qp_query", qp_query),
	TEST("mlx5dv_devx_query_eqn", "softhca.devx"),
	LIVE("mlx5dv_devx_srq_modify", srq_modify),
	LIVE("mlx5dv_devx_srq_query", srq_query),
	TEST("mlx5dv_devx_subscribe_devx_event", "softhca.events"),
	TEST("mlx5dv_devx_subscribe_devx_event_fd", "softhca.events"),
	TEST("mlx5dv_devx_umem_dereg", "softhca.devx"),
	TEST("mlx5dv_devx_umem_reg", "softhca.devx"),
	LIVE("mlx5dv_devx_umem_reg_ex", umem_reg_ex),
	NEEDS("mlx5dv_devx_wq_modify", "mlx5dv_create_wq"),
	NEEDS("mlx5dv_devx_wq_query", "mlx5dv_create_wq"),
	LIVE("mlx5dv_dm_map_op_addr", dm_map_op),
	NEEDS("mlx5dv_dr_action_create_aso", "CREATE_GENERAL_OBJECT"),
	LIVE("mlx5dv_dr_action_create_default_miss", dr_default_miss),
	LIVE("mlx5dv_dr_action_create_dest_array", dr_dest_array),
	NEEDS("mlx5dv_dr_action_create_dest_devx_tir", "CREATE_TIR"),
	LIVE("mlx5dv_dr_action_create_dest_ib_port", dr_dest_port),
	LIVE("mlx5dv_dr_action_create_dest_ibv_qp", dr_dest_qp),
	LIVE("mlx5dv_dr_action_create_dest_root_table", dr_dest_root),
	LIVE("mlx5dv_dr_action_create_dest_table", dr_dest_table),
	LIVE("mlx5dv_dr_action_create_dest_vport", dr_dest_vport),
	LIVE("mlx5dv_dr_action_create_drop", dr_drop),
	NEEDS("mlx5dv_dr_action_create_flow_counter", "ALLOC_FLOW_COUNTER"),
	LIVE("mlx5dv_dr_action_create_flow_meter", dr_meter),
	LIVE("mlx5dv_dr_action_create_flow_sampler", dr_sampler),
	LIVE("mlx5dv_dr_action_create_modify_header", dr_modify_header),
	LIVE("mlx5dv_dr_action_create_packet_reformat", dr_reformat),
	LIVE("mlx5dv_dr_action_create_pop_vlan", dr_pop_vlan),
	LIVE("mlx5dv_dr_action_create_push_vlan", dr_push_vlan),
	LIVE("mlx5dv_dr_action_create_tag", dr_tag),
	LIVE("mlx5dv_dr_action_destroy", dr_tag),
	NEEDS("mlx5dv_dr_action_modify_aso", "CREATE_GENERAL_OBJECT"),
	NEEDS("mlx5dv_dr_action_modify_flow_meter", "mlx5dv_dr_action_create_flow_meter"),
	NEEDS("mlx5dv_dr_aso_other_domain_link", "CREATE_GENERAL_OBJECT"),
	NEEDS("mlx5dv_dr_aso_other_domain_unlink", "CREATE_GENERAL_OBJECT"),
	LIVE("mlx5dv_dr_domain_allow_duplicate_rules", dr_switches),
	LIVE("mlx5dv_dr_domain_create", dr_table),
	LIVE("mlx5dv_dr_domain_destroy", dr_table),
	LIVE("mlx5dv_dr_domain_set_reclaim_device_memory", dr_switches),
	LIVE("mlx5dv_dr_domain_sync", dr_sync),
	LIVE("mlx5dv_dr_matcher_create", dr_matcher),
	MATCHER("mlx5dv_dr_matcher_destroy"),
	MATCHER("mlx5dv_dr_matcher_set_layout"),
	MATCHER("mlx5dv_dr_rule_create"),
	MATCHER("mlx5dv_dr_rule_destroy"),
	LIVE("mlx5dv_dr_table_create", dr_table),
	LIVE("mlx5dv_dr_table_destroy", dr_table),
	LIVE("mlx5dv_dump_dr_domain", dr_dump_domain),
	MATCHER("mlx5dv_dump_dr_matcher"),
	MATCHER("mlx5dv_dump_dr_rule"),
	LIVE("mlx5dv_dump_dr_table", dr_dump_table),
	NEEDS("mlx5dv_free_var", "mlx5dv_alloc_var"),
	LIVE("mlx5dv_get_clock_info", clock_info),
	LIVE("mlx5dv_get_vfio_device_list", vfio_list),
	TEST("mlx5dv_init_obj", "softhca.verbs"),
	LIVE("mlx5dv_is_supported", open_twice),
	LIVE("mlx5dv_map_ah_to_qp", map_ah),
	LIVE("mlx5dv_modify_qp_lag_port", modify_lag_port),
	LIVE("mlx5dv_modify_qp_sched_elem", sched_elem),
	LIVE("mlx5dv_modify_qp_udp_sport", udp_sport),
	LIVE("mlx5dv_open_device", open_twice),
	LIVE("mlx5dv_pp_alloc", pp_alloc),
	NEEDS("mlx5dv_pp_free", "mlx5dv_pp_alloc"),
	LIVE("mlx5dv_qp_cancel_posted_send_wrs", cancel_posted),
	LIVE("mlx5dv_qp_ex_from_ibv_qp_ex", create_qp),
	LIVE("mlx5dv_query_device", query_device),
	LIVE("mlx5dv_query_qp_lag_port", query_lag_port),
	LIVE("mlx5dv_reserved_qpn_alloc", qpn_alloc),
	LIVE("mlx5dv_reserved_qpn_dealloc", qpn_dealloc),
	LIVE("mlx5dv_sched_leaf_create", sched_leaf_create),
	NEEDS("mlx5dv_sched_leaf_destroy", "mlx5dv_sched_leaf_create"),
	NEEDS("mlx5dv_sched_leaf_modify", "mlx5dv_sched_leaf_create"),
	LIVE("mlx5dv_sched_node_create", sched_node_create),
	NEEDS("mlx5dv_sched_node_destroy", "mlx5dv_sched_node_create"),
	NEEDS("mlx5dv_sched_node_modify", "mlx5dv_sched_node_create"),
	LIVE("mlx5dv_set_context_attr", context_attr),
	NEEDS("mlx5dv_vfio_get_events_fd", "mlx5dv_get_vfio_device_list"),
	NEEDS("mlx5dv_vfio_process_events", "mlx5dv_get_vfio_device_list"),
	{0},
};
