/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair that is reset, and whose doorbell record keeps what it held: nothing is posted until the record changes,
 * a doorbell rings, or the ring, which was empty, holds all that the record covers. UCX so resets a DCI whose target is
 * gone. */
#include <string.h>
#include <unistd.h>

#include "softhca/tests/control/common.h"

enum { BEFORE = 5 };

static void reset(struct dq *q)
{
	uint8_t in[MBOX] = {0};

	put_bits(in, 0, 16, 0x50a);
	put_bits(in, 0x48, 24, q->qpn);
	assert_int_equal(dq_modify(q, in), 0);
	memset(q->mem + DQ_SQ, 0, 1024);
	dq_connect(q, q->qpn);
}

static void nop(const struct dq *q, uint8_t wqe[64], uint16_t index)
{
	memset(wqe, 0, 64);
	put_bits(wqe, 8, 16, index);
	put_bits(wqe, 32, 24, q->qpn);
	put_bits(wqe, 56, 8, 1);
	wqe[11] = 8;
}

static void completed(const struct dq *q, uint32_t n, uint16_t index)
{
	assert_int_equal(dq_completed(q, n), 0);
	assert_int_equal(get_bits(q->mem + DQ_CQ + n * 64, 60 * 8, 16), index);
}

static void test_record_kept(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	static const uint8_t posted[] = {BEFORE, 1, 1, BEFORE}; /* the third begins and ends as the second */
	uint8_t wqe[64 * BEFORE];
	uint32_t n = 0;
	struct dq q;

	dq_create(&q, ctx, pd_number(pd), 5, false);
	dq_connect(&q, q.qpn);
	for (unsigned life = 0; life < sizeof(posted); life++) {
		for (uint16_t i = 0; i < posted[life]; i++) {
			nop(&q, wqe, i);
			dq_post(&q, i, wqe);
			completed(&q, n++, i);
		}
		reset(&q);
		usleep(50000);
		assert_int_equal(dq_state(&q), 3);
		assert_int_equal(q.mem[DQ_CQ + n * 64 + 63] >> 4, 15);
	}
	/* All at once: the record does not change, the doorbell tells. */
	for (uint16_t i = 0; i < BEFORE; i++)
		nop(&q, wqe + 64 * i, i);
	dq_post_blocks(&q, 0, wqe, BEFORE);
	for (uint16_t i = 0; i < BEFORE; i++)
		completed(&q, n++, i);
	/* Nor does a doorbell tell, since another queue has overwritten it: the ring alone. */
	reset(&q);
	for (uint16_t i = 0; i < BEFORE; i++)
		nop(&q, q.mem + DQ_SQ + 64 * i, i);
	for (uint16_t i = 0; i < BEFORE; i++)
		completed(&q, n++, i);
	dq_destroy(&q);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_record_kept)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
