// SPDX-License-Identifier: BSD-3-Clause
/* The kernel of the library, which executes what host threads ask for: compiled as C for the host device,
 * and by nvcc into an image that is part of the library (exec_image.c). It is one for all requests: the compiler
 * makes a copy of all that any kernel calls by its address for each. Those that begin sooner (exec_direct.c) have an
 * image of their own, without most of that. */
#include <gdr/impl/request/exec.h>
#include <gdr/launch.h>

#include "runtime/exec/exec_begin.h"
#ifndef __CUDACC__
#include "runtime/exec/exec.h"
#endif

GDR_KERNEL(gdri_kernel_request, struct gdri_request, q)
{
	uint64_t value[2] = {0, 0};
	int ret;

	exec_begin();
	if (q.by == GDRI_BY_NONE) /* the launch is what counts (cuda_exec.c) */
		return;
	if (q.by == GDRI_BY_THREAD)
		ret = gdri_exec_thread(&q, value);
	else if (q.by == GDRI_BY_BLOCK)
		ret = gdri_exec_block(&q, GDRI_BLOCK);
	else if (q.by == GDRI_BY_GRID)
		ret = gdri_exec_grid(&q);
	else
		ret = GDRI_HAS_ANY_ADDRESS ? -GDR_EINVAL /* never asked */ : gdri_exec_ll(&q);
	/* any of the blocks may fail: the team keeps the status */
	if (!gdr_thread_id() && (ret || !gdr_block_id()))
		gdri_exec_end(&q, ret, value);
}

#ifndef __CUDACC__
int gdri_exec_here(const struct gdri_request *q, uint64_t value[2])
{
	return q->what < GDRI_RQ_BY_BLOCK ? gdri_exec_thread(q, value)
					  : gdri_exec_block(q, GDRI_THREAD);
}

gdri_exec_fn *const gdri_exec_kernel = GDRI_KERNEL_PLAIN(gdri_kernel_request);
#endif
