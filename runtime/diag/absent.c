// SPDX-License-Identifier: BSD-3-Clause
/* PEs that have called gdr_finalize: device code does not look at what they told (join_record.h), the monitor passes it
 * on to the waits for them, of kernels of GPUs too. */
#include "runtime/diag/fault.h"

#include <gdr/device.h>

#include "runtime/core/state.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/team/join_record.h"

void gdri_absent_look(struct gdri_state *st)
{
	for (int pe = 0; pe < st->n_pes; pe++) {
		uint32_t how = (uint32_t)gdri_join_finalizes(st, pe);

		if (how == 1 && gdri_join_is_gone(st, pe))
			how |= GDRI_PEER_GONE;
		/* relaxed: a bit that another thread sets meanwhile is set here once more */
		if (pe == st->pe || !(how & ~__atomic_load_n(&st->peers[pe].finalizes, __ATOMIC_RELAXED)))
			continue;
		/* release: what the PE sent before is seen by the looks behind; pairs with the acquire fences in
		 * gdri_wait_hear and gdri_wait_ends */
		__atomic_fetch_or(&st->peers[pe].finalizes, how, __ATOMIC_RELEASE);
		gdri_cuda_state_push_finalizes(st, pe);
	}
}
