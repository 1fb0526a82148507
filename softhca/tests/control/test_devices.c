/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices in one process (SOFTHCA_DEVICES=2): each has its own identity, and
 * data goes from one to the other. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common.h"

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint16_t lid;
	uint8_t buf[8192];
};

static struct side sides[2];

static int setup(void **state)
{
	struct ibv_device **list;
	int n;

	(void)state;
	list = ibv_get_device_list(&n);
	assert_int_equal(n, 2);
	for (int i = 0; i < 2; i++) {
		char name[24];
		struct side *s = &sides[i];
		struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC,
					      .cap = {.max_send_wr = 8, .max_send_sge = 1}};
		struct ibv_port_attr port;

		/* The order of a directory is anybody's. */
		snprintf(name, sizeof(name), "mlx5_%d", i);
		for (int d = 0; d < 2; d++)
			if (!strcmp(ibv_get_device_name(list[d]), name))
				s->ctx = ibv_open_device(list[d]);
		assert_non_null(s->ctx);
		s->pd = ibv_alloc_pd(s->ctx);
		s->cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0);
		ia.send_cq = ia.recv_cq = s->cq;
		s->qp = ibv_create_qp(s->pd, &ia);
		assert_non_null(s->qp);
		s->mr = ibv_reg_mr(s->pd, s->buf, sizeof(s->buf),
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		assert_non_null(s->mr);
		assert_int_equal(ibv_query_gid(s->ctx, 1, 0, &s->gid), 0);
		assert_int_equal(ibv_query_port(s->ctx, 1, &port), 0);
		s->lid = port.lid;
	}
	ibv_free_device_list(list);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[i];

		assert_int_equal(ibv_destroy_qp(s->qp), 0);
		assert_int_equal(ibv_destroy_cq(s->cq), 0);
		assert_int_equal(ibv_dereg_mr(s->mr), 0);
		assert_int_equal(ibv_dealloc_pd(s->pd), 0);
		assert_int_equal(ibv_close_device(s->ctx), 0);
	}
	return 0;
}

static void test_identity(void **state)
{
	struct ibv_device_attr a[2];
	char path[80], text[2][64];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct stat st;
		FILE *f;

		assert_int_equal(ibv_query_device(sides[i].ctx, &a[i]), 0);
		assert_int_equal(ibv_get_device_guid(sides[i].ctx->device), a[i].node_guid);
		snprintf(path, sizeof(path), "/dev/infiniband/uverbs%d", i);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(minor(st.st_rdev), 192 + i);
		assert_int_equal(fstat(sides[i].ctx->cmd_fd, &st), 0);
		assert_int_equal(minor(st.st_rdev), 192 + i);
		snprintf(path, sizeof(path), "/sys/class/infiniband/mlx5_%d/ports/1/gids/0", i);
		f = fopen(path, "r");
		assert_non_null(f);
		assert_non_null(fgets(text[i], sizeof(text[i]), f));
		fclose(f);
		/* The last four digits, as in the GID. */
		snprintf(path, sizeof(path), "%02x%02x\n", sides[i].gid.raw[14],
			 sides[i].gid.raw[15]);
		assert_string_equal(text[i] + 35, path);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/50fc:01:00.%d/vendor", i);
		assert_int_equal(access(path, R_OK), 0);
	}
	assert_true(a[0].node_guid != a[1].node_guid);
	assert_true(memcmp(&sides[0].gid, &sides[1].gid, 16) != 0);
	assert_int_equal(open("/dev/infiniband/uverbs2", O_RDWR), -1);
	assert_int_equal(access("/sys/class/infiniband/mlx5_2", F_OK), -1);
}

static void connect_side(struct side *s, const struct side *to)
{
	bool ib = link_is_ib(s->ctx);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	assert_int_equal(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
							  IBV_QP_ACCESS_FLAGS), 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = to->qp->qp_num, .max_dest_rd_atomic = 1,
				 .ah_attr = {.port_num = 1, .dlid = to->lid, .is_global = !ib,
					     .grh = {.dgid = to->gid, .hop_limit = 1}}};
	assert_int_equal(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
							  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
							  IBV_QP_MAX_DEST_RD_ATOMIC |
							  IBV_QP_MIN_RNR_TIMER), 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				 .rnr_retry = 7, .max_rd_atomic = 1};
	assert_int_equal(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT |
							  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
							  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static enum ibv_wc_status write_to(struct side *s, const struct side *to, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->buf, .length = 4096, .lkey = s->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = (uintptr_t)to->buf + 4096,
					     .rkey = rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	memset(s->buf, (int)(rkey >> 8) + 1, 4096);
	assert_int_equal(ibv_post_send(s->qp, &wr, &bad), 0);
	for (int i = 0; i < 30000 && !ibv_poll_cq(s->cq, 1, &wc); i++)
		usleep(100);
	return wc.status;
}

static void test_data(void **state)
{
	(void)state;
	connect_side(&sides[0], &sides[1]);
	connect_side(&sides[1], &sides[0]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(write_to(&sides[i], &sides[!i], sides[!i].mr->rkey),
				 IBV_WC_SUCCESS);
		assert_memory_equal(sides[i].buf, sides[!i].buf + 4096, 4096);
	}
	/* The writer's own key is none of the other device's. */
	assert_int_equal(write_to(&sides[0], &sides[1], sides[0].mr->rkey), IBV_WC_REM_ACCESS_ERR);
}

/* A datagram that the second device receives names that device as its goal. */
static void test_datagram(void **state)
{
	struct side *s = &sides[1];
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_UD, .send_cq = s->cq, .recv_cq = s->cq,
				      .cap = {.max_send_wr = 4, .max_recv_wr = 4,
					      .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7};
	struct ibv_ah_attr aa = {.port_num = 1, .is_global = 1, .grh.dgid = s->gid};
	struct ibv_ah *ah, *back;
	struct ibv_qp *qp;
	struct ibv_sge sge = {.addr = (uintptr_t)s->buf, .length = 100, .lkey = s->mr->lkey};
	struct ibv_recv_wr rw = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr sw = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;
	int n = 0;

	(void)state;
	if (link_is_ib(s->ctx))
		skip(); /* no GRH there */
	qp = ibv_create_qp(s->pd, &ia);
	ah = ibv_create_ah(s->pd, &aa);
	assert_non_null(qp);
	assert_non_null(ah);
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						       IBV_QP_QKEY), 0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	assert_int_equal(ibv_post_recv(qp, &rw, &bad_recv), 0);
	sge.addr += 4096;
	sge.length = 32;
	sw.wr.ud.ah = ah;
	sw.wr.ud.remote_qpn = qp->qp_num;
	sw.wr.ud.remote_qkey = 7;
	assert_int_equal(ibv_post_send(qp, &sw, &bad), 0);
	for (int i = 0; i < 30000 && !n; i++, usleep(100))
		n = ibv_poll_cq(s->cq, 1, &wc);
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 1);
	if (s->gid.raw[10] == 0xff) /* the IPv4 header's */
		assert_memory_equal(s->buf + 36, s->gid.raw + 12, 4);
	back = ibv_create_ah_from_wc(s->pd, &wc, (struct ibv_grh *)(void *)s->buf, 1);
	assert_non_null(back);
	assert_int_equal(ibv_destroy_ah(back), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_identity),
					   cmocka_unit_test(test_data),
					   cmocka_unit_test(test_datagram)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
