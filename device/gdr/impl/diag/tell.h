/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for other PEs' control areas that wait for nothing: who gives up tells by them why. */
#ifndef GDRI_TELL_H
#define GDRI_TELL_H

#include <gdr/impl/coll/levels.h>
#include <gdr/impl/diag/blame.h>

/* Into the block r. The word comes behind what the queue told before, also where the network may place a WRITE ahead of
 * that: who hears a reason to give up looks once more for the words before it. */
GDRI_SLOW void gdri_tell_write(const struct gdri_dev *dev, struct gdri_qp *qp, uint64_t r, uint64_t off, uint64_t value)
{
	uint32_t v[3] = {(uint32_t)value, (uint32_t)(value >> 32), 0};
	uint32_t fm = gdri_k(dev, flags) & GDRI_DEV_RELAXED ? GDRI_FM_STRONG : 0;

	gdri_wqe_write_inline_12(qp, r, GDRI_CE_ALWAYS | fm, off, qp->rkey_sync, v, 8);
}

/* An 8-byte store, if that is possible without waiting: 1 when it is on its way. */
GDR_DEVICE int gdri_tell_queue(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off, uint64_t value)
{
	uint64_t r;

	gdri_qp_mark_used(dev, qp);
	r = gdri_sq_reserve_beside(dev, qp);
	if (r == GDRI_NO_ROOM)
		return 0;
	gdri_tell_write(dev, qp, r, off, value);
	return !gdri_sq_publish_later(dev, qp, r, 1, 0, GDRI_WINDOW);
}

/* What is told: of a team's collectives (its number), or of those of all PEs (-1), who gave up, as the own word says;
 * whom this PE gave up for, as gdri_dev.failed says. Each look at them is the latest. */
#define GDRI_TELL_NOTICE (-2)

/* Place of the word in a control area. */
GDR_DEVICE uint64_t gdri_tell_at(const struct gdri_dev *dev, int what)
{
	if (what == GDRI_TELL_NOTICE)
		return offsetof(struct gdri_ctl, notice) + (uint64_t)(uint32_t)dev->pe * sizeof(uint64_t);
	return what < 0 ? offsetof(struct gdri_ctl, broken)
			: offsetof(struct gdri_ctl, team_broken) + (uint64_t)(uint32_t)what * sizeof(uint64_t);
}

/* said: as gdri_wait_publish_failed has it. */
GDR_DEVICE uint64_t gdri_tell_notice(uint32_t failed, uint32_t said)
{
	uint64_t word = (uint64_t)(said & 0xffu) << 32 | (said & GDRI_WAIT_SAID_LEFT ? GDRI_FAULT_LEFT : 0);

	return failed ? word | (failed - 1) : 0; /* culprit + 1 */
}

/* alone: all pair with nothing */
GDR_DEVICE uint64_t gdri_tell_value(const struct gdri_dev *dev, int what)
{
	uint32_t failed = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed);

	if (what == GDRI_TELL_NOTICE)
		return gdri_tell_notice(failed, gdri_ld_relaxed_sys_u32(&dev->ctl->waits[0].heartbeat));
	return gdri_ld_relaxed_sys_u64((const uint64_t *)(const void *)(dev->heap + gdri_tell_at(dev, what)));
}

GDRI_SLOW void gdri_tell_write_what(const struct gdri_dev *dev, struct gdri_qp *qp, uint64_t r, int what)
{
	GDRI_DEV_CONSTANT(dev);
	gdri_tell_write(dev, qp, r, gdri_tell_at(dev, what), gdri_tell_value(dev, what));
}

/* The queue to pe that the word is to go by, behind that queue's earlier words: that of the collective that was given
 * up, unless that queue failed; else the caller's. NULL: there is none. */
GDRI_SLOW struct gdri_qp *gdri_tell_by(const struct gdri_dev *dev, int pe, int what)
{
	struct gdri_qp *own = gdri_qp_to(dev, pe, 0), *qp = own;

	GDRI_DEV_CONSTANT(dev);
	if (!gdri_n_slots(dev) || !own->sq)
		return 0;
	if (what != GDRI_TELL_NOTICE)
		qp = gdri_qp_to(dev, pe, (what < 0 ? 0 : dev->teams[what].queue) - gdri_slot(dev));
	return gdri_ld_relaxed_gpu_u32((const uint32_t *)&qp->err) ? own : qp; /* a hint: pairs with nothing */
}

/* A block of it, if one is free now. An error of the queue is for those that wait for it. */
GDRI_SLOW uint64_t gdri_tell_reserve(struct gdri_dev *dev, struct gdri_qp *qp)
{
	GDRI_DEV_CONSTANT(dev);
	if (!qp)
		return GDRI_NO_ROOM;
	gdri_qp_mark_used(dev, qp);
	gdri_poll_entries(qp);
	return gdri_sq_reserve_polled(qp);
}

/* Whether pe hears of it: of a collective who waits for others, also in gdr_finalize; of whom this PE gave up for all
 * that are there, but that one. */
GDR_DEVICE_COLD int gdri_tell_concerns(const struct gdri_dev *dev, int what, int pe)
{
	if (what != GDRI_TELL_NOTICE)
		return !gdri_has_gone(dev, pe);
	/* alone: pairs with nothing */
	return pe != (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed) - 2 && !gdri_has_left(dev, pe);
}

/* Whom it concerns, number i; -1: nobody. */
GDR_DEVICE int gdri_tell_whom(const struct gdri_dev *dev, int what, uint32_t i)
{
	int pe = what < 0 ? (int)i : gdri_team_pe(&dev->teams[what], (int)i);

	return pe != dev->pe && gdri_tell_concerns(dev, what, pe) ? pe : -1;
}

/* The queue by which number i is to be told: NULL where it was told, or is nobody, or there is none. */
GDRI_SLOW struct gdri_qp *gdri_tell_mapped(const struct gdri_dev *dev, int what, uint32_t i)
{
	int pe;

	GDRI_DEV_CONSTANT(dev);
	pe = gdri_tell_whom(dev, what, i);
	if (pe < 0)
		return 0;
	/* what this PE told before: pairs with the acquire fence in gdri_wait_step; a queue has an order of its own */
	gdri_fence_release_sys();
	if (!dev->peers[pe].base)
		return gdri_tell_by(dev, pe, what);
	gdri_st_relaxed_sys_u64((uint64_t *)(dev->peers[pe].base + gdri_tell_at(dev, what)),
				gdri_tell_value(dev, what));
	return 0;
}

/* Number i of those whom it concerns. */
GDR_DEVICE_COLD void gdri_tell_one(struct gdri_dev *dev, int what, uint32_t i)
{
	struct gdri_qp *qp = gdri_tell_mapped(dev, what, i);
	uint64_t r = gdri_tell_reserve(dev, qp);

	GDRI_DEV_CONSTANT(dev);
	if (r == GDRI_NO_ROOM)
		return;
	gdri_tell_write_what(dev, qp, r, what);
	gdri_sq_publish_later(dev, qp, r, 1, 0, GDRI_WINDOW);
}

/* The number behind i; 0: there are no more. */
GDR_DEVICE uint32_t gdri_tell_next(const struct gdri_dev *dev, int what, uint32_t i)
{
	return i + 1 < (uint32_t)(what < 0 ? dev->n_pes : dev->teams[what].n) ? i + 1 : 0;
}

GDR_DEVICE void gdri_tell_each(struct gdri_dev *dev, int what)
{
	uint32_t i = 0;

	GDRI_NOT_UNROLLED
	do {
		gdri_tell_one(dev, what, i);
		i = gdri_tell_next(dev, what, i);
	} while (i);
}

#endif
