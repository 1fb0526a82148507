/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a team, and those of all PEs (barriers, syncs, meetings of host threads), are broken on all of its
 * members as soon as one gave one up: that PE tells none of its words any more, so nobody can succeed without it, and
 * writes who is to blame into every member's control area (gdri_ctl.team_broken, gdri_ctl.broken). Whoever waits in
 * such a call looks there, and whoever enters a barrier or sync; from then on all its calls have the status that it met
 * first.
 * team: -1, of all PEs. Argument: docs/memory-model.md, "Barriers that break". */
#ifndef GDRI_BROKEN_H
#define GDRI_BROKEN_H

#include <gdr/impl/coll/levels.h>
#include <gdr/impl/diag/tell.h>
#include <gdr/impl/wait/fault.h>

GDR_DEVICE int gdri_waits_together(const struct gdri_waiter *w)
{
	return w->team >= 0 || w->op == GDRI_BARRIER || w->op == GDRI_SYNC || w->op == GDRI_MEET;
}

GDR_DEVICE_COLD int gdri_broken_concerns(const struct gdri_dev *dev, int team, int pe)
{
	return team < 0 || gdri_team_index(&dev->teams[team], pe) >= 0;
}

/* Place of the word in a control area. */
GDR_DEVICE uint64_t gdri_broken_at(int team)
{
	return team < 0 ? offsetof(struct gdri_ctl, broken)
			: offsetof(struct gdri_ctl, team_broken) + (uint64_t)(uint32_t)team * sizeof(uint64_t);
}

GDR_DEVICE uint64_t *gdri_broken_word(struct gdri_dev *dev, int team)
{
	return (uint64_t *)(void *)((uint8_t *)dev->ctl + gdri_broken_at(team));
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

/* PE number i of the collective's; -1: there are no more. */
GDR_DEVICE_COLD int gdri_broken_member(const struct gdri_dev *dev, int team, int i)
{
	if (i >= (team < 0 ? dev->n_pes : dev->teams[team].n))
		return -1;
	return team < 0 ? i : gdri_team_pe(&dev->teams[team], i);
}

/* Tells all others of the collective. */
GDR_DEVICE_COLD void gdri_broken_tell(struct gdri_dev *dev, int team, uint64_t word)
{
	int pe;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (int i = 0; (pe = gdri_broken_member(dev, team, i)) >= 0; i++)
		if (pe != dev->pe)
			gdri_tell_word(dev, pe, gdri_broken_at(team), word);
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

/* This PE gives up a collective; culprit -1: that of the wait that it gave up before. Returns the status that all its
 * calls have from then on. */
GDR_DEVICE_COLD int gdri_broken_set(struct gdri_dev *dev, int team, uint32_t op, int status, int32_t culprit)
{
	uint64_t none = 0, word;

	GDRI_DEV_CONSTANT(dev);
	word = gdri_fault_word_of(dev->pe, gdri_broken_culprit(dev, status, culprit), status, op);
	if (!gdri_broken_first(dev, team, status))
		return gdri_broken_first_status(dev, team);
	gdri_note_failure(dev, status);
	gdri_cas_u64(gdri_broken_word(dev, team), &none, word); /* what a peer stores over it says no less */
	gdri_broken_tell(dev, team, word);
	return status;
}

/* What another PE told. */
GDR_DEVICE_COLD void gdri_broken_record(struct gdri_dev *dev, int team, uint64_t word, const struct gdri_fault *f,
					uint32_t op)
{
	uint32_t well = 0;
	struct gdri_error *e;

	if (!gdri_broken_first(dev, team, f->status))
		return;
	gdri_note_failure(dev, f->status);
	/* who tells lives, and names itself where it knows nobody */
	if (f->status == -GDR_EPEERLOST && f->peer != f->pe)
		gdri_lost_found(dev, f->peer);
	if (gdri_cas_u32((uint32_t *)&dev->failed, &well, (uint32_t)(f->peer + 2)))
		gdri_wait_publish_failed(dev, op, 0, 0, f->peer); /* leads past this PE, which waits no more */
	e = gdri_error_take(dev, GDRI_ERROR_BROKEN, f->status);
	if (e) {
		e->op = op;
		e->peer = f->peer;
		e->local = word;
		e->reason = (uint32_t)(team + 1);
		gdri_error_complete(e);
	}
}

/* The status of the collectives; 0: their PEs are in step. The word is a peer's to write. */
GDRI_NOINLINE int gdri_broken(struct gdri_dev *dev, int team, uint32_t op)
{
	uint64_t word = gdri_ld_relaxed_sys_u64(gdri_broken_word(dev, team)); /* alone: pairs with nothing */
	struct gdri_fault f;

	GDRI_BY_ABI(gdri_broken);
	if (gdri_likely(!word) || !gdri_fault_read(word, dev->n_pes, &f) || f.peer < 0 ||
	    !gdri_broken_concerns(dev, team, f.pe))
		return 0;
	gdri_broken_record(dev, team, word, &f, op);
	return gdri_broken_first_status(dev, team);
}

#endif
