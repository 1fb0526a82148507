// SPDX-License-Identifier: BSD-3-Clause
/* Posts operations through libmlx5 (plain verbs) on an RC queue pair connected
 * to itself and takes the WQEs from its send queue. Prints vectors.inc, or with
 * --check compares what libmlx5 wrote now with what gdr's builders write for the
 * same arguments. Needs an mlx5 device; exit 77 without. */
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/golden/build.h"

struct dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char *buf;
	struct mlx5dv_qp dv;
	unsigned posted; /* blocks: every WQE here takes one */
};

static int connect_to_itself(struct dev *d)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	a.qp_access_flags =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	if (ibv_query_port(d->ctx, 1, &port) ||
	    ibv_modify_qp(d->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS))
		return -1;
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = port.active_mtu;
	a.dest_qp_num = d->qp->qp_num;
	a.max_dest_rd_atomic = 1;
	a.min_rnr_timer = 12;
	a.ah_attr.port_num = 1;
	a.ah_attr.dlid = port.lid;
	a.ah_attr.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	a.ah_attr.grh.hop_limit = 64;
	if (ibv_query_gid(d->ctx, 1, 0, &a.ah_attr.grh.dgid) ||
	    ibv_modify_qp(d->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return -1;
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	return ibv_modify_qp(d->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						IBV_QP_MAX_QP_RD_ATOMIC);
}

static int open_dev(struct dev *d)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct mlx5dv_obj obj;

	if (!list || !list[0] || !mlx5dv_is_supported(list[0])) {
		printf("skip: no mlx5 device (run under softhca)\n");
		exit(77);
	}
	d->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!d->ctx || !(d->pd = ibv_alloc_pd(d->ctx)))
		return -1;
	d->buf = aligned_alloc(4096, 8192);
	memset(d->buf, 0x5a, 8192);
	d->mr = ibv_reg_mr(d->pd, d->buf, 8192,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	d->cq = ibv_create_cq(d->ctx, 64, NULL, NULL, 0);
	if (!d->mr || !d->cq)
		return -1;
	init.send_cq = init.recv_cq = d->cq;
	init.cap.max_send_wr = 64;
	init.cap.max_recv_wr = init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	init.cap.max_inline_data = 28;
	d->qp = ibv_create_qp(d->pd, &init);
	if (!d->qp || connect_to_itself(d))
		return -1;
	obj.qp.in = d->qp;
	obj.qp.out = &d->dv;
	return mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP);
}

/* Posts what g asks for and fills the rest of g. */
static int post(struct dev *d, struct golden *g, int flags)
{
	struct ibv_send_wr wr = {.num_sge = 1, .send_flags = (unsigned)flags}, *bad;
	struct ibv_sge sge;
	struct ibv_wc wc;
	int n, tries = 0;

	g->qpn = d->qp->qp_num;
	g->index = d->posted;
	g->lkey = d->mr->lkey;
	g->rkey = d->mr->rkey;
	g->raddr = (uintptr_t)d->buf + 4096;
	g->laddr = (uintptr_t)d->buf + 64;
	sge.addr = g->laddr;
	sge.length = g->len;
	sge.lkey = g->lkey;
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = g->raddr;
	wr.wr.rdma.rkey = g->rkey;
	switch (g->op) {
	case GOLDEN_WRITE_INLINE:
		wr.send_flags |= IBV_SEND_INLINE;
		/* fall through */
	case GOLDEN_WRITE:
		wr.opcode = IBV_WR_RDMA_WRITE;
		break;
	case GOLDEN_READ:
		wr.opcode = IBV_WR_RDMA_READ;
		break;
	case GOLDEN_FA:
	case GOLDEN_CS:
		wr.opcode = g->op == GOLDEN_FA ? IBV_WR_ATOMIC_FETCH_AND_ADD
					       : IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.remote_addr = g->raddr;
		wr.wr.atomic.rkey = g->rkey;
		wr.wr.atomic.compare_add = g->op == GOLDEN_FA ? g->swap_add : g->compare;
		wr.wr.atomic.swap = g->swap_add;
		break;
	}
	if (ibv_post_send(d->qp, &wr, &bad))
		return -1;
	memcpy(g->bytes, (char *)d->dv.sq.buf + (size_t)(d->posted % d->dv.sq.wqe_cnt) * 64, 64);
	g->fm_ce_se = g->bytes[11];
	d->posted++;
	while ((n = ibv_poll_cq(d->cq, 1, &wc)) == 0 && tries++ < 2000)
		usleep(1000);
	return n == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -1;
}

static void close_dev(struct dev *d)
{
	if (d->qp)
		ibv_destroy_qp(d->qp);
	if (d->cq)
		ibv_destroy_cq(d->cq);
	if (d->mr)
		ibv_dereg_mr(d->mr);
	if (d->pd)
		ibv_dealloc_pd(d->pd);
	if (d->ctx)
		ibv_close_device(d->ctx);
	free(d->buf);
}

static void print(const struct golden *g)
{
	unsigned i;

	printf("{%d, 0x%x, %u, 0x%x, 0x%x, 0x%llx, 0x%llx, %u, 0x%llx, 0x%llx, 0x%02x, {", g->op,
	       g->qpn, g->index, g->lkey, g->rkey, (unsigned long long)g->raddr,
	       (unsigned long long)g->laddr, g->len, (unsigned long long)g->swap_add,
	       (unsigned long long)g->compare, g->fm_ce_se);
	for (i = 0; i < 64; i++)
		printf("%s0x%02x,", i % 16 ? " " : "\n\t", g->bytes[i]);
	printf("}},\n");
}

int main(int argc, char **argv)
{
	static const struct {
		enum golden_op op;
		uint32_t len;
		uint64_t swap_add, compare;
		int flags;
	} cases[] = {
		{GOLDEN_WRITE, 64, 0, 0, IBV_SEND_SIGNALED},
		{GOLDEN_WRITE, 4096, 0, 0, IBV_SEND_SIGNALED},
		{GOLDEN_WRITE_INLINE, 1, 0, 0, IBV_SEND_SIGNALED},
		{GOLDEN_WRITE_INLINE, 8, 0, 0, IBV_SEND_SIGNALED},
		{GOLDEN_WRITE_INLINE, 12, 0, 0, IBV_SEND_SIGNALED},
		{GOLDEN_WRITE_INLINE, 13, 0, 0, IBV_SEND_SIGNALED},
		{GOLDEN_WRITE_INLINE, 28, 0, 0, IBV_SEND_SIGNALED},
		{GOLDEN_READ, 8, 0, 0, IBV_SEND_SIGNALED},
		{GOLDEN_READ, 2048, 0, 0, IBV_SEND_SIGNALED},
		{GOLDEN_FA, 8, 0x0102030405060708ull, 0, IBV_SEND_SIGNALED},
		{GOLDEN_CS, 8, 0x1112131415161718ull, 0x5a5a5a5a5a5a5a5aull, IBV_SEND_SIGNALED},
	};
	int check = argc > 1 && !strcmp(argv[1], "--check"), bad = 0;
	struct dev d = {0};
	unsigned i;

	alarm(60);
	if (open_dev(&d)) {
		perror("capture: set-up");
		return 1;
	}
	if (!check)
		printf("/* SPDX-License-Identifier: BSD-3-Clause */\n"
		       "/* Written by capture from libmlx5's own posting (rdma-core 44). */\n");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct golden g = {.op = cases[i].op, .len = cases[i].len};

		g.swap_add = cases[i].swap_add;
		g.compare = cases[i].compare;
		if (post(&d, &g, cases[i].flags)) {
			fprintf(stderr, "capture: case %u failed\n", i);
			bad = 1;
			break;
		}
		if (check)
			bad |= golden_compare(&g);
		else
			print(&g);
	}
	close_dev(&d);
	if (check)
		printf("%u WQEs compared with libmlx5's: %s\n", i, bad ? "differences" : "equal");
	return bad;
}
