/* SPDX-License-Identifier: BSD-3-Clause */
/* The link check of init: every queue of every pair is tried, the one that fails is
 * named with the trial that failed, and all of it ends in time. */
#define _GNU_SOURCE /* memfd_create */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bootstrap/boot.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/diag/errors.h"
#include "runtime/mem/heap.h"
#include "runtime/net/net.h"
#include "runtime/path/devstate.h"
#include "runtime/team/team.h"
#include "tests/device/fake_nic.h"

#define N_PES 5
#define SLOTS 4 /* 20 queues: more than are tried at a time */

/* No heap here whose objects could be named. */
void gdri_place_text(uint64_t offset, char *buf, size_t room)
{
	(void)offset, (void)room;
	*buf = 0;
}

const char *gdri_boot_waited(int timeout_ms, int left_ms)
{
	static char text[80];

	snprintf(text, sizeof(text), "%d.%03d s (limit: GDR_INIT_TIMEOUT=40000ms)", (timeout_ms - left_ms) / 1000,
		 (timeout_ms - left_ms) % 1000);
	return text;
}

const char *gdri_place_word(uint64_t offset)
{
	(void)offset;
	return "";
}

void gdri_place_lost(int pe, char *buf, size_t room)
{
	(void)pe, (void)room;
	*buf = 0;
}

int gdri_place_finalizes(int pe)
{
	(void)pe;
	return 0;
}

const char *gdri_place_call(const struct gdri_error *e)
{
	return gdri_call_name(e->op);
}

const char *gdri_place_stream_wait(const struct gdri_error *e)
{
	(void)e;
	return NULL;
}

const char *gdri_place_host_wait(const struct gdri_error *e)
{
	(void)e;
	return NULL;
}

bool gdri_place_is_nvshmem(void)
{
	return false;
}

bool gdri_place_is_own(int pe)
{
	(void)pe;
	return false;
}

bool gdri_place_in_finalize(const struct gdri_error *e)
{
	(void)e;
	return false;
}

const char *gdri_place_limit(const struct gdri_error *e)
{
	(void)e;
	return "GDR_ACK_TIMEOUT";
}

static struct fake *f;
static struct gdri_state st;
static struct gdri_heap its_heap;
static struct gdri_teams its_teams;
static void its_way(struct gdri_net *net, int pe, char *text, size_t room)
{
	snprintf(text, room, "%s has no way to PE %d", net->name, pe);
}

static const struct gdri_net_ops plain_ops, way_ops = {.way = its_way};
static struct gdri_net its_net = {.ops = &plain_ops, .name = "fake0"};

static void start(unsigned slots, int mapped)
{
	struct fake_options opt = {.n_pes = N_PES, .n_slots = slots, .depth = 128};
	int pe;

	opt.mapped = mapped;
	f = fake_start(&opt);
	for (pe = 0; pe < N_PES; pe++)
		gdri_link_prepare((struct gdri_ctl *)f->heap[pe], pe);
	memset(&st, 0, sizeof(st));
	st.heap = &its_heap;
	st.teams = &its_teams;
	st.net = &its_net;
	st.n_pes = N_PES;
	st.heap->base = f->heap[0];
	st.peers = f->dev->peers;
	st.dev = f->dev;
	st.opt.init_timeout_ms = 40000;
	st.deadline_ns = gdri_deadline_ns(40000);
	gdri_log_clear_error();
}

/* What PE 0 left at the others passes their own look at it. */
static void check_in(void)
{
	struct gdri_ctl *ctl;
	int pe, i;

	for (pe = 0; pe < N_PES; pe++) {
		ctl = (struct gdri_ctl *)f->heap[pe];
		for (i = 1; i < N_PES; i++)
			ctl->link[i] = (0x1000u + (unsigned)i) *
				       (f->opt.n_slots ? f->opt.n_slots : 1);
		f->dev->ctl = ctl;
		st.pe = pe;
		assert_int_equal(gdri_up_link_in(&st), 0);
		ctl->link[0]--;
		assert_int_equal(gdri_up_link_in(&st), -GDR_ELINK);
		ctl->link[0]++;
		ctl->link_data[1][4095] ^= 1;
		assert_int_equal(gdri_up_link_in(&st), -GDR_ELINK);
	}
	f->dev->ctl = (struct gdri_ctl *)f->heap[0];
}

static void all_well(unsigned slots, int mapped)
{
	start(slots, mapped);
	assert_int_equal(gdri_up_link_out(&st), 0);
	assert_int_equal(f->n_wqe, N_PES * slots * 3);
	if (slots)
		assert_int_equal(f->dev->used[0], 0);
	check_in();
	fake_stop(f);
}

static void test_well(void **state)
{
	(void)state;
	all_well(1, 0);
	all_well(SLOTS, 0);
	all_well(SLOTS, 1);
	all_well(0, 1);
}

static void test_each_queue_fails(void **state)
{
	static const char *const trials[] = {"write", "read", "atomic"};
	char expected[64];
	unsigned i, trial;

	(void)state;
	for (i = 0; i < N_PES * SLOTS; i++) {
		trial = i % 3;
		start(SLOTS, 0);
		f->qps[i].fail_at = trial;
		f->qps[i].fail_syndrome = 0x10;
		assert_int_equal(gdri_up_link_out(&st), -GDR_ELINK);
		snprintf(expected, sizeof(expected), "link check with PE %u: queue %u: %s: ",
			 i / SLOTS, i % SLOTS, trials[trial]);
		assert_non_null(strstr(gdri_log_last_error(), expected));
		assert_non_null(strstr(gdri_log_last_error(), "syndrome 0x10"));
		/* the others were tried to the end */
		assert_int_equal(f->n_wqe, (N_PES * SLOTS - 1) * 3 + trial);
		fake_stop(f);
	}
}

static void test_wrong_data(void **state)
{
	(void)state;
	start(SLOTS, 0);
	f->heap[3][offsetof(struct gdri_ctl, link_data) + 4095] ^= 0x80;
	assert_int_equal(gdri_up_link_out(&st), -GDR_ELINK);
	assert_non_null(strstr(gdri_log_last_error(), "PE 3: read: byte 4095 is wrong"));
	fake_stop(f);
	start(SLOTS, 0);
	((struct gdri_ctl *)f->heap[2])->link[0] = 7;
	assert_int_equal(gdri_up_link_out(&st), -GDR_ELINK);
	assert_non_null(strstr(gdri_log_last_error(), "link check with PE 2: queue"));
	assert_non_null(strstr(gdri_log_last_error(), "fetch_add gave"));
	fake_stop(f);
}

/* A busy machine: nothing is answered for more than a fourth of the limit. What is in time is well. */
static void *answer_late(void *arg)
{
	(void)arg;
	nanosleep(&(struct timespec){.tv_sec = 3}, NULL);
	fake_hold(f, 0);
	return NULL;
}

static void test_late_answer(void **state)
{
	pthread_t t;

	(void)state;
	start(SLOTS, 0);
	st.deadline_ns = gdri_deadline_ns(10000);
	f->dev->timeout_ns = 1000000; /* GDR_TIMEOUT is not init's */
	fake_hold(f, 1);
	assert_int_equal(pthread_create(&t, NULL, answer_late, NULL), 0);
	assert_int_equal(gdri_up_link_out(&st), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	fake_stop(f);
}

/* Nobody answers: the check ends within the time that init has left, and names the option and its value. */
static void test_no_answer(void **state)
{
	uint64_t t = gdri_now_ns();

	(void)state;
	start(SLOTS, 0);
	st.deadline_ns = gdri_deadline_ns(1000);
	fake_hold(f, 1);
	assert_int_equal(gdri_up_link_out(&st), -GDR_ELINK);
	assert_in_range(gdri_now_ns() - t, 100000000ull, 10000000000ull);
	assert_non_null(strstr(gdri_log_last_error(), "link check with PE 3: queue 0: write: not complete within 39."));
	assert_non_null(strstr(gdri_log_last_error(), " s (limit: GDR_INIT_TIMEOUT=40000ms)"));
	assert_non_null(strstr(gdri_log_last_error(), "else fake0 is stuck"));
	fake_hold(f, 0);
	fake_stop(f);
}

/* A transport that knows the way names it: in front of the limit, of the first PE that is silent, and at its end. */
static void test_way(void **state)
{
	int texts = memfd_create("texts", 0), err = dup(2);
	char said[8192] = "", *warned;

	(void)state;
	start(SLOTS, 0);
	its_net.ops = &way_ops;
	st.deadline_ns = gdri_deadline_ns(1000);
	fake_hold(f, 1);
	assert_true(texts >= 0 && err >= 0 && dup2(texts, 2) == 2);
	assert_int_equal(gdri_up_link_out(&st), -GDR_ELINK);
	assert_int_equal(dup2(err, 2), 2);
	assert_true(pread(texts, said, sizeof(said) - 1, 0) > 0);
	warned = strstr(said, "warning: link check with PE 0: no answer within 39.");
	assert_non_null(warned);
	assert_non_null(strstr(warned, "else fake0 has no way to PE 0\n"));
	assert_null(strstr(warned + 1, "warning: "));
	assert_true(warned < strstr(said, "error: "));
	assert_non_null(strstr(said, "link check with PE 3: queue 0: write"));
	assert_non_null(strstr(said, "else fake0 has no way to PE 3\n"));
	assert_null(strstr(said, ": read: ")); /* no time was left for it, and nobody is to blame */
	close(texts);
	close(err);
	fake_hold(f, 0);
	fake_stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_well),
		cmocka_unit_test(test_each_queue_fails),
		cmocka_unit_test(test_wrong_data),
		cmocka_unit_test(test_late_answer),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
