/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict mode beside a program that posts its receives at the worst moment: right behind the look at
 * the record that found none. Nothing of that is a mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fakewire.h"
#include "softhca/transport/rc.h"
#include "softhca/strict/strict_impl.h"

enum { BUF = 4096, RING = 64, MESSAGES = 400, WAITS = 100000 };

static struct sim_qp *a, *b;
static uint8_t *mem;
static uint32_t key;
static unsigned received, reports;
static bool taking; /* the look is one of those before a receive is taken */

bool __real_recv_take(struct hca_qp *qp, struct hca_recv *r);
bool __wrap_recv_take(struct hca_qp *qp, struct hca_recv *r);
void __real_recv_flush(struct hca_qp *qp);
void __wrap_recv_flush(struct hca_qp *qp);
void __real_strict_recv_look(struct hca_qp *qp);
void __wrap_strict_recv_look(struct hca_qp *qp);
void __wrap_strict_report(enum strict_rule rule, const struct strict_at *at, const char *fmt, ...);

static void post(unsigned most)
{
	while (b->rq_pi - received < most)
		sim_recv(b, mem, BUF, key);
}

bool __wrap_recv_take(struct hca_qp *qp, struct hca_recv *r)
{
	bool ok;

	taking = true;
	ok = __real_recv_take(qp, r);
	taking = false;
	return ok;
}

void __wrap_recv_flush(struct hca_qp *qp)
{
	taking = true;
	__real_recv_flush(qp);
	taking = false;
}

/* A whole ring when it is empty. */
void __wrap_strict_recv_look(struct hca_qp *qp)
{
	__real_strict_recv_look(qp);
	if (taking && b->rq_pi == received)
		post(RING);
}

void __wrap_strict_report(enum strict_rule rule, const struct strict_at *at, const char *fmt, ...)
{
	(void)rule;
	(void)at;
	(void)fmt;
	reports++;
}

/* Polls, and posts as much again now and then: often the ring runs empty. */
static void take(uint8_t type, unsigned wait)
{
	struct sim_cqe c;

	for (; sim_poll_recv(b, &c, 0); received++)
		assert_int_equal(c.type, type);
	if (wait % 50 == 0)
		post(1 + wait % RING);
}

static void connect_both(void)
{
	fake_clear();
	sim_reset(a);
	sim_reset(b);
	sim_pair(a, b);
	received = reports = 0;
}

static void test_posted_behind_the_look(void **state)
{
	unsigned sent = 0, n = 0;
	struct sim_cqe c;

	(void)state;
	connect_both();
	for (unsigned waits = 0; n < MESSAGES && waits < WAITS; waits++) {
		for (; sent < MESSAGES && sent - n < RING / 2; sent++)
			sim_send(a, mem, 100, key, 1);
		sim_ring(a);
		engine_round();
		take(CQE_RESP_SEND, waits);
		for (; sim_poll(a, &c, 0); n++)
			assert_int_equal(c.type, CQE_REQ);
	}
	assert_int_equal(n, MESSAGES);
	assert_int_equal(reports, 0);
}

/* What is posted while the queue is flushed. */
static void test_posted_behind_the_end(void **state)
{
	(void)state;
	connect_both();
	hca_lock();
	rc_to_error(&b->qp);
	hca_unlock();
	for (unsigned waits = 0; received < 5 * RING && waits < WAITS; waits++) {
		doorbell_sweep_all();
		take(CQE_RESP_ERR, waits);
	}
	assert_in_range(received, 5 * RING, 7 * RING);
	assert_int_equal(reports, 0);
}

static int setup(void **state)
{
	(void)state;
	sim_init_idle();
	strict_on = true;
	mem = sim_memory(BUF, 0xf, &key);
	a = sim_qp(6, SIM_CQ_RING);
	b = sim_qp(6, SIM_CQ_RING);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posted_behind_the_look),
		cmocka_unit_test(test_posted_behind_the_end),
	};

	return cmocka_run_group_tests(tests, setup, NULL) ? 1 : 0;
}
