/* SPDX-License-Identifier: BSD-3-Clause */
/* CTAs of one number, one of each member of a team that map each other's memory, meet: what each stored before is
 * there for all behind it, and what each loaded before may be written. A thread for each member tells and hears, by
 * a word for each pair in the team's area. CTAs of a PE do not wait for each other, so a GPU, or the host device,
 * may run them in turns. */
#ifndef GDRI_CTA_BARRIER_H
#define GDRI_CTA_BARRIER_H

#include <gdr/impl/coll/blocks.h>

/* Where those of this number are told of; own number among them: the latest meeting. */
GDR_DEVICE uint64_t *gdri_cta_words(const struct gdri_team *t, uint32_t block)
{
	return t->grid + (size_t)block * GDRI_FLAT_MAX;
}

/* The first n threads, behind a sync of the scope. */
GDR_DEVICE void gdri_cta_tell(const struct gdri_coll *c, uint64_t *words, uint64_t epoch)
{
	int rank = (int)gdri_scope_rank(c->scope), size = (int)gdri_scope_size(c->scope), i;

	gdri_fence_release_sys();
	GDRI_NOT_UNROLLED
	for (i = rank; i < c->n; i += size)
		if (i != c->me) /* with the fence it pairs with the acquire in hear, at the member */
			gdri_st_fenced_u64((uint64_t *)gdri_chan_mapped(c, &words[c->me], gdri_team_pe(c->team, i)),
					   epoch);
	if (!rank)
		gdri_st_relaxed_gpu_u64(&words[c->me], epoch);
}

/* The first n threads. 1: it takes longer. */
GDR_DEVICE int gdri_cta_hear(const struct gdri_coll *c, uint64_t *words, uint64_t epoch)
{
	int rank = (int)gdri_scope_rank(c->scope), size = (int)gdri_scope_size(c->scope), late = 0, i;

	GDRI_NOT_UNROLLED
	for (i = rank; i < c->n; i += size)
		if (i != c->me && !gdri_spin(&words[i], 8, 0, GDR_CMP_GE, epoch))
			late = 1;
	gdri_fence_acquire_sys(); /* makes the loads acquires; the sync of the block passes that on */
	return late;
}

/* First thread, when it takes long. */
GDRI_NOINLINE int gdri_cta_wait(const struct gdri_coll *c, const uint64_t *words, uint64_t epoch)
{
	int i, ret = 0;

	GDRI_BY_ABI(gdri_cta_wait);
	for (i = 0; i < c->n && !ret; i++)
		if (i != c->me)
			ret = gdri_team_hear(c, i, &words[i], epoch);
	return ret;
}

/* All threads: all members are in the meeting. late: what this thread heard. */
GDR_DEVICE int gdri_cta_end(const struct gdri_coll *c, const uint64_t *words, uint64_t epoch, int late)
{
	int ret = 0;

	if (gdri_likely(!gdri_scope_any(c->scope, late)))
		return 0;
	if (!gdri_scope_rank(c->scope))
		ret = gdri_cta_wait(c, words, epoch);
	return gdri_scope_bcast(c->scope, ret);
}

/* A whole meeting by one thread (the scope of c) for its block, where it may take its time. */
GDR_DEVICE int gdri_cta_alone(const struct gdri_coll *c, uint32_t block)
{
	uint64_t *words = gdri_cta_words(c->team, block);
	uint64_t epoch = gdri_ld_relaxed_gpu_u64(&words[c->me]) + 1; /* of this PE and block alone */

	gdri_cta_tell(c, words, epoch);
	return gdri_cta_wait(c, words, epoch);
}

#endif
