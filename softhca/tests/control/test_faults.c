/* SPDX-License-Identifier: BSD-3-Clause */
/* test_faults refuse | link | counters, each under the schedule that
 * faults.sh gives it: what faults look like through libibverbs. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

enum { FIRST_WQE = 0xfff8, FIRST_CQE = 0xfffff8, RING = 16 };

static struct ibv_pd *pd;
static struct dq q;

static void nop(uint16_t index)
{
	uint8_t wqe[64] = {0};

	put_bits(wqe, 8, 16, index);
	put_bits(wqe, 32, 24, q.qpn);
	put_bits(wqe, 56, 8, 1); /* ds */
	wqe[11] = 8;		 /* always a CQE */
	dq_post(&q, index, wqe);
}

/* ---- refused objects: "refuse mr 2; refuse qp after 1; refuse umem 2" ---- */

static struct ibv_qp *verbs_qp(struct ibv_context *ctx, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 8, .max_recv_wr = 8,
						.max_send_sge = 1, .max_recv_sge = 1}};

	(void)ctx;
	errno = 0;
	return ibv_create_qp(pd, &attr);
}

static void test_refuse(void **state)
{
	struct ibv_context *ctx = *state;
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	struct mlx5dv_devx_umem *umem;
	struct ibv_mr *mr[3];
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = verbs_qp(ctx, cq);

	for (int i = 0; i < 3; i++) {
		errno = 0;
		mr[i] = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
		assert_int_equal(errno, i == 1 ? ENOMEM : 0);
		assert_true(!mr[i] == (i == 1));
	}
	umem = mlx5dv_devx_umem_reg(ctx, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(umem);
	assert_int_equal(mlx5dv_devx_umem_dereg(umem), 0);
	assert_null(mlx5dv_devx_umem_reg(ctx, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, ENOMEM);
	assert_non_null(qp);
	assert_null(verbs_qp(ctx, cq));
	assert_int_equal(errno, ENOMEM);
	/* It is the count of requests, not of what lives. */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_null(verbs_qp(ctx, cq));
	/* What was refused has left nothing behind that would hold the rest. */
	assert_int_equal(ibv_dereg_mr(mr[0]), 0);
	assert_int_equal(ibv_dereg_mr(mr[2]), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void test_refuse_devx(void **state)
{
	struct ibv_context *ctx = *state;
	uint8_t in[MBOX], out[16] = {0};

	/* The CQ and its memory are taken; the QP is one too many. */
	dq_memory(&q, ctx);
	dq_cq_mailbox(&q, in, 4, false, true);
	q.cq = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q.cq);
	q.cqn = (uint32_t)get_bits(out, 0x48, 24);
	dq_qp_mailbox(&q, in, pd_number(pd));
	memset(out, 0, sizeof(out));
	assert_null(mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(errno, EREMOTEIO);
	assert_int_equal(out[0], 0xf); /* no resources */
	dq_destroy(&q);
}

/* ---- the link: "link down at wqe 0 for 700ms" ---- */

static enum ibv_event_type event(struct ibv_context *ctx)
{
	struct ibv_async_event e;
	enum ibv_event_type type;

	assert_int_equal(ibv_get_async_event(ctx, &e), 0); /* the test's limit bounds it */
	type = e.event_type;
	assert_int_equal(e.element.port_num, 1);
	ibv_ack_async_event(&e);
	return type;
}

static void check_port(struct ibv_context *ctx, enum ibv_port_state state, const char *text)
{
	char path[512], got[32] = "";
	struct ibv_port_attr port;
	int fd;

	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.state, state);
	assert_int_equal(port.phys_state, state == IBV_PORT_DOWN ? 2 : 5);
	snprintf(path, sizeof(path), "%s/ports/1/state", ctx->device->ibdev_path);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && read(fd, got, sizeof(got) - 1) > 0);
	close(fd);
	assert_string_equal(got, text);
}

static void test_link(void **state)
{
	struct ibv_context *ctx = *state;

	dq_create(&q, ctx, pd_number(pd), 4, false);
	dq_connect(&q, q.qpn);
	check_port(ctx, IBV_PORT_ACTIVE, "4: ACTIVE\n");
	nop(0);
	assert_int_equal(event(ctx), IBV_EVENT_PORT_ERR);
	check_port(ctx, IBV_PORT_DOWN, "1: DOWN\n");
	assert_int_equal(event(ctx), IBV_EVENT_PORT_ACTIVE);
	check_port(ctx, IBV_PORT_ACTIVE, "4: ACTIVE\n");
	dq_destroy(&q);
}

/* ---- counters: "first_wqe=0xfff8,first_cqe=0xfffff8" ---- */

static uint32_t query(struct mlx5dv_devx_obj *obj, unsigned op, uint32_t number, unsigned bit,
		      unsigned width)
{
	uint8_t in[16] = {0}, out[MBOX] = {0};

	put_bits(in, 0, 16, op);
	put_bits(in, 0x48, 24, number);
	assert_int_equal(mlx5dv_devx_obj_query(obj, in, sizeof(in), out, sizeof(out)), 0);
	return (uint32_t)get_bits(out, bit, width);
}

static uint32_t wqe_counter(void)
{
	return query(q.qp, 0x50b, q.qpn, QPC + 0x5a0, 16);
}

static uint32_t cqe_counter(void)
{
	return query(q.cq, 0x402, q.cqn, CQC + 0x168, 24);
}

static void wait_cqe(uint32_t n, uint16_t counter)
{
	const uint8_t *e = q.mem + DQ_CQ + n % RING * 64;
	struct timespec nap = {.tv_nsec = 10000};
	uint8_t own;

	for (int i = 0; i < 500000; i++) {
		/* Acquire: pairs with the device's store of the last eight bytes. */
		own = (uint8_t)be64toh(__atomic_load_n(
			(const uint64_t *)(const void *)(e + 56), __ATOMIC_ACQUIRE));
		if (own >> 4 != 15 && (own & 1) == (n / RING & 1)) {
			assert_int_equal(own >> 4, 0);
			assert_int_equal(get_bits(e, 60 * 8, 16), counter);
			return;
		}
		nanosleep(&nap, NULL);
	}
	fail_msg("no completion %u", n);
}

static void test_counters(void **state)
{
	struct ibv_context *ctx = *state;

	dq_create(&q, ctx, pd_number(pd), 4, false);
	assert_int_equal(cqe_counter(), FIRST_CQE);
	assert_int_equal(wqe_counter(), FIRST_WQE);
	/* Before the QP runs the record has to say that nothing is posted. */
	((uint32_t *)(void *)(q.mem + DQ_DBR))[1] = htobe32(FIRST_WQE);
	dq_connect(&q, q.qpn);
	for (uint32_t i = 0; i < 40; i++) {
		nop((uint16_t)(FIRST_WQE + i));
		wait_cqe(FIRST_CQE + i, (uint16_t)(FIRST_WQE + i));
	}
	assert_int_equal(wqe_counter(), (FIRST_WQE + 40) & 0xffff);
	assert_int_equal(cqe_counter(), (FIRST_CQE + 40) & 0xffffff);
	dq_destroy(&q);
}

/* ---- */

static int setup(void **state)
{
	*state = open_device();
	pd = ibv_alloc_pd(*state);
	return !pd;
}

static int teardown(void **state)
{
	return ibv_dealloc_pd(pd) || ibv_close_device(*state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest refuse[] = {cmocka_unit_test(test_refuse),
					    cmocka_unit_test(test_refuse_devx)};
	const struct CMUnitTest link[] = {cmocka_unit_test(test_link)};
	const struct CMUnitTest counters[] = {cmocka_unit_test(test_counters)};
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "refuse"))
		return cmocka_run_group_tests(refuse, setup, teardown);
	if (!strcmp(what, "link"))
		return cmocka_run_group_tests(link, setup, teardown);
	if (!strcmp(what, "counters"))
		return cmocka_run_group_tests(counters, setup, teardown);
	fprintf(stderr, "which faults? '%s'\n", what);
	return 2;
}
