/* SPDX-License-Identifier: BSD-3-Clause */
/* The port's link as the schedule has it. While it is down no packet passes,
 * inside the process neither: QPs then end as they do on a dead cable. */
#include "softhca/engine/dp.h"
#include "softhca/faults/faults_plan.h"

/* Written by the engine, with the lock; relaxed: readers of sysfs have no lock,
 * and nothing else goes with the value. */
static bool down;

/* Wakes the engine when the clause begins or ends. */
static void next_change(unsigned i, uint64_t now)
{
	uint64_t from = faults_begins(i), lasts = faults_plan.clause[i].lasts;

	if (from > now)
		engine_deadline(from);
	else if (from && lasts && from + lasts > now)
		engine_deadline(from + lasts);
}

void faults_link_timer(uint64_t now)
{
	bool is = false;

	for (unsigned i = 0; i < faults_plan.n; i++) {
		if (faults_plan.clause[i].kind != FAULT_LINK)
			continue;
		is = is || faults_in_force(i, now);
		next_change(i, now);
	}
	if (is == down)
		return;
	__atomic_store_n(&down, is, __ATOMIC_RELAXED); /* pairs with faults_link_down */
	hca_async_port_event(is);
}

bool faults_link_down(void)
{
	return __atomic_load_n(&down, __ATOMIC_RELAXED); /* pairs with the timer's store */
}
