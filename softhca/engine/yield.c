/* SPDX-License-Identifier: BSD-3-Clause */
/* Resting by yielding. Where a program's thread that waits yields as well, the
 * core goes to and fro between it and the engine in about a microsecond, which
 * no sleep can match. Where it does not, a yield gives the core away for a whole
 * time slice, and among many threads a turn takes long. Only trying tells: slow
 * yields end yielding for a while, and for longer each time. */

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/engine/dp.h"
#include "softhca/tools/log.h"

#define ALONE_MAX_NS 1000u    /* no yield that took longer had nobody to run. One that had nobody: */
#define NEXT_NS	   2000u      /* the next one has time */
#define SLOW_NS	   20000u     /* on average: a sleep would have been over sooner */
#define LOST_NS	   1000000u   /* one that took so long: a time slice went by */
#define BAN_NS	   5000000u   /* the first; each next one is twice as long, */
#define BAN_MAX_NS 200000000u /* up to this: a slice lost in a hundred */
#define FORGET	   1000u      /* quick yields after which the next ban is a first again */

#define TURN_NS	   100000u    /* the kernel's least: longer than nearly all turns */

static uint64_t least_ns = ALONE_MAX_NS, mean_ns, next_at, banned_until, ban_ns = BAN_NS;
static unsigned quick;

/* Turns of the engine are microseconds. One that begins late by the slice (1.4 ms on two cores) of each thread that
 * spins makes a put last as long; a short slice lets it begin amid theirs. The share of the core is as without it.
 * Before Linux 6.12 the length is not looked at. */
void yield_short_turns(void)
{
	struct { /* sched_setattr(2); <linux/sched/types.h> and <sched.h> exclude each other */
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a = { .size = sizeof(a) };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) || a.policy != SCHED_OTHER)
		return;
	a.runtime = TURN_NS;
	if (syscall(SYS_sched_setattr, 0, &a, 0))
		hca_debug(1, "no short turns for the engine: the kernel refuses them");
}

bool yield_pays(uint64_t now_ns)
{
	return now_ns >= banned_until;
}

bool yield_due(uint64_t now_ns)
{
	return now_ns >= next_at;
}

static void yield_ban(uint64_t now_ns)
{
	banned_until = now_ns + ban_ns;
	ban_ns = ban_ns * 2 < BAN_MAX_NS ? ban_ns * 2 : BAN_MAX_NS;
	mean_ns = 0;
	quick = 0;
}

/* Had nobody to run: as short as the shortest, or half as long again. What the call itself
 * takes differs by machine (0.2 to 0.7 us) and from minute to minute, so the shortest is
 * forgotten slowly. */
static bool was_alone(uint64_t ns)
{
	least_ns = ns < least_ns ? ns : least_ns + least_ns / 1024 + 1;
	if (least_ns > ALONE_MAX_NS)
		least_ns = ALONE_MAX_NS;
	return ns <= ALONE_MAX_NS && ns <= least_ns + least_ns / 2;
}

void yield_core(void)
{
	uint64_t start = dp_clock(), end, ns;

	sched_yield();
	end = dp_clock();
	ns = end - start;
	next_at = was_alone(ns) ? end + NEXT_NS : 0;
	mean_ns += ns / 8 - mean_ns / 8;
	if (ns > LOST_NS || mean_ns > SLOW_NS)
		yield_ban(end);
	else if (++quick == FORGET)
		ban_ns = BAN_NS;
}
