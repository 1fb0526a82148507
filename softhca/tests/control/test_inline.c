/* SPDX-License-Identifier: BSD-3-Clause */
/* Polls that do the device's work themselves (SOFTHCA_INLINE=1), through the system's libibverbs:
 * which contexts they are of, several devices and threads, fork, objects that go meanwhile, and
 * completion queues that the program calls by any number. inline.sh looks at the counters. */
#include "pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>

enum { TURNS = 500, PAIRS = 3, LIMIT_S = 20, LOOKS = 200 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Polls; now and then it gives its core to the engine, which there may be none for otherwise. */
static bool poll_ok(struct ibv_cq *cq)
{
	double end = now() + LIMIT_S;
	struct ibv_wc wc;
	int n;

	for (int looks = 1; !(n = ibv_poll_cq(cq, 1, &wc)); looks++) {
		if (looks % LOOKS == 0)
			sched_yield();
		if (now() > end)
			return false;
	}
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

static bool write_and_compare(struct pair *p, unsigned turn)
{
	uint32_t len = 1 + turn * 37 % (BUF / 2);

	memset(p->buf, (int)turn, len);
	pair_post(p, IBV_WR_RDMA_WRITE, len, len <= 64 ? IBV_SEND_INLINE : 0, p->mr->rkey, 0, 0);
	return poll_ok(p->cq[0]) && !memcmp(p->buf, p->buf + BUF / 2, len);
}

static void *write_all(void *arg)
{
	for (unsigned i = 0; i < TURNS; i++)
		if (!write_and_compare(arg, i))
			return arg;
	return NULL;
}

static struct pair *new_pair(void)
{
	void *state;

	pair_setup(&state);
	return state;
}

/* Each pair has a context of its own. */
static void test_threads(void **state)
{
	struct pair *p[PAIRS];
	pthread_t t[PAIRS];
	void *bad;

	(void)state;
	for (int i = 0; i < PAIRS; i++) {
		p[i] = new_pair();
		assert_int_equal(pthread_create(&t[i], NULL, write_all, p[i]), 0);
	}
	for (int i = 0; i < 20; i++) { /* in a context that is polled */
		struct ibv_cq *cq = ibv_create_cq(p[0]->ctx, 64, NULL, NULL, 0);
		struct ibv_mr *mr = ibv_reg_mr(p[0]->pd, p[0]->buf, BUF, FULL_ACCESS);

		assert_non_null(cq);
		assert_non_null(mr);
		usleep(300);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	for (int i = 0; i < PAIRS; i++) {
		void *s = p[i];

		assert_int_equal(pthread_join(t[i], &bad), 0);
		assert_null(bad);
		pair_teardown(&s);
	}
}

/* Completion events, for which nobody polls. */
static void test_events(void **state)
{
	struct pair *p = new_pair();
	void *s = p, *ctx;
	struct ibv_cq *cq;

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		struct ibv_recv_wr wr = { .wr_id = i }, *bad;

		assert_int_equal(ibv_req_notify_cq(p->cq[1], 0), 0);
		assert_int_equal(ibv_post_recv(p->qp[1], &wr, &bad), 0);
		pair_post(p, IBV_WR_RDMA_WRITE_WITH_IMM, 8, 0, p->mr->rkey, 0, 0);
		if (i % 2)
			assert_true(poll_ok(p->cq[0]));
		assert_int_equal(ibv_get_cq_event(p->channel, &cq, &ctx), 0);
		ibv_ack_cq_events(cq, 1);
		assert_true(poll_ok(p->cq[1]));
		if (!(i % 2))
			assert_true(poll_ok(p->cq[0]));
	}
	pair_teardown(&s);
}

/* A child that polls what is its parent's finds nothing and does no harm. */
static void test_fork(void **state)
{
	struct pair *p = new_pair();
	void *s = p;
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, write_all, p), 0);
	for (int i = 0; i < 10; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			struct ibv_wc wc;

			for (int j = 0; j < 1000; j++)
				if (ibv_poll_cq(p->cq[1], 1, &wc))
					_exit(1);
			_exit(0);
		}
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_int_equal(pthread_join(t, &s), 0);
	assert_null(s);
	s = p;
	pair_teardown(&s);
}

/* ---- ibv_start_poll ---- */

static bool start_ok(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr none = { 0 };
	double end = now() + LIMIT_S;
	bool ok;
	int ret;

	for (int looks = 1; (ret = ibv_start_poll(cq, &none)) == ENOENT; looks++) {
		if (looks % LOOKS == 0)
			sched_yield();
		if (now() > end)
			return false;
	}
	ok = !ret && cq->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(cq) == IBV_WC_RDMA_WRITE;
	if (!ret)
		ibv_end_poll(cq);
	return ok;
}

static void use_extended(struct pair *p, unsigned flags)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					 .wc_flags = IBV_WC_STANDARD_FLAGS, .flags = flags };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(p->ctx, &a);
	struct ibv_qp_init_attr ia = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 64 } };
	const char *inl = getenv("SOFTHCA_INLINE");
	struct pair own = *p;
	Dl_info where;

	assert_non_null(cq);
	assert_int_not_equal(dladdr((void *)(uintptr_t)cq->start_poll, &where), 0);
	assert_int_equal(strstr(where.dli_fname, "libsofthca") != NULL, inl && *inl == '1');
	ia.send_cq = ia.recv_cq = ibv_cq_ex_to_cq(cq);
	own.qp[0] = ibv_create_qp(p->pd, &ia);
	assert_non_null(own.qp[0]);
	connect_qp(p->ctx, own.qp[0], own.qp[0]->qp_num);
	for (unsigned i = 0; i < 100; i++) {
		p->buf[0] = (uint8_t)(i + 1);
		pair_post(&own, IBV_WR_RDMA_WRITE, 8, IBV_SEND_INLINE, p->mr->rkey, 0, 0);
		assert_true(start_ok(cq));
		assert_int_equal(p->buf[BUF / 2], (uint8_t)(i + 1));
	}
	assert_int_equal(ibv_destroy_qp(own.qp[0]), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* libmlx5 has another function for queues without a lock. */
static void test_extended(void **state)
{
	struct pair *p = new_pair();
	void *s = p;

	(void)state;
	use_extended(p, 0);
	use_extended(p, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	use_extended(p, 0);
	assert_true(write_and_compare(p, 6));
	pair_teardown(&s);
}

/* ---- a program that asks the kernel itself ---- */

static struct {
	_Alignas(4096) uint8_t ring[4096], records[64];
} raw;

#define ATTR_DATA(p) .data = (uint64_t)(uintptr_t)(p)

static void create_raw(struct ibv_context *ctx, uint64_t handle)
{
	struct mlx5_ib_create_cq uhw = { .buf_addr = (uintptr_t)raw.ring,
					 .db_addr = (uintptr_t)raw.records, .cqe_size = 64 };
	struct mlx5_ib_create_cq_resp out = { 0 };
	uint32_t cqes = 15, got = 0;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[7];
	} cmd = {
		.hdr = { .length = sizeof(cmd), .object_id = UVERBS_OBJECT_CQ,
			 .method_id = UVERBS_METHOD_CQ_CREATE, .num_attrs = 7,
			 .driver_id = RDMA_DRIVER_MLX5 },
		.attrs = {
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_HANDLE },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_CQE, .len = 4, ATTR_DATA(cqes) },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_USER_HANDLE, .len = 8, ATTR_DATA(handle) },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, .len = 4 },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_RESP_CQE, .len = 4, ATTR_DATA(&got) },
			{ .attr_id = UVERBS_ATTR_UHW_IN, .len = sizeof(uhw), ATTR_DATA(&uhw) },
			{ .attr_id = UVERBS_ATTR_UHW_OUT, .len = sizeof(out), ATTR_DATA(&out) },
		},
	};

	if (sizeof(uhw) <= 8) /* small ones travel in the attribute; these do not */
		fail();
	assert_int_equal(ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd), 0);
	assert_int_equal(got, 15);
}

/* Of each context the first CQ's handle is looked at. */
static void test_handles(void **state)
{
	static struct ibv_context fake = { .cmd_fd = -1 }, empty;
	static struct ibv_cq nowhere = { .context = (void *)8 }, odd = { .context = (void *)9 },
			     of_fake = { .context = &fake }, of_empty = { .context = &empty };
	uint64_t handles[] = { 0, 1, 8, 4095, UINT64_MAX, UINT64_MAX - 7, (uintptr_t)&nowhere,
			       (uintptr_t)&odd, (uintptr_t)&of_fake, (uintptr_t)&of_empty };
	struct ibv_context *ctx;
	struct pair *p;
	void *s;

	(void)state;
	for (unsigned i = 0; i < sizeof(handles) / sizeof(*handles); i++) {
		ctx = open_device();
		empty.cmd_fd = ctx->cmd_fd;
		create_raw(ctx, handles[i]);
		assert_null(fake.ops.poll_cq);
		assert_null(empty.ops.poll_cq);
		assert_int_equal(ibv_close_device(ctx), 0);
	}
	s = p = new_pair();
	assert_true(write_and_compare(p, 5));
	pair_teardown(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_extended),
		cmocka_unit_test(test_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
