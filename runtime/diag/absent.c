// SPDX-License-Identifier: BSD-3-Clause
/* A barrier that waits for a PE which has called gdr_finalize: device code does not look for that, the monitor gives
 * the barrier up. On GPUs the words of barriers of kernels are the GPU's, and host threads meet by other ones. */
#include "runtime/diag/fault.h"

#include <gdr/device.h>

#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/team/join_record.h"

/* The PE that the wait of gdri_sync_hear is for, if that finalizes and did not come; -1: another wait, or it may
 * come. */
static int absent_pe(const struct gdri_state *st, const struct gdri_wait *w)
{
	struct gdri_dev *dev = st->dev;
	uint32_t state, op;
	uint64_t since, addr, epoch;
	int pe;

	/* acquire: pairs with the fence in gdri_wait_publish: behind it stands that wait's state, or a later one */
	since = gdri_ld_acquire_sys_u64(&w->since_ns);
	/* acquire: pairs with the release in gdri_wait_publish */
	state = gdri_ld_acquire_sys_u32(&w->state);
	op = __atomic_load_n(&w->op, __ATOMIC_RELAXED);
	pe = __atomic_load_n(&w->peer, __ATOMIC_RELAXED);
	addr = __atomic_load_n(&w->addr, __ATOMIC_RELAXED);
	if (state != GDRI_WAIT_WAITING || (op != GDRI_BARRIER && op != GDRI_SYNC) || pe < 0 || pe >= st->n_pes ||
	    addr >= GDRI_CTL_SIZE || !gdri_join_finalizes(st, pe))
		return -1;
	epoch = __atomic_load_n(&dev->barrier_epoch, __ATOMIC_RELAXED); /* of the wait, or of a later one */
	/* behind the look at whether it finalizes: what it told before that is here */
	if (gdri_ld_acquire_sys_u64((const uint64_t *)(const void *)(dev->heap + addr)) >= epoch)
		return -1;
	/* It was one wait throughout, if it still is: who finds a field of a later one finds that one's state, or a
	 * later state, too. Pairs with the fence in gdri_wait_publish. */
	gdri_fence_acquire_sys();
	/* acquire: pairs with the release there; a later wait's time is seen with its state */
	state = gdri_ld_acquire_sys_u32(&w->state);
	return state == GDRI_WAIT_WAITING && gdri_ld_relaxed_sys_u64(&w->since_ns) == since ? pe : -1;
}

void gdri_absent_look(struct gdri_state *st)
{
	const struct gdri_wait *w = st->dev->ctl->waits;
	int pe = -1, i;

	if (st->cuda || gdri_broken_first_status(st->dev, -1))
		return;
	for (i = 1; i < GDRI_WAIT_RECORDS && pe < 0; i++)
		pe = absent_pe(st, &w[i]);
	if (pe < 0)
		return;
	gdri_error("barrier: PE %d has called gdr_finalize: it takes no part", pe);
	gdri_lost_found(st->dev, pe); /* as of each PE that a barrier ends because of */
	gdri_broken_set(st->dev, -1, GDRI_BARRIER, -GDR_EPEERLOST, pe);
}
