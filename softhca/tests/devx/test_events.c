/* SPDX-License-Identifier: BSD-3-Clause */
/* DEVX event channels: what is subscribed to comes, once, with its cookie, and with its data where the channel has it;
 * what may not be subscribed to. With a fault schedule in the environment the port alone, whose link goes. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <infiniband/mlx5_user_ioctl_verbs.h>

#include "softhca/tests/control/common.h"

enum {
	COMP = 0x00,
	CQ_ERROR = 0x04,
	CATASTROPHIC = 0x05,
	PORT_CHANGE = 0x09,
	INVALID = 0x10,
	ACCESS = 0x11,
	LAST_WQE = 0x13,
};
enum { COOKIE = 0x77665544, EQE = 64 };

typedef struct mlx5dv_devx_event_channel channel;

union event {
	struct mlx5dv_devx_async_event_hdr hdr;
	uint8_t bytes[8 + 2 * EQE]; /* room for more than one, as programs have */
};

struct ends {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct dq q; /* connected to itself */
	channel *ch;
};

static channel *channel_open(struct ibv_context *ctx, bool omit)
{
	channel *ch = mlx5dv_devx_create_event_channel(ctx, omit ? MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA
								  : 0);

	assert_non_null(ch);
	return ch;
}

static void ends_open(struct ends *e, struct ibv_context *ctx, bool omit)
{
	e->pd = ibv_alloc_pd(ctx);
	dq_create(&e->q, ctx, pd_number(e->pd), 5, false);
	dq_connect(&e->q, e->q.qpn);
	e->mr = ibv_reg_mr(e->pd, e->q.mem, 64, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(e->mr);
	e->ch = channel_open(ctx, omit);
}

static void ends_close(struct ends *e)
{
	if (e->ch)
		mlx5dv_devx_destroy_event_channel(e->ch);
	assert_int_equal(ibv_dereg_mr(e->mr), 0);
	dq_destroy(&e->q);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
}

static void subscribe(channel *ch, struct mlx5dv_devx_obj *obj, uint16_t type, uint64_t cookie)
{
	assert_int_equal(mlx5dv_devx_subscribe_devx_event(ch, obj, sizeof(type), &type, cookie), 0);
}

/* Bytes of the next event, 0: none within so many ms. */
static ssize_t next(channel *ch, union event *ev, int ms)
{
	struct pollfd pf = {.fd = ch->fd, .events = POLLIN};

	return poll(&pf, 1, ms) == 1 ? mlx5dv_devx_get_event(ch, &ev->hdr, sizeof(*ev)) : 0;
}

static void none(channel *ch)
{
	union event ev;

	assert_int_equal(next(ch, &ev, 20), 0);
}

/* One without data. */
static void told(channel *ch, uint64_t cookie)
{
	union event ev;

	assert_int_equal(next(ch, &ev, 5000), 8);
	assert_int_equal(ev.hdr.cookie, cookie);
}

/* One with data: of this type, which names the number. */
static void told_data(channel *ch, uint64_t cookie, unsigned type, uint32_t number)
{
	union event ev;
	const uint8_t *eqe = ev.hdr.out_data;

	assert_int_equal(next(ch, &ev, 5000), 8 + EQE);
	assert_int_equal(ev.hdr.cookie, cookie);
	assert_int_equal(eqe[1], type);
	assert_int_equal(get_bits(eqe + (type == CQ_ERROR ? 32 : 56), 0, 32), number);
}

/* The arm word and the doorbell, as libmlx5 writes them. */
static void arm(struct dq *q, unsigned sn, uint32_t ci)
{
	uint8_t db[8] = {0};
	uint32_t word;
	uint64_t v;

	put_bits(db, 2, 2, sn);
	put_bits(db, 8, 24, ci);
	put_bits(db, 40, 24, q->cqn);
	memcpy(&word, db, 4);
	memcpy(&v, db, 8);
	/* Release, both: the device reads either, with acquire. */
	__atomic_store_n((uint32_t *)(void *)(q->mem + DQ_CQ_DBR + 4), word, __ATOMIC_RELEASE);
	__atomic_store_n((uint64_t *)(void *)((uint8_t *)q->uar->base_addr + 0x20), v, __ATOMIC_RELEASE);
}

/* A WQE whose completion is asked for: NOP, or a WRITE that its own region does not allow. */
static void post(struct ends *e, uint16_t index, bool bad)
{
	struct dq *q = &e->q;
	uint8_t wqe[64] = {0};

	put_bits(wqe, 8, 16, index);
	put_bits(wqe, 24, 8, bad ? 8 : 0);
	put_bits(wqe, 32, 24, q->qpn);
	put_bits(wqe, 56, 8, bad ? 3 : 1);
	wqe[11] = 8;
	put_bits(wqe, 128, 64, (uintptr_t)q->mem);
	put_bits(wqe, 192, 32, e->mr->rkey);
	put_bits(wqe, 256, 32, 8);
	put_bits(wqe, 288, 32, e->mr->lkey);
	put_bits(wqe, 320, 64, (uintptr_t)q->mem);
	dq_post(q, index, wqe);
}

static void wait_cqe(struct dq *q, uint32_t n)
{
	/* Acquire: pairs with the device's store of the entry's last word. */
	for (int i = 0; i < 5000; i++) {
		uint8_t own = __atomic_load_n(q->mem + DQ_CQ + n % 32 * 64 + 63, __ATOMIC_ACQUIRE);

		if (own >> 4 != 15 && (own & 1) == (n >> 5 & 1))
			return;
		usleep(1000);
	}
	fail_msg("no completion");
}

static void test_completions(void **state)
{
	struct ends e;
	union event ev;

	ends_open(&e, *state, true);
	assert_int_equal(fcntl(e.ch->fd, F_SETFL, O_NONBLOCK), 0);
	subscribe(e.ch, e.q.cq, COMP, COOKIE);
	assert_int_equal(mlx5dv_devx_get_event(e.ch, &ev.hdr, sizeof(ev)), -1);
	assert_int_equal(errno, EAGAIN);
	arm(&e.q, 0, 0); /* the record held 0 before */
	none(e.ch);
	post(&e, 0, false);
	told(e.ch, COOKIE);
	post(&e, 1, false); /* not armed */
	wait_cqe(&e.q, 1);
	none(e.ch);
	arm(&e.q, 1, 1); /* behind the completion */
	told(e.ch, COOKIE);
	/* Two that nobody reads are one. */
	for (uint16_t i = 2; i < 4; i++) {
		arm(&e.q, i, i);
		post(&e, i, false);
		wait_cqe(&e.q, i);
		usleep(20000);
	}
	told(e.ch, COOKIE);
	none(e.ch);
	ends_close(&e);
}

/* Armed, then subscribed to: the arm is not forgotten. */
static void test_armed_before(void **state)
{
	struct ends e;

	ends_open(&e, *state, true);
	arm(&e.q, 0, 0);
	subscribe(e.ch, e.q.cq, COMP, COOKIE);
	post(&e, 0, false);
	told(e.ch, COOKIE);
	ends_close(&e);
}

/* More than the kernel's pipe holds, none lost, in order, one a read. */
static void test_many(void **state)
{
	enum { N = 600 };
	struct ends e;

	ends_open(&e, *state, false);
	subscribe(e.ch, e.q.cq, COMP, COOKIE);
	subscribe(e.ch, e.q.cq, COMP, COOKIE + 1);
	for (uint16_t i = 0; i < N; i++) {
		/* Release: the device reads what is consumed with acquire. */
		__atomic_store_n((uint32_t *)(void *)(e.q.mem + DQ_CQ_DBR), htobe32(i), __ATOMIC_RELEASE);
		arm(&e.q, i % 4, i);
		post(&e, i, false);
		wait_cqe(&e.q, i);
	}
	for (unsigned i = 0; i < 2 * N; i++)
		told_data(e.ch, COOKIE + i % 2, COMP, e.q.cqn);
	none(e.ch);
	ends_close(&e);
}

static void test_queue_pair(void **state)
{
	uint16_t types[] = {INVALID, ACCESS, CATASTROPHIC, LAST_WQE};
	struct ends e;

	ends_open(&e, *state, false);
	assert_int_equal(mlx5dv_devx_subscribe_devx_event(e.ch, e.q.qp, sizeof(types), types, COOKIE), 0);
	post(&e, 0, true);
	told_data(e.ch, COOKIE, ACCESS, e.q.qpn);
	none(e.ch);
	ends_close(&e);
}

static void test_overrun(void **state)
{
	uint8_t in[MBOX] = {0}, out[16] = {0};
	struct ends e;

	ends_open(&e, *state, false);
	put_bits(in, 0, 16, 0x403); /* MODIFY_CQ: overruns are not ignored */
	put_bits(in, 0x48, 24, e.q.cqn);
	put_bits(in, 0x60, 32, 4);
	assert_int_equal(mlx5dv_devx_obj_modify(e.q.cq, in, sizeof(in), out, sizeof(out)), 0);
	subscribe(e.ch, e.q.cq, CQ_ERROR, 1);
	subscribe(e.ch, e.q.qp, CATASTROPHIC, 2);
	for (uint16_t i = 0; i < 33; i++) {
		post(&e, i, false);
		if (i < 32)
			wait_cqe(&e.q, i);
	}
	told_data(e.ch, 1, CQ_ERROR, e.q.cqn);
	told_data(e.ch, 2, CATASTROPHIC, e.q.qpn);
	none(e.ch);
	ends_close(&e);
}

/* Told is the program's eventfd, also by a number that it has closed. */
static void test_eventfd(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK), other = dup(fd);
	eventfd_t count = 0;
	struct ends e;

	ends_open(&e, *state, true);
	assert_int_equal(mlx5dv_devx_subscribe_devx_event_fd(e.ch, e.ch->fd, e.q.qp, ACCESS), EINVAL);
	assert_int_equal(mlx5dv_devx_subscribe_devx_event_fd(e.ch, 9999, e.q.qp, ACCESS), EBADF);
	assert_int_equal(mlx5dv_devx_subscribe_devx_event_fd(e.ch, other, e.q.qp, ACCESS), 0);
	close(other);
	post(&e, 0, true);
	for (int i = 0; i < 5000 && eventfd_read(fd, &count); i++)
		usleep(1000);
	assert_int_equal(count, 1);
	none(e.ch);
	close(fd);
	ends_close(&e);
}

static void test_refused(void **state)
{
	uint16_t many[17] = {0}, type;
	struct ends e;

	ends_open(&e, *state, true);
	assert_null(mlx5dv_devx_create_event_channel(*state, 2));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mlx5dv_devx_subscribe_devx_event(e.ch, e.q.cq, sizeof(many), many, 0), EINVAL);
	assert_int_equal(mlx5dv_devx_subscribe_devx_event(e.ch, e.q.cq, 3, many, 0), EINVAL);
	for (unsigned of_port = 0; of_port < 2; of_port++) {
		type = of_port ? COMP : PORT_CHANGE; /* which has no object */
		assert_int_equal(mlx5dv_devx_subscribe_devx_event(e.ch, of_port ? NULL : e.q.cq, 2, &type, 0), EINVAL);
		type = 0xff;
		assert_int_equal(mlx5dv_devx_subscribe_devx_event(e.ch, of_port ? NULL : e.q.cq, 2, &type, 0), EINVAL);
	}
	ends_close(&e);
}

/* A channel goes before what it listens to; an object goes before its event is read. */
static void test_lives(void **state)
{
	unsigned before = open_fds();
	channel *ch;
	struct ends e;

	ends_open(&e, *state, true);
	subscribe(e.ch, e.q.cq, COMP, COOKIE);
	subscribe(e.ch, e.q.qp, ACCESS, COOKIE);
	mlx5dv_devx_destroy_event_channel(e.ch);
	e.ch = NULL;
	arm(&e.q, 0, 0);
	post(&e, 0, true);
	wait_cqe(&e.q, 0);
	ends_close(&e);

	ends_open(&e, *state, true);
	ch = e.ch;
	subscribe(ch, e.q.qp, ACCESS, COOKIE);
	subscribe(ch, NULL, PORT_CHANGE, 0);
	post(&e, 0, true);
	wait_cqe(&e.q, 0);
	e.ch = NULL;
	ends_close(&e);
	told(ch, COOKIE);
	mlx5dv_devx_destroy_event_channel(ch);
	assert_int_equal(open_fds(), before);
}

static void test_port(void **state)
{
	static const uint8_t subtypes[] = {1, 4}; /* down, active */
	channel *ch = channel_open(*state, false);
	union event ev;

	subscribe(ch, NULL, PORT_CHANGE, COOKIE);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(next(ch, &ev, 20000), 8 + EQE);
		assert_int_equal(ev.hdr.cookie, COOKIE);
		assert_int_equal(ev.hdr.out_data[1], PORT_CHANGE);
		assert_int_equal(ev.hdr.out_data[3], subtypes[i]);
		assert_int_equal(ev.hdr.out_data[40] >> 4, 1);
	}
	mlx5dv_devx_destroy_event_channel(ch);
}

static int setup(void **state)
{
	*state = open_device();
	return 0;
}

static int teardown(void **state)
{
	return ibv_close_device(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_completions), cmocka_unit_test(test_armed_before), cmocka_unit_test(test_many),
		cmocka_unit_test(test_queue_pair),  cmocka_unit_test(test_overrun),	 cmocka_unit_test(test_eventfd),
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_lives),
	};
	const struct CMUnitTest port[] = {cmocka_unit_test(test_port)};

	return getenv("SOFTHCA_FAULTS") ? cmocka_run_group_tests(port, setup, teardown)
					: cmocka_run_group_tests(tests, setup, teardown);
}
