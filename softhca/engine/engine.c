/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine: one thread that looks for doorbells (doorbell.c), lets QPs work,
 * receives packets, watches the clock, and sleeps when there is nothing to do.
 * It never sleeps before a whole sweep over the doorbell records has found
 * nothing. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "softhca/engine/cpu.h"
#include "softhca/engine/poll_round.h"
#include "softhca/tools/log.h"
#include "softhca/memory/probe.h"
#include "softhca/transport/rc.h"
#include "softhca/strict/strict.h"
#include "softhca/engine/dp.h"

enum {
	CLOCK_ROUNDS = 8, /* empty rounds, or pieces of work, that share a look at the clock */
	ROUND_QPS = 64,	  /* QPs that work in a round */
	QP_BUDGET = 64,	  /* packets that a QP sends at a turn */
	ROUNDS_LOCKED = 32, /* rounds before the lock is offered to others */
	SHORT_ROUNDS = 8, /* of engine_round_short(), one after the other */
	LINE = 64,
	USER_FROM = 448, /* what posting and polling touch of libmlx5's queue pair, besides its first line */
	USER_TO = 896,
	MANY_QPS = 256,	 /* they are in no near cache by themselves */
	LAST_ROUNDS = 16, /* for what was posted before its QP is destroyed */
};

#define SPIN_NS	      10000u	     /* polling goes on so long after the last work */
#define YIELD_NS      500000u	     /* and so long, the core offered to others, where that pays */
#define RECEIVE_NS    1000u	     /* empty sockets are asked again so soon, and the */
#define RECEIVE_MAX_NS 20000u	     /* later the longer they have been empty */
#define SLEEP_MIN_NS  20000u	     /* see docs: shorter sleeps keep the core */
#define SLEEP_MAX_NS  2000000u
#define SLEEP_FRACTION 50	     /* of the idle time, so waking late costs 2 % of it */
#define REST_NS	      1000000000u    /* idle so long, it has itself called by the first doorbell */
#define REST_MAX_NS   20000000u	     /* and looks by itself so often */
#define LATE_NS	      (2 * SLEEP_MAX_NS)  /* a longer pause was not the engine's choice */
#define NEVER	      UINT64_MAX

struct hca_stats hca_stats;

static struct hca_qp **live; /* all QPs, any order */
static unsigned n_live, cap_live;
static struct by_index {
	struct hca_qp *qp;
	const uint8_t *rc;   /* a copy of qp->rc, */
	const uint8_t *user; /* and of qp->user_handle */
} by_index[1 << 14];
static uint32_t first_qpn; /* dp_first_qpn(), once there is a QP */
static struct hca_qp *active_head, *active_tail;
static uint64_t now_ns, next_deadline = NEVER;
static unsigned clock_credit;
static bool started;
static uint64_t asked_at; /* when the sockets were last found empty */
static uint64_t last_work;
static bool worked; /* since then, by rounds that do not look at the clock */

uint64_t dp_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t dp_now(void)
{
	return now_ns ? now_ns : dp_clock();
}

void engine_deadline(uint64_t ns)
{
	if (ns < next_deadline)
		next_deadline = ns;
}

/* ---- QPs ---- */

static inline struct by_index *engine_index_of(uint32_t qpn)
{
	uint32_t i = qpn - first_qpn;

	return i < sizeof(by_index) / sizeof(*by_index) ? &by_index[i] : NULL;
}

struct hca_qp *engine_find_qp(uint32_t qpn)
{
	struct by_index *p = engine_index_of(qpn);

	return p ? p->qp : NULL;
}

/* One after the other, each line leading to the next, they take longer than all the rest. */
struct hca_qp *engine_prefetch(uint32_t qpn)
{
	const struct by_index *p = engine_index_of(qpn);

	if (!p || !p->qp)
		return NULL;
	__builtin_prefetch(p->qp);
	for (size_t i = 0; i < RC_HOT; i += LINE)
		__builtin_prefetch(p->rc + i);
	return p->qp;
}

/* In the thread that posts to it: of libmlx5's structure, too, which nobody else writes. Asking for an
 * address that is none, or is something else in another release, does no harm. */
void engine_prefetch_user(uint32_t qpn)
{
	const struct by_index *p = engine_index_of(qpn);

	if (!p || !p->user)
		return;
	__builtin_prefetch(p->user);
	for (size_t i = USER_FROM; i <= USER_TO; i += LINE)
		__builtin_prefetch(p->user + i, 1);
}

int engine_add_qp(struct hca_qp *qp)
{
	struct by_index *slot;

	first_qpn = dp_first_qpn();
	slot = engine_index_of(qp->qpn);
	if (!slot || slot->qp)
		return -EINVAL;
	if (n_live == cap_live) {
		unsigned cap = cap_live ? cap_live * 2 : 64;
		struct hca_qp **bigger = realloc(live, cap * sizeof(*live));

		if (!bigger)
			return -ENOMEM;
		live = bigger;
		cap_live = cap;
	}
	if (doorbell_add(qp, n_live))
		return -ENOMEM;
	qp->rc->live_index = n_live;
	live[n_live++] = qp;
	*slot = (struct by_index){ qp, (const uint8_t *)qp->rc,
				   (const uint8_t *)(uintptr_t)qp->user_handle };
	return 0;
}

void engine_remove_qp(struct hca_qp *qp)
{
	struct by_index *slot = engine_index_of(qp->qpn);
	struct hca_qp **p, *last = NULL;

	if (!slot || slot->qp != qp)
		return;
	*slot = (struct by_index){ 0 };
	live[qp->rc->live_index] = live[--n_live];
	live[qp->rc->live_index]->rc->live_index = qp->rc->live_index;
	doorbell_remove(qp->rc->live_index);
	for (p = &active_head; *p && *p != qp; p = &(*p)->next_active)
		last = *p;
	if (!*p)
		return;
	*p = qp->next_active;
	if (active_tail == qp)
		active_tail = last;
	qp->active = false;
	qp->next_active = NULL;
}

void engine_activate(struct hca_qp *qp)
{
	if (qp->active)
		return;
	qp->active = true;
	if (active_tail)
		active_tail->next_active = qp;
	else
		active_head = qp;
	active_tail = qp;
}

struct hca_qp *engine_qp(unsigned i)
{
	return i < n_live ? live[i] : NULL;
}

static struct hca_qp *pop_active(void)
{
	struct hca_qp *qp = active_head;

	if (!qp)
		return NULL;
	qp->active = false;
	if (qp == active_tail) { /* its second cache line is left alone */
		active_head = active_tail = NULL;
		return qp;
	}
	active_head = qp->next_active;
	qp->next_active = NULL;
	return qp;
}

/* ---- rounds ---- */

static void engine_timers(void)
{
	if (now_ns < next_deadline)
		return;
	next_deadline = NEVER;
	for (unsigned i = 0; i < n_live; i++) {
		struct hca_rc *rc = live[i]->rc;

		rc_timer(live[i], now_ns);
		if (rc->order)
			rc_order_timer(live[i], now_ns);
		if (rc->deadline)
			engine_deadline(rc->deadline);
		if (rc->rnr_until > now_ns)
			engine_deadline(rc->rnr_until);
	}
	wire_release_held();
	hca_events_timer();
	if (faults_on)
		faults_timer(now_ns);
}

static unsigned run_active(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ROUND_QPS; i++) {
		struct hca_qp *qp = pop_active();
		unsigned room;

		if (!qp)
			break;
		if (rc_at_once(qp)) {
			n++;
			continue;
		}
		/* Without room the QP stays where it is: that is no work, and when
		 * nothing else is either, the engine sleeps and looks again. */
		room = wire_room(qp, QP_BUDGET);
		if (!room || rc_run(qp, room))
			engine_activate(qp);
		wire_drain_local();
		n += room != 0;
	}
	return n;
}

/* A receive call that finds nothing costs as much as a loopback operation, so
 * an empty socket is not asked again at once. */
static unsigned receive_sockets(void)
{
	static uint64_t last_packet;
	uint64_t wait = (now_ns - last_packet) / 16;
	unsigned n;

	wait = wait < RECEIVE_NS ? RECEIVE_NS : wait > RECEIVE_MAX_NS ? RECEIVE_MAX_NS : wait;
	if (now_ns - asked_at < wait)
		return 0;
	n = wire_receive_sockets();
	if (n)
		last_packet = now_ns;
	else
		asked_at = now_ns;
	return n;
}

/* What came while this thread had no core waits unread, and who should have answered
 * probably had none either. Of such a pause the ack timers are charged the first
 * LATE_NS and an eighth of the rest: all of it never, so that silence has an end. */
static void look_at_clock(void)
{
	uint64_t now = dp_clock(), pause = now - now_ns;

	if (now_ns && pause > LATE_NS)
		for (unsigned i = 0; i < n_live; i++)
			rc_was_late(live[i], (pause - LATE_NS) / 8 * 7);
	now_ns = now;
}

unsigned engine_round(void)
{
	unsigned work;

	/* The clock costs as much as the rest of a round that finds nothing, and half
	 * as much as a short write. Fault schedules have times to keep. */
	if (!clock_credit || faults_on) {
		look_at_clock();
		clock_credit = CLOCK_ROUNDS;
	}
	if (strict_on)
		strict_tick(now_ns);
	work = doorbell_poll();
	if (__builtin_expect(dma_on, 0))
		work += dma_poll();
	work += wire_receive();
	work += receive_sockets();
	engine_timers();
	work += run_active();
	wire_flush();
	if (__builtin_expect(dma_on, 0))
		dma_submit();
	clock_credit -= work + 1 < clock_credit ? work + 1 : clock_credit;
	return work;
}

/* How long to sleep after this much idleness, 0: not yet. */
static uint64_t sleep_time(uint64_t idle)
{
	uint64_t ns = idle / SLEEP_FRACTION;

	if (idle < SPIN_NS)
		return 0;
	if (ns < SLEEP_MIN_NS)
		ns = SLEEP_MIN_NS;
	if (ns > SLEEP_MAX_NS)
		ns = SLEEP_MAX_NS;
	if (next_deadline <= now_ns)
		return 0;
	return next_deadline - now_ns < ns ? next_deadline - now_ns : ns;
}

/* Nothing can come up but by a doorbell, a packet or a control call. */
static bool nothing_hidden(void)
{
	if (strict_on || faults_on || dma_on || active_head || next_deadline != NEVER)
		return false;
	for (unsigned i = 0; i < n_live; i++) /* receives posted there are flushed, no doorbell rung */
		if (live[i]->state == HCA_QPS_ERR && live[i]->rq)
			return false;
	return true;
}

/* Having been idle for a second it rests longer, if the first doorbell calls it. Those rung
 * before that are still to be looked for. */
static uint64_t rest_time(uint64_t idle, uint64_t nap)
{
	return idle >= REST_NS && nothing_hidden() && trap_set() ? REST_MAX_NS : nap;
}

/* What sleeping without the lock has told, for when it is held again. */
static struct {
	bool begun;  /* wire_sleep_begin() */
	bool silent; /* nothing lay in a socket */
	bool called; /* a rest has ended */
} slept;

/* Without the lock. */
static void end_rest(void)
{
	if (!trap_is_set())
		return;
	trap_release();
	slept.called = true;
}

static void sleep_for(uint64_t ns)
{
	STAT_INC(engine_sleeps);
	STAT_ADD(engine_rests, trap_is_set());
	if (wire_sleep(ns))
		end_rest(); /* ahead of everything else: a thread may wait for its store */
	else
		slept.silent = true;
}

static void lock_again(void)
{
	hca_lock_engine();
	if (slept.begun)
		wire_sleep_end();
	if (slept.silent)
		asked_at = dp_clock();
	if (slept.called || worked)
		last_work = dp_clock();
	worked = false;
	clock_credit = 0; /* time has passed, and others have run rounds: now_ns is old */
	memset(&slept, 0, sizeof(slept));
}

/* Others run the rounds. Without the lock. */
static void leave_rounds(void)
{
	uint64_t ns;

	while ((ns = poll_leave()) != 0) {
		struct timespec t = { .tv_nsec = (long)ns };

		end_rest(); /* they may wait for their stores */
		nanosleep(&t, NULL);
	}
}

unsigned engine_round_elsewhere(void)
{
	unsigned work;

	clock_credit = 0; /* this thread may have done anything since its last round */
	work = engine_round();
	if (work)
		last_work = now_ns;
	return work;
}

/* An adapter has begun long before a command's mailbox reaches it: programs that post a last
 * datagram and destroy the queue rely on it. */
void engine_begin_posted(struct hca_qp *qp)
{
	if (!qp->rc || qp->state != HCA_QPS_RTS || dma_on)
		return;
	doorbell_look(qp);
	for (unsigned i = 0; i < LAST_ROUNDS && qp->active; i++)
		engine_round_elsewhere();
}

static bool round_short(bool elsewhere)
{
	static unsigned n;

	if (active_head || ++n % SHORT_ROUNDS == 0 || strict_on || faults_on || dma_on)
		return false;
	if (!doorbell_poll_first() || !rc_at_once(active_head))
		return false;
	pop_active();
	if (n_live >= MANY_QPS)
		prefetch_next(elsewhere);
	return true;
}

bool engine_round_short(void)
{
	bool found = round_short(true);

	worked |= found;
	return found;
}

/* What was just rung is carried out ahead of a look at all the rest. */
static unsigned own_round(void)
{
	if (!round_short(false))
		return engine_round();
	clock_credit -= clock_credit > 1 ? 2 : clock_credit;
	return 1;
}

/* No doorbell shows while the pages are trapped, unless the trap has a hole. */
static unsigned watched_round(void)
{
	uint64_t doorbells = hca_stats.doorbells_uar;
	bool trapped = trap_is_set();
	unsigned work = own_round();

	if (trapped)
		STAT_ADD(doorbells_missed, hca_stats.doorbells_uar != doorbells);
	poll_found(work);
	return work;
}

static void *engine_main(void *arg)
{
	uint64_t nap;
	bool yielding, due;

	(void)arg;
	dma_keep();
	prctl(PR_SET_NAME, "softhca");
	prctl(PR_SET_TIMERSLACK, 1);
	yield_short_turns();
	for (;;) {
		unsigned rounds = 0, work;

		leave_rounds();
		lock_again();
		do {
			work = watched_round();
			if (work)
				last_work = now_ns;
			yielding = !work && now_ns - last_work < YIELD_NS && yield_pays(now_ns);
			nap = yielding || (dma_on && dma_busy()) ? 0 : sleep_time(now_ns - last_work);
			if (nap)
				nap = rest_time(now_ns - last_work, nap);
			if (nap && doorbell_sweep_all())
				nap = 0;
			if (!nap && trap_is_set())
				trap_release();
			due = yielding && yield_due(now_ns);
			if (due && doorbell_poll_cold())
				due = false;
			if (!work && !nap && !due)
				hca_cpu_relax();
		} while (!nap && !due && ++rounds < ROUNDS_LOCKED && !hca_lock_wanted() &&
			 !poll_wanted());
		slept.begun = nap != 0;
		if (nap && !wire_sleep_begin())
			nap = 0;
		hca_unlock();
		if (due)
			yield_core();
		else if (nap && !hca_lock_wanted())
			sleep_for(nap);
		else
			end_rest();
	}
	return NULL;
}

int engine_start(void)
{
	sigset_t all, old;
	char err[400];
	pthread_t t;
	int ret;

	if (started)
		return 0;
	strict_start();
	ret = faults_start(dp_clock(), err, sizeof(err));
	if (ret) {
		hca_warn("%s", err);
		return ret;
	}
	ret = wire_start();
	if (ret)
		return ret;
	poll_start();
	last_work = dp_clock(); /* before the thread: a command may run rounds before it has the lock */
	/* The program's signals are not for this thread. */
	sigfillset(&all);
	probe_unblock(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&t, NULL, engine_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return ret;
	pthread_detach(t);
	started = true;
	return 0;
}

void dp_cq_destroy(struct hca_cq *cq)
{
	/* Nothing refers to a CQ but its QPs; what is on its way to it arrives first. */
	if (dma_on) {
		dma_settle();
		dma_record_drop(cq->dbrec);
	}
}
