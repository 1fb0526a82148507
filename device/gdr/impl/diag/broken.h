/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a team, and those of all PEs (barriers, syncs, meetings of host threads), are broken on all of its
 * members as soon as one gave one up: that PE tells none of its words any more, so nobody can succeed without it, and
 * writes who is to blame into every member's control area (gdri_ctl.team_broken, gdri_ctl.broken). Whoever waits in
 * such a call looks there, and whoever enters a barrier or sync; from then on all its calls have the status that it met
 * first.
 * team: -1, of all PEs. Argument: docs/memory-model-internals.md, "Barriers that break". */
#ifndef GDRI_BROKEN_H
#define GDRI_BROKEN_H

#include <gdr/impl/diag/tell.h>
#include <gdr/impl/wait/fault.h>

GDR_DEVICE int gdri_waits_together(const struct gdri_waiter *w)
{
	return w->team >= 0 || w->op == GDRI_BARRIER || w->op == GDRI_SYNC || w->op == GDRI_HOST_CALL;
}

GDR_DEVICE_COLD int gdri_broken_concerns(const struct gdri_dev *dev, int team, int pe)
{
	return team < 0 || gdri_team_index(&dev->teams[team], pe) >= 0;
}

GDR_DEVICE uint64_t *gdri_broken_word(struct gdri_dev *dev, int team)
{
	return (uint64_t *)(void *)((uint8_t *)dev->ctl + gdri_tell_at(dev, team));
}

GDR_DEVICE uint32_t *gdri_broken_status(struct gdri_dev *dev, int team)
{
	return team < 0 ? &dev->broken : &dev->teams[team].broken;
}

/* Chooses one thread, whose status stands from then on; pairs with nothing. */
GDR_DEVICE_COLD int gdri_broken_first(struct gdri_dev *dev, int team, int status)
{
	uint32_t unset = 0;

	return gdri_cas_u32(gdri_broken_status(dev, team), &unset, (uint32_t)-status);
}

/* Other PEs may give up, too, each for a reason of its own: all calls of this PE end with the first one that it met. */
GDR_DEVICE int gdri_broken_first_status(struct gdri_dev *dev, int team)
{
	return -(int)gdri_ld_relaxed_gpu_u32(gdri_broken_status(dev, team)); /* alone: pairs with nothing */
}

/* Whom a status is because of, as far as this PE knows. */
GDR_DEVICE int32_t gdri_broken_culprit(const struct gdri_dev *dev, int status, int32_t culprit)
{
	if (culprit < 0)
		culprit = (int32_t)gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed) - 2;
	if (culprit < 0 && status == -GDR_EPEERLOST)
		culprit = (int32_t)gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->lost) - 1;
	return culprit < 0 ? dev->pe : culprit;
}

/* Here alone. 1: it is the first that this PE gives up of them. */
GDR_DEVICE_COLD int gdri_broken_mark(struct gdri_dev *dev, int team, uint32_t op, int status, int32_t culprit, int left)
{
	uint64_t none = 0, word;

	GDRI_DEV_CONSTANT(dev);
	culprit = gdri_broken_culprit(dev, status, culprit);
	word = gdri_fault_word_of(dev->pe, culprit, status, op);
	if (status == -GDR_EPEERLOST && (left || gdri_has_left(dev, culprit)))
		word |= GDRI_FAULT_LEFT;
	if (!gdri_broken_first(dev, team, status))
		return 0;
	gdri_note_failure(dev, status);
	gdri_cas_u64(gdri_broken_word(dev, team), &none, word); /* what a peer stores over it says no less */
	return 1;
}

/* This PE gives up a collective; culprit -1: that of the wait that it gave up before. Tells the others what its own
 * word says. Returns the status that all its calls have from then on. */
GDR_DEVICE int gdri_broken_set(struct gdri_dev *dev, int team, uint32_t op, int status, int32_t culprit)
{
	if (gdri_broken_mark(dev, team, op, status, culprit, 0))
		gdri_tell_each(dev, team);
	return gdri_broken_first_status(dev, team);
}

/* The status that this PE has of it: one to blame for being in gdr_finalize made another call than the others. */
GDR_DEVICE int gdri_broken_told(const struct gdri_dev *dev, uint64_t word)
{
	return gdri_fault_left(word) && gdri_fault_peer(word) == dev->pe ? -GDR_EMISMATCH : gdri_fault_status(word);
}

/* Whether the word says that a PE is lost. Who tells lives, and names itself where it knows nobody. */
GDR_DEVICE_COLD int gdri_broken_lost(const struct gdri_dev *dev, uint64_t word)
{
	int32_t pe = gdri_fault_peer(word);

	return gdri_fault_status(word) == -GDR_EPEERLOST && pe != gdri_fault_pe(word) && pe != dev->pe &&
	       !gdri_fault_left(word) && !gdri_has_left(dev, pe);
}

/* What another PE told. */
GDR_DEVICE_COLD void gdri_broken_record(struct gdri_dev *dev, int team, uint64_t word, uint32_t op)
{
	int status = gdri_broken_told(dev, word);
	uint32_t well = 0;
	struct gdri_error *e;

	GDRI_DEV_CONSTANT(dev);
	if (!gdri_broken_first(dev, team, status))
		return;
	gdri_note_failure(dev, status);
	if (gdri_broken_lost(dev, word))
		gdri_lost_found(dev, gdri_fault_peer(word));
	/* the record leads past this PE, which waits no more */
	if (gdri_cas_u32((uint32_t *)&dev->failed, &well, (uint32_t)(gdri_fault_peer(word) + 2)))
		gdri_wait_publish_failed(dev, op, 0, 0, gdri_fault_peer(word), (uint32_t)-gdri_fault_status(word) |
					 (gdri_fault_left(word) ? GDRI_WAIT_SAID_LEFT : 0));
	e = gdri_error_take(dev, GDRI_ERROR_BROKEN, status);
	if (e) {
		e->op = op;
		e->peer = gdri_fault_peer(word);
		e->local = word;
		e->reason = (uint32_t)(team + 1);
		gdri_error_complete(e);
	}
}

/* Whether the word, which is a peer's to write, says something of the collective that can be. */
GDR_DEVICE_COLD int gdri_broken_says(const struct gdri_dev *dev, int team, uint64_t word)
{
	struct gdri_fault f;

	return gdri_fault_read(word, dev->n_pes, &f) && f.peer >= 0 && gdri_broken_concerns(dev, team, f.pe);
}

/* The status of the collectives; 0: their PEs are in step. */
GDRI_NOINLINE int gdri_broken(struct gdri_dev *dev, int team, uint32_t op)
{
	uint64_t word = gdri_ld_relaxed_sys_u64(gdri_broken_word(dev, team)); /* alone: pairs with nothing */

	GDRI_BY_ABI(gdri_broken);
	GDRI_DEV_CONSTANT(dev);
	if (gdri_likely(!word) || !gdri_broken_says(dev, team, word))
		return 0;
	gdri_broken_record(dev, team, word, op);
	return gdri_broken_first_status(dev, team);
}

#endif
