/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits that expire: who is named at the end of the chain, over mapped heaps and
 * by queue. The other PEs' records are written by the test. What the other PEs do meanwhile is done in the pauses of
 * who waits, whose clock counts its looks: no scheduler decides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

#define N_PES 5

#define MS 1000000ull
#define CLOCK_STEP (4 * MS)

static struct fake *f;
static int alive[N_PES];
static void (*meanwhile)(void); /* what else happens in a pause of a wait */

/* The others' heartbeats move in each pause, and the NIC has done what it was told when the pause is over. */
static void pause_of_wait(unsigned round)
{
	int pe;

	(void)round;
	for (pe = 1; pe < N_PES; pe++)
		if (__atomic_load_n(&alive[pe], __ATOMIC_RELAXED))
			__atomic_fetch_add(&((struct gdri_ctl *)f->heap[pe])->waits[1].heartbeat, 1, __ATOMIC_RELAXED);
	if (meanwhile)
		meanwhile();
	for (pe = 0; pe < N_PES; pe++)
		if (f->dev->qps[pe].rsvd != f->dev->qps[pe].done) {
			fake_settle(f);
			break;
		}
}

static void start(int mapped)
{
	struct fake_options opt = {.n_pes = N_PES, .n_slots = 1, .depth = 128, .timeout_ms = 60};
	int pe;

	opt.mapped = mapped;
	f = fake_start(&opt);
	for (pe = 0; pe < N_PES; pe++)
		__atomic_store_n(&alive[pe], 0, __ATOMIC_RELAXED);
	fake_clock_least = fake_clock_most = CLOCK_STEP;
	fake_on_pause = pause_of_wait;
}

/* What ends the wait is another thread, which needs a core. */
static void start_beside_thread(void)
{
	start(1);
	fake_clock_least = 0;
	f->dev->timeout_ns = 20000000000ull;
}

static void finish(void)
{
	fake_on_pause = NULL;
	meanwhile = NULL;
	fake_clock_least = fake_clock_most = 0;
	fake_stop(f);
}

static void says(int pe, int record, uint32_t state, int peer, int lives)
{
	struct gdri_wait *w = &((struct gdri_ctl *)f->heap[pe])->waits[record];

	w->peer = peer;
	w->op = GDRI_SIGNAL_WAIT;
	w->since_ns = 1;
	__atomic_store_n(&w->state, state, __ATOMIC_RELEASE);
	__atomic_store_n(&alive[pe], lives, __ATOMIC_RELAXED);
}

static struct gdri_error *last_wait(void)
{
	uint32_t i = f->dev->n_errors;

	while (i-- && f->dev->errors[i].kind != GDRI_ERROR_WAIT)
		;
	assert_true(i < f->dev->n_errors);
	return &f->dev->errors[i];
}

/* What one that gives up tells the others. */
static uint64_t notice_of(int culprit, int status)
{
	return (uint64_t)(uint32_t)(culprit + 1) | (uint64_t)-status << 32;
}

static void expect(int ret, int status, int culprit, int neighbour)
{
	struct gdri_error *e = last_wait();
	int pe;

	assert_int_equal(ret, status);
	assert_int_equal(e->state, 2);
	assert_int_equal(e->kind, GDRI_ERROR_WAIT);
	assert_int_equal(e->status, status);
	assert_int_equal(e->peer, culprit);
	assert_int_equal(e->waited_for, neighbour);
	assert_int_equal(e->op, GDRI_SIGNAL_WAIT);
	assert_true(e->waited_ns >= 1000000);
	assert_int_equal(f->dev->ctl->waits[0].state, GDRI_WAIT_FAILED);
	assert_int_equal(f->dev->ctl->waits[0].peer, culprit);
	assert_int_equal(f->dev->ctl->waits[1].state, GDRI_WAIT_IDLE);
	assert_int_equal(f->dev->failed, culprit + 2);
	for (pe = 1; f->opt.mapped && pe < N_PES; pe++)
		if (pe != culprit && !f->dev->peers[pe].finalizes)
			assert_int_equal(((struct gdri_ctl *)f->heap[pe])->notice[0] & ~GDRI_FAULT_LEFT,
					 notice_of(culprit, status));
}

static int wait_from(int pe)
{
	return gdr_signal_wait_until_from(fake_sym(f, 0), GDR_CMP_EQ, 1, pe);
}

#define ANYBODY (-1) /* a wait that does not know who writes */

/* What the other PEs say, in which of their records, whether they live; PE 0 waits for `from`. */
static const struct chain {
	struct {
		int pe, record;
		uint32_t state;
		int peer, lives;
	} said[4];
	int from, culprit;
} chains[] = {
	/* 1 waits for 2, 2 for 3, which stands still */
	{{{1, 1, GDRI_WAIT_WAITING, 2, 1}, {2, 1, GDRI_WAIT_WAITING, 3, 1},
	  {3, 1, GDRI_WAIT_WAITING, 4, 0}}, 1, 3},
	/* 1 waits for 4, which is not waiting for anybody */
	{{{1, 1, GDRI_WAIT_WAITING, 4, 1}}, 1, 4},
	/* 1 gave up because of 3 and went on; 3 is idle */
	{{{1, 0, GDRI_WAIT_FAILED, 3, 1}}, 1, 3},
	/* all wait in a circle, oneself in it; 4 outside of it stands still */
	{{{1, 1, GDRI_WAIT_WAITING, 2, 1}, {2, 1, GDRI_WAIT_WAITING, 0, 1},
	  {3, 1, GDRI_WAIT_WAITING, 1, 1}, {4, 1, GDRI_WAIT_WAITING, 1, 0}}, 1, 4},
	/* nobody knows who writes: the one that stands still is found */
	{{{1, 1, GDRI_WAIT_WAITING, 2, 1}, {2, 1, GDRI_WAIT_WAITING, -1, 1},
	  {3, 1, GDRI_WAIT_WAITING, 1, 0}}, ANYBODY, 3},
};

static void follow(const struct chain *c, int mapped)
{
	int i, ret;

	start(mapped);
	for (i = 0; i < 4 && c->said[i].pe; i++)
		says(c->said[i].pe, c->said[i].record, c->said[i].state, c->said[i].peer,
		     c->said[i].lives);
	if (c->from == ANYBODY)
		ret = gdr_signal_wait_until(fake_sym(f, 0), GDR_CMP_EQ, 1);
	else
		ret = wait_from(c->from);
	expect(ret, -GDR_ETIMEOUT, c->culprit, c->from);
	finish();
}

static void test_chains(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
		follow(&chains[i], 0);
		follow(&chains[i], 1);
	}
}

/* 1 waits for 2; reading from 2 ends in retries exceeded. */
static void test_unreachable(void **state)
{
	(void)state;
	start(0);
	says(1, 1, GDRI_WAIT_WAITING, 2, 1);
	f->qps[2].fail_syndrome = 0x15;
	expect(wait_from(1), -GDR_EPEERLOST, 2, 1);
	/* the user reads first what happened to the wait, then what the diagnosis met */
	assert_int_equal(f->dev->n_errors, 2);
	assert_int_equal(f->dev->errors[0].kind, GDRI_ERROR_WAIT);
	assert_int_equal(f->dev->errors[1].kind, GDRI_ERROR_CQE);
	assert_int_equal(f->dev->errors[1].status, -GDR_ERETRY);
	assert_int_equal(f->dev->errors[1].op, GDRI_BLAME);
	finish();
	/* 2 left a notice before it went: it blamed 4, which is idle */
	start(0);
	says(1, 1, GDRI_WAIT_WAITING, 2, 1);
	f->qps[2].fail_syndrome = 0x15;
	f->dev->ctl->notice[2] = 4 + 1;
	expect(wait_from(1), -GDR_ETIMEOUT, 4, 1);
	finish();
}

/* The queue to the PE waited for broke: the wait ends long before its limit. */
static void test_broken_queue(void **state)
{
	uint64_t t;

	(void)state;
	start(0);
	f->dev->timeout_ns = 20000000000ull;
	f->qps[1].fail_syndrome = 0x15;
	assert_int_equal(gdr_int_p(fake_sym(f, 64), 1, 1), 0);
	t = gdr_clock_ns();
	expect(wait_from(1), -GDR_EPEERLOST, 1, 1);
	assert_true(gdr_clock_ns() - t < 5000000000ull);
	finish();
}

/* One CQ entry: a flush has overwritten the retries exceeded. The wait ends, as it does where the cause was kept, but
 * calls nobody lost: any error may be the cause. */
static void flushed_queue(int ring)
{
	struct fake_options opt = {.n_pes = N_PES, .n_slots = 1, .depth = 128};
	int i;

	opt.timeout_ms = 20000;
	opt.ring = ring;
	f = fake_start(&opt);
	f->qps[1].fail_at = 1;
	f->qps[1].fail_syndrome = 0x15;
	fake_hold(f, 1);
	for (i = 0; i < 4; i++)
		assert_int_equal(gdr_int_p(fake_sym(f, 64), i, 1), 0);
	fake_hold(f, 0);
	while ((__atomic_load_n(&f->dev->qps[1].cq[ring ? 3 : 0].tail, __ATOMIC_ACQUIRE) &
		0xffff) != 0x0300)
		usleep(100);
	expect(wait_from(1), ring ? -GDR_EPEERLOST : -GDR_EFLUSHED, 1, 1);
	assert_int_equal(f->dev->lost, ring ? 2 : 0);
	assert_int_equal(f->dev->n_errors, 2);
	assert_int_equal(f->dev->errors[0].status, ring ? -GDR_ERETRY : -GDR_EFLUSHED);
	assert_int_equal(f->dev->errors[0].is_cause, ring);
	assert_int_equal(gdr_quiet_pe(1), f->dev->errors[0].status);
	fake_stop(f);
}

static void test_flushed_queue(void **state)
{
	(void)state;
	flushed_queue(0);
	flushed_queue(1);
}

/* Since the first READ of the search was posted: 0, it was not. By the wait's own thread. */
static uint64_t searched_for(void)
{
	static uint64_t since;
	uint64_t now = gdr_clock_ns();

	if (f->dev->qps[1].rsvd == f->opt.start) {
		since = 0;
		return 0;
	}
	since = since ? since : now;
	return now - since;
}

static void release_after_700_ms(void)
{
	if (searched_for() > 700 * MS)
		fake_hold(f, 0);
}

/* Many machines have fewer cores than PEs: the first look at another PE may take long. It is
 * no proof that the PE stands still. */
static void test_slow_read(void **state)
{
	(void)state;
	start(0);
	says(1, 1, GDRI_WAIT_WAITING, 4, 1);
	fake_hold(f, 1);
	meanwhile = release_after_700_ms;
	expect(wait_from(1), -GDR_ETIMEOUT, 4, 1);
	finish();
}

/* Where the limit leaves time for it, a PE that has no core gets longer: its NIC, */
static void release_after_1700_ms(void)
{
	if (searched_for() > 1700 * MS)
		fake_hold(f, 0);
}

/* and its threads. */
static void beat_after_1500_ms(void)
{
	if (searched_for() > 1500 * MS)
		alive[1] = 1;
}

static void test_crowded(void **state)
{
	static void (*const late[])(void) = {release_after_1700_ms, beat_after_1500_ms};
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++) {
		start(0);
		f->dev->timeout_ns = 6000 * MS;
		says(1, 1, GDRI_WAIT_WAITING, 4, i == 0);
		fake_hold(f, i == 0);
		meanwhile = late[i];
		expect(wait_from(1), -GDR_ETIMEOUT, 4, 1);
		assert_in_range(last_wait()->waited_ns, 6000 * MS, 7000 * MS);
		finish();
	}
}

/* A read that was given up keeps its place until it can no longer arrive. The PE whose NIC was silent so long is named,
 * and not called lost: it answers later, and all goes on. */
static void test_late_read(void **state)
{
	uint64_t t;

	(void)state;
	start(0);
	says(1, 1, GDRI_WAIT_WAITING, 4, 1);
	fake_hold(f, 1);
	expect(wait_from(1), -GDR_ETIMEOUT, 1, 1);
	assert_int_equal(f->dev->blame_bad, 1);
	assert_int_equal(f->dev->lost, 0);
	assert_int_equal(gdr_status(), 0);
	fake_hold(f, 0);
	t = gdr_clock_ns();
	while (__atomic_load_n(&f->dev->qps[1].cq->tail, __ATOMIC_ACQUIRE) >> 24 == 0xff &&
	       gdr_clock_ns() - t < 10000000000ull)
		usleep(100);
	f->dev->failed = 0;
	expect(wait_from(1), -GDR_ETIMEOUT, 4, 1);
	assert_int_equal(f->dev->blame_bad, 0);
	f->dev->timeout_ns = 20000000000ull;
	assert_int_equal(gdr_int_p(fake_sym(f, 64), 1, 1), 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(gdr_fence(), 0);
	finish();
}

/* A PE that follows the chain lives: its own heartbeat goes on, or those that wait for it
 * would name it. */
static void watch_beat(void)
{
	static uint32_t last;
	const struct gdri_wait *w = &f->dev->ctl->waits[1];
	uint32_t now = w->heartbeat;

	if (!searched_for())
		last = now - 1;
	assert_true(now != last);
	last = now;
}

static void test_beat_while_following(void **state)
{
	(void)state;
	start(0);
	fake_hold(f, 1); /* as if PE 1 were stopped */
	meanwhile = watch_beat;
	expect(wait_from(1), -GDR_ETIMEOUT, 1, 1);
	fake_hold(f, 0);
	finish();
}

/* Two that expire at once: one follows the chain, both tell the same. */
static void *wait_too(void *arg)
{
	*(int *)arg = wait_from(1);
	return NULL;
}

static void test_two_expire(void **state)
{
	int ret = 0;
	pthread_t t;

	(void)state;
	start(1);
	fake_clock_least = 0;
	says(1, 1, GDRI_WAIT_WAITING, 4, 1);
	assert_int_equal(pthread_create(&t, NULL, wait_too, &ret), 0);
	assert_int_equal(wait_from(1), -GDR_ETIMEOUT);
	pthread_join(t, NULL);
	assert_int_equal(ret, -GDR_ETIMEOUT);
	assert_int_equal(f->dev->n_errors, 2);
	assert_int_equal(f->dev->errors[0].peer, 4);
	assert_int_equal(f->dev->errors[1].peer, 4);
	finish();
}

/* What a peer wrote is taken for nothing when it names no PE. */
static void test_wild_notice(void **state)
{
	static const uint64_t wild[] = {N_PES + 1, 0x80000000ull, ~0ull, 0x10000000002ull};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		start(0);
		f->dev->timeout_ns = 20000000000ull;
		f->dev->ctl->notice[1] = wild[i];
		f->qps[1].fail_syndrome = 0x15;
		assert_int_equal(gdr_int_p(fake_sym(f, 64), 1, 1), 0);
		expect(wait_from(1), -GDR_EPEERLOST, 1, 1);
		finish();
	}
}

/* Who gives up because a queue broke says so to the others before it leaves. */
static void test_broken_queue_told(void **state)
{
	int blocking;

	(void)state;
	for (blocking = 0; blocking < 2; blocking++) {
		start(0);
		f->dev->timeout_ns = 20000000000ull;
		f->qps[1].fail_syndrome = 0x15;
		assert_int_equal(gdr_int_p(fake_sym(f, 64), 1, 2), 0);
		assert_int_equal(gdr_int_p(fake_sym(f, 64), 1, 1), 0);
		if (blocking)
			assert_int_equal(gdr_quiet_pe(1), -GDR_ERETRY);
		else
			assert_int_equal(wait_from(1), -GDR_EPEERLOST);
		/* has arrived: this PE may leave at once, and its queues go with it */
		assert_int_equal(((struct gdri_ctl *)f->heap[2])->notice[0], notice_of(1, -GDR_EPEERLOST));
		assert_int_equal(f->dev->ctl->waits[0].state, GDRI_WAIT_FAILED);
		assert_int_equal(f->dev->ctl->waits[0].peer, 1);
		assert_int_equal(f->dev->ctl->waits[1].state, GDRI_WAIT_IDLE);
		finish();
	}
}

/* While it waits a PE says so, and its heartbeat moves whenever the thread runs; when it is over it does not. */
static void *answer(void *arg)
{
	struct gdri_wait *w = &f->dev->ctl->waits[1];
	uint32_t b;
	int *seen = arg;

	while (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) != GDRI_WAIT_WAITING)
		usleep(100);
	b = __atomic_load_n(&w->heartbeat, __ATOMIC_RELAXED);
	while (__atomic_load_n(&w->heartbeat, __ATOMIC_RELAXED) == b && __atomic_load_n(&w->state, __ATOMIC_ACQUIRE))
		usleep(100);
	*seen = w->peer == 3 && w->op == GDRI_SIGNAL_WAIT && w->addr == FAKE_USER &&
		w->state == GDRI_WAIT_WAITING;
	__atomic_store_n((uint64_t *)fake_sym(f, 0), 1, __ATOMIC_RELEASE);
	return NULL;
}

static void test_records(void **state)
{
	pthread_t t;
	int seen = 0;

	(void)state;
	start_beside_thread();
	assert_int_equal(pthread_create(&t, NULL, answer, &seen), 0);
	assert_int_equal(wait_from(3), 0);
	pthread_join(t, NULL);
	assert_int_equal(seen, 1);
	assert_int_equal(f->dev->ctl->waits[1].state, GDRI_WAIT_IDLE);
	assert_int_equal(f->dev->n_errors, 0);
	finish();
}

static void *abort_later(void *arg)
{
	(void)arg;
	usleep(20000);
	__atomic_store_n(f->dev->abort, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void test_abort(void **state)
{
	pthread_t t;

	(void)state;
	start_beside_thread();
	assert_int_equal(pthread_create(&t, NULL, abort_later, NULL), 0);
	assert_int_equal(wait_from(3), -GDR_EABORTED);
	pthread_join(t, NULL);
	assert_int_equal(gdr_barrier_all(), -GDR_EABORTED);
	finish();
}

/* As runtime/diag/fault.c. */
static void report(int pe)
{
	int32_t none = 0;

	__atomic_store_n(&f->dev->peers[pe].lost, 1, __ATOMIC_RELAXED);
	__atomic_compare_exchange_n(&f->dev->lost, &none, pe + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The launcher reported PE 2 dead: waits that need it end at once, others do not. */
static void test_launcher_reports(void **state)
{
	uint64_t t;

	(void)state;
	start(1);
	says(3, 1, GDRI_WAIT_IDLE, -1, 1);
	report(2);
	expect(wait_from(3), -GDR_ETIMEOUT, 3, 3);
	finish();

	start(1);
	f->dev->timeout_ns = 20000000000ull;
	report(2);
	t = gdr_clock_ns();
	expect(wait_from(2), -GDR_EPEERLOST, 2, 2);
	finish();
	/* 3 has given up because of 2, and said so */
	start(1);
	f->dev->timeout_ns = 20000000000ull;
	f->dev->ctl->notice[3] = 2 + 1;
	report(2);
	expect(wait_from(3), -GDR_EPEERLOST, 2, 3);
	finish();
	/* not the first one that was reported: a wait for it, and one for a PE that gave up because of it */
	start(1);
	f->dev->timeout_ns = 20000000000ull;
	report(1);
	report(2);
	expect(wait_from(2), -GDR_EPEERLOST, 2, 2);
	finish();
	start(1);
	f->dev->timeout_ns = 20000000000ull;
	f->dev->ctl->notice[3] = 2 + 1;
	report(1);
	report(2);
	expect(wait_from(3), -GDR_EPEERLOST, 2, 3);
	finish();
	start(1);
	f->dev->timeout_ns = 20000000000ull;
	report(2);
	assert_int_equal(gdr_barrier_all(), -GDR_EPEERLOST);
	assert_true(gdr_clock_ns() - t < 10000000000ull);
	finish();
}

/* A collective call waits for its queue to 3, whose threads gave up something else because of 2, which is dead. */
static void test_notice_and_queue(void **state)
{
	struct gdri_waiter w;
	int ret;

	(void)state;
	start(1);
	says(3, 1, GDRI_WAIT_IDLE, -1, 1);
	f->dev->ctl->notice[3] = 2 + 1;
	report(2);
	gdri_wait_begin(&w, GDRI_REDUCE, 3, 0);
	while (!(ret = gdri_wait_step(f->dev, &w)))
		;
	assert_int_equal(ret, -GDR_ETIMEOUT);
	assert_int_equal(last_wait()->peer, 3);
	finish();
}

/* 1, waited for, is in gdr_finalize: what it and others told leads to the one that is to blame, at once. */
static const struct left {
	int how;	/* gdri_peer.finalizes of 1 */
	int next, why;	/* what 1 told: -1, nothing */
	int then, told; /* and 2 */
	int status, culprit, lost;
	uint64_t left; /* GDRI_FAULT_LEFT: with the first of both, and with what this PE tells */
} lefts[] = {
	{1, -1, 0, -1, 0, -GDR_EPEERLOST, 1, 0, GDRI_FAULT_LEFT},
	{2, -1, 0, -1, 0, -GDR_EPEERLOST, 1, 0, GDRI_FAULT_LEFT},
	{2, 0, -GDR_ETIMEOUT, -1, 0, -GDR_EPEERLOST, 1, 0, GDRI_FAULT_LEFT}, /* because of this one */
	{2, 3, -GDR_ETIMEOUT, -1, 0, -GDR_ETIMEOUT, 3, 0, 0},
	{2, 3, -GDR_EPEERLOST, -1, 0, -GDR_EPEERLOST, 3, 4, 0},
	{2, 3, -GDR_EPEERLOST, -1, 0, -GDR_EPEERLOST, 3, 0, GDRI_FAULT_LEFT}, /* which is in gdr_finalize */
	{2, 2, -GDR_ETIMEOUT, 4, -GDR_EPEERLOST, -GDR_EPEERLOST, 4, 5, 0},
	{2, 2, -GDR_ETIMEOUT, 1, -GDR_ETIMEOUT, -GDR_ETIMEOUT, -1, 0, 0}, /* a circle: either of them */
};

static void test_left(void **state)
{
	const struct left *c;
	struct gdri_error *e;
	unsigned i;
	int ret;

	(void)state;
	for (i = 0; i < 2 * sizeof(lefts) / sizeof(lefts[0]); i++) {
		c = &lefts[i / 2];
		start(i % 2);
		f->dev->timeout_ns = 20000000000ull;
		f->dev->peers[1].finalizes = (uint32_t)c->how;
		if (c->why)
			f->dev->ctl->notice[1] = notice_of(c->next, c->why) | c->left * (c->next > 0);
		if (c->told)
			f->dev->ctl->notice[2] = notice_of(c->then, c->told);
		ret = wait_from(1);
		e = last_wait();
		expect(ret, c->status, c->culprit < 0 ? e->peer : c->culprit, 1);
		assert_true(e->waited_ns < 1000 * MS);
		assert_int_equal(f->dev->lost, c->lost);
		/* 4 hears of it, unless it is to blame */
		if (i % 2 && c->culprit != 4)
			assert_int_equal(((struct gdri_ctl *)f->heap[4])->notice[0] & GDRI_FAULT_LEFT, c->left);
		finish();
	}
	/* nobody knows of what a queue was flushed */
	start(1);
	f->dev->timeout_ns = 20000000000ull;
	f->dev->peers[1].finalizes = 2;
	f->dev->ctl->notice[1] = notice_of(3, -GDR_EFLUSHED);
	assert_int_equal(wait_from(1), -GDR_EPEERFAILED);
	assert_int_equal(last_wait()->peer, 3);
	finish();
}

/* What the library tells a PE that has called gdr_finalize, which may be gone: a quiet does not wait for it, and is not
 * told that it failed. What the program put there it is told. */
static void test_gone(void **state)
{
	int puts, fails, how;

	(void)state;
	for (how = 1; how < 28; how++) {
		if ((how & 12) == 12)
			continue;
		puts = how & 4;
		fails = how & 8;
		start(0);
		if (how & 16) { /* an entry of two blocks is complete, and counts one */
			gdr_uint64_atomic_compare_swap(fake_sym(f, 64), 1, 2, 1);
			assert_int_equal(gdr_quiet(), 0);
			assert_int_equal(gdri_qp_to(f->dev, 1, 0)->done, 1);
			f->qps[1].fail_at = 2;
		}
		f->dev->timeout_ns = 3000000000ull;
		f->dev->own_size = FAKE_USER;
		f->dev->peers[1].finalizes = (uint32_t)how & 3 ? (uint32_t)how & 3 : 1 | GDRI_PEER_GONE;
		f->qps[1].fail_syndrome = fails ? 0x15 : 0;
		fake_hold(f, !fails);
		assert_int_equal(gdri_tell_queue(f->dev, gdri_qp_to(f->dev, 1, 0), offsetof(struct gdri_ctl, left), 1),
				 1);
		if (puts)
			assert_int_equal(gdr_int_p(fake_sym(f, 64), 1, 1), 0);
		assert_int_equal(gdr_quiet(), !puts ? 0 : fails ? -GDR_ERETRY : -GDR_ETIMEOUT);
		if (!puts) {
			assert_int_equal(f->dev->latched, 0);
			assert_int_equal(f->dev->first, 0);
			assert_int_equal(gdr_quiet(), 0);
		}
		assert_int_equal(f->dev->lost, 0);
		assert_int_equal(f->dev->n_errors && f->dev->errors[0].state == 2, puts != 0);
		fake_hold(f, 0);
		finish();
	}
}

static int is_status(int status)
{
	switch (status) {
#define CASE(name, number, text) case -GDR_##name:
	GDR_STATUS_LIST(CASE)
		return 1;
	default:
		return 0;
	}
}

/* Words of a peer with every status that a byte has: what is none is not heard, and no wait ends with it. */
static void test_foreign(void **state)
{
	struct gdri_fault told;
	int n, known;

	(void)state;
	for (n = 0; n < 256; n++) {
		known = is_status(-n);
		start(1);
		f->dev->timeout_ns = 20000000000ull;
		assert_int_equal(gdri_fault_read(gdri_fault_word_of(1, 2, -n, GDRI_PUT), N_PES, &told), known);
		f->dev->ctl->broken = gdri_fault_word_of(1, 2, -n, GDRI_BARRIER);
		assert_int_equal(gdri_broken(f->dev, -1, GDRI_BARRIER), known ? -n : 0);
		f->dev->peers[1].finalizes = 2;
		f->dev->ctl->notice[1] = (uint64_t)n << 32 | 4;
		assert_int_equal(gdri_blame_notice(f->dev, 1), known || !n ? 3 : -1);
		assert_int_equal(wait_from(1), n == GDR_EFLUSHED ? -GDR_EPEERFAILED : known ? -n : -GDR_EPEERLOST);
		assert_int_equal(last_wait()->peer, known || !n ? 3 : 1);
		finish();
	}
}

/* Four PEs that cannot be reached, each of which told of the next: to find that out takes 1 s
 * each. The wait ends at its limit nevertheless (and the 0.5 s for telling the others), and names
 * how far it came. */
static void test_limit_holds(void **state)
{
	uint64_t t;
	int pe;

	(void)state;
	start(0);
	f->dev->timeout_ns = 3000000000ull;
	for (pe = 1; pe < N_PES - 1; pe++)
		f->dev->ctl->notice[pe] = (uint64_t)pe + 1 + 1;
	fake_hold(f, 1);
	t = gdr_clock_ns();
	assert_int_equal(wait_from(1), -GDR_ETIMEOUT);
	t = gdr_clock_ns() - t;
	assert_in_range(t, 3000000000ull, 5000000000ull);
	assert_in_range(last_wait()->waited_ns, 3000000000ull, t);
	assert_in_range(last_wait()->peer, 2, 4);
	fake_hold(f, 0);
	finish();
}

static int others; /* errors meanwhile */

/* The condition holds after the search, before the limit: no error, and no record. */
static void write_late(void)
{
	if (!f->dev->n_errors)
		return;
	for (; others; others--)
		gdri_error_arg(f->dev, GDRI_PUT, 1, NULL, 0, GDRI_ARG_OTHER);
	if (f->dev->blame_time)
		__atomic_store_n((uint64_t *)fake_sym(f, 0), 1, __ATOMIC_RELEASE);
}

static void test_in_time_after_all(void **state)
{
	int other;

	(void)state;
	for (other = 0; other < 2; other++) {
		start(1);
		f->dev->timeout_ns = 2000000000ull; /* the search begins after a third */
		says(1, 1, GDRI_WAIT_WAITING, 4, 1);
		others = other;
		meanwhile = write_late;
		assert_int_equal(wait_from(1), 0);
		assert_int_equal(f->dev->failed, 0);
		assert_int_equal(f->dev->ctl->waits[0].state, GDRI_WAIT_IDLE);
		assert_int_equal(f->dev->ctl->waits[1].state, GDRI_WAIT_IDLE);
		assert_int_equal(((struct gdri_ctl *)f->heap[1])->notice[0], 0);
		if (other) {
			assert_int_equal(f->dev->n_errors, 2);
			assert_int_equal(f->dev->errors[0].state, 3);
			assert_int_equal(f->dev->errors[1].state, 2);
		} else {
			assert_int_equal(f->dev->n_errors, 0);
		}
		finish();
	}
}

/* How a limit of a second ends when the clock goes on by step_ns between two looks at it. since: it was begun then. */
static int limit_by(uint64_t step_ns, uint32_t looks, uint64_t since)
{
	struct gdri_limit l;
	int ret = 0;

	fake_clock_least = fake_clock_most = step_ns;
	f->dev->timeout_ns = 1000000000;
	gdri_limit_start(&l);
	l.start_ns = l.still_ns = since;
	for (uint32_t round = 0; round < looks * (GDRI_LIMIT_ROUNDS + 1) && !ret; round++)
		ret = gdri_limit_step(f->dev, &l, round);
	fake_clock_least = fake_clock_most = 0;
	return ret;
}

/* A PE that was stopped did not look meanwhile: what it waits for may have been stopped with it. Its waits are bounded
 * none the less, also those that one limit is for. */
static void test_stopped(void **state)
{
	(void)state;
	start(0);
	assert_int_equal(limit_by(10000000, 200, 0), -GDR_ETIMEOUT);
	assert_int_equal(limit_by(2000000000, 3, 0), -GDR_ETIMEOUT);
	assert_int_equal(limit_by(3600000000000, 10, 0), 0);
	assert_int_equal(limit_by(3600000000000, 30, 0), -GDR_ETIMEOUT);
	fake_clock_least = fake_clock_most = 10000000;
	assert_int_equal(limit_by(10000000, 2, gdr_clock_ns() - 2000000000), -GDR_ETIMEOUT);
	finish();
}

static uint64_t told(int pe)
{
	uint64_t t = gdr_clock_ns();
	struct gdri_ctl *ctl = (struct gdri_ctl *)f->heap[pe];

	while (__atomic_load_n(&ctl->notice[0], __ATOMIC_RELAXED) &&
	       gdr_clock_ns() - t < 5000000000ull)
		usleep(100); /* nobody waits for the arrival of good news */
	return __atomic_load_n(&ctl->notice[0], __ATOMIC_RELAXED);
}

/* A wait that is repeated and succeeds takes the blame back; another one does not. */
static void test_recovered(void **state)
{
	int mapped, barrier, i;

	(void)state;
	for (mapped = 0; mapped < 2; mapped++) {
		for (barrier = 0; barrier < 2; barrier++) {
			start(mapped);
			says(1, 1, GDRI_WAIT_WAITING, 4, 1);
			expect(wait_from(1), -GDR_ETIMEOUT, 4, 1);
			assert_int_equal(((struct gdri_ctl *)f->heap[2])->notice[0], notice_of(4, -GDR_ETIMEOUT));
			*(uint64_t *)fake_sym(f, 0) = 1;
			*(uint64_t *)fake_sym(f, 8) = 1;
			f->dev->timeout_ns = 20000000000ull;
			assert_int_equal(wait_from(2), 0);
			assert_int_equal(gdr_signal_wait_until_from(fake_sym(f, 8), GDR_CMP_EQ, 1,
								    1), 0);
			assert_int_equal(f->dev->ctl->waits[0].state, GDRI_WAIT_FAILED);
			assert_int_equal(((struct gdri_ctl *)f->heap[2])->notice[0], notice_of(4, -GDR_ETIMEOUT));
			for (i = 0; barrier && i < GDRI_BARRIER_ROUNDS; i++)
				f->dev->ctl->barrier[i] = 1;
			assert_int_equal(barrier ? gdr_barrier_all() : wait_from(1), 0);
			assert_int_equal(f->dev->ctl->waits[0].state, GDRI_WAIT_IDLE);
			assert_int_equal(f->dev->failed, 0);
			assert_int_equal(told(2), 0);
			assert_int_equal(told(3), 0);
			finish();
		}
	}
}

/* Also those that this PE has never written to are told. */
static void test_all_are_told(void **state)
{
	int pe;

	(void)state;
	start(0);
	says(1, 1, GDRI_WAIT_WAITING, 4, 1);
	expect(wait_from(1), -GDR_ETIMEOUT, 4, 1);
	for (pe = 1; pe < 4; pe++)
		assert_int_equal(((struct gdri_ctl *)f->heap[pe])->notice[0], notice_of(4, -GDR_ETIMEOUT));
	finish();
}

/* The caller's limit ends a wait in silence, the library's with an error, also where the caller would
 * have waited longer. */
static void test_two_limits(void **state)
{
	const struct fake_options alone = {.n_pes = 1, .n_slots = 1, .depth = 128, .mapped = 1,
					   .timeout_ms = 60};
	uint64_t *w;
	size_t at;

	(void)state;
	f = fake_start(&alone);
	w = fake_sym(f, 0);
	assert_true(gdr_uint64_wait_until_any_for(w, 1, NULL, GDR_CMP_EQ, 77, 1000000) == (size_t)-1);
	assert_int_equal(gdr_uint64_wait_until_some_for(w, 1, &at, NULL, GDR_CMP_EQ, 77, 1000000), 0);
	assert_int_equal(gdr_uint64_wait_until_for(w, GDR_CMP_EQ, 77, 1000000), -GDR_ETIMEOUT);
	assert_int_equal(gdr_signal_wait_until_for(w, GDR_CMP_EQ, 77, 1000000), -GDR_ETIMEOUT);
	assert_int_equal(gdr_signal_wait_until_from_for(w, GDR_CMP_EQ, 77, 0, 1000000), -GDR_ETIMEOUT);
	assert_int_equal(gdr_status(), 0);
	assert_int_equal(f->dev->n_errors, 0);
	assert_true(gdr_uint64_wait_until_any_for(w, 1, NULL, GDR_CMP_EQ, 77, 20000000000ull) ==
		    (size_t)-1);
	assert_int_equal(gdr_status(), -GDR_ETIMEOUT);
	assert_int_equal(f->dev->n_errors, 1);
	assert_int_equal(gdr_quiet(), -GDR_ETIMEOUT);
	assert_int_equal(gdr_uint64_wait_until_some_for(w, 1, &at, NULL, GDR_CMP_EQ, 77, 20000000000ull),
			 0);
	assert_int_equal(gdr_status(), -GDR_ETIMEOUT);
	assert_int_equal(gdr_quiet(), -GDR_ETIMEOUT);
	fake_stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains),	     cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_broken_queue), cmocka_unit_test(test_records),
		cmocka_unit_test(test_abort),	     cmocka_unit_test(test_launcher_reports),
		cmocka_unit_test(test_slow_read),    cmocka_unit_test(test_late_read),
		cmocka_unit_test(test_two_expire),   cmocka_unit_test(test_wild_notice),
		cmocka_unit_test(test_beat_while_following), cmocka_unit_test(test_crowded),
		cmocka_unit_test(test_broken_queue_told), cmocka_unit_test(test_flushed_queue),
		cmocka_unit_test(test_left),	     cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_limit_holds),  cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_in_time_after_all),
		cmocka_unit_test(test_recovered),    cmocka_unit_test(test_all_are_told),
		cmocka_unit_test(test_two_limits),   cmocka_unit_test(test_notice_and_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
