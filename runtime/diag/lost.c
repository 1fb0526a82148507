// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/diag/lost.h"

#include <gdr/device.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/diag/place.h"
#include "runtime/path/devstate.h"

/* For gdr_errors. The monitor passes it over: it is said here. */
static void lost_record(struct gdri_state *st, int pe)
{
	struct gdri_error *e = gdri_error_take(gdri_host_dev(st), GDRI_ERROR_LOST, -GDR_EPEERLOST);

	if (!e)
		return;
	e->peer = pe;
	gdri_error_complete(e);
}

void gdri_lost_note(struct gdri_state *st, int pe)
{
	char text[160];
	int32_t none = 0;

	gdri_place_lost(pe, text, sizeof(text));
	gdri_error("%s", text);
	lost_record(st, pe);
	/* relaxed: device code and host threads read nothing else through them */
	__atomic_store_n(&st->peers[pe].lost, 1, __ATOMIC_RELAXED);
	gdri_cuda_state_push_lost(st, pe);
	__atomic_compare_exchange_n(&st->dev->lost, &none, pe + 1, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	if (st->host_view) {
		__atomic_store_n(&st->page_peers[pe].lost, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&st->host_view->lost, st->dev->lost, __ATOMIC_RELAXED);
	}
	gdri_cuda_state_push(st, &st->dev->lost);
	/* `lost` before `latched`: pairs with the fence in gdri_take_latched, where it is the other way round */
	gdri_fence_sys();
	gdri_devstate_latch(st, -GDR_EPEERLOST);
}
