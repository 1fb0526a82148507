/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine: one thread that notices doorbells, lets QPs work, receives
 * packets, watches the clock, and sleeps when there is nothing to do.
 *
 * Doorbells. The UAR registers are polled as a hint: QPs share them and
 * overwrite each other's values, so a change names a QP to look at and a
 * candidate for its producer index. What was posted is decided with the
 * doorbell record, and a round-robin sweep over all records finds what no
 * register showed. The engine never sleeps before a whole sweep has found
 * nothing. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "softhca/guest.h"
#include "softhca/log.h"
#include "softhca/rc.h"
#include "softhca/strict.h"

enum {
	UAR_MAX = 4096,
	UAR_REGS = 5,
	SWEEP_QPS = 8,	  /* doorbell records looked at in a round */
	ROUND_QPS = 64,	  /* QPs that work in a round */
	QP_BUDGET = 64,	  /* packets that a QP sends at a turn */
	ROUNDS_LOCKED = 32, /* rounds before the lock is offered to others */
};

#define SPIN_NS	      10000u	     /* polling goes on so long after the last work */
#define RECEIVE_NS    1000u
#define SLEEP_MIN_NS  20000u	     /* see docs: shorter sleeps keep the core */
#define SLEEP_MAX_NS  2000000u
#define SLEEP_FRACTION 50	     /* of the idle time, so waking late costs 2 % of it */
#define NEVER	      UINT64_MAX

struct hca_stats hca_stats;

static const uint16_t uar_reg[UAR_REGS] = { 0x800, 0x900, 0xa00, 0xb00, 0x600 };
static uint64_t uar_seen[UAR_MAX][UAR_REGS];

static struct hca_qp **live; /* all QPs, any order */
static unsigned n_live, cap_live, sweep_at, swept; /* swept: since the last work */
static struct hca_qp *by_index[1 << 14];
static struct hca_qp *active_head, *active_tail;
static uint64_t now_ns, next_deadline = NEVER;
static bool started;

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

static struct hca_qp **index_of(uint32_t qpn)
{
	uint32_t i = qpn - dp_first_qpn();

	return i < dp_qpn_count() ? &by_index[i] : NULL;
}

struct hca_qp *engine_find_qp(uint32_t qpn)
{
	struct hca_qp **p = index_of(qpn);

	return p ? *p : NULL;
}

int engine_add_qp(struct hca_qp *qp)
{
	struct hca_qp **slot = index_of(qp->qpn);

	if (!slot || *slot)
		return -EINVAL;
	if (n_live == cap_live) {
		unsigned cap = cap_live ? cap_live * 2 : 64;
		struct hca_qp **bigger = realloc(live, cap * sizeof(*live));

		if (!bigger)
			return -ENOMEM;
		live = bigger;
		cap_live = cap;
	}
	qp->rc->live_index = n_live;
	live[n_live++] = qp;
	*slot = qp;
	return 0;
}

void engine_remove_qp(struct hca_qp *qp)
{
	struct hca_qp **slot = index_of(qp->qpn), **p, *last = NULL;

	if (!slot || *slot != qp)
		return;
	*slot = NULL;
	live[qp->rc->live_index] = live[--n_live];
	live[qp->rc->live_index]->rc->live_index = qp->rc->live_index;
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
	qp->next_active = NULL;
	if (active_tail)
		active_tail->next_active = qp;
	else
		active_head = qp;
	active_tail = qp;
}

static struct hca_qp *pop_active(void)
{
	struct hca_qp *qp = active_head;

	if (!qp)
		return NULL;
	active_head = qp->next_active;
	if (!active_head)
		active_tail = NULL;
	qp->next_active = NULL;
	qp->active = false;
	return qp;
}

/* ---- doorbells ---- */

/* Moves sq_pi to the farthest believable producer index. The record counts
 * blocks posted; the register's index is that count or the index of the last
 * WQE, by library. A distance of more than the ring is an old value. */
static bool look_at(struct hca_qp *qp, const uint16_t *hint)
{
	uint32_t size = 1u << qp->log_sq_size;
	uint16_t best = (uint16_t)(qp->sq_pi - qp->sq_ci), old = best, d;

	if (!qp->sq || qp->state < HCA_QPS_RTS)
		return false;
	if (strict_on)
		strict_look(qp);
	if (qp->dbrec) {
		d = (uint16_t)((uint16_t)guest_dbrec(&qp->dbrec[1]) - qp->sq_ci);
		if (d <= size && d > best)
			best = d;
	}
	if (hint) {
		d = (uint16_t)(*hint - qp->sq_ci);
		if (d <= size && d > best)
			best = d;
	}
	if (best == old)
		return false;
	if (faults_active() && faults_doorbell_late(qp, dp_now(), (uint16_t)(qp->sq_ci + best)))
		return false;
	qp->sq_pi = (uint16_t)(qp->sq_ci + best);
	engine_activate(qp);
	return true;
}

static unsigned poll_register(uint32_t page, const uint8_t *reg, uint64_t *seen)
{
	uint64_t v = guest_uar(reg);
	uint8_t b[8];
	struct hca_qp *qp;
	uint16_t hint;

	if (v == *seen)
		return 0;
	*seen = v;
	if (strict_on)
		strict_doorbell(page);
	memcpy(b, &v, 8);
	qp = engine_find_qp(get_be32(b + 4) >> 8);
	if (!qp)
		return 0;
	hint = (uint16_t)(get_be32(b) >> 8);
	if (!look_at(qp, &hint))
		return 0;
	STAT_INC(doorbells_uar);
	return 1;
}

static unsigned poll_uars(void)
{
	uint32_t pages = hca_uar_pages_used();
	unsigned n = 0;

	for (uint32_t i = 0; i < pages && i < UAR_MAX; i++) {
		const uint8_t *page = hca_uar_page(i);

		for (unsigned r = 0; page && r < UAR_REGS; r++)
			n += poll_register(i, page + uar_reg[r], &uar_seen[i][r]);
	}
	return n;
}

/* A QP without a doorbell record has its page to itself: what lies there is its own. */
static bool look_at_page(struct hca_qp *qp)
{
	const uint8_t *page = hca_uar_page(qp->uar_page);
	bool found = false;

	for (unsigned r = 0; page && r < UAR_REGS; r++) {
		uint64_t v = guest_uar(page + uar_reg[r]);
		uint8_t b[8];
		uint16_t hint;

		memcpy(b, &v, 8);
		hint = (uint16_t)(get_be32(b) >> 8);
		if (get_be32(b + 4) >> 8 == qp->qpn)
			found |= look_at(qp, &hint);
	}
	return found;
}

static unsigned sweep(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SWEEP_QPS && i < n_live; i++) {
		struct hca_qp *qp;

		if (sweep_at >= n_live)
			sweep_at = 0;
		qp = live[sweep_at++];
		if (qp->dbrec ? look_at(qp, NULL) : look_at_page(qp)) {
			STAT_INC(doorbells_sweep);
			n++;
		}
		if (qp->state == HCA_QPS_ERR && qp->rc->flushing)
			recv_flush(qp); /* posted since */
		if (qp->scq && qp->scq->channel)
			cq_check_arm(qp->scq);
		if (qp->rcq && qp->rcq->channel && qp->rcq != qp->scq)
			cq_check_arm(qp->rcq);
		swept++;
	}
	return n;
}

/* ---- rounds ---- */

static void timers(void)
{
	if (now_ns < next_deadline)
		return;
	next_deadline = NEVER;
	for (unsigned i = 0; i < n_live; i++) {
		struct hca_rc *rc = live[i]->rc;

		rc_timer(live[i], now_ns);
		if (rc->deadline)
			engine_deadline(rc->deadline);
		if (rc->rnr_until > now_ns)
			engine_deadline(rc->rnr_until);
	}
	wire_release_held();
	if (faults_active())
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
	static uint64_t empty_at;
	unsigned n;

	if (now_ns - empty_at < RECEIVE_NS)
		return 0;
	n = wire_receive_sockets();
	if (!n)
		empty_at = now_ns;
	return n;
}

unsigned engine_round(void)
{
	unsigned work;

	now_ns = dp_clock();
	if (strict_on)
		strict_tick(now_ns);
	work = poll_uars();
	work += sweep();
	work += wire_receive();
	work += receive_sockets();
	timers();
	work += run_active();
	wire_flush();
	return work;
}

/* How long to sleep after this much idleness, 0: not yet. */
static uint64_t sleep_time(uint64_t idle)
{
	uint64_t ns = idle / SLEEP_FRACTION;

	if (idle < SPIN_NS || swept < n_live)
		return 0;
	if (ns < SLEEP_MIN_NS)
		ns = SLEEP_MIN_NS;
	if (ns > SLEEP_MAX_NS)
		ns = SLEEP_MAX_NS;
	if (next_deadline <= now_ns)
		return 0;
	return next_deadline - now_ns < ns ? next_deadline - now_ns : ns;
}

static void *engine_main(void *arg)
{
	uint64_t last_work = dp_clock(), nap;

	(void)arg;
	prctl(PR_SET_NAME, "softhca");
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		unsigned rounds = 0, work;

		hca_lock_engine();
		do {
			work = engine_round();
			if (work) {
				last_work = now_ns;
				swept = 0;
			}
			nap = sleep_time(now_ns - last_work);
			if (!work && !nap)
				__builtin_ia32_pause();
		} while (!nap && ++rounds < ROUNDS_LOCKED && !hca_lock_wanted());
		hca_unlock();
		if (nap && !hca_lock_wanted()) {
			STAT_INC(engine_sleeps);
			wire_wait(nap);
			swept = 0;
		}
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
	/* The program's signals are not for this thread. */
	sigfillset(&all);
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
	(void)cq; /* CQEs are written at once; nothing refers to a CQ but its QPs */
}
