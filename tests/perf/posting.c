// SPDX-License-Identifier: BSD-3-Clause
/* Instructions per posted put, for callgrind: gdr's posting path on the host
 * device beside libmlx5's ibv_post_send of the same RDMA WRITE, on the same
 * device, each put signalled, one doorbell a post. What is counted are the
 * functions count_* (callgrind --toggle-collect=count_*): batches
 * of BATCH posts and the reaping of their completions. The wait for the
 * completions in between is not counted, on either side: how long it takes
 * says nothing about the poster.
 *
 * usage: posting gdr|verbs SIZE BATCHES [WHAT]	(one PE, GDR_TRANSPORTS=nic)
 * WHAT (gdr): put, or p, signal, put_signal, fenced (a fence before each put).
 * tests/perf/run posting starts it and divides. */
#include "tests/perf/help.h"

#include <gdr.h>
#include <infiniband/verbs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 64

/* ---- gdr ---- */

enum what { PUT, P, SIGNAL, PUT_SIGNAL, FENCED, WHATS };
static const char *const whats[WHATS] = {"put", "p", "signal", "put_signal", "fenced"};
static enum what what;

static int p_of(char *dst, size_t len)
{
	return len == 8	  ? gdr_uint64_p((uint64_t *)(void *)dst, 1, 0)
	       : len == 4 ? gdr_uint32_p((uint32_t *)(void *)dst, 1, 0)
			  : gdr_uint16_p((uint16_t *)(void *)dst, 1, 0);
}

static int other_post(char *dst, const char *src, size_t len)
{
	uint64_t *sig = (uint64_t *)(void *)(dst - 8);

	switch (what) {
	case P:
		return p_of(dst, len);
	case SIGNAL:
		return gdr_signal_op(sig, 1, GDR_SIGNAL_SET, 0);
	case PUT_SIGNAL:
		return gdr_put_signal_nbi(dst, src, len, sig, 1, GDR_SIGNAL_SET, 0);
	default:
		return gdr_fence() || gdr_put_nbi(dst, src, len, 0);
	}
}

static __attribute__((noinline)) int gdr_posts(char *dst, const char *src, size_t len, int n)
{
	int i, ret = 0;

	for (i = 0; what == PUT && i < n && !ret; i++)
		ret = gdr_put_nbi(dst, src, len, 0);
	for (i = 0; what != PUT && i < n && !ret; i++)
		ret = other_post(dst, src, len);
	return ret;
}

/* The region that callgrind counts: one function per side and phase, so that
 * nothing else is in it. */
static __attribute__((noinline)) int count_gdr_post(char *dst, const char *src, size_t len)
{
	return gdr_posts(dst, src, len, BATCH);
}

static __attribute__((noinline)) int count_gdr_reap(void)
{
	return gdr_quiet();
}

static int run_gdr(size_t len, int batches)
{
	char *heap;
	int i, ret = gdr_init();

	if (ret)
		return 1;
	heap = (char *)gdr_malloc(4096);
	if (!heap)
		return 1;
	memset(heap, 1, 4096);
	for (i = 0; i < batches && !ret; i++) {
		ret = count_gdr_post(heap + 2048, heap, len);
		usleep(20000); /* the NIC completes the batch */
		if (!ret)
			ret = count_gdr_reap();
	}
	if (ret)
		fprintf(stderr, "posting: %s\n", gdr_strerror(ret));
	gdr_free(heap);
	gdr_finalize();
	return ret != 0;
}

/* ---- libmlx5 ---- */

struct verbs {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char *buf;
};

static int to_rts(struct verbs *v)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	if (ibv_modify_qp(v->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS))
		return -1;
	if (ibv_query_port(v->ctx, 1, &port))
		return -1;
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = port.active_mtu;
	a.dest_qp_num = v->qp->qp_num; /* to itself */
	a.max_dest_rd_atomic = 1;
	a.min_rnr_timer = 12;
	a.ah_attr.port_num = 1;
	a.ah_attr.dlid = port.lid;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		a.ah_attr.is_global = 1;
		a.ah_attr.grh.hop_limit = 64;
		if (ibv_query_gid(v->ctx, 1, 0, &a.ah_attr.grh.dgid))
			return -1;
	}
	if (ibv_modify_qp(v->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER))
		return -1;
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	return ibv_modify_qp(v->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						IBV_QP_MAX_QP_RD_ATOMIC);
}

static int open_verbs(struct verbs *v)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1};

	if (!list || !list[0])
		return -1;
	v->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!v->ctx || !(v->pd = ibv_alloc_pd(v->ctx)))
		return -1;
	v->buf = aligned_alloc(4096, 4096);
	v->mr = ibv_reg_mr(v->pd, v->buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	v->cq = ibv_create_cq(v->ctx, 1024, NULL, NULL, 0);
	if (!v->mr || !v->cq)
		return -1;
	init.send_cq = init.recv_cq = v->cq;
	init.cap.max_send_wr = 1024;
	init.cap.max_recv_wr = 1;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	init.cap.max_inline_data = 64;
	v->qp = ibv_create_qp(v->pd, &init);
	return v->qp ? to_rts(v) : -1;
}

static __attribute__((noinline)) int count_verbs_post(struct verbs *v, size_t len)
{
	struct ibv_sge sge = {(uintptr_t)v->buf, (uint32_t)len, v->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_send_wr *bad;
	int i, ret = 0;

	/* gdr_put_nbi sends up to 28 bytes inline: so does this side */
	wr.send_flags = IBV_SEND_SIGNALED | (len <= 28 ? IBV_SEND_INLINE : 0);
	wr.wr.rdma.remote_addr = (uintptr_t)v->buf + 2048;
	wr.wr.rdma.rkey = v->mr->rkey;
	for (i = 0; i < BATCH && !ret; i++)
		ret = ibv_post_send(v->qp, &wr, &bad);
	return ret;
}

static __attribute__((noinline)) int count_verbs_reap(struct verbs *v)
{
	struct ibv_wc wc[BATCH];
	int i, n, got = 0;

	while (got < BATCH) {
		n = ibv_poll_cq(v->cq, BATCH - got, wc);
		if (n <= 0)
			return -1; /* the batch is complete by now: nothing is spun for */
		for (i = 0; i < n; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				return -1;
		got += n;
	}
	return 0;
}

static int run_verbs(size_t len, int batches)
{
	struct verbs v = {0};
	int i, ret = open_verbs(&v);

	if (ret)
		perror("posting: verbs set-up");
	for (i = 0; i < batches && !ret; i++) {
		ret = count_verbs_post(&v, len);
		usleep(20000);
		if (!ret)
			ret = count_verbs_reap(&v);
	}
	if (v.qp)
		ibv_destroy_qp(v.qp);
	if (v.cq)
		ibv_destroy_cq(v.cq);
	if (v.mr)
		ibv_dereg_mr(v.mr);
	if (v.pd)
		ibv_dealloc_pd(v.pd);
	if (v.ctx)
		ibv_close_device(v.ctx);
	free(v.buf);
	return ret != 0;
}

int main(int argc, char **argv)
{
	size_t len;
	int batches;

	help_if_asked(argc, argv, "posting gdr|verbs SIZE BATCHES [WHAT], one PE, GDR_TRANSPORTS=nic");
	for (int i = 0; argc == 5 && i < WHATS; i++)
		if (!strcmp(argv[4], whats[i]))
			what = (enum what)i;
	if (argc < 4 || argc > 5 || (argc == 5 && strcmp(argv[4], whats[what]))) {
		fprintf(stderr, "usage: posting gdr|verbs SIZE BATCHES [put|p|signal|put_signal|fenced]\n");
		return 2;
	}
	len = strtoul(argv[2], NULL, 10);
	batches = atoi(argv[3]);
	return strcmp(argv[1], "gdr") ? run_verbs(len, batches) : run_gdr(len, batches);
}
