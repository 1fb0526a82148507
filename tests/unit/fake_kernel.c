// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/fake_kernel.h"

#include <string.h>

#include <gdr/impl/request/exec.h>

static int perform(const struct gdri_request *q, uint64_t value[2])
{
	if (q->by == GDRI_BY_THREAD)
		return gdri_exec_thread(q, value);
	if (q->by == GDRI_BY_BLOCK)
		return gdri_exec_block(q, GDRI_THREAD);
	return q->by == GDRI_BY_GRID ? gdri_exec_grid(q) : gdri_exec_ll(q);
}

/* A block after the other, each of one thread: they do not wait for each other, but for those of other PEs. */
void fake_kernel(const char *name, unsigned int blocks, const void *arg)
{
	const struct gdri_hd_thread *was = gdri_hd_self;
	const struct gdri_request *q = arg;
	struct gdri_hd_thread here = {.block_size = 1, .grid_size = blocks};
	uint64_t value[2] = {0, 0};
	int ret, how;

	if (!strcmp(name, "gdri_kernel_flat") || !strcmp(name, "gdri_kernel_team")) {
		how = *(const int *)arg;
		if (!strcmp(name, "gdri_kernel_team"))
			ret = gdri_team_barrier(GDRI_THREAD, how >> 1, how & 1);
		else
			ret = how ? gdri_thread_barrier_all() : gdr_sync_all();
		if (ret)
			gdri_latch(gdri_dev(), ret);
		return;
	}
	if (q->by == GDRI_BY_NONE)
		return;
	gdri_hd_self = &here;
	for (; here.block < blocks; here.block++) {
		ret = perform(q, value);
		if (ret || !here.block)
			gdri_exec_end(q, ret, value);
	}
	gdri_hd_self = was;
}
