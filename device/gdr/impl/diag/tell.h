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

/* The word of pe's control area at `off`. */
GDR_DEVICE_COLD void gdri_tell_word(struct gdri_dev *dev, int pe, uint64_t off, uint64_t value)
{
	struct gdri_qp *qp = gdri_qp_to(dev, pe, 0);

	GDRI_DEV_CONSTANT(dev);
	if (dev->peers[pe].base) /* carries no data: pairs with nothing */
		gdri_st_relaxed_sys_u64((uint64_t *)(dev->peers[pe].base + off), value);
	else if (gdri_n_slots(dev) && qp->sq)
		gdri_tell_queue(dev, qp, off, value);
}

#endif
