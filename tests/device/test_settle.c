// SPDX-License-Identifier: BSD-3-Clause
/* What host threads wait for before queues go or PEs part: all that was posted is complete. And their barrier, when a
 * PE leaves meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/core/host_barrier.h"
#include "runtime/core/state.h"
#include "tests/device/fake_nic.h"

static struct fake *f;
static struct gdri_state st;

static void settle_start(int ring)
{
	struct fake_options opt = {.n_pes = 3, .n_slots = 1, .depth = 128, .ring = ring};

	f = fake_start(&opt);
	memset(&st, 0, sizeof(st));
	st.n_pes = opt.n_pes;
	st.dev = f->dev;
	st.call = "gdr_finalize";
}

/* Posted last: an entry of one block, or of two, whose completion counts one. No time: one look at each queue. */
static void settles_behind(void (*post)(uint64_t *word))
{
	uint64_t *word = fake_sym(f, 0);

	assert_true(gdri_host_barrier_settle(&st, 0));
	fake_hold(f, 1);
	post(word);
	assert_false(gdri_host_barrier_settle(&st, 0));
	fake_hold(f, 0);
	fake_settle(f);
	assert_true(gdri_host_barrier_settle(&st, 0));
}

static void post_word(uint64_t *word)
{
	gdr_uint64_p(word, 1, 1);
}

static void post_add(uint64_t *word)
{
	gdr_uint64_atomic_add(word, 1, 1);
}

static void post_and(uint64_t *word)
{
	gdr_uint64_atomic_and(word, 6, 1);
}

static void settles(void **state)
{
	(void)state;
	for (int ring = 0; ring < 2; ring++) {
		settle_start(ring);
		settles_behind(post_word);
		settles_behind(post_add);
		settles_behind(post_and);
		assert_int_equal(f->qps[1].qp->ready & 1, 1); /* that was of two blocks */
		fake_stop(f);
	}
}

/* PE 1 has left because of PE 2, which is in gdr_finalize. PE 2 may hear of that by this PE first: the word that it
 * finds there names it, and says where it is. */
static void left_for_another(void **state)
{
	uint64_t word;

	(void)state;
	for (int ring = 0; ring < 2; ring++) {
		settle_start(ring);
		f->dev->ctl->left = gdri_fault_word_of(1, 2, 0, 0) | GDRI_FAULT_LEFT;
		assert_int_equal(gdri_host_barrier(&st, 0), -GDR_EPEERLOST);
		fake_settle(f);
		word = ((struct gdri_ctl *)f->heap[2])->broken;
		assert_int_equal(gdri_fault_pe(word), 0);
		assert_int_equal(gdri_fault_peer(word), 2);
		assert_true(gdri_fault_left(word));
		assert_int_equal(f->dev->lost, 0);
		fake_stop(f);
	}
}

/* It is this one. */
static void left_for_this_one(void **state)
{
	(void)state;
	settle_start(0);
	f->dev->ctl->left = gdri_fault_word_of(1, 0, 0, 0) | GDRI_FAULT_LEFT;
	assert_int_equal(gdri_host_barrier(&st, 0), -GDR_EMISMATCH);
	fake_stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settles),
		cmocka_unit_test(left_for_another),
		cmocka_unit_test(left_for_this_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
