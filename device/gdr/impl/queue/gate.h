/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol, waiting for room: who goes first. Arguments: docs/memory-model-internals.md, "Who goes first". */
#ifndef GDRI_GATE_H
#define GDRI_GATE_H

#include <gdr/impl/arch/dev.h>

/* The gate: those who wait for room are on one of two sides. Those on the side whose turn it is take room as they find
 * it, each once, and who comes to wait goes to the other side: it has its turn when all of them are through. `room`
 * counts all that wait: below 0, it leaves nothing to who does not. gdri_qp.gate: how many there are on each side, how
 * many took room out of turn, and, its last bit, whose turn it is. */
#define GDRI_GATE_SIDE 24u /* bits of a count: as many threads do not run at a time */
#define GDRI_GATE_SPENT (1ull << 2 * GDRI_GATE_SIDE)
#define GDRI_GATE_TURN (1ull << 63)

GDR_DEVICE uint64_t gdri_gate_one(uint32_t side)
{
	return side ? 1ull << GDRI_GATE_SIDE : 1;
}

GDR_DEVICE uint32_t gdri_gate_count(uint64_t gate, uint32_t side)
{
	return (uint32_t)(side ? gate >> GDRI_GATE_SIDE : gate) & ((1u << GDRI_GATE_SIDE) - 1);
}

GDR_DEVICE uint32_t gdri_gate_spent(uint64_t gate)
{
	return (uint32_t)((gate & ~GDRI_GATE_TURN) / GDRI_GATE_SPENT);
}

/* The caller's side, by a look that may be old: it may be the one whose turn has just come. */
GDR_DEVICE uint32_t gdri_gate_enter(struct gdri_qp *qp)
{
	uint32_t side = !(gdri_ld_relaxed_gpu_u64(&qp->gate) & GDRI_GATE_TURN);

	gdri_add_u64(&qp->gate, gdri_gate_one(side));
	gdri_add_u64(&qp->room, 0 - GDRI_ROOM_WAITER);
	return side;
}

GDR_DEVICE void gdri_gate_leave(struct gdri_qp *qp, uint32_t side)
{
	gdri_add_u64(&qp->room, GDRI_ROOM_WAITER);
	gdri_add_u64(&qp->gate, 0 - gdri_gate_one(side));
}

/* Whether it is the caller's turn. It is from now on where nobody is left on the other side, or who is left there does
 * not use it (unused). Orders nothing: what a thread may take is what it took from `room`. */
GDR_DEVICE_COLD int gdri_gate_turn(struct gdri_qp *qp, uint32_t side, int unused)
{
	uint64_t gate = gdri_ld_relaxed_gpu_u64(&qp->gate), turned;

	if (!(gate & GDRI_GATE_TURN) == !side)
		return 1;
	if (!unused && gdri_gate_count(gate, !side))
		return 0;
	turned = (gate & (GDRI_GATE_SPENT - 1)) | (~gate & GDRI_GATE_TURN); /* nothing is spent */
	return gdri_cas_u64(&qp->gate, &gate, turned);
}

#endif
