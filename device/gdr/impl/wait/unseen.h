/* SPDX-License-Identifier: BSD-3-Clause */
/* A status that the program does not see, since the call that had it returns nothing. */
#ifndef GDRI_UNSEEN_H
#define GDRI_UNSEEN_H

#include <gdr/impl/wait/error.h>

#if GDRI_LINKED
#include <gdr/impl/arch/library.h>
#else
/* Latched, counted and told (GDR_NVSHMEM_ERRORS). */
GDR_DEVICE_COLD void gdri_note_unseen(struct gdri_dev *dev, int status)
{
	struct gdri_error *e, *last;
	uint32_t n = gdri_ld_relaxed_gpu_u32(&dev->n_errors); /* a hint: pairs with nothing */

	gdri_latch(dev, status);
	if (gdri_add_u32(&dev->unseen, 1)) /* a number: pairs with nothing */
		return;
	e = gdri_error_take(dev, GDRI_ERROR_UNSEEN, status);
	if (!e)
		return;
	last = n && n <= GDRI_MAX_ERRORS ? &dev->errors[n - 1] : 0;
	if (last && last->status == status) { /* that of the operation, which says more */
		e->op = last->op;
		e->peer = last->peer;
		e->reason = last->reason;
		e->len = last->len;
	}
	gdri_error_complete(e);
}
#endif

#endif
