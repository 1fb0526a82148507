// SPDX-License-Identifier: BSD-3-Clause
/* Calls by NVSHMEM's names that return nothing and failed: host threads'. Those of kernels are counted on their device,
 * and the first one has a record there (compat/nvshmem.h), by which the monitor ends the job. */
#include <stdio.h>

#include "host/host.h"
#include "runtime/core/log.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/path/devstate.h"

void gdri_unseen(const char *call, int pe, int status)
{
	struct gdri_state *st = gdri_need_state(call);
	char to[24] = "";

	if (!st)
		return;
	gdri_devstate_latch(st, status);
	/* relaxed: a number, which nothing is ordered by */
	if (!__atomic_fetch_add(&st->dev->unseen, 1, __ATOMIC_RELAXED)) {
		if (pe >= 0)
			snprintf(to, sizeof(to), " to PE %d", pe);
		gdri_error("%s%s failed, and returns nothing: %s; nvshmem_finalize says how many calls did", call, to,
			   gdr_strerror(status));
	}
	if (st->opt.nvshmem_errors == GDRI_UNSEEN_ABORT)
		gdr_global_exit(1);
}

void gdri_unseen_tell(struct gdri_state *st)
{
	/* relaxed: a number, which nothing is ordered by */
	uint32_t n = __atomic_load_n(&st->dev->unseen, __ATOMIC_RELAXED), on_gpu = 0;

	if (!st->nvshmem)
		return;
	if (st->dev_gpu && !gdri_cuda_peek(st->cuda, &on_gpu, &st->dev_gpu->unseen, sizeof(on_gpu),
					   gdri_cuda_copy_ms(st)))
		n += on_gpu;
	if (n)
		gdri_error("nvshmem_finalize: calls that return nothing and failed: %u%s", n,
			   n > 1 ? ", each quiet or barrier that told of one among them" : "");
	/* What the monitor, which looks now and then, has not seen. */
	if (n && st->opt.nvshmem_errors == GDRI_UNSEEN_ABORT)
		gdr_global_exit(1);
}
