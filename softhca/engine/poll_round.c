/* SPDX-License-Identifier: BSD-3-Clause */
/* Who runs the rounds where the program's threads may: see poll_round.h. Exactly one thread at a
 * time does, the one that has hca_lock. A thread that polls tries to get it and never waits.
 *
 * Where a program polls without pause the engine's thread has nothing to do: it naps, looks
 * whether rounds are still run, and takes over when they are not. Whether that pays only trying
 * tells, as with yielding (yield.c): where the engine finds work that nobody has done, the
 * program waits in another way than by polling, or has other things to do. A few such findings
 * and all is as without this, for a while, and for longer each time. */
#include "softhca/engine/poll_round.h"

#include <errno.h>
#include <pthread.h>

#include "softhca/gpu/dma.h"
#include "softhca/engine/dp.h"
#include "softhca/tools/options.h"

enum {
	LINE = 64,
	STRIKES = 3,	 /* findings that end it */
	GOOD_NAPS = 4,	 /* outweigh one */
	FORGET = 1000,	 /* good naps after which the next ban is a first again */
};

#define NAP_MIN_NS 50000u     /* twice as long each next time, */
#define NAP_MAX_NS 400000u    /* up to this: when the program stops to poll, work waits for two */
#define ROUND_NS   4000u      /* rounds are run "without pause" when one takes no longer */
#define BAN_NS	   5000000u   /* the first; each next one is twice as long, */
#define BAN_MAX_NS 200000000u /* up to this */

/* Read by everyone all the time, seldom written. Relaxed: a hint; what is done with it is done
 * with the lock held. */
static _Alignas(LINE) struct {
	bool open;	/* written by the engine's thread */
	bool forbidden; /* for good */
} may = { 0 };

/* Written by those who poll. Relaxed: hints, too. */
static _Alignas(LINE) struct {
	uint64_t rounds; /* with the lock */
	bool wanted;
} polls;

/* The engine's thread alone. */
static _Alignas(LINE) struct {
	bool enabled, away, took_over;
	uint64_t seen, nap_ns, banned_until, ban_ns;
	unsigned strikes, good;
} own = { .ban_ns = BAN_NS };

/* ---- the program's threads ---- */

static bool get_lock(void)
{
	if (!__atomic_load_n(&may.open, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&may.forbidden, __ATOMIC_RELAXED))
		return false;
	if (hca_trylock())
		return true;
	if (!__atomic_load_n(&polls.wanted, __ATOMIC_RELAXED))
		__atomic_store_n(&polls.wanted, true, __ATOMIC_RELAXED);
	return false;
}

/* Whoever is cancelled amid a round would keep the lock. Leaves in *cancel what is to be set again
 * without the lock. */
static unsigned whole_round(int *cancel)
{
	int saved = errno;
	unsigned work = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	if (__builtin_expect(dma_on, 0)) /* the driver's context is the engine's thread's */
		poll_forbid();
	else
		work = engine_round_elsewhere();
	errno = saved;
	return work;
}

bool poll_round(void)
{
	enum { UNTOUCHED = -1 };
	int cancel = UNTOUCHED;
	bool work;

	if (!get_lock())
		return false;
	work = engine_round_short() || whole_round(&cancel);
	__atomic_store_n(&polls.rounds, polls.rounds + 1, __ATOMIC_RELAXED);
	STAT_INC(poll_rounds);
	hca_unlock();
	if (work)
		trap_wake(); /* there may be times to keep now */
	if (cancel != UNTOUCHED)
		pthread_setcancelstate(cancel, NULL);
	return work;
}

void poll_forbid(void)
{
	__atomic_store_n(&may.forbidden, true, __ATOMIC_RELAXED); /* see there */
}

/* ---- the engine's thread ---- */

void poll_start(void)
{
	own.enabled = hca_options()->poll_rounds;
	__atomic_store_n(&may.open, own.enabled, __ATOMIC_RELAXED); /* see there */
}

static void set_open(bool open)
{
	__atomic_store_n(&may.open, open, __ATOMIC_RELAXED); /* see there */
}

static bool is_banned(void)
{
	if (!own.banned_until)
		return false;
	if (dp_clock() < own.banned_until)
		return true;
	own.banned_until = 0;
	set_open(true);
	return false;
}

uint64_t poll_leave(void)
{
	uint64_t came;
	bool wanted;

	if (!own.enabled)
		return 0;
	/* Relaxed: see polls. Also where nobody may: poll_wanted() would stay true. */
	wanted = __atomic_load_n(&polls.wanted, __ATOMIC_RELAXED);
	if (wanted)
		__atomic_store_n(&polls.wanted, false, __ATOMIC_RELAXED);
	if (__atomic_load_n(&may.forbidden, __ATOMIC_RELAXED) || is_banned())
		return 0;
	came = __atomic_load_n(&polls.rounds, __ATOMIC_RELAXED) - own.seen;
	own.seen += came;
	if (!own.away) {
		own.away = came || wanted;
		own.nap_ns = NAP_MIN_NS;
		return own.away ? own.nap_ns : 0;
	}
	if (came * ROUND_NS < own.nap_ns) {
		own.away = false;
		own.took_over = true;
		return 0;
	}
	own.nap_ns = own.nap_ns * 2 < NAP_MAX_NS ? own.nap_ns * 2 : NAP_MAX_NS;
	own.good++;
	if (own.good % GOOD_NAPS == 0 && own.strikes)
		own.strikes--;
	if (own.good == FORGET)
		own.ban_ns = BAN_NS;
	return own.nap_ns;
}

bool poll_wanted(void)
{
	return __atomic_load_n(&polls.wanted, __ATOMIC_RELAXED); /* see there */
}

void poll_found(unsigned work)
{
	if (!own.took_over)
		return;
	own.took_over = false;
	STAT_INC(poll_takeovers);
	if (!work || ++own.strikes < STRIKES)
		return;
	set_open(false);
	own.banned_until = dp_clock() + own.ban_ns;
	own.ban_ns = own.ban_ns * 2 < BAN_MAX_NS ? own.ban_ns * 2 : BAN_MAX_NS;
	own.strikes = 0;
	own.good = 0;
}
