/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what was found out, a line each: library or "inline" or "command", name,
 * result, what proves it; tab-separated, for coverage.sh. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "coverage.h"

int failed(void)
{
	return errno ? errno : WRONG;
}

int int_result(int rc)
{
	if (rc == -1 && errno)
		return errno;
	return rc < 0 ? -rc : rc;
}

static const struct row *find(const char *name)
{
	const struct row *const tables[] = {rows_verbs, rows_inline, rows_mlx5};

	for (int t = 0; t < 3; t++)
		for (const struct row *r = tables[t]; r->name; r++)
			if (!strcmp(r->name, name))
				return r;
	return NULL;
}

/* What is said of a row; a function that goes by another one has that one's error. */
static void verdict(struct env *e, const struct row *r, char *out, size_t n)
{
	int rc;

	if (r->kind == ROW_TEST) {
		snprintf(out, n, "supported");
		return;
	}
	if (r->kind != ROW_LIVE) {
		const struct row *of = r->of ? find(r->of) : NULL;

		if (of)
			verdict(e, of, out, n);
		else
			snprintf(out, n, "not called by libmlx5");
		return;
	}
	rc = r->probe(e);
	if (rc == WRONG)
		snprintf(out, n, "wrong");
	else if (rc)
		snprintf(out, n, "refused: %s", strerrorname_np(rc) ? strerrorname_np(rc) : "?");
	else
		snprintf(out, n, "supported");
}

static void print_table(struct env *e, const char *table, const struct row *r)
{
	char text[128];

	for (; r->name; r++) {
		const char *proof = r->kind == ROW_TEST ? r->of : "softhca.coverage";

		verdict(e, r, text, sizeof(text));
		if (r->kind == ROW_NEEDS && !find(r->of))
			snprintf(text, sizeof(text), "refused"); /* a command */
		printf("%s\t%s\t%s\t", table, r->name, text);
		if (r->kind == ROW_NEEDS)
			printf("needs `%s`\n", r->of);
		else if (r->kind == ROW_BEHIND)
			printf("behind `%s`\n", r->of);
		else if (r->kind == ROW_OTHER)
			printf("for other providers\n");
		else
			printf("%s\n", proof);
	}
}

static void connect_self(struct env *e)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	int rc = ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						  IBV_QP_ACCESS_FLAGS);

	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = e->qp->qp_num, .max_dest_rd_atomic = 1,
				 .ah_attr = {.port_num = 1, .is_global = 1,
					     .grh = {.dgid = e->gid, .hop_limit = 1}}};
	rc |= ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				 .rnr_retry = 7, .max_rd_atomic = 1};
	rc |= ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc)
		exit(3);
}

static void make_env(struct env *e)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 4, .max_recv_wr = 4,
					      .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 8, .max_sge = 1}};

	e->list = ibv_get_device_list(NULL);
	e->ctx = e->list && e->list[0] ? mlx5dv_open_device(e->list[0], &attr) : NULL;
	e->buf = mmap(NULL, BUF_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!e->ctx || e->buf == MAP_FAILED)
		exit(3);
	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 15, NULL, NULL, 0);
	ia.send_cq = ia.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &ia);
	e->srq = ibv_create_srq(e->pd, &sa);
	e->mr = ibv_reg_mr(e->pd, e->buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE);
	e->umem = mlx5dv_devx_umem_reg(e->ctx, e->buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (!e->qp || !e->srq || !e->mr || !e->umem || ibv_query_gid(e->ctx, 1, 0, &e->gid))
		exit(3);
	connect_self(e);
}

int main(void)
{
	struct env e = {0};

	make_env(&e);
	setvbuf(stdout, NULL, _IOLBF, 0);
	print_table(&e, "libibverbs", rows_verbs);
	print_table(&e, "libmlx5", rows_mlx5);
	print_table(&e, "inline", rows_inline);
	print_commands(&e);
	if (ibv_destroy_srq(e.srq) || ibv_destroy_qp(e.qp) || ibv_destroy_cq(e.cq) ||
	    mlx5dv_devx_umem_dereg(e.umem) || ibv_dereg_mr(e.mr) || ibv_dealloc_pd(e.pd) ||
	    ibv_close_device(e.ctx))
		return 1; /* something of the above was left behind */
	ibv_free_device_list(e.list);
	munmap(e.buf, BUF_SIZE);
	return 0;
}
