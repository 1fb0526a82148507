/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of a grid. Its word is the launch's, and 0 or GDRI_GRID_PHASE between barriers, as that of CUDA's
 * cooperative groups: all that the blocks of one barrier add to it flips that bit and leaves the others. */
#ifndef GDRI_GRID_SYNC_H
#define GDRI_GRID_SYNC_H

#include <gdr/impl/arch/scope.h>
#ifdef GDR_CHECKED
#include <gdr/impl/api/check.h>
#endif
#include <gdr/impl/path/slow.h>

#if !GDRI_LINKED /* else it is in the library */
#define GDRI_GRID_PHASE 0x80000000u

#define GDRI_GRID_FIRST 0x80000000u /* the first block is one of those that are missing */

/* The acquire pairs with the fence of each block before it added. */
GDR_DEVICE int gdri_grid_is_through(const uint32_t *word, uint32_t before)
{
	return ((gdri_ld_acquire_gpu_u32(word) ^ before) & GDRI_GRID_PHASE) != 0;
}

/* Blocks that are not there, of n, in a word that is not through; others may have withdrawn. */
GDR_DEVICE_COLD uint32_t gdri_grid_missing(const uint32_t *word, uint32_t n)
{
	uint32_t came = gdri_ld_relaxed_gpu_u32(word) & (GDRI_GRID_PHASE - 1); /* a number: pairs with nothing */

	/* what the first block adds lacks the others to the bit */
	return came < n ? (n - came) | GDRI_GRID_FIRST : GDRI_GRID_PHASE - came;
}

/* Takes back what the block added, unless all came meanwhile: whoever comes later finds no more than are there. */
GDR_DEVICE_COLD void gdri_grid_withdraw(uint32_t *word, uint32_t before, uint32_t mine)
{
	uint32_t now = gdri_ld_relaxed_gpu_u32(word);

	/* a number: pairs with nothing */
	while (!((now ^ before) & GDRI_GRID_PHASE) && !gdri_cas_u32(word, &now, now - mine))
		;
}

/* A step of the wait, which says how many are missing: the fewest that it saw, since those that give up withdraw. */
GDR_DEVICE_COLD int gdri_grid_step(struct gdri_dev *dev, struct gdri_waiter *w, const uint32_t *word, uint32_t n)
{
	uint32_t missing = gdri_grid_missing(word, n);

	if (!w->last || (missing & ~GDRI_GRID_FIRST) < (w->last & ~GDRI_GRID_FIRST))
		w->last = missing;
	return gdri_wait_step(dev, w);
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
		ret = gdri_grid_step(dev, &w, word, n);
		if (gdri_unlikely(ret)) {
			gdri_grid_withdraw(word, before, mine);
			return ret;
		}
	}
	gdri_wait_end(dev, &w);
	return 0;
}
#endif

#ifdef GDR_CHECKED
/* 1: not a launch whose blocks meet, which the first block says for all. */
GDR_DEVICE int gdri_check_grid(const struct gdri_site *at)
{
	if (gdr_grid_size() == 1 || gdri_grid_word() || !gdri_dev())
		return 0;
	return gdr_block_id() ? -GDR_EINVAL : gdri_refuse(at, -1, GDRI_ARG_OTHER, 0, gdr_grid_size(), 0, 0);
}

GDR_DEVICE int gdri_check_grid_sync(const char *file, uint32_t line)
{
	struct gdri_site at = {file, line, GDRI_GRID_SYNC, GDRI_BLOCK};
	int ret = gdri_check_threads(&at, 0, 0, 0, -1);

	return ret ? ret : gdri_check_grid(&at);
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

#ifdef GDR_CHECKED
GDR_DEVICE int gdri_checked_grid_sync(const char *file, uint32_t line)
{
	int ret = gdri_check_grid_sync(file, line);

	return ret ? ret : gdr_grid_sync();
}
#define gdr_grid_sync() gdri_checked_grid_sync(__FILE__, __LINE__)
#endif

#endif
