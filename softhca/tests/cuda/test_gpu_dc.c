/* SPDX-License-Identifier: BSD-3-Clause */
/* A DC target whose memory is a GPU's: it answers when what it wrote has arrived, and not only
 * when it is asked again (there is no timeout here). Driver: fake_cuda.c. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softhca/tests/control/common.h"

#define KEY 0x1122334455667788ull

enum { AREA = 1 << 16, FULL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

struct world {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *dci, *dct;
	struct ibv_ah *ah;
	struct ibv_mr *gpu_mr, *host_mr;
	uint64_t gpu, *host;
	const uint8_t *view;
	bool ib;
};

static int (*gpu_alloc)(uint64_t *, size_t);
static void *(*gpu_view)(uint64_t);

static struct ibv_qp *make(struct world *w, enum mlx5dv_dc_type type)
{
	struct ibv_qp_init_attr_ex a = { .qp_type = IBV_QPT_DRIVER, .send_cq = w->cq,
					 .recv_cq = w->cq, .pd = w->pd,
					 .comp_mask = IBV_QP_INIT_ATTR_PD };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = type,
							    .dct_access_key = KEY } };

	if (type == MLX5DV_DCTYPE_DCT) {
		a.srq = w->srq;
	} else {
		a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
				   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
		a.cap.max_send_wr = 32;
		a.cap.max_send_sge = 1;
	}
	return mlx5dv_create_qp(w->ctx, &a, &dv);
}

static void target_ready(struct world *w)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .path_mtu = IBV_MTU_1024, .min_rnr_timer = 1,
				 .qp_access_flags = FULL & ~IBV_ACCESS_LOCAL_WRITE,
				 .ah_attr = { .port_num = 1, .is_global = !w->ib,
					      .grh = { .hop_limit = 9 } } };

	assert_int_equal(ibv_modify_qp(w->dct, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						     IBV_QP_ACCESS_FLAGS), 0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(w->dct, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						     IBV_QP_MIN_RNR_TIMER), 0);
}

static void initiator_ready(struct world *w)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .path_mtu = IBV_MTU_1024, .timeout = 0, .retry_cnt = 7,
				 .rnr_retry = 7, .max_rd_atomic = 4 };

	assert_int_equal(ibv_modify_qp(w->dci, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(w->dci, &a, IBV_QP_STATE | IBV_QP_PATH_MTU), 0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(w->dci, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						     IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void setup(struct world *w)
{
	struct ibv_srq_init_attr sia = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_ah_attr to = { .port_num = 1, .dlid = 1, .grh = { .hop_limit = 9 } };

	w->ctx = open_device();
	w->ib = link_is_ib(w->ctx);
	w->pd = ibv_alloc_pd(w->ctx);
	w->cq = ibv_create_cq(w->ctx, 64, NULL, NULL, 0);
	w->srq = ibv_create_srq(w->pd, &sia);
	w->dct = make(w, MLX5DV_DCTYPE_DCT);
	w->dci = make(w, MLX5DV_DCTYPE_DCI);
	assert_non_null(w->dct);
	assert_non_null(w->dci);
	target_ready(w);
	initiator_ready(w);
	to.is_global = !w->ib;
	assert_int_equal(ibv_query_gid(w->ctx, 1, 0, &to.grh.dgid), 0);
	w->ah = ibv_create_ah(w->pd, &to);
	assert_non_null(w->ah);
	assert_int_equal(gpu_alloc(&w->gpu, AREA), 0);
	w->view = gpu_view(w->gpu);
	w->host = aligned_alloc(4096, AREA);
	memset(w->host, 0, AREA);
	w->gpu_mr = ibv_reg_mr(w->pd, (void *)(uintptr_t)w->gpu, AREA, FULL);
	w->host_mr = ibv_reg_mr(w->pd, w->host, AREA, FULL);
	assert_non_null(w->gpu_mr);
	assert_non_null(w->host_mr);
}

static void post(struct world *w, bool add, size_t from, size_t to, uint32_t len)
{
	struct ibv_qp_ex *qx = ibv_qp_to_qp_ex(w->dci);

	ibv_wr_start(qx);
	qx->wr_flags = IBV_SEND_SIGNALED;
	if (add)
		ibv_wr_atomic_fetch_add(qx, w->gpu_mr->rkey, w->gpu + to, 3);
	else
		ibv_wr_rdma_write(qx, w->gpu_mr->rkey, w->gpu + to);
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qx), w->ah, w->dct->qp_num, KEY);
	ibv_wr_set_sge(qx, w->host_mr->lkey, (uintptr_t)w->host + from, len);
	assert_int_equal(ibv_wr_complete(qx), 0);
}

static void wait_for(struct world *w, int n)
{
	time_t end = time(NULL) + 20;
	struct ibv_wc wc;

	while (n) {
		int got = ibv_poll_cq(w->cq, 1, &wc);

		assert_true(got >= 0);
		n -= got;
		if (got)
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (time(NULL) > end)
			fail_msg("%d completions do not come", n);
	}
}

static void test_target(void **state)
{
	static struct world w;
	uint64_t sum = 0;

	(void)state;
	setup(&w);
	for (int round = 0; round < 30; round++) {
		memset(w.host, round + 1, 4000);
		for (unsigned i = 0; i < 4; i++) {
			post(&w, false, 1000 * i, 4096 + 1000 * i, 1000);
			post(&w, true, 8192 + 8 * i, 64, 8);
		}
		wait_for(&w, 8);
		assert_memory_equal(w.view + 4096, w.host, 4000);
		for (unsigned i = 0; i < 4; i++, sum += 3)
			assert_int_equal(w.host[1024 + i], sum);
	}
	ibv_destroy_ah(w.ah);
	ibv_destroy_qp(w.dci);
	ibv_destroy_qp(w.dct);
	ibv_destroy_srq(w.srq);
	ibv_dereg_mr(w.gpu_mr);
	ibv_dereg_mr(w.host_mr);
	ibv_destroy_cq(w.cq);
	ibv_dealloc_pd(w.pd);
	ibv_close_device(w.ctx);
	free(w.host);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_target) };
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (lib)
		*(void **)&gpu_view = dlsym(lib, "fake_cuda_view");
	if (!gpu_view) {
		puts("no fake libcuda.so.1 in LD_LIBRARY_PATH");
		return 77;
	}
	*(void **)&gpu_alloc = dlsym(lib, "cuMemAlloc_v2");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
