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
		int how = gdri_join_finalizes(st, pe);

		/* relaxed: this thread alone writes it */
		if (pe == st->pe || !how || __atomic_load_n(&st->peers[pe].finalizes, __ATOMIC_RELAXED))
			continue;
		/* release: what the PE sent before is seen by the looks behind; pairs with the acquire fences in
		 * gdri_wait_hear and gdri_wait_ends */
		__atomic_store_n(&st->peers[pe].finalizes, (uint32_t)how, __ATOMIC_RELEASE);
		gdri_cuda_state_push_finalizes(st, pe);
	}
}
