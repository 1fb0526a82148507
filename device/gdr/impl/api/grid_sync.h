/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of a grid. Its word is the launch's, and 0 or GDRI_GRID_PHASE between barriers, as that of CUDA's
 * cooperative groups: all that the blocks of one barrier add to it flips that bit and leaves the others. */
#ifndef GDRI_GRID_SYNC_H
#define GDRI_GRID_SYNC_H

#include <gdr/impl/arch/scope.h>
#include <gdr/impl/path/slow.h>

#if !GDRI_LINKED /* else it is in the library */
#define GDRI_GRID_PHASE 0x80000000u

/* The acquire pairs with the fence of each block before it added. */
GDR_DEVICE int gdri_grid_is_through(const uint32_t *word, uint32_t before)
{
	return ((gdri_ld_acquire_gpu_u32(word) ^ before) & GDRI_GRID_PHASE) != 0;
}

/* Takes back what the block added, unless all came meanwhile: whoever comes later finds no more than are there. */
GDR_DEVICE_COLD void gdri_grid_withdraw(uint32_t *word, uint32_t before, uint32_t mine)
{
	uint32_t now = gdri_ld_relaxed_gpu_u32(word);

	/* a number: pairs with nothing */
	while (!((now ^ before) & GDRI_GRID_PHASE) && !gdri_cas_u32(word, &now, now - mine))
		;
}

/* By one thread of each block. */
GDRI_NOINLINE int gdri_grid_meet(void)
{
	struct gdri_dev *dev = gdri_dev();
	uint32_t n = gdr_grid_size(), mine = gdr_block_id() ? 1 : GDRI_GRID_PHASE - (n - 1);
	uint32_t before, *word = gdri_grid_word();
	struct gdri_waiter w;
	int ret;

	GDRI_BY_ABI(gdri_grid_meet);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	if (gdri_unlikely(!word)) /* the first block says it for all */
		return gdr_block_id() ? -GDR_EINVAL : gdri_error_arg(dev, GDRI_GRID_SYNC, -1, 0, n, GDRI_ARG_OTHER);
	gdri_fence_gpu(); /* what the block stored: pairs with the acquire of the other blocks */
	before = gdri_add_fenced_u32(word, mine);
	for (int left = GDRI_SPINS; left && !gdri_grid_is_through(word, before); left--)
		;
	gdri_wait_begin(&w, GDRI_GRID_SYNC, gdri_k(dev, pe), 0);
	while (!gdri_grid_is_through(word, before)) {
		ret = gdri_wait_step(dev, &w);
		if (gdri_unlikely(ret)) {
			gdri_grid_withdraw(word, before, mine);
			return ret;
		}
	}
	gdri_wait_end(dev, &w);
	return 0;
}
#endif

GDR_DEVICE int gdr_grid_sync(void)
{
	int ret = 0;

	gdr_sync_block();
	if (gdr_grid_size() == 1)
		return 0;
	if (!gdr_thread_id())
		ret = gdri_grid_meet();
	return gdri_block_bcast(ret);
}

#endif
