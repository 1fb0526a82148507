/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for other PEs' control areas that wait for nothing: who gives up tells by them why. */
#ifndef GDRI_TELL_H
#define GDRI_TELL_H

#include <gdr/impl/diag/blame.h>

/* Into the block r. */
GDRI_SLOW void gdri_tell_write(struct gdri_qp *qp, uint64_t r, uint64_t off, uint64_t value)
{
	uint32_t v[3] = {(uint32_t)value, (uint32_t)(value >> 32), 0};

	gdri_wqe_write_inline_12(qp, r, GDRI_CE_ALWAYS, off, qp->rkey_sync, v, 8);
}

/* An 8-byte store, if that is possible without waiting: 1 when it is on its way. */
GDR_DEVICE int gdri_tell_queue(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off, uint64_t value)
{
	uint64_t r;

	gdri_qp_mark_used(dev, qp);
	r = gdri_sq_reserve_beside(dev, qp);
	if (r == GDRI_NO_ROOM)
		return 0;
	gdri_tell_write(qp, r, off, value);
	return !gdri_sq_publish_later(dev, qp, r, 1, 0, GDRI_WINDOW);
}

/* The queue to pe whose words the one at `off` is to follow: that of a given up collective, unless it failed; else the
 * caller's. */
GDR_DEVICE_COLD struct gdri_qp *gdri_tell_by(const struct gdri_dev *dev, int pe, uint64_t off)
{
	struct gdri_qp *own = gdri_qp_to(dev, pe, 0), *qp = own - gdri_slot(dev);
	uint64_t team = (off - offsetof(struct gdri_ctl, team_broken)) / sizeof(uint64_t);

	if (off >= offsetof(struct gdri_ctl, team_broken) && team < (uint64_t)dev->n_teams)
		qp += dev->teams[team].queue;
	else if (off != offsetof(struct gdri_ctl, broken))
		return own;
	return gdri_ld_relaxed_gpu_u32((const uint32_t *)&qp->err) ? own : qp; /* a hint: pairs with nothing */
}

/* The word of pe's control area at `off`. */
GDR_DEVICE_COLD void gdri_tell_word(struct gdri_dev *dev, int pe, uint64_t off, uint64_t value)
{
	struct gdri_qp *qp;

	GDRI_DEV_CONSTANT(dev);
	/* what this PE told before: pairs with the acquire fence in gdri_wait_step; a queue has an order of its own */
	gdri_fence_release_sys();
	if (dev->peers[pe].base) {
		gdri_st_relaxed_sys_u64((uint64_t *)(dev->peers[pe].base + off), value);
	} else if (gdri_n_slots(dev)) {
		qp = gdri_tell_by(dev, pe, off);
		if (qp->sq)
			gdri_tell_queue(dev, qp, off, value);
	}
}

#endif
