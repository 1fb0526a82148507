/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrap arithmetic by exhaustion: CQEs carry a few low bits of an index, here 8
 * instead of 16, so that every state of the window can be tried. The function
 * under test is the one that complete.h uses, with another mask. Each safeguard is also
 * taken away, to see that the property then fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

#define MASK 0xffull
#define DEPTH 128ull /* half of the window, as 32768 is of 65536 */

/* One entry. r: rsvd as read; t: true completed index when the CQE is read, any time
 * later: from r - depth (room check) to far beyond r. Never early, exact while t <= r. */
static void test_one_entry(void **state)
{
	uint64_t r, t, done;

	(void)state;
	for (r = 0; r < 1100; r++)
		for (t = r < DEPTH ? 0 : r - DEPTH; t < r + 1100; t++) {
			done = gdri_index_below(r, t & MASK, MASK);
			if (t <= r)
				assert_int_equal(done, t);
			/* signed: with r in the first window it may lie below 0 */
			assert_true((int64_t)done <= (int64_t)t && (int64_t)done <= (int64_t)r);
		}
}

/* A two-block WQE that ends at t: its CQE says one less. Waiting for that one (last2)
 * terminates, and the blocks given back are never too many. */
static void test_two_blocks(void **state)
{
	uint64_t r, t, done;

	(void)state;
	for (r = 2; r < 1100; r++)
		for (t = r < DEPTH ? 2 : r - DEPTH + 1; t <= r; t++) {
			done = gdri_index_below(r, (t - 1) & MASK, MASK);
			assert_int_equal(done, t - 1);
			/* a full ring of which all is complete: room for any group */
			if (t == r)
				assert_true(r + DEPTH / 4 <= done + DEPTH - 1);
		}
}

/* The other order, CQE first: r may have run ahead by more than the window. */
static void test_wrong_order_fails(void **state)
{
	uint64_t t = 10, r, early = 0;

	(void)state;
	for (r = t; r < t + 600; r++) /* what was reserved after the CQE was read */
		early += gdri_index_below(r, t & MASK, MASK) > t;
	assert_true(early > 0);
}

/* The poller itself, delayed in the first window while 300 posts go by (16 bits: r = 5, the
 * CQE says 299 + 65536): done stays. */
static void test_delayed_poller(void **state)
{
	const struct fake_options opt = {.n_pes = 1, .n_slots = 1, .depth = 128};
	struct fake *f = fake_start(&opt);
	struct gdri_qp *qp = &f->dev->qps[0];

	(void)state;
	fake_hold(f, 1);
	qp->rsvd = 5; /* as if read long ago */
	qp->done = 3;
	qp->cq->tail = __builtin_bswap16(299);
	gdri_poll_one(qp);
	assert_int_equal(qp->done, 3);
	qp->cq->tail = __builtin_bswap16(3);
	gdri_poll_one(qp);
	assert_int_equal(qp->done, 4);
	fake_stop(f);
}

/* Without the room check (r - done > window) one entry is not enough either. */
static void test_no_room_check_fails(void **state)
{
	uint64_t r = 1000, t, wrong = 0;

	(void)state;
	for (t = 0; t <= r; t++)
		wrong += gdri_index_below(r, t & MASK, MASK) != t;
	assert_true(wrong > 0);
}

/* Ring: every place of an entry, and what stands in its slot: a CQE of this lap, of
 * the one before, or of a later one. While cq_ci is unchanged it is never a later one. */
static int valid(uint64_t ci, uint64_t written, uint64_t n)
{
	/* slot of ci holds the last of ci + k * n below `written` */
	uint64_t slot = ci % n, last;

	if (written <= slot)
		return 0; /* preset: invalid */
	last = slot + (written - 1 - slot) / n * n;
	return ((last / n) & 1) == ((ci / n) & 1);
}

static void test_owner_bit(void **state)
{
	uint64_t n, ci, written;

	(void)state;
	for (n = 2; n <= 16; n *= 2)
		for (ci = 0; ci < 6 * n; ci++)
			for (written = ci < n ? 0 : ci - n + 1; written <= ci + n; written++)
				assert_int_equal(valid(ci, written, n), written > ci);
	/* two laps later it is valid again: the second look at cq_ci is needed */
	assert_true(valid(3, 3 + 2 * 8 + 1, 8));
	assert_false(valid(3, 3 + 8 + 1, 8));
}

/* Ring: rsvd read after the CQE, ci unchanged: done lies within depth of r. */
static void test_ring_exact(void **state)
{
	uint64_t t, r;

	(void)state;
	for (t = 1; t < 1100; t++)
		for (r = t; r < t + DEPTH; r++)
			assert_int_equal(gdri_index_below(r, t & MASK, MASK), t);
}

/* Ring, a short wait: done read between turn and consumption is at most two depths behind. */
static void test_short_exact(void **state)
{
	uint64_t d, t, wrong = 0;

	(void)state;
	for (d = 0; d < 1100; d++)
		for (t = d + 1; t <= d + 2 * (DEPTH - 1); t++)
			assert_int_equal(gdri_index_above(d, t & MASK, MASK), t);
	/* read before the turn it may be any number of laps behind */
	for (t = 1; t < 600; t++)
		wrong += gdri_index_above(0, t & MASK, MASK) < t;
	assert_true(wrong > 0);
}

/* The same at full width around the places that matter. */
static void test_full_width(void **state)
{
	static const uint64_t around[] = {0x10000, 0x20000, 0x100000000ull, 0x7fffffff0000ull};
	uint64_t base, t, r;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(around) / sizeof(around[0]); i++)
		for (base = around[i] - 40; base < around[i] + 40; base++)
			for (r = base; r < base + 32768; r += 61) {
				t = base;
				assert_int_equal(gdri_tail_done(r, __builtin_bswap16(
									   (uint16_t)(t - 1))),
						 t);
				assert_int_equal(gdri_tail_next(t - 1 - (r - base) * 2,
								__builtin_bswap16((uint16_t)(t - 1))),
						 t);
			}
	/* nothing done yet: the preset counter 0xffff is index 0 */
	assert_int_equal(gdri_tail_done(0, 0xffffu), 0);
	assert_int_equal(gdri_tail_done(77, 0xffffu), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_entry),
		cmocka_unit_test(test_two_blocks),
		cmocka_unit_test(test_wrong_order_fails),
		cmocka_unit_test(test_delayed_poller),
		cmocka_unit_test(test_no_room_check_fails),
		cmocka_unit_test(test_owner_bit),
		cmocka_unit_test(test_ring_exact),
		cmocka_unit_test(test_short_exact),
		cmocka_unit_test(test_full_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
