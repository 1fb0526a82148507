/* SPDX-License-Identifier: BSD-3-Clause */
/* What writes to memory of GPUs become in a submission: which are made one, which keep their
 * order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "softhca/gpu/dma_impl.h"
#include "softhca/tools/log.h"

enum { CQE = 64, AREA = 1 << 20, EDGE = AREA / 2, OTHER = 1 << 24, CQS = 64 };

static struct dma_queue sent;
static uint32_t flags[16];
static uint8_t *const area = (uint8_t *)(uintptr_t)0x7f0000000000; /* never touched */

/* ---- what dma_write.c calls ---- */

struct hca_stats hca_stats;
struct dma_gpu dma_gpu;
struct dma_call dma_call;
bool dma_on;

bool dma_hand_over(struct dma_queue *q, uint32_t number)
{
	sent = *q;
	flags[0] = number;
	return true;
}

/* An allocation ends at the edge, and the next one begins. */
bool dma_goes_on(uint64_t addr)
{
	return (addr - (uintptr_t)area) % OTHER != EDGE;
}

bool dma_lookup(const void *p)
{
	(void)p;
	return true;
}

bool dma_kernel_takes(const struct dma_queue *q)
{
	(void)q;
	return false;
}

bool dma_kernel_writes(void)
{
	return false;
}

bool dma_kernel_written(uint32_t number)
{
	(void)number;
	return true;
}

cu_ctx dma_enter(void)
{
	return NULL;
}

void dma_leave(cu_ctx before)
{
	(void)before;
}

bool dma_ok(cu_result rc, const char *call)
{
	(void)call;
	return !rc;
}

void dma_wake(void)
{
}

void dma_atomic_forget(uint64_t addr, size_t n)
{
	(void)addr;
	(void)n;
}

void dma_read(void *dst, const void *src, size_t n, bool ordered)
{
	(void)dst;
	(void)src;
	(void)n;
	(void)ordered;
}

bool peer_memory_read(struct peer_memory *m, const struct iovec *dst, int ndst,
		      const struct iovec *src, int nsrc)
{
	(void)m;
	(void)dst;
	(void)ndst;
	(void)src;
	(void)nsrc;
	return false;
}

void hca_warn(const char *fmt, ...)
{
	(void)fmt;
}

uint64_t dp_clock(void)
{
	return 1;
}

uint64_t dp_now(void)
{
	return 1;
}

/* ---- tests ---- */

static void hand_over(void)
{
	memset(&sent, 0, sizeof(sent));
	dma_push();
	dma_write_poll();
	assert_int_equal(flags[0], (uint32_t)dma_posted());
	assert_true(dma_done(dma_posted()));
}

static uint8_t *cq_place(unsigned i)
{
	return area + (size_t)i * 4096;
}

/* The entries of a collapsed CQ have one place: the last one of it has to win, however many other
 * CQs had theirs between. */
static void test_same_place(void **state)
{
	uint8_t cqe[CQE];
	unsigned lap = 0, batch = 0, seen[CQS] = { 0 }, in[CQS] = { 0 };

	(void)state;
	for (; lap < 2; lap++)
		for (unsigned i = 0; i < CQS; i++) {
			memset(cqe, (int)(lap + 1), CQE);
			dma_post_cqe(cq_place(i), cqe, false);
		}
	hand_over();
	for (unsigned k = 0; k < sent.n; k++) {
		unsigned i = (unsigned)((sent.dst[k] - (uintptr_t)area) / 4096);

		batch += sent.first[k];
		assert_int_not_equal(in[i], batch); /* two in a batch have no order */
		in[i] = batch;
		seen[i] = *(const uint8_t *)(uintptr_t)sent.src[k];
	}
	for (unsigned i = 0; i < CQS; i++)
		assert_int_equal(seen[i], 2);
	assert_in_range(batch, 1, 2 * CQS / 32 + 1);
}

/* Entries of rings that come in turn: a copy for each ring, without order. */
static void test_rings(void **state)
{
	uint8_t cqe[CQE] = { 0 };

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		dma_post_cqe(area + i * CQE, cqe, false);
		dma_post_cqe(area + 8192 + i * CQE, cqe, false);
	}
	hand_over();
	assert_int_equal(sent.n, 2);
	assert_int_equal(sent.len[0], 8 * CQE);
	assert_int_equal(sent.len[1], 8 * CQE);
	assert_false(sent.first[1]);
}

/* An error takes the place of a good entry of which only the end was to go. */
static void test_error(void **state)
{
	uint8_t cqe[CQE];

	(void)state;
	memset(cqe, 1, CQE);
	dma_post_cqe(cq_place(0), cqe, true);
	memset(cqe, 2, CQE);
	dma_post(cq_place(0), cqe, CQE, false);
	memset(cqe, 3, CQE);
	dma_post_cqe(cq_place(1), cqe, false);
	hand_over();
	assert_int_equal(sent.n, 2);
	assert_false(sent.end_only[0]);
	assert_int_equal(((const uint8_t *)(uintptr_t)sent.src[0])[0], 2);
	assert_true(sent.first[1]); /* behind the error */
}

/* Neighbours become one, but not of two allocations. */
static void test_edges(void **state)
{
	static uint8_t payload[256];
	uint8_t cqe[CQE] = { 0 };

	(void)state;
	for (int edge = 0; edge < 2; edge++) {
		uint8_t *at = area + (edge ? EDGE : EDGE / 2);

		dma_post(at - 256, payload, 256, true);
		dma_post(at, payload, 256, true);
		hand_over();
		assert_int_equal(sent.n, 1 + edge);
		dma_post_cqe(at - CQE, cqe, false);
		dma_post_cqe(at, cqe, false);
		hand_over();
		assert_int_equal(sent.n, 1 + edge);
		for (int back = 0; back < 2; back++) {
			dma_post_copy(at - (back ? 0 : 256), at + OTHER - (back ? 0 : 256), 256, true);
			dma_post_copy(at - (back ? 256 : 0), at + OTHER - (back ? 256 : 0), 256, true);
			hand_over();
			assert_int_equal(sent.n, 1 + edge);
			assert_int_equal(sent.dst[0], (uintptr_t)at - (edge && back ? 0 : 256));
			assert_int_equal(sent.len[0], edge ? 256 : 512);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_place),
		cmocka_unit_test(test_rings),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_edges),
	};
	int failed;

	dma_gpu.stage = aligned_alloc(4096, DMA_STAGE);
	dma_gpu.flag = flags;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(dma_gpu.stage);
	return failed;
}
