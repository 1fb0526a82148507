/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy by way of shared memory (bulk.h) over an engine that does what was asked of it as late as it may, in any
 * order: every byte arrives, nothing beside the stage is touched, no place is filled before it was emptied, and the
 * barriers are given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gdr/impl/arch/arch.h>

#define SHARED (256u * 1024)
#define FEW 16 /* requests under way at most */
#define POISON 0xa5

struct request {
	int under_way;
	uint32_t at, len, bar; /* in shared memory */
	const uint8_t *from;   /* load */
	uint8_t *to;	       /* store, which has read shared memory when it is no longer under way */
};

static struct {
	uint8_t shared[SHARED];
	uint32_t begin, end; /* the stage */
	struct request loads[FEW], stores[FEW];
	uint32_t n_stores; /* since the last wait for all */
	int fenced;
	struct {
		uint32_t at, phases, busy;
	} bars[FEW];
	uint64_t random;
} e;

static uint32_t any(uint32_t n)
{
	e.random = e.random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(e.random >> 33) % n;
}

static void inside(uint32_t at, uint32_t len)
{
	assert_true(at >= e.begin && at + len <= e.end);
}

static uint32_t bar_of(uint32_t at)
{
	uint32_t i;

	for (i = 0; i < FEW && e.bars[i].at != at; i++)
		;
	assert_true(i < FEW);
	return i;
}

static void gdri_mbar_init(uint32_t bar)
{
	uint32_t i = bar_of(0);

	inside(bar, 8);
	assert_int_equal(bar % 8, 0);
	memset(e.shared + bar, 0xbb, 8);
	e.bars[i].at = bar;
	e.bars[i].phases = e.bars[i].busy = 0;
	e.fenced = 0;
}

static void gdri_mbar_inval(uint32_t bar)
{
	uint32_t i = bar_of(bar), k;

	assert_int_equal(e.bars[i].busy, 0);
	for (k = 0; k < 8; k++)
		assert_int_equal(e.shared[bar + k], 0xbb);
	e.bars[i].at = 0;
}

static void gdri_fence_engine(void)
{
	e.fenced = 1;
}

/* Requests of either kind that touch the bytes. */
static int touched(const struct request *of, uint32_t at, uint32_t len)
{
	int i, n = 0;

	for (i = 0; i < FEW; i++)
		n += of[i].under_way && of[i].at < at + len && at < of[i].at + of[i].len;
	return n;
}

static struct request *free_of(struct request *of)
{
	int i;

	for (i = 0; i < FEW && of[i].under_way; i++)
		;
	assert_true(i < FEW);
	return &of[i];
}

static void gdri_bulk_load(uint32_t to, const void *from, uint32_t len, uint32_t bar)
{
	uint32_t i = bar_of(bar), k;

	assert_true(e.fenced && len && !(len % 16) && !(to % 16) && !((uintptr_t)from % 16));
	inside(to, len);
	for (k = 0; k < FEW; k++)
		assert_true(!e.bars[k].at || to >= e.bars[k].at + 8 || to + len <= e.bars[k].at);
	assert_false(touched(e.loads, to, len) || touched(e.stores, to, len));
	assert_int_equal(e.bars[i].busy, 0);
	e.bars[i].busy = 1;
	*free_of(e.loads) = (struct request){1, to, len, bar, from, NULL};
}

static void load_now(struct request *r)
{
	uint32_t i = bar_of(r->bar);

	memcpy(e.shared + r->at, r->from, r->len);
	r->under_way = 0;
	e.bars[i].busy = 0;
	e.bars[i].phases++;
}

static void store_now(struct request *r)
{
	assert_false(touched(e.loads, r->at, r->len)); /* it would read half of what comes */
	memcpy(r->to, e.shared + r->at, r->len);
	memset(e.shared + r->at, POISON, r->len); /* who reads it again reads that */
	r->under_way = 0;
}

static int gdri_mbar_try(uint32_t bar, uint32_t parity)
{
	struct request *r = &e.loads[any(FEW)];

	assert_true(parity < 2);
	if (r->under_way)
		load_now(r);
	if (e.stores[parity].under_way && !any(3))
		store_now(&e.stores[parity]);
	return (e.bars[bar_of(bar)].phases & 1) != parity;
}

static void gdri_bulk_store(void *to, uint32_t from, uint32_t len)
{
	assert_true(len && !(len % 16) && !(from % 16) && !((uintptr_t)to % 16));
	inside(from, len);
	assert_false(touched(e.loads, from, len));
	/* the oldest first, so that all but the latest can be told */
	memmove(e.stores + 1, e.stores, sizeof(e.stores) - sizeof(e.stores[0]));
	e.stores[0] = (struct request){1, from, len, 0, NULL, to};
	e.n_stores++;
}

static void wait_stores(uint32_t but)
{
	uint32_t i;

	for (i = but; i < FEW; i++)
		if (e.stores[i].under_way)
			store_now(&e.stores[i]);
}

static void gdri_bulk_wait_read(void)
{
	wait_stores(1);
}

static void gdri_bulk_wait(void)
{
	wait_stores(0);
	e.n_stores = 0;
}

#define GDRI_HAS_BULK 1
#include <gdr/impl/path/bulk.h>

#define MOST (1u << 20)
static _Alignas(16) uint8_t src[MOST], dst[MOST + 32];

static void copy(uint32_t at, uint32_t bytes, size_t len)
{
	size_t i;

	memset(e.shared, POISON, SHARED);
	memset(dst, POISON, len + 32);
	e.begin = at;
	e.end = at + bytes;
	gdri_bulk_through(dst + 16, src, len, at, bytes);
	assert_memory_equal(dst + 16, src, len);
	for (i = 0; i < 16; i++) {
		assert_int_equal(dst[i], POISON);
		assert_int_equal(dst[len + 16 + i], POISON);
		assert_false(e.loads[i].under_way || e.stores[i].under_way || e.bars[i].at);
	}
	for (i = 0; i < SHARED; i++)
		if (i < at || i >= at + bytes)
			assert_int_equal(e.shared[i], POISON);
}

static void test_copies(void **state)
{
	static const uint32_t bytes[] = {512, 513, 640, 1000, 4096, 8192, 20000, 33000, 66000, 131072 + 160, 200000};
	size_t len;
	int i;

	(void)state;
	for (i = 0; i < 4000; i++) {
		len = 16u * (1 + any(any(2) ? 64 : any(2) ? 2048 : MOST / 16 - 1));
		copy(16 + any(256), bytes[any(11)], len);
	}
}

/* Of a stage of 128 KiB as much is used as can be, in pieces of the largest size. */
static void test_sizes(void **state)
{
	struct gdri_stage g = gdri_stage_of(1024, 131072 + 160, MOST);

	(void)state;
	assert_int_equal(g.pieces, 4);
	assert_int_equal(g.piece, 32768);
	assert_int_equal(g.data % 128, 0);
	g = gdri_stage_of(1040, 32768, 16384);
	assert_int_equal(g.pieces, 1);
	assert_int_equal(g.data, 1152);
	g = gdri_stage_of(1040, 512, 4096);
	assert_true(g.pieces >= 2);
	assert_false(gdri_bulk_pays(1, 0, 1520) || gdri_bulk_pays(32, 1, 16368) || gdri_bulk_pays(64, 0, 131056));
	assert_true(gdri_bulk_pays(1, 0, 1536) && gdri_bulk_pays(32, 1, 16384) && gdri_bulk_pays(64, 0, 131072));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_sizes),
	};
	size_t i;

	for (i = 0; i < MOST; i++)
		src[i] = (uint8_t)(i * 2654435761u >> 13);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
