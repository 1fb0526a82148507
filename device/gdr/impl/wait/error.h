/* SPDX-License-Identifier: BSD-3-Clause */
/* Error records, which the host reads while kernels run. */
#ifndef GDRI_ERROR_H
#define GDRI_ERROR_H

#include <gdr/impl/arch/dev.h>

/* Takes a record; NULL when all are taken (they are still counted). */
GDR_DEVICE_COLD struct gdri_error *gdri_error_take(struct gdri_dev *dev, uint32_t kind, int status)
{
	uint32_t i = gdri_add_u32(&dev->n_errors, 1); /* a number; state publishes the record */
	struct gdri_error *e;

	if (i >= GDRI_MAX_ERRORS)
		return 0;
	e = &dev->errors[i];
	gdri_st_relaxed_sys_u32(&e->state, 1);
	e->kind = kind;
	e->status = status;
	e->peer = -1;
	e->waited_for = -1;
	e->reason = 0; /* of who had it before gdri_error_void */
	e->time_ns = gdr_clock_ns();
	return e;
}

/* Pairs with the host's acquire of state. What a GPU's thread found the library says within 0.1 s. */
GDRI_FRAMELESS void gdri_error_complete(struct gdri_error *e)
{
	gdri_st_release_sys_u32(&e->state, 2);
#ifndef __CUDACC__
	gdri_hd_say_errors();
#endif
}

/* Gives a record back that was not needed: the last one that was taken becomes free again. One behind which other
 * records were taken keeps its place, and the host passes over it (state 3). */
GDR_DEVICE_COLD void gdri_error_void(struct gdri_dev *dev, struct gdri_error *e)
{
	uint32_t i = (uint32_t)(e - dev->errors), next = i + 1;

	if (gdri_cas_u32(&dev->n_errors, &next, i))
		return;
	gdri_st_release_sys_u32(&e->state, 3); /* pairs with the host's acquire of state */
#ifndef __CUDACC__
	gdri_hd_say_errors(); /* those behind it, which are said in order */
#endif
}

/* An argument was refused: what the record says of it. NULL: no record is free. */
GDR_DEVICE_COLD struct gdri_error *gdri_error_arg_take(struct gdri_dev *dev, uint32_t op, int pe,
						       const void *ptr, uint64_t len, uint32_t reason)
{
	struct gdri_error *e = gdri_error_take(dev, GDRI_ERROR_ARG, -GDR_EINVAL);

	if (!e)
		return 0;
	e->op = op & 0xffu;
	e->peer = pe;
	e->addr = (uint64_t)ptr;
	e->len = len;
	e->reason = reason | op >> 8 << 16;
	return e;
}

GDR_DEVICE_COLD int gdri_error_arg(struct gdri_dev *dev, uint32_t op, int pe, const void *ptr, uint64_t len,
				   uint32_t reason)
{
	struct gdri_error *e = gdri_error_arg_take(dev, op, pe, ptr, len, reason);

	if (e)
		gdri_error_complete(e);
	return -GDR_EINVAL;
}

/* In gdri_peer.finalizes: it waits there for nobody any more, and its queues may be gone. */
#define GDRI_PEER_GONE 4u

/* Whether pe has called gdr_finalize: nothing comes from there any more. 2: it had failed before, and waits for nobody.
 * Alone: who looks behind it has a fence. */
GDR_DEVICE int gdri_has_left(const struct gdri_dev *dev, int pe)
{
	uint32_t how = pe >= 0 && pe != dev->pe ? gdri_ld_relaxed_sys_u32(&dev->peers[pe].finalizes) : 0;

	return (int)(how & ~GDRI_PEER_GONE);
}

/* Whether it waits for nobody there, or is through with it. Alone, as well. */
GDR_DEVICE_COLD int gdri_has_gone(const struct gdri_dev *dev, int pe)
{
	return pe >= 0 && pe != dev->pe && gdri_ld_relaxed_sys_u32(&dev->peers[pe].finalizes) > 1;
}

/* There is no such PE, which the path by queues and long waits ask. Latched too: a quiet finds no queue to tell. */
GDR_DEVICE_COLD int gdri_no_pe(struct gdri_dev *dev, uint32_t op, int pe)
{
	struct gdri_error *e = gdri_error_arg_take(dev, op, -1, 0, (uint64_t)(int64_t)pe, GDRI_ARG_PE);

	if (e) {
		e->waited_ns = (uint64_t)gdri_k(dev, n_pes);
		gdri_error_complete(e);
	}
	gdri_latch(dev, -GDR_EINVAL);
	return -GDR_EINVAL;
}

#endif
