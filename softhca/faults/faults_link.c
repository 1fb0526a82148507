/* SPDX-License-Identifier: BSD-3-Clause */
/* The port's link and its GID table as the schedule has them. While it is down no packet passes,
 * inside the process neither: QPs then end as they do on a dead cable. */
#include "softhca/engine/dp.h"
#include "softhca/faults/faults_plan.h"

/* Written by the engine, with the lock; relaxed: readers of sysfs have no lock,
 * and nothing else goes with the value. */
static bool down, shuffled;

/* Wakes the engine when the clause begins or ends. */
static void next_change(unsigned i, uint64_t now)
{
	uint64_t from = faults_begins(i), lasts = faults_plan.clause[i].lasts;

	if (from > now)
		engine_deadline(from);
	else if (from && lasts && from + lasts > now)
		engine_deadline(from + lasts);
}

static bool in_force_of(enum fault_kind kind, uint64_t now)
{
	bool is = false;

	for (unsigned i = 0; i < faults_plan.n; i++) {
		if (faults_plan.clause[i].kind != kind)
			continue;
		is = is || faults_in_force(i, now);
		next_change(i, now);
	}
	return is;
}

void faults_link_timer(uint64_t now)
{
	bool is = in_force_of(FAULT_LINK, now), are = in_force_of(FAULT_GIDS, now);

	if (is != down) {
		__atomic_store_n(&down, is, __ATOMIC_RELAXED); /* pairs with faults_link_down */
		hca_async_port_event(is ? HCA_PORT_ERR : HCA_PORT_ACTIVE);
	}
	if (are != shuffled) {
		__atomic_store_n(&shuffled, are, __ATOMIC_RELAXED); /* pairs with faults_gids_shuffled */
		hca_async_port_event(HCA_GID_CHANGE);
	}
}

bool faults_link_down(void)
{
	return __atomic_load_n(&down, __ATOMIC_RELAXED); /* pairs with the timer's store */
}

bool faults_gids_shuffled(void)
{
	return __atomic_load_n(&shuffled, __ATOMIC_RELAXED); /* pairs with the timer's store */
}
