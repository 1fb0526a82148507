/* SPDX-License-Identifier: BSD-3-Clause */
/* Resting by yielding. Where a program's thread that waits yields as well, the
 * core goes to and fro between it and the engine in about a microsecond, which
 * no sleep can match. Where it does not, a yield gives the core away for a whole
 * time slice, and among many threads a turn takes long. Only trying tells: slow
 * yields end yielding for a while, and for longer each time. */
#include "softhca/yield.h"

#include <sched.h>

#include "softhca/dp.h"

#define ALONE_MAX_NS 1000u    /* no yield that took longer had nobody to run. One that had nobody: */
#define NEXT_NS	   2000u      /* the next one has time */
#define SLOW_NS	   20000u     /* on average: a sleep would have been over sooner */
#define LOST_NS	   1000000u   /* one that took so long: a time slice went by */
#define BAN_NS	   5000000u   /* the first; each next one is twice as long, */
#define BAN_MAX_NS 200000000u /* up to this: a slice lost in a hundred */
#define FORGET	   1000u      /* quick yields after which the next ban is a first again */

static uint64_t least_ns = ALONE_MAX_NS, mean_ns, next_at, banned_until, ban_ns = BAN_NS;
static unsigned quick;

bool yield_pays(uint64_t now_ns)
{
	return now_ns >= banned_until;
}

bool yield_due(uint64_t now_ns)
{
	return now_ns >= next_at;
}

static void ban(uint64_t now_ns)
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
		ban(end);
	else if (++quick == FORGET)
		ban_ns = BAN_NS;
}
